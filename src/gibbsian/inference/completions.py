"""Every way to fill the missing cells of a row, listed: for any model, where there are few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.domain import AnyDomain, Continuum
from gibbsian.models import Model
from gibbsian.resources import require_memory

# Counts stop growing here, well before a float64 overflows.
LARGEST_EXPONENT = 900.0


@dataclass(frozen=True)
class Completions:
    """All completions of some rows, each row's completions in one run.

    Parameters
    ----------
    states : ndarray of shape (n_completions, n_variables)
        Complete rows.
    row : ndarray of shape (n_completions,)
        The number of the row that each one completes, ascending.
    starts : ndarray of shape (n_rows,)
        Where each row's run begins.
    log_widths : ndarray of shape (n_completions,), optional
        How much each completion stands for, as a logarithm: that of the nodes which fill cells of real variables.
    """

    states: np.ndarray
    row: np.ndarray
    starts: np.ndarray
    log_widths: np.ndarray | None = None

    def posterior(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """Return each row's log-evidence (unnormalised) and each completion's probability given the present cells."""
        return self.posterior_of(model.log_weights(self.states))

    def posterior_of(self, log_weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the same, given the log-weight of each completion."""
        if self.log_widths is not None:
            log_weights = log_weights + self.log_widths
        top = np.maximum.reduceat(log_weights, self.starts)
        weights = np.exp(log_weights - top[self.row])
        totals = np.add.reduceat(weights, self.starts)
        return top + np.log(totals), weights / totals[self.row]

    def cell_probabilities(self, model: Model, domain: AnyDomain) -> np.ndarray:
        """Return the probabilities of the cells' values given the present cells, in columns like `value_indicators`."""
        _, posterior = self.posterior(model)
        codes, n_rows = domain.to_codes(self.states), len(self.starts)
        tables = [
            np.bincount(self.row * size + codes[:, i], posterior, minlength=n_rows * size).reshape(n_rows, size)
            for i, size in enumerate(domain.cardinalities(codes.shape[1]))
        ]
        return np.hstack([table[:, 1:] for table in tables] if domain.two_valued else tables)


def value_offsets(domain: AnyDomain, n_variables: int) -> np.ndarray:
    """Return where the columns of each variable begin and end, when there is one for each value of each variable."""
    return np.concatenate([[0], np.cumsum(domain.cardinalities(n_variables))])


def value_indicators(domain: AnyDomain, states: np.ndarray) -> np.ndarray:
    """Return ones where cells take a value and zeros elsewhere.

    A two-valued domain has one column for each variable, which stands for its upper value; `Categories` have one for
    each value of each variable (see `value_offsets`).
    """
    codes = domain.to_codes(states)
    if domain.two_valued:
        return codes.astype(np.float64)
    offsets = value_offsets(domain, states.shape[1])
    indicators = np.zeros((len(states), offsets[-1]))
    np.put_along_axis(indicators, offsets[:-1] + codes, 1.0, axis=1)
    return indicators


def count_completions(domain: AnyDomain, missing: np.ndarray | None, n_rows: int, by_nodes: bool = False) -> np.ndarray:
    """Return in how many ways the missing cells of each row can be filled, as floats that do not overflow.

    Real variables have no end of values; `by_nodes` counts those of their quadrature rule, which have widths.
    """
    if missing is None:
        return np.ones(n_rows)
    if isinstance(domain, Continuum) and not by_nodes:
        return np.where(missing.any(axis=1), np.inf, 1.0)
    exponents = np.einsum("mi,i->m", missing, np.log2(domain.cardinalities(missing.shape[1])))
    return np.rint(np.exp2(np.minimum(exponents, LARGEST_EXPONENT)))


def complete_in_all_ways(domain: AnyDomain, x: np.ndarray, missing: np.ndarray | None) -> Completions:
    """List every completion of every row, of real variables by nodes, asking for the memory first."""
    counts = count_completions(domain, missing, len(x), by_nodes=True)
    total = float(counts.sum())
    require_memory(
        total * (x.shape[1] + 32.0),
        f"listing the {total:.3g} completions of the rows with missing cells",
        "leave out the rows with the most missing cells",
    )
    counts = counts.astype(np.int64)
    row = np.repeat(np.arange(len(x)), counts)
    starts = np.cumsum(counts) - counts
    states, widths = x[row], np.zeros(row.size) if isinstance(domain, Continuum) else None
    if missing is not None:
        _fill(states, missing, starts, counts, domain, widths)
    return Completions(states, row, starts, widths)


def _fill(states, missing, starts, counts, domain, widths):
    """Write the digits of each completion's number, to the bases of the missing cells, into those cells of its run."""
    sizes, n_holes = domain.cardinalities(states.shape[1]), missing.sum(axis=1)
    for k in np.unique(n_holes[n_holes > 0]):  # rows with as many holes together
        rows = np.flatnonzero(n_holes == k)
        cells = np.nonzero(missing[rows])[1].reshape(-1, k)
        steps = np.cumprod(sizes[cells], axis=1) // sizes[cells]
        each = np.repeat(np.arange(rows.size), counts[rows])
        number = np.arange(each.size) - np.repeat(np.cumsum(counts[rows]) - counts[rows], counts[rows])
        digits = number[:, None] // steps[each] % sizes[cells[each]]
        places = starts[rows][each] + number
        states[places[:, None], cells[each]] = domain.from_codes(digits)
        if widths is not None:
            widths[places] = domain.node_log_widths[digits].sum(axis=1)
