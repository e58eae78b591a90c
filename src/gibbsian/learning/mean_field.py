"""Mean-field learning: parameters from the data's means and correlations by a formula, without iteration.

All formulas are those of spins, with ``m`` the means, ``C`` the connected correlations, ``K`` the inverse of C,
``v_i = 1 - m_i^2`` and ``L_ij = v_i v_j``. They approximate the maximum of the likelihood at weak couplings, in one
solve of an n x n system, and make good starts for every other learner (`warm_start`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gibbsian import graphs
from gibbsian.arrays import Floats, Integers, Mask
from gibbsian.data import Dataset
from gibbsian.diagnostics.moments import data_moments
from gibbsian.errors import (
    ArgumentError,
    ConstantColumnError,
    DataError,
    DegenerateDataWarning,
    MissingValuesError,
    notify,
)
from gibbsian.learning.base import LEARNERS, Fit
from gibbsian.learning.optimizers import Converged, StepInfo
from gibbsian.learning.potts_mean_field import inverted, solve_potts
from gibbsian.learning.recipe import Penalised
from gibbsian.models.base import Family, Model
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.families.tables import is_potts
from gibbsian.models.ising import is_ising
from gibbsian.resources import require_memory
from gibbsian.rng import Key
from gibbsian.settings import check, choice, declared, positional

_REMEDY = "drop one of them or give `l2=0.01`"


@dataclass(frozen=True)
class _Moments:
    """Means of the spins, and what the formulas need of each edge ``(i, j)``.

    `inverse` holds ``K_ij`` of the edges; zeros where a method does without them.
    """

    mean: Floats
    edges: Integers
    correlation: Floats
    inverse: Floats

    @property
    def variance(self) -> Floats:
        return 1.0 - self.mean**2

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Means at the two ends of each edge."""
        return self.mean[self.edges[:, 0]], self.mean[self.edges[:, 1]]

    def sum_at_ends(self, first: Floats, second: Floats) -> Floats:
        """Sum over the edges of a node what each gives to its first and to its second end."""
        n = self.mean.size
        sums = np.bincount(self.edges[:, 0], first, n) + np.bincount(self.edges[:, 1], second, n)
        return np.asarray(sums, np.float64)


class _Solution(NamedTuple):
    """Spin parameters, and the edges where the formula has no real value."""

    biases: Floats
    couplings: Floats
    unreal: Mask


@LEARNERS.register("mean-field", consistent=False, penalised=False, stepwise=False)
@declared(frozen=True)
class InverseMeanField(Penalised):
    """Parameters by a closed formula; one step, with no gradient to report.

    **Approximation.** ``"naive"`` mean field is off by second order in the couplings; ``"tap"`` adds the reaction term
    of Thouless, Anderson and Palmer; ``"bethe"`` is exact on trees; ``"independent-pair"`` is exact for two variables
    and the only one that needs no matrix inverse; ``"sessak-monasson"`` is their small-correlation expansion, loops and
    pairs together.

    **Graph.** The inverse of the correlation matrix is taken over all pairs of variables. Couplings are kept on the
    edges of the graph, and the biases balance those alone.

    **Coding, biases.** The formulas are evaluated for spins and the result is converted exactly to the
    model's coding. A spin model without biases has zero means, so the data's
    means are taken as zero and C is the matrix of plain second moments. A 0/1 model without biases keeps the
    couplings and leaves the biases out.

    **l2.** A uniform distribution with ``l2`` times the weight of the data is mixed into them (a pseudocount):
    means and second moments of spins are divided by ``1 + l2``. For weak couplings that is what the penalty
    ``(l2 / 2) theta^2`` does to the maximum of the likelihood; and it makes everything finite: a column with one
    value, a combination that never occurs, fewer rows than columns. L1 has no closed formula and is refused.

    **Missing cells.** Each moment is taken over the rows that show its cells, which is consistent where cells are
    missing completely at random. Such correlations need not be those of any rows; where their matrix has no inverse
    this is said.

    **Many values.** ``"naive"`` also serves the Potts model (see `potts_mean_field`); the others are for spins.

    **No real solution.** TAP and Bethe solve a quadratic equation for each pair. Where its roots are not real, for
    couplings too strong for the approximation, the pair gets the naive value ``-K_ij`` and a warning says so.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
    >>> learner = gb.learning.InverseMeanField("bethe")  # exact where pairs make no loop
    >>> gb.BoltzmannMachine(learner=learner).fit(rows).result_.reason
    "solved in closed form (bethe): the moments match the data's approximately"
    """

    takes = frozenset({"partitions"})

    approximation: str = positional(
        kw_only=False,
        default=choice(
            "naive",
            "The formula: of naive mean field, or a more exact one for two-valued columns.",
            "naive",
            "tap",
            "bethe",
            "independent-pair",
            "sessak-monasson",
        ),
    )

    def __post_init__(self) -> None:
        check(self)
        if self.l1:
            raise ArgumentError(
                f"`l1={self.l1}`",
                "`learner='mean-field'` is a closed formula without an L1 penalty: use `l2=`, "
                "or a learner such as 'mple'",
            )

    def bind(self, model: Model[Family], data: Dataset) -> MeanFieldFit:
        """Refuse what the formula cannot take; nothing is computed yet."""
        kind, tables = f"has no formula for a {type(model.family).__name__}", is_potts(model.family)
        if not is_ising(model.family) and not tables:
            raise ArgumentError(kind, "use 'mple' or 'pcd'", argument="learner", value="mean-field")
        if tables and self.approximation != "naive":
            raise ArgumentError(kind, "use 'naive'", argument="approximation", value=self.approximation)
        return MeanFieldFit(self, model, data)


