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
from gibbsian.inference.base import ENGINES, Cost
from gibbsian.inference.factor_answers import FactorAnswers, needs_factors, table_seconds
from gibbsian.inference.log_tables import Axes, add_up, marginals
from gibbsian.inference.ordering import MAX_WIDTH, EliminationPlan, least_entries, log_clique_sizes, plan_elimination
from gibbsian.models import Model

SECONDS_PER_ENTRY = 3e-8
SECONDS_PER_NODE = 5e-5


def _seconds(model: Model, n_entries: float) -> float:
    return float(table_seconds(model) + SECONDS_PER_ENTRY * n_entries + SECONDS_PER_NODE * _free_part(model)[0].n_nodes)


def _price(model: Model) -> Cost:
    """Predict what eliminating the variables of a model costs, without building its factors."""
    graph, cardinalities = _free_part(model)
    plan = plan_elimination(graph, cardinalities) if graph.n_nodes else None
    if plan is None:
        entries = 2.0 ** (MAX_WIDTH + 1) if graph.n_nodes else 1.0
        width = MAX_WIDTH + 1 if graph.n_nodes else 0
        return Cost("elimination", SECONDS_PER_ENTRY * entries, 8 * entries, width, lower_bound=bool(graph.n_nodes))
    log_sizes = np.log2(np.array(cardinalities))
    cliques = np.exp2(log_clique_sizes(plan.order, plan.pointers, plan.separators, log_sizes))
    messages = cliques / np.array(cardinalities)[plan.order]
    seconds = _seconds(model, cliques.sum())
    # all messages with the probabilities on the way down, a clique's table with its parts, and the lists around them
    n_numbers = 2 * messages.sum() + 3 * cliques.max() + 4 * model.theta.size + 200 * graph.n_nodes
    return Cost("elimination", seconds, float(8 * n_numbers), plan.width)


def _free_part(model: Model) -> tuple[Graph, tuple[int, ...]]:
    """The graph between the variables with more than one value, and their numbers of values."""
    cardinalities = model.domain.cardinalities(model.n_variables)
    free = np.flatnonzero(cardinalities > 1)
    graph = model.graph if len(free) == len(cardinalities) else model.graph.subgraph(free)[0]
    return graph, tuple(cardinalities[free].tolist())


@dataclass(frozen=True, eq=False)
class _Bucket:
    """What meets when one variable goes: axis 0 is the variable, the others its separator by place."""

    clique: tuple[int, ...]  # places
    factors: list[tuple[Axes, np.ndarray]]
    scopes: list[Axes]  # of the factors, as the engine numbers variables
    children: list[tuple[int, Axes]]  # the places whose message comes here, and its axes


