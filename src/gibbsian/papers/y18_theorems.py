"""Y18 theorems 1 and 2: how the estimates of E[x_i x_j] that MPLE and 1-SMCI rest on scatter around the truth.

All 2^16 states are listed, so that variances are exact; samples of the estimates then show what was proved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gibbsian.models import PairwiseModel
from gibbsian.papers.drawing import legend, log_axes, method_style
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.papers.y18 import GRID, draw_network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Y18 section 4.1"
# data sets of N_ROWS rows whose estimates give the measured variances
N_ROWS, N_SETS = 100, 200
# rows in a data set, and how many data sets there are, for the probabilities of theorem 2; one row is exact
SIZES, SETS = (1, 10, 100, 1000), (0, 20_000, 10_000, 1000)
# epsilon of theorem 2, in standard deviations of the MPLE estimate
WIDTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0)
# a difference of probabilities this many standard errors below zero is not chance, among the thousands looked at
BEYOND_CHANCE, CERTAIN = 5.0, 1e6


class Estimators(NamedTuple):
    """What one row adds to the estimates of each edge, for all states, with the law and the truth.

    Examples
    --------
    >>> from gibbsian.papers.y18_theorems import Estimators
    >>> Estimators._fields
    ('law', 'truth', 'mple', 'smci')
    """

    law: np.ndarray
    truth: np.ndarray
    mple: np.ndarray
    smci: np.ndarray


def estimators_of(network: PairwiseModel) -> Estimators:
    """List rho^MPLE and rho^1SMCI (below Y18 eq. 29) of every edge at every state, one row for each edge.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.y18 import draw_network
    >>> from gibbsian.papers.y18_theorems import estimators_of
    >>> found = estimators_of(draw_network(np.random.default_rng(0)))
    >>> bool(np.allclose(found.mple @ found.law, found.truth) and np.allclose(found.smci @ found.law, found.truth))
    True
    """
    n = network.n_variables
    spins = (2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1.0).T.copy()
    fields = network.coupling_matrix @ spins
    i, j = network.graph.edges.T
    weights = 0.5 * np.einsum("im,im->m", spins, fields)
    law = np.exp(weights - weights.max())
    law /= law.sum()
    means = np.tanh(fields)
    mple = 0.5 * (spins[j] * means[i] + spins[i] * means[j])
    couplings = network.couplings[:, None]
    first, second = np.tanh(fields[i] - couplings * spins[j]), np.tanh(fields[j] - couplings * spins[i])
    product, own = first * second, np.tanh(couplings)
    smci = (product + own) / (1.0 + product * own)  # tanh(atanh(product) + w), eq. 25
    return Estimators(law, (spins[i] * spins[j]) @ law, mple, smci)


def exact_variances(law: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the variance of each row of values under a law: N times Y18 eq. 30 and 31.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.y18_theorems import exact_variances
    >>> exact_variances(np.array([0.5, 0.5]), np.array([[1.0, -1.0], [2.0, 2.0]]))
    array([1., 0.])
    """
    centred = values - (values @ law)[:, None]
    return (centred * centred) @ law


# -- theorem 1 --------------------------------------------------------------------------------------------------------
@EXPERIMENTS.register("y18-theorem1")
def theorem_1() -> Experiment:
    """Return Y18 theorem 1: the variance of the 1-SMCI estimate is never the larger one.

    Examples
    --------
    >>> from gibbsian.papers.y18_theorems import theorem_1
    >>> theorem_1().item
    'Theorem 1'
    """
    claims = (
        Claim("v of 1-SMCI is never above that of MPLE (exact)", SOURCE, _variances_ordered, trials=1),
        Claim(f"so are the variances measured at N = {N_ROWS}", SOURCE, _measured_ordered, trials=2),
        Claim("both estimates have the true mean", SOURCE, _unbiased, trials=1),
        Claim("measured variances are the exact ones", SOURCE, _measured_as_exact, trials=4),
    )
    title = "variances of the MPLE and 1-SMCI estimates of E[x_i x_j]"
    scale = f"a network with its 24 edges, {N_SETS} data sets of {N_ROWS} rows"
    return Experiment(
        "Y18", "Theorem 1", title, _variance_trial, _variance_tables, _draw_variances, claims, scale=scale
    )


