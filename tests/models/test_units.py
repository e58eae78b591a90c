"""Layers against sums over all values: normalisers, means and draws of every kind, in both precisions."""

import numpy as np
import pytest
from scipy.special import logsumexp

from gibbsian.errors import ArgumentError
from gibbsian.models.layers.units import (
    BinaryUnits,
    CategoricalUnits,
    GaussianUnits,
    SpinUnits,
    as_units,
    codes_of,
    count_states,
    enumerate_values,
    mean_values,
)
from layered_systems import all_codes, all_values, rows_of

LAYERS = {
    "binary": BinaryUnits(4),
    "spin": SpinUnits(4),
    "categorical": CategoricalUnits((2, 3, 5)),
    "gaussian": GaussianUnits(3, (0.5, 1.0, 2.0)),
}
DISCRETE = ["binary", "spin", "categorical"]


@pytest.fixture(params=LAYERS)
def layer(request):
    return LAYERS[request.param]


@pytest.fixture
def fields(layer, rng):
    return rng.normal(scale=2.0, size=(6, layer.width))


@pytest.mark.parametrize("kind", DISCRETE)
def test_normaliser_and_means_are_sums_over_all_values(kind, rng):
    layer = LAYERS[kind]
    fields, values = rng.normal(scale=2.0, size=(6, layer.width)), all_values(layer)
    assert len(np.unique(values, axis=0)) == count_states([layer])
    log_weights = fields @ values.T
    np.testing.assert_allclose(layer.log_normaliser(fields), logsumexp(log_weights, axis=1), rtol=1e-13)
    law = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
    np.testing.assert_allclose(layer.means(fields), law @ values, atol=1e-14)


def test_gaussian_normaliser_and_means_are_integrals():
    layer, fields = GaussianUnits(1, (0.7,)), np.array([[-1.5], [0.0], [2.0]])
    line = np.linspace(-12, 12, 200_001)[:, None]
    weights = np.exp(fields @ line.T + layer.log_measure(line))
    totals = np.trapezoid(weights, line.ravel(), axis=1)
    np.testing.assert_allclose(layer.log_normaliser(fields), np.log(totals), rtol=1e-9)
    np.testing.assert_allclose(
        layer.means(fields).ravel(), np.trapezoid(weights * line.ravel(), line.ravel(), axis=1) / totals, atol=1e-9
    )


