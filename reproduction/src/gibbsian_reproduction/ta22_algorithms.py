"""TA22's algorithms 1 to 3 as they are printed beside the library's, and what the lower bound of eq. 2.19 spares."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import reduce
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from gibbsian.learning.span.moves import MoveKind, greedy_step, uniform_start
from gibbsian.learning.span.problem import FunctionCosts, SpanProblem
from gibbsian.models import FullSpanFamily, SpanBasis, Variables
from gibbsian_reproduction.drawing import lines, panels
from gibbsian_reproduction.experiment import EXPERIMENTS, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.kernels.span_plain import evaluate_candidates
from gibbsian_reproduction.systems import dense_theta, stacked
from gibbsian_reproduction.ta22_data import network_probabilities
from gibbsian_reproduction.tables import Table, with_stderr
from gibbsian_reproduction.verdicts import at_most, in_every_trial

# -- step by step -----------------------------------------------------------------------------------------------------
SYSTEMS = {"8 binary variables": Variables.binary(8), "2 to 5 values": Variables.categories((3, 2, 4, 5, 2))}
MOVES = ("append", "adjust", "remove")
N_TERMS, N_ROWS, TOLERANCE, MAX_STEPS = 20, 1000, 1e-6, 1000
# what sums of a few hundred numbers of the size of one are known to
ROUNDING = 1e-9


class Step(NamedTuple):
    """A step of the printed algorithms: what it did, how the cost was to change, and what it then was."""

    kind: str
    function: int
    promised: float
    cost: float


def dual_by_axes(basis: SpanBasis, p: np.ndarray) -> np.ndarray:
    """Return the dual by the recurrence of eq. 2.9, one variable after the other."""
    g = p.reshape(basis.variables.sizes)
    for i in range(g.ndim):
        g = np.moveaxis(np.tensordot(basis.local_values(i), g, axes=(1, i)), 0, i)
    return np.ascontiguousarray(g).ravel()


def signs_of(basis: SpanBasis, y: int) -> np.ndarray:
    """Return ``Phi_y(x)`` of all states (eq. 2.1)."""
    return reduce(np.kron, [basis.local_values(i)[digit] for i, digit in enumerate(basis.digits(np.array([y]))[0])])


def learn_as_printed(basis: SpanBasis, p_data: np.ndarray, n_samples: float) -> tuple[list[Step], np.ndarray]:
    """Learn by algorithms 1 to 3: tables of p and of the dual, a scan of all candidates, p updated and normalised."""
    data, theta = dual_by_axes(basis, p_data), np.zeros(basis.size)
    penalties = FunctionCosts.of_samples(basis, n_samples).lengths(np.arange(basis.size))
    p = np.full(basis.size, 1.0 / basis.size)
    steps = [Step("start", 0, 0.0, _cost(p_data, p, theta, penalties))]
    for _ in range(MAX_STEPS):
        delta, y, value, _ = evaluate_candidates(theta, dual_by_axes(basis, p), data, penalties, True)
        if y < 0 or -delta < TOLERANCE:
            break
        kind = "append" if theta[y] == 0 else "remove" if value == 0 else "adjust"
        up = np.exp(value - theta[y])  # algorithm 3
        theta[y] = value
        p = p * np.where(signs_of(basis, y) > 0, up, 1.0 / up)
        p /= p.sum()
        steps.append(Step(kind, y, delta, _cost(p_data, p, theta, penalties)))
    return steps, theta


def _cost(p_data: np.ndarray, p: np.ndarray, theta: np.ndarray, penalties: np.ndarray) -> float:
    """Return eq. 2.5 from its definition."""
    return float(p_data @ np.log(p_data / p) + penalties[theta != 0].sum())


@EXPERIMENTS.register("ta22-algorithms")
def algorithms() -> Experiment:
    """Return TA22's algorithms 1 to 3 as printed beside the library's, step by step."""
    return Experiment(
        "TA22",
        "Algorithms 1-3",
        "the algorithms as printed beside the library's, step by step",
        _steps_trial,
        (_table_of_steps,),
        None,
        (_same_choices, _same_parameters, _promised_as_defined, _monotone, _recurrence),
        scale=f"two systems, all states with random weights that add up to {N_ROWS}, so that no two functions tie",
    )


def _steps_trial(rng: np.random.Generator) -> Trial:
    return stacked(_steps_of(SpanBasis(variables), rng) for variables in SYSTEMS.values())


def _steps_of(basis: SpanBasis, rng: np.random.Generator) -> Trial:
    """Learn a table of random weights around a distribution with some strong terms by both."""
    used = 1 + rng.choice(basis.size - 1, N_TERMS, replace=False)
    p = FullSpanFamily(basis, used).probabilities(rng.normal(0.0, 0.6, N_TERMS)).values
    # every state is seen: as printed, a function that is constant in the rows has no finite parameter (ours: 1 - 1/N)
    p *= rng.uniform(0.5, 1.5, p.size)
    p /= p.sum()
    steps, printed = learn_as_printed(basis, p, N_ROWS)
    problem = SpanProblem.build(basis, basis.digits(np.arange(basis.size)), N_ROWS * p)
    point, ours = uniform_start(problem), []
    while (taken := greedy_step(problem, point, TOLERANCE))[1].kind is not MoveKind.STOP:
        point, move = taken
        ours.append((move.kind.name.lower(), move.function))
    theirs, changes = [step[:2] for step in steps[1:]], np.diff([step.cost for step in steps])
    return {
        "different": sum(a != b for a, b in zip_longest(ours, theirs)),
        "moves": [[kind for kind, _ in theirs].count(kind) for kind in MOVES],
        "parameters": np.abs(dense_theta(basis, point.indices, point.theta) - printed).max(),
        "promised": np.abs(changes - [step.promised for step in steps[1:]]).max(),
        "rise": changes.max(),
        "recurrence": np.abs(dual_by_axes(basis, p) - [signs_of(basis, y) @ p for y in range(basis.size)]).max(),
    }


def _table_of_steps(results: Results) -> Table:
    columns: dict[str, Any] = {"system": list(SYSTEMS)}
    for place, kind in enumerate(MOVES):
        columns |= with_stderr(f"{kind} moves", results["moves"][:, :, place])
    columns["different choices"] = results["different"].sum(axis=0)
    return Table("steps of the printed algorithms", columns)


@claim("the library takes the steps of algorithms 1 to 3 as printed, one by one", "TA22 section 2.2", trials=1)
def _same_choices(results: Results) -> Verdict:
    appends, adjusts, removes = results["moves"].sum(axis=(0, 1)).astype(int)
    numbers = f"{appends} appends, {adjusts} adjustments, {removes} removals, {results['different'].sum():.0f} differ"
    return in_every_trial(results["different"] == 0, numbers)


_same_parameters = claim("and ends at the same parameters", "TA22 section 2.2", trials=1)(
    at_most("parameters", ROUNDING, "largest difference")
)
_promised_as_defined = claim("the change of the cost is known in O(1), exactly", "TA22 eqs. 2.17 and 2.18", trials=1)(
    at_most("promised", ROUNDING, "largest difference from the definition")
)
_recurrence = claim("the dual follows one variable after the other", "TA22 eqs. 2.8 and 2.9", trials=1)(
    at_most("recurrence", ROUNDING, "largest difference from the sums")
)


@claim("the cost falls with every step", "TA22 section 2.2", trials=1)
def _monotone(results: Results) -> Verdict:
    return in_every_trial(results["rise"] < 0, f"it falls by at least {-results['rise'].max():.1e}")


# -- what the lower bound spares --------------------------------------------------------------------------------------
N_VARIABLES, N_PARENTS = 16, 3
SIZES = (1_000, 100_000)
# steps of a path at which candidates are evaluated, with and without the bound
LOOKED_AT = 40
# footnote 6: a logarithm costs as much as so many additions or multiplications
LOGARITHM = 30
# flops of the bound, and of eq. 2.18 besides its two logarithms
BOUND_FLOPS, CHANGE_FLOPS = 7, 15


@EXPERIMENTS.register("ta22-bound")
def lower_bound() -> Experiment:
    """Return TA22 footnote 7: what skipping candidates by their lower bound spares."""
    by_size = [Series("evaluated", f"N = {n:,}", method=f"N = {n}", place=(k,)) for k, n in enumerate(SIZES)]
    shares = lines(range(1, LOOKED_AT + 1), by_size, "step", "share of candidates with logarithms", log="y")
    return Experiment(
        "TA22",
        "Eq. 2.19, footnote 7",
        "candidates skipped by their lower bound",
        _bound_trial,
        (_table_of_bounds,),
        panels(shares),
        (_is_a_bound, _same_winner, _less_work, _ten_times),
        trials_of=lambda asked: math.ceil(asked / 5),
        scale=f"one random network of {N_VARIABLES} variables for every 5 trials asked, {LOOKED_AT} steps on each N",
        timed=True,
    )


def _bound_trial(rng: np.random.Generator) -> Trial:
    basis = SpanBasis(Variables.binary(N_VARIABLES))
    p = network_probabilities(N_PARENTS, rng, N_VARIABLES)
    return stacked(_bound_of(basis, rng.multinomial(n_rows, p / p.sum())) for n_rows in SIZES)


def _bound_of(basis: SpanBasis, counts: np.ndarray) -> Trial:
    """Evaluate all candidates along a greedy path, with and without the bound; steps after its end have no value."""
    seen = np.flatnonzero(counts)
    problem = SpanProblem.build(basis, basis.digits(seen), counts[seen])
    penalties, point = problem.lengths(np.arange(basis.size)), uniform_start(problem)
    evaluated, seconds, excess, different = np.full(LOOKED_AT, np.nan), np.zeros(3), -np.inf, 0
    evaluate_candidates(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2), True)  # compiled before the clock runs
    for step in range(LOOKED_AT):
        theta = dense_theta(basis, point.indices, point.theta)
        tables = theta, point.dual, problem.data_dual, penalties
        (*winner, n_exact), seconds[0] = _timed(seconds[0], evaluate_candidates, *tables, True)
        (*other, _), seconds[1] = _timed(seconds[1], evaluate_candidates, *tables, False)
        _, seconds[2] = _timed(seconds[2], problem.scan, point.dual, point.indices)
        evaluated[step] = n_exact / (basis.size - 1)
        excess = max(excess, _excess_of_bound(point.dual, problem.data_dual))
        different += winner != other
        point, move = greedy_step(problem, point, 1e-4)
        if move.kind is MoveKind.STOP:
            break
    return {"evaluated": evaluated, "seconds": seconds, "excess": excess, "different": different}


def _timed(seconds: float, work: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """Return what some work gives, and the seconds it took on top of earlier ones."""
    started = time.process_time()
    return work(*args), seconds + time.process_time() - started


def _excess_of_bound(dual: np.ndarray, data: np.ndarray) -> float:
    """Return by how much the lower bound of eq. 2.19 lies above eq. 2.18 at most: nothing, but for rounding."""
    inside = (np.abs(dual) < 1) & (np.abs(data) < 1)
    now, mean = dual[inside], data[inside]
    change = 0.5 * (1 + mean) * np.log((1 + now) / (1 + mean)) + 0.5 * (1 - mean) * np.log((1 - now) / (1 - mean))
    return float((-np.square(now - mean) / (1 - np.square(now)) - change).max())


def _work(share: np.ndarray) -> np.ndarray:
    """Return how many times fewer operations it takes to evaluate a share of the candidates, all bounds included."""
    whole = CHANGE_FLOPS + 2 * LOGARITHM
    return whole / (BOUND_FLOPS + share * whole)


def _table_of_bounds(results: Results) -> Table:
    share = np.nanmean(results["evaluated"], axis=2)
    columns = {"N": SIZES} | with_stderr("share evaluated", share) | with_stderr("times fewer operations", _work(share))
    columns |= with_stderr("times faster", _faster(results, 0)) | with_stderr("the library's scan", _faster(results, 2))
    return Table("skipping by the lower bound, mean over steps", columns, "faster in processor seconds than without")


def _faster(results: Results, place: int) -> np.ndarray:
    """Return how many times faster a scan is than one that looks at all candidates."""
    return results["seconds"][:, :, 1] / results["seconds"][:, :, place]


_is_a_bound = claim("the bound lies nowhere above what it bounds", "TA22 eq. 2.19", trials=1)(
    lambda results: Verdict(results["excess"].max() < ROUNDING, f"at most {results['excess'].max():.1e} above")
)


@claim("skipping does not change the winner", "TA22 section 2.2.4", trials=1)
def _same_winner(results: Results) -> Verdict:
    n_scans = results.count("evaluated").sum()
    return in_every_trial(results["different"] == 0, f"{n_scans} scans of {2**N_VARIABLES:,} candidates")


@claim("skipping spares nine tenths of the operations, a logarithm counted as 30", "TA22 footnotes 6 and 7", trials=1)
def _less_work(results: Results) -> Verdict:
    share = np.nanmean(results["evaluated"], axis=2)
    numbers = (
        f"logarithms for {share.max():.1e} of the candidates at most, {_work(share).min():.1f} times fewer operations"
    )
    return in_every_trial(_work(share) > 10, numbers)


@claim("skipping makes the evaluation of candidates more than 10 times faster", "TA22 footnote 7", trials=40)
def _ten_times(results: Results) -> Verdict:
    ratio = np.median(_faster(results, 0))
    return Verdict(ratio > 10, f"{ratio:.1f} times in the median")
