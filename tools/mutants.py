"""Plant small errors in the mathematics, one at a time, and see whether a test fails: ``make mutants``.

A mutant lives in one process: a finder hands the changed source to the import, so no file changes. All tests are run
once before, with a word before every statement that tells which tests run it; those are a mutant's tests, the ones that
mirror or name its module first, and the first that fails ends it. One that finds no end is caught too. Mutants are
drawn by the seed, and ``--only FILE:LINE`` plants every error of a line.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import importlib.machinery
import importlib.util
import json
import multiprocessing
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

TOOLS = Path(__file__).parent
ROOT = TOOLS.parent
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
ROOMS = ("models", "inference", "expectations", "learning", "uncertainty", "diagnostics")
KERNELS = "backends/numba"
PRELOADED = ["numpy", "scipy.optimize", "scipy.special", "numba", "sklearn.base", "networkx", "hypothesis", "pytest"]

ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
TURNED = {"maximum": "minimum", "minimum": "maximum", "max": "min", "min": "max", "sum": "mean", "mean": "sum"}
DROPPED = {"sqrt", "exp", "log", "log1p", "expm1", "abs", "square", "tanh"}
SYMMETRIC = {"isinstance", "hasattr", "hypot", "maximum", "minimum", "max", "min", "logaddexp"} | {
    "multiply",
    "array_equal",
}
OBJECTS = {"model", "data", "rng", "state", "self.model", "problem", "None"}
CONTEXT = multiprocessing.get_context("forkserver")
HEAVY, SHARES = {"contracts", "golden", "statistical"}, 4  # folders whose files are shared out among processes
NEAREST = 4  # files whose tests are tried first
KEPT = 120  # tests of a statement that are kept
WAVES = 10.0, 50.0  # seconds of tests, the nearest first
NO_END, NO_END_AFTER, NO_END_TIMES = "no end", 30.0, 6.0  # seconds, and times those of the tests without a mutant
MAP_SHARE = 0.5  # of the time
MEMORY = 8 * 2**30
NOT_MATHEMATICAL = {"browser", "cli", "plots", "report", "storage", "walks"} | {
    f"test_{page}"
    for page in (
        "capabilities",
        "claims",
        "crash",
        "fuzz",
        "json",
        "modes",
        "papers_page",
        "public_names",
        "readme",
        "remedies",
        "reports",
        "typing",
    )
}
PLAIN = ast.Name | ast.Attribute | ast.Subscript
# messages, checks, files and prices are no mathematics
PRICES = re.compile(r"_?price|least|needed|.*(seconds|memory|bytes)|_?(check|require|refuse)(_.*)?|to_parts|from_parts")
SILENT = re.compile(r"notify|_?(check|require|refuse)(_.*)?|.*(Error|Warning)")
FORM = {"strict", "copy", "slots", "stacklevel"}  # arguments that decide on no number
# file :: line of text :: before -> after :: why nobody can tell them apart
EQUIVALENT = {tuple(line.split(" :: ")[:3]) for line in (TOOLS / "mutants.txt").read_text().splitlines()}


class Mutant(NamedTuple):
    """One planted error: where it stands, and the text before and after."""

    path: Path
    line: int
    column: int
    statement: int
    span: tuple[int, int]
    before: str
    after: str

    def source(self) -> str:
        """Return the module's text with the error in it."""
        data = self.path.read_bytes()
        return (data[: self.span[0]] + self.after.encode() + data[self.span[1] :]).decode()

    def name(self) -> tuple[str, str, str]:
        """Return what it is without the line's number, as lines move."""
        text = self.path.read_text().splitlines()[self.line - 1].strip()
        return str(self.path.relative_to(SOURCE / "gibbsian")), text, f"{self.before} -> {self.after}"

    def __str__(self) -> str:
        place = self.path.relative_to(SOURCE / "gibbsian")
        return f"{place}:{self.line}:{self.column}: {self.before} -> {self.after}"


