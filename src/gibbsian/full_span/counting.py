"""From a dataset to what the functions of this room take."""

from __future__ import annotations

import numpy as np

from gibbsian.data import Dataset


def counted(data: Dataset) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Return the distinct states as codes, how often each was seen, and the number of values of each column.

    In the order in which `fit_full_span`, `bootstrap_average`, `fit_selected` and `fit_hidden` take them; `stack` takes
    the first two.

    Parameters
    ----------
    data : Dataset
        Complete rows.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.full_span import bootstrap_average, counted, fit_selected
    >>> data = gb.Dataset.read([["a", "x"], ["b", "y"], ["b", "z"]] * 20, coding="categorical")
    >>> states, counts, cardinalities = counted(data)
    >>> states.tolist(), counts, cardinalities
    ([[0, 0], [1, 1], [1, 2]], array([20., 20., 20.]), (2, 3))
    >>> len(bootstrap_average(*counted(data), n_fits=3, random_state=0).models)
    3
    >>> grid = [{"algorithm": "dense", "l2": l2} for l2 in (1e-3, 1.0)]
    >>> fit_selected(*counted(data), grid, random_state=0).best.settings["l2"]
    0.001
    """
    data.require_complete("this fit", "use FullSpan, which sums them out, or ")
    cardinalities = tuple(data.domain.cardinalities(data.n_variables).tolist())
    return data.domain.to_codes(data.states), data.weights, cardinalities
