"""Questions to a fitted `FullSpan` besides those to every estimator, in the names and labels of its data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from gibbsian.domain import SPIN, Categories, CategoryCoding
from gibbsian.errors import CodingError
from gibbsian.estimators.base import Estimator
from gibbsian.estimators.frames import shorten
from gibbsian.estimators.queries import Variables
from gibbsian.learning import FitResult, Trace
from gibbsian.models.families.full_span import as_products, without_hidden
from gibbsian.startup import _check_feature_names_in, available_if, check_is_fitted

# What provenance says of a fit to all columns, and not of the model of some given others.
OF_THE_FIT = ("cost", "divergence", "steps", "seconds", "resumed_at_step")


def hidden_values(estimator: Any) -> tuple[Any, ...]:
    """Return how many values each hidden variable has that is asked for; one with a single value is none."""
    return tuple(q for q in np.atleast_1d(np.array(estimator.n_components, dtype=object)).tolist() if q != 1)


class SpanQuestions(Estimator):
    """What can be asked of a `FullSpan` beyond other estimators; columns by name, values by label."""

    @available_if(lambda estimator: bool(hidden_values(estimator)))
    def transform(self, X: Any) -> np.ndarray:
        """Return the probabilities of the values of each hidden variable given the present cells of each row.

        There are some with ``n_components`` above 1.
        """
        data = self._read(X)
        return self._answers.hidden_probabilities(data)[data.row_of]

    @available_if(lambda estimator: bool(hidden_values(estimator)))
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that `transform` gives, one for each value of each hidden variable."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        hidden = self.model_.variables.sizes[-self.model_.n_hidden :]
        names = ["hidden"] if len(hidden) == 1 else [f"hidden {k}" for k in range(len(hidden))]
        values = [f"{name}={value}" for name, q in zip(names, hidden, strict=True) for value in range(q)]
        return np.array(values, dtype=object)

    # -- the distribution ---------------------------------------------------------------------------------------------

    def condition(self, given: Mapping[str | int, Any]) -> Self:
        """Return the model of the other columns given values of some, again a `FullSpan`; needs no table.

        It has no cost and no divergence of its own (NaN): those of a fit are of all columns.
        """
        check_is_fitted(self)
        found = Variables(self.names_, tuple(map(tuple, self._column_labels))).codes(given)
        nodes, codes = list(found), list(found.values())
        model, _ = self.model_.given(nodes, codes)
        free = [i for i in range(len(self.names_)) if i not in nodes]
        names = tuple(self.names_[i] for i in free)
        known = {self.names_[i]: self._column_labels[i][code] for i, code in zip(nodes, codes, strict=True)}
        story = {name: value for name, value in self.result_.provenance.items() if name not in OF_THE_FIT}
        result = FitResult(
            model,
            Trace(),
            self.result_.converged,
            f"conditioned on {shorten(tuple(known))}",
            {**story, "functions": model.theta.size, "given": known},
        )
        rest = type(self)(**self.get_params(deep=False))
        rest._set_columns(names)
        coding = self.coding_
        if isinstance(coding, CategoryCoding):
            labels, domain = tuple(coding.labels[i] for i in free), coding.domain
            if isinstance(domain, Categories):
                scores = None if domain.values is None else tuple(domain.values[i] for i in free)
                domain = Categories(tuple(map(len, labels)), scores)
            coding = CategoryCoding(labels, domain)
        return rest._set_fitted(result, coding, names)

    def to_higher_order(self) -> Any:
        """Return the same distribution of two-valued columns as a `HigherOrderBoltzmannMachine` of spins.

        The upper value is +1 and the lower -1; log Z is the same. The machine reads the labels of this one.
        """
        check_is_fitted(self)
        for name, q in zip(self.names_, self.model_.variables.sizes, strict=False):  # hidden variables come last
            if q != 2:
                raise CodingError(
                    f"column {name!r} has {q} value{'s' * (q != 1)}, and only two-valued columns have spins",
                    "fit without it, or keep the full-span model",
                )
        model = as_products(without_hidden(self.model_))
        coding = CategoryCoding(tuple(map(tuple, self._column_labels)), SPIN)
        story = {**self.result_.provenance, "converted_from": "full-span"}
        result = FitResult(model, Trace(), self.result_.converged, self.result_.reason, story, penalised=True)
        from gibbsian.estimators.higher_order import HigherOrderBoltzmannMachine

        machine = HigherOrderBoltzmannMachine(
            cliques=[tuple(self.names_[i] for i in clique) for clique in model.family.scopes], bias=False, coding=coding
        )
        machine._set_columns(self.names_)
        return machine._set_fitted(result, coding, self.names_)