# -- what can be wrong ------------------------------------------------------------------------------------------------
def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of an expression."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in ARITHMETIC:
            yield ast.BinOp(left, ARITHMETIC[type(op)](), right)
            yield left
            if isinstance(op, ast.Mult):
                yield right
        case ast.UnaryOp(ast.USub(), operand):
            yield operand
        case ast.Compare(left, [op], [right]) if type(op) in COMPARISONS:
            yield ast.Compare(left, [COMPARISONS[type(op)]()], [right])
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.IfExp(test, body, other):
            yield ast.IfExp(test, other, body)
        case ast.Constant(bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(int()):
            yield ast.Constant(node.value + 1)
        case ast.Constant(float()):
            yield ast.Constant(2 * node.value if node.value else 1.0)
        case ast.Call(ast.Attribute(owner, name) as called, args, keywords):
            if name in TURNED:
                yield ast.Call(ast.Attribute(owner, TURNED[name], called.ctx), args, keywords)
            if name in DROPPED and len(args) == 1:
                yield args[0]
            yield from _swapped(node)
        case ast.Call():
            yield from _swapped(node)


def _swapped(call: ast.Call) -> Iterator[ast.Call]:
    """Exchange the last two arguments, where that is neither the same nor an error in any call."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    *others, first, second = [None, None, *call.args]
    if name in SYMMETRIC or not isinstance(first, PLAIN) or not isinstance(second, PLAIN):
        return
    if not {ast.unparse(first), ast.unparse(second)} & OBJECTS:
        yield ast.Call(call.func, [*others[2:], second, first], call.keywords)


class _Sites(ast.NodeVisitor):
    """Collect expressions in the bodies of functions, except those of messages and checks."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.AST, int]] = []
        self.depth = self.statement = 0

    def visit(self, node: ast.AST) -> None:
        before = self.statement
        if isinstance(node, ast.stmt):
            self.statement = node.lineno
        super().visit(node)
        self.statement = before

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in FORM:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if PRICES.fullmatch(node.name):
            return
        self.depth += 1
        for statement in node.body:
            self.visit(statement)
        self.depth -= 1

    def visit_Raise(self, node: ast.Raise) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Assign(self, node: ast.Assign) -> None:
        if not any(isinstance(target, ast.Name) and PRICES.fullmatch(target.id) for target in node.targets):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if not any(isinstance(statement, ast.Raise) for statement in node.body):  # what is refused is no mathematics
            self.visit(node.test)
        for statement in [*node.body, *node.orelse]:
            self.visit(statement)

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if not SILENT.fullmatch(name):
            self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if self.depth and isinstance(node, ast.expr):
            self.found.append((node, self.statement))
        super().generic_visit(node)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every error that can be planted in a module."""
    text = path.read_text()
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    sites = _Sites()
    sites.visit(ast.parse(text))
    for node, statement in sites.found:
        for changed in changes(node):
            if ast.unparse(changed) == ast.unparse(node):
                continue
            span = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            before, after = text.encode()[slice(*span)].decode(), f"({ast.unparse(changed)})"
            yield Mutant(path, node.lineno, node.col_offset, statement, span, " ".join(before.split()), after)


# -- which tests run which statements ---------------------------------------------------------------------------------
class _Counted(ast.NodeTransformer):
    """Puts a word before every statement of a function, which tells that it was run."""

    def __init__(self, name: str) -> None:
        self.name, self.depth = name, 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for field in ("body", "orelse", "finalbody") if self.depth else ():
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, [each for stated in block for each in self._told(stated)])
        return node

    def _told(self, statement: ast.stmt) -> list[ast.stmt]:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return [statement]  # a docstring stays the first
        word = ast.parse(f"__seen__(('{self.name}', {statement.lineno}))").body[0]
        for node in ast.walk(word):
            ast.copy_location(node, statement)
        return [word, statement]


class _Map:
    """A plugin of pytest: writes down which statements of the rooms each test runs that passes, and how long it took.

    Of several processes with one file each runs its share of the tests.
    """

    def __init__(self, path: str, share: int, n_shares: int) -> None:
        self.file, self.share, self.n_shares = open(path, "w"), share, n_shares  # noqa: SIM115 - to the end
        self.seen: set[tuple[str, int]] = set()
        builtins.__seen__ = self.seen.add  # type: ignore[attr-defined]
        self.seconds, self.passed = 0.0, False

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = items[self.share :: self.n_shares]

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds += report.duration
        self.passed = report.passed if report.when == "call" else self.passed and report.passed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.passed:
            lines = defaultdict(list)
            for name, line in self.seen:
                lines[name].append(line)
            record = {"test": nodeid, "seconds": round(self.seconds, 3), "lines": lines}
            print(json.dumps(record), file=self.file, flush=True)
        self.seen.clear()
        self.seconds, self.passed = 0.0, False


class Tests(NamedTuple):
    """Every test that passes, with its seconds, and for each statement those that run it."""

    seconds: dict[str, float]
    running: dict[str, list[str]]

    def write(self, path: Path) -> None:
        """Write all down; a statement has its tests by their places."""
        places = {test: place for place, test in enumerate(self.seconds)}
        running = {line: [places[test] for test in tests] for line, tests in self.running.items()}
        path.write_text(json.dumps([self.seconds, running]))

    @classmethod
    def read(cls, path: Path) -> Tests:
        """Read what was written down."""
        seconds, running = json.loads(path.read_text())
        names = list(seconds)
        return cls(seconds, {line: [names[place] for place in places] for line, places in running.items()})

    def for_mutant(self, mutant: Mutant) -> list[str]:
        """Return the tests that could notice a mutant, those of near files first; compiled loops have only these."""
        place = mutant.path.relative_to(SOURCE / "gibbsian")
        near = {name: rank for rank, name in enumerate(_near(mutant.path))}
        if KERNELS in str(place):
            return sorted((test for test in self.seconds if _file(test) in near), key=lambda test: near[_file(test)])
        running = self.running.get(f"{place}:{mutant.statement}", [])
        return sorted(running, key=lambda test: near.get(_file(test), NEAREST) >= NEAREST)


def mapped(files: list[Path], rooms: list[str], jobs: int, end: float, kept: Path | None) -> Tests:
    """Run all tests once, without any mutant, and see which statements each runs; `kept` is read where it is there."""
    if kept is not None and kept.exists():
        return Tests.read(kept)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        parts = [
            (file, f"{folder}/{number}-{share}", share, n_shares)
            for number, file in enumerate(files)
            for n_shares in [SHARES if file.parent.name in HEAVY else 1]
            for share in range(n_shares)
        ]
        for done in [pool.submit(_in_child, _map, end, rooms, *part) for part in parts]:
            done.result()
        records = [json.loads(line) for part in parts for line in _whole_lines(Path(part[1]))]
    seconds = {record["test"]: record["seconds"] for record in records}
    running: dict[str, list[str]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record["seconds"]):
        for name, lines in record["lines"].items():
            for line in lines:
                running[f"{name}:{line}"].append(record["test"])
    tests = Tests(seconds, {line: _spread(names) for line, names in running.items()})
    if kept is not None:
        tests.write(kept)
    return tests


def _whole_lines(path: Path) -> list[str]:
    return (
        [line for line in path.read_text().splitlines(keepends=True) if line.endswith("}\n")] if path.exists() else []
    )


def _spread(tests: list[str]) -> list[str]:
    """Return the quickest test of every file, then the second of each, and so on, as many as are kept."""
    rank: Counter[str] = Counter()
    ranked = []
    for place, test in enumerate(tests):
        ranked.append((rank[_file(test)], place, test))
        rank[_file(test)] += 1
    return [test for *_, test in sorted(ranked)[:KEPT]]


def _file(test: str) -> str:
    return test.split("::")[0]


def _near(path: Path) -> list[str]:
    """Return the test files that mirror a module or tell its names, the nearest first; its own examples before all."""
    package = path.relative_to(SOURCE / "gibbsian").parts[0]
    names = re.compile(rf"\b({'|'.join([path.stem, *_defined(path)])})\b")
    told = {test: len(names.findall(test.read_text())) for test in test_files()}
    naming = sorted((test for test in told if told[test]), key=lambda test: -told[test] * (1 + (package in test.parts)))
    mirrors = [test for test in told if test.stem == f"test_{path.stem}" and package in test.parts]
    return [str(test.relative_to(ROOT)) for test in dict.fromkeys([path, *mirrors, *naming])]


def _defined(path: Path) -> list[str]:
    return [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def test_files() -> list[Path]:
    """Return the files of tests that are about the mathematics, those that take long first."""
    every = sorted([*TESTS.rglob("test_*.py"), *TESTS.rglob("*.txt")])
    return sorted(filter(_is_mathematical, every), key=lambda test: test.parent.name not in HEAVY)


def _is_mathematical(test: Path) -> bool:
    """Say whether a test file is about the mathematics, not about the command line, papers, files or pictures."""
    return not NOT_MATHEMATICAL & {*test.relative_to(TESTS).parts[:-1], test.stem}


# -- one mutant at a time ---------------------------------------------------------------------------------------------
class _Loader(importlib.machinery.SourceFileLoader):
    """Loads a changed source under the module's own name and path."""

    changed: Any

    def get_code(self, fullname: str) -> Any:
        return compile(self.changed, self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the modules that are changed: `change` returns the new source of a path, and None for all others."""

    def __init__(self, change: Callable[[Path], Any]) -> None:
        self.change = change

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        file = SOURCE.joinpath(*name.split(".")).with_suffix(".py")
        if not name.startswith("gibbsian.") or not file.exists() or (changed := self.change(file)) is None:
            return None
        loader = _Loader(name, str(file))
        loader.changed = changed
        return importlib.util.spec_from_loader(name, loader)


def _map(rooms: list[str], file: Path, out: str, share: int, n_shares: int) -> str:
    """Run a share of the tests of a file, and write down what they run."""

    def counted(path: Path) -> Any:
        place = path.relative_to(SOURCE / "gibbsian")
        return _Counted(str(place)).visit(ast.parse(path.read_text())) if place.parts[0] in rooms else None

    return _pytest(counted, [str(file)], _Map(out, share, n_shares))


class _Chosen:
    """A plugin of pytest: runs the chosen tests in their order, and remembers the first that failed."""

    def __init__(self, tests: list[str]) -> None:
        self.order, self.failed = {test: rank for rank, test in enumerate(tests)}, ""

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self.order), key=lambda it: self.order[it.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)


def _try(mutant: Mutant, tests: list[str]) -> str:
    """Run tests with a mutant; return the name of the first that fails."""
    if KERNELS in str(mutant.path):  # compiled code is kept by the file, which does not change
        import numba

        numba.config.CACHE_DIR = tempfile.mkdtemp(prefix="gibbsian-mutant-")  # type: ignore[attr-defined]
    chosen = _Chosen(tests)
    code = _pytest(
        lambda path: mutant.source() if path == mutant.path else None, sorted(set(map(_file, tests))), chosen
    )
    return chosen.failed or code


def _pytest(change: Callable[[Path], Any], files: list[str], plugin: Any) -> str:
    """Run pytest on files of this process's own library, with changed sources; return how it ended, nothing if well."""
    import pytest

    os.setsid()  # what tests start is ended with them
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1), os.dup2(sink, 2)
    os.chdir(ROOT)
    sys.path[:0] = [str(SOURCE), str(TESTS)]
    sys.meta_path.insert(0, _Finder(change))
    stop = ["-x"] if isinstance(plugin, _Chosen) else []
    quiet = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not long and not gpu"]
    code = pytest.main([*stop, *quiet, *files], plugins=[plugin])
    return f"exit {int(code)}" if code else ""


def _answer(connection: Any, work: Callable[..., str], *parts: Any) -> None:
    connection.send(work(*parts))
    connection.close()
    os._exit(0)


def _in_child(work: Callable[..., str], end: float, *parts: Any) -> str:
    """Do work in a process of its own until its time is up; return its answer, or how it ended without one."""
    seconds = end - time.monotonic()
    if seconds <= 0:
        return NO_END
    here, there = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_answer, args=(there, work, *parts))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(seconds) else f"{NO_END} within {seconds:.0f} s"
    except EOFError:
        process.join()
        return f"the process died ({process.exitcode})"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()  # it may not yet lead a group
        process.join()


