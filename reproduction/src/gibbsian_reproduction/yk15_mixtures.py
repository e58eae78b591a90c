"""Yuille and Kersten 2015, first half: k-means, hard, online and soft, and mixtures on the sphere."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from gibbsian.backends.classes import responsibilities
from gibbsian.data import Dataset
from gibbsian.estimators import HardKMeans, OnlineKMeans, VonMisesFisherMixture
from gibbsian.learning import EM, run
from gibbsian.learning.em import mixture_steps
from gibbsian.learning.mixture_steps import starting_points
from gibbsian.models import GaussianMixtureFamily, KMeansFamily, VonMisesFisherMixtureFamily
from gibbsian.models.mixtures.von_mises_fisher import draw_directions
from gibbsian_reproduction.drawing import Axes, Figure, lines, panels
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.systems import first_values, largest_rise, stacked
from gibbsian_reproduction.tables import Table, mean_table, with_stderr
from gibbsian_reproduction.verdicts import at_most, mean_with_error, never_rises

CLASS_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
# -- k-means ----------------------------------------------------------------------------------------------------------
N_CLASSES, N_POINTS, SPREAD, WIDTH = 5, 250, 0.8, 5.0
# Moves of the means round a minimum: far smaller than what takes a point to another mean, far larger than rounding.
SMALL_MOVE, ROUNDING_OF_ENERGY = 1e-8, 1e-13
N_STARTS, N_SHOWN = 20, 16  # starts of k-means, and half-steps of one start in the picture


def clusters(rng: np.random.Generator) -> np.ndarray:
    """Return points on a plane round five means that are drawn at random; some classes overlap."""
    means = rng.uniform(-WIDTH, WIDTH, (N_CLASSES, 2))
    return means[rng.integers(N_CLASSES, size=N_POINTS)] + SPREAD * rng.normal(size=(N_POINTS, 2))


def free_energies(steps: Any, theta: np.ndarray, n_steps: int) -> np.ndarray:
    """Return minus the log-likelihood after each EM step as it comes: the learner would hide a rise by rounding."""
    expected, values = None, []
    for _ in range(n_steps):
        expected = steps.e_step(theta, expected)
        values.append(expected.value)
        theta, _ = steps.m_step(theta, expected)
    return np.array(values)


@EXPERIMENTS.register("yk15-kmeans")
def kmeans() -> Experiment:
    """Return k-means on a plane (YK15, "K-means"): the energy half-step by half-step, and where starts end."""
    steps, energy = np.arange(1, N_SHOWN + 1) / 2, Series("shown", "energy", method="mple")
    axes = "steps (means, then classes)", "energy / energy after the first half-step"
    lower = never_rises("rise", "energy")
    return Experiment(
        "YK15",
        "K-means",
        "hard and online k-means on a plane",
        _kmeans_trial,
        (_table_of_energies,),
        panels(_classes, lines(steps, [energy], *axes, log="y", legend_at=None)),
        (
            Claim("steps 2 and 3 each lower the energy, or leave it", "K-means (2)", lower, trials=1),
            _ends,
            _at_minimum,
            _several,
            _online,
        ),
        size=(8.0, 3.6),
        scale=f"{N_POINTS} points round {N_CLASSES} random means, {N_STARTS} random partitions to start from",
    )


def _kmeans_trial(rng: np.random.Generator) -> Trial:
    points = clusters(rng)
    runs = [_half_steps(points, rng.integers(N_CLASSES, size=N_POINTS)) for _ in range(N_STARTS)]
    ends = np.array([energies[-1] for energies, _ in runs])
    energies, means = runs[int(ends.argmin())]
    moves = SMALL_MOVE * rng.normal(size=(50, *means.shape))
    steps = _k_means(points)
    energy = steps.e_step(steps.from_means(means)).value
    nearby = [steps.e_step(steps.from_means(means + move)).value for move in moves]
    online = OnlineKMeans(N_CLASSES, normalize=False, random_state=rng).fit(points)
    return {
        "points": points,
        "means": means,
        "shown": first_values(energies, N_SHOWN) / energies[0],
        "rise": max(largest_rise(energies) for energies, _ in runs),
        "steps": np.array([len(energies) // 2 for energies, _ in runs]),
        "fall nearby": (energy - min(nearby)) / energy,
        "ends": np.sort(ends),
        "online": online.energy_,
        "spread": HardKMeans(N_CLASSES, n_init=1, random_state=rng).fit(points).energy_,
    }


def _k_means(points: np.ndarray) -> Any:
    """Return both steps of k-means on points."""
    data = Dataset.of_states(points, "real", distinct=False)
    return mixture_steps(KMeansFamily(N_CLASSES, points.shape[1]), data, hard=True)


def _nearest(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    steps = _k_means(points)
    return steps.e_step(steps.from_means(means)).posterior.labels


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


def _table_of_energies(results: Results) -> Table:
    best = results["ends"][:, :1]
    starts = {"random partition": "ends", "k-means++": "spread", "online": "online"}
    rows = []
    for start, key in starts.items():
        values = results[key].reshape(results.n_trials, -1) / best
        mean, error = mean_with_error(values.mean(axis=1))
        rows.append({"start": start, "mean": mean, "median": np.median(values), "mean stderr": error})
    return Table("energy at the end over that of the best of the random partitions", rows)


def _classes(axes: Axes, results: Results) -> None:
    points, means = results["points"][0], results["means"][0]
    labels = _nearest(points, means)
    for a, colour in enumerate(CLASS_COLOURS):
        axes.plot(*points[labels == a].T, ".", color=colour, markersize=3.5)
        axes.plot(*means[a], "o", color=colour, markeredgecolor="black", markersize=8)
    axes.set_aspect("equal")
    axes.set_title("trial 0, best of its starts")


@claim("the algorithm ends", "K-means (2)", trials=1)
def _ends(results: Results) -> Verdict:
    steps = results["steps"]
    after = f"after {steps.max():.0f} steps at most"
    return Verdict(np.isfinite(steps).all(), f"{steps.size} of {steps.size} starts, {after}")


@claim("at a minimum: no small move of the means lowers the energy", "K-means (1)", trials=1)
def _at_minimum(results: Results) -> Verdict:
    lower = results["fall nearby"] > ROUNDING_OF_ENERGY
    return Verdict(not lower.any(), f"no fall in {(~lower).sum()} of {len(lower)} trials, 50 moves each")


@claim("which need not be the lowest: starts end at different energies", "K-means (1)", trials=4)
def _several(results: Results) -> Verdict:
    above = results["ends"] > 1.01 * results["ends"][:, :1]
    trials = f"in {above.any(axis=1).mean():.0%} of the trials"
    return Verdict(above.any(), f"{above.mean():.0%} of the starts end over 1% above the best, {trials}")


@claim("online k-means descends the same energy (median within 10%)", "online k-means", trials=20)
def _online(results: Results) -> Verdict:
    ratio = results["online"] / results["ends"][:, 0]
    median = np.median(ratio)
    return Verdict(median < 1.1, f"median energy {median:.3f} of that of the best batch run, mean {ratio.mean():.3f}")


# -- soft k-means -----------------------------------------------------------------------------------------------------
VARIANCES = np.array([8.0, 4.0, 2.0, 1.0, 0.5, 0.2, 0.05, 0.01, 1e-3, 1e-4])
SOFT_1 = "Soft K-means (1)"


@EXPERIMENTS.register("yk15-soft-kmeans")
def soft_kmeans() -> Experiment:
    """Return soft k-means on a plane (YK15, "Soft K-means"): from soft to hard as the variance falls."""
    softness = [Series("entropy", method="mple"), Series("doubt", method="1-smci")]
    moves = [Series("to hard", method="mpf")]
    note = "entropy of P(class | x) in nats; doubt: one less its largest value; to hard: largest move of a mean"
    rises = never_rises("rise", "minus log-likelihood")
    # logarithms as large as 1e4 at the smallest variance leave 12 digits
    sums = at_most("sum", 1e-10, "largest difference")
    shares = at_most("posterior", 1e-8, "largest difference")
    return Experiment(
        "YK15",
        "Soft K-means",
        "soft k-means on a plane, down to variance 0.0001",
        _soft_trial,
        (mean_table("soft k-means by variance", "variance", VARIANCES, softness + moves, note),),
        panels(
            lines(VARIANCES, softness, "variance", "softness of the assignments", log="x"),
            lines(VARIANCES, moves, "variance", "distance of the means to hard k-means", log="x", legend_at=None),
        ),
        (
            Claim("EM never lowers the likelihood", "Soft K-means (3)", rises, trials=1),
            Claim("the assignments of a point add up to one", SOFT_1, sums, trials=1),
            Claim("the lecture's P(class | x) is the mixture's posterior", "Soft K-means (2)", shares, trials=1),
            _softness,
            _binary,
            _becomes_hard,
            _printed,
        ),
        size=(8.0, 3.6),
        scale=f"{N_POINTS} points, every variance from the same k-means++ start",
    )


def _soft_trial(rng: np.random.Generator) -> Trial:
    points = clusters(rng)
    data = Dataset.of_states(points, "real", distinct=False)
    start = starting_points(points, data.weights, N_CLASSES, rng)
    steps = _k_means(points)
    hard: Any = run(EM(), steps.model(steps.from_means(start)), data, max_iter=1000, tol=0.0).model
    found = [_soft_at(float(variance), data, start, hard.parts.means) for variance in VARIANCES]
    soft = _shares(points, start, 1.0)
    printed, weighted = soft.T @ points, soft.T @ points / soft.sum(axis=0)[:, None]
    return stacked(found) | {
        "printed": np.abs(printed).max() / np.abs(points).max(),
        "weighted": np.abs(weighted).max() / np.abs(points).max(),
    }


def _soft_at(variance: float, data: Dataset, start: np.ndarray, hard: np.ndarray) -> Trial:
    """Learn with one variance; return how soft the assignments are, and how far the means are from hard k-means."""
    points = data.states
    family = GaussianMixtureFamily(N_CLASSES, 2, variance=variance, free_weights=False)
    steps: Any = mixture_steps(family, data)
    mixture: Any = run(EM(), steps.model(steps.from_means(start)), data, max_iter=1000, tol=1e-10).model
    means = mixture.parts.means
    shares, soft = _shares(points, means, variance), responsibilities(family.log_joint(mixture.theta, points))
    return {
        "rise": largest_rise(free_energies(steps, steps.from_means(start), 20)),
        "sum": np.abs(soft.sum(axis=1) - 1.0).max(),
        "posterior": np.abs(soft - shares).max(),
        "entropy": -(shares * np.log(np.maximum(shares, 1e-300))).sum(axis=1).mean(),
        "doubt": 1.0 - shares.max(axis=1).mean(),
        "to hard": np.abs(means - hard).max(),
    }


def _shares(points: np.ndarray, means: np.ndarray, variance: float) -> np.ndarray:
    """Return P(class | x) by the lecture's formula."""
    return softmax(-((points[:, None] - means) ** 2).sum(axis=2) / (2.0 * variance), axis=1)


