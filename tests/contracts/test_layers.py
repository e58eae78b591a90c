"""Every registered family of layers: its rows, the evidence of what data show, and the joint form of small stacks."""

import numpy as np
import pytest

from family_cases import CASES, case_of
from gibbsian.inference.layer_pseudolikelihood import conditional_costs
from gibbsian.models import BinaryUnits, CategoricalUnits, SpinUnits
from gibbsian.models.base import FAMILIES, Layered, Model
from layered_systems import random_stack
from systems import all_states

LAYERS = {
    "binary": (BinaryUnits(3), BinaryUnits(2)),
    "spin": (SpinUnits(3), SpinUnits(2)),
    "spin-binary": (SpinUnits(2), BinaryUnits(2)),
    "categorical": (CategoricalUnits((2, 3)), SpinUnits(2)),
    "categorical-both": (CategoricalUnits((2, 3)), CategoricalUnits((3,))),
}
LAYERED = [name for name in FAMILIES if isinstance(case_of(f"{name}: {next(iter(CASES[name]))}").family, Layered)]


@pytest.fixture(params=[(name, layers) for name in LAYERED for layers in LAYERS], ids="-".join)
def layered(request, rng):
    """A model of any registered family that is made of layers, with random parameters."""
    name, layers = request.param
    three = (*LAYERS[layers], LAYERS[layers][1])
    family = FAMILIES.factory(name)(three)
    return Model(family, rng.normal(size=family.n_parameters))


def visible_codes(family):
    return np.array(list(np.ndindex(*family.layers[0].variables.sizes)), dtype=np.int8)


def test_models_of_layers_keep_what_all_models_have(layered):
    family = layered.family
    assert isinstance(family, Layered)
    assert family.penalised.shape == layered.theta.shape
    assert layered.n_variables == family.layers[0].n_units + family.n_hidden
    before = layered.theta.copy()
    layered.replace(np.zeros_like(before))
    assert np.array_equal(layered.theta, before)
    again = type(family).from_parts(family.to_parts(), family.layers[0].variables)
    assert again == family


@pytest.mark.parametrize("layers", LAYERS)
def test_conditional_costs_of_visible_units_are_log_odds(layers, rng):
    model = random_stack(LAYERS[layers], rng)
    if not model.visible.variables.two_valued:
        return
    codes = visible_codes(model.family)
    costs = conditional_costs(model, np.asarray(model.visible.encode(codes), float))
    for unit in range(codes.shape[1]):
        others = codes.copy()
        others[:, unit] ^= 1
        here, there = (model.log_evidence(model.visible.encode(each)) for each in (codes, others))
        np.testing.assert_allclose(costs[:, unit], here - there, atol=1e-12)


def test_evidence_sums_the_hidden_units_out_of_complete_rows(layered):
    family = layered.family
    visible, everything = visible_codes(family), np.array(list(np.ndindex(*family.variables.sizes)), dtype=np.int8)
    weights = layered.log_weights(everything)
    found = family.log_evidence(layered.theta, family.layers[0].encode(visible))
    for row, evidence in zip(visible, found, strict=True):
        shown = (everything[:, : len(row)] == row).all(axis=1)
        assert evidence == pytest.approx(np.logaddexp.reduce(weights[shown]), abs=1e-10)


@pytest.mark.parametrize("layers", LAYERS)
def test_any_joint_model_of_layers_is_one_of_them(layers, rng):
    model = random_stack(LAYERS[layers], rng)
    other = model.joint().replace(rng.normal(size=model.joint().theta.size))
    again = model.replace(model.family.from_joint(other)).joint()
    states = all_states(other.variables)
    difference = again.log_weights(states) - other.log_weights(states)
    np.testing.assert_allclose(difference, difference[0], atol=1e-10)
