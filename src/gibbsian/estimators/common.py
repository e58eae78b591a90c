"""What machines of several families declare and show in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gibbsian.data import Columns
from gibbsian.estimators.base import Estimator
from gibbsian.estimators.penalty import l2_setting
from gibbsian.learning import as_learner
from gibbsian.learning.objectives.priors import check_prior
from gibbsian.learning.recipe import LOG_PRIOR
from gibbsian.settings import declared, free, number
from gibbsian.startup import TransformerMixin, _check_feature_names_in, check_is_fitted


@declared
class LearnedMachine(Estimator):
    """A machine with a learner, penalties, a coding and a temperature; its subclasses say which model it has."""

    learner: Any = free("auto", "How to learn: a registered name, or a learner object.", doc="str or Learner")
    l1: float = number(
        0.0, "Penalty `l1 sum|interaction|` on the mean loss per row, in the model's own coding.", least=0
    )
    l2: Any = l2_setting("Penalty `(l2/2) sum parameter^2` on the mean loss per row, in the model's own coding.")
    log_prior: Any = free(None, LOG_PRIOR, doc="str, callable or None")
    coding: Any = free(
        "auto",
        "How values are written: recognised from the data, or declared by name ('spin', 'binary', 'categorical', "
        "'values'), as a pair of labels, as Threshold, Labels, Values or OneHot, or by a mapping from columns to their "
        "own. Parameters belong to the coding.",
        doc="str, pair of labels, mapping or Coding",
    )
    temperature: float = number(
        1.0,
        "T in `P(x) = exp(-E(x)/T) / Z` (YK15). Parameters of `model_` and of learner objects are natural, over T.",
        above=0,
    )

    def _coding(self) -> Any:
        """Return the coding; where some columns have their own, the others are read as they are by default."""
        return Columns(self.coding, type(self).coding) if isinstance(self.coding, Mapping) else self.coding

    def _learner_named(self, name: Any, **settings: Any) -> Any:
        """Return a learner by its name, with the penalties, or the learner itself."""
        check_prior(self.log_prior)
        return as_learner(name, **self._natural_penalties(), **settings)


class HiddenFeatures(TransformerMixin):
    """Hidden units as new columns."""

    def _feature_names(self) -> Sequence[str]:
        """Return the names of the columns that `transform` gives."""
        raise NotImplementedError

    def transform(self: Any, X: Any) -> np.ndarray:
        """Return the probability of the upper value of each hidden unit given the present cells of each row."""
        data = self._read(X)
        return self._answers.hidden_probabilities(data, self._rng())[data.row_of]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that transform gives."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.array(self._feature_names(), dtype=object)
