"""What the library takes from scikit-learn, without packages that its base loads and hardly needs.

They are half of the time of a first fit in a new process, and are loaded when something in them is asked for.
"""

from typing import Any

from gibbsian.errors import CellTypeError, DataError
from gibbsian.lazy import put_off

SPARSE = ("scipy.sparse.linalg:cg,LinearOperator", "scipy.sparse.csgraph:laplacian")
NARWHALS = ("narwhals", "narwhals.stable", "narwhals.stable.v2")
OTHERS = ("scipy.stats", "scipy.special", "scipy.linalg", "pandas", "asyncio", "psutil:Process")

with put_off("numpy.f2py", "numpy.testing", "numpy.ma", *OTHERS, *SPARSE, *NARWHALS):
    from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, DensityMixin, TransformerMixin, clone
    from sklearn.utils import TransformerTags
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.validation import (
        _check_feature_names_in,
        _check_sample_weight,
        check_is_fitted,
        column_or_1d,
    )
    from sklearn.utils.validation import validate_data as _validated

# What a sentence repeats of an error at most: some print the table.
MOST_WORDS = 600


def validate_data(estimator: Any, *tables: Any, **how: Any) -> Any:
    """Check a table as scikit-learn does, in its words and with errors of the library."""
    try:
        return _validated(estimator, *tables, **how)
    except TypeError as error:  # the words of NumPy go on for long
        raise CellTypeError(" ".join(str(error).split()).partition(". ")[0], "give numbers") from None
    except (ValueError, OverflowError) as error:
        raise DataError(" ".join(str(error).split())[:MOST_WORDS]) from None


__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "ClusterMixin",
    "DensityMixin",
    "TransformerMixin",
    "TransformerTags",
    "_check_feature_names_in",
    "_check_sample_weight",
    "available_if",
    "check_classification_targets",
    "check_is_fitted",
    "clone",
    "column_or_1d",
    "type_of_target",
    "validate_data",
]
