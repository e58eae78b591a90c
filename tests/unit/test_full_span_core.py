"""The full-span model and its fits against the literal algorithm, fresh transforms and definitions."""

import numpy as np
import pytest
from gibbsian.full_span import Greedy, Newton, SpanProblem, fit_full_span, predict_memory, run
from gibbsian.full_span.greedy import Move, apply_move, refreshed
from gibbsian.full_span.newton import hessian
from scipy.special import logsumexp

from full_span_reference import all_functions, cost_of, description_lengths, empirical, learn
from gibbsian.backends.numba import walsh
from gibbsian.errors import ArgumentError, DataError, TooExpensiveError
from gibbsian.models.full_span import FullSpanModel
from gibbsian.models.span_basis import SpanBasis
from gibbsian.storage import pack, unpack

SYSTEMS = [(2,) * 3, (2,) * 6, (4, 2, 8), (3,), (3, 3, 3), (2, 3, 4), (5, 2, 2, 3), (1, 3, 2), (7, 4, 3)]


def random_counts(cardinalities, rng, n_samples=400):
    """Counts of a random distribution with interactions; weights are irrational, so that no two candidates tie."""
    logits = rng.normal(size=int(np.prod(cardinalities)))
    shares = np.exp(1.2 * logits)
    states = np.array(list(np.ndindex(*cardinalities)))
    return states, n_samples * shares / shares.sum()


def correlated_samples(n_variables, n_samples, rng):
    """Binary rows of a noisy chain with an exclusive-or in it."""
    x = rng.integers(0, 2, (n_samples, n_variables))
    for i in range(1, n_variables):
        copy = rng.random(n_samples) < 0.7
        x[copy, i] = x[copy, i - 1]
    if n_variables > 2:
        exclusive = rng.random(n_samples) < 0.6
        x[exclusive, -1] = x[exclusive, 0] ^ x[exclusive, 2]
    return x


# -- the greedy algorithm ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cardinalities", SYSTEMS, ids=str)
@pytest.mark.parametrize("n_samples", [60, 3000])
def test_same_moves_as_the_literal_algorithm(cardinalities, n_samples, rng):
    states, counts = random_counts(cardinalities, rng, n_samples)
    theta, moves, costs = learn(states, counts, cardinalities)
    fit = fit_full_span(states, counts, cardinalities)
    assert [(step.kind, step.index) for step in fit.trace.steps] == moves
    assert np.allclose([step.cost for step in fit.trace.steps], costs, rtol=0, atol=1e-10)
    assert np.array_equal(fit.model.indices, np.flatnonzero(theta))
    assert np.allclose(fit.model.theta, theta[fit.model.indices], rtol=0, atol=1e-9)
    assert fit.converged


def test_all_three_moves_occur_in_the_comparison(rng):
    kinds = set()
    for cardinalities in SYSTEMS:
        states, counts = random_counts(cardinalities, rng, 3000)
        kinds |= {step.kind for step in fit_full_span(states, counts, cardinalities).trace.steps}
    assert kinds == {"append", "adjust", "remove"}


