"""The models that the command line knows. To add one, add a row to `MODELS` (and a flag of its own to `FLAGS`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gibbsian.cli import deep, full_span, layered, machines, mixtures
from gibbsian.cli.families import Family, Section
from gibbsian.cli.flags import FLAGS
from gibbsian.errors import ArgumentError


@dataclass(frozen=True)
class ModelKind:
    """One model of the command line.

    Parameters
    ----------
    about : str
        What it is for, in a few words.
    estimator : str
        Where its estimator stands: ``"module:Class"``.
    flags : tuple of str
        The flags of ``gibbsian fit`` that it takes, besides those of any model.
    family : Family
        How it is fitted, read, sampled and described.
    show : callable
        ``show(machine, top)`` is a list of sections: its parameters.
    expected : callable, optional
        ``expected(machine, estimate)`` is a list of sections: its expectations.

    Examples
    --------
    >>> from gibbsian.cli.models import MODELS
    >>> MODELS["potts"].load().__name__
    'PottsMachine'
    """

    about: str
    estimator: str
    flags: tuple[str, ...]
    family: Family
    show: Callable[[Any, int], list[Section]]
    expected: Callable[[Any, Any], list[Section]] | None = None

    def load(self) -> Any:
        """Import the estimator."""
        module, name = self.estimator.split(":")
        return getattr(importlib.import_module(module), name)


_LEARNING = ("learner", "region", "optimizer", "rate", "l1", "l2", "max_iter", "tol")
_PROGRESS = ("checkpoint", "checkpoint_every", "resume")
_TABLE = ("coding", "binarize", "complete_rows", "held_out")
_EM = ("components", "n_init", "max_iter", "tol")
_LAYERS = (
    "epochs", "batch_size", "rate", "schedule", "momentum", "free_phase", "chain_steps", "chains", "plain", "l1", "l2",
    "temperature",
)  # fmt: skip
ANY_MODEL = ("drop", "weights")

MODELS: dict[str, ModelKind] = {
    "pairwise": ModelKind(
        "two values a column, a coupling for each pair",
        "gibbsian.estimators.boltzmann_machine:BoltzmannMachine",
        ("graph", "no_bias", "temperature", *_LEARNING, "start", *_TABLE, "memory", *_PROGRESS),
        machines.PAIRWISE,
        machines.pairwise_sections,
        machines.pairwise_expected,
    ),
    "higher-order": ModelKind(
        "two values or real numbers, a weight for each clique",
        "gibbsian.estimators.higher_order:HigherOrderBoltzmannMachine",
        ("order", "cliques", "graph", "no_bias", "temperature", *_LEARNING, *_TABLE, "values", *_PROGRESS),
        machines.MACHINES,
        machines.higher_order_sections,
        machines.higher_order_expected,
    ),
    "potts": ModelKind(
        "any number of values a column, a table for each pair",
        "gibbsian.estimators.potts:PottsMachine",
        ("graph", "temperature", *_LEARNING, *_TABLE, "values", "categories", "one_hot", *_PROGRESS),
        machines.MACHINES,
        machines.potts_sections,
        machines.potts_expected,
    ),
    "full-span": ModelKind(
        "any number of values, functions of any order chosen by what they save",
        "gibbsian.estimators.full_span:FullSpan",
        (
            "algorithm",
            "epsilon",
            "l1",
            "l2",
            "l2_growth",
            "mdl_scale",
            "max_iter",
            *_TABLE,
            "categories",
            "one_hot",
            *_PROGRESS,
        ),
        full_span.FULL_SPAN,
        full_span.span_sections,
        full_span.span_expected,
    ),
    "hidden": ModelKind(
        "two values a column, a coupling for each pair of columns and hidden units",
        "gibbsian.estimators.hidden:HiddenBoltzmannMachine",
        ("hidden", "graph", "no_bias", "temperature", *_LEARNING, "clamped", "n_init", *_TABLE, *_PROGRESS),
        machines.MACHINES,
        machines.pairwise_sections,
        machines.pairwise_expected,
    ),
    "rbm": ModelKind(
        "two values, categories or numbers a column, and a layer of hidden units",
        "gibbsian.estimators.restricted:RestrictedBoltzmannMachine",
        ("hidden", "visible", *_LAYERS, "coding", "binarize", "complete_rows", "held_out", *_PROGRESS),
        layered.LAYERED,
        layered.unit_sections,
    ),
    "dbn": ModelKind(
        "the same with several layers: restricted machines stacked, then fine-tuned together",
        "gibbsian.estimators.deep:DeepBeliefNetwork",
        ("hidden", "visible", *_LAYERS, "fine_tune", "coding", "binarize", "complete_rows", "held_out", *_PROGRESS),
        deep.BELIEF_NETWORK,
        layered.unit_sections,
    ),
    "dbm": ModelKind(
        "the same with several layers: a deep Boltzmann machine, by mean field and chains",
        "gibbsian.estimators.deep:DeepBoltzmannMachine",
        ("hidden", "visible", *_LAYERS, "pretrain", "coding", "binarize", "complete_rows", "held_out", *_PROGRESS),
        deep.DEEP,
        layered.unit_sections,
    ),
    "vmf-mixture": ModelKind(
        "directions (rows are scaled to norm 1), von Mises-Fisher classes",
        "gibbsian.estimators.mixtures:VonMisesFisherMixture",
        (*_EM, "kappa", "assignment", "no_normalize"),
        mixtures.DENSITIES,
        mixtures.class_sections,
    ),
    "gaussian-mixture": ModelKind(
        "numbers, spherical Gaussian classes",
        "gibbsian.estimators.mixtures:GaussianMixture",
        (*_EM, "variance"),
        mixtures.DENSITIES,
        mixtures.class_sections,
    ),
    "soft-k-means": ModelKind(
        "numbers, classes of one fixed variance",
        "gibbsian.estimators.mixtures:SoftKMeans",
        (*_EM, "variance", "anneal"),
        mixtures.DENSITIES,
        mixtures.class_sections,
    ),
    "k-means": ModelKind(
        "numbers, nearest means",
        "gibbsian.estimators.mixtures:HardKMeans",
        _EM,
        mixtures.CLUSTERINGS,
        mixtures.class_sections,
    ),
    "online-k-means": ModelKind(
        "directions (rows are scaled to norm 1), nearest units that move with every row",
        "gibbsian.estimators.mixtures:OnlineKMeans",
        ("components", "rate", "epochs", "no_normalize"),
        mixtures.CLUSTERINGS,
        mixtures.class_sections,
    ),
    "machine-mixture": ModelKind(
        "any labels, classes of independent columns",
        "gibbsian.estimators.mixtures:MachineMixture",
        (*_EM, "assignment", "smoothing"),
        mixtures.DENSITIES,
        mixtures.label_sections,
    ),
}


def find(name: str) -> ModelKind:
    """Return a model by name.

    Examples
    --------
    >>> from gibbsian.cli.models import find
    >>> find("magic")
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: model='magic' is not known: use one of pairwise, higher-order, potts, ...
    """
    if name not in MODELS:
        raise ArgumentError("is not known", f"use one of {', '.join(MODELS)}", argument="model", value=name)
    return MODELS[name]


def name_of(machine: Any) -> str:
    """Return the name of the model that a fitted estimator has.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.cli.models import name_of
    >>> name_of(gb.PottsMachine())
    'potts'
    """
    return next(name for name, kind in MODELS.items() if kind.estimator.endswith(f":{type(machine).__name__}"))


def owners_of_flags() -> dict[str, str]:
    """Say for each flag which models take it; nothing where all do.

    Examples
    --------
    >>> from gibbsian.cli.models import owners_of_flags
    >>> owners_of_flags()["order"]
    'higher-order'
    """
    owners = {flag: [name for name, kind in MODELS.items() if flag in kind.flags] for flag in FLAGS}
    return {flag: ", ".join(names) for flag, names in owners.items() if names}


def require_answer(question: str, machine: Any) -> ModelKind:
    """Return the kind of a fitted model, after a check that it can answer a command.

    Examples
    --------
    >>> from gibbsian.cli.models import require_answer
    >>> from gibbsian.estimators.mixtures import HardKMeans
    >>> require_answer("sample", HardKMeans())
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: gibbsian sample cannot be asked of this model, k-means: it answers score and show;
    ask sample of pairwise, higher-order, ...
    """
    name = name_of(machine)
    kind = MODELS[name]
    if question not in kind.family.questions:
        able = " and ".join([", ".join(sorted(kind.family.questions)), "show"])
        others = ", ".join(other for other, known in MODELS.items() if question in known.family.questions)
        raise ArgumentError(
            f"gibbsian {question} cannot be asked of this model, {name}",
            f"it answers {able}; ask {question} of {others}",
        )
    return kind
