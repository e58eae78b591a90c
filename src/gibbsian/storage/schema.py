"""What a whole model file holds: every field of the header and every array, checked before anything is built."""

from __future__ import annotations

import json
import math

import numpy as np

from gibbsian.learning.optimizers import Converged, Failed, Running, Stopped
from gibbsian.learning.result import COLUMNS
from gibbsian.models.base import FAMILIES, Array, Parts
from gibbsian.models.file_parts import (
    TEXT,
    Anything,
    ListOf,
    NumericArray,
    Part,
    PartsInFile,
    Plain,
    Record,
    Sizes,
    reals,
    reject,
)
from gibbsian.resources import require_memory
from gibbsian.storage.codings import CODINGS_IN_FILE, Header

# Bytes that graphs and samplers take at least for each variable.
BYTES_A_VARIABLE = 64.0
_ANY_RECORD = Record({}, Anything())
# The outcome of the last step of a run by its kind, empty for none; its noise, which may be NaN, is an array.
OUTCOMES = {"running": Running, "converged": Converged, "stopped": Stopped, "failed": Failed}
_COUNT = Plain((int, float), low=0, optional=True)
_STORY: dict[str, Part] = {
    "converged": Plain((bool,), optional=True),
    "reason": Plain((str,), optional=True),
    "warning": Plain((str,), optional=True),
    "penalised": Plain((bool,), optional=True),
    "held_out": Plain((list, type(None)), optional=True),
    "trained": Record(
        {"said": TEXT, "is_trained": Plain((bool,)), "largest_z": Plain((int, float, type(None)))}, optional=True
    ),
    **dict.fromkeys(("rows", "missing_cells", "steps", "seconds", "l1", "l2", "chunks"), _COUNT),
}


def check_whole(header: Header, tensors: dict[str, Array], owner: str = "") -> None:
    """Raise `ArgumentError`, which names the field, unless header and arrays are those of a model, and no others."""
    sizes: Sizes = {}
    Record(_envelope(header)).check(owner.rstrip("."), header, sizes)
    declared: PartsInFile = FAMILIES.factory(header["kind"]).parts_in_file  # type: ignore[attr-defined]
    arrays = {name: part for name, part in declared.items() if isinstance(part, NumericArray)}
    plain = {name: part for name, part in declared.items() if name not in arrays}
    Record(plain).check(f"{owner}structure", header["structure"], sizes)
    n_variables = sizes.get("all", sizes["n"] + sizes.get("hidden", 0))
    if n_variables != sizes["n"] + sizes.get("hidden", 0):
        reject(f"{owner}names", f"has {sizes['n']} entries, but the model has {n_variables} variables")
    require_memory(BYTES_A_VARIABLE * n_variables, f"a model of {n_variables:,} variables", "use a smaller one")
    if header["parts"] and not any(
        isinstance(part, Plain | ListOf) and part.size == "parts" for part in plain.values()
    ):
        reject(f"{owner}parts", "must be empty for such a model")
    for place, part in enumerate(header["parts"]):
        prefix = f"part.{place}."
        check_whole(part, within(tensors, prefix), owner + prefix)
        if len(part["names"]) != sizes["n"]:
            reject(f"{owner}{prefix}names", f"has {len(part['names'])} entries, not {sizes['n']}")
    inner = tuple(f"part.{place}." for place in range(len(header["parts"])))
    own = {name: array for name, array in tensors.items() if not name.startswith(inner)}
    Record(_tensors(header, own, arrays)).check(owner.rstrip("."), own, sizes)


def _envelope(header: Header) -> dict[str, Part]:
    """Return what the header of a model holds."""
    coding = header.get("coding")
    name = coding.get("name") if isinstance(coding, dict) else None
    kind = "labels" if isinstance(coding, dict) and "labels" in coding else "real" if name == "real" else "two"
    return {
        "format_version": Plain((int,), optional=True),
        "kind": Plain((str,), words=(*FAMILIES,)),
        "names": ListOf(TEXT, "n"),
        "parts": ListOf(_ANY_RECORD, "parts"),
        "estimator": TEXT,
        "coding": Plain((type(None),)) if coding is None else CODINGS_IN_FILE[kind],
        "structure": _ANY_RECORD,
        "settings": Record({}, Plain((str, bool, int, float), -math.inf, math.inf)),
        "provenance": Record(_STORY, Anything()),
        "details": ListOf(TEXT, "details"),
        "history": ListOf(TEXT),
    }


def _tensors(header: Header, own: dict[str, Array], arrays: dict[str, NumericArray]) -> dict[str, Part]:
    """Return which arrays stand in a file with this header; `own` says whether it has moments."""
    shown = {"moments.mean": NumericArray(("parameters",), bounded=False), "moments.count": reals("parameters", low=0)}
    return {
        **{f"model.{name}": part for name, part in arrays.items()},
        **trace_and_history(header),
        **(shown if shown.keys() & own.keys() else {}),
        **{name: NumericArray(None, low=0) for name in own if name.startswith("carry.")},
    }


def check_checkpoint(header: Header, tensors: dict[str, Array]) -> None:
    """Raise `ArgumentError` unless header and story are those of a checkpoint; its progress is the learner's own."""
    texts = ListOf(TEXT)
    outcome = Record({"kind": Plain((str,), words=("", *OUTCOMES)), "reason": TEXT, "hint": TEXT})
    parts: dict[str, Part] = {"fingerprint": TEXT, "details": texts, "history": texts, "outcome": outcome}
    Record(parts, Anything()).check("", header, {})
    arrays: dict[str, Part] = {**trace_and_history(header), "noise": NumericArray((1,), bounded=False)}
    Record(arrays, Anything()).check("", tensors, {})


def trace_and_history(header: Header) -> dict[str, Part]:
    """Return the arrays of the story of a fit, in which numbers may be missing or infinite."""
    columns = len(COLUMNS) + len(header["details"])
    names = [f"history.{name}" for name in header["history"]]
    histories = {name: NumericArray((name,), ("float64", "int64"), bounded=False) for name in names}
    return {"trace": NumericArray(("steps", columns), bounded=False), **histories}


def within(tensors: dict[str, Array], prefix: str) -> dict[str, Array]:
    """Return the arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}


def check_same(parts: Parts, structure: Header, arrays: dict[str, Array]) -> None:
    """Raise `ArgumentError` unless a family writes what it was built from: nothing was mended or left out."""
    written = json.loads(json.dumps(dict(parts.plain), default=lambda value: value.item()))
    changed = [f"structure.{name}" for name in structure if written[name] != structure[name]]
    changed += [f"model.{name}" for name, array in arrays.items() if not np.array_equal(parts.arrays[name], array)]
    if changed:
        reject(changed[0], "does not agree with the rest of the model")
