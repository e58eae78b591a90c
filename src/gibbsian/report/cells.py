"""What the machine makes of single rows and cells: unusual ones, and hidden ones that it fills."""

from __future__ import annotations

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.numbers import is_sparse
from gibbsian.report.html import Markup, frame, join, paragraph, table
from gibbsian.report.subject import SECTIONS, Subject

N_UNUSUAL = 10
# Of wide rows fewer cells are hidden: the sum over what is hidden together grows fast.
HIDDEN_SHARE, MOST_HIDDEN_A_ROW = 0.1, 12
MOST_HIDDEN_CELLS = 6000
MOST_COLUMNS = 60


@SECTIONS.register("unusual", place=100, title="Unusual rows and cells", rows=True, claims=True, needs="unusual")
def unusual(subject: Subject) -> Markup | None:
    """Return the rows, and the cells given the rest of their row, that the model finds least probable."""
    if subject.data is None:
        return None
    asked = {"The least probable rows": False, "The least probable cells, given the rest of their row": True}
    parts = [paragraph(f"Of {subject.which_rows}, counted from 0. Such rows are errors, or the most interesting ones.")]
    for title, cells in asked.items():
        if not cells or subject.data.coding.name != "real":
            found = subject.machine.unusual(subject.rows, N_UNUSUAL, cells=cells)
            parts.append(frame(title, found.assign(row=subject.chosen[found["row"]])))
    return join(parts)


@SECTIONS.register("imputation", place=110, title="How well missing cells are filled", rows=True)
def imputation(subject: Subject) -> Markup | None:
    """Return how often hidden cells are filled rightly, or how far off, against the best single guess of the column."""
    if subject.data is None or is_sparse(subject.data.states):  # sparse numbers have no missing cells
        return None
    share = min(HIDDEN_SHARE, MOST_HIDDEN_A_ROW / subject.data.n_variables)
    data, missing, hidden = _hidden_cells(subject, share)
    true = data.rows()[0]
    holes = Dataset.of_states(true, data.coding, names=data.names, missing=missing | hidden)
    filled = subject.read(subject.machine.impute(holes)).rows()[0]
    real, rows = data.coding.name == "real", list[tuple[str, int, float, float]]()
    for j in np.flatnonzero(hidden.any(axis=0)):
        asked, seen = hidden[:, j], true[~(missing | hidden)[:, j], j]
        if not seen.size:  # no known cell is left to guess from
            continue
        values, counts = np.unique(seen, return_counts=True)
        guess = seen.mean() if real else values[counts.argmax()]
        off = [np.asarray(answer - true[asked, j], dtype=float) for answer in (filled[asked, j], guess)]
        own, single = (float(np.sqrt(np.mean(part**2)) if real else np.mean(part == 0)) for part in off)
        rows.append((subject.names[j], int(asked.sum()), own, single))
    if not rows:  # a single column has nothing that its cells could be filled from
        return None
    whole = np.average([row[2:] for row in rows], axis=0, weights=[row[1] for row in rows])
    titles = ["error", "error of the mean"] if real else ["filled rightly", "most frequent value"]
    about = (
        f"{share:.0%} of the known cells of {data.n_rows:,} rows were hidden and filled from the others. "
        f"{titles[0].capitalize()}: {whole[0]:.3f}; {titles[1]} of the column by itself: {whole[1]:.3f}"
        f"{' (root mean squares)' * real}."
    )
    return join([paragraph(about), table("Hidden cells", ["column", "hidden", *titles], rows[:MOST_COLUMNS])])


def _hidden_cells(subject: Subject, share: float) -> tuple[Dataset, np.ndarray, np.ndarray]:
    """Return some rows in their own order, which of their cells are missing, and which others are hidden."""
    data, rng = subject.rows, subject.rng
    most = int(np.clip(MOST_HIDDEN_CELLS / (share * data.n_variables), 100, 2000))
    if data.n_rows > most:
        data = data.take(rng.choice(data.n_rows, most, replace=False))
    states, missing = data.rows()
    missing = np.zeros(states.shape, bool) if missing is None else missing
    hidden = ~missing & (rng.random(states.shape) < share)
    hidden[np.arange(len(hidden)), rng.integers(0, states.shape[1], len(hidden))] = False  # no row is hidden whole
    return data, missing, hidden
