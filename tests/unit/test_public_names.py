"""Every public name is documented, its settings with their defaults, with a runnable example; importing stays light."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys

import pytest

import gibbsian as gb
from gibbsian.settings import settings_of

PACKAGES = [name for name in gb.__all__ if inspect.ismodule(getattr(gb, name))]
ALL = {}
for module in [gb, *(importlib.import_module(f"gibbsian.{name}") for name in PACKAGES)]:
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    for name in getattr(module, "__all__", [name for name in own if not name.startswith("_")]):
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            ALL[f"{thing.__module__}.{thing.__qualname__}"] = thing
CLASSES = {name: thing for name, thing in ALL.items() if inspect.isclass(thing)}


def is_contract(thing):
    """Whether a class is there to be completed: a protocol, or a base that leaves methods to the classes below it."""
    return inspect.isclass(thing) and (
        getattr(thing, "_is_protocol", False)
        or inspect.isabstract(thing)
        or "raise NotImplementedError" in inspect.getsource(thing)
    )


def is_sentence(thing):
    """Whether a class is an error or a warning: its sentence is its documentation."""
    return inspect.isclass(thing) and issubclass(thing, Exception)


def documentation(thing):
    """The docstrings of a function, or of a class and what it defines itself."""
    parts = vars(thing).values() if inspect.isclass(thing) else ()
    return [inspect.getdoc(each) or "" for each in (thing, *filter(callable, parts))]


def test_every_name_has_a_docstring_of_its_own():
    assert len(ALL) > 150
    assert not [name for name, thing in ALL.items() if not thing.__doc__]
    by_dataclass = [name for name, thing in ALL.items() if thing.__doc__.startswith(f"{thing.__name__}(")]
    assert not by_dataclass, "written by dataclass, not by hand"


def examples(thing):
    """All lines of all examples of a name."""
    return [line for text in documentation(thing) for line in doctest.DocTestParser().get_examples(text)]


def test_every_name_has_an_example_that_runs():
    """Examples run as doctests of their modules, where none is left out."""
    shown = {name: examples(thing) for name, thing in ALL.items()}
    needed = [name for name, thing in ALL.items() if not is_sentence(thing) and not is_contract(thing)]
    assert len(needed) > 0.7 * len(ALL)
    assert not [name for name in needed if not shown[name]]
    assert not [line.source for lines in shown.values() for line in lines if line.options.get(doctest.SKIP)]


def test_settings_are_documented_with_their_defaults():
    declared = {
        name: thing for name, thing in CLASSES.items() if settings_of(thing) and "__dataclass_fields__" in vars(thing)
    }
    assert len(declared) > 50
    for name, thing in declared.items():
        text = inspect.getdoc(thing)
        defaults = {setting: parameter.default for setting, parameter in inspect.signature(thing).parameters.items()}
        for setting in settings_of(thing):
            line = rf"^{setting} : .*default={re.escape(repr(defaults[setting]))}$"
            assert re.search(line, text, re.MULTILINE), (name, setting)


def test_every_name_that_is_listed_is_there():
    for name in gb.__all__:
        assert getattr(gb, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        gb.nonsense  # noqa: B018


def test_import_loads_nothing_heavy():
    code = "import sys, gibbsian; print([m for m in ('numpy', 'numba', 'sklearn', 'pandas') if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_a_first_fit_loads_no_more_than_it_needs():
    """Half of the time of a fit in a new process was in packages that it does not use."""
    code = (
        "import sys, gibbsian; gibbsian.BoltzmannMachine().fit([[0, 1], [1, 0], [1, 1], [0, 0]]); "
        "names = 'scipy.stats scipy.special scipy.optimize scipy.sparse.linalg scipy.sparse.csgraph numpy.f2py pandas '"
        "' pyarrow networkx asyncio psutil yaml numpy.testing'.split(); "
        "print([m for m in names if m in sys.modules]); "
        "from sklearn.utils import fixes; print(fixes.pd.__version__ == sys.modules['pandas'].__version__); "
        "from sklearn.utils.sparsefuncs import LinearOperator; import scipy.sparse.linalg; "
        "print(isinstance(LinearOperator((2, 2), sum, dtype=float), scipy.sparse.linalg.LinearOperator)); "
        "import scipy.stats, pandas; print(scipy.stats.norm.cdf(0.0), pandas.Series([1, 2]).sum()); "
        "import numpy.f2py; from gibbsian.startup import expit; print(numpy.f2py.get_include.__name__, expit(0.0))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == ["[]", "True", "True", "0.5 3", "get_include 0.5"]
