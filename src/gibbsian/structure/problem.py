"""The data and candidate edges of a search for the structure, and the refit that ends it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.arrays import Floats, Mask
from gibbsian.data import Dataset, preflight
from gibbsian.display import Shown
from gibbsian.errors import (
    ArgumentError,
    ConstantColumnError,
    ConvergenceWarning,
    DegenerateDataWarning,
    MaximumDoesNotExistError,
    notify,
)
from gibbsian.estimators import BoltzmannMachine
from gibbsian.expectations.imputation import mean_statistics
from gibbsian.graphs import Graph, as_graph
from gibbsian.learning import Learner
from gibbsian.learning.objectives import Function
from gibbsian.learning.optimizers import LBFGS
from gibbsian.learning.optimizers.base import gradient_norm
from gibbsian.models import Model, PairwiseFamily
from gibbsian.models.base import DiscreteFamily
from gibbsian.startup import pandas


@dataclass(frozen=True, repr=False)
class StructureResult(Shown):
    """A graph, the machine refitted on it, and how it was chosen.

    Parameters
    ----------
    graph : Graph
        The edges that were kept.
    machine : BoltzmannMachine
        Fitted on that graph, without the penalty that chose it.
    path : pandas.DataFrame
        One row per candidate that was tried, with the criterion that chose among them.
    names : tuple of str
        The variables.
    method : str
        The method that chose the graph.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> found = gb.structure.learn_structure(votes, method="l1-ebic", ratio=0.1, l2=0.01)
    >>> ("physician-fee-freeze", "republican") in found.edges()
    True
    """

    graph: Graph
    machine: BoltzmannMachine
    path: pandas.DataFrame
    names: tuple[str, ...]
    method: str

    def _facts(self) -> dict[str, object]:
        return {"method": self.method, "variables": len(self.names), "edges": self.graph.n_edges}

    def edges(self) -> list[tuple[str, str]]:
        """Return the edges by the variables' names."""
        return [(self.names[i], self.names[j]) for i, j in self.graph.edges]


class Options(TypedDict, total=False):
    """The settings of all methods: those of `Problem.read`."""

    graph: object
    coding: object
    sample_weight: ArrayLike | None
    bias: bool
    learner: str | Learner
    l2: float


@dataclass(frozen=True)
class Problem:
    """The data, once as given and once in spins, the candidate edges, and the settings of the refit."""

    data: Dataset
    spins: Dataset
    candidates: Graph
    bias: bool
    learner: str | Learner
    l2: float

    @classmethod
    def read(
        cls,
        X: object,
        *,
        graph: object = "complete",
        coding: object = "auto",
        sample_weight: ArrayLike | None = None,
        bias: bool = True,
        learner: str | Learner = "auto",
        l2: float = 0.0,
    ) -> Self:
        """Read the data and refuse what no method can use; the options are those of `learn_structure`."""
        data: Dataset = BoltzmannMachine(coding=coding)._read(X, fitting=True, sample_weight=sample_weight)
        data.require_complete("structure learning", instead="")
        candidates = as_graph(graph, data.names)
        if candidates.n_edges == 0:
            raise ArgumentError(
                "has no edges to choose from", "give the candidates, or 'complete'", argument="graph", value=graph
            )
        return cls(data, data.convert("spin"), candidates, bias, learner, l2)

    def check(self, *, l1: float = 0.0) -> None:
        """Refuse data on which the fits of a method have no finite solution; the refit gives the warnings.

        Fits with an L1 penalty do without the ridge, so nothing then holds the bias of a constant column.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)
            try:
                model: Model[DiscreteFamily] = Model.zeros(PairwiseFamily(self.candidates, bias=self.bias))
                preflight(self.spins, model, l1=l1, l2=0.0 if l1 else self.l2)
            except ConstantColumnError as error:
                remedy = error.remedy.replace(" or add a penalty by `l2='auto'`", "")
                raise ConstantColumnError(
                    error.reason, remedy
                ) from None  # the ridge is that of the refit: it would not help
            except MaximumDoesNotExistError as error:
                number = f"such as `l2={1 / self.data.total_weight:.2g}`"  # the refit has no default to fall back on
                raise MaximumDoesNotExistError(error.reason, error.remedy.replace("by `l2='auto'`", number)) from None

    def independent(self) -> Model[PairwiseFamily]:
        """Return the best model of spins without couplings: each variable with its own mean."""
        inside = 1.0 - 1e-9  # a constant column, where a ridge allows it, starts from a finite field
        fields = np.arctanh(np.clip(self.means, -inside, inside)) if self.bias else None
        return PairwiseFamily.model(self.candidates, fields, np.zeros(self.candidates.n_edges))

    @property
    def means(self) -> Floats:
        """Mean of each spin."""
        means: Floats = self.spins.mean(
            lambda part: part.weights @ part.variables.scores_of(part.states) / part.total_weight
        )
        return means

    def covariances(self) -> Floats:
        """Return ``E[s_i s_j] - E[s_i] E[s_j]`` over the candidates; without biases the plain second moments."""
        products = mean_statistics(Model.zeros(PairwiseFamily(self.candidates, bias=False)), self.spins)
        i, j = self.candidates.edges.T
        return products - self.means[i] * self.means[j] if self.bias else products

    def answer(self, chosen: Mask, path: pandas.DataFrame, method: str) -> StructureResult:
        """Refit on the chosen candidates."""
        graph = Graph(self.candidates.n_nodes, self.candidates.edges[chosen])
        penalty = self.l2 or "auto"  # the search has ended: a refit without a finite maximum falls back on 1 / rows
        machine = BoltzmannMachine(graph, learner=self.learner, l2=penalty, bias=self.bias)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # its remedies are settings of a fit, not of a search
            machine.fit(self.data)
        if not machine.result_.converged:
            remedy = "add a penalty by `l2`, choose another `learner`, or fit a machine on the graph"
            notify(ConvergenceWarning(f"the refit has {machine.result_.without_hint}", remedy))
        return StructureResult(graph, machine, path, self.data.names, method)


def minimise(function: Function, theta: Floats, l1: Floats, *, tol: float = 1e-6, max_iter: int = 2000) -> Floats:
    """Return the minimum of ``function + sum(l1 |theta|)``, starting at `theta`; warn where it is not reached."""
    optimizer = LBFGS()
    state = optimizer.init(function, theta, l1)
    norm, stalled = gradient_norm(state.theta, state.gradient, l1), False
    for _ in range(max_iter):
        if norm <= tol or stalled:
            break
        state, info = optimizer.step(function, state, l1)
        norm, stalled = info.gradient_norm, info.outcome is not None
    if norm > tol:
        reason = f"a fit on the way to the structure stopped at gradient {norm:.2g}"
        notify(ConvergenceWarning(reason, f"raise `tol={tol}`"))
    return state.theta


def combine(first: Mask, second: Mask, rule: str) -> Mask:
    """Combine the choices of both ends of each edge: both for ``"and"``, either for ``"or"``."""
    if rule not in ("and", "or"):
        raise ArgumentError("must be 'and' or 'or'", argument="rule", value=rule)
    return first & second if rule == "and" else first | second
