"""The pairwise Boltzmann machine with hidden units as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import graph_with_hidden, hidden_names, with_hidden
from gibbsian.diagnostics.evidence import MinusLogLikelihood
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.estimators.common import HiddenFeatures
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.machine import Convertible, Machine
from gibbsian.estimators.pairwise_tables import PairwiseTables
from gibbsian.learning import FitResult, Learner
from gibbsian.learning.stages import Restarts
from gibbsian.models.base import Model
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.variables import require_two_values
from gibbsian.settings import declared, flag, free, positional, whole


@ESTIMATORS.register("hidden", about="two values a column, hidden units coupled to columns or each other")
@declared
class HiddenBoltzmannMachine(HiddenFeatures, PairwiseTables, Convertible, Machine):
    """A pairwise Boltzmann machine with hidden units on any graph (YK15), learned from two-valued data.

    Visible and hidden units x = (v, h) have one energy, and the data show v only. The likelihood of a row is summed
    over h; its gradient is the expected statistics with v clamped to the row less those of the free machine. Hidden
    units let a pairwise machine have interactions of any order between the columns; missing cells are hidden units of
    their row. Hidden units often let the likelihood rise for ever; a small penalty is then added, unless ``l2=0``.

    Attributes
    ----------
    names_, hidden_names_ : tuple of str
        The columns, and the hidden units.
    biases_, couplings_, result_, model_, coding_
        As in `BoltzmannMachine`, over columns and hidden units.

    Examples
    --------
    The exclusive or, which no pairwise machine of the three columns alone can tell from noise:

    >>> import gibbsian as gb
    >>> rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 25
    >>> round(gb.BoltzmannMachine().fit(rows).score(rows), 3)                      # log 1/8
    -2.079
    >>> round(gb.HiddenBoltzmannMachine(1, l2=1e-5, random_state=0).fit(rows).score(rows), 2)      # log 1/4
    -1.39

    Notes
    -----
    Where chains learn from rows in several clusters, a fit that ends at `max_iter` may be far from done: 40 columns of
    the Plants data, 5,000 rows, 4 units have a log-likelihood of -9.70 after 500 steps, -8.73 after 1,000 and -8.57
    after 2,500. Rates that fall later are worse (-11.2 and -12.0 after 1,000), for chains do not keep up with them.
    """

    learners = ("em", "mle", "mcmle", "mple", "mcl", "pcd", "cd", "smci-pcd", "online")

    n_components: int = positional(kw_only=False, default=whole(1, "Number of hidden units.", least=1))
    graph: Any = positional(
        kw_only=False,
        default=free(
            "complete",
            "Which units interact: all; every column with every hidden unit ('restricted'); that and every pair of "
            "columns ('semi-restricted'); or as listed, over the columns and then the hidden units, called h0, h1, ...",
            doc="str, Graph, networkx graph or list of pairs",
        ),
    )
    bias: bool = flag(True, "Whether the model has biases.")
    n_init: int = whole(1, "Random starts, of which the most likely result is kept.", least=1)

    def _zeros(self, data: Dataset) -> Model[PairwiseFamily]:
        require_two_values(data.variables)
        n_hidden = int(self.n_components)
        names = data.names + hidden_names(data.names, n_hidden)
        graph = graph_with_hidden(self.graph, names, n_hidden)
        variables = data.variables + data.variables.take([0] * n_hidden)
        return Model.zeros(PairwiseFamily(graph, variables, self.bias, n_hidden))

    def _start(self, data: Dataset, rng: np.random.Generator) -> Model[PairwiseFamily]:
        if isinstance(self.start, str):
            raise ArgumentError(
                "needs every unit to be visible", "start from None or a model", argument="start", value=self.start
            )
        model = super()._start(data, rng)
        if self.start is not None or self.n_init > 1:
            return model
        return self._learner(model, data).start(model, data, rng)

    def _learner(self, model: Model[PairwiseFamily], data: Dataset) -> Learner:
        learner = super()._learner(model, self._shown(model, data))
        if self.n_init == 1:
            return learner
        limits: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
        return Restarts(learner=learner, n_init=self.n_init, **limits, loss=MinusLogLikelihood())

    def _shown(self, model: Model[PairwiseFamily], data: Dataset) -> Dataset:
        """Hidden units are columns that are always missing."""
        return with_hidden(data, model.n_hidden)

    def _learns_by_chunks(self) -> bool:
        if not self._is_auto:
            learner: Learner = self._learner_named(self.learner)
            learner.by_chunks(1)
            if getattr(learner, "objective", None) is not None:  # which minibatches of complete rows could lower
                raise learner.needs_all_rows()
        return True

    def _chunk_learner(self, model: Model[PairwiseFamily], data: Dataset) -> Learner:
        return self._learner_named("pcd" if self._is_auto else self.learner)

    def _run(
        self, learner: Learner, start: Any, data: Dataset, rng: np.random.Generator, unseen: Dataset | None = None
    ) -> FitResult:
        try:
            return super()._run(learner, start, data, rng, unseen)
        except MissingValuesError:
            reason, known = "needs every unit to be visible", ", ".join(self.learners)
            remedy = f"with hidden units use one of {known}"
            raise ArgumentError(reason, remedy, argument="learner", value=self.learner) from None

    def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self:
        self.hidden_names_ = hidden_names(names, result.model.n_hidden)
        return super()._set_fitted(result, coding, names)

    @property
    def variable_names_(self) -> tuple[str, ...]:
        """The columns, and after them the hidden units."""
        return self.names_ + self.hidden_names_

    def _feature_names(self) -> tuple[str, ...]:
        return self.hidden_names_

    def free_energy(self, X: Any, method: str = "exact") -> np.ndarray:
        """Return ``F(v) = -T log sum_h exp(-E(v, h) / T)`` of each row; missing cells are summed out too.

        Parameters
        ----------
        X
            The rows.
        method : {"exact", "mean-field"}, default="exact"
            Mean field gives an upper bound.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 5
        >>> machine = gb.HiddenBoltzmannMachine(1, l2=0.01, random_state=0).fit(rows)
        >>> bool((machine.free_energy(rows, "mean-field") >= machine.free_energy(rows) - 1e-9).all())
        True
        """
        data = self._read(X)
        if method == "exact":
            evidence = self._answers.log_evidence(data)
        elif method == "mean-field":
            evidence = self._answers.log_evidence_bound(data, self._rng())
        else:
            raise ArgumentError("is not known", "use one of exact, mean-field", argument="method", value=method)
        return -self.temperature * evidence[data.row_of]
