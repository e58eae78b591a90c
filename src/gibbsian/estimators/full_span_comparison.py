"""A fitted `FullSpan` beside other models: divergences, and export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gibbsian.data.categories import relabel
from gibbsian.domain import SPIN, Coding, as_coding
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.estimators.fitting import are_chosen, shorten
from gibbsian.estimators.higher_order import HigherOrderBoltzmannMachine
from gibbsian.full_span import Divergence, FullSpanModel
from gibbsian.full_span.information import divergence, log_table, log_table_of_probabilities, log_table_of_weights
from gibbsian.learners import FitResult, Trace
from gibbsian.models import HigherOrderModel


class SpanComparisonMixin:
    """How a `FullSpan` compares with other models of its columns, and how it becomes one of them."""

    model_: FullSpanModel
    names_: tuple[str, ...]

    if TYPE_CHECKING:
        result_: Any

        def _labels(self, node: int) -> tuple[Any, ...]: ...

    def divergence_to(self, other: Any) -> Divergence:
        """Return the Kullback-Leibler divergences to and from another distribution of the same columns, exactly.

        Parameters
        ----------
        other : FullSpan, BoltzmannMachine, HigherOrderBoltzmannMachine, PottsMachine, a model, or a table
            A fitted machine with the same columns and labels; a model over as many values; or probabilities of all
            states, of the shape of the columns' values.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.FullSpan().fit([[0, 0], [1, 1]] * 20)
        >>> round(model.divergence_to([[0.25, 0.25], [0.25, 0.25]]).forward, 4)
        0.6259
        """
        check_is_fitted(self)
        return divergence(log_table(self.model_), self._log_table_of(other))

    def _log_table_of(self, other: Any) -> np.ndarray:
        basis = self.model_.basis
        if isinstance(other, BaseEstimator):
            return log_table_of_weights(basis, self._log_weights_of(other))
        if hasattr(other, "log_weights"):
            self._check_values(_cardinalities(other))
            return log_table_of_weights(basis, _log_weights_of_codes(other))
        return log_table_of_probabilities(basis, other)

    def _log_weights_of(self, machine: Any) -> Any:
        """Return the log-weights of another machine as a function of this one's codes."""
        check_is_fitted(machine)
        if not hasattr(getattr(machine, "model_", None), "log_weights"):
            raise ArgumentError(f"{type(machine).__name__} gives no probabilities of whole rows", "give another model")
        if machine.names_ != self.names_ and (are_chosen(machine.names_) or len(machine.names_) != len(self.names_)):
            raise ArgumentError(
                f"the other model has the columns {shorten(machine.names_)} but this one has {shorten(self.names_)}",
                "compare models of the same columns in the same order",
            )
        model, n = machine.model_, len(self.names_)
        self._check_values(_cardinalities(model))
        theirs = [machine.coding_.labels_of(j) for j in range(n)]
        numbers = relabel(self.names_, [self._labels(j) for j in range(n)], theirs, "the other model")

        of_codes = _log_weights_of_codes(model)
        return lambda codes: of_codes(np.column_stack([number[codes[:, j]] for j, number in enumerate(numbers)]))

    def _check_values(self, cardinalities: tuple[int, ...]) -> None:
        if cardinalities != self.model_.cardinalities:
            raise ArgumentError(
                f"the other model has variables of {cardinalities} values but this one of {self.model_.cardinalities}",
                "compare models of the same columns",
            )

    def to_higher_order(self) -> Any:
        """Return the same distribution of two-valued columns as a `HigherOrderBoltzmannMachine` of spins.

        The upper value is +1 and the lower -1; log Z is the same. The machine reads the labels of this one where all
        columns share them, and -1/+1 where they do not.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.FullSpan().fit([["no", "no"], ["yes", "yes"]] * 20)
        >>> machine = model.to_higher_order()
        >>> bool(abs(machine.score([["yes", "no"]]) - model.score([["yes", "no"]])) < 1e-12)
        True
        """
        check_is_fitted(self)
        for name, q in zip(self.names_, self.model_.cardinalities, strict=True):
            if q != 2:
                raise CodingError(
                    f"column {name!r} has {q} value{'s' * (q != 1)}, and only two-valued columns have spins",
                    "fit without it, or keep the full-span model",
                )
        model = HigherOrderModel.build(dict(self.model_.to_cliques()), len(self.names_), SPIN)
        coding = self._spin_coding()
        told = {**self.result_.provenance, "converted_from": "full-span"}
        result = FitResult(model, Trace(), self.result_.converged, self.result_.reason, told, penalised=True)
        machine = HigherOrderBoltzmannMachine(
            cliques=[tuple(self.names_[i] for i in clique) for clique in model.cliques], bias=False, coding=coding
        )
        machine._set_columns(self.names_)
        return machine._set_fitted(result, coding, self.names_)

    def _spin_coding(self) -> Coding:
        pairs = {self._labels(j) for j in range(len(self.names_))}
        if len(pairs) > 1:
            return as_coding("spin")
        low, high = pairs.pop()
        known = as_coding((low, high))
        return known if known.domain is SPIN else Coding(f"{known.name} as spins", low, high, SPIN)


def _cardinalities(model: Any) -> tuple[int, ...]:
    if isinstance(model, FullSpanModel):
        return model.cardinalities
    return tuple(model.domain.cardinalities(model.n_variables).tolist())


def _log_weights_of_codes(model: Any) -> Any:
    """Return the log-weights of a model as a function of codes; a full-span model has no other states."""
    if isinstance(model, FullSpanModel):
        return model.log_weights
    return lambda codes: model.log_weights(model.domain.from_codes(codes))
