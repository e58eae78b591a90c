"""The network of a model: which variables interact, and how strongly; what pictures and reports draw."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gibbsian.resources import spans

Scope = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Interactions:
    """The nodes and edges of a model: its variables, and every set of two and more of them that interacts.

    Parameters
    ----------
    scopes : tuple of tuple of int
        The variables of each interaction, by number.
    strengths : ndarray
        How strong each is.
    sizes : tuple of int
        Number of columns, and of the hidden units of each layer; the variables are numbered in this order.
    measure : str
        What the strengths are.
    signed : bool
        Whether their sign means something; else they are norms.
    names : tuple of str
        The variables.

    Examples
    --------
    >>> import gibbsian as gb
    >>> bm = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> found = bm.interactions()
    >>> found.names, found.scopes, found.strengths.round(3), found.measure
    (('x0', 'x1'), ((0, 1),), array([0.173]), 'coupling')
    """

    scopes: tuple[Scope, ...]
    strengths: np.ndarray
    sizes: tuple[int, ...]
    measure: str = "coupling"
    signed: bool = True
    names: tuple[str, ...] = ()
    hidden: str = "h"  # what hidden units are called, before their number

    @property
    def n_variables(self) -> int:
        """Number of nodes."""
        return sum(self.sizes)

    @property
    def layers(self) -> np.ndarray:
        """Of each variable: zero for a column, else the number of its hidden layer."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def strongest(self, n: int | None = None, least: float = 0.0) -> Self:
        """Return the `n` strongest interactions (None: all) that exceed `least` in size, the largest first."""
        sizes = np.abs(self.strengths)
        order = np.argsort(-sizes, kind="stable")
        order = order[sizes[order] > least][:n]
        return replace(self, scopes=tuple(self.scopes[k] for k in order), strengths=self.strengths[order])

    def matrix(self) -> np.ndarray:
        """Return the strengths of pairs, NaN where there is none; below the diagonal those of larger sets, if any.

        There a pair has the largest in size of the interactions of three and more that hold both.
        """
        pairs, larger = (np.full((self.n_variables, self.n_variables), np.nan) for _ in range(2))
        of_two = np.fromiter((len(scope) == 2 for scope in self.scopes), bool, len(self.scopes))
        ends = np.array(list(itertools.compress(self.scopes, of_two)), dtype=np.intp).reshape(-1, 2)
        pairs[ends[:, 0], ends[:, 1]] = self.strengths[of_two]
        for k in sorted(np.flatnonzero(~of_two).tolist(), key=lambda k: abs(self.strengths[k])):
            for i, j in itertools.combinations(self.scopes[k], 2):
                larger[i, j] = self.strengths[k]
        below = pairs if np.isnan(larger).all() else larger
        return np.where(np.tri(self.n_variables, dtype=bool), below.T, pairs)

    @property
    def table(self) -> Any:
        """The interactions as a frame: the names of the variables, their number, the strength."""
        import pandas

        variables = [tuple(self.names[i] for i in scope) for scope in self.scopes]
        orders = [len(scope) for scope in self.scopes]
        return pandas.DataFrame({"variables": variables, "order": orders, self.measure: self.strengths})


def of_tables(tables: dict[Scope, np.ndarray], sizes: tuple[int, ...], levels: Any = None) -> Interactions:
    """Return the interactions of tables in the zero-sum gauge.

    The strength of a table is its Frobenius norm, as in direct coupling analysis. Where values are numbers (`levels`)
    it has a sign, plus where the table rises with their product; and where all variables have two of them, tables are
    ``w`` times a product of spins, whose strength is w.
    """
    larger = {scope: table for scope, table in tables.items() if len(scope) > 1}
    scopes, parts = tuple(larger), list(larger.values())
    norms = np.array([float(np.linalg.norm(table)) for table in parts])
    if levels is None:
        return Interactions(scopes, norms, sizes, "norm of the coupling table", signed=False)
    signs = np.array([_sign(table, [levels[i] for i in scope]) for scope, table in larger.items()])
    if all(len(numbers) == 2 for numbers in levels):
        cells = np.array([float(table.size) for table in parts])
        return Interactions(scopes, signs * norms / np.sqrt(cells), sizes, "coupling of spins")
    return Interactions(scopes, signs * norms, sizes, "signed norm of the coupling table")


def _sign(table: np.ndarray, levels: Sequence[np.ndarray]) -> float:
    """Whether a table rises or falls with the product of centred values."""
    for numbers in levels:
        table = np.tensordot(numbers - numbers.mean(), table, axes=1)
    return float(np.sign(table)) or 1.0


def between_layers(layers: Sequence[Any], weights: Iterable[np.ndarray]) -> Interactions:
    """Return the interactions of units in neighbouring layers; units with several columns have a norm of weights."""
    signed = all(layer.width == layer.n_units for layer in layers)
    units = spans(layer.n_units for layer in layers)
    blocks = [
        _by_unit(lower, upper, block) for (lower, upper), block in zip(itertools.pairwise(layers), weights, strict=True)
    ]
    scopes = itertools.chain.from_iterable(
        itertools.product(range(low.start, low.stop), range(high.start, high.stop))
        for low, high in itertools.pairwise(units)
    )
    strengths = np.concatenate([block.ravel() for block in blocks]).astype(np.float64)
    measure = "weight" if signed else "norm of the weights"
    return Interactions(tuple(scopes), strengths, tuple(layer.n_units for layer in layers), measure, signed)


def _by_unit(lower: Any, upper: Any, weights: np.ndarray) -> np.ndarray:
    """One number for each two units: the weight, or the norm of the weights of all values in the zero-sum gauge."""
    for axis, layer in enumerate((lower, upper)):
        if layer.width == layer.n_units:
            continue
        counts = np.array(layer.variables.sizes)
        starts = np.cumsum(counts) - counts
        means = np.add.reduceat(weights, starts, axis=axis) / np.expand_dims(counts, 1 - axis)
        weights = np.sqrt(np.add.reduceat((weights - np.repeat(means, counts, axis=axis)) ** 2, starts, axis=axis))
    return weights


def of_classes(deviations: np.ndarray, measure: str, signed: bool = True) -> Interactions:
    """Return each class as a hidden unit, which interacts with a column by how far it sets the column apart."""
    n_classes, n_columns = deviations.shape
    scopes = tuple((j, n_columns + a) for a in range(n_classes) for j in range(n_columns))
    return Interactions(scopes, deviations.ravel(), (n_columns, n_classes), measure, signed, hidden="class ")
