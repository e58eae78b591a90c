"""Damaged model files: every registered estimator's file, broken at random; `python -m tools damaged_files --cases N`.

A file ends in one sentence of an error of the library, or in a model with finite answers. Nothing else is right.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

import gibbsian as gb
from estimator_samples import small, table
from gibbsian.errors import FileFormatError, GibbsianError
from gibbsian.estimators import ESTIMATORS
from gibbsian.models.base import FAMILIES
from gibbsian.storage import Checkpoint
from gibbsian.storage.container import seal

# What a value of a header is replaced by; the word stands for 5,000 lists within each other.
DEEP = "@deep"
VALUES = [
    None, True, "", "x", "binary", -1, 0, 1, 2, 7, 10**12, 10**400, 0.5, -2.5, 1e308, 1e-320, math.nan, math.inf, [],
    [0], {}, {"a": 1}, [[1]], "\u202e\x1b[31m", DEEP,
]  # fmt: skip
SECONDS = 20  # of a file
NUMBERS = [math.nan, math.inf, -math.inf, -1, 0, 1, 3, 1e308, -1e308, 2**62, -(2**62), 1e-320]
KINDS = [np.float32, np.float16, np.int64, np.int8, np.uint8, np.bool_, np.float64]


NAMES = {"estimator": list(ESTIMATORS), "kind": [*FAMILIES, "spin", "categorical"]}


class Original(NamedTuple):
    """A whole file: its bytes, its parts, a row and the row's score."""

    content: bytes
    header: dict
    tensors: dict
    row: np.ndarray
    score: float


class Outcome(NamedTuple):
    """What a damaged file ended in: refused, same, other (another finite answer), or what is wrong."""

    word: str
    damage: str
    sentence: str = ""


def originals(folder):
    """Fit and save every registered estimator, and kinds of model that these do not show."""
    rows = table("pairwise")
    fitted = {name: (small(name), table(name)) for name in ESTIMATORS} | {
        "mixture of machines": (small("machine-mixture", machine=small("pairwise")), rows),
        "gaussian units": (small("rbm", visible="gaussian"), table("gaussian")),
        "categorical units": (small("rbm", visible="categorical"), table("machine-mixture")),
        "densities": (small("mrf", potentials=["product", "bias"], support=(-1, 2)), rows),
        "values": (small("higher-order", coding=gb.data.Values([0, 1, 2])), table("machine-mixture")),
        "cut": (small("pairwise", coding=gb.data.Threshold(0.5)), rows),
    }
    return {name: _original(Path(folder) / "whole.gibbs", *case) for name, case in fitted.items()}


def _original(path, estimator, rows):
    estimator.fit(rows).save(path)
    return Original(*_parts(path), rows[:2], _score(path, rows[:2]))


def _parts(path):
    with safe_open(str(path), "numpy") as file:
        header = json.loads(file.metadata()["gibbsian"])
        return path.read_bytes(), header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _score(path, row):
    return float(np.sum(gb.load(path).score_samples(row)))


def written(header, tensors, given=None):
    """Return the bytes of a file with these parts, sealed as if they were whole unless a seal is given."""
    text = json.dumps(header).replace(f'"{DEEP}"', "[" * 5000 + "]" * 5000)
    arrays = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    return save(arrays, metadata={"gibbsian": text, "sha256": given or seal(text, arrays)})


def damaged(original, rng):
    """Return the bytes of a file that was broken at random, and how."""
    chosen = rng.choice(["bytes", "header", "header", "tensor", "tensor"])
    if chosen == "bytes":
        return _broken_bytes(original.content, rng)
    header, tensors = copy.deepcopy(original.header), dict(original.tensors)
    how = _broken_header(header, rng) if chosen == "header" else _broken_tensor(tensors, rng)
    # what learners keep of their progress is their own: the seal alone tells whether all of it is there
    given = seal(json.dumps(original.header), original.tensors) if "fingerprint" in original.header else None
    return written(header, tensors, given), how


def _pick(rng, things):
    return things[int(rng.integers(len(things)))]


def _broken_bytes(content, rng):
    size = int.from_bytes(content[:8], "little")
    place = int(rng.integers(len(content)))
    chosen = rng.choice(["cut", "flip header", "flip", "longer"])
    if chosen == "cut":
        return content[:place], f"cut at {place}"
    if chosen == "longer":
        return content + bytes(place), f"{place} bytes longer"
    if chosen == "flip header":
        place %= size + 8
    changed = content[place] ^ (1 << int(rng.integers(8)))
    return content[:place] + bytes([changed]) + content[place + 1 :], f"bit flipped at {place}"


