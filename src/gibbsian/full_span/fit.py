"""A whole fit of the full-span model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.full_span.checks import check_callback, check_number
from gibbsian.full_span.dense import Dense
from gibbsian.full_span.greedy import Greedy
from gibbsian.full_span.newton import Newton
from gibbsian.full_span.problem import SpanProblem
from gibbsian.full_span.trace import SpanStep, SpanTrace
from gibbsian.full_span.training import best_so_far
from gibbsian.learners import LearnerState
from gibbsian.models.full_span import FullSpanModel
from gibbsian.models.parameters import check_whole_number

ALGORITHMS: dict[str, type[Greedy] | type[Newton] | type[Dense]] = {"greedy": Greedy, "newton": Newton, "dense": Dense}

Callback = Callable[[int, SpanStep], None]


@dataclass(frozen=True)
class SpanFit:
    """What came out of a fit.

    Parameters
    ----------
    model : FullSpanModel
        The distribution.
    cost : float
        Its cost, TA22 eq. 2.5, and shrinkage where there is some.
    divergence : float
        The part of it that is ``KL(p_d || p_theta)``.
    trace : SpanTrace
        Every step.
    converged : bool
        Whether no move gains epsilon any more.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import fit_full_span
    >>> fit = fit_full_span(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> fit.converged, fit.model.supports
    (True, [(0, 1)])
    """

    model: FullSpanModel
    cost: float
    divergence: float
    trace: SpanTrace
    converged: bool


def fit_full_span(
    states: np.ndarray,
    counts: np.ndarray | Sequence[float],
    cardinalities: Sequence[int],
    *,
    algorithm: str = "greedy",
    epsilon: float = 1e-4,
    dtype: np.dtype | type = np.float64,
    max_steps: int = 100_000,
    callback: Callback | None = None,
    mdl_scale: float = 1.0,
    l1: float = 0.0,
    l2: float = 0.0,
    l2_growth: float = 1.0,
) -> SpanFit:
    """Learn a full-span model from counted states (`counted` makes them of a dataset).

    Parameters
    ----------
    states : (m, n) of int
        Codes 0 to q_i - 1.
    counts : (m,)
        How often each state was seen.
    cardinalities : (n,) of int
        Number of values of each variable.
    algorithm : {"greedy", "newton", "dense"}
        TA22's algorithm; the one with re-fits of all parameters, whose cost is never higher; or all functions
        at once under L2, none selected (`Dense`).
    epsilon : float
        Stop when no move lowers the cost by as much.
    dtype : float64 or float32
        Of the tables; float32 takes half the memory and resolves gains down to 1e-6.
    max_steps : int
        Most steps.
    callback : callable, optional
        Called with the number of each step and its `SpanStep`.
    mdl_scale : float
        Factor on the description lengths: below 1 more functions are taken, at 0 being there costs nothing.
    l1, l2, l2_growth : float
        Shrinkage of the parameters: ``l1 |theta_y| + l2 * l2_growth^(order - 1) * theta_y^2 / 2`` joins the
        cost. Dense fits need l2 above 0, and know neither l1 nor description lengths.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import fit_full_span
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (500, 3))
    >>> x[:, 2] = x[:, 0] ^ x[:, 1]
    >>> fit_full_span(x, np.ones(500), (2, 2, 2), algorithm="newton").model.supports
    [(0, 1, 2)]
    """
    check_algorithm(algorithm)
    check_number("epsilon", epsilon)
    check_callback(callback)
    check_whole_number("max_steps", max_steps)
    problem = SpanProblem.build(
        states, counts, cardinalities, dtype, mdl_scale=mdl_scale, l1=l1, l2=l2, l2_growth=l2_growth
    )
    learner = ALGORITHMS[algorithm](epsilon)
    state, trace, converged = run(learner, learner.init(problem), max_steps=max_steps, callback=callback)
    indices, theta, cost = best_so_far(state)
    shrinks = state.problem.shrinks(indices, theta)
    divergence = cost - float(state.problem.penalties(indices).sum()) - shrinks
    return SpanFit(FullSpanModel(problem.basis, indices, theta), cost, divergence, trace, converged)


def check_algorithm(algorithm: str) -> None:
    """Refuse a name that is not in `ALGORITHMS`.

    Examples
    --------
    >>> from gibbsian.full_span.fit import check_algorithm
    >>> check_algorithm("quick")
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: algorithm='quick' must be one of greedy, newton, dense
    """
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise ArgumentError(f"must be one of {', '.join(ALGORITHMS)}", argument="algorithm", value=algorithm)


def run(
    learner: Greedy | Newton | Dense,
    state: LearnerState,
    trace: SpanTrace | None = None,
    *,
    max_steps: int = 100_000,
    callback: Callback | None = None,
) -> tuple[LearnerState, SpanTrace, bool]:
    """Take steps until nothing gains any more, or the trace has `max_steps` of them.

    Returns
    -------
    state : LearnerState
        After the last step.
    trace : SpanTrace
        Every step, also those of the trace that was given.
    converged : bool
        Whether nothing gains any more.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import Greedy, SpanProblem, run
    >>> problem = SpanProblem.build(np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2))
    >>> state, trace, converged = run(Greedy(), Greedy().init(problem))
    >>> len(trace), converged
    (1, True)
    """
    check_whole_number("max_steps", max_steps)
    trace = SpanTrace() if trace is None else trace
    while len(trace) < max_steps:
        state, step = learner.step(state)
        if step.kind == "stop":
            return state, trace, True
        trace.steps.append(step)
        if callback is not None:
            callback(len(trace), step)
    return state, trace, False
