"""Checks before a fit of any potentials: does a statistic stand at an end of its range in every row?

Then moving its parameter that way raises the likelihood for ever. Rows with missing cells prove nothing.
"""

from __future__ import annotations

import numpy as np

from gibbsian.data.findings import CHECKS, Findings, observed_rows
from gibbsian.models.base import ExponentialFamily, Model

# A mean this near the end of a range, as a share of it, stands there but for rounding.
NEAR = 1e-12


@CHECKS.register("potentials")
@CHECKS.register("quadrature")
def check_potentials(found: Findings, model: Model[ExponentialFamily]) -> None:
    """Check the statistics of functions of a few variables."""
    data, family = found.data, model.family
    found.check_observed(data.reduce(observed_rows))
    if data.has_missing:
        return
    low, high = family.statistic_range
    mean = data.mean(lambda part: family.mean_statistics(part.states, part.weights))
    reach = NEAR * (high - low)
    names = family.parameter_names(data.names)
    held: list[str] = []
    free: list[str] = []
    for place in np.flatnonzero((mean <= low + reach) | (mean >= high - reach)):
        end = "least" if mean[place] <= low[place] + reach[place] else "largest"
        clause = f"{names[place]} has its {end} value in every row"
        if low[place] < high[place]:  # a constant says nothing of its parameter
            (held if found.l2 > 0 or (found.l1 > 0 and family.penalised[place]) else free).append(clause)
    found.judge_empty(free, True, "potential", "leave such potentials out")
    found.judge_empty(held, False, "potential", "")
