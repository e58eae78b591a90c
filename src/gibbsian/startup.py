"""Start-up tricks, all of them, fenced off here: a first answer in a new process comes several times sooner.

Nothing else in the library needs them; plain imports and ``numba.njit(cache=True)`` would give the same results. Their
worth on two shared cores, with and without:

- `attach`, `defer_imports`: a first fit with its kernels on disk takes 1.1 s instead of 4.9 s. scikit-learn's base
  imports pandas and most of SciPy, and Numba all that it compiles with, and a fit needs none of them.
- `njit`: compiling what five kinds of fits use takes 20.8 s instead of 24.4 s, and the same fits with kernels on disk
  1.3 s instead of 1.7 s.
- `gc_disabled`: a tenth of the time of a first fit; imports and compilation leave no garbage to look for.
"""
# ruff: noqa: D101, D102, D103 - what is declared for type checkers is documented by scikit-learn

from __future__ import annotations

import ast
import gc
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar


# -- names that are loaded when they are first used --------------------------------------------------------------------
def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, as the imports of its ``__init__.pyi`` say.

    The stub is the only list of its names: type checkers and editors read it, and names are loaded by it.

    Parameters
    ----------
    package : str
        Its name.
    file : str
        Its ``__init__.py``; the stub stands beside it.

    Examples
    --------
    >>> import gibbsian
    >>> from gibbsian.startup import attach
    >>> getattr_, dir_, all_ = attach("gibbsian", gibbsian.__file__)
    >>> getattr_("Graph").__name__, all_[:2]
    ('Graph', ['BoltzmannMachine', 'Dataset'])
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text())
    homes = {name.name: part.module for part in stub.body if isinstance(part, ast.ImportFrom) for name in part.names}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = load_module(f"{package}.{name}" if homes[name] == package else str(homes[name]))
        return module if homes[name] == package else getattr(module, name)

    public = sorted(homes)
    return load, lambda: public, public


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Disable the garbage collector."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def load_module(name: str) -> ModuleType:
    """Import a module without the garbage collector."""
    if name in sys.modules:  # asked for again and again
        return importlib.import_module(name)
    with gc_disabled():
        return importlib.import_module(name)


# -- imports of other packages that are deferred -----------------------------------------------------------------------
@contextmanager
def defer_imports(*names: str) -> Iterator[None]:
    """Replace modules that other packages import in this block by stand-ins, which load them on first use.

    A package is named before its parts. Functions that are imported from a module in the block are named as in
    ``"module:one,two"``, and load their module when they are called. Where several threads run, modules are loaded as
    usual: another thread would import a stand-in.

    Examples
    --------
    >>> from gibbsian.startup import defer_imports
    >>> with defer_imports("colorsys"):
    ...     import colorsys
    >>> colorsys.rgb_to_hsv(1.0, 1.0, 1.0)      # loaded now
    (0.0, 0.0, 1.0)
    """
    missing: list[str] = []
    alone = len(sys._current_frames()) == 1
    for name, functions in (name.partition(":")[::2] for name in names if alone):
        if name not in sys.modules and (spec := find_spec(name)):
            missing.append(name)
            sys.modules[name] = LazyModule(name, spec.submodule_search_locations or [], functions.split(","))
            if "." in name:  # an import makes it an attribute of its package too
                setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], sys.modules[name])
    try:
        yield
    finally:
        for name in reversed(missing):
            restore(name)


class LazyModule(ModuleType):
    """A stand-in that loads its module when an attribute is read; `functions` load it when they are called."""

    def __init__(self, name: str, path: list[str], functions: list[str]):
        super().__init__(name)
        self.__path__ = path
        for function in functions:
            setattr(self, function, partial(self._call, function))

    def _call(self, function: str, *args: object, **how: object) -> Any:
        return self.__getattr__(function)(*args, **how)

    def __getattr__(self, attribute: str) -> Any:
        restore(self.__name__)
        return getattr(load_module(self.__name__), attribute)


