"""TA22's Algorithms 1 to 3 to the letter: every function a row of numbers, probabilities a table, no shortcut."""

from __future__ import annotations

import itertools
import math

import numpy as np


def local_functions(q):
    """Eq. 2.2 for powers of two, eq. 2.3 otherwise; one row per function."""
    if q & (q - 1) == 0:
        matrix = np.array([[1.0]])
        while len(matrix) < q:
            matrix = np.block([[matrix, matrix], [matrix, -matrix]])
        return matrix
    return np.array([[1.0 if j == 0 or j == value else -1.0 for value in range(q)] for j in range(q)])


def all_functions(cardinalities):
    """Eq. 2.1: the table of Phi_y(x), one row per function, both in the order of ``itertools.product``."""
    table = np.array([[1.0]])
    for q in cardinalities:
        table = np.kron(table, local_functions(q))
    return table


def description_lengths(cardinalities, n_samples):
    """Eq. 2.5 for every function."""
    n = len(cardinalities)
    lengths = []
    for y in itertools.product(*map(range, cardinalities)):
        names = sum(math.log(n * (q - 1)) for y_i, q in zip(y, cardinalities, strict=True) if y_i != 0)
        lengths.append((0.5 * math.log(n_samples) + names) / n_samples)
    return np.array(lengths)


def empirical(states, counts, cardinalities):
    table = np.zeros(math.prod(cardinalities))
    np.add.at(table, np.ravel_multi_index(np.asarray(states).T, cardinalities), counts)
    return table / table.sum()


def cost_of(theta, functions, p_data, lengths):
    """Eq. 2.5, from the definition."""
    weights = np.exp(theta @ functions)
    p = weights / weights.sum()
    seen = p_data > 0
    divergence = np.sum(p_data[seen] * np.log(p_data[seen] / p[seen]))
    return divergence + lengths[theta != 0].sum()


def change(d, before, after):
    """Eq. 2.17: how the divergence changes along one axis."""
    return 0.5 * (1 + d) * math.log((1 + before) / (1 + after)) + 0.5 * (1 - d) * math.log((1 - before) / (1 - after))


def learn(states, counts, cardinalities, epsilon=1e-4, max_steps=1000):
    """Return theta of all functions, the moves (kind, y) and the cost after each, computed from its definition."""
    functions = all_functions(cardinalities)
    n_samples = float(np.sum(counts))
    lengths = description_lengths(cardinalities, n_samples)
    p_data = empirical(states, counts, cardinalities)
    d = functions @ p_data
    limit = 1 - 1 / n_samples
    size = len(d)
    theta, p = np.zeros(size), np.full(size, 1 / size)
    moves, costs = [], []
    while len(moves) < max_steps:
        dual = functions @ p
        best, chosen = 0.0, None
        for y in range(1, size):
            target = min(max(d[y], -limit), limit)
            fitted = theta[y] + math.atanh(target) - math.atanh(dual[y])
            if theta[y] == 0:
                candidates = [("append", fitted, change(d[y], dual[y], target) + lengths[y])]
            else:
                without = math.tanh(math.atanh(dual[y]) - theta[y])
                candidates = [
                    ("adjust", fitted, change(d[y], dual[y], target)),
                    ("remove", 0.0, change(d[y], dual[y], without) - lengths[y]),
                ]
            for kind, value, delta in candidates:
                if delta < best:
                    best, chosen = delta, (kind, y, value)
        if -best < epsilon or chosen is None:
            break
        kind, y, value = chosen
        p = p * np.exp((value - theta[y]) * functions[y])
        p /= p.sum()
        theta[y] = value
        moves.append((kind, y))
        costs.append(cost_of(theta, functions, p_data, lengths))
    return theta, moves, costs
