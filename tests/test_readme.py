"""What the README says works: its Python runs, its commands run, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import gibbsian as gb
from cli_runner import answer, run
from report_pages import read_page

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder, as a reader does."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python_runs(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    for block in blocks:
        exec(block, {})
    printed = capsys.readouterr().out
    assert len(blocks) == 1
    assert "converged" in printed
    assert "physician-fee-freeze" in printed


def test_every_command_runs_in_an_empty_folder(empty: Path) -> None:
    commands = re.findall(r"^gibbsian (.*)$|`gibbsian (.*?)`", README, flags=re.MULTILINE)
    found = [line or inline for line, inline in commands]
    assert found[0].startswith("demo")
    assert len(found) == 5
    for command in found:
        result = run(*shlex.split(command, comments=True))
        assert (result.exit_code, result.stderr) == (0, ""), command


def test_demo_report_and_python_tell_one_story(empty: Path) -> None:
    told = answer("demo", "--out-dir", ".")
    machine = gb.BoltzmannMachine().fit(gb.datasets.load_house_votes())
    exact, scores = told["fits"][0], machine.result_.held_out
    assert exact["held_out"] == pytest.approx(scores.score, abs=1e-9)
    coupling = machine.strongest_couplings(1).iloc[0]["coupling"]
    assert f"odds times {np.exp(coupling):.1f}" in told["strongest_couplings"][0]
    answer("report", "votes.csv", "--out", "report.html")
    page = read_page(empty / "report.html")
    assert f"{np.exp(coupling):.3g} times those when physician-fee-freeze is 0" in page.sections["words"]
    assert f"{scores.score:.4f} nats a row" in page.sections["verdict"]
    assert gb.load(_fitted(empty)).result_.held_out.score == pytest.approx(scores.score, abs=1e-9)


def _fitted(folder: Path) -> Path:
    answer("fit", "votes.csv", "--out", "votes.gibbs")
    return folder / "votes.gibbs"


def test_links_and_targets_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"make (?:\w+=\S+ )?(\w+)", README)) <= targets
