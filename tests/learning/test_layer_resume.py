"""Fits of layers go on from a packed state after every step, in a fit that is bound anew."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.expectations import SampledLayers, TemperedBlockChains
from gibbsian.learning import Minibatch, Stacking
from gibbsian.models.layers.units import BinaryUnits, GaussianUnits
from gibbsian.rng import Key
from gibbsian.storage import pack, unpack
from layered_systems import data_rows, network, stack

EACH = {"max_iter": 2, "batch_size": 9, "momentum": 0.5}
TEMPERED = SampledLayers(TemperedBlockChains(n_chains=5, betas=3))
SIZES = [BinaryUnits(5), BinaryUnits(3), BinaryUnits(2)]
FITS = {
    "restricted": (Minibatch(**EACH, curves=True), stack(SIZES[:2])),
    "tempered": (Minibatch(**EACH, negative_phase=TEMPERED), stack(SIZES[:2])),
    "deep": (Minibatch(**EACH), stack(SIZES)),
    "stacking": (Stacking(alone=Minibatch(**EACH), together=Minibatch(**EACH)), stack(SIZES)),
    "network": (Stacking(alone=Minibatch(**EACH), together=None, carried="means"), network(SIZES)),
    "numbers": (Minibatch(**EACH, learning_rate=0.01), stack([GaussianUnits(5, (1.0,) * 5), *SIZES[1:2]])),
    "numbers in layers": (Stacking(alone=Minibatch(**EACH)), stack([GaussianUnits(5, (1.0,) * 5), *SIZES[1:]])),
}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", FITS)
def test_a_step_is_a_function_of_what_a_checkpoint_holds(name, missing, rng):
    learner, model = FITS[name]
    if missing and name.startswith("numbers"):
        pytest.skip("Gaussian units need every number")
    states = rng.normal(size=(30, 5)) if name.startswith("numbers") else rng.integers(0, 2, (30, 5)).astype(np.int8)
    rows = data_rows(states, missing=rng.random(states.shape) < 0.2 if missing else None)
    fit = learner.bind(model, rows)
    whole, _ = fit.init(Key.of(0))
    broken = whole
    for _ in range(learner.most_steps(model, 0)):
        whole, info = fit.step(whole)
        again = learner.bind(model, rows)
        broken = unpack(again.init(Key.of(0))[0], pack(broken))
        broken, same = again.step(broken)
        np.testing.assert_array_equal(fit.model(whole).theta, again.model(broken).theta)
        assert same.outcome == info.outcome
    assert info.outcome.reason.startswith("trained for 2 epochs")