@claim("the softness is controlled by the variance: it grows with it", SOFT_1, trials=20)
def _softness(results: Results) -> Verdict:
    entropy = results.mean("entropy")
    numbers = f"mean entropy from {entropy[-1]:.4f} at {VARIANCES[-1]} to {entropy[0]:.2f} at {VARIANCES[0]}"
    return Verdict((np.diff(entropy) < 0).all(), numbers)


@claim("as the variance goes to 0 assignments become binary", SOFT_1, trials=4)
def _binary(results: Results) -> Verdict:
    doubt = results.mean("doubt")[-1]
    return Verdict(doubt < 0.005, f"largest P(class | x) {1.0 - doubt:.5f} on average at {VARIANCES[-1]}")


@claim("and soft k-means becomes k-means", SOFT_1, trials=20)
def _becomes_hard(results: Results) -> Verdict:
    same = results["to hard"] < 0.01 * WIDTH
    counts = ", ".join(f"{same[:, k].sum()} at {VARIANCES[k]:g}" for k in (-1, -3, -5))
    return Verdict(same[:, -1].mean() > 0.9, f"same means in {counts} of {len(same)} trials")


@claim("step 3 as printed, without a division by sum P, gives the means", SOFT_1, trials=1, misprint=True)
def _printed(results: Results) -> Verdict:
    printed, weighted = results["printed"], results["weighted"]
    numbers = f"up to {printed.max():.0f} times the largest point; divided by sum P at most {weighted.max():.2f}"
    return Verdict((printed <= 1.0).all(), numbers)


