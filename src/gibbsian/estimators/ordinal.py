"""The machine of ordered levels as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, ConstantColumnError
from gibbsian.estimators.boltzmann_machine import GRAPH
from gibbsian.estimators.frames import labels_of_columns
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.machine import Machine
from gibbsian.estimators.pairwise_tables import PairwiseTables
from gibbsian.graphs import as_graph
from gibbsian.models.base import Model
from gibbsian.models.families.potentials import OrdinalFamily, PotentialsFamily
from gibbsian.settings import declared, free, positional
from gibbsian.startup import check_is_fitted, pandas


@ESTIMATORS.register("ordinal", about="ordered levels (0-4, low<mid<high) and two values, a coupling for each pair")
@declared
class OrdinalMachine(PairwiseTables, Machine):
    """A pairwise machine of ordered levels: free levels for each column, one coupling of scores for each pair.

    ``P(x) = exp((sum_i h_i(x_i) + sum_ij w_ij s_i(x_i) s_j(x_j)) / T) / Z``. Scores are the numbers in the table, or
    0, 1, ... for words in their order, less the mean of the column's levels. A coupling is a log odds ratio by unit of
    score: with x_j a unit higher, the odds of a level against the next lower one (a unit below) grow by the factor
    ``exp(w_ij / T)``, whatever the levels. Columns with two values are the special case of two levels, so both kinds
    may stand in one table.

    Attributes
    ----------
    biases_ : pandas.Series
        h_i(a) by column and level, zero at the lowest.
    couplings_ : pandas.DataFrame
        The symmetric matrix of couplings by column name, by unit of both scores.
    result_, model_, coding_
        As in `BoltzmannMachine`; the model is one of an `OrdinalFamily`, and ``coding_.domain.values`` are the scores.

    Examples
    --------
    >>> import pandas, gibbsian as gb
    >>> mood, sex = [0, 1, 2, 2, 1, 0, 0, 2, 1, 1], list("FMMMFFMMFM")
    >>> machine = gb.OrdinalMachine(l2=0).fit(pandas.DataFrame({"mood": mood, "sex": sex}))
    >>> machine.coding_.labels
    ((0, 1, 2), ('F', 'M'))
    >>> machine.couplings_.loc["mood", "sex"].round(3)
    np.float64(1.716)
    """

    coding: Any = free(
        "ordinal",
        "Levels of each column from the lowest on: numbers and two values are recognised, the order of words is "
        "declared by a mapping from columns to their levels, or by Ordinal for all.",
        doc="str, mapping, Ordinal or CategoryCoding",
    )
    graph: Any = positional(
        kw_only=False, default=free("complete", GRAPH, doc="str, Graph, networkx graph or list of pairs")
    )

    _welcome = ("categorical",)

    def _zeros(self, data: Dataset) -> Model[OrdinalFamily]:
        if data.variables.scores is None or data.coding.domain.two_valued:
            raise ArgumentError(
                f"an OrdinalMachine learns ordered levels, but the coding is {data.coding.describe()}",
                "declare `coding='ordinal'`",
            )
        for name, labels in zip(data.names, data.labels, strict=True):
            if len(labels) == 1:
                raise ConstantColumnError(f"column {name!r} holds one level only ({labels[0]!r})", "drop it")
        return Model.zeros(PotentialsFamily.ordinal(as_graph(self.graph, data.names), data.variables))

    # -- parameters ---------------------------------------------------------------------------------------------------
    @property
    def biases_(self) -> Any:
        """The parameters of the levels by column and level, zero at the lowest."""
        check_is_fitted(self)
        index = labels_of_columns(self.names_, self._column_labels)
        biases = np.concatenate([(0.0, *levels) for levels in self.reported_model.parts.levels])
        return pandas.Series(biases, index=index, name="bias")

    def statistics(self) -> dict[str, object]:
        """Return the levels of columns above the lowest, and the pairs that interact."""
        levels = labels_of_columns(self.names_, self._column_labels).to_frame(index=False)
        return {"levels": levels[levels["column"].duplicated()], "pairs": self._pairs}

    def tables(self, n: int = 10) -> dict[str, object]:
        """Return the parameters of the levels and the strongest couplings."""
        return {"biases": self.biases_.reset_index(), "strongest couplings": self.strongest_couplings(n)}
