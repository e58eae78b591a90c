"""A hidden variable, learned by expectation-maximisation, for systems whose joint table is small.

The model is a full-span model of the visible variables and one more that no row shows. With ``q(x, h) = p_d(x)
p(h | x)`` of the present model,

    KL(p_d || p'(x)) <= KL(q || p'(x, h))   for every model p', with equality at the present one,

so any step that lowers the right-hand side plus penalties, a fit of the joint table, lowers the cost of the
visible variables at least as much: every round is one fit that goes on from the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from gibbsian.backends.numba.axes import transform
from gibbsian.full_span.checks import check_known, check_number, checked_counts
from gibbsian.full_span.dense import fit_dense
from gibbsian.full_span.fit import check_algorithm
from gibbsian.full_span.greedy import Greedy, refreshed
from gibbsian.full_span.newton import refit
from gibbsian.full_span.problem import SpanProblem
from gibbsian.learners import LearnerState
from gibbsian.models.full_span import FullSpanModel, fill_probabilities
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.span_basis import SpanBasis
from gibbsian.rng import RandomState, as_generator

# How much less likely a class is, at the start, with each variable in which a row differs from its centre.
_NEARNESS = 1.0


@dataclass(frozen=True, eq=False)
class HiddenFit:
    """A model with a hidden variable, which is the last of the joint model.

    Parameters
    ----------
    joint : FullSpanModel
        Of the visible variables and the hidden one.
    costs : tuple of float
        Cost of the visible variables, penalties included, after each round: it never rises.
    converged : bool
        Whether the last round lowered the cost by less than the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import fit_hidden
    >>> states = np.array([[0, 0, 0], [1, 1, 1], [0, 1, 0]])
    >>> fit = fit_hidden(states, [40, 30, 5], (2, 2, 2), n_hidden=2, random_state=0)
    >>> fit.joint.cardinalities, fit.probabilities().shape, bool(np.all(np.diff(fit.costs) <= 1e-12))
    ((2, 2, 2, 2), (8,), True)
    """

    joint: FullSpanModel
    costs: tuple[float, ...]
    converged: bool

    @property
    def visible(self) -> SpanBasis:
        """The functions of the visible variables."""
        return SpanBasis(self.joint.cardinalities[:-1])

    def joint_probabilities(self) -> np.ndarray:
        """Return ``p(x, h)``, one row for each state of the visible variables."""
        return self.joint.probabilities().reshape(-1, self.joint.cardinalities[-1])

    def probabilities(self) -> np.ndarray:
        """Return the probability of every state of the visible variables, in the order of their indices."""
        return self.joint_probabilities().sum(axis=1)

    def log_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return the logarithm of the probability of each row of codes of the visible variables."""
        return logsumexp(self._joint_log_probabilities(states), axis=1)

    def responsibilities(self, states: np.ndarray) -> np.ndarray:
        """Return the probabilities of the hidden values given each row of codes."""
        return softmax(self._joint_log_probabilities(states), axis=1)

    def _joint_log_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return ``ln p(x, h)``, one row for each row of codes; logarithms do not underflow."""
        states = np.asarray(states)
        self.visible.indices(states)
        each = [np.column_stack([states, np.full(len(states), h)]) for h in range(self.joint.cardinalities[-1])]
        return np.column_stack([self.joint.log_probabilities(rows) for rows in each])


def fit_hidden(
    states: np.ndarray,
    counts: np.ndarray | Sequence[float],
    cardinalities: Sequence[int],
    *,
    n_hidden: int = 2,
    algorithm: str = "newton",
    epsilon: float = 1e-4,
    n_starts: int = 1,
    max_rounds: int = 100,
    tolerance: float = 1e-5,
    random_state: RandomState = None,
    **settings: Any,
) -> HiddenFit:
    """Learn a full-span model with one hidden variable.

    Parameters
    ----------
    states, counts, cardinalities
        The visible variables, as in `fit_full_span`. Of a dataset: ``*counted(data)``.
    n_hidden : int
        How many values the hidden variable takes; a power of two makes the fastest tables.
    algorithm : {"greedy", "newton", "dense"}
        What a round does: greedy moves, the same and a re-fit of all parameters, or a fit of all functions under L2.
    epsilon : float
        Greedy moves of a round end when none lowers the cost by as much.
    n_starts : int
        From how many starts; the fit of lowest cost is returned, since the cost has many local minima.
    max_rounds, tolerance
        Stop after as many rounds, or when one lowers the cost by less.
    random_state : None, int or Generator
        For the rows around which the classes start.
    **settings
        Penalties of `SpanProblem.build`.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span import fit_hidden
    >>> states = np.array(list(np.ndindex(2, 2, 2, 2, 2)))
    >>> many_ones, few_ones = (np.prod(np.where(states, q, 1 - q), axis=1) for q in (0.9, 0.2))
    >>> fit = fit_hidden(states, 500 * (many_ones + few_ones), (2,) * 5, n_starts=3, random_state=0)
    >>> fit.responsibilities(np.array([[0] * 5, [1] * 5])).max(axis=1) > 0.9
    array([ True,  True])
    """
    check_algorithm(algorithm)
    check_known(settings, SpanProblem.build)
    check_whole_number("n_hidden", n_hidden, least=2)  # with one value nothing is hidden
    check_whole_number("max_rounds", max_rounds)
    check_whole_number("n_starts", n_starts)
    check_number("epsilon", epsilon)
    check_number("tolerance", tolerance)
    rows = _Rows.build(states, counts, cardinalities, n_hidden, settings)
    rng = as_generator(random_state)
    fits = []
    for _ in range(n_starts):
        maximiser = _Dense() if algorithm == "dense" else _Sparse(epsilon, refits=algorithm == "newton")
        fits.append(_one_fit(rows, maximiser, rows.start(rng), max_rounds, tolerance))
    return min(fits, key=lambda fit: fit.costs[-1])


def _one_fit(
    rows: _Rows, maximiser: _Dense | _Sparse, responsibilities: np.ndarray, max_rounds: int, tolerance: float
) -> HiddenFit:
    """Go round from given classes of the rows until the cost stays."""
    costs: list[float] = []
    converged = False
    while not converged and len(costs) < max_rounds:
        problem = rows.problem(responsibilities)
        theta, penalties = maximiser.lower(problem)
        table = np.empty(problem.basis.size)
        fill_probabilities(table, problem.basis, np.arange(table.size), theta)
        joint = table.reshape(-1, responsibilities.shape[1])[rows.distinct]
        visible = joint.sum(axis=1, keepdims=True)
        costs.append(rows.divergence(visible[:, 0]) + penalties)
        converged = len(costs) > 1 and costs[-2] - costs[-1] < tolerance
        responsibilities = joint / visible
    used = np.flatnonzero(theta)
    return HiddenFit(FullSpanModel(problem.basis, used, theta[used]), tuple(costs), converged)


@dataclass(frozen=True)
class _Rows:
    """The distinct visible states and their shares."""

    states: np.ndarray
    distinct: np.ndarray
    shares: np.ndarray
    empty: SpanProblem  # of the joint variables, before any hidden value is known

    @classmethod
    def build(cls, states, counts, cardinalities, n_hidden, settings) -> _Rows:
        states = np.asarray(states)
        counts = checked_counts(counts, len(states))
        joint = (*cardinalities, n_hidden)
        shown = np.column_stack([states, np.zeros(len(states), np.int64)]) if states.ndim == 2 else states
        empty = SpanProblem.build(shown, counts, joint, **settings)
        distinct, first, place = np.unique(
            SpanBasis(joint[:-1]).indices(states), return_index=True, return_inverse=True
        )
        shares = np.bincount(place, weights=counts) / counts.sum()
        seen = shares > 0
        return cls(states[first[seen]], distinct[seen], shares[seen], empty)

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Return the classes of rows at the start: the nearer to a row drawn for each, the more likely."""
        n_hidden = self.empty.basis.cardinalities[-1]
        n_centres = min(n_hidden, len(self.states))
        centres = self.states[rng.choice(len(self.states), n_centres, replace=False, p=self.shares)]
        differs = (self.states[:, None, :] != centres[None, :, :]).sum(axis=2)
        nearness = np.zeros((len(self.states), n_hidden))
        nearness[:, :n_centres] = np.exp(-_NEARNESS * (differs - differs.min(axis=1, keepdims=True)))
        return nearness / nearness.sum(axis=1, keepdims=True)

    def problem(self, responsibilities: np.ndarray) -> SpanProblem:
        """Return the problem of the joint table ``q``."""
        table = np.zeros_like(self.empty.data_dual)
        completed = self.shares[:, None] * responsibilities
        table.reshape(-1, responsibilities.shape[1])[self.distinct] = completed
        transform(table, self.empty.basis.shape)
        table.flags.writeable = False
        some = completed[completed > 0]
        return replace(self.empty, data_dual=table, negative_entropy=float(some @ np.log(some)))

    def divergence(self, probabilities: np.ndarray) -> float:
        """Return ``KL(p_d || p)`` of the visible variables, from the probabilities of the distinct states."""
        return float(self.shares @ np.log(self.shares / probabilities))


