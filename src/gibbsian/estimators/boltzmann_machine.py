"""The pairwise Boltzmann machine as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

from gibbsian.data import Dataset
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.machine import Convertible, Machine
from gibbsian.estimators.pairwise_tables import PairwiseTables
from gibbsian.graphs import as_graph
from gibbsian.models.base import Model
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.variables import require_two_values
from gibbsian.settings import declared, flag, free, positional

GRAPH = "Which variables interact; pairs may use column names. Also 'empty', 'chain', 'grid:RxC'."


@ESTIMATORS.register("pairwise", about="two values a column, a coupling for each pair")
@declared
class BoltzmannMachine(PairwiseTables, Convertible, Machine):
    """A fully visible pairwise Boltzmann machine (YU20 eq. 3), learned from two-valued data.

    Attributes
    ----------
    biases_ : pandas.Series
        The biases by column name.
    couplings_ : pandas.DataFrame
        The symmetric matrix of couplings by column name.
    result_ : FitResult
        Trace, convergence in words, provenance; ``result_.training`` compares moments, ``result_.held_out`` scores.
    model_ : Model of a PairwiseFamily
        The distribution itself.
    coding_ : Coding
        The coding the machine was fitted in.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes()
    >>> bm = gb.BoltzmannMachine(learner="mle", l2=0.01).fit(votes.complete_rows())
    >>> bm.strongest_couplings(1)[["first", "second"]].values.tolist()
    [['physician-fee-freeze', 'republican']]
    >>> bm.result_.converged
    True
    """

    learners = (*Machine.learners, "mean-field", "rise", "logrise", "rple")

    graph: Any = positional(
        kw_only=False, default=free("complete", GRAPH, doc="str, Graph, networkx graph or list of pairs")
    )
    bias: bool = flag(True, "Whether the model has biases.")

    _learns_from_disk = True

    def _zeros(self, data: Dataset) -> Model[PairwiseFamily]:
        require_two_values(data.variables)
        return Model.zeros(PairwiseFamily(as_graph(self.graph, data.names), data.variables, self.bias))
