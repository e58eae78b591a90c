"""Yuille and Kersten 2015, first half: k-means, hard, online and soft, on a plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.estimators import HardKMeans, OnlineKMeans
from gibbsian.learners import EM, run
from gibbsian.models.class_shares import posterior
from gibbsian.models.mixture import spread_points
from gibbsian.models.spherical_gaussians import GaussianMixtureModel, KMeansModel
from gibbsian.papers.drawing import curve, legend, log_axes
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_CLASSES, N_POINTS, SPREAD, WIDTH = 5, 250, 0.8, 5.0
N_STARTS, N_SHOWN = 20, 16  # starts of k-means, and half-steps of one start in the picture
VARIANCES = np.array([8.0, 4.0, 2.0, 1.0, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-4])
CLASS_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
ROUNDING = 1e-10  # relative; what a value may rise by rounding


def clusters(rng: np.random.Generator) -> np.ndarray:
    """Return points on a plane round five means that are drawn at random; some classes overlap.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.yk15 import clusters
    >>> clusters(np.random.default_rng(0)).shape
    (250, 2)
    """
    means = rng.uniform(-WIDTH, WIDTH, (N_CLASSES, 2))
    return means[rng.integers(N_CLASSES, size=N_POINTS)] + SPREAD * rng.normal(size=(N_POINTS, 2))


def free_energies(steps: Any, start: Any, n_steps: int) -> np.ndarray:
    """Return minus the log-likelihood after each EM step, as it comes: the learner would not show a rise by rounding.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.models.spherical_gaussians import KMeansModel
    >>> from gibbsian.papers.yk15 import free_energies
    >>> data = gb.Dataset.read([[0.0], [1.0], [10.0], [11.0]], coding="real")
    >>> steps = KMeansModel.unplaced(2, 1).em_steps(data)
    >>> free_energies(steps, steps.from_means(np.array([[0.0], [1.0]])), 3).round(2)
    array([181. ,  21.56,   1.  ])
    """
    mixture, expected, values = start, None, []
    for _ in range(n_steps):
        value, expected = steps.expect(mixture, expected)
        values.append(value)
        mixture = steps.maximise(expected, mixture)
    return np.array(values)


def largest_rise(values: np.ndarray) -> float:
    """Return the largest rise from one value to the next, relative to their size.

    Examples
    --------
    >>> from gibbsian.papers.yk15 import largest_rise
    >>> largest_rise([4.0, 2.0, 2.5]), largest_rise([4.0, 2.0])
    (0.25, -0.5)
    """
    values = np.asarray(values, dtype=float)
    return float((np.diff(values) / np.abs(values[:-1])).max())


def never_rises(results: Results, name: str, what: str) -> Verdict:
    """Judge that something never rose beyond rounding, from the largest relative rise of each trial.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.experiment import Results
    >>> from gibbsian.papers.yk15 import never_rises
    >>> print(never_rises(Results({"rise": np.array([-0.1, 1e-16])}, seed=0), "rise", "energy"))
    holds (2 of 2 trials, largest rise of the energy 1.0e-16 of it)
    """
    rises = np.maximum(results[name], 0.0)
    words = f"{(rises < ROUNDING).sum()} of {len(rises)} trials, largest rise of the {what} {rises.max():.1e} of it"
    return Verdict(bool((rises < ROUNDING).all()), words)


# -- k-means ----------------------------------------------------------------------------------------------------------
@EXPERIMENTS.register("yk15-kmeans")
def kmeans() -> Experiment:
    """Return k-means on a plane (YK15, "K-means"): the energy half-step by half-step, and where starts end.

    Examples
    --------
    >>> from gibbsian.papers.yk15 import kmeans
    >>> kmeans().paper
    'YK15'
    """
    return Experiment(
        paper="YK15",
        item="K-means",
        title="hard and online k-means on a plane",
        trial=_kmeans_trial,
        tables=_kmeans_tables,
        draw=_draw_kmeans,
        claims=(
            Claim("steps 2 and 3 each lower the energy, or leave it", "K-means (2)", _halves_lower, trials=1),
            Claim("the algorithm ends", "K-means (2)", _ends, trials=1),
            Claim("at a minimum: no small move of the means lowers the energy", "K-means (1)", _at_minimum, trials=1),
            Claim("which need not be the lowest: starts end at different energies", "K-means (1)", _several, trials=4),
            Claim("online k-means descends the same energy (median within 10%)", "online k-means", _online, trials=20),
        ),
        size=(8.0, 3.6),
        scale=f"{N_POINTS} points round {N_CLASSES} random means, {N_STARTS} random partitions to start from",
    )


def _kmeans_trial(rng: np.random.Generator) -> Trial:
    points = clusters(rng)
    runs = [_half_steps(points, rng.integers(N_CLASSES, size=N_POINTS)) for _ in range(N_STARTS)]
    ends = np.array([energies[-1] for energies, _ in runs])
    energies, means = runs[int(ends.argmin())]
    moves = 1e-4 * rng.normal(size=(50, *means.shape))
    steps = _k_means(points)
    nearby = [steps.expect(steps.from_means(means + move))[0] for move in moves]
    online = OnlineKMeans(N_CLASSES, normalize=False, random_state=rng).fit(points)
    return {
        "points": points,
        "means": means,
        "shown": np.pad(energies[:N_SHOWN], (0, max(N_SHOWN - len(energies), 0)), mode="edge"),
        "rise": max(largest_rise(energies) for energies, _ in runs),
        "steps": np.array([len(energies) // 2 for energies, _ in runs]),
        "fall nearby": steps.expect(steps.from_means(means))[0] - min(nearby),
        "ends": np.sort(ends),
        "online": online.energy_,
        "spread": HardKMeans(N_CLASSES, n_init=1, random_state=rng).fit(points).energy_,
    }


def _k_means(points: np.ndarray) -> Any:
    """Both steps of k-means on points."""
    data = Dataset.of_states(points, "real", distinct=False)
    return KMeansModel.unplaced(N_CLASSES, points.shape[1]).em_steps(data)


def _nearest(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    return _k_means(points).from_means(means).nearest(points)


def _half_steps(points: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Run the lecture's steps 2 and 3 from a partition; return the energy after each of them, and the means."""
    energies: list[float] = []
    means = points[:N_CLASSES].copy()
    while True:
        for a in np.unique(labels):  # a class without points keeps its mean
            means[a] = points[labels == a].mean(axis=0)
        energies.append(((points - means[labels]) ** 2).sum())
        before, labels = labels, _nearest(points, means)
        energies.append(((points - means[labels]) ** 2).sum())
        if (labels == before).all():
            return np.array(energies), means


