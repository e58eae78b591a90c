"""Hidden units and missing cells in learning: where the free phase starts, and how symmetry between units is broken."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.domain import SPIN
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.expectations import (
    CLAMPED,
    ClampedChains,
    Expectation,
    PersistentChains,
    RestartedChains,
    Spatial,
    SpatialChains,
    as_clamped,
)
from gibbsian.expectations.clamped import fill_at_random
from gibbsian.expectations.contrastive import RestartedState, spread_over_rows
from gibbsian.expectations.in_spins import InSpins
from gibbsian.inference.missing import PATIENT_SECONDS
from gibbsian.models import HigherOrderModel, MarkovRandomField, Model, PairwiseModel, PottsModel
from gibbsian.models.scopes import Scopes

# What an exact clamped phase may take beside a free phase that is sampled: some sweeps of its chains. For 5,000 rows of
# 60 columns, a tenth of the cells missing, it takes ten times as long as chains with a third of the free phase's noise.
HURRIED_SECONDS = 0.05


def break_symmetry(model: Model, hidden: Any, rng: np.random.Generator, scale: float = 0.1) -> Model:
    """Give the interactions of hidden units small random parameters.

    Where they are all zero hidden units are independent of everything and of each other's making: the gradient of
    their interactions vanishes, and two units that start alike stay alike. All other parameters keep their values.

    Parameters
    ----------
    model : Model
        Where learning would start.
    hidden : array-like of bool, of int, or Dataset
        Which variables are hidden, as a mask or by number; of a data set, the columns that no row shows.
    rng : Generator
        Source of the random numbers.
    scale : float
        Their standard deviation, times T: it belongs to parameters over T.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learners.hidden import break_symmetry
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(3))
    >>> start = break_symmetry(model, [False, False, True], np.random.default_rng(0))
    >>> (start.theta != 0).tolist()                            # the biases, then the pairs 01, 02 and 12
    [False, False, False, False, True, True]
    """
    if not (np.isfinite(scale) and scale >= 0):
        raise ArgumentError("must be zero or positive", argument="scale", value=scale)
    touched = model.penalised & _touches(model, hidden_columns(model, hidden))
    noise = rng.normal(scale=scale * model.temperature, size=model.theta.size)
    return model.replace(model.theta + np.where(touched, noise, 0.0))


def scattered(model: Any, rng: np.random.Generator) -> Any:
    """Return random couplings of the hidden units of a pairwise model from which learning can start.

    Their spread is one over the root of the number of couplings of a hidden unit, as of spins: what a unit is told is
    then of order one, whatever their number.
    """
    hidden = np.arange(model.n_variables) >= model.n_variables - model.n_hidden
    scale = 1.0 / np.sqrt(model.graph.degrees[hidden].mean())
    if not model.bias:  # there are no biases to convert with; a product of 0/1 is a quarter of that of spins
        return break_symmetry(model, hidden, rng, scale * (SPIN.gap / model.domain.gap) ** 2)
    spins: Any = break_symmetry(model.to_domain(SPIN)[0], hidden, rng, scale)
    return spins.to_domain(model.domain)[0]


def hidden_columns(model: Model, hidden: Any) -> np.ndarray:
    """Return a mask of the hidden variables, given as a mask, by number, or as the data that do not show them.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learners.hidden import hidden_columns
    >>> hidden_columns(gb.PairwiseModel.zeros(gb.graphs.complete(3)), [2]).tolist()
    [False, False, True]
    """
    if isinstance(hidden, Dataset):
        return np.zeros(hidden.n_variables, bool) if hidden.missing is None else np.asarray(hidden.missing.all(axis=0))
    given = np.asarray(hidden)
    if given.dtype == bool and given.shape == (model.n_variables,):
        return given
    if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= model.n_variables):
        raise ArgumentError(
            f"must be a mask of {model.n_variables} variables, or their numbers", argument="hidden", value=hidden
        )
    return np.isin(np.arange(model.n_variables), given)


def _touches(model: Model, variables: np.ndarray) -> np.ndarray:
    """Which parameters belong to a term that holds any of these variables."""
    if hasattr(model, "touches"):
        return model.touches(variables)
    if isinstance(model, PairwiseModel):
        ends = variables[model.graph.edges].any(axis=1)
        return np.concatenate([variables, ends]) if model.bias else ends
    if isinstance(model, HigherOrderModel):
        return _held(model.scopes, variables)
    if isinstance(model, PottsModel | MarkovRandomField):
        return np.repeat(_held(model.layout.scopes, variables), np.diff(model.layout.offsets))
    raise ArgumentError(f"model is a {type(model).__name__}, of which it is not known which terms hold a variable")


def _held(scopes: Scopes, variables: np.ndarray) -> np.ndarray:
    indptr, members = scopes.csr
    return np.logical_or.reduceat(variables[members], indptr[:-1])


def choose_clamped(clamped: str | Expectation | None, expectation: Any, model: Model, data: Dataset) -> Expectation:
    """Return the clamped phase that goes with a free phase.

    Contrastive divergence restarts its chains at completed rows, so that it needs clamped chains; samples that are the
    data themselves (1-SMCI) cannot have missing cells. Where the free phase has the noise of chains anyway, by default
    the clamped one is exact only where that takes hardly longer than its chains do.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.learners.hidden import choose_clamped
    >>> data = gb.Dataset.read([[1, float("nan")], [-1, 1]], coding="spin")
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> type(choose_clamped(None, gb.expectations.RestartedChains(), model, data)).__name__
    'ClampedChains'
    """
    inner = expectation.expectation if isinstance(expectation, InSpins) else expectation
    if isinstance(inner, Spatial) and inner.samples is None:
        raise MissingValuesError(
            "with the data as samples rows must be complete",
            "learn with `learner='smci-pcd'` or 'pcd', or drop the rows with missing cells",
        )
    if not isinstance(inner, RestartedChains):
        noisy = isinstance(inner, PersistentChains | SpatialChains)
        return as_clamped(clamped, model, data, HURRIED_SECONDS if noisy else PATIENT_SECONDS)
    chains = CLAMPED.create("chains") if clamped is None else as_clamped(clamped, model, data)
    if not isinstance(chains, ClampedChains):
        raise ArgumentError(
            "gives contrastive divergence no rows to start at",
            "use `clamped='chains'` or 'spatial', or `learner='pcd'`",
            argument="clamped",
            value=clamped,
        )
    return chains


def start_of_free_phase(clamped: Expectation, posterior: Any, data: Dataset, rng: np.random.Generator) -> Dataset:
    """Return complete rows at which the chains of the free phase may start."""
    if isinstance(clamped, ClampedChains):
        return clamped.completions(data, posterior)
    return fill_at_random(data, rng)


def restarted_at(model: Model, expectation: RestartedChains, samples: RestartedState, rows: Dataset) -> RestartedState:
    """Return the chains of contrastive divergence at the present completions of the rows."""
    states, shares = spread_over_rows(rows, rows.n_rows if expectation.n_chains is None else expectation.n_chains)
    chains = samples.chains._replace(states=states)
    return RestartedState(chains, shares, model.mean_statistics(states, shares))
