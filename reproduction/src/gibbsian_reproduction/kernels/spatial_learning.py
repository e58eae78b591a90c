"""Whole runs of YU20 Algorithm 2 on spins, for thousands of short steps: samples stand by variable throughout.

What a step costs beside its exponentials is kept small. On a graph without triangles a neighbour k that is summed out
sends variable i the message ``atanh(tanh F_k\\i tanh w_ik)``, whatever the target is (YU20 eq. 24), and the field
without i takes few values: so messages are looked up, once for each end of each edge, and s2-SMCI costs little more
than 1-SMCI.
"""

import math

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba import regions as choices
from gibbsian.backends.numba.math import VECTOR_MATH, copy_to, fast_exp
from gibbsian.backends.numba.random import advance, fill_thresholds
from gibbsian.backends.numba.spatial import N_SUMS, REFERENCE, TOTAL, Forests, Shares, Spins, fill_fields
from gibbsian.backends.numba.spatial_forests import forest_targets

PLAIN, FIRST, SEMI_SECOND, FOREST = range(4)


@njit(cache=True, fastmath=True)
def _mean(values):
    total = 0.0
    for m in range(values.size):
        total += values[m]
    return total / values.size


@njit(cache=True, fastmath=True)
def _mean_product(first, second):
    total = 0.0
    for m in range(first.size):
        total += first[m] * second[m]
    return total / first.size


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _fill_tanh(values, field):
    for m in range(values.size):
        e = fast_exp(-2.0 * abs(field[m]))
        values[m] = math.copysign((1.0 - e) / (1.0 + e), field[m])


@njit(cache=True, fastmath=VECTOR_MATH, error_model="numpy")
def _fill_pair(values, a, b, coupling):
    """``tanh(w + atanh(tanh a tanh b))`` (YU20 eq. 15) from the four states' weights, as sums of positive terms."""
    disfavoured = math.exp(-2.0 * abs(coupling))
    for m in range(values.size):
        ea, eb = fast_exp(-2.0 * abs(a[m])), fast_exp(-2.0 * abs(b[m]))
        sign = math.copysign(1.0, a[m]) * math.copysign(1.0, b[m])
        favoured = sign * coupling >= 0.0
        equal = (1.0 + ea * eb) * (1.0 if favoured else disfavoured)
        unequal = (ea + eb) * (disfavoured if favoured else 1.0)
        values[m] = sign * (equal - unequal) / (equal + unequal)


@njit(cache=True, fastmath=VECTOR_MATH)
def _fill_without(out, field, spins, weight):
    for m in range(out.size):
        out[m] = field[m] - weight * spins[m]


@njit(cache=True, fastmath=VECTOR_MATH)
def _add(out, more):
    for m in range(out.size):
        out[m] += more[m]


@njit(cache=True)
def _sweep(spins, streams, biases, indptr, heads, weights, words, thresholds, field):
    """One Gibbs sweep of all chains in the order of the variables; chain m draws from ``streams[:, m]``."""
    n, n_chains = spins.shape
    for i in range(n):
        for m in range(n_chains):
            word, s0, s1, s2, s3 = advance(streams[0, m], streams[1, m], streams[2, m], streams[3, m])
            words[m] = word
            streams[0, m], streams[1, m], streams[2, m], streams[3, m] = s0, s1, s2, s3
        fill_thresholds(words, thresholds)
        field[:] = biases[i]
        for position in range(indptr[i], indptr[i + 1]):
            weight, neighbour = weights[position], spins[heads[position]]
            for m in range(n_chains):
                field[m] += weight * neighbour[m]
        own = spins[i]
        for m in range(n_chains):
            own[m] = 1.0 if field[m] > thresholds[m] else -1.0


@njit(cache=True)
def _plain_moments(moments, spins, edges):
    n = len(spins)
    for i in range(n):
        moments[i] = _mean(spins[i])
    for e in range(len(edges)):
        moments[n + e] = _mean_product(spins[edges[e, 0]], spins[edges[e, 1]])


