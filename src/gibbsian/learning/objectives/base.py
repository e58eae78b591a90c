"""The contract every objective keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

from gibbsian.arrays import Floats, Slice
from gibbsian.data import Dataset
from gibbsian.models import Model
from gibbsian.models.base import ClosedForm, DiscreteFamily, Family, keeps
from gibbsian.registry import Registry

if TYPE_CHECKING:
    from gibbsian.learning.preconditioners import Preconditioner

F = TypeVar("F", bound=Family, contravariant=True)
OBJECTIVES = Registry("objective", "gibbsian.learning.objectives", "OBJECTIVES")

Function = Callable[[Floats], tuple[float, Floats]]
"""Maps theta to a value and its gradient."""

Scores = Iterator[tuple[Slice, Floats]]
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
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), data.variables))
    >>> equations = gb.learning.as_learner("mple").equations(model, data)
    >>> equations.jacobian.shape, [scores.shape for _, scores in equations.scores]
    ((3, 3), [(4, 3)])
    """

    jacobian: Floats
    scores: Scores
    carry: Floats | None = None
    noise: Floats | None = None
    is_information: bool = False


class Objective(ABC, Generic[F]):
    """Something to minimise: a loss per row, averaged with the rows' weights.

    Only `bind` is needed to learn; the other members have defaults.

    Examples
    --------
    >>> from gibbsian.learning.objectives import Objective, Pseudolikelihood
    >>> isinstance(Pseudolikelihood(), Objective)
    True
    """

    name: ClassVar[str]
    # Whether it sums missing cells out itself; rows with missing cells are completed for the others.
    takes_missing: ClassVar[bool] = False
    # Whether `scores` and `curvature` are known: Newton steps and standard errors need them.
    has_scores: ClassVar[bool] = False
    # Whether `preconditioner` is known, so that L-BFGS may begin at independent columns.
    has_preconditioner: ClassVar[bool] = False
    # Whether it is a likelihood of all targets together, so that its maximum exists where that of the likelihood does.
    joint_targets: ClassVar[bool] = False
    # The columns that are learned given the others; None where all are learned.
    targets: object = None

    @abstractmethod
    def bind(self, model: Model[F], data: Dataset) -> Function:
        """Do once what does not depend on theta and return the function of theta."""

    def sampled(self, model: Model[F], data: Dataset) -> Function:
        """Return the function of theta for a sample of rows, to an accuracy well below the sample's own."""
        return self.bind(model, data)

    def in_closed_form(self) -> Objective[DiscreteFamily] | None:
        """Return the form for families whose sums have a closed form."""
        return None

    def with_hidden(self) -> Objective[DiscreteFamily]:
        """Return the form for families with hidden units."""
        return self  # type: ignore[return-value]

    def preconditioner(self, model: Model[F], data: Dataset, mean: Floats, l2: float) -> Preconditioner | None:
        """Return an approximate inverse Hessian at a model of independent columns with these means."""
        return None

    def inverse_hessian(self, model: Model[F], data: Dataset, l2: float) -> Preconditioner | None:
        """Return an approximate inverse Hessian near the minimum, where moments of the data give one."""
        return None

    def derivative_sums(self, model: Model[F], data: Dataset) -> Callable[[Floats], Floats] | None:
        """Return what a dense preconditioner is renewed from, as a function of theta."""
        return None

    def scores(self, model: Model[F], data: Dataset, max_seconds: float = 60.0) -> Scores:
        """Yield the gradient of each state's loss."""
        raise NotImplementedError

    def curvature(self, model: Model[F], data: Dataset, max_seconds: float = 60.0) -> Floats:
        """Return the Hessian at the model's parameters."""
        raise NotImplementedError


def for_model(objective: Objective[DiscreteFamily], model: Model[DiscreteFamily]) -> Objective[DiscreteFamily]:
    """Return an objective in the form that a model needs: it may have one for hidden units, one for closed forms."""
    if keeps(model.family, ClosedForm):
        return objective.in_closed_form() or objective
    return objective.with_hidden() if model.n_hidden else objective


def value_and_gradient(
    objective: Objective[DiscreteFamily], model: Model[DiscreteFamily], data: Dataset
) -> tuple[float, Floats]:
    """Evaluate an objective once, at the model's own parameters.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learning.objectives import Pseudolikelihood, value_and_gradient
    >>> data = gb.Dataset.read([[1, 1], [1, -1], [-1, -1]])
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> value, gradient = value_and_gradient(Pseudolikelihood(), model, data)
    >>> round(value / 2, 6)                                    # log 2 for each variable
    0.693147
    """
    return objective.bind(model, data)(model.theta)
