"""Machines of layers on a device: epochs of learning, block Gibbs chains, walks along temperatures, scores of units.

The steps are the array code of the CPU (`models.layers`, `learning.lessons`, `sampling.layers`) over tensors that
stay in place, so that a card replays them as graphs. Arrays come and go as NumPy; from step to step, and from call to
call of one fit or walk, they stay on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import Device, require_card_memory, there
from gibbsian.backends.torch.layers import take_rows
from gibbsian.backends.torch.repeated import Repeated, forget, kept
from gibbsian.backends.torch.streams import Stream

# What matrix products take besides on a card: six workspaces of 32 MiB, as measured on an H200.
WORKSPACE = 6 * 2**25
# Rows that are encoded at a time; fields of hidden units, with units of rows changed, that are treated together.
_ROWS_AT_ONCE, _MOST_FIELDS = 4096, 2**21

Outcome = tuple[np.ndarray, np.ndarray, Any, np.ndarray, float]


def as_numpy(tensor: Any, dtype: Any = None, locked: bool = False) -> np.ndarray:
    """Return a tensor as an array of its own, of a kind of numbers.

    To `locked` pages a card copies several times as fast, and PyTorch keeps them for what comes after every epoch.
    """
    pages = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=locked and tensor.is_cuda)
    array = pages.copy_(tensor).numpy()
    return array if dtype is None else array.astype(dtype, copy=False)


def each(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Apply a function to the arrays of nested tuples and lists of one form; None stays."""
    if isinstance(first, tuple | list):
        parts = [each(function, *some) for some in zip(first, *others, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    return None if first is None else function(first, *others)


def put_parts(parts: Any, device: Device, dtype: Any = None) -> Any:
    """Return biases and weights on a device."""
    return each(lambda part: device.put(part, dtype), parts)


def require_room(layers: Any, n_rows: int, device: Device) -> None:
    """Refuse chains that would not fit the memory of the device, before they take any."""
    widths = [layer.width for layer in layers]
    weights = sum(a * b for a, b in pairwise(widths))
    require_card_memory(
        device.dtype.itemsize * (weights + 3.0 * n_rows * sum(widths)) + WORKSPACE * device.is_card,
        f"{n_rows} chains of {sum(widths)} columns",
        "use fewer of them",
    )


# == chains ===========================================================================================================
class Chains:
    """Block Gibbs chains of a stack: the odd layers drawn given the even ones and back, again and again."""

    def __init__(self, family: Any, parts: Any, n_chains: int, device: Device):
        require_room(family.layers, n_chains, device)
        self.family, self.parts, self.stream = family, put_parts(parts, device), Stream(device.place)
        each_width = zip(self.parts.biases, family.layers, strict=True)
        self.values = [biases.new_empty(n_chains, layer.width) for biases, layer in each_width]
        self.run = Repeated(self._step, self.stream.clock)

    def __call__(self, values: list[Any], n_steps: int, seed: int) -> list[np.ndarray]:
        """Return the values of all layers some steps later."""
        self.stream.restart(seed)
        for own, given in zip(self.values, values, strict=True):
            own.copy_(torch.from_numpy(np.array(given)))
        self.run(n_steps)
        return [as_numpy(part) for part in self.values]

    def _step(self, ahead: int) -> None:
        self.stream.at_step(ahead)
        odd = self.family.draw_side(self.parts, 1, self.values, self.stream)
        each(lambda old, new: old.copy_(new), self.values, self.family.draw_side(self.parts, 0, odd, self.stream))


def gibbs(stack: Any, values: list[Any], n_steps: int, seed: int) -> list[np.ndarray]:
    """Draw the odd layers given the even ones and back, so many times; return the values of all layers."""
    device, n_chains = there(), len(values[0])
    chains = kept(stack, (device, n_chains), lambda: Chains(stack.family, stack.parts, n_chains, device))
    return chains(values, n_steps, seed)


# == walks along a path ===============================================================================================
def _on_device(units: Any, n_rows: int, device: Device) -> Any:
    """Return the layers of a path with their arrays on a device."""
    require_room(units.family.layers, n_rows, device)
    return type(units)(
        units.family, put_parts(units.parts, device), [device.put(part) for part in units.base], units.walked
    )


class Walk:
    """Walkers between independent units and a machine, which stay on a device from stretch to stretch."""

    def __init__(self, units: Any, values: np.ndarray, n_places: int, seed: int, device: Device):
        self.seed, self.n_stretches, self.stream = seed, 0, Stream(device.place)
        self.places = torch.zeros(n_places, dtype=torch.float64, device=device.place)
        self.units, self.values = _on_device(units, len(values), device), device.put(values)
        self.sums = torch.zeros(len(values), dtype=torch.float64, device=device.place)
        self.ends = torch.arange(2, device=device.place)
        self.run = Repeated(self._step, self.stream.clock)

    def __call__(self, places: np.ndarray) -> np.ndarray:
        """Go through places and return what the log-weights take up on the way."""
        self.stream.restart(self.seed, self.n_stretches)
        self.n_stretches += 1
        self.places[: len(places)].copy_(torch.from_numpy(np.array(places, np.float64)))
        self.sums.zero_()
        self.run(len(places) - 1)
        return as_numpy(self.sums)

    def _step(self, ahead: int) -> None:
        self.stream.at_step(ahead)
        ends = self.places[self.stream.clock + (ahead + self.ends)]
        features = self.units.features(self.values)
        self.units.add_growth(self.sums, self.values, features, (ends[0], ends[1]))
        self.values.copy_(self.units.step(features, ends[1], self.stream))


def walk(units: Any, values: np.ndarray, stretches: Iterable[np.ndarray], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Move walkers through stretches of inverse temperatures; return their values and the growth of log-weights."""
    increases, moved = np.zeros(len(values)), None
    for betas in stretches:
        if moved is None or len(moved.places) < len(betas):
            start = values if moved is None else as_numpy(moved.values, np.float64)
            moved = Walk(units, start, len(betas), seed, there())
        increases += moved(betas)
    return (values if moved is None else as_numpy(moved.values, np.float64)), increases


# == exchanges between the places of a path ===========================================================================
def exchange_round(
    units: Any, values: Any, ladder: Any, n_sweeps: int, number: Any, stream: Any
) -> tuple[Any, tuple[Any, Any]]:
    """Move the chains of all places, rows of one matrix place after place, and let neighbours exchange their states.

    Returns the chains, and how much likelier each state would have been one place down and one up.
    """
    n_places, n_chains = len(ladder), len(values) // len(ladder)
    near = torch.arange(n_places, device=values.device)
    own, down, up = (
        ladder[(near + step).clamp(0, n_places - 1)].repeat_interleave(n_chains)[:, None] for step in (0, -1, 1)
    )
    features = units.features(values)
    for _ in range(n_sweeps):
        values = units.step(features, own, stream)
        features = units.features(values)
    here = units.log_weights(values, features, own)
    lower, upper = ((units.log_weights(values, features, at) - here).view(n_places, n_chains) for at in (down, up))
    turn = (near[:-1, None] + number) % 2 == 0
    shares = stream.uniform(n_places - 1, n_chains, torch.float64)
    taken = ((torch.log(shares) < upper[:-1] + lower[1:]) & turn).long()
    rows = torch.arange(len(values), device=values.device).view(n_places, n_chains).clone()
    rows[:-1] += n_chains * taken
    rows[1:] -= n_chains * taken
    return values[rows.ravel()], (lower, upper)


def tempered(units: Any, ladder: np.ndarray, state: Any, n_steps: int, stream: Any) -> Any:
    """Return the tempered chains of a free phase some steps later."""
    shape, places = state.values.shape, _ladder(tuple(ladder.tolist()), state.values.device)
    values, count = state.values.reshape(-1, shape[2]), state.n_steps
    for _ in range(n_steps):
        values, _ = exchange_round(units, values, places, 1, count, stream)
        count = count + 1
    return state._replace(values=values.view(shape), n_steps=count)


_LADDERS: dict[Any, Any] = {}


def _ladder(ladder: tuple[float, ...], device: Any) -> Any:
    key = ladder, str(device)
    if key not in _LADDERS:
        _LADDERS[key] = torch.tensor(ladder, dtype=torch.float64, device=device)
    return _LADDERS[key]


def exchange(
    units: Any, values: np.ndarray, betas: np.ndarray, n_sweeps: int, numbers: range, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Move the chains of all places, ``(n_betas, n_chains, width)``, in rounds; neighbours take turns to exchange.

    Returns their values, and how much likelier each would have been one place down and one up, of shape
    ``(2, n_betas, n_rounds, n_chains)``.
    """
    device, stream = there(), Stream(there().place)
    stream.restart(seed)
    n_betas, n_chains, width = values.shape
    own, moved = _on_device(units, n_betas * n_chains, device), device.put(values.reshape(-1, width))
    ladder = device.put(betas, torch.float64)
    gains = ladder.new_zeros(len(numbers), 2, n_betas, n_chains)

    def one_round(ahead: int) -> None:
        stream.at_step(ahead)
        step = stream.clock + ahead
        after, found = exchange_round(own, moved, ladder, n_sweeps, numbers.start + step, stream)
        moved.copy_(after)
        gains.index_copy_(0, step, torch.stack(found)[None])

    Repeated(one_round, stream.clock)(len(numbers))
    return as_numpy(moved, np.float64).reshape(values.shape), as_numpy(gains).transpose(1, 2, 0, 3)


# == epochs of learning ===============================================================================================
def lacking(problem: Any, has_prior: bool) -> str:
    """Return why something is not learned on a device; nothing where it is."""
    data, deep = problem.rows.data, not problem.lessons.fills_missing
    others = [
        (not hasattr(problem.lessons.phase, "on_device"), "has only the free phases 'cd', 'pcd' and 'tempering'"),
        (has_prior, "cannot ask for the slope of a `log_prior`"),
        (data.missing is not None and deep, "needs complete rows for a deep machine"),
        (data.missing is not None and data.row_weights is not None, "cannot fill the missing cells of weighted rows"),
    ]
    return next((reason for unknown, reason in others if unknown), "")


def epoch(problem: Any, progress: Any, plan: Any, meanwhile: Callable[[], None]) -> Outcome:
    """Go through the rows once, as planned; return theta, velocity, memory, missing cells and the mean misfit.

    While the device works, the host does what `meanwhile` does.
    """
    return fit_of(problem, progress, plan, there())(problem, progress, plan, meanwhile)


def fit_of(problem: Any, progress: Any, plan: Any, device: Device) -> Fit:
    """Return what a fit keeps on a device, made for its first epoch."""
    return kept(problem, device, lambda: Fit(problem, progress, plan, device))


class Fit:
    """What one fit keeps on a device: parameters, chains and rows stay there, steps are replayed."""

    def __init__(self, problem: Any, progress: Any, plan: Any, device: Device):
        family, data, place = problem.model.family, problem.rows.data, device.place
        visible, sizes = family.layers[0], np.diff(plan.ends)
        single = device.precision != "float64" or progress.theta.dtype == np.float32
        self.lessons, self.family, self.dtype = problem.lessons, family, torch.float32 if single else torch.float64
        whole = data.states.dtype.kind in "iub" and not visible.variables.real
        n_rows = len(data.states) if data.missing is None else data.n_rows
        require_card_memory(
            predicted_bytes(problem, progress, plan, self.dtype, n_rows, whole) + WORKSPACE * device.is_card,
            f"fitting layers of {', '.join(f'{layer.width:,}' for layer in family.layers)} columns",
            "ask for fewer hidden units, or fewer chains (`n_chains`)",
        )
        self.theta, self.velocity = (torch.zeros(family.n_parameters, dtype=self.dtype, device=place) for _ in "ab")
        self.parts = family.split(self.theta)
        self.memory = each(self._tensor(place), progress.memory)
        self.rows = torch.zeros(n_rows, visible.width, dtype=torch.int8 if whole else self.dtype, device=place)
        self.order = torch.zeros(len(plan.order), dtype=torch.int64, device=place)
        self.starts = torch.from_numpy(plan.ends[:-1]).to(place)
        self.rates = torch.zeros(len(plan.rates), dtype=torch.float64, device=place)
        self.misfit = torch.zeros((), dtype=torch.float64, device=place)
        self.stream, self.holes = Stream(place), None
        if data.missing is not None:
            self.holes = device.put(problem.rows.missing_columns(visible), torch.bool)
        else:
            self._put_rows(lambda some: problem.rows.distinct_values(visible, some))
        self.last: tuple[Any, ...] = ()
        self.runs = {size: Repeated(self._step_of(size, plan), self.stream.clock) for size in set(sizes.tolist())}

    def _tensor(self, place: str) -> Callable[[Any], Any]:
        """Return what makes a tensor of an array: numbers in the precision of the fit, counts as they are."""

        def made(array: Any) -> Any:
            array = np.asarray(array)
            return torch.zeros(array.shape, dtype=self.dtype if array.dtype.kind == "f" else torch.int64, device=place)

        return made

    # -- in and out ---------------------------------------------------------------------------------------------------
    def __call__(self, problem: Any, progress: Any, plan: Any, meanwhile: Callable[[], None]) -> Outcome:
        """Make the steps of an epoch."""
        given = progress.theta, progress.velocity, progress.memory, progress.filled
        if not self.last or any(mine is not part for mine, part in zip(self.last, given, strict=True)):
            self._put(problem, progress)
        data = problem.rows.data
        order = plan.order if self.holes is not None else data.row_of[plan.order]
        self.order.copy_(torch.from_numpy(np.ascontiguousarray(order)))
        self.rates.copy_(torch.from_numpy(plan.rates))
        self.misfit.zero_()
        self.stream.restart(*map(int, progress.seed), progress.epoch)
        if len(self.runs) == 1:
            next(iter(self.runs.values()))(len(plan.rates))
        else:
            for size in np.diff(plan.ends).tolist():
                self.runs[size](1)
        meanwhile()
        self.last = self._got(problem, progress)
        return *self.last, float(self.misfit) / len(plan.rates)

    def _put(self, problem: Any, progress: Any) -> None:
        """Take up where learning stands."""
        given = progress.theta, progress.velocity, progress.memory
        each(_fill, (self.theta, self.velocity, self.memory), given)
        if self.holes is not None:
            rows, visible = problem.rows, self.family.layers[0]
            self._put_rows(lambda some: rows.values(visible, np.arange(rows.n_rows)[some], progress.filled, np.float64))

    def _put_rows(self, values: Callable[[slice], np.ndarray]) -> None:
        for start in range(0, len(self.rows), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            self.rows[some] = torch.from_numpy(values(some)).to(self.rows.dtype).to(self.rows.device)

    def _got(self, problem: Any, progress: Any) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
        """Return where learning stands, as NumPy."""
        filled = progress.filled
        if self.holes is not None:
            filled = problem.rows.filled_from(self.family.layers[0], as_numpy(self.rows, np.float64))
        given = progress.theta, progress.velocity, progress.memory
        mine = self.theta, self.velocity, self.memory
        found = each(lambda array, own: as_numpy(own, np.asarray(array).dtype, locked=True), given, mine)
        return *found, filled

    # -- steps --------------------------------------------------------------------------------------------------------
    def _step_of(self, size: int, plan: Any) -> Callable[[int], None]:
        """Return the step of minibatches of so many rows."""
        within = torch.arange(size, device=self.order.device)

        def step(ahead: int) -> None:
            self.stream.at_step(ahead)
            number = self.stream.clock + ahead
            values = self._values(within)
            lesson = self.lessons.lesson(self.parts, self.memory, self.lessons.clamp(self.parts, values), self.stream)
            plan.move(self.theta, self.velocity, lesson.gradient, self.rates[number])
            each(_fill, self.memory, lesson.memory)
            each(self.misfit.add_, lesson.misfit)

        return step

    def _values(self, within: Any) -> Any:
        """Return the rows of a minibatch; missing cells are drawn given the rest, by way of hidden units."""
        values = take_rows(self.rows, self.order, self.starts, self.stream, within, self.dtype)
        if self.holes is None:
            return values
        places = self.order[self.starts[self.stream.clock + self.stream.ahead] + within]
        both = self.family.draw_side(self.parts, 1, [values, None], self.stream)
        drawn = self.family.draw(self.parts, 0, both, self.stream)
        values = torch.where(self.holes[places], drawn, values)
        self.rows[places] = values.to(self.rows.dtype)
        return values


def _fill(own: Any, given: Any) -> Any:
    return own.copy_(torch.from_numpy(np.array(given)) if isinstance(given, np.ndarray | np.generic) else given)


def predicted_bytes(problem: Any, progress: Any, plan: Any, dtype: Any, n_rows: int, whole: bool) -> float:
    """Return what a fit takes: parameters, their step and gradient, chains, rows, and both factors of the gradient."""
    family, phase = problem.model.family, problem.lessons.phase
    widths = [layer.width for layer in family.layers]
    most = int(np.diff(plan.ends).max())
    treated = most + getattr(phase, "n_chains", most)
    held: list[int] = []
    each(lambda array: held.append(np.asarray(array).size), progress.memory)
    inner = sum(widths) + sum(widths[1:-1])
    numbers = 3.0 * family.n_parameters + sum(held) + treated * (2.0 * inner + 2.0 * sum(widths))
    return dtype.itemsize * numbers + n_rows * widths[0] * (1 if whole else dtype.itemsize) + 8.0 * len(plan.order)


# == figures ==========================================================================================================
def unit_scores(
    owner: Any, family: Any, parts: Any, values: Callable[[], np.ndarray], units: np.ndarray
) -> np.ndarray | None:
    """Return ``log P(v_i | all others)`` of a unit of each row of values, for each row of `units`.

    For two-valued visible units, else None. A unit that holds a probability is scored by the mean over its two values.
    The values stay on the device as long as their owner lives, where they have one.
    """
    device, (visible, hidden) = there(), family.layers
    if visible.kind not in ("binary", "spin"):
        return None

    def put() -> tuple[Any, Any]:
        return device.put(values()), device.put(units, torch.int64)

    rows, chosen = put() if owner is None else kept(owner, device, put)
    (biases, _), (weights,) = parts = put_parts(parts, device, rows.dtype)
    fields = family.fields(parts, 1, [rows, None])
    scores, step = [], 1.0 - visible.low
    for some in chosen.split(max(1, _MOST_FIELDS // fields.numel())):  # sets of units that are treated together
        held = rows.gather(1, some.T).T[:, :, None]
        slopes = weights[some]
        upper, lower = (
            hidden.log_normaliser((fields + (value - held) * slopes).flatten(0, 1)).view(some.shape)
            for value in (1.0, visible.low)
        )
        odds = upper - lower + step * biases[some]
        share = (held[:, :, 0] - visible.low) / step
        scores.append(share * odds - torch.logaddexp(odds, torch.zeros_like(odds)))
    return as_numpy(torch.cat(scores))


__all__ = ["epoch", "exchange", "forget", "gibbs", "lacking", "tempered", "unit_scores", "walk"]
