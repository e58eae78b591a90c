"""Named parts, found by dropping a file into a folder.

A package (``learning/``, ``sampling/`` ...) owns a `Registry`. Its modules register what they offer. Names are found by
reading the files, so that a module is imported only when something in it is asked for. The command line, the error
messages and the contract tests read from here: a new file is listed, documented and tested without editing a list.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from gibbsian.errors import ArgumentError
from gibbsian.startup import load_module

F = TypeVar("F", bound=Callable[..., object])


class Registry:
    """Factories of one kind by name.

    Parameters
    ----------
    kind : str
        The word used in messages, for example ``"learner"``.
    package : str
        The package whose modules register themselves here.
    variable : str
        What the registry is called in those modules.

    Examples
    --------
    >>> from gibbsian.learning import LEARNERS
    >>> "mple" in LEARNERS.names()
    True
    """

    def __init__(self, kind: str, package: str, variable: str):
        self.kind = kind
        self.package = package
        self.variable = variable
        self._factories: dict[str, Callable[..., Any]] = {}
        self._traits: dict[str, dict[str, object]] = {}
        self._found: dict[str, tuple[str, str]] | None = None

    def register(self, name: str, **traits: object) -> Callable[[F], F]:
        """Return a decorator that files a class or function under `name`.

        `traits` say what may be expected of it (``consistent=False``, ``stochastic=True``), so that contract tests
        ask of each part what it promises.
        """

        def decorate(factory: F) -> F:
            if name in self._factories:
                raise ValueError(f"two {self.kind}s are registered as {name!r}")
            self._factories[name] = factory
            factory.registered_name = name  # type: ignore[attr-defined]
            self._traits[name] = traits
            return factory

        return decorate

    def names(self) -> list[str]:
        """List every registered name."""
        return sorted({*self._index(), *self._factories})

    def abouts(self) -> dict[str, str]:
        """Return what each part says of itself in a line (its trait ``about``), without importing any."""
        return {name: about for name, (_, about) in sorted(self._index().items())}

    def create(self, name: str, **settings: object) -> Any:
        """Build the part called `name`."""
        factory = self.factory(name)
        if settings:
            check_settings(f"{self.kind}={name!r}", factory, settings)
        return factory(**settings)

    def factory(self, name: str) -> Callable[..., Any]:
        """Return the class or function registered as `name`."""
        if name in self._index():  # also where it is filed already: another thread may be halfway through its module
            load_module(self._index()[name][0])
        if name not in self._factories:
            raise ArgumentError("is not known", f"use one of {', '.join(self.names())}", argument=self.kind, value=name)
        return self._factories[name]

    def trait(self, name: str, trait: str, default: object = None) -> Any:
        """Return what a part promises, or `default` where it is silent."""
        self.factory(name)
        return self._traits[name].get(trait, default)

    def of(self, family: object) -> Any:
        """Return the entry that serves a family: that of the first class along its MRO which has one.

        A class goes by the `registered_name` in its own body, which `register` writes; shared bases write theirs. Only
        the module that serves is imported, so families do not know who serves them.

        Examples
        --------
        >>> import gibbsian as gb
        >>> from gibbsian.sampling.base import SWEEPS
        >>> SWEEPS.of(gb.PairwiseFamily(gb.graphs.complete(2))).__name__
        'spin_kernel'
        """
        if name := self.name_for(family):
            return self.factory(name)
        raise ArgumentError(f"model is a {type(family).__name__}, for which there is no {self.kind}")

    def name_for(self, family: object) -> str:
        """Return the name of the entry that serves a family, empty where there is none."""
        index, names = self._index(), (vars(kind).get("registered_name") for kind in type(family).__mro__)
        return next((name for name in names if name in index or name in self._factories), "")

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def _index(self) -> dict[str, tuple[str, str]]:
        """Return the module of each name and what it says of itself, read from all sources in the package."""
        if self._found is None:
            about = r'(?:[^)"]*\babout="([^"]*)")?'
            registration = re.compile(rf'^@{self.variable}\.register\(\s*"([^"]+)"{about}', re.MULTILINE)
            found = {}
            for folder in map(Path, importlib.import_module(self.package).__path__):
                for file in sorted(folder.rglob("*.py")):
                    module = ".".join((self.package, *file.relative_to(folder).with_suffix("").parts))
                    for name, line in registration.findall(file.read_text(encoding="utf-8")):
                        found[name] = module, line
            self._found = found  # only when it is full: other threads read it too
        return self._found


def check_settings(what: str, factory: Callable[..., Any], settings: Collection[str]) -> None:
    """Raise unless a class or function takes all these settings by name.

    Examples
    --------
    >>> from gibbsian.learning import LEARNERS
    >>> from gibbsian.registry import check_settings
    >>> check_settings("smci", LEARNERS.factory("smci"), {"regions": 2})
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: smci has no setting regions: it takes l1, l2, ..., region
    """
    known = _known_settings(factory)
    if known is None:
        return
    if unknown := [name for name in settings if name not in known]:
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        raise ArgumentError(f"{what} has no setting {', '.join(unknown)}", f"{takes}")


@lru_cache(maxsize=256)
def _known_settings(factory: Callable[..., Any]) -> list[str] | None:
    """What a class or function takes by name, None where anything; to look at a signature costs more than many fits."""
    parameters = inspect.signature(factory).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return [parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_POSITIONAL]
