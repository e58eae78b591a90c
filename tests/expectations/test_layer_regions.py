"""Spatial integration of restricted machines whose units are not all two-valued: enumeration and quadrature."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad

import gibbsian as gb
from gibbsian.expectations.layer_chains import spatial_moments
from gibbsian.models import BinaryUnits, CategoricalUnits, GaussianUnits, SpinUnits
from layered_systems import all_values, joint_law, random_machine, random_stack, statistics_of


def moments_of(model, values, hidden=None, region="layer"):
    return spatial_moments(model.family, model.parts, values, hidden, region)


DISCRETE = [("categorical", "binary"), ("categorical", "categorical"), ("spin", "categorical")]


@pytest.mark.parametrize(("visible", "hidden"), DISCRETE)
@pytest.mark.parametrize("region", ["pair", "layer"])
def test_unbiased_at_the_exact_law(rng, visible, hidden, region):
    model = random_machine(visible, hidden, rng, 3, 2, scale=1.0)
    v, h, law, _ = joint_law(model)
    total = np.zeros(model.theta.size)
    for i, j in itertools.product(range(len(v)), range(len(h))):
        found = moments_of(model, v[i : i + 1], h[j : j + 1], region)
        total += law[i, j] * np.concatenate([found.firsts[0], found.firsts[1], found.products[0].ravel()])
    np.testing.assert_allclose(total, statistics_of(v, h, law), atol=1e-12)


DEEP = {
    "folded": (BinaryUnits(2), SpinUnits(2), BinaryUnits(1), SpinUnits(1)),
    "of three kinds": (CategoricalUnits((3,)), BinaryUnits(2), SpinUnits(2)),
    "of mixed sides": (BinaryUnits(2), SpinUnits(1), SpinUnits(2), BinaryUnits(1)),
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("region", ["pair", "layer"])
def test_deep_machines_are_integrated_around_even_layers(rng, name, region):
    """At the exact law the estimator has the moments as its mean, and a smaller variance than plain Monte Carlo."""
    model = random_stack(DEEP[name], rng, scale=1.0)
    values = every_state(DEEP[name])
    log_weights = model.log_weights_of_values(*values)
    law = np.exp(log_weights - np.logaddexp.reduce(log_weights))
    found, plain = [], []
    for row in range(len(law)):
        one = [part[row : row + 1] for part in values]
        moments = moments_of(model, np.hstack(one[0::2]), np.hstack(one[1::2]), region)
        found.append(np.concatenate([*moments.firsts, *(part.ravel() for part in moments.products)]))
        plain.append(model.family.statistics_of(one))
    truth = model.family.statistics_of(values, law)
    np.testing.assert_allclose(law @ found, truth, atol=1e-12)
    assert (law @ np.square(found - truth) < law @ np.square(plain - truth)).all()


def every_state(layers):
    """The values of layers in all their joint states."""
    tables = [all_values(layer) for layer in layers]
    numbers = np.array(list(itertools.product(*(range(len(table)) for table in tables))))
    return [table[numbers[:, place]] for place, table in enumerate(tables)]


def gaussian_machine(rng, scale=1.0):
    machine = random_machine(GaussianUnits(3, (1.0, 0.7, 1.5)), BinaryUnits(4), rng, scale=scale)
    return machine, rng.normal(size=(1, 3)), (rng.random((1, 4)) < 0.5).astype(float)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_a_gaussian_unit_with_the_hidden_layer_is_an_integral(rng, scale):
    model, v, _ = gaussian_machine(rng, scale)
    found = moments_of(model, v, region="layer")

    def weight(x, unit):
        changed = v.copy()
        changed[0, unit] = x
        return float(np.exp(model.log_evidence(changed)[0] - model.log_evidence(v)[0])), changed

    def product(x, unit):
        density, changed = weight(x, unit)
        return x * density * model.hidden_means(changed)[0, 2]

    for unit in range(3):
        ends = v[0, unit] - 60, v[0, unit] + 60
        options = {"points": np.linspace(*ends, 41)[1:-1], "limit": 400, "epsabs": 0.0, "epsrel": 1e-11}
        total = quad(lambda x, i: weight(x, i)[0], *ends, (unit,), **options)[0]
        mean = quad(lambda x, i: x * weight(x, i)[0], *ends, (unit,), **options)[0] / total
        assert found.firsts[0][unit] == pytest.approx(mean, rel=1e-6, abs=1e-6)
        expected = quad(product, *ends, (unit,), **options)[0] / total
        assert found.products[0][unit, 2] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_gaussian_and_a_binary_unit_have_a_closed_form(rng):
    model, v, h = gaussian_machine(rng)
    found = moments_of(model, v, h, "pair").products[0]
    for i, j in itertools.product(range(3), range(4)):
        on, off = h.copy(), h.copy()
        on[0, j], off[0, j] = 1.0, 0.0
        rest = v.copy()
        rest[0, i] = 0.0  # the visible unit is integrated: a normal given each value of the hidden one
        variance = model.visible.deviations[i] ** 2
        fields = [float(model.family.fields(model.parts, 0, [None, x])[0, i]) for x in (on, off)]
        odds = (
            float(model.family.fields(model.parts, 1, [rest, None])[0, j])
            + variance * (fields[0] ** 2 - fields[1] ** 2) / 2
        )
        expected = variance * fields[0] / (1 + np.exp(-odds))
        assert found[i, j] == pytest.approx(expected, abs=1e-12)


def test_a_gaussian_machine_is_integrated_without_bias_and_with_less_variance(rng):
    """YU20 theorems 1 and 2 where visible units are real numbers."""
    model, _, _ = gaussian_machine(rng)
    h = all_values(model.hidden)
    law = np.exp(model.log_weights_of_hidden(h) - np.logaddexp.reduce(model.log_weights_of_hidden(h)))
    truth = model.visible_means(h).T @ (law[:, None] * h)
    drawn = h[rng.choice(16, 3000, p=law)]
    values = model.draw_visible(drawn, rng)
    spread = {"plain": (values[:, :, None] * drawn[:, None]).var(axis=0)}
    for region in ("pair", "layer"):
        singles = [moments_of(model, values[m : m + 1], drawn[m : m + 1], region).products[0] for m in range(300)]
        spread[region] = np.var(singles, axis=0)
        whole = moments_of(model, values, drawn, region).products[0]
        assert (np.abs(whole - truth) < 5 * np.sqrt(spread[region] / 3000)).all()
    assert (spread["pair"] < spread["plain"]).all()
    # variances over 300 draws are known to a tenth or so
    assert (spread["layer"] < 1.3 * spread["pair"]).all()
    assert spread["layer"].sum() < 0.5 * spread["pair"].sum()


@pytest.mark.parametrize("visible", ["gaussian", "categorical"])
def test_machines_learn_by_it(rng, visible):
    group = rng.integers(0, 2, 80)
    rows = {
        "gaussian": rng.normal(size=(80, 3)) + 2.0 * group[:, None],
        "categorical": np.where(rng.random((80, 3)) < 0.7, group[:, None], rng.integers(0, 3, (80, 3))),
    }[visible]
    scores = []
    for epochs in (1, 15):
        learner = gb.learning.Minibatch(negative_phase="smci", n_chains=20, max_iter=epochs)
        machine = gb.RestrictedBoltzmannMachine(2, visible=visible, learner=learner, random_state=0).fit(rows)
        scores.append(machine.score(rows))
    assert scores[1] > scores[0] + 0.02
