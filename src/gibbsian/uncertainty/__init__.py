"""How well the parameters are known: standard errors, confidence intervals, bootstrap.

Depends on estimators and what stands below them, because an answer needs to know how a machine was fitted.
"""

from gibbsian.uncertainty.bootstrap import BootstrapResult, bootstrap
from gibbsian.uncertainty.standard_errors import (
    StandardErrors,
    check_same_data,
    confidence_intervals,
    standard_errors,
)
from gibbsian.uncertainty.tables import ConfidenceIntervals

__all__ = [
    "BootstrapResult",
    "ConfidenceIntervals",
    "StandardErrors",
    "bootstrap",
    "check_same_data",
    "confidence_intervals",
    "standard_errors",
]
