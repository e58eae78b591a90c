"""Small estimators and tables for the contract of all registered estimators; a new one is found by its registration."""

from __future__ import annotations

import numpy as np

from gibbsian.estimators import ESTIMATORS
from gibbsian.settings import settings_of

# What makes a fit of any estimator small and finite; each takes those that it has.
SMALL = {"n_components": 2, "l2": 0.1, "random_state": 0, "n_init": 1}
# Epochs are few where an estimator counts them; what converges by itself has its own number of steps.
EPOCHS = 4


def small(name, **settings):
    """Return a small estimator by its registered name."""
    kind = ESTIMATORS.factory(name)
    known = settings_of(kind)
    chosen = {key: value for key, value in SMALL.items() if key in known}
    if getattr(kind, "n_components", 2) == 1:  # what is one by default need not be more
        chosen.pop("n_components", None)
    if ESTIMATORS.trait(name, "layers"):
        chosen["n_components"] = (3, 2)
    if ESTIMATORS.trait(name, "epochs"):
        chosen["max_iter"] = EPOCHS
    return kind(**{**chosen, **settings})


def table(name, n_rows=80, n_columns=4, seed=0, holes=0.0):
    """Return rows that the estimator takes: two-valued, categories, numbers or directions; related columns."""
    rng = np.random.default_rng(seed)
    kind = ESTIMATORS.trait(name, "rows", "two-valued")
    group = rng.integers(0, 2, n_rows)
    if kind in ("numbers", "directions"):
        rows = rng.normal(size=(n_rows, n_columns)) + 3.0 * np.where(group[:, None] == 1, 1.0, -1.0) * np.arange(
            1, n_columns + 1
        )
    else:
        values = 3 if kind == "categories" else 2
        rows = np.where(
            rng.random((n_rows, n_columns)) < 0.6, group[:, None], rng.integers(0, values, (n_rows, n_columns))
        )
        rows = rows.astype(float)
    if holes:
        rows[rng.random(rows.shape) < holes] = np.nan
        rows[np.isnan(rows).all(axis=1), 0] = 1.0
    return rows
