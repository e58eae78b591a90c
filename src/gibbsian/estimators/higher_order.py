"""The Boltzmann machine with interactions of any order as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.machine import Convertible, Machine
from gibbsian.graphs import as_graph
from gibbsian.models.base import Model
from gibbsian.models.families.products import ProductsFamily
from gibbsian.models.scopes import Scopes, numbered
from gibbsian.settings import declared, flag, free, positional, whole
from gibbsian.startup import check_is_fitted, pandas


@ESTIMATORS.register("higher-order", about="two values or real numbers, a weight for each clique")
@declared
class HigherOrderBoltzmannMachine(Convertible, Machine):
    """A fully visible Boltzmann machine with interactions of any order (YU20 eq. 1), of two or more real values.

    ``P(x) = exp(sum_c w_c prod_{i in c} x_i / T) / Z`` over cliques c; a clique of one variable is its bias.

    Attributes
    ----------
    weights_ : pandas.DataFrame
        Columns clique (a tuple of column names), order and weight.
    result_, model_, coding_
        As in `BoltzmannMachine`; the model is one of a `ProductsFamily`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> even = [[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    >>> rows = even * 3 + [[-x, -y, -z] for x, y, z in even]
    >>> machine = gb.HigherOrderBoltzmannMachine(order=3, l2=0).fit(rows)
    >>> machine.strongest_weights(1).round(3).values.tolist()         # log(3) / 2
    [[('x0', 'x1', 'x2'), 3, 0.549]]
    """

    order: int = positional(
        kw_only=False, default=whole(3, "Every clique of up to this many variables interacts.", least=1)
    )
    cliques: Any = positional(
        kw_only=False,
        default=free(
            None,
            "The cliques that interact, by column name or number, instead of all up to `order`.",
            doc="sequence of tuples, optional",
        ),
    )
    graph: Any = free(
        None,
        "Only its cliques of up to `order` variables interact: 'chain', 'grid:RxC', edges by name.",
        doc="str, Graph, networkx graph or list of pairs, optional",
    )
    bias: bool = flag(True, "Whether every variable has a bias, also where `cliques` does not list it.")

    def _zeros(self, data: Dataset) -> Model[ProductsFamily]:
        n = data.n_variables
        if self.cliques is not None and self.graph is not None:
            raise ArgumentError("`cliques` and `graph` both say what interacts", "give one of them")
        if self.graph is not None:
            listed = [(i,) for i in range(n)] if self.bias else []
            larger = (clique for clique in as_graph(self.graph, data.names).cliques(self.order) if len(clique) > 1)
            cliques = Scopes.sorted([*listed, *larger], n)
        elif self.cliques is None:
            family = ProductsFamily(Scopes.of_order(n, min(self.order, n)), data.variables)
            if self.bias:
                return Model.zeros(family)
            cliques = Scopes((clique for clique in family.scopes if len(clique) > 1), n)
        else:
            biases = [(i,) for i in range(n)] if self.bias else []
            cliques = Scopes.sorted([*biases, *numbered(self.cliques, data.names)], n)
        if not cliques:
            raise ArgumentError("there are no cliques", "raise `order`, list `cliques`, or keep `bias=True`")
        return Model.zeros(ProductsFamily(cliques, data.variables))

    @classmethod
    def _structure_of(cls, model: Model[ProductsFamily], coding: Any) -> dict[str, object]:
        return {"cliques": list(model.family.scopes), "coding": coding}

    # -- parameters ---------------------------------------------------------------------------------------------------
    @property
    def weights_(self) -> Any:
        """The weight of each clique: a table with columns clique, order, weight, smaller cliques first."""
        check_is_fitted(self)
        cliques = [tuple(self.names_[i] for i in clique) for clique in self.model_.family.scopes]
        orders = [len(clique) for clique in cliques]
        return pandas.DataFrame({"clique": cliques, "order": orders, "weight": self.reported_model.theta})

    def figures(self) -> dict[str, object]:
        """Return the numbers of variables and cliques, and the size of the largest."""
        scopes = self.model_.family.scopes
        return {
            "variables": scopes.n_variables,
            "cliques": len(scopes),
            "variables in the largest": int(scopes.sizes.max()),
        }

    def statistics(self) -> dict[str, object]:
        """Return the cliques by the names of their columns."""
        return {"cliques": self.weights_[["clique"]]}

    def tables(self, n: int = 10) -> dict[str, object]:
        """Return the biases and the strongest weights of larger cliques."""
        single = self.weights_[self.weights_["order"] == 1]
        biases = single.set_index(single["clique"].str[0])["weight"].rename("bias").rename_axis(None)
        return {"biases": biases, "strongest weights": self.strongest_weights(n)}

    def strongest_weights(self, n: int | None = None, order: int | None = None) -> Any:
        """Return the weights of cliques of two and more, or of one `order`, the largest in size first.

        Examples
        --------
        >>> import gibbsian as gb
        >>> machine = gb.HigherOrderBoltzmannMachine(order=2, l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> machine.strongest_weights().round(3).values.tolist()          # log(2) / 4
        [[('x0', 'x1'), 2, 0.173]]
        """
        table = self.weights_
        table = table[table["order"] > 1] if order is None else table[table["order"] == order]
        places = np.argsort(-np.abs(table["weight"].to_numpy()), kind="stable")[:n]
        return table.iloc[places].reset_index(drop=True)
