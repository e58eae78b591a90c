"""What the missing cells of a row probably are, given the present ones."""

from __future__ import annotations

import zlib

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import TooExpensiveError
from gibbsian.inference import exact
from gibbsian.inference.missing import clamp, complete_in_all_ways, heavy_states, light_batches
from gibbsian.models import Model
from gibbsian.samplers import draw

# A conditional that would take longer exactly is sampled: 20,000 draws, an error of 0.004 where chains mix at once.
MOST_SECONDS_A_ROW = 1.0
N_CHAINS, N_DRAWS, BURN_IN = 100, 200, 200


def fill_probabilities(model: Model, data: Dataset, rng: np.random.Generator) -> np.ndarray:
    """Return ``P(cell takes its upper value | present cells)`` for each distinct state; 0 or 1 at present cells.

    Exact by summing over the missing cells where that is possible (few of them, or a sparse graph between them),
    otherwise by Gibbs sampling of the missing cells with the present ones fixed.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations.missing_cells import fill_probabilities
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [1.0])
    >>> data = gb.Dataset.read([[1, float("nan")]], coding="spin")
    >>> fill_probabilities(model, data, np.random.default_rng(0)).round(4)   # 1 / (1 + exp(-2))
    array([[1.    , 0.8808]])
    """
    probabilities = (data.states == model.domain.high).astype(np.float64)
    if not data.has_missing:
        return probabilities
    for batch in light_batches(data):
        probabilities[batch] = complete_in_all_ways(data, batch).fill_probabilities(model)
    seed = int(rng.integers(2**63))
    for state in heavy_states(data):
        rest, _, missing = clamp(model, data, state)
        # a stream that depends on the row alone: what else is asked for at the same time changes nothing
        own = np.random.default_rng([seed, zlib.crc32(data.states[state].tobytes() + missing.tobytes())])
        probabilities[state, missing] = (_means(rest, own) - model.domain.low) / model.domain.gap
    return probabilities


def _means(model: Model, rng: np.random.Generator) -> np.ndarray:
    try:
        return exact(model, max_seconds=MOST_SECONDS_A_ROW).means()
    except TooExpensiveError:
        draws = draw(model, N_CHAINS * N_DRAWS, rng, n_chains=N_CHAINS, burn_in=BURN_IN)
        return draws.mean(axis=(0, 1), dtype=np.float64)
