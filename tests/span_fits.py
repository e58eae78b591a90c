"""Full-span models, and fits of them to counted codes, by the learners' own names for what tests compare."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

import gibbsian as gb
from gibbsian import FullSpanFamily, Model, Variables
from gibbsian.domain import CategoryCoding
from gibbsian.learning import FitResult, as_learner, run
from gibbsian.learning.span_base import KINDS, SpanPoint, uniform_start
from gibbsian.learning.span_problem import SpanProblem
from gibbsian.models.families.full_span import SpanTable
from gibbsian.models.families.span_basis import SpanBasis
from span_reference import all_functions
from systems import every_function


class Step(NamedTuple):
    kind: str
    index: int
    gain: float
    cost: float
    n_functions: int


class Fit(NamedTuple):
    model: Model[FullSpanFamily]
    cost: float
    divergence: float
    steps: list[Step]
    converged: bool
    result: FitResult


def basis_of(sizes) -> SpanBasis:
    return SpanBasis(Variables.categories(sizes))


def span_model(sizes, functions=(), theta=(), n_hidden=0) -> Model[FullSpanFamily]:
    """A model of categories, of which the last ones are hidden."""
    shown = len(sizes) - n_hidden
    return FullSpanFamily.model(
        dict(zip(functions, theta, strict=True)), Variables.categories(sizes[:shown]), sizes[shown:]
    )


def random_span(sizes, rng, n_functions=8, scale=0.7, n_hidden=0) -> Model[FullSpanFamily]:
    functions = rng.permutation(np.arange(1, basis_of(sizes).size))[:n_functions]
    return span_model(sizes, functions, scale * rng.normal(size=functions.size), n_hidden)


def dense_model(rng, sizes=(2, 3, 4, 2)) -> Model[FullSpanFamily]:
    family = every_function(Variables.categories(sizes))
    return Model(family, rng.normal(size=family.n_parameters) * 0.5 ** family.basis.orders(family.functions))


def table_of(model) -> SpanTable:
    return model.family.probabilities(model.theta)


def dual_of(model) -> np.ndarray:
    return model.family.dual(model.theta).values


def law(model) -> tuple[np.ndarray, np.ndarray]:
    """Every state and its probability, from the definition."""
    sizes = model.variables.sizes
    logs = model.theta @ all_functions(sizes)[model.family.functions]
    return np.array(list(np.ndindex(*sizes))), np.exp(logs - logsumexp(logs))


def counted(states, counts, cardinalities, missing=None) -> gb.Dataset:
    """Rows of codes as a dataset; what stands in missing cells is not read."""
    states = np.asarray(states, dtype=np.int8)
    shown = states if missing is None else np.where(missing, np.int8(-1), states)
    distinct, row_of = np.unique(shown, axis=0, return_inverse=True)
    weights = np.bincount(row_of.ravel(), np.asarray(counts, float))
    coding = CategoryCoding.of_labels([range(q) for q in cardinalities])
    names = tuple(f"x{i}" for i in range(states.shape[1]))
    holes = distinct < 0
    return gb.Dataset(np.maximum(distinct, 0), weights, holes if holes.any() else None, coding, names, row_of.ravel())


def problem_of(states, counts, cardinalities, dtype="float64", **penalties) -> SpanProblem:
    return SpanProblem.build(basis_of(cardinalities), np.asarray(states), counts, dtype, **penalties)


def learner_of(algorithm="greedy", **settings):
    return as_learner(f"span-{algorithm}", **settings)


def steps_of(trace) -> list[Step]:
    names = ("kind", "index", "gain", "value", "n_functions")
    if not len(trace):
        return []
    rows = zip(*(trace.column(name) for name in names), strict=True)
    return [Step(KINDS[int(kind)], int(index), gain, cost, int(n)) for kind, index, gain, cost, n in rows]


def fit(
    states, counts, cardinalities, algorithm="greedy", *, missing=None, max_iter=100_000, callbacks=(), **settings
) -> Fit:
    """Learn from counted codes; the step that finds nothing to do is no step."""
    learner = learner_of(algorithm, **settings)
    data = counted(states, counts, cardinalities, missing)
    result = run(learner, span_model(cardinalities), data, 0, callbacks, max_iter=max_iter)
    costs = learner.costs(result.model, data)
    steps = [step for step in steps_of(result.trace) if step.kind != "stop"]
    return Fit(result.model, costs["cost"], costs.get("divergence", np.nan), steps, result.converged, result)


def start_of(problem) -> SpanPoint:
    return uniform_start(problem)
