"""Kernels of layers: means, draws and sums of independent units given their fields, and the step of the weights.

Arrays of fields have one row for each sample; float64 or float32, the arithmetic is in float64. Uniform random numbers
come as an array, so that draws do not depend on threads.
"""

import math

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import MAX_FACTORS, VECTOR_MATH, fast_exp, product


# error_model="numpy": a test for division by zero would keep the loops from being vectorised
@njit(cache=True, nogil=True, fastmath=VECTOR_MATH, error_model="numpy")
def sigmoids(fields, means):
    """Fill `means` with ``1 / (1 + exp(-field))``."""
    for m in range(fields.shape[0]):
        for i in range(fields.shape[1]):
            f = np.float64(fields[m, i])
            e = fast_exp(-abs(f))
            means[m, i] = (1.0 if f > 0.0 else e) / (1.0 + e)


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH, error_model="numpy")
def two_valued_draws(fields, slope, low, draws):
    """Overwrite uniform numbers with 1 where ``uniform < sigmoid(slope * field)``, otherwise with `low`."""
    for m in range(fields.shape[0]):
        for i in range(fields.shape[1]):
            f = slope * fields[m, i]
            e = fast_exp(-abs(f))
            draws[m, i] = 1.0 if draws[m, i] * (1.0 + e) < (1.0 if f > 0.0 else e) else low


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _factors_of_row(fields, slope, factors):
    for i in range(fields.size):
        factors[i] = 1.0 + fast_exp(-slope * abs(np.float64(fields[i])))


@njit(cache=True, fastmath=True)
def _positive_total(values):
    total = 0.0
    for i in range(values.size):
        total += max(np.float64(values[i]), 0.0)
    return total


@njit(cache=True, fastmath=True)
def _absolute_total(values):
    total = 0.0
    for i in range(values.size):
        total += abs(np.float64(values[i]))
    return total


@njit(cache=True, nogil=True)
def two_valued_log_sums(fields, spins, sums):
    """Fill `sums` with each row's ``sum_i log(1 + exp(field_i))``, or ``sum_i log(2 cosh(field_i))`` for spins.

    One logarithm is taken for the product of up to a thousand factors ``1 + exp(-|..|)``.
    """
    n = fields.shape[1]
    factors = np.empty(n)
    for m in range(fields.shape[0]):
        _factors_of_row(fields[m], 2.0 if spins else 1.0, factors)
        total = _absolute_total(fields[m]) if spins else _positive_total(fields[m])
        for start in range(0, n, MAX_FACTORS):
            total += math.log(product(factors[start : start + MAX_FACTORS]))
        sums[m] = total


@njit(cache=True, inline="always")
def _top(fields, start, stop):
    top = fields[start]
    for k in range(start + 1, stop):
        top = max(top, fields[k])
    return np.float64(top)


@njit(cache=True, nogil=True, error_model="numpy")
def softmaxes(fields, starts, means):
    """Fill `means` with the probability of each value of each unit; unit k has the columns from ``starts[k]`` on."""
    for m in range(fields.shape[0]):
        for unit in range(starts.size - 1):
            start, stop = starts[unit], starts[unit + 1]
            top = _top(fields[m], start, stop)
            total = 0.0
            for k in range(start, stop):
                total += fast_exp(fields[m, k] - top)
            for k in range(start, stop):
                means[m, k] = fast_exp(fields[m, k] - top) / total


@njit(cache=True, nogil=True, error_model="numpy")
def categorical_draws(fields, starts, uniforms, draws):
    """Fill `draws` with indicators: of each unit the first value where the cumulated weights pass a uniform share."""
    draws[:] = 0.0
    for m in range(fields.shape[0]):
        for unit in range(starts.size - 1):
            start, stop = starts[unit], starts[unit + 1]
            top = _top(fields[m], start, stop)
            total = 0.0
            for k in range(start, stop):
                total += fast_exp(fields[m, k] - top)
            left = uniforms[m, unit] * total
            chosen = stop - 1
            for k in range(start, stop - 1):
                left -= fast_exp(fields[m, k] - top)
                if left < 0.0:
                    chosen = k
                    break
            draws[m, chosen] = 1.0


@njit(cache=True, nogil=True)
def categorical_log_sums(fields, starts, sums):
    """Fill `sums` with each row's sum over units of ``log sum_value exp(field)``."""
    for m in range(fields.shape[0]):
        row = 0.0
        for unit in range(starts.size - 1):
            start, stop = starts[unit], starts[unit + 1]
            top = _top(fields[m], start, stop)
            total = 0.0
            for k in range(start, stop):
                total += fast_exp(fields[m, k] - top)
            row += top + math.log(total)
        sums[m] = row


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH)
def move_weights(weights, velocity, gradient, rate, momentum, l2):
    """One step of the weights in place, ``velocity <- momentum velocity + rate (gradient - l2 weight)``."""
    for k in range(weights.size):
        step = momentum * velocity[k] + rate * (gradient[k] - l2 * weights[k])
        velocity[k] = step
        weights[k] += step