def _places(value, path=()):
    """List where every value inside a header stands."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, one in inner for place in ((*path, key), *_places(one, (*path, key)))]


def _broken_header(header, rng):
    top = _pick(rng, list(header))  # fields of the top are few: settings and names do not crowd them out
    place = _pick(rng, [(top,), *_places(header[top], (top,))])
    owner = header
    for key in place[:-1]:
        owner = owner[key]
    last, word = place[-1], ".".join(map(str, place))
    chosen = rng.choice(["remove", "set", "set", "set", "add", "swap", "double"])
    old = owner[last]
    if chosen == "set" and last in NAMES:
        owner[last] = _pick(rng, NAMES[last])
        return f"set {word} to {owner[last]}"
    if chosen == "remove":
        del owner[last]
    elif chosen == "add" and isinstance(owner, dict):
        owner["unknown"] = _pick(rng, VALUES)
    elif chosen == "swap" and isinstance(owner, dict):
        other = _pick(rng, list(owner))
        owner[last], owner[other] = owner[other], old
        word += f" with {other}"
    elif chosen == "double" and isinstance(old, str | list):
        owner[last] = old * 2
    else:
        chosen, owner[last] = "set", _pick(rng, VALUES)
        word += f" to {str(owner[last])[:40]!r}"
    return f"{chosen} {word}"


@np.errstate(all="ignore")
def _broken_tensor(tensors, rng):
    name = _pick(rng, sorted(tensors))
    array = tensors[name]
    chosen = str(
        rng.choice(["remove", "shape", "cut", "longer", "swap", "cast", "set", "set", "shuffle", "add", "negate"])
    )
    if chosen == "remove":
        del tensors[name]
    elif chosen == "add":
        tensors[
            _pick(rng, ["unknown", "model.unknown", "history.x", "moments.mean", "part.0.trace", "part.9.theta"])
        ] = array
    elif chosen == "shape":
        tensors[name] = _pick(rng, [array.ravel(), array[None], array[..., None], array.T, np.array(1.5), array[:0]])
    elif chosen == "cut":
        tensors[name] = array[: int(rng.integers(len(array) + 1))]
    elif chosen == "longer":
        tensors[name] = np.concatenate([array, array[:1] if rng.integers(2) else array])
    elif chosen == "swap":
        other = _pick(rng, sorted(tensors))
        tensors[name], tensors[other] = tensors[other], array
        name += f" with {other}"
    elif chosen == "cast":
        with np.errstate(all="ignore"):
            tensors[name] = array.astype(_pick(rng, KINDS))
        name += f" to {tensors[name].dtype}"
    elif chosen == "set" and array.size:
        changed, value = array.copy(), _pick(rng, NUMBERS)
        if array.dtype.kind != "f":
            value = np.nan_to_num(np.clip(value, -(2.0**62), 2.0**62)).astype(array.dtype)
        changed.flat[int(rng.integers(array.size))] = value
        tensors[name] = changed
        name += f" to {value}"
    elif chosen == "shuffle":
        tensors[name] = rng.permutation(array)
    else:
        chosen, tensors[name] = "negate", (0 - array.astype(np.float64)).astype(array.dtype)
    return f"{chosen} {name}"


def outcome(path, original, content, how, ask=_score):
    """Ask a damaged file for the score of rows, and say what came of it."""
    path.write_bytes(content)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), limited(SECONDS):
            warnings.simplefilter("ignore")
            score = ask(path, original.row)
    except GibbsianError as error:
        clear = not isinstance(error, FileFormatError) or (path.name in str(error) and str(error).isprintable())
        return Outcome("refused" if clear and len(str(error)) < 1000 else "unclear", how, str(error))
    except (Exception, Late) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(type(error).__name__, how, f"{error} at {Path(where.filename).name}:{where.lineno}"[:300])
    if not math.isfinite(score):
        return Outcome("not finite", how, str(score))
    return Outcome("same" if score == original.score else "other", how, f"{original.score} became {score}")


# -- checkpoints ------------------------------------------------------------------------------------------------------
NAMED = ("pairwise", "rbm", "dbn", "gaussian-mixture", "machine-mixture", "full-span", "hidden", "gaussian")
FITS = {name: {"max_iter": 3, **({"mdl_scale": 0.1} if name == "full-span" else {})} for name in NAMED}


def checkpoint(name, path):
    """Return the checkpoint of a small fit before its last step, and the score of the whole fit."""
    rows = table(name)
    path.unlink(missing_ok=True)
    small(name, checkpoint=Checkpoint(path, every=2), **FITS[name]).fit(rows)
    return Original(*_parts(path), rows, _resumed(name, path, rows))


def _resumed(name, path, rows):
    again = small(name, checkpoint=Checkpoint(path, every=1000, resume=True), **FITS[name]).fit(rows)
    return float(np.sum(again.score_samples(rows)))


class Late(BaseException):
    """A call took longer than it may."""


@contextmanager
def limited(seconds):
    """End what takes more processor time than it may, or waits for ten times as long: other work slows it otherwise."""

    def late(*_):
        raise Late(f"took more than {seconds} seconds")

    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGPROF, late)
    signal.alarm(10 * seconds)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)


def outcomes(n_cases, seed=0, checkpoints=False):
    """Yield the name of an estimator and what one of its damaged files, or checkpoints, ended in."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "damaged.gibbs"
        whole = {name: checkpoint(name, path) for name in FITS} if checkpoints else originals(folder)
        for case in range(n_cases):
            name = sorted(whole)[case % len(whole)]
            broken = damaged(whole[name], np.random.default_rng([seed, case]))
            yield name, outcome(path, whole[name], *broken, partial(_resumed, name) if checkpoints else _score)


GOOD = ("refused", "same", "other")


def main():
    """Break many files and count what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--checkpoints", action="store_true", help="break checkpoints in place of models")
    parser.add_argument("--show", action="append", default=[], help="also list these outcomes")
    arguments = parser.parse_args()
    counts: Counter = Counter()
    seen: Counter = Counter()
    for name, found in outcomes(arguments.cases, arguments.seed, arguments.checkpoints):
        counts[found.word] += 1
        if found.word not in GOOD or found.word in arguments.show:
            seen[name, *found] += 1
    for case in sorted(seen, key=lambda case: case[1]):
        print(*case, sep=" | ")
    print(dict(counts))
    raise SystemExit(sum(n for word, n in counts.items() if word not in GOOD) > 0)


if __name__ == "__main__":
    main()