class MeanFieldFit(Fit[Floats]):
    """A formula bound to a model and rows; the state is theta."""

    def __init__(self, learner: InverseMeanField, model: Model[Any], data: Dataset):
        self.learner, self.start, self.data = learner, model, data

    def init(self, key: Key, theta: Floats | None = None) -> tuple[Floats, StepInfo]:
        """Return the start."""
        return self.start.theta if theta is None else theta, StepInfo()

    def step(self, state: Floats) -> tuple[Floats, StepInfo]:
        """Evaluate the formula."""
        model, data, name = self.start, self.data, self.learner.approximation
        unreal: Integers = np.empty((0, 2), np.intp)
        if is_potts(model.family):
            theta = solve_potts(model.family, data, self.learner.l2)
        else:
            theta, unreal = _solve(name, model, data, self.learner.l2)
        if len(unreal):
            first, second = (data.names[node] for node in unreal[0])
            notify(
                DegenerateDataWarning(
                    f"has no real solution by {name!r} for {len(unreal)} of "
                    f"{model.family.graph.n_edges} pairs (first: {first!r} and {second!r}), which get the naive value",
                    "their couplings are too strong, raise `l2=` or use 'mple'",
                    argument="learner",
                    value="mean-field",
                )
            )
        solved = f"solved in closed form ({name}): the moments match the data's approximately"
        return theta, StepInfo(gradient_norm=0.0, step_size=1.0, evaluations=1, outcome=Converged(solved))

    def model(self, state: Floats) -> Model[Family]:
        """Return the model at a state."""
        return self.start.replace(state)


def warm_start(
    name: str, model: Model[PairwiseFamily], data: Dataset, l2: float | None = None
) -> Model[PairwiseFamily]:
    """Return the model with the parameters of a mean-field approximation, to start another learner from.

    Parameters
    ----------
    name : str
        ``"naive"``, ``"tap"``, ``"bethe"``, ``"independent-pair"`` or ``"sessak-monasson"``.
    model : Model
        The structure; its parameters do not matter.
    data : Dataset
        Data of its variables.
    l2 : float, optional
        Strength of the pseudocount (see `InverseMeanField`). By default the weight of ``n_variables`` rows, which keeps
        the start finite and moderate on any data.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(votes.n_variables), votes.variables))
    >>> start = gb.learning.mean_field.warm_start("sessak-monasson", model, votes)
    >>> bool(start.parts.couplings.any())
    True
    """
    if name not in _METHODS:
        raise ArgumentError("is not known", f"use one of {', '.join(_METHODS)}", argument="start", value=name)
    strength = data.n_variables / data.n_rows if l2 is None else l2
    theta, _ = _solve(name, model, data, strength)
    return model.replace(theta)


def _solve(method: str, model: Model[PairwiseFamily], data: Dataset, l2: float) -> tuple[Floats, Integers]:
    """Return theta in the model's own coding and the pairs without a real solution."""
    formula, needs_inverse = _METHODS[method]
    moments = (_full_moments if needs_inverse else _edge_moments)(model.family, data, l2)
    solution = formula(moments)
    spin = PairwiseFamily.model(model.family.graph, solution.biases, solution.couplings)
    converted, _ = spin.family.recode(spin.theta, model.variables)
    theta = converted.theta if model.family.bias else converted.parts.couplings
    return theta, model.family.graph.edges[solution.unreal]


