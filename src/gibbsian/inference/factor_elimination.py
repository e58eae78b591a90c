"""Exact inference by variable elimination for any discrete family, on graphs of low treewidth."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.arrays import Codes, Floats
from gibbsian.backends.numba import factor_tables as kernels
from gibbsian.errors import TooExpensiveError
from gibbsian.graphs import Graph
from gibbsian.inference.engine import ENGINES, INSTEAD, Cost
from gibbsian.inference.log_tables import Axes, add_up, marginals
from gibbsian.inference.ordering import MAX_WIDTH, EliminationPlan, log_clique_sizes, min_entries, plan_elimination
from gibbsian.inference.table_enumeration import FactorAnswers, FactorEngine, needs_factors, table_seconds
from gibbsian.models.base import DiscreteFamily, Family

SECONDS_PER_ENTRY = 3e-8
SECONDS_PER_NODE = 5e-5


def _seconds(family: DiscreteFamily, n_nodes: int, n_entries: float) -> float:
    return float(table_seconds(family) + SECONDS_PER_ENTRY * n_entries + SECONDS_PER_NODE * n_nodes)


def _price(family: DiscreteFamily) -> Cost:
    """Predict the cost of eliminating the variables of a family, without building its factors."""
    graph, sizes = _free_part(family)
    plan = plan_elimination(graph, sizes) if graph.n_nodes else None
    if plan is None:
        entries = 2.0 ** (MAX_WIDTH + 1) if graph.n_nodes else 1.0
        width = MAX_WIDTH + 1 if graph.n_nodes else 0
        return Cost("elimination", SECONDS_PER_ENTRY * entries, 8 * entries, width, lower_bound=bool(graph.n_nodes))
    cardinalities = np.array(sizes)
    cliques = np.exp2(log_clique_sizes(plan.order, plan.pointers, plan.separators, np.log2(cardinalities)))
    messages = cliques / cardinalities[plan.order]
    # all messages with the probabilities on the way down, a clique's table with its parts, and the lists of both
    n_cells = 2 * messages.sum() + 3 * cliques.max() + 4 * family.n_parameters + 200 * graph.n_nodes
    seconds = _seconds(family, graph.n_nodes, cliques.sum())
    return Cost("elimination", seconds, float(8 * n_cells), plan.width, plan=plan)


def _free_part(family: DiscreteFamily) -> tuple[Graph, tuple[int, ...]]:
    """Return the graph between the free variables, those with more than one value, and their numbers of values."""
    free = [node for node, size in enumerate(family.variables.sizes) if size > 1]
    graph = family.graph if len(free) == len(family.variables) else family.graph.subgraph(free)[0]
    return graph, tuple(family.variables.sizes[node] for node in free)


@dataclass(frozen=True, eq=False)
class _Bucket:
    """The tables added up when one variable is eliminated: axis 0 is the variable, the others its separator."""

    clique: tuple[int, ...]  # positions
    scopes: list[tuple[Axes, Axes, list[int]]]  # of the factors: variables, their axes here, and their order by place
    children: list[tuple[int, Axes]]  # the positions that send a message here, and the axes of the message


@ENGINES.register("factor-elimination")
class FactorElimination(FactorEngine):
    """Exact answers by variable elimination.

    One pass up the tree of cliques gives log Z, in logarithms throughout; one pass down gives the joint probabilities
    of every factor's variables. The joint probabilities of variables that share no factor take a pass for each
    combination of their values.

    Parameters
    ----------
    family : Family
        Of low treewidth; `exact` checks what that costs.
    max_seconds : float
        Limit for questions that need many passes (`second_moments`, `marginal` of variables without common factor).

    Examples
    --------
    >>> import gibbsian as gb
    >>> chain = gb.PairwiseFamily.model(gb.graphs.grid(1, 100), None, [0.5] * 99)
    >>> answers = gb.inference.FactorElimination(chain.family).at(chain.theta)
    >>> answers.log_partition                   # 100 log 2 + 99 log cosh 0.5
    81.2...
    >>> answers.moments[:2]                     # tanh 0.5
    array([0.46211716, 0.46211716])
    """

    @classmethod
    def price(cls, family: Family) -> Cost | None:
        """Predict the cost for families of factors."""
        return _price(family) if needs_factors(family) else None

    @classmethod
    def cost_lower_bound(cls, family: Family) -> float:
        """Return a bound that needs no order."""
        if not needs_factors(family):
            return 0.0
        graph, _ = _free_part(family)
        return _seconds(family, graph.n_nodes, min_entries(graph))

    @cached_property
    def cost(self) -> Cost:
        """Predicted price of log Z and all moments, of any discrete family."""
        return self._offer or _price(self.family)

    @cached_property
    def plan(self) -> EliminationPlan:
        """The order of elimination and what follows from it."""
        plan = self.cost.plan or (None if self.cost.lower_bound else plan_elimination(*_free_part(self.family)))
        if not isinstance(plan, EliminationPlan):
            raise TooExpensiveError(
                f"eliminating {len(self.family.variables)} variables would take {self.cost.describe()}", INSTEAD
            )
        return plan

    @cached_property
    def positions(self) -> list[int]:
        """The position of each free variable in the order."""
        return [int(position) for position in np.argsort(self.plan.order)]

    @cached_property
    def _laid_out(self) -> dict[tuple[Axes, ...], list[_Bucket]]:
        return {}

    def buckets(self, scopes: tuple[Axes, ...]) -> list[_Bucket]:
        """Return the buckets of factors with these scopes, which are the same at any parameters."""
        if scopes not in self._laid_out:
            self._laid_out[scopes] = self._lay_out(scopes)
        return self._laid_out[scopes]

    def _lay_out(self, scopes: tuple[Axes, ...]) -> list[_Bucket]:
        """Assign each factor to its first variable in the order, each message to the first of its separator."""
        plan = self.plan
        pointers, separators = plan.pointers.tolist(), plan.separators.tolist()
        buckets = [_Bucket((p, *separators[pointers[p] : pointers[p + 1]]), [], []) for p in range(len(plan.order))]
        axis_of = [{member: axis for axis, member in enumerate(bucket.clique)} for bucket in buckets]
        for scope in scopes:
            positions = [self.positions[variable] for variable in scope]
            by_position = sorted(range(len(positions)), key=positions.__getitem__)
            first = positions[by_position[0]]
            buckets[first].scopes.append((scope, tuple(axis_of[first][positions[t]] for t in by_position), by_position))
        for p, bucket in enumerate(buckets):
            if len(bucket.clique) > 1:
                parent = bucket.clique[1]
                buckets[parent].children.append((p, tuple(axis_of[parent][member] for member in bucket.clique[1:])))
        return buckets

    def at(self, theta: Floats) -> FactorEliminationAnswers:
        """Return the answers at some parameters."""
        return FactorEliminationAnswers(self, theta)


class FactorEliminationAnswers(FactorAnswers):
    """Answers from one pass up the tree of cliques and one down."""

    engine: FactorElimination

    @cached_property
    def _placed_sizes(self) -> list[int]:
        """Number of values by place."""
        return [self.tables.cardinalities[variable] for variable in self.engine.plan.order.tolist()]

    @cached_property
    def _buckets(self) -> list[_Bucket]:
        return self.engine.buckets(tuple(self.tables.tables))

    @cached_property
    def _factors(self) -> list[list[tuple[Axes, Floats]]]:
        """The factors of each bucket: their axes there, and their tables with these axes ascending."""
        tables = self.tables.tables
        return [
            [(axes, tables[scope].transpose(by_position)) for scope, axes, by_position in bucket.scopes]
            for bucket in self._buckets
        ]

    # -- up the tree -------------------------------------------------------------------------------------------------
    def _local(self, p: int, messages: list[Floats], held: Mapping[int, int]) -> Floats:
        """Log-weights of the clique at place p: its factors and the messages to it; `held` positions have one value."""
        bucket = self._buckets[p]
        shape = tuple(1 if member in held else self._placed_sizes[member] for member in bucket.clique)
        factors = [(axes, _hold(table, bucket.clique, axes, held)) for axes, table in self._factors[p]]
        return add_up(shape, [*factors, *((axes, messages[child]) for child, axes in bucket.children)])

    def _upward(self, held: Mapping[int, int], maximise: bool = False) -> tuple[float, list[Floats]]:
        """Sum (or maximise) over one variable after the other; return the log of the total, and all messages."""
        messages: list[Floats] = []
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
    def _up(self) -> tuple[float, list[Floats]]:
        return self._upward({})

    @cached_property
    def log_partition(self) -> float:
        """Log Z."""
        return self._up[0] + self.tables.constant

    # -- down the tree -----------------------------------------------------------------------------------------------
    @cached_property
    def factor_marginals(self) -> dict[Axes, Floats]:
        """Joint probabilities of each free variable and of the variables of each factor."""
        return self._downward({}, self._up[1], factors=True)

    def _downward(self, held: Mapping[int, int], messages: list[Floats], factors: bool) -> dict[Axes, Floats]:
        """Return the joint probabilities of each variable, with `factors` also those of each factor's variables."""
        order = self.engine.plan.order.tolist()
        separators: dict[int, Floats] = {}
        probabilities: dict[Axes, Floats] = {}
        for p in range(len(order) - 1, -1, -1):
            bucket = self._buckets[p]
            joint = self._local(p, messages, held)
            above = separators.pop(p, np.ones(1))
            kernels.joint_from_log(joint.reshape(len(joint), -1), messages[p].ravel(), above.ravel())
            scopes = bucket.scopes if factors else []
            sums = marginals(joint, [(0,), *(axes for _, axes, _ in scopes), *(axes for _, axes in bucket.children)])
            probabilities[(order[p],)] = sums[(0,)]
            for child, axes in bucket.children:
                separators[child] = sums[axes]
            for scope, axes, _ in scopes:
                probabilities[scope] = sums[axes].transpose(np.argsort([order[bucket.clique[axis]] for axis in axes]))
        return probabilities

    def free_products(self, levels: list[Floats]) -> Floats:
        """Condition on each value of each variable: ``E[x_i x_j] = sum_a P(x_i = a) a E[x_j | x_i = a]``."""
        n, n_passes = len(levels), sum(self.tables.cardinalities)
        self.engine.require_passes(n_passes, f"all second moments of {n} variables", "ask for `moments`")
        second: Floats = np.zeros((n, n))
        for i, scores in enumerate(levels):
            for code, probability in enumerate(self.factor_marginals[(i,)]):
                if probability > 0.0:
                    held = {self.engine.positions[i]: code}
                    given = self._downward(held, self._upward(held)[1], factors=False)
                    means = [given[(j,)] @ levels[j] if j != i else scores[code] for j in range(n)]
                    second[i] += probability * scores[code] * np.array(means)
        return 0.5 * (second + second.T)

    def joint(self, scope: Axes) -> Floats:
        """Joint probabilities of free variables (ascending) that share no factor: a pass for each of their states."""
        shape = tuple(self.tables.cardinalities[variable] for variable in scope)
        n_states = float(np.prod(np.array(shape, dtype=np.float64)))
        self.engine.require_passes(n_states, f"the joint marginal of {len(scope)} variables", "ask for fewer")
        positions, total = [self.engine.positions[variable] for variable in scope], self._up[0]
        log_joint = [
            self._upward(dict(zip(positions, codes, strict=True)))[0] - total
            for codes in itertools.product(*map(range, shape))
        ]
        joint: Floats = np.exp(log_joint).reshape(shape)
        return joint / float(joint.sum())

    # -- states ------------------------------------------------------------------------------------------------------
    def _columns(self, p: int, messages: list[Floats], placed: Codes) -> Floats:
        """Log-weights of the values of the variable at place p, a column for each state of the later positions."""
        bucket = self._buckets[p]
        terms = [*self._factors[p], *((axes, messages[child]) for child, axes in bucket.children)]
        columns: Floats = np.zeros((self._placed_sizes[p], placed.shape[1]))
        for axes, table in terms:
            given = table[(slice(None), *(placed[bucket.clique[axis]] for axis in axes[1:]))]
            columns += given if given.ndim == 2 else given[:, None]
        return columns

    @cached_property
    def free_mode(self) -> tuple[Codes, float]:
        """The free variables in a state of largest probability, and its log-probability."""
        largest, messages = self._upward({}, maximise=True)
        placed = np.zeros((len(messages), 1), np.int8)
        for p in range(len(messages) - 1, -1, -1):
            placed[p] = np.argmax(self._columns(p, messages, placed), axis=0)
        return self._by_variable(placed)[0], largest - self._up[0]

    def draw(self, n_samples: int, rng: np.random.Generator) -> Codes:
        """Draw each variable given its separator, from the last eliminated to the first."""
        messages = self._up[1]
        placed = np.zeros((len(messages), n_samples), np.int8)
        for p in range(len(messages) - 1, -1, -1):
            columns = self._columns(p, messages, placed)
            cumulative = np.cumsum(np.exp(columns - columns.max(axis=0)), axis=0)
            placed[p] = (rng.random(n_samples) * cumulative[-1] >= cumulative[:-1]).sum(axis=0)
        return self._by_variable(placed)

    def _by_variable(self, placed: Codes) -> Codes:
        codes = np.empty((placed.shape[1], placed.shape[0]), np.int8)
        codes[:, self.engine.plan.order] = placed.T
        return codes


def _hold(table: Floats, clique: Axes, axes: Axes, held: Mapping[int, int]) -> Floats:
    """Return the part of a table at the values of the variables that are held."""
    if not held:
        return table
    codes = [held.get(clique[axis]) for axis in axes]
    return table[tuple(slice(None) if code is None else slice(code, code + 1) for code in codes)]