def _variance_trial(rng: np.random.Generator) -> Trial:
    found = estimators_of(draw_network(rng))
    drawn = rng.choice(len(found.law), (N_SETS, N_ROWS), p=found.law)
    result: Trial = {}
    for name, values in (("mple", found.mple), ("1-smci", found.smci)):
        result[name] = exact_variances(found.law, values)
        result[f"{name} measured"] = N_ROWS * np.array([edge[drawn].mean(axis=1).var(ddof=1) for edge in values])
        result[f"{name} bias"] = np.abs(values @ found.law - found.truth).max()
    return result


def _variance_tables(results: Results) -> list[Table]:
    import pandas as pd

    rows = []
    for name, label in (("mple", "MPLE"), ("1-smci", "1-SMCI")):
        exact = Results({"v": results[name].mean(axis=1)}, results.seed)
        measured = Results({"v": results[f"{name} measured"].mean(axis=1)}, results.seed)
        columns = {"N v (exact)": exact, "N v (measured)": measured}
        row: dict[str, object] = {"estimate": label}
        for column, part in columns.items():
            row[column], row[f"{column} stderr"] = float(part.mean("v")), float(part.stderr("v"))
        rows.append(row)
    return [Table("variance of one row's estimate, mean over edges and networks", pd.DataFrame(rows))]


