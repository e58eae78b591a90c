"""Epochs of learning by minibatches on a device: parameters, chains and rows stay there, steps are replayed.

A step does what `learners.restricted_lessons` and `learners.minibatch` do, with draws in the same order. Both phases
and the centring are one matrix product ``dW = L^T R`` (`learners.layer_gradient`). With d for data less model:

========  =====================  ===========================================
row       L                      R
========  =====================  ===========================================
0         mu, the offsets        ``-d<h>``
1         0                      ``-<h>_data``
2         ``d<v>``               -nu, the offsets
3         ``<v>_data``           0
chains    visible values         hidden means over minus their number
the rest  rows of the minibatch  hidden means over their number
========  =====================  ===========================================

The offsets stay in their rows from step to step; the others are written by two products.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import Device, here, require_card_memory
from gibbsian.backends.torch.machines import PHASES, Machine, as_numpy
from gibbsian.backends.torch.repeated import Repeated, kept
from gibbsian.backends.torch.units import fused

# What matrix products take besides on a card: six workspaces of 32 MiB, as measured on an H200.
WORKSPACE = 6 * 2**25
# Rows of sums in both factors of the product.
_SUMS = 4
# Rows that are encoded at a time.
_ROWS_AT_ONCE = 4096


Outcome = tuple[np.ndarray, np.ndarray, Any, np.ndarray, float]


def epoch(problem: Any, progress: Any, plan: Any, meanwhile: Callable[[], None]) -> Outcome:
    """Go through the rows once, as planned; return theta, velocity, memory, missing cells and the mean misfit.

    While the device works, the host does what `meanwhile` does.
    """
    device = here()
    assert device is not None
    return fit_of(problem, plan, device)(problem, progress, plan, meanwhile)


def fit_of(problem: Any, plan: Any, device: Device) -> Fit:
    """Return what a fit keeps on a device, made for its first epoch."""
    from gibbsian.backends.torch.deep_epochs import DeepFit  # which is made of this module

    kind = {"restricted": Fit, "deep": DeepFit}[problem.lessons.on_device]
    return kept(problem, device, lambda: kind(problem, plan, device))


def lacking(problem: Any, has_prior: bool) -> str:
    """Return why something is not learned on a device; nothing where it is."""
    lessons, data = problem.lessons, problem.rows.data
    phase = getattr(lessons, "phase", None)
    others = [
        (getattr(phase, "on_device", "") not in PHASES, "has only the free phases 'cd', 'pcd' and 'tempering'"),
        (has_prior, "cannot ask for the slope of a `log_prior`"),
        (data.missing is not None and lessons.on_device == "deep", "needs complete rows for a deep machine"),
        (data.missing is not None and data.row_weights is not None, "cannot fill the missing cells of weighted rows"),
    ]
    return next((reason for unknown, reason in others if unknown), "")


class Fit:
    """What one fit keeps on a device."""

    # the tensors of `shapes_of`
    theta: Any
    velocity: Any
    gradient: Any
    left: Any
    right: Any
    products: Any
    rows: Any
    order: Any
    starts: Any
    rates: Any
    misfit: Any
    # what slopes are multiplied by, and which weights there are, where these are not all
    slope_scale: float = 1.0
    pairs: Any = None

    def __init__(self, problem: Any, plan: Any, device: Device):
        model, phase, data = problem.model.folded(), problem.lessons.phase, problem.rows.data
        single = device.precision != "float64" or model.theta.dtype == np.float32
        self.dtype = torch.float32 if single else torch.float64
        sizes = np.diff(plan.ends)
        shapes = shapes_of(problem, plan, self.dtype)
        require_card_memory(
            predicted_bytes(shapes, phase) + WORKSPACE * device.is_card,
            f"fitting layers of {', '.join(f'{layer.width:,}' for layer in problem.model.layers)} columns",
            "ask for fewer hidden units, or fewer chains (`n_chains`)",
        )
        for name, (shape, dtype) in shapes.items():
            setattr(self, name, torch.zeros(shape, dtype=dtype, device=device.place))
        widths = model.weights.shape
        parts = [*widths, widths[0] * widths[1]]
        *biases, weights = self.theta.split(parts)
        *self.slopes, slopes = self.gradient.split(parts)
        self.slope_matrix = slopes.view(widths)
        self.machine = Machine(model.tempered, biases, weights.view(widths), device, scale=1.0 / model.temperature)
        self.phase = PHASES[phase.on_device](self.machine, phase, len(self.left) - _SUMS - int(sizes.max()), device)
        self.holes, self.fused, visible = None, device.has_triton, problem.model.visible
        if data.missing is not None:
            self.holes = device.put(visible.spread(data.missing[data.row_of]), torch.bool)
        else:
            self._put_rows(lambda some: visible.encode(data.states[some]))
        self.starts.copy_(torch.from_numpy(plan.ends[:-1]))
        self.last: tuple[Any, ...] = ()
        self._prepare(problem, device)
        clock = self.machine.stream.clock
        self.runs = {size: Repeated(self._step_of(size, plan), clock) for size in set(sizes.tolist())}

    def _prepare(self, problem: Any, device: Device) -> None:
        """Put what the rows are clamped with on the device: nothing more."""

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
        self.machine.stream.restart(*map(int, progress.seed), progress.epoch)
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
        model, memory = problem.model, progress.memory
        self.theta.copy_(torch.from_numpy(model.fold(progress.theta)))
        self.velocity.copy_(torch.from_numpy(model.fold(progress.velocity)))
        lower, upper = model.fold_values(problem.lessons.offset_parts(model, memory))
        self.left[0] = torch.from_numpy(lower[0])
        self.right[2] = -torch.from_numpy(upper[0])
        self.phase.put(memory.free)
        if self.holes is not None:
            rows, visible = problem.rows, problem.model.visible
            self._put_rows(lambda some: rows.values(visible, np.arange(rows.n_rows)[some], progress.filled, np.float64))

    def _put_rows(self, values: Callable[[slice], np.ndarray]) -> None:
        for start in range(0, len(self.rows), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            self.rows[some] = torch.from_numpy(values(some)).to(self.rows.dtype).to(self.rows.device)

    def _got(self, problem: Any, progress: Any) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
        """Return where learning stands, as NumPy."""
        model, real, filled = problem.model, progress.theta.dtype, progress.filled
        offsets = model.unfold_values(as_numpy(self.left[:1], real), as_numpy(-self.right[2:3], real))
        memory = problem.lessons.remembered(self.phase.got(progress.memory.free), offsets)
        if self.holes is not None:
            data = problem.rows.data
            states = problem.model.visible.decode(as_numpy(self.rows, np.float64))
            filled = states[data.missing[data.row_of]].astype(filled.dtype)
        theta, velocity = (model.unfold(as_numpy(part, real, locked=True)) for part in (self.theta, self.velocity))
        return theta, velocity, memory, filled

    # -- steps --------------------------------------------------------------------------------------------------------
    def _step_of(self, size: int, plan: Any) -> Callable[[int], None]:
        """Return the step of minibatches of so many rows."""
        machine, n_free = self.machine, self.phase.n_chains(size)
        end = _SUMS + n_free + size
        left, right, products = self.left[:end], self.right[:end], self.products[: n_free + size]
        values, means = left[_SUMS:], right[_SUMS:]
        # by which chains and rows count in differences, and in the means of rows alone
        shares = self.theta.new_full((2, n_free + size), 1.0 / size)
        shares[:, :n_free] = self.theta.new_tensor([[-1.0 / n_free], [0.0]])
        shares[0] *= self.slope_scale
        signs = -self.theta.new_ones(2, n_free + size)
        signs[1] /= self.slope_scale
        signs[1, :n_free] = 0.0
        used = slice(None) if plan.centred else slice(_SUMS, None)
        # biases come first, folded or not; the rest are weights, of which the folded machine may have more
        parts = plan.parts if len({part[1:] for part in plan.parts}) > 1 else plan.parts[:1]
        cuts = [*(part.start for part, _, _ in parts), None]
        penalties = [
            (slice(*ends), self._numbers(plan.momentum, l1, l2))
            for ends, (_, l1, l2) in zip(pairwise(cuts), parts, strict=True)
        ]

        def step(ahead: int) -> None:
            stream = machine.stream
            stream.at_step(ahead)
            self._take_rows(values[n_free:], products[n_free:])
            self.phase.move(values, n_free, products)
            self._take_means(products, n_free, shares[0], means)
            torch.mm(shares, values, out=left[2:4])
            torch.mm(signs, means, out=right[:2])
            torch.mm(left[used].T, right[used], out=self.slope_matrix)
            if self.pairs is not None:
                self.slope_matrix *= self.pairs
            if plan.centred:
                torch.addmv(left[2], self.slope_matrix, right[2], out=self.slopes[0])
                torch.addmv(right[0], self.slope_matrix.T, left[0], beta=-1.0, alpha=-1.0, out=self.slopes[1])
            else:
                self.slopes[0].copy_(left[2])
                torch.neg(right[0], out=self.slopes[1])
            for part, numbers in penalties:
                self._move(part, numbers)
            left[0].lerp_(left[3], plan.offset_share)
            right[2].lerp_(right[1], plan.offset_share)

        return step

    def _numbers(self, momentum: float, l1: float, l2: float) -> Any:
        """Return momentum, L1, for a step that momentum makes longer, and L2."""
        return self.rates.new_tensor([momentum, l1 / (1.0 - momentum), l2]).split(1)

    def _take_rows(self, values: Any, products: Any) -> None:
        """Fill in the rows of a minibatch; missing cells are drawn given the rest, by way of hidden units."""
        stream = self.machine.stream
        if self.fused and self.holes is None:
            fused().take_rows(self.rows, self.order, self.starts, stream, values)
            return
        first = self.starts[stream.clock + stream.ahead]
        places = self.order[first + torch.arange(len(values), device=first.device)]
        values.copy_(self.rows[places])
        if self.holes is None:
            return
        hidden, drawn = torch.empty_like(products), torch.empty_like(values)
        self.machine.up(values, products, hidden)
        self.machine.down(hidden, torch.empty_like(values), drawn)
        values.copy_(torch.where(self.holes[places], drawn, values))
        self.rows[places] = values.to(self.rows.dtype)

    def _take_means(self, products: Any, n_free: int, shares: Any, means: Any) -> None:
        """Fill in the hidden means of chains and rows, times their shares; the chains go on."""
        self.machine.upper.means_and_draws(products, self.machine.stream, shares, means, self.phase.goes_on)

    def _move(self, part: slice, numbers: Any) -> None:
        """Make a step in place: momentum, and the penalties of a part of theta."""
        theta, velocity, gradient = self.theta[part], self.velocity[part], self.gradient[part]
        stream = self.machine.stream
        if self.fused:
            fused().move(theta, velocity, gradient, self.rates, stream, numbers)
            return
        rate, (momentum, l1, l2) = self.rates[stream.clock + stream.ahead], numbers
        real = self.dtype
        velocity.mul_(momentum.to(real)).add_(rate.to(real) * (gradient - l2.to(real) * theta))
        theta += velocity
        threshold = (rate * l1).to(real)
        theta.copy_((theta - threshold).clamp_(min=0.0) + (theta + threshold).clamp_(max=0.0))


# -- memory -----------------------------------------------------------------------------------------------------------
def shapes_of(problem: Any, plan: Any, dtype: Any) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return the tensors of a fit: shapes and kinds of numbers."""
    model, visible, data = problem.model.folded(), problem.model.visible, problem.rows.data
    (width, height), most, n_steps = model.weights.shape, int(np.diff(plan.ends).max()), len(plan.rates)
    n_free = getattr(problem.lessons.phase, "n_chains", most)
    whole = data.states.dtype.kind in "iub" and np.isfinite(visible.n_states)
    n_rows = len(data.states) if data.missing is None else data.n_rows
    return {
        **dict.fromkeys(("theta", "velocity", "gradient"), ((model.theta.size,), dtype)),
        "left": ((_SUMS + n_free + most, width), dtype),
        "right": ((_SUMS + n_free + most, height), dtype),
        "products": ((n_free + most, height), dtype),
        "rows": ((n_rows, visible.width), torch.int8 if whole else dtype),
        "order": ((len(plan.order),), torch.int64),
        "starts": ((n_steps,), torch.int64),
        "rates": ((n_steps,), torch.float64),
        "misfit": ((1,), torch.float64),
    }


def predicted_bytes(shapes: dict[str, tuple[tuple[int, ...], Any]], phase: Any) -> float:
    """Return what a fit takes: its tensors and those of its chains."""
    sizes = {name: float(np.prod(shape)) * dtype.itemsize for name, (shape, dtype) in shapes.items()}
    (_, width), (n_rows, height), dtype = shapes["left"][0], *shapes["products"]
    n_places = len(phase.ladder) if hasattr(phase, "ladder") else 1
    chains = dtype.itemsize * n_places * float(getattr(phase, "n_chains", n_rows / 2))
    return sum(sizes.values()) + (1 + (n_places > 1)) * chains * (width + height)
