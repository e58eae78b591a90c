"""The container: safetensors with a JSON header, versioned, written whole or not at all, never pickle."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gibbsian.errors import FileFormatError, StorageError

# The version that is written and read.
FORMAT_VERSION = 1
_HEADER = "gibbsian"


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
        raise StorageError(f"could not write {path}", "it is not a regular file; give another name")
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
        raise StorageError(
            f"could not write {path}", f"{error.strerror or error}; nothing was changed there"
        ) from error
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
    path: str | os.PathLike[str],
    kind: str,
    header: dict[str, Any],
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
    path = Path(path)
    with _opened(path) as file:
        header = _checked_header(path, file)
        if header["kind"] not in kinds:
            raise FileFormatError(f"{path} holds a {header['kind']}, not one of {', '.join(kinds)}")
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict


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
def _opened(path: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileFormatError(f"{path} does not exist or is not a file")
    try:
        with safe_open(str(path), framework="numpy") as file:
            yield file
    except FileFormatError:
        raise
    except (SafetensorError, OSError, ValueError) as error:
        raise FileFormatError(f"{path} is truncated or is not a gibbsian file ({error})") from None


def _checked_header(path: Path, file: Any) -> dict[str, Any]:
    metadata = file.metadata() or {}
    if _HEADER not in metadata:
        raise FileFormatError(f"{path} is a safetensors file but was not written by gibbsian")
    try:
        header = json.loads(metadata[_HEADER])
        version, _ = header["format_version"], header["kind"]
    except (ValueError, TypeError, KeyError):
        raise FileFormatError(f"{path} has a damaged header", "save the model again") from None
    if version != FORMAT_VERSION:
        raise FileFormatError(
            f"{path} has format version {version}, but this gibbsian reads version {FORMAT_VERSION}",
            "read it with the gibbsian that wrote it, or upgrade",
        )
    return header


def _plain(value: Any) -> Any:
    """Write NumPy scalars as the plain numbers they are."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be written to a header")
