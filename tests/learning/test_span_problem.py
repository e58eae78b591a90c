"""L1, L2 that grows with the order, and scaled description lengths, against one-dimensional searches and SciPy."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp

from gibbsian.backends.numba.span import shrunk_parameter
from gibbsian.errors import ArgumentError
from gibbsian.learning.span.moves import prunable, refit, refreshed
from gibbsian.learning.span.problem import FunctionCosts
from gibbsian.models.families.full_span import FullSpanFamily
from span_fits import basis_of, dual_of, fit, learner_of, problem_of, start_of
from span_reference import all_functions, description_lengths, empirical

SYSTEMS = [(2,) * 6, (4, 2, 8), (3, 3, 3), (5, 2, 2, 3)]
STRENGTHS = [(0.02, 0.0, 1.0), (0.0, 0.05, 1.0), (0.0, 0.01, 4.0), (0.01, 0.02, 3.0)]


def random_rows(cardinalities, rng, n_samples=500):
    logits = 1.2 * rng.normal(size=int(np.prod(cardinalities)))
    states = np.array(list(np.ndindex(*cardinalities)))
    return states, rng.multinomial(n_samples, np.exp(logits - logsumexp(logits)))


functions_of, lengths_of = cache(all_functions), cache(description_lengths)


def cost_from_definition(theta, cardinalities, states, counts, strengths, mdl_scale=1.0):
    l1, l2, growth = strengths
    logs = theta @ functions_of(cardinalities)
    p_data = empirical(states, counts, cardinalities)
    seen = p_data > 0
    divergence = p_data[seen] @ (np.log(p_data[seen]) - (logs - logsumexp(logs))[seen])
    orders = basis_of(cardinalities).orders(np.arange(theta.size))
    lengths = mdl_scale * lengths_of(cardinalities, float(counts.sum()))[theta != 0].sum()
    shrinks = l1 * np.abs(theta).sum() + 0.5 * np.sum(l2 * growth ** (orders[1:] - 1.0) * theta[1:] ** 2)
    return divergence + lengths + shrinks


def literal_greedy(cardinalities, states, counts, strengths, mdl_scale, tol=1e-4):
    """Every candidate's best value by a search along its axis, every cost from the definition."""
    size = int(np.prod(cardinalities))
    theta, moves = np.zeros(size), []

    def cost(y, value):
        changed = theta.copy()
        changed[y] = value
        return cost_from_definition(changed, cardinalities, states, counts, strengths, mdl_scale)

    while True:
        now = cost(0, 0.0)
        candidates = []
        for y in range(1, size):
            found = minimize_scalar(lambda value, y=y: cost(y, value or 1e-12), bracket=(-0.5, 0.5), tol=1e-9)
            candidates.append((found.fun, "adjust" if theta[y] else "append", y, found.x))
            if theta[y]:
                candidates.append((cost(y, 0.0), "remove", y, 0.0))
        best, kind, y, value = min(candidates)
        if now - best < tol:
            return theta, moves
        theta[y] = value
        moves.append((kind, y))


# -- one move ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("l1", [0.0, 0.05, 0.4])
@pytest.mark.parametrize("l2", [0.0, 1e-6, 0.01, 1.0, 50.0])
@pytest.mark.parametrize(("without", "data"), [(0.0, 0.3), (0.5, -0.99), (-0.9999, 0.9999), (0.2, 0.21)])
def test_shrunk_parameter_is_the_minimum_along_the_axis(without, data, l1, l2):
    x, dual = shrunk_parameter(without, data, l1, l2)
    start = np.arctanh(without)

    def cost(x):
        return np.logaddexp(start + x, -start - x) - data * x + l1 * abs(x) + 0.5 * l2 * x * x

    found = minimize_scalar(cost, bounds=(-12, 12), method="bounded", options={"xatol": 1e-12})
    assert cost(x) <= found.fun + 1e-12
    assert dual == pytest.approx(np.tanh(start + x), abs=1e-13)
    if abs(data - without) <= l1:
        assert x == 0.0