class _Dense:
    """Fits of all functions, each started from the one before."""

    def __init__(self) -> None:
        self._theta: np.ndarray | None = None

    def lower(self, problem: SpanProblem) -> tuple[np.ndarray, float]:
        """Return parameters of lower cost, and what their penalties are."""
        fit = fit_dense(problem, self._theta)
        self._theta = fit.theta
        return fit.theta, fit.cost - fit.divergence


class _Sparse:
    """Greedy moves, and a re-fit at their end, from the functions of the round before."""

    def __init__(self, epsilon: float, refits: bool) -> None:
        self._learner, self._refits = Greedy(epsilon), refits
        self._indices, self._theta = np.empty(0, np.int64), np.empty(0)
        self._dual: np.ndarray | None = None

    def lower(self, problem: SpanProblem) -> tuple[np.ndarray, float]:
        """Return parameters of lower cost, and what their penalties are."""
        if self._dual is None:
            self._dual = self._learner.init(problem).progress.dual
        state = LearnerState(problem, refreshed(problem, self._dual, self._indices, self._theta))
        kind = ""
        while kind != "stop":
            state, step = self._learner.step(state)
            kind = step.kind
        progress = refit(problem, state.progress) if self._refits else state.progress
        self._indices, self._theta = progress.indices, progress.theta
        theta = np.zeros(problem.basis.size)
        theta[progress.indices] = progress.theta
        penalties = float(problem.penalties(progress.indices).sum())
        return theta, penalties + problem.shrinks(progress.indices, progress.theta)
