"""What the package imports from inside gibbsian, beyond public names, is on a list that may only shrink."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import gibbsian_reproduction

LIST = Path(__file__).with_name("inside_names.txt")
SOURCES = Path(gibbsian_reproduction.__file__).parent


def imports(source: str) -> Iterator[str]:
    """Yield the names that a file imports from gibbsian, each with its module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("gibbsian."))
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("gibbsian."):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def is_public(name: str) -> bool:
    """Whether a name stands in the package, or in a module that its package lists, which is listed itself."""
    package, _, listed = name.rpartition(".")
    if package != "gibbsian" and not is_public(package):
        return False
    module = import_module(package)
    own = [key for key, value in vars(module).items() if inspect.getmodule(value) in (module, None)]
    return listed in getattr(module, "__all__", [key for key in own if not key.startswith("_")])


def inside_names() -> set[str]:
    """Return what the sources import and what is not public."""
    found = {name for path in SOURCES.rglob("*.py") for name in imports(path.read_text(encoding="utf-8"))}
    return {name for name in found if not is_public(name)}


def test_no_name_from_inside_is_new_and_none_on_the_list_is_unused():
    assert sorted(inside_names()) == LIST.read_text().splitlines(), "the list may only shrink"


def test_imports_of_every_form_are_seen():
    inside = "def f():\n from gibbsian.startup import attach"
    source = f"import gibbsian.rng\nfrom gibbsian.graphs import grid as g\n{inside}"
    assert list(imports(source)) == ["gibbsian.rng", "gibbsian.graphs.grid", "gibbsian.startup.attach"]
    assert [is_public(name) for name in ("gibbsian.graphs.grid", "gibbsian.startup.attach")] == [True, False]
