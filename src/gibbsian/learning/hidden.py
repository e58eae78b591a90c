"""Hidden units and missing cells in learning: where the free phase starts, and how symmetry between units is broken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.arrays import Tensor
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.estimate import Estimate
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
from gibbsian.expectations.clamped import fill_at_random, mean_statistics
from gibbsian.expectations.in_spins import InSpins
from gibbsian.expectations.there import where_rows_are
from gibbsian.inference.posterior import PATIENT_SECONDS
from gibbsian.learning.completing import CompletedRows, are_few, require_shown
from gibbsian.models.base import ExponentialFamily, Family, Model
from gibbsian.models.variables import Variables
from gibbsian.settings import Setting, check_value

# What an exact clamped phase may take beside a free phase that is sampled: some sweeps of its chains. For 5,000 rows of
# 60 columns, a tenth of the cells missing, it takes ten times as long as chains with a third of the free phase's noise.
HURRIED_SECONDS = 0.05
_SCALE = Setting("Size of the random parameters.", "number", low=0)


def break_symmetry(model: Model[Any], hidden: Any, rng: np.random.Generator, scale: float = 0.1) -> Model[Any]:
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
    >>> from gibbsian.learning.hidden import break_symmetry
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
    >>> start = break_symmetry(model, [False, False, True], np.random.default_rng(0))
    >>> (start.theta != 0).tolist()                            # the biases, then the pairs 01, 02 and 12
    [False, False, False, False, True, True]
    """
    check_value("scale", scale, _SCALE)
    touched = model.penalised & model.family.terms_of(hidden_columns(model, hidden))
    noise = rng.normal(scale=scale, size=model.theta.size)
    return model.replace(model.theta + np.where(touched, noise, 0.0))


def scattered(model: Model[Any], rng: np.random.Generator) -> Model[Any]:
    """Return random couplings of the hidden units of a pairwise model from which learning can start.

    Their spread is one over the root of the number of couplings of a hidden unit, as of spins: the field on a unit is
    then of order one, whatever their number.
    """
    family, hidden = model.family, np.arange(model.n_variables) >= model.n_variables - model.n_hidden
    scale = 1.0 / np.sqrt(family.graph.degrees[hidden].mean())
    if not family.bias:  # there are no biases to convert with; a product of 0/1 is a quarter of that of spins
        return break_symmetry(model, hidden, rng, scale * (2.0 / family.layout.gap) ** 2)
    spins = break_symmetry(family.recode(model.theta, Variables.spins)[0], hidden, rng, scale)
    return model.replace(spins.family.recode(spins.theta, model.variables)[0].theta)


def hidden_columns(model: Model[Family], hidden: Tensor) -> np.ndarray:
    """Return a mask of the hidden variables, given as a mask, by number, or as the data that do not show them."""
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


def choose_clamped(
    clamped: str | Expectation | None, expectation: Any, model: Model[Family], data: Dataset
) -> Expectation:
    """Return the clamped phase that goes with a free phase.

    Contrastive divergence restarts its chains at completed rows, so that it needs clamped chains; samples that are the
    data themselves (1-SMCI) are completed in all ways. Where the free phase has the noise of chains anyway, by default
    the clamped one is exact only where that takes hardly longer than its chains do.
    """
    inner = expectation.expectation if isinstance(expectation, InSpins) else expectation
    if isinstance(inner, Spatial) and inner.samples is None:
        return _all_completions(data)
    if not isinstance(inner, RestartedChains):
        noisy = isinstance(inner, PersistentChains | SpatialChains)
        chosen = as_clamped(clamped, model, data, HURRIED_SECONDS if noisy else PATIENT_SECONDS)
        return where_rows_are(chosen, data)
    chains = CLAMPED.create("chains") if clamped is None else as_clamped(clamped, model, data)
    if not isinstance(chains, ClampedChains):
        raise ArgumentError(
            "gives contrastive divergence no rows to start at",
            "use `clamped='chains'` or 'spatial', or `learner='pcd'`",
            argument="clamped",
            value=clamped,
        )
    return where_rows_are(chains, data)


def _all_completions(data: Dataset) -> Expectation:
    require_shown(data)
    if not are_few(data):
        raise MissingValuesError(
            "with the data as samples every way to complete the rows is one, and there are too many",
            "learn with `learner='smci-pcd'` or 'pcd', or drop the rows with the most missing cells",
        )
    return CompletedRows()


@dataclass(frozen=True, eq=False)
class CompleteData:
    """The clamped phase of rows without missing cells, and without hidden units: their statistics under any model."""

    statistics: np.ndarray
    stderr: np.ndarray

    def __call__(self, model: Model[Family], state: None) -> tuple[Estimate, None]:
        """Return the statistics, and the log-evidence under the model."""
        log_weight = Estimate(float(model.theta @ self.statistics))
        return Estimate(self.statistics, self.stderr, {"log_partition": log_weight}), None


def begun_phase(
    clamped: Any, expectation: Any, model: Model[ExponentialFamily], data: Dataset, rng: np.random.Generator
) -> tuple[Any, Any, Dataset]:
    """Return the clamped phase that goes with a free one, its state, and complete rows where the free one may start."""
    if not data.has_missing:
        return CompleteData(mean_statistics(model, data), np.zeros_like(model.theta)), None, data
    chosen: Any = choose_clamped(clamped, expectation, model, data)
    posterior = chosen.init(model, data, rng)
    if not hasattr(getattr(chosen, "phase", chosen), "completions"):
        return chosen, posterior, fill_at_random(data, rng)
    return chosen, posterior, chosen.completions(data, posterior)