# -- von Mises-Fisher: Gaussians for data on the unit sphere ----------------------------------------------------------
KAPPAS = np.array([20.0, 50.0, 100.0])
N_DIRECTIONS = len(KAPPAS)
SIZES = np.array([60, 150, 400, 1000])
LEAST_ANGLE = np.radians(50.0)  # between two means, so that classes can be distinguished
N_DRAWN = 150
VMF = "Mixture of Von Mises Fisher"


@EXPERIMENTS.register("yk15-vmf")
def von_mises_fisher() -> Experiment:
    """Return mixtures of von Mises-Fisher distributions on the sphere (YK15)."""
    rises = never_rises("rise", "minus log-likelihood")
    gap = at_most("gaussian gap", 1e-10, "largest difference of P(class | x)")
    as_gaussians = "with lambda = 1 / sigma^2 the classes share points out as spherical Gaussians do"
    kappas = ", ".join(f"{kappa:.0f}" for kappa in KAPPAS)
    return Experiment(
        "YK15",
        "Von Mises-Fisher",
        "mixtures of von Mises-Fisher distributions on the sphere",
        _directions_trial,
        (_table_of_angles,),
        _draw_sphere,
        (
            Claim("EM never lowers the likelihood", "Soft K-means (3)", rises, trials=1),
            Claim(as_gaussians, VMF, gap, trials=1),
            _greatest_product,
            _means_found,
        ),
        size=(8.0, 3.6),
        scale=f"one mixture of {N_DIRECTIONS} classes with kappa {kappas} at each N",
    )


