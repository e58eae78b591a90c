from gibbsian.sampling.base import (
    TRANSITIONS as TRANSITIONS,
    Chains as Chains,
    Kernel as Kernel,
    Transition as Transition,
    TransitionInfo as TransitionInfo,
    as_transition as as_transition,
    draw as draw,
    kernel_for as kernel_for,
)
from gibbsian.sampling.gibbs import ChromaticGibbs as ChromaticGibbs, Gibbs as Gibbs, RandomScanGibbs as RandomScanGibbs
from gibbsian.sampling.paths import Path as Path, variable_path as variable_path
from gibbsian.sampling.walks import Ratios as Ratios, anneal as anneal, exchange as exchange
from gibbsian.sampling.annealing import AnnealedRun as AnnealedRun, Annealing as Annealing
from gibbsian.sampling.bridges import (
    BridgeEstimate as BridgeEstimate,
    ReplicaLadder as ReplicaLadder,
    bennett as bennett,
)
from gibbsian.sampling.layer_paths import layer_path as layer_path
from gibbsian.sampling.layers import draw_layers as draw_layers