@njit(cache=True, nogil=True, fastmath=VECTOR_MATH)
def shrink(weights, threshold):
    """Move weights towards zero in place by a threshold, and stop there: the proximal step of an L1 penalty."""
    for k in range(weights.size):
        w = weights[k]
        weights[k] = max(w - threshold, 0.0) + min(w + threshold, 0.0)


# == what layers ask of the library of their arrays: the same names in `gibbsian.backends.torch.layers` ===============
def affine(values, weights, biases=None):
    """Return ``values W + biases`` in the precision of the weights."""
    fields = np.asarray(values, dtype=weights.dtype) @ weights
    if biases is not None:
        fields += biases
    return fields


def dot(values, weights):
    """Return the sum of the columns of values times weights, which are one row or one for each row."""
    return values @ weights if weights.ndim == 1 else np.einsum("mi,mi->m", values, weights)


def two_valued_means(fields, low):
    """Return the means of units of the values `low` (0 or -1) and 1."""
    if low:
        return np.tanh(fields)
    means = np.empty_like(fields)
    sigmoids(fields, means)
    return means


def draw_two_valued(fields, low, rng):
    """Draw values `low` or 1."""
    draws = rng.random(fields.shape, dtype=fields.dtype)
    two_valued_draws(fields, 1.0 - low, low, draws)
    return draws


def two_valued_log_normaliser(fields, low):
    """Return the log of the sum over the values of each row."""
    sums = np.empty(len(fields))
    two_valued_log_sums(fields, low < 0.0, sums)
    return sums


def categorical_means(fields, edges):
    """Return the probability of each value; unit k has the columns from ``edges[k]`` to ``edges[k + 1]``."""
    means = np.empty_like(fields)
    softmaxes(fields, edges, means)
    return means


def draw_categories(fields, edges, rng):
    """Draw indicators."""
    draws = np.empty_like(fields)
    categorical_draws(fields, edges, rng.random((len(fields), edges.size - 1), dtype=fields.dtype), draws)
    return draws


def categorical_log_normaliser(fields, edges):
    """Return the log of the sum over the values of each row."""
    sums = np.empty(len(fields))
    categorical_log_sums(fields, edges, sums)
    return sums


def draw_normal(fields, deviations, rng):
    """Draw normal numbers of these standard deviations, whose means are variance times field."""
    noise = rng.standard_normal(fields.shape) * np.asarray(deviations)
    return (fields * np.square(deviations) + noise).astype(fields.dtype)


def normal_means(fields, deviations):
    """Return the means, variance times field."""
    return (fields * np.square(deviations)).astype(fields.dtype)


def normal_log_normaliser(fields, deviations):
    """Return the log of the integral over the values of each row."""
    variances = np.square(deviations)
    return 0.5 * (np.square(fields) * variances).sum(axis=1) + 0.5 * np.log(2.0 * np.pi * variances).sum()


def normal_log_measure(values, deviations):
    """Return the log-weight of each row of values at zero fields."""
    return -0.5 * (np.square(values) / np.square(deviations)).sum(axis=1)


def empty(height, width, like):
    """Return an array of the kind of another, with nothing in it yet."""
    return np.empty((height, width), like.dtype)


def momentum_step(theta, velocity, gradient, rate, momentum, l1, l2):
    """Make a step in place: momentum, the L2 penalty, and the proximal step of the L1 penalty."""
    move_weights(theta, velocity, gradient, *map(theta.dtype.type, (rate, momentum, l2)))
    if l1:
        # with momentum a step of the gradient adds up to 1 / (1 - momentum) times its length
        shrink(theta, theta.dtype.type(rate * l1 / (1.0 - momentum)))


def draw_along(layer, inputs, biases, base, beta, rng):
    """Draw units whose fields are ``(1 - beta) base + beta (biases + inputs)``."""
    return layer.draw((1.0 - beta) * base + beta * biases + beta * inputs, rng)


def column_means(values):
    """Return the mean of each column; np.mean itself would take longer than the sums of a small minibatch."""
    return values.sum(0) / len(values)


def towards(values, others, share):
    """Return values moved by a share of the way to others."""
    return values + share * (others - values)


def subtract_product(values, matrix, vector):
    """Subtract ``matrix @ vector`` from values in place."""
    values -= matrix @ vector


def join_phases(data, free, offset, left, right, difference):
    """Fill in what the gradient of minibatches multiplies for one layer; return the means of the data's columns.

    The rows of `left` are those of the data, samples of the free phase (which may give its means alone), the offset and
    the means of the data less those of the free phase; the rows of `right` are those of data over their number, samples
    over minus theirs, and minus the last two in turn. Without an offset both lack these. `difference` gets the last.
    """
    sampled = free.ndim == 2
    mean = column_means(data)
    difference[:] = mean - (column_means(free) if sampled else free)
    start = 0
    for rows, sign in ((data, 1.0), (free, -1.0))[: 1 + sampled]:
        at = slice(start, start + len(rows))
        if left is not None:
            left[at] = rows
        if right is not None:
            right[at] = rows
            right[at] *= sign / len(rows)
        start += len(rows)
    if offset is not None:
        if left is not None:
            left[start], left[start + 1] = offset, difference
        if right is not None:
            right[start], right[start + 1] = -difference, -offset
    return mean
