"""Does the maximum exist? An exact answer by linear programming, for small problems.

The likelihood of an exponential family has a finite maximum exactly when the data's mean statistics lie in the
relative interior of the set of all mean statistics (Barndorff-Nielsen 1978); the pseudolikelihood has one exactly
when no direction has conditional costs on the data that are all zero or positive and not all zero, as in logistic
regression (Albert and Anderson 1984). Either way a direction that breaks the condition is found, or excluded, by
one linear programme.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers, States
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.inference.log_tables import digits
from gibbsian.models.base import DiscreteFamily, Model

D = TypeVar("D", bound=DiscreteFamily)

# Costs are whole numbers and the direction is scaled to length one, so a true one is far above rounding.
TOLERANCE = 1e-6
# Sizes stop growing here, well before a float64 overflows.
LARGEST_EXPONENT = 900.0


def maximum_exists(
    model: Model[D],
    data: Dataset,
    objective: Literal["likelihood", "pseudolikelihood"] = "pseudolikelihood",
    max_size: int = 4_000_000,
    targets: Sequence[int] | Integers | None = None,
) -> bool | None:
    """Return whether the unpenalised objective has a finite maximum on the data.

    Parameters
    ----------
    model : Model
        The model; only its structure counts.
    data : Dataset
        Complete rows of the model's variables.
    objective : {"likelihood", "pseudolikelihood"}
        Which function is maximised.
    max_size : int
        Largest number of entries of the programme's matrix.
    targets : sequence of int, optional
        The columns whose distribution given the others is learned; all by default. Data that are separable in them
        have no finite maximum.

    Returns
    -------
    bool or None
        None when the problem is too large.

    Examples
    --------
    Every pair of values occurs, yet no state has three equal spins: ``x1 x2 + x1 x3 + x2 x3`` is -1 throughout, the
    least it can be.

    >>> import itertools, numpy as np, gibbsian as gb
    >>> from gibbsian.diagnostics.existence import maximum_exists
    >>> states = [x for x in itertools.product([-1, 1], repeat=3) if abs(sum(x)) == 1]
    >>> data = gb.Dataset.read(states)
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3), data.variables))
    >>> maximum_exists(model, data, "likelihood"), maximum_exists(model, data, "pseudolikelihood")
    (False, False)
    """
    if objective not in ("likelihood", "pseudolikelihood"):
        raise ArgumentError(
            "is not known", "use one of likelihood, pseudolikelihood", argument="objective", value=objective
        )
    if data.variables != model.variables:
        raise ArgumentError("the model has other variables than the data, or other scores", "convert the data")
    data.require_complete("maximum_exists")
    if model.variables.real:  # whose states cannot be listed
        return None
    states = data.states[data.weights > 0]
    columns = np.arange(model.n_variables) if targets is None else np.asarray(targets)
    sizes = np.array(model.variables.sizes)[columns]
    n_changes, n_everywhere = float(np.sum(sizes - 1)), float(np.exp2(min(np.log2(sizes).sum(), LARGEST_EXPONENT)))
    given = len(states) if targets is not None else 1
    rows = len(states) * n_changes if objective == "pseudolikelihood" else n_everywhere * given + len(states)
    if rows * model.theta.size > max_size:
        return None
    if objective == "pseudolikelihood":
        return not _separates(_costs(model.family, states, columns, _single_shifts(sizes)))
    if targets is not None:
        return not _separates(_costs(model.family, states, columns, digits(np.arange(1, np.prod(sizes)), sizes)))
    return not _separates(*_faces(model.family, states))


def _single_shifts(sizes: Integers) -> Integers:
    """Return the shifts of one column at a time to each of its other values, one row each."""
    return np.array(
        [
            shift * unit
            for unit, size in zip(np.eye(len(sizes), dtype=np.intp), sizes, strict=True)
            for shift in range(1, size)
        ],
        dtype=np.intp,
    ).reshape(-1, len(sizes))


def _costs(family: DiscreteFamily, states: States, columns: Integers, shifts: Integers | Codes) -> Floats:
    """Return the statistics of each state minus those after shifts of columns: costs, which must not be negative."""
    statistics, sizes = family.statistics(states), np.array(family.variables.sizes)[columns]
    costs = [np.empty((0, family.n_parameters))]
    for shift in shifts:
        changed = states.copy()
        changed[:, columns] = (states[:, columns].astype(np.int64) + shift) % sizes
        costs.append(statistics - family.statistics(changed))
    return np.unique(np.concatenate(costs), axis=0)


def _faces(family: DiscreteFamily, states: States) -> tuple[Floats, Floats]:
    """Return the statistics of one data state minus those of every state, and of every data state.

    The mean lies on a face of the polytope exactly when all data states do: their differences vanish along its normal.
    Differences of states are integers in most models, so nothing is lost to rounding.
    """
    sizes = family.variables.sizes
    reference, every = family.statistics(states[:1]), family.statistics(digits(np.arange(np.prod(sizes)), sizes))
    return reference - every, reference - family.statistics(states[1:])


def _separates(costs: Floats, ties: Floats | None = None) -> bool:
    """Return whether some direction has ``costs @ direction >= 0``, not all zero, and ``ties @ direction == 0``."""
    from scipy.optimize import linprog

    solved = linprog(
        -costs.sum(axis=0) / max(1, len(costs)),
        A_ub=-costs,
        b_ub=np.zeros(len(costs)),
        A_eq=ties,
        b_eq=None if ties is None else np.zeros(len(ties)),
        bounds=(-1, 1),
        method="highs",
    )
    return bool((costs @ solved.x).max(initial=0.0) > TOLERANCE)