def _draw_variances(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    style = method_style("1-smci") | {"linestyle": "none", "markersize": 2.5, "alpha": 0.5}
    axes.plot(results["mple"].ravel(), results["1-smci"].ravel(), label="edges", **style)
    ends = [float(results["1-smci"].min()), float(results["mple"].max())]
    axes.plot(ends, ends, color="0.4", linewidth=1.0, label="equal")
    log_axes(axes, "N v of MPLE", "N v of 1-SMCI")
    legend(axes)


def _variances_ordered(results: Results) -> Verdict:
    ratios = results["mple"] / results["1-smci"]
    count, total = int((ratios >= 1.0).sum()), ratios.size
    return Verdict(
        count == total, f"{count} of {total} edges; v of MPLE is {ratios.min():.2f} to {ratios.max():.0f} times"
    )


def _measured_ordered(results: Results) -> Verdict:
    below = results["1-smci measured"] <= results["mple measured"]
    return Verdict(bool(below.all()), f"{int(below.sum())} of {below.size} edges")


def _unbiased(results: Results) -> Verdict:
    largest = max(results["mple bias"].max(), results["1-smci bias"].max())
    return Verdict(bool(largest < 1e-12), f"largest difference over all edges {largest:.1g}")


def _measured_as_exact(results: Results) -> Verdict:
    numbers, holds = [], True
    for name in ("mple", "1-smci"):
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
    """Return Y18 theorem 2: the gradient of 1-SMCI is within any epsilon of the exact one more probably, for N large.

    Examples
    --------
    >>> from gibbsian.papers.y18_theorems import theorem_2
    >>> theorem_2().item
    'Theorem 2'
    """
    claims = (
        *(
            Claim(f"P(|e| <= eps) of 1-SMCI is not below that of MPLE, N = {n_rows}", SOURCE, _check(k), trials)
            for k, (n_rows, trials) in reversed(list(enumerate(zip(SIZES, (20, 20, 20, 2), strict=True))))
        ),
    )
    return Experiment(
        "Y18",
        "Theorem 2",
        "probability that the error of a gradient is within epsilon",
        _probability_trial,
        _probability_tables,
        _draw_probabilities,
        claims,
        size=(8.0, 3.4),
        trials_of=lambda asked: max(asked // 10, min(asked, 4)),
        scale="one network, with its 24 edges, for every 10 trials asked; the theorem is about N to infinity",
    )


def _probability_trial(rng: np.random.Generator) -> Trial:
    found = estimators_of(draw_network(rng))
    shape = (len(SIZES), GRID.n_edges, len(WIDTHS))
    mple, smci, scores = np.empty(shape), np.empty(shape), np.empty(shape)
    deviations = np.sqrt(exact_variances(found.law, found.mple))
    for k, (n_rows, n_sets) in enumerate(zip(SIZES, SETS, strict=True)):
        drawn = rng.choice(len(found.law), (n_sets, n_rows), p=found.law) if n_sets else None
        for e in range(GRID.n_edges):
            limits = deviations[e] / np.sqrt(n_rows) * np.array(WIDTHS)
            first, second = (_errors(values[e] - found.truth[e], drawn) for values in (found.mple, found.smci))
            shares = found.law if drawn is None else np.full(n_sets, 1.0 / n_sets)
            mple[k, e], smci[k, e], scores[k, e] = _within(first, second, limits, shares, drawn is None)
    return {"mple": mple, "1-smci": smci, "score": scores}


def _errors(values: np.ndarray, drawn: np.ndarray | None) -> np.ndarray:
    """The absolute errors of the means of data sets, or of every state where a data set is one row."""
    return np.abs(values if drawn is None else values[drawn].mean(axis=1))


def _within(
    mple: np.ndarray, smci: np.ndarray, limits: np.ndarray, shares: np.ndarray, exact: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both probabilities at each limit, and their difference in standard errors (`CERTAIN` where exact)."""
    inside, other = (mple <= limits[:, None]).astype(float), (smci <= limits[:, None]).astype(float)
    first, second = inside @ shares, other @ shares
    if exact:
        return first, second, np.where(np.abs(second - first) < 1e-12, 0.0, np.copysign(CERTAIN, second - first))
    spread = (other - inside).std(axis=1)
    error = np.maximum(spread, 1.0 / np.sqrt(shares.size)) / np.sqrt(shares.size)
    return first, second, (second - first) / error


def _check(k: int) -> Callable[[Results], Verdict]:
    def check(results: Results) -> Verdict:
        scores, gains = results["score"][:, k], results["1-smci"][:, k] - results["mple"][:, k]
        wrong = scores < -BEYOND_CHANCE
        beyond = "exactly" if not SETS[k] else f"beyond {BEYOND_CHANCE:.0f} standard errors"
        numbers = f"smaller, {beyond}, at {int(wrong.sum())} of {wrong.size} edges x epsilon"
        if wrong.any():
            networks = int(wrong.any(axis=(1, 2)).sum())
            numbers += f", in {networks} of {results.n_trials} networks, by up to {-gains[wrong].min():.2g}"
        return Verdict(not wrong.any(), f"{numbers}; mean gain {gains.mean():.3f}")

    return check


def _mean_probabilities(results: Results, name: str, k: int) -> Results:
    return Results({"p": results[name][:, k].mean(axis=1)}, results.seed)


def _probability_tables(results: Results) -> list[Table]:
    import pandas as pd

    rows = []
    for k, n_rows in enumerate(SIZES):
        parts = {
            label: _mean_probabilities(results, name, k) for name, label in (("mple", "MPLE"), ("1-smci", "1-SMCI"))
        }
        wrong = (results["score"][:, k] < -BEYOND_CHANCE).mean(axis=(0, 1))
        for place, width in enumerate(WIDTHS):
            row: dict[str, object] = {"N": n_rows, "epsilon / sd of MPLE": width}
            for label, part in parts.items():
                row[label], row[f"{label} stderr"] = part.mean("p")[place], part.stderr("p")[place]
            rows.append(row | {"edges against the theorem": wrong[place]})
    return [Table("P(|e| <= epsilon), mean over edges and networks", pd.DataFrame(rows))]


def _draw_probabilities(results: Results, figure: Figure) -> None:
    panels = figure.subplots(1, len(SIZES), sharey=True)
    for k, (axes, n_rows) in enumerate(zip(panels, SIZES, strict=True)):
        for name, label in (("mple", "MPLE"), ("1-smci", "1-SMCI")):
            part = _mean_probabilities(results, name, k)
            axes.plot(WIDTHS, part.mean("p"), label=label, markersize=3.0, linewidth=1.2, **method_style(name))
        axes.set_title(f"N = {n_rows}", fontsize=9)
        log_axes(axes, "epsilon / sd", "P(|e| <= epsilon)" if k == 0 else "", log_x=False, log_y=False)
    legend(panels[0])