@pytest.mark.parametrize("strengths", STRENGTHS, ids=str)
@pytest.mark.parametrize("cardinalities", [(2,) * 3, (3, 3)], ids=str)
def test_same_moves_as_a_search_along_every_axis(cardinalities, strengths, rng):
    states, counts = random_rows(cardinalities, rng, 300)
    theta, moves = literal_greedy(cardinalities, states, counts, strengths, mdl_scale=0.5)
    l1, l2, growth = strengths
    found = fit(states, counts, cardinalities, mdl_scale=0.5, l1=l1, l2=l2, l2_growth=growth)
    assert len(moves) > 1
    assert [(step.kind, step.index) for step in found.steps] == moves
    assert np.allclose(found.model.theta, theta[found.model.family.functions], rtol=0, atol=1e-4)


@pytest.mark.parametrize("cardinalities", SYSTEMS, ids=str)
@pytest.mark.parametrize("strengths", STRENGTHS, ids=str)
@pytest.mark.parametrize("algorithm", ["greedy", "newton"])
def test_cost_falls_by_every_gain_and_is_that_of_the_definition(cardinalities, strengths, algorithm, rng):
    states, counts = random_rows(cardinalities, rng)
    l1, l2, growth = strengths
    settings = {"mdl_scale": 0.3, "l1": l1, "l2": l2, "l2_growth": growth}
    found = fit(states, counts, cardinalities, algorithm=algorithm, tol=1e-6, **settings)
    theta = np.zeros(int(np.prod(cardinalities)))
    theta[found.model.family.functions] = found.model.theta
    exact = cost_from_definition(theta, cardinalities, states, counts, strengths, 0.3)
    assert found.converged
    assert found.cost == pytest.approx(exact, abs=1e-11)
    assert found.divergence == pytest.approx(
        cost_from_definition(theta, cardinalities, states, counts, (0, 0, 1), 0.0), abs=1e-11
    )
    assert all(step.gain > 0 for step in found.steps if step.kind not in ("restart", "keep"))
    if algorithm == "newton":
        greedy = fit(states, counts, cardinalities, tol=1e-6, **settings)
        assert found.cost <= greedy.cost + 1e-12


def test_scan_finds_the_best_shrunk_append_of_all(rng):
    states, counts = random_rows((2,) * 7, rng)
    problem = problem_of(states, counts, (2,) * 7, l1=0.01, l2=0.02, l2_growth=3.0)
    progress = refreshed(problem, problem.new_table(), np.array([5, 9]), np.array([0.2, -0.3]))
    candidates = np.setdiff1d(np.arange(1, 128), progress.indices)
    strengths = problem.costs.l2_of(candidates)
    gains = []
    for y, l2, length in zip(candidates, strengths, problem.lengths(candidates), strict=True):
        start, data = np.arctanh(progress.dual[y]), problem.data_dual[y]

        def cost(x, start=start, data=data, l2=l2):
            return np.logaddexp(start + x, -start - x) - data * x + 0.01 * abs(x) + 0.5 * l2 * x * x

        found = minimize_scalar(cost, bounds=(-3, 3), method="bounded", options={"xatol": 1e-10})
        gains.append(cost(0.0) - found.fun - length)
    assert progress.append_gain == pytest.approx(max(gains), abs=1e-9)
    assert progress.append_index == candidates[np.argmax(gains)]


# -- all parameters together ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("strengths", STRENGTHS, ids=str)
def test_refit_is_the_minimum_over_the_active_parameters(strengths, rng):
    cardinalities = (2,) * 5
    states, counts = random_rows(cardinalities, rng)
    l1, l2, growth = strengths
    problem = problem_of(states, counts, cardinalities, l1=l1, l2=l2, l2_growth=growth)
    used = np.array([1, 3, 7, 12, 30])
    after = refit(problem, refreshed(problem, problem.new_table(), used, np.full(5, 0.01)))

    def cost(split):  # positive and negative parts make L1 smooth
        theta = np.zeros(32)
        theta[used] = split[:5] - split[5:]
        smooth = cost_from_definition(theta, cardinalities, states, counts, (0.0, l2, growth), 0.0)
        return smooth + l1 * split.sum()

    found = minimize(cost, np.full(10, 0.1), bounds=[(0, None)] * 10, options={"ftol": 1e-14, "gtol": 1e-9})
    assert after.cost - problem.lengths(used).sum() == pytest.approx(found.fun, abs=2e-8)


