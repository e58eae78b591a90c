"""Every learner that is bound: `step` is a pure function of a state that a checkpoint can hold.

A crash after every step, the learner bound anew and the state unpacked into a fresh template: the same bits, with
complete rows and with missing cells. Learners are tested by their registration.
"""

import warnings

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import GibbsianError
from gibbsian.learning import LEARNERS, as_learner
from gibbsian.learning.optimizers import Running
from gibbsian.rng import Key
from gibbsian.storage import pack, unpack
from systems import random_model, sampled_data

# Learners of pairwise models; those that need settings.
SETTINGS = {"mcl": {"targets": [0], "l2": 0.1}, "mcple": {"targets": [0, 1], "l2": 0.1}, "mean-field": {"l2": 0.1}}
NAMES = [name for name in LEARNERS.names() if LEARNERS.trait(name, "models") is None]
VARIANTS = {
    **{name: (name, SETTINGS.get(name, {})) for name in NAMES},
    "mple-chains": ("mple", {"completions": "chains", "l2": 0.05}),
    "mple-chains-l1": ("mple", {"completions": "chains", "l1": 0.02}),
    "mple-batches": ("mple", {"batch_size": 40}),
    "mple-adam": ("mple", {"optimizer": "adam"}),
    "mple-l1": ("mple", {"l1": 0.02}),
    "mle-prior": ("mle", {"log_prior": "cauchy:2.5"}),
    "online-l1": ("online", {"batch_size": 40, "l1": 0.02, "average": False}),
}
# No more steps than these, as the first ones meet all parts of a state.
MAX_STEPS = 6


def problem(missing, seed=0):
    """A start and rows of it, a tenth of whose cells may be missing."""
    rng = np.random.default_rng(seed)
    truth = random_model(gb.graphs.complete(4), rng, scale=0.4)
    data = sampled_data(truth, 200, rng)
    if missing:
        cells = data.decode(data.rows()[0]).astype(float)
        cells[rng.random(cells.shape) < 0.1] = np.nan
        data = gb.Dataset.read(cells, coding="spin")
    return truth.replace(0 * truth.theta), data


def learned(learner, start, data, crash, key=7):
    """Return the packed states of the steps of a fit, bound anew before every one where it crashes."""
    fit, key = learner.bind(start, data), Key.of(key)
    state, _ = fit.init(key)
    states = []
    for _ in range(MAX_STEPS):
        state, info = fit.step(state)
        states.append({name: np.array(part, copy=True) for name, part in pack(state).items()})
        if info.outcome is not None and not isinstance(info.outcome, Running):
            break
        if crash:
            fit = learner.bind(start, data)
            state = unpack(fit.init(key)[0], {name: part.copy() for name, part in states[-1].items()})
    return states, fit.model(state).theta


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_crash_after_every_step_gives_the_same_bits(variant, missing):
    name, settings = VARIANTS[variant]
    learner, (start, data) = as_learner(name, **settings), problem(missing)
    whole, theta = learned(learner, start, data, crash=False)
    broken, again = learned(learner, start, data, crash=True)
    assert np.array_equal(theta, again)
    assert len(whole) == len(broken)
    for one, other in zip(whole, broken, strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[part], other[part], equal_nan=True) for part in one)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@pytest.mark.parametrize("variant", VARIANTS)
def test_steps_leave_their_state_as_it_was(variant):
    name, settings = VARIANTS[variant]
    learner, (start, data) = as_learner(name, **settings), problem(missing=False)
    fit = learner.bind(start, data)
    state, _ = fit.init(Key.of(3))
    state, _ = fit.step(state)
    before = {part: np.array(value, copy=True) for part, value in pack(state).items()}
    first, _ = fit.step(state)
    assert all(np.array_equal(before[part], value, equal_nan=True) for part, value in pack(state).items())
    second, _ = fit.step(state)
    one, other = pack(first), pack(second)
    assert all(np.array_equal(one[part], other[part], equal_nan=True) for part in one)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_of_other_rows_is_carried_or_refused(name):
    """Chunks: what was learned stays, and the rows of all of them count for a prior."""
    learner, (start, data) = as_learner(name, **SETTINGS.get(name, {})), problem(missing=False)
    other = problem(missing=False)[1].take(np.arange(100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            learner = learner.by_chunks(50)
        except GibbsianError:
            fit = learner.bind(start, data)
            with pytest.raises(GibbsianError, match="needs all rows at once"):
                learner.bind(start, other).carry(fit.step(fit.init(Key.of(0))[0])[0])
            return
        fit, other = learner.bind(start, data), learner.bind(start, other)
        state, _ = fit.step(fit.init(Key.of(0))[0])
        after, info = other.step(other.carry(state))
    assert np.isfinite(info.gradient_norm)
    assert np.abs(other.model(after).theta - fit.model(state).theta).max() < 1.0
