"""`Rows`: the one interface of rows in memory, on disk and on a cluster, as partitions whose sums add."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from gibbsian.data.sums import scaled, tree_sum
from gibbsian.domain import AnyCoding, AnyDomain

if TYPE_CHECKING:
    from gibbsian.data.dataset import Dataset

T = TypeVar("T")
AnyRows = TypeVar("AnyRows", bound="Rows")


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
    def domain(self) -> AnyDomain:
        """The values as they enter the energy."""
        return self.coding.domain

    @abstractmethod
    def partitions(self) -> Iterator[Dataset]:
        """Yield data sets whose sums add up to the sums over all rows."""

    def reduce(self, function: Callable[..., T], *given: Sequence[Any]) -> T:
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
