"""Four rules for the mean statistics over samples and their standard errors, by what is known of the samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gibbsian.arrays import Codes, Floats, States
from gibbsian.estimate import Estimate
from gibbsian.expectations.samples import Samples
from gibbsian.expectations.spin_products import Products, is_binary
from gibbsian.models.base import ExponentialFamily, keeps
from gibbsian.models.variables import Variables
from gibbsian.resources import row_blocks

# Takes the mean statistics over samples, with their standard errors.
ErrorRule = Callable[[ExponentialFamily, Samples], Estimate]


def bernoulli_error(family: ExponentialFamily, samples: Samples) -> Estimate:
    """Use the variance that a mean implies: exact for statistics of two values, the largest possible for others.

    For independent samples, also where few of them differ: persistent chains that are read once in each call.
    """
    mean = family.mean_statistics(samples.states, samples.weights)
    return Estimate(mean, np.sqrt(bernoulli_variance(family, mean) / (samples.effective_sample_size - 1)))


def spread_of_groups(family: ExponentialFamily, samples: Samples) -> Estimate:
    """Use the spread over groups, which are independent whatever the correlation within: copies of the rows.

    Zero for statistics that are the same in all groups.
    """
    if samples.groups is None:
        mean, variance = family.mean_statistics(samples.states, samples.weights), np.zeros(family.n_parameters)
        for block in row_blocks(samples.n_samples, mean.size):
            deviations = family.statistics(samples.states[block]) - mean
            variance += samples.spreads[block] @ np.square(deviations)
        return Estimate(mean, np.sqrt(variance * samples.correction))
    means, shares = [], []
    for states, weights, share in samples.by_group():
        means.append(family.mean_statistics(states, weights))
        shares.append(share)
    if np.ptp(shares) <= 1e-12:
        return Estimate(np.mean(means, axis=0), np.std(means, axis=0, ddof=1) / np.sqrt(len(means)))
    mean = np.average(means, axis=0, weights=shares)
    return Estimate(mean, np.sqrt(np.square(shares) @ np.square(means - mean) * samples.correction))


def floored_spread(family: ExponentialFamily, samples: Samples) -> Estimate:
    """Use the spread over groups with a floor: what the samples cannot exclude (see `error_floor`). Long chains."""
    estimate, (low, high) = spread_of_groups(family, samples), family.statistic_range
    return Estimate(estimate.value, error_floor(estimate.stderr, high - low, 1.0 / np.square(samples.shares).sum()))


class ErrorOfChanges:
    """Use how the changes of chains from their starts scatter: contrastive divergence, whose starts are the data.

    The starts have exactly the data's statistics, so that the only noise is that of the sweeps. The variance is bounded
    by that of the change and by that of the ends: too large by a factor of two at most where the model fits the data.
    """

    def __init__(self, starts: States):
        self.starts = starts
        self._mean: Floats = np.empty(0)  # of their statistics, from the first call on

    def __call__(self, family: ExponentialFamily, samples: Samples) -> Estimate:
        """Return means and standard errors."""
        ends, shares = samples.states, samples.shares
        end = family.mean_statistics(ends, shares)
        variance = bernoulli_variance(family, end)
        if (products := _products_of(family, ends, self.starts)) is not None:
            # (s' - s)^2 for statistics s of two values, low or high; s^2 = s (low + high) - low high
            if not self._mean.size:
                self._mean = family.mean_statistics(self.starts, shares)
            start, both = self._mean, family.mean_statistics(products, shares)
            low, high = family.statistic_range
            squares = (end + start) * (low + high) - 2.0 * low * high
            variance = np.minimum(variance, np.maximum(squares - 2.0 * both - (end - start) ** 2, 0.0))
        return Estimate(end, np.sqrt(variance * (shares @ shares)))


def _products_of(family: ExponentialFamily, first: States, second: States) -> Codes | None:
    """Return the codes of the products of the scores of rows, whose statistics are the products of those of both.

    None unless statistics are products of spins or of 0/1.
    """
    if not keeps(family, Products):
        return None
    ends, starts = first.astype(np.int8), second.astype(np.int8)
    products: Codes | None = None
    if family.variables == Variables.spins(len(family.variables)):
        products = (ends == starts).view(np.int8)
    elif is_binary(family.variables):
        products = ends & starts
    return products


def bernoulli_variance(family: ExponentialFamily, mean: Floats) -> Floats:
    """Return the variance of statistics with these means: exact for two values, the largest possible for more."""
    low, high = family.statistic_range
    variance: Floats = np.maximum((high - mean) * (mean - low), 0.0)
    return variance


def error_floor(stderr: Floats, spread: Floats, n_draws: float) -> Floats:
    """Return standard errors of statistics that vary by `spread` at most, with what n draws cannot exclude.

    Another value with a probability of ``3 / n`` stays unseen in 5% of all runs; two standard errors reach so far.
    Where few draws differ, their spread says too little by about as much: Agresti and Coull (1998) count two more of
    each value.
    """
    return np.hypot(stderr, 1.5 * spread / n_draws)
