"""The Gaussian Markov random field as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.number_checks import column_units, require_full_rank
from gibbsian.diagnostics.moments import DataMoments, data_moments
from gibbsian.errors import ArgumentError, DataError
from gibbsian.estimators.base import Estimator
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.numbers import NumberTables
from gibbsian.estimators.penalty import l2_setting
from gibbsian.graphs import as_graph
from gibbsian.learning import FitResult, Learner, as_learner
from gibbsian.learning.objectives.gaussian import GaussianModel, moments_of
from gibbsian.learning.running_moments import IMPROPER, RunningMoments
from gibbsian.models.base import Model
from gibbsian.models.families.gaussian import GaussianFamily, partial_correlations
from gibbsian.settings import declared, free, number
from gibbsian.startup import pandas


@ESTIMATORS.register("gaussian", about="numbers, a normal distribution with the zeros of a graph", rows="numbers")
@declared
class GaussianMachine(NumberTables, Estimator):
    """A Gaussian Markov random field: real columns, of which only neighbours in a graph interact given all others.

    ``P(x) = exp(h . u - u' J u / 2) / Z`` with u the columns in standard units. Its learners are those of the other
    machines: ``"mle"`` (on the complete graph the mean and covariance of the rows, YK15; on another covariance
    selection), and ``"graphical-lasso"``, which chooses the graph. Both are given moments, so that chunks are learned
    by running means, and missing cells by EM. ``predict_proba`` is the probability of a lower number given the other
    cells of the row.

    Attributes
    ----------
    mean_, covariance_, precision_
        The distribution by name, in the units of the columns.
    partial_correlations_
        Of each pair given all other columns.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=1000)
    >>> rows = np.column_stack([a, a + rng.normal(size=1000), a + rng.normal(size=1000)])
    >>> machine = gb.GaussianMachine().fit(rows)
    >>> machine.impute([[2.0, np.nan, 2.0]]).round()
    array([[2., 2., 2.]])
    >>> bool(abs(machine.partial_correlations_.loc["x1", "x2"]) < 0.1)        # independent given x0
    True
    """

    learner: Any = free(
        "auto",
        "How to learn: 'mle', which 'auto' is, 'graphical-lasso', or a learner object.",
        doc="str or Learner",
    )
    graph: Any = free(
        "complete",
        "Which columns interact given all others: all, or as listed.",
        doc="str, Graph, networkx graph or list of pairs",
    )
    l1: float = number(0.0, "Penalty `l1 sum|interaction|` on the mean loss per row, in standard units.", least=0)
    l2: Any = l2_setting("Penalty `(l2/2) sum parameter^2` on the mean loss per row, in standard units.")

    learners = ("mle", "graphical-lasso")
    auto_learner = "mle"

    def _start(self, data: Dataset, rng: np.random.Generator) -> GaussianModel:
        family = GaussianFamily(as_graph(self.graph, data.names), *column_units(data))
        closed = isinstance(self._asked, str) and self._asked == "mle" and family.graph.is_complete
        if not closed or self.l1 or self._l2 or data.has_missing:
            return Model(family, family.theta_of(np.eye(data.n_variables), np.zeros(data.n_variables)))
        moments = moments_of(family, data)
        require_full_rank(data, moments.covariance)
        precision = np.asarray(np.linalg.inv(moments.covariance), np.float64)
        return Model(family, family.theta_of(precision, moments.mean))

    def _learner(self, model: GaussianModel, data: Dataset) -> Learner:
        learner = as_learner(self._asked, l1=self.l1, l2=self._l2)
        if "reals" not in learner.takes:
            reason = "is for columns whose values can be listed, and these are real numbers"
            remedy = "use one of mle, graphical-lasso"
            raise ArgumentError(reason, remedy, argument="learner", value=self.learner)
        return RunningMoments(learner)

    def _judged(self, result: FitResult, data: Dataset, learner: Learner) -> FitResult:
        model: Any = result.model
        if not np.isfinite(model.family.log_partition(model.theta)):
            raise DataError(IMPROPER.reason, IMPROPER.hint)
        return replace(result, moments=self._moments(model, data))

    def _moments(self, model: Any, data: Dataset) -> DataMoments | None:
        return data_moments(model, data)

    def _chunk_learner(self, model: GaussianModel, data: Dataset) -> Learner:
        rows = self.result_.provenance["rows"] if self._is_fitted else 0.0
        return replace(self._learner(model, data), before=float(rows))  # type: ignore[type-var]

    @classmethod
    def _structure_of(cls, model: GaussianModel, coding: Any) -> dict[str, Any]:
        return {"graph": model.family.graph}

    # -- questions ----------------------------------------------------------------------------------------------------
    def conditional(self, given: Any, names: Any = None) -> tuple[Any, Any]:  # type: ignore[override]  # no table
        """Return mean and covariance of the other columns, or of some, given numbers of some, by name.

        Parameters
        ----------
        given : mapping of str to float
            Numbers of some columns, by name.
        names : list of str, default=None
            The columns asked for; all that are not given.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> machine = gb.GaussianMachine().fit(np.random.default_rng(0).normal(size=(50, 3)))
        >>> mean, covariance = machine.conditional({"x1": 0.5})
        >>> list(mean.index), covariance.shape
        (['x0', 'x2'], (2, 2))
        """
        row = np.array([given.get(name, np.nan) for name in self.names_], dtype=np.float64)
        if unknown := [name for name in given if name not in self.names_]:
            raise ArgumentError(f"has no column {unknown[0]!r}", argument="given", value=given)
        means, covariance = self._answers.conditional(row[None], np.isnan(row))
        free = [name for name in self.names_ if name not in given]
        asked = free if names is None else list(names)
        if unknown := [name for name in asked if name not in free]:
            raise ArgumentError(f"names {unknown[0]!r}, which is given or no column", argument="names", value=names)
        return pandas.Series(means[0], free)[asked], pandas.DataFrame(covariance, free, free).loc[asked, asked]

    # -- what a reader is shown ---------------------------------------------------------------------------------------
    @property
    def mean_(self) -> Any:
        """The mean of each column."""
        return pandas.Series(self.model_.family.moments(self.model_.theta)[0], list(self.names_), name="mean")

    @property
    def covariance_(self) -> Any:
        """The covariance of the columns."""
        return self._matrix(self.model_.family.moments(self.model_.theta)[1])

    @property
    def precision_(self) -> Any:
        """The inverse of the covariance, in the units of the columns; zero where two do not interact."""
        family = self.model_.family
        return self._matrix(family.precision(self.model_.theta) / np.outer(family.scale, family.scale))

    @property
    def partial_correlations_(self) -> Any:
        """The correlation of each pair given all other columns."""
        return self._matrix(partial_correlations(self.model_.family.precision(self.model_.theta)))

    def _matrix(self, values: np.ndarray) -> Any:
        return pandas.DataFrame(values, index=list(self.names_), columns=list(self.names_))

    def figures(self) -> dict[str, Any]:
        """Return the numbers of columns and of interactions."""
        return {
            "columns": len(self.names_),
            "interactions": int(np.count_nonzero(self.model_.theta[self.model_.penalised])),
        }

    def statistics(self) -> dict[str, Any]:
        """Return the names of the columns, of their squares and of the pairs that interact."""
        names, (first, second) = np.array(self.names_, dtype=object), self.model_.family.graph.edges.T
        columns = pandas.DataFrame({"column": names})
        return {
            "fields": columns,
            "diagonal": columns,
            "pairs": pandas.DataFrame({"first": names[first], "second": names[second]}),
        }
