"""Reports of every estimator."""

from __future__ import annotations

import os
from typing import Any

from gibbsian.estimators.frames import is_frame
from gibbsian.registry import Registry
from gibbsian.startup import check_is_fitted

# functions that write a report on an estimator
REPORTS = Registry("report", "gibbsian.report", "REPORTS")


class Reported:
    """Estimators that write a report on themselves."""

    def report(self, path: str | os.PathLike[str], data: Any = None, y: object = None, random_state: int = 0) -> None:
        """Write a report: one page in one file that opens in any browser, without a network.

        It says what was fitted and whether to trust it, shows what interacts and how strongly, in pictures and in
        words, and which rows and cells are unusual.

        Parameters
        ----------
        path : path
            Where to write it, such as ``report.html``.
        data : array, frame, path or Dataset, default=None
            The rows of the fit, or others. Without them what needs rows is left out.
        y : array, default=None
            The labels, of a classifier.
        random_state : int, default=0
            Of what is chosen at random: rows held out, hidden cells, samples of many rows.

        Examples
        --------
        >>> import tempfile, pathlib, gibbsian as gb
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
        >>> rows = [[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]]
        >>> gb.BoltzmannMachine().fit(rows).report(path, rows)
        >>> "<svg" in path.read_text(encoding="utf-8")
        True
        """
        check_is_fitted(self)
        REPORTS.factory("page")(path, self, data, y, seed=random_state)

    def report_parts(self: Any, data: Any, y: Any) -> tuple[Any, Any]:
        """Return the machine that a report is about, and the rows as it reads them."""
        if isinstance(data, str | os.PathLike) or is_frame(data):
            data = self.read(data)
        return self, None if data is None else self._read(data)
