"""Sum regions around many targets at once: the independent sets of YU20 Algorithm 1, and forests.

Targets are nodes in CSR form (`pointers`, `nodes`). The graph's own CSR gives neighbours; `strengths` holds one number
for each of its positions, the strength of the interaction there.
"""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.math import copy_to


@njit(cache=True)
def grown(array, least):
    """The same numbers in an array that has room for `least`."""
    if array.size >= least:
        return array
    larger = np.empty(max(2 * array.size, least), array.dtype)
    copy_to(larger, array)
    return larger


@njit(cache=True)
def _neighbours_of(target, indptr, heads, strengths, mark, stamp, candidates, pull):
    """Write N_1(target) to `candidates`, stamp it, and sum the strengths of its links to the target in `pull`."""
    count = 0
    for i in target:
        mark[i] = -stamp
    for i in target:
        for position in range(indptr[i], indptr[i + 1]):
            j = heads[position]
            if mark[j] == -stamp:
                continue
            if mark[j] != stamp:
                mark[j] = stamp
                pull[j] = 0.0
                candidates[count] = j
                count += 1
            pull[j] += strengths[position]
    return count


@njit(cache=True)
def _choose(candidates, count, degree, alive, pull):
    """The candidate of least degree, of those the one pulled most (YU20 section 4.1), and whether that decided."""
    best, tied = -1, False
    for c in range(count):
        j = candidates[c]
        if not alive[j]:
            continue
        if best < 0 or degree[j] < degree[best]:
            best, tied = j, False
        elif degree[j] == degree[best] and degree[j] > 0:
            tied = True
            if pull[j] > pull[best] or (pull[j] == pull[best] and j < best):
                best = j
    return best, tied


@njit(cache=True, nogil=True)
def independent_sets(indptr, heads, strengths, pointers, nodes):
    """A set of neighbours of each target, no two of them joined; and whether ties were settled by strength."""
    n = indptr.size - 1
    mark, degree, alive = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_)
    candidates, pull = np.empty(n, np.int64), np.zeros(n)
    starts = np.zeros(pointers.size, np.int64)
    members = np.empty(4 * pointers.size, np.int64)
    any_tied, filled = False, 0
    for t in range(pointers.size - 1):
        stamp = t + 1
        target = nodes[pointers[t] : pointers[t + 1]]
        count = _neighbours_of(target, indptr, heads, strengths, mark, stamp, candidates, pull)
        members = grown(members, filled + count)
        for c in range(count):
            j = candidates[c]
            alive[j] = True
            degree[j] = 0
            for position in range(indptr[j], indptr[j + 1]):
                degree[j] += mark[heads[position]] == stamp
        while True:
            chosen, tied = _choose(candidates, count, degree, alive, pull)
            if chosen < 0:
                break
            any_tied |= tied
            members[filled] = chosen
            filled += 1
            alive[chosen] = False
            for position in range(indptr[chosen], indptr[chosen + 1]):
                j = heads[position]
                if mark[j] == stamp and alive[j]:
                    alive[j] = False
                    for other in range(indptr[j], indptr[j + 1]):
                        degree[heads[other]] -= 1
        starts[t + 1] = filled
    return starts, members[:filled].copy(), any_tied


@njit(cache=True)
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True)
def _joins_distinct_trees(j, indptr, heads, inside, parent, stamp, roots):
    """Whether the neighbours of j that are in the forest belong to different trees; their roots go to `roots`."""
    count = 0
    for position in range(indptr[j], indptr[j + 1]):
        if inside[heads[position]] == stamp:
            root = _root(parent, heads[position])
            for r in range(count):
                if roots[r] == root:
                    return False, 0
            roots[count] = root
            count += 1
    return True, count


@njit(cache=True, nogil=True)
def forests(indptr, heads, strengths, pointers, nodes, size):
    """An induced forest of up to `size` nodes around each target, the target left out: the nearest nodes first.

    A node enters where it closes no cycle outside the target. Cycles through the target are allowed.
    """
    n = indptr.size - 1
    mark, inside, parent = np.zeros(n, np.int64), np.zeros(n, np.int64), np.arange(n)
    layer, following, pull, roots = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(n), np.empty(n, np.int64)
    starts = np.zeros(pointers.size, np.int64)
    members = np.empty(4 * pointers.size, np.int64)
    filled = 0
    for t in range(pointers.size - 1):
        stamp, first = t + 1, filled
        members = grown(members, filled + size)
        target = nodes[pointers[t] : pointers[t + 1]]
        count = _neighbours_of(target, indptr, heads, strengths, mark, stamp, layer, pull)
        while count > 0 and filled - first < size:
            order = np.argsort(-pull[layer[:count]], kind="mergesort")
            for place in order:
                j = layer[place]
                fits, n_roots = _joins_distinct_trees(j, indptr, heads, inside, parent, stamp, roots)
                if fits and filled - first < size:
                    inside[j] = stamp
                    parent[j] = j
                    for r in range(n_roots):
                        parent[roots[r]] = j
                    members[filled] = j
                    filled += 1
            count_next = 0
            for c in range(count):
                j = layer[c]
                for position in range(indptr[j], indptr[j + 1]):
                    k = heads[position]
                    if mark[k] != stamp and mark[k] != -stamp:
                        mark[k] = stamp
                        pull[k] = 0.0
                        following[count_next] = k
                        count_next += 1
                    pull[k] += strengths[position] if inside[j] == stamp else 0.0
            layer, following, count = following, layer, count_next
        starts[t + 1] = filled
    return starts, members[:filled].copy()


@njit(cache=True, nogil=True)
def rooted(indptr, heads, edge_of, pointers, nodes, starts, members):
    """Order each region's forest from its roots, and find the edges within each region.

    Returns, in the layout of `members`: the members with parents before children, the place of each one's parent in
    its own region (-1 at roots), the edge to the parent, and the edges to the first and second node of the target (-1
    where there is none).
    """
    n = indptr.size - 1
    ordered, parent = np.empty_like(members), np.empty_like(members)
    up, first, second = np.empty_like(members), np.full_like(members, -1), np.full_like(members, -1)
    mark, seen = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for t in range(pointers.size - 1):
        stamp, start, stop = t + 1, starts[t], starts[t + 1]
        one = nodes[pointers[t]]
        two = nodes[pointers[t] + 1] if pointers[t + 1] - pointers[t] > 1 else -1
        for place in range(start, stop):
            mark[members[place]] = stamp
        filled = start
        for place in range(start, stop):
            if seen[members[place]] == stamp:
                continue
            seen[members[place]] = stamp
            ordered[filled], parent[filled], up[filled] = members[place], -1, -1
            reading = filled
            filled += 1
            while reading < filled:
                j = ordered[reading]
                for position in range(indptr[j], indptr[j + 1]):
                    k = heads[position]
                    if k == one:
                        first[reading] = edge_of[position]
                    elif k == two:
                        second[reading] = edge_of[position]
                    elif mark[k] == stamp and seen[k] != stamp:
                        seen[k] = stamp
                        ordered[filled], parent[filled], up[filled] = k, reading - start, edge_of[position]
                        filled += 1
                reading += 1
    return ordered, parent, up, first, second
