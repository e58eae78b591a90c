"""Every way to fill the missing cells of a row, listed: for any model, where there are few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.data import Dataset
from gibbsian.domain import AnyDomain, Continuum
from gibbsian.models import Model
from gibbsian.resources import require_memory

# Counts stop growing here, well before a float64 overflows.
LARGEST_EXPONENT = 900.0


@dataclass(frozen=True)
class Completions:
    """All completions of some states of a data set, each state's completions in one run.

    Parameters
    ----------
    which : ndarray of shape (n_states,)
        The numbers of the states.
    states : ndarray of shape (n_completions, n_variables)
        Complete states.
    row : ndarray of shape (n_completions,)
        The place (in `which`) of the state that each one completes, ascending.
    starts : ndarray of shape (n_states,)
        Where each state's run begins.
    """

    which: np.ndarray
    states: np.ndarray
    row: np.ndarray
    starts: np.ndarray

    def posterior(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """Return each state's log-evidence (unnormalised) and each completion's probability given the present cells."""
        log_weights = model.log_weights(self.states)
        top = np.maximum.reduceat(log_weights, self.starts)
        weights = np.exp(log_weights - top[self.row])
        totals = np.add.reduceat(weights, self.starts)
        return top + np.log(totals), weights / totals[self.row]

    def log_evidence(self, model: Model) -> np.ndarray:
        """Return the log of the summed weights of each state's completions."""
        return self.posterior(model)[0]

    def expect(self, model: Model, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each state's log-evidence, and the sum of their expected statistics with weights `shares`."""
        log_evidence, posterior = self.posterior(model)
        weights = posterior * shares[self.row]
        if not weights.sum() > 0:
            return log_evidence, np.zeros_like(model.theta)
        return log_evidence, model.mean_statistics(self.states, weights) * weights.sum()

    def fill_probabilities(self, model: Model) -> np.ndarray:
        """Return the probabilities of the cells' values given the present cells, in columns like `value_indicators`."""
        _, posterior = self.posterior(model)
        codes, n_rows = model.domain.to_codes(self.states), len(self.starts)
        tables = [
            np.bincount(self.row * size + codes[:, i], posterior, minlength=n_rows * size).reshape(n_rows, size)
            for i, size in enumerate(model.domain.cardinalities(model.n_variables))
        ]
        return np.hstack([table[:, 1:] for table in tables] if model.domain.two_valued else tables)


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


def count_completions(data: Dataset) -> np.ndarray:
    """Return in how many ways the missing cells of each state can be filled, as floats that do not overflow."""
    if data.missing is None:
        return np.ones(data.n_states)
    if isinstance(data.domain, Continuum):  # no list of nodes is one of completions, which have no weights
        return np.where(data.missing.any(axis=1), np.inf, 1.0)
    exponents = np.einsum("mi,i->m", data.missing, np.log2(data.domain.cardinalities(data.n_variables)))
    return np.rint(np.exp2(np.minimum(exponents, LARGEST_EXPONENT)))


def complete_in_all_ways(data: Dataset, which: np.ndarray | None = None) -> Completions:
    """List every completion of every state (or of the states numbered `which`), asking for the memory first."""
    which = np.arange(data.n_states) if which is None else which
    counts = count_completions(data)[which]
    total = float(counts.sum())
    require_memory(
        total * (data.n_variables + 32.0),
        f"listing the {total:.3g} completions of the rows with missing cells",
        "leave out the rows with the most missing cells",
    )
    counts = counts.astype(np.int64)
    row = np.repeat(np.arange(len(which)), counts)
    starts = np.cumsum(counts) - counts
    states = data.states[which][row]
    if data.missing is not None:
        _fill(states, data.missing[which], starts, counts, data.domain)
    return Completions(which, states, row, starts)


def _fill(states, missing, starts, counts, domain):
    """Write the digits of each completion's number, to the bases of the missing cells, into those cells of its run."""
    sizes, n_holes = domain.cardinalities(states.shape[1]), missing.sum(axis=1)
    for k in np.unique(n_holes[n_holes > 0]):  # rows with as many holes together
        rows = np.flatnonzero(n_holes == k)
        cells = np.nonzero(missing[rows])[1].reshape(-1, k)
        steps = np.cumprod(sizes[cells], axis=1) // sizes[cells]
        each = np.repeat(np.arange(rows.size), counts[rows])
        number = np.arange(each.size) - np.repeat(np.cumsum(counts[rows]) - counts[rows], counts[rows])
        digits = number[:, None] // steps[each] % sizes[cells[each]]
        states[(starts[rows][each] + number)[:, None], cells[each]] = domain.from_codes(digits)
