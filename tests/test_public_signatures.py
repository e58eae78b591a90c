"""Every public name is documented and has a runnable example; its signature changes only where a diff shows it.

``python tests/test_public_signatures.py`` writes the signatures anew.
"""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from functools import cached_property
from pathlib import Path

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
SIGNATURES = Path(__file__).with_name("public_signatures.txt")


class Bare(str):
    """An annotation that is written without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def signature(thing):
    """The signature of a function or a class, without addresses in memory."""
    try:
        found = inspect.signature(thing)
    except ValueError:  # of errors, for example, whose signature is that of C
        return "(...)"
    bare = [each.replace(annotation=unquoted(each.annotation)) for each in found.parameters.values()]
    whole = found.replace(parameters=bare, return_annotation=unquoted(found.return_annotation))
    return re.sub(r" at 0x[0-9a-f]+", "", str(whole))


def unquoted(annotation):
    text = getattr(annotation, "__forward_arg__", annotation)
    return Bare(text) if isinstance(text, str) else annotation


def owner_of(thing, name):
    """The class that gives a class this attribute."""
    return next((each for each in thing.__mro__ if name in vars(each)), object)


def members(thing):
    """The public methods and properties of a class, less those that it has from another public class."""
    bases = [base for base in thing.__mro__[1:] if base in CLASSES.values()]
    for name in sorted(name for name in dir(thing) if not name.startswith("_")):
        if re.fullmatch("set_.*_request", name):  # which scikit-learn makes
            continue
        owner = owner_of(thing, name)
        if not owner.__module__.startswith("gibbsian") or any(owner_of(base, name) is owner for base in bases):
            continue
        member = vars(owner)[name]
        if isinstance(member, property | cached_property):
            read = member.fget if isinstance(member, property) else member.func
            yield f"    {name} -> {read.__annotations__.get('return', '?')}"
        elif callable(getattr(thing, name, None)):
            yield f"    {name}{signature(getattr(thing, name))}"


def signatures():
    """The whole public interface by the places where users find it, a line for each name."""
    lines = []
    for place in [gb, *(importlib.import_module(f"gibbsian.{name}") for name in PACKAGES)]:
        for name in getattr(place, "__all__", [name for name in vars(place) if not name.startswith("_")]):
            thing = getattr(place, name)
            if f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}" not in ALL:
                lines += [f"{place.__name__}.{name}"] if hasattr(place, "__all__") else []
                continue
            if not hasattr(place, "__all__") and thing.__module__ != place.__name__:
                continue  # a module imports what others define
            lines.append(f"{place.__name__}.{name}" + ("" if place is gb else signature(thing)))
            lines += members(thing) if inspect.isclass(thing) and place is not gb else []
    return "\n".join(lines) + "\n"


def test_signatures_are_those_of_the_file():
    """A change of the interface is seen in a diff; the file is written by running this one."""
    assert signatures() == SIGNATURES.read_text()


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


if __name__ == "__main__":
    SIGNATURES.write_text(signatures())
