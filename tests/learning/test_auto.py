"""Missing cells where the exact likelihood is out of reach: "auto" samples them, other learners complete them."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.learning.auto import choose_learner
from gibbsian.sampling import draw
from systems import dataset_of, random_model


@pytest.fixture(scope="module")
def rows():
    """Rows of 30 densely coupled spins, whole, and with every eighth cell missing."""
    rng = np.random.default_rng(5)
    model = gb.PairwiseFamily.model(
        gb.graphs.complete(30), rng.normal(scale=0.2, size=30), rng.normal(scale=0.1, size=435)
    )
    states = model.variables.scores_of(draw(model, 1000, rng, n_chains=100, burn_in=200).reshape(-1, 30)[:1000])
    return model, states, np.where(rng.random(states.shape) < 0.125, np.nan, states)


BETHE = gb.learning.InverseMeanField("bethe", l2=0.01)


class TestPairwise:
    @pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
    def test_auto_learns_by_chains_and_nearly_as_well_as_from_whole_rows(self, rows):
        truth, whole, holed = rows
        machine = gb.BoltzmannMachine(l2=1e-3, max_iter=200, random_state=0).fit(holed)
        assert machine.result_.provenance["learner"] == "pcd"
        assert machine.result_.provenance["missing_cells"] == np.isnan(holed).sum()
        best = gb.BoltzmannMachine(learner="mple", l2=1e-3).fit(whole)

        def error(model):
            return np.sqrt(np.mean((model.parts.couplings - truth.parts.couplings) ** 2))

        zeros = np.sqrt(np.mean(truth.parts.couplings**2))
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
        whole, holed = (
            np.sqrt(np.mean((each.model_.parts.couplings - truth.parts.couplings) ** 2)) for each in machines
        )
        assert whole < 0.5 * np.sqrt(np.mean(truth.parts.couplings**2))
        assert holed < 1.35 * whole  # 0.77 of the pairs are seen in a row


def test_auto_stays_exact_where_that_is_quick(rng, scores):
    model = random_model(gb.graphs.complete(6), rng, scores)
    states = gb.inference.exact(model).sample(100, rng)
    data = dataset_of(states, model.variables, missing=rng.random(states.shape) < 0.2)
    assert choose_learner(model, data) == "mle"
    assert choose_learner(model, dataset_of(states, model.variables)) == "mle"


def test_auto_counts_what_rows_with_many_missing_cells_cost(rng):
    """A tree is summed in no time; every row with a clique of missing cells is not."""
    chain, clique = (
        gb.Model.zeros(gb.PairwiseFamily(graph)) for graph in (gb.graphs.grid(1, 30), gb.graphs.complete(24))
    )
    for model, expected in ((chain, "mle"), (clique, "pcd")):
        states = np.where(rng.random((200, model.n_variables)) < 0.5, 1.0, -1.0)
        states[:, 2:] = np.where(rng.random(states[:, 2:].shape) < 0.9, np.nan, states[:, 2:])
        assert choose_learner(model, gb.Dataset.read(states, coding="spin")) == expected


def test_auto_completes_the_few_holes_of_very_many_cells(rows, monkeypatch):
    model, whole, _ = rows
    holed = np.where(np.random.default_rng(0).random(whole.shape) < 0.01, np.nan, whole)
    data = gb.Dataset.read(holed, coding="spin")
    assert choose_learner(model, data) == "pcd"
    monkeypatch.setattr("gibbsian.learning.auto.MANY_CELLS", data.states.size - 1)
    assert choose_learner(model, data) == "mple"
    monkeypatch.setattr("gibbsian.learning.auto.are_few", lambda data: False)
    assert choose_learner(model, data) == "pcd"


def test_auto_completes_the_holes_of_very_many_parameters(rng):
    cells = rng.integers(0, 8, (50, 15)).astype(float)
    cells[rng.random(cells.shape) < 0.1] = np.nan
    data = gb.Dataset.read(cells, coding=gb.data.Labels(range(8)))
    model = gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(15), data.variables))
    assert choose_learner(model, data) == "mple"
    assert choose_learner(gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.grid(1, 15), data.variables)), data) != "mple"


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
    monkeypatch.setattr("gibbsian.learning.auto.PATIENT_SECONDS", 0.0)
    sampled = machine(**settings, max_iter=300).fit(codes)
    assert [fitted.result_.provenance["learner"] for fitted in (exact, sampled)] == ["mle", "pcd"]
    assert sampled.score(codes) > exact.score(codes) - 0.005
    np.testing.assert_allclose(sampled.predict_proba(codes), exact.predict_proba(codes), atol=0.1)


class TestChecked:
    """Beyond exact reach the moments of a quick learner's model are compared with the data's (issue 31, item 1)."""

    @pytest.fixture
    def modes(self, monkeypatch):
        """Rows near all ones, or, one in ten, near all zeros, where pseudolikelihood weighs the modes wrongly."""
        monkeypatch.setattr("gibbsian.learning.auto.QUICK_SECONDS", 0.0)
        rng = np.random.default_rng(20061)
        return ((np.arange(1000)[:, None] < 900) ^ (rng.random((1000, 8)) < 0.05)).astype(int)

    def test_where_moments_differ_monte_carlo_likelihood_goes_on(self, modes):
        result = gb.BoltzmannMachine(random_state=0).fit(modes).result_
        alone = gb.BoltzmannMachine(learner="mple").fit
        with pytest.warns(gb.errors.UntrainedWarning):
            assert alone(modes).result_.verdict.status == "bad"
        story = result.provenance
        assert (story["started_by"], story["learner"], story["moments"]) == ("mple", "mcmle", "trained")
        assert result.verdict.is_good
        assert 0 < result.trace.column("stage").sum() < len(result.trace)

    def test_where_they_agree_pseudolikelihood_is_the_answer(self, modes):
        rows = np.random.default_rng(0).integers(0, 2, modes.shape)
        result = gb.BoltzmannMachine(random_state=0).fit(rows).result_
        assert result.provenance["learner"] == "mple"
        assert "started_by" not in result.provenance
        direct = gb.BoltzmannMachine(learner="mple").fit(rows)
        np.testing.assert_array_equal(result.model.theta, direct.model_.theta)
        assert result.reason == direct.result_.reason

    @pytest.mark.parametrize("limit", ["MAX_CONTINUATIONS", "MANY_PARAMETERS"])
    def test_a_fit_that_ends_where_they_differ_has_not_converged(self, modes, monkeypatch, limit):
        monkeypatch.setattr(f"gibbsian.learning.auto.{limit}", 0)
        with pytest.warns(gb.errors.ConvergenceWarning, match="moments of the model are not those of the data"):
            result = gb.BoltzmannMachine(random_state=0).fit(modes).result_
        assert not result.converged
        assert result.verdict.status == "bad"

    @pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
    def test_a_fit_goes_on_from_a_checkpoint_in_either_stage(self, modes, tmp_path):
        whole = gb.BoltzmannMachine(random_state=0).fit(modes)
        stages = whole.result_.trace.column("stage")
        for stop in (2, int((stages == 0).sum()), int((stages == 0).sum()) + 1, len(stages) - 1):
            path = tmp_path / f"{stop}.checkpoint"
            each = gb.storage.Checkpoint(path, every=1)
            gb.BoltzmannMachine(random_state=0, max_iter=stop, checkpoint=each).fit(modes)
            again = gb.storage.Checkpoint(path, resume=True)
            resumed = gb.BoltzmannMachine(random_state=0, checkpoint=again).fit(modes)
            np.testing.assert_array_equal(resumed.model_.theta, whole.model_.theta)
            assert resumed.result_.reason == whole.result_.reason
            assert resumed.result_.provenance["learner"] == "mcmle"
