"""What a distribution is: parameters, energies, statistics, flip costs.

Models are immutable, know nothing of learning, threads or devices, and import only the rooms above them
(errors, domain, graphs, backends).
"""

from gibbsian.models.base import MODELS, Model
from gibbsian.models.full_span import FullSpanModel
from gibbsian.models.higher_order import HigherOrderModel
from gibbsian.models.local_states import LocalStates
from gibbsian.models.pairwise import PairwiseModel
from gibbsian.models.potts import PottsModel
from gibbsian.models.span_basis import SpanBasis
from gibbsian.models.tables import MarkovRandomField

__all__ = [
    "MODELS",
    "FullSpanModel",
    "HigherOrderModel",
    "LocalStates",
    "MarkovRandomField",
    "Model",
    "PairwiseModel",
    "PottsModel",
    "SpanBasis",
]
