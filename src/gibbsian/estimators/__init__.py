"""Thin scikit-learn facades over models, learners and inference. They hold no mathematics."""

from gibbsian.estimators.boltzmann_machine import BoltzmannMachine
from gibbsian.estimators.files import load

__all__ = ["BoltzmannMachine", "load"]
