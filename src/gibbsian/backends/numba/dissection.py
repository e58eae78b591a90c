"""Breadth-first levels inside a part of a graph, for nested dissection."""

from gibbsian.backends.numba import njit


@njit(cache=True, nogil=True)
def levels_within(indptr, heads, part, start, distances, queue):
    """Visit the nodes of the part that holds `start`; their numbers go to `queue`, in order, and how many they are.

    `distances` must be -1 there before.
    """
    queue[0], distances[start] = start, 0
    reading, filled = 0, 1
    while reading < filled:
        i = queue[reading]
        reading += 1
        for position in range(indptr[i], indptr[i + 1]):
            j = heads[position]
            if part[j] == part[start] and distances[j] < 0:
                distances[j] = distances[i] + 1
                queue[filled] = j
                filled += 1
    return filled