# -- moments ----------------------------------------------------------------------------------------------------------
def _spin_moments(
    graph: graphs.Graph, family: PairwiseFamily, data: Dataset, pseudocount: float
) -> tuple[Floats, Floats]:
    """Return means, and connected correlations along the edges of any graph over the family's variables."""
    carrier = Model.zeros(PairwiseFamily(graph))
    present = data_moments(carrier, data)
    assert present is not None  # every moment of a pairwise model can be taken over present cells
    moments = present.mean / (1.0 + pseudocount)
    if np.isnan(moments).any():
        raise MissingValuesError(
            "some pair of columns is never present together", "drop one of them, or use `learner='mle'`"
        )
    raw = carrier.family.split(moments)
    symmetric = family.layout.low == -family.layout.gap / 2 and not family.bias
    mean = np.zeros(data.n_variables) if symmetric else raw.biases
    i, j = graph.edges.T
    constant = np.abs(mean) >= 1.0 - 1e-15
    if constant.any():
        name = data.names[int(np.argmax(constant))]
        raise ConstantColumnError(f"column {name!r} has one value only", "drop it or give `l2=0.01`")
    return mean, raw.couplings - mean[i] * mean[j]


def _edge_moments(family: PairwiseFamily, data: Dataset, pseudocount: float) -> _Moments:
    """Moments on the edges alone; sparse graphs need no n x n matrix."""
    mean, correlations = _spin_moments(family.graph, family, data, pseudocount)
    edges = family.graph.edges
    _check_cells(mean, correlations, edges, data)
    return _Moments(mean, edges, correlations, np.zeros(len(edges)))


def _full_moments(family: PairwiseFamily, data: Dataset, pseudocount: float) -> _Moments:
    """Moments on the edges, with the inverse of the full correlation matrix."""
    n = data.n_variables
    require_memory(
        6 * 8.0 * n**2,
        f"inverting the correlations of {n} variables",
        "take the approximation 'independent-pair', which needs the edges only",
    )
    every = graphs.complete(n)
    mean, correlations = _spin_moments(every, family, data, pseudocount)
    matrix = every.matrix(correlations)
    inverse = _inverse(matrix, 1.0 - mean**2, data)
    i, j = family.graph.edges.T
    return _Moments(mean, family.graph.edges, matrix[i, j], inverse[i, j])


def _inverse(correlations: Floats, variance: Floats, data: Dataset) -> Floats:
    """Invert C = `correlations` off the diagonal and `variance` on it; name the column that makes it singular."""
    scale = np.sqrt(np.outer(variance, variance))
    inverse, determined = inverted(correlations / scale + np.eye(len(variance)))
    if determined >= 0:
        raise DataError(
            f"column {data.names[determined]!r} is determined by the columns before it, so the correlation "
            "matrix has no inverse",
            _REMEDY,
        )
    return inverse / scale


def _check_cells(mean: Floats, correlations: Floats, edges: Integers, data: Dataset) -> None:
    """Name the first pair of which one combination of values never occurs."""
    i, j = edges.T
    least = np.min(_cells(mean[i], mean[j], correlations), axis=0)
    if (least <= 1e-15).any():
        pair = edges[int(np.argmax(least <= 1e-15))]
        first, second = (data.names[node] for node in pair)
        raise DataError(
            f"some combination of the columns {first!r} and {second!r} never occurs, so no finite coupling explains it",
            _REMEDY,
        )


# -- formulas ---------------------------------------------------------------------------------------------------------
def _naive(s: _Moments) -> _Solution:
    """Naive mean field: ``m_i = tanh(h_i + sum_j J_ij m_j)`` and its linear response."""
    couplings = -s.inverse
    return _Solution(_naive_biases(s, couplings), couplings, np.zeros(len(couplings), bool))


def _naive_biases(s: _Moments, couplings: Floats) -> Floats:
    first, second = s.ends
    return np.arctanh(s.mean) - s.sum_at_ends(couplings * second, couplings * first)


def _tap(s: _Moments) -> _Solution:
    """The naive equations with Onsager's reaction: ``-K_ij = J_ij + 2 J_ij^2 m_i m_j``."""
    first, second = s.ends
    root = 1.0 - 8.0 * first * second * s.inverse
    unreal = root < 0
    # the root that vanishes with K, without the division by m_i m_j
    couplings = np.where(unreal, -s.inverse, -2.0 * s.inverse / (1.0 + np.sqrt(np.maximum(root, 0.0))))
    v = s.variance
    i, j = s.edges.T
    reaction = s.mean * s.sum_at_ends(couplings**2 * v[j], couplings**2 * v[i])
    return _Solution(_naive_biases(s, couplings) + reaction, couplings, unreal)


