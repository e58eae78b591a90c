"""Queries to any fitted estimator over discrete columns, in the names and labels of its data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gibbsian.data.categories import relabel
from gibbsian.data.table import label_key
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.estimators.frames import are_chosen, distinct_labels, shorten
from gibbsian.estimators.reading import ReadsTables
from gibbsian.models.base import Model
from gibbsian.settings import as_plain
from gibbsian.startup import BaseEstimator, check_is_fitted, pandas

if TYPE_CHECKING:
    from gibbsian.answers.queries import Divergence, Queries
    from gibbsian.estimate import Estimate

# What a frame of probabilities holds.
PROBABILITIES = ("probability", "standard_error")
# Combinations of values after the bar, each of which is asked for by itself.
MOST_GIVEN = 2**10
# Columns by name or by number.
Names = str | int | Sequence[str | int]


class Variables(NamedTuple):
    """What queries may name: the columns, and after them what is hidden, with the labels of each."""

    names: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]

    def node(self, name: Any) -> int:
        """Return the number of a variable, by its name or number."""
        if isinstance(name, str) and name in self.names:
            return self.names.index(name)
        if isinstance(name, Integral) and not isinstance(name, bool) and 0 <= int(name) < len(self.names):
            return int(name)
        raise ArgumentError(
            f"column {as_plain(name)!r} is not one of {shorten(self.names)}", "name a column of the fit"
        )

    def nodes(self, names: Names) -> list[int]:
        """Return the numbers of one or several variables, each once."""
        listed = names if isinstance(names, Iterable) and not isinstance(names, str) else [names]
        nodes = [self.node(name) for name in listed]
        if not nodes:
            raise ArgumentError("names is empty", "name at least one column")
        return self.once(nodes)

    def once(self, nodes: list[int]) -> list[int]:
        """Return the numbers of variables that are named once each, or say which is not."""
        for place, node in enumerate(nodes):
            if node in nodes[:place]:
                raise ArgumentError(f"column {self.names[node]!r} is named twice", "name each once")
        return nodes

    def code(self, node: int, label: Any) -> int:
        """Return the number of a label among those of a variable."""
        name, known = self.names[node], self.labels[node]
        if label_key(as_plain(label)) is None:
            raise CodingError(f"column {name!r} is given {label!r}, a missing cell", f"give one of {shorten(known)}")
        try:
            return int(relabel([name], [(as_plain(label),)], [known], "the model")[0][0])
        except CodingError as error:
            raise CodingError(error.reason, f"use one of {shorten(known)}") from None

    def codes(self, given: Any) -> dict[int, int]:
        """Return the values that are given, by number."""
        if not isinstance(given, Mapping):
            raise ArgumentError(
                "must map columns to their values", "write it as {'column': value}", argument="given", value=given
            )
        nodes = self.once([self.node(name) for name in given])
        return {node: self.code(node, label) for node, label in zip(nodes, given.values(), strict=True)}


class Asking(ReadsTables):
    """What every estimator over discrete columns can be asked besides rows; one way for all models."""

    # -- probabilities ------------------------------------------------------------------------------------------------
    def query(self, query: str, method: str = "auto", n_samples: int | None = None, random_state: Any = None) -> Any:
        """Return what a query asks for, as a frame with standard errors (0: exact).

        Parameters
        ----------
        query : str
            ``P(a=1, b | c=0)``: probabilities, of fixed values and of all values of columns that are listed, given what
            stands after the bar (there too columns may be listed). ``H(a, b | c)``: an entropy; ``H()`` that of all
            columns. ``I(a; b | c)``: a mutual information. Both in nats. Names with odd characters stand in quotes;
            hidden units are called h0, h1, ..., the class of a mixture class.
        method : str, default="auto"
            ``"exact"``, or a sampler's name; ``"auto"`` is exact where that is in reach and draws samples else.
        n_samples : int, default=None
            How many samples; where given, samples are drawn in any case.
        random_state : None, int or Generator, default=None
            Overrides the estimator's own.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.query("P(x1 | x0=1)").round(3)
            probability  standard_error
        x1
        -1        0.333             0.0
         1        0.667             0.0
        >>> bm.query("I(x0; x1)").round(3).values.tolist()
        [[0.014, 0.0]]
        """
        from gibbsian.answers.query_text import Query

        parsed, variables = Query.parse(query), self._variables
        ask = self._queries(method, n_samples, random_state)
        groups = [[variables.node(term.name) for term in group] for group in parsed.groups]
        evidence = [variables.node(term.name) for term in parsed.given]
        variables.once([*(node for group in groups for node in group), *evidence])
        given = _fixed(variables, parsed.given)
        listed = [node for node in evidence if node not in given]
        if parsed.kind == "P":
            fixed = _fixed(variables, parsed.groups[0])
            return self._frame(ask, [node for node in groups[0] if node not in fixed], fixed, listed, given)
        if not groups[0]:
            groups[0] = [node for node in range(len(self.names_)) if node not in evidence]
        word = "entropy" if parsed.kind == "H" else "mutual_information"
        found = _information(ask, groups, listed, given)
        return _frame_of({word: [found.value], "standard_error": [found.stderr]})

    def marginal(self, names: Names, **how: Any) -> Any:
        """Return the joint probabilities of one or several columns, as a frame by their values; `how` as in `query`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([["no", "no"], ["yes", "yes"], ["no", "yes"], ["yes", "yes"], ["yes", "no"]])
        >>> bm.marginal("x1").probability.round(2).to_dict()
        {'no': 0.4, 'yes': 0.6}
        """
        return self._frame(self._queries(**how), self._variables.nodes(names), {}, [], {})

    def conditional(self, given: Mapping[str | int, Any], names: Names | None = None, **how: Any) -> Any:
        """Return probabilities given the values of some columns: of `names` jointly, or of every other column alone.

        Parameters
        ----------
        given : mapping from column to label
            What is known.
        names : str or sequence of str, optional
            The columns asked for. By default a frame by column and value; truth values stand there as text where
            there are numbers as well.
        **how
            As in `query`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.conditional({"x0": 1}, "x1").probability.round(3).to_dict()
        {-1: 0.333, 1: 0.667}
        """
        variables, ask = self._variables, self._queries(**how)
        known = variables.codes(given)
        if names is not None:
            nodes = variables.nodes(names)
            if taken := [variables.names[node] for node in nodes if node in known]:
                raise ArgumentError(f"column {taken[0]!r} is given and asked for", "leave it out of one of them")
            return self._frame(ask, nodes, {}, [], known)
        free = [i for i in range(len(self.names_)) if i not in known]
        tables = ask.tables([[i] for i in free], known)
        labels = distinct_labels([variables.labels[i] for i in free])
        pairs = [(variables.names[i], label) for i, own in zip(free, labels, strict=True) for label in own]
        parts = [table.value for table in tables], [table.monte_carlo_error for table in tables]
        found = [np.concatenate(part) for part in parts]
        return _frame_of(dict(zip(PROBABILITIES, found, strict=True)), ["column", "value"], pairs)

    # -- information --------------------------------------------------------------------------------------------------
    def entropy(self, names: Names | None = None, **how: Any) -> Estimate:
        """Return the entropy of all columns, or of some, in nats, with its ``stderr``; `how` as in `query`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> round(bm.entropy().value, 4), bm.entropy().stderr                               # 2 log 2
        (1.3863, 0.0)
        """
        ask = self._queries(**how)
        nodes = list(range(len(self.names_))) if names is None else self._variables.nodes(names)
        return ask.information([(1, nodes)], {})

    def mutual_information(self, one: Names, other: Names, **how: Any) -> Estimate:
        """Return what two columns, or groups of columns, tell about each other, in nats; `how` as in `query`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> round(bm.mutual_information("x0", "x1").value, 4)
        0.0138
        """
        variables, ask = self._variables, self._queries(**how)
        groups = [variables.nodes(one), variables.nodes(other)]
        variables.once([*groups[0], *groups[1]])
        return _information(ask, groups, [], {})

    def divergence(self, other: Any, **how: Any) -> Divergence:
        """Return the Kullback-Leibler divergences to and from another model of the same columns, and Jensen-Shannon's.

        Parameters
        ----------
        other : fitted estimator, model, or table
            An estimator with the same columns and labels; a model over as many values; or probabilities of all states,
            of the shape of the columns' values.
        **how
            As in `query`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> one, other = gb.BoltzmannMachine(l2=0).fit(rows), gb.BoltzmannMachine(l2=1.0).fit(rows)
        >>> [round(number.value, 4) for number in one.divergence(other)]
        [0.0113, 0.011, 0.0028]
        """
        ask, n = self._queries(**how), len(self.names_)
        sizes = tuple(ask.sizes[:n].tolist())
        if isinstance(other, BaseEstimator):
            return ask.divergence(*self._beside(other))
        from gibbsian.answers.about import ANSWERS, answers_about

        if isinstance(other, Model) and ANSWERS.name_for(other.family):
            joint = answers_about(other).joint()
            _check_sizes(other.variables.sizes, sizes)
            return ask.divergence(joint, [np.arange(size) for size in sizes])
        from gibbsian.answers.queries import log_table

        logs = log_table(other, sizes)
        return ask.divergence_of(range(n), lambda codes: logs[np.ravel_multi_index(tuple(codes.T), sizes)])

    def _beside(self, machine: Any) -> tuple[Any, list[np.ndarray]]:
        """Return another machine's model, and its numbers of this one's labels."""
        check_is_fitted(machine)
        if not isinstance(machine, Asking):
            raise ArgumentError(f"{type(machine).__name__} gives no probabilities of whole rows", "give another model")
        if machine.names_ != self.names_ and (are_chosen(machine.names_) or len(machine.names_) != len(self.names_)):
            raise ArgumentError(
                f"the other model has the columns {shorten(machine.names_)} but this one has {shorten(self.names_)}",
                "compare models of the same columns in the same order",
            )
        joint, ours, theirs = machine._answers.joint(), self._column_labels, machine._column_labels
        _check_sizes(tuple(map(len, theirs)), tuple(map(len, ours)))
        return joint, relabel(self.names_, ours, theirs, "the other model")

    # -- from the hidden side -----------------------------------------------------------------------------------------
    def visible_given_hidden(self, hidden: Any, return_error: bool = False, **how: Any) -> Any:
        """Return the probabilities of the columns' values given the hidden units, or the class, in the form of cells.

        The columns may be coupled among themselves (YK15): each is summed over the others, exactly or by samples. Given
        the lowest hidden layer those above do not count.

        Parameters
        ----------
        hidden : array of shape (rows, hidden units), or (rows,) classes
            Values of the hidden units, as ``sample(return_hidden=True)`` gives them; of a deep machine all or those
            of the lowest layer.
        return_error : bool, default=False
            Also return standard errors, zero where exact.
        **how
            As in `query`.

        Returns
        -------
        ndarray of shape (rows, columns), or (rows, columns, values) where columns have many
            The probability of the upper value, or of each; means of real columns.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 5
        >>> machine = gb.HiddenBoltzmannMachine(1, l2=0.01, random_state=0).fit(rows)
        >>> machine.visible_given_hidden([[0], [1]]).shape
        (2, 3)
        """
        answers, n = self._answers, len(self.names_)
        if not self.model_.n_hidden:
            raise ArgumentError("the model has no hidden units", "fit one that has")
        values = np.asarray(hidden)
        values = values[:, None] if values.ndim == 1 else values
        known, groups = list(answers.hidden_variables(self.names_).values()), answers.hidden_groups()
        group = next((group for group in groups if values.ndim == 2 and values.shape[1] == len(group)), None)
        if group is None:
            widths = " or ".join(str(len(group)) for group in groups)
            raise ArgumentError(f"hidden has shape {values.shape}", f"give {widths} values a row")
        codes = np.empty(values.shape, np.int8)
        for k, place in enumerate(group):
            matches = values[:, k, None] == np.array(known[place])
            if not matches.any(axis=1).all():
                wrong = as_plain(values[~matches.any(axis=1), k][0])
                raise ArgumentError(f"column {k} of hidden holds {wrong!r}", f"use one of {shorten(known[place])}")
            codes[:, k] = matches.argmax(axis=1)
        found, errors = answers.visible_given_hidden(codes, group, n, lambda: self._queries(**how))
        return (found, errors) if return_error else found

    # -- names and labels ---------------------------------------------------------------------------------------------
    @property
    def _variables(self) -> Variables:
        check_is_fitted(self)
        hidden = self._answers.hidden_variables(self.names_)
        return Variables((*self.names_, *hidden), (*map(tuple, self._column_labels), *hidden.values()))

    def _queries(self, method: str = "auto", n_samples: int | None = None, random_state: Any = None) -> Queries:
        from gibbsian.answers.queries import Queries

        return Queries(self._answers.joint(), self._rng(random_state), method, n_samples)

    def _frame(
        self, ask: Queries, nodes: list[int], fixed: dict[int, int], listed: list[int], given: dict[int, int]
    ) -> Any:
        """Return ``P(nodes, fixed | listed, given)`` as a frame by the values of what has none."""
        variables, found = self._variables, []
        if (ways := math.prod(map(float, ask.sizes[listed]))) > MOST_GIVEN:
            raise ArgumentError(f"{ways:.2g} combinations of values stand after the bar", "fix some of them")
        for codes in np.ndindex(*ask.sizes[listed]):
            found.append(ask.probabilities(nodes, fixed, {**given, **dict(zip(listed, codes, strict=True))}))
        # the columns that were asked for come first
        shape = (*ask.sizes[listed], *ask.sizes[nodes])
        order = [*range(len(listed), len(shape)), *range(len(listed))]
        parts = [each.value for each in found], [each.monte_carlo_error for each in found]
        tables = [np.array(part).reshape(shape).transpose(order).ravel() for part in parts]
        labels = [distinct_labels([variables.labels[node]])[0] for node in (*nodes, *listed)]
        names = [variables.names[node] for node in (*nodes, *listed)]
        return _frame_of(dict(zip(PROBABILITIES, tables, strict=True)), names, list(itertools.product(*labels)))


def _fixed(variables: Variables, terms: Sequence[Any]) -> dict[int, int]:
    """Return the values of terms that have one, by number."""
    return variables.codes({term.name: term.label for term in terms if term.label is not None})


def _information(ask: Queries, groups: list[list[int]], listed: list[int], given: dict[int, int]) -> Estimate:
    """Return the entropy of one group, or the mutual information of two, given columns and values."""
    together = [node for group in groups for node in group]
    if len(groups) == 1:
        return ask.information([(1, [*together, *listed]), (-1, listed)], given)
    parts = [(1, [*group, *listed]) for group in groups]
    return ask.information([*parts, (-1, [*together, *listed]), (-1, listed)], given)


def _frame_of(columns: dict[str, object], names: Sequence[str] = (), keys: Sequence[Any] = ()) -> Any:
    """Return columns as a frame, by the keys of its rows where these have names."""
    if len(names) == 1:
        return pandas.DataFrame(columns, pandas.Index([key for (key,) in keys], name=names[0]))
    return pandas.DataFrame(columns, pandas.MultiIndex.from_tuples(keys, names=names) if names else None)


def _check_sizes(theirs: tuple[int, ...], ours: tuple[int, ...]) -> None:
    if theirs != ours:
        raise ArgumentError(
            f"the other model has variables of {theirs} values but this one of {ours}",
            "compare models of the same columns",
        )
