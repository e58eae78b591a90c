"""Checkpoints: the progress of a fit in a file, picked up again to the same bits."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError, FileFormatError, StorageError
from gibbsian.learning.base import Learner
from gibbsian.learning.callbacks import Callback
from gibbsian.learning.optimizers import Outcome, StepInfo
from gibbsian.learning.result import Trace
from gibbsian.learning.run import Run
from gibbsian.models.base import Family, Model
from gibbsian.models.file_parts import LARGEST, reject
from gibbsian.storage.codings import Header
from gibbsian.storage.container import read_tensors, reading, target_of, write_tensors
from gibbsian.storage.schema import OUTCOMES, check_checkpoint


@dataclass
class Checkpoint(Callback):
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
    >>> settings = {"learner": "mle", "l2": 0.01}
    >>> _ = gb.BoltzmannMachine(**settings, checkpoint=gb.storage.Checkpoint(path, every=10)).fit(data)
    >>> again = gb.BoltzmannMachine(**settings, checkpoint=gb.storage.Checkpoint(path, resume=True)).fit(data)
    >>> again.result_.provenance["resumed_at_step"] % 10
    0
    """

    path: str | os.PathLike[str]
    every: int = 50
    resume: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise ArgumentError("must be the path of a file", argument="checkpoint", value=self.path)
        if self.every < 1:
            raise ArgumentError("must be at least 1", argument="every", value=self.every)

    def on_start(self, run: Run) -> None:
        """Refuse a folder that is not there; go on from the file where that is asked for and it exists."""
        folder = target_of(self.path).parent
        if not folder.is_dir():
            raise StorageError(f"lies in {folder}, which is no folder", "create it first", argument="checkpoint")
        self._fingerprint = fingerprint(run.learner, run.model, run.data)
        if not self.resume or not Path(self.path).exists():
            return
        header, tensors = read_tensors(self.path, ("checkpoint",))
        with reading(self.path):
            check_checkpoint(header, tensors)
        if header["fingerprint"] != self._fingerprint:
            raise FileFormatError(
                f"{self.path} is the checkpoint of another fit (other data, model or learner)",
                "resume with what it was started with, or remove it",
            )
        trace = Trace.from_array(tensors.pop("trace"), header["details"])
        history = {name: tensors.pop(f"history.{name}").tolist() for name in header["history"]}
        with reading(self.path):
            state = unpack(run.state, tensors)
            last = _last_step(trace, header["outcome"], float(tensors["noise"][0]))
            run.resume(state, trace, history, last)
            run.fitted()  # which refuses parameters that are not its own

    def on_step(self, run: Run) -> None:
        """Write the progress when `every` steps have passed."""
        if run.n_steps % self.every == 0:
            self._save(run)

    def on_end(self, run: Run) -> None:
        """Write what a run that was stopped has."""
        if run.interrupted:
            self._save(run)

    def _save(self, run: Run) -> None:
        last = run.info
        header = {
            "fingerprint": self._fingerprint,
            "details": list(run.trace.details),
            "history": list(run.history),
            "outcome": written_outcome(None if last is None else last.outcome),
        }
        history = {f"history.{name}": np.asarray(values, np.float64) for name, values in run.history.items()}
        story = {"trace": run.trace.to_array(), "noise": np.array([0.0 if last is None else last.noise]), **history}
        write_tensors(self.path, "checkpoint", header, {**story, **pack(run.state)})


def written_outcome(outcome: Outcome | None) -> dict[str, str]:
    """Return an outcome as a header keeps it."""
    kind = next((name for name, kind in OUTCOMES.items() if isinstance(outcome, kind)), "")
    return {"kind": kind, "reason": "", "hint": "", **(vars(outcome) if outcome else {})}


def read_outcome(header: Header) -> Outcome | None:
    """Return an outcome from a header."""
    if not header["kind"]:
        return None
    kind = OUTCOMES[header["kind"]]
    return kind(**{part.name: header[part.name] for part in dataclasses.fields(kind)})


def _last_step(trace: Trace, outcome: Header, noise: float) -> StepInfo | None:
    """Return the last step of the run that wrote a checkpoint; None before the first."""
    if not trace.rows:
        return None
    last = dict(zip(trace.columns, trace.rows[-1], strict=True))
    metrics = {name: last[name] for name in trace.details}
    figures = last["value"], last["gradient_norm"], last["step_size"], int(last["evaluations"])
    return StepInfo(*figures, noise, read_outcome(outcome), metrics)


def as_checkpoint(given: Checkpoint | str | os.PathLike[str]) -> Checkpoint:
    """Return a checkpoint, given as one or as a path."""
    return given if isinstance(given, Checkpoint) else Checkpoint(given)


def fingerprint(learner: Learner, model: Model[Family], data: Rows) -> str:
    """Return a digest of what decides the course of a fit: a checkpoint is resumed by the same fit only."""
    digest = hashlib.sha256(repr(learner).encode())
    for part in (model, data.identity):
        _take_up(digest, part)
    return digest.hexdigest()


