"""The course of a fit as curves, and free energies as histograms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.learning import FitResult
from gibbsian.plots.canvas import NEGATIVE, POSITIVE, Axes, chart, colour, counted, require

if TYPE_CHECKING:
    from gibbsian.estimators.base import Estimator
    from gibbsian.estimators.layered import LayeredMachine
    from gibbsian.estimators.mixtures import ClassEstimator
    from gibbsian.estimators.restricted import RestrictedBoltzmannMachine

N_BINS = 40
# The first of these that a history has is drawn.
FIGURES = ("log_likelihood", "log_pseudolikelihood", "log_reconstruction", "reconstruction_error")
N_SAMPLES = 500  # drawn for a histogram of the model's own free energies


def convergence(machine: Estimator | FitResult, *, ax: Axes | None = None) -> Axes:
    """Draw the largest gradient entry of each step, and the value where the learner knows it.

    Parameters
    ----------
    machine : fitted estimator or FitResult
        Or what its fit left, ``result_``.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import gibbsian as gb
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> gb.plots.convergence(bm).get_xlabel()
    'step'
    """
    result = cast("FitResult", getattr(machine, "result_", machine))
    require(result, "trace", "fitted estimator")
    steps, norms, values = (result.trace.column(name) for name in ("step", "gradient_norm", "value"))
    steep = (norms > 0) & (norms < np.finfo(float).max)  # which stands for what is not known yet
    ax = chart(ax, "step", "largest gradient entry" if steep.any() else "value")
    other = ax.twinx() if steep.any() and np.isfinite(values).any() else ax
    if steep.any():
        ax.plot(steps[steep], norms[steep], color=NEGATIVE, marker=".", markersize=4)
        ax.yaxis.label.set_color(NEGATIVE)
        ax.set_yscale("log")
    if np.isfinite(values).any():
        other.plot(steps, values, color=POSITIVE)
        other.set_ylabel("value", color=POSITIVE)
    return _entitled(ax, result)


def training_curves(machine: LayeredMachine, *, ax: Axes | None = None) -> Axes:
    """Draw how the likelihoods rose during a fit: of its own rows solid, of rows held out dashed.

    Log-likelihoods are drawn where they were summed, and pseudolikelihoods otherwise; of real numbers the error of
    their reconstruction.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        A fitted machine, or any with ``history_``.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.repeat(np.eye(4, dtype=int), 10, axis=0)
    >>> rbm = gb.RestrictedBoltzmannMachine(3, validation_fraction=0.2, random_state=0).fit(rows)
    >>> ax = gb.plots.training_curves(rbm)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['log-likelihood', 'log-likelihood, held out']
    """
    require(machine, "history_", "RestrictedBoltzmannMachine")
    history: Mapping[str, np.ndarray] = machine.history_
    figure = next((name for name in FIGURES if name in history), None)
    if figure is None:
        raise ArgumentError(
            "the machine has no curve to draw: none was asked for, or its layers never learned together",
            "draw `convergence`, or fit with `learner=Minibatch(curves=True)`, or with `validation_fraction`",
        )
    words = figure.replace("log_", "log-").replace("_", " ")
    ax = chart(ax, "epoch", f"{words}, nats a row" if figure.startswith("log_") else words)
    curves = {figure: (words, "-"), f"held_out_{figure}": (f"{words}, held out", "--")}
    for k, (name, (label, style)) in enumerate(curves.items()):
        if name in history:
            values = np.asarray(history[name])
            ax.plot(np.arange(len(values)), values, style, color=colour(k), label=label, marker=".")
    ax.legend(frameon=False)
    return _entitled(ax, machine.result_)


def free_energy_trace(mixture: ClassEstimator, *, ax: Axes | None = None) -> Axes:
    """Draw the free energy of each step; the stages of an annealed fit are set apart.

    Parameters
    ----------
    mixture : fitted mixture
        The estimator that keeps it.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import gibbsian as gb
    >>> km = gb.HardKMeans(random_state=0).fit([[0.0], [1.0], [10.0], [11.0]])
    >>> gb.plots.free_energy_trace(km).get_xlabel()
    'step'
    """
    require(mixture, "free_energies_", "mixture")
    ax = chart(ax, "step", "free energy")
    energies = mixture.free_energies_
    stages, steps = getattr(mixture, "stages_", np.zeros(len(energies))), np.arange(len(energies))
    for stage in dict.fromkeys(stages.tolist()):
        part = stages == stage
        ax.plot(steps[part], energies[part], color=colour(0), marker=".", markersize=4)
    return _entitled(ax, mixture.result_)


def free_energies(
    machine: RestrictedBoltzmannMachine,
    data: Mapping[str, object],
    *,
    ax: Axes | None = None,
    sampled: bool = True,
) -> Axes:
    """Draw histograms of the free energies of several sets of rows: where they part, the machine overfits.

    Rows that the fit did not see should lie where those of the fit do, and so should samples of the machine.

    Parameters
    ----------
    machine : RestrictedBoltzmannMachine
        A fitted machine, or any with ``free_energy``.
    data : mapping from label to rows
        Such as ``{"fit": X_train, "held out": X_test}``.
    sampled : bool
        Add samples of the machine.
    ax : Axes, optional
        Where to draw.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.repeat(np.eye(4, dtype=int), 10, axis=0)
    >>> rbm = gb.RestrictedBoltzmannMachine(3, random_state=0).fit(rows)
    >>> ax = gb.plots.free_energies(rbm, {"fit": rows})
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['fit: 40 rows', 'samples: 500 rows']
    """
    require(machine, "free_energy", "RestrictedBoltzmannMachine")
    sets = {label: machine.free_energy(rows) for label, rows in data.items()}
    if sampled:
        sets["samples"] = machine.free_energy(machine.sample(N_SAMPLES))
    if not sets:
        raise ArgumentError("data holds no rows", "give a mapping from labels to rows, or `sampled=True`")
    ax = chart(ax, "free energy F(v)", "density")
    edges = np.histogram_bin_edges(np.concatenate(list(sets.values())), bins=N_BINS).tolist()
    for k, (name, energies) in enumerate(sets.items()):
        label = f"{name}: {counted(len(energies), 'row')}"
        ax.hist(energies, bins=edges, density=True, histtype="stepfilled", alpha=0.25, color=colour(k))
        ax.hist(energies, bins=edges, density=True, histtype="step", linewidth=1.5, color=colour(k), label=label)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles, labels, frameon=False)
    ax.set_title("free energies")
    return ax


def _entitled(ax: Axes, result: FitResult) -> Axes:
    """Write above a curve how its fit ended."""
    ax.set_title(result.reason, fontsize=10)
    return ax
