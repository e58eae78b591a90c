"""Several regions for one target, combined by generalised least squares (Sekimoto and Yasuda 2022).

Estimates from different regions over the same samples all have the right mean and are correlated. With their covariance
matrix V the combination of least variance has the coefficients ``V^-1 1 / (1' V^-1 1)``.
"""

from __future__ import annotations

import numpy as np

from gibbsian.expectations.samples import Samples

# Directions whose variance is smaller by this factor than the largest are rounding errors.
SMALLEST_EIGENVALUE = 1e-10


def combine(samples: Samples, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard errors of quantities that several regions estimate.

    Parameters
    ----------
    samples : Samples
        What the samples count for.
    values : ndarray of shape (n_regions, n_samples, n_quantities)
        Conditional expectations given each sample.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations.composite import combine
    >>> rng = np.random.default_rng(0)
    >>> samples = gb.expectations.Samples(np.zeros((1000, 1)))
    >>> good, bad = rng.normal(scale=0.1, size=(1000, 1)), rng.normal(size=(1000, 1))
    >>> mean, stderr = combine(samples, np.stack([good, bad]))
    >>> bool(stderr[0] <= 0.1 * 1.05 / 1000**0.5)
    True
    """
    pairs = [_combine_one(samples, values[:, :, k].T) for k in range(values.shape[2])]
    return np.array([mean for mean, _ in pairs]), np.array([stderr for _, stderr in pairs])


def _combine_one(samples: Samples, values: np.ndarray) -> tuple[float, float]:
    means, covariance = samples.mean_and_covariance(values)
    n_regions = len(means)
    worth = samples.effective_sample_size
    coefficients = least_squares_coefficients(covariance, worth)
    stderr = float(np.sqrt(max(coefficients @ covariance @ coefficients, 0.0)))
    if np.count_nonzero(coefficients) > 1:
        # the coefficients were fitted to the same samples, which makes the spread look smaller than it is
        stderr *= np.sqrt((worth - 1) / (worth - n_regions))
    return float(coefficients @ means), float(stderr) if np.isfinite(covariance).all() else np.nan


def least_squares_coefficients(covariance: np.ndarray, n_effective: float) -> np.ndarray:
    """Return coefficients that sum to one and make the variance least.

    Regions that say the same make the covariance matrix singular: then they share their coefficient. With few samples
    the matrix is not known well enough, and the region of least variance is taken alone; so is one without variance.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.expectations.composite import least_squares_coefficients
    >>> least_squares_coefficients(np.diag([1.0, 4.0]), n_effective=100).tolist()
    [0.8, 0.2]
    >>> least_squares_coefficients(np.ones((2, 2)), n_effective=100).round(6).tolist()
    [0.5, 0.5]
    """
    n_regions = len(covariance)
    variances = np.diag(covariance)
    alone = np.zeros(n_regions)
    alone[np.argmin(variances) if np.isfinite(variances).all() else 0] = 1.0
    if n_regions == 1 or n_effective <= 10 * n_regions or not variances.min() > 0:
        return alone
    scale = np.sqrt(variances)
    eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1]
    projected = vectors[:, kept].T @ (1.0 / scale)
    direction = vectors[:, kept] @ (projected / eigenvalues[kept]) / scale
    coefficients = direction / direction.sum()
    improves = np.isfinite(coefficients).all() and coefficients @ covariance @ coefficients <= variances.min()
    return coefficients if improves else alone
