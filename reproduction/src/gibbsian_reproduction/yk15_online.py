"""Yuille and Kersten 2015: does online learning get stuck less than batch learning, from the same starts?"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.learning import EM, OnlineEM, OnlineKMeansRule, run
from gibbsian.learning.em import PARTITION, mixture_steps
from gibbsian.models import GaussianMixtureFamily, KMeansFamily
from gibbsian_reproduction.drawing import Figure
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Trial, Verdict, claim
from gibbsian_reproduction.tables import Table, with_stderr
from gibbsian_reproduction.verdicts import mean_with_error
from gibbsian_reproduction.yk15_mixtures import N_CLASSES, SPREAD, clusters

N_ROWS, N_STARTS, N_REFERENCES = 100, 5, 10
PASSES = 6  # over the rows, before batch steps settle what noise is left
RATE = 0.2  # constant, for k-means
KINDS = ("k-means", "soft k-means", "Gaussians")
WAYS = ("batch", "online")
# An end is poor when its free energy is this much above that of the best known, per row; energies of k-means by ratio.
POOR_NATS, POOR_RATIO = 0.01, 1.01
SOURCE = "Online learning"


@EXPERIMENTS.register("yk15-online")
def online() -> Experiment:
    """Return batch and online learning from the same random partitions (YK15: online is less likely to be stuck)."""
    return Experiment(
        "YK15",
        "Online learning",
        "how often batch and online learning of classes end in a poor minimum",
        _trial,
        (_table,),
        _draw,
        (*(_stuck_less(place) for place in range(len(KINDS))), _some_starts_fail),
        trials_of=lambda asked: max(1, asked // 4),
        scale=f"{N_ROWS} points round {N_CLASSES} random means, {N_STARTS} random partitions; one for every 4 asked",
    )


def _trial(rng: np.random.Generator) -> Trial:
    data = Dataset.of_states(clusters(rng)[:N_ROWS], "real", distinct=False)
    families = (
        KMeansFamily(N_CLASSES, 2),
        GaussianMixtureFamily(N_CLASSES, 2, SPREAD**2, free_weights=False),
        GaussianMixtureFamily(N_CLASSES, 2, floor_share=1e-2),
    )
    rows_by_row: Any = OnlineKMeansRule(normalize=False, learning_rate=RATE, schedule="constant", max_iter=PASSES)
    learners = (rows_by_row, OnlineEM(batch_size=1), OnlineEM(batch_size=1))
    poor = [_poor_ends(family, learner, data, rng) for family, learner in zip(families, learners, strict=True)]
    return {"poor": np.array(poor)}


def _poor_ends(family: Any, learner: Any, data: Dataset, rng: np.random.Generator) -> np.ndarray:
    """Return the shares of the starts from which batch and online learning end far above the best end known."""
    steps, partition = mixture_steps(family, data), mixture_steps(family, data, placing=PARTITION)
    references = [_settled(steps.model(*steps.placed(rng)), data) for _ in range(N_REFERENCES)]
    ends = np.empty((N_STARTS, len(WAYS)))
    for place in range(N_STARTS):
        start = partition.model(*partition.placed(rng))
        shaken = run(learner, start, data, rng, max_iter=PASSES, tol=0.0).model
        ends[place] = _settled(start, data), _settled(shaken, data)
    best = min(*references, ends.min())
    limit = POOR_RATIO * best if isinstance(learner, OnlineKMeansRule) else best + POOR_NATS * data.n_rows
    return (ends > limit).mean(axis=0)


def _settled(start: Any, data: Dataset) -> float:
    """Return the free energy where batch steps end."""
    return float(run(EM(), start, data, max_iter=1000, tol=1e-8).trace.column("value")[-1])


def _table(results: Results) -> Table:
    columns: dict[str, Any] = {"classes": KINDS}
    for way, name in enumerate(WAYS):
        columns |= with_stderr(name, results["poor"][:, :, way])
    return Table("share of the starts that end in a poor minimum", columns, "online: batch steps settle it at the end")


def _draw(results: Results, figure: Figure) -> None:
    axes, places = figure.add_subplot(), np.arange(len(KINDS))
    for way, (name, colour) in enumerate(zip(WAYS, ("#0072b2", "#d55e00"), strict=True)):
        heights, errors = results.mean("poor")[:, way], np.nan_to_num(results.stderr("poor")[:, way])
        axes.bar(places + 0.36 * way, heights, 0.34, yerr=errors, label=name, color=colour)
    axes.set_xticks(places + 0.18, KINDS)
    axes.set_ylabel("share of starts that end poorly")
    axes.legend()


def _stuck_less(place: int) -> Claim:
    """Claim that online learning of one kind of classes ends in a poor minimum less often."""

    def check(results: Results) -> Verdict:
        batch, online = (results["poor"][:, place, way] for way in range(len(WAYS)))
        starts = results.n_trials * N_STARTS
        counts = f"{online.mean() * starts:.0f} of {starts} starts, batch {batch.mean() * starts:.0f}"
        gap = mean_with_error(batch - online)
        return Verdict(gap.value > 2.0 * gap.error, f"{counts}; difference of the shares {gap}")

    return Claim(
        f"{KINDS[place]}: online learning is stuck less often", SOURCE, check, trials=20 if place == 0 else 200
    )


@claim("batch learning does get stuck: some starts end poorly", "K-means (1)", trials=4)
def _some_starts_fail(results: Results) -> Verdict:
    batch = results.mean("poor")[:, 0]
    shares = ", ".join(f"{kind} {share:.0%}" for kind, share in zip(KINDS, batch, strict=True))
    return Verdict((batch > 0).all(), shares)
