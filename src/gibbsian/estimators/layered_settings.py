"""Settings of machines made of layers: refused by name before any work is done, and held to what was learned."""

from __future__ import annotations

from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from gibbsian.errors import ArgumentError, StorageError
from gibbsian.models.parameters import check_temperature, check_whole_number
from gibbsian.storage import Checkpoint

PRECISIONS = ("float64", "float32")
DEVIATIONS = ("residual", "plain")
NUMBERS = ("learning_rate", "momentum", "l1", "l2", "temperature", "held_out")


def check_layered_settings(machine: Any) -> None:
    """Refuse settings that no fit can use, by name, before they meet any arithmetic.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.estimators.layered_settings import check_layered_settings
    >>> check_layered_settings(gb.RestrictedBoltzmannMachine(n_chains=2.5))
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: n_chains=2.5 must be a whole number
    """
    for name in ("batch_size", "n_iter"):
        check_count(machine, name, 1)
    for name in ("n_steps", "n_chains"):
        if getattr(machine, name) is not None:
            check_whole_number(name, getattr(machine, name))
    for name in NUMBERS:
        value = getattr(machine, name)
        if not isinstance(value, Real) or isinstance(value, bool):
            raise ArgumentError(f"{name}={value!r} must be a number")
    for name in ("centred", "monitor"):
        value = getattr(machine, name, True)  # deep machines have no monitor
        if not isinstance(value, bool | np.bool_):
            raise ArgumentError(f"{name}={value!r} must be True or False")
    if not isinstance(machine.verbose, Integral | np.bool_):
        raise ArgumentError("must be a whole number, 0 for silence", argument="verbose", value=machine.verbose)
    check_temperature(machine.temperature)
    precision(machine.dtype)
    check_deviations(machine.deviations)
    _check_folder(machine.checkpoint)


def check_count(machine: Any, name: str, least: int) -> None:
    """Refuse a setting that is no whole number, or too small a one."""
    value = getattr(machine, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ArgumentError(f"{name}={value!r} must be a whole number, at least {least}")


def precision(dtype: Any) -> str:
    """Return the name of a precision given as a name or as a NumPy type.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.layered_settings import precision
    >>> precision(np.float32)
    'float32'
    """
    try:
        name = None if dtype is None else np.dtype(dtype).name
    except TypeError:
        name = None
    if name not in PRECISIONS:
        raise ArgumentError("must be 'float64' or 'float32'", argument="dtype", value=dtype)
    return name


def check_deviations(deviations: Any, n_columns: int | None = None) -> np.ndarray | None:
    """Return deviations given as numbers, one for each column, and None where they are to be estimated.

    Parameters
    ----------
    deviations : "residual", "plain", float or sequence of float
        As given to a machine.
    n_columns : int, optional
        Number of columns, once the data are read.

    Examples
    --------
    >>> from gibbsian.estimators.layered_settings import check_deviations
    >>> check_deviations(0.5, 3)
    array([0.5, 0.5, 0.5])
    >>> check_deviations([1.0, 2.0], 3)
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: deviations=[1.0, 2.0] must be 'residual', 'plain', a positive number, or one for each
    of 3 columns
    """
    if isinstance(deviations, str) and deviations in DEVIATIONS:
        return None
    try:
        given = None if deviations is None or isinstance(deviations, str) else np.asarray(deviations, dtype=np.float64)
    except (TypeError, ValueError):
        given = None
    fits = given is not None and given.ndim <= 1 and (n_columns is None or given.shape in ((), (n_columns,)))
    if given is None or not fits or not (np.isfinite(given) & (given > 0)).all():
        columns = "column" if n_columns is None else f"of {n_columns} columns"
        raise ArgumentError(
            f"must be 'residual', 'plain', a positive number, or one for each {columns}",
            argument="deviations",
            value=deviations,
        )
    return given if n_columns is None else np.broadcast_to(given, n_columns)


def _check_folder(checkpoint: Any) -> None:
    if checkpoint is None:
        return
    path = Path(checkpoint.path if isinstance(checkpoint, Checkpoint) else checkpoint)
    if not path.parent.is_dir():
        raise StorageError(
            "is in a folder that does not exist", "make it first", argument="checkpoint", value=str(path)
        )


def check_goes_on(machine: Any) -> None:
    """Refuse settings of a machine that goes on learning where they are not those of what it has learned.

    The layers, their temperature and their precision are those of the model.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.estimators.layered_settings import check_goes_on
    >>> rbm = gb.RestrictedBoltzmannMachine(2, random_state=0).fit([[0, 1], [1, 0]])
    >>> check_goes_on(rbm.set_params(temperature=2.0))
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: temperature=2.0 but the machine has learned with temperature=1.0: call fit, or
    partial_fit on a new machine
    """
    model = machine.model_
    visible, hidden = machine._visible_layer, machine._hidden_layer
    known = {
        "temperature": model.temperature,
        "visible": visible.kind,
        "hidden": hidden.kind,
        "dtype": model.theta.dtype.name,
    }
    asked = {name: getattr(machine, name) for name in known} | {"dtype": precision(machine.dtype)}
    for name, value in asked.items():
        if value not in ("auto", known[name]):
            raise ArgumentError(
                f"{name}={value!r} but the machine has learned with {name}={known[name]!r}",
                "call fit, or partial_fit on a new machine",
            )


def check_belongs_to_fit(machine: Any) -> None:
    """Refuse what a machine that has only seen chunks cannot heed.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.estimators.layered_settings import check_belongs_to_fit
    >>> check_belongs_to_fit(gb.RestrictedBoltzmannMachine(held_out=0.2))
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: held_out=0.2 is for fit, partial_fit learns from all rows of a chunk: leave it out
    """
    if machine.held_out:
        raise ArgumentError(
            "is for fit, partial_fit learns from all rows of a chunk",
            "leave it out",
            argument="held_out",
            value=machine.held_out,
        )
    if machine.checkpoint is not None:
        raise ArgumentError(
            "`checkpoint=` is for fit, a machine that learns by partial_fit is kept by save", "leave it out"
        )


__all__ = ["check_belongs_to_fit", "check_count", "check_deviations", "check_goes_on", "check_layered_settings"]
