"""What missing cells and hidden units of a restricted machine probably are, given the present cells of a row."""

from __future__ import annotations

import numpy as np

from gibbsian.data import Dataset
from gibbsian.inference.layer_missing import LayerRowSums, check_discrete, incomplete_states
from gibbsian.models.restricted import RestrictedModel

# Steps of the chains that fill what is out of reach: as many again are left aside before, and rows share the chains.
N_STEPS = 200
ROWS_AT_ONCE = 1024


def expected_layers(model: RestrictedModel, data: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected values of the visible and of the hidden units of each state, given its present cells.

    Exact where the sum is in reach, else by `N_STEPS` steps of block Gibbs sampling with the present cells clamped.
    """
    holes, states = incomplete_states(data), data.states
    if holes.size:
        check_discrete(model.visible)
        states = np.where(np.asarray(data.missing), states.dtype.type(0), states)
    visible = model.visible.encode(states)
    hidden = model.hidden_means(visible)
    if not holes.size:
        return visible, hidden
    sums, missing = LayerRowSums(model), np.asarray(data.missing)
    near = np.array([sums.in_reach(missing[state]) for state in holes])
    for state in holes[near]:
        visible[state], hidden[state] = sums.means(data.states[state], missing[state])
    far = holes[~near]
    for start in range(0, len(far), ROWS_AT_ONCE):
        block = far[start : start + ROWS_AT_ONCE]
        gaps = model.visible.spread(missing[block])
        visible[block], hidden[block] = _sampled_means(model, visible[block], gaps, rng)
    return visible, hidden


def _sampled_means(
    model: RestrictedModel, values: np.ndarray, holes: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Average the conditional means of missing cells and hidden units along a chain for each row."""
    state = np.where(holes, model.visible.draw(np.zeros_like(values), rng), values)
    visible, hidden = np.zeros_like(values), np.zeros((len(values), model.hidden.width))
    for step in range(2 * N_STEPS):
        h = model.draw_hidden(state, rng)
        if step >= N_STEPS:
            visible += model.visible_means(h)
            hidden += model.hidden_means(state)
        state = np.where(holes, model.draw_visible(h, rng), values)
    return np.where(holes, visible / N_STEPS, values), hidden / N_STEPS
