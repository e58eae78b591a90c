"""Y18 theorems 1 and 2: how the estimates of E[x_i x_j] that MPLE and 1-SMCI rest on scatter around the truth.

All 2^16 states are listed, so that variances are exact; samples of the estimates then show what was proved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gibbsian.models import Model, PairwiseFamily
from gibbsian_reproduction.drawing import INSIDE, Figure, label_axes, legend, lines, method_style
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.systems import all_states, distribution_of
from gibbsian_reproduction.tables import Table, mean_columns, with_stderr
from gibbsian_reproduction.y18 import GRID, draw_network

SOURCE = "Y18 section 4.1"
LABELS = {"mple": "MPLE", "1-smci": "1-SMCI"}
# data sets of N_ROWS rows whose estimates give the measured variances
N_ROWS, N_SETS = 100, 200
# rows in a data set, and how many data sets there are, for the probabilities of theorem 2; one row is exact
SIZES, SETS = (1, 10, 100, 1000), (0, 20_000, 10_000, 1000)
# epsilon of theorem 2, in standard deviations of the MPLE estimate
WIDTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0)
# a difference of probabilities this many standard errors below zero is not chance, among the thousands looked at
BEYOND_CHANCE, CERTAIN = 5.0, 1e6


class Estimators(NamedTuple):
    """What one row adds to the estimates of each edge, for all states, with their probabilities and the truth."""

    probabilities: np.ndarray
    truth: np.ndarray
    mple: np.ndarray
    smci: np.ndarray


def estimators_of(network: Model[PairwiseFamily]) -> Estimators:
    """List rho^MPLE and rho^1SMCI (below Y18 eq. 29) of every edge at every state, one row for each edge."""
    states, graph = all_states(network.n_variables), network.family.graph
    probabilities, spins = distribution_of(network, states), 2.0 * states.T - 1.0
    couplings, (i, j) = network.parts.couplings[:, None], graph.edges.T
    fields = graph.matrix(couplings[:, 0]) @ spins
    means = np.tanh(fields)
    mple = 0.5 * (spins[j] * means[i] + spins[i] * means[j])
    first, second = np.tanh(fields[i] - couplings * spins[j]), np.tanh(fields[j] - couplings * spins[i])
    product, own = first * second, np.tanh(couplings)
    smci = (product + own) / (1.0 + product * own)  # tanh(atanh(product) + w), eq. 25
    return Estimators(probabilities, (spins[i] * spins[j]) @ probabilities, mple, smci)


def exact_variances(probabilities: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the variance of each row of values: N times Y18 eq. 30 and 31."""
    centred = values - (values @ probabilities)[:, None]
    return (centred * centred) @ probabilities


# -- theorem 1 --------------------------------------------------------------------------------------------------------
@EXPERIMENTS.register("y18-theorem1")
def theorem_1() -> Experiment:
    """Return Y18 theorem 1: the variance of the 1-SMCI estimate is never the larger one."""
    return Experiment(
        "Y18",
        "Theorem 1",
        "variances of the MPLE and 1-SMCI estimates of E[x_i x_j]",
        _variance_trial,
        (_table_of_variances,),
        _draw_variances,
        (_variances_ordered, _measured_ordered, _unbiased, _measured_as_exact),
        scale=f"a network with its 24 edges, {N_SETS} data sets of {N_ROWS} rows",
    )


def _variance_trial(rng: np.random.Generator) -> Trial:
    found = estimators_of(draw_network(rng))
    drawn = rng.choice(len(found.probabilities), (N_SETS, N_ROWS), p=found.probabilities)
    result: Trial = {}
    for name, values in (("mple", found.mple), ("1-smci", found.smci)):
        result[name] = exact_variances(found.probabilities, values)
        result[f"{name} measured"] = N_ROWS * np.array([edge[drawn].mean(axis=1).var(ddof=1) for edge in values])
        result[f"{name} bias"] = np.abs(values @ found.probabilities - found.truth).max()
    return result


