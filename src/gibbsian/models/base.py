"""The contract every model keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from gibbsian.domain import AnyDomain, Reals
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.conditionals import Conditionals, WeightedRows
from gibbsian.models.factors import FactorGraph, Marginal, zero_sum
from gibbsian.models.file_parts import SIZE
from gibbsian.models.given import Given
from gibbsian.models.interactions import Interactions, of_tables
from gibbsian.models.scopes import Scopes, spread_over_edges
from gibbsian.models.states import checked_codes, checked_shares, checked_states
from gibbsian.registry import Registry

MODELS = Registry("model", "gibbsian.models", "MODELS")


@runtime_checkable
class Model(Protocol):
    """An exponential family ``P(x) = exp(theta·S(x)) / Z`` over discrete states.

    `theta` is one flat vector with a fixed layout; `mean_statistics` and every gradient share that layout. States are
    arrays of shape ``(n_states, n_variables)`` in the values of `domain`; anything else is refused (see
    `gibbsian.models.states.checked_states`).

    Examples
    --------
    >>> import gibbsian as gb
    >>> isinstance(gb.PairwiseModel.zeros(gb.graphs.complete(3)), gb.models.Model)
    True
    """

    if TYPE_CHECKING:  # what `ExponentialFamily`, which see, answers for every model of discrete variables
        is_pairwise: ClassVar[bool]
        has_pair_tables: ClassVar[bool]
        statistics_are_products: ClassVar[bool]

        @property
        def interactions_around(self) -> np.ndarray:
            """Number of interactions of each variable."""

        @property
        def edge_strengths(self) -> np.ndarray:
            """The strength of the interaction along each edge."""

        def statistics(self, x: np.ndarray) -> np.ndarray:
            """Return S(x) of each state."""

        def rows_by_variable(self, states: np.ndarray) -> np.ndarray:
            """Return states as the factors want those outside a region."""

        def shared_statistics(self) -> list[tuple[tuple[int, ...], np.ndarray, np.ndarray]] | None:
            """Return which statistics depend on which sets of variables, where one may have several."""

        def canonical(self) -> Self:
            """Return the same distribution in a gauge of its own."""

        def in_layers(self) -> Any:
            """Return the same distribution as dense layers where it is one of them."""

        def touches(self, variables: np.ndarray) -> np.ndarray:
            """Return which parameters belong to terms of these variables."""

        def parameter_names(self, names: Sequence[str]) -> list[str]:
            """Return a label for each parameter."""

        def interactions(self) -> Interactions:
            """Return which variables interact and how strongly."""

        def log_odds(self) -> np.ndarray:
            """Return by how much each parameter alone can change a log-probability."""

    registered_name: ClassVar[str]
    parts_in_file: ClassVar[dict[str, Any]]

    @property
    def family(self) -> Any:
        """The structure, by which registries find who serves a model."""

    @property
    def theta(self) -> np.ndarray:
        """All parameters."""

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""

    @property
    def domain(self) -> AnyDomain:
        """The values of the variables, and how states write them."""

    @property
    def graph(self) -> Graph:
        """Which variables interact."""

    @property
    def n_variables(self) -> int:
        """Number of variables."""

    @property
    def n_hidden(self) -> int:
        """How many of them, the last ones, are units that no row of data shows."""

    def present_sums(
        self, x: np.ndarray, present: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the sums of S over the states that show its cells, and the shares of these states."""

    @property
    def penalised(self) -> np.ndarray:
        """Which entries of theta an L1 penalty may shrink (interactions, not biases)."""

    @property
    def statistic_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest value of each statistic."""

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain values and arrays that make up the model, for a file."""

    @classmethod
    def from_parts(cls, header: dict[str, Any], tensors: dict[str, np.ndarray], domain: Any) -> Self:
        """Put a model together again; `domain` is that of the columns."""

    def replace(self, theta: np.ndarray) -> Self:
        """Return the same structure with other parameters."""

    def energy(self, x: np.ndarray) -> np.ndarray:
        """Return E(x) = -theta . S(x) for each state."""

    def log_weights(self, x: np.ndarray) -> np.ndarray:
        """Return the unnormalised log-probability -E(x) of each state."""

    def mean_statistics(self, x: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted mean of S over the states."""

    def conditionals(
        self,
        codes: np.ndarray,
        weights: np.ndarray | None = None,
        masked: np.ndarray | None = None,
        by_row: bool = False,
    ) -> Conditionals:
        """Bind rows of codes once (see `gibbsian.models.conditionals.HasConditionals`)."""

    def factors(self) -> FactorGraph:
        """Return the distribution as a product of small tables over codes."""

    def statistics_from(self, marginal: Marginal) -> np.ndarray:
        """Return the expected statistics, given the joint probabilities of any few variables that share a factor."""

    def given(self, nodes: Sequence[int] | np.ndarray, codes: Sequence[int] | np.ndarray) -> Given[Self]:
        """Return the distribution of the other variables given the codes of some: a linear map of parameters."""


# -- what some models have besides, for those who choose by it --------------------------------------------------------
@runtime_checkable
class HasHiddenLayers(Protocol):
    """A model of one layer above another, which has no sum over the hidden units of a row in closed form."""

    @property
    def n_hidden_layers(self) -> int:
        """Number of hidden layers."""


class ExponentialFamily:
    """What learners ask of a model besides its contract, answered from that; a model overrides what it knows better."""

    # by what registries of other packages find who serves a model (`Registry.of`)
    registered_name: ClassVar[str] = "exponential-family"
    # Whether it is pairs of two-valued variables with one coupling each, for which there are compiled sweeps.
    is_pairwise: ClassVar[bool] = False
    # Whether it is a table of biases for each variable and one of couplings for each edge.
    has_pair_tables: ClassVar[bool] = False
    # Whether its functions are chosen from those of all orders.
    is_full_span: ClassVar[bool] = False
    # Whether its variables are real numbers.
    of_numbers: ClassVar[bool] = False
    # Whether every statistic is a product of the values of some variables.
    statistics_are_products: ClassVar[bool] = False

    n_hidden: int = 0

    # -- parts --------------------------------------------------------------------------------------------------------
    @property
    def family(self: Any) -> Any:
        """The structure, by which registries find who serves a model: this class is both in one."""
        return self

    @property
    def n_parameters(self: Any) -> int:
        """Number of parameters."""
        return self.theta.size

    def replace(self: Any, theta: np.ndarray) -> Any:
        """Return the same structure with other parameters."""
        return dataclasses.replace(self, theta=theta)

    def at(self: Any, beta: float) -> Any:
        """Return the distribution at an inverse temperature: ``P(x) = exp(beta theta . S(x)) / Z`` (YK15).

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.PairwiseModel.build(gb.graphs.complete(2), None, [1.0]).at(1 / 4.0).couplings
        array([0.25])
        """
        return self.replace(beta * self.theta)

    def in_layers(self) -> Any:
        """Return the same distribution, theta in the same layout, as dense layers where it is one of them."""
        return self

    # What a file holds of it besides its fields, or else than their annotations say; see `file_parts`.
    parts_in_file: ClassVar[dict[str, Any]] = {"n_variables": SIZE}

    def to_parts(self: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return plain values and arrays that make up the model, for a file."""
        plain: dict[str, Any] = {"n_variables": self.n_variables}
        arrays: dict[str, np.ndarray] = {}
        for part in dataclasses.fields(self):
            value = getattr(self, part.name)
            if isinstance(value, np.ndarray):
                arrays[part.name] = value
            elif isinstance(value, Graph | Scopes):
                arrays |= value.to_arrays()
            elif isinstance(value, bool | int | float):
                plain[part.name] = value
        return plain, arrays

    @classmethod
    def from_parts(cls: Any, header: dict[str, Any], tensors: dict[str, np.ndarray], domain: Any) -> Any:
        """Put a model together again; `domain` is that of the columns."""
        structures: dict[str, Any] = {"graph": Graph, "scopes": Scopes, "cliques": Scopes}
        given = {**header, **tensors, "domain": domain}
        known = [part.name for part in dataclasses.fields(cls)]
        values = {name: given[name] for name in known if name in given}
        for name in structures.keys() & known:
            values[name] = structures[name].from_arrays(tensors, header["n_variables"])
        return cls(**values)

    def __getstate__(self: Any) -> dict[str, Any]:
        # what is computed from the fields stays here: workers get the fields alone
        return {part.name: getattr(self, part.name) for part in dataclasses.fields(self)}

    # -- distribution -------------------------------------------------------------------------------------------------
    def log_weights(self: Any, x: np.ndarray) -> np.ndarray:
        """Return ``-E(x)`` of each state."""
        return -self.energy(x)

    def conditionals(
        self: Any,
        codes: np.ndarray,
        weights: np.ndarray | None = None,
        masked: np.ndarray | None = None,
        by_row: bool = False,
    ) -> Conditionals:
        """Bind rows of codes once: the log-odds of each value given the others (see `gibbsian.models.conditionals`).

        Parameters
        ----------
        codes, weights, masked, by_row
            As in `gibbsian.models.conditionals.WeightedRows`.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.5, 0.0], [2.0])
        >>> bound = model.conditionals(np.array([[1, 0]]), by_row=True)
        >>> bound.costs(model.theta)                        # log P(+1, -1) - log P(-1, -1), and - log P(+1, +1)
        array([[-3., -4.]])
        >>> value, gradient = bound.evaluate(model.theta, gb.objectives.Pseudolikelihood.loss)
        >>> round(value, 6)
        7.066737
        """
        return self.bind(WeightedRows.of(checked_codes(self, codes), weights, masked, by_row))

    @property
    def value_groups(self: Any) -> np.ndarray | None:
        """Where the columns of each variable begin and end in conditionals; None for two-valued ones, with one each."""
        sizes = self.domain.cardinalities(self.n_variables)
        return None if (sizes == 2).all() else np.concatenate([[0], np.cumsum(sizes)])

    def rows_by_variable(self: Any, states: np.ndarray) -> np.ndarray:
        """Return states as the factors want those outside a region: codes, by variable."""
        return np.ascontiguousarray(self.domain.to_codes(states).T, dtype=np.intp)

    def _codes(self: Any, x: np.ndarray) -> np.ndarray:
        """Return the codes of states, which kernels index tables with."""
        return np.ascontiguousarray(self.domain.to_codes(checked_states(self, x)))

    @cached_property
    def _family_without(self: Any) -> Callable[[tuple[int, ...]], Any]:
        """The family of the variables other than some, and the part of its map that no codes change; remembered."""
        return lru_cache(maxsize=64)(self._make_family_without)

    # -- what learners and expectations ask ---------------------------------------------------------------------------

    def statistics(self: Any, x: np.ndarray) -> np.ndarray:
        """Return S(x) of each state, one row per state in the layout of theta."""
        rows = [self.mean_statistics(state[None, :]) for state in np.asarray(x)]
        return np.array(rows).reshape(-1, self.theta.size)

    def shared_statistics(self) -> list[tuple[tuple[int, ...], np.ndarray, np.ndarray]] | None:
        """Return sets of variables with their statistics and coefficients, where a statistic may have several; or None.

        For each set of variables the places in theta of the statistics that depend on it, and one row for each of them:
        what each cell of the set's table counts for.
        """
        return None

    def canonical(self) -> Any:
        """Return the same distribution with parameters that are the same for all models of it; linear in theta."""
        return self

    def touches(self, variables: np.ndarray) -> np.ndarray:
        """Return which parameters belong to a term that holds any of these variables, given as a mask."""
        raise ArgumentError(f"a {type(self).__name__} does not say which of its terms hold a variable")

    def present_sums(
        self: Any, x: np.ndarray, present: np.ndarray, weights: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the sums of S over the states that show its cells, and the shares of these states.

        They come from the tables of what the states show of each factor; the share of a parameter of several factors is
        the mean of theirs. None where the values of variables cannot be listed.
        """
        if not hasattr(self, "statistics_from") or self.of_numbers or isinstance(self.domain, Reals):
            return None
        shares, codes = checked_shares(weights, len(x)), self.domain.to_codes(x).astype(np.intp)
        sizes = self.domain.cardinalities(self.n_variables)

        def shown(nodes: Sequence[int]) -> np.ndarray:
            rows, shape = present[:, nodes].all(axis=1), tuple(sizes[list(nodes)])
            places = np.ravel_multi_index(tuple(codes[rows][:, list(nodes)].T), shape)
            return np.bincount(places, shares[rows], minlength=int(np.prod(shape))).reshape(shape)

        def uneven(nodes: Sequence[int], share: float = 1.0) -> np.ndarray:
            # geometric: over an even or a linear one a product of centred scores has mean zero
            size = sizes[list(nodes)].prod()
            return share * _normalised(np.exp(np.linspace(0.0, len(nodes), size))).reshape(sizes[list(nodes)])

        means = self.statistics_from(lambda nodes: _normalised(shown(nodes)))
        parts = self.statistics_from(lambda nodes: uneven(nodes, float(shown(nodes).sum())))
        whole = self.statistics_from(uneven)
        share = np.divide(parts, whole, out=np.zeros_like(whole), where=whole != 0)
        return means * share, share

    @property
    def interactions_around(self: Any) -> np.ndarray:
        """Number of interactions of each variable."""
        return self.graph.degrees

    @property
    def edge_strengths(self: Any) -> np.ndarray:
        """The strength of the interaction along each edge: half the range of the log-weights, ``|w|`` for spins."""
        factors = self.factors().factors
        half_ranges = np.array([np.ptp(factor.table) / 2 for factor in factors])
        return spread_over_edges(self.graph, [factor.nodes for factor in factors], half_ranges)

    def parameter_names(self: Any, names: Sequence[str]) -> list[str]:
        """Return a label for each parameter, given the names of the variables."""
        if self.statistics_are_products:
            return ["*".join(names[i] for i in product) for product in self.products]
        return [f"theta[{number}]" for number in range(self.theta.size)]

    def interactions(self: Any) -> Interactions:
        """Return which variables interact and how strongly, as a network.

        Tables of the factors are taken in the zero-sum gauge; models whose parameters are strengths themselves say so.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.models.MarkovRandomField.build({(0, 1): [[0.0, 4.0], [0.0, 0.0]]}, 2).interactions().strengths
        array([-1.])
        """
        tables = zero_sum((factor.nodes, factor.table) for factor in self.factors().factors)
        levels = None if self.domain.name == "categorical" else self.domain.levels(self.n_variables)
        return of_tables(tables, self._sizes_of_layers, levels)

    @property
    def _sizes_of_layers(self: Any) -> tuple[int, ...]:
        """Number of columns, and of hidden units where there are some."""
        return (self.n_variables - self.n_hidden, *([self.n_hidden] * (self.n_hidden > 0)))

    def log_odds(self: Any) -> np.ndarray:
        """Return by how much each parameter alone can change a log-probability, whatever coding and gauge."""
        low, high = self.statistic_range
        return (high - low) * np.abs(self.theta)


def _normalised(table: np.ndarray) -> np.ndarray:
    """Return shares as probabilities; zeros where there are none."""
    return table / (table.sum() or 1.0)
