"""From a model file to a fitted estimator."""

from __future__ import annotations

import os

from gibbsian.estimators.boltzmann_machine import BoltzmannMachine
from gibbsian.storage import read_model


def load(path: str | os.PathLike[str]) -> BoltzmannMachine:
    """Read a model file and return the fitted machine.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> bm.save(path)
    >>> bool((gb.load(path).model_.theta == bm.model_.theta).all())
    True
    """
    return BoltzmannMachine.from_stored(read_model(path))