def _table_of_variances(results: Results) -> Table:
    rows: list[dict[str, Any]] = [
        {"estimate": label}
        | with_stderr("N v (exact)", results[name].mean(axis=1))
        | with_stderr("N v (measured)", results[f"{name} measured"].mean(axis=1))
        for name, label in LABELS.items()
    ]
    return Table("variance of one row's estimate, mean over edges and networks", rows)


def _draw_variances(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    style = method_style("1-smci") | {"linestyle": "none", "markersize": 2.5, "alpha": 0.5}
    axes.plot(results["mple"].ravel(), results["1-smci"].ravel(), label="edges", **style)
    ends = [float(results["1-smci"].min()), float(results["mple"].max())]
    axes.plot(ends, ends, color="0.4", linewidth=1.0, label="equal")
    label_axes(axes, "N v of MPLE", "N v of 1-SMCI")
    legend(axes)


@claim("v of 1-SMCI is never above that of MPLE (exact)", SOURCE, trials=1)
def _variances_ordered(results: Results) -> Verdict:
    ratios = results["mple"] / results["1-smci"]
    count = int((ratios >= 1.0).sum())
    times = f"v of MPLE is {ratios.min():.2f} to {ratios.max():.0f} times"
    return Verdict(count == ratios.size, f"{count} of {ratios.size} edges; {times}")


@claim(f"so are the variances measured at N = {N_ROWS}", SOURCE, trials=2)
def _measured_ordered(results: Results) -> Verdict:
    below = results["1-smci measured"] <= results["mple measured"]
    return Verdict(below.all(), f"{int(below.sum())} of {below.size} edges")


@claim("both estimates have the true mean", SOURCE, trials=1)
def _unbiased(results: Results) -> Verdict:
    largest = max(results["mple bias"].max(), results["1-smci bias"].max())
    return Verdict(largest < 1e-12, f"largest difference over all edges {largest:.1g}")


@claim("measured variances are the exact ones", SOURCE, trials=4)
def _measured_as_exact(results: Results) -> Verdict:
    numbers, holds = [], True
    for name in LABELS:
        ratios = (results[f"{name} measured"] / results[name]).mean(axis=1)
        # edges of one network share their data sets: networks are the independent ones, and few of them show too
        # small a spread by chance, so the error is at least that of as many edges whose data sets were their own
        least = np.sqrt(2.0 / N_SETS / results[name].size)
        error = max(ratios.std(ddof=1) / np.sqrt(ratios.size), least) if ratios.size > 1 else 2.0 * least
        holds &= bool(abs(ratios.mean() - 1.0) < 5.0 * error)
        numbers.append(f"{name} {ratios.mean():.3f} +- {error:.3f}")
    return Verdict(holds, f"measured over exact: {', '.join(numbers)}")


# -- theorem 2 --------------------------------------------------------------------------------------------------------
@EXPERIMENTS.register("y18-theorem2")
def theorem_2() -> Experiment:
    """Return Y18 theorem 2: for N large the gradient of 1-SMCI is within epsilon of the exact one more probably."""
    safe_from = (20, 20, 20, 2)
    text = "P(|e| <= eps) of 1-SMCI is not below that of MPLE, N = {}"
    return Experiment(
        "Y18",
        "Theorem 2",
        "probability that the error of a gradient is within epsilon",
        _probability_trial,
        (_table_of_probabilities,),
        _draw_probabilities,
        tuple(Claim(text.format(SIZES[k]), SOURCE, _never_below(k), safe_from[k]) for k in (3, 2, 1, 0)),
        size=(8.0, 3.4),
        trials_of=lambda asked: max(asked // 10, min(asked, 4)),
        scale="one network, with its 24 edges, for every 10 trials asked; the theorem is about N to infinity",
    )


def _probability_trial(rng: np.random.Generator) -> Trial:
    found = estimators_of(draw_network(rng))
    shape = (len(SIZES), GRID.n_edges, len(WIDTHS))
    mple, smci, scores = np.empty(shape), np.empty(shape), np.empty(shape)
    deviations = np.sqrt(exact_variances(found.probabilities, found.mple))
    for k, (n_rows, n_sets) in enumerate(zip(SIZES, SETS, strict=True)):
        drawn = rng.choice(len(found.probabilities), (n_sets, n_rows), p=found.probabilities) if n_sets else None
        shares = found.probabilities if drawn is None else np.full(n_sets, 1.0 / n_sets)
        for e in range(GRID.n_edges):
            limits = deviations[e] / np.sqrt(n_rows) * np.array(WIDTHS)
            first, second = (_errors(values[e] - found.truth[e], drawn) for values in (found.mple, found.smci))
            mple[k, e], smci[k, e], scores[k, e] = _within(first, second, limits, shares, drawn is None)
    return {"mple": mple, "1-smci": smci, "score": scores}


def _errors(values: np.ndarray, drawn: np.ndarray | None) -> np.ndarray:
    """Return the absolute errors of the means of data sets, or of every state where a data set is one row."""
    return np.abs(values if drawn is None else values[drawn].mean(axis=1))


def _within(
    mple: np.ndarray, smci: np.ndarray, limits: np.ndarray, shares: np.ndarray, exact: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return both probabilities at each limit, and their difference in standard errors (`CERTAIN` where exact)."""
    inside, other = (mple <= limits[:, None]).astype(float), (smci <= limits[:, None]).astype(float)
    first, second = inside @ shares, other @ shares
    if exact:
        return first, second, np.where(np.abs(second - first) < 1e-12, 0.0, np.copysign(CERTAIN, second - first))
    spread = (other - inside).std(axis=1)
    error = np.maximum(spread, 1.0 / np.sqrt(shares.size)) / np.sqrt(shares.size)
    return first, second, (second - first) / error


def _never_below(k: int) -> Callable[[Results], Verdict]:
    def check(results: Results) -> Verdict:
        scores, gains = results["score"][:, k], results["1-smci"][:, k] - results["mple"][:, k]
        wrong = scores < -BEYOND_CHANCE
        beyond = "exactly" if not SETS[k] else f"beyond {BEYOND_CHANCE:.0f} standard errors"
        numbers = f"smaller, {beyond}, at {int(wrong.sum())} of {wrong.size} edges x epsilon"
        if wrong.any():
            networks = int(wrong.any(axis=(1, 2)).sum())
            numbers += f", in {networks} of {results.n_trials} networks, by up to {-gains[wrong].min():.2g}"
        # the theorem is about N to infinity: what fewer rows do is reported
        return Verdict(not wrong.any() if SIZES[k] == SIZES[-1] else None, f"{numbers}; mean gain {gains.mean():.3f}")

    return check


def _over_edges(results: Results) -> Results:
    return Results({name: results[name].mean(axis=2) for name in LABELS}, results.seed)


def _series(k: int) -> list[Series]:
    style = {"markersize": 3.0, "linewidth": 1.2}
    return [Series(name, label, place=(k,), style=style) for name, label in LABELS.items()]


def _table_of_probabilities(results: Results) -> Table:
    parts = [mean_columns(_over_edges(results), _series(k)) for k in range(len(SIZES))]
    wrong = (results["score"] < -BEYOND_CHANCE).mean(axis=(0, 2))
    columns = {"N": np.repeat(SIZES, len(WIDTHS)), "epsilon / sd of MPLE": np.tile(WIDTHS, len(SIZES))}
    columns |= {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Table(
        "P(|e| <= epsilon), mean over edges and networks", columns | {"edges against the theorem": wrong.ravel()}
    )


def _draw_probabilities(results: Results, figure: Figure) -> None:
    means = _over_edges(results)
    for k, axes in enumerate(figure.subplots(1, len(SIZES), sharey=True)):
        y_label, where = ("P(|e| <= epsilon)", INSIDE) if k == 0 else ("", None)
        lines(WIDTHS, _series(k), "epsilon / sd", y_label, log="", legend_at=where)(axes, means)
        axes.set_title(f"N = {SIZES[k]}", fontsize=9)
