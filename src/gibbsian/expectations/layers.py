"""What the rows of a machine of layers say of its hidden units, of missing cells, and of the sum over both.

For restricted machines expected values, exact or by chains. Elsewhere the sum is bounded from below: by mean field for
a deep Boltzmann machine, by recognition for a belief network (the variational bound, made tighter by
averaging several importance weights; Burda, Grosse and Salakhutdinov 2016). A bound may be far below, so nothing is
said about how good a machine could be, only how good it is at least.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from gibbsian.arrays import Floats, Mask, Slice, States
from gibbsian.data import Dataset
from gibbsian.expectations.deep_mean_field import DeepMeanField, MeanFieldPosterior, log_weight_bound
from gibbsian.inference.posterior import split_rows
from gibbsian.models.base import Model
from gibbsian.models.layers.belief_network import BeliefNetworkFamily
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import spread
from gibbsian.resources import row_blocks
from gibbsian.rng import Key, RandomState, as_generator
from gibbsian.settings import check_whole_number
from gibbsian.startup import logsumexp

# Steps of the chains that fill what is out of reach: as many again are left aside before, and rows share the chains.
N_STEPS = 200
ROWS_AT_ONCE = 1024
# Rows whose hidden units are treated together.
_BLOCK = 1000


def mean_field_posterior(
    model: Model[StackFamily], data: Dataset, block: Slice, updates: DeepMeanField
) -> MeanFieldPosterior:
    """Return independent hidden units that stand for the posterior of some states; missing cells are hidden too."""
    states, missing, visible = data.states[block], None, model.family.layers[0]
    if data.missing is not None and data.missing[block].any():
        missing = spread(visible, data.missing[block])
        states = np.where(data.missing[block], states.dtype.type(0), states)
    return updates(model.family, model.parts, visible.encode(states), missing)


def mean_field_bounds(model: Model[StackFamily], data: Dataset, mean_field: DeepMeanField | None = None) -> Floats:
    """Return lower bounds on ``log P(v) + log Z`` of each state by mean field; missing cells are hidden units."""
    updates = DeepMeanField() if mean_field is None else mean_field
    bounds = np.empty(data.n_states)
    for start in range(0, data.n_states, _BLOCK):
        block = slice(start, start + _BLOCK)
        bounds[block] = log_weight_bound(model.family, model.parts, mean_field_posterior(model, data, block, updates))
    return bounds


def recognition_bounds(
    network: Model[BeliefNetworkFamily],
    codes: States,
    n_samples: int = 100,
    rng: RandomState = None,
    common: bool = False,
) -> tuple[Floats, Floats]:
    """Return ``log (1/K) sum_k P(v, h_k) Z / Q(h_k | v)`` of each row, a lower bound in expectation, and its error.

    The hidden units h_k are drawn by recognition, Q. One draw would give the variational bound in
    expectation; the more draws, the nearer to ``log P(v) + log Z``.

    Parameters
    ----------
    network : Model of a BeliefNetworkFamily
        The network.
    codes : ndarray of shape (n_rows, n_units)
        Visible rows, none missing.
    n_samples : int
        Draws K, at least 2: their spread gives the error.
    rng : None, int or Generator
        Source of randomness.
    common : bool
        Use the same random numbers for every row: what is found for one then does not depend on the others, but the
        errors do not average out.
    """
    check_whole_number("n_samples", n_samples, least=2)
    generator = as_generator(rng)
    key = Key.of(generator)
    logs = np.empty((len(codes), n_samples))
    family, theta = network.family, network.theta
    for block in row_blocks(len(codes), n_samples * max(layer.width for layer in family.layers)):
        v = family.layers[0].encode(codes[block])
        shared = _CommonNumbers(key.generator(), len(v)) if common else generator
        numbers = cast("np.random.Generator", shared)  # all that layers of discrete units ask it for
        values = family.draw_up(theta, np.repeat(v, n_samples, axis=0), numbers)
        logs[block] = (family.log_joint(theta, values) - family.log_recognition(theta, values)).reshape(-1, n_samples)
    bounds = logsumexp(logs, axis=1) - np.log(n_samples)
    # relative error of the mean weight
    errors = np.exp(logs - bounds[:, None]).std(axis=1, ddof=1) / np.sqrt(n_samples)
    return bounds, errors


class _CommonNumbers:
    """Uniform random numbers that are the same for each of some rows: all that layers of discrete units draw with."""

    def __init__(self, rng: np.random.Generator, n_rows: int):
        self.rng = rng
        self.n_rows = n_rows

    def random(self, size: tuple[int, ...], dtype: type[np.float64] = np.float64) -> Floats:
        """Draw for one row, and repeat for all."""
        own = self.rng.random((size[0] // self.n_rows, *size[1:]), dtype=dtype)
        return np.tile(own, (self.n_rows, *(1 for _ in size[1:])))


def expected_layers(model: Model[StackFamily], data: Dataset, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the expected values of the visible and of the hidden units of each state, given its present cells.

    Exact where the sum is in reach, else by `N_STEPS` steps of block Gibbs sampling with the present cells clamped.
    """
    family, layer, holes = model.family, model.family.layers[0], data.holes
    visible = layer.encode(np.where(holes, data.states.dtype.type(0), data.states))
    hidden = family.means(model.parts, 1, [visible, None])
    incomplete = np.flatnonzero(holes.any(axis=1))
    if not incomplete.size:
        return visible, hidden
    light, together, heavy = split_rows(family, data.states[incomplete], holes[incomplete])
    if len(light):
        sides = np.split(together.cell_probabilities(model.theta), [layer.width], axis=1)
        visible[incomplete[light]], hidden[incomplete[light]] = (
            2.0 * side - 1.0 if units.kind == "spin" else side for units, side in zip(family.layers, sides, strict=True)
        )
    for start in range(0, len(heavy), ROWS_AT_ONCE):
        block = incomplete[heavy[start : start + ROWS_AT_ONCE]]
        visible[block], hidden[block] = _sampled_means(model, visible[block], spread(layer, holes[block]), rng)
    return visible, hidden


def _sampled_means(
    model: Model[StackFamily], values: Floats, missing: Mask, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Average the conditional means of missing cells and hidden units along a chain for each row."""
    family, parts = model.family, model.parts
    state = np.where(missing, family.layers[0].draw(np.zeros_like(values), rng), values)
    visible, hidden = np.zeros_like(values), np.zeros((len(values), family.layers[1].width))
    for step in range(2 * N_STEPS):
        both = family.draw_side(parts, 1, [state, None], rng)
        if step >= N_STEPS:
            visible += family.means(parts, 0, both)
            hidden += family.means(parts, 1, both)
        state = np.where(missing, family.draw(parts, 0, both, rng), values)
    return np.where(missing, visible / N_STEPS, values), hidden / N_STEPS
