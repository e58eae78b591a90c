"""Plant small errors in the mathematics, one at a time, and see whether a test fails: ``make mutants``.

A mutant lives in one process: a finder hands the changed source to the import, so no file changes. Its tests are those
that mirror or import its module, then those of its package, then the estimators and the frozen fits; the first that
fails ends it. All is decided by the seed, and ``--only FILE:LINE`` plants every error of a line.
"""

from __future__ import annotations

import argparse
import ast
import importlib.machinery
import importlib.util
import multiprocessing
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src", ROOT / "tests"
ROOMS = ("models", "inference", "expectations", "objectives", "learners", "uncertainty", "diagnostics")
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
SYMMETRIC = {"isinstance", "hasattr", "hypot", "maximum", "minimum", "max", "min", "logaddexp"}
OBJECTS = {"model", "data", "rng", "state", "self.model", "problem", "None"}
NEAREST = 3  # test files that are tried first
NO_END = "no end"
NOT_MATHEMATICAL = (
    *(f"test_{page}.py" for page in ("capabilities", "remedies", "json", "modes", "reports", "readme", "typing")),
    "test_public_names.py",
)
PLAIN = ast.Name | ast.Attribute | ast.Subscript
# messages, checks and prices are no mathematics
PRICES = re.compile(r"price|least|check_cost|needed|.*seconds")
SILENT = {"notify", "require_memory", "require_seconds", "check", "ArgumentError", "DataError"}


