"""Mixtures of models of any family: ``P(x) = sum_a w_a exp(-E_a(x)) / Z_a``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np

from gibbsian.arrays import Floats, Mask, States
from gibbsian.errors import ArgumentError
from gibbsian.models.base import FAMILIES, Family, Model, Parts
from gibbsian.models.file_parts import MOST, PartsInFile, Plain, reals
from gibbsian.models.interactions import Interactions
from gibbsian.models.mixtures.base import MixtureFamily, log_class_weights
from gibbsian.models.variables import Variables


class MixtureOfParts(NamedTuple):
    """The weight of each class, log Z of its model, and the parameters of all models, one after the other."""

    weights: Floats
    log_partitions: Floats
    parameters: Floats


@FAMILIES.register("machine-mixture")
@dataclass(frozen=True, eq=False)
class MixtureOfFamily(MixtureFamily[MixtureOfParts]):
    """Mixtures of models of any family; log Z of each is a parameter, which the M-step sets.

    Parameters
    ----------
    n_components : int
        k, the number of classes.
    columns : Variables
        The values of the columns.
    models : tuple of Model, default=()
        A model for each class, at any parameters; none in an unfitted mixture.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.models.variables import Variables
    >>> pair = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> family = gb.models.MixtureOfFamily(2, Variables.spins(2), (pair, pair))
    >>> theta = family.join([0.5, 0.5], np.log([4.0, 4.0]), np.zeros(6))
    >>> np.exp(family.log_evidence(theta, np.array([[1, 1]]))).round(3)
    array([0.25])
    """

    n_components: int
    columns: Variables
    models: tuple[Model[Family], ...] = ()
    _parts = MixtureOfParts
    parts_in_file: ClassVar[PartsInFile] = {
        "n_components": Plain((int,), 1, MOST, size="parts"),
        "theta": reals("parameters"),
    }

    @property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the weights, of log Z, and of all other parameters."""
        return (self.n_components,), (self.n_components,), (sum(model.theta.size for model in self.models),)

    @property
    def n_free(self) -> int:
        """Number of parameters of all models, and the weights."""
        counts = [m.family.n_free if isinstance(m.family, MixtureFamily) else m.theta.size for m in self.models]
        return sum(counts) + self.n_components - 1

    def models_at(self, theta: Floats) -> list[Model[Family]]:
        """Return the model of each class."""
        ends = np.cumsum([model.theta.size for model in self.models])
        pieces = np.split(self.split(theta).parameters, ends[:-1])
        return [model.replace(piece) for model, piece in zip(self.models, pieces, strict=True)]

    def parameter_names(self, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the columns."""
        k = range(self.n_components)
        inner = [f"{name} | {a}" for a, model in enumerate(self.models) for name in model.parameter_names(names)]
        return [*(f"weights[{a}]" for a in k), *(f"log Z[{a}]" for a in k), *inner]

    def interactions(self, theta: Floats) -> Interactions:
        """Return the interactions of the models, averaged over the classes."""
        networks = [model.interactions() for model in self.models_at(theta)]
        totals: dict[tuple[int, ...], float] = {}
        for weight, part in zip(self.split(theta).weights.tolist(), networks, strict=True):
            for scope, strength in zip(part.scopes, part.strengths.tolist(), strict=True):
                totals[scope] = totals.get(scope, 0.0) + weight * strength
        measure = f"mean {networks[0].measure} of the classes"
        return replace(networks[0], scopes=tuple(totals), strengths=np.array(list(totals.values())), measure=measure)

    def log_joint(self, theta: Floats, x: States, mask: Mask | None = None) -> Floats:
        """Return ``log P(x, class)`` of complete rows; `MixtureOfAnswers` sums out hidden units and missing cells."""
        if mask is not None or any(model.n_hidden for model in self.models):
            raise ArgumentError("a mixture of models has no closed form of what is hidden", "ask `answers_about`")
        weights, log_partitions, _ = self.split(theta)
        logs = [model.log_weights(x) for model in self.models_at(theta)]
        return np.column_stack(logs) - log_partitions + log_class_weights(weights)

    # -- files --------------------------------------------------------------------------------------------------------
    def to_parts(self) -> Parts:
        """Return what a file keeps besides the coding, which has the columns, and the models."""
        return Parts({"n_components": self.n_components}, {}, self.models)

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from what a file keeps."""
        return cls(len(parts.models), variables, parts.models)


def mixture_of(
    family: MixtureOfFamily, models: Sequence[Model[Family]], weights: Floats, log_partitions: Floats
) -> Model[MixtureOfFamily]:
    """Return the mixture of these models with the columns of a family."""
    family = replace(family, models=tuple(models))
    return Model(family, family.join(weights, log_partitions, *(model.theta for model in models)))
