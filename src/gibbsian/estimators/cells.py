"""Cells of rows given the rest of their row: what is missing filled, what is shown judged, columns predicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.answers.decisions import column_probabilities, decided_codes, joint_probabilities
from gibbsian.estimators.frames import is_list, like_frame, stacked
from gibbsian.estimators.reading import ReadsTables, on_own_device
from gibbsian.estimators.row_questions import filled_frame, keeps_columns, unusual_cells, unusual_rows
from gibbsian.settings import Setting, check_value
from gibbsian.startup import check_is_fitted

_N_LISTED = Setting("How many.", "whole", low=1)


class FillsCells(ReadsTables):
    """What every fitted estimator says of single cells."""

    @on_own_device
    def predict_proba(self, X: Any, columns: Any = None, joint: bool = False) -> Any:
        """Return, for every cell, the probability of its upper value given the present cells of its row.

        Present cells give 0 or 1; missing ones their conditional probability, exact where possible, else by Gibbs
        sampling. Variables with many values give the probability of each, an array of shape (rows, variables, values)
        with zeros after the last value of a variable that has fewer.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        columns : str, int or list, default=None
            Columns to be predicted from the present cells of all others, whatever X has there (YK15): then the
            probabilities of the values of one column, an array of shape (rows, values), or a list of such arrays.
        joint : bool, default=False
            The probabilities of all combinations of the values of these columns instead, the last column's changing
            fastest.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.predict_proba([[1, np.nan]]).round(3)
        array([[1.   , 0.667]])
        >>> bm.predict_proba([[1, -1]], columns="x1").round(3)
        array([[0.333, 0.667]])
        """
        data = self._read(X)
        if columns is None:
            return self._answers.cell_probabilities(data, self._rng())[data.row_of]
        places, unseen = data.places(columns), data.hide(columns)
        if joint:
            return joint_probabilities(self._answers, unseen, places)[unseen.row_of]
        found = column_probabilities(self._answers, unseen, places, self._rng())
        each = [probabilities[unseen.row_of] for probabilities in found]
        return each if is_list(columns) else each[0]

    @on_own_device
    def predict(self, X: Any, columns: Any = None, losses: Any = None) -> Any:
        """Return the most probable value of what a row does not show: X with its missing cells filled.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        columns : str, int or list, default=None
            Columns to be predicted from the present cells of all others: then the values of these alone, an array of
            shape (rows,) for one column and (rows, columns) for a list.
        losses : matrix, list of matrices or "joint", default=None
            What a decision costs: the entry (i, j) is the loss where the value number i is true and j is decided, for
            each column its own matrix; the values of least expected loss are decided (the Bayes decision, YK15). By
            default 0 for the true value and 1 for others, in every column by itself (the Hamming loss); "joint" is 0
            where all columns are true and else 1, for which the most probable combination is decided.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.predict([[1, np.nan]])
        array([[1, 1]], dtype=int8)
        >>> bm.predict([[1, np.nan]], columns="x1", losses=[[0, 5], [1, 0]])         # a wrong 1 costs five times more
        array([-1])
        """
        if columns is None:
            return self.impute(X)
        data = self._read(X)
        places, unseen = data.places(columns), data.hide(columns)
        codes = decided_codes(self._answers, unseen, places, losses, self._rng())[unseen.row_of]
        predicted = [np.array(self.coding_.labels_of(j))[codes[:, k]] for k, j in enumerate(places)]
        return stacked(predicted) if is_list(columns) else predicted[0]

    @on_own_device
    def impute(self, X: Any) -> Any:
        """Return X with missing values at the most probable one and missing numbers at their mean, each by itself.

        A cell is filled given the present cells of its row. Frames come back as frames, with the types of their
        columns; columns that the model does not know stay as they are.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> bm = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.impute([[1, np.nan]])
        array([[1, 1]], dtype=int8)
        """
        check_is_fitted(self)
        if hasattr(X, "iloc") and keeps_columns(self, list(map(str, X.columns))):
            return filled_frame(self, X)
        data = self._read(X)
        filled = self.coding_.decode(self._answers.completed_states(data, self._rng()))
        return like_frame(filled[data.row_of], X, self.names_)

    @on_own_device
    def unusual(self, X: Any, n: int = 20, cells: bool = False) -> Any:
        """Return the least probable rows of a table, or its least probable cells, as a frame, the least first.

        The order of rows needs no log Z, so it is there for models of any size. Missing cells and hidden units are
        summed out; columns that the model does not know, such as identifiers, are carried along. Files and large
        tables are gone through a part at a time.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        n : int, default=20
            How many.
        cells : bool, default=False
            Single cells instead of rows: those whose value is least probable given the other present cells.

        Returns
        -------
        pandas.DataFrame
            Of rows: ``row`` (counted from 0), ``log_weight`` (``log P + log Z``), ``below_mean`` (how far that is
            below the mean of all rows, in nats) and, where columns have values, the least probable cell. Of a cell:
            ``column``, ``value``, ``probability`` given the rest of the row, and the ``likelier`` value.

        Examples
        --------
        >>> import gibbsian as gb
        >>> rows = [[1, 1]] * 5 + [[-1, -1]] * 5 + [[1, -1], [-1, 1]]
        >>> bm = gb.BoltzmannMachine().fit(rows)
        >>> bm.unusual(rows, n=2)[["row", "column", "value", "likelier"]].values.tolist()
        [[10, 'x0', 1, -1], [11, 'x0', -1, 1]]
        """
        check_value("n", n, _N_LISTED)
        check_is_fitted(self)
        return (unusual_cells if cells else unusual_rows)(self, X, int(n))
