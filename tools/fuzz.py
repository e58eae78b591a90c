"""Hostile calls: every estimator with hostile tables and settings, commands on hostile files, damaged files.

A call ends in one sentence of the library, or in a finite answer, within its time and the memory limit.
``python -m tools fuzz --seconds 600 --seed 3`` prints how many calls ended how, and the smallest form of what ended
otherwise.
"""
# ruff: noqa: E501 - lists of hostile things

from __future__ import annotations

import argparse
import math
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cli_runner import run as command
from damaged_files import GOOD, Late, limited, outcomes
from estimator_samples import small, table
from gibbsian.errors import GibbsianError
from gibbsian.estimators import ESTIMATORS
from gibbsian.settings import settings_of

SECONDS_A_CALL = 60
STEER = "\x1b[31mred\u202e"
# Values that a setting of any kind may be given; sensible ones stand beside them in `_values`.
HOSTILE = [
    None, True, -1, 0, 1, 2, 10**30, 10**400, 0.5, -2.5, 1e308, 1e-320, 1e-300, math.nan, math.inf, "", "x", STEER, b"x",
    np.int8(1), np.uint8(200), np.float16(0.5), np.float64(0.1), np.bool_(True), np.array(1), np.array([1, 2]),
    np.array([]), Fraction(1, 3), Decimal("0.5"), 1 + 2j, [], [1], (), (2, 1), {}, {"a": 1}, object, pd.NA, range(3),
    pd.Timestamp("2020-01-01"), lambda x: x,
]  # fmt: skip
SENSIBLE = {
    "number": [0.0, 0.01, 0.5, 1.0, 1e-8, 1e8],
    "whole": [1, 2, 3],
    "flag": [True, False],
    "any": [],
    "choice": [],
}
GRAPHS = [
    "complete",
    "empty",
    "chain",
    "grid:2x2",
    "grid:1000000x1000000",
    "grid:x",
    [(0, 1)],
    [(0, 9)],
    [(0, 0)],
    [0],
    [("a", "b")],
]
# These write where they are asked to, or start processes.
LEFT = ("checkpoint", "n_jobs", "callbacks", "verbose")
QUESTIONS = {
    "score": lambda m, X: m.score(X),
    "score_samples": lambda m, X: m.score_samples(X),
    "impute": lambda m, X: m.impute(X),
    "predict": lambda m, X: m.predict(X),
    "sample": lambda m, X: m.sample(3),
    "log_partition": lambda m, X: m.log_partition(),
    "unusual": lambda m, X: m.unusual(X, 2),
    "expect": lambda m, X: m.expect(),
    "most_probable": lambda m, X: m.most_probable(),
    "transform": lambda m, X: m.transform(X),
}
ARGUMENTS = {
    "expect": ["method", "n_samples"], "sample": ["n_samples", "random_state", "method", "temperature"], "log_partition": ["method", "n_samples"],
    "unusual": ["n"], "most_probable": ["X", "method"], "predict": ["columns"], "impute": [],
}  # fmt: skip


def _frame(rows):
    return pd.DataFrame(rows, columns=[f"c{j}" for j in range(rows.shape[1])])


def _cell(rows, value):
    changed = rows.astype(object)
    changed[1, 1] = value
    return changed


