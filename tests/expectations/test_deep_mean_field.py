"""The mean-field posterior of a deep machine: a free energy that never rises, a bound that holds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.expectations import DeepMeanField
from gibbsian.expectations.deep_mean_field import log_weight_bound, upward_means
from gibbsian.models.layers.units import BinaryUnits, CategoricalUnits, GaussianUnits, SpinUnits, spread
from layered_systems import all_values, stack

STACKS = {
    "binary-3": (BinaryUnits(3), BinaryUnits(3), BinaryUnits(2)),
    "spin-4": (SpinUnits(2), SpinUnits(2), SpinUnits(3), SpinUnits(2)),
    "categories": (CategoricalUnits((3, 2)), BinaryUnits(2), SpinUnits(3)),
    "gaussian": (GaussianUnits(2, (0.5, 2.0)), BinaryUnits(3), BinaryUnits(2)),
    "two": (SpinUnits(3), BinaryUnits(2)),
}


def machine_and_rows(name, seed, scale=1.0):
    layers, rng = STACKS[name], np.random.default_rng(seed)
    theta = scale * rng.standard_normal(stack(layers).theta.size)
    rows = layers[0].draw(np.zeros((12, layers[0].width)), rng)
    return stack(layers).replace(theta), rows


def posterior_of(model, mean_field, rows, missing=None):
    return mean_field(model.family, model.parts, rows, missing)


def bound_of(model, posterior):
    return log_weight_bound(model.family, model.parts, posterior)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", STACKS)
def test_free_energy_never_rises_and_bounds_the_log_weight(name, seed):
    model, rows = machine_and_rows(name, seed, scale=1.5)
    truth = model.log_evidence(rows)
    bounds = np.array(
        [
            log_weight_bound(model.family, model.parts, posterior_of(model, DeepMeanField(max_iter=k, tol=0.0), rows))
            for k in range(1, 15)
        ]
    )
    assert (np.diff(bounds, axis=0) >= -1e-10).all()
    assert (bounds <= truth + 1e-10).all()


def test_bound_is_exact_with_one_hidden_layer():
    model, rows = machine_and_rows("two", 0)
    np.testing.assert_allclose(
        bound_of(model, posterior_of(model, DeepMeanField(), rows)),
        model.log_evidence(rows),
        atol=1e-12,
    )


def test_bound_is_the_expected_log_ratio_under_the_posterior():
    model, rows = machine_and_rows("spin-4", 1)
    posterior = posterior_of(model, DeepMeanField(max_iter=3), rows[:1])
    every = [all_values(layer) for layer in model.layers[1:]]
    total = 0.0
    for states in itertools.product(*every):
        log_q = sum(
            fields[0] @ state - layer.log_normaliser(fields)[0]
            for layer, fields, state in zip(model.layers[1:], posterior.fields[1:], states, strict=True)
        )
        energy = -model.log_weights_of_values(rows[:1], *(state[None] for state in states))[0]
        total += np.exp(log_q) * (-energy - log_q)
    assert bound_of(model, posterior)[0] == pytest.approx(total, abs=1e-10)


@pytest.mark.parametrize("name", ["binary-3", "spin-4", "categories", "two"])
def test_missing_cells_are_hidden_units(name):
    model, rows = machine_and_rows(name, 2)
    units = np.random.default_rng(0).random((len(rows), model.visible.n_units)) < 0.5
    missing = spread(model.visible, units)
    every = all_values(model.visible)
    weights = model.log_evidence(every)
    truth = [
        logsumexp(weights[(every == row)[:, ~holes].all(axis=1)]) for row, holes in zip(rows, missing, strict=True)
    ]
    bounds = np.array(
        [
            log_weight_bound(
                model.family, model.parts, posterior_of(model, DeepMeanField(max_iter=k, tol=0.0), rows, missing)
            )
            for k in (1, 2, 5, 30)
        ]
    )
    assert (np.diff(bounds, axis=0) >= -1e-10).all()
    assert (bounds <= np.array(truth) + 1e-10).all()
    whole = ~missing.any(axis=1)
    plain = log_weight_bound(
        model.family, model.parts, posterior_of(model, DeepMeanField(max_iter=30, tol=0.0), rows[whole])
    )
    np.testing.assert_allclose(bounds[-1][whole], plain, atol=1e-10)
    np.testing.assert_array_equal(
        posterior_of(model, DeepMeanField(), rows, missing).means[0][~missing], rows[~missing].astype(np.float64)
    )


def test_what_stands_in_missing_cells_does_not_matter():
    model, rows = machine_and_rows("binary-3", 3)
    missing = np.random.default_rng(1).random(rows.shape) < 0.4
    one = posterior_of(model, DeepMeanField(), rows, missing)
    other = posterior_of(model, DeepMeanField(), np.where(missing, 7.0, rows), missing)
    np.testing.assert_array_equal(one.means[1], other.means[1])


def test_mistakes_are_named():
    model, rows = machine_and_rows("gaussian", 0)
    with pytest.raises(MissingValuesError, match="fill them first"):
        posterior_of(model, DeepMeanField(), rows, np.ones(rows.shape, bool))
    with pytest.raises(ArgumentError, match="max_iter=0 must be at least 1"):
        DeepMeanField(max_iter=0)
    with pytest.raises(ArgumentError, match="tol=-1 must be at least 0"):
        DeepMeanField(tol=-1)


def test_the_first_pass_hears_from_below_twice_but_at_the_top(rng):
    layers = (BinaryUnits(3), BinaryUnits(2), SpinUnits(2))
    template = stack(layers)
    model = stack(layers).replace(rng.normal(size=template.theta.size))
    v = all_values(layers[0])
    first = expit(2 * v @ model.parts.weights[0] + model.biases[1])
    top = np.tanh(first @ model.parts.weights[1] + model.biases[2])
    for found, expected in zip(upward_means(model.family, model.parts, v), (v, first, top), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
