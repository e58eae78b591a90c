"""The first run on a machine compiles kernels, which takes a while: say so."""

from __future__ import annotations

import functools
from typing import Any

from gibbsian.cli.guard import say


@functools.cache
def announce_compilation() -> Any:
    """From now on, print a line when the first kernel of this process has to be compiled.

    Numba itself reports each compilation as it begins. Kernels that come from its cache on disk are not compiled, so
    then nothing is printed. Returns the listener; asking again returns the same one.
    """
    from numba.core import event

    class Announcer(event.Listener):
        announced = False

        def on_start(self, event: event.Event) -> None:
            module = getattr(event.data["dispatcher"].py_func, "__module__", "")
            if not self.announced and module.startswith("gibbsian."):
                self.announced = True
                say("compiling kernels (first run only) ...")

        def on_end(self, event: event.Event) -> None:
            pass

    listener = Announcer()
    event.register("numba:compile", listener)
    return listener
