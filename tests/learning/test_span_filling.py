"""Missing cells of the full-span model against the definition of their cost."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.answers.queries import Queries
from gibbsian.answers.span import SpanAnswers
from gibbsian.errors import DataError
from gibbsian.learning import run
from gibbsian.learning.span_base import in_use
from gibbsian.learning.span_problem import DescriptionLength
from span_fits import counted, fit, law, learner_of, random_span, span_model, steps_of


def matching(states, row, hole):
    return (states[:, ~hole] == row[~hole]).all(axis=1)


def incomplete(rng, cardinalities=(2,) * 6, n_rows=400, share=0.25):
    codes = SpanAnswers(random_span(cardinalities, rng, n_functions=10, scale=0.9)).sample(n_rows, rng)[0]
    holes = rng.random(codes.shape) < share
    holes[holes.all(axis=1)] = False
    distinct, counts = np.unique(np.where(holes, -1, codes), axis=0, return_counts=True)
    return counted(np.maximum(distinct, 0), counts, cardinalities, distinct < 0)


def observed_cost(data, learner, model):
    """The cost on the observed cells from its definition: minus the mean log-probability, penalties."""
    states, p = law(model)
    length = DescriptionLength.of_samples(model.family.basis, data.total_weight, learner.mdl_scale)
    shares = data.weights / data.total_weight
    seen = [p[matching(states, row, hole)].sum() for row, hole in zip(data.states, data.missing, strict=True)]
    return float(-shares @ np.log(seen) + length(model.family.basis, model.family.functions).sum())


@pytest.mark.parametrize("algorithm", ["greedy", "newton"])
@pytest.mark.parametrize("cardinalities", [(2,) * 6, (3, 2, 4)], ids=str)
def test_the_cost_on_observed_cells_never_rises(algorithm, cardinalities, rng):
    data, learner = incomplete(rng, cardinalities), learner_of(algorithm)
    start = span_model(cardinalities)
    state = learner.init(start, data, rng)

    def exact_cost(state):
        functions, theta = in_use(*state.progress.inner.best())
        return observed_cost(data, learner, span_model(cardinalities, functions, theta))

    after_fills, last = [], np.inf
    while not state.progress.verdict:
        exact_before = exact_cost(state)
        state, info = learner.step(state)
        exact = exact_cost(state)
        if state.progress.inner.n_fills == 0:
            continue
        assert info.value >= exact - 1e-10  # a bound
        assert info.value <= last + 1e-10
        if info.metrics["kind"] == 8:
            assert info.value <= exact_before + 1e-10  # which a fill makes tight
            after_fills.append(exact)
        last = info.value
    assert len(after_fills) > 1
    assert (np.diff(after_fills) <= 1e-10).all()
    assert exact == pytest.approx(last, abs=1e-5)
    assert learner.costs(learner.fitted(start, state), data)["cost"] == pytest.approx(exact, abs=1e-10)


def test_without_complete_rows_columns_are_filled_alone(rng):
    data = incomplete(rng, share=0.4)
    counts = np.where(data.missing.any(axis=1), data.weights, 0)
    found = fit(data.states, counts, (2,) * 6, missing=data.missing)
    assert found.converged
    assert sum(step.kind == "fill" for step in found.steps) > 1
    assert (np.diff([step.cost for step in found.steps]) <= 1e-10).all()


def test_complete_rows_are_fitted_as_without_missing_cells(rng):
    data = incomplete(rng, share=0.0)
    holes = np.zeros((1, 6), bool)
    holes[0, 0] = True  # one row of no weight that misses a cell
    states, counts = np.append(data.states, np.zeros((1, 6), np.int8), axis=0), np.append(data.weights, 0.0)
    missing = np.append(np.zeros(data.states.shape, bool), holes, axis=0)
    found = fit(states, counts, (2,) * 6, missing=missing)
    plain = fit(data.states, data.weights, (2,) * 6)
    shares = data.weights / data.total_weight
    assert found.converged
    assert np.array_equal(found.model.family.functions, plain.model.family.functions)
    # the last move adds a function and fits all parameters, so that the fit of a fill has nothing left to gain
    assert found.steps[-1].cost == pytest.approx(plain.cost - shares @ np.log(shares), abs=1e-12)


def test_missing_cells_cost_less_than_dropping_their_rows(rng):
    true = random_span((2,) * 5, np.random.default_rng(3), n_functions=6, scale=0.9)
    codes = SpanAnswers(true).sample(3000, rng)[0]
    holes = rng.random(codes.shape) < 0.3
    filled = fit(codes, np.ones(len(codes)), true.variables.sizes, missing=holes).model
    whole = ~holes.any(axis=1)
    dropped = fit(codes[whole], np.ones(whole.sum()), true.variables.sizes).model
    queries, numbers = Queries(true, rng), [np.arange(size) for size in true.variables.sizes]
    assert queries.divergence(filled, numbers).forward.value < queries.divergence(dropped, numbers).forward.value


def test_a_column_without_observed_cells_is_named():
    with pytest.raises(DataError, match="column 1 has no observed cell"):
        fit(np.zeros((1, 2), int), [9.0], (2, 2), missing=np.array([[False, True]]))


def test_a_fit_stopped_on_the_second_path_gives_the_better_end(rng):
    true = random_span((2,) * 7, rng, n_functions=20, scale=0.5)
    data = counted(SpanAnswers(true).sample(500, rng)[0], np.ones(500), (2,) * 7)
    learner, start = learner_of("newton"), span_model((2,) * 7)
    whole = steps_of(run(learner, start, data, max_iter=10_000).trace)
    soon = [step.kind for step in whole].index("restart") + 2
    ended = run(learner, start, data, max_iter=soon)
    best = min(step.cost for step in whole[:soon])
    assert not ended.converged
    assert learner.costs(ended.model, data)["cost"] == pytest.approx(best, abs=1e-10)
    assert whole[soon - 1].cost > best
