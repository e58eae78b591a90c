"""Averages over bootstrap fits against their definitions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from gibbsian.errors import ArgumentError
from gibbsian.learners import as_learner, run
from gibbsian.learners.span_ensembles import SpanBagging, SpanSelection, mean_log_likelihood, split_weights, stack
from gibbsian.models import FullSpanModel, SpanAverage, SpanBasis
from gibbsian.storage import Checkpoint
from span_fits import counted, fit, learner_of


def bagged(states, counts, cardinalities, n_averages=20, seed=0, **settings):
    """The average over resampled rows with its members."""
    bagging = SpanBagging(learner_of(**settings), n_averages=n_averages)
    data, model = counted(states, counts, cardinalities), FullSpanModel.build(cardinalities)
    state = bagging.init(model, data, np.random.default_rng(seed))
    while not state.progress.verdict:
        state, _ = bagging.step(state)
    return bagging.average(model, state)


def noisy_chain(n_rows, rng, n_variables=7):
    x = rng.integers(0, 2, (n_rows, n_variables))
    for i in range(1, n_variables):
        copy = rng.random(n_rows) < 0.6
        x[copy, i] = x[copy, i - 1]
    return x


@pytest.fixture
def models(rng):
    return tuple(
        FullSpanModel.build((2, 3, 2), rng.choice(np.arange(1, 12), 4, replace=False), rng.normal(size=4))
        for _ in range(3)
    )


def test_arithmetic_mean_is_the_mean_of_probabilities(models):
    average = SpanAverage(models)
    expected = np.mean([model.probabilities() for model in models], axis=0)
    states = np.array([[0, 2, 1], [1, 0, 0]])
    assert np.allclose(average.probabilities(), expected, rtol=0, atol=1e-15)
    assert np.allclose(average.log_probabilities(states), np.log(expected[models[0].basis.indices(states)]))


def test_geometric_mean_is_the_normalised_mean_of_logarithms(models):
    for weights in ((), (0.2, 0.3, 0.5)):
        logs = np.average([np.log(model.probabilities()) for model in models], axis=0, weights=weights or None)
        found = SpanAverage(models, weights).geometric_mean().probabilities()
        assert np.allclose(found, np.exp(logs - logsumexp(logs)), rtol=0, atol=1e-14)


def test_an_average_of_one_is_that_one(models):
    average = SpanAverage(models[:1])
    assert np.allclose(average.probabilities(), models[0].probabilities(), rtol=0, atol=1e-16)
    assert np.allclose(average.geometric_mean().dual(), models[0].dual(), rtol=0, atol=1e-14)


def test_bootstrap_fits_differ_and_repeat_with_the_seed(rng):
    x = noisy_chain(150, rng)
    one, same, other = (bagged(x, np.ones(150), (2,) * 7, 4, s) for s in (5, 5, 6))
    tables = [model.probabilities() for model in one.models]
    assert not np.allclose(tables[0], tables[1])
    assert np.array_equal(one.probabilities(), same.probabilities())
    assert not np.allclose(one.probabilities(), other.probabilities())


def test_every_bootstrap_sample_has_as_many_rows(rng):
    data = counted(noisy_chain(60, rng), np.full(60, 2.0), (2,) * 7)
    state = SpanBagging(n_averages=3).init(FullSpanModel.build((2,) * 7), data, rng)
    assert state.problem.drawn.sum(axis=1).tolist() == [120] * 3


def test_an_average_is_one_model(models):
    average = SpanAverage(models, (0.2, 0.3, 0.5))
    np.testing.assert_allclose(average.to_model().probabilities(), average.probabilities(), atol=1e-12)


def test_averaging_predicts_new_rows_better_than_one_fit_where_much_is_weak():
    """Many weak interactions: which of them a fit takes is chance."""
    gains = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        basis = SpanBasis((2,) * 7)
        used = np.arange(1, 128)
        truth = FullSpanModel(basis, used, rng.normal(size=127) * 0.4 ** basis.orders(used))
        x = basis.digits(rng.choice(128, 300, p=truth.probabilities()))
        settings = {"tol": 1e-5, "mdl_scale": 0.2}
        one = fit(x, np.ones(300), (2,) * 7, **settings).model
        many = bagged(x, np.ones(300), (2,) * 7, 15, seed, **settings)
        gains.append(truth.probabilities() @ np.log(many.probabilities() / one.probabilities()))
    assert np.mean(gains) > 0.01


def test_stacking_finds_the_shares_of_a_mixture(models):
    basis = models[0].basis
    truth = SpanAverage(models, (0.6, 0.1, 0.3))
    everything = basis.digits(np.arange(basis.size))
    found = stack(models, counted(everything, 1e4 * truth.probabilities(), basis.cardinalities))
    assert np.abs(found.probabilities() - truth.probabilities()).max() < 2e-3
    logs = [1e4 * truth.probabilities() @ np.log(m.probabilities()) for m in (found, SpanAverage(models), *models)]
    assert logs[0] == max(logs)


def test_stacking_keeps_averages_together(models):
    average = SpanAverage(models[:2], (0.25, 0.75))
    data = counted([[0, 0, 0], [1, 2, 1]], [3, 4], models[0].cardinalities)
    found = stack([average, models[2]], data)
    assert found.models == models
    assert found.weights[1] == pytest.approx(3 * found.weights[0])
    assert sum(found.weights) == pytest.approx(1.0)


def test_bad_averages_are_named(models):
    with pytest.raises(ArgumentError, match="n_averages=0"):
        SpanBagging(n_averages=0)
    with pytest.raises(ArgumentError, match=r"n_averages=2\.5 must be a whole number"):
        SpanBagging(n_averages=2.5)
    with pytest.raises(ArgumentError, match="models is empty"):
        SpanAverage(())
    with pytest.raises(ArgumentError, match="differ in their cardinalities"):
        SpanAverage((models[0], FullSpanModel.build((2, 2), [1], [0.1])))
    with pytest.raises(ArgumentError, match="2 weights for 3 models"):
        SpanAverage(models, (0.5, 0.5))
    with pytest.raises(ArgumentError, match="must be positive and add up to 1"):
        SpanAverage(models, (0.5, 0.8, -0.3))


def test_shares_of_a_mixture_may_be_zero():
    models = tuple(FullSpanModel.build((2,), [1], [theta]) for theta in (600.0, 1000.0))
    np.testing.assert_allclose(stack(models, counted([[1]], [9], (2,))).weights, [1.0, 0.0], atol=1e-12)


# -- chosen on rows that candidates have not seen ---------------------------------------------------------------------
def test_selection_keeps_the_best_of_its_trials(rng):
    x = rng.integers(0, 2, (120, 6))
    x[:, 1] = np.where(rng.random(120) < 0.9, x[:, 0], x[:, 1])
    data, start = counted(x, np.ones(120), (2,) * 6), FullSpanModel.build((2,) * 6)
    grid = [learner_of("dense", l2=l2, l2_growth=3.0) for l2 in (1e-4, 1e-2, 1.0)] + [learner_of(tol=1e-3)]
    result = run(SpanSelection(grid, unseen_fraction=1 / 3), start, data, 3)
    scores = -result.trace.column("value")[:4]
    kept, unseen = split_weights(data.weights, 1 / 3, np.random.default_rng(3))
    for learner, score in zip(grid, scores, strict=True):
        model = run(learner, start, replace(data, weights=kept), max_iter=10_000).model
        assert mean_log_likelihood(model, replace(data, weights=unseen)) == pytest.approx(score, abs=1e-12)
    best = grid[int(np.argmax(scores))]
    assert type(best).__name__ in result.reason
    assert "is the best of 4 candidates" in result.reason
    assert scores[0] < scores.max()  # hardly any shrinkage is not best for 80 rows and 63 parameters
    assert np.array_equal(result.model.theta, run(best, start, data, max_iter=10_000).model.theta)  # of all rows


def test_candidates_are_read_from_text():
    found = SpanSelection("span-greedy, span-dense:l2=0.01:l2_growth=3,span-newton:dtype=float32").candidates
    expected = as_learner("span-greedy"), learner_of("dense", l2=0.01, l2_growth=3.0)
    assert found == (*expected, learner_of("newton", dtype="float32"))


def test_a_mixture_of_candidates_is_likelier_than_each_on_the_rows_it_was_chosen_by(rng):
    x = noisy_chain(200, rng, 5)
    data, start = counted(x, np.ones(200), (2,) * 5), FullSpanModel.build((2,) * 5)
    learner = SpanSelection("span-greedy, span-dense:l2=0.01", combine="stack")
    result = run(learner, start, data, 0)
    _, unseen = split_weights(data.weights, 0.2, np.random.default_rng(0))
    score = mean_log_likelihood(result.model, replace(data, weights=unseen))
    assert result.n_steps == 2
    scores = -result.trace.column("value")
    assert score > scores.min() + 0.9 * np.ptp(scores)


def test_held_out_rows_are_drawn_without_replacement(rng):
    counts = rng.integers(0, 9, 50)
    kept, left_out = split_weights(counts, 0.25, rng)
    assert np.array_equal(kept + left_out, counts)
    assert kept.min() >= 0
    assert left_out.sum() == round(0.25 * counts.sum())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"candidates": []}, "names no learner: give at least one learner"),
        ({"candidates": ["span-greedy", "quick"]}, "learner='quick' learns no full span"),
        ({"candidates": "span-greedy:l3=1"}, "learner='span-greedy' has no setting l3"),
        ({"candidates": "span-greedy:l2"}, "'l2' has no value: write it as in l2=0.01"),
        ({"candidates": [{"l2": 1.0}]}, "learns no full span"),
        ({"candidates": "span-greedy:l2=-1"}, r"l2=-1\.0 must be at least 0"),
        ({"combine": "mean"}, "combine='mean' is not known: use one of best, stack"),
        ({"unseen_fraction": np.nan}, "unseen_fraction=nan must be a finite number"),
        ({"unseen_fraction": 1.0}, r"unseen_fraction=1\.0 must be above 0 and below 1"),
    ],
)
def test_bad_selections_are_named(settings, message):
    with pytest.raises(ArgumentError, match=message):
        SpanSelection(**settings)


def test_rows_that_cannot_be_split_are_named(rng):
    for counts, fraction, message in (
        ([2.5], 0.5, "fractions of rows"),
        ([5], 0.01, r"unseen_fraction=0\.01 of 5 rows"),
    ):
        with pytest.raises(ArgumentError, match=message):
            split_weights(np.array(counts), fraction, rng)


@pytest.mark.parametrize(
    "learner",
    [
        SpanBagging(n_averages=6),
        SpanSelection("span-greedy, span-newton, span-dense:l2=0.01, span-dense:l2=1, span-greedy:l2=0.1"),
        SpanSelection(
            "span-greedy, span-dense:l2=0.01, span-dense:l2=1, span-newton, span-newton:l2=1", combine="stack"
        ),
    ],
    ids=["average", "best", "stack"],
)
def test_a_resumed_fit_has_the_bits_of_an_uninterrupted_one(learner, tmp_path, rng):
    data, start = counted(noisy_chain(120, rng, 4), np.ones(120), (2,) * 4), FullSpanModel.build((2,) * 4)
    whole = run(learner, start, data, 3)
    path = tmp_path / "fit.checkpoint"
    run(learner, start, data, 3, [Checkpoint(path, every=2)], max_iter=4)
    rest = run(learner, start, data, 3, [Checkpoint(path, resume=True)])
    assert rest.provenance["resumed_at_step"] == 4
    assert np.array_equal(rest.model.theta, whole.model.theta)
    assert np.array_equal(rest.trace.column("value"), whole.trace.column("value"), equal_nan=True)
