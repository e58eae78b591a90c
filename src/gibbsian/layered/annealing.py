"""Annealed importance sampling of restricted machines, one layer summed out analytically, there and back.

Walkers are rows of a matrix, so a step is two matrix products (Salakhutdinov and Murray 2008); the weights are those of
the marginal law of one layer (Yasuda and Takahashi 2022), which vary less than those of the joint one. The way there
starts at independent units with the base rates of data, and errs on the low side of log Z; the way back starts at
states of the machine, and errs on the high side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from gibbsian.backends.parallel import map_in_order
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError, MixingWarning, notify
from gibbsian.inference import exact
from gibbsian.layered.paths import IndependentUnits, LayerPath, as_base, filled_values
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.sampling import gibbs_steps
from gibbsian.layered.tempering import TemperedChains
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.restricted import RestrictedModel
from gibbsian.resources import require_memory
from gibbsian.rng import RandomState, as_generator
from gibbsian.samplers.annealing import PILOT_BETAS, PILOT_WALKERS, AnnealedRun, Annealing, even_ladder

# Walkers are moved in this many groups, of this many walkers at least; a group has a random stream of its own.
MOST_GROUPS, LEAST_WALKERS = 16, 25
STARTS = ("gibbs", "tempering", "exact")


@dataclass(frozen=True)
class LayerAnnealing:
    """Annealed importance sampling between independent units and a restricted machine.

    Groups of walkers have random streams of their own, so results do not depend on the number of threads.

    Parameters
    ----------
    n_walkers : int
        Independent walkers, at least 2.
    betas : int or array-like
        Number of equal steps of the inverse temperature from 0 to 1, or the inverse temperatures themselves.
    base : str, LayerRows or IndependentUnits
        The independent units at inverse temperature 0: those with the base rates of data, or of short chains of the
        machine itself (``"chains"``), or with the visible biases alone (``"biases"``).
    summed : {"hidden", "visible"}
        The layer that is summed out analytically.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.inference import exact
    >>> from gibbsian.layered.annealing import LayerAnnealing
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> weights = np.random.default_rng(0).normal(size=(8, 5))
    >>> rbm = RestrictedModel.build(BinaryLayer(8), BinaryLayer(5), weights=weights)
    >>> run = LayerAnnealing(betas=1000).forward(rbm, rng=1)
    >>> abs(run.log_partition - exact(rbm).log_partition()) < 3 * run.log_partition_stderr < 0.1
    True
    """

    n_walkers: int = 100
    betas: int | np.ndarray = 10_000
    base: str | LayerRows | IndependentUnits = "chains"
    summed: str = "hidden"

    def __post_init__(self) -> None:
        Annealing(self.n_walkers, self.betas)  # checks both
        if self.summed not in ("hidden", "visible"):
            raise ArgumentError("is not known", "use 'hidden' or 'visible'", argument="summed", value=self.summed)

    @property
    def ladder(self) -> np.ndarray:
        """The inverse temperatures from 0 to 1."""
        return Annealing(self.n_walkers, self.betas).ladder

    def forward(self, model: RestrictedModel, rng: RandomState = None) -> AnnealedRun:
        """Go from independent units to the machine: weighted states, and log Z from below in expectation."""
        generator = as_generator(rng)
        path = self._path(model, generator)
        starts = [None] * len(_groups(self.n_walkers))
        values, log_weights = _walk(path, self.ladder, self.n_walkers, starts, generator)
        v = self._visible(path.model, values, generator)
        return AnnealedRun(model.visible.decode(v), path.log_base_partition + log_weights, len(self.ladder) - 1)

    def reverse(self, model: RestrictedModel, values: np.ndarray, rng: RandomState = None) -> AnnealedRun:
        """Go from the machine to independent units: log Z from above in expectation.

        Parameters
        ----------
        model : RestrictedModel
            The machine.
        values : ndarray of shape (n_rows, visible.width)
            Visible values drawn from the machine; each starts one walker, whatever `n_walkers` says. Whether they are
            such draws decides whether the result is an upper estimate: no weight can tell.
        rng : None, int or Generator
            Source of randomness.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.annealing import LayerAnnealing
        >>> from gibbsian.inference import exact
        >>> from gibbsian.models.layers import SpinLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> weights = np.random.default_rng(0).normal(scale=0.5, size=(8, 5))
        >>> rbm = RestrictedModel.build(SpinLayer(8), SpinLayer(5), weights=weights)
        >>> engine = exact(rbm)
        >>> run = LayerAnnealing(betas=1000).reverse(rbm, engine.sample_layers(100, np.random.default_rng(0))[0], rng=1)
        >>> abs(run.log_partition - engine.log_partition()) < 3 * run.log_partition_stderr < 0.1
        True
        """
        given = np.asarray(values, dtype=np.float64)
        if given.ndim != 2 or given.shape[1] != model.visible.width or len(given) < 2:
            raise ArgumentError(
                f"values has shape {given.shape}", f"give two or more rows of {model.visible.width} visible values"
            )
        generator = as_generator(rng)
        path = self._path(model, generator, len(given))
        if self.summed == "visible":
            given = np.asarray(model.draw_hidden(given, generator), np.float64)
        starts = [given[group] for group in _groups(len(given))]
        values, log_weights = _walk(path, self.ladder[::-1], len(given), starts, generator)
        v = self._visible(path.model, values, generator)
        return AnnealedRun(
            model.visible.decode(v), log_weights - path.log_base_partition, len(self.ladder) - 1, reverse=True
        )

    def adapted(self, model: RestrictedModel, rng: RandomState = None) -> Self:
        """Return the same settings with the temperatures moved to where the walkers' states change most.

        See `gibbsian.samplers.annealing.Annealing.adapted`; the estimate stays unbiased.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.annealing import LayerAnnealing
        >>> from gibbsian.models.layers import SpinLayer
        >>> from gibbsian.models.restricted import RestrictedModel
        >>> rbm = RestrictedModel.build(SpinLayer(10), SpinLayer(10), weights=np.full((10, 10), 1.0))
        >>> ladder = LayerAnnealing(betas=100).adapted(rbm, rng=0).ladder
        >>> bool(ladder[50] < 0.5)                 # the order comes early, and short steps with it
        True
        """
        generator = as_generator(rng)
        path = self._path(model, generator)
        pilot = np.linspace(0.0, 1.0, PILOT_BETAS + 1)
        values = path.draw_base(PILOT_WALKERS, generator)
        increases = np.empty((PILOT_BETAS, PILOT_WALKERS))
        for number in range(PILOT_BETAS):
            values, increases[number] = _move(path, values, pilot[number : number + 2], generator)
        return replace(self, betas=even_ladder(pilot, increases, len(self.ladder) - 1))

    def _path(self, model: RestrictedModel, rng: np.random.Generator, n_walkers: int | None = None) -> LayerPath:
        walkers = self.n_walkers if n_walkers is None else n_walkers
        columns = model.visible.width + model.hidden.width
        require_memory(
            32.0 * walkers * columns + 16.0 * model.theta.size,
            f"annealing {walkers} walkers of {columns} columns",
            "use fewer walkers",
        )
        base = as_base(self.base, model, rng)
        if self.summed == "hidden":
            return LayerPath(model, base)
        return LayerPath(model.transposed(), IndependentUnits(base.hidden, base.visible))

    def _visible(self, walked: RestrictedModel, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Visible values of walkers, which walk on hidden ones where the visible layer is summed out."""
        return values if self.summed == "hidden" else walked.draw_hidden(values, rng)