def test_means_are_derivatives_of_the_normaliser(layer, fields):
    step = 1e-6
    for column in range(layer.width):
        shift = step * np.eye(layer.width)[column]
        slope = (layer.log_normaliser(fields + shift) - layer.log_normaliser(fields - shift)) / (2 * step)
        np.testing.assert_allclose(layer.means(fields)[:, column], slope, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_draws_have_the_means(layer, rng, dtype):
    n = 40_000
    one = rng.normal(size=layer.width).astype(dtype)
    draws = layer.draw(np.tile(one, (n, 1)), rng)
    assert draws.dtype == dtype
    draws = draws.astype(np.float64)
    errors = (draws.mean(axis=0) - layer.means(one[None])[0]) / (draws.std(axis=0) / np.sqrt(n))
    assert np.abs(errors).max() < 4.5


def test_gaussian_draws_have_the_deviations(rng):
    draws = LAYERS["gaussian"].draw(np.ones((40_000, 3)), rng)
    np.testing.assert_allclose(draws.std(axis=0), [0.5, 1.0, 2.0], rtol=4.5 / np.sqrt(80_000))


@pytest.mark.parametrize("kind", DISCRETE)
def test_joint_draws_follow_the_product_law(kind, rng):
    layer = LAYERS[kind]
    fields, values = rng.normal(scale=0.5, size=(1, layer.width)), all_values(layer)
    law = np.exp(fields @ values.T - layer.log_normaliser(fields)[:, None])[0]
    draws, n = layer.draw(np.repeat(fields, 30_000, axis=0), rng), 30_000
    counts = np.array([(draws == value).all(axis=1).sum() for value in values])
    assert counts.sum() == n
    chi_square = np.sum((counts - n * law) ** 2 / (n * law))
    assert abs(chi_square - (len(law) - 1)) < 4.5 * np.sqrt(2 * (len(law) - 1))


@pytest.mark.parametrize("kind", DISCRETE)
def test_extreme_fields_saturate_without_overflow(kind):
    layer = LAYERS[kind]
    with np.errstate(all="raise"):
        for size in (800.0, 1e6):
            fields = size * (1.0 + np.arange(layer.width))[None]
            fields[0, ::2] *= -1
            means, draws = layer.means(fields), layer.draw(fields, np.random.default_rng(0))
            np.testing.assert_allclose(means, draws, atol=1e-300)
            np.testing.assert_allclose(layer.log_normaliser(fields), (fields * draws).sum(axis=1), rtol=1e-15)


def test_fields_of_means_and_back(layer, fields):
    small = 0.5 * fields
    np.testing.assert_allclose(layer.means(layer.fields_of(layer.means(small))), layer.means(small), rtol=1e-10)


def test_codes_and_values_and_back(layer, fields, rng):
    values = layer.draw(fields, rng)
    np.testing.assert_array_equal(layer.encode(codes_of(layer, values)), values)


def test_long_layers_take_one_logarithm_for_many_units(rng):
    fields = rng.normal(size=(3, 2500))
    np.testing.assert_allclose(
        BinaryUnits(2500).log_normaliser(fields), np.logaddexp(0, fields).sum(axis=1), rtol=1e-13
    )
    spins = SpinUnits(2500).log_normaliser(fields)
    np.testing.assert_allclose(spins, np.logaddexp(fields, -fields).sum(axis=1), rtol=1e-13)


def test_kinds_are_known_by_name():
    assert [as_units(kind, 2) for kind in ("binary", "spin", "gaussian")] == [
        BinaryUnits(2),
        SpinUnits(2),
        GaussianUnits(2),
    ]
    with pytest.raises(ArgumentError, match="positive numbers"):
        GaussianUnits(2, (1.0, -1.0))


@pytest.mark.parametrize("layer", [BinaryUnits(2), SpinUnits(2)], ids=lambda layer: layer.kind)
def test_fields_of_means_at_either_end_are_finite(layer):
    ends = all_values(layer)[[0, 3]]
    fields = layer.fields_of(ends)
    assert np.isfinite(fields).all()
    np.testing.assert_allclose(fields[0], -fields[1], rtol=1e-3)
    np.testing.assert_allclose(layer.means(fields), ends, atol=1e-3)


@pytest.mark.parametrize("layer", [BinaryUnits(3), SpinUnits(3)], ids=lambda layer: layer.kind)
def test_means_of_incomplete_rows_are_those_of_present_cells(layer, rng):
    codes = all_codes(layer)[rng.integers(0, 8, 40)]
    missing = rng.random(codes.shape) < 0.3
    missing[:, 2] = True
    rows = rows_of(layer, codes, missing)
    found = mean_values(layer, rows)
    shown = [layer.encode(codes)[~missing[:, i], i].mean() for i in range(2)]
    np.testing.assert_allclose(found[:2], shown, atol=1e-12)
    assert found[2] == layer.means(np.zeros((1, 3)))[0, 2]  # never seen: as likely as not


def test_joint_states_are_numbered_with_the_first_unit_lowest():
    layers = CategoricalUnits((2, 3)), SpinUnits(2)
    whole = enumerate_values(layers, 0, 24)
    assert len(np.unique(np.hstack(whole), axis=0)) == count_states(layers) == 24
    for part, every in zip(enumerate_values(layers, 5, 9), whole, strict=True):
        np.testing.assert_array_equal(part, every[5:9])
    np.testing.assert_array_equal(whole[0][:3], layers[0].encode(np.array([[0, 0], [1, 0], [0, 1]])))
    assert count_states([GaussianUnits(1), *layers]) == np.inf
