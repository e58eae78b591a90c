"""`Dataset`: the one form in which data reaches models, learners and diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.data.columns import columns_in, without_identifiers
from gibbsian.data.distinct import distinct
from gibbsian.data.encoding import Cells, converted, encode, read_again
from gibbsian.data.minibatches import Cuts, MemoryPass, check_weights, seeded, systematic_draws
from gibbsian.data.numbers import is_sparse
from gibbsian.data.readers import read_table
from gibbsian.data.rows import Rows, T
from gibbsian.data.rules import CodingLike, ManyValued, Threshold, as_rule
from gibbsian.data.table import Table, default_names
from gibbsian.domain import AnyCoding, RealCoding, as_coding
from gibbsian.errors import ArgumentError, CodingError, DataError, MissingValuesError
from gibbsian.models.variables import variables_of
from gibbsian.rng import RandomState, as_generator

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# What to do about missing cells where a learner cannot have them.
LEARN_OTHERWISE = "learn with a learner, which sums them out or completes them, or "


@dataclass(frozen=True, eq=False)
class Dataset(Rows):
    """Distinct states with their weights; made by `Dataset.read`.

    Statistics are sums over rows, so equal rows are kept once with their weights summed. The distinct states stand in
    a fixed order that does not depend on the order of the rows.

    Parameters
    ----------
    states : ndarray of shape (n_states, n_variables)
        Distinct rows: codes 0, 1, ... in the order of the labels (int8); float64 for real numbers, or CSR where the
        source was sparse, and for probabilities of the upper of two values. A missing cell holds zero, and must not be
        read.
    weights : float64 ndarray of shape (n_states,)
        Summed sample weights of the equal rows; zero where all of them have weight zero.
    missing : bool ndarray like `states`, or None
        Where cells are missing; None when none is.
    coding : Coding, CategoryCoding or RealCoding
        How the user writes the values.
    names : tuple of str
        The variables.
    row_of : int64 ndarray of shape (n_rows,)
        The distinct state of each original row, so ``per_state[data.row_of]`` is in the user's order.
    row_weights : float64 ndarray of shape (n_rows,), or None
        Sample weights of the original rows; None when all are one.
    dropped : tuple of str
        Columns of the table that were left out, by the user or as identifiers of rows.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.Dataset.read([["no", "yes"], ["yes", "yes"], ["no", "yes"]])
    >>> data.states.tolist(), data.weights.tolist(), data.row_of.tolist()
    ([[0, 1], [1, 1]], [2.0, 1.0], [0, 1, 0])
    """

    states: np.ndarray  # or a `csr_array`, which has no types
    weights: np.ndarray
    missing: np.ndarray | None
    coding: AnyCoding
    names: tuple[str, ...]
    row_of: np.ndarray
    row_weights: np.ndarray | None = None
    dropped: tuple[str, ...] = ()

    def __repr__(self) -> str:
        holes = f", n_missing={self.n_missing}" if self.missing is not None else ""
        return (
            f"Dataset(n_rows={self.n_rows}, n_variables={self.n_variables}, n_states={self.n_states}, "
            f"coding={self.coding.name!r}{holes})"
        )

    # -- reading ----------------------------------------------------------------------------------------------------
    @classmethod
    def read(
        cls,
        source: object,
        *,
        coding: CodingLike = "auto",
        names: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
        columns: str | Sequence[str] | None = None,
        drop: str | Sequence[str] = (),
        weight_column: str | None = None,
        declared_by: str | None = None,
    ) -> Self:
        """Read data from an array, a data frame or a file.

        Parameters
        ----------
        source : array-like, sparse array, data frame, path or Dataset
            A NumPy array or nested list; a SciPy sparse array; a pandas or polars frame; the path of a ``.csv``,
            ``.tsv``, ``.txt``, ``.parquet``, ``.npy`` or ``.npz`` file (``file.npz:key`` names one of its arrays); or a
            `Dataset`, which is returned as `coding` asks for it.
        coding : str, pair of labels, mapping, Coding, CategoryCoding, RealCoding or rule, default="auto"
            What the cells are, or from columns to what theirs are; see Notes.
        names : sequence of str, optional
            Names of the source's columns, instead of its own.
        sample_weight : float or array-like of shape (n_rows,), optional
            Weights of the rows, zero or positive.
        columns, drop : str or sequence of str, optional
            Columns to keep, in that order; columns to leave out.
        weight_column : str, optional
            A column that holds the sample weights.
        declared_by : str, optional
            Who was fitted on `coding` (``"the model"``), so that messages can say so.

        Notes
        -----
        Two values: ``"spin"`` (-1/1), ``"binary"`` (0/1), ``"yes/no"``, ``"y/n"``, ``"true/false"``, or a pair
        ``(low, high)`` of labels. ``"auto"`` recognises one of these over all columns together, or else in each column
        its own two words or whole numbers (F/M beside yes/no). Letter case does not matter and numerals are numbers.
        Data whose only value is 1 is binary.

        Each column its own: a mapping such as ``{"sex": ["F", "M"], "age": Threshold(40), "id": "drop"}``, see
        `gibbsian.data.Columns`; columns that it does not name are recognised. Columns with another value in every row
        are identifiers: unless they are declared or chosen, they are left out with an `IdentifierWarning`.

        Ordered levels: ``"ordinal"``, each column its own numbers or ordered categories; see `gibbsian.data.Ordinal`.

        Many values: ``"categorical"`` (labels of each column) or ``"values"`` (real numbers common to all columns, such
        as -1, 0, 1). The labels of a ``"categorical"`` column are those it shows, numbers before words, in ascending
        order. A pandas category column or a polars Enum keeps its own order, and also the values it does not show, so
        that a model may know a value before it has seen it. Words in two letter cases in one column are two values. A
        one-hot array of shape (rows, variables, values) is read too. In one-hot data a variable whose values are all
        zero in a row is missing there.

        Real numbers: ``"real"``. Sparse sources stay sparse as real numbers, are written out for visible units, and
        refused elsewhere.

        Rules, from `gibbsian.data`: ``Threshold(t)`` makes numbers above `t` the upper value and all others the lower;
        ``Labels(categories)`` and ``Values(numbers)`` list the values, also those that do not occur; ``OneHot("_")``
        puts dummy columns together; ``Shares()`` takes numbers from 0 to 1 as probabilities of the upper value;
        ``Units(kind)`` reads as the visible units of layers do. ``"auto-categorical"`` is ``"auto"`` where it fits and
        ``"categorical"`` elsewhere; ``"auto-visible"`` is ``Units()``.

        Missing cells are blanks, None, NaN, ``pandas.NA``, and the words ``?``, ``NA``, ``N/A``, ``nan``, ``<NA>`` and
        ``null`` in any letter case.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1, None], [1, 1, 0]])
        Dataset(n_rows=2, n_variables=3, n_states=2, coding='binary', n_missing=1)
        >>> gb.Dataset.read([[0.2, 3.1], [1.7, 0.4]], coding=gb.data.Threshold(1.0)).states.tolist()
        [[0, 1], [1, 0]]
        >>> hair = gb.Dataset.read([["blond", 1], ["red", 3], ["brown", 2]], coding="categorical")
        >>> hair.states.tolist(), hair.coding.labels
        ([[0, 0], [1, 1], [2, 2]], (('blond', 'brown', 'red'), (1, 2, 3)))
        >>> gb.Dataset.read([[0.2, 3.1], [1.7, 0.4]], coding="real").states.dtype.name
        'float64'
        """
        if isinstance(source, Dataset):
            if any(option is not None for option in (names, columns, weight_column, drop or None)):
                raise ArgumentError(
                    "names, columns, drop and `weight_column` belong to the reading of a table",
                    "the data is a Dataset already",
                )
            data = read_again(source, coding, declared_by)
            return data if sample_weight is None else data._weighted(sample_weight)  # type: ignore[return-value]
        if getattr(source, "ndim", 0) == 3 and isinstance(as_rule(coding), ManyValued):
            from gibbsian.data.one_hot import table_from_one_hot  # few tables need it

            table = table_from_one_hot(source, names)
        else:
            table = read_table(source, names)
        table, sample_weight = _take_weights(table, weight_column, sample_weight)
        dropped = [drop] if isinstance(drop, str) else [*drop]
        table = table.chosen(columns, dropped, declared_by)
        if declared_by is None and columns is None:
            table, identifiers = without_identifiers(table, coding)
            dropped += [*identifiers, *columns_in(coding).dropped]
        row_weights = None if sample_weight is None else check_weights(sample_weight, table.shape[0])
        return replace(cls._of_cells(encode(table, coding, declared_by), row_weights), dropped=tuple(dropped))

    @classmethod
    def of_states(
        cls,
        states: ArrayLike | csr_array,
        coding: object,
        *,
        names: Sequence[str] | None = None,
        sample_weight: ArrayLike | None = None,
        missing: np.ndarray | None = None,
        distinct: bool = True,
    ) -> Self:
        """Build from rows of codes, or of numbers.

        Parameters
        ----------
        states : array or CSR array of shape (n_rows, n_variables)
            The rows: codes 0, 1, ... of the values; numbers from 0 to 1 are probabilities of the upper of two values.
        coding : str, pair of labels, Coding, CategoryCoding or RealCoding
            How they are written: one that needs no data to be filled, or ``"real"``.
        names : sequence of str, optional
            The variables; ``x0, x1, ...`` by default.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows.
        missing : bool ndarray like `states`, optional
            Where nothing was observed, whatever `states` has there.
        distinct : bool, default=True
            Look for equal rows. Without it every row is a state of its own, as a minibatch wants it.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> gb.Dataset.of_states(np.ones((3, 2), np.int8), "spin")
        Dataset(n_rows=3, n_variables=2, n_states=1, coding='spin')
        """
        known: AnyCoding = coding if isinstance(coding, AnyCoding) else _named(coding)
        states = states if is_sparse(states) else np.asarray(states)
        if states.ndim != 2 or not states.shape[0]:
            raise DataError(f"states has shape {states.shape}", "give a table with at least one row")
        words = default_names(states.shape[1]) if names is None else tuple(names)
        weights = None if sample_weight is None else check_weights(sample_weight, states.shape[0])
        if missing is not None:
            missing, states = _checked_holes(missing, states)
        if distinct:
            return cls._of_cells(Cells(_checked(states, known), missing, known, words), weights)
        n_rows = states.shape[0]
        per_row = np.ones(n_rows) if weights is None else weights
        return cls(states, per_row, missing, known, words, np.arange(n_rows), weights)

    @classmethod
    def _of_cells(cls, cells: Cells, row_weights: np.ndarray | None, cell_of: np.ndarray | None = None) -> Self:
        """Gather equal rows of cells that were read; `cell_of` is the row of the cells that each original row is."""
        first, row_of = distinct(cells.codes, cells.coding.domain, cells.missing)
        row_of = row_of if cell_of is None else row_of[cell_of]
        weights = np.bincount(row_of, row_weights, minlength=len(first)).astype(np.float64)
        kept = cells.codes[first] if is_sparse(cells.codes) else cells.codes.take(first, axis=0)
        holes = None if cells.missing is None else cells.missing[first]
        return cls(kept, weights, holes, cells.coding, cells.names, row_of, row_weights)

    def _weighted(self, sample_weight: ArrayLike) -> Self:
        """Return the data with other weights of the rows."""
        row_weights = check_weights(sample_weight, self.n_rows)
        weights = np.bincount(self.row_of, row_weights, minlength=self.n_states)
        return replace(self, weights=weights, row_weights=row_weights)

    # -- sizes --------------------------------------------------------------------------------------------------------
    @property
    def n_rows(self) -> int:
        """Number of original rows."""
        return len(self.row_of)

    @property
    def n_states(self) -> int:
        """Number of distinct states."""
        return self.states.shape[0]

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    @property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        return self.missing is not None

    @property
    def holes(self) -> np.ndarray:
        """Where cells of the distinct states are missing, as an array also where none is."""
        return np.zeros(self.states.shape, bool) if self.missing is None else self.missing

    @property
    def has_shares(self) -> bool:
        """Whether the states are probabilities of the upper of two values."""
        return self.coding.domain.two_valued and self.states.dtype.kind == "f"

    @property
    def nbytes(self) -> int:
        """Memory that the arrays take."""
        states = self.states
        kept = (states.data, states.indices, states.indptr) if is_sparse(states) else (states,)
        arrays = (*kept, self.weights, self.missing, self.row_of, self.row_weights)
        return sum(array.nbytes for array in arrays if array is not None)

    # -- rows in their own order --------------------------------------------------------------------------------------
    def rows(self, places: Sequence[int] | np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the states of some original rows, and where they are missing (None where no cell of the data is).

        Examples
        --------
        >>> import gibbsian as gb
        >>> states, missing = gb.Dataset.read([[0, 1], [1, 1], [0, 1]]).rows([2, 1])
        >>> states.tolist(), missing
        ([[0, 1], [1, 1]], None)
        """
        chosen = self.row_of[places]
        return self.states[chosen], None if self.missing is None else self.missing[chosen]

    @property
    def shares(self) -> np.ndarray:
        """The weights of the original rows divided by their sum."""
        if self.row_weights is None:
            return np.full(self.n_rows, 1.0 / self.n_rows)
        return self.row_weights / self.row_weights.sum()

    @property
    def n_draws(self) -> int:
        """Rows of an epoch: repeated rows count where the weights stand for them, shares make an epoch no shorter."""
        return self.n_rows if self.row_weights is None else max(self.n_rows, round(self.row_weights.sum()))

    def draws(self, rng: np.random.Generator) -> np.ndarray:
        """Return the rows of an epoch, in their order: each as often as its weight says.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> data = gb.Dataset.read([[0, 1], [1, 0]], sample_weight=[3, 1])
        >>> data.draws(np.random.default_rng(0)).tolist()
        [0, 0, 0, 1]
        """
        if self.row_weights is None:
            return np.arange(self.n_rows)
        return systematic_draws(self.row_weights, self.n_draws, rng)

    def sample(self, n: int, rng: np.random.Generator) -> Self:
        """Draw `n` rows by their weights, with replacement; `rows` has them one by one.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [0, 1]]).sample(2, np.random.default_rng(0)).rows()[0].tolist()
        [[0, 1], [0, 1]]
        """
        chosen = rng.choice(self.n_states, n, p=self.weights / self.total_weight)
        missing = None if self.missing is None else self.missing[chosen]
        return self.of_states(self.states[chosen], self.coding, names=self.names, missing=missing)

    def minibatches(self, batch_size: int, seed: np.ndarray, epoch: int) -> MemoryPass:
        """Return the minibatches of pass number `epoch` of the shuffling that `seed` determines.

        A pass makes as many draws as there are rows, at equal steps along the cumulated weights from a random start
        (systematic sampling): rows of equal weight come exactly once each, others the next lower or the next higher
        number of times than their share, and on average exactly their share.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> one_pass = gb.Dataset.read([[0, 0], [0, 1], [1, 0], [1, 1]]).minibatches(2, np.arange(4), epoch=0)
        >>> sorted(sum((one_pass[k].states.tolist() for k in range(2)), []))
        [[0, 0], [0, 1], [1, 0], [1, 1]]
        """
        rng = seeded(seed, epoch)
        drawn = systematic_draws(self.weights, self.n_rows, rng)
        return MemoryPass(self, rng.permutation(drawn), Cuts(self.n_rows, batch_size))

    def effective(self) -> Self:
        """Return the rows of positive weight, without weights where these make no row count more than another.

        Equal weights above 1 stay: they stand for repeated rows, and make an epoch longer.

        Examples
        --------
        >>> import gibbsian as gb
        >>> data = gb.Dataset.read([[0, 1], [1, 0], [1, 1]], sample_weight=[0, 1, 1]).effective()
        >>> data.n_rows, data.row_weights
        (2, None)
        """
        if self.row_weights is None:
            return self
        kept = self.row_weights > 0
        data = self if kept.all() else self.take(kept)
        weights = self.row_weights[kept]
        if weights[0] <= 1 and (weights == weights[0]).all():
            plain = np.bincount(data.row_of, minlength=data.n_states).astype(np.float64)
            return replace(data, weights=plain, row_weights=None)
        return data

    # -- sums ---------------------------------------------------------------------------------------------------------
    def partitions(self) -> Iterator[Self]:
        """Yield data sets whose sums add up to the sums over this one: itself.

        Examples
        --------
        >>> import gibbsian as gb
        >>> sum(part.total_weight for part in gb.Dataset.read([[0, 1], [1, 0]]).partitions())
        2.0
        """
        yield self

    def mean(self, function: Callable[[Dataset], T]) -> T:
        """Return a function of the rows, as the mean over the one partition.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> data = gb.Dataset.read([[0, 1], [1, 1]])
        >>> data.mean(lambda part: np.average(part.states, axis=0, weights=part.weights)).tolist()
        [0.5, 1.0]
        """
        return function(self)

    def bind(self, make: Callable[[Dataset], Callable[[np.ndarray], T]]) -> Callable[[np.ndarray], T]:
        """Return the function of theta that `make` returns for these rows.

        Examples
        --------
        >>> import gibbsian as gb
        >>> data = gb.Dataset.read([[0, 1], [1, 1]])
        >>> data.bind(lambda part: lambda theta: part.weights @ part.states @ theta)([1.0, 1.0]).item()
        3.0
        """
        return make(self)

    def map(self, function: Callable[[Dataset], Dataset]) -> Self:
        """Return what a function makes of the rows.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [1, 1]]).map(lambda part: part.hide([0])).n_missing
        2
        """
        return function(self)  # type: ignore[return-value]

    def collect(self) -> Self:
        """Return the rows, which are in memory already."""
        return self

    @property
    def n_missing(self) -> int:
        """Number of missing cells of the original rows."""
        return 0 if self.missing is None else int(self.missing[self.row_of].sum())

    def empty_rows(self) -> np.ndarray:
        """Return which of the original rows have no observed cell.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [None, None]]).empty_rows().tolist()
        [False, True]
        """
        return np.zeros(self.n_rows, bool) if self.missing is None else self.missing[self.row_of].all(axis=1)

    # -- other forms --------------------------------------------------------------------------------------------------
    def convert(self, coding: CodingLike) -> Self:
        """Return the same data written in another coding: low stays low, high stays high, and labels keep their names.

        Categories with two values each become the lower and upper value of a two-valued coding, in their order.

        Examples
        --------
        >>> import gibbsian as gb
        >>> spins = gb.Dataset.read([[0, 1], [1, 1]]).convert("spin")
        >>> spins.states.tolist(), spins.decode(spins.states).tolist()
        ([[0, 1], [1, 1]], [[-1, 1], [1, 1]])
        >>> gb.Dataset.read([["no", "yes"], ["yes", "yes"]]).convert("categorical").variables.scores is None
        True
        """
        return converted(self, coding)

    def in_coding(self, coding: AnyCoding) -> Self:
        """Return two-valued data with these labels and numbers instead of its own, low for low and high for high."""
        if coding.rule is None and isinstance(self.coding.rule, Threshold):
            coding = replace(coding, rule=self.coding.rule)
        if self.has_shares and coding.domain != self.coding.domain:
            raise CodingError(f"shares of two values cannot be written as {coding.describe()}", "give 0 and 1 only")
        same = (coding, coding.rule) == (self.coding, self.coding.rule)
        return self if same else replace(self, coding=coding)

    def with_cells(self, cells: Cells) -> Self:
        """Return the data with other cells for each distinct state; states that become equal are put together."""
        return replace(self._of_cells(cells, self.row_weights, self.row_of), dropped=self.dropped)

    def with_numbers(self, numbers: np.ndarray | csr_array) -> Self:
        """Return real data with other numbers for each distinct state, dense or CSR: scaled rows, for example.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> data = gb.Dataset.read([[3.0, 4.0], [6.0, 8.0]], coding="real")
        >>> data.with_numbers(data.states / np.linalg.norm(data.states, axis=1)[:, None]).weights.tolist()
        [2.0]
        """
        return self.with_cells(Cells(numbers, self.missing, RealCoding(), self.names))

    def require_complete(self, who: str, instead: str = LEARN_OTHERWISE) -> None:
        """Raise `MissingValuesError` when cells are missing; `who` cannot handle them, `instead` could.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [1, None]]).require_complete("pseudolikelihood")
        Traceback (most recent call last):
            ...
        gibbsian.errors.MissingValuesError: pseudolikelihood needs complete rows but 1 of 2 rows has missing cells
        (first in column 'x1'): ...
        """
        if self.missing is None:
            return
        holed = int(self.missing[self.row_of].any(axis=1).sum())
        have = "has" if holed == 1 else "have"
        column = self.names[int(np.flatnonzero(self.missing.any(axis=0))[0])]
        raise MissingValuesError(
            f"{who} needs complete rows but {holed} of {self.n_rows} rows {have} missing cells "
            f"(first in column {column!r})",
            f"{instead}use `Dataset.complete_rows()`",
        )

    # -- parts --------------------------------------------------------------------------------------------------------
    def take(self, rows: ArrayLike) -> Self:
        """Return the data of some original rows (numbers or a mask), weights kept.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [1, 1], [0, 0]]).take([2, 0, 0]).weights.tolist()
        [1.0, 2.0]
        """
        chosen = np.arange(self.n_rows)[np.asarray(rows)]
        if chosen.size == 0:
            raise DataError("no rows were chosen", "choose 1 or more")
        kept, row_of = np.unique(self.row_of[chosen], return_inverse=True)
        row_weights = None if self.row_weights is None else self.row_weights[chosen]
        missing = None if self.missing is None else self.missing[kept]
        return replace(
            self,
            states=self.states[kept],
            weights=np.bincount(row_of, row_weights, minlength=len(kept)).astype(np.float64),
            missing=missing if missing is not None and missing.any() else None,
            row_of=row_of.astype(np.int64),
            row_weights=row_weights,
        )

    def hide(self, columns: object) -> Self:
        """Return the data with some columns missing in every row; rows that become equal are put together.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [0, 0], [1, 1]]).hide([1])
        Dataset(n_rows=3, n_variables=2, n_states=2, coding='binary', n_missing=3)
        """
        holes = self.holes.copy()
        holes[:, self.places(columns)] = True
        missing, states = _checked_holes(holes, self.states)
        return self.with_cells(Cells(states, missing, self.coding, self.names))

    def complete_rows(self) -> Self:
        """Return the rows that have no missing cell.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1], [1, None]]).complete_rows().n_rows
        1
        """
        if self.missing is None:
            return self
        complete = ~self.missing[self.row_of].any(axis=1)
        if not complete.any():
            raise MissingValuesError(
                f"every one of the {self.n_rows} rows has a missing cell",
                "drop the columns with the most missing cells",
            )
        return self.take(complete)

    def split(self, fraction: float = 0.8, random_state: RandomState = None) -> tuple[Self, Self]:
        """Split the original rows at random into a training part of share `fraction` and a test part.

        Examples
        --------
        >>> import gibbsian as gb
        >>> train, test = gb.datasets.load_house_votes().split(0.8, random_state=0)
        >>> train.n_rows, test.n_rows
        (348, 87)
        """
        if not 0 < fraction < 1:
            raise ArgumentError("must lie between 0 and 1", argument="fraction", value=fraction)
        n_train = round(fraction * self.n_rows)
        if not 0 < n_train < self.n_rows:
            raise DataError(
                f"of {self.n_rows} rows leaves one part empty", "give more rows", argument="fraction", value=fraction
            )
        order = as_generator(random_state).permutation(self.n_rows)
        return self.take(np.sort(order[:n_train])), self.take(np.sort(order[n_train:]))


def _named(coding: object) -> AnyCoding:
    return RealCoding() if isinstance(coding, str) and coding == "real" else as_coding(coding)


def _checked(states: np.ndarray, coding: AnyCoding) -> np.ndarray:
    """Return rows of codes of the coding's values; numbers are taken as they are."""
    if is_sparse(states) or states.dtype.kind == "f":
        return states
    return variables_of(coding.domain, states.shape[1]).checked(states, "states")


def _checked_holes(missing: np.ndarray, states: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """Return which cells are missing, and the states with zeros there."""
    holes = np.asarray(missing, dtype=bool)
    if holes.shape != states.shape:
        raise DataError(f"missing has shape {holes.shape}, but states has {states.shape}")
    if not holes.any():
        return None, states
    return holes, np.where(holes, states.dtype.type(0), states)


def _take_weights(
    table: Table, weight_column: str | None, sample_weight: ArrayLike | None
) -> tuple[Table, ArrayLike | None]:
    """Take the column of weights out of the table."""
    if weight_column is None:
        return table, sample_weight
    if sample_weight is not None:
        raise ArgumentError("`sample_weight` and `weight_column` were both given", "give one of them")
    weights = table.numbers(weight_column, "weight_column")
    return table.without([weight_column], "weight_column"), weights
