"""How many classes: fit each number and compare a criterion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from gibbsian.errors import ArgumentError
from gibbsian.mixtures.settings import check


@dataclass(frozen=True)
class Selection:
    """The fits of several numbers of classes.

    Parameters
    ----------
    n_components : array of int
        The numbers tried.
    log_likelihoods, bic, aic : arrays
        Of the data, by number of classes.
    mixtures : list
        The fitted estimators.
    criterion : str
        What the best one minimises.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.mixtures import GaussianMixture
    >>> from gibbsian.mixtures.selection import select_components
    >>> rows = np.random.default_rng(0).normal(size=(90, 2)) + 9 * (np.arange(90) % 3)[:, None]
    >>> select_components(GaussianMixture(random_state=0), rows, range(1, 5)).best.n_components
    3
    """

    n_components: np.ndarray
    log_likelihoods: np.ndarray
    bic: np.ndarray
    aic: np.ndarray
    mixtures: list[Any]
    criterion: str = "bic"

    @property
    def best(self) -> Any:
        """The fitted estimator of the least criterion."""
        return self.mixtures[int(np.argmin(getattr(self, self.criterion)))]

    def to_frame(self) -> Any:
        """Return the numbers as a pandas DataFrame, one row per number of classes."""
        import pandas

        columns = {"log_likelihood": self.log_likelihoods, "bic": self.bic, "aic": self.aic}
        return pandas.DataFrame(columns, index=pandas.Index(self.n_components, name="n_components"))


def select_components(
    estimator: Any, X: Any, n_components: Iterable[int], criterion: str = "bic", sample_weight: Any = None
) -> Selection:
    """Fit a mixture with each number of classes.

    Parameters
    ----------
    estimator : mixture estimator
        Cloned for each fit; its other settings stay.
    X : array
        The rows.
    n_components : iterable of int
        The numbers to try.
    criterion : "bic" or "aic"
        What the best one minimises.
    sample_weight : array, optional
        How much each row counts.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.mixtures import VonMisesFisherMixture
    >>> from gibbsian.mixtures.selection import select_components
    >>> angles = np.random.default_rng(0).normal(size=80) / 9 + np.pi * (np.arange(80) % 2)
    >>> rows = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> select_components(VonMisesFisherMixture(random_state=0), rows, [1, 2, 3]).best.n_components
    2
    """
    check("criterion", criterion)
    numbers = _checked_numbers(n_components)
    if not hasattr(estimator, criterion):
        raise ArgumentError(
            f"{estimator!r} has no {criterion}", "give a mixture with a density, such as GaussianMixture"
        )
    mixtures = [clone(estimator).set_params(n_components=k).fit(X, sample_weight=sample_weight) for k in numbers]
    bic = np.array([mixture.bic(X, sample_weight=sample_weight) for mixture in mixtures])
    aic = np.array([mixture.aic(X, sample_weight=sample_weight) for mixture in mixtures])
    likelihoods = np.array([mixture.n_parameters_ for mixture in mixtures]) - aic / 2.0
    return Selection(np.array(numbers), likelihoods, bic, aic, mixtures, criterion)


def _checked_numbers(n_components: Any) -> list[int]:
    if isinstance(n_components, str) or not isinstance(n_components, Iterable):
        raise ArgumentError(
            "must be several numbers to try, such as range(1, 6)", argument="n_components", value=n_components
        )
    numbers = list(n_components)
    if not numbers:
        raise ArgumentError("`n_components` is empty", "give the numbers of classes to try")
    for number in numbers:
        check("n_components", number)
    return numbers
