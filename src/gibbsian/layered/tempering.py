"""Parallel tempering of restricted machines: chains that mix where block Gibbs sampling does not.

Copies of every chain run at inverse temperatures from independent units (0) to the machine (1); neighbours exchange
their states with the probability that keeps all their laws, the hidden layer summed out (Desjardins, Courville, Bengio,
Vincent and Delalleau 2010; Cho, Raiko and Ilin 2010). All copies are rows of one matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.layered.paths import IndependentUnits, LayerPath, as_base
from gibbsian.layered.rows import LayerRows
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.restricted import RestrictedModel

# Chains and steps of a round in which the temperatures are moved.
PILOT_CHAINS, PILOT_STEPS = 50, 100


class TemperedState(NamedTuple):
    """Where tempered chains stand.

    Parameters
    ----------
    values : ndarray of shape (n_temperatures, n_chains, visible.width)
        Visible values; the last temperature is the machine's own.
    visible_base, hidden_base : ndarray
        Fields of the independent units at inverse temperature 0.
    n_steps : ndarray of shape ()
        Steps made so far: neighbours take turns in exchanging.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.tempering import TemperedState
    >>> TemperedState(np.zeros((3, 5, 2)), np.zeros(2), np.zeros(1), np.array(0)).values[-1].shape
    (5, 2)
    """

    values: np.ndarray
    visible_base: np.ndarray
    hidden_base: np.ndarray
    n_steps: np.ndarray


class TemperedInfo(NamedTuple):
    """What happened in one call of ``step``.

    Parameters
    ----------
    swap_rates : ndarray of shape (n_temperatures - 1,)
        Share of the proposed exchanges between neighbouring temperatures that were made; nan where none was proposed.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.tempering import TemperedInfo
    >>> TemperedInfo(np.array([0.5, 0.7])).swap_rates
    array([0.5, 0.7])
    """

    swap_rates: np.ndarray


@dataclass(frozen=True)
class TemperedChains:
    """Parallel tempering between independent units and a machine.

    Parameters
    ----------
    betas : int or array-like
        Number of inverse temperatures, evenly from 0 to 1, or the inverse temperatures themselves.
    base : str, LayerRows or IndependentUnits
        The independent units at 0; see `gibbsian.layered.annealing.LayerAnnealing`.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.tempering import TemperedChains
    >>> from gibbsian.models.layers import SpinLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm, rng = RestrictedModel.build(SpinLayer(6), SpinLayer(6), weights=np.eye(6)), np.random.default_rng(0)
    >>> sampler = TemperedChains(betas=4)
    >>> state, info = sampler.step(rbm, sampler.init(rbm, 10, rng), rng, n_steps=20)
    >>> state.values.shape, bool((info.swap_rates > 0.3).all())
    ((4, 10, 6), True)
    """

    betas: int | np.ndarray = 10
    base: str | LayerRows | IndependentUnits = "chains"

    def __post_init__(self) -> None:
        if not np.ndim(self.betas):
            check_whole_number("betas", self.betas, least=2)
            return
        ladder = np.asarray(self.betas, dtype=np.float64)
        if ladder.ndim != 1 or ladder.size < 2 or ladder[0] < 0 or ladder[-1] != 1 or (np.diff(ladder) <= 0).any():
            raise ArgumentError("betas must rise, from 0 or more, to 1", "give their number, or all of them")

    @property
    def ladder(self) -> np.ndarray:
        """The inverse temperatures."""
        if np.ndim(self.betas):
            return np.array(self.betas, dtype=np.float64)
        return np.linspace(0.0, 1.0, int(self.betas))

    def init(
        self, model: RestrictedModel, n_chains: int, rng: np.random.Generator, values: np.ndarray | None = None
    ) -> TemperedState:
        """Start all copies at visible values, one row for each chain, or at draws of the independent units."""
        check_whole_number("n_chains", n_chains)
        base = as_base(self.base, model, rng)
        n_temperatures = len(self.ladder)
        if values is None:
            rows = LayerPath(model, base).draw_base(n_temperatures * n_chains, rng)
            copies = rows.reshape(n_temperatures, n_chains, -1)
        else:
            copies = np.repeat(np.asarray(values, np.float64)[None], n_temperatures, axis=0)
        return TemperedState(copies, base.visible, base.hidden, np.array(0))

    def step(
        self, model: RestrictedModel, state: TemperedState, rng: np.random.Generator, n_steps: int = 1
    ) -> tuple[TemperedState, TemperedInfo]:
        """Return the chains some steps later: a Gibbs step of every copy, then exchanges; `state` is left as it is."""
        path = LayerPath(model, IndependentUnits(state.visible_base, state.hidden_base))
        ladder, values, first = self.ladder, state.values.copy(), int(state.n_steps)
        made, proposed = np.zeros(len(ladder) - 1), np.zeros(len(ladder) - 1)
        products = _products(path, values)
        for number in range(first, first + n_steps):
            for place, beta in enumerate(ladder.tolist()):
                values[place] = path.step(products[place], beta, rng)
            products = _products(path, values)
            for lower in range(number % 2, len(ladder) - 1, 2):
                made[lower] += _exchange(path, values, products, ladder, lower, rng)
                proposed[lower] += values.shape[1]
        rates = np.divide(made, proposed, out=np.full_like(made, np.nan), where=proposed > 0)
        return state._replace(values=values, n_steps=np.array(first + n_steps)), TemperedInfo(rates)

    def adapted(self, model: RestrictedModel, rng: np.random.Generator, n_rounds: int = 3) -> Self:
        """Return the same number of temperatures, moved until all neighbours exchange equally often.

        The rejections between 0 and beta grow to a barrier that does not depend on the temperatures, so they are placed
        evenly along it (Syed, Bouchard-Cote, Deligiannidis and Doucet 2022).

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.tempering import TemperedChains
        >>> from gibbsian.models.layers import SpinLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> rbm = RestrictedModel.build(SpinLayer(10), SpinLayer(10), weights=np.full((10, 10), 1.0))
        >>> ladder = TemperedChains(betas=6).adapted(rbm, np.random.default_rng(0)).ladder
        >>> bool(ladder[3] < 0.5)                 # the order comes early
        True
        """
        sampler = replace(self, base=as_base(self.base, model, rng))
        state = sampler.init(model, PILOT_CHAINS, rng)
        for _ in range(n_rounds):
            state, info = sampler.step(model, state, rng, PILOT_STEPS)
            # no gap is closed because a pilot rejected nothing in it
            rejections = np.maximum(1.0 - info.swap_rates, 1e-3)
            barrier = np.concatenate([[0.0], np.cumsum(rejections)])
            ladder = np.interp(np.linspace(0.0, barrier[-1], len(barrier)), barrier, sampler.ladder)
            ladder[-1] = 1.0
            sampler = replace(sampler, betas=ladder)
        return sampler


def _products(path: LayerPath, values: np.ndarray) -> np.ndarray:
    n_temperatures, n_chains, width = values.shape
    return path.products(values.reshape(-1, width)).reshape(n_temperatures, n_chains, -1)


def _exchange(
    path: LayerPath,
    values: np.ndarray,
    products: np.ndarray,
    ladder: np.ndarray,
    lower: int,
    rng: np.random.Generator,
) -> int:
    """Exchange the states of two neighbouring temperatures chain by chain; return how many were exchanged."""
    upper = lower + 1
    low, high = float(ladder[lower]), float(ladder[upper])
    gains = [
        path.log_weights(values[place], products[place], high) - path.log_weights(values[place], products[place], low)
        for place in (lower, upper)
    ]
    accepted = np.log(rng.random(values.shape[1])) < gains[0] - gains[1]
    for array in (values, products):
        array[lower, accepted], array[upper, accepted] = array[upper, accepted], array[lower, accepted]
    return int(np.count_nonzero(accepted))


__all__ = ["TemperedChains", "TemperedInfo", "TemperedState"]
