"""The Potts machine, for variables with any number of values, as a scikit-learn estimator."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from gibbsian.data import Dataset, Threshold
from gibbsian.errors import ArgumentError
from gibbsian.estimators.boltzmann_machine import GRAPH
from gibbsian.estimators.frames import labels_of_columns
from gibbsian.estimators.held_out import one_over
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.machine import Machine
from gibbsian.graphs import as_graph
from gibbsian.models.base import Model
from gibbsian.models.families.tables import TablesFamily, coupling_norms
from gibbsian.resources import require_memory
from gibbsian.settings import declared, free, positional
from gibbsian.startup import check_is_fitted, pandas


@ESTIMATORS.register("potts", about="any number of values a column, a table for each pair")
@declared
class PottsMachine(Machine):
    """A pairwise machine of variables with any number of values each, with a table of couplings on every edge.

    ``P(x) = exp((sum_i h_i(x_i) + sum_ij J_ij(x_i, x_j)) / T) / Z``, the model of direct coupling analysis. Parameters
    are shown in the zero-sum gauge: biases and every row and column of a coupling table sum to zero.

    Attributes
    ----------
    biases_ : pandas.Series
        h_i(a) by column and value, in the zero-sum gauge.
    couplings_ : pandas.DataFrame
        J_ij(a, b) by column and value on both axes, in the zero-sum gauge.
    coupling_norms_ : pandas.DataFrame
        The symmetric matrix of Frobenius norms of the coupling tables in that gauge; see `coupling_norms` for the
        average product correction.
    result_, model_, coding_
        As in `BoltzmannMachine`; the model is one of a `TablesFamily`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [["red", "s"], ["red", "s"], ["green", "m"], ["green", "m"], ["blue", "l"], ["blue", "s"]]
    >>> machine = gb.PottsMachine(l2=0.01).fit(rows)
    >>> machine.biases_.index[:3].tolist()
    [('x0', 'blue'), ('x0', 'green'), ('x0', 'red')]
    >>> machine.couplings_.loc["x0", "x1"].idxmax(axis=1).tolist()
    ['l', 'm', 's']
    >>> machine.impute([["green", None]]).tolist()
    [['green', 'm']]
    """

    learners = (*Machine.learners, "mean-field")

    coding: Any = free(
        "categorical",
        "Labels of each column, recognised from the data ('categorical'), numbers common to all columns ('values'), or "
        "declared by Labels, Values or OneHot.",
        doc="str, CategoryCoding, Labels, Values or OneHot",
    )
    graph: Any = positional(
        kw_only=False, default=free("complete", GRAPH, doc="str, Graph, networkx graph or list of pairs")
    )

    _welcome = ("categorical", "three_d_array")

    def _coding(self) -> Any:
        """Return the coding, in which a threshold makes categories."""
        cut = isinstance(self.coding, Threshold) and self.coding.coding == "binary"
        return replace(self.coding, coding="categorical") if cut else super()._coding()

    def _zeros(self, data: Dataset) -> Model[TablesFamily]:
        if data.coding.domain.two_valued:
            raise ArgumentError(
                f"a PottsMachine learns categories, but the coding is {data.coding.describe()}",
                "convert the data with `Dataset.convert('categorical')`, or use a BoltzmannMachine",
            )
        return Model.zeros(TablesFamily.potts(as_graph(self.graph, data.names), data.variables))

    def _parameters_per_row(self, data: Any) -> float:
        """Count what a gauge leaves free: one value of each column, and all its couplings, can be zero."""
        graph, free = as_graph(self.graph, data.names), np.subtract(data.variables.sizes, 1)
        first, second = graph.edges.T
        return float((free.sum() + (free[first] * free[second]).sum()) * one_over(data))

    @classmethod
    def _structure_of(cls, model: Model[TablesFamily], coding: Any) -> dict[str, Any]:
        return {"graph": model.family.graph, "coding": coding}

    # -- parameters ---------------------------------------------------------------------------------------------------
    def _columns_and_values(self) -> Any:
        return labels_of_columns(self.names_, self._column_labels)

    @property
    def _zero_sum(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The biases of each column and the couplings of each edge in the zero-sum gauge."""
        tables, n = self.reported_model.canonical().parts.tables, self.model_.n_variables
        return tables[:n], tables[n:]

    def _norms(self, apc: bool) -> np.ndarray:
        model = self.reported_model
        return coupling_norms(model, apc)

    @property
    def biases_(self) -> Any:
        """The biases by column and value, in the zero-sum gauge."""
        check_is_fitted(self)
        biases = np.concatenate(self._zero_sum[0])
        return pandas.Series(biases, index=self._columns_and_values(), name="bias")

    @property
    def couplings_(self) -> Any:
        """The symmetric matrix of couplings by column and value, in the zero-sum gauge; zero without an edge."""
        check_is_fitted(self)
        starts = self.model_.variables.offsets
        require_memory(
            8.0 * float(starts[-1]) ** 2,
            f"the full matrix of couplings of {starts[-1]:,} values",
            "use strongest_couplings(), which lists the edges, or reported_model.canonical().parts",
        )
        matrix = np.zeros((starts[-1], starts[-1]))
        for (i, j), table in zip(self.model_.family.graph.edges.tolist(), self._zero_sum[1], strict=True):
            rows, columns = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            matrix[rows, columns], matrix[columns, rows] = table, table.T
        index = self._columns_and_values()
        return pandas.DataFrame(matrix, index=index, columns=index)

    @property
    def coupling_norms_(self) -> Any:
        """The symmetric matrix of Frobenius norms of the coupling tables in the zero-sum gauge, uncorrected."""
        return self.coupling_norms()

    def coupling_norms(self, apc: bool = False) -> Any:
        """Return the symmetric matrix of norms by column name; zero where there is no edge.

        Parameters
        ----------
        apc : bool
            Subtract the average product correction, which takes out what strong columns have with everyone.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [["red", "s"], ["red", "s"], ["green", "m"], ["green", "m"], ["blue", "l"], ["blue", "s"]]
        >>> norms = gb.PottsMachine(l2=0.01).fit(rows).coupling_norms()
        >>> bool(norms.loc["x0", "x1"] == norms.loc["x1", "x0"] > 1)
        True
        """
        check_is_fitted(self)
        n = self.model_.n_variables
        require_memory(8.0 * n**2, f"the matrix of norms of {n:,} columns", "use strongest_couplings()")
        matrix = self.model_.family.graph.matrix(self._norms(apc))
        return pandas.DataFrame(matrix, index=list(self.names_), columns=list(self.names_))

    def figures(self) -> dict[str, Any]:
        """Return the numbers of variables, tables of couplings and parameters."""
        model = self.model_
        return {
            "variables": model.n_variables,
            "tables of couplings": model.family.graph.n_edges,
            "parameters": model.theta.size,
            "gauge": "zero-sum",
        }

    def statistics(self) -> dict[str, Any]:
        """Return the values of columns and the pairs of values of columns that interact."""
        labels = self._column_labels
        pairs = [
            (self.names_[i], a, self.names_[j], b)
            for i, j in self.model_.family.graph.edges.tolist()
            for a, b in itertools.product(labels[i], labels[j])
        ]
        columns = ["first", "first value", "second", "second value"]
        return {
            "values": self._columns_and_values().to_frame(index=False),
            "pairs": pandas.DataFrame(pairs, columns=columns),
        }

    def tables(self, n: int = 10) -> dict[str, Any]:
        """Return the biases, the strongest tables of couplings and their strongest entries, in the zero-sum gauge."""
        couplings = np.concatenate([np.zeros(0), *map(np.ravel, self._zero_sum[1])])
        strongest = np.argsort(-np.abs(couplings), kind="stable")[:n]
        entries = self.statistics()["pairs"].iloc[strongest].assign(coupling=couplings[strongest])
        return {
            "biases": self.biases_.reset_index(),
            "strongest couplings": self.strongest_couplings(n),
            "strongest entries": entries.reset_index(drop=True),
        }

    def strongest_couplings(self, n: int | None = None, apc: bool = False) -> Any:
        """Return the edges as a table with columns first, second, norm, the largest first.

        Parameters
        ----------
        n : int, optional
            How many.
        apc : bool
            Correct the norms by the average product, as is usual for contacts in proteins.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [["red", "s"], ["red", "s"], ["green", "m"], ["green", "m"], ["blue", "l"], ["blue", "s"]]
        >>> gb.PottsMachine(l2=0.01).fit(rows).strongest_couplings()[["first", "second"]].values.tolist()
        [['x0', 'x1']]
        """
        check_is_fitted(self)
        norms = self._norms(apc)
        order = np.argsort(-norms, kind="stable")[:n]
        first, second = self.model_.family.graph.edges[order].T
        names = np.array(self.names_, dtype=object)
        return pandas.DataFrame({"first": names[first], "second": names[second], "norm": norms[order]})
