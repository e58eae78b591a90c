"""Checks of numbers that models, samplers and expectations share."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.domain import DOMAINS, AnyDomain, Domain
from gibbsian.errors import ArgumentError


def checked_theta(theta: np.ndarray, size: int, what: str) -> np.ndarray:
    """Return the parameters as a read-only copy."""
    checked = np.array(theta, dtype=np.float64)
    if checked.shape != (size,):
        raise ArgumentError(f"theta has shape {checked.shape} but the model has {what}")
    if not np.isfinite(checked).all():
        raise ArgumentError("theta holds NaN or infinite values")
    checked.flags.writeable = False
    return checked


def change_of_domain(domain: AnyDomain, wanted: AnyDomain | str) -> tuple[Any, float, float]:
    """Return the wanted domain, and scale and shift in ``x = scale * y + shift`` with y in it."""
    target = DOMAINS[wanted] if isinstance(wanted, str) else wanted
    if target == domain:
        return target, 1.0, 0.0
    if not (isinstance(domain, Domain) and isinstance(target, Domain)):
        raise ArgumentError("only models of two-valued variables (spin, binary) can be converted")
    scale = domain.gap / target.gap
    return target, scale, domain.low - scale * target.low


def check_whole_number(name: str, value: Any, least: int = 1) -> None:
    """Raise unless a setting is a whole number, large enough."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise ArgumentError("must be a whole number", argument=name, value=value)
    if value < least:
        raise ArgumentError(f"must be at least {least}", argument=name, value=value)