TABLES = {
    "plain": lambda X: X,
    "frame": _frame,
    "float32": lambda X: X.astype(np.float32),
    "int8": lambda X: X.astype(np.int8),
    "bool": lambda X: X > 0,
    "words": lambda X: _frame(np.where(X > 0, "yes", "no")),
    "complex": lambda X: X + 1j,
    "timedelta": lambda X: X.astype("m8[s]"),
    "datetime": lambda X: X.astype("M8[s]"),
    "hole": lambda X: _cell(X, np.nan),
    "infinite": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 3, np.inf, X),
    "huge": lambda X: X * 1e300,
    "tiny": lambda X: X * 1e-310,
    "object": lambda X: _cell(X, object()),
    "text": lambda X: _cell(X, STEER),
    "nested": lambda X: _cell(X, [1, 2]),
    "bytes": lambda X: _cell(X, b"\xff\x00"),
    "big": lambda X: _cell(X, 10**400),
    "all missing": lambda X: np.full(X.shape, np.nan),
    "column missing": lambda X: np.where(np.arange(X.shape[1]) == 0, np.nan, X),
    "constant": lambda X: np.zeros_like(X),
    "one row": lambda X: X[:1],
    "two rows": lambda X: X[:2],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "one column": lambda X: X[:, :1],
    "column": lambda X: X[:, 0],
    "cube": lambda X: X[None],
    "number": lambda X: 3,
    "nothing": lambda X: None,
    "word": lambda X: "nowhere.csv",
    "ragged": lambda X: [[1, 2], [1]],
    "list": lambda X: X.tolist(),
    "mapping": lambda X: {"a": [0, 1]},
    "generator": lambda X: (row for row in X),
    "duplicate names": lambda X: pd.DataFrame(X).set_axis(["a"] * X.shape[1], axis=1),
    "odd names": lambda X: pd.DataFrame(X).set_axis([STEER, "", " ", "=1+1"][: X.shape[1]], axis=1),
    "levels": lambda X: pd.DataFrame(X).set_axis(pd.MultiIndex.from_product([["a"], range(X.shape[1])]), axis=1),
    "categories": lambda X: _frame(X).astype("category"),
    "nullable": lambda X: _frame(X).astype("Float64"),
    "sparse": lambda X: __import__("scipy.sparse").sparse.csr_array(X),
    "masked": lambda X: np.ma.masked_equal(X, 1),
    "view": lambda X: np.asfortranarray(X)[::-1, ::-1],
    "swapped": lambda X: X.astype(">f8"),
    "structured": lambda X: np.zeros(5, dtype=[("a", int)]),
    "wide": lambda X: np.hstack([X] * 4)[:20],
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A fit and a question: all that a failure needs to be repeated."""

    estimator: str
    rows: str = "plain"
    settings: tuple[tuple[str, Any], ...] = ()
    asked: str = "score"
    asked_of: str = "plain"
    arguments: tuple[tuple[str, Any], ...] = ()

    def run(self) -> Any:
        """Fit and ask."""
        rows = table(self.estimator, n_rows=30)
        machine = small(self.estimator, **dict(self.settings)).fit(TABLES[self.rows](rows))
        if not hasattr(machine, self.asked):  # scikit-learn's way to have no such question
            return 0.0
        if self.arguments:
            of = [TABLES[self.asked_of](rows)] if self.asked in ("unusual", "predict", "impute") else []
            return getattr(machine, self.asked)(*of, **dict(self.arguments))
        return QUESTIONS[self.asked](machine, TABLES[self.asked_of](rows))

    def smaller(self) -> list[Call]:
        """Return calls with one part fewer."""
        parts = [replace(self, **{name: "plain"}) for name in ("rows", "asked_of") if getattr(self, name) != "plain"]
        for name in ("settings", "arguments"):
            given = getattr(self, name)
            parts += [replace(self, **{name: given[:k] + given[k + 1 :]}) for k in range(len(given))]
        return parts + ([replace(self, asked="score", arguments=())] if self.asked != "score" else [])


def any_call(pick) -> Call:
    """Choose a call; `pick` takes one of a list, at random or as Hypothesis wants it."""
    name = pick(list(ESTIMATORS))
    known = {key: one for key, one in settings_of(ESTIMATORS.factory(name)).items() if key not in LEFT}
    chosen = {
        key: pick(_values(key, known[key], pick)) for key in (pick(list(known)) for _ in range(pick([0, 1, 1, 2])))
    }
    asked = pick(list(QUESTIONS))
    arguments = {}
    if ARGUMENTS.get(asked) and pick([False, True]):
        arguments[pick(ARGUMENTS[asked])] = pick([*HOSTILE, "exact", "gibbs", "mean-field", "c0", ["c0"], {"x0": 1}])
    rows = pick(["plain"] * 20 + list(TABLES))
    of = pick([rows, rows, "plain", pick(list(TABLES))])
    return Call(name, rows, tuple(chosen.items()), asked, of, tuple(arguments.items()))


def _values(name, setting, pick):
    if name in ("graph", "edges"):
        return GRAPHS + HOSTILE
    sensible = [*SENSIBLE[setting.kind], *setting.words]
    return sensible if sensible and pick([False, True]) else HOSTILE


def ending(call) -> str:
    """Say how a call ended: refused, answered, or what is wrong."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"), limited(SECONDS_A_CALL):
            warnings.simplefilter("ignore")
            answer = call.run()
    except GibbsianError as error:
        return "refused" if len(str(error)) < 1500 and "\n" not in str(error) else f"unclear: {str(error)[:200]!r}"
    except (Exception, Late) as error:
        where = [frame for frame in traceback.extract_tb(error.__traceback__) if "gibbsian" in frame.filename]
        at = f"{Path(where[-1].filename).name}:{where[-1].lineno}" if where else ""
        return f"{type(error).__name__}: {' '.join(str(error).split())[:150]} at {at}"
    return "answered" if _finite(answer) else f"not finite: {str(answer)[:100]}"


