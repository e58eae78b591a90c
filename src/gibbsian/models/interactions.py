"""The network of a model, which plots and reports show: which variables interact, and how strongly."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from gibbsian.arrays import Floats, Integers
from gibbsian.resources import spans

if TYPE_CHECKING:
    import pandas

    from gibbsian.models.base import Units

Scope = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Interactions:
    """The network of a model: its variables, and all sets of two or more variables that interact.

    Parameters
    ----------
    scopes : tuple of tuple of int
        The variables of each interaction, by number.
    strengths : ndarray
        Strength of each interaction.
    sizes : tuple of int
        Number of columns, then of hidden units in each layer; variables are numbered in this order.
    measure : str
        Name of the measure of strength.
    signed : bool
        Whether strengths have a sign; otherwise they are norms.
    names : tuple of str
        Names of the variables.
    hidden : str
        Prefix for the names of hidden units, which are numbered.

    Examples
    --------
    >>> import gibbsian as gb
    >>> bm = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> found = bm.interactions()
    >>> found.names, found.scopes, found.strengths.round(3), found.measure
    (('x0', 'x1'), ((0, 1),), array([0.173]), 'coupling')
    """

    scopes: tuple[Scope, ...]
    strengths: Floats
    sizes: tuple[int, ...]
    measure: str = "coupling"
    signed: bool = True
    names: tuple[str, ...] = ()
    hidden: str = "h"

    @property
    def n_variables(self) -> int:
        """Number of nodes."""
        return sum(self.sizes)

    @property
    def layers(self) -> Integers:
        """The layer of each variable: 0 for columns, then the number of the hidden layer."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def strongest(self, n: int | None = None, least: float = 0.0) -> Self:
        """Return the `n` strongest interactions (None: all) with absolute strengths above `least`, descending."""
        magnitudes = np.abs(self.strengths)
        order = np.argsort(-magnitudes, kind="stable")
        order = order[magnitudes[order] > least][:n]
        return replace(self, scopes=tuple(self.scopes[k] for k in order), strengths=self.strengths[order])

    def matrix(self) -> Floats:
        """Return the strengths of pairs, NaN without interaction.

        If there are interactions of three or more variables, the lower triangle shows for each pair the strongest of
        those that contain both.
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
    def table(self) -> pandas.DataFrame:
        """The interactions as a data frame: names of the variables, order, strength."""
        import pandas

        variables = [tuple(self.names[i] for i in scope) for scope in self.scopes]
        orders = [len(scope) for scope in self.scopes]
        return pandas.DataFrame({"variables": variables, "order": orders, self.measure: self.strengths})


def of_tables(
    tables: dict[Scope, Floats], sizes: tuple[int, ...], levels: Sequence[Floats] | None = None
) -> Interactions:
    """Return the interactions of tables in the zero-sum gauge.

    The strength of a table is its Frobenius norm, as in direct coupling analysis. If values have scores (`levels`), it
    has the sign with which the table changes along the product of scores. If all variables have two values, tables are
    ``w`` times a product of spins, and the strength is w.
    """
    larger = {scope: table for scope, table in tables.items() if len(scope) > 1}
    scopes, norms = tuple(larger), np.array([float(np.linalg.norm(table)) for table in larger.values()])
    if levels is None:
        return Interactions(scopes, norms, sizes, "norm of the coupling table", signed=False)
    signs = np.array([_sign(table, [levels[i] for i in scope]) for scope, table in larger.items()])
    if all(len(scores) == 2 for scores in levels):
        n_cells = np.array([float(table.size) for table in larger.values()])
        return Interactions(scopes, signs * norms / np.sqrt(n_cells), sizes, "coupling of spins")
    return Interactions(scopes, signs * norms, sizes, "signed norm of the coupling table")


def _sign(table: Floats, levels: Sequence[Floats]) -> float:
    """Return the sign of the covariance of a table with the product of scores; 1 if there is none."""
    for scores in levels:
        table = np.tensordot(scores - scores.mean(), table, axes=1)
    return float(np.sign(table)) or 1.0


def between_layers(layers: Sequence[Units], weights: Iterable[Floats]) -> Interactions:
    """Return the interactions of units in neighbouring layers: weights, or norms where units have several columns."""
    sizes, signed = tuple(layer.n_units for layer in layers), all(layer.width == layer.n_units for layer in layers)
    units = [range(span.start, span.stop) for span in spans(sizes)]
    scopes, strengths = list[Scope](), []
    for k, block in enumerate(weights):
        scopes += itertools.product(units[k], units[k + 1])
        strengths.append(_by_unit(layers[k], layers[k + 1], block).ravel().astype(np.float64))
    measure = "weight" if signed else "norm of the weights"
    return Interactions(tuple(scopes), np.concatenate(strengths), sizes, measure, signed)


def _by_unit(lower: Units, upper: Units, weights: Floats) -> Floats:
    """Return one number for each pair of units: the weight, or the norm of the weights in the zero-sum gauge."""
    for axis, layer in enumerate((lower, upper)):
        if layer.width == layer.n_units:
            continue
        counts = np.array(layer.variables.sizes)
        starts = np.cumsum(counts) - counts
        means = np.add.reduceat(weights, starts, axis=axis) / np.expand_dims(counts, 1 - axis)
        weights = np.sqrt(np.add.reduceat((weights - np.repeat(means, counts, axis=axis)) ** 2, starts, axis=axis))
    return weights


def of_classes(deviations: Floats, measure: str, signed: bool = True) -> Interactions:
    """Return interactions of classes, shown as hidden units, with columns: how far each class shifts each column."""
    n_classes, n_columns = deviations.shape
    scopes = tuple((j, n_columns + a) for a in range(n_classes) for j in range(n_columns))
    return Interactions(scopes, deviations.ravel(), (n_columns, n_classes), measure, signed, hidden="class ")
