"""The exact clamped phase of machines of two layers, whatever their units are.

The hidden units of a row are summed in closed form, its missing cells by enumeration (see `LayerRows`). Real cells must
be present, and then need no distribution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import with_hidden
from gibbsian.errors import TooExpensiveError
from gibbsian.expectations.clamped import EXACT_CLAMPED
from gibbsian.expectations.exact import ClampedExact, ExactRows
from gibbsian.expectations.legacy import Rebuilt
from gibbsian.inference.posterior import posterior
from gibbsian.models.base import Model
from gibbsian.settings import declared

# Layers whose joint distribution is of pairs with the same theta.
TWO_VALUED = {"binary"}, {"spin"}


@EXACT_CLAMPED.register("layered")
@declared(frozen=True)
class ClampedLayers(ClampedExact):
    """The expected statistics of a machine of two layers given the present cells, with the mean log-evidence.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.expectations.clamped_layers import ClampedLayers
    >>> family = gb.models.StackFamily((gb.models.SpinUnits(2), gb.models.SpinUnits(1)))
    >>> model = family.build(weights=[[[1.0], [1.0]]])
    >>> clamped = ClampedLayers()
    >>> rows = clamped.init(model, gb.Dataset.read([[1, float("nan")]], coding="spin"), np.random.default_rng(0))
    >>> clamped(model, rows)[0].value.round(3).tolist()           # v1, v2, h and their products
    [1.0, 0.58, 0.762, 0.762, 0.762]
    """

    def init(self, model: Model[Any], data: Dataset, rng: np.random.Generator) -> Rebuilt[ExactRows]:
        """Bind the rows; if all units are two-valued, those with different missing cells have compiled sums."""
        used, family = np.flatnonzero(data.weights > 0), model.family
        missing = None if data.missing is None else data.missing[used]
        alike = missing is None or bool((missing == missing[:1]).all())
        if not alike and not data.has_shares and {layer.kind for layer in family.layers} in TWO_VALUED:
            return super().init(family.joint(model.theta), with_hidden(data, family.n_hidden), rng)
        bound = posterior(family, data.states[used], missing)
        if bound.seconds > self.max_seconds:
            n_missing = 0 if missing is None else int(missing.sum())
            raise TooExpensiveError(
                f"{used.size} rows lack {n_missing} cells, whose values would take about {bound.seconds:.2g} s to sum "
                f"over, but `max_seconds={self.max_seconds:g}`",
                "raise it, or fill cells first",
            )
        return Rebuilt(ExactRows(np.zeros(family.n_parameters), data.weights[used] / data.total_weight, bound))
