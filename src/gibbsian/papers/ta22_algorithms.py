"""TA22's algorithms 1 to 3 as they are printed beside the library's, and what the lower bound of eq. 2.19 spares."""

from __future__ import annotations

import math
import time
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.numba.span_plain import evaluate_candidates
from gibbsian.data import Dataset
from gibbsian.datasets.ta22 import network_probabilities
from gibbsian.domain import CategoryCoding
from gibbsian.learners import as_learner, run
from gibbsian.learners.span_base import KINDS, uniform_start
from gibbsian.learners.span_greedy import greedy_step
from gibbsian.learners.span_problem import DescriptionLength, SpanProblem
from gibbsian.models import FullSpanModel, SpanBasis
from gibbsian.papers.drawing import lines, panels
from gibbsian.papers.experiment import EXPERIMENTS, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian.papers.tables import Table, with_stderr
from gibbsian.papers.verdicts import at_most, in_every_trial

# -- step by step -----------------------------------------------------------------------------------------------------
SYSTEMS: dict[str, tuple[int, ...]] = {"8 binary variables": (2,) * 8, "2 to 5 values": (3, 2, 4, 5, 2)}
MOVES = ("append", "adjust", "remove")
N_TERMS, N_ROWS, TOLERANCE, MOST_STEPS = 20, 1000, 1e-6, 1000
# what sums of a few hundred numbers of the size of one are known to
ROUNDING = 1e-9


class Printed(NamedTuple):
    """The steps of the printed algorithms: kinds, functions, promised and true changes of the cost; their theta."""

    kinds: list[str]
    functions: list[int]
    promised: list[float]
    costs: list[float]
    theta: np.ndarray


