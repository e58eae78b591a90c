"""Parameters that have run away: because there is no finite maximum, or perhaps so."""

from __future__ import annotations

from typing import Any

from gibbsian.data import Dataset
from gibbsian.errors import MaximumDoesNotExistError, MaximumDoesNotExistWarning, notify
from gibbsian.inference import exact
from gibbsian.learning.base import Learner
from gibbsian.learning.objectives import Likelihood
from gibbsian.models.base import DiscreteFamily, Model

# A parameter worth log-odds beyond this is looked into, and beyond the other is warned of where nothing can be proved:
# e^6 is one row in 400, e^12 one in 160,000, more rows than most tables have.
SUSPICIOUS_LOG_ODDS = 6.0
ALARMING_LOG_ODDS = 12.0
_REMEDY = "add a penalty by `l2='auto'`, or drop or merge the columns that determine each other"


def check_runaway(model: Model[DiscreteFamily], data: Dataset, learner: Learner, certain: bool = True) -> None:
    """Raise or warn where unpenalised parameters have run away because there is no finite maximum.

    Preflight finds single values, pairs and cliques that rule a maximum out, and triples of two-valued columns. What is
    left shows in large parameters; then a linear programme decides, where there is one and it is small enough. Unless
    it must be `certain`, what would be warned of is raised.
    """
    largest = float(model.family.log_odds(model.theta).max(initial=0.0))
    if largest < SUSPICIOUS_LOG_ODDS:
        return
    objective, exists = learner.objective, None
    likelihood = objective is not None and objective.joint_targets
    if isinstance(objective, Likelihood) and model.variables.real:
        exact(model, max_seconds=objective.max_seconds)  # refuses a density that the quadrature does not resolve
    if not data.has_missing and isinstance(data, Dataset):
        from gibbsian.diagnostics.existence import maximum_exists

        kind: Any = "likelihood" if likelihood else "pseudolikelihood"
        exists = maximum_exists(model, data, kind, targets=learner.targets_in(data))
    if exists is False:
        raise MaximumDoesNotExistError("the likelihood has no finite maximum on these data", _REMEDY)
    if exists is None and largest >= ALARMING_LOG_ODDS:
        reason = f"parameters have grown to log-odds of {largest:.0f}, so there may be no finite maximum"
        if not certain:
            raise MaximumDoesNotExistError(reason, _REMEDY)
        notify(MaximumDoesNotExistWarning(reason, _REMEDY))
