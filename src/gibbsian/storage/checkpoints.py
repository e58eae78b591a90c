"""Checkpoints: the progress of a fit in a file, picked up again to the same bits."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError, FileFormatError
from gibbsian.expectations.base import Rebuilt
from gibbsian.learners import LearnerState, Trace
from gibbsian.storage.container import read_tensors, write_tensors


@dataclass
class Checkpoint:
    """Keeps a fit's progress in a file, and picks it up again.

    Parameters
    ----------
    path : path-like
        The file.
    every : int
        Steps between two writes.
    resume : bool
        Continue from the file if it exists. Otherwise a fit starts afresh and overwrites it.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "fit.checkpoint"
    >>> data = gb.datasets.load_house_votes().complete_rows()
    >>> settings = {"learner": "mple", "l2": 0.01}
    >>> _ = gb.BoltzmannMachine(**settings, checkpoint=gb.storage.Checkpoint(path, every=10)).fit(data)
    >>> again = gb.BoltzmannMachine(**settings, checkpoint=gb.storage.Checkpoint(path, resume=True)).fit(data)
    >>> again.result_.provenance["resumed_at_step"] % 10
    0
    """

    path: str | os.PathLike[str]
    every: int = 50
    resume: bool = False
    fingerprint: str = ""

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ArgumentError(f"every={self.every} must be at least 1")

    def load(self, state: LearnerState, trace: type[Any] = Trace) -> tuple[LearnerState, Any] | None:
        """Return the saved state and trace, or None where there is nothing to resume."""
        if not self.resume or not Path(self.path).exists():
            return None
        header, tensors = read_tensors(self.path, ("checkpoint",))
        if header["fingerprint"] != self.fingerprint:
            raise FileFormatError(
                f"{self.path} is the checkpoint of another fit (other data, model or learner): "
                "resume with what it was started with, or remove it"
            )
        steps = trace.from_array(tensors.pop("trace"))
        return LearnerState(state.problem, unpack(state.progress, tensors)), steps

    def save(self, state: LearnerState, trace: Any) -> None:
        """Write the progress when `every` steps have passed."""
        if len(trace) % self.every == 0:
            tensors = {"trace": trace.to_array(), **pack(state.progress)}
            write_tensors(self.path, "checkpoint", {"fingerprint": self.fingerprint}, tensors)


def pack(progress: Any, prefix: str = "progress") -> dict[str, np.ndarray]:
    """Lay out a nested structure of arrays and numbers (dataclasses, tuples) as named arrays.

    Examples
    --------
    >>> from gibbsian.storage import pack, unpack
    >>> arrays = pack((1.5, (2, None)))
    >>> unpack((0.0, (0, None)), arrays)
    (1.5, (2, None))
    """
    if progress is None or isinstance(progress, Rebuilt):
        return {}
    parts = _parts(progress)
    if parts is None:
        return {prefix: np.asarray(progress)}
    packed: dict[str, np.ndarray] = {}
    for name, part in parts.items():
        packed |= pack(part, f"{prefix}.{name}")
    return packed


def unpack(template: Any, arrays: dict[str, np.ndarray], prefix: str = "progress") -> Any:
    """Rebuild from `pack` a structure like `template`.

    Examples
    --------
    >>> from gibbsian.storage import pack, unpack
    >>> unpack((0, 0.0), pack((7, 2.5)))
    (7, 2.5)
    """
    if template is None or isinstance(template, Rebuilt):
        return template
    parts = _parts(template)
    if parts is None:
        return _like(template, arrays[prefix])
    rebuilt = {name: unpack(part, arrays, f"{prefix}.{name}") for name, part in parts.items()}
    if dataclasses.is_dataclass(template):
        return dataclasses.replace(template, **rebuilt)  # type: ignore[type-var]
    if hasattr(template, "_fields"):
        return type(template)(**rebuilt)
    return tuple(rebuilt.values())


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the named parts of a dataclass or tuple; None for a leaf."""
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return dict(zip(getattr(value, "_fields", map(str, range(len(value)))), value, strict=True))
    return None


def _like(template: Any, array: np.ndarray) -> Any:
    if not isinstance(template, np.ndarray):
        return type(template)(array.item())
    # a file gives a single number back as an array of one
    return array.reshape(()) if template.ndim == 0 else array
