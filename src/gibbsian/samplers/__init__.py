"""Markov chains: ``init`` and ``step`` pairs over plain arrays.

A sampler knows how to move chains and nothing of learning. Depends on models, backends, rng and resources.
"""

from gibbsian.samplers import clique_gibbs, table_gibbs  # noqa: F401  # they register roads for their models
from gibbsian.samplers.annealing import AnnealedRun, Annealing, BaseLaw
from gibbsian.samplers.base import SAMPLERS, ChainState, Sampler, SweepInfo, as_sampler, draw
from gibbsian.samplers.gibbs import ChromaticGibbs, Gibbs, RandomScanGibbs

__all__ = [
    "SAMPLERS",
    "AnnealedRun",
    "Annealing",
    "BaseLaw",
    "ChainState",
    "ChromaticGibbs",
    "Gibbs",
    "RandomScanGibbs",
    "Sampler",
    "SweepInfo",
    "as_sampler",
    "draw",
]