def _finite(answer) -> bool:
    if isinstance(answer, float | np.floating):
        return bool(np.isfinite(answer))
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        return bool(np.isfinite(answer).all())
    return not isinstance(answer, tuple) or all(map(_finite, answer))


def smallest(call, how) -> Any:
    """Return a call with as few parts as end the same way."""
    kind = how.rpartition(" at ")[2]
    for less in call.smaller():
        found = ending(less)
        if found not in ("refused", "answered") and found.rpartition(" at ")[2] == kind:
            return smallest(less, how)
    return call


# -- commands ---------------------------------------------------------------------------------------------------------
ROWS = "a,b,c\n" + "".join(f"{i % 2},{i // 2 % 2},{(i // 3) % 2}\n" for i in range(24))
CONTENTS = {
    "plain": ROWS.encode(),
    "empty": b"",
    "blank": b"\n\n\n",
    "header": b"a,b,c\n",
    "no header": ROWS.partition("\n")[2].encode(),
    "zeros": bytes(300),
    "ragged": ROWS.encode() + b"1,2\n",
    "quotes": ROWS.encode() + b'"1,0,1\n',
    "steer": ROWS.replace("a", STEER, 1).encode(),
    "steer cell": ROWS.encode() + f"{STEER},1,0\n".encode(),
    "latin": "\xe4,\xf6,b\n1,0,1\n".encode("latin-1"),
    "utf16": ROWS.encode("utf-16"),
    "bom": ROWS.encode("utf-8-sig"),
    "dos": ROWS.replace("\n", "\r\n").encode(),
    "mac": ROWS.replace("\n", "\r").encode(),
    "holes": ROWS.encode() + b"1,,\n,,1\n",
    "long": ROWS.encode() + b"x" * 200_000 + b",1,0\n",
    "wide": (",".join(f"c{i}" for i in range(300)) + "\n" + (",".join("01" * 150) + "\n") * 6).encode(),
    "numbers": b"a,b\n" + b"".join(f"{i / 7},{i * i}\n".encode() for i in range(20)),
    "formulas": ROWS.replace("a", "=1+1", 1).encode(),
    "infinite": ROWS.encode() + b"inf,1e999,-inf\n",
    "gzip": b"\x1f\x8b\x08\x00damaged",
    "parquet": b"PAR1damagedPAR1",
    "numpy": b"\x93NUMPY\x01\x00\x10\x00{'descr': 'zz'} ",
    "zip": b"PK\x03\x04damaged",
    "twice": ROWS.replace("b", "a", 1).encode(),
}  # fmt: skip
SUFFIXES = [
    ".csv",
    ".csv",
    ".csv",
    ".tsv",
    ".txt",
    ".npy",
    ".npz",
    ".parquet",
    ".feather",
    ".xlsx",
    ".csv.gz",
    ".csv.zst",
    ".xz",
    ".gibbs",
    "",
]
COMMANDS = [
    "fit",
    "score",
    "sample",
    "impute",
    "predict",
    "unusual",
    "query",
    "show",
    "expect",
    "mode",
    "transform",
    "structure",
    "intervals",
    "compare",
    "divergence",
]
TABLE_FIRST = ("fit", "structure", "compare")
OPTIONS = [
    ["--model", "rbm"], ["--model", "potts"], ["--model", "x"], ["--l2", "nan"], ["--l2", "-1"], ["--l2", "0.1"], ["--max-iter", "0"],
    ["--max-iter", "3"], ["--max-iter", str(10**30)], ["--graph", "grid:1000000x1000000"], ["--graph", "chain"], ["--learner", "cd"],
    ["--learner", STEER], ["--temperature", "1e-300"], ["--coding", "spin"], ["--coding", STEER], ["--drop", "a"], ["--drop", STEER],
    ["--weights", "a"], ["--columns", "a"], ["--columns", ""], ["--json"], ["--seed", "-1"], ["--seed", "3"], ["-n", "3"],
    ["-n", str(10**12)], ["--out", "/dev/full"], ["--out", "/nowhere/x.csv"], ["--one-hot", ""], ["--names", "a,a,a"], ["--quiet"],
]  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A command on a hostile file."""

    folder: Path
    name: str
    content: str
    suffix: str
    options: tuple[tuple[str, ...], ...] = ()
    model: str = "whole.gibbs"

    def run(self) -> Any:
        """Run the command; what it prints must be clean, what it refuses one sentence."""
        path = self.folder / f"t{self.suffix}"
        path.write_bytes(CONTENTS[self.content])
        first = [] if self.name in TABLE_FIRST else [self.folder / self.model]
        rest = {"query": ["P(a=1)"], "divergence": [path], "show": [], "sample": [], "mode": [], "expect": []}
        save = ["--out", self.folder / "made.gibbs"] if self.name == "fit" else []
        chosen = [word for option in self.options for word in option]
        found = command(self.name, *first, *rest.get(self.name, [path]), *save, *chosen)
        lines = found.stderr.splitlines()
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        if "this is a bug" in found.stderr or "Traceback" in found.stderr:
            raise AssertionError(found.stderr[-400:])
        if any(not c.isprintable() and c not in "\n\t" for c in found.stdout + found.stderr):
            raise AssertionError(f"steers the terminal: {found.stdout + found.stderr!r:.300}")
        if found.exit_code and sum(line.startswith("error: ") for line in lines) != 1:
            raise AssertionError(f"exit {found.exit_code} with {lines}")
        if found.exit_code:
            raise GibbsianError(lines[-1])
        return 0.0

    def smaller(self) -> list[Line]:
        """Return lines with one option fewer."""
        return [replace(self, options=self.options[:k] + self.options[k + 1 :]) for k in range(len(self.options))]


def any_line(pick, folder) -> Line:
    """Choose a command line."""
    options = tuple(tuple(pick(OPTIONS)) for _ in range(pick([0, 1, 1, 2])))
    model = pick(["whole.gibbs"] * 4 + ["t.csv", "missing.gibbs", "x" * 300, "\udcff.gibbs"])
    return Line(folder, pick(COMMANDS), pick(list(CONTENTS)), pick(SUFFIXES), options, model)


# -- running ----------------------------------------------------------------------------------------------------------
def picker(rng):
    """Return what takes one of a list at random."""
    return lambda things: things[int(rng.integers(len(things)))]


def found_wrong(make, seed, seconds, cases=10**9):
    """Run calls until the time is up, or so many: how many ended how, and the smallest form of what ended otherwise."""
    counts, wrong, end = Counter(), {}, time.monotonic() + seconds
    case = 0
    while time.monotonic() < end and case < cases:
        call = make(picker(np.random.default_rng([seed, case])))
        how = ending(call)
        case += 1
        good = how in ("refused", "answered")
        counts[how if good else "wrong"] += 1
        place = how.rpartition(" at ")[2]
        if not good and place not in wrong:
            wrong[place] = f"case {case - 1}: {smallest(call, how)}: {how}"
    return counts, list(wrong.values())


PARTS = ("calls", "lines", "files", "checkpoints")


def fuzz(seconds, seed=0, parts=PARTS, cases=10**9):
    """Share the time among the parts, `cases` at most of each; yield each with its counts and what is wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "t.csv").write_text(ROWS)
        assert command("fit", folder / "t.csv", "--l2", "0.1", "--out", folder / "whole.gibbs").exit_code == 0
        for part in parts:
            if part in ("calls", "lines"):
                make = any_call if part == "calls" else lambda pick: any_line(pick, folder)
                yield part, *found_wrong(make, seed, seconds / len(parts), cases)
                continue
            counts, wrong, end = Counter(), [], time.monotonic() + seconds / len(parts)
            for kind, found in outcomes(cases, seed, part == "checkpoints"):
                counts[found.word] += 1
                if found.word not in GOOD:
                    wrong.append(f"{kind}: {found}")
                if time.monotonic() > end:
                    break
            yield part, counts, wrong


def main():
    """Fuzz for some time; the exit code says whether anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", action="append", choices=PARTS)
    parser.add_argument("--cases", type=int, default=10**9, help="at most so many of each part")
    arguments = parser.parse_args()
    os.environ.setdefault("GIBBSIAN_MEMORY_LIMIT", "1")
    n_wrong = 0
    for part, counts, wrong in fuzz(arguments.seconds, arguments.seed, arguments.part or PARTS, arguments.cases):
        print(
            f"{part}: {sum(counts.values())} with seed {arguments.seed}: {dict(counts)}", *wrong, sep="\n  ", flush=True
        )
        n_wrong += len(wrong)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"most memory: {peak:.2f} GiB")
    sys.exit(n_wrong > 0 or peak > 2 * float(os.environ["GIBBSIAN_MEMORY_LIMIT"]))


if __name__ == "__main__":
    main()