@ENGINES.register("factor-elimination")
class FactorElimination(FactorAnswers):
    """Exact answers by variable elimination.

    One pass up the tree of cliques gives log Z, in logarithms throughout; one pass down gives the joint probabilities
    of every factor's variables. Variables that share no factor are held at each combination of their values in turn.

    Parameters
    ----------
    model : Model
        Of low treewidth; `exact` checks what that costs.
    max_seconds : float
        Limit for questions that need many passes (`second_moments`, `marginal` of variables without common factor).

    Examples
    --------
    >>> import gibbsian as gb
    >>> chain = gb.PairwiseModel.build(gb.graphs.grid(1, 100), None, [0.5] * 99)
    >>> engine = gb.inference.FactorElimination(chain)
    >>> engine.log_partition()                  # 100 log 2 + 99 log cosh 0.5
    81.2...
    >>> engine.moments().statistics[:2]         # tanh 0.5
    array([0.46211716, 0.46211716])
    """

    shared = ("_plan",)

    @classmethod
    def price(cls, model: Any) -> Cost | None:
        """Predict the cost for models that are known by their factors alone."""
        return _price(model) if needs_factors(model) else None

    @classmethod
    def least(cls, model: Any) -> float:
        """Return a bound that needs no order."""
        return _seconds(model, least_entries(_free_part(model)[0])) if needs_factors(model) else 0.0

    @cached_property
    def _plan(self) -> EliminationPlan:
        plan = plan_elimination(*_free_part(self.model))
        if plan is None:
            raise TooExpensiveError(
                f"eliminating {self.model.n_variables} variables would take {self.cost.describe()}",
                "use sampling or pseudolikelihood",
            )
        return plan

    @cached_property
    def _placed_sizes(self) -> list[int]:
        """Number of values by place."""
        return [self._tables.cardinalities[variable] for variable in self._plan.order.tolist()]

    @cached_property
    def _buckets(self) -> list[_Bucket]:
        """Every factor with the first of its variables to go, every message with the first of its separator."""
        plan = self._plan
        pointers, separators = plan.pointers.tolist(), plan.separators.tolist()
        buckets = [_Bucket((p, *separators[pointers[p] : pointers[p + 1]]), [], [], []) for p in range(len(plan.order))]
        place = np.argsort(plan.order).tolist()
        axis_of = [{member: axis for axis, member in enumerate(bucket.clique)} for bucket in buckets]
        for scope, table in self._tables.tables.items():
            places = [place[variable] for variable in scope]
            by_place = sorted(range(len(places)), key=places.__getitem__)
            first = places[by_place[0]]
            axes = tuple(axis_of[first][places[t]] for t in by_place)
            buckets[first].factors.append((axes, table.transpose(by_place)))
            buckets[first].scopes.append(scope)
        for p, bucket in enumerate(buckets):
            if len(bucket.clique) > 1:
                parent = bucket.clique[1]
                buckets[parent].children.append((p, tuple(axis_of[parent][member] for member in bucket.clique[1:])))
        return buckets

    # -- up the tree -------------------------------------------------------------------------------------------------
    def _local(self, bucket: _Bucket, messages: list[np.ndarray], held: Mapping[int, int]) -> np.ndarray:
        """Log-weights of a clique: its factors and the messages to it; held places have one value left."""
        shape = tuple(1 if member in held else self._placed_sizes[member] for member in bucket.clique)
        factors = [(axes, _hold(table, bucket.clique, axes, held)) for axes, table in bucket.factors]
        return add_up(shape, [*factors, *((axes, messages[child]) for child, axes in bucket.children)])

    def _upward(self, held: Mapping[int, int], maximise: bool = False) -> tuple[float, list[np.ndarray]]:
        """Sum (or maximise) over one variable after the other; return the log of the total, and all messages."""
        messages: list[np.ndarray] = []
        total = 0.0
        for bucket in self._buckets:
            local = self._local(bucket, messages, held)
            flat = local.reshape(len(local), -1)
            sums = flat.max(axis=0) if maximise else kernels.log_sum_of_rows(flat)
            messages.append(sums.reshape(local.shape[1:]))
            if local.ndim == 1:
                total += float(sums[0])
        return total, messages

    @cached_property
    def _up(self) -> tuple[float, list[np.ndarray]]:
        return self._upward({})

    def log_partition(self) -> float:
        """Return log Z."""
        return self._up[0] + self._tables.constant

    # -- down the tree -----------------------------------------------------------------------------------------------
    @cached_property
    def _known(self) -> dict[Axes, np.ndarray]:
        return self._downward({}, self._up[1], factors=True)

    def _downward(self, held: Mapping[int, int], messages: list[np.ndarray], factors: bool) -> dict[Axes, np.ndarray]:
        """Joint probabilities of each variable, and those of each factor's variables if asked for."""
        order = self._plan.order.tolist()
        separators: dict[int, np.ndarray] = {}
        known: dict[Axes, np.ndarray] = {}
        for p in range(len(order) - 1, -1, -1):
            bucket = self._buckets[p]
            joint = self._local(bucket, messages, held)
            above = separators.pop(p, np.ones(1))
            kernels.joint_from_log(joint.reshape(len(joint), -1), messages[p].ravel(), above.ravel())
            own = [axes for axes, _ in bucket.factors] if factors else []
            found = marginals(joint, [(0,), *own, *(axes for _, axes in bucket.children)])
            known[(order[p],)] = found[(0,)]
            for child, axes in bucket.children:
                separators[child] = found[axes]
            for scope, axes in zip(bucket.scopes, own, strict=False):
                members = [order[bucket.clique[axis]] for axis in axes]
                known[scope] = found[axes].transpose(np.argsort(members))
        return known

    def _second_moments(self, levels: list[np.ndarray]) -> np.ndarray:
        """Hold each variable at each of its values: ``E[x_i x_j] = sum_a P(x_i = a) a E[x_j | x_i = a]``."""
        n = len(levels)
        self._require_passes(
            sum(self._tables.cardinalities), f"all second moments of {n} variables", "ask for moments()"
        )
        second = np.zeros((n, n))
        place = np.argsort(self._plan.order).tolist()
        for i, numbers in enumerate(levels):
            for code, probability in enumerate(self._known[(i,)]):
                if probability > 0.0:
                    held = {place[i]: code}
                    known = self._downward(held, self._upward(held)[1], factors=False)
                    means = [known[(j,)] @ levels[j] if j != i else numbers[code] for j in range(n)]
                    second[i] += probability * numbers[code] * np.array(means)
        return 0.5 * (second + second.T)

    def _joint(self, scope: Axes) -> np.ndarray:
        shape = tuple(self._tables.cardinalities[variable] for variable in scope)
        n_states = float(np.prod(np.array(shape, dtype=np.float64)))
        what = f"the joint marginal of {len(scope)} variables"
        self._require_passes(n_states, what, "ask for fewer")
        place = np.argsort(self._plan.order).tolist()
        places = [place[variable] for variable in scope]
        total = self._up[0]
        log_joint = [
            self._upward(dict(zip(places, codes, strict=True)))[0] - total
            for codes in itertools.product(*map(range, shape))
        ]
        joint = np.exp(log_joint).reshape(shape)
        return joint / joint.sum()

    def _require_passes(self, n_passes: float, what: str, instead: str) -> None:
        seconds = n_passes * self.cost.seconds
        if seconds > self.max_seconds:
            raise TooExpensiveError(
                f"{what} would take about {seconds:.2g} s by elimination but `max_seconds={self.max_seconds:g}`",
                f"{instead}, or raise `max_seconds`",
            )

    # -- states ------------------------------------------------------------------------------------------------------
    def _columns(self, p: int, messages: list[np.ndarray], placed: np.ndarray) -> np.ndarray:
        """Log-weights of the values of the variable at place p, given codes of the later places: one column each."""
        bucket = self._buckets[p]
        terms = [*bucket.factors, *((axes, messages[child]) for child, axes in bucket.children)]
        columns = np.zeros((self._placed_sizes[p], placed.shape[1]))
        for axes, table in terms:
            given = table[(slice(None), *(placed[bucket.clique[axis]] for axis in axes[1:]))]
            columns += given if given.ndim == 2 else given[:, None]
        return columns

    def _most_probable(self) -> tuple[np.ndarray, float]:
        largest, messages = self._upward({}, maximise=True)
        placed = np.zeros((len(messages), 1), np.int8)
        for p in range(len(messages) - 1, -1, -1):
            placed[p] = np.argmax(self._columns(p, messages, placed), axis=0)
        return self._by_variable(placed)[0], largest - self._up[0]

    def _sample(self, n_samples: int, rng: np.random.Generator) -> np.ndarray:
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
        codes[:, self._plan.order] = placed.T
        return codes


def _hold(table: np.ndarray, clique: Axes, axes: Axes, held: Mapping[int, int]) -> np.ndarray:
    """Leave one value of the variables that are held."""
    if not held:
        return table
    codes = [held.get(clique[axis]) for axis in axes]
    return table[tuple(slice(None) if code is None else slice(code, code + 1) for code in codes)]
