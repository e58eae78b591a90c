"""The active functions and the steps of a fit as tables that people can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gibbsian.full_span.trace import SpanTrace
from gibbsian.models.full_span import FullSpanModel
from gibbsian.models.span_basis import SpanBasis

Labels = Sequence[Sequence[Any]]


def basis_table(
    model: FullSpanModel,
    names: Sequence[str],
    labels: Labels,
    means: np.ndarray,
    data_means: np.ndarray | None,
    penalties: np.ndarray,
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

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.table import basis_table
    >>> from gibbsian.models import FullSpanModel
    >>> model = FullSpanModel.build((2, 2), indices=[3], theta=[0.5])
    >>> table = basis_table(model, ["a", "b"], [("no", "yes")] * 2, np.tanh([0.5]), np.tanh([0.5]), [0.05])
    >>> table[["variables", "function", "order"]].values.tolist(), table["gain"].round(3).tolist()
    ([[('a', 'b'), 'a{no} b{no}', 2]], [0.111])
    """
    import pandas

    data_means = np.full(len(means), np.nan) if data_means is None else data_means
    theta = model.theta
    size, signed = np.abs(theta), np.sign(theta) * means
    # ln(cosh t - m sinh t), with the larger exponential taken out
    spread = size + np.log(0.5 * ((1 - signed) + (1 + signed) * np.exp(-2 * size)))
    table = pandas.DataFrame(
        {
            "variables": [tuple(names[i] for i in support) for support in model.supports],
            "function": function_texts(model.basis, model.indices, names, labels),
            "order": model.orders,
            "theta": theta,
            "dual": means,
            "data_dual": data_means,
            "gain": theta * data_means + spread,
            "penalty": penalties,
        }
    )
    return table.sort_values("gain", ascending=False, kind="stable", ignore_index=True)


def function_text(basis: SpanBasis, index: int, names: Sequence[str], labels: Labels) -> str:
    """Write a function: its columns, each with the values at which its factor is +1.

    Examples
    --------
    >>> from gibbsian.full_span.table import function_text
    >>> from gibbsian.models import SpanBasis
    >>> function_text(SpanBasis((2, 3)), 5, ["smokes", "hair"], [("no", "yes"), ("blond", "brown", "red")])
    'smokes{no} hair{red}'
    """
    return function_texts(basis, [index], names, labels)[0]


def function_texts(
    basis: SpanBasis, indices: Sequence[int] | np.ndarray, names: Sequence[str], labels: Labels
) -> list[str]:
    """Write many functions; each factor is put into words once.

    Examples
    --------
    >>> from gibbsian.full_span.table import function_texts
    >>> from gibbsian.models import SpanBasis
    >>> function_texts(SpanBasis((2, 2)), [1, 3], ["a", "b"], [("no", "yes")] * 2)
    ['b{no}', 'a{no} b{no}']
    """
    factors = [_factor_texts(basis, i, names[i], labels[i]) for i in range(basis.n_variables)]
    digits = basis.digits(np.asarray(indices)).tolist()
    return [" ".join(texts[digit] for texts, digit in zip(factors, row, strict=True) if digit) for row in digits]


def _factor_texts(basis: SpanBasis, variable: int, name: str, labels: Sequence[Any]) -> list[str]:
    """Write each function of one variable: the values at which it is +1."""
    positive = [np.flatnonzero(values > 0).tolist() for values in basis.local_values(variable)]
    return [f"{name}{{{'|'.join(str(labels[value]) for value in places)}}}" for places in positive]


def trace_table(trace: SpanTrace, basis: SpanBasis, names: Sequence[str]) -> Any:
    """Return one row for each step of a fit: step, kind, variables, gain, cost, n_functions, seconds.

    Examples
    --------
    >>> from gibbsian.full_span import SpanBasis, TimedStep, TimedTrace
    >>> from gibbsian.full_span.table import trace_table
    >>> trace = TimedTrace([TimedStep("append", 3, 0.1, 0.5, 1, 0.25)])
    >>> trace_table(trace, SpanBasis((2, 2)), ["a", "b"]).values.tolist()
    [[1, 'append', ('a', 'b'), 0.1, 0.5, 1, 0.25]]
    """
    import pandas

    supports = basis.supports([max(step.index, 0) for step in trace.steps]) if len(trace) else []
    return pandas.DataFrame(
        {
            "step": np.arange(1, len(trace) + 1),
            "kind": [step.kind for step in trace.steps],
            "variables": [tuple(names[i] for i in support) for support in supports],
            "gain": [step.gain for step in trace.steps],
            "cost": [step.cost for step in trace.steps],
            "n_functions": [step.n_functions for step in trace.steps],
            "seconds": [getattr(step, "seconds", np.nan) for step in trace.steps],
        }
    )


def probability_table(probabilities: np.ndarray, names: Sequence[str], labels: Labels) -> Any:
    """Return a joint table with one axis for each column as a Series by their values.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.full_span.table import probability_table
    >>> probability_table(np.array([[0.1, 0.2], [0.3, 0.4]]), ["a", "b"], [("no", "yes"), (0, 1)])["yes", 0]
    np.float64(0.3)
    """
    import pandas

    if len(names) == 1:
        index: Any = pandas.Index(list(labels[0]), name=names[0])
    else:
        index = pandas.MultiIndex.from_product([list(values) for values in labels], names=list(names))
    return pandas.Series(probabilities.ravel(), index=index, name="probability")
