"""Yuille and Kersten 2015, "Mixture of Von Mises Fisher": Gaussians for data on the unit sphere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linear_sum_assignment

from gibbsian.data import Dataset
from gibbsian.estimators import VonMisesFisherMixture
from gibbsian.models.class_shares import posterior
from gibbsian.models.mixture import spread_points
from gibbsian.models.spherical_gaussians import GaussianMixtureModel
from gibbsian.models.von_mises_fisher import VonMisesFisherMixtureModel, draw_directions
from gibbsian.papers.drawing import curve, legend, log_axes
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.papers.yk15 import CLASS_COLOURS, free_energies, largest_rise, never_rises

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KAPPAS = np.array([20.0, 50.0, 100.0])
N_CLASSES = len(KAPPAS)
SIZES = np.array([60, 150, 400, 1000])
LEAST_ANGLE = np.radians(50.0)  # between two means, so that classes can be told apart
N_SHOWN = 150


@EXPERIMENTS.register("yk15-vmf")
def von_mises_fisher() -> Experiment:
    """Return mixtures of von Mises-Fisher distributions on the sphere (YK15).

    Examples
    --------
    >>> from gibbsian.papers.yk15_vmf import von_mises_fisher
    >>> von_mises_fisher().item
    'Von Mises-Fisher'
    """
    return Experiment(
        paper="YK15",
        item="Von Mises-Fisher",
        title="mixtures of von Mises-Fisher distributions on the sphere",
        trial=_trial,
        tables=_tables,
        draw=_draw,
        claims=(
            Claim("EM never lowers the likelihood", "Soft K-means (3)", _likelihood_rises, trials=1),
            Claim(
                "with lambda = 1 / sigma^2 the classes share points out as spherical Gaussians do",
                "Mixture of Von Mises Fisher",
                _as_gaussians,
                trials=1,
            ),
            Claim(
                "on the sphere the nearest mean is that of the greatest dot product",
                "online k-means",
                _nearest,
                trials=1,
            ),
            Claim(
                "maximum likelihood finds the means: their error falls as N grows",
                "Mixture of Von Mises Fisher",
                _means_found,
                trials=20,
                ours=True,
            ),
        ),
        size=(8.0, 3.6),
        scale=f"one mixture of {N_CLASSES} classes with kappa {', '.join(f'{kappa:.0f}' for kappa in KAPPAS)} at each N",
    )


def _trial(rng: np.random.Generator) -> Trial:
    errors, kappas = np.zeros(len(SIZES)), np.zeros((len(SIZES), N_CLASSES))
    for place, size in enumerate(SIZES):
        means = _means(rng)
        classes = rng.integers(N_CLASSES, size=size)
        points = np.empty((size, 3))
        for a in range(N_CLASSES):
            points[classes == a] = draw_directions(means[a], KAPPAS[a], int((classes == a).sum()), rng)
        fitted = VonMisesFisherMixture(N_CLASSES, random_state=rng).fit(points).model_
        mine, theirs = linear_sum_assignment(-means @ fitted.means.T)
        cosines = np.einsum("ij,ij->i", means[mine], fitted.means[theirs])
        errors[place] = np.degrees(np.arccos(np.minimum(cosines, 1.0))).mean()
        kappas[place] = fitted.concentrations[theirs]
    data = Dataset.of_states(points, "real", distinct=False)
    steps = VonMisesFisherMixtureModel.unplaced(N_CLASSES, 3).em_steps(data)
    start = spread_points(points, data.weights, N_CLASSES, rng)
    return {
        "error": errors,
        "kappa": kappas,
        "rise": largest_rise(free_energies(steps, steps.from_means(start), 40)),
        "gaussian gap": _gap_to_gaussians(points, means, rng.uniform(1.0, 100.0)),
        "nearest agrees": (
            ((points[:, None] - means) ** 2).sum(axis=2).argmin(axis=1) == (points @ means.T).argmax(axis=1)
        ).mean(),
        "points": points[:N_SHOWN],
        "class": classes[:N_SHOWN],
    }


def _means(rng: np.random.Generator) -> np.ndarray:
    """Draw directions until no two are close."""
    while True:
        means = rng.normal(size=(N_CLASSES, 3))
        means /= np.linalg.norm(means, axis=1)[:, None]
        if (means @ means.T)[np.triu_indices(N_CLASSES, 1)].max() < np.cos(LEAST_ANGLE):
            return means


def _gap_to_gaussians(points: np.ndarray, means: np.ndarray, kappa: float) -> float:
    """Return the largest difference between P(class | x) of both mixtures with equal weights and one lambda."""
    weights, same = np.full(N_CLASSES, 1.0 / N_CLASSES), np.full(N_CLASSES, kappa)
    directions = VonMisesFisherMixtureModel(weights, means, same)
    gaussians = GaussianMixtureModel(weights, means, 1.0 / same, np.zeros(3))
    return float(np.abs(posterior(directions.log_joint(points)) - posterior(gaussians.log_joint(points))).max())


def _tables(results: Results) -> list[Table]:
    import pandas as pd

    columns: dict[str, np.ndarray] = {
        "N": SIZES,
        "degrees": results.mean("error"),
        "degrees stderr": results.stderr("error"),
    }
    medians = np.median(results["kappa"], axis=0)
    columns |= {f"median kappa of {kappa:.0f}": medians[:, a] for a, kappa in enumerate(KAPPAS)}
    return [Table("angle between learned and true means, and concentrations", pd.DataFrame(columns))]


def _draw(results: Results, figure: Figure) -> None:
    left = figure.add_subplot(1, 2, 1, projection="3d")
    for a in range(N_CLASSES):
        points = results["points"][0][results["class"][0] == a]
        left.plot(*points.T, linestyle="", marker=".", markersize=3.5, color=CLASS_COLOURS[a])
    turn, rise = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
    sphere = np.cos(turn) * np.sin(rise), np.sin(turn) * np.sin(rise), np.cos(rise)
    left.plot_wireframe(*sphere, color="0.85", linewidth=0.4)
    left.set_box_aspect((1, 1, 1))
    left.set_axis_off()
    left.set_title("trial 0")
    right = figure.add_subplot(1, 2, 2)
    curve(right, SIZES, results.mean("error"), results.stderr("error"), "maximum likelihood", method="mle")
    log_axes(right, "N", "error of the means, degrees")
    legend(right)


def _likelihood_rises(results: Results) -> Verdict:
    return never_rises(results, "rise", "minus log-likelihood")


def _as_gaussians(results: Results) -> Verdict:
    gap = results["gaussian gap"].max()
    return Verdict(bool(gap < 1e-10), f"largest difference of P(class | x) {gap:.1e} in {results.n_trials} trials")


def _nearest(results: Results) -> Verdict:
    share = results["nearest agrees"]
    return Verdict(bool((share == 1.0).all()), f"{share.mean():.0%} of the points in {results.n_trials} trials")


def _means_found(results: Results) -> Verdict:
    medians = np.median(results["error"], axis=0)
    return Verdict(
        bool((np.diff(medians) < 0).all()), "median " + ", ".join(f"{angle:.2f}" for angle in medians) + " degrees"
    )
