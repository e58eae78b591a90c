"""Expectations by loopy belief propagation: the stationary points of the Bethe free energy (Yedidia et al. 2005)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.numba import clamped as kernels
from gibbsian.data import Dataset
from gibbsian.domain import SPIN
from gibbsian.estimate import Estimate
from gibbsian.expectations.base import EXPECTATIONS
from gibbsian.expectations.convergence import START_SCALE, ending, sweep, views
from gibbsian.models import Model, PairwiseModel
from gibbsian.models.factors import FactorGraph
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
    >>> model = gb.PairwiseModel.build(gb.graphs.grid(1, 3), [0.5, 0.0, -0.2], [0.3, 0.8])
    >>> expectation = gb.expectations.Bethe()
    >>> estimate, _ = expectation(model, expectation.init(model, None, np.random.default_rng(0)))
    >>> truth = gb.inference.exact(model)                                                  # a tree
    >>> log_z = float(estimate.parts["log_partition"])
    >>> bool(np.allclose(estimate.value, truth.moments)), round(log_z - truth.log_partition, 8)
    (True, 0.0)
    """

    damping: float = number(0.3, "The part of the old message that is kept in an update.", least=0, below=1)
    max_iter: int = whole(1000, "Sweeps over the messages in one call, at most.", least=1)
    tol: float = number(1e-10, "Done when no message changes by more in a sweep.", least=0)
    warn: bool = flag(True, "Whether to warn when `max_iter` ends the updates.")

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: Model, data: Dataset | None, rng: np.random.Generator) -> np.ndarray:
        """Start with small random messages; `data` is not used."""
        size = 2 * model.graph.n_edges if model.is_pairwise else FactorMessages.size(model)
        return START_SCALE * rng.standard_normal(size)

    def __call__(self, model: Model, state: np.ndarray) -> tuple[Estimate, np.ndarray]:
        """Return the expectation under the beliefs and the messages they came from."""
        statistics, value, state, sweeps, change = (
            self._spins(model, state) if model.is_pairwise else self._factors(model, state)
        )
        notes = ending("belief propagation", sweeps, change, self.max_iter, self.tol, self.warn)
        parts = {"log_partition": Estimate(value, None), "free_energy": -value, **notes}
        return Estimate(statistics, None, parts), state

    def _spins(self, model: Any, messages: np.ndarray) -> tuple[Any, ...]:
        spin, constant = model.to_domain(SPIN)
        tails, heads = np.concatenate([model.graph.edges, model.graph.edges[:, ::-1]]).T.copy()
        n_edges, couplings, messages = model.graph.n_edges, spin.couplings, messages.copy()
        reverse = np.roll(np.arange(2 * n_edges), n_edges)
        fields = spin.biases + np.bincount(heads, messages, minlength=model.n_variables)
        sweeps, change = kernels.belief_sweeps(
            messages, fields, tails, heads, reverse, np.tile(couplings, 2), self.damping, self.max_iter, self.tol
        )
        fields = spin.biases + np.bincount(heads, messages, minlength=model.n_variables)
        beliefs = _Beliefs.of(couplings, fields, (fields[tails] - messages[reverse]).reshape(2, -1), model.graph.edges)
        return beliefs.statistics(model), constant + beliefs.log_partition, messages, sweeps, change

    def _factors(self, model: Model, messages: np.ndarray) -> tuple[Any, ...]:
        passing = FactorMessages(model.factors(), messages)
        sweeps, change = passing.settle(self.max_iter, self.tol, self.damping)
        return model.statistics_from(passing.marginal), passing.log_partition(), passing.messages, sweeps, change


class _Beliefs(NamedTuple):
    """Means of the spins and of their products along the edges, and the Bethe approximation of log Z."""

    means: np.ndarray
    products: np.ndarray
    log_partition: float

    @classmethod
    def of(cls, couplings: np.ndarray, fields: np.ndarray, cavity: np.ndarray, edges: np.ndarray) -> _Beliefs:
        """Put together the fields of the spins, and those of both ends of each edge without its own messages."""
        first, second = cavity
        alike, unlike = couplings + _log_cosh(first + second), -couplings + _log_cosh(first - second)
        nodes = _log_cosh(fields)
        pairs = np.logaddexp(alike, unlike) - nodes[edges].sum(axis=1)
        return cls(np.tanh(fields), np.tanh((alike - unlike) / 2), float(nodes.sum() + pairs.sum()))

    def statistics(self, model: PairwiseModel) -> np.ndarray:
        """Return the expected statistics in the coding of the model."""
        low, half = model.domain.low, model.domain.gap / 2
        shift = low + half  # x = shift + half * spin
        i, j = model.graph.edges.T
        pairs = shift**2 + shift * half * (self.means[i] + self.means[j]) + half**2 * self.products
        return np.concatenate([shift + half * self.means, pairs]) if model.bias else pairs


def _log_cosh(u: np.ndarray) -> np.ndarray:
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

    def __init__(self, factors: FactorGraph, messages: np.ndarray):
        self.factors = factors
        self.messages = np.array(messages)
        pairs = [(number, node) for number, factor in enumerate(factors.factors) for node in factor.nodes]
        parts = views(self.messages, [int(factors.cardinalities[node]) for _, node in pairs])
        self._into = dict(zip(pairs, parts, strict=True))
        self._holding = {frozenset(factor.nodes): number for number, factor in enumerate(factors.factors)}

    @staticmethod
    def size(model: Model) -> int:
        """Return how many numbers the messages of a model are."""
        sizes = model.domain.cardinalities(model.n_variables)
        return int(sum(sizes[list(factor.nodes)].sum() for factor in model.factors().factors))

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

    def _from_variable(self, node: int, number: int) -> np.ndarray:
        others = (self._into[other, node] for other in self.factors.factors_of[node] if other != number)
        return sum(others, np.zeros(int(self.factors.cardinalities[node])))

    def _with_messages(self, number: int, without: int | None = None) -> np.ndarray:
        """The log-belief of a factor, up to a constant, one variable's message left out."""
        factor = self.factors.factors[number]
        table = factor.table
        for axis, node in enumerate(factor.nodes):
            if node != without:
                table = table + _along(self._from_variable(node, number), axis, table.ndim)
        return table

    def _belief(self, node: int) -> np.ndarray:
        return self._from_variable(node, -1)

    def log_partition(self) -> float:
        """Return the Bethe approximation of log Z."""
        value = sum(float(logsumexp(self._belief(node))) for node in range(self.factors.n_variables))
        value += sum(float(logsumexp(self._with_messages(number))) for number in range(len(self.factors.factors)))
        return value - sum(float(logsumexp(self._belief(node))) for _, node in self._into)

    def marginal(self, nodes: tuple[int, ...]) -> np.ndarray:
        """Return the joint probabilities of some variables that share a factor."""
        if len(nodes) == 1:
            return softmax(self._belief(nodes[0]))
        number = self._holding.get(frozenset(nodes))
        if number is None:
            number = next(k for k, factor in enumerate(self.factors.factors) if set(nodes) <= set(factor.nodes))
        members = self.factors.factors[number].nodes
        joint = softmax(self._with_messages(number))
        joint = joint.sum(axis=tuple(k for k, node in enumerate(members) if node not in nodes))
        kept = [node for node in members if node in nodes]
        return np.transpose(joint, [kept.index(node) for node in nodes])


def _along(vector: np.ndarray, axis: int, n_axes: int) -> np.ndarray:
    return vector.reshape([-1 if k == axis else 1 for k in range(n_axes)])