def restore(name: str) -> None:
    """Remove the stand-ins of a module and of its packages."""
    if isinstance(sys.modules.get(name), LazyModule):
        del sys.modules[name]
        package, _, part = name.rpartition(".")
        vars(sys.modules.get(package, ModuleType("none"))).pop(part, None)
        restore(package)


# -- what the library takes from NumPy, pandas, SciPy and scikit-learn: `from gibbsian.startup import pandas, expit` ---
_SPECIAL = (
    "entr",
    "expit",
    "gammaln",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "ndtri",
    "pdtrc",
    "softmax",
    "stdtrit",
    "xlogy",
)
_SCIKIT_LEARN = {
    "sklearn.base": (
        "BaseEstimator",
        "ClassifierMixin",
        "ClusterMixin",
        "DensityMixin",
        "TransformerMixin",
        "clone",
    ),
    "sklearn.utils": ("TransformerTags",),
    "sklearn.utils.metaestimators": ("available_if",),
    "sklearn.utils.multiclass": ("check_classification_targets", "type_of_target"),
    "sklearn.utils.validation": (
        "_check_feature_names_in",
        "_check_sample_weight",
        "check_is_fitted",
        "column_or_1d",
        "validate_data",
    ),
}
# What scikit-learn's base imports and a fit does not use.
_UNUSED = (
    *("numpy.f2py", "numpy.testing", "numpy.ma"),
    *("scipy.stats", "scipy.special", "scipy.linalg", "pandas", "asyncio", "psutil:Process"),
    *("scipy.sparse.linalg:cg,LinearOperator", "scipy.sparse.csgraph:laplacian"),
    *("narwhals", "narwhals.stable", "narwhals.stable.v2"),
)

if TYPE_CHECKING:
    import numpy
    import pandas
    from scipy.special import (  # noqa: F401
        entr,
        expit,
        gammaln,
        log_softmax,
        logit,
        logsumexp,
        ndtr,
        ndtri,
        pdtrc,
        softmax,
        stdtrit,
        xlogy,
    )

    Kernel: Any
    KernelCache: Any
    _T = TypeVar("_T")

    class BaseEstimator:
        n_features_in_: int
        feature_names_in_: Any

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: object) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def __repr__(self, N_CHAR_MAX: int = 700) -> str: ...

    class ClassifierMixin:
        def score(self, X: object, y: object, sample_weight: object = None) -> float: ...

    class ClusterMixin:
        def fit_predict(self, X: Any, y: object = None, sample_weight: Any = None) -> Any: ...

    class DensityMixin: ...

    class TransformerMixin:
        def fit_transform(self, X: object, y: object = None, **fit_params: object) -> Any: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

    TransformerTags: Any

    def njit(*, cache: bool, **options: object) -> Callable[[Callable[..., Any]], Any]: ...
    def available_if(check: Callable[[Any], bool]) -> Callable[[_T], _T]: ...
    def check_classification_targets(y: object) -> None: ...
    def check_is_fitted(estimator: object, attributes: object = None) -> None: ...
    def clone(estimator: _T, *, safe: bool = True) -> _T: ...
    def column_or_1d(y: object, *, dtype: object = None, warn: bool = False) -> Any: ...
    def type_of_target(y: object, input_name: str = "") -> str: ...
    def validate_data(estimator: object, /, X: object = ..., y: object = ..., **check: object) -> Any: ...
    def _check_feature_names_in(
        estimator: object, input_features: object = None, *, generate_names: bool = True
    ) -> Any: ...
    def _check_sample_weight(sample_weight: object, X: object, **check: object) -> Any: ...

