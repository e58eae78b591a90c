"""The pairwise Boltzmann machine with hidden units as a scikit-learn estimator."""

from __future__ import annotations

import os
from dataclasses import replace
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gibbsian.data import Dataset, preflight
from gibbsian.data.hidden_columns import (
    graph_with_hidden,
    has_hidden,
    hidden_names,
    visible_graph,
    with_hidden,
    without_hidden,
)
from gibbsian.diagnostics.evidence import log_evidence_interval
from gibbsian.diagnostics.partition import log_partition_interval
from gibbsian.domain import SPIN, require_two_values
from gibbsian.errors import ArgumentError, MissingValuesError, TooExpensiveError
from gibbsian.estimators.answers import FEWER_BETAS
from gibbsian.estimators.fitting import check_memory, start_from
from gibbsian.estimators.hidden_answers import HiddenAnswersMixin
from gibbsian.estimators.machine import ConvertibleMixin, Machine
from gibbsian.estimators.pairwise_tables import PairwiseTablesMixin
from gibbsian.expectations import CLAMPED
from gibbsian.inference import exact, predict_cost_of
from gibbsian.inference.missing import PATIENT_SECONDS, log_evidence
from gibbsian.learners import LEARNERS, FitResult, Learner
from gibbsian.learners.hidden import break_symmetry
from gibbsian.models import PairwiseModel
from gibbsian.models.parameters import check_whole_number
from gibbsian.rng import RandomState
from gibbsian.samplers.annealing import Annealing
from gibbsian.storage import Checkpoint, StoredModel

# Learners that take variables which are never seen.
LEARNERS_OF_HIDDEN = ("em", "mle", "pcd", "cd", "smci-pcd")
# Clamped phases by Markov chains.
SAMPLED = ("chains", "spatial")
# Where a file says that a model has hidden units, and how many.
HIDDEN_UNITS = "hidden_units"


