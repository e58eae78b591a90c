"""`Rows`: the one interface of rows in memory, on disk and on a cluster, as partitions whose sums add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, TypeVar

import numpy as np

from gibbsian.data.sums import scaled, tree_sum
from gibbsian.domain import AnyCoding, Label
from gibbsian.errors import ArgumentError
from gibbsian.models.variables import Variables, variables_of

if TYPE_CHECKING:
    from gibbsian.data.dataset import Dataset

T = TypeVar("T")
AnyRows = TypeVar("AnyRows", bound="Rows")
# Names of columns that a message lists.
FEW_NAMES = 8


class Minibatches(Protocol):
    """The minibatches of one pass over the rows."""

    def __len__(self) -> int: ...
    def __getitem__(self, k: int) -> Dataset: ...


class Rows(ABC):
    """Rows of one coding in partitions: `Dataset` in memory, `DataStream` on disk, `DistributedDataset` on workers.

    A learner that needs no more than this interface learns from all three.
    """

    names: tuple[str, ...]
    coding: AnyCoding
    on_disk: ClassVar[bool] = False
    on_cluster: ClassVar[bool] = False

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_states(self) -> int:
        """Number of rows after equal ones have been put together, as far as that was done."""

    @property
    @abstractmethod
    def n_missing(self) -> int:
        """Number of missing cells."""

    @property
    @abstractmethod
    def total_weight(self) -> float:
        """Sum of the weights."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.names)

    @property
    def has_missing(self) -> bool:
        """Whether any cell is missing."""
        return self.n_missing > 0

    @property
    def variables(self) -> Variables:
        """The values of the columns, with the numbers that stand for them in products."""
        return variables_of(self.coding.domain, self.n_variables)

    @property
    def labels(self) -> tuple[tuple[Label, ...], ...]:
        """The labels of each column, in the order of the codes."""
        return tuple(self.coding.labels_of(j) for j in range(self.n_variables))

    def decode(self, codes: np.ndarray, missing: np.ndarray | None = None) -> np.ndarray:
        """Return codes, or real numbers, in the user's own labels.

        Number codings give integers, or floats with NaN where `missing`; truth values give booleans; labels, and
        truth values with missing cells, give objects with None.

        Examples
        --------
        >>> import gibbsian as gb
        >>> data = gb.Dataset.read([["no", "yes"], ["yes", "yes"]])
        >>> data.decode(data.states).tolist()
        [['no', 'yes'], ['yes', 'yes']]
        """
        return self.coding.decode(codes, missing)

    def places(self, columns: object, argument: str = "columns") -> np.ndarray:
        """Return the numbers of columns that are given by name or number; names may stand in one text, with commas.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.Dataset.read([[0, 1, 1], [1, 1, 0]], names=["a", "b", "c"]).places(["c", 0]).tolist()
        [2, 0]
        """
        if isinstance(columns, str):
            columns = [columns] if columns in self.names else columns.split(",")
        listed = list(np.atleast_1d(np.asarray(columns, dtype=object)))
        found = [self._place(column) for column in listed]
        if not found or None in found or len(set(found)) < len(found):
            known = ", ".join(map(repr, self.names[:FEW_NAMES])) + ", ..." * (self.n_variables > FEW_NAMES)
            raise ArgumentError(f"must be some of the columns {known}, each once", argument=argument, value=columns)
        return np.array(found, dtype=np.int64)

    def _place(self, column: object) -> int | None:
        if isinstance(column, str):  # what is no label may not even compare with one
            return self.names.index(column) if column in self.names else None
        if not isinstance(column, int | np.integer) or isinstance(column, bool):
            return None
        return int(column) if 0 <= column < self.n_variables else None

    def empty_rows(self) -> np.ndarray:
        """Return which of the rows have no observed cell; an empty array where such rows are left out."""
        return np.zeros(0, bool)

    @property
    def identity(self) -> object:
        """What a checkpoint is compared by: the rows, or the files that hold them."""
        return self

    @abstractmethod
    def partitions(self) -> Iterator[Dataset]:
        """Yield data sets whose sums add up to the sums over all rows."""

    def reduce(self, function: Callable[..., T], *given: Sequence[object]) -> T:
        """Return the sum of a function over the partitions; `given` has a further argument for each partition."""
        return tree_sum(map(function, self.partitions(), *given))

    def mean(self, function: Callable[[Dataset], T]) -> T:
        """Return the mean of a function over the partitions by their weights: of a mean over rows, that over all."""
        total = tree_sum(scaled(function(part), part.total_weight) for part in self.partitions())
        return scaled(total, 1.0 / self.total_weight)

    def bind(self, make: Callable[[Dataset], Callable[[np.ndarray], T]]) -> Callable[[np.ndarray], T]:
        """Return the function of theta that is the mean, by weight, of those that `make` returns for the partitions."""
        return lambda theta: self.mean(lambda part: make(part)(theta))

    @abstractmethod
    def map(self, function: Callable[[Dataset], Dataset]) -> Self:
        """Return the rows as a function makes them of each partition, where these are."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Dataset:
        """Draw `n` rows by their weights, with replacement; `Dataset.rows` has them one by one."""

    def at_most(self, n: int, rng: np.random.Generator) -> Dataset:
        """Return all rows where no more than `n` are distinct, else `n` drawn by their weights."""
        return self.collect() if self.n_states <= n else self.sample(n, rng)

    @abstractmethod
    def collect(self) -> Dataset:
        """Return the rows in the memory of this process."""

    @abstractmethod
    def minibatches(self, batch_size: int, seed: np.ndarray, epoch: int) -> Minibatches:
        """Return the minibatches of pass number `epoch` of the shuffling that `seed` determines."""
