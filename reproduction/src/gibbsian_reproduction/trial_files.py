"""Finished trials on disk, one line each, so that a run that was cut off goes on where it stopped."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import gibbsian
from gibbsian.storage import write_atomically
from gibbsian_reproduction.experiment import EXPERIMENTS
from gibbsian_reproduction.workers import Found

FOLDER = ".trials"
FORMAT = 2
# What a trial's numbers cannot depend on: how they are asked for, drawn, shown and judged.
_OTHER_PACKAGES = ("cli", "plots")
_OTHER_MODULES = ("drawing", "experiment", "tables", "verdicts")


class TrialFile:
    """The trials of one experiment and seed that are done.

    The first line says what made them; trials of another version of the program are not mixed in but made anew.
    A line that was cut off in the middle counts as not written.

    Parameters
    ----------
    out : Path
        The directory of the results.
    name : str
        The experiment.
    seed : int
        The seed.
    """

    def __init__(self, out: Path, name: str, seed: int):
        self.path = out / FOLDER / f"{name}-{seed}.jsonl"
        self.header = fingerprint(name, seed)
        self.done = self._read()

    def append(self, index: int, found: Found) -> None:
        """Write down a trial at once."""
        with self.path.open("ab") as file:
            file.write(_as_line(index, found))
        self.done[index] = found

    def _read(self) -> dict[int, Found]:
        """Read what is there, and leave behind a file that ends with a whole line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = self.path.read_bytes() if self.path.exists() else b""
        header = _json_line(self.header)
        if not content.startswith(header):
            write_atomically(self.path, header)
            return {}
        done, whole = {}, len(header)
        for line in content[len(header) :].splitlines(keepends=True):
            try:
                index, found = _from_line(line)
            except ValueError:
                break
            done[index] = found
            whole += len(line)
        if whole < len(content):
            write_atomically(self.path, content[:whole])
        return done


def fingerprint(name: str, seed: int) -> dict[str, Any]:
    """Return what the numbers of a trial follow from: the experiment, the seed, the sources and the libraries."""
    return {
        "format": FORMAT,
        "experiment": name,
        "seed": seed,
        "gibbsian": gibbsian.__version__,
        "sources": _hash_of_sources(EXPERIMENTS.factory(name).__module__.rpartition(".")[2]),
        **{library: importlib.metadata.version(library) for library in ("numpy", "scipy", "numba", "scikit-learn")},
    }


@cache
def _hash_of_sources(module: str) -> str:
    """Hash the sources of the library, and of a module of this package with those of it that it imports."""
    root = Path(gibbsian.__file__).parent
    library = [path for path in root.rglob("*.py") if not path.relative_to(root).parts[0].startswith(_OTHER_PACKAGES)]
    digest = hashlib.sha256()
    for path in sorted(library) + _with_imports(module):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _with_imports(module: str) -> list[Path]:
    """Return the files of a module of this package and of those that it needs, in alphabetical order."""
    package, root = __name__.rpartition(".")[0], Path(__file__).parent
    found, wanted = set(), {module}
    while wanted:
        path = root.joinpath(*wanted.pop().split(".")).with_suffix(".py")
        if path in found or not path.exists():  # a name inside a module, or a folder
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{package}."):
                names = [f"{node.module}.{name.name}".removeprefix(f"{package}.") for name in node.names]
                wanted |= {part for name in names for part in (name, name.rpartition(".")[0])} - {"", *_OTHER_MODULES}
    return sorted(found)


def _as_line(index: int, found: Found) -> bytes:
    values = {key: value.tolist() for key, value in found.values.items()}
    return _json_line({"trial": index, "seconds": found.seconds, "warnings": list(found.warnings), "values": values})


def _from_line(line: bytes) -> tuple[int, Found]:
    """Read a trial, to the same bits; ValueError where the line is not a whole one."""
    if not line.endswith(b"\n"):
        raise ValueError("cut off")
    read = json.loads(line)
    values = {key: np.array(value, dtype=np.float64) for key, value in read["values"].items()}
    return read["trial"], Found(values, read["seconds"], tuple(read["warnings"]))


def _json_line(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode() + b"\n"
