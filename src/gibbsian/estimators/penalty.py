"""How strong the L2 penalty of a fit is where that is not said by a number: `l2="auto"` and `l2="cv"`."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from gibbsian.backends.processes import map_fits
from gibbsian.data import Dataset
from gibbsian.errors import (
    ArgumentError,
    ConstantColumnError,
    GibbsianWarning,
    MaximumDoesNotExistError,
    PenaltyWarning,
    notify,
)
from gibbsian.learners.base import LEARNERS
from gibbsian.settings import number, settings_of
from gibbsian.startup import clone

# Strengths that cross-validation compares, in units of one over the number of rows, and how many parts it makes.
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
N_FOLDS = 3
_CHOICES = (
    " 'auto' is none where a finite maximum exists, and where none does 1 / rows, a standard normal prior of each "
    "parameter; 'cv' is the best of several by cross-validation."
)


def l2_setting(help: str, default: Any = "auto") -> Any:
    """Declare the strength of an L2 penalty."""
    return number(default, help + _CHOICES, least=0, words=("auto", "cv"))


class ChoosesPenalty:
    """An estimator whose L2 penalty may be a word; `_l2` is the number that it stands for in this fit."""

    l2: Any = 0.0
    learner: Any = "auto"

    @property
    def _l2(self) -> float:
        return float(self.__dict__.get("_strength", 0.0)) if isinstance(self.l2, str) else self.l2

    @property
    def _may_penalise(self) -> bool:
        """Whether a fit without a finite maximum is made again with a penalty."""
        if not isinstance(self.learner, str) or not isinstance(self.l2, str) or self._l2:
            return False  # a learner object brings its own penalty
        return self.learner not in LEARNERS or "l2" in settings_of(LEARNERS.factory(self.learner))

    def _learn(self: Any, data: Dataset, unseen: Dataset | None, rng: np.random.Generator) -> Any:
        """Settle the penalty and learn; once more under a penalty where there is no finite maximum without one."""
        self.__dict__.pop("_strength", None)
        said: dict[str, Any] = {}
        if isinstance(self.l2, str) and self.l2 == "cv":
            self._strength, said = cross_validated(self, data, rng)
        try:
            return self._learn_once(data, unseen, rng, said)
        except (MaximumDoesNotExistError, ConstantColumnError) as error:
            if not self._may_penalise or "l2" not in error.remedy:
                raise
            self._strength = one_over(data)
            used = f"`l2={self._strength:.3g}`, one over the number of rows, keeps the parameters finite"
            notify(PenaltyWarning(error.reason, used))
            return self._learn_once(
                data, unseen, rng, {"l2_rule": "1 / rows, without which there is no finite maximum"}
            )


def one_over(data: Any) -> float:
    """Return one over the number of rows, by weight."""
    return 1.0 / max(float(getattr(data, "total_weight", data.n_rows)), 1.0)


def cross_validated(machine: Any, data: Any, rng: np.random.Generator) -> tuple[float, dict[str, Any]]:
    """Return the strength under which rows that a fit did not see score best, and what to say of the choice."""
    if getattr(data, "on_disk", False) or data.n_rows < 2 * N_FOLDS:
        raise ArgumentError(
            f"needs at least {2 * N_FOLDS} rows in memory", "give a number, or 'auto'", argument="l2", value="cv"
        )
    places = np.array_split(rng.permutation(data.n_rows), N_FOLDS)
    trials = [(fold, strength) for fold in places for strength in STRENGTHS]
    found = list(map_fits(partial(_unseen_score, clone(machine), data), trials))
    totals = np.zeros(len(STRENGTHS))
    for (fold, strength), held_out in zip(trials, found, strict=True):
        totals[STRENGTHS.index(strength)] += held_out.score * len(fold) / data.n_rows
    best = int(np.argmax(totals))
    rule = f"{STRENGTHS[best]:g} / rows, the best of {len(STRENGTHS)} by {held_out.kind} in {N_FOLDS} folds"
    return STRENGTHS[best] * one_over(data), {"l2_rule": rule}


def _unseen_score(machine: Any, data: Dataset, trial: tuple[np.ndarray, float]) -> Any:
    """Fit the rows outside a fold under a penalty, and score the fold."""
    fold, strength = trial
    plain = {"validation_fraction": 0.0, "checkpoint": None, "callbacks": None, "verbose": 0, "random_state": 0}
    shown = data.take(np.setdiff1d(np.arange(data.n_rows), fold))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GibbsianWarning)
        fit = clone(machine).set_params(**plain, l2=strength * one_over(shown)).fit(shown)
        return fit.score_or_pseudo_score(data.take(fold))
