"""Missing cells where the exact likelihood is out of reach: "auto" samples them, other learners complete them."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.learners.auto import choose_learner
from gibbsian.samplers import draw
from systems import random_model


@pytest.fixture(scope="module")
def rows():
    """Rows of 30 densely coupled spins, whole, and with every eighth cell missing."""
    rng = np.random.default_rng(5)
    model = gb.PairwiseModel.build(
        gb.graphs.complete(30), rng.normal(scale=0.2, size=30), rng.normal(scale=0.1, size=435)
    )
    states = draw(model, 1000, rng, n_chains=100, burn_in=200).reshape(-1, 30)[:1000]
    return model, states.astype(float), np.where(rng.random(states.shape) < 0.125, np.nan, states)


BETHE = gb.learners.InverseMeanField("bethe", l2=0.01)


class TestPairwise:
    @pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
    def test_auto_learns_by_chains_and_nearly_as_well_as_from_whole_rows(self, rows):
        truth, whole, holed = rows
        machine = gb.BoltzmannMachine(l2=1e-3, max_iter=200, random_state=0).fit(holed)
        assert machine.result_.provenance["learner"] == "pcd"
        assert machine.result_.provenance["missing_cells"] == np.isnan(holed).sum()
        best = gb.BoltzmannMachine(learner="mple", l2=1e-3).fit(whole)

        def error(model):
            return np.sqrt(np.mean((model.couplings - truth.couplings) ** 2))

        zeros = np.sqrt(np.mean(truth.couplings**2))
        assert error(best.model_) < 0.5 * zeros
        assert error(machine.model_) < 1.35 * error(best.model_)  # 0.77 of the pairs are seen in a row
        # missing cells are filled with what they were more often than by the columns' majority
        hidden = np.isnan(holed)
        right = (machine.impute(holed) == whole)[hidden].mean()
        majority = (np.sign(np.nanmean(holed, axis=0)) == whole)[hidden].mean()
        assert right > majority + 0.02

    @pytest.mark.parametrize("learner", ["mple", "rm", "mpf", "smci", BETHE, "rple"], ids=str)
    def test_other_learners_complete_the_cells_and_lose_little(self, rows, learner):
        truth, *tables = rows
        penalty = {} if learner is BETHE else {"l2": 0.01}
        machines = [
            gb.BoltzmannMachine(learner=learner, tol=1e-3, random_state=0, **penalty).fit(table) for table in tables
        ]
        whole, holed = (np.sqrt(np.mean((each.model_.couplings - truth.couplings) ** 2)) for each in machines)
        assert whole < 0.5 * np.sqrt(np.mean(truth.couplings**2))
        assert holed < 1.35 * whole  # 0.77 of the pairs are seen in a row


def test_auto_stays_exact_where_that_is_quick(rng, domain):
    model = random_model(gb.graphs.complete(6), rng, domain)
    states = gb.inference.exact(model).sample(100, rng)
    data = gb.Dataset.read(np.where(rng.random(states.shape) < 0.2, np.nan, states), coding=domain.name)
    assert choose_learner(model, data) == "mle"
    assert choose_learner(model, gb.Dataset.read(states, coding=domain.name)) == "mle"


def test_auto_counts_what_rows_with_many_missing_cells_cost(rng):
    """A tree is summed in no time; every row with a clique of missing cells is not."""
    chain, clique = (gb.PairwiseModel.zeros(graph) for graph in (gb.graphs.grid(1, 30), gb.graphs.complete(24)))
    for model, expected in ((chain, "mle"), (clique, "pcd")):
        states = np.where(rng.random((200, model.n_variables)) < 0.5, 1.0, -1.0)
        states[:, 2:] = np.where(rng.random(states[:, 2:].shape) < 0.9, np.nan, states[:, 2:])
        assert choose_learner(model, gb.Dataset.read(states, coding="spin")) == expected


def test_auto_completes_the_few_holes_of_very_many_cells(rows, monkeypatch):
    model, whole, _ = rows
    holed = np.where(np.random.default_rng(0).random(whole.shape) < 0.01, np.nan, whole)
    data = gb.Dataset.read(holed, coding="spin")
    assert choose_learner(model, data) == "pcd"
    monkeypatch.setattr("gibbsian.learners.auto.MANY_CELLS", data.states.size - 1)
    assert choose_learner(model, data) == "mple"
    monkeypatch.setattr("gibbsian.learners.auto.are_few", lambda data: False)
    assert choose_learner(model, data) == "pcd"


def test_auto_completes_the_holes_of_very_many_parameters(rng):
    cells = rng.integers(0, 8, (50, 15)).astype(float)
    cells[rng.random(cells.shape) < 0.1] = np.nan
    data = gb.Dataset.read(cells, coding=gb.data.Labels(range(8)))
    model = gb.models.PottsModel.zeros(gb.graphs.complete(15), data.domain)
    assert choose_learner(model, data) == "mple"
    assert choose_learner(gb.models.PottsModel.zeros(gb.graphs.grid(1, 15), data.domain), data) != "mple"


@pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
@pytest.mark.parametrize("machine", [gb.PottsMachine, gb.HigherOrderBoltzmannMachine], ids=lambda kind: kind.__name__)
def test_other_machines_learn_by_chains_what_they_learn_exactly(machine, monkeypatch):
    rng = np.random.default_rng(1)
    opinion = rng.integers(0, 3, (600, 1))
    codes = np.where(rng.random((600, 4)) < 0.5, opinion, rng.integers(0, 3, (600, 4))).astype(object)
    if machine is gb.HigherOrderBoltzmannMachine:
        codes = codes // 2
    codes[rng.random(codes.shape) < 0.2] = None
    codes = codes[~np.equal(codes, None).all(axis=1)]
    settings = {"learner": "auto", "l2": 0.01, "random_state": 0}
    exact = machine(**settings).fit(codes)
    monkeypatch.setattr("gibbsian.learners.auto.PATIENT_SECONDS", 0.0)
    sampled = machine(**settings, max_iter=300).fit(codes)
    assert [fitted.result_.provenance["learner"] for fitted in (exact, sampled)] == ["mle", "pcd"]
    assert sampled.score(codes) > exact.score(codes) - 0.005
    np.testing.assert_allclose(sampled.predict_proba(codes), exact.predict_proba(codes), atol=0.1)