def dual_by_axes(basis: SpanBasis, p: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the dual by the recurrence of eq. 2.9, one variable after the other, and the number of products taken."""
    g, n_products = p.reshape(basis.cardinalities), 0
    for i, q in enumerate(basis.cardinalities):
        g = np.moveaxis(np.tensordot(basis.local_values(i), g, axes=(1, i)), 0, i)
        n_products += basis.size * q
    return np.ascontiguousarray(g).ravel(), n_products


def signs_of(basis: SpanBasis, y: int) -> np.ndarray:
    """Return ``Phi_y(x)`` of all states (eq. 2.1)."""
    return reduce(np.kron, [basis.local_values(i)[digit] for i, digit in enumerate(basis.digits([y])[0])])


def learn_as_printed(basis: SpanBasis, p_data: np.ndarray, n_samples: float) -> Printed:
    """Learn by algorithms 1 to 3: tables of p and of the dual, a scan of all candidates, p updated and normalised."""
    data, theta = dual_by_axes(basis, p_data)[0], np.zeros(basis.size)
    penalties = DescriptionLength.of_samples(basis, n_samples)(basis, np.arange(basis.size))
    p = np.full(basis.size, 1.0 / basis.size)
    found = Printed([], [], [], [_cost(p_data, p, theta, penalties)], theta)
    for _ in range(MOST_STEPS):
        delta, y, value, _ = evaluate_candidates(theta, dual_by_axes(basis, p)[0], data, penalties, True)
        if y < 0 or -delta < TOLERANCE:
            break
        found.kinds.append("append" if theta[y] == 0 else "remove" if value == 0 else "adjust")
        up = np.exp(value - theta[y])  # algorithm 3
        theta[y] = value
        p = p * np.where(signs_of(basis, y) > 0, up, 1.0 / up)
        p /= p.sum()
        found.functions.append(y)
        found.promised.append(delta)
        found.costs.append(_cost(p_data, p, theta, penalties))
    return found


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
        (_same_choices, _same_parameters, _promised_as_defined, _monotone, _recurrence, _products),
        scale=f"two systems, all states with random weights that add up to {N_ROWS}, so that no two functions tie",
    )


def _steps_trial(rng: np.random.Generator) -> Trial:
    found = [_steps_of(SpanBasis(cardinalities), rng) for cardinalities in SYSTEMS.values()]
    return {name: np.array([part[name] for part in found]) for name in found[0]}


def _steps_of(basis: SpanBasis, rng: np.random.Generator) -> Trial:
    """Learn a table of random weights around a distribution with some strong terms by both."""
    used = 1 + rng.choice(basis.size - 1, N_TERMS, replace=False)
    p = FullSpanModel(basis, used, rng.normal(0.0, 0.6, N_TERMS)).probabilities()
    p *= rng.uniform(0.5, 1.5, p.size)
    p /= p.sum()
    printed = learn_as_printed(basis, p, N_ROWS)
    codes = basis.digits(np.arange(basis.size)).astype(np.int8)
    coding = CategoryCoding.of_labels([range(q) for q in basis.cardinalities])
    data = Dataset.read(codes, coding=coding, sample_weight=N_ROWS * p)
    start = FullSpanModel(basis, np.empty(0, np.int64), np.empty(0), data.domain)
    result: Any = run(as_learner("span-greedy", tol=TOLERANCE), start, data, max_iter=MOST_STEPS)
    kinds, functions = (result.trace.column(name).astype(int) for name in ("kind", "index"))
    ours = [(KINDS[kind], y) for kind, y in zip(kinds, functions, strict=True) if KINDS[kind] != "stop"]
    theirs = list(zip(printed.kinds, printed.functions, strict=True))
    theta = np.zeros(basis.size)
    theta[result.model.indices] = result.model.theta
    dual, n_products = dual_by_axes(basis, p)
    return {
        "different": sum(a != b for a, b in zip(ours, theirs, strict=False)) + abs(len(ours) - len(theirs)),
        "moves": np.array([printed.kinds.count(kind) for kind in MOVES]),
        "parameters": np.abs(theta - printed.theta).max(),
        "promised": np.abs(np.diff(printed.costs) - printed.promised).max(),
        "rise": np.diff(printed.costs).max(),
        "recurrence": np.abs(dual - [signs_of(basis, y) @ p for y in range(basis.size)]).max(),
        "products": n_products / basis.size**2,
    }


def _table_of_steps(results: Results) -> Table:
    columns: dict[str, Any] = {"system": list(SYSTEMS)}
    for place, kind in enumerate(MOVES):
        columns |= with_stderr(f"{kind} moves", results["moves"][:, :, place])
    columns["different choices"] = results["different"].sum(axis=0)
    columns["products of eq. 2.9 over those of eq. 2.8"] = results.mean("products")
    return Table("steps of the printed algorithms", columns)


@claim("the library takes the steps of algorithms 1 to 3 as printed, one by one", "TA22 section 2.2", trials=1)
def _same_choices(results: Results) -> Verdict:
    appends, adjusts, removes = results["moves"].sum(axis=(0, 1)).astype(int)
    numbers = (
        f"{appends} appends, {adjusts} adjustments and {removes} removals, {results['different'].sum():.0f} differ"
    )
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


@claim("by |X| sum |X_i| products instead of |X|^2", "TA22 section 2.2.2", trials=1)
def _products(results: Results) -> Verdict:
    sizes = [(sum(cardinalities), math.prod(cardinalities)) for cardinalities in SYSTEMS.values()]
    expected = np.array([total / size for total, size in sizes])
    numbers = ", ".join(f"{total}/{size} of them" for total, size in sizes)
    return Verdict(np.allclose(results["products"], expected), numbers)


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
        (_is_a_bound, _same_winner, _few_logarithms, _less_work, _ten_times),
        trials_of=lambda asked: math.ceil(asked / 5),
        scale=f"one random network of {N_VARIABLES} variables for every 5 trials asked, {LOOKED_AT} steps on each N",
        timed=True,
    )


def _bound_trial(rng: np.random.Generator) -> Trial:
    basis = SpanBasis((2,) * N_VARIABLES)
    p = network_probabilities(N_PARENTS, rng, N_VARIABLES)
    found = [_bound_of(basis, rng.multinomial(n_rows, p / p.sum())) for n_rows in SIZES]
    return {name: np.array([part[name] for part in found]) for name in found[0]}


def _bound_of(basis: SpanBasis, counts: np.ndarray) -> Trial:
    """Evaluate all candidates along a greedy path, with and without the bound; steps after its end have no value."""
    seen = np.flatnonzero(counts)
    problem = SpanProblem.build(basis, basis.digits(seen), counts[seen])
    penalties, point = problem.penalties(np.arange(basis.size)), uniform_start(problem)
    evaluated, seconds = np.full(LOOKED_AT, np.nan), np.zeros(3)
    evaluate_candidates(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2), True)  # compiled before the clock runs
    excess, different = -np.inf, 0
    for step in range(LOOKED_AT):
        theta = np.zeros(basis.size)
        theta[point.indices] = point.theta
        excess = max(excess, _excess_of_bound(point.dual, problem.data_dual))
        winners = []
        for place, bounded in enumerate((True, False)):
            started = time.process_time()
            *winner, n_exact = evaluate_candidates(theta, point.dual, problem.data_dual, penalties, bounded)
            seconds[place] += time.process_time() - started
            winners.append(winner)
            if bounded:
                evaluated[step] = n_exact / (basis.size - 1)
        started = time.process_time()
        problem.scan(point.dual, point.indices)
        seconds[2] += time.process_time() - started
        different += winners[0] != winners[1]
        point, change = greedy_step(problem, point, 1e-4)
        if change.kind == "stop":
            break
    return {"evaluated": evaluated, "seconds": seconds, "excess": excess, "different": different}


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
    return Table(
        "skipping by the lower bound, mean over steps", columns, "times faster than without: processor seconds"
    )


def _faster(results: Results, place: int) -> np.ndarray:
    """Return how many times faster a scan is than one that looks at all candidates."""
    return results["seconds"][:, :, 1] / results["seconds"][:, :, place]


_is_a_bound = claim("the bound lies nowhere above what it bounds", "TA22 eq. 2.19", trials=1)(
    lambda results: Verdict(results["excess"].max() < ROUNDING, f"at most {results['excess'].max():.1e} above")
)


@claim("skipping does not change the winner", "TA22 section 2.2.4", trials=1)
def _same_winner(results: Results) -> Verdict:
    return in_every_trial(
        results["different"] == 0, f"{results.count('evaluated').sum()} evaluations of all candidates"
    )


@claim("nearly all candidates are discarded without logarithms", "TA22 section 2.2.4", trials=1)
def _few_logarithms(results: Results) -> Verdict:
    share = np.nanmean(results["evaluated"], axis=2)
    return in_every_trial(
        share < 0.01, f"logarithms for {share.mean():.1e} of the candidates, at most {share.max():.1e}"
    )


@claim("skipping spares nine tenths of the operations, a logarithm counted as 30", "TA22 footnotes 6 and 7", trials=1)
def _less_work(results: Results) -> Verdict:
    ratio = _work(np.nanmean(results["evaluated"], axis=2))
    return in_every_trial(
        ratio > 10, f"{ratio.min():.1f} to {ratio.max():.1f} times fewer; {BOUND_FLOPS} for the bound"
    )


@claim("skipping makes the evaluation of candidates more than 10 times faster", "TA22 footnote 7", trials=40)
def _ten_times(results: Results) -> Verdict:
    ratio = np.median(_faster(results, 0))
    return Verdict(ratio > 10, f"{ratio:.1f} times in the median")
