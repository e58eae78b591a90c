"""gibbsian learns Gibbs distributions (Boltzmann machines and their relatives) from discrete data.

Names are loaded when they are first used, so importing the package and asking the command line for help stay fast.
"""

from __future__ import annotations

from gibbsian.lazy import attach

__version__ = "0.1.0"

# public name -> module that defines it
_NAMES = {
    "BoltzmannMachine": "gibbsian.estimators",
    "Dataset": "gibbsian.data",
    "DeepBeliefNetwork": "gibbsian.estimators",
    "DeepBoltzmannMachine": "gibbsian.estimators",
    "FullSpan": "gibbsian.estimators",
    "FullSpanModel": "gibbsian.models",
    "GaussianMachine": "gibbsian.estimators",
    "GaussianMixture": "gibbsian.estimators",
    "GaussianModel": "gibbsian.models",
    "GibbsClassifier": "gibbsian.estimators",
    "Graph": "gibbsian.graphs",
    "HardKMeans": "gibbsian.estimators",
    "HiddenBoltzmannMachine": "gibbsian.estimators",
    "HigherOrderBoltzmannMachine": "gibbsian.estimators",
    "HigherOrderModel": "gibbsian.models",
    "MachineMixture": "gibbsian.estimators",
    "MarkovRandomField": "gibbsian.models",
    "MarkovRandomFieldMachine": "gibbsian.estimators",
    "OnlineKMeans": "gibbsian.estimators",
    "OrdinalMachine": "gibbsian.estimators",
    "OrdinalModel": "gibbsian.models",
    "PairwiseModel": "gibbsian.models",
    "PotentialField": "gibbsian.models",
    "PottsMachine": "gibbsian.estimators",
    "PottsModel": "gibbsian.models",
    "RestrictedBoltzmannMachine": "gibbsian.estimators",
    "SoftKMeans": "gibbsian.estimators",
    "VonMisesFisherMixture": "gibbsian.estimators",
    "fit": "gibbsian.estimators",
    "load": "gibbsian.estimators",
}
_MODULES = (
    "answers", "comparison", "data", "datasets", "diagnostics", "domain", "errors", "estimators", "expectations",
    "graphs", "inference", "learners", "models", "objectives", "optimizers", "plots", "rng",
    "samplers", "storage", "structure", "uncertainty",
)  # fmt: skip

__getattr__, __dir__, __all__ = attach(__name__, _NAMES, _MODULES)
