"""The functions and the steps of a full-span model as tables that people can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gibbsian.learning import Trace
from gibbsian.learning.span_base import KINDS
from gibbsian.models.base import Array, Model
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.startup import pandas

Labels = Sequence[Sequence[Any]]


def basis_table(
    model: Model[FullSpanFamily],
    names: Sequence[str],
    labels: Labels,
    means: Array,
    data_means: Array | None,
    penalties: Array,
) -> Any:
    """Return one row for each function of a model, those that are worth most first.

    Columns
    -------
    variables : tuple of str
        On which columns the function depends.
    function : str
        For each of them the values at which its factor is +1; at all others it is -1.
    order : int
        On how many columns.
    theta : float
        Its parameter.
    dual : float
        Its mean under the model.
    data_dual : float
        Its mean in the data (where cells were missing: as the model fills them).
    gain : float
        By how many nats per row the divergence from the data would grow without the function, all other parameters
        kept: ``theta <Phi>_data + ln(cosh theta - <Phi>_model sinh theta)``.
    penalty : float
        What the function costs, TA22 eq. 2.5; at the end of a fit a function gains more than that.
    """
    from gibbsian.answers.span import losses_without

    family, data_means = model.family, np.full(len(means), np.nan) if data_means is None else data_means
    table = pandas.DataFrame(
        {
            "variables": [tuple(names[i] for i in support) for support in family.basis.supports(family.functions)],
            "function": function_texts(family.basis, family.functions, names, labels),
            "order": family.basis.orders(family.functions),
            "theta": model.theta,
            "dual": means,
            "data_dual": data_means,
            "gain": losses_without(model.theta, means, data_means),
            "penalty": penalties,
        }
    )
    return table.sort_values("gain", ascending=False, kind="stable", ignore_index=True)


def function_texts(basis: SpanBasis, functions: Array, names: Sequence[str], labels: Labels) -> list[str]:
    """Write functions: their columns, each with the values at which its factor is +1."""
    factors = [_factor_texts(basis, i, names[i], labels[i]) for i in range(len(basis.variables))]
    digits = basis.digits(functions).tolist()
    return [" ".join(texts[digit] for texts, digit in zip(factors, row, strict=True) if digit) for row in digits]


def _factor_texts(basis: SpanBasis, variable: int, name: str, labels: Sequence[Any]) -> list[str]:
    """Write each function of one variable: the values at which it is +1."""
    positive = [np.flatnonzero(values > 0).tolist() for values in basis.local_values(variable)]
    return [f"{name}{{{'|'.join(str(labels[value]) for value in places)}}}" for places in positive]


def trace_table(trace: Trace, basis: SpanBasis, names: Sequence[str]) -> Any:
    """Return one row for each step of a fit: step, kind, variables, gain, cost, n_functions, seconds."""
    known = {name: trace.column(name) for name in trace.columns}
    steps = np.arange(1, len(trace) + 1)
    nothing = np.full(len(trace), np.nan)
    kinds = known.get("kind", np.zeros(len(trace))).astype(int)
    indices = np.maximum(known.get("index", np.zeros(len(trace))), 0).astype(np.int64)
    return pandas.DataFrame(
        {
            "step": steps,
            "kind": [KINDS[kind] for kind in kinds] if "kind" in known else ["fit"] * len(trace),
            "variables": [tuple(names[i] for i in support) for support in basis.supports(indices)],
            "gain": known.get("gain", nothing),
            "cost": known["value"],
            "n_functions": known.get("n_functions", nothing),
            "seconds": np.diff(known["seconds"], prepend=0.0),
        }
    )
