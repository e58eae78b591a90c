"""Checks before a Gaussian is fitted: does the data determine its precision matrix?"""

from __future__ import annotations

import numpy as np

from gibbsian.data.dataset import Dataset
from gibbsian.data.findings import Findings
from gibbsian.errors import ConstantColumnError, MaximumDoesNotExistError

# Share of a column's variance that the others must leave, beyond the rounding of sums of squares.
LEAST_SHARE = 1e-10


def column_units(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of the present cells of each column; refuse a column that never varies."""
    found = Findings(data, 0.0, 0.0)
    found.check_rows()
    cells = data.weights[:, None] * (np.ones(data.states.shape) if data.missing is None else ~data.missing)
    found.check_observed(cells.sum(axis=0))
    shares = cells / cells.sum(axis=0)
    centre = (shares * data.states).sum(axis=0)
    apart = np.where(cells > 0, data.states - centre, 0.0)
    spread = np.sqrt((shares * apart**2).sum(axis=0))
    flat = spread <= 1e-12 * np.abs(np.where(cells > 0, data.states, 0.0)).max(axis=0)
    if flat.any():
        name = data.names[int(flat.argmax())]
        raise ConstantColumnError(f"column {name!r} never varies, so that its variance is zero", "drop it")
    return centre, spread


def require_full_rank(data: Dataset, correlations: np.ndarray) -> None:
    """Refuse columns of which some are a linear function of others, in the rows at hand."""
    eigenvalues, vectors = np.linalg.eigh(correlations)
    if eigenvalues[0] > LEAST_SHARE:
        return
    largest = data.names[int(np.abs(vectors[:, 0]).argmax())]
    raise MaximumDoesNotExistError(
        f"column {largest!r} is a linear function of others in these {data.n_rows} rows (n_samples={data.n_rows}), so "
        "that the likelihood has no bound",
        "give more rows, drop the column, or add a penalty by `l2='auto'`",
    )
