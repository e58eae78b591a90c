"""Missing cells of pairwise spins (-1/+1) summed out exactly, many rows at a time.

The missing cells of a row are split in two: a *cut set*, all of whose values are gone through, and the rest, between
which no edge is left, so that given the cut set they are independent of each other and summed in closed form. The
missing cells of row r are ``cells[pointers[r] : pointers[r + 1]]``, the first ``n_cut[r]`` of them its cut set. Rows
are added up in blocks of constant size, so that no result depends on the number of threads.
"""

import math

import numpy as np

from gibbsian.backends.numba import njit

# The product of numbers in (1, 2] is put away as its logarithm before it overflows.
_LARGE = 1e200


@njit(cache=True)
def cut_rows(pointers, cells, indptr, heads, most):
    """Order the cells of each row with a cut set in front, and return its size; -1 where it would be more than `most`.

    Greedy: the cell with the most neighbours left among the missing ones goes first.
    """
    n_cut, degree = np.empty(pointers.size - 1, np.int64), np.empty(indptr.size - 1, np.int64)
    degree[:] = -1  # where a variable is present or in the cut set
    for r in range(n_cut.size):
        n_cut[r], free = 0, cells[pointers[r] : pointers[r + 1]]
        _count_neighbours(degree, free, indptr, heads)
        for k in range(free.size):
            best = k
            for a in range(k + 1, free.size):
                if degree[free[a]] > degree[free[best]]:
                    best = a
            if degree[free[best]] == 0:
                break
            if k == most:
                n_cut[r] = -1
                break
            free[k], free[best] = free[best], free[k]
            n_cut[r] += 1
            degree[free[k]] = -1
            for position in range(indptr[free[k]], indptr[free[k] + 1]):
                if degree[heads[position]] > 0:
                    degree[heads[position]] -= 1
        for i in free:
            degree[i] = -1
    return n_cut


@njit(cache=True)
def _count_neighbours(degree, free, indptr, heads):
    """Count the neighbours of each free variable among the free ones."""
    for i in free:
        degree[i] = 0
    for i in free:
        for position in range(indptr[i], indptr[i + 1]):
            if degree[heads[position]] >= 0:
                degree[i] += 1


@njit(cache=True)
def _couplings_of_cut(weight, edge, place, free, indptr, heads, ids, weights):
    """Couplings between the cut set and all missing cells, and the numbers of their edges (-1 where there is none)."""
    for a in range(free.size):
        place[free[a]] = a
    for c in range(len(weight)):
        weight[c], edge[c] = 0.0, -1
        for position in range(indptr[free[c]], indptr[free[c] + 1]):
            a = place[heads[position]]
            if a >= 0:
                weight[c, a], edge[c, a] = weights[position], ids[position]
    for i in free:
        place[i] = -1


@njit(cache=True)
def _sum_independent(spin, field, first):
    """Fill in the means of independent spins in their fields, and return the log of their partition function."""
    log_sum, product = 0.0, 1.0
    for a in range(first, field.size):
        size = abs(field[a])
        small = math.exp(-2.0 * size)
        product *= 1.0 + small
        log_sum += size
        spin[a] = math.copysign((1.0 - small) / (1.0 + small), field[a])
        if product > _LARGE:
            log_sum += math.log(product)
            product = 1.0
    return log_sum + math.log(product)


@njit(cache=True)
def _sum_row(field, weight, mean, both):
    """Go through the values of the cut set in Gray order: log of the sum, means, and products with the cut set.

    `field` holds what the present cells do to the missing ones, and is used up.
    """
    k, m = weight.shape
    spin, energy, top, total = np.empty(m), 0.0, -np.inf, 0.0
    spin[:], mean[:] = -1.0, 0.0
    for c in range(k):
        energy -= 0.5 * field[c]
    for c in range(k):
        for a in range(m):
            field[a] -= weight[c, a]
            both[c, a] = 0.0
    for c in range(k):
        energy -= 0.5 * field[c]
    for number in range(1, 2**k + 1):
        log_weight = energy + _sum_independent(spin, field, k)
        share = 1.0
        if log_weight > top:
            scale = math.exp(top - log_weight)
            total *= scale
            for a in range(m):
                mean[a] *= scale
            for c in range(k):
                for a in range(c + 1, m):
                    both[c, a] *= scale
            top = log_weight
        else:
            share = math.exp(log_weight - top)
        total += share
        for a in range(m):
            mean[a] += share * spin[a]
        for c in range(k):
            signed = share * spin[c]
            for a in range(c + 1, m):
                both[c, a] += signed * spin[a]
        if number == 2**k:
            break
        c = 0
        while (number >> c) & 1 == 0:
            c += 1
        change = -2.0 * spin[c]
        energy += change * field[c]
        spin[c] = -spin[c]
        for a in range(m):
            field[a] += change * weight[c, a]
    for a in range(m):
        mean[a] /= total
    for c in range(k):
        for a in range(c + 1, m):
            both[c, a] /= total
    return top + math.log(total)


@njit(cache=True)
def _scatter(target, places, source):
    for k in range(places.size):
        target[places[k]] = source[k]


@njit(cache=True, nogil=True)
def sum_rows(means, fields, shares, pointers, cells, n_cut, indptr, heads, ids, weights, block, size):
    """Sum the missing cells of each row out.

    Writes the means of missing cells into `means` and returns the logs of the sums over them, given the fields that
    present cells make, and what pairs of missing cells add to the products of their means: summed over the rows with
    weights `shares`, block after block. `size` is the number of edges.
    """
    n_rows = len(means)
    log_sums, n_blocks = np.empty(n_rows), (n_rows + block - 1) // block
    extra, place = np.empty((n_blocks, size)), np.empty(means.shape[1], np.int64)
    place[:] = -1
    for b in range(n_blocks):
        extra[b] = 0.0
        for r in range(b * block, min((b + 1) * block, n_rows)):
            free, k = cells[pointers[r] : pointers[r + 1]], n_cut[r]
            field, mean = fields[r][free], np.empty(free.size)
            if k == 0:
                log_sums[r] = _sum_independent(mean, field, k)  # a literal 0 would compile it again
                _scatter(means[r], free, mean)
                continue
            weight, edge = np.empty((k, free.size)), np.empty((k, free.size), np.int64)
            both = np.empty((k, free.size))
            _couplings_of_cut(weight, edge, place, free, indptr, heads, ids, weights)
            log_sums[r] = _sum_row(field, weight, mean, both)
            _scatter(means[r], free, mean)
            for c in range(k):
                for a in range(c + 1, free.size):
                    if edge[c, a] >= 0:
                        extra[b, edge[c, a]] += shares[r] * (both[c, a] - mean[c] * mean[a])
    return log_sums, extra
