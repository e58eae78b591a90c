"""Gaussian visible units in standard units: a fit's steps then do not depend on the scale of the columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, cast

import numpy as np

from gibbsian.arrays import Floats, Mask
from gibbsian.data import Dataset
from gibbsian.data.numbers import is_sparse
from gibbsian.errors import ArgumentError, DataError, DegenerateDataWarning, MissingValuesError, notify
from gibbsian.models.base import Family, Model, Units
from gibbsian.models.layers.units import GaussianUnits, as_units
from gibbsian.resources import require_memory

# Least residual deviation, as a share of the column's own: columns that determine each other would have none.
SMALLEST_RESIDUAL = 0.1
# Columns of real numbers that vary by less cannot be measured in their own deviations.
SMALLEST_SPREAD = 1e-100
# Squares of larger real numbers, times others, leave the range of float64.
LARGEST_NUMBER = 1e100
DEVIATIONS = ("residual", "plain")
# Distinct rows of a cluster from which units and deviations are taken.
ROWS_OF_A_CLUSTER = 2**14


F = TypeVar("F", bound=Family)


class Rescalable(Protocol):
    """A family of layers over real numbers."""

    def rescaled(self, theta: Floats, centres: Floats, spreads: Floats) -> object:
        """Return the model over ``v = centres + spreads u`` of one over real numbers u."""


def _rescaled(model: Model[F], centres: Floats, spreads: Floats) -> Model[F]:
    return cast("Model[F]", cast("Rescalable", model.family).rescaled(model.theta, centres, spreads))


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """Where the columns of real numbers lie and how wide they are; a constant column has spread one."""

    centres: Floats
    spreads: Floats

    @classmethod
    def of(cls, data: Dataset) -> ColumnScale:
        """Measure the columns of data."""
        data = _here(data)
        centres, spreads = _centres_and_spreads(data)
        constant = _are_constant(data, spreads)
        scale = cls(np.where(constant, data.states[0], centres), np.where(constant, 1.0, spreads))
        narrowest = int(scale.spreads.argmin())
        if scale.spreads[narrowest] < SMALLEST_SPREAD:
            raise DataError(
                f"column {data.names[narrowest]!r} varies by {scale.spreads[narrowest]:.1g} only, which has no square",
                "multiply it by a large number",
            )
        return scale

    def standard(self, data: Dataset) -> Dataset:
        """Return data in standard units."""
        if data.on_cluster:
            return data.map(self.standard)
        return replace(data, states=(data.states - self.centres) / self.spreads)

    def to_data(self, model: Model[F]) -> Model[F]:
        """Return the model over the data of one over standard units."""
        return _rescaled(model, self.centres, self.spreads)

    def from_data(self, model: Model[F]) -> Model[F]:
        """Return the model over standard units of one over the data."""
        return _rescaled(model, -self.centres / self.spreads, 1.0 / self.spreads)


def as_visible(data: Dataset) -> Dataset:
    """Return data as visible units take them: written out, and without missing real numbers.

    The hidden units are not independent given some of the real numbers of a row: these cannot be integrated out.
    """
    if data.on_cluster:
        if data.has_missing and data.variables.real:
            raise MissingValuesError(
                f"{data.n_missing} cells are missing, but Gaussian units need every number",
                "fill them or leave the rows out",
            )
        return data
    if is_sparse(data.states):
        needed = 8 * np.prod(data.states.shape, dtype=float)
        require_memory(needed, f"a dense copy of {data.states.shape}", "give fewer rows at once")
        data = replace(data, states=data.states.toarray())
    if data.missing is not None and data.variables.real:
        row, column = np.argwhere(data.missing[data.row_of])[0]
        raise MissingValuesError(
            f"row {row}, column {data.names[column]!r} holds NaN, but Gaussian units need every number",
            "fill it or leave the row out",
        )
    if data.variables.real and (too_large := np.abs(data.states) > LARGEST_NUMBER).any():
        row, column = np.argwhere(too_large)[0]
        raise DataError(
            f"column {data.names[column]!r} holds {data.states[row, column]:g}, which has no square",
            "divide it by a large number",
        )
    return data


def visible_layer(data: Dataset, deviations: object) -> Units:
    """Return the visible layer of data; `deviations` are for columns of real numbers."""
    if data.variables.real:
        return gaussian_layer(data, deviations)
    domain, sizes = data.coding.domain, data.variables.sizes
    return as_units(domain.name, data.n_variables, **({} if domain.two_valued else {"sizes": sizes}))


def gaussian_layer(data: Dataset, deviations: object) -> GaussianUnits:
    """Return the visible layer of columns of real numbers."""
    data, widths = _here(data), checked_deviations(deviations, data.n_variables)
    if widths is None:
        scale = ColumnScale.of(data)
        constant = [name for name, flat in zip(data.names, constant_columns(data), strict=True) if flat]
        if constant:
            notify(
                DegenerateDataWarning(
                    "columns that never vary have no deviation to estimate and get 1 "
                    f"({', '.join(map(repr, constant[:5]))}{', ...' * (len(constant) > 5)})",
                    "drop them, or give `deviations`",
                )
            )
        widths = residual_deviations(data) if deviations == "residual" else scale.spreads
    return GaussianUnits(data.n_variables, tuple(widths))


def checked_deviations(deviations: object, n_columns: int | None = None) -> Floats | None:
    """Return deviations given as numbers, one for each column, and None where they are to be estimated."""
    if isinstance(deviations, str) and deviations in DEVIATIONS:
        return None
    try:
        given = None if deviations is None or isinstance(deviations, str) else np.asarray(deviations, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
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


def constant_columns(data: Dataset) -> Mask:
    """Say of each column whether it never varies."""
    return _are_constant(data, _centres_and_spreads(data)[1])


def residual_deviations(data: Dataset) -> Floats:
    """Return the standard deviation of what the other columns leave of each, as a linear regression finds it.

    Hidden units explain what columns have in common, so this is what is left to a visible unit given them. The
    covariance is shrunk (Ledoit and Wolf 2004), and no deviation is below a tenth of the column's own. A constant
    column has deviation one.
    """
    from sklearn.covariance import ledoit_wolf

    scale = ColumnScale.of(data)
    varies = ~constant_columns(data)
    shares = np.ones(len(varies))
    if varies.any():
        # rows one by one, because the shrinkage depends on their number
        row_shares = _row_shares(data)
        standard = scale.standard(data).states[data.row_of][:, varies] * np.sqrt(row_shares * data.n_rows)[:, None]
        covariance, _ = ledoit_wolf(standard, assume_centered=True)
        residual = 1.0 / np.sqrt(np.diagonal(np.linalg.pinv(covariance, hermitian=True)))
        shares[varies] = np.clip(residual, SMALLEST_RESIDUAL, 1.0)
    return shares * scale.spreads


def _here(data: Dataset) -> Dataset:
    """Return data as they are, and of rows on a cluster some, always the same."""
    return data.at_most(ROWS_OF_A_CLUSTER, np.random.default_rng(0)) if data.on_cluster else data


def _row_shares(data: Dataset) -> Floats:
    weights = np.ones(data.n_rows) if data.row_weights is None else data.row_weights
    shares: Floats = weights / weights.sum()
    return shares


def _centres_and_spreads(data: Dataset) -> tuple[Floats, Floats]:
    shares = data.weights / data.weights.sum()
    centres = shares @ data.states
    apart = data.states - centres
    farthest = np.abs(apart).max(axis=0)
    farthest = np.where(farthest > 0, farthest, 1.0)  # squares of tiny numbers would vanish
    return centres, farthest * np.sqrt(shares @ np.square(apart / farthest))


def _are_constant(data: Dataset, spreads: Floats) -> Mask:
    # rounding leaves a constant column a spread of its last digits
    constant: Mask = spreads <= 1e-12 * np.abs(data.states).max(axis=0)
    return constant
