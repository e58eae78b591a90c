"""Learning to tell some columns from the others: maximum conditional likelihood and pseudolikelihood (YK15)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.learning.base import LEARNERS, Learner
from gibbsian.learning.objective import ConditionalsLearner, ObjectiveLearner
from gibbsian.learning.objectives import ConditionalLikelihood, ConditionalPseudolikelihood, Objective
from gibbsian.learning.objectives.conditional_likelihood import targets_setting
from gibbsian.learning.optimizers import Optimizer
from gibbsian.learning.recipe import Recipe, optimizer_setting
from gibbsian.models.base import Family, Layered, Model, keeps
from gibbsian.models.layers.units import mean_values
from gibbsian.settings import declared, number


@LEARNERS.register("mcl")
@declared(frozen=True)
class MCL(Recipe):
    """Maximum conditional likelihood of the `targets` given the other columns (YK15); all else is summed out.

    Where the targets are separable the likelihood rises for ever; a penalty such as ``l2=0.01`` holds it.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]]
    >>> machine = gb.BoltzmannMachine(learner=gb.learning.MCL(targets=1)).fit(rows)
    >>> machine.predict_proba(rows[:1], columns="x1").round(3).tolist()
    [[0.667, 0.333]]
    """

    targets: object = targets_setting()
    optimizer: Optimizer | str = optimizer_setting("lbfgs", "How to minimise.")
    max_seconds: float = number(10.0, "Refuse when one row is predicted to take longer.", above=0)

    def build(self) -> Learner:
        """Minimise minus the conditional log-likelihood."""
        objective = ConditionalLikelihood(targets=self.targets, max_seconds=self.max_seconds)
        return ObjectiveLearner(objective=objective, optimizer=self.optimizer, l1=self.l1, l2=self.l2)

    def for_layers(self) -> Learner:
        """Return the learner itself: a restricted machine knows its clamped sums, whatever its units are."""
        return self

    def start(self, model: Model[Family], data: Dataset, rng: np.random.Generator) -> Any:
        """Begin with random weights of hidden layers, and biases that have the means of the columns."""
        if not keeps(model.family, Layered):
            return super().start(model, data, rng)
        return model.replace(model.family.initialised(mean_values(model.family.layers[0], data), rng))

    def refusal(self, model: Model[Family]) -> str:
        """Say so where the hidden units of a row have no closed form."""
        if keeps(model.family, Layered) and len(model.family.layers) > 2:
            return "the hidden layers of a row have no sum in closed form"
        return super().refusal(model)


@LEARNERS.register("mcple")
@declared(frozen=True)
class MCPLE(ConditionalsLearner):
    """Maximum conditional pseudolikelihood: each of the `targets` given all other columns.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 0]]
    >>> machine = gb.BoltzmannMachine(learner=gb.learning.MCPLE(targets=["x1"])).fit(rows)
    >>> machine.predict_proba(rows[:1], columns="x1").round(3).tolist()
    [[0.667, 0.333]]
    """

    targets: object = targets_setting()

    def minimised(self) -> Objective:
        """Return minus the log-pseudolikelihood of the targets."""
        return ConditionalPseudolikelihood(targets=self.targets)
