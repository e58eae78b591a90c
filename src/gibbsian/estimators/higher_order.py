"""The Boltzmann machine with interactions of any order as a scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gibbsian.data import Dataset, preflight_cliques
from gibbsian.errors import ArgumentError
from gibbsian.estimators.machine import ConvertibleMixin, Machine
from gibbsian.learners import Learner
from gibbsian.models import HigherOrderModel
from gibbsian.models.scopes import Scopes
from gibbsian.rng import RandomState
from gibbsian.storage import Checkpoint


class HigherOrderBoltzmannMachine(ConvertibleMixin, Machine):
    """A fully visible Boltzmann machine with interactions of any order (YU20 eq. 1), of two or more real values.

    ``P(x) = exp(sum_c w_c prod_{i in c} x_i / T) / Z`` over cliques c; a clique of one variable is its bias.

    Parameters
    ----------
    order : int
        Every clique of up to this many variables interacts.
    cliques : sequence of tuples, optional
        The cliques that interact, by column name or number, instead of all up to `order`.
    learner : "auto", str or Learner
        As in `BoltzmannMachine`.
    l1, l2 : float
        Penalties ``l1 sum|weight|`` over cliques of two and more and ``(l2/2) sum weight^2`` over all, on the mean loss
        per row.
    coding : "auto", str or pair of labels
        As in `BoltzmannMachine`; or ``"values"``, real numbers common to all columns.
    values : sequence of float, optional
        The real numbers that variables take, such as ``(-1, 0, 1)``, also where some do not occur (Y18: any finite
        sample space).
    bias : bool
        Whether every variable has a bias, also where `cliques` does not list it.
    temperature, max_iter, tol, binarize, held_out, checkpoint, callback, random_state
        As in `BoltzmannMachine`.
    start : None, model or machine
        Where the learner begins: at zero, or at the parameters of another model with the same cliques.

    Attributes
    ----------
    weights_ : pandas.DataFrame
        Columns clique (a tuple of column names), order and weight.
    result_, model_, coding_, names_, n_features_in_, feature_names_in_
        As in `BoltzmannMachine`; the model is a `HigherOrderModel`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> even = [[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    >>> rows = even * 3 + [[-x, -y, -z] for x, y, z in even]
    >>> machine = gb.HigherOrderBoltzmannMachine(order=3).fit(rows)
    >>> machine.strongest_weights(1).round(3).values.tolist()         # log(3) / 2
    [[('x0', 'x1', 'x2'), 3, 0.549]]
    """

    def __init__(
        self,
        order: int = 3,
        cliques: Sequence[Sequence[Any]] | None = None,
        learner: str | Learner = "auto",
        *,
        l1: float = 0.0,
        l2: float = 0.0,
        coding: Any = "auto",
        values: Sequence[float] | None = None,
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
        self.order = order
        self.cliques = cliques
        self.learner = learner
        self.l1 = l1
        self.l2 = l2
        self.coding = coding
        self.values = values
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

    def _table_options(self) -> dict[str, Any]:
        return {"values": self.values}

    def _zeros(self, data: Dataset) -> HigherOrderModel:
        n = data.n_variables
        if self.cliques is None:
            if not isinstance(self.order, int | np.integer) or self.order < 1:
                raise ArgumentError("must be a whole number, 1 or more", argument="order", value=self.order)
            model = HigherOrderModel.of_order(n, min(self.order, n), data.domain, self.temperature)
            if self.bias:
                return model
            cliques = Scopes((clique for clique in model.cliques if len(clique) > 1), n)
        else:
            biases = [(i,) for i in range(n)] if self.bias else []
            cliques = Scopes.sorted([*biases, *numbered(self.cliques, data.names)], n)
        if not cliques:
            raise ArgumentError("there are no cliques", "raise `order=`, list `cliques=`, or keep `bias=True`")
        return HigherOrderModel(n, cliques, np.zeros(len(cliques)), data.domain, self.temperature)

    def _preflight(self, data: Dataset, model: HigherOrderModel, l1: float, l2: float) -> None:
        preflight_cliques(data, model.cliques, l1=l1, l2=l2)

    @classmethod
    def _structure_of(cls, model: HigherOrderModel) -> dict[str, Any]:
        return {"cliques": list(model.cliques)}

    # -- parameters ---------------------------------------------------------------------------------------------------
    @property
    def weights_(self) -> Any:
        """The weight of each clique: a table with columns clique, order, weight, smaller cliques first."""
        import pandas

        check_is_fitted(self)
        cliques = [tuple(self.names_[i] for i in clique) for clique in self.model_.cliques]
        orders = [len(clique) for clique in cliques]
        return pandas.DataFrame({"clique": cliques, "order": orders, "weight": self.model_.theta})

    def strongest_weights(self, n: int | None = None, order: int | None = None) -> Any:
        """Return the weights of cliques of two and more, or of one `order`, the largest in size first.

        Examples
        --------
        >>> import gibbsian as gb
        >>> machine = gb.HigherOrderBoltzmannMachine(order=2).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> machine.strongest_weights().round(3).values.tolist()          # log(2) / 4
        [[('x0', 'x1'), 2, 0.173]]
        """
        table = self.weights_
        table = table[table["order"] > 1] if order is None else table[table["order"] == order]
        places = np.argsort(-np.abs(table["weight"].to_numpy()), kind="stable")[:n]
        return table.iloc[places].reset_index(drop=True)


def _is_column(member: Any, n_columns: int) -> bool:
    return isinstance(member, int | np.integer) and not isinstance(member, bool) and 0 <= int(member) < n_columns


def numbered(cliques: Sequence[Sequence[Any]], names: Sequence[str]) -> list[tuple[int, ...]]:
    """Turn cliques of column names or numbers into cliques of numbers.

    Examples
    --------
    >>> from gibbsian.estimators.higher_order import numbered
    >>> numbered([("b", "a"), (2,)], ["a", "b", "c"])
    [(1, 0), (2,)]
    """
    place = {name: i for i, name in enumerate(names)}
    found = []
    for clique in cliques:
        if isinstance(clique, str) or not isinstance(clique, Iterable):
            raise ArgumentError(f"cliques holds {clique!r}", "write each clique as a tuple of columns")
        for member in clique:
            if not (member in place if isinstance(member, str) else _is_column(member, len(names))):
                raise ArgumentError(f"the clique {tuple(clique)} names {member!r}, which the data does not have")
        numbers = tuple(place[member] if isinstance(member, str) else int(member) for member in clique)
        if len(set(numbers)) < len(numbers):
            raise ArgumentError(f"the clique {tuple(clique)} names a column twice", "give each once")
        found.append(numbers)
    return found