@njit(cache=True)
def _first_moments(moments, spins, fields, couplings, edges, a, b, values):
    """1-SMCI (YU20 eq. 14 and 15)."""
    n = len(spins)
    for i in range(n):
        _fill_tanh(values, fields[i])
        moments[i] = _mean(values)
    for e in range(len(edges)):
        i, j, w = edges[e, 0], edges[e, 1], couplings[e]
        _fill_without(a, fields[i], spins[j], w)
        _fill_without(b, fields[j], spins[i], w)
        _fill_pair(values, a, b, w)
        moments[n + e] = _mean(values)


@njit(cache=True)
def _log_cosh(u):
    return abs(u) + math.log1p(math.exp(-2.0 * abs(u)))


@njit(cache=True)
def _fill_message_table(table, k, i, weight, biases, indptr, heads, weights):
    """The message from k to i for each state of k's other neighbours, the first of them the lowest bit."""
    size = 1
    table[0] = biases[k]
    for position in range(indptr[k], indptr[k + 1]):
        if heads[position] != i:
            for code in range(size):
                table[size + code] = table[code] + weights[position]
                table[code] -= weights[position]
            size *= 2
    for code in range(size):
        table[code] = 0.5 * (_log_cosh(table[code] + weight) - _log_cosh(table[code] - weight))


@njit(cache=True)
def _fill_exchanges(exchanges, spins, bits, codes, table, biases, indptr, heads, weights):
    """What the field of i gains when a neighbour is summed out: its message in place of its own pull."""
    n, n_samples = spins.shape
    for i in range(n):
        for m in range(n_samples):
            bits[i, m] = spins[i, m] > 0.0
    for i in range(n):
        for place in range(indptr[i], indptr[i + 1]):
            k, weight = heads[place], weights[place]
            _fill_message_table(table, k, i, weight, biases, indptr, heads, weights)
            codes[:] = 0
            shift = 0
            for position in range(indptr[k], indptr[k + 1]):
                if heads[position] != i:
                    other = bits[heads[position]]
                    for m in range(n_samples):
                        codes[m] += other[m] << shift
                    shift += 1
            row, own = exchanges[place], spins[k]
            for m in range(n_samples):
                row[m] = table[codes[m]] - weight * own[m]


@njit(cache=True)
def _place_of(k, i, indptr, heads):
    """Where k stands among the neighbours of i; -1 if it is none."""
    for position in range(indptr[i], indptr[i + 1]):
        if heads[position] == k:
            return position
    return -1


@njit(cache=True)
def _semi_second_moments(
    moments, spins, fields, exchanges, couplings, edges, starts, members, indptr, heads, a, b, values
):
    """s2-SMCI (YU20 eq. 22 and 23) without triangles: all neighbours of a variable, the chosen ones of a pair."""
    n = len(spins)
    for i in range(n):
        copy_to(a, fields[i])
        for place in range(indptr[i], indptr[i + 1]):
            _add(a, exchanges[place])
        _fill_tanh(values, a)
        moments[i] = _mean(values)
    for e in range(len(edges)):
        i, j, w = edges[e, 0], edges[e, 1], couplings[e]
        _fill_without(a, fields[i], spins[j], w)
        _fill_without(b, fields[j], spins[i], w)
        for member in range(starts[e], starts[e + 1]):
            place = _place_of(members[member], i, indptr, heads)
            if place >= 0:
                _add(a, exchanges[place])
            else:
                _add(b, exchanges[_place_of(members[member], j, indptr, heads)])
        _fill_pair(values, a, b, w)
        moments[n + e] = _mean(values)


@njit(cache=True)
def _forests(indptr, heads, edge_of, strengths, targets):
    n_targets, width = targets.shape
    pointers, nodes = np.arange(n_targets + 1) * width, targets.ravel()
    starts, members = choices.forests(indptr, heads, strengths, pointers, nodes, indptr.size - 1)
    parts = choices.rooted(indptr, heads, edge_of, pointers, nodes, starts, members)
    own = np.arange(n_targets) if width == 2 else np.full(n_targets, -1)
    return Forests(targets, own, starts, parts[0], parts[1], parts[2], parts[3], parts[4])


