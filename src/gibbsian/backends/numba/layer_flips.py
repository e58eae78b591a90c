"""What changes when one visible unit takes its other value, the hidden layer summed out; and pairs of units.

Both layers are two-valued: 0/1 or spins, with lower values `low` and distances `step` between the two. A unit's field
f gives its upper value the odds ``exp(step * f)``. Samples are rows of `values` with the hidden fields of each. Kernels
take some of the visible units, so that threads share the work and every sum has one order.
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import MAX_FACTORS, VECTOR_MATH, fast_exp, product


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH, error_model="numpy")
def _flipped_units(fields, weights, change, low, step, means, factors):
    """Give the hidden units of one sample their fields after a change of a visible unit.

    Fills `means`, and `factors` with ``1 + exp(-|x|)``, x = step * field.
    """
    for j in range(fields.size):
        x = step * (fields[j] + change * weights[j])
        small = fast_exp(-abs(x))
        factors[j] = 1.0 + small
        means[j] = low + step * (1.0 if x >= 0.0 else small) / (1.0 + small)


@njit(cache=True, nogil=True, fastmath=True)
def _larger_parts(fields, weights, change, low, step):
    """Return ``sum_j max(x_j, 0) + low * field_j``: what `factors` leave out of the log of a unit's sum of weights.

    For spins, ``exp(-f) + exp(f) = exp(-f) (1 + exp(2 f))``.
    """
    total = 0.0
    for j in range(fields.size):
        field = fields[j] + change * weights[j]
        total += max(step * field, 0.0) + low * field
    return total


@njit(cache=True, nogil=True)
def _flipped_log_sum(fields, weights, change, low, step, means, factors):
    """Return ``sum_j log z_j`` after a change of a visible unit, z the sum over a hidden unit's values."""
    _flipped_units(fields, weights, change, low, step, means, factors)
    total = _larger_parts(fields, weights, change, low, step)
    for start in range(0, factors.size, MAX_FACTORS):
        total += np.log(product(factors[start : start + MAX_FACTORS]))
    return total


@njit(cache=True, nogil=True)
def costs(values, fields, log_sums, biases, weights, low, step, hidden_low, hidden_step, costs):
    """Put ``log P(v) - log P(v with unit i at its other value)`` into ``costs[m, i]``; biases are those of T = 1."""
    means, factors = np.empty(fields.shape[1]), np.empty(fields.shape[1])
    for i in range(weights.shape[0]):
        for m in range(values.shape[0]):
            change = (low + step - values[m, i]) - (values[m, i] - low)
            flipped = _flipped_log_sum(fields[m], weights[i], change, hidden_low, hidden_step, means, factors)
            costs[m, i] = log_sums[m] - flipped - change * biases[i]


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH)
def _add_two(first, a, second, b, total):
    for j in range(total.size):
        total[j] += a * first[j] + b * second[j]


@njit(cache=True, nogil=True)
def layer_region(
    values, fields, hidden_means, log_sums, biases, weights, low, step, hidden_low, hidden_step, visible, products
):
    """Add ``E[v_i | v_-i]`` to ``visible[i]`` and ``E[v_i h_j | v_-i]`` to ``products[i, j]`` over all samples."""
    there_means, factors = np.empty(fields.shape[1]), np.empty(fields.shape[1])
    for i in range(weights.shape[0]):
        for m in range(values.shape[0]):
            here = values[m, i]
            change = (low + step - here) - (here - low)
            flipped = _flipped_log_sum(fields[m], weights[i], change, hidden_low, hidden_step, there_means, factors)
            cost = log_sums[m] - flipped - change * biases[i]
            small = np.exp(-abs(cost))
            stays = (1.0 if cost >= 0.0 else small) / (1.0 + small)
            goes = (small if cost >= 0.0 else 1.0) / (1.0 + small)
            there = here + change
            visible[i] += stays * here + goes * there
            _add_two(hidden_means[m], stays * here, there_means, goes * there, products[i])


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH, error_model="numpy")
def _pairs_of_unit(here, field, weights, hidden, hidden_fields, low, step, hidden_low, hidden_step, total):
    """Add ``E[v_i h_j | all others]`` to ``total[j]``: four weights, relative to that of both lower values."""
    high, hidden_high = low + step, hidden_low + hidden_step
    for j in range(total.size):
        w = weights[j]
        up = step * (field + w * (hidden_low - hidden[j]))
        right = hidden_step * (hidden_fields[j] + w * (low - here))
        both = up + right + w * step * hidden_step
        top = max(max(0.0, up), max(right, both))
        e_none, e_up, e_right, e_both = fast_exp(-top), fast_exp(up - top), fast_exp(right - top), fast_exp(both - top)
        weighted = hidden_low * (low * e_none + high * e_up) + hidden_high * (low * e_right + high * e_both)
        total[j] += weighted / ((e_none + e_up) + (e_right + e_both))


@njit(cache=True, nogil=True)
def pair_region(values, visible_fields, hidden, fields, weights, low, step, hidden_low, hidden_step, products):
    """Add ``E[v_i h_j | all other units]`` to ``products[i, j]`` over all samples of both layers (1-SMCI)."""
    for i in range(weights.shape[0]):
        for m in range(values.shape[0]):
            _pairs_of_unit(
                values[m, i],
                visible_fields[m, i],
                weights[i],
                hidden[m],
                fields[m],
                low,
                step,
                hidden_low,
                hidden_step,
                products[i],
            )
