"""The structure that products and tables share: sets of variables with one term each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self

from gibbsian.arrays import Floats, Integers
from gibbsian.graphs import Graph
from gibbsian.models.base import Parts, fields_alone
from gibbsian.models.file_parts import SIZE, PartsInFile, integers, reals
from gibbsian.models.given import cached_by_nodes
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.variables import Variables, as_variables


class Weights(NamedTuple):
    """Theta: the weight of each statistic."""

    weights: Floats


@dataclass(frozen=True, eq=False)
class ScopedFamily:
    """A family with one term for each of its scopes.

    Parameters
    ----------
    scopes : Scopes
        The variables of each term.
    variables : Variables or callable, default=Variables.spins
        The number of values and the scores of each variable.
    """

    scopes: Scopes
    variables: Variables = Variables.spins  # type: ignore[assignment]

    registered_name: ClassVar[str]
    n_hidden: ClassVar[int] = 0
    parts_in_file: ClassVar[PartsInFile] = {
        "n_variables": SIZE,
        "indptr": integers("ends"),
        "members": integers("members", below="all"),
        "theta": reals("parameters"),
    }
    __getstate__ = fields_alone

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", as_variables(self.variables, self.scopes.n_variables))

    @property
    def graph(self) -> Graph:
        """The pairs of variables that share a scope."""
        return self.scopes.graph

    def to_parts(self) -> Parts:
        """Return the scopes."""
        return Parts({"n_variables": self.scopes.n_variables}, self.scopes.to_arrays())

    @classmethod
    def from_parts(cls, parts: Parts, variables: Variables) -> Self:
        """Build the family from the scopes of a model file and the variables of the columns."""
        return cls(Scopes.from_arrays(parts.arrays, len(variables)), variables)

    @cached_by_nodes
    def _without(self, nodes: Scope) -> tuple[Self, Integers]:
        """Return the family of the other variables, and for each scope the index of the scope that is left, or -1."""
        rest, scopes, index = self.scopes.without(nodes)
        return type(self)(scopes, self.variables.take(rest)), index
