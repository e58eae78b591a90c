"""The pseudolikelihood of machines with hidden units (H06 section 7: "an important subject for future work").

Every conditional is a ratio of two evidences, of the row and of the row with one cell flipped: ``log P(x_i | the other
present cells) = -log(1 + exp(L(flipped) - L(x)))`` with ``L = log sum exp(-E/T)`` over all that is not present. Hidden
units and missing cells are summed out exactly, of a restricted machine in closed form; log Z cancels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data import Dataset
from gibbsian.data.distinct import distinct
from gibbsian.inference.posterior import posterior
from gibbsian.learning.objectives.base import Function, Objective
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.variables import require_two_values
from gibbsian.resources import require_memory
from gibbsian.settings import declared, number
from gibbsian.startup import expit


@declared(frozen=True)
class HiddenPseudolikelihood(Objective[DiscreteFamily]):
    """Minus the mean over rows of ``sum_i log P(x_i | the other present cells)``, hidden units summed out.

    Its gradient is a difference of clamped expectations: of rows as they are, and with one cell flipped. The truth is a
    minimum where the rows come from a machine of this kind and are many (each conditional is scored properly), but not
    the only one: it is not convex, and hidden units can be exchanged or turned over without changing the distribution.
    Cells may be missing completely at random: every term is a conditional likelihood still.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 25
    >>> machine = gb.HiddenBoltzmannMachine(1, learner="mple", l2=1e-4, random_state=0).fit(rows)
    >>> machine.score(rows) > -1.45                                # log 1/4 = -1.39; without a hidden unit log 1/8
    True
    """

    name: ClassVar[str] = "pseudolikelihood with hidden units"
    takes_missing: ClassVar[bool] = True

    max_seconds: float = number(10.0, "Refuse when one row is predicted to take longer.", above=0)

    def bind(self, model: Model[DiscreteFamily], data: Dataset) -> Function:
        """Return the function of theta."""
        return data.bind(partial(self._over, model))

    def _over(self, model: Model[DiscreteFamily], data: Dataset) -> Function:
        """List the rows and their flips once, and return the function of theta."""
        flips = Flips.of(data, model.n_variables - model.n_hidden)
        rows = posterior(model.family, flips.rows.states, flips.rows.missing, self.max_seconds)

        def function(theta: Floats) -> tuple[float, Floats]:
            value, slopes = flips.loss(rows.log_evidence(theta))
            return value, rows.expect(theta, slopes)[1]

        return function


@dataclass(frozen=True, eq=False)
class Flips:
    """Every row that counts and every row with one present cell flipped, equal ones once.

    Parameters
    ----------
    rows : Dataset
        The distinct rows of both kinds.
    here, there : ndarray of int
        For each present cell the number of its row, and of the row with that cell flipped.
    shares : ndarray
        For each present cell the share of its row.
    """

    rows: Dataset
    here: Floats
    there: Floats
    shares: Floats

    @classmethod
    def of(cls, data: Dataset, n_visible: int) -> Flips:
        """Flip every present cell of the visible columns."""
        require_two_values(data.variables)
        kept = np.flatnonzero(data.weights > 0)
        states = data.states[kept]
        missing = np.zeros(states.shape, bool) if data.missing is None else data.missing[kept]
        row, column = np.nonzero(~missing[:, :n_visible])
        needed = 12.0 * len(row) * data.n_variables
        require_memory(needed, f"{len(row):,} rows with one cell flipped", "give fewer rows or columns")
        flipped = states[row]
        cells = np.arange(len(row)), column
        flipped[cells] = 1 - flipped[cells]
        states, holes = np.vstack([states, flipped]), np.vstack([missing, missing[row]])
        first, place = distinct(states == 1, data.coding.domain, holes)
        ones, numbers = np.ones(len(first)), np.arange(len(first))
        table = replace(
            data, states=states[first], missing=holes[first], weights=ones, row_of=numbers, row_weights=None
        )
        weights = data.weights[kept] / data.weights.sum()
        return cls(table, place[row], place[len(kept) :], weights[row])

    def loss(self, evidence: Floats) -> tuple[float, Floats]:
        """Return the mean loss given the evidence of each distinct row, and its derivative by each evidence."""
        costs = evidence[self.here] - evidence[self.there]
        slopes, size = self.shares * expit(-costs), len(evidence)
        slope: Floats = np.zeros(size)
        slope += np.bincount(self.there, slopes, minlength=size)
        slope -= np.bincount(self.here, slopes, minlength=size)
        return float(self.shares @ np.logaddexp(0.0, -costs)), slope
