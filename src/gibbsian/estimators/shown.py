"""How an estimator shows itself: in a line, as HTML, and its parameters as tables with names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gibbsian.data.hidden_columns import hidden_names
from gibbsian.display import facts_in_html
from gibbsian.estimators.reading import ReadsTables
from gibbsian.models.interactions import Interactions
from gibbsian.startup import BaseEstimator, check_is_fitted, pandas


class ShowsParameters(ReadsTables):
    """What a reader is shown of any estimator; a family names its own parameters."""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # scikit-learn's own argument
        written = BaseEstimator.__repr__(self, N_CHAR_MAX)
        return f"{written}  # {self.result_.reason}" if self._is_fitted else written

    def _html_repr(self) -> str:
        """Return the settings that were given, and whether and how it was fitted."""
        fitted = {**self.figures(), **self.result_._facts()} if self._is_fitted else {}
        return facts_in_html(BaseEstimator.__repr__(self), fitted or {"fit": "not fitted"})

    def figures(self) -> dict[str, Any]:
        """Return a few numbers that say what the fitted model is, by name.

        Examples
        --------
        >>> import gibbsian as gb
        >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).figures()
        {'variables': 2, 'couplings': 1}
        """
        return {"columns": len(self.names_), "parameters": self.model_.theta.size}

    def statistics(self) -> dict[str, Any]:
        """Return tables that name the entries of ``model_.theta`` (and of `expect`), one after the other.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
        >>> {title: table.values.tolist() for title, table in bm.statistics().items()}
        {'means': [['x0'], ['x1']], 'pairs': [['x0', 'x1']]}
        """
        return {"statistics": pandas.DataFrame({"statistic": range(self.model_.theta.size)})}

    def interactions(self) -> Interactions:
        """Return the network that was learned: columns and hidden units by name, and what interacts how strongly.

        Examples
        --------
        >>> import gibbsian as gb
        >>> bm = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
        >>> bm.interactions().strongest(1).table.round(3).values.tolist()                     # log(2) / 4
        [[('x0', 'x1'), 2, 0.173]]
        """
        check_is_fitted(self)
        found = self.reported_model.interactions()
        hidden = hidden_names(self.names_, found.n_variables - len(self.names_), found.hidden)
        return replace(found, names=(*self.names_, *hidden))

    def tables(self, n: int = 10) -> dict[str, Any]:
        """Return the parameters as tables by title, at most `n` of those that can be many, the strongest first.

        Examples
        --------
        >>> import gibbsian as gb
        >>> list(gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).tables())
        ['biases', 'strongest couplings']
        """
        tables, start, theta = {}, 0, self.reported_model.theta
        for title, named in self.statistics().items():
            values = theta[start : start + len(named)]
            strongest = np.argsort(-np.abs(values), kind="stable")[:n]
            tables[title] = named.iloc[strongest].assign(parameter=values[strongest]).reset_index(drop=True)
            start += len(named)
        return tables
