"""Model files and checkpoints: safetensors with a JSON header, versioned, written whole or not at all, never pickle."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gibbsian.diagnostics import DataMoments
from gibbsian.domain import DOMAINS, Coding
from gibbsian.errors import ArgumentError, FileFormatError, StorageError
from gibbsian.graphs import Graph
from gibbsian.learners import LearnerState, Trace
from gibbsian.models import PairwiseModel

FORMAT_VERSION = 1
_HEADER = "gibbsian"


# -- the container --------------------------------------------------------------------------------------------------
def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it holds either all of `content` or what it held before.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gibbsian.storage import write_atomically
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_atomically(target, b"whole")
    >>> target.read_bytes()
    b'whole'
    """
    path = Path(path).resolve()  # through a link, to the file it stands for
    if path.exists() and not path.is_file():
        raise StorageError(f"could not write {path}: it is not a regular file; give another name")
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = file.name
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise StorageError(f"could not write {path}: {error.strerror or error}; nothing was changed there") from error
    finally:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):  # gone is what we want: it was moved into place
                os.unlink(temporary)


def _umask() -> int:
    """Read the process's file mode mask (it can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_tensors(
    path: str | os.PathLike[str], kind: str, header: dict[str, Any], tensors: dict[str, np.ndarray]
) -> None:
    """Write arrays with a JSON header.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from gibbsian.storage import read_tensors, write_tensors
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "file"
    >>> write_tensors(path, "note", {"author": "me"}, {"x": np.arange(3)})
    >>> header, tensors = read_tensors(path, ("note",))
    >>> header["author"], tensors["x"]
    ('me', array([0, 1, 2]))
    """
    from safetensors.numpy import save

    text = json.dumps({"format_version": FORMAT_VERSION, "kind": kind, **header}, default=_plain)
    contiguous = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    write_atomically(path, save(contiguous, metadata={_HEADER: text}))


def read_tensors(path: str | os.PathLike[str], kinds: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `write_tensors` wrote, refusing anything else with a sentence that says why.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from gibbsian.storage import read_tensors, write_tensors
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "file"
    >>> write_tensors(path, "note", {"author": "me"}, {"x": np.arange(3)})
    >>> header, tensors = read_tensors(path, ("note",))
    >>> header["author"], tensors["x"]
    ('me', array([0, 1, 2]))
    """
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path} does not exist or is not a file")
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, ValueError) as error:
        raise FileFormatError(f"{path} is truncated or is not a gibbsian file ({error})") from None
    if _HEADER not in metadata:
        raise FileFormatError(f"{path} is a safetensors file but was not written by gibbsian")
    return _checked_header(path, metadata[_HEADER], kinds), tensors


def _checked_header(path: Path, text: str, kinds: tuple[str, ...]) -> dict[str, Any]:
    try:
        header = json.loads(text)
        version, kind = header["format_version"], header["kind"]
    except (ValueError, TypeError, KeyError):
        raise FileFormatError(f"{path} has a damaged header: save the model again") from None
    if version > FORMAT_VERSION:
        raise FileFormatError(
            f"{path} has format version {version}, newer than the {FORMAT_VERSION} that this gibbsian reads: "
            "upgrade gibbsian"
        )
    if kind not in kinds:
        raise FileFormatError(f"{path} holds a {kind}, not a {' or '.join(kinds)}")
    return header


def _plain(value: Any) -> Any:
    """Write NumPy scalars as the plain numbers they are."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be written to a header")


# -- models ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class StoredModel:
    """All that a model file holds.

    Parameters
    ----------
    model : PairwiseModel
        The distribution.
    coding : Coding
        How its two values are written.
    names : tuple of str
        The variables' names.
    settings : dict
        The estimator's plain settings.
    provenance : dict
        Where the model came from.
    trace : Trace
        The steps of the fit.
    moments : DataMoments, optional
        The moments of the data.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
    >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).save(path)
    >>> gb.storage.read_model(path).names
    ('x0', 'x1')
    """

    model: PairwiseModel
    coding: Coding
    names: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    moments: DataMoments | None = None


def write_model(path: str | os.PathLike[str], stored: StoredModel) -> None:
    """Write a model file.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> from gibbsian.storage import StoredModel, read_model, write_model
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> write_model(path, StoredModel(model, gb.domain.as_coding("spin"), ("a", "b")))
    >>> read_model(path).coding.name
    'spin'
    """
    model, coding = stored.model, stored.coding
    header = {
        "coding": {"name": coding.name, "low": coding.low, "high": coding.high, "domain": coding.domain.name},
        "names": list(stored.names),
        "temperature": model.temperature,
        "bias": model.bias,
        "settings": stored.settings,
        "provenance": stored.provenance,
    }
    tensors = {"theta": model.theta, "edges": model.graph.edges, "trace": stored.trace.to_array()}
    if stored.moments is not None:
        tensors |= {"moments.mean": stored.moments.mean, "moments.count": stored.moments.count}
    write_tensors(path, "pairwise", header, tensors)


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.storage.read_model("absent.gibbs")
    Traceback (most recent call last):
        ...
    gibbsian.errors.FileFormatError: absent.gibbs does not exist or is not a file
    """
    header, tensors = read_tensors(path, ("pairwise",))
    try:
        written = header["coding"]
        coding = Coding(written["name"], written["low"], written["high"], DOMAINS[written["domain"]])
        graph = Graph(len(header["names"]), tensors["edges"])
        model = PairwiseModel(graph, tensors["theta"], coding.domain, header["temperature"], header["bias"])
        return StoredModel(
            model,
            coding,
            tuple(header["names"]),
            header["settings"],
            header["provenance"],
            Trace.from_array(tensors["trace"]),
            DataMoments(tensors["moments.mean"], tensors["moments.count"]) if "moments.mean" in tensors else None,
        )
    except (KeyError, TypeError, ArgumentError) as error:
        raise FileFormatError(f"{path} lacks a part of the model ({error}): save it again") from None


# -- checkpoints ------------------------------------------------------------------------------------------------------
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

    def load(self, state: LearnerState) -> tuple[LearnerState, Trace] | None:
        """Return the saved state and trace, or None where there is nothing to resume."""
        if not self.resume or not Path(self.path).exists():
            return None
        header, tensors = read_tensors(self.path, ("checkpoint",))
        if header["fingerprint"] != self.fingerprint:
            raise FileFormatError(
                f"{self.path} is the checkpoint of another fit (other data, model or learner): "
                "resume with what it was started with, or remove it"
            )
        trace = Trace.from_array(tensors.pop("trace"))
        return LearnerState(state.problem, unpack(state.progress, tensors)), trace

    def save(self, state: LearnerState, trace: Trace) -> None:
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
    if progress is None:
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
    if template is None:
        return None
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
    return array if isinstance(template, np.ndarray) else type(template)(array.item())
