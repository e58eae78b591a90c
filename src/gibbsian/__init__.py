"""gibbsian learns Gibbs distributions (Boltzmann machines and their relatives) from discrete data.

Names are loaded when they are first used, so importing the package and asking the command line for help stay fast.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# public name -> module that defines it
_NAMES = {
    "BoltzmannMachine": "gibbsian.estimators",
    "Dataset": "gibbsian.data",
    "DeepBeliefNetwork": "gibbsian.estimators",
    "DeepBoltzmannMachine": "gibbsian.estimators",
    "FullSpan": "gibbsian.estimators",
    "FullSpanModel": "gibbsian.models",
    "GaussianMixture": "gibbsian.estimators",
    "Graph": "gibbsian.graphs",
    "HardKMeans": "gibbsian.estimators",
    "HiddenBoltzmannMachine": "gibbsian.estimators",
    "HigherOrderBoltzmannMachine": "gibbsian.estimators",
    "HigherOrderModel": "gibbsian.models",
    "MachineMixture": "gibbsian.estimators",
    "MarkovRandomField": "gibbsian.models",
    "OnlineKMeans": "gibbsian.estimators",
    "PairwiseModel": "gibbsian.models",
    "PottsMachine": "gibbsian.estimators",
    "PottsModel": "gibbsian.models",
    "RestrictedBoltzmannMachine": "gibbsian.estimators",
    "SoftKMeans": "gibbsian.estimators",
    "VonMisesFisherMixture": "gibbsian.estimators",
    "load": "gibbsian.estimators",
}
_ROOMS = (
    "comparison", "data", "datasets", "diagnostics", "domain", "errors", "estimators", "expectations", "full_span",
    "graphs", "inference", "learners", "mixtures", "models", "objectives", "optimizers", "plots", "plots_layers",
    "plots_mixtures", "rng", "samplers", "storage", "structure", "uncertainty",
)  # fmt: skip

__all__ = [*sorted(_NAMES), *_ROOMS]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"gibbsian.{name}")
    raise AttributeError(f"module 'gibbsian' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
