"""Exact inference for any model by variable elimination, where the interactions have low treewidth."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.backends.numba import factor_tables as kernels
from gibbsian.errors import TooExpensiveError
from gibbsian.graphs import Graph
from gibbsian.inference.contract import graph_of, sizes_of
from gibbsian.inference.engine import ENGINES, Cost, Engine
from gibbsian.inference.log_tables import Axes, add_up, marginals
from gibbsian.inference.ordering import MAX_WIDTH, EliminationPlan, least_entries, log_clique_sizes, plan_elimination
from gibbsian.inference.table_enumeration import FactorAnswers, needs_factors, table_seconds

SECONDS_PER_ENTRY = 3e-8
SECONDS_PER_NODE = 5e-5


def _seconds(family: Any, n_entries: float) -> float:
    n_nodes = _free_part(family)[0].n_nodes
    return float(table_seconds(family) + SECONDS_PER_ENTRY * n_entries + SECONDS_PER_NODE * n_nodes)


def _price(family: Any) -> Cost:
    """Predict what eliminating the variables of a family costs, without building its factors."""
    graph, cardinalities = _free_part(family)
    plan = plan_elimination(graph, cardinalities) if graph.n_nodes else None
    if plan is None:
        entries = 2.0 ** (MAX_WIDTH + 1) if graph.n_nodes else 1.0
        width = MAX_WIDTH + 1 if graph.n_nodes else 0
        return Cost("elimination", SECONDS_PER_ENTRY * entries, 8 * entries, width, lower_bound=bool(graph.n_nodes))
    log_sizes = np.log2(np.array(cardinalities))
    cliques = np.exp2(log_clique_sizes(plan.order, plan.pointers, plan.separators, log_sizes))
    messages = cliques / np.array(cardinalities)[plan.order]
    seconds = _seconds(family, cliques.sum())
    # all messages with the probabilities on the way down, a clique's table with its parts, and the lists around them
    n_numbers = 2 * messages.sum() + 3 * cliques.max() + 4 * family.n_parameters + 200 * graph.n_nodes
    return Cost("elimination", seconds, float(8 * n_numbers), plan.width, plan=plan)


def _free_part(family: Any) -> tuple[Graph, tuple[int, ...]]:
    """The graph between the variables with more than one value, and their numbers of values."""
    cardinalities, whole = sizes_of(family), graph_of(family)
    free = np.flatnonzero(cardinalities > 1)
    graph = whole if len(free) == len(cardinalities) else whole.subgraph(free)[0]
    return graph, tuple(cardinalities[free].tolist())


@dataclass(frozen=True, eq=False)
class _Bucket:
    """What meets when one variable goes: axis 0 is the variable, the others its separator by place."""

    clique: tuple[int, ...]  # places
    scopes: list[tuple[Axes, Axes, list[int]]]  # of the factors: variables, their axes here, and their order by place
    children: list[tuple[int, Axes]]  # the places whose message comes here, and its axes


@ENGINES.register("factor-elimination")
class FactorElimination(Engine):
    """Exact answers by variable elimination.

    One pass up the tree of cliques gives log Z, in logarithms throughout; one pass down gives the joint probabilities
    of every factor's variables. Variables that share no factor are held at each combination of their values in turn.

    Parameters
    ----------
    family : Family
        Of low treewidth; `exact` checks what that costs.
    max_seconds : float
        Limit for questions that need many passes (`second_moments`, `marginal` of variables without common factor).

    Examples
    --------
    >>> import gibbsian as gb
    >>> chain = gb.PairwiseModel.build(gb.graphs.grid(1, 100), None, [0.5] * 99)
    >>> answers = gb.inference.FactorElimination(chain.family).at(chain.theta)
    >>> answers.log_partition                   # 100 log 2 + 99 log cosh 0.5
    81.2...
    >>> answers.moments[:2]                     # tanh 0.5
    array([0.46211716, 0.46211716])
    """

    @classmethod
    def price(cls, family: Any) -> Cost | None:
        """Predict the cost for families that are known by their factors alone."""
        return _price(family) if needs_factors(family) else None

    @classmethod
    def least(cls, family: Any) -> float:
        """Return a bound that needs no order."""
        return _seconds(family, least_entries(_free_part(family)[0])) if needs_factors(family) else 0.0

    @cached_property
    def plan(self) -> EliminationPlan:
        """The order of elimination and what follows from it."""
        offer = self._offer or _price(self.family)
        plan = offer.plan or (None if offer.lower_bound else plan_elimination(*_free_part(self.family)))
        if plan is None:
            raise TooExpensiveError(
                f"eliminating {sizes_of(self.family).size} variables would take {offer.describe()}",
                "use sampling or pseudolikelihood",
            )
        return plan

    @cached_property
    def _laid_out(self) -> dict[tuple[Axes, ...], list[_Bucket]]:
        return {}

    def buckets(self, scopes: tuple[Axes, ...]) -> list[_Bucket]:
        """Return where factors and messages meet; families have the same scopes at any parameters."""
        if scopes not in self._laid_out:
            self._laid_out[scopes] = self._lay_out(scopes)
        return self._laid_out[scopes]

    def _lay_out(self, scopes: tuple[Axes, ...]) -> list[_Bucket]:
        """Put every factor with the first of its variables to go, every message with the first of its separator."""
        plan = self.plan
        pointers, separators = plan.pointers.tolist(), plan.separators.tolist()
        buckets = [_Bucket((p, *separators[pointers[p] : pointers[p + 1]]), [], []) for p in range(len(plan.order))]
        place = np.argsort(plan.order).tolist()
        axis_of = [{member: axis for axis, member in enumerate(bucket.clique)} for bucket in buckets]
        for scope in scopes:
            places = [place[variable] for variable in scope]
            by_place = sorted(range(len(places)), key=places.__getitem__)
            first = places[by_place[0]]
            buckets[first].scopes.append((scope, tuple(axis_of[first][places[t]] for t in by_place), by_place))
        for p, bucket in enumerate(buckets):
            if len(bucket.clique) > 1:
                parent = bucket.clique[1]
                buckets[parent].children.append((p, tuple(axis_of[parent][member] for member in bucket.clique[1:])))
        return buckets

    def at(self, theta: np.ndarray) -> FactorEliminationAnswers:
        """Return the answers at some parameters."""
        return FactorEliminationAnswers(self, theta)


class FactorEliminationAnswers(FactorAnswers[FactorElimination]):
    """Answers from one pass up the tree of cliques and one down."""

    @cached_property
    def _placed_sizes(self) -> list[int]:
        """Number of values by place."""
        return [self.tables.cardinalities[variable] for variable in self.engine.plan.order.tolist()]

    @cached_property
    def _buckets(self) -> list[_Bucket]:
        return self.engine.buckets(tuple(self.tables.tables))

    @cached_property
    def _factors(self) -> list[list[tuple[Axes, np.ndarray]]]:
        """The factors of each bucket: their axes there, and their tables with these axes ascending."""
        tables = self.tables.tables
        return [
            [(axes, tables[scope].transpose(by_place)) for scope, axes, by_place in bucket.scopes]
            for bucket in self._buckets
        ]

    # -- up the tree -------------------------------------------------------------------------------------------------
    def _local(self, p: int, messages: list[np.ndarray], held: Mapping[int, int]) -> np.ndarray:
        """Log-weights of the clique at place p: its factors and the messages to it; held places have one value."""
        bucket = self._buckets[p]
        shape = tuple(1 if member in held else self._placed_sizes[member] for member in bucket.clique)
        factors = [(axes, _hold(table, bucket.clique, axes, held)) for axes, table in self._factors[p]]
        return add_up(shape, [*factors, *((axes, messages[child]) for child, axes in bucket.children)])

    def _upward(self, held: Mapping[int, int], maximise: bool = False) -> tuple[float, list[np.ndarray]]:
        """Sum (or maximise) over one variable after the other; return the log of the total, and all messages."""
        messages: list[np.ndarray] = []
        total = 0.0
        for p in range(len(self._buckets)):
            local = self._local(p, messages, held)
            flat = local.reshape(len(local), -1)
            sums = flat.max(axis=0) if maximise else kernels.log_sum_of_rows(flat)
            messages.append(sums.reshape(local.shape[1:]))
            if local.ndim == 1:
                total += float(sums[0])
        return total, messages

    @cached_property
    def _up(self) -> tuple[float, list[np.ndarray]]:
        return self._upward({})

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        return self._up[0] + self.tables.constant

    # -- down the tree -----------------------------------------------------------------------------------------------
    @cached_property
    def known(self) -> dict[Axes, np.ndarray]:
        """Joint probabilities of each variable and of the variables of each factor."""
        return self._downward({}, self._up[1], factors=True)

    def _downward(self, held: Mapping[int, int], messages: list[np.ndarray], factors: bool) -> dict[Axes, np.ndarray]:
        """Joint probabilities of each variable, and those of each factor's variables if asked for."""
        order = self.engine.plan.order.tolist()
        separators: dict[int, np.ndarray] = {}
        known: dict[Axes, np.ndarray] = {}
        for p in range(len(order) - 1, -1, -1):
            bucket = self._buckets[p]
            joint = self._local(p, messages, held)
            above = separators.pop(p, np.ones(1))
            kernels.joint_from_log(joint.reshape(len(joint), -1), messages[p].ravel(), above.ravel())
            own = [axes for _, axes, _ in bucket.scopes] if factors else []
            found = marginals(joint, [(0,), *own, *(axes for _, axes in bucket.children)])
            known[(order[p],)] = found[(0,)]
            for child, axes in bucket.children:
                separators[child] = found[axes]
            for scope, axes, _ in bucket.scopes if factors else ():
                members = [order[bucket.clique[axis]] for axis in axes]
                known[scope] = found[axes].transpose(np.argsort(members))
        return known

    def kept_products(self, levels: list[np.ndarray]) -> np.ndarray:
        """Hold each variable at each of its values: ``E[x_i x_j] = sum_a P(x_i = a) a E[x_j | x_i = a]``."""
        n = len(levels)
        self.engine.require_passes(
            sum(self.tables.cardinalities), f"all second moments of {n} variables", "ask for `moments`"
        )
        second = np.zeros((n, n))
        place = np.argsort(self.engine.plan.order).tolist()
        for i, numbers in enumerate(levels):
            for code, probability in enumerate(self.known[(i,)]):
                if probability > 0.0:
                    held = {place[i]: code}
                    known = self._downward(held, self._upward(held)[1], factors=False)
                    means = [known[(j,)] @ levels[j] if j != i else numbers[code] for j in range(n)]
                    second[i] += probability * numbers[code] * np.array(means)
        return 0.5 * (second + second.T)

    def joint(self, scope: Axes) -> np.ndarray:
        """Joint probabilities of variables (ascending) that share no factor."""
        shape = tuple(self.tables.cardinalities[variable] for variable in scope)
        n_states = float(np.prod(np.array(shape, dtype=np.float64)))
        what = f"the joint marginal of {len(scope)} variables"
        self.engine.require_passes(n_states, what, "ask for fewer")
        place = np.argsort(self.engine.plan.order).tolist()
        places = [place[variable] for variable in scope]
        total = self._up[0]
        log_joint = [
            self._upward(dict(zip(places, codes, strict=True)))[0] - total
            for codes in itertools.product(*map(range, shape))
        ]
        joint = np.exp(log_joint).reshape(shape)
        return joint / joint.sum()

    # -- states ------------------------------------------------------------------------------------------------------
    def _columns(self, p: int, messages: list[np.ndarray], placed: np.ndarray) -> np.ndarray:
        """Log-weights of the values of the variable at place p, given codes of the later places: one column each."""
        bucket = self._buckets[p]
        terms = [*self._factors[p], *((axes, messages[child]) for child, axes in bucket.children)]
        columns = np.zeros((self._placed_sizes[p], placed.shape[1]))
        for axes, table in terms:
            given = table[(slice(None), *(placed[bucket.clique[axis]] for axis in axes[1:]))]
            columns += given if given.ndim == 2 else given[:, None]
        return columns

    @cached_property
    def kept_mode(self) -> tuple[np.ndarray, float]:
        """Codes of a state of largest probability, and its log-probability."""
        largest, messages = self._upward({}, maximise=True)
        placed = np.zeros((len(messages), 1), np.int8)
        for p in range(len(messages) - 1, -1, -1):
            placed[p] = np.argmax(self._columns(p, messages, placed), axis=0)
        return self._by_variable(placed)[0], largest - self._up[0]

    def draw(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
        """Draw each variable given its separator, from the last eliminated to the first."""
        messages = self._up[1]
        placed = np.zeros((len(messages), n_samples), np.int8)
        for p in range(len(messages) - 1, -1, -1):
            columns = self._columns(p, messages, placed)
            cumulative = np.cumsum(np.exp(columns - columns.max(axis=0)), axis=0)
            placed[p] = (rng.random(n_samples) * cumulative[-1] >= cumulative[:-1]).sum(axis=0)
        return self._by_variable(placed)

    def _by_variable(self, placed: np.ndarray) -> np.ndarray:
        codes = np.empty((placed.shape[1], placed.shape[0]), np.int8)
        codes[:, self.engine.plan.order] = placed.T
        return codes


def _hold(table: np.ndarray, clique: Axes, axes: Axes, held: Mapping[int, int]) -> np.ndarray:
    """Leave one value of the variables that are held."""
    if not held:
        return table
    codes = [held.get(clique[axis]) for axis in axes]
    return table[tuple(slice(None) if code is None else slice(code, code + 1) for code in codes)]
