"""What a distribution is: parameters, energies, statistics, flip costs.

Models are immutable, know nothing of learning, threads or devices, and import only the packages above them
(errors, domain, graphs, backends).
"""

from gibbsian.lazy import attach
from gibbsian.models.base import MODELS, Model
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.deep import DeepModel
from gibbsian.models.full_span import FullSpanModel
from gibbsian.models.higher_order import HigherOrderModel
from gibbsian.models.layers import BinaryLayer, CategoricalLayer, GaussianLayer, SpinLayer
from gibbsian.models.local_states import LocalStates
from gibbsian.models.pairwise import PairwiseModel
from gibbsian.models.potts import PottsModel
from gibbsian.models.restricted import RestrictedModel
from gibbsian.models.span_average import SpanAverage
from gibbsian.models.span_basis import SpanBasis
from gibbsian.models.tables import MarkovRandomField

# Mixtures are loaded when they are asked for.
_MIXTURES = {
    "GaussianMixtureModel": "gibbsian.models.spherical_gaussians",
    "IndependentColumnsMixture": "gibbsian.models.independent_columns",
    "KMeansModel": "gibbsian.models.spherical_gaussians",
    "MachineMixtureModel": "gibbsian.models.machine_mixture",
    "VonMisesFisherMixtureModel": "gibbsian.models.von_mises_fisher",
}
__getattr__ = attach(__name__, _MIXTURES)[0]

__all__ = [
    "MODELS",
    "BeliefNetwork",
    "BinaryLayer",
    "CategoricalLayer",
    "DeepModel",
    "FullSpanModel",
    "GaussianLayer",
    "HigherOrderModel",
    "LocalStates",
    "MarkovRandomField",
    "Model",
    "PairwiseModel",
    "PottsModel",
    "RestrictedModel",
    "SpanAverage",
    "SpanBasis",
    "SpinLayer",
    *_MIXTURES,
]
