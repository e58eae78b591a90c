"""What the fit did not see: moments of three columns, of rows and of draws from the model."""

from __future__ import annotations

import itertools
import math

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.numbers import is_sparse
from gibbsian.report.html import Markup, join, paragraph, table
from gibbsian.report.subject import SECTIONS, Subject
from gibbsian.report.svg import Chart, figure

MAX_GROUPS = 400
# Draws of small models; of larger ones so many cells.
N_DRAWS, MAX_CELLS = 20_000, 1_500_000
N_BATCHES = 20
WORST = 8
WORDS = {1: "columns", 2: "pairs", 3: "triplets"}


@SECTIONS.register("triplets", place=40, title="Three columns at a time, which the fit did not see", rows=True)
def triplets(subject: Subject) -> Markup | None:
    """Return how moments of three columns in the rows agree with those of draws of the model."""
    machine, n = subject.machine, len(getattr(subject.machine, "names_", ()))
    if subject.data is None or n < 3:
        return None
    drawn = subject.read(machine.sample(min(N_DRAWS, MAX_CELLS // n), random_state=subject.seed))
    scores, own = _standardised(subject.rows, drawn)
    # where a fit matched means and pairs, they have a section of their own; else they are looked at here too
    orders = (3,) if machine.result_.moments is not None else (1, 2, 3)
    groups = [group for order in orders for group in _groups(n, order, subject.rng)]
    names = [tuple(subject.names[i] for i in group) for group in groups]
    data, model, error = np.array([_compared(scores[:, group], own[:, group]) for group in groups]).T
    z = np.divide(data - model, error, out=np.zeros(len(groups)), where=error > 0)
    chart = Chart(data, model, ("rows", "draws of the model"), square=True)
    for colour, order in enumerate(orders):
        part = [k for k, group in enumerate(groups) if len(group) == order]
        chart.points(data[part], model[part], [", ".join(names[k]) for k in part], WORDS[order], colour)
    rows = [(names[k], data[k], model[k], error[k], z[k]) for k in np.argsort(-np.abs(z), kind="stable")[:WORST]]
    which = "all" if math.comb(n, 3) <= MAX_GROUPS else f"{MAX_GROUPS} random"
    about = (
        f"Columns are centred and scaled (of a column of categories: whether it has its most frequent value), and "
        f"products of three averaged over {subject.which_rows} and {drawn.n_rows:,} draws of the model, for {which} "
        f"triplets. {int((np.abs(z) > 3).sum())} of {len(z):,} differ by more than 3 standard errors; chance alone "
        f"gives about {0.0027 * len(z):.1f}. Many mean that columns interact by threes, or that a penalty is strong."
    )
    picture = figure(chart.svg("Moments of the rows against draws of the model"), "On the line both agree.")
    return join(
        [paragraph(about), picture, table("Furthest apart", ["of", "rows", "model", "standard error", "z"], rows)]
    )


def _standardised(rows: Dataset, drawn: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return both as numbers of mean zero and variance one over the rows; missing cells are NaN."""
    observed, theirs = (_numbers(table, rows) for table in (rows, drawn))
    centre, spread = np.nanmean(observed, axis=0), np.nanstd(observed, axis=0)
    spread[spread == 0] = 1.0
    return (observed - centre) / spread, (theirs - centre) / spread


def _numbers(data: Dataset, rows: Dataset) -> np.ndarray:
    """Return rows as numbers: those of the columns themselves, or whether a category is the most frequent one."""
    states, missing = data.rows()
    numbers = np.array(states.toarray() if is_sparse(states) else states, dtype=np.float64)
    if not (data.coding.domain.two_valued or data.variables.real):
        common = [np.bincount(column.astype(int), rows.weights).argmax() for column in np.asarray(rows.states).T]
        numbers = (numbers == common).astype(np.float64)
    if missing is not None:
        numbers[missing] = np.nan
    return numbers


def _groups(n: int, order: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Return all groups of columns, or some at random where there are many."""
    if math.comb(n, order) <= MAX_GROUPS:
        return list(itertools.combinations(range(n), order))
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < MAX_GROUPS:
        chosen.add(tuple(sorted(rng.choice(n, order, replace=False).tolist())))
    return sorted(chosen)


def _compared(rows: np.ndarray, draws: np.ndarray) -> tuple[float, float, float]:
    """Return the mean product over rows and over draws, and the standard error of their difference.

    Draws may be those of a chain, so that their error is that of the means of batches.
    """
    product, theirs = rows.prod(axis=1), draws.prod(axis=1)
    product = product[~np.isnan(product)]
    if not product.size:
        return 0.0, 0.0, 0.0
    batches = [batch.mean() for batch in np.array_split(theirs, N_BATCHES)]
    error = np.hypot(product.std() / np.sqrt(product.size), np.std(batches, ddof=1) / np.sqrt(N_BATCHES))
    return float(product.mean()), float(theirs.mean()), float(error)
