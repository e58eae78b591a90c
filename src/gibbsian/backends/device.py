"""Where kernels run: compiled by Numba on the CPU, or through PyTorch on a card.

Models and learners never see a device. An estimator opens `on_device` around what it computes, and the few places that
bind data to kernels ask once for a `twin`: the module of `backends.torch` with the names and the contract of the one of
`backends.numba`, or None on the CPU. Data stay where the twin put them until the fit is over. Threads of the pool see
the CPU: what they are given is bound before.

Work without a twin runs on the CPU, and a fit none of whose kernels has one says so, unless ``device="auto"``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from gibbsian.arrays import Integers, Tensor
from gibbsian.backends.numba import layers as numba_layers
from gibbsian.errors import ArgumentError, DeviceWarning, TooExpensiveError, notify
from gibbsian.resources import format_bytes, require_memory

PRECISIONS = ("auto", "float64", "float32", "tf32")
# Of what a card has free, what may be taken: its allocator cannot use every byte of the rest.
USABLE_CARD_SHARE = 0.95
# Relative noise of sums of many terms in each precision.
_ROUNDING = {"float64": 1e-14, "float32": 1e-7, "tf32": 1e-5}
# Twins that help a fit whose own kernels may have none.
_HELPERS = ("lbfgs", "moments", "vectors")
_NAMES = "set `device='cpu'`; a card is cuda or cuda:1, PyTorch on the CPU torch, and auto a card where there is one"


@dataclass(frozen=True)
class Device:
    """A place where PyTorch computes, and in which numbers.

    Parameters
    ----------
    place : str
        PyTorch's name of it: ``"cpu"`` or ``"cuda:0"``.
    precision : {"float64", "float32", "tf32"}
        What most numbers are; long sums are float64 in each.
    asked : set of str
        Twins that were asked for, helpers aside.
    """

    place: str
    precision: str
    asked: set[str] = field(default_factory=set, compare=False, repr=False)

    @property
    def is_card(self) -> bool:
        """Whether it is a card, with memory of its own."""
        return self.place != "cpu"

    @cached_property
    def torch(self) -> Any:
        """The library."""
        return importlib.import_module("torch")

    @property
    def dtype(self) -> Any:
        """What most numbers are, as PyTorch calls it."""
        return self.torch.float64 if self.precision == "float64" else self.torch.float32

    @property
    def has_triton(self) -> bool:
        """Whether loops run as Triton kernels: on a card, or by Triton's interpreter where that was asked for."""
        import os

        return self.is_card or os.environ.get("TRITON_INTERPRET") == "1"

    def put(self, array: Any, dtype: Any = None) -> Any:
        """Return an array as a tensor there, numbers by default in its precision."""
        given = np.ascontiguousarray(array)
        return self.torch.from_numpy(given if given.flags.writeable else given.copy()).to(
            self.place, self.dtype if dtype is None else dtype
        )

    def described(self) -> str:
        """Return its name with that of the card, for whoever reads where a model came from."""
        return f"{self.place} ({self.torch.cuda.get_device_name(self.place)})" if self.is_card else "torch"


_HERE: ContextVar[Device | None] = ContextVar("_HERE", default=None)


def here() -> Device | None:
    """Return the device that work is done on; None is the CPU, by Numba."""
    return _HERE.get()


def there() -> Device:
    """Return the device that a twin works on; on the CPU none is asked for."""
    device = _HERE.get()
    assert device is not None
    return device


def library_of(array: Any) -> Any:
    """Return the library whose functions take an array: NumPy, or PyTorch where it is a tensor.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.backends.device import library_of
    >>> library_of(np.zeros(2)).__name__
    'numpy'
    """
    return np if isinstance(array, np.ndarray) else importlib.import_module("torch")


class LayerKernels(Protocol):
    """The functions of `backends.numba.layers` and `backends.torch.layers`, where they are documented."""

    affine: Callable[[Tensor, Tensor, Tensor | None], Tensor]
    dot: Callable[[Tensor, Tensor], Tensor]
    two_valued_means: Callable[[Tensor, float], Tensor]
    draw_two_valued: Callable[[Tensor, float, np.random.Generator], Tensor]
    two_valued_log_normaliser: Callable[[Tensor, float], Tensor]
    categorical_means: Callable[[Tensor, Integers], Tensor]
    draw_categories: Callable[[Tensor, Integers, np.random.Generator], Tensor]
    categorical_log_normaliser: Callable[[Tensor, Integers], Tensor]
    normal_means: Callable[[Tensor, tuple[float, ...]], Tensor]
    draw_normal: Callable[[Tensor, tuple[float, ...], np.random.Generator], Tensor]
    normal_log_normaliser: Callable[[Tensor, tuple[float, ...]], Tensor]
    normal_log_measure: Callable[[Tensor, tuple[float, ...]], Tensor]
    empty: Callable[[int, int, Tensor], Tensor]
    momentum_step: Callable[[Tensor, Tensor, Tensor, float, float, float, float], None]
    draw_along: Callable[[object, Tensor, Tensor, Tensor, Tensor | float, np.random.Generator], Tensor]
    grows: Callable[[object, Tensor], bool]
    grow: Callable[[object, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, tuple[Tensor, Tensor]], None]
    towards: Callable[[Tensor, Tensor, float], Tensor]
    subtract_product: Callable[[Tensor, Tensor, Tensor], None]
    join_phases: Callable[[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None, Tensor], Tensor]


