"""Questions to a fitted `FullSpan` besides those to every estimator, in the names and labels of its data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from gibbsian.answers.information import (
    Divergence,
    divergence,
    log_table,
    log_table_of_probabilities,
    log_table_of_weights,
)
from gibbsian.data.categories import relabel
from gibbsian.domain import SPIN, CategoryCoding, Coding, as_coding
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.estimators.frames import are_chosen, distinct_labels, shorten
from gibbsian.estimators.span_tables import probability_table
from gibbsian.learners import FitResult, Trace
from gibbsian.models import HigherOrderModel
from gibbsian.models.full_span import FullSpanModel

# Columns by name or by number.
Names = str | int | Sequence[str | int]
# What provenance says of a fit to all columns, and not of the model of some given others.
OF_THE_FIT = ("cost", "divergence", "steps", "seconds", "resumed_at_step")


def has_hidden_variable(estimator: Any) -> bool:
    """Whether a fit leaves a hidden variable in the model; averages and choices are of the columns alone."""
    return estimator.n_components > 1 and not estimator.n_averages and estimator.candidates is None


class SpanQuestions:
    """What can be asked of a `FullSpan` beyond other estimators; columns by name, values by label."""

    model_: FullSpanModel
    coding_: Any
    names_: tuple[str, ...]
    n_components: int

    if TYPE_CHECKING:
        result_: Any
        _answers: Any

        def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Any: ...
        def _set_columns(self, names: tuple[str, ...]) -> None: ...
        def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the settings, as scikit-learn does."""

    @available_if(has_hidden_variable)
    def transform(self, X: Any) -> np.ndarray:
        """Return the probabilities of the values of the hidden variable given the present cells of each row.

        There is one with ``n_components`` above 1, unless models are averaged or chosen.
        """
        data = self._read(X)
        return self._answers.hidden_probabilities(data)[data.row_of]

    @available_if(has_hidden_variable)
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the columns that `transform` gives, one for each value of the hidden variable."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.array([f"hidden={value}" for value in range(self.model_.cardinalities[-1])], dtype=object)

    # -- the distribution ---------------------------------------------------------------------------------------------
    def marginal(self, names: Names) -> Any:
        """Return the joint probabilities of one or several columns, as a Series by their values."""
        nodes = self._nodes(names)
        table = self._answers.marginal(nodes)
        labels = [distinct_labels([self._labels(i)])[0] for i in nodes]
        return probability_table(table, [self.names_[i] for i in nodes], labels)

    def condition(self, given: Mapping[str | int, Any]) -> Self:
        """Return the model of the other columns given values of some, again a `FullSpan`; needs no table.

        It has no cost and no divergence of its own (NaN): those of a fit are of all columns.
        """
        check_is_fitted(self)
        if not isinstance(given, Mapping):
            raise ArgumentError(
                "must map columns to their values", "write it as {'column': value}", argument="given", value=given
            )
        nodes = [self._node(name) for name in given]
        if len(set(nodes)) < len(nodes):
            raise ArgumentError("given holds a column twice, by name and by number", "give each once")
        codes = [self._code(node, label) for node, label in zip(nodes, given.values(), strict=True)]
        values = self.model_.domain.from_codes(np.array([codes], dtype=np.int8))[0]
        model, _ = self.model_.condition(nodes, values)
        free = [i for i in range(len(self.names_)) if i not in nodes]
        names = tuple(self.names_[i] for i in free)
        known = {self.names_[i]: self._labels(i)[code] for i, code in zip(nodes, codes, strict=True)}
        story = {name: value for name, value in self.result_.provenance.items() if name not in OF_THE_FIT}
        result = FitResult(
            model,
            Trace(),
            self.result_.converged,
            f"conditioned on {shorten(tuple(known))}",
            {**story, "functions": int(model.indices.size), "given": known},
        )
        rest = type(self)(**self.get_params(deep=False))
        rest._set_columns(names)
        coding = self.coding_
        if isinstance(coding, CategoryCoding):
            coding = CategoryCoding(tuple(coding.labels[i] for i in free), coding.domain.take(np.array(free)))
        return rest._set_fitted(result, coding, names)

    def conditional(self, given: Mapping[str | int, Any], names: Names | None = None) -> Any:
        """Return probabilities given the values of some columns: of `names` jointly, or of every other column alone.

        Only the free columns are summed over, so with many given a large model needs no table over all states.

        Parameters
        ----------
        given : mapping from column to label
            What is known.
        names : str or sequence of str, optional
            The columns asked for, as in `marginal`. By default a Series by column and value; truth values stand there
            as text where there are numbers as well.
        """
        import pandas

        rest = self.condition(given)
        if names is not None:
            asked = [self.names_[i] for i in self._nodes(names)]
            if taken := [name for name in asked if name not in rest.names_]:
                raise ArgumentError(f"column {taken[0]!r} is given and asked for", "leave it out of one of them")
            return rest.marginal(asked)
        labels = distinct_labels([rest._labels(i) for i in range(len(rest.names_))])
        pairs = [(name, label) for name, known in zip(rest.names_, labels, strict=True) for label in known]
        index = pandas.MultiIndex.from_tuples(pairs, names=["column", "value"])
        every = [rest._answers.marginal([i]) for i in range(len(rest.names_))]
        return pandas.Series(np.concatenate(every), index=index, name="probability")

    def entropy(self, names: Names | None = None) -> float:
        """Return the entropy of all columns, or of some, in nats."""
        check_is_fitted(self)
        return self._answers.entropy(None if names is None else self._nodes(names))

    def mutual_information(self, one: Names, other: Names) -> float:
        """Return what two columns, or groups of columns, tell about each other, in nats."""
        return self._answers.mutual_information(self._nodes(one), self._nodes(other))

    # -- beside other models ------------------------------------------------------------------------------------------
    def divergence_to(self, other: Any) -> Divergence:
        """Return the Kullback-Leibler divergences to and from another distribution of the same columns, exactly.

        Parameters
        ----------
        other : FullSpan, BoltzmannMachine, HigherOrderBoltzmannMachine, PottsMachine, a model, or a table
            A fitted machine with the same columns and labels; a model over as many values; or probabilities of all
            states, of the shape of the columns' values.
        """
        check_is_fitted(self)
        return divergence(log_table(self._visible), self._log_table_of(other))

    def _log_table_of(self, other: Any) -> np.ndarray:
        basis = self._visible.basis
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
        if cardinalities != self._visible.cardinalities:
            raise ArgumentError(
                f"the other model has variables of {cardinalities} values "
                f"but this one of {self._visible.cardinalities}",
                "compare models of the same columns",
            )

    def to_higher_order(self) -> Any:
        """Return the same distribution of two-valued columns as a `HigherOrderBoltzmannMachine` of spins.

        The upper value is +1 and the lower -1; log Z is the same. The machine reads the labels of this one where all
        columns share them, and -1/+1 where they do not.
        """
        check_is_fitted(self)
        for name, q in zip(self.names_, self._visible.cardinalities, strict=True):
            if q != 2:
                raise CodingError(
                    f"column {name!r} has {q} value{'s' * (q != 1)}, and only two-valued columns have spins",
                    "fit without it, or keep the full-span model",
                )
        model = HigherOrderModel.build(dict(self._visible.to_cliques()), len(self.names_), SPIN)
        coding = self._spin_coding()
        story = {**self.result_.provenance, "converted_from": "full-span"}
        result = FitResult(model, Trace(), self.result_.converged, self.result_.reason, story, penalised=True)
        from gibbsian.estimators.higher_order import HigherOrderBoltzmannMachine

        machine = HigherOrderBoltzmannMachine(
            cliques=[tuple(self.names_[i] for i in clique) for clique in model.cliques], bias=False, coding=coding
        )
        machine._set_columns(self.names_)
        return machine._set_fitted(result, coding, self.names_)

    @property
    def _visible(self) -> FullSpanModel:
        """The distribution of the columns, a hidden variable summed out."""
        return self.model_.without_hidden()

    def _spin_coding(self) -> Coding:
        pairs = {self._labels(j) for j in range(len(self.names_))}
        if len(pairs) > 1:
            return as_coding("spin")
        low, high = pairs.pop()
        known = as_coding((low, high))
        return known if known.domain is SPIN else Coding(f"{known.name} as spins", low, high, SPIN)

    # -- names and labels ---------------------------------------------------------------------------------------------
    def _labels(self, node: int) -> tuple[Any, ...]:
        return tuple(self.coding_.labels_of(node))

    def _nodes(self, names: Names) -> list[int]:
        check_is_fitted(self)
        if not isinstance(names, str) and not isinstance(names, Iterable):
            names = [names]
        nodes = [self._node(name) for name in ([names] if isinstance(names, str) else names)]
        if not nodes:
            raise ArgumentError("names is empty", "name at least one column")
        return nodes

    def _node(self, name: str | int) -> int:
        if isinstance(name, str) and name in self.names_:
            return self.names_.index(name)
        if isinstance(name, Integral) and not isinstance(name, bool) and 0 <= name < len(self.names_):
            return int(name)
        raise ArgumentError(f"column {_plain(name)!r} is not one of {shorten(self.names_)}", "name a column of the fit")

    def _code(self, node: int, label: Any) -> int:
        (numbers,) = relabel([self.names_[node]], [(_plain(label),)], [self._labels(node)], "the model")
        return int(numbers[0])


def _cardinalities(model: Any) -> tuple[int, ...]:
    return tuple(model.domain.cardinalities(model.n_variables).tolist())


def _log_weights_of_codes(model: Any) -> Any:
    """Return the log-weights of a model as a function of codes."""
    return lambda codes: model.log_weights(model.domain.from_codes(codes))


def _plain(value: Any) -> Any:
    """Return a NumPy number as Python's own, which messages show as people write it."""
    return value.item() if isinstance(value, np.generic) else value
