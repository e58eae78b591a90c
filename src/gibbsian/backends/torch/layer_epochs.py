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
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import Device, here, require_card_memory
from gibbsian.backends.torch.machines import PHASES, Machine
from gibbsian.backends.torch.repeated import Repeated, kept
from gibbsian.backends.torch.units import fused
from gibbsian.errors import ArgumentError

# What matrix products take besides.
WORKSPACE = 2**25
# Rows of sums in both factors of the product.
_SUMS = 4
# Rows that are encoded at a time.
_ROWS_AT_ONCE = 4096


def epoch(problem: Any, progress: Any, plan: Any) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
    """Go through the rows once, as planned; return theta, velocity, memory and what stands in missing cells."""
    device = here()
    assert device is not None
    _refuse_others(problem, plan, device)
    return kept(problem, device, lambda: Fit(problem, plan, device))(problem, progress, plan)


def _refuse_others(problem: Any, plan: Any, device: Device) -> None:
    """Say in one sentence what is not learned on a device."""
    lessons, data = problem.lessons, problem.rows.data
    others = [
        (not lessons.on_device, "learns restricted machines by minibatches, and no deeper ones"),
        (getattr(lessons.phase, "on_device", None) not in PHASES, "has the free phases 'cd', 'pcd' and 'tempering'"),
        (plan.has_prior, "cannot ask for the slope of a `log_prior`"),
        (data.missing is not None and data.row_weights is not None, "cannot fill the missing cells of weighted rows"),
    ]
    for unknown, reason in others:
        if unknown:
            raise ArgumentError(reason, "set `device='cpu'`", argument="device", value=device.place)


