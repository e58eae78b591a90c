"""Yasuda 2018, section 6: Bayesian image processing, named there as an application of SMCI that is yet to come.

A binary image x has an Ising prior with smoothness J, the noisy image y shows it with some pixels flipped:
``P(x, y) = exp(J sum x_i x_j + h sum x_i y_i) / Z``, so that a share ``1 / (1 + exp(2 h))`` is flipped.
This is a Boltzmann machine whose hidden units are the true pixels; J and h are learned from noisy images alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import with_hidden
from gibbsian.expectations import PersistentChains, Sampled
from gibbsian.expectations.sampled import first_order
from gibbsian.graphs import from_edges, grid
from gibbsian.learning import MomentMatching, run
from gibbsian.learning.optimizers import Adam, Decay, Tied
from gibbsian.models import Model, PairwiseFamily
from gibbsian.rng import Key
from gibbsian.sampling import kernel_for
from gibbsian.sampling.cooling import annealed, cooled_states
from gibbsian_reproduction.drawing import Figure
from gibbsian_reproduction.experiment import EXPERIMENTS, Experiment, Results, Trial, Verdict, claim
from gibbsian_reproduction.systems import stacked
from gibbsian_reproduction.tables import Table, with_stderr
from gibbsian_reproduction.verdicts import mean_with_error

SIDE, SMOOTHNESS, FLIPPED, N_IMAGES = 24, 0.43, 0.15, 6
N_PIXELS = SIDE * SIDE
FIELD = 0.5 * np.log(1.0 / FLIPPED - 1.0)  # 1 / (1 + exp(2 h)) of the pixels are flipped
START = (0.2, 0.5)  # of smoothness and field; at zero no pixel tells about another
N_STEPS = 200
KINDS = ("drawn from the model", "drawn by hand")
SHOWN = ("truth", "noisy", "MPM", "MAP")
LATTICE = grid(SIDE, SIDE)
# pixels of the noisy image first, then the true ones, which are hidden
NOISE_PAIRS = np.column_stack([np.arange(N_PIXELS), N_PIXELS + np.arange(N_PIXELS)])
GRAPH = from_edges(np.vstack([NOISE_PAIRS, N_PIXELS + LATTICE.edges]), 2 * N_PIXELS)
IS_NOISE = GRAPH.edges[:, 0] < N_PIXELS
REMARK = "section 6, ours"
KNOWN, USED = "known: of the model that the first images are drawn from", f"used: J = {SMOOTHNESS}, flipped {FLIPPED}"


@EXPERIMENTS.register("y18-restoration")
def restoration() -> Experiment:
    """Return Bayesian image restoration with smoothness and noise learned from the noisy image (Y18 section 6)."""
    return Experiment(
        "Y18",
        "Section 6",
        "noisy images restored, with hyperparameters learned from them alone",
        _trial,
        (
            _table("share of wrong pixels", "errors", ("noisy", "MPM", "MAP", "MPM, J and h known"), KNOWN),
            _table("learned from noisy images alone", "hyperparameters", ("smoothness J", "share flipped"), USED),
        ),
        _draw,
        (_restored_is_better, _close, _as_good_as_known, _means_beat_modes),
        size=(8.0, 4.2),
        trials_of=lambda asked: max(1, asked // 10),
        scale=f"{SIDE} x {SIDE} pixels, {N_IMAGES} images of the model and one by hand; one for every 10 asked",
    )


def machine(smoothness: float, field: float) -> Model[PairwiseFamily]:
    """Return the machine of noisy and true pixels."""
    theta = np.where(IS_NOISE, field, smoothness)
    return Model(PairwiseFamily(GRAPH, bias=False, n_hidden=N_PIXELS), theta)


def learned(noisy: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """Return smoothness and field of greatest likelihood, by moments: chains given noisy images, and free ones."""
    learner = MomentMatching(
        Sampled(PersistentChains(n_chains=10, n_steps=2)),
        optimizer=Tied(Adam(learning_rate=0.03, decay=Decay(delay=50.0)), IS_NOISE.astype(np.int64)),
        clamped=Sampled(PersistentChains(copies=5, n_steps=2)),
        average=True,
    )
    data = with_hidden(Dataset.of_states(noisy, "spin"), N_PIXELS)
    model: Any = run(learner, machine(*START), data, rng, max_iter=N_STEPS, tol=0.0).model
    return float(model.theta[~IS_NOISE][0]), float(model.theta[IS_NOISE][0])


def posterior(noisy: np.ndarray, smoothness: float, field: float) -> Model[PairwiseFamily]:
    """Return the machine of the true pixels given the noisy ones."""
    return machine(smoothness, field).given(np.arange(N_PIXELS), noisy)[0]


def marginal_modes(model: Model[PairwiseFamily], rng: np.random.Generator) -> np.ndarray:
    """Return the likelier value of every pixel by itself (MPM), its mean taken by 1-SMCI."""
    spatial = first_order(n_chains=20, n_draws=20, burn_in=50, warn=False).bind(model)
    estimate, _ = spatial(model.theta, spatial.init(model.theta, Key.of(rng)))
    return np.where(estimate.value[:N_PIXELS] > 0, 1, 0)


def joint_mode(model: Model[PairwiseFamily], rng: np.random.Generator) -> np.ndarray:
    """Return the likeliest image (MAP) that chains reach as the temperature falls."""
    key = Key.of(rng)
    return annealed(lambda n_chains, n_sweeps: cooled_states(model, n_chains, n_sweeps, key), model.log_weights)[0]


def _trial(rng: np.random.Generator) -> Trial:
    field_free = PairwiseFamily.model(LATTICE, None, np.full(LATTICE.n_edges, SMOOTHNESS))
    kernel = kernel_for(field_free.family)
    drawn = kernel.step(field_free.theta, kernel.init(N_IMAGES, Key.of(rng)), 2000)[0].states
    return stacked(_restored(truths, rng) for truths in (drawn, by_hand()[None]))


def _restored(truths: np.ndarray, rng: np.random.Generator) -> Trial:
    """Add noise, learn from all noisy images together, and restore the first of them."""
    blurred = truths ^ (rng.random(truths.shape) < FLIPPED)
    smoothness, field = learned(blurred, rng)
    truth, noisy = truths[0], blurred[0]
    model = posterior(noisy, smoothness, field)
    images = [truth, noisy, marginal_modes(model, rng), joint_mode(model, rng)]
    known = marginal_modes(posterior(noisy, SMOOTHNESS, FIELD), rng)
    return {
        "images": np.array(images),
        "errors": np.array([(image != truth).mean() for image in [*images[1:], known]]),
        "hyperparameters": np.array([smoothness, 1.0 / (1.0 + np.exp(2.0 * field))]),
    }


def by_hand() -> np.ndarray:
    """Return a ring beside two bars."""
    row, column = np.indices((SIDE, SIDE)) / SIDE
    distance = np.hypot(row - 0.45, column - 0.35)
    ring = (distance > 0.12) & (distance < 0.27)
    bars = (column > 0.72) & (column < 0.9) & ((row < 0.4) | (row > 0.6)) & (row > 0.1) & (row < 0.9)
    return (ring | bars).ravel().astype(np.int8)


def _table(title: str, key: str, labels: tuple[str, ...], note: str) -> Callable[[Results], Table]:
    """Return what makes a table of what was found, a row for each kind of image."""

    def of(results: Results) -> Table:
        columns = [with_stderr(name, results[key][:, :, place]) for place, name in enumerate(labels)]
        return Table(title, {"image": KINDS, **{name: part for pair in columns for name, part in pair.items()}}, note)

    return of


def _draw(results: Results, figure: Figure) -> None:
    for kind in range(len(KINDS)):
        for place, name in enumerate(SHOWN):
            axes = figure.add_subplot(len(KINDS), len(SHOWN), 1 + kind * len(SHOWN) + place)
            axes.imshow(results["images"][0, kind, place].reshape(SIDE, SIDE), cmap="gray", vmin=0, vmax=1)
            wrong = f", {results['errors'][0, kind, place - 1]:.1%} wrong" if place else ""
            axes.set_title(name + wrong, fontsize=9)
            axes.set_axis_off()


@claim("the restored image has fewer wrong pixels than the noisy one", REMARK, trials=1, ours=True)
def _restored_is_better(results: Results) -> Verdict:
    noisy, restored = results["errors"][:, :, 0], results["errors"][:, :, 1]
    counts = f"{(restored < noisy).sum()} of {noisy.size} images"
    return Verdict((restored < noisy).all(), f"{counts}; from {noisy.mean():.1%} to {restored.mean():.1%} on average")


@claim("smoothness and noise are learned from noisy images alone", REMARK, trials=4, ours=True)
def _close(results: Results) -> Verdict:
    found = mean_with_error(results["hyperparameters"][:, 0])
    gaps = np.abs(found.value - [SMOOTHNESS, FLIPPED])
    numbers = f"J {found.at(0)} for {SMOOTHNESS}, share flipped {found.at(1)} for {FLIPPED}"
    return Verdict((gaps < [0.05, 0.02]).all(), numbers)


@claim("they restore as well as the values that made the image", REMARK, trials=4, ours=True)
def _as_good_as_known(results: Results) -> Verdict:
    more = mean_with_error(results["errors"][:, 0, 1] - results["errors"][:, 0, 3])
    return Verdict(more.value < 0.005, f"share of wrong pixels more by {more}")


@claim("the likeliest value of every pixel has fewer errors than the likeliest image", REMARK, trials=20, ours=True)
def _means_beat_modes(results: Results) -> Verdict:
    fewer = mean_with_error(results["errors"][:, 0, 2] - results["errors"][:, 0, 1])
    return Verdict(fewer.value > 0, f"share of wrong pixels less by {fewer}")
