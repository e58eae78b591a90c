"""Markov chains: ``init`` and ``step`` pairs over plain arrays.

A sampler knows how to move chains and nothing of learning. Depends on models, backends, rng and resources.
"""

from gibbsian.samplers.base import SAMPLERS, ChainState, Sampler, SweepInfo, as_sampler, draw
from gibbsian.samplers.gibbs import ChromaticGibbs, Gibbs, RandomScanGibbs

__all__ = [
    "SAMPLERS",
    "ChainState",
    "ChromaticGibbs",
    "Gibbs",
    "RandomScanGibbs",
    "Sampler",
    "SweepInfo",
    "as_sampler",
    "draw",
]
