"""Every figure and table with few trials: it runs, is drawn and written, and claims that are safe at that size hold."""

from __future__ import annotations

import pytest

from gibbsian_reproduction import ta22_machines, ta22_methods
from gibbsian_reproduction.experiment import EXPERIMENTS
from gibbsian_reproduction.report import PAPERS, Report
from gibbsian_reproduction.runner import run, run_many
from gibbsian_reproduction.trial_files import FOLDER

ASKED = 4  # heavy experiments make one
TIMED_TABLE = ("ta22-table1", "ta22-fig3", "ta22-fig4")
LONG_CHAINS = "ta22-pcd"
# With 10,000 temperatures: one of each figure is run with a trial in test_yu20.py, which also says what differs.
PROTOCOLS = [name for name in EXPERIMENTS if name.endswith("-protocol")]
# test_y18.py and test_yu20.py have their claims and pictures; here they are written as well.
SLOW = [name for name in EXPERIMENTS if name.startswith(("y18-", "yu20-fig")) and name not in PROTOCOLS]
SLOW += ["h06-cd-objective", "h06-cd1", "h06-fig1", "ta22-theorem2", "ta22-theorem3", "yk15-rbm"]
OTHERS = [name for name in EXPERIMENTS if name not in (*TIMED_TABLE, LONG_CHAINS, *PROTOCOLS, *SLOW)]


@pytest.mark.parametrize("name", [*OTHERS, *(pytest.param(name, marks=pytest.mark.long) for name in SLOW)])
def test_an_experiment_runs_and_its_safe_claims_hold(name, tmp_path):
    check(name, run(name, ASKED, 0, tmp_path, workers=1), tmp_path)


@pytest.mark.long
def test_figures_of_one_table_share_its_trials(tmp_path, monkeypatch):
    """TA22 Table 1 and its figures; chains a fiftieth as long, which only makes BM-PCD worse than it is."""
    monkeypatch.setattr(ta22_methods, "PCD_STEPS", 200)
    found = dict(run_many(TIMED_TABLE, ASKED, 0, tmp_path, workers=1))
    assert {name: results.n_trials for name, results in found.items()} == dict.fromkeys(TIMED_TABLE, 1)
    for name, results in found.items():
        check(name, results, tmp_path)
        assert results["seconds"].tobytes() == found["ta22-table1"]["seconds"].tobytes()
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["ta22-table1-0.jsonl"]


def test_chains_on_many_data_sets(tmp_path, monkeypatch):
    """Chains a fiftieth as long, on the data sets of few rows."""
    monkeypatch.setattr(ta22_methods, "PCD_STEPS", 200)
    monkeypatch.setattr(ta22_machines, "NAMES", ta22_machines.NAMES[::2])
    check(LONG_CHAINS, run(LONG_CHAINS, ASKED, 0, tmp_path, workers=1), tmp_path)


def check(name, results, tmp_path):
    report = Report.of(name, results, ASKED)
    files = report.write(tmp_path)
    assert all(path.stat().st_size > 0 for path in files)
    assert report.tables
    assert all(len(table.frame) for table in report.tables)
    for claim, verdict in zip(report.experiment.claims, report.verdicts, strict=True):
        if claim.trials <= results.n_trials:
            assert verdict.holds != claim.misprint, f"{claim.text}: {verdict}"


def test_experiments_have_papers_claims_and_names_of_their_paper():
    for name in EXPERIMENTS:
        experiment = EXPERIMENTS.create(name)
        assert experiment.paper in PAPERS
        assert name.startswith(f"{experiment.paper.lower()}-")
        assert experiment.claims
        assert experiment.trials_of(200) <= 200
