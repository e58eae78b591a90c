from gibbsian.old_sampling.annealing import AnnealedRun as AnnealedRun, Annealing as Annealing
from gibbsian.old_sampling.base import (
    SAMPLERS as SAMPLERS,
    ChainState as ChainState,
    Sampler as Sampler,
    SweepInfo as SweepInfo,
    as_sampler as as_sampler,
    draw as draw,
)
from gibbsian.old_sampling.bridges import (
    TemperedColumns as TemperedColumns,
    TemperedRun as TemperedRun,
    bennett as bennett,
)
from gibbsian.old_sampling.gibbs import (
    ChromaticGibbs as ChromaticGibbs,
    Gibbs as Gibbs,
    RandomScanGibbs as RandomScanGibbs,
)
from gibbsian.old_sampling.independent import IndependentVariables as IndependentVariables
from gibbsian.old_sampling.tempering import Tempering as Tempering
from gibbsian.old_sampling.variable_paths import variable_path as variable_path
