"""What a distribution is: parameters, energies, statistics, flip costs.

Models are immutable, know nothing of learning, threads or devices, and import only the packages above them
(errors, domain, graphs, backends).
"""

from gibbsian.lazy import attach

_MODULES = {
    "base": ("MODELS", "Model"),
    "belief_network": ("BeliefNetwork",),
    "conditional": ("ConditionalModel",),
    "deep": ("DeepModel",),
    "full_span": ("FullSpanModel",),
    "gaussian": ("GaussianModel",),
    "higher_order": ("HigherOrderModel",),
    "independent_columns": ("IndependentColumnsMixture",),
    "layers": ("BinaryLayer", "CategoricalLayer", "GaussianLayer", "SpinLayer"),
    "local_states": ("LocalStates",),
    "machine_mixture": ("MachineMixtureModel",),
    "ordinal": ("OrdinalModel",),
    "pairwise": ("PairwiseModel",),
    "potential_field": ("ContinuousField", "PotentialField"),
    "potentials": ("POTENTIALS", "Potential"),
    "potts": ("PottsModel",),
    "restricted": ("RestrictedModel",),
    "span_average": ("SpanAverage",),
    "span_basis": ("SpanBasis",),
    "spherical_gaussians": ("GaussianMixtureModel", "KMeansModel"),
    "tables": ("MarkovRandomField",),
    "von_mises_fisher": ("VonMisesFisherMixtureModel",),
}
__getattr__, __dir__, __all__ = attach(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)