def test_l1_makes_parameters_exactly_zero_and_more_of_it_leaves_fewer(rng):
    states, counts = random_rows((2,) * 6, rng, 2000)
    sizes = [
        fit(states, counts, (2,) * 6, algorithm="newton", mdl_scale=0.0, l1=l1).model.theta.size
        for l1 in (0.003, 0.03, 0.1, 1.0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] == 0
    found = fit(states, counts, (2,) * 6, algorithm="newton", mdl_scale=0.0, l1=0.03, tol=1e-9)
    data = problem_of(states, counts, (2,) * 6).data_dual
    difference = data - dual_of(found.model)
    inactive = np.setdiff1d(np.arange(1, 64), found.model.family.functions)
    assert np.all(np.abs(difference[inactive]) <= 0.03 + 1e-3)  # the optimality condition of L1
    assert np.allclose(difference[found.model.family.functions], 0.03 * np.sign(found.model.theta), atol=1e-4)


def test_growth_shrinks_high_orders_more(rng):
    states, counts = random_rows((2,) * 5, rng, 300)
    theta = [fit(states, counts, (2,) * 5, "dense", l2=0.01, l2_growth=g).model.theta for g in (1.0, 8.0)]
    orders = basis_of((2,) * 5).orders(np.arange(1, 32))
    shares = [np.sum(t[orders >= 3] ** 2) / np.sum(t**2) for t in theta]
    assert shares[1] < 0.5 * shares[0]


@pytest.mark.parametrize("cardinalities", SYSTEMS, ids=str)
def test_dense_fit_is_the_minimum(cardinalities, rng):
    states, counts = random_rows(cardinalities, rng)
    problem = problem_of(states, counts, cardinalities, l2=0.003, l2_growth=3.0)
    found = fit(states, counts, cardinalities, "dense", tol=1e-13, l2=0.003, l2_growth=3.0)
    assert found.converged
    theta = np.append(0.0, found.model.theta)
    assert np.array_equal(found.model.family.functions, np.arange(1, theta.size))
    gradient = dual_of(found.model) - problem.data_dual + problem.costs.l2_table() * theta
    assert np.abs(gradient[1:]).max() < 1e-7
    exact = cost_from_definition(theta, cardinalities, states, counts, (0.0, 0.003, 3.0), 0.0)
    assert found.cost == pytest.approx(exact, abs=1e-12)
    again = fit(states, counts, cardinalities, algorithm="dense", l2=0.003, l2_growth=3.0)
    assert again.cost == pytest.approx(found.cost, abs=1e-8)
    assert again.converged


def test_dense_fit_from_its_end_stays(rng):
    states, counts = random_rows((2,) * 5, rng)
    problem, dense = problem_of(states, counts, (2,) * 5, mdl_scale=0.0, l2=0.003, l2_growth=3.0), learner_of("dense")
    first = dense.minimise(problem, start_of(problem))
    cost, theta = first.cost, first.theta
    again = dense.begin(problem, refreshed(problem, first.dual, first.indices, first.theta))
    again, change = dense.advance(problem, again)
    assert again.done
    assert change.gain < 1e-9
    assert again.cost <= cost
    np.testing.assert_allclose(again.theta, theta, atol=1e-8)


# -- description lengths ----------------------------------------------------------------------------------------------
def test_a_smaller_scale_takes_more_functions(rng):
    states, counts = random_rows((2,) * 6, rng, 1000)
    sizes = [fit(states, counts, (2,) * 6, mdl_scale=s).model.theta.size for s in (3.0, 1.0, 0.2)]
    assert sizes[0] < sizes[1] < sizes[2]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_strengths_of_zero_change_no_bit(dtype, rng):
    states, counts = random_rows((2,) * 7, rng)
    plain = fit(states, counts, (2,) * 7, dtype=np.dtype(dtype).name)
    zero = fit(states, counts, (2,) * 7, dtype=np.dtype(dtype).name, l1=0.0, l2=0.0, l2_growth=5.0, mdl_scale=1.0)
    assert zero.steps == plain.steps
    assert np.array_equal(zero.model.theta, plain.model.theta)


# -- arguments --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"l1": -0.1}, r"l1=-0\.1 must be at least 0"),
        ({"l2": np.nan}, "l2=nan must be a finite number"),
        ({"l2": "a"}, "l2='a' must be a number"),
        ({"l2_growth": 0.5}, r"l2_growth=0\.5 must be at least 1"),
        ({"mdl_scale": -1.0}, r"mdl_scale=-1\.0 must be at least 0"),
        ({"algorithm": "dense"}, "l2=0.0 must be above 0 with learner='span-dense'"),
        ({"algorithm": "dense", "l2": 0.1, "l1": 0.1}, "learner='span-dense' has no setting l1"),
        ({"algorithm": "dense", "l2": 0.1, "dtype": "float32"}, "learner='span-dense' has no setting dtype"),
    ],
)
def test_bad_strengths_are_named(settings, message):
    with pytest.raises(ArgumentError, match=message):
        fit(np.array([[0, 1]]), [5], (2, 2), **settings)


