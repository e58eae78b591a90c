"""Fitted estimators in files: what is kept of one, and how it is made of that again."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np

from gibbsian.errors import FileFormatError
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.reading import ReadsTables
from gibbsian.learning.result import FitResult, HeldOut
from gibbsian.models.file_parts import reject
from gibbsian.registry import check_settings
from gibbsian.settings import check
from gibbsian.startup import check_is_fitted
from gibbsian.storage import StoredModel, write_model


class KeptInFiles(ReadsTables):
    """Estimators that can be written to a file and read again."""

    registered_name: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file: whole or not at all, and no pickle; `gibbsian.load` reads it.

        Examples
        --------
        >>> import tempfile, pathlib, gibbsian as gb
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
        >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).save(path)
        >>> gb.load(path).names_
        ('x0', 'x1')
        """
        check_is_fitted(self)
        write_model(path, self.to_stored())

    def to_stored(self) -> StoredModel:
        """Return what a file holds of the fitted estimator."""
        result = self.result_
        story = {name: getattr(result, name) for name in ("converged", "reason", "penalised", "held_out", "warning")}
        return StoredModel(
            self.model_,
            self.coding_,
            self.names_,
            plain_settings(self),
            {**result.provenance, **story},
            result.trace,
            result.moments,
            result.history,
            type(self).registered_name,
            carry=self._carried(),
        )

    def _carried(self) -> dict[str, np.ndarray]:
        """Return what of the learner's state a file keeps, for `partial_fit` after a load."""
        return {}

    def _resume(self, carried: dict[str, np.ndarray]) -> None:
        """Go on from what a file kept."""

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Rebuild a fitted estimator from what a file holds, with settings that it may have."""
        check_settings("settings", cls, stored.settings)
        provenance = dict(stored.provenance)
        held_out = provenance.pop("held_out", None)
        result = FitResult(
            stored.model,
            stored.trace,
            provenance.pop("converged", False),
            provenance.pop("reason", ""),
            provenance,
            stored.moments,
            provenance.pop("penalised", False),
            None if held_out is None else HeldOut(*held_out),
            stored.history,
            warning=provenance.pop("warning", ""),
        )
        estimator = cls(**{**cls._structure_of(stored.model, stored.coding), **stored.settings})
        check(estimator)
        estimator._set_columns(stored.names)
        fitted = estimator._set_fitted(result, stored.coding, stored.names)
        if stored.carry:
            fitted._resume(stored.carry)
        return fitted

    @classmethod
    def _structure_of(cls, model: Any, coding: Any) -> dict[str, object]:
        """Return the settings that a model and its coding stand for."""
        return {}


def plain_settings(estimator: Any) -> dict[str, object]:
    """Return the settings that a file's header can hold; structure and labels stand there as model and coding.

    The device belongs to the computer: a file opens where there is none.
    """
    settings = estimator.get_params(deep=False).items()
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings}
    kept = {name: value for name, value in plain.items() if name not in ("device", "precision")}
    return {name: value for name, value in kept.items() if isinstance(value, str | int | float | bool)}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model file and return the fitted estimator that wrote it.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> bm.save(path)
    >>> bool((gb.load(path).model_.theta == bm.model_.theta).all())
    True
    """
    from gibbsian.storage import read_model
    from gibbsian.storage.container import reading

    stored = read_model(path)
    if not stored.estimator:
        kind = type(stored.model.family).__name__
        raise FileFormatError(
            f"{path} holds a model of a {kind}, which no estimator learned", "read it with gibbsian.storage.read_model"
        )
    with reading(path):
        if stored.coding is None:
            reject("coding", "is none, but an estimator has one")
        estimator: Any = ESTIMATORS.factory(stored.estimator)
        return estimator.from_stored(stored)