def _kmeans_tables(results: Results) -> list[Table]:
    import pandas as pd

    best = results["ends"][:, :1]
    columns = {
        "random partition": results["ends"] / best,
        "k-means++": results["spread"][:, None] / best,
        "online": results["online"][:, None] / best,
    }
    rows = [
        (name, np.mean(x), np.median(x), x.mean(axis=1).std(ddof=1) / np.sqrt(len(x))) for name, x in columns.items()
    ]
    frame = pd.DataFrame(rows, columns=["start", "mean", "median", "mean stderr"])
    return [Table("energy at the end over that of the best of the random partitions", frame)]


def _draw_kmeans(results: Results, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    points, means = results["points"][0], results["means"][0]
    labels = _nearest(points, means)
    _draw_classes(left, points, means, labels)
    left.set_title("trial 0, best of its starts")
    half_steps = np.arange(1, N_SHOWN + 1) / 2
    relative = Results({"energy": results["shown"] / results["shown"][:, :1]}, results.seed)
    curve(right, half_steps, relative.mean("energy"), relative.stderr("energy"), "energy", method="mple")
    log_axes(right, "steps (means, then classes)", "energy / energy after the first half-step", log_x=False)


def _draw_classes(axes: Any, points: np.ndarray, means: np.ndarray, labels: np.ndarray) -> None:
    for a, colour in enumerate(CLASS_COLOURS):
        axes.plot(*points[labels == a].T, ".", color=colour, markersize=3.5)
        axes.plot(*means[a], "o", color=colour, markeredgecolor="black", markersize=8)
    axes.set_aspect("equal")


def _halves_lower(results: Results) -> Verdict:
    return never_rises(results, "rise", "energy")


def _ends(results: Results) -> Verdict:
    steps = results["steps"]
    return Verdict(
        bool(np.isfinite(steps).all()), f"{steps.size} of {steps.size} starts, after {steps.max():.0f} steps at most"
    )


def _at_minimum(results: Results) -> Verdict:
    lower = results["fall nearby"] > 0
    return Verdict(not lower.any(), f"no fall in {(~lower).sum()} of {len(lower)} trials, 50 moves each")


def _several(results: Results) -> Verdict:
    above = results["ends"] > 1.01 * results["ends"][:, :1]
    words = (
        f"{above.mean():.0%} of the starts end over 1% above the best, in {above.any(axis=1).mean():.0%} of the trials"
    )
    return Verdict(bool(above.any()), words)


def _online(results: Results) -> Verdict:
    ratio = results["online"] / results["ends"][:, 0]
    words = f"median energy {np.median(ratio):.3f} of that of the best batch run, mean {ratio.mean():.3f}"
    return Verdict(bool(np.median(ratio) < 1.1), words)


# -- soft k-means -----------------------------------------------------------------------------------------------------
@EXPERIMENTS.register("yk15-soft-kmeans")
def soft_kmeans() -> Experiment:
    """Return soft k-means on a plane (YK15, "Soft K-means"): from soft to hard as the variance falls.

    Examples
    --------
    >>> from gibbsian.papers.yk15 import soft_kmeans
    >>> soft_kmeans().item
    'Soft K-means'
    """
    return Experiment(
        paper="YK15",
        item="Soft K-means",
        title="soft k-means on a plane, down to variance 0.0001",
        trial=_soft_trial,
        tables=_soft_tables,
        draw=_draw_soft,
        claims=(
            Claim("EM never lowers the likelihood", "Soft K-means (3)", _likelihood_rises, trials=1),
            Claim("the assignments of a point add up to one", "Soft K-means (1)", _add_up, trials=1),
            Claim("the lecture's P(class | x) is the mixture's posterior", "Soft K-means (2)", _posterior, trials=1),
            Claim(
                "the softness is controlled by the variance: it grows with it", "Soft K-means (1)", _softness, trials=20
            ),
            Claim("as the variance goes to 0 assignments become binary", "Soft K-means (1)", _binary, trials=4),
            Claim("and soft k-means becomes k-means", "Soft K-means (1)", _becomes_hard, trials=20),
            Claim(
                "step 3 as printed, without a division by sum P, gives the means",
                "Soft K-means (1)",
                _printed,
                trials=1,
                misprint=True,
            ),
        ),
        size=(8.0, 3.6),
        scale=f"{N_POINTS} points, every variance from the same k-means++ start",
    )


def _soft_trial(rng: np.random.Generator) -> Trial:
    points = clusters(rng)
    data = Dataset.of_states(points, "real", distinct=False)
    start = spread_points(points, data.weights, N_CLASSES, rng)
    hard: Any = run(EM(), _k_means(points).from_means(start), data, max_iter=1000, tol=0.0).model
    found: dict[str, list[Any]] = {name: [] for name in ("rise", "sum", "entropy", "doubt", "to hard", "posterior")}
    for variance in VARIANCES:
        unplaced = GaussianMixtureModel.unplaced(N_CLASSES, 2, variance=float(variance), free_weights=False)
        steps = unplaced.em_steps(data)
        mixture: Any = run(EM(), steps.from_means(start), data, max_iter=1000, tol=1e-10).model
        shares, soft = _shares(points, mixture.means, variance), posterior(mixture.log_joint(points))
        found["rise"].append(largest_rise(free_energies(steps, steps.from_means(start), 20)))
        found["sum"].append(np.abs(soft.sum(axis=1) - 1.0).max())
        found["posterior"].append(np.abs(soft - shares).max())
        found["entropy"].append(-(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1).mean())
        found["doubt"].append(1.0 - shares.max(axis=1).mean())
        found["to hard"].append(np.abs(mixture.means - hard.means).max())
    soft = _shares(points, start, 1.0)
    printed, weighted = soft.T @ points, soft.T @ points / soft.sum(axis=0)[:, None]
    return {name: np.array(values) for name, values in found.items()} | {
        "printed": np.abs(printed).max() / np.abs(points).max(),
        "weighted": np.abs(weighted).max() / np.abs(points).max(),
    }


def _shares(points: np.ndarray, means: np.ndarray, variance: float) -> np.ndarray:
    """Return P(class | x) by the lecture's formula."""
    exponents = -((points[:, None] - means) ** 2).sum(axis=2) / (2.0 * variance)
    return np.exp(exponents - np.logaddexp.reduce(exponents, axis=1)[:, None])


def _soft_tables(results: Results) -> list[Table]:
    import pandas as pd

    columns: dict[str, np.ndarray] = {"variance": VARIANCES}
    for name in ("entropy", "doubt", "to hard"):
        columns |= {name: results.mean(name), f"{name} stderr": results.stderr(name)}
    note = "entropy of P(class | x) in nats; doubt: one less its largest value; to hard: largest move of a mean"
    return [Table("soft k-means by variance", pd.DataFrame(columns), note)]


def _draw_soft(results: Results, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    for name, label, method in (("entropy", "entropy", "mple"), ("doubt", "1 - largest P(class | x)", "1-smci")):
        curve(left, VARIANCES, results.mean(name), results.stderr(name), label, method=method)
    log_axes(left, "variance", "softness of the assignments", log_y=False)
    legend(left)
    curve(right, VARIANCES, results.mean("to hard"), results.stderr("to hard"), "means", method="mpf")
    log_axes(right, "variance", "distance of the means to hard k-means", log_y=False)


def _likelihood_rises(results: Results) -> Verdict:
    rises = Results({"rise": results["rise"].max(axis=1)}, results.seed)
    return never_rises(rises, "rise", "minus log-likelihood")


def _add_up(results: Results) -> Verdict:
    gap = results["sum"].max()
    # logarithms as large as 1e4 at the smallest variance leave 12 digits
    return Verdict(bool(gap < 1e-10), f"to {gap:.1e} in {results.n_trials} trials")


def _posterior(results: Results) -> Verdict:
    gap = results["posterior"].max()
    return Verdict(bool(gap < 1e-8), f"largest difference {gap:.1e} in {results.n_trials} trials")


def _softness(results: Results) -> Verdict:
    entropy = results.mean("entropy")
    words = f"mean entropy from {entropy[-1]:.4f} at {VARIANCES[-1]} to {entropy[0]:.2f} at {VARIANCES[0]}"
    return Verdict(bool((np.diff(entropy) < 0).all()), words)


def _binary(results: Results) -> Verdict:
    doubt = results.mean("doubt")[-1]
    return Verdict(bool(doubt < 0.005), f"largest P(class | x) {1.0 - doubt:.5f} on average at {VARIANCES[-1]}")


def _becomes_hard(results: Results) -> Verdict:
    same = results["to hard"] < 0.01 * WIDTH
    words = ", ".join(f"{same[:, k].sum()} at {VARIANCES[k]:g}" for k in (-1, -3, -5))
    return Verdict(bool(same[:, -1].mean() > 0.9), f"same means in {words} of {len(same)} trials")


def _printed(results: Results) -> Verdict:
    printed, weighted = results["printed"], results["weighted"]
    words = f"up to {printed.max():.0f} times the largest point; divided by sum P at most {weighted.max():.2f}"
    return Verdict(bool((printed <= 1.0).all()), words)
