"""Symbolic elimination: what touches what when the nodes of a graph go one by one."""

import numpy as np

from gibbsian.backends.numba import njit
from gibbsian.backends.numba.regions import grown


@njit(cache=True)
def strip_leaves(indptr, heads):
    """Take away nodes with at most one neighbour until none is left; return them in that order."""
    n = indptr.size - 1
    degrees = indptr[1:] - indptr[:-1]
    stripped = np.empty(n, np.int64)
    gone = np.zeros(n, np.bool_)
    n_found = 0
    for node in range(n):
        if degrees[node] <= 1:
            stripped[n_found] = node
            n_found += 1
    n_done = 0
    while n_done < n_found:
        node = stripped[n_done]
        n_done += 1
        gone[node] = True
        for other in heads[indptr[node] : indptr[node + 1]]:
            degrees[other] -= 1
            if degrees[other] == 1 and not gone[other]:
                stripped[n_found] = other
                n_found += 1
    return stripped[:n_found]


@njit(cache=True)
def separators_of_order(indptr, heads, order, max_width):
    """For each place in the order, the later places that its node touches when it goes, ascending.

    Returns
    -------
    pointers, separators : flat lists; `pointers` is empty when a separator is larger than `max_width`
    """
    n = order.size
    place = np.empty(n, np.int64)
    for p in range(n):
        place[order[p]] = p
    first_child, next_sibling = np.full(n, -1), np.full(n, -1)
    seen_by = np.full(n, -1)
    pointers = np.zeros(n + 1, np.int64)
    separators = np.empty(heads.size + max_width, np.int64)
    for p in range(n):
        end = pointers[p]
        separators = grown(separators, end + max_width)
        limit = end + max_width
        seen_by[p] = p
        for head in heads[indptr[order[p]] : indptr[order[p] + 1]]:
            if place[head] > p:
                if end == limit:
                    return pointers[:0], separators[:0]
                seen_by[place[head]] = p
                separators[end] = place[head]
                end += 1
        child = first_child[p]
        while child >= 0:
            for member in separators[pointers[child] : pointers[child + 1]]:
                if seen_by[member] != p:
                    if end == limit:
                        return pointers[:0], separators[:0]
                    seen_by[member] = p
                    separators[end] = member
                    end += 1
            child = next_sibling[child]
        pointers[p + 1] = end
        if end > pointers[p]:
            separators[pointers[p] : end].sort()
            parent = separators[pointers[p]]
            next_sibling[p] = first_child[parent]
            first_child[parent] = p
    return pointers, separators[: pointers[n]].copy()


@njit(cache=True)
def post_order(parents):
    """Places such that every subtree is contiguous and ends with its root; -1 is the parent of a root."""
    n = parents.size
    first_child, next_sibling = np.full(n, -1), np.full(n, -1)
    pending = np.empty(n, np.int64)
    n_pending = 0
    for p in range(n):
        if parents[p] < 0:
            pending[n_pending] = p
            n_pending += 1
        else:
            next_sibling[p] = first_child[parents[p]]
            first_child[parents[p]] = p
    places = np.empty(n, np.int64)
    for at in range(n - 1, -1, -1):  # parents before children, written from the end
        n_pending -= 1
        p = pending[n_pending]
        places[at] = p
        child = first_child[p]
        while child >= 0:
            pending[n_pending] = child
            n_pending += 1
            child = next_sibling[child]
    return places


@njit(cache=True)
def stack_slots(parents, table_sizes):
    """Offsets of the messages on a stack where a node's own replaces those it received, and the largest height."""
    n = parents.size
    slots = np.full(n, -1)  # until p is reached: where the first message to it stands
    top = 0
    highest = 0
    for p in range(n):
        if slots[p] < 0:
            slots[p] = top
        highest = max(highest, slots[p] + table_sizes[p])
        if parents[p] < 0:
            top = slots[p]  # nobody reads what a root sends
        else:
            top = slots[p] + table_sizes[p]
            if slots[parents[p]] < 0:
                slots[parents[p]] = slots[p]
    return slots, highest