def _groups(n_walkers: int) -> list[slice]:
    size = max(LEAST_WALKERS, -(-n_walkers // MOST_GROUPS))
    return [slice(start, min(start + size, n_walkers)) for start in range(0, n_walkers, size)]


def _walk(
    path: LayerPath, ladder: np.ndarray, n_walkers: int, starts: list, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Move all walkers along the ladder; a start of None is drawn from the base."""

    def run(task: tuple[slice, np.ndarray | None, np.random.Generator]) -> tuple[np.ndarray, np.ndarray]:
        group, values, stream = task
        if values is None:
            values = path.draw_base(group.stop - group.start, stream)
        return _move(path, values, ladder, stream)

    groups = _groups(n_walkers)
    ends = list(map_in_order(run, zip(groups, starts, rng.spawn(len(groups)), strict=True)))
    return np.concatenate([values for values, _ in ends]), np.concatenate([weights for _, weights in ends])


def _move(
    path: LayerPath, values: np.ndarray, ladder: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Take up how much likelier the states become, then make a step, from each inverse temperature to the next."""
    log_weights = np.zeros(len(values))
    for before, beta in zip(ladder[:-1].tolist(), ladder[1:].tolist(), strict=True):
        products = path.products(values)
        log_weights += path.log_weights(values, products, beta) - path.log_weights(values, products, before)
        values = path.step(products, beta, rng)
    return values, log_weights


def log_partition_interval(
    model: RestrictedModel,
    start: str | np.ndarray | LayerRows = "gibbs",
    annealing: LayerAnnealing | None = None,
    rng: RandomState = None,
    burn_in: int = 1000,
    warn: bool = True,
) -> LogPartitionInterval:
    """Bracket log Z by annealed importance sampling to the machine and back.

    Parameters
    ----------
    model : RestrictedModel
        The machine.
    start : str, ndarray or LayerRows
        Where the way back starts: ``"gibbs"`` (chains from the independent units), ``"tempering"`` (the same with
        parallel tempering, for machines that mix badly), ``"exact"`` (draws by enumeration, to judge the method),
        visible values drawn from the machine, or data. Data stand for the machine as far as it fits them.
    annealing : LayerAnnealing, optional
        Walkers, temperatures and base; by default 100 walkers and 10,000 temperatures.
    rng : None, int or Generator
        Source of randomness.
    burn_in : int
        Steps of the chains before the way back.
    warn : bool
        Whether to give a `MixingWarning` when the two sides disagree beyond their errors.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.inference import exact
    >>> from gibbsian.layered.annealing import LayerAnnealing, log_partition_interval
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> weights = np.random.default_rng(0).normal(size=(8, 5))
    >>> rbm = RestrictedModel.build(BinaryLayer(8), BinaryLayer(5), weights=weights)
    >>> interval = log_partition_interval(rbm, annealing=LayerAnnealing(betas=1000), rng=0)
    >>> interval.lower < exact(rbm).log_partition() < interval.upper
    True
    """
    chosen = LayerAnnealing() if annealing is None else annealing
    check_whole_number("burn_in", burn_in, least=0)
    _check_start(start)
    generator = as_generator(rng)
    # one base for both ways: Bennett's combination of them needs the same path
    chosen = replace(chosen, base=as_base(chosen.base, model, generator))
    forward = chosen.forward(model, generator)
    values, words = _starts(model, start, chosen, generator, burn_in)
    interval = LogPartitionInterval(forward, chosen.reverse(model, values, generator), words)
    if warn and interval.trouble:
        notify(MixingWarning(interval.trouble, f"raise the number of temperatures, `betas={forward.n_betas}`"))
    return interval


def _check_start(start: str | np.ndarray | LayerRows) -> None:
    if isinstance(start, str) and start not in STARTS:
        raise ArgumentError(
            "is not known", f"use {', '.join(STARTS)}, visible values or LayerRows", argument="start", value=start
        )


def _starts(
    model: RestrictedModel,
    start: str | np.ndarray | LayerRows,
    annealing: LayerAnnealing,
    rng: np.random.Generator,
    burn_in: int,
) -> tuple[np.ndarray, str]:
    """Return visible values for the way back, and what they are in words."""
    n = annealing.n_walkers
    if isinstance(start, LayerRows):
        rows = start.take(rng.choice(start.n_rows, n, p=start.shares))
        values = filled_values(rows, model.visible)
        return values, f"{n} rows of the data"
    if not isinstance(start, str):
        return start, f"the {len(start)} states given"
    if start == "exact":
        return exact(model).sample_layers(n, rng)[0], f"{n} exact draws"
    if start == "tempering":
        chains = TemperedChains(base=as_base(annealing.base, model, rng))
        state = chains.init(model, n, rng)
        state, _ = chains.step(model, state, rng, burn_in)
        return state.values[-1], f"{n} tempered chains of {burn_in} steps"
    path = LayerPath(model, as_base(annealing.base, model, rng))
    values = gibbs_steps(model, path.draw_base(n, rng), burn_in, rng)
    return values, f"{n} Gibbs chains of {burn_in} steps"


__all__ = ["LayerAnnealing", "log_partition_interval"]
