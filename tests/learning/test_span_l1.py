"""L1 over all functions: the conditions of the minimum, zeros, and an independent optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize

from gibbsian.errors import ArgumentError
from gibbsian.learning import SpanL1, run
from span_fits import counted, fit, span_model
from span_reference import all_functions, empirical

SYSTEMS = [(2,) * 6, (3, 5, 2, 2)]


def rows_of(cardinalities, rng, n_rows=400):
    """Rows in which the second column follows the first, and the last is noise about both."""
    rows = (rng.random((n_rows, len(cardinalities))) * cardinalities).astype(int)
    rows[: n_rows // 2, 1] = rows[: n_rows // 2, 0] % cardinalities[1]
    rows[: n_rows // 3, -1] = (rows[: n_rows // 3, 0] + rows[: n_rows // 3, 1]) % cardinalities[-1]
    return rows


def dense(model):
    theta = np.zeros(model.family.basis.size)
    theta[model.family.functions] = model.theta
    return theta


def violations(model, rows, cardinalities, l1):
    """By how much each function breaks the conditions of the minimum, from tables of all functions and states."""
    functions, theta = all_functions(cardinalities), dense(model)
    weights = np.exp(theta @ functions)
    slope = functions @ (empirical(rows, np.ones(len(rows)), cardinalities) - weights / weights.sum())
    broken = np.where(theta != 0, np.abs(slope - l1 * np.sign(theta)), np.maximum(np.abs(slope) - l1, 0.0))
    return broken[1:]


@pytest.mark.parametrize("cardinalities", SYSTEMS, ids=str)
@pytest.mark.parametrize("l1", [0.2, 0.05, 0.01, 0.001])
def test_the_conditions_of_the_minimum_hold_for_every_function(cardinalities, l1, rng):
    rows = rows_of(cardinalities, rng)
    found = fit(rows, np.ones(len(rows)), cardinalities, "l1", l1=l1)
    assert found.converged
    assert violations(found.model, rows, cardinalities, l1).max() < 1e-5


def test_the_tolerance_bounds_what_is_left(rng):
    rows = rows_of(SYSTEMS[0], rng)
    coarse = fit(rows, np.ones(len(rows)), SYSTEMS[0], "l1", l1=0.01, tol=0.03)
    left = violations(coarse.model, rows, SYSTEMS[0], 0.01).max()
    assert 1e-4 < left < 0.03


@pytest.mark.parametrize("cardinalities", SYSTEMS, ids=str)
def test_an_independent_optimiser_finds_the_same_minimum(cardinalities, rng):
    rows, l1 = rows_of(cardinalities, rng), 0.03
    functions = all_functions(cardinalities)[1:]
    p_data = empirical(rows, np.ones(len(rows)), cardinalities)

    def cost(split):
        theta = split[: len(functions)] - split[len(functions) :]
        logs = theta @ functions
        law = np.exp(logs - logs.max())
        log_partition = logs.max() + np.log(law.sum())
        slope = functions @ (law / law.sum() - p_data)
        return log_partition - logs @ p_data + l1 * split.sum(), np.concatenate([slope, -slope]) + l1

    split = np.zeros(2 * len(functions))
    best = minimize(cost, split, jac=True, bounds=[(0, None)] * split.size, options={"maxiter": 5000, "ftol": 1e-15})
    found = fit(rows, np.ones(len(rows)), cardinalities, "l1", l1=l1)
    seen = p_data > 0
    assert found.cost == pytest.approx(best.fun + p_data[seen] @ np.log(p_data[seen]), abs=1e-8)
    theta = best.x[: len(functions)] - best.x[len(functions) :]
    np.testing.assert_allclose(dense(found.model)[1:], theta, atol=2e-3)


def test_more_of_it_leaves_fewer_functions_and_in_the_end_none(rng):
    rows = rows_of(SYSTEMS[0], rng)
    means = all_functions(SYSTEMS[0])[1:] @ empirical(rows, np.ones(len(rows)), SYSTEMS[0])
    largest = np.abs(means).max()
    strengths = largest * np.array([0.02, 0.1, 0.4, 0.999, 1.001])
    sizes = [fit(rows, np.ones(len(rows)), SYSTEMS[0], "l1", l1=l1).model.theta.size for l1 in strengths]
    assert sizes[0] > sizes[1] > sizes[2] > sizes[3] == 1
    assert sizes[4] == 0


def test_a_path_of_warm_starts_ends_where_cold_ones_do(rng):
    rows = rows_of(SYSTEMS[1], rng)
    data, model = counted(rows, np.ones(len(rows)), SYSTEMS[1]), span_model(SYSTEMS[1])
    for l1 in (0.1, 0.03, 0.01, 0.03):
        model = run(SpanL1(l1=l1), model, data).model
        cold = fit(rows, np.ones(len(rows)), SYSTEMS[1], "l1", l1=l1).model
        np.testing.assert_allclose(dense(model), dense(cold), atol=1e-4)
        assert (model.theta != 0).all()


def test_the_cost_falls_and_the_end_is_said_in_its_own_words(rng):
    rows = rows_of(SYSTEMS[0], rng)
    found = fit(rows, np.ones(len(rows)), SYSTEMS[0], "l1", l1=0.01)
    assert np.diff(found.result.trace.column("value")).max() < 0
    assert "no mean differs from the data's by l1 and 1e-05 more" in found.result.reason


def test_bad_strengths_are_named():
    with pytest.raises(ArgumentError, match=r"l1=0\.0 must be above 0 with learner='span-l1'"):
        fit([[0, 1]], [5], (2, 2), "l1", l1=0.0)
    with pytest.raises(ArgumentError, match="tol=1e-09 must be at least 1e-06"):
        SpanL1(tol=1e-9)
