"""The parameters of a pairwise machine as tables with names."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.estimators.shown import ShowsParameters
from gibbsian.models.base import Model
from gibbsian.resources import require_memory
from gibbsian.startup import check_is_fitted, pandas


class PairwiseTables(ShowsParameters):
    """Biases and couplings by name, for machines of a family that has couplings along the edges of a graph."""

    @classmethod
    def _structure_of(cls, model: Model[Any], coding: Any) -> dict[str, object]:
        return {"graph": model.family.graph, "coding": coding}

    # -- parameters ---------------------------------------------------------------------------------------------------
    @property
    def biases_(self) -> Any:
        """The biases by the names of columns and hidden units."""
        check_is_fitted(self)
        return pandas.Series(self.reported_model.parts.biases, index=list(self.variable_names_), name="bias")

    @property
    def couplings_(self) -> Any:
        """The symmetric matrix of couplings by name, zero where the graph has no edge."""
        check_is_fitted(self)
        require_memory(
            8.0 * self.model_.n_variables**2,
            f"the full matrix of couplings of {self.model_.n_variables:,} variables",
            "use strongest_couplings(), which lists the edges only",
        )
        names, model = list(self.variable_names_), self.reported_model
        return pandas.DataFrame(model.family.graph.matrix(model.parts.couplings), index=names, columns=names)

    def figures(self) -> dict[str, object]:
        """Return the numbers of columns, of hidden units where there are some, and of couplings."""
        model = self.model_
        hidden = {"columns": len(self.names_), "hidden units": model.n_hidden} if model.n_hidden else None
        return {**(hidden or {"variables": model.n_variables}), "couplings": model.family.graph.n_edges}

    def statistics(self) -> dict[str, object]:
        """Return the names of the columns (where there are biases) and of the pairs that interact."""
        names = np.array(self.variable_names_, dtype=object)
        return {
            "means": pandas.DataFrame({"column": names[: self.model_.family.layout.n_biases]}),
            "pairs": self._pairs,
        }

    @property
    def _pairs(self) -> Any:
        """The names of both ends of each edge."""
        names, (first, second) = np.array(self.variable_names_, dtype=object), self.model_.family.graph.edges.T
        return pandas.DataFrame({"first": names[first], "second": names[second]})

    def tables(self, n: int = 10) -> dict[str, object]:
        """Return the biases and the strongest couplings."""
        biases = {"biases": self.biases_} if self.model_.family.bias else {}
        return {**biases, "strongest couplings": self.strongest_couplings(n)}

    def strongest_couplings(self, n: int | None = None) -> Any:
        """Return the couplings as a table with columns first, second, coupling, the largest in size first."""
        check_is_fitted(self)
        couplings = self.reported_model.parts.couplings
        order = np.argsort(-np.abs(couplings), kind="stable")[:n]
        return self._pairs.iloc[order].assign(coupling=couplings[order]).reset_index(drop=True)
