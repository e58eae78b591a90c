"""One door to every method of structure learning."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from gibbsian.errors import ArgumentError
from gibbsian.structure.decimation import decimation
from gibbsian.structure.l1_path import l1_ebic
from gibbsian.structure.problem import Problem, StructureResult
from gibbsian.structure.screening import screening

METHODS: dict[str, Callable[..., StructureResult]] = {
    "l1-ebic": l1_ebic,
    "rise": partial(screening, loss="rise"),
    "logrise": partial(screening, loss="logrise"),
    "rple": partial(screening, loss="rple"),
    "decimation": decimation,
}


def learn_structure(X: Any, method: str = "l1-ebic", **settings: Any) -> StructureResult:
    """Learn which variables interact, and refit a machine on them.

    Parameters
    ----------
    X : array, frame, path, Dataset or dask.dataframe
        Complete rows of two-valued variables; those on a cluster are learned from there.
    method : str
        ``"l1-ebic"`` (a path of L1-penalised regressions per variable), ``"rise"``, ``"logrise"``, ``"rple"``
        (theoretical penalty and threshold) or ``"decimation"``.
    **settings
        The method's own (``rule``, ``gamma``, ``threshold``, ``fraction``, ...), and for all of them: `graph`, the
        candidate edges (default all pairs); `coding` and `sample_weight` as in `Dataset.read`, weights counting as
        repeated rows; `bias`; `learner` and `l2` of the refitted machine. All methods work on spins, so the graph does
        not depend on the coding, while the machine speaks the data's own.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> chain = gb.PairwiseModel.build(gb.graphs.grid(1, 5), np.zeros(5), np.full(4, 0.8))
    >>> rows = gb.inference.exact(chain).sample(1000, np.random.default_rng(0))
    >>> gb.structure.learn_structure(rows, method="logrise").graph == chain.graph
    True
    """
    if method not in METHODS:
        raise ArgumentError("is not known", f"use one of {', '.join(METHODS)}", argument="method", value=method)
    known = _settings(METHODS[method]) + _settings(Problem.read)
    if foreign := [name for name in settings if name not in known]:
        remedy = f"leave it out: it takes {', '.join(known)}"
        raise ArgumentError(f"has no setting `{foreign[0]}`", remedy, argument="method", value=method)
    return METHODS[method](X, **settings)


def _settings(function: Callable[..., Any]) -> list[str]:
    fixed = getattr(function, "keywords", {})
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in fixed]
