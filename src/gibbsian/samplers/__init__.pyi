from gibbsian.samplers.annealing import AnnealedRun as AnnealedRun, Annealing as Annealing
from gibbsian.samplers.base import (
    SAMPLERS as SAMPLERS,
    ChainState as ChainState,
    Sampler as Sampler,
    SweepInfo as SweepInfo,
    as_sampler as as_sampler,
    draw as draw,
)
from gibbsian.samplers.block_gibbs import BlockGibbs as BlockGibbs, draw_layers as draw_layers
from gibbsian.samplers.bridges import TemperedColumns as TemperedColumns, TemperedRun as TemperedRun, bennett as bennett
from gibbsian.samplers.gibbs import ChromaticGibbs as ChromaticGibbs, Gibbs as Gibbs, RandomScanGibbs as RandomScanGibbs
from gibbsian.samplers.independent import IndependentVariables as IndependentVariables
from gibbsian.samplers.layer_paths import layer_path as layer_path
from gibbsian.samplers.tempering import Tempering as Tempering
from gibbsian.samplers.variable_paths import variable_path as variable_path
