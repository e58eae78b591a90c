"""The container: safetensors with a JSON header, versioned, written whole or not at all, never pickle."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from gibbsian.errors import FileFormatError, GibbsianError, StorageError, TooExpensiveError
from gibbsian.resources import require_memory

if TYPE_CHECKING:
    from safetensors import safe_open

# The version that is written and read.
FORMAT_VERSION = 1
_HEADER = "gibbsian"
_SEAL = "sha256"
# Levels of lists and mappings within each other.
MOST_LEVELS = 32
# How often the arrays of a file stand in memory while a model is built.
COPIES = 4
# What a sentence repeats of an error at most.
MOST_WORDS = 300


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
    with written_atomically(path) as file:
        file.write(content)


@contextlib.contextmanager
def written_atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Give a file to write to that takes its place when the block has ended, and is gone where it has failed."""
    path = target_of(path)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = file.name
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise StorageError(
            f"could not write {path}", f"{error.strerror or error}; nothing was changed there"
        ) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):  # gone is what we want: it was moved into place
                os.unlink(temporary)


def target_of(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path stands for, through links; it must be one that can be written."""
    try:
        target = Path(path).resolve()
        foreign = target.exists() and not target.is_file()
    except (OSError, RuntimeError, ValueError) as error:  # links in a circle, a name that is too long or holds a zero
        why = getattr(error, "strerror", None) or error
        raise StorageError(f"could not write {path}", f"{why}; give another name") from None
    if foreign:
        raise StorageError(f"could not write {path}", "it is not a regular file; give another name")
    return target


def _umask() -> int:
    """Read the process's file mode mask (it can only be read by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_tensors(
    path: str | os.PathLike[str],
    kind: str,
    header: Mapping[str, object],
    tensors: dict[str, np.ndarray],
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
    write_atomically(path, save(contiguous, metadata={_HEADER: text, _SEAL: seal(text, contiguous)}))


def seal(text: str, tensors: dict[str, np.ndarray]) -> str:
    """Return a digest of all that a file holds: it tells a file that was damaged from one that is whole."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(f"{name} {tensors[name].dtype.str} {tensors[name].shape}".encode())
        digest.update(tensors[name].tobytes())
    return digest.hexdigest()


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
    path = Path(path)
    with _opened(path) as file:
        header = _checked_header(path, file)
        if header["kind"] not in kinds:
            raise FileFormatError(f"{path} holds a {header['kind']}, not one of {', '.join(kinds)}")
        require_memory(COPIES * path.stat().st_size, f"to read {path}", "free some, or raise GIBBSIAN_MEMORY_LIMIT")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        metadata = file.metadata()
        if metadata.get(_SEAL, "") not in ("", seal(metadata[_HEADER], tensors)):
            raise FileFormatError(f"{path} is damaged: its parts are not those that were written", "save it again")
        return header, tensors


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return what a file holds, without reading its arrays.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from gibbsian.storage import kind_of, write_tensors
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "file"
    >>> write_tensors(path, "note", {"author": "me"}, {"x": np.arange(3)})
    >>> kind_of(path)
    'note'
    """
    path = Path(path)
    with _opened(path) as file:
        return str(_checked_header(path, file)["kind"])


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[safe_open]:
    from safetensors import SafetensorError, safe_open

    if not os.path.isfile(path):
        raise FileFormatError(f"{path} does not exist or is not a file")
    try:
        with safe_open(str(path), framework="numpy") as file:
            yield file
    except (FileFormatError, TooExpensiveError):
        raise
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError, KeyError) as error:
        raise FileFormatError(f"{path} is truncated or is not a gibbsian file ({error})") from None


@contextlib.contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make one sentence, which names the file, of whatever a file that is not whole leads to."""
    try:
        yield
    except (FileFormatError, TooExpensiveError):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        found = str(error) if isinstance(error, GibbsianError) else f"{type(error).__name__}: {error}"
        words = found if found.isprintable() else ascii(found)
        raise FileFormatError(
            f"{path} lacks a part or holds a wrong one ({words[:MOST_WORDS]})", "save it again"
        ) from None


def _checked_header(path: Path, file: safe_open) -> dict[str, Any]:
    metadata = file.metadata() or {}
    if _HEADER not in metadata:
        raise FileFormatError(f"{path} is a safetensors file but was not written by gibbsian")
    try:
        header = json.loads(metadata[_HEADER])
        version, kind = header["format_version"], header["kind"]
        _check_depth(header)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise FileFormatError(f"{path} has a damaged header", "save the model again") from None
    if type(version) is not int or type(kind) is not str or not kind.isprintable():
        raise FileFormatError(f"{path} has a damaged header (format_version or kind)", "save the model again")
    if version != FORMAT_VERSION:
        raise FileFormatError(
            f"{path} has format version {version}, but this gibbsian reads version {FORMAT_VERSION}",
            "read it with the gibbsian that wrote it, or upgrade",
        )
    return header


def _check_depth(header: object) -> None:
    """Refuse lists within lists without end, which no file of ours holds."""
    level = [header]
    for _ in range(MOST_LEVELS):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [value for values in inner for value in values]
    if level:
        raise ValueError("nested too deeply")


def _plain(value: object) -> object:
    """Write NumPy scalars as the plain numbers they are."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be written to a header")