class HiddenBoltzmannMachine(PairwiseTablesMixin, ConvertibleMixin, HiddenAnswersMixin, Machine):
    """A pairwise Boltzmann machine with hidden units on any graph (YK15), learned from two-valued data.

    Visible and hidden units x = (v, h) have one energy, and the data show v only. The likelihood of a row is summed
    over h; its gradient is the expected statistics with v clamped to the row less those of the free machine. Hidden
    units let a pairwise machine have interactions of any order between the columns; missing cells are hidden units of
    their row.

    Parameters
    ----------
    n_hidden : int
        Number of hidden units.
    graph : "complete", "restricted", "semi-restricted", Graph, networkx graph or list of pairs
        Which units interact: all; every column with every hidden unit; that and every pair of columns; or as listed,
        over the columns and then the hidden units, which are called h0, h1, ...
    learner : "auto", str or Learner
        ``"mle"`` (exact likelihood), ``"em"`` (the same by expectation and maximisation), ``"pcd"`` (chains in both
        phases), or a learner object with its own settings. ``"auto"`` takes the exact likelihood where an evaluation
        is quick, else ``"pcd"``.
    clamped : "auto", "exact", "chains", "spatial" or "mean-field"
        How hidden units and missing cells are averaged over given the row: all their values; Gibbs chains; the chains
        with each statistic summed over its own cells (1-SMCI), which has less noise; or independently of each other, by
        the free energy of YK15. ``"auto"`` is exact where that is predicted to be quick, else chains. With
        ``learner="auto"`` chains lead to ``"pcd"`` and mean field to ``"em"`` where the machine is small enough.
    l1, l2 : float
        Penalties as in `BoltzmannMachine`. Hidden units often let the likelihood rise for ever, so ``l2=0.01`` or so
        is a good thing to have.
    coding, bias, temperature, max_iter, tol, binarize
        As in `BoltzmannMachine`; hidden units have the values of the columns' coding.
    start : None, model or machine
        Where the learner begins: at random couplings of the hidden units, which would all be alike otherwise, or at
        the parameters of another model on the same graph.
    n_init : int
        Random starts, of which the most likely result is kept; the likelihood has several maxima.
    held_out : float
        Share of the rows to keep out of the fit; ``result_.held_out`` scores them.
    checkpoint : Checkpoint or path, optional
        Where to keep the progress of a fit; later starts add ``.1``, ``.2``, ... to the name.
    callback : callable, optional
        Called with the step number and its `StepInfo` after each step.
    random_state : None, int or Generator
        Where randomness comes from.

    Attributes
    ----------
    names_, hidden_names_ : tuple of str
        The columns, and the hidden units.
    biases_, couplings_, result_, model_, coding_
        As in `BoltzmannMachine`, over columns and hidden units.

    Examples
    --------
    The exclusive or, which no pairwise machine of the three columns alone can tell from noise:

    >>> import gibbsian as gb
    >>> rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 25
    >>> round(gb.BoltzmannMachine().fit(rows).score(rows), 3)                      # log 1/8
    -2.079
    >>> round(gb.HiddenBoltzmannMachine(1, l2=1e-5, random_state=0).fit(rows).score(rows), 2)      # log 1/4
    -1.39
    """

    def __init__(
        self,
        n_hidden: int = 1,
        graph: Any = "complete",
        learner: str | Learner = "auto",
        *,
        clamped: str = "auto",
        l1: float = 0.0,
        l2: float = 0.0,
        coding: Any = "auto",
        bias: bool = True,
        temperature: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-6,
        binarize: float | None = None,
        start: Any = None,
        n_init: int = 1,
        held_out: float = 0.0,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
        callback: Any = None,
        random_state: RandomState = None,
    ):
        self.n_hidden = n_hidden
        self.graph = graph
        self.learner = learner
        self.clamped = clamped
        self.l1 = l1
        self.l2 = l2
        self.coding = coding
        self.bias = bias
        self.temperature = temperature
        self.max_iter = max_iter
        self.tol = tol
        self.binarize = binarize
        self.start = start
        self.n_init = n_init
        self.held_out = held_out
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state

    # -- reading ------------------------------------------------------------------------------------------------------
    def _read(self, X: Any, fitting: bool = False, sample_weight: Any = None) -> Dataset:
        """Read the columns, and put the hidden units after them as columns that are always missing."""
        n_hidden = self._checked_n_hidden() if fitting else self._n_hidden
        if isinstance(X, Dataset) and has_hidden(X, n_hidden):
            X = without_hidden(X, n_hidden)
        data = super()._read(X, fitting, sample_weight)
        require_two_values(data.domain)
        return with_hidden(data, n_hidden)

    def _checked_n_hidden(self) -> int:
        if self.n_hidden == 0 and not isinstance(self.n_hidden, bool):
            raise ArgumentError("leaves columns only", "use a BoltzmannMachine", argument="n_hidden", value=0)
        check_whole_number("n_hidden", self.n_hidden, least=1)
        return int(self.n_hidden)

    @property
    def variable_names_(self) -> tuple[str, ...]:
        """The columns, and after them the hidden units."""
        return self.names_ + self.hidden_names_

    @property
    def n_iter_(self) -> int:
        """Steps of the fit."""
        check_is_fitted(self, "result_")
        return self.result_.n_steps

    # -- learning -----------------------------------------------------------------------------------------------------
    def _zeros(self, data: Dataset) -> PairwiseModel:
        graph = graph_with_hidden(self.graph, data.names, self._checked_n_hidden())
        return PairwiseModel.zeros(graph, require_two_values(data.domain), self.temperature, self.bias)

    def _check_memory(self, data: Dataset, model: PairwiseModel) -> None:
        check_memory(data, model, "units", "lower n_hidden")

    def _preflight(self, data: Dataset, model: PairwiseModel, l1: float, l2: float) -> None:
        """Check the columns and the edges between them: what no row shows rules a maximum out with hidden units too."""
        n_hidden = self._checked_n_hidden()
        preflight(without_hidden(data, n_hidden), visible_graph(model.graph, n_hidden), l1=l1, l2=l2, bias=self.bias)

    def _settle_learner(self, data: Dataset) -> str | Learner:
        return super()._settle_learner(with_hidden(data, self._checked_n_hidden()))

    def _choose_learner(self, model: PairwiseModel, data: Dataset) -> str | Learner:
        """Settle ``"auto"``: who sets how the rows are averaged over has said which learners are meant."""
        if self._checked_clamped() == "auto" or not isinstance(self.learner, str) or self.learner != "auto":
            return super()._choose_learner(model, data)
        if self.clamped in SAMPLED or predict_cost_of(model).seconds > PATIENT_SECONDS:
            return "pcd"
        return "mle" if self.clamped == "exact" else "em"

    def _learner_settings(self, name: str | Learner) -> dict[str, Any]:
        settings, clamped = super()._learner_settings(name), self._checked_clamped()
        if clamped == "auto" or (name, clamped) == ("mle", "exact"):
            return settings
        if isinstance(name, str) and "clamped" not in signature(LEARNERS.factory(name)).parameters:
            raise ArgumentError(
                f"is not for `learner={name!r}`",
                "use one of em, pcd, cd, smci-pcd, or `clamped='auto'`",
                argument="clamped",
                value=clamped,
            )
        return {**settings, "clamped": clamped}

    def _checked_clamped(self) -> str:
        if self.clamped not in ("auto", *CLAMPED):
            raise ArgumentError(
                "is not known", f"use one of auto, {', '.join(CLAMPED)}", argument="clamped", value=self.clamped
            )
        return self.clamped

    def _run_learner(
        self, learner: Learner, model: PairwiseModel, data: Dataset, rng: np.random.Generator
    ) -> FitResult:
        """Run the learner from each start and keep the most likely result."""
        check_whole_number("n_init", self.n_init, least=1)
        if isinstance(self.start, str):
            raise ArgumentError(
                "needs every unit to be visible", "start from None or a model", argument="start", value=self.start
            )
        if self.start is not None:
            return self._run(learner, start_from(self.start, model, data), data, rng)
        best: FitResult | None = None
        for number in range(self.n_init):
            result = self._run(learner, _scattered(model, self.n_hidden, rng), data, rng, number)
            if best is None or self._loss(result, data, rng) < self._loss(best, data, rng):
                best = result
        assert best is not None
        return best

    def _run(
        self, learner: Learner, model: PairwiseModel, data: Dataset, rng: np.random.Generator, number: int = 0
    ) -> FitResult:
        try:
            return self._train(learner, model, data, rng, number)
        except MissingValuesError:
            name = f"learner={self.learner!r}" if isinstance(self.learner, str) else "this learner"
            known = ", ".join(LEARNERS_OF_HIDDEN)
            raise ArgumentError(
                f"{name} needs every unit to be visible", f"with hidden units use one of {known}"
            ) from None

    def _loss(self, result: FitResult, data: Dataset, rng: np.random.Generator) -> float:
        """What the starts are compared by: the objective where the learner knows it, else minus the log-likelihood.

        Where log Z is out of reach the lower side of the likelihood counts, so that a start which chains cannot get out
        of is not taken for a good one.
        """
        value = float(result.trace.rows[-1][1])
        if np.isfinite(value):
            return value
        model = result.model
        try:
            log_partition, evidence = exact(model).log_partition(), log_evidence(model, data)
        except TooExpensiveError:
            annealing = Annealing(betas=FEWER_BETAS)
            log_partition = log_partition_interval(model, annealing=annealing, rng=rng, warn=False).upper
            evidence = log_evidence_interval(model, data, annealing, rng).lower
        return float(log_partition - np.average(evidence, weights=data.weights))

    def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self:
        n_hidden = result.provenance[HIDDEN_UNITS]  # the setting may have been changed since the fit
        columns = names[: result.model.n_variables - n_hidden]
        self.hidden_names_ = hidden_names(columns, n_hidden)
        return super()._set_fitted(result, coding, columns)

    def _provenance(self, name: str | Learner, learner: Learner, data: Dataset, result: FitResult) -> dict[str, Any]:
        told = super()._provenance(name, learner, without_hidden(data, self.n_hidden), result)
        return {**told, HIDDEN_UNITS: self.n_hidden}

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Rebuild a fitted machine from what a file holds: its names are those of columns and hidden units."""
        n_hidden = stored.provenance[HIDDEN_UNITS]
        settings = {**stored.settings, "n_hidden": n_hidden}
        return super().from_stored(replace(stored, names=stored.names[:-n_hidden], settings=settings))


def _scattered(model: PairwiseModel, n_hidden: int, rng: np.random.Generator) -> PairwiseModel:
    """Return random couplings of the hidden units from which learning can start.

    As spins, whatever the coding, and so large that the field on a hidden unit is about one. Smaller couplings leave
    hidden units near a point where the likelihood is flat: of ten starts on the exclusive or in spins, couplings of
    0.01, 0.1 and 0.5 let none to five, nine or ten, and all ten learn it, on each of four graphs.
    """
    hidden = np.arange(model.n_variables) >= model.n_variables - n_hidden
    scale = 1.0 / np.sqrt(model.graph.degrees[hidden].mean())
    if not model.bias:  # there are no biases to convert with; a product of 0/1 is a quarter of that of spins
        alone: Any = break_symmetry(model, hidden, rng, scale * (SPIN.gap / model.domain.gap) ** 2)
        return alone
    spins: Any = break_symmetry(model.to_domain(SPIN)[0], hidden, rng, scale)
    return spins.to_domain(model.domain)[0]
