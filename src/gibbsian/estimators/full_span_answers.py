"""Questions to a fitted `FullSpan`, in the names and labels of its data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gibbsian.data import Dataset
from gibbsian.data.categories import relabel
from gibbsian.domain import CategoryCoding
from gibbsian.errors import ArgumentError
from gibbsian.estimators.fitting import distinct_labels, like_frame, shorten
from gibbsian.expectations import Estimate
from gibbsian.full_span import FullSpanModel, SpanAnswers
from gibbsian.full_span.checks import plain
from gibbsian.full_span.table import probability_table
from gibbsian.learners import FitResult
from gibbsian.models.parameters import check_whole_number
from gibbsian.rng import RandomState, as_generator

# Columns by name or by number.
Names = str | int | Sequence[str | int]
# What provenance says of a fit to all columns, and not of the model of some given others.
OF_THE_FIT = ("cost", "divergence", "steps", "seconds", "resumed_at_step")


class SpanAnswersMixin:
    """What can be asked of a `FullSpan`; columns by name, values by label."""

    model_: FullSpanModel
    coding_: Any
    names_: tuple[str, ...]
    random_state: RandomState
    _answers: SpanAnswers

    if TYPE_CHECKING:
        result_: Any

        def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Dataset: ...
        def _set_columns(self, names: tuple[str, ...]) -> None: ...
        def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the settings, as scikit-learn does."""

    # -- rows ---------------------------------------------------------------------------------------------------------
    def score_samples(self, X: Any) -> np.ndarray:
        """Return the exact log-probability of each row; missing cells are summed out.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> model = gb.FullSpan().fit([[0, 0], [1, 1]] * 20)
        >>> np.exp(model.score_samples([[0, 0], [1, np.nan]])).round(3)
        array([0.494, 0.5  ])
        """
        data = self._read(X)
        return self._evidence(data)[data.row_of]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean exact log-likelihood per row, missing cells summed out.

        Examples
        --------
        >>> import gibbsian as gb
        >>> round(gb.FullSpan().fit([[0, 0], [1, 1]] * 20).score([[0, 0]]), 4)
        -0.7057
        """
        data = self._read(X, sample_weight=sample_weight)
        return float(np.average(self._evidence(data), weights=data.weights))

    def _evidence(self, data: Dataset) -> np.ndarray:
        return self._answers.log_evidence(data.domain.to_codes(data.states), data.missing)

    def pseudo_score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-pseudolikelihood per row, which needs no table over all states.

        Examples
        --------
        >>> import gibbsian as gb
        >>> round(gb.FullSpan().fit([[0, 0], [1, 1]] * 20).pseudo_score([[0, 0]]), 4)
        -0.0252
        """
        data = self._read(X)
        data.require_complete("the pseudolikelihood", "")
        values = self._answers.log_pseudolikelihood(data.domain.to_codes(data.states))
        return float(np.average(values, weights=data.weights))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of the values of each cell given the present cells of its row.

        For two-valued data that of the upper value, an array of shape (rows, columns); else of each value, (rows,
        columns, values), with zeros after the last value of a column that has fewer. Present cells have 0 or 1.
        A row costs its completions, and not a table over all states.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> model = gb.FullSpan().fit([[0, 0], [1, 1]] * 20)
        >>> model.predict_proba([[1, np.nan]]).round(2)
        array([[1.  , 0.99]])
        """
        data = self._read(X)
        return self._fill(data)[data.row_of]

    def _fill(self, data: Dataset) -> np.ndarray:
        every = self._answers.cell_probabilities(data.domain.to_codes(data.states), data.missing)
        return every[:, :, 1] if data.domain.two_valued else every

    def impute(self, X: Any) -> Any:
        """Return X with each missing cell set to its most probable value; frames come back as frames.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.FullSpan().fit([["a", "x"], ["b", "y"]] * 20).impute([["b", None]]).tolist()
        [['b', 'y']]
        """
        data = self._read(X)
        probabilities = self._fill(data)
        codes = probabilities > 0.5 if probabilities.ndim == 2 else probabilities.argmax(axis=2)
        filled = self.coding_.decode(self.coding_.domain.from_codes(codes))
        return like_frame(filled[data.row_of], X, self.names_)

    def predict(self, X: Any) -> Any:
        """Return X with each missing cell set to its most probable value: `impute`.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> gb.FullSpan().fit([[0, 0], [1, 1]] * 20).predict([[1, np.nan]]).tolist()
        [[1, 1]]
        """
        return self.impute(X)

    # -- the distribution ---------------------------------------------------------------------------------------------
    def log_partition(self, method: str = "exact", n_samples: int | None = None, betas: int | None = None) -> float:
        """Return log Z of the functions as they stand in ``model_``; always exact.

        Examples
        --------
        >>> import gibbsian as gb
        >>> round(gb.FullSpan().fit([[0, 1], [1, 0], [0, 0], [1, 1]]).log_partition(), 4)
        1.3863
        """
        check_is_fitted(self)
        if method != "exact" or n_samples is not None or betas is not None:
            raise ArgumentError("log Z of a full-span model is exact", "ask for log_partition() or score()")
        return self.model_.log_partition

    def expect(self, method: Any = "auto") -> Estimate:
        """Return the means of the functions in use, in the layout of ``model_.theta``; always exact.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.FullSpan().fit([[0, 0], [1, 1]] * 20).expect().mean
        array([0.975])
        """
        check_is_fitted(self)
        if method not in ("auto", "exact"):
            raise ArgumentError(
                "must be 'exact' or 'auto'", "a full-span model has exact means", argument="method", value=method
            )
        means = self._answers.means()
        return Estimate(means, np.zeros(means.size))

    def sample(self, n_samples: int = 1, method: str = "auto", random_state: RandomState = None) -> np.ndarray:
        """Draw independent rows, exactly, in the labels of the data.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.FullSpan(random_state=0).fit([["a", "x"], ["b", "y"]] * 20).sample(3).shape
        (3, 2)
        """
        check_is_fitted(self)
        check_whole_number("n_samples", n_samples)
        if method not in ("auto", "exact"):
            raise ArgumentError(
                "must be 'exact' or 'auto'", "a full-span model is sampled exactly", argument="method", value=method
            )
        rng = as_generator(self.random_state if random_state is None else random_state)
        return self._decoded(self._answers.sample(n_samples, rng))

    def most_probable(self, n_states: int = 1) -> Any:
        """Return the most probable states as a frame: a column for each variable, and their probability.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.FullSpan().fit([["a", "x"], ["b", "y"]] * 20).most_probable(2).round(3).values.tolist()
        [['a', 'x', 0.494], ['b', 'y', 0.494]]
        """
        import pandas

        check_is_fitted(self)
        codes, probabilities = self._answers.most_probable(n_states)
        table = pandas.DataFrame(self._decoded(codes), columns=list(self.names_))
        return table.assign(probability=probabilities)

    def marginal(self, names: Names) -> Any:
        """Return the joint probabilities of one or several columns, as a Series by their values.

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.FullSpan().fit([["a", "x"], ["b", "y"]] * 20)
        >>> model.marginal("x1").round(3).to_dict()
        {'x': 0.5, 'y': 0.5}
        >>> round(model.marginal(["x0", "x1"])["a", "y"], 3)
        np.float64(0.006)
        """
        nodes = self._nodes(names)
        table = self._answers.marginal(nodes)
        labels = [distinct_labels([self._labels(i)])[0] for i in nodes]
        return probability_table(table, [self.names_[i] for i in nodes], labels)

    def condition(self, given: Mapping[str | int, Any]) -> Self:
        """Return the model of the other columns given values of some, again a `FullSpan`; needs no table.

        It has no cost and no divergence of its own (NaN): those of a fit are of all columns.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rest = gb.FullSpan().fit([["a", "x"], ["b", "y"]] * 20).condition({"x0": "b"})
        >>> rest.names_, rest.most_probable().round(2).values.tolist()
        (('x1',), [['y', 0.99]])
        """
        check_is_fitted(self)
        if not isinstance(given, Mapping):
            raise ArgumentError(
                "must map columns to their values, as {'column'", "value}", argument="given", value=plain(given)
            )
        nodes = [self._node(name) for name in given]
        if len(set(nodes)) < len(nodes):
            raise ArgumentError("given holds a column twice, by name and by number", "give each once")
        codes = [self._code(node, label) for node, label in zip(nodes, given.values(), strict=True)]
        model, _ = self.model_.condition(nodes, codes)
        free = [i for i in range(len(self.names_)) if i not in nodes]
        names = tuple(self.names_[i] for i in free)
        known = {self.names_[i]: self._labels(i)[code] for i, code in zip(nodes, codes, strict=True)}
        story = {name: value for name, value in self.result_.provenance.items() if name not in OF_THE_FIT}
        told = {**story, "functions": int(model.indices.size), "given": known}
        rest = type(self)(**self.get_params(deep=False))
        rest._set_columns(names)
        result = FitResult(
            model,  # type: ignore[arg-type]
            self.result_.trace.__class__(),
            self.result_.converged,
            f"conditioned on {shorten(tuple(known))}",
            told,
        )
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

        Examples
        --------
        >>> import gibbsian as gb
        >>> model = gb.FullSpan().fit([["a", "x"], ["b", "y"]] * 20)
        >>> model.conditional({"x0": "b"}, "x1").round(2).to_dict()
        {'x': 0.01, 'y': 0.99}
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
        """Return the entropy of all columns, or of some, in nats.

        Examples
        --------
        >>> import gibbsian as gb
        >>> round(gb.FullSpan().fit([[0, 0], [1, 1]] * 20).entropy("x0"), 4)
        0.6931
        """
        check_is_fitted(self)
        return self._answers.entropy(None if names is None else self._nodes(names))

    def mutual_information(self, one: Names, other: Names) -> float:
        """Return what two columns, or groups of columns, tell about each other, in nats.

        Examples
        --------
        >>> import gibbsian as gb
        >>> round(gb.FullSpan().fit([[0, 0], [1, 1]] * 20).mutual_information("x0", "x1"), 4)
        0.6259
        """
        return self._answers.mutual_information(self._nodes(one), self._nodes(other))

    # -- names and labels ---------------------------------------------------------------------------------------------
    def _labels(self, node: int) -> tuple[Any, ...]:
        return tuple(self.coding_.labels_of(node))

    def _decoded(self, codes: np.ndarray) -> np.ndarray:
        return self.coding_.decode(self.coding_.domain.from_codes(codes))

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
        raise ArgumentError(f"column {plain(name)!r} is not one of {shorten(self.names_)}", "name a column of the fit")

    def _code(self, node: int, label: Any) -> int:
        (numbers,) = relabel([self.names_[node]], [(plain(label),)], [self._labels(node)], "the model")
        return int(numbers[0])
