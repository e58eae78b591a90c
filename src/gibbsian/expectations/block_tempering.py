"""The free phase by parallel tempering: what to learn with when plain chains get stuck."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.expectations.block_chains import FREE_PHASES, BlockSamples, FreeMoments
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.tempering import TemperedChains, TemperedState
from gibbsian.models.restricted import RestrictedModel
from gibbsian.settings import check, declared, free, whole


@FREE_PHASES.register("tempering")
@declared(frozen=True)
class TemperedBlockChains:
    """Chains that go on at the machine's own temperature, each with copies at higher ones to exchange states with.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learners.Minibatch(free_phase=gb.expectations.TemperedBlockChains(betas=4)).free_phase.n_chains
    100
    """

    n_steps: int = whole(1, "Steps of each chain for each minibatch.", least=1)
    n_chains: int = whole(100, "Chains at the machine's own temperature.", least=1)
    betas: int | np.ndarray = free(
        10, "Number of inverse temperatures, evenly from 0 to 1, or these themselves.", doc="int or array"
    )

    def __post_init__(self) -> None:
        check(self)
        TemperedChains(self.betas)  # checks them

    def init(self, model: RestrictedModel, data: Any, rng: np.random.Generator) -> TemperedState:
        """Start all copies at independent units with the base rates of the data."""
        return TemperedChains(self.betas, LayerRows.of(data)).init(model, self.n_chains, rng)

    def __call__(
        self, model: RestrictedModel, state: TemperedState, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, TemperedState]:
        """Go on with the chains; the moments are those at the machine's own temperature."""
        state, _ = TemperedChains(self.betas).step(model, state, rng, self.n_steps)
        coldest = state.values[-1]
        return BlockSamples(coldest, model.hidden_means(coldest)).moments(), state
