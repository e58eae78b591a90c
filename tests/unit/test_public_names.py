"""Every public name is documented with a runnable example, and importing stays light."""

import importlib
import inspect
import subprocess
import sys

import pytest

import gibbsian as gb

ROOMS = [name for name in gb.__all__ if name == name.lower() and name != "load"]


def public_names():
    for room in ROOMS:
        module = importlib.import_module(f"gibbsian.{room}")
        names = getattr(module, "__all__", [name for name in vars(module) if not name.startswith("_")])
        for name in names:
            thing = getattr(module, name)
            ours = getattr(thing, "__module__", "").startswith("gibbsian")
            if ours and (inspect.isclass(thing) or inspect.isfunction(thing)):
                yield f"{thing.__module__}.{thing.__qualname__}", thing


NAMES = dict(public_names())


def test_the_list_is_not_empty():
    assert len(NAMES) > 50


@pytest.mark.parametrize("name", sorted(NAMES))
def test_has_a_docstring_with_an_example(name):
    thing = NAMES[name]
    text = inspect.getdoc(thing) or ""
    assert text, f"{name} has no docstring"
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return  # their sentence is the documentation; the base classes carry the example
    methods = (
        [vars(thing)[m].__doc__ or "" for m in vars(thing) if callable(vars(thing)[m])]
        if inspect.isclass(thing)
        else []
    )
    assert any(">>>" in part for part in [text, *methods]), f"{name} has no runnable example"


def test_public_face_is_complete():
    for name in gb.__all__:
        assert getattr(gb, name) is not None
    assert set(ROOMS) <= set(gb.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        gb.nonsense  # noqa: B018


def test_import_loads_nothing_heavy():
    code = "import sys, gibbsian; print([m for m in ('numpy', 'numba', 'sklearn', 'pandas') if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
