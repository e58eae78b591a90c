"""Three columns that never show one pattern nor its opposite.

For spins, the indicator that three variables stand at s or at -s is a linear combination of the pair statistics,
``(1 + s_i s_j x_i x_j + s_i s_k x_i x_k + s_j s_k x_j x_k) / 4``. If neither occurs, its mean is on the boundary and
the likelihood has no finite maximum, although every pair's table may be full. (These are the triangle facets of the
marginal polytope; with the pairs they are all there is for three variables.)
"""

from __future__ import annotations

import itertools

import numpy as np

from gibbsian.data.dataset import Dataset
from gibbsian.domain import require_two_values
from gibbsian.graphs import Graph

# Sum of squared degrees up to which all triangles are looked at: about a second.
MOST_WORK = 2e8


def empty_triangle(data: Dataset, graph: Graph) -> tuple[tuple[int, int, int], np.ndarray] | None:
    """Find three joined variables and a spin pattern that occurs in no row of positive weight, nor does its opposite.

    Returns None when there is none, or when the graph has too many triangles to look at.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.data.triangles import empty_triangle
    >>> rows = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]
    >>> empty_triangle(gb.Dataset.read(rows), gb.graphs.complete(3))
    ((0, 1, 2), array([1, 1, 1]))
    """
    if float((graph.degrees.astype(float) ** 2).sum()) > MOST_WORK:
        return None
    spins = np.where(data.states[data.weights > 0] == require_two_values(data.domain).high, 1.0, -1.0)
    products = spins.T @ spins  # whole numbers, so a sum of zero is zero
    for i in range(graph.n_nodes):
        later = graph.neighbours(i)[graph.neighbours(i) > i]
        triangles, _ = graph.subgraph(later)
        j, k = later[triangles.edges].T
        for a, b in itertools.product((1, -1), repeat=2):
            seen = len(spins) + a * products[i, j] + b * products[i, k] + a * b * products[j, k]
            empty = np.flatnonzero(seen == 0)
            if len(empty):
                return (i, int(j[empty[0]]), int(k[empty[0]])), np.array([1, a, b])
    return None