def test_shrinkage_knows_its_orders():
    basis = basis_of((2, 4, 3))
    costs = FunctionCosts.of_samples(basis, 100, l2=0.5, l2_growth=2.0)
    everything = np.arange(basis.size)
    expected = 0.5 * 2.0 ** (basis.orders(everything) - 1.0)
    assert np.allclose(costs.l2_table()[1:], expected[1:])
    assert np.allclose(costs.l2_of(everything), expected)


def test_description_lengths_are_those_of_the_paper():
    basis = basis_of((2, 2))
    costs = FunctionCosts.of_samples(basis, n_samples=100)
    np.testing.assert_allclose(costs.lengths(np.array([1, 3])), [0.02996, 0.03689], atol=1e-5)
    assert not costs.with_samples(0.0).lengths(np.array([1, 3])).any()


def test_shrinkage_of_parameters():
    costs = FunctionCosts.of_samples(basis_of((2, 2)), 100, l1=0.1, l2=0.2, l2_growth=3.0)
    np.testing.assert_allclose(costs.shrinkage(np.array([1, 3]), np.array([1.0, -1.0])), [0.2, 0.4])


@pytest.mark.parametrize("cardinalities", [(2,) * 10, (4, 8, 2), (3, 3)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_dual_of_no_functions_is_that_of_the_transforms(cardinalities, dtype, rng):
    problem = problem_of(*random_rows(cardinalities, rng), cardinalities, dtype)
    found, expected = (rng.random(problem.basis.size).astype(dtype) for _ in range(2))
    none = FullSpanFamily(problem.basis, []), np.empty(0)
    expected = none[0].dual(none[1], out=expected)
    assert problem.refresh(found, none[0].functions, none[1]) == expected.log_partition
    assert np.array_equal(found, expected.values)


def test_candidates_come_by_what_they_gain(rng):
    """What the scan says of each alone, the others taken: the best first, none below the floor, none left out."""
    states, counts = random_rows((2,) * 5, rng)
    problem = problem_of(states, counts, (2,) * 5)
    dual, floor = start_of(problem).dual, 1e-3
    found = problem.candidates(dual, np.empty(0, np.int64), floor).tolist()
    alone = [problem.scan(dual, np.array([y for y in range(1, 32) if y != own])) for own in range(1, 32)]
    expected = sorted(((-gain, y) for gain, y in alone if y >= 0 and gain >= floor))
    assert len(expected) > 5
    assert found == [y for _, y in expected]


def test_a_single_function_that_does_not_pay_is_named(rng):
    """Its parameter is small beside what the function costs."""
    states, counts = random_rows((2,) * 4, rng)
    problem = problem_of(states, counts, (2,) * 4)
    point = refreshed(problem, problem.new_table(), np.array([5]), np.array([1e-3]))
    named, theta = prunable(problem, point.dual, point.indices, point.theta)
    assert named == [0]
    assert theta[0] == pytest.approx(0.0, abs=1e-15)
    paying = refreshed(problem, problem.new_table(), np.array([5]), np.array([2.0]))
    assert prunable(problem, paying.dual, paying.indices, paying.theta)[0] == []
