"""Markov random fields of any potentials as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.domain import Continuum, RealCoding
from gibbsian.errors import ArgumentError
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.machine import Machine
from gibbsian.graphs import as_graph
from gibbsian.models.base import Model
from gibbsian.models.families.potentials import POTENTIALS, PotentialsFamily
from gibbsian.models.families.quadrature import QuadratureFamily
from gibbsian.models.scopes import numbered
from gibbsian.settings import declared, flag, free, positional, whole
from gibbsian.startup import pandas


@ESTIMATORS.register("mrf", about="any potentials with shared parameters; discrete or continuous")
@declared
class MarkovRandomFieldMachine(Machine):
    """A Markov random field of any potentials (YU20 eq. 1), over discrete or continuous variables (Y18, YU20).

    ``P(x) = exp(sum_t theta_t . f_t(x_t) / T) / Z``. Potentials are named (``bias``, ``square``, ``indicator:v``,
    ``product``, ``equal``, ``absolute-difference``, ``squared-difference``, ``table``) or functions (`Potential`), and
    may have one parameter for all variables, edges or cliques. With `support` columns are real numbers and P is a
    density; integrals over one variable are taken by quadrature.

    Attributes
    ----------
    parameters_ : pandas.Series
        The parameters by potential, and by columns where no others share them.
    result_, model_, coding_
        As in `BoltzmannMachine`; the model is one of a `PotentialsFamily`, with `support` of a
        `QuadratureFamily`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1, 1], [1, 1, -1], [-1, -1, -1], [1, -1, -1], [-1, 1, 1], [-1, -1, 1]]
    >>> machine = gb.MarkovRandomFieldMachine("product", graph="chain", tied=True, l2=0).fit(rows)
    >>> machine.parameters_.round(3).to_dict()                           # atanh of the mean of the two products
    {'product': 0.347}
    >>> rows = [[0.1, 0.3], [0.8, 0.9], [0.5, 0.2], [0.7, 0.6]]
    >>> gb.MarkovRandomFieldMachine("bias", support=(0, 1), tied=True, l2=0).fit(rows).parameters_.round(3).to_dict()
    {'bias': 0.15}
    """

    potentials: Any = positional(
        kw_only=False,
        default=free(
            "table",
            f"Potentials: names with commas between them, or a list of names and Potential objects. Known names are "
            f"{', '.join(POTENTIALS)}.",
            doc="str or list of str and Potential",
        ),
    )
    graph: Any = free(
        "complete",
        "Whose variables and cliques potentials apply to: 'complete', 'chain', 'grid:RxC', edges by name.",
        doc="str, Graph, networkx graph or list of pairs",
    )
    order: int = whole(2, "Cliques of the graph of up to this many variables have potentials.", least=1)
    cliques: Any = free(
        None,
        "The cliques, by column name or number, instead of those of the graph; single variables are always there.",
        doc="sequence of tuples, optional",
    )
    tied: bool = flag(False, "Whether a potential has the same parameters wherever it applies.")
    coding: Any = free(
        "auto-categorical",
        "Two values where the data have them, else labels of each column; 'values' for numbers common to all columns, "
        "or as in other machines. Not with `support`.",
        doc="str, pair of labels or Coding",
    )
    support: Any = free(
        None,
        "Continuous columns: the ends of an interval (0,1), or 'gaussian' or 'gaussian:MEAN:SD' for the whole line "
        "with a normal base measure.",
        doc="pair of numbers, str or Continuum, optional",
    )
    n_nodes: int = whole(24, "Nodes of the quadrature of continuous columns, up to 127.", least=2)

    _welcome = ("categorical",)

    def _coding(self) -> Any:
        return super()._coding() if self.support is None else RealCoding(_continuum(self.support, self.n_nodes))

    def _zeros(self, data: Dataset) -> Model[Any]:
        names, potentials = data.names, self.potentials
        if self.cliques is None:
            cliques = as_graph(self.graph, names).cliques(self.order)
        else:
            cliques = numbered(self.cliques, names)
        listed = [name.strip() for name in potentials.split(",")] if isinstance(potentials, str) else potentials
        build: Any = PotentialsFamily.build if self.support is None else QuadratureFamily.build
        return Model.zeros(build(listed, data.variables, cliques=cliques, tied=self.tied, names=names))

    @classmethod
    def _structure_of(cls, model: Model[Any], coding: Any) -> dict[str, object]:
        if isinstance(coding.domain, Continuum):
            names, values = [term.name for term in model.family.terms], {"support": coding.domain}
        else:
            names, values = [label.potential for label in model.family.labels], {"coding": coding}
        return {"potentials": list(dict.fromkeys(names)), "cliques": list(model.family.scopes), **values}

    # -- parameters ---------------------------------------------------------------------------------------------------
    @property
    def parameters_(self) -> Any:
        """The parameters by name."""
        model = self.reported_model.canonical()
        return pandas.Series(model.theta, index=model.parameter_names(self.names_), name="parameter")

    def figures(self) -> dict[str, object]:
        """Return the numbers of variables, cliques and parameters."""
        model = self.model_
        return {
            "variables": model.n_variables,
            "cliques": len(model.family.scopes),
            "parameters": model.theta.size,
        }

    def statistics(self) -> dict[str, object]:
        """Return the potentials by name, with their columns where no others share them."""
        return {"potentials": pandas.DataFrame({"potential": self.model_.parameter_names(self.names_)})}


def _continuum(support: Any, n_nodes: int) -> Continuum:
    """Return the domain that a setting names."""
    if isinstance(support, Continuum):
        return support
    word, *numbers = support.split(":") if isinstance(support, str) else ("interval", *np.ravel(support))
    try:
        low, high = (float(number) for number in (numbers or (0, 1)))
    except (TypeError, ValueError, OverflowError):
        word = ""
    if word not in ("interval", "gaussian"):
        raise ArgumentError(
            "is no support", "use (0, 1), 'gaussian' or 'gaussian:0:1'", argument="support", value=support
        )
    return Continuum(word, low, high, n_nodes)