@pytest.mark.parametrize("cardinalities", [(2,) * 9, (3, 4, 3, 5, 2)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_step_lowers_the_cost_by_its_gain(cardinalities, dtype, rng):
    states, counts = random_counts(cardinalities, rng, 2000)
    problem = SpanProblem.build(states, counts, cardinalities, dtype)
    greedy = Greedy()
    state = greedy.init(problem)
    before = state.progress.cost
    for _ in range(60):
        promised = state.progress.append_gain
        state, step = greedy.step(state)
        if step.kind == "stop":
            break
        assert step.gain >= 0.9e-4
        assert step.cost == pytest.approx(before - step.gain, abs=1e-12)
        if step.kind == "append":
            assert step.gain == pytest.approx(promised, abs=1e-12 if dtype == np.float64 else 1e-5)
        before = step.cost
    progress = state.progress
    theta = np.zeros(problem.basis.size)
    theta[progress.indices] = progress.theta
    lengths = description_lengths(cardinalities, counts.sum())
    exact = cost_of(theta, all_functions(cardinalities), empirical(states, counts, cardinalities), lengths)
    assert progress.cost == pytest.approx(exact, abs=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("cardinalities", [(2,) * 12, (4, 8, 2, 16), (3, 2, 5, 4, 3, 3)], ids=str)
def test_dual_after_many_updates_is_that_of_a_fresh_transform(cardinalities, rng, monkeypatch):
    monkeypatch.setattr("gibbsian.full_span.greedy.REFRESH_EVERY", {np.dtype(np.float64): 10**9})
    states, counts = random_counts(cardinalities, rng, 5000)
    problem = SpanProblem.build(states, counts, cardinalities)
    progress = Greedy().init(problem).progress
    for _ in range(1000):
        z = int(rng.integers(1, problem.basis.size))
        kind = "adjust" if z in progress.indices else "append"
        progress = apply_move(problem, progress, Move(kind, z, 0.0, float(rng.uniform(-0.3, 0.3))))
    fresh = FullSpanModel(problem.basis, progress.indices, progress.theta)
    assert np.abs(progress.dual - fresh.dual()).max() < 1e-10
    assert progress.log_partition == pytest.approx(fresh.log_partition, abs=1e-10)


@pytest.mark.parametrize("cardinalities", [(2,) * 7, (3, 4, 3), (2, 2)], ids=str)
def test_scan_finds_the_best_append_of_all(cardinalities, rng):
    states, counts = random_counts(cardinalities, rng, 500)
    problem = SpanProblem.build(states, counts, cardinalities)
    indices = np.sort(rng.choice(np.arange(1, problem.basis.size), 3, replace=False))
    progress = refreshed(problem, problem.uniform_dual(), indices, rng.normal(size=3) / 3)
    d, t = problem.data_dual, progress.dual
    with np.errstate(all="ignore"):
        gains = 0.5 * (1 + d) * np.log((1 + d) / (1 + t)) + 0.5 * (1 - d) * np.log((1 - d) / (1 - t))
    gains -= problem.penalties(np.arange(problem.basis.size))
    gains[np.append(indices, 0)] = -np.inf
    assert progress.append_index == (np.argmax(gains) if gains.max() > 0 else -1)
    assert progress.append_gain == pytest.approx(max(gains.max(), 0.0), abs=1e-12)


def test_equal_candidates_go_to_the_smallest_index():
    states = np.array(list(np.ndindex(2, 2, 2, 2, 2)))
    counts = 10.0 + 30 * (states[:, 0] == 0) + 30 * (states[:, 3] == 0)
    first = fit_full_span(states, counts, (2,) * 5).trace.steps[0]
    assert first.index == 0b00010


@pytest.mark.parametrize("cardinalities", [(2,) * 12, (3, 2**6, 2, 3)], ids=["walsh", "mixed"])
@pytest.mark.parametrize("n_threads", [2, 5])
def test_threads_change_nothing(cardinalities, n_threads, rng, monkeypatch):
    states = (rng.random((300, len(cardinalities))) ** 2 * cardinalities).astype(int)
    alone = fit_full_span(states, np.ones(300), cardinalities, algorithm="newton")
    monkeypatch.setattr(walsh, "WORTH_THREADS", 1)
    monkeypatch.setattr(walsh, "n_threads", lambda: n_threads)
    together = fit_full_span(states, np.ones(300), cardinalities, algorithm="newton")
    assert len(alone.trace) > 3
    assert together.trace == alone.trace
    assert np.array_equal(together.model.theta, alone.model.theta)


def test_functions_of_very_high_order_are_refreshed_and_not_updated(rng, monkeypatch):
    cardinalities = (3, 3, 3)
    states, counts = random_counts(cardinalities, rng, 3000)
    plain = fit_full_span(states, counts, cardinalities)
    monkeypatch.setattr("gibbsian.backends.numba.span_axes.MOST_ROWS", 3)
    other = fit_full_span(states, counts, cardinalities)
    assert [step.index for step in other.trace.steps] == [step.index for step in plain.trace.steps]
    assert other.cost == pytest.approx(plain.cost, abs=1e-11)


def test_refresh_on_the_way_changes_nothing_that_matters(rng, monkeypatch):
    states, counts = random_counts((2,) * 6, rng, 3000)
    plain = fit_full_span(states, counts, (2,) * 6)
    monkeypatch.setattr("gibbsian.full_span.greedy.REFRESH_EVERY", {np.dtype(np.float64): 3})
    often = fit_full_span(states, counts, (2,) * 6)
    assert often.cost == pytest.approx(plain.cost, abs=1e-11)


def test_a_packed_progress_goes_on_to_the_same_bits(rng):
    x = correlated_samples(8, 300, rng)
    for learner in (Greedy(), Newton()):
        problem = SpanProblem.build(x, np.ones(300), (2,) * 8)
        state, trace, _ = run(learner, learner.init(problem), max_steps=5)
        packed = {name: array.copy() for name, array in pack(state.progress).items()}
        end, trace, converged = run(learner, state, trace)
        again = learner.init(problem)
        again = type(again)(problem, unpack(again.progress, packed))
        resumed, _, _ = run(learner, again)
        assert converged
        assert np.array_equal(resumed.progress.theta, end.progress.theta)
        assert resumed.progress.cost == end.progress.cost


# -- Newton -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cardinalities", [(2,) * 5, (3, 4, 3), (5, 3, 2, 3)], ids=str)
def test_hessian_is_the_covariance_of_the_functions(cardinalities, rng):
    basis = SpanBasis(cardinalities)
    indices = np.sort(rng.choice(np.arange(1, basis.size), 12, replace=False))
    model = FullSpanModel(basis, indices, rng.normal(size=12) / 4)
    states, counts = random_counts(cardinalities, rng)
    problem = SpanProblem.build(states, counts, cardinalities)
    values, p = all_functions(cardinalities)[indices], model.probabilities()
    expected = (values * p) @ values.T - np.outer(values @ p, values @ p)
    assert np.allclose(hessian(problem, model.dual(), indices), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("seed", range(12))
def test_newton_never_ends_above_greedy(seed):
    rng = np.random.default_rng(seed)
    cardinalities = SYSTEMS[seed % len(SYSTEMS)] if seed < 6 else (2,) * 9
    if seed < 6:
        states, counts = random_counts(cardinalities, rng, 1500)
    else:
        states = correlated_samples(9, 400, rng)
        counts = np.ones(400)
    for epsilon in (1e-3, 1e-4, 1e-6):
        greedy = fit_full_span(states, counts, cardinalities, epsilon=epsilon)
        newton = fit_full_span(states, counts, cardinalities, epsilon=epsilon, algorithm="newton")
        assert newton.cost <= greedy.cost + 1e-12
        assert newton.converged


def test_newton_steps_lower_the_cost_but_for_the_restart(rng):
    fit = fit_full_span(correlated_samples(9, 600, rng), np.ones(600), (2,) * 9, algorithm="newton")
    kinds = [step.kind for step in fit.trace.steps]
    assert kinds.count("restart") == 1
    assert kinds[-1] == "keep"
    assert all(step.gain > 0 for step in fit.trace.steps if step.kind not in ("restart", "keep"))
    assert fit.cost <= min(step.cost for step in fit.trace.steps) + 1e-12


def test_newton_leads_every_mean_to_its_target(rng):
    x = correlated_samples(8, 500, rng)
    fit = fit_full_span(x, np.ones(500), (2,) * 8, algorithm="newton", epsilon=1e-9)
    problem = SpanProblem.build(x, np.ones(500), (2,) * 8)
    means = fit.model.dual()[fit.model.indices]
    assert np.allclose(means, problem.targets(fit.model.indices), rtol=0, atol=1e-8)


# -- edges ------------------------------------------------------------------------------------------------------------
def test_one_sample_leaves_the_uniform_distribution():
    fit = fit_full_span(np.array([[0, 1, 1]]), [1], (2, 2, 2))
    assert fit.converged
    assert fit.model.indices.size == 0
    assert fit.divergence == pytest.approx(np.log(8))


@pytest.mark.parametrize("algorithm", ["greedy", "newton"])
@pytest.mark.parametrize("cardinalities", [(2,) * 4, (3, 3)], ids=str)
def test_equal_rows_give_a_finite_model_of_that_row(algorithm, cardinalities):
    row = np.ones((1, len(cardinalities)), int)
    fit = fit_full_span(row, [200], cardinalities, algorithm=algorithm)
    assert np.isfinite(fit.model.theta).all()
    assert np.exp(fit.model.log_probabilities(row))[0] > 0.95
    assert fit.divergence == pytest.approx(-fit.model.log_probabilities(row)[0], abs=1e-10)


def test_a_saturated_mean_is_led_to_one_minus_one_over_n():
    fit = fit_full_span(np.array([[0]]), [50], (2,))
    assert fit.model.dual()[1] == pytest.approx(1 - 1 / 50)


def test_a_variable_with_one_value_changes_nothing_but_the_number_of_names(rng):
    states, counts = random_counts((3, 2), rng, 5000)
    wide = np.insert(states, 1, 0, axis=1)
    assert fit_full_span(wide, counts, (3, 1, 2)).divergence == pytest.approx(
        fit_full_span(states, counts, (3, 2)).divergence, abs=1e-12
    )


@pytest.mark.parametrize(
    ("states", "counts", "cardinalities", "message"),
    [
        ([[0, 2]], [1], (2, 2), "column 1 of states holds codes outside 0 to 1"),
        ([[0, -1]], [1], (2, 2), "column 1"),
        ([[0.5, 1.0]], [1], (2, 2), "integer codes"),
        ([[0, 1, 1]], [1], (2, 2), "2 columns"),
        ([[0, 1]], [1, 2], (2, 2), "give one count each"),
        ([[0, 1]], [-1], (2, 2), "negative"),
        ([[0, 1]], [np.nan], (2, 2), "NaN"),
        ([[0, 1]], [0.1], (2, 2), "at least one sample"),
        ([[0, 0]], [5], (1, 1), "nothing to learn"),
    ],
)
def test_bad_data_is_named(states, counts, cardinalities, message):
    with pytest.raises(DataError, match=message):
        fit_full_span(np.array(states), counts, cardinalities)


def test_bad_arguments_are_named():
    states = np.array([[0, 1]])
    with pytest.raises(ArgumentError, match="algorithm='quick' must be one of greedy, newton"):
        fit_full_span(states, [5], (2, 2), algorithm="quick")
    for algorithm in ("greedy", "newton"):
        with pytest.raises(ArgumentError, match="epsilon=0 is less than float64 tables resolve: give at least 1e-13"):
            fit_full_span(states, [5], (2, 2), epsilon=0, algorithm=algorithm)
        with pytest.raises(ArgumentError, match="epsilon=1e-08 is less than float32 tables resolve"):
            fit_full_span(states, [5], (2, 2), epsilon=1e-8, dtype=np.float32, algorithm=algorithm)
    with pytest.raises(ArgumentError, match="dtype='int64' must be one of float64, float32"):
        fit_full_span(states, [5], (2, 2), dtype=np.int64)
    with pytest.raises(ArgumentError, match=r"cardinalities\[1\]=0 must be at least 1"):
        fit_full_span(states, [5], (2, 0))
    with pytest.raises(ArgumentError, match="max_steps=0"):
        fit_full_span(states, [5], (2, 2), max_steps=0)


def test_too_many_states_are_refused_before_anything_is_allocated(monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1")
    assert predict_memory(SpanBasis((2,) * 27), np.float32) == 2**30
    with pytest.raises(TooExpensiveError, match=r"27 variables .* needs 2\.0 GiB but 1\.0 GiB may be used.*float32"):
        fit_full_span(np.zeros((1, 27), int), [5], (2,) * 27)
    with pytest.raises(TooExpensiveError, match=r"more than 2\^62 states"):
        fit_full_span(np.zeros((1, 70), int), [5], (2,) * 70)


# -- the model --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cardinalities", SYSTEMS, ids=str)
def test_model_agrees_with_its_definition(cardinalities, rng):
    basis = SpanBasis(cardinalities)
    indices = rng.permutation(np.arange(1, basis.size))[:5]
    theta = rng.normal(size=indices.size)
    model = FullSpanModel(basis, indices, theta)
    states = np.array(list(np.ndindex(*cardinalities)))
    functions = all_functions(cardinalities)
    logs = theta @ functions[indices]
    assert np.array_equal(basis.values(np.arange(basis.size), states), functions.T)
    assert np.allclose(model.log_weights(states), logs, rtol=0, atol=1e-13)
    assert model.log_partition == pytest.approx(logsumexp(logs), abs=1e-12)
    assert np.allclose(model.probabilities(), np.exp(logs - logsumexp(logs)), rtol=0, atol=1e-14)
    assert np.allclose(model.dual(), functions @ model.probabilities(), rtol=0, atol=1e-13)
    assert model.orders.tolist() == [len(support) for support in model.supports]
    assert np.array_equal(basis.indices(basis.digits(indices)), indices)


def test_cliques_are_the_same_distribution(rng):
    model = FullSpanModel.build((2,) * 4, [1, 6, 7, 15], rng.normal(size=4))
    states = np.array(list(np.ndindex(2, 2, 2, 2)))
    spins = 2.0 * states - 1.0
    logs = sum(weight * spins[:, list(clique)].prod(axis=1) for clique, weight in model.to_cliques())
    assert np.allclose(logs, model.log_weights(states), rtol=0, atol=1e-13)
    with pytest.raises(ArgumentError, match="variable 1 has 3 values"):
        FullSpanModel.build((2, 3), [1], [0.5]).to_cliques()


def test_a_model_with_wrong_parts_is_refused():
    with pytest.raises(ArgumentError, match="1 to 3"):
        FullSpanModel.build((2, 2), [0], [1.0])
    with pytest.raises(ArgumentError, match="twice"):
        FullSpanModel.build((2, 2), [1, 1], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="one each"):
        FullSpanModel.build((2, 2), [1], [1.0, 2.0])
    with pytest.raises(ArgumentError, match="NaN"):
        FullSpanModel.build((2, 2), [1], [np.nan])
