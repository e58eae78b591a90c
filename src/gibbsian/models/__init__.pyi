from gibbsian.models.base import FAMILIES as FAMILIES, Model as Model
from gibbsian.models.families.full_span import FullSpanFamily as FullSpanFamily
from gibbsian.models.families.full_span import from_log_weights as from_log_weights
from gibbsian.models.families.gaussian import GaussianFamily as GaussianFamily
from gibbsian.models.families.pairwise import PairwiseFamily as PairwiseFamily
from gibbsian.models.families.potentials import (
    POTENTIALS as POTENTIALS,
    OrdinalFamily as OrdinalFamily,
    Potential as Potential,
    PotentialsFamily as PotentialsFamily,
)
from gibbsian.models.families.products import ProductsFamily as ProductsFamily
from gibbsian.models.families.quadrature import QuadratureFamily as QuadratureFamily
from gibbsian.models.families.span_basis import SpanBasis as SpanBasis
from gibbsian.models.families.tables import TablesFamily as TablesFamily
from gibbsian.models.given import Given as Given
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
from gibbsian.models.variables import Quadrature as Quadrature, Variables as Variables
