"""Named learners are put together from parts: a recipe declares the settings and builds the learner once."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data.rows import Rows
from gibbsian.learning.base import Learner, Penalties
from gibbsian.learning.objectives.priors import Prior, SmoothPenalty, bind_prior, check_prior
from gibbsian.learning.optimizers import OPTIMIZERS
from gibbsian.models.base import Family, Model
from gibbsian.settings import check, declared, free, number

L1 = "Strength of the L1 penalty `l1 sum|theta|`, which leaves biases alone and sets couplings to zero."
L2 = "Strength of the L2 penalty `(l2 / 2) sum theta^2`, in the model's own coding."
LOG_PRIOR = (
    "A prior of the parameters, for the maximum of the posterior: 'normal:SCALE', 'cauchy:2.5', 'student-t:DF:SCALE', "
    "'laplace:SCALE', such families for 'biases=...,interactions=...', or a function of theta that returns the "
    "log-prior and its gradient."
)
CLAMPED_HELP = (
    "How missing cells and hidden units are summed out: 'exact', 'pcd' (chains), 'smci-pcd', 'mean-field' or an "
    "expectation with its own settings; None is exact where that is quick, else chains."
)


@declared(frozen=True)
class Penalised(Learner):
    """A learner with penalties on the parameters in the model's own coding."""

    l1: float = number(0.0, L1, least=0)
    l2: float = number(0.0, L2, least=0)

    def __post_init__(self) -> None:
        check(self)

    @property
    def penalties(self) -> Penalties:
        """The strengths of the penalties."""
        return Penalties(self.l1, self.l2)

    def _settle(self, **parts: object) -> None:
        """Replace settings that were given as names by what they stand for."""
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    def _l1_of(self, model: Model[Family]) -> Floats:
        """Return the L1 penalty of each parameter."""
        return np.where(model.penalised, self.l1, 0.0)


@declared(frozen=True)
class WithPrior(Penalised):
    """A learner of the maximum of the posterior (YK15): what it lowers has minus the log-prior added."""

    log_prior: Prior | None = free(None, LOG_PRIOR, doc="str, callable or None")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_prior(self.log_prior)

    @property
    def penalties(self) -> Penalties:
        """The strengths of the penalties, and the prior."""
        return Penalties(self.l1, self.l2, self.log_prior)

    def _l1_of(self, model: Model[Family], data: Rows, seen: float = 0.0) -> Floats:  # type: ignore[override]
        """Return the L1 penalty of each parameter, the prior's own corners at zero included."""
        corners = bind_prior(self.log_prior, model.penalised)[1]
        return super()._l1_of(model) + corners / (seen + n_rows(data))

    def _smooth_of(self, model: Model[Family], data: Rows, seen: float = 0.0) -> SmoothPenalty:
        """Return the penalties that have a gradient everywhere."""
        return SmoothPenalty(self.l2, bind_prior(self.log_prior, model.penalised)[0], seen + n_rows(data))

    def _penalties(self, model: Model[Family], data: Rows, seen: float) -> tuple[Floats, SmoothPenalty]:
        """Return both kinds against rows of a weight, these and those of earlier chunks."""
        before = seen - n_rows(data)
        return self._l1_of(model, data, before), self._smooth_of(model, data, before)


def n_rows(data: Rows) -> float:
    """The weight of rows: against those of all chunks (those `seen` before and these) a prior counts once."""
    return float(data.total_weight if hasattr(data, "total_weight") else data.n_rows)


def as_optimizer(optimizer: object) -> Any:
    """Turn a registered name into an optimiser."""
    return OPTIMIZERS.create(optimizer) if isinstance(optimizer, str) else optimizer