def layer_kernels(array: Any) -> LayerKernels:
    """Return the kernels of layers for the library of an array, NumPy or PyTorch.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.backends.device import layer_kernels
    >>> layer_kernels(np.zeros(2)).affine(np.ones((1, 2)), np.ones((2, 1)), np.ones(1))
    array([[3.]])
    """
    kernels: Any = numba_layers
    if not isinstance(array, np.ndarray):
        kernels = importlib.import_module("gibbsian.backends.torch.layers")
    return kernels


def rounding() -> float:
    """Return the relative noise of what kernels compute here, below which no difference can be seen."""
    device = _HERE.get()
    return _ROUNDING["float64" if device is None else device.precision]


def twin(name: str) -> Any:
    """Return the module of `backends.torch` that stands for the one of `backends.numba`; None on the CPU.

    Examples
    --------
    >>> from gibbsian.backends.device import twin
    >>> twin("flip_losses") is None
    True
    """
    device = _HERE.get()
    if device is None:
        return None
    device.asked.update({name}.difference(_HELPERS))
    return importlib.import_module(f"gibbsian.backends.torch.{name}")


def left_to_cpu(reason: str) -> None:
    """Say once that a fit that was asked for on a device runs on the CPU; where that may be, say nothing."""
    device = _HERE.get()
    if device is None or not device.asked.isdisjoint(("cpu", "auto")):
        return
    device.asked.add("cpu")
    name = device.place if device.is_card else "torch"
    notify(DeviceWarning(f"{reason}; this fit runs on the CPU", "set `device='cpu'`", argument="device", value=name))


def resolved(name: Any, precision: str = "auto") -> Device | None:
    """Return the device of a name; refuse in one sentence what is not there."""
    if isinstance(name, str) and name == "cpu":
        return None
    kind, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")
    known = kind in ("cuda", "torch", "auto") and (not number or (kind == "cuda" and number.isdigit()))
    if not known:
        raise ArgumentError("is not a device", _NAMES, argument="device", value=name)
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        if kind == "auto":
            return None
        raise ArgumentError(
            "needs PyTorch, which is not installed",
            "install it with pip install 'gibbsian[gpu]', or set `device='cpu'`",
            argument="device",
            value=name,
        ) from None
    if kind == "torch":
        return Device("cpu", "float64" if precision == "auto" else precision)
    n_cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "auto" and not n_cards:
        return None
    if not n_cards:
        lacks = "a PyTorch built for CUDA" if torch.version.cuda is None else "a driver and a card of NVIDIA"
        raise ArgumentError(f"needs {lacks}", "set `device='cpu'`", argument="device", value=name)
    if int(number or 0) >= n_cards:
        cards = f"{n_cards} card{'s' * (n_cards > 1)}, counted from 0"
        raise ArgumentError(
            f"is not there: this machine has {cards}",
            "set `device='cpu'`, or name another",
            argument="device",
            value=name,
        )
    return Device(f"cuda:{int(number or 0)}", "float32" if precision == "auto" else precision)


@contextmanager
def on_device(name: str, precision: str = "auto") -> Iterator[Device | None]:
    """Run kernels there; a card whose memory is full says so in one sentence."""
    device = resolved(name, precision)
    if device is None:  # also within a block on another device
        token = _HERE.set(None)
        try:
            yield None
        finally:
            _HERE.reset(token)
        return
    device.asked.update({name}.intersection(("auto",)))
    token, matmul = _HERE.set(device), device.torch.backends.cuda.matmul
    before, matmul.allow_tf32 = matmul.allow_tf32, device.precision == "tf32"
    try:
        yield device
    except device.torch.OutOfMemoryError as error:
        reason = str(error).partition(". ")[0]
        raise TooExpensiveError(f"the memory of {device.place} is full ({reason})", "set `device='cpu'`") from None
    finally:
        matmul.allow_tf32 = before
        _HERE.reset(token)


def require_card_memory(n_bytes: float, what: str, instead: str) -> None:
    """Raise `TooExpensiveError` when `n_bytes` do not fit the memory of the device, before they are taken.

    The parameters are those of `resources.require_memory`, which is asked where the device is no card.
    """
    device = _HERE.get()
    if device is None or not device.is_card:
        require_memory(n_bytes, what, instead)
        return
    free, _ = device.torch.cuda.mem_get_info(device.place)
    taken = device.torch.cuda.memory_stats(device.place)  # once: it takes half a millisecond
    kept = taken.get("reserved_bytes.all.current", 0) - taken.get("allocated_bytes.all.current", 0)
    usable = USABLE_CARD_SHARE * (free + kept)
    if n_bytes > usable:
        raise TooExpensiveError(
            f"{what} needs {format_bytes(n_bytes)} on {device.place}, where {format_bytes(usable)} may be used", instead
        )
