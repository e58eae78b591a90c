"""Markov chains: ``init`` and ``step`` pairs over plain arrays.

A sampler knows how to move chains and nothing of learning. Depends on models, backends, rng and resources.
"""

from gibbsian.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "SAMPLERS": "gibbsian.samplers.base",
        "AnnealedRun": "gibbsian.samplers.annealing",
        "Annealing": "gibbsian.samplers.annealing",
        "BlockGibbs": "gibbsian.samplers.block_gibbs",
        "ChainState": "gibbsian.samplers.base",
        "ChromaticGibbs": "gibbsian.samplers.gibbs",
        "Gibbs": "gibbsian.samplers.gibbs",
        "IndependentVariables": "gibbsian.samplers.independent",
        "RandomScanGibbs": "gibbsian.samplers.gibbs",
        "Sampler": "gibbsian.samplers.base",
        "SweepInfo": "gibbsian.samplers.base",
        "Tempering": "gibbsian.samplers.tempering",
        "as_sampler": "gibbsian.samplers.base",
        "draw": "gibbsian.samplers.base",
        "draw_layers": "gibbsian.samplers.block_gibbs",
        "layer_path": "gibbsian.samplers.layer_paths",
        "variable_path": "gibbsian.samplers.variable_paths",
    },
)
