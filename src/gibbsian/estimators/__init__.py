"""Thin scikit-learn facades over models, learners and inference. They hold no mathematics."""

from gibbsian.estimators.boltzmann_machine import BoltzmannMachine
from gibbsian.estimators.deep import DeepBeliefNetwork, DeepBoltzmannMachine
from gibbsian.estimators.files import load
from gibbsian.estimators.full_span import FullSpan
from gibbsian.estimators.hidden import HiddenBoltzmannMachine
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
from gibbsian.estimators.restricted import RestrictedBoltzmannMachine

__all__ = [
    "BoltzmannMachine",
    "DeepBeliefNetwork",
    "DeepBoltzmannMachine",
    "FullSpan",
    "GaussianMixture",
    "HardKMeans",
    "HiddenBoltzmannMachine",
    "HigherOrderBoltzmannMachine",
    "MachineMixture",
    "OnlineKMeans",
    "PottsMachine",
    "RestrictedBoltzmannMachine",
    "SoftKMeans",
    "VonMisesFisherMixture",
    "load",
]
