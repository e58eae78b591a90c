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
