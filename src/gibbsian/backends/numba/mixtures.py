"""Loops of mixtures: rows to classes, softly or to the best one, and the online winner-take-all rule.

The assignments overwrite ``scores`` (classes x rows, log-weights up to a constant per row) with the share of each class
times the row's weight, and return the free energy. They work on one thread and leave the interpreter free. Classes come
first so that the inner loops run along the rows and become vector code whatever the number of classes.
"""

import math

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import VECTOR_MATH, copy_to, fast_exp

_ROUNDING = 1e-9  # more than what sums of a few thousand squares lose
_IN_LANES = VECTOR_MATH | {"reassoc"}  # sums too
_SINGLE_UNIT, _SMALLEST_SINGLE = 2.0**-24, 2.0**-125  # rounding of single precision
_CHUNK = 512  # rows at a time: all their scores stay in the first-level cache


@njit(cache=True, fastmath=VECTOR_MATH)
def _largest(row, highest):
    for i in range(row.size):
        highest[i] = max(highest[i], row[i])


@njit(cache=True, fastmath=VECTOR_MATH)
def _exponentials(row, highest, totals):
    for i in range(row.size):
        e = fast_exp(row[i] - highest[i])
        row[i] = e
        totals[i] += e


@njit(cache=True, fastmath=VECTOR_MATH)
def _scaled(row, scales):
    for i in range(row.size):
        row[i] *= scales[i]


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _quotients(weights, totals, scales):
    for i in range(weights.size):
        scales[i] = weights[i] / totals[i]


@njit(cache=True, nogil=True)
def soft_assignment(scores, weights):
    """Shares proportional to exp(score); returns ``-sum_i w_i log sum_a exp(score_ai)``."""
    k, n_rows = scores.shape
    free_energy = 0.0
    highest, totals, scales = np.empty(_CHUNK), np.empty(_CHUNK), np.empty(_CHUNK)
    for start in range(0, n_rows, _CHUNK):
        end = min(start + _CHUNK, n_rows)
        n = end - start
        top, total, scale = highest[:n], totals[:n], scales[:n]
        copy_to(top, scores[0, start:end])
        total[:] = 0.0
        for a in range(1, k):
            _largest(scores[a, start:end], top)
        for i in range(n):
            if top[i] == -np.inf:  # no class can explain the row: it counts in none
                top[i] = 0.0
                free_energy = np.inf
        for a in range(k):
            _exponentials(scores[a, start:end], top, total)
        _quotients(weights[start:end], total, scale)
        for a in range(k):
            _scaled(scores[a, start:end], scale)
        for i in range(n):
            free_energy -= weights[start + i] * (top[i] + math.log(total[i]))
    return free_energy


@njit(cache=True, nogil=True)
def hard_assignment(scores, weights):
    """All of a row to its best class (the first of equals); returns ``-sum_i w_i max_a score_ai``."""
    k, n_rows = scores.shape
    free_energy = 0.0
    for i in range(n_rows):
        best = 0
        for a in range(1, k):
            if scores[a, i] > scores[best, i]:
                best = a
        free_energy -= weights[i] * scores[best, i]
        for a in range(k):
            scores[a, i] = 0.0
        scores[best, i] = weights[i]
    return free_energy


@njit(cache=True, nogil=True)
def winner_take_all(rows, weights, order, means, wins, cells, first_rate, constant, normalised):
    """Show the rows one at a time: the unit nearest to a row moves towards it (in place), the others stay.

    The rate of a cell falls with what its unit has won there, ``w / (1/first_rate - 1 + cells)``; with ``first_rate =
    1`` each mean is the average of all the present cells it ever won. A `constant` rate counts a row of weight w as one
    that is shown w times. Missing cells are NaN where units are not normalised.
    """
    k, n_columns = means.shape
    head_start = 1.0 / first_rate - 1.0
    for i in order:
        best, best_score = 0, -np.inf
        for a in range(k):
            score = 0.0
            if normalised:
                for j in range(n_columns):
                    score += means[a, j] * rows[i, j]
            else:  # differences first: |m|^2 - 2 m.x would cancel far from the origin
                for j in range(n_columns):
                    difference = rows[i, j] - means[a, j]
                    if difference == difference:  # a missing cell is NaN and tells nothing
                        score -= difference**2
            if score > best_score:
                best, best_score = a, score
        wins[best] += weights[i]
        rate = 1.0 - (1.0 - first_rate) ** weights[i]
        square = 0.0
        for j in range(n_columns):
            if rows[i, j] == rows[i, j]:
                cells[best, j] += weights[i]
                if not constant:
                    rate = weights[i] / (head_start + cells[best, j])
                means[best, j] += rate * (rows[i, j] - means[best, j])
            square += means[best, j] ** 2
        if normalised and square > 0.0:
            for j in range(n_columns):
                means[best, j] /= math.sqrt(square)


