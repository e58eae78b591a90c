"""Epochs of learning by minibatches on a device: parameters, chains and rows stay there, steps are replayed.

A step does what `learners.restricted_lessons` and `learners.minibatch` do, with draws in the same order. Both phases
and the centring are one matrix product ``dW = L^T R`` (`learners.layer_gradient`): the rows of L are mu,
``<v>_data - <v>_model``, the chains and the minibatch, those of R ``-(<h>_data - <h>_model)``, -nu, and the hidden
means with their weights. The offsets mu and nu live in these rows from step to step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gibbsian.backends.device import Device, here, require_card_memory
from gibbsian.backends.torch.machines import PHASES, Machine
from gibbsian.backends.torch.repeated import Repeated, kept
from gibbsian.errors import ArgumentError

# What matrix products take besides, on the usual stream and on the one where graphs are captured.
WORKSPACES = 2 * 2**25
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
        self.phase = PHASES[phase.on_device](self.machine, phase, len(self.left) - 2 - int(sizes.max()), device)
        self.holes = None
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
        self.right[1] = -torch.from_numpy(progress.memory.offsets.hidden)
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

        offsets = type(memory.offsets)(array(self.left[0]), array(-self.right[1]))
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
        end, places = 2 + n_free + size, torch.arange(size, device=self.theta.device)
        left, right, products = self.left[:end], self.right[:end], self.products[: n_free + size]
        # the weights of chains and rows in differences, and of rows alone
        shares = self.theta.new_full((n_free + size, 2), 1.0 / size)
        shares[:n_free] = self.theta.new_tensor([-1.0 / n_free, 0.0])
        centred, momentum, share = plan.centred, plan.momentum, plan.offset_share
        penalties = [(self.theta[part], self.gradient[part], l1 / (1.0 - momentum), l2) for part, l1, l2 in plan.parts]

        def step(ahead: int) -> None:
            machine.stream.at_step(ahead)
            now = machine.stream.clock + ahead
            self._take_rows(self.order[self.starts[now] + places], left[2 + n_free :], products[n_free:])
            self.phase.move(left[2:], n_free, products)
            machine.upper.means(products, machine.stream, right[2:])
            self.phase.go_on(products[:n_free])
            visible, hidden = shares.T @ left[2:], shares.T @ right[2:]
            right[2:] *= shares[:, :1]
            left[1], right[0] = visible[0], -hidden[0]
            used = slice(None) if centred else slice(2, None)
            torch.mm(left[used].T, right[used], out=self.slope_matrix)
            self.slopes[0].copy_(left[1])
            self.slopes[1].copy_(hidden[0])
            if centred:
                self.slopes[0].addmv_(self.slope_matrix, right[1])
                self.slopes[1].addmv_(self.slope_matrix.T, left[0], alpha=-1.0)
            self._move(self.rates[now], momentum, penalties)
            left[0].lerp_(visible[1], share)
            right[1].lerp_(-hidden[1], share)

        return step

    def _take_rows(self, places: Any, values: Any, products: Any) -> None:
        """Fill in the rows of a minibatch; missing cells are drawn given the rest, by way of hidden units."""
        values.copy_(self.rows[places])
        if self.holes is None:
            return
        hidden, drawn = torch.empty_like(products), torch.empty_like(values)
        self.machine.up(values, products, hidden)
        self.machine.down(hidden, torch.empty_like(values), drawn)
        values.copy_(torch.where(self.holes[places], drawn, values))
        self.rows[places] = values.to(self.rows.dtype)

    def _move(self, rate: Any, momentum: float, penalties: list[tuple[Any, Any, float, float]]) -> None:
        """Make a step in place: momentum for all, and the penalties of each part."""
        rate = rate.to(self.dtype)
        for theta, gradient, _, l2 in penalties:
            if l2:
                gradient.add_(theta, alpha=-l2)
        if momentum:
            self.velocity.mul_(momentum).addcmul_(self.gradient, rate)
        else:
            torch.mul(self.gradient, rate, out=self.velocity)
        self.theta += self.velocity
        for theta, _, l1, _ in penalties:
            if l1:
                threshold = rate * l1
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
        "left": ((2 + n_free + most, width), dtype),
        "right": ((2 + n_free + most, height), dtype),
        "products": ((n_free + most, height), dtype),
        "rows": ((n_rows, width), torch.int8 if states.kind in "iub" else dtype),
        "order": ((len(plan.order),), torch.int64),
        "starts": ((n_steps,), torch.int64),
        "rates": ((n_steps,), torch.float64),
    }


def predicted_bytes(shapes: dict[str, tuple[tuple[int, ...], Any]], phase: Any, widths: tuple[int, int]) -> float:
    """Return what a fit takes of the memory of a card.

    Besides its tensors these are two sides of the chains, what the first step is taken back with, and workspaces.
    """
    sizes = {name: float(np.prod(shape)) * dtype.itemsize for name, (shape, dtype) in shapes.items()}
    (n_left, _), dtype = shapes["left"]
    copies = 2 * len(phase.ladder) if hasattr(phase, "ladder") else 1
    chains = copies * float(getattr(phase, "n_chains", n_left / 2)) * sum(widths) * dtype.itemsize
    again = sum(sizes[name] for name in ("theta", "velocity", "left", "right"))
    return sum(sizes.values()) + 1.5 * chains + again + WORKSPACES
