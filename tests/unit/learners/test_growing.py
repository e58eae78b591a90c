"""Growing subsets end where the plain fit ends, with less work, and resume to the same bits."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.learners import ObjectiveLearner, as_learner, run
from gibbsian.learners.growing import Growing
from gibbsian.objectives import Pseudolikelihood
from gibbsian.storage import Checkpoint


@dataclass(frozen=True)
class Counting:
    """Pseudolikelihood that counts the rows it has looked at."""

    rows: list = field(default_factory=list)

    def bind(self, model, data):
        function = Pseudolikelihood().bind(model, data)

        def counted(theta):
            self.rows.append(data.n_states)
            return function(theta)

        return counted


@pytest.fixture
def problem(rng):
    """Twenty columns, 8000 rows, nearly all distinct."""
    x = rng.integers(0, 2, (8000, 20)) * 2 - 1
    for i in range(1, 20):
        copied = rng.random(8000) < 0.4
        x[copied, i] = x[copied, rng.integers(0, i)]
    return gb.PairwiseModel.zeros(gb.graphs.complete(20)), gb.Dataset.read(x, coding="spin")


def fit(learner, problem, **settings):
    return run(learner, *problem, np.random.default_rng(1), **{"tol": 1e-7, **settings})


@pytest.mark.parametrize("penalty", [{}, {"l1": 0.02}, {"l2": 0.1}])
def test_same_answer_as_the_plain_fit(problem, penalty):
    plain, grown = (
        fit(learner, problem)
        for learner in (as_learner("mple", **penalty), Growing(as_learner("mple", **penalty), first=200))
    )
    assert grown.converged
    np.testing.assert_allclose(grown.model.theta, plain.model.theta, atol=2e-6)
    assert np.array_equal(grown.model.theta == 0, plain.model.theta == 0)


def test_looks_at_fewer_rows(problem):
    plain, grown = Counting(), Counting()
    fit(ObjectiveLearner(plain), problem, tol=1e-3)
    result = fit(Growing(ObjectiveLearner(grown), first=200), problem, tol=1e-3)
    assert sum(grown.rows) < 0.9 * sum(plain.rows)
    told = result.trace.column("evaluations")[-1]
    assert told == pytest.approx(sum(grown.rows) / problem[1].n_states, abs=1.5)


def test_a_loose_tolerance_is_met_on_all_rows(problem):
    """A gradient on a subset must not end the fit."""
    result = fit(Growing("mple", first=200), problem, tol=0.2)
    _, gradient = gb.objectives.value_and_gradient(Pseudolikelihood(), result.model, problem[1])
    data = problem[1]
    centred = result.model.centred(np.average(data.states, axis=0, weights=data.weights)).gradient(gradient)
    assert result.trace.rows[-1][2] == pytest.approx(np.abs(centred).max(), rel=1e-9)


def test_small_data_go_to_the_learner_as_they_are(problem):
    model, data = problem
    few = data.take(np.arange(300))
    plain, grown = (run(x, model, few, np.random.default_rng(0), tol=1e-8) for x in (as_learner("mple"), Growing()))
    assert Growing().sizes(300) == []
    assert np.array_equal(plain.model.theta, grown.model.theta)


@pytest.mark.parametrize("optimizer", ["lbfgs", "ascent", "adam"])
def test_resumed_fit_has_the_bits_of_an_uninterrupted_one(problem, optimizer, tmp_path):
    learner = Growing(ObjectiveLearner(Pseudolikelihood(), optimizer), first=200)
    limits = {"tol": 1e-12, "max_iter": 9}
    whole = fit(learner, problem, **limits)
    path = tmp_path / "fit.checkpoint"
    fit(learner, problem, **{**limits, "max_iter": 4}, callbacks=[Checkpoint(path, every=2)])
    rest = fit(learner, problem, **limits, callbacks=[Checkpoint(path, resume=True)])
    assert rest.provenance["resumed_at_step"] == 4
    assert np.array_equal(rest.model.theta, whole.model.theta)
    assert np.array_equal(rest.trace.to_array()[:, :5], whole.trace.to_array()[:, :5])


def test_settings_are_checked_and_handed_through():
    learner = Growing(as_learner("mple", l1=0.1, l2=0.2))
    assert (learner.l1, learner.l2, learner.objective.name) == (0.1, 0.2, "pseudolikelihood")
    for bad in ({"first": 0}, {"factor": 1.0}, {"noise": 0.0}, {"learner": "nonsense"}):
        with pytest.raises(ArgumentError):
            Growing(**bad)