def _directions_trial(rng: np.random.Generator) -> Trial:
    errors, kappas = np.zeros(len(SIZES)), np.zeros((len(SIZES), N_DIRECTIONS))
    for place, size in enumerate(SIZES):
        means = _directions(rng)
        classes = rng.integers(N_DIRECTIONS, size=size)
        points = np.empty((size, 3))
        for a in range(N_DIRECTIONS):
            points[classes == a] = draw_directions(means[a], KAPPAS[a], int((classes == a).sum()), rng)
        fitted = VonMisesFisherMixture(N_DIRECTIONS, random_state=rng).fit(points).model_.parts
        mine, theirs = linear_sum_assignment(-means @ fitted.means.T)
        cosines = np.einsum("ij,ij->i", means[mine], fitted.means[theirs])
        errors[place] = np.degrees(np.arccos(np.minimum(cosines, 1.0))).mean()
        kappas[place] = fitted.concentrations[theirs]
    data = Dataset.of_states(points, "real", distinct=False)
    steps: Any = mixture_steps(VonMisesFisherMixtureFamily(N_DIRECTIONS, 3), data)
    start = starting_points(points, data.weights, N_DIRECTIONS, rng)
    nearest = ((points[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    return {
        "error": errors,
        "kappa": kappas,
        "rise": largest_rise(free_energies(steps, steps.from_means(start), 40)),
        "gaussian gap": _gap_to_gaussians(points, means, rng.uniform(1.0, 100.0)),
        "nearest agrees": (nearest == (points @ means.T).argmax(axis=1)).mean(),
        "points": points[:N_DRAWN],
        "class": classes[:N_DRAWN],
    }


def _directions(rng: np.random.Generator) -> np.ndarray:
    """Draw directions until no two are close."""
    while True:
        means = rng.normal(size=(N_DIRECTIONS, 3))
        means /= np.linalg.norm(means, axis=1)[:, None]
        if (means @ means.T)[np.triu_indices(N_DIRECTIONS, 1)].max() < np.cos(LEAST_ANGLE):
            return means


def _gap_to_gaussians(points: np.ndarray, means: np.ndarray, kappa: float) -> float:
    """Return the largest difference between P(class | x) of both mixtures with equal weights and one lambda."""
    weights, same = np.full(N_DIRECTIONS, 1.0 / N_DIRECTIONS), np.full(N_DIRECTIONS, kappa)
    directions, gaussians = VonMisesFisherMixtureFamily(N_DIRECTIONS, 3), GaussianMixtureFamily(N_DIRECTIONS, 3)
    on_sphere = responsibilities(directions.log_joint(directions.join(weights, means, same), points))
    in_space = responsibilities(gaussians.log_joint(gaussians.join(weights, means, 1.0 / same), points))
    return float(np.abs(on_sphere - in_space).max())


def _table_of_angles(results: Results) -> Table:
    columns = {"N": SIZES} | with_stderr("degrees", results["error"])
    medians = np.median(results["kappa"], axis=0)
    columns |= {f"median kappa of {kappa:.0f}": medians[:, a] for a, kappa in enumerate(KAPPAS)}
    return Table("angle between learned and true means, and concentrations", columns)


def _draw_sphere(results: Results, figure: Figure) -> None:
    left = figure.add_subplot(1, 2, 1, projection="3d")
    for a in range(N_DIRECTIONS):
        points = results["points"][0][results["class"][0] == a]
        left.plot(*points.T, linestyle="", marker=".", markersize=3.5, color=CLASS_COLOURS[a])
    turn, rise = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
    sphere = np.cos(turn) * np.sin(rise), np.sin(turn) * np.sin(rise), np.cos(rise)
    left.plot_wireframe(*sphere, color="0.85", linewidth=0.4)
    left.set_box_aspect((1, 1, 1))
    left.set_axis_off()
    left.set_title("trial 0")
    error = Series("error", "maximum likelihood", method="mle")
    lines(SIZES, [error], "N", "error of the means, degrees")(figure.add_subplot(1, 2, 2), results)


@claim("on the sphere the nearest mean is that of the greatest dot product", "online k-means", trials=1)
def _greatest_product(results: Results) -> Verdict:
    share = results["nearest agrees"]
    return Verdict((share == 1.0).all(), f"{share.mean():.0%} of the points in {results.n_trials} trials")


@claim("maximum likelihood finds the means: their error falls as N grows", VMF, trials=20, ours=True)
def _means_found(results: Results) -> Verdict:
    medians = np.median(results["error"], axis=0)
    angles = ", ".join(f"{angle:.2f}" for angle in medians)
    return Verdict((np.diff(medians) < 0).all(), f"median {angles} degrees")
