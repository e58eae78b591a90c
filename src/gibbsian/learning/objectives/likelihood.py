"""Exact likelihood, with missing cells summed out."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import without_hidden
from gibbsian.errors import TooExpensiveError
from gibbsian.expectations.clamped import EXACT_CLAMPED, ClampedRows, mean_statistics
from gibbsian.inference import Engine, plan_exact
from gibbsian.inference.posterior import OneByOne
from gibbsian.learning.objectives.base import OBJECTIVES, Function, Objective, Scores
from gibbsian.learning.objectives.curvature import covariance_of_statistics, information_seconds, state_blocks
from gibbsian.learning.objectives.gaussian import GaussianLikelihood
from gibbsian.learning.preconditioners import Preconditioner, preconditioning
from gibbsian.models.base import DiscreteFamily, ExponentialFamily, Layered, Model, keeps
from gibbsian.models.differences import symmetric_differences
from gibbsian.models.layers.stack import in_layers
from gibbsian.settings import check, declared, number, positional


@OBJECTIVES.register("likelihood")
@declared(frozen=True)
class Likelihood(Objective[ExponentialFamily]):
    """Minus the mean log-likelihood of the rows, by exact inference.

    A missing cell is a hidden variable of its row: the row's likelihood is summed over the values it might have.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learning.objectives import Likelihood, value_and_gradient
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1]])
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> value, gradient = value_and_gradient(Likelihood(), model, data)
    >>> round(value, 6), gradient.round(3).tolist()
    (1.386294, [-0.333, 0.333, -0.333])
    """

    name: ClassVar[str] = "exact likelihood"
    takes_missing: ClassVar[bool] = True
    has_scores: ClassVar[bool] = True
    has_preconditioner: ClassVar[bool] = True
    joint_targets: ClassVar[bool] = True

    max_seconds: float = positional(
        kw_only=False, default=number(10.0, "Refuse when one evaluation is predicted to take longer.", above=0)
    )

    def __post_init__(self) -> None:
        check(self)

    def in_closed_form(self) -> GaussianLikelihood:  # type: ignore[override]
        """Return the form for Gaussian models."""
        return GaussianLikelihood()

    def bind(self, model: Model[ExponentialFamily], data: Dataset) -> Function:
        """Return the function of theta; sums over one of two layers take a tenth of those over all variables."""
        model = in_layers(model) or model
        engine = self._engine(model, data)
        if (both_phases := engine.likelihood_of(data)) is not None:
            return both_phases
        evidence = data.bind(partial(self._evidence, model)) if data.has_missing else self._linear(model, data)

        def function(theta: Floats) -> tuple[float, Floats]:
            free, (log_evidence, expected) = engine.at(theta), evidence(theta)
            return free.log_partition - log_evidence, free.moments - expected

        return function

    def _linear(self, model: Model[ExponentialFamily], data: Dataset) -> Function:
        """Return the mean log-weight of complete rows, whose statistics are summed once."""
        statistics = data.mean(lambda part: ClampedRows.of(model, part).constant)
        return lambda theta: (float(theta @ statistics), statistics)

    def _evidence(self, model: Model[ExponentialFamily], data: Dataset) -> Function:
        """Return the mean log-evidence of rows with missing cells, and the statistics that they lead to expect."""
        clamped = EXACT_CLAMPED.of(model.family)(max_seconds=self.max_seconds)
        if keeps(model.family, Layered):  # hidden layers are no columns
            data = without_hidden(data, data.n_variables - (model.n_variables - model.n_hidden))
        rows = clamped.init(model, data, np.random.default_rng())

        def evidence(theta: Floats) -> tuple[float, Floats]:
            found, _ = clamped(model.replace(theta), rows)
            return float(found.parts["log_partition"]), found.value

        return evidence

    def _engine(self, model: Model[ExponentialFamily], data: Dataset) -> Engine:
        """Choose the engine, or refuse before anything is built."""
        try:
            return plan_exact(model.family, max_seconds=self.max_seconds)
        except TooExpensiveError as error:
            remedy = "use `learner='mple'` or 'pcd', or a sparser graph"
            if data.has_missing:
                remedy = (
                    "with missing cells use `learner='mple'` or 'pcd', which complete them, a sparser graph or "
                    "`Dataset.complete_rows()`"
                )
            raise TooExpensiveError(error.reason, remedy) from None

    def preconditioner(
        self, model: Model[ExponentialFamily], data: Dataset, mean: Floats, l2: float
    ) -> Preconditioner | None:
        """Return an approximate inverse Hessian at a model of independent columns with these means."""
        return preconditioning(model.family).preconditioner(mean, lambda: mean_statistics(model, data), None, l2)

    def scores(self, model: Model[ExponentialFamily], data: Dataset, max_seconds: float = 60.0) -> Scores:
        """Yield minus the statistics of each state over T; missing cells are averaged over what they may be.

        The gradient has the model's moments beside them, the same for every state: they vanish in a variance.
        """
        for block in state_blocks(data):
            statistics = model.family.statistics(data.states[block])
            if data.missing is not None:
                missing = data.missing[block]
                places = np.flatnonzero(missing.any(axis=1))
                assert keeps(model.family, DiscreteFamily)
                rows = OneByOne(model.family, data.states[block][places], missing[places], max_seconds)
                for row, _, expected in rows.statistics(model.theta):
                    statistics[places[row]] = expected
            yield block, -statistics

    def curvature(self, model: Model[ExponentialFamily], data: Dataset, max_seconds: float = 60.0) -> Floats:
        """Return the information: the covariance of the statistics, or as observed where cells are missing."""
        if data.has_missing:
            function = Likelihood(max_seconds=max_seconds).bind(model, data)
            return symmetric_differences(lambda theta: function(theta)[1], model.theta, max_seconds)
        engine = plan_exact(model.family, max_seconds=max_seconds)
        by_differences = 2 * model.theta.size * engine.cost.seconds
        if information_seconds(model) <= min(max_seconds, by_differences + 1):
            return covariance_of_statistics(model)
        return symmetric_differences(lambda theta: engine.at(theta).moments, model.theta, max_seconds)
