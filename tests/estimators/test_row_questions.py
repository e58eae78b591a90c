"""Rows at any size: unusual rows and cells, cells filled in place, and how far long work has come."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from estimator_samples import small, table
from gibbsian.answers.unusual import shown_probabilities
from gibbsian.cli.bars import Bars
from gibbsian.data import chunks
from gibbsian.errors import GibbsianError
from gibbsian.estimators import ESTIMATORS
from gibbsian.progress import reporting

pytestmark = pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
ITEMS = ["calm", "glad", "keen"]


@pytest.fixture(scope="module")
def survey():
    """Answers with holes between an id and a note that no model knows."""
    rng = np.random.default_rng(3)
    group = rng.integers(0, 2, 300)
    codes = np.where(rng.random((300, 3)) < 0.7, group[:, None], rng.integers(0, 2, (300, 3)))
    frame = pd.DataFrame(np.array(["no", "yes"])[codes], columns=ITEMS)
    frame["glad"] = frame["glad"].astype("category")
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    frame.insert(0, "id", [f"{i:03d}" for i in range(300)])
    frame["visits"] = rng.integers(0, 9, 300)
    return frame


@pytest.fixture(scope="module")
def machine(survey):
    found = gb.BoltzmannMachine(learner="mle", random_state=0)
    return found.fit(found.read(survey, drop=["id", "visits"]))


@pytest.fixture
def in_parts(monkeypatch):
    monkeypatch.setattr(chunks.chunks, "__defaults__", (70,))


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_every_family_tells_unusual_rows_and_cells_or_why_not(name):
    rows = table(name)
    machine = small(name).fit(rows)
    found = machine.unusual(rows, n=5)
    scores = machine._log_weights(machine._read(rows))[machine._read(rows).row_of]
    np.testing.assert_allclose(found["log_weight"], np.sort(scores)[:5])
    if "column" not in found:
        with pytest.raises(GibbsianError, match="real numbers"):
            machine.unusual(rows, n=5, cells=True)
        return
    cells = machine.unusual(rows, n=5, cells=True)
    first = cells.iloc[0]
    known = machine.predict_proba(rows[[first["row"]]], columns=first["column"])[0]
    labels = list(machine.coding_.labels_of(machine.names_.index(first["column"])))
    assert first["probability"] == pytest.approx(known[labels.index(first["value"])], abs=1e-6)
    assert first["likelier"] == labels[int(np.argmax(known))]


@pytest.mark.parametrize("name", ["pairwise", "potts", "rbm", "rbm of categories"])
def test_conditionals_and_hidden_columns_tell_the_same_of_rows_with_holes(name):
    if name == "rbm of categories":
        machine, rows, holed = small("rbm", visible="categorical"), table("potts"), table("potts", holes=0.2)
    else:
        machine, rows, holed = small(name), table(name), table(name, holes=0.2)
    data, answers = machine.fit(rows)._read(holed), machine._answers
    assert answers.has_conditionals
    quick, likelier = shown_probabilities(answers, data, np.random.default_rng(0))
    answers.has_conditionals = False
    slow, also = shown_probabilities(answers, data, np.random.default_rng(0))
    np.testing.assert_allclose(quick, slow, atol=1e-12)
    shown = ~np.isnan(quick)
    np.testing.assert_array_equal(likelier[shown], also[shown])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_are_gone_through_in_parts(machine, survey, tmp_path, in_parts, suffix):
    path = tmp_path / f"survey{suffix}"
    survey.to_csv(path, index=False) if suffix == ".csv" else survey.to_parquet(path, index=False)
    for cells in (False, True):
        told, known = (machine.unusual(source, 7, cells=cells) for source in (path, survey))
        assert told["id"].tolist() == known["id"].tolist() == survey["id"][told["row"]].tolist()
        number = "probability" if cells else "log_weight"
        np.testing.assert_allclose(told[number], known[number])


def test_filled_frames_keep_columns_and_types(machine, survey, in_parts):
    filled = machine.impute(survey)
    assert survey[ITEMS].isna().any(axis=None)
    assert not filled.isna().any(axis=None)
    pd.testing.assert_series_equal(filled.dtypes, survey.dtypes)
    kept = survey.notna()
    pd.testing.assert_frame_equal(filled.where(kept), survey.where(kept))
    known = machine.coding_.decode(machine._answers.completed_states(machine.read(survey), np.random.default_rng(0)))
    np.testing.assert_array_equal(filled[ITEMS].to_numpy(), known[machine.read(survey).row_of])


def test_numbers_and_truth_values_keep_their_types():
    rows = pd.DataFrame({"a": [1, 0, 1, 0, 1, 0], "b": [1, 0, 1, 1, 0, 0]}, dtype="Int64")
    holed = rows.copy()
    holed.loc[0, "b"] = pd.NA
    assert gb.BoltzmannMachine().fit(rows).impute(holed).dtypes.astype(str).tolist() == ["Int64", "Int64"]
    truths = rows.astype("boolean")
    holed = truths.copy()
    holed.loc[0, "a"] = pd.NA
    filled = gb.BoltzmannMachine().fit(truths).impute(holed)
    assert filled.dtypes.astype(str).tolist() == ["boolean", "boolean"]
    assert filled["a"].notna().all()


def test_bars_appear_with_work_and_go_with_its_end(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    bars = Bars()
    with reporting(bars):
        gb.sampling.draw(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3))), 40, 0)
        assert bars.shown is None
        bars("annealing", 1, 2)
        assert bars.shown is not None
        bars("annealing", 2, 2)
    assert bars.shown is None
    assert "annealing" in stream.getvalue()
    assert "draws" in stream.getvalue()


@pytest.mark.parametrize("method", ["l1-ebic", "decimation"])
def test_structure_tells_how_far_it_is(method):
    seen = []
    rows = np.random.default_rng(0).integers(0, 2, (100, 3))
    with reporting(lambda *told: seen.append(told)):
        gb.structure.learn_structure(rows, method)
    assert seen[-1][1] == seen[-1][2]
    with reporting(lambda *told: seen.append(told)):
        gb.sampling.Annealing(5, 1000).forward(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3))), 0)
    assert seen[-1] == ("annealing", 2, 2)
