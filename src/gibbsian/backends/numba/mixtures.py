"""Loops of mixtures: rows to classes, softly or to the best one, and the online winner-take-all rule.

The assignments overwrite ``scores`` (classes x rows, log-weights up to a constant per row) with the share of each class
times the row's weight, and return the free energy. They work on one thread and leave the interpreter free. Classes come
first so that the inner loops run along the rows and become vector code whatever the number of classes.
"""

import math

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.elementary import VECTOR_MATH, copy_to, fast_exp

_CHUNK = 512  # rows at a time: all their scores stay in the first-level cache
_CERTAIN = 1.0 - 1e-9  # a distance as far as rounding leaves it certain


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


@njit(cache=True, fastmath=VECTOR_MATH | {"reassoc"})  # a sum in several lanes
def _distance(row, mean):
    total = 0.0
    for j in range(row.size):
        total += (row[j] - mean[j]) ** 2
    return total


@njit(cache=True, nogil=True)
def to_nearest(means, drift, rows, weights, labels, others, near):
    """Move rows to means that are truly nearer than their own, in place, and return the energy.

    Before no mean had moved by more than `drift`, all means but its own were `others` away from a row at least: most
    rows need no look at them (Hamerly 2010). Where products with many means say which is `near`, only that is compared.
    """
    energy = 0.0
    for i in range(labels.size):
        others[i] -= drift
        best, least = labels[i], _distance(rows[i], means[labels[i]])
        if others[i] <= 0.0 or least >= others[i] * others[i]:
            first, last = (near[i], near[i] + 1) if near.size else (0, len(means))
            second = np.inf
            for a in range(first, last):
                if a != labels[i]:
                    distance = _distance(rows[i], means[a])
                    if distance < least:
                        best, least, second = a, distance, least
                    else:
                        second = min(second, distance)
            labels[i], others[i] = best, 0.0 if near.size else _CERTAIN * math.sqrt(second)
        energy += weights[i] * least
    return energy


@njit(cache=True, nogil=True)
def class_shifts(means, rows, weights, labels):
    """Return the weight of each class and the summed differences of its rows from its mean."""
    mass, sums = np.zeros(len(means)), np.zeros(means.shape)
    for i in range(labels.size):
        a = labels[i]
        mass[a] += weights[i]
        for j in range(rows.shape[1]):
            sums[a, j] += weights[i] * (rows[i, j] - means[a, j])
    return mass, sums
