"""The contract every objective keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.models import Model
from gibbsian.models.family import ClosedForm
from gibbsian.registry import Registry

OBJECTIVES = Registry("objective", "gibbsian.objectives", "OBJECTIVES")

Function = Callable[[Floats], tuple[float, Floats]]
"""Maps theta to a value and its gradient."""

Scores = Iterator[tuple[slice, Floats]]
"""Blocks of states with the gradient of each state's loss, one row per state."""


class Equations(NamedTuple):
    """The equations that an estimate solves, as its standard errors need them.

    Parameters
    ----------
    jacobian : ndarray of shape (n, n)
        Derivatives of the mean score by the parameters; symmetric where the scores are a gradient.
    scores : iterator
        Blocks of states with the score of each.
    carry : ndarray of shape (n, n_parameters), optional
        How the model's parameters follow linearly from those that are estimated; None where they are these.
    noise : ndarray of shape (n_groups, n), optional
        Rows whose products with themselves add up to the Monte Carlo covariance of the mean score; None without one.
    is_information : bool, default False
        Whether `jacobian` is also the covariance of the scores if the model holds, as for the likelihood (Fisher).

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([[0, 1], [1, 1], [1, 0], [0, 0]])
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2), data.domain)
    >>> equations = gb.learners.as_learner("mple").equations(model, data)
    >>> equations.jacobian.shape, [scores.shape for _, scores in equations.scores]
    ((3, 3), [(4, 3)])
    """

    jacobian: Floats
    scores: Scores
    carry: Floats | None = None
    noise: Floats | None = None
    is_information: bool = False


@runtime_checkable
class Objective(Protocol):
    """Something to minimise: a loss per row, averaged with the rows' weights.

    Only `bind` is needed to learn. Newton steps and standard errors ask for `curvature` and `scores` as well, and
    quasi-Newton steps begin with the ``preconditioner`` of those that have one. An
    objective that sums missing cells out itself says so by ``takes_missing = True``; rows with missing cells are
    completed for the others (see `gibbsian.learners.completing`).

    Examples
    --------
    >>> from gibbsian.objectives import Objective, Pseudolikelihood
    >>> isinstance(Pseudolikelihood(), Objective)
    True
    """

    def bind(self, model: Model, data: Dataset) -> Function:
        """Do once what does not depend on theta and return the function of theta."""


def for_model(objective: Any, model: Any) -> Any:
    """Return an objective in the form that a model needs: it may have one for hidden units, one for closed forms."""
    form = "in_closed_form" if isinstance(model.family, ClosedForm) else "with_hidden" if model.n_hidden else ""
    return getattr(objective, form)() if hasattr(objective, form) else objective


def value_and_gradient(objective: Objective, model: Model, data: Dataset) -> tuple[float, np.ndarray]:
    """Evaluate an objective once, at the model's own parameters.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.objectives import Pseudolikelihood, value_and_gradient
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1]])
    >>> value, gradient = value_and_gradient(Pseudolikelihood(), gb.PairwiseModel.zeros(gb.graphs.complete(2)), data)
    >>> round(value / 2, 6)                                    # log 2 for each variable
    0.693147
    """
    return objective.bind(model, data)(model.theta)
