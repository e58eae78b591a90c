"""Greedy moves and Newton re-fits against the literal algorithm, fresh transforms and definitions."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.backends.numba import walsh
from gibbsian.backends.numba.span import drop_in_divergence, update_and_scan
from gibbsian.backends.threads import limited_threads
from gibbsian.errors import ArgumentError, DataError, TooExpensiveError
from gibbsian.learning.span.moves import Move, MoveKind, apply_move, hessian, refreshed
from gibbsian.models.families.full_span import FullSpanFamily
from span_fits import basis_of, counted, dual_of, fit, learner_of, problem_of, span_model, start_of, table_of
from span_reference import all_functions, cost_of, description_lengths, empirical, learn

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
    found = fit(states, counts, cardinalities)
    assert [(step.kind, step.index) for step in found.steps] == moves
    assert np.allclose([step.cost for step in found.steps], costs, rtol=0, atol=1e-10)
    assert np.array_equal(found.model.family.functions, np.flatnonzero(theta))
    assert np.allclose(found.model.theta, theta[found.model.family.functions], rtol=0, atol=1e-9)
    assert found.converged


def test_all_three_moves_occur_in_the_comparison(rng):
    kinds = set()
    for cardinalities in SYSTEMS:
        states, counts = random_counts(cardinalities, rng, 3000)
        kinds |= {step.kind for step in fit(states, counts, cardinalities).steps}
    assert kinds == {"append", "adjust", "remove"}


@pytest.mark.parametrize("cardinalities", [(2,) * 9, (3, 4, 3, 5, 2)], ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_step_lowers_the_cost_by_its_gain(cardinalities, dtype, rng):
    states, counts = random_counts(cardinalities, rng, 2000)
    problem = problem_of(states, counts, cardinalities, dtype)
    greedy = learner_of("greedy", dtype=np.dtype(dtype).name)
    progress = start_of(problem)
    for _ in range(60):
        before, promised = progress.cost, progress.append_gain
        progress, change = greedy.advance(problem, progress)
        if change.kind is MoveKind.STOP:
            break
        assert change.gain >= 0.9e-4
        assert progress.cost == pytest.approx(before - change.gain, abs=1e-12)
        if change.kind is MoveKind.APPEND:
            assert change.gain == pytest.approx(promised, abs=1e-12 if dtype == np.float64 else 1e-5)
    theta = np.zeros(problem.basis.size)
    theta[progress.indices] = progress.theta
    lengths = description_lengths(cardinalities, counts.sum())
    exact = cost_of(theta, all_functions(cardinalities), empirical(states, counts, cardinalities), lengths)
    assert progress.cost == pytest.approx(exact, abs=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("cardinalities", [(2,) * 12, (4, 8, 2, 16), (3, 2, 5, 4, 3, 3)], ids=str)
def test_dual_after_many_updates_is_that_of_a_fresh_transform(cardinalities, rng, monkeypatch):
    monkeypatch.setattr("gibbsian.learning.span.moves.REFRESH_EVERY", {np.dtype(np.float64): 10**9})
    states, counts = random_counts(cardinalities, rng, 5000)
    problem = problem_of(states, counts, cardinalities)
    progress = start_of(problem)
    for _ in range(1000):
        z = int(rng.integers(1, problem.basis.size))
        kind = MoveKind.ADJUST if z in progress.indices else MoveKind.APPEND
        progress = apply_move(problem, progress, Move(kind, z, 0.0, float(rng.uniform(-0.3, 0.3))))
    fresh = FullSpanFamily(problem.basis, progress.indices).dual(progress.theta)
    assert np.abs(progress.dual - fresh.values).max() < 1e-10
    assert progress.log_partition == pytest.approx(fresh.log_partition, abs=1e-10)


def best_append(problem, dual, taken):
    """The best append by its definition, asked of every function."""
    d, t = problem.data_dual, dual
    with np.errstate(all="ignore"):
        gains = 0.5 * (1 + d) * np.log((1 + d) / (1 + t)) + 0.5 * (1 - d) * np.log((1 - d) / (1 - t))
    gains -= problem.lengths(np.arange(problem.basis.size))
    gains[np.append(taken, 0)] = -np.inf
    return pytest.approx(max(gains.max(), 0.0), abs=1e-12), np.argmax(gains) if gains.max() > 0 else -1


@pytest.mark.parametrize("cardinalities", [(2,) * 7, (3, 4, 3), (2, 2)], ids=str)
def test_scan_finds_the_best_append_of_all(cardinalities, rng):
    states, counts = random_counts(cardinalities, rng, 500)
    problem = problem_of(states, counts, cardinalities)
    indices = np.sort(rng.choice(np.arange(1, problem.basis.size), 3, replace=False))
    progress = refreshed(problem, problem.new_table(), indices, rng.normal(size=3) / 3)
    assert (progress.append_gain, progress.append_index) == best_append(problem, progress.dual, indices)


@pytest.mark.parametrize("cardinalities", [(2,) * 12, (4, 8, 2, 64)], ids=str)
def test_a_move_finds_the_best_append_in_whatever_block_it_is(cardinalities, rng):
    """Blocks of a pass are judged as a whole, by their largest distances and least penalties."""
    size, winners = int(np.prod(cardinalities)), []
    for z in [1, 7, 8, 100, 255, 256, 777, 2048, size - 1, *rng.integers(1, size, 20)]:
        near = span_model(cardinalities, rng.choice(size - 1, 8, replace=False) + 1, [rng.choice([0.4, 1.5])] * 8)
        counts = rng.multinomial(500, table_of(near).values)
        problem = problem_of(near.family.basis.digits(np.arange(size)), counts, cardinalities)
        dual = start_of(problem).dual
        found = problem.update(dual, np.array([z]), int(z), 0.1)
        assert found[0] == best_append(problem, dual, [z])[0]
        winners.append(found[1])
    assert len(set(winners)) > 10


@pytest.mark.parametrize(("z", "better"), [(2048, 256), (2816, 2048), (3064, 2048), (256, 256), (1, 2048)])
def test_a_block_is_judged_by_its_least_penalty(z, better):
    """The second of two candidates gains little more, and the functions around it and paired with it cost more."""
    dual, data = walsh.aligned_zeros(4096), walsh.aligned_zeros(4096)
    dual[0] = data[0] = 1.0
    data[1], data[better] = 0.1, np.sqrt(0.01 + 1e-3)
    penalties = np.array([1e-3 * bin(k).count("1") for k in range(64)])
    gain, y = update_and_scan(dual, data, (penalties, penalties), (z, 1.0, 0.0), 0.999, np.array([0]))
    assert y == better
    assert gain == pytest.approx(drop_in_divergence(0.0, data[better], data[better]) - 1e-3, abs=1e-15)


def test_equal_candidates_go_to_the_smallest_index():
    states = np.array(list(np.ndindex(2, 2, 2, 2, 2)))
    counts = 10.0 + 30 * (states[:, 0] == 0) + 30 * (states[:, 3] == 0)
    first = fit(states, counts, (2,) * 5).steps[0]
    assert first.index == 0b00010


@pytest.mark.parametrize("cardinalities", [(2,) * 12, (3, 2**6, 2, 3)], ids=["walsh", "mixed"])
@pytest.mark.parametrize("n_threads", [2, 5])
def test_threads_change_nothing(cardinalities, n_threads, rng, monkeypatch):
    states = (rng.random((300, len(cardinalities))) ** 2 * cardinalities).astype(int)
    alone = fit(states, np.ones(300), cardinalities, algorithm="newton")
    monkeypatch.setattr("gibbsian.backends.threads.WORTH_THREADS", 0)
    with limited_threads(n_threads):
        together = fit(states, np.ones(300), cardinalities, algorithm="newton")
    assert len(alone.steps) > 3
    assert together.steps == alone.steps
    assert np.array_equal(together.model.theta, alone.model.theta)


def test_functions_of_very_high_order_are_refreshed_and_not_updated(rng, monkeypatch):
    cardinalities = (3, 3, 3)
    states, counts = random_counts(cardinalities, rng, 3000)
    plain = fit(states, counts, cardinalities)
    monkeypatch.setattr("gibbsian.backends.numba.span_axes.MOST_ROWS", 3)
    other = fit(states, counts, cardinalities)
    assert [step.index for step in other.steps] == [step.index for step in plain.steps]
    assert other.cost == pytest.approx(plain.cost, abs=1e-11)


def test_refresh_on_the_way_changes_nothing_that_matters(rng, monkeypatch):
    states, counts = random_counts((2,) * 6, rng, 3000)
    plain = fit(states, counts, (2,) * 6)
    monkeypatch.setattr("gibbsian.learning.span.moves.REFRESH_EVERY", {np.dtype(np.float64): 3})
    often = fit(states, counts, (2,) * 6)
    assert often.cost == pytest.approx(plain.cost, abs=1e-11)


# -- Newton -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("cardinalities", [(2,) * 5, (3, 4, 3), (5, 3, 2, 3)], ids=str)
def test_hessian_is_the_covariance_of_the_functions(cardinalities, rng):
    indices = np.sort(rng.choice(np.arange(1, basis_of(cardinalities).size), 12, replace=False))
    model = span_model(cardinalities, indices, rng.normal(size=12) / 4)
    states, counts = random_counts(cardinalities, rng)
    problem = problem_of(states, counts, cardinalities)
    values, p = all_functions(cardinalities)[indices], table_of(model).values
    expected = (values * p) @ values.T - np.outer(values @ p, values @ p)
    assert np.allclose(hessian(problem, dual_of(model), indices), expected, rtol=0, atol=1e-13)


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
        greedy = fit(states, counts, cardinalities, tol=epsilon)
        newton = fit(states, counts, cardinalities, tol=epsilon, algorithm="newton")
        assert newton.cost <= greedy.cost + 1e-12
        assert newton.converged


def test_newton_never_ends_above_greedy_where_its_first_path_does():
    """In small random tables functions appended together end higher one time in six."""
    states, lower = np.array(list(np.ndindex(2, 2, 2, 2))), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        counts = rng.multinomial(3000, rng.dirichlet(np.full(16, 0.3)))
        greedy = fit(states, counts, (2,) * 4)
        newton = fit(states, counts, (2,) * 4, algorithm="newton")
        assert newton.cost <= greedy.cost + 1e-12
        first = newton.steps[[step.kind for step in newton.steps].index("restart") - 1]
        lower.append(greedy.cost < first.cost)
    assert 2 < sum(lower) < 38


def test_newton_steps_lower_the_cost_but_for_the_restart(rng):
    found = fit(correlated_samples(9, 600, rng), np.ones(600), (2,) * 9, algorithm="newton")
    kinds = [step.kind for step in found.steps]
    assert kinds.count("restart") == 1
    assert kinds[-1] == "keep"
    assert all(step.gain > 0 for step in found.steps if step.kind not in ("restart", "keep"))
    assert found.cost <= min(step.cost for step in found.steps) + 1e-12


def test_newton_leads_every_mean_to_its_target(rng):
    x = correlated_samples(8, 500, rng)
    found = fit(x, np.ones(500), (2,) * 8, algorithm="newton", tol=1e-9)
    problem = problem_of(x, np.ones(500), (2,) * 8)
    means = dual_of(found.model)[found.model.family.functions]
    assert np.allclose(means, problem.targets(found.model.family.functions), rtol=0, atol=1e-8)


# -- edges ------------------------------------------------------------------------------------------------------------
def test_one_sample_leaves_the_uniform_distribution():
    found = fit(np.array([[0, 1, 1]]), [1], (2, 2, 2))
    assert found.converged
    assert found.model.family.functions.size == 0
    assert found.divergence == pytest.approx(np.log(8))


@pytest.mark.parametrize("algorithm", ["greedy", "newton"])
@pytest.mark.parametrize("cardinalities", [(2,) * 4, (3, 3)], ids=str)
def test_equal_rows_give_a_finite_model_of_that_row(algorithm, cardinalities):
    row = np.ones((1, len(cardinalities)), int)
    found = fit(row, [200], cardinalities, algorithm=algorithm)
    assert np.isfinite(found.model.theta).all()
    (log_probability,) = found.model.log_weights(row) - table_of(found.model).log_partition
    assert np.exp(log_probability) > 0.95
    assert found.divergence == pytest.approx(-log_probability, abs=1e-10)


def test_a_saturated_mean_is_led_to_one_minus_one_over_n():
    found = fit(np.array([[0]]), [50], (2,))
    assert dual_of(found.model)[1] == pytest.approx(1 - 1 / 50)


def test_a_variable_with_one_value_changes_nothing_but_the_number_of_names(rng):
    states, counts = random_counts((3, 2), rng, 5000)
    wide = np.insert(states, 1, 0, axis=1)
    assert fit(wide, counts, (3, 1, 2)).divergence == pytest.approx(fit(states, counts, (3, 2)).divergence, abs=1e-12)


def test_bad_data_are_named():
    with pytest.raises(DataError, match=r"sample_weight adds up to 0\.1: weights count rows"):
        fit(np.array([[0, 1]]), [0.1], (2, 2))
    with pytest.raises(DataError, match="nothing to learn"):
        fit(np.array([[0, 0]]), [5], (1, 1))


def test_bad_arguments_are_named():
    states = np.array([[0, 1]])
    with pytest.raises(ArgumentError, match="learner='span-quick' is not known"):
        fit(states, [5], (2, 2), algorithm="quick")
    for algorithm in ("greedy", "newton"):
        with pytest.raises(ArgumentError, match="tol=0 must be above 0"):
            fit(states, [5], (2, 2), tol=0, algorithm=algorithm)
        with pytest.raises(ArgumentError, match="tol=1e-14 is less than float64 tables resolve: give at least 1e-13"):
            fit(states, [5], (2, 2), tol=1e-14, algorithm=algorithm)
        with pytest.raises(ArgumentError, match="tol=1e-08 is less than float32 tables resolve"):
            fit(states, [5], (2, 2), tol=1e-8, dtype="float32", algorithm=algorithm)
    with pytest.raises(ArgumentError, match="dtype='int64' is not known: use one of float64, float32"):
        fit(states, [5], (2, 2), dtype="int64")
    with pytest.raises(ArgumentError, match="variables must have finitely many values"):
        basis_of((2, 0))
    with pytest.raises(ArgumentError, match="max_iter=0"):
        fit(states, [5], (2, 2), max_iter=0)


def test_another_kind_of_model_is_refused():
    data, model = counted([[0, 1], [1, 1]], [5, 5], (2, 2)), gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    with pytest.raises(ArgumentError, match="learns Full Span families"):
        learner_of().bind(model, data)


def test_too_many_states_are_refused_before_anything_is_allocated(monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1")
    assert learner_of(dtype="float32").memory(basis_of((2,) * 27)) == 2**30
    with pytest.raises(TooExpensiveError, match=r"27 variables .* needs 2\.0 GiB but 1\.0 GiB may be used.*float32"):
        fit(np.zeros((1, 27), int), [5], (2,) * 27)
    with pytest.raises(TooExpensiveError, match=r"more than 2\^62 states"):
        basis_of((2,) * 70)
