"""The free phase by spatial Monte Carlo integration (YU20, whose conclusion proposes it for restricted machines).

Persistent chains give the samples; a moment is not averaged over them directly, but its expectation over a region of
units given the rest of each sample is (YU20 eq. 8). Two regions hold a visible and a hidden unit: the pair alone
(1-SMCI, YU20 eq. 15), and the visible unit with the whole hidden layer, which is summed analytically. A larger region
never has the larger variance (YU20 theorem 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.expectations.block_chains import FREE_PHASES, FreeMoments, HiddenChains, PersistentBlockChains
from gibbsian.models.layer_flips import FlipSums, is_two_valued
from gibbsian.models.restricted import RestrictedModel
from gibbsian.settings import check, choice, declared, whole

REGIONS = ("layer", "pair")


def spatial_moments(
    model: RestrictedModel, values: np.ndarray, hidden: np.ndarray | None = None, region: str = "layer"
) -> FreeMoments:
    """Return moments by spatial Monte Carlo integration over samples.

    Parameters
    ----------
    model : RestrictedModel
        A machine of two-valued units.
    values : ndarray of shape (n_samples, visible.width)
        Visible values.
    hidden : ndarray of shape (n_samples, hidden.width), optional
        Hidden values, which the region ``"pair"`` needs.
    region : {"layer", "pair"}
        What is summed exactly around a visible and a hidden unit.
    """
    if region not in REGIONS:
        raise ArgumentError("is not known", "use 'pair' or 'layer'", argument="region", value=region)
    if not is_two_valued(model):
        raise ArgumentError(
            f"spatial integration needs two-valued units, not a {model.visible.kind} and a {model.hidden.kind} layer",
            "use 'pcd' or 'tempering'",
        )
    sums = FlipSums(model, values)
    hidden_means = model.hidden.means(sums.hidden_fields).mean(axis=0)
    if region == "layer":
        visible, products = sums.layer_moments()
        return FreeMoments(visible, hidden_means, products)
    if hidden is None:
        raise ArgumentError("needs the hidden values of the samples", "give `hidden=`", argument="region", value="pair")
    return FreeMoments(model.visible_means(hidden).mean(axis=0), hidden_means, sums.pair_products(hidden))


@FREE_PHASES.register("smci")
@declared(frozen=True)
class SpatialBlockChains:
    """Persistent chains whose moments are taken by spatial Monte Carlo integration.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.learners.Minibatch(free_phase=gb.expectations.SpatialBlockChains(region="pair")).free_phase.region
    'pair'
    """

    n_steps: int = whole(1, "Steps of each chain for each minibatch.", least=1)
    n_chains: int = whole(100, "Number of chains.", least=1)
    region: str = choice("layer", "What is summed exactly around a visible and a hidden unit.", *REGIONS)

    def __post_init__(self) -> None:
        check(self)

    def init(self, model: RestrictedModel, data: Any, rng: np.random.Generator) -> HiddenChains:
        """Start chains as PCD does."""
        return PersistentBlockChains(n_steps=self.n_steps, n_chains=self.n_chains).init(model, data, rng)

    def __call__(
        self, model: RestrictedModel, state: HiddenChains, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, HiddenChains]:
        """Go on with the chains and integrate around their states."""
        hidden = state.hidden
        for _ in range(self.n_steps):
            drawn = model.draw_visible(hidden, rng)
            hidden = model.draw_hidden(drawn, rng)
        return spatial_moments(model, drawn, hidden, self.region), HiddenChains(hidden)
