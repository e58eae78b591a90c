"""The pairwise Boltzmann machine as a scikit-learn estimator."""

from __future__ import annotations

import os
from typing import Any

from gibbsian.data import Dataset, preflight
from gibbsian.domain import require_two_values
from gibbsian.estimators.machine import ConvertibleMixin, Machine
from gibbsian.estimators.online import OnlineMixin
from gibbsian.estimators.pairwise_tables import PairwiseTablesMixin
from gibbsian.graphs import as_graph
from gibbsian.learners import Learner
from gibbsian.models import PairwiseModel
from gibbsian.rng import RandomState
from gibbsian.storage import Checkpoint


class BoltzmannMachine(PairwiseTablesMixin, ConvertibleMixin, OnlineMixin, Machine):
    """A fully visible pairwise Boltzmann machine (YU20 eq. 3), learned from two-valued data.

    Parameters
    ----------
    graph : "complete", Graph, networkx graph or list of pairs
        Which variables interact; pairs may use column names. Also ``"empty"``, ``"chain"``, ``"grid:RxC"``.
    learner : "auto", str or Learner
        ``"mle"`` (exact likelihood), ``"mple"`` (pseudolikelihood), any registered name, or a learner object with its
        own settings. ``"auto"`` takes the exact likelihood where one evaluation is quick, else pseudolikelihood, or
        ``"pcd"`` where cells are missing.
    l1, l2 : float
        Penalties ``l1 sum|coupling|`` and ``(l2/2) sum parameter^2`` on the mean loss per row, in the model's own
        coding.
    coding : "auto", str or pair of labels
        How the two values are written: recognised from the data, or declared (``"spin"``, ``"binary"``, ``"yes/no"``,
        ``("low", "high")``). Parameters belong to the coding: -1/+1 for ``"spin"``, 0/1 for all others.
    bias : bool
        Whether the model has biases.
    temperature : float
        T in ``P(x) = exp(-E(x)/T) / Z`` (YK15).
    max_iter : int
        Most steps of the learner.
    tol : float
        Converged when no entry of the gradient is larger.
    binarize : float, optional
        Turn numbers into 0/1 at this threshold first, in a fit and later; later data of zeros and ones only (samples,
        filled rows) have passed it already.
    start : None, str, model or machine
        Where the learner begins: at zero, at a mean-field solution (``"sessak-monasson"``, ``"bethe"``, ...), or at the
        parameters of another model.
    held_out : float
        Share of the rows to keep out of the fit; ``result_.held_out`` scores them.
    checkpoint : Checkpoint or path, optional
        Where to keep the progress of a fit.
    callback : callable, optional
        Called with the step number and its `StepInfo` after each step.
    random_state : None, int or Generator
        Where randomness comes from.

    Attributes
    ----------
    biases_ : pandas.Series
        The biases by column name.
    couplings_ : pandas.DataFrame
        The symmetric matrix of couplings by column name.
    result_ : FitResult
        Trace, convergence in words, provenance; ``result_.training`` compares moments, ``result_.held_out`` scores.
    model_ : PairwiseModel
        The distribution itself.
    coding_ : Coding
        The coding the machine was fitted in.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes()
    >>> bm = gb.BoltzmannMachine(learner="mple", l2=0.01).fit(votes.complete_rows())
    >>> bm.strongest_couplings(1)[["first", "second"]].values.tolist()
    [['physician-fee-freeze', 'republican']]
    >>> bm.result_.converged
    True
    """

    def __init__(
        self,
        graph: Any = "complete",
        learner: str | Learner = "auto",
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        coding: Any = "auto",
        bias: bool = True,
        temperature: float = 1.0,
        max_iter: int = 1000,
        tol: float = 1e-6,
        binarize: float | None = None,
        start: Any = None,
        held_out: float = 0.0,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
        callback: Any = None,
        random_state: RandomState = None,
    ):
        self.graph = graph
        self.learner = learner
        self.l1 = l1
        self.l2 = l2
        self.coding = coding
        self.bias = bias
        self.temperature = temperature
        self.max_iter = max_iter
        self.tol = tol
        self.binarize = binarize
        self.start = start
        self.held_out = held_out
        self.checkpoint = checkpoint
        self.callback = callback
        self.random_state = random_state

    def _zeros(self, data: Dataset) -> PairwiseModel:
        domain = require_two_values(data.domain)
        return PairwiseModel.zeros(as_graph(self.graph, data.names), domain, self.temperature, self.bias)

    def _preflight(self, data: Dataset, model: PairwiseModel, l1: float, l2: float) -> None:
        preflight(data, model.graph, l1=l1, l2=l2, bias=self.bias)
