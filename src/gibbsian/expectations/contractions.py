"""How a model's statistics follow from the joint laws of a few variables each.

`Model.statistics_from` is linear in the laws it asks for. Asking it about made-up laws shows, once for a structure, to
which target each statistic belongs and with what coefficients; the laws of a thousand samples are then one product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.expectations.regions import Target
from gibbsian.models.base import Model


@dataclass(frozen=True, eq=False)
class Contraction:
    """The targets of a model's statistics, and the statistics of each target.

    Parameters
    ----------
    targets : tuple of tuple of int
        The sets of variables whose joint law some statistic needs.
    statistics : tuple of ndarray of int
        For each target, the places in theta of its statistics.
    coefficients : tuple of ndarray
        For each target, one row for each of its statistics: what each cell of the law counts for.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations.contractions import contraction_of
    >>> contraction = contraction_of(gb.PairwiseModel.zeros(gb.graphs.complete(2)))
    >>> contraction.targets
    ((0,), (1,), (0, 1))
    >>> contraction.coefficients[2].tolist()
    [[1.0, -1.0, -1.0, 1.0]]
    """

    targets: tuple[Target, ...]
    statistics: tuple[np.ndarray, ...]
    coefficients: tuple[np.ndarray, ...]


def contraction_of(model: Model) -> Contraction:
    """Find out which joint laws a model's statistics need, and how they depend on them.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.expectations.contractions import contraction_of
    >>> len(contraction_of(gb.PairwiseModel.zeros(gb.graphs.grid(2, 2))).targets)
    8
    """
    probe = _Probe(model)
    targets = probe.targets
    largest = max(probe.sizes.values())
    # irregular numbers, so that no statistic answers zero and no two cells give the same answer
    irregular = np.random.default_rng(0).uniform(1.0, 2.0, size=largest)
    answers = probe.ask(lambda target, size: irregular[:size])
    number = {target: t + 1 for t, target in enumerate(targets)}
    numbered = probe.ask(lambda target, size: irregular[:size] * number[target])
    owners = np.rint(numbered / answers).astype(np.int64) - 1
    if not np.allclose(numbered, answers * (owners + 1), rtol=1e-9):
        raise ArgumentError(f"{type(model).__name__} has statistics that depend on several sets of variables at once")
    coefficients = _coefficients(probe, answers, irregular)
    places = [np.flatnonzero(owners == t) for t in range(len(targets))]
    tables = [coefficients[own][:, : probe.sizes[target]] for own, target in zip(places, targets, strict=True)]
    return Contraction(targets, tuple(places), tuple(tables))


def _coefficients(probe: _Probe, answers: np.ndarray, irregular: np.ndarray) -> np.ndarray:
    """Coefficients of all statistics, one column for each cell of the largest law."""
    coefficients = np.zeros((answers.size, irregular.size))
    cell_of = {value: cell for cell, value in enumerate(irregular.tolist())}
    # a statistic that is the probability of one cell returns that cell's number
    cells = np.array([cell_of.get(answer, -1) for answer in answers.tolist()])
    single = cells >= 0
    coefficients[np.flatnonzero(single), cells[single]] = 1.0
    if not single.all():
        for cell in range(irregular.size):
            coefficients[~single, cell] = probe.ask(_unit_law(cell))[~single]
    return coefficients


def _unit_law(cell: int) -> Callable[[Target, int], np.ndarray]:
    """One at a cell, zero at all others; zero everywhere where a law has fewer cells."""
    return lambda target, size: (np.arange(size) == cell).astype(np.float64)


class _Probe:
    """Asks a model for statistics from made-up laws."""

    def __init__(self, model: Model):
        self.model = model
        self.cardinalities = model.domain.cardinalities(model.n_variables)
        self.sizes: dict[Target, int] = {}
        self.ask(lambda target, size: self.sizes.setdefault(target, size) * np.zeros(size))
        self.targets = tuple(self.sizes)

    def ask(self, flat_law: Callable[[Target, int], np.ndarray]) -> np.ndarray:
        def marginal(nodes: Target) -> np.ndarray:
            shape = tuple(int(self.cardinalities[node]) for node in nodes)
            return flat_law(tuple(nodes), int(np.prod(shape))).reshape(shape)

        return self.model.statistics_from(marginal)
