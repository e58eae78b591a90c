"""The heat map of what interacts."""

from __future__ import annotations

import numpy as np

from gibbsian.report.html import Markup
from gibbsian.report.subject import SECTIONS, Subject
from gibbsian.report.svg import figure, heat_map

MOST = 70


@SECTIONS.register("heat-map", place=70, title="Heat map", claims=True, needs="interactions")
def matrix(subject: Subject) -> Markup | None:
    """Return the strengths of all pairs as colours, of many variables those that interact most."""
    found = subject.machine.interactions()
    pairs = np.triu(np.nan_to_num(found.matrix()), 1)  # below the diagonal stand larger sets
    values = pairs + pairs.T
    if not values.any():
        return None
    chosen = np.sort(np.argsort(-np.abs(values).sum(axis=1), kind="stable")[:MOST])
    hidden, seen = chosen[found.layers[chosen] > 0], chosen[found.layers[chosen] == 0]
    if hidden.size and seen.size and not values[np.ix_(seen, seen)].any():  # columns interact with what is hidden only
        rows, columns = hidden, [found.names[j] for j in seen]
        values = values[np.ix_(hidden, seen)]
    else:
        rows, columns, values = chosen, None, values[np.ix_(chosen, chosen)]
    drawing = heat_map("Heat map", [found.names[i] for i in rows], values, columns)
    few = f" of the {MOST} of {found.n_variables:,} variables that interact most" if found.n_variables > MOST else ""
    return figure(
        drawing, f"Strength ({found.measure}){few}: orange is positive, blue negative. Point at a cell to read it."
    )
