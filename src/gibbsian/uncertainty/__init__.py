"""Uncertainty of fitted parameters: standard errors, confidence intervals, bootstrap.

Depends on estimators, because errors depend on the learner and its penalties.
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