@njit(cache=True, nogil=True)
def best_classes(products, offsets, labels):
    """Write the class of the highest product plus offset of each row (the first of equals); rows come first."""
    n_rows, k = products.shape
    for i in range(n_rows):
        highest, label = -np.inf, 0
        for a in range(k):
            score = products[i, a] + offsets[a]
            if score > highest:
                highest, label = score, a
        labels[i] = label


@njit(cache=True, inline="always")  # a call takes as long as a row of fifty columns
def _distance(row, mean):
    total = 0.0
    for j in range(row.size):
        total += (row[j] - mean[j]) ** 2
    return total


@njit(cache=True, inline="always")
def _add_row(weight, row, total):
    for j in range(row.size):
        total[j] += weight * row[j]


@njit(cache=True, nogil=True, fastmath=_IN_LANES)
def stay(drift, rows, weights, labels, others, means, mass, sums, squares, unsure):
    """Add up the rows of each mean and their squared distances, but those that may have a nearer: return their places.

    Before no mean had moved by more than `drift`, all means but its own were `others` away from a row at least: most
    rows need no look at them (Hamerly 2010).
    """
    n_unsure = 0
    for i in range(labels.size):
        a = labels[i]
        others[i] -= drift
        least = _distance(rows[i], means[a]) if others[i] > 0.0 else np.inf
        if least < others[i] * others[i]:
            mass[a] += weights[i]
            squares[a] += weights[i] * least
            _add_row(weights[i], rows[i], sums[a])
        else:
            unsure[n_unsure] = i
            n_unsure += 1
    return unsure[:n_unsure]


@njit(cache=True, nogil=True)
def in_single(rows, chosen, scale):
    """Return some rows, scaled, in single precision."""
    scaled = np.empty((chosen.size, rows.shape[1]), np.float32)
    for m in range(chosen.size):
        row, own = rows[chosen[m]], scaled[m]
        for j in range(own.size):
            own[j] = scale * row[j]
    return scaled


@njit(cache=True, fastmath=VECTOR_MATH)
def _compare(a, scores, offset, highest, second, near):
    """Let the scores of class a compete for the two highest of each row."""
    for m in range(scores.size):
        score = scores[m] + offset
        is_highest = score > highest[m]
        second[m] = highest[m] if is_highest else max(second[m], score)
        near[m] = a if is_highest else near[m]
        highest[m] = score if is_highest else highest[m]


@njit(cache=True, nogil=True, fastmath=_IN_LANES)
def to_nearest(products, offsets, scale, unsure, rows, weights, labels, others, means, mass, sums, squares):
    """Move rows to means that are truly nearer than their own, and add them up there.

    `products` of means and rows, both scaled, and `offsets` are in single precision, classes first: means that are as
    good within what rounding may have done are compared by their distances. A row stays where a mean is only as near as
    its own.
    """
    lengths, unit = np.sqrt(-2.0 * offsets), _SINGLE_UNIT * (rows.shape[1] + 4)
    longest = lengths.max()
    highest, second = np.empty(_CHUNK, np.float32), np.empty(_CHUNK, np.float32)
    near = np.empty(_CHUNK, np.int32)
    for start in range(0, unsure.size, _CHUNK):
        n = min(_CHUNK, unsure.size - start)
        highest[:n], second[:n], near[:n] = -np.inf, -np.inf, 0
        for b in range(offsets.size):
            _compare(np.int32(b), products[b, start : start + n], offsets[b], highest[:n], second[:n], near[:n])
        for m in range(n):
            i = unsure[start + m]
            a, gap = labels[i], np.float64(highest[m]) - np.float64(second[m])
            least = _distance(rows[i], means[a])
            distance = scale * math.sqrt(least)
            reach = min(longest, 2.0 * lengths[a] + 4.0 * distance)  # longer means are farther, whatever is rounded
            error = unit * (reach * (2.0 * reach + distance) + _SMALLEST_SINGLE)
            sure = near[m] == a and gap > 2.0 * error
            if not sure:
                for b in range(offsets.size):
                    if products[b, start + m] + offsets[b] >= highest[m] - 2.0 * error:
                        square = _distance(rows[i], means[b])
                        if square < least:
                            a, least = b, square
                labels[i] = a
            mass[a] += weights[i]
            squares[a] += weights[i] * least
            _add_row(weights[i], rows[i], sums[a])
            # squared distances are differences of scores, which may have lost most digits
            bound = (1.0 - _ROUNDING) * least + (2.0 * (1.0 - 16.0 * unit) * gap - 4.0 * error) / scale**2
            others[i] = (1.0 - _ROUNDING) * math.sqrt(max(bound, 0.0)) if sure else 0.0
