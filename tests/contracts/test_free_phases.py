"""What every registered free phase of a restricted machine promises."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from gibbsian.data import Dataset
from gibbsian.expectations.block_chains import FREE_PHASES, FreeMoments, FreePhase
from gibbsian.inference import exact
from gibbsian.learning import Minibatch
from gibbsian.old_sampling.layer_paths import IndependentUnits
from gibbsian.storage import pack, unpack
from layered_systems import (
    Machine,
    data_rows,
    joint_law,
    layer_of,
    likelihood_gradient,
    log_likelihood,
    random_machine,
    restricted,
    start_model,
    statistics_of,
    trained,
)

KINDS = ("binary", "spin")
# Calls after which the chains of these small machines have forgotten where they started.
BURN_IN = 20
# Independent runs behind a z-test.
N_RUNS = 16


@pytest.fixture(params=FREE_PHASES.names())
def name(request) -> str:
    return request.param


@pytest.fixture
def phase(name) -> FreePhase:
    return FREE_PHASES.create(name)


@pytest.fixture(params=KINDS)
def model(request) -> Machine:
    scale = 0.8 if request.param == "binary" else 0.4
    return random_machine(request.param, request.param, np.random.default_rng(1), 4, 3, scale)


def rows_of(model: Machine, n_rows: int, rng: np.random.Generator) -> Dataset:
    """Rows with the law of a machine."""
    return data_rows(exact(model).sample(n_rows, rng))


def flat(model: Machine, found: list[np.ndarray] | FreeMoments) -> np.ndarray:
    """Samples or moments as moments, in the layout of theta."""
    if isinstance(found, FreeMoments):
        return np.concatenate([part.ravel() for some in found for part in some])
    return model.family.statistics_of(found)


def begun(phase: FreePhase, model: Machine, rng: np.random.Generator) -> object:
    rows = rows_of(model, 100, rng)
    return phase.init(model, lambda: IndependentUnits.of_data(model, rows), rng)


def fields_at(model: Machine, n_rows: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Hidden fields at rows with the law of a machine."""
    values = model.visible.encode(rows_of(model, n_rows, rng).states)
    return [model.family.fields(model.parts, 1, [values, None])]


def call(phase: FreePhase, model: Machine, state: object, fields: list[np.ndarray], rng: np.random.Generator):
    return phase(model.family, model.parts, state, fields, rng)


def run(phase: FreePhase, model: Machine, seed: int, n_calls: int) -> tuple[np.ndarray, object]:
    """The moments after some minibatches at rows that have the model's law, and the state."""
    rng = np.random.default_rng(seed)
    state = begun(phase, model, rng)
    for _ in range(n_calls):
        found, state = call(phase, model, state, fields_at(model, 100, rng), rng)
    return flat(model, found), state


def test_follows_the_protocol(phase, model):
    assert isinstance(phase, FreePhase)
    moments, state = run(phase, model, 0, 1)
    assert moments.shape == (4 + 3 + 12,)
    rng = np.random.default_rng(1)
    again, later = call(phase, model, state, fields_at(model, 5, rng), rng)
    assert type(later) is type(state)
    assert np.isfinite(flat(model, again)).all()


def test_same_seed_same_moments(phase, model):
    first, second, other = (run(phase, model, seed, 2)[0] for seed in (3, 3, 4))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_a_call_leaves_its_state_and_fields_as_they_were(phase, model):
    _, state = run(phase, model, 0, 2)
    fields = fields_at(model, 10, np.random.default_rng(5))
    before, kept = {key: array.copy() for key, array in pack(state).items()}, fields[0].copy()
    call(phase, model, state, fields, np.random.default_rng(6))
    assert all(np.array_equal(array, before[key]) for key, array in pack(state).items())
    assert np.array_equal(fields[0], kept)


def test_a_state_from_a_checkpoint_goes_on_to_the_same_bits(phase, model):
    _, state = run(phase, model, 0, 2)
    rng = np.random.default_rng(7)
    read = unpack(begun(phase, model, rng), pack(state))
    fields = fields_at(model, 100, rng)
    (first, at_once), (second, resumed) = (
        call(phase, model, each, fields, np.random.default_rng(8)) for each in (state, read)
    )
    assert np.array_equal(flat(model, first), flat(model, second))
    packed = pack(at_once)
    assert all(np.array_equal(array, packed[key]) for key, array in pack(resumed).items())


def test_moments_are_unbiased_at_the_law_of_the_model(phase, model):
    """Chains, and rows for those that start there, have the exact law: what is found differs by its error alone."""
    v, h, law, _ = joint_law(model)
    found = np.array([run(phase, model, seed, BURN_IN)[0] for seed in range(N_RUNS)])
    error = found.std(axis=0, ddof=1) / np.sqrt(N_RUNS)
    z = (found.mean(axis=0) - statistics_of(v, h, law)) / error
    assert np.abs(z).max() < 5.5  # 19 moments, Student's t with 15 degrees of freedom: 1 in 800


# -- learning ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def lesson(model) -> tuple[Machine, Dataset]:
    """A start, and rows of a machine of spins in which two groups of columns agree, in either coding."""
    rng = np.random.default_rng(2)
    weights = [[0.9, 0.1], [0.8, -0.2], [0.1, 0.9], [-0.2, 0.8], [0.6, 0.6]]
    rows = rows_of(restricted(layer_of("spin", 5), layer_of("spin", 2), w=weights), 600, rng)
    layers = layer_of(model.visible.kind, 5), layer_of(model.visible.kind, 2)
    return start_model(*layers, rows, rng), rows


def mean_likelihood(model: Machine, rows: Dataset) -> float:
    return float(log_likelihood(model, rows.states).mean())


def ascended(start: Machine, rows: Dataset) -> Machine:
    """The maximum that the exact gradient leads to."""

    def descent(theta):
        here = start.replace(theta)
        return -mean_likelihood(here, rows), -likelihood_gradient(here, rows.states)

    return start.replace(minimize(descent, start.theta, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x)


def test_learning_comes_near_to_exact_ascent(name, lesson):
    start, rows = lesson
    rate = 1.0 if start.visible.kind == "binary" else 0.3  # the same machine in 0/1 has weights four times as large
    learner = Minibatch(max_iter=40, learning_rate=rate, batch_size=50, free_phase=name)
    learned = trained(learner, start, rows, np.random.default_rng(0)).model
    begun, reached, best = (mean_likelihood(m, rows) for m in (start, learned, ascended(start, rows)))
    assert best > begun + 0.2
    share = 0.97 if FREE_PHASES.trait(name, "consistent", True) else 0.5
    assert reached > begun + share * (best - begun)


def test_learning_keeps_single_precision(name, lesson):
    start, rows = lesson
    learner = Minibatch(max_iter=2, learning_rate=0.2, free_phase=name, dtype="float32")
    learned = trained(learner, start, rows, np.random.default_rng(0)).model
    assert learned.theta.dtype == np.float32
    assert mean_likelihood(learned, rows) > mean_likelihood(start, rows)
