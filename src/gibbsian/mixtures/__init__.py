"""Learning with a hidden class (YK15, first half): k-means hard, online, soft, Gaussians, von Mises-Fisher, machines.

One EM loop serves them all. Depends on NumPy, SciPy, Numba, and on scikit-learn for k-means++ starts.
"""

from gibbsian.mixtures import bessel
from gibbsian.mixtures.bessel import BesselValues
from gibbsian.mixtures.concentration import concentration
from gibbsian.mixtures.em import EMResult, best_of, iterate
from gibbsian.mixtures.exponential import ClassSums, ExponentialProblem, log_joint
from gibbsian.mixtures.kmeans import KMeansPartition, KMeansProblem
from gibbsian.mixtures.levels import Levels
from gibbsian.mixtures.machines import IndependentColumns, IndependentComponents, MachineComponents, MachineProblem
from gibbsian.mixtures.online_kmeans import OnlineState
from gibbsian.mixtures.rows import WeightedRows, check_finite, collapse, unit_rows
from gibbsian.mixtures.seeds import spread_rows
from gibbsian.mixtures.selection import Selection, select_components
from gibbsian.mixtures.soft_kmeans import GaussianComponents, SphericalGaussians, anneal, variance_schedule
from gibbsian.mixtures.von_mises_fisher import VonMisesFisherComponents, VonMisesFisherLaws, sample_law

__all__ = [
    "BesselValues",
    "ClassSums",
    "EMResult",
    "ExponentialProblem",
    "GaussianComponents",
    "IndependentColumns",
    "IndependentComponents",
    "KMeansPartition",
    "KMeansProblem",
    "Levels",
    "MachineComponents",
    "MachineProblem",
    "OnlineState",
    "Selection",
    "SphericalGaussians",
    "VonMisesFisherComponents",
    "VonMisesFisherLaws",
    "WeightedRows",
    "anneal",
    "bessel",
    "best_of",
    "check_finite",
    "collapse",
    "concentration",
    "iterate",
    "log_joint",
    "sample_law",
    "select_components",
    "spread_rows",
    "unit_rows",
    "variance_schedule",
]