def _take_up(digest: hashlib._Hash, part: object) -> None:
    """Add arrays by their bytes, structures part by part, and the rest as it is written."""
    if isinstance(part, np.ndarray):
        digest.update(np.ascontiguousarray(part).tobytes())
    elif dataclasses.is_dataclass(part):
        for field in dataclasses.fields(part):
            _take_up(digest, getattr(part, field.name))
    elif isinstance(part, tuple | list):
        for one in part:
            _take_up(digest, one)
    else:
        digest.update(repr(part).encode())


def pack(state: object, prefix: str = "state") -> dict[str, np.ndarray]:
    """Lay out a nested structure of arrays and numbers (dataclasses, tuples) as named arrays.

    Examples
    --------
    >>> from gibbsian.storage import pack, unpack
    >>> arrays = pack((1.5, (2, None)))
    >>> unpack((0.0, (0, None)), arrays)
    (1.5, (2, None))
    """
    if state is None:
        return {}
    if isinstance(state, Model):  # of its family the arrays; what else it is made of is that of the template
        arrays = {"theta": state.theta, **state.family.to_parts().arrays}
        return {f"{prefix}.{name}": np.asarray(array) for name, array in arrays.items()}
    if isinstance(state, str):
        return {prefix: np.frombuffer(state.encode(), np.uint8)}
    parts = _parts(state)
    if parts is None:
        return {prefix: np.asarray(state)}
    packed: dict[str, np.ndarray] = {}
    for name, part in parts.items():
        packed |= pack(part, f"{prefix}.{name}")
    return packed


def unpack(template: object, arrays: dict[str, np.ndarray], prefix: str = "state", fixed: bool = True) -> Any:
    """Rebuild from `pack` a structure like `template`, of its shapes where they are `fixed`.

    Examples
    --------
    >>> from gibbsian.storage import pack, unpack
    >>> unpack((0, 0.0), pack((7, 2.5)))
    (7, 2.5)
    """
    if template is None:
        return template
    if isinstance(template, Model):
        return _model_like(template, arrays, prefix)
    parts = _parts(template)
    if parts is None:
        if prefix not in arrays:
            reject(prefix, "is missing")
        return _like(template, arrays[prefix], prefix, fixed)
    fields = dataclasses.fields(template) if dataclasses.is_dataclass(template) else ()
    loose = {field.name for field in fields if field.metadata.get("varies")}
    rebuilt = {
        name: unpack(part, arrays, f"{prefix}.{name}", fixed and name not in loose) for name, part in parts.items()
    }
    if dataclasses.is_dataclass(template):
        return dataclasses.replace(template, **rebuilt)  # type: ignore[type-var]
    if hasattr(template, "_fields"):
        return type(template)(**rebuilt)
    return tuple(rebuilt.values())


def _model_like(template: Model[Any], arrays: dict[str, np.ndarray], prefix: str) -> Model[Any]:
    """Return a model of a family like that of the template, which may have other numbers, such as units of columns."""
    family, parts = template.family, template.family.to_parts()
    known = {"theta": template.theta, **parts.arrays}
    found = {name: unpack(array, arrays, f"{prefix}.{name}", fixed=False) for name, array in known.items()}
    theta = found.pop("theta")
    if found:
        columns = family.variables.take(range(len(family.variables) - family.n_hidden))
        family = family.from_parts(parts._replace(arrays=found), columns)
    return Model(family, theta)


def _parts(value: object) -> dict[str, object] | None:
    """Return the named parts of a dataclass or tuple; None for a leaf."""
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return dict(zip(getattr(value, "_fields", map(str, range(len(value)))), value, strict=True))
    return None


def _like(template: Any, array: np.ndarray, field: str, fixed: bool) -> Any:
    """Return what was packed: of the kind and shape of the template, and finite where an array of it is."""
    if isinstance(template, str):
        return array.tobytes().decode()
    wanted, given = np.atleast_1d(template), np.atleast_1d(array)
    # what is empty at first may grow
    same = [not fixed or size in (0, own) for size, own in zip(wanted.shape, given.shape, strict=False)]
    if given.dtype != wanted.dtype or given.ndim != wanted.ndim or not all(same):
        reject(field, f"holds {given.dtype} of shape {given.shape}, not {wanted.dtype} of shape {wanted.shape}")
    if not hasattr(template, "__array__"):  # a table on a device is an array too
        return type(template)(array.item())
    bound = np.float64(LARGEST)
    small = [wanted.dtype.kind == "f" and bool((np.abs(numbers) <= bound).all()) for numbers in (wanted, given)]
    if small == [True, False]:
        reject(field, f"holds numbers that are not between {-LARGEST:g} and {LARGEST:g}")
    # a file gives a single number back as an array of one
    return array.reshape(()) if np.ndim(template) == 0 else array