def judged(mutant: Mutant, tests: Tests, end: float) -> dict[str, Any] | None:
    """Return what became of a mutant as a record, and None where the time was up before."""
    began, found = time.monotonic(), ""
    able = tests.for_mutant(mutant)
    for wave in _waves(able, tests.seconds):
        limit = time.monotonic() + NO_END_AFTER + NO_END_TIMES * sum(tests.seconds[test] for test in wave)
        found = _in_child(_try, min(limit, end), mutant, wave)
        if found.startswith(NO_END) and end < limit:
            return None
        if found:
            break
    return {
        "mutant": str(mutant),
        "room": mutant.path.relative_to(SOURCE / "gibbsian").parts[0],
        "verdict": "caught" if found else "survived" if able else "not run by any test",
        "by": found,
        "tests": len(able),
        "seconds": round(time.monotonic() - began, 1),
    }


def _waves(tests: list[str], seconds: dict[str, float]) -> Iterator[list[str]]:
    """Deal tests into waves that take as many seconds as each may; most mutants end in the first."""
    left = list(tests)
    for budget in WAVES:
        wave = []
        while left and (not wave or budget > seconds[left[0]]):
            budget -= seconds[left[0]]
            wave.append(left.pop(0))
        if wave:
            yield wave


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=150, help="how many mutants are tried at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at a time")
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), help=f"packages; compiled loops are {KERNELS}")
    parser.add_argument("--only", nargs="+", default=[], help="FILE:LINE, every error of lines under src/gibbsian")
    parser.add_argument("--tests", nargs="+", type=Path, help="files of tests, else all that are about the mathematics")
    parser.add_argument("--seconds", type=float, default=86_400.0, help="time limit in all")
    parser.add_argument("--out", type=Path, help="where each result is a line of JSON")
    parser.add_argument("--map", type=Path, help="which tests run which statements: kept here, read where it is there")
    parser.add_argument("--least", type=float, default=0.9, help="exit non-zero below this score")
    asked = parser.parse_args()
    began = time.monotonic()
    end = began + asked.seconds
    os.environ.update(dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    CONTEXT.set_forkserver_preload(PRELOADED)
    paths = [path for room in asked.rooms for path in sorted((SOURCE / "gibbsian" / room).rglob("*.py"))]
    examples = [path for path in paths if ">>>" in path.read_text()]
    every = [mutant for path in paths for mutant in mutants_of(path) if mutant.name() not in EQUIVALENT]
    chosen = random.Random(asked.seed).sample(every, min(asked.number, len(every)))
    if asked.only:
        chosen = [mutant for mutant in every if str(mutant).startswith(tuple(f"{place}:" for place in asked.only))]
    files = [*(path.resolve() for path in asked.tests or test_files()), *examples]
    tests = mapped(files, asked.rooms, asked.jobs, began + MAP_SHARE * asked.seconds, asked.map)
    print(f"{len(every)} mutants, seed {asked.seed}; {len(tests.seconds)} tests run {len(tests.running)} statements")
    print(f"mapped within {time.monotonic() - began:.0f} s", flush=True)
    results = []
    with ThreadPoolExecutor(asked.jobs) as pool, open(asked.out or os.devnull, "a") as out:
        for done in as_completed(pool.submit(judged, mutant, tests, end) for mutant in chosen):
            if (result := done.result()) is not None:
                results.append(result)
                print(json.dumps(result), file=out, flush=True)
                print(f"{len(results):4d} {result['verdict']:9s} {result['mutant']}   {result['by']}", flush=True)
    tried = Counter(result["room"] for result in results)
    caught = Counter(result["room"] for result in results if result["verdict"] == "caught")
    for room, total in sorted(tried.items()):
        print(f"{room:15s} {caught[room]:4d} of {total:4d}")
    score = caught.total() / max(tried.total(), 1)
    print(f"score {score:.1%} ({caught.total()} of {tried.total()}) in {time.monotonic() - began:.0f} s")
    sys.exit(score < asked.least)


if __name__ == "__main__":
    main()
