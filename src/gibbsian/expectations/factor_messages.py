"""Mean field and belief propagation on any factors: the slow road that serves every model alike.

Numbers stand in one flat vector, so that a checkpoint can hold them, with views for each variable or message.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from scipy.special import logsumexp, softmax

from gibbsian.models import Model
from gibbsian.models.factors import FactorGraph


def _views(flat: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    return np.split(flat, np.cumsum(sizes)[:-1]) if sizes else []


def _along(vector: np.ndarray, axis: int, n_axes: int) -> np.ndarray:
    return vector.reshape([-1 if k == axis else 1 for k in range(n_axes)])


class FactorisedLaw:
    """Independent variables, each with a law of its own that is improved in turn given the others.

    Parameters
    ----------
    factors : FactorGraph
        The distribution that is approximated.
    logits : ndarray
        Log-probabilities of the values of all variables, up to a constant for each; copied.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations.factor_messages import FactorisedLaw
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.5, 0.0], [0.0])
    >>> law = FactorisedLaw(model.factors(), np.zeros(4))
    >>> law.settle(max_iter=10, tol=0.0), bool(np.isclose(law.bound(), gb.inference.exact(model).log_partition()))
    ((2, 0.0), True)
    """

    def __init__(self, factors: FactorGraph, logits: np.ndarray):
        self.factors = factors
        self.logits = np.array(logits)
        self._own = _views(self.logits, factors.cardinalities.tolist())
        self._laws = [softmax(own) for own in self._own]

    @staticmethod
    def size(model: Model) -> int:
        """Return how many logits a model needs."""
        return int(model.domain.cardinalities(model.n_variables).sum())

    @property
    def entropy(self) -> float:
        """The entropy of all variables."""
        return sum(float(logsumexp(own) - law @ own) for own, law in zip(self._own, self._laws, strict=True))

    def settle(self, max_iter: int, tol: float) -> tuple[int, float]:
        """Update one variable after the other until none changes by more than `tol`; return sweeps and last change."""
        change, sweep = np.inf, 0
        while sweep < max_iter and change > tol:
            change, sweep = max(map(self._update, range(self.factors.n_variables))), sweep + 1
        return sweep, change

    def _update(self, i: int) -> float:
        self._own[i][:] = sum(self._expected_table(number, i) for number in self.factors.factors_of[i])
        law = softmax(self._own[i])
        change = float(np.abs(law - self._laws[i]).max())
        self._laws[i] = law
        return change

    def _expected_table(self, number: int, kept: int | None = None) -> np.ndarray:
        """Mean log-weight of a factor for each value of one of its variables, or over all of them."""
        factor = self.factors.factors[number]
        table = factor.table
        for axis in range(len(factor.nodes) - 1, -1, -1):
            if factor.nodes[axis] != kept:
                table = np.tensordot(table, self._laws[factor.nodes[axis]], axes=(axis, 0))
        return table

    def bound(self) -> float:
        """Return minus the free energy, a lower bound on log Z."""
        energy = sum(float(self._expected_table(number)) for number in range(len(self.factors.factors)))
        return energy + self.entropy

    def marginal(self, nodes: tuple[int, ...]) -> np.ndarray:
        """Return the joint probabilities of some variables."""
        return reduce(np.multiply.outer, [self._laws[i] for i in nodes])


class FactorMessages:
    """Belief propagation between variables and factors, in log-probabilities.

    Parameters
    ----------
    factors : FactorGraph
        The distribution.
    messages : ndarray
        From each factor to each of its variables, one number for each value; copied.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations.factor_messages import FactorMessages
    >>> model = gb.PairwiseModel.build(gb.graphs.grid(1, 3), [0.5, 0.0, -0.2], [0.3, 0.8])
    >>> passing = FactorMessages(model.factors(), np.zeros(FactorMessages.size(model)))
    >>> sweeps, change = passing.settle(max_iter=100, tol=1e-12, damping=0.0)
    >>> bool(np.isclose(passing.log_partition(), gb.inference.exact(model).log_partition()))
    True
    """

    def __init__(self, factors: FactorGraph, messages: np.ndarray):
        self.factors = factors
        self.messages = np.array(messages)
        pairs = [(number, node) for number, factor in enumerate(factors.factors) for node in factor.nodes]
        views = _views(self.messages, [int(factors.cardinalities[node]) for _, node in pairs])
        self._into = dict(zip(pairs, views, strict=True))
        self._holding = {frozenset(factor.nodes): number for number, factor in enumerate(factors.factors)}

    @staticmethod
    def size(model: Model) -> int:
        """Return how many numbers the messages of a model are."""
        sizes = model.domain.cardinalities(model.n_variables)
        return int(sum(sizes[list(factor.nodes)].sum() for factor in model.factors().factors))

    def settle(self, max_iter: int, tol: float, damping: float) -> tuple[int, float]:
        """Send one message after the other until none changes by more than `tol`; return sweeps and last change."""
        change, sweep = np.inf, 0
        while sweep < max_iter and change > tol:
            change, sweep = max(self._send(*pair, damping) for pair in self._into), sweep + 1
        return sweep, change

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
