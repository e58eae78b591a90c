from gibbsian.sampling.annealing import AnnealedRun as AnnealedRun, Annealing as Annealing
from gibbsian.sampling.base import (
    SAMPLERS as SAMPLERS,
    ChainState as ChainState,
    Sampler as Sampler,
    SweepInfo as SweepInfo,
    as_sampler as as_sampler,
    draw as draw,
)
from gibbsian.sampling.block_gibbs import BlockGibbs as BlockGibbs, draw_layers as draw_layers
from gibbsian.sampling.bridges import TemperedColumns as TemperedColumns, TemperedRun as TemperedRun, bennett as bennett
from gibbsian.sampling.gibbs import ChromaticGibbs as ChromaticGibbs, Gibbs as Gibbs, RandomScanGibbs as RandomScanGibbs
from gibbsian.sampling.independent import IndependentVariables as IndependentVariables
from gibbsian.sampling.layer_paths import layer_path as layer_path
from gibbsian.sampling.tempering import Tempering as Tempering
from gibbsian.sampling.variable_paths import variable_path as variable_path