class Fit:
    """What one fit keeps on a device."""

    def __init__(self, problem: Any, plan: Any, device: Device):
        model, phase, data = problem.model, problem.lessons.phase, problem.rows.data
        single = device.precision != "float64" or model.theta.dtype == np.float32
        self.dtype = torch.float32 if single else torch.float64
        sizes, n_rows = np.diff(plan.ends), len(data.states) if data.missing is None else data.n_rows
        shapes = shapes_of(model, phase, plan, n_rows, data.states.dtype, self.dtype)
        require_card_memory(
            predicted_bytes(shapes, phase, model.weights.shape),
            f"fitting layers of {', '.join(f'{layer.width:,}' for layer in model.layers)} columns",
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
        self.holes, self.fused = None, device.has_triton
        if data.missing is not None:
            self.holes = device.put(model.visible.spread(data.missing[data.row_of]), torch.bool)
        else:
            self._put_rows(lambda some: model.visible.encode(data.states[some]))
        self.starts.copy_(torch.from_numpy(plan.ends[:-1]))
        self.last: tuple[Any, ...] = ()
        state = [self.theta, self.velocity, self.left, self.right, *self.phase.state]
        state += [] if self.holes is None else [self.rows]
        self.runs = {
            size: Repeated(self._step_of(size, plan), self.machine.stream.clock, state) for size in set(sizes.tolist())
        }

    # -- in and out ---------------------------------------------------------------------------------------------------
    def __call__(self, problem: Any, progress: Any, plan: Any) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
        """Make the steps of an epoch."""
        if not all(mine is given for mine, given in zip(self.last, _carried(progress), strict=False)) or not self.last:
            self._put(problem, progress)
        data = problem.rows.data
        order = plan.order if self.holes is not None else data.row_of[plan.order]
        self.order.copy_(torch.from_numpy(np.ascontiguousarray(order)))
        self.rates.copy_(torch.from_numpy(plan.rates))
        self.machine.stream.restart(*map(int, progress.seed), progress.epoch)
        if len(self.runs) == 1:
            next(iter(self.runs.values()))(len(plan.rates))
        else:
            for size in np.diff(plan.ends).tolist():
                self.runs[size](1)
        self.last = self._got(problem, progress)
        return self.last

    def _put(self, problem: Any, progress: Any) -> None:
        """Take up where learning stands."""
        self.theta.copy_(torch.from_numpy(progress.theta))
        self.velocity.copy_(torch.from_numpy(progress.velocity))
        self.left[0] = torch.from_numpy(progress.memory.offsets.visible)
        self.right[2] = -torch.from_numpy(progress.memory.offsets.hidden)
        self.phase.put(progress.memory.free)
        if self.holes is not None:
            rows, visible = problem.rows, problem.model.visible
            self._put_rows(lambda some: rows.values(visible, np.arange(rows.n_rows)[some], progress.filled, np.float64))

    def _put_rows(self, values: Callable[[slice], np.ndarray]) -> None:
        for start in range(0, len(self.rows), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            self.rows[some] = torch.from_numpy(values(some)).to(self.rows.dtype).to(self.rows.device)

    def _got(self, problem: Any, progress: Any) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
        """Return where learning stands, as NumPy."""
        memory, real = progress.memory, progress.theta.dtype

        def array(part: Any) -> np.ndarray:
            return part.cpu().numpy().astype(real)

        offsets = type(memory.offsets)(array(self.left[0]), array(-self.right[2]))
        memory = memory._replace(free=self.phase.got(memory.free), offsets=offsets)
        filled = progress.filled
        if self.holes is not None:
            data = problem.rows.data
            states = problem.model.visible.decode(self.rows.cpu().numpy().astype(np.float64))
            filled = states[data.missing[data.row_of]].astype(filled.dtype)
        return array(self.theta), array(self.velocity), memory, filled

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
        signs = -self.theta.new_ones(2, n_free + size)
        signs[1, :n_free] = 0.0
        used = slice(None) if plan.centred else slice(_SUMS, None)
        penalties = [(part, self._numbers(plan.momentum, l1, l2)) for part, l1, l2 in plan.parts]

        def step(ahead: int) -> None:
            stream = machine.stream
            stream.at_step(ahead)
            self._take_rows(values[n_free:], products[n_free:])
            self.phase.move(values, n_free, products)
            machine.upper.means_and_draws(products, stream, shares[0], means, self.phase.goes_on)
            torch.mm(shares, values, out=left[2:4])
            torch.mm(signs, means, out=right[:2])
            torch.mm(left[used].T, right[used], out=self.slope_matrix)
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


def _carried(progress: Any) -> tuple[Any, ...]:
    return progress.theta, progress.velocity, progress.memory, progress.filled


# -- memory -----------------------------------------------------------------------------------------------------------
def shapes_of(
    model: Any, phase: Any, plan: Any, n_rows: int, states: np.dtype, dtype: Any
) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return the tensors of a fit: shapes and kinds of numbers."""
    (width, height), most, n_steps = model.weights.shape, int(np.diff(plan.ends).max()), len(plan.rates)
    n_free = getattr(phase, "n_chains", most)
    parameters = ((model.theta.size,), dtype)
    return {
        **dict.fromkeys(("theta", "velocity", "gradient"), parameters),
        "left": ((_SUMS + n_free + most, width), dtype),
        "right": ((_SUMS + n_free + most, height), dtype),
        "products": ((n_free + most, height), dtype),
        "rows": (
            (n_rows, width),
            torch.int8 if states.kind in "iub" and np.isfinite(model.visible.n_states) else dtype,
        ),
        "order": ((len(plan.order),), torch.int64),
        "starts": ((n_steps,), torch.int64),
        "rates": ((n_steps,), torch.float64),
    }


def predicted_bytes(shapes: dict[str, tuple[tuple[int, ...], Any]], phase: Any, widths: tuple[int, int]) -> float:
    """Return what a fit takes of the memory of a card.

    Besides its tensors these are those of its chains, what the first step is taken back with, and a workspace.
    """
    sizes = {name: float(np.prod(shape)) * dtype.itemsize for name, (shape, dtype) in shapes.items()}
    (n_rows, _), dtype = shapes["products"]
    chains = dtype.itemsize * float(getattr(phase, "n_chains", n_rows / 2))
    copies = 2 * len(phase.ladder) if hasattr(phase, "ladder") else 1
    again = sum(sizes[name] for name in ("theta", "velocity", "left", "right")) + chains * widths[1]
    return sum(sizes.values()) + copies * chains * sum(widths) + again + WORKSPACE