else:
    numpy, pandas = (LazyModule(name, [], []) for name in ("numpy", "pandas"))

    def __getattr__(name: str) -> Any:
        if name in _SPECIAL:
            return lambda *args, **how: _special(name)(*args, **how)
        if name in _DEFINED:
            _DEFINED[name]()
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _once(work: Callable[[], None]) -> Callable[[], None]:
    """Run work when it is first called, whichever thread calls first."""
    lock, done = RLock(), False

    def run() -> None:
        nonlocal done
        with lock:
            if not done:
                work()
                done = True

    return run


@_once
def _load_scikit_learn() -> None:
    with defer_imports(*_UNUSED):
        for module, names in _SCIKIT_LEARN.items():
            globals().update({name: getattr(importlib.import_module(module), name) for name in names})


@cache
def _special(name: str) -> Any:
    """Return a function of ``scipy.special``, which imports NumPy's Fortran tools and does not need them."""
    with defer_imports("numpy.f2py"):
        return getattr(importlib.import_module("scipy.special"), name)


# -- Numba's kernels ---------------------------------------------------------------------------------------------------
@_once
def _define_kernels() -> None:
    """Load Numba, and define `njit` and the classes that change how it compiles and caches."""
    global Kernel, KernelCache, njit
    with defer_imports("yaml", "importlib.metadata"):
        import numba
        from numba.core.caching import FunctionCache
        from numba.core.registry import CPUDispatcher
        from numba.core.runtime import rtsys

    class KernelCache(FunctionCache):
        """A kernel on disk; it is looked for when it is called, and loaded without Numba's compiler."""

        folders: ClassVar[list[Any]] = []  # where no other can be written

        def __init__(self, function: Callable[..., Any]):
            self._function = function

        def load_overload(self, sig: object, target_context: object) -> Any:
            """Load a kernel; None where there is none."""
            try:
                super().__init__(self._function)
            except RuntimeError:  # Numba finds no folder that it can write
                from tempfile import TemporaryDirectory

                self.folders.append(TemporaryDirectory(prefix="gibbsian-kernels-"))
                numba.config.CACHE_DIR = self.folders[-1].name  # type: ignore[attr-defined]
                super().__init__(self._function)
            rtsys.initialize(target_context)  # what kernels allocate memory with
            # kernels name the modules of what they call, and need nothing of them
            with self._guard_against_spurious_io_errors(), defer_imports("numba.np.arrayobj", "numba.np.arraymath"):
                return self._load_overload(sig, target_context)

    class Kernel(CPUDispatcher):
        """A function that is compiled when it is called, from Python or from other kernels."""

        compile = gc_disabled()(CPUDispatcher.compile)

        def _compilation_chain_init_hook(self) -> None:
            """Look for no packages that extend Numba: kernels need none."""

        @cached_property
        def inner(self) -> Any:
            """The same for calls from other kernels: without a way in from Python it takes half of the time."""
            return CPUDispatcher(self.py_func, targetoptions=self.targetoptions | {"no_cpython_wrapper": True})

        @property
        def _numba_type_(self) -> Any:
            """What other kernels see."""
            return self.inner._type

    def njit(*, cache: bool, **options: object) -> Callable[[Callable[..., Any]], Any]:
        """Compile a function when it is called, as ``numba.njit`` does; with `cache`, look on disk first.

        Numba keeps compiled kernels in the folder that ``NUMBA_CACHE_DIR`` names, else beside their sources, else in
        the user's cache folder. Where none of them can be written, they are kept until the process ends.
        """
        options |= {"nopython": True, "no_cfunc_wrapper": True}  # a copy for callers in C takes a tenth of the time

        def decorate(function: Callable[..., Any]) -> Any:
            kernel: Any = Kernel(function, targetoptions=options)
            if cache:
                kernel._cache = KernelCache(function)
            return kernel

        return decorate


_DEFINED = {name: _load_scikit_learn for names in _SCIKIT_LEARN.values() for name in names}
_DEFINED |= dict.fromkeys(("Kernel", "KernelCache", "njit"), _define_kernels)
