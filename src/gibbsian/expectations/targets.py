"""The expectation of any function of a few variables."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterable

import numpy as np

from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.estimate import Estimate
from gibbsian.expectations.regions import Target, as_rules
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.table_regions import Contraction, TablePlan
from gibbsian.inference.engine import check_nodes
from gibbsian.models.base import Array, ExponentialFamily, Family, Model

# Combinations of values at which the function is evaluated.
MAX_COMBINATIONS = 2**16


def expect_of(
    model: Model[ExponentialFamily],
    function: Callable[..., object],
    nodes: int | Iterable[int],
    samples: object,
    region: object = 1,
) -> Estimate:
    """Return the expectation of a function of a few variables by spatial Monte Carlo integration (YU20 eq. 8).

    Parameters
    ----------
    model : Model
        The distribution.
    function : callable
        Takes the values of `nodes`, one argument each: their scores, or the codes of categories without
        any. Returns a number, or an array of several. It is called once for each combination of values.
    nodes : int or iterable of int
        The variables.
    samples : Samples, Dataset or ndarray
        See `spatial_statistics`: arrays hold codes.
    region : int, str, callable, mapping, rule, or list of these
        See `plan_regions`. Of several regions in a list the answers are combined by generalised least squares.

    Returns
    -------
    Estimate
        Mean and standard error, in the shape of what the function returns.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(1, 3), [0.0, 0.0, 0.0], [0.5, 0.5])
    >>> samples = gb.inference.exact(model).sample(50, np.random.default_rng(0))
    >>> estimate = gb.expectations.expect_of(model, lambda a, c: a == c, [0, 2], samples, region=2)
    >>> bool(np.isclose(estimate.value, (1 + np.tanh(0.5) ** 2) / 2)), float(estimate.stderr)   # the region is all
    (True, 0.0)
    """
    target = _checked_target(nodes, model.n_variables)
    taken = Samples.of(samples)
    taken.check(model)
    table = _evaluated(model, function, target)
    rows = table.reshape(len(table), -1)
    contraction = Contraction((target,), (np.arange(rows.shape[1]),), (rows.T,), rows.shape[1])
    estimate = TablePlan.of(model, as_rules(region), contraction).statistics(model, taken)
    shape = table.shape[1:]
    return Estimate(estimate.value.reshape(shape), estimate.stderr.reshape(shape))


def _evaluated(model: Model[Family], function: Callable[..., object], target: Target) -> Array:
    """The function at each combination of values, the last variable changing fastest."""
    values = _values(model)
    n_combinations = math.prod(len(values[node]) for node in target)
    if n_combinations > MAX_COMBINATIONS:
        raise TooExpensiveError(
            f"the target {target} has {n_combinations:,} combinations of values", f"use at most {MAX_COMBINATIONS:,}"
        )
    _check_callable(function, len(target))
    results = [function(*combination) for combination in itertools.product(*(values[node] for node in target))]
    try:
        table = np.array(results)
    except ValueError:  # ragged
        table = np.empty(0, object)
    if table.dtype.kind not in "biuf":
        raise ArgumentError(
            f"function returned {results[0]!r} for the first values",
            "it must return a number, or as many for all values",
        )
    return table.astype(np.float64)


def _check_callable(function: object, n_arguments: int) -> None:
    if not callable(function):
        raise ArgumentError(
            "cannot be called", "give a function of the values of nodes", argument="function", value=function
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some builtins have none
        return
    try:
        signature.bind(*range(n_arguments))
    except TypeError:
        raise ArgumentError(
            f"function takes {signature} but there are {n_arguments} nodes", "it must take one value of each"
        ) from None


def _checked_target(nodes: object, n_variables: int) -> Target:
    if isinstance(nodes, int | np.integer):
        nodes = [nodes]
    if not isinstance(nodes, Iterable):
        raise ArgumentError("must be the number of a variable, or several", argument="nodes", value=nodes)
    target = tuple(check_nodes(nodes, n_variables).tolist())
    if not target:
        raise ArgumentError("nodes is empty", "name at least one variable")
    return target


def _values(model: Model[Family]) -> list[list[object]]:
    """What the function is given for each value of each variable."""
    if model.variables.scores is None:
        return [list(range(size)) for size in model.variables.sizes]
    return [list(scores) for scores in model.variables.scores]