class Mutant(NamedTuple):
    """One planted error: where it stands, and the text before and after."""

    path: Path
    line: int
    span: tuple[int, int]
    before: str
    after: str

    def source(self) -> str:
        """Return the module's text with the error in it."""
        data = self.path.read_bytes()
        return (data[: self.span[0]] + self.after.encode() + data[self.span[1] :]).decode()

    def __str__(self) -> str:
        return f"{self.path.relative_to(SOURCE / 'gibbsian')}:{self.line}: {self.before} -> {self.after}"


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
        self.found: list[ast.AST] = []
        self.depth = 0

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
        if name not in SILENT and not name.endswith("Warning"):
            self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        if self.depth and isinstance(node, ast.expr):
            self.found.append(node)
        super().generic_visit(node)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every error that can be planted in a module."""
    text = path.read_text()
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    sites = _Sites()
    sites.visit(ast.parse(text))
    for node in sites.found:
        for changed in changes(node):
            span = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
            before, after = text.encode()[slice(*span)].decode(), f"({ast.unparse(changed)})"
            yield Mutant(path, node.lineno, span, " ".join(before.split()), after)


# -- which tests could notice -----------------------------------------------------------------------------------------
def stages(path: Path) -> list[list[str]]:
    """Return the tests that could notice an error in a module: the nearest first, then wider rings."""
    module = path.relative_to(SOURCE / "gibbsian")
    package = module.parts[0]
    names = re.compile(rf"\b({'|'.join([module.stem, *_defined(path)])})\b")
    every = [test for test in sorted(TESTS.rglob("test_*.py")) if _is_mathematical(test)]
    told = {test: len(names.findall(test.read_text())) for test in every}
    naming = sorted(
        (test for test in every if told[test]), key=lambda test: -told[test] * (1 + (package in test.parts))
    )
    mirrors = [test for test in every if test.stem == f"test_{path.stem}" and package in test.parts]
    near = [*mirrors, *naming]
    own = [*(TESTS / "contracts").glob(f"test_{package}*.py"), *sorted((TESTS / "unit" / package).glob("test_*.py"))]
    wide = [TESTS / "golden" / "test_frozen_answers.py", *sorted((TESTS / "unit" / "estimators").glob("test_*.py"))]
    rings, seen = [], set()
    for ring in (near[:NEAREST], own, [*near[NEAREST:], *wide]):
        rings.append([str(test) for test in dict.fromkeys(ring) if test not in seen])
        seen.update(ring)
    return [ring for ring in rings if ring]


def _defined(path: Path) -> list[str]:
    return [node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def _is_mathematical(test: Path) -> bool:
    """Say whether a test file is about the mathematics, not about the command line, papers, files or pictures."""
    return not {"cli", "papers", "plots", "report", "browser", "storage"} & set(test.parts) and (
        test.name not in NOT_MATHEMATICAL
    )


# -- one mutant at a time ---------------------------------------------------------------------------------------------
class _Loader(importlib.machinery.SourceFileLoader):
    """Loads the changed source under the module's own name and path."""

    changed: str

    def get_code(self, fullname: str) -> Any:
        return compile(self.changed, self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the one module that is changed."""

    def __init__(self, mutant: Mutant) -> None:
        module = mutant.path.relative_to(SOURCE).with_suffix("")
        self.name, self.mutant = ".".join(module.parts), mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        loader = _Loader(name, str(self.mutant.path))
        loader.changed = self.mutant.source()
        return importlib.util.spec_from_loader(name, loader)


class _FirstFailure:
    """Remembers the first test that failed."""

    name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        self.pytest_runtest_logreport(report)


def _try(mutant: Mutant | None, tests: list[str], answer: Any) -> None:
    """Run tests with a mutant (none: as they are), and send the name of the first that fails."""
    import pytest

    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1), os.dup2(sink, 2)
    os.chdir(ROOT)
    sys.path[:0] = [str(SOURCE), str(TESTS)]
    if mutant is not None:
        sys.meta_path.insert(0, _Finder(mutant))
    first = _FirstFailure()
    code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests], plugins=[first])
    answer.send(first.name or (f"exit {int(code)}" if code else ""))


def verdict(mutant: Mutant | None, tests: list[str], seconds: float) -> str:
    """Return the test that notices a mutant, and nothing where all pass."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_try, args=(mutant, tests, there))
    process.start()
    there.close()
    process.join(seconds)
    if process.is_alive():
        process.terminate()
        process.join()
        return f"{NO_END} within {seconds:.0f} s"
    try:
        return here.recv()
    except EOFError:
        return f"the process died ({process.exitcode})"


def notice(mutant: Mutant, rings: int, seconds: float, broken: set[str]) -> str:
    """Return what notices a mutant; tests that fail without it too are set aside, and a ring that is slow too."""
    for tests in stages(mutant.path)[:rings]:
        while found := verdict(mutant, [*tests, *(f"--deselect={test}" for test in sorted(broken))], seconds):
            if found.startswith(NO_END) and verdict(None, tests, seconds / 2).startswith(NO_END):
                seconds *= 2
            elif "::" in found and verdict(None, [found], seconds):
                broken.add(found)
            else:
                return found
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=150, help="how many mutants are tried")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS), help=f"packages; compiled loops are {KERNELS}")
    parser.add_argument("--only", help="FILE:LINE, every error of one line of a file under src/gibbsian")
    parser.add_argument("--rings", type=int, default=3, help="how far the tests reach: near, package, all")
    parser.add_argument("--seconds", type=float, default=300.0, help="time limit of one ring of tests")
    parser.add_argument("--least", type=float, default=0.9, help="exit non-zero below this score")
    asked = parser.parse_args()
    paths = [path for room in asked.rooms for path in sorted((SOURCE / "gibbsian" / room).rglob("*.py"))]
    if asked.only:
        name, line = asked.only.split(":")
        chosen = [each for each in mutants_of(SOURCE / "gibbsian" / name) if each.line == int(line)]
    else:
        every = [mutant for path in paths for mutant in mutants_of(path)]
        chosen = random.Random(asked.seed).sample(every, min(asked.number, len(every)))
        print(f"{len(chosen)} of {len(every)} mutants, seed {asked.seed}", flush=True)
    caught, tried, broken = Counter(), Counter(), set()
    for number, mutant in enumerate(chosen):
        room = next((room for room in asked.rooms if room in str(mutant.path)), "")
        if KERNELS in str(mutant.path):  # compiled code is kept by the file, which does not change
            os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="gibbsian-mutant-")
        found = notice(mutant, asked.rings, asked.seconds, broken)
        tried[room] += 1
        caught[room] += bool(found)
        print(f"{number:4d} {'caught  ' if found else 'SURVIVED'} {mutant}   {found}", flush=True)
    for room, total in sorted(tried.items()):
        print(f"{room:15s} {caught[room]:4d} of {total:4d}")
    for test in sorted(broken):
        print(f"set aside, for it fails without any mutant: {test}")
    score = caught.total() / max(tried.total(), 1)
    print(f"score {score:.1%} ({caught.total()} of {tried.total()})")
    sys.exit(score < asked.least)


if __name__ == "__main__":
    main()
