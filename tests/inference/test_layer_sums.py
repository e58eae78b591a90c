"""Exact sums over one layer against plain summation over both."""

import numpy as np
import pytest
from scipy import stats

import gibbsian as gb
from gibbsian.backends.threads import limited_threads
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference import LayerSums, exact, is_affordable, predict_cost
from gibbsian.models.layers.units import BinaryUnits, CategoricalUnits, GaussianUnits, SpinUnits, codes_of
from layered_systems import (
    DISCRETE,
    PAIRS,
    all_codes,
    all_values,
    joint_law,
    layer_sums,
    likelihood_gradient,
    log_likelihood,
    log_partition,
    random_machine,
    restricted,
    statistics_of,
)

BOTH_DISCRETE = [(v, h) for v in DISCRETE for h in DISCRETE]


@pytest.mark.parametrize(("visible", "hidden"), BOTH_DISCRETE)
@pytest.mark.parametrize("side", ["visible", "hidden"])
def test_log_partition_and_moments_are_those_of_plain_summation(rng, visible, hidden, side):
    model = random_machine(visible, hidden, rng)
    v, h, law, truth = joint_law(model)
    answer = layer_sums(model, side)
    assert abs(answer.log_partition - truth) < 1e-12
    np.testing.assert_allclose(answer.moments, statistics_of(v, h, law), atol=1e-13)


@pytest.mark.parametrize("kind", ["binary", "spin"])
def test_agrees_with_exact_inference_on_the_pairwise_form(rng, kind):
    model = random_machine(kind, kind, rng, n_visible=9, n_hidden=7)
    reference = gb.inference.exact(model.joint())
    answer = layer_sums(model)
    assert abs(answer.log_partition - reference.log_partition) < 1e-11
    np.testing.assert_allclose(answer.moments, reference.moments, atol=1e-12)


@pytest.mark.parametrize(("visible", "hidden"), [("binary", "binary"), ("spin", "binary"), ("spin", "spin")])
def test_sums_over_visibles_equal_sums_over_hiddens_across_several_tiles(rng, visible, hidden):
    model = random_machine(visible, hidden, rng, n_visible=15, n_hidden=13, scale=1.5)
    by_visible, by_hidden = layer_sums(model, "visible"), layer_sums(model, "hidden")
    assert abs(by_visible.log_partition - by_hidden.log_partition) < 1e-10
    np.testing.assert_allclose(by_visible.moments, by_hidden.moments, atol=1e-12)


@pytest.mark.parametrize("scale", [20.0, 150.0, 3000.0])
@pytest.mark.parametrize(("visible", "hidden"), [("binary", "binary"), ("spin", "spin"), ("binary", "spin")])
def test_large_fields_do_not_overflow(rng, scale, visible, hidden):
    """Some units within the products' reach, some beyond it, some at both ends at once."""
    model = random_machine(visible, hidden, rng, n_visible=9, n_hidden=8, scale=1.0)
    weights = model.weights * np.linspace(0.0, scale, 9)[:, None]
    model = restricted(model.visible, model.hidden, None, model.biases[1], weights)
    v, h, law, truth = joint_law(model)
    for side in ("visible", "hidden"):
        answer = layer_sums(model, side)
        assert abs(answer.log_partition - truth) < 1e-12 * abs(truth)
        np.testing.assert_allclose(answer.moments, statistics_of(v, h, law), atol=1e-8)


def test_gaussian_visible_against_quadrature(rng):
    model = random_machine(GaussianUnits(1, (0.7,)), "binary", rng, n_hidden=3)
    grid = np.linspace(-25, 25, 200_001)[:, None]
    weights = np.exp(model.log_evidence(grid))
    step = grid[1, 0] - grid[0, 0]
    answer = layer_sums(model)
    assert abs(answer.log_partition - np.log(weights.sum() * step)) < 1e-9
    shares = weights / weights.sum()
    np.testing.assert_allclose(
        answer.moments, model.family.statistics_of([grid, model.hidden_means(grid)], shares), atol=1e-9
    )


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_gradient_is_the_slope_of_the_log_likelihood(rng, visible, hidden):
    model = random_machine(visible, hidden, rng, n_visible=3, n_hidden=3, scale=0.4)
    codes = codes_of(model.visible, model.draw_visible(np.zeros((6, model.hidden.width)), rng))
    shares = rng.dirichlet(np.ones(6))
    slope = likelihood_gradient(model, codes, shares)
    direction = rng.normal(size=model.theta.size)
    ends = [shares @ log_likelihood(model.replace(model.theta + step * direction), codes) for step in (1e-5, -1e-5)]
    assert abs((ends[0] - ends[1]) / 2e-5 - slope @ direction) < 1e-7


