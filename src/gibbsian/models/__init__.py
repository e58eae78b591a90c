"""What a distribution is: parameters, energies, statistics, flip costs.

Models are immutable, know nothing of learning, threads or devices, and import only the rooms above them
(errors, domain, graphs, backends).
"""

from gibbsian.models.base import MODELS, Model
from gibbsian.models.local_states import LocalStates
from gibbsian.models.pairwise import PairwiseModel

__all__ = ["MODELS", "LocalStates", "Model", "PairwiseModel"]
