from gibbsian.models.base import MODELS as MODELS, Model as Model
from gibbsian.models.full_span import FullSpanModel as FullSpanModel
from gibbsian.models.families.gaussian import GaussianFamily as GaussianFamily
from gibbsian.models.family import FAMILIES as FAMILIES
from gibbsian.models.given import Given as Given
from gibbsian.models.higher_order import HigherOrderModel as HigherOrderModel
from gibbsian.models.layers.belief_network import BeliefNetworkFamily as BeliefNetworkFamily
from gibbsian.models.layers.conditional import ConditionalFamily as ConditionalFamily
from gibbsian.models.layers.stack import StackFamily as StackFamily
from gibbsian.models.layers.units import (
    BinaryUnits as BinaryUnits,
    CategoricalUnits as CategoricalUnits,
    GaussianUnits as GaussianUnits,
    SpinUnits as SpinUnits,
)
from gibbsian.models.mixtures.categorical import LatentClassFamily as LatentClassFamily
from gibbsian.models.mixtures.gaussian import (
    GaussianMixtureFamily as GaussianMixtureFamily,
    KMeansFamily as KMeansFamily,
)
from gibbsian.models.mixtures.of_models import MixtureOfFamily as MixtureOfFamily
from gibbsian.models.mixtures.von_mises_fisher import VonMisesFisherMixtureFamily as VonMisesFisherMixtureFamily
from gibbsian.models.ordinal import OrdinalModel as OrdinalModel
from gibbsian.models.pairwise import PairwiseModel as PairwiseModel
from gibbsian.models.potential_field import ContinuousField as ContinuousField, PotentialField as PotentialField
from gibbsian.models.potentials import POTENTIALS as POTENTIALS, Potential as Potential
from gibbsian.models.potts import PottsModel as PottsModel
from gibbsian.models.span_basis import SpanBasis as SpanBasis
from gibbsian.models.tables import MarkovRandomField as MarkovRandomField
