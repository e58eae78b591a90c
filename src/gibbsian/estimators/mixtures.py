"""Every estimator with a hidden class, by its name on the command line and in files."""

from __future__ import annotations

from gibbsian.estimators.clustering import HardKMeans, OnlineKMeans
from gibbsian.estimators.gaussian_mixtures import GaussianMixture, SoftKMeans
from gibbsian.estimators.machine_mixture import MachineMixture
from gibbsian.estimators.mixture_base import HiddenClassEstimator
from gibbsian.estimators.von_mises_fisher import VonMisesFisherMixture

__all__ = [
    "MIXTURES",
    "GaussianMixture",
    "HardKMeans",
    "MachineMixture",
    "OnlineKMeans",
    "SoftKMeans",
    "VonMisesFisherMixture",
]

MIXTURES: dict[str, type[HiddenClassEstimator]] = {
    estimator.kind: estimator
    for estimator in (HardKMeans, OnlineKMeans, SoftKMeans, GaussianMixture, VonMisesFisherMixture, MachineMixture)
}
