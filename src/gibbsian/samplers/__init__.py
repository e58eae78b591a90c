"""Markov chains: ``init`` and ``step`` pairs over plain arrays.

A sampler knows how to move chains and nothing of learning. Depends on models, backends, rng and resources.
"""

from gibbsian.samplers.annealing import AnnealedRun, Annealing
from gibbsian.samplers.base import SAMPLERS, ChainState, Sampler, SweepInfo, as_sampler, draw
from gibbsian.samplers.block_gibbs import BlockGibbs, draw_layers
from gibbsian.samplers.gibbs import ChromaticGibbs, Gibbs, RandomScanGibbs
from gibbsian.samplers.independent import IndependentVariables
from gibbsian.samplers.layer_path import layer_path
from gibbsian.samplers.tempering import Tempering
from gibbsian.samplers.variable_path import variable_path

__all__ = [
    "SAMPLERS",
    "AnnealedRun",
    "Annealing",
    "BlockGibbs",
    "ChainState",
    "ChromaticGibbs",
    "Gibbs",
    "IndependentVariables",
    "RandomScanGibbs",
    "Sampler",
    "SweepInfo",
    "Tempering",
    "as_sampler",
    "draw",
    "draw_layers",
    "layer_path",
    "variable_path",
]
