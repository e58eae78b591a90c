"""Expectations by loopy belief propagation: the stationary points of the Bethe free energy (Yedidia et al. 2005)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.backends.numba import clamped as kernels
from gibbsian.data.rows import Rows
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import EXPECTATIONS, BoundExpectation, NoSamples, Starts
from gibbsian.expectations.convergence import START_SCALE, Ending, sweep, views
from gibbsian.expectations.rows import MaskedRows, row_by_row
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.factors import FactorGraph
from gibbsian.models.ising import IsingFamily, is_ising
from gibbsian.rng import Key
from gibbsian.settings import check, declared, flag, number, whole
from gibbsian.startup import logsumexp, softmax


@EXPECTATIONS.register("bethe", consistent=False, sampled=False)
@declared(frozen=True)
class Bethe:
    """Statistics of the beliefs at which loopy belief propagation comes to rest, with the Bethe approximation of log Z.

    Exact on trees (of factors). On other graphs the error is not known, but mostly far smaller than that of mean field;
    with strong couplings there can be several solutions, or messages that never settle, which is said. A call goes on
    from the messages of the call before.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(1, 3), [0.5, 0.0, -0.2], [0.3, 0.8])
    >>> bound = gb.expectations.Bethe().bind(model)
    >>> estimate, _ = bound(model.theta, bound.init(model.theta, gb.rng.Key.of(0)))
    >>> truth = gb.inference.exact(model)                                                  # a tree
    >>> log_z = float(estimate.parts["log_partition"])
    >>> bool(np.allclose(estimate.value, truth.moments)), round(log_z - truth.log_partition, 8)
    (True, 0.0)
    """

    needs_starts: ClassVar[bool] = False

    damping: float = number(0.3, "The part of the old message that is kept in an update.", least=0, below=1)
    max_iter: int = whole(1000, "Sweeps over the messages in one call, at most.", least=1)
    tol: float = number(1e-10, "Done when no message changes by more in a sweep.", least=0)
    warn: bool = flag(True, "Whether to warn when `max_iter` ends the updates.")

    def __post_init__(self) -> None:
        check(self)

    def bind(
        self, model: Model[DiscreteFamily], clamp: Rows | None = None, starts: Starts | None = None
    ) -> BoundExpectation[Floats]:
        """Bind a family; rows go one by one, and `starts` are not used."""
        rows = MaskedRows.of(model.family, clamp)
        return self._free(model) if rows.all_missing else row_by_row(model, rows, self._free)

    def _free(self, model: Model[DiscreteFamily]) -> BoundBethe:
        family = model.family
        if is_ising(family):
            return BoundBethe(self, 2 * family.graph.n_edges, _SpinMessages(family, self))
        return BoundBethe(self, FactorMessages.size(family.factors(model.theta)), _TableMessages(family, self))


class _Beliefs(NamedTuple):
    """The expected statistics, the Bethe approximation of log Z, the messages, and how they settled."""

    statistics: Floats
    log_partition: float
    messages: Floats
    n_sweeps: int
    change: float


@dataclass(frozen=True, eq=False)
class BoundBethe(NoSamples):
    """Belief propagation of one family; the state is the messages."""

    settings: Bethe
    n_messages: int
    settle: Callable[[Floats, Floats], _Beliefs]

    def init(self, theta: Floats, key: Key) -> Floats:
        """Start with small random messages."""
        return START_SCALE * key.generator().standard_normal(self.n_messages)

    def __call__(self, theta: Floats, state: Floats, starts: Starts | None = None) -> tuple[Estimate, Floats]:
        """Return the expectation under the beliefs and the messages they came from."""
        settings, beliefs = self.settings, self.settle(theta, state)
        ending = Ending("belief propagation", beliefs.n_sweeps, beliefs.change, settings.max_iter, settings.tol)
        value = beliefs.log_partition
        parts = {"log_partition": Estimate(value, None), "free_energy": -value, **ending.parts(settings.warn)}
        return Estimate(beliefs.statistics, None, parts), beliefs.messages


@dataclass(frozen=True, eq=False)
class _SpinMessages:
    """Compiled messages between spins."""

    family: IsingFamily
    settings: Bethe

    def __call__(self, theta: Floats, messages: Floats) -> _Beliefs:
        graph, own, couplings, constant = self.family.ising(theta)
        (tails, heads), messages = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T.copy(), messages.copy()
        reverse = np.roll(np.arange(2 * graph.n_edges), graph.n_edges)
        fields = own + np.bincount(heads, messages, minlength=graph.n_nodes)
        settings = self.settings.damping, self.settings.max_iter, self.settings.tol
        ended = kernels.belief_sweeps(messages, fields, tails, heads, reverse, np.tile(couplings, 2), *settings)
        fields = own + np.bincount(heads, messages, minlength=graph.n_nodes)
        first, second = (fields[tails] - messages[reverse]).reshape(2, -1)
        alike, unlike = couplings + _log_cosh(first + second), -couplings + _log_cosh(first - second)
        nodes = _log_cosh(fields)
        pairs = np.logaddexp(alike, unlike) - nodes[graph.edges].sum(axis=1)
        statistics = self.family.layout.statistics_of_spins(np.tanh(fields), np.tanh((alike - unlike) / 2))
        return _Beliefs(statistics, constant + float(nodes.sum() + pairs.sum()), messages, *ended)


@dataclass(frozen=True, eq=False)
class _TableMessages:
    """Messages between the factors and the variables of any discrete family."""

    family: DiscreteFamily
    settings: Bethe

    def __call__(self, theta: Floats, messages: Floats) -> _Beliefs:
        passing, settings = FactorMessages(self.family.factors(theta), messages), self.settings
        ended = passing.settle(settings.max_iter, settings.tol, settings.damping)
        statistics = self.family.statistics_from(passing.marginal)
        return _Beliefs(statistics, passing.log_partition(), passing.messages, *ended)


def _log_cosh(u: Floats) -> Floats:
    """``log(2 cosh(u))``, which does not overflow."""
    return np.logaddexp(u, -u)


class FactorMessages:
    """Belief propagation between variables and factors, in log-probabilities.

    Parameters
    ----------
    factors : FactorGraph
        The distribution.
    messages : ndarray
        From each factor to each of its variables, one number for each value; copied.
    """

    def __init__(self, factors: FactorGraph, messages: Floats):
        self.factors = factors
        self.messages = np.array(messages)
        pairs = [(number, node) for number, factor in enumerate(factors.factors) for node in factor.nodes]
        parts = views(self.messages, [int(factors.cardinalities[node]) for _, node in pairs])
        self._into = dict(zip(pairs, parts, strict=True))
        self._holding = {frozenset(factor.nodes): number for number, factor in enumerate(factors.factors)}

    @staticmethod
    def size(graph: FactorGraph) -> int:
        """Return how many numbers the messages are."""
        return int(sum(graph.cardinalities[list(factor.nodes)].sum() for factor in graph.factors))

    def settle(self, max_iter: int, tol: float, damping: float) -> tuple[int, float]:
        """Send one message after the other until none changes by more than `tol`; return sweeps and last change."""
        return sweep(lambda pair: self._send(*pair, damping), list(self._into), max_iter, tol)

    def _send(self, number: int, node: int, damping: float) -> float:
        factor = self.factors.factors[number]
        axis = factor.nodes.index(node)
        table = self._with_messages(number, without=node)
        new = logsumexp(table, axis=tuple(k for k in range(table.ndim) if k != axis)) if table.ndim > 1 else table
        new = new - logsumexp(new)
        old = self._into[number, node]
        change = (1.0 - damping) * (new - old)
        old += change
        return float(np.abs(change).max())

    def _from_variable(self, node: int, number: int) -> Floats:
        others = (self._into[other, node] for other in self.factors.factors_of[node] if other != number)
        return sum(others, np.zeros(int(self.factors.cardinalities[node])))

    def _with_messages(self, number: int, without: int | None = None) -> Floats:
        """The log-belief of a factor, up to a constant, one variable's message left out."""
        factor = self.factors.factors[number]
        table = factor.table
        for axis, node in enumerate(factor.nodes):
            if node != without:
                table = table + _along(self._from_variable(node, number), axis, table.ndim)
        return table

    def _belief(self, node: int) -> Floats:
        return self._from_variable(node, -1)

    def log_partition(self) -> float:
        """Return the Bethe approximation of log Z."""
        value = sum(float(logsumexp(self._belief(node))) for node in range(self.factors.n_variables))
        value += sum(float(logsumexp(self._with_messages(number))) for number in range(len(self.factors.factors)))
        return value - sum(float(logsumexp(self._belief(node))) for _, node in self._into)

    def marginal(self, nodes: tuple[int, ...]) -> Floats:
        """Return the joint probabilities of some variables that share a factor."""
        if len(nodes) == 1:
            alone: Floats = softmax(self._belief(nodes[0]))
            return alone
        number = self._holding.get(frozenset(nodes))
        if number is None:
            number = next(k for k, factor in enumerate(self.factors.factors) if set(nodes) <= set(factor.nodes))
        members = self.factors.factors[number].nodes
        joint = softmax(self._with_messages(number))
        joint = joint.sum(axis=tuple(k for k, node in enumerate(members) if node not in nodes))
        kept = [node for node in members if node in nodes]
        return np.transpose(joint, [kept.index(node) for node in nodes])


def _along(vector: Floats, axis: int, n_axes: int) -> Floats:
    return vector.reshape([-1 if k == axis else 1 for k in range(n_axes)])
