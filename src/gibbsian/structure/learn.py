"""Structure learning by the name of a method."""

from __future__ import annotations

import inspect
from functools import partial

from gibbsian.errors import ArgumentError
from gibbsian.structure.decimation import decimation
from gibbsian.structure.l1_path import l1_ebic
from gibbsian.structure.problem import Problem, StructureResult
from gibbsian.structure.screening import screening

METHODS: dict[str, partial[StructureResult]] = {
    "l1-ebic": partial(l1_ebic),
    "rise": partial(screening, loss="rise"),
    "logrise": partial(screening, loss="logrise"),
    "rple": partial(screening, loss="rple"),
    "decimation": partial(decimation),
}


def learn_structure(X: object, method: str = "l1-ebic", **settings: object) -> StructureResult:
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
    >>> chain = gb.PairwiseFamily.model(gb.graphs.grid(1, 5), np.zeros(5), np.full(4, 0.8))
    >>> rows = gb.inference.exact(chain).sample(1000, np.random.default_rng(0))
    >>> gb.structure.learn_structure(rows, method="logrise").graph == chain.family.graph
    True
    """
    if method not in METHODS:
        raise ArgumentError("is not known", f"use one of {', '.join(METHODS)}", argument="method", value=method)
    accepted = [*_keywords(METHODS[method]), *_keywords(partial(Problem.read))]
    if unknown := [name for name in settings if name not in accepted]:
        remedy = f"leave it out: it takes {', '.join(accepted)}"
        raise ArgumentError(f"has no setting `{unknown[0]}`", remedy, argument="method", value=method)
    return METHODS[method](X, **settings)


def _keywords(function: partial[StructureResult] | partial[Problem]) -> list[str]:
    """Return the keyword arguments that are not fixed."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in function.keywords]
