"""Thin scikit-learn estimators over models, learners and answers. They hold no mathematics and no loops."""

from gibbsian.lazy import attach

_MODULES = {
    "base": ("ESTIMATORS", "Estimator", "load"),
    "boltzmann_machine": ("BoltzmannMachine",),
    "choice": ("choose_model", "fit"),
    "classifier": ("GibbsClassifier",),
    "clustering": ("HardKMeans", "OnlineKMeans"),
    "deep": ("DeepBeliefNetwork", "DeepBoltzmannMachine"),
    "full_span": ("FullSpan",),
    "gaussian": ("GaussianMachine",),
    "hidden": ("HiddenBoltzmannMachine",),
    "higher_order": ("HigherOrderBoltzmannMachine",),
    "machine_mixture": ("MachineMixture",),
    "mixtures": ("GaussianMixture", "SoftKMeans", "VonMisesFisherMixture"),
    "ordinal": ("OrdinalMachine",),
    "potts": ("PottsMachine",),
    "random_field": ("MarkovRandomFieldMachine",),
    "restricted": ("RestrictedBoltzmannMachine",),
}
__getattr__, __dir__, __all__ = attach(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)
