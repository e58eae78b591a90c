"""What the missing cells of a row probably are, given the present ones."""

from __future__ import annotations

import zlib

import numpy as np

from gibbsian.data import Dataset
from gibbsian.domain import Domain
from gibbsian.errors import TooExpensiveError
from gibbsian.inference import ExactAnswers, exact
from gibbsian.inference.completions import value_indicators, value_offsets
from gibbsian.inference.missing import clamp, split_rows
from gibbsian.models import Model
from gibbsian.progress import counted
from gibbsian.samplers import draw

# A conditional that would take longer exactly is sampled: 20,000 draws, an error of 0.004 where chains mix at once.
MOST_SECONDS_A_ROW = 1.0
N_CHAINS, N_DRAWS, BURN_IN = 100, 200, 200


def fill_probabilities(model: Model, data: Dataset, rng: np.random.Generator) -> np.ndarray:
    """Return the probability of each cell's values given the present cells of its state; 0 or 1 at present cells.

    Exact by summing over the missing cells where that is possible (few of them, or a sparse graph between them),
    otherwise by Gibbs sampling of the missing cells with the present ones fixed.

    Returns
    -------
    ndarray of shape (n_states, n_columns)
        For two-valued variables one column each, the probability of the upper value; for `Categories` one for each
        value of each variable, those of variable i from ``value_offsets[i]`` to ``value_offsets[i + 1]``.
    """
    probabilities = value_indicators(model.domain, data.states)
    if not data.has_missing:
        return probabilities
    split = split_rows(model, data)
    for part in split.parts:
        probabilities[part.which] = part.fill_probabilities(model)
    seed = int(rng.integers(2**63))
    for state in counted(split.heavy, "rows one by one", len(split.heavy)):
        given, missing = clamp(model, data, state)
        rest, _ = given.at(model.theta)
        # a stream that depends on the row alone: what else is asked for at the same time changes nothing
        own = np.random.default_rng([seed, zlib.crc32(data.states[state].tobytes() + missing.tobytes())])
        columns = _columns_of(missing, model)
        probabilities[state, columns] = _value_probabilities(rest, own)
    return probabilities


def _columns_of(variables: np.ndarray, model: Model) -> np.ndarray:
    """Where the probabilities of some variables stand."""
    if model.domain.two_valued:
        return variables
    offsets = value_offsets(model.domain, model.n_variables)
    return np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in variables])


def _value_probabilities(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Probabilities of the values of all variables of a model, in columns like `value_indicators`."""
    try:
        return _exact_probabilities(exact(model, max_seconds=MOST_SECONDS_A_ROW))
    except TooExpensiveError:
        draws = draw(model, N_CHAINS * N_DRAWS, rng, n_chains=N_CHAINS, burn_in=BURN_IN)
        return value_indicators(model.domain, draws.reshape(-1, model.n_variables)).mean(axis=0)


def _exact_probabilities(answers: ExactAnswers) -> np.ndarray:
    family = answers.engine.family
    if isinstance(family.domain, Domain):
        return (answers.means - family.domain.low) / family.domain.gap
    return np.concatenate([answers.marginal([i]) for i in range(family.n_variables)])