@njit(cache=True)
def _forest_moments(moments, spins, fields, couplings, node_regions, pair_regions, shares):
    n, n_pairs = len(node_regions.targets), len(pair_regions.targets)
    sums = np.zeros((n + n_pairs, N_SUMS))
    system, block = Spins(couplings, spins, fields, False), Shares(shares, shares, shares, False, True)
    forest_targets(0, n, node_regions, system, sums[:n], block)
    forest_targets(0, n_pairs, pair_regions, system, sums[n:], block)
    for k in range(moments.size):
        moments[k] = sums[k, REFERENCE] + sums[k, TOTAL]


@njit(cache=True)
def learning_curve(method, data_moments, spins, streams, moving, rate, n_steps, every, renewal, graph, target):
    """Mean absolute distance of the couplings to `target` after every so many steps of ascent from zero.

    Parameters
    ----------
    method : int
        `PLAIN` (PCD), `FIRST`, `SEMI_SECOND` (graphs without triangles only) or `FOREST`.
    data_moments : ndarray of shape (n + n_edges,)
        Means of x_i and x_i x_j in the data.
    spins : float64 ndarray of shape (n, n_samples)
        The samples by variable; overwritten where they move.
    streams : uint64 ndarray of shape (4, n_samples)
        The chains' random streams.
    moving : bool
        Whether the samples follow the model, one sweep between two steps.
    rate, n_steps : float, int
        The steps.
    every, renewal : int
        After how many steps the distance is noted, and after how many the regions are chosen again.
    graph : tuple
        ``(indptr, heads, edge_of, edges)``.
    target : ndarray of shape (n_edges,)
        Where the couplings should go.

    Returns
    -------
    distances : ndarray of shape (n_steps // every + 1,)
    theta : ndarray of shape (n + n_edges,)
        The parameters at the end.
    """
    indptr, heads, edge_of, edges = graph
    n, n_samples = spins.shape
    theta, moments = np.zeros(n + len(edges)), np.empty(n + len(edges))
    biases, couplings = theta[:n], theta[n:]
    words, thresholds, field = np.empty(n_samples, np.uint64), np.empty(n_samples), np.empty(n_samples)
    a, b, values, fields = np.empty(n_samples), np.empty(n_samples), np.empty(n_samples), np.empty((n, n_samples))
    exchanges = np.empty((heads.size if method == SEMI_SECOND else 0, n_samples))
    bits, codes = np.empty((n, n_samples), np.int32), np.empty(n_samples, np.int32)
    table = np.empty(2 ** (indptr[1:] - indptr[:-1]).max())
    shares, pointers, singles = np.full(n_samples, 1.0 / n_samples), 2 * np.arange(len(edges) + 1), np.arange(n)
    nodes = singles.reshape(-1, 1)
    starts, members, _ = choices.independent_sets(indptr, heads, np.zeros(heads.size), pointers, edges.ravel())
    node_regions = _forests(indptr, heads, edge_of, np.zeros(heads.size), nodes)
    pair_regions = _forests(indptr, heads, edge_of, np.zeros(heads.size), edges)
    distances = np.empty(n_steps // every + 1)
    distances[0] = np.abs(target).mean()
    for t in range(n_steps):
        weights = couplings[edge_of]
        if moving and t > 0:
            _sweep(spins, streams, biases, indptr, heads, weights, words, thresholds, field)
        if method == PLAIN:
            _plain_moments(moments, spins, edges)
        else:
            fill_fields(fields, spins, biases, indptr, heads, weights)
        if method == FIRST:
            _first_moments(moments, spins, fields, couplings, edges, a, b, values)
        elif method == SEMI_SECOND:
            if t % renewal == 0:
                starts, members, _ = choices.independent_sets(indptr, heads, np.abs(weights), pointers, edges.ravel())
            _fill_exchanges(exchanges, spins, bits, codes, table, biases, indptr, heads, weights)
            _semi_second_moments(
                moments, spins, fields, exchanges, couplings, edges, starts, members, indptr, heads, a, b, values
            )
        elif method == FOREST:
            if t % renewal == 0:
                node_regions = _forests(indptr, heads, edge_of, np.abs(weights), nodes)
                pair_regions = _forests(indptr, heads, edge_of, np.abs(weights), edges)
            _forest_moments(moments, spins, fields, couplings, node_regions, pair_regions, shares)
        theta += rate * (data_moments - moments)
        if (t + 1) % every == 0:
            distances[(t + 1) // every] = np.abs(couplings - target).mean()
    return distances, theta
