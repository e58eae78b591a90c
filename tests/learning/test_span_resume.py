"""Fits of the full span go on to the same bits from any step: a crash after every one of them changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.learning import SpanHidden
from gibbsian.learning.optimizers import Converged
from gibbsian.rng import Key
from gibbsian.storage import pack, unpack
from span_fits import counted, learner_of, span_model

SETTINGS = {
    "greedy": {"mdl_scale": 0.3},
    "newton": {"mdl_scale": 0.3, "tol": 1e-5},
    "l1": {"l1": 0.01},
    "dense": {"l2": 0.01, "l2_growth": 2.0},
}
SYSTEMS = {"walsh": (2,) * 6, "mixed": (3, 2, 4)}


def rows_of(cardinalities, rng, missing="none", n_rows=150):
    """Rows with dependent columns: complete, some with missing cells, or all."""
    rows = (rng.random((n_rows, len(cardinalities))) ** 1.5 * cardinalities).astype(int)
    rows[: n_rows // 2, 1] = rows[: n_rows // 2, 0] % cardinalities[1]
    holes = rng.random(rows.shape) < (0.0 if missing == "none" else 0.15)
    holes[holes.all(axis=1)] = False
    if missing == "everywhere":
        holes[~holes.any(axis=1), 0] = True
    return counted(rows, np.ones(n_rows), cardinalities, holes)


def course(learner, model, data, crashes, most=200):
    """The steps and the end of a fit; where it crashes, every step is taken by a new process from what was saved."""
    fit = learner.bind(model, data)
    state, info = fit.init(Key.of(3))
    steps = []
    while not isinstance(info.outcome, Converged) and len(steps) < most:
        if crashes:
            saved = {name: np.array(array, copy=True) for name, array in pack(state).items()}
            fit = learner.bind(model, data)
            state = unpack(fit.init(Key.of(3))[0], saved)
        state, info = fit.step(state)
        steps.append((info.value, info.outcome, dict(info.metrics)))
    end = fit.model(state)
    return steps, end.family.functions.tolist(), end.theta.tobytes()


@pytest.mark.parametrize("missing", ["none", "some", "everywhere"])
@pytest.mark.parametrize("start", ["uniform", "functions"])
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_a_crash_after_every_step_changes_no_bit(algorithm, system, start, missing, rng):
    cardinalities = SYSTEMS[system]
    learner, data = learner_of(algorithm, **SETTINGS[algorithm]), rows_of(cardinalities, rng, missing)
    model = span_model(cardinalities, *(([1, 3, 5], [0.3, -0.2, 0.1]) if start == "functions" else ()))
    whole = course(learner, model, data, crashes=False)
    n_fills = sum(step[2]["kind"] == 8 for step in whole[0])
    assert len(whole[0]) > 1
    assert (n_fills > 1) == (missing != "none")
    assert course(learner, model, data, crashes=True) == whole


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_crash_between_refreshed_duals_changes_no_bit(dtype, rng, monkeypatch):
    """The dual that many moves have changed in place is saved as it is, rounding errors and all."""
    monkeypatch.setattr("gibbsian.learning.span.moves.REFRESH_EVERY", {np.dtype(dtype): 7})
    learner, data = learner_of("greedy", tol=1e-5, mdl_scale=0.1, dtype=dtype), rows_of((2,) * 8, rng)
    assert course(learner, span_model((2,) * 8), data, True) == course(learner, span_model((2,) * 8), data, False)


@pytest.mark.parametrize("missing", ["none", "some"])
@pytest.mark.parametrize("hidden", [(2,), (2, 3)], ids=str)
@pytest.mark.parametrize("algorithm", SETTINGS)
def test_a_crash_after_every_round_changes_no_bit(algorithm, hidden, missing, rng):
    learner = SpanHidden(learner_of(algorithm, **SETTINGS[algorithm]), tol=1e-4)
    data, model = rows_of((2,) * 4, rng, missing), span_model((*(2,) * 4, *hidden), n_hidden=len(hidden))
    whole = course(learner, model, data, crashes=False, most=25)
    assert len(whole[0]) > 2
    assert course(learner, model, data, crashes=True, most=25) == whole


def test_a_fit_goes_on_from_saved_states_in_any_order(rng):
    """What cells were filled by is looked up in the state, not in what was done last."""
    learner, data, model = learner_of("l1"), rows_of((2,) * 6, rng, "some"), span_model((2,) * 6)
    fit = learner.bind(model, data)
    state, info = fit.init(Key.of(0))
    saved, values = [], []
    for _ in range(12):
        saved.append({name: np.array(array, copy=True) for name, array in pack(state).items()})
        state, info = fit.step(state)
        values.append(info.value)
    template = fit.init(Key.of(0))[0]
    order = rng.permutation(12)
    again = {k: fit.step(unpack(template, saved[k]))[1].value for k in order.tolist()}
    assert [again[k] for k in range(12)] == values
