"""Named errors and warnings.

Every message is one sentence that names the column, argument or file and says what to do about it.
This module imports nothing, so that any other may use it.
"""


class GibbsianError(Exception):
    """Base class of every error that gibbsian raises on purpose.

    Examples
    --------
    >>> from gibbsian.errors import GibbsianError, DataError
    >>> issubclass(DataError, GibbsianError) and issubclass(DataError, ValueError)
    True
    """


class DataError(GibbsianError, ValueError):
    """The data cannot be used as it is (a bad column, row, value or weight)."""


class CodingError(DataError):
    """The values are not the ones of the coding that was declared, recognised or fitted."""


class ConstantColumnError(DataError):
    """A column has one value only, so its parameters have no finite estimate."""


class MissingValuesError(DataError):
    """Missing cells reached something that cannot handle them."""


class MaximumDoesNotExistError(DataError):
    """The likelihood has no finite maximum: some parameters would run to infinity."""


class ArgumentError(GibbsianError, ValueError):
    """An argument has a value that cannot be used."""


class GraphError(ArgumentError):
    """A graph is malformed or names a node that does not exist."""


class TooExpensiveError(GibbsianError, ValueError):
    """The predicted time or memory is beyond the limit; nothing was allocated."""


class FileFormatError(GibbsianError, ValueError):
    """A file is truncated, foreign, or written by a newer version."""


class StorageError(GibbsianError, OSError):
    """A file could not be written; what stood there before is unchanged."""


class GibbsianWarning(UserWarning):
    """Base class of every warning that gibbsian gives.

    Examples
    --------
    >>> from gibbsian.errors import ConvergenceWarning, GibbsianWarning
    >>> issubclass(ConvergenceWarning, GibbsianWarning)
    True
    """


class ConvergenceWarning(GibbsianWarning):
    """A fit stopped before its gradient was small enough."""


class DegenerateDataWarning(GibbsianWarning):
    """Nearly constant or duplicate columns: the fit is possible but poorly determined."""


class MaximumDoesNotExistWarning(GibbsianWarning):
    """The parameters seem to run to infinity, or do so up to a penalty."""


class MixingWarning(GibbsianWarning):
    """Monte Carlo chains disagree or are too short for the error they report."""


class MissingValuesWarning(GibbsianWarning):
    """Rows or cells were left out because they carry no information."""