def _bethe(s: _Moments) -> _Solution:
    """The Bethe approximation, exact on trees (Ricci-Tersenghi 2012; Nguyen and Berg 2012)."""
    first, second = s.ends
    k = s.inverse
    excess = np.sqrt(1.0 + 4.0 * (1 - first**2) * (1 - second**2) * k**2) - 2.0 * first * second * k
    root = excess**2 - 4.0 * k**2
    # tanh J must stay inside (-1, 1), and the root real
    ratio = 2.0 * k / (excess + np.sqrt(np.maximum(root, 0.0)))
    unreal = (root < 0) | (np.abs(ratio) >= 1.0)
    couplings = np.where(unreal, -k, -np.arctanh(np.where(unreal, 0.0, ratio)))
    pair_correlation = _correlation_of_pair(first, second, couplings)
    return _Solution(_pair_biases(s, pair_correlation), couplings, unreal)


def _correlation_of_pair(first: Floats, second: Floats, couplings: Floats) -> Floats:
    """Return the connected correlation of two spins with the given means and coupling.

    The odds ratio of their table is ``exp(4 J)``, which makes the probability of two ups the root of a quadratic.
    """
    sign = np.where(couplings < 0, -1.0, 1.0)  # turning one spin over makes every coupling positive
    p, q = (1.0 + first) / 2.0, (1.0 + sign * second) / 2.0
    excess = np.expm1(4.0 * np.abs(couplings))
    linear = 1.0 + (p + q) * excess
    both_up = 2.0 * (1.0 + excess) * p * q / (linear + np.sqrt(linear**2 - 4.0 * (1.0 + excess) * excess * p * q))
    return 4.0 * sign * (both_up - p * q)


def _independent_pair(s: _Moments) -> _Solution:
    """Each pair as if it were alone; exact for two variables."""
    up_up, up_down, down_up, down_down = _cells(*s.ends, s.correlation)
    couplings = 0.25 * np.log(up_up * down_down / (up_down * down_up))
    return _Solution(_pair_biases(s, s.correlation), couplings, np.zeros(len(couplings), bool))


def _pair_biases(s: _Moments, correlation: Floats) -> Floats:
    """Fields of the spins alone, changed by each pair as if it were the only one."""
    up_up, up_down, down_up, down_down = _cells(*s.ends, correlation)
    alone = np.arctanh(s.mean)
    i, j = s.edges.T
    at_first = 0.25 * np.log(up_up * up_down / (down_up * down_down)) - alone[i]
    at_second = 0.25 * np.log(up_up * down_up / (up_down * down_down)) - alone[j]
    return alone + s.sum_at_ends(at_first, at_second)


def _cells(first: Floats, second: Floats, correlation: Floats) -> tuple[Floats, ...]:
    """Four times the probabilities of up-up, up-down, down-up and down-down."""
    return (
        (1 + first) * (1 + second) + correlation,
        (1 + first) * (1 - second) - correlation,
        (1 - first) * (1 + second) - correlation,
        (1 - first) * (1 - second) + correlation,
    )


def _sessak_monasson(s: _Moments) -> _Solution:
    """Sum all loops and all pairs, and take out what both contain (Sessak and Monasson 2009).

    Couplings and biases are the slopes of the entropy ``S_pairs + (1/2) log det M - (1/2) sum log(1 - M_ij^2)``, M the
    correlation matrix with unit diagonal: minus its derivatives by ``<x_i x_j>`` and ``<x_i>``.
    """
    pairs = _independent_pair(s)
    first, second = s.ends
    v = s.variance
    i, j = s.edges.T
    unexplained = v[i] * v[j] - s.correlation**2
    couplings = pairs.couplings - s.inverse - s.correlation / unexplained
    at_first = s.inverse * second + (s.correlation * second - first * v[j]) / unexplained + first / v[i]
    at_second = s.inverse * first + (s.correlation * first - second * v[i]) / unexplained + second / v[j]
    # inverse_ii - 1 / v_i is minus the sum over j of inverse_ij correlation_ij / v_i: only edges may count in it
    shared = s.inverse * s.correlation
    loops = s.sum_at_ends(at_first, at_second) - s.mean / v * s.sum_at_ends(shared, shared)
    return _Solution(pairs.biases + loops, couplings, pairs.unreal)


# approximation -> (formula, whether it needs the inverse of the correlation matrix)
_METHODS: dict[str, tuple[Callable[[_Moments], _Solution], bool]] = {
    "naive": (_naive, True),
    "tap": (_tap, True),
    "bethe": (_bethe, True),
    "independent-pair": (_independent_pair, False),
    "sessak-monasson": (_sessak_monasson, True),
}
