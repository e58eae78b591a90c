"""log Z of a deep Boltzmann machine from below and above: annealing with every other layer summed out.

Given the even layers the odd ones are independent, so either half is summed out analytically and the walkers have
states of the other half only (Salakhutdinov and Hinton 2009): annealing of the restricted machine that the deep one is
(`DeepModel.folded`), there and back.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.expectations.deep_mean_field import DeepMeanField
from gibbsian.layered import annealing as restricted
from gibbsian.layered.annealing import LayerAnnealing
from gibbsian.layered.paths import IndependentUnits, filled_values
from gibbsian.layered.rows import LayerRows
from gibbsian.models.deep import DeepModel
from gibbsian.rng import RandomState, as_generator

# Rows from which base rates are taken.
ROWS_FOR_RATES = 2000


def log_partition_interval(
    model: DeepModel,
    start: str | np.ndarray = "gibbs",
    annealing: LayerAnnealing | None = None,
    rng: RandomState = None,
    burn_in: int = 1000,
    warn: bool = True,
) -> LogPartitionInterval:
    """Bracket log Z by annealed importance sampling to the machine and back.

    Parameters
    ----------
    model : DeepModel
        The machine.
    start : str or ndarray
        Where the way back starts: ``"gibbs"``, ``"tempering"`` or ``"exact"`` (draws of small machines), or values of
        the even layers side by side, drawn from the machine.
    annealing : LayerAnnealing, optional
        Walkers, temperatures and base; by default 100 walkers and 10,000 temperatures, with the half of the layers
        that has more columns summed out. A base of rows gives all layers the rates they have given the rows.
    rng : None, int or Generator
        Source of randomness.
    burn_in : int
        Steps of the chains before the way back.
    warn : bool
        Whether to give a `MixingWarning` when the two sides disagree beyond their errors.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.annealing import LayerAnnealing
    >>> from gibbsian.layered.deep_annealing import log_partition_interval
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rng = np.random.default_rng(0)
    >>> layers = [BinaryLayer(6), BinaryLayer(4), BinaryLayer(3)]
    >>> dbm = DeepModel.build(layers, weights=[rng.normal(size=(6, 4)), rng.normal(size=(4, 3))])
    >>> interval = log_partition_interval(dbm, annealing=LayerAnnealing(betas=1000), rng=1)
    >>> interval.lower < dbm.log_partition() < interval.upper
    True
    """
    folded = model.folded()
    if annealing is None:
        wider = "visible" if folded.visible.width > folded.hidden.width else "hidden"
        annealing = LayerAnnealing(summed=wider)
    if isinstance(annealing.base, LayerRows):
        annealing = replace(annealing, base=base_of_rows(model, annealing.base, as_generator(0)))
    return restricted.log_partition_interval(folded, start, annealing, rng, burn_in, warn)


def base_of_rows(model: DeepModel, rows: LayerRows, rng: np.random.Generator) -> IndependentUnits:
    """Return independent units with the rates of all layers given rows of data, by mean field.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_annealing import base_of_rows
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> dbm = DeepModel.build([BinaryLayer(2), BinaryLayer(1), BinaryLayer(1)])
    >>> base_of_rows(dbm, LayerRows(np.eye(2)), np.random.default_rng(0)).visible
    array([0., 0., 0.])
    """
    n_rows = min(rows.n_rows, ROWS_FOR_RATES)
    some = rows.take(rng.choice(rows.n_rows, n_rows, replace=False)) if n_rows < rows.n_rows else rows
    means = DeepMeanField()(model, filled_values(some, model.visible)).means
    return IndependentUnits.from_values(model.folded(), model.fold_values(means)[0], some.shares)


__all__ = ["base_of_rows", "log_partition_interval"]
