"""Thin scikit-learn facades over models, learners and inference. They hold no mathematics."""

from gibbsian.estimators.boltzmann_machine import BoltzmannMachine
from gibbsian.estimators.files import load
from gibbsian.estimators.full_span import FullSpan
from gibbsian.estimators.higher_order import HigherOrderBoltzmannMachine
from gibbsian.estimators.mixtures import (
    GaussianMixture,
    HardKMeans,
    MachineMixture,
    OnlineKMeans,
    SoftKMeans,
    VonMisesFisherMixture,
)
from gibbsian.estimators.potts import PottsMachine

__all__ = [
    "BoltzmannMachine",
    "FullSpan",
    "GaussianMixture",
    "HardKMeans",
    "HigherOrderBoltzmannMachine",
    "MachineMixture",
    "OnlineKMeans",
    "PottsMachine",
    "SoftKMeans",
    "VonMisesFisherMixture",
    "load",
]