@pytest.mark.parametrize("visible", DISCRETE)
def test_probabilities_add_up_to_one(rng, visible):
    model = random_machine(visible, "spin", rng)
    codes = all_codes(model.visible)
    assert abs(np.exp(log_likelihood(model, codes)).sum() - 1.0) < 1e-12


@pytest.mark.parametrize("side", ["visible", "hidden"])
@pytest.mark.parametrize(("visible", "hidden"), [("binary", "spin"), ("categorical", "binary")])
def test_samples_have_the_exact_law(rng, visible, hidden, side):
    model = random_machine(visible, hidden, rng, n_visible=2, n_hidden=2)
    v, h, law, _ = joint_law(model)
    drawn_v, drawn_h = layer_sums(model, side).sample_layers(20_000, rng)
    found = (drawn_v[:, None] == v).all(axis=2), (drawn_h[:, None] == h).all(axis=2)
    counts = found[0].astype(float).T @ found[1].astype(float)
    assert stats.chisquare(counts.ravel(), 20_000 * law.ravel()).pvalue > 1e-3


def test_single_precision_parameters_are_summed_in_double(rng):
    model = random_machine("binary", "binary", rng, 12, 8)
    single = model.replace(model.theta.astype(np.float32))
    double = model.replace(single.theta.astype(np.float64))
    assert log_partition(single) == log_partition(double)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_moments_do_not_depend_on_threads(n_threads):
    model = random_machine("binary", "spin", np.random.default_rng(3), 30, 14)
    reference = layer_sums(model).moments
    with limited_threads(n_threads):
        assert (layer_sums(model).moments == reference).all()


def test_sizes_beyond_the_limit_are_refused_before_anything_is_allocated(monkeypatch):
    large = restricted(BinaryUnits(784), BinaryUnits(26))
    assert not is_affordable(large.family)
    with pytest.raises(TooExpensiveError, match=r"a sum over the 26 hidden units, of more than 3.4e\+07 terms"):
        exact(large)
    with pytest.raises(ArgumentError, match="Gaussian layer"):
        LayerSums(restricted(GaussianUnits(3), BinaryUnits(3)).family, side="visible")
    with pytest.raises(ArgumentError, match="side='left'"):
        LayerSums(large.family, side="left")
    many = restricted(SpinUnits(500), CategoricalUnits([4] * 12))
    assert is_affordable(many.family, max_seconds=1e9)
    assert not is_affordable(many.family, max_seconds=1.0)
    assert predict_cost(many.family).seconds > 1.0
    assert predict_cost(restricted(BinaryUnits(784), BinaryUnits(16)).family).seconds < 1.0
    assert is_affordable(restricted(BinaryUnits(64), BinaryUnits(25)).family)
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.1")
    with pytest.raises(TooExpensiveError, match="MiB"):
        exact(restricted(BinaryUnits(64), BinaryUnits(25)))


def test_products_of_many_strong_units_do_not_overflow():
    rng = np.random.default_rng(0)
    biases, weights = rng.normal(20.0, 3.0, 300), rng.normal(size=(3, 300))
    model = restricted(BinaryUnits(3), BinaryUnits(300), rng.normal(size=3), biases, weights)
    states = all_values(BinaryUnits(3))
    expected = np.logaddexp.reduce(states @ model.biases[0] + np.logaddexp(0.0, states @ weights + biases).sum(axis=1))
    assert layer_sums(model).log_partition == pytest.approx(expected, rel=1e-13)
