"""L1 paths with the extended Bayesian information criterion (Foygel and Drton 2010; van Borkulo et al. 2014)."""

from __future__ import annotations

from functools import partial
from typing import Literal, Unpack

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.learning.nodewise import LOSSES, directed_pairs
from gibbsian.learning.objectives import Function
from gibbsian.models.conditionals import Pairs, WeightedRows, pairs_by_block
from gibbsian.progress import counted
from gibbsian.startup import pandas
from gibbsian.structure.problem import Options, Problem, StructureResult, combine, minimise

# A fit whose gradient is g short of the maximum loses about N g^2 in the log-likelihood: at this over sqrt(N) nothing
# that matters to the criterion. Where no finite maximum exists, this is where the walk to infinity ends.
CRITERION_GRADIENT = 1e-3


def l1_ebic(
    X: object,
    *,
    rule: Literal["and", "or"] = "and",
    gamma: float = 0.25,
    n_penalties: int = 40,
    ratio: float = 0.01,
    relaxed: bool = True,
    tol: float = 1e-6,
    **options: Unpack[Options],
) -> StructureResult:
    """Choose each variable's neighbours by its own path of L1-penalised logistic regressions.

    Every variable has its own penalties, from the smallest at which all its couplings vanish down to `ratio` times
    that, and takes the one with the smallest ``-2 ll + k log N + 2 gamma k log(n - 1)``, with ll the conditional
    log-likelihood of all rows and k the number of neighbours. All variables are solved together.

    Parameters
    ----------
    X : array, frame, path or Dataset
        Complete rows.
    rule : {"and", "or"}
        Keep an edge when both of its variables chose it, or when either did.
    gamma : float
        Weight of the number of possible graphs; 0 is the plain BIC.
    n_penalties, ratio
        Length of the paths, and their last penalty as a share of the first.
    relaxed : bool
        Take ll where it is largest on the chosen neighbours, as the criterion is defined. ``False`` takes it at the
        penalised estimate, as IsingFit does; shrinkage then favours small penalties and superfluous edges.
    tol : float
        Gradient at which each fit stops.
    **options
        As in `learn_structure`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> settings = {"n_penalties": 12, "ratio": 0.1, "l2": 0.01}
    >>> wide, narrow = (gb.structure.l1_ebic(votes, rule=rule, **settings).graph for rule in ("or", "and"))
    >>> wide.n_edges > narrow.n_edges
    True
    """
    _check_path(gamma, n_penalties, ratio)
    problem = Problem.read(X, **options)
    problem.check(l1=1.0)
    pairs, theta = directed_pairs(problem.independent())
    function = LOSSES["rple"](pairs, problem.spins)
    largest = largest_penalties(problem)
    n_biases, owner = pairs.n_biases, pairs.owner
    refitted, accuracy = theta, max(tol, CRITERION_GRADIENT / np.sqrt(problem.spins.total_weight))
    steps = []
    for scale in counted(np.geomspace(1.0, ratio, n_penalties), "penalties", n_penalties):
        penalties = scale * largest
        theta = minimise(function, theta, np.where(pairs.penalised, penalties[owner], 0.0), tol=tol)
        refitted = _relax(function, theta, refitted, pairs.penalised, accuracy) if relaxed else theta
        present = theta[n_biases:] != 0
        degrees = np.bincount(owner[n_biases:], present, minlength=largest.size)
        log_likelihoods = -problem.spins.total_weight * node_losses(pairs, problem.spins, refitted)
        steps.append((penalties, degrees, ebic(log_likelihoods, degrees, problem.spins, gamma), present))
    penalties, degrees, criteria, present = (np.array(column) for column in zip(*steps, strict=True))
    best = criteria.argmin(axis=0)
    chosen = present[best[owner[n_biases:]], np.arange(present.shape[1])]
    forward, backward = np.split(chosen, 2)
    path = _nodewise_table(problem.data.names, penalties, degrees, criteria, best)
    return problem.answer(combine(forward, backward, rule), path, "l1-ebic")


def largest_penalties(problem: Problem) -> Floats:
    """Return, for each variable, the smallest L1 penalty at which all its couplings vanish.

    Without couplings the field of variable u is ``atanh(mean)``, and the slope of its loss along a coupling is then
    minus the covariance of the two spins.
    """
    largest, covariances = np.zeros(problem.candidates.n_nodes), np.abs(problem.covariances())
    for ends in problem.candidates.edges.T:
        np.maximum.at(largest, ends, covariances)
    return largest


def node_losses(pairs: Pairs, data: Dataset, theta: Floats) -> Floats:
    """Return minus the mean conditional log-likelihood of each variable."""
    losses: Floats = data.mean(partial(_losses_in, pairs, theta))
    return losses


def _losses_in(pairs: Pairs, theta: Floats, data: Dataset) -> Floats:
    bound = pairs_by_block(pairs, WeightedRows.of(data.states, data.weights, by_row=True))
    blocks = bound.costs_by_block(theta)
    losses = (bound.weights[rows] @ np.logaddexp(0.0, -costs) for rows, _, costs in blocks)
    return sum(losses, np.zeros(pairs.graph.n_nodes))


def ebic(log_likelihood: Floats, n_parameters: Integers, data: Dataset, gamma: float) -> Floats:
    """Return ``-2 ll + k log N + 2 gamma k log(n - 1)``, N the sum of the weights."""
    price = np.log(data.total_weight) + 2.0 * gamma * np.log(data.n_variables - 1)
    criterion: Floats = -2.0 * log_likelihood + n_parameters * price
    return criterion


def _relax(function: Function, theta: Floats, last: Floats, penalised: Mask, tol: float) -> Floats:
    """Return the unpenalised minimum over the nonzero parameters; `last` is the minimum at the previous penalty."""
    present = (theta != 0) | ~penalised
    if np.array_equal(present, (last != 0) | ~penalised):
        return last

    def widen(part: Floats) -> Floats:
        full = np.zeros_like(theta)
        full[present] = part
        return full

    def restricted(part: Floats) -> tuple[float, Floats]:
        value, gradient = function(widen(part))
        return value, gradient[present]

    start = np.where(last != 0, last, theta)
    return widen(minimise(restricted, start[present], np.zeros(present.sum()), tol=tol))


def _check_path(gamma: float, n_penalties: int, ratio: float) -> None:
    if not gamma >= 0:
        raise ArgumentError("must be zero or positive", argument="gamma", value=gamma)
    if n_penalties < 2:
        raise ArgumentError("must be at least 2", argument="n_penalties", value=n_penalties)
    if not 0 < ratio < 1:
        raise ArgumentError("must lie between 0 and 1", argument="ratio", value=ratio)


def _nodewise_table(
    names: tuple[str, ...], penalties: Floats, degrees: Integers, criteria: Floats, best: Integers
) -> pandas.DataFrame:
    """Return one row per variable and penalty."""
    n_penalties = len(penalties)
    return pandas.DataFrame(
        {
            "variable": np.repeat(np.array(names, dtype=object), n_penalties),
            "l1": penalties.T.ravel(),
            "n_neighbours": degrees.T.ravel().astype(np.int64),
            "ebic": criteria.T.ravel(),
            "chosen": (np.arange(n_penalties) == best[:, None]).ravel(),
        }
    )
