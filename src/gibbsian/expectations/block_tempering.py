"""The free phase by parallel tempering: what to learn with when plain chains get stuck."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gibbsian.expectations.block_chains import FREE_PHASES, BlockSamples, FreeMoments
from gibbsian.models.restricted import RestrictedModel
from gibbsian.samplers.layer_paths import IndependentUnits, LayerPath, as_units
from gibbsian.samplers.tempering import TemperedState, Tempering
from gibbsian.settings import check, declared, free, whole


class TemperedChains(NamedTuple):
    """The chains, and the fields of the independent units at the beginning of their path."""

    chains: TemperedState
    visible_base: np.ndarray
    hidden_base: np.ndarray

    def path(self, model: RestrictedModel) -> LayerPath:
        """Return the path to a machine from the independent units that all steps share."""
        return LayerPath(model, model, IndependentUnits(self.visible_base, self.hidden_base))


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
        Tempering(self.betas)  # checks them

    def init(self, model: RestrictedModel, data: Any, rng: np.random.Generator) -> TemperedChains:
        """Start all copies at independent units with the base rates of the data."""
        base = as_units(data, model, rng)
        chains = Tempering(self.betas).init(LayerPath(model, model, base), self.n_chains, rng)
        return TemperedChains(chains, base.visible, base.hidden)

    def __call__(
        self, model: RestrictedModel, state: TemperedChains, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, TemperedChains]:
        """Go on with the chains; the moments are those at the machine's own temperature."""
        chains, _ = Tempering(self.betas).step(state.path(model), state.chains, rng, self.n_steps)
        coldest = chains.values[-1]
        return BlockSamples(coldest, model.hidden_means(coldest)).moments(), state._replace(chains=chains)
