"""The free phase by spatial Monte Carlo integration (YU20, whose conclusion proposes it for restricted machines).

Persistent chains give the samples; a moment is not averaged over them directly, but its expectation over a region of
units given the rest of each sample is (YU20 eq. 8). Two regions hold a visible and a hidden unit: the pair alone
(1-SMCI, YU20 eq. 15), and the visible unit with the whole hidden layer, which is summed analytically. A larger region
never has the larger variance (YU20 theorem 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.layered.flips import FlipSums, is_two_valued
from gibbsian.layered.phases import FREE_PHASES, Chains, FreeMoments, PersistentChains
from gibbsian.layered.rows import LayerRows
from gibbsian.models.restricted import RestrictedModel

REGIONS = ("pair", "layer")


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

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.spatial import spatial_moments
    >>> from gibbsian.models.layers import SpinLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm = RestrictedModel.build(SpinLayer(1), SpinLayer(1), weights=[[0.5]])
    >>> spatial_moments(rbm, np.array([[1.0]])).products          # tanh 0.5, from one sample
    array([[0.4621]])
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
@dataclass(frozen=True)
class SpatialPhase:
    """Persistent chains whose moments are taken by spatial Monte Carlo integration.

    Parameters
    ----------
    n_steps : int
        Steps a minibatch.
    n_chains : int
        Number of chains.
    region : {"layer", "pair"}
        What is summed exactly around a visible and a hidden unit.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.spatial import SpatialPhase
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm, rng = RestrictedModel.build(BinaryLayer(2), BinaryLayer(1)), np.random.default_rng(0)
    >>> phase, rows = SpatialPhase(n_chains=3), LayerRows(np.eye(2))
    >>> moments, _ = phase(rbm, phase.init(rbm, rows, rng), rows.states, rng)
    >>> moments.products.ravel()                                  # exact, because the machine is uniform
    array([0.25, 0.25])
    """

    n_steps: int = 1
    n_chains: int = 100
    region: str = "layer"

    def __post_init__(self) -> None:
        PersistentChains(self.n_steps, self.n_chains)  # checks both
        if self.region not in REGIONS:
            raise ArgumentError("is not known", "use 'pair' or 'layer'", argument="region", value=self.region)

    def init(self, model: RestrictedModel, rows: LayerRows, rng: np.random.Generator) -> Chains:
        """Start chains as PCD does."""
        return PersistentChains(self.n_steps, self.n_chains).init(model, rows, rng)

    def __call__(
        self, model: RestrictedModel, state: Chains, values: np.ndarray, rng: np.random.Generator
    ) -> tuple[FreeMoments, Chains]:
        """Go on with the chains and integrate around their states."""
        hidden = state.hidden
        for _ in range(self.n_steps):
            drawn = model.draw_visible(hidden, rng)
            hidden = model.draw_hidden(drawn, rng)
        return spatial_moments(model, drawn, hidden, self.region), Chains(hidden)


__all__ = ["SpatialPhase", "spatial_moments"]
