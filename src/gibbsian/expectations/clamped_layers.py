"""The exact clamped phase of machines of two layers, whatever their units are.

The hidden units of a row are summed in closed form, its missing cells by enumeration (see `LayerRows`). Real cells must
be present, and then need no distribution.
"""

from __future__ import annotations

import numpy as np

from gibbsian.data.hidden_columns import with_hidden
from gibbsian.data.rows import Rows
from gibbsian.errors import TooExpensiveError
from gibbsian.expectations.exact import EXACT_ROWS, BoundExact, Exact
from gibbsian.expectations.imputation import in_memory
from gibbsian.expectations.rows import MaskedRows
from gibbsian.inference.posterior import posterior
from gibbsian.models.base import Model
from gibbsian.models.layers.stack import StackFamily

# Layers whose joint distribution is of pairs with the same theta.
TWO_VALUED = {"binary"}, {"spin"}


@EXACT_ROWS.register("layered")
def bind_layers(model: Model[StackFamily], clamp: Rows, max_seconds: float) -> BoundExact:
    """Bind the rows of a machine of two layers; two-valued units with different missing cells have compiled sums.

    Examples
    --------
    >>> import gibbsian as gb
    >>> family = gb.models.StackFamily((gb.models.SpinUnits(2), gb.models.SpinUnits(1)))
    >>> model = family.build(weights=[[[1.0], [1.0]]])
    >>> clamped = gb.expectations.Exact().bind(model, gb.Dataset.read([[1, float("nan")]], coding="spin"))
    >>> clamped(model.theta, ())[0].value.round(3).tolist()           # v1, v2, h and their products
    [1.0, 0.58, 0.762, 0.762, 0.762]
    """
    data, family = in_memory(clamp), model.family
    used = np.flatnonzero(data.weights > 0)
    missing = None if data.missing is None else data.missing[used]
    alike = missing is None or bool((missing == missing[:1]).all())
    if not alike and not data.has_shares and {layer.kind for layer in family.layers} in TWO_VALUED:
        return Exact(max_seconds).bind(family.joint(model.theta), with_hidden(data, family.n_hidden))
    bound = posterior(family, data.states[used], missing)
    if bound.seconds > max_seconds:
        n_missing = 0 if missing is None else int(missing.sum())
        raise TooExpensiveError(
            f"{used.size} rows lack {n_missing} cells, whose values would take about {bound.seconds:.2g} s to sum "
            f"over, but `max_seconds={max_seconds:g}`",
            "raise it, or fill cells first",
        )
    shares = data.weights[used] / data.total_weight
    holes = data.holes[used]
    return BoundExact(MaskedRows(data.states[used], holes, shares, np.zeros(family.n_parameters)), bound)
