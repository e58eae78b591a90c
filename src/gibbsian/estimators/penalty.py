"""How strong the L2 penalty of a fit is where that is not said by a number: `l2="auto"` and `l2="cv"`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import (
    ArgumentError,
    ConstantColumnError,
    GibbsianError,
    MaximumDoesNotExistError,
    PenaltyWarning,
    notify,
)
from gibbsian.estimators.held_out import FEWEST_ROWS, N_FOLDS, one_over, score_in_folds
from gibbsian.learning.base import LEARNERS, Learner
from gibbsian.learning.objectives.priors import Rescaled, natural_penalties
from gibbsian.learning.result import HeldOut
from gibbsian.settings import number, settings_of

# Strengths that cross-validation compares, in units of one over the number of rows.
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
# With so many rows for each parameter a penalty gains nothing: on rows of seven data sets that were not fitted the best
# of the strengths was never better than none by more than 1% of what the fit gained over independent columns.
PLENTY = 20.0
# Cross-validation is made where it is predicted to take no longer; a fit has about so many evaluations.
PATIENT_SECONDS = 5.0
N_EVALUATIONS = 50
_CHOICES = (
    " 'auto' is none with 20 rows for each parameter; else the best of five strengths by cross-validation where that "
    "is quick (exact likelihood and pseudolikelihood), and 1 / rows, a standard normal prior of each parameter, where "
    "it is not. Machines of layers, of numbers and of the full span have none, or 1 / rows where there is no finite "
    "maximum without. 'cv' is the best of the five in any case."
)


def l2_setting(help: str, default: Any = "auto") -> Any:
    """Declare the strength of an L2 penalty."""
    return number(default, help + _CHOICES, least=0, words=("auto", "cv"))


class ChoosesPenalty:
    """An estimator whose L2 penalty may be a word; `_l2` is the number that it stands for in this fit."""

    l1: Any = 0.0
    l2: Any = 0.0
    log_prior: Any = None
    learner: Any = "auto"

    @property
    def _l2(self) -> float:
        return float(self.__dict__.get("_strength", 0.0)) if isinstance(self.l2, str) else self.l2

    def _natural_penalties(self: Any) -> dict[str, Any]:
        """Return the penalties, which are of the parameters that are reported, as penalties of natural ones."""
        return {**natural_penalties(self.l1, self._l2, self.log_prior, self.temperature)}

    def _reported_penalties(self: Any, learner: Learner) -> dict[str, object]:
        """Return the penalties of a learner, which are of natural parameters, as those of the reported ones."""
        t, (l1, l2, prior) = self.temperature, learner.penalties
        prior = prior.prior if isinstance(prior, Rescaled) else prior
        return {
            "l1": l1 if isinstance(l1, str) else l1 / t,
            "l2": l2 / t**2,
            **({} if prior is None else {"log_prior": prior if isinstance(prior, str) else repr(prior)}),
            **({} if t == 1 else {"temperature": t}),
        }

    @property
    def _may_penalise(self) -> bool:
        """Whether a fit without a finite maximum is made again with a penalty."""
        return isinstance(self.l2, str) and not self._l2 and self.takes_l2

    @property
    def takes_l2(self) -> bool:
        """Whether the penalty is the estimator's own: a learner object brings another."""
        if not isinstance(self.learner, str):
            return False
        return self.learner not in LEARNERS or "l2" in settings_of(LEARNERS.factory(self.learner))

    def _parameters_per_row(self, data: Any) -> float:
        """Return the number of free parameters over that of rows; zero for models that ``"auto"`` does not penalise."""
        return 0.0

    def _evaluation_seconds(self, data: Any) -> float:
        """Predict the time of one evaluation of the objective; infinite where fits cannot be repeated quickly."""
        return float("inf")

    def is_underpenalised(self, data: Any) -> bool:
        """Whether the fit had a weaker penalty than 1 / rows though rows are few for its parameters."""
        given = self.__dict__["result_"].provenance.get("l2", 0.0)
        weaker = not isinstance(self.l2, str) and self.takes_l2 and given < one_over(data)
        return weaker and not self.l1 and self.log_prior is None and self._parameters_per_row(data) * PLENTY > 1

    def _learn(self: Any, data: Dataset, unseen: Dataset | None, rng: np.random.Generator) -> Any:
        """Settle the penalty and learn; once more under a penalty where there is no finite maximum without one."""
        self.__dict__.pop("_strength", None)
        said: dict[str, object] = {}
        held_out = None
        if isinstance(self.l2, str):
            self._strength, rule, held_out = _settled(self, data)
            said = {"l2_rule": rule} if rule else {}
        try:
            learner, result = self._learn_once(data, unseen, rng, said)
        except (MaximumDoesNotExistError, ConstantColumnError) as error:
            if not self._may_penalise or "l2" not in error.remedy:
                raise
            self._strength = one_over(data)
            used = f"`l2={self._strength:.3g}`, one over the number of rows, keeps the parameters finite"
            notify(PenaltyWarning(error.reason, used))
            said = {"l2_rule": "1 / rows, without which there is no finite maximum"}
            learner, result = self._learn_once(data, unseen, rng, said)
        return learner, replace(result, held_out=held_out)


def _settled(machine: Any, data: Any) -> tuple[float, str, HeldOut | None]:
    """Return the strength of a penalty given as a word, the rule that chose it, and the held-out score if any."""
    if machine.l2 == "cv":
        return cross_validated(machine, data)
    if machine.l1 or machine.log_prior is not None or not machine.takes_l2:
        return 0.0, "", None
    density = machine._parameters_per_row(data)
    if density * PLENTY <= 1:
        return 0.0, f"none, with {1 / density:,.0f} rows for each parameter" if density else "", None
    quick = N_FOLDS * len(STRENGTHS) * N_EVALUATIONS * machine._evaluation_seconds(data) <= PATIENT_SECONDS
    if quick and data.n_rows >= FEWEST_ROWS:
        with suppress(GibbsianError):  # a part without a cell of some column, say
            return cross_validated(machine, data)
    return one_over(data), "1 / rows, a standard normal prior of each parameter", None


def cross_validated(machine: Any, data: Any) -> tuple[float, str, HeldOut]:
    """Return the strength under which rows that a fit did not see score best, the rule in words, and the score."""
    if data.on_disk or data.n_rows < 2 * N_FOLDS:
        raise ArgumentError(
            f"needs at least {2 * N_FOLDS} rows in memory", "give a number, or 'auto'", argument="l2", value="cv"
        )
    found = [folds.held_out for folds in score_in_folds(machine, data, STRENGTHS)]
    best = int(np.argmax([held_out.score for held_out in found]))
    rule = f"{STRENGTHS[best]:g} / rows, the best of {len(STRENGTHS)} by {found[best].kind} in {N_FOLDS} folds"
    return STRENGTHS[best] * one_over(data), rule, found[best]
