"""Small systems that can be enumerated: the judge of everything else."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import gibbsian as gb
from gibbsian import Model, Variables
from gibbsian.domain import Categories, CategoryCoding
from gibbsian.inference import Engine
from gibbsian.models.conditionals import WeightedRows
from gibbsian.models.families.potentials import Potential
from gibbsian.models.scopes import Scope, Scopes
from gibbsian.models.variables import as_variables

SPINS, BINARY = Variables.spins, Variables.binary


def cliques_of(graph: gb.Graph) -> Scopes:
    """Return the single variables, the edges and the triangles of a graph."""
    later = [{int(j) for j in graph.neighbours(i) if j > i} for i in range(graph.n_nodes)]
    triangles: list[Scope] = [(i, j, k) for i, j in graph.edges.tolist() for k in sorted(later[i] & later[j])]
    return Scopes([*Scopes.of_graph(graph), *triangles], graph.n_nodes)


def tables_on(graph: gb.Graph, variables: Variables) -> gb.TablesFamily:
    """Return the tables of the cliques of a graph."""
    return gb.TablesFamily(cliques_of(graph), variables)


def products_of_order(n_variables: int, order: int, variables: Any = SPINS) -> gb.ProductsFamily:
    """Return all products of up to `order` variables."""
    return gb.ProductsFamily(Scopes.of_order(n_variables, order), variables)


def products_on(graph: gb.Graph, variables: Any = SPINS) -> gb.ProductsFamily:
    """Return the products over the cliques of a graph."""
    return gb.ProductsFamily(cliques_of(graph), variables)


def functions_on(graph: gb.Graph, variables: Any = SPINS) -> gb.FullSpanFamily:
    """Return the functions of the full span on the cliques of a graph."""
    family = gb.FullSpanFamily.uniform(as_variables(variables, graph.n_nodes))
    sizes, strides = family.variables.sizes, family.basis.strides.tolist()
    functions = [
        sum(value * strides[i] for value, i in zip(values, scope, strict=True))
        for scope in cliques_of(graph)
        for values in itertools.product(*(range(1, sizes[i]) for i in scope))
    ]
    return family.append(np.array(functions))


def every_function(variables: Variables, hidden: tuple[int, ...] = ()) -> gb.FullSpanFamily:
    """Return the full span with all of its functions."""
    family = gb.FullSpanFamily.uniform(variables, hidden)
    return family.append(np.arange(1, family.basis.size))


def _equal_neighbours(graph: gb.Graph, variables: Variables) -> gb.PotentialsFamily:
    return gb.PotentialsFamily.build([Potential("bias", tied=False), "equal"], variables, graph)


# a family of every discrete kind on a graph; kinds beyond pairs have a term for each triangle
KINDS: dict[str, Callable[[gb.Graph, Variables], Any]] = {
    "full-span": functions_on,
    "ordinal": gb.PotentialsFamily.ordinal,
    "pairwise": gb.PairwiseFamily,
    "potentials": _equal_neighbours,
    "potts": gb.TablesFamily.potts,
    "products": products_on,
    "tables": tables_on,
}
# kinds that take variables of more than two values: with scores, or without order
SCORED, UNORDERED = {"ordinal", "products"}, {"full-span", "potentials", "potts", "tables"}


def all_states(variables: Variables) -> np.ndarray:
    """Every row of codes (of nodes: the numbers), the last variable changing fastest."""
    return variables.rows_of(np.array(list(np.ndindex(*variables.sizes)), dtype=np.int8))


def costs_of(model, states) -> np.ndarray:
    """The log-odds of each row against those with one value changed, column by column."""
    return model.family.conditionals(WeightedRows.of(np.asarray(states), by_row=True)).costs(model.theta)


def with_one_changed(model, states):
    """For each column of the costs, the rows with that change made: to the other of two values, or to each."""
    for i, size in enumerate(model.variables.sizes):
        states = np.asarray(states)
        for value in [1 - states[:, i]] if model.variables.two_valued else range(size):
            changed = states.copy()
            changed[:, i] = value
            yield changed


def exact_law(model) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows, probabilities and log Z by plain summation: the judge of everything else."""
    states = all_states(model.variables)
    log_weights = model.log_weights(states)
    log_partition = float(np.logaddexp.reduce(log_weights))
    return states, np.exp(log_weights - log_partition), log_partition


def random_model(graph, rng, variables=SPINS, scale=0.6, bias=True, n_hidden=0) -> Model:
    """A pairwise model with random parameters."""
    family = gb.PairwiseFamily(graph, variables, bias, n_hidden)
    return Model(family, rng.normal(scale=scale, size=family.n_parameters))


def random_model_of(kind, graph, rng, variables=SPINS, scale=0.6) -> Model:
    """A model of any discrete kind with random parameters."""
    family = KINDS[kind](graph, as_variables(variables, graph.n_nodes))
    return Model(family, rng.normal(scale=scale, size=family.n_parameters))


def variables_of(kind, n: int) -> list[Variables]:
    """Variables that a kind takes: spins, 0/1, and of more than two values."""
    more = []
    if kind in SCORED:
        more = [Variables.ordinal([(-1, 0, 1)] * n)]
    elif kind in UNORDERED:
        more = [Variables.categories(2 + i % 3 for i in range(n))]
    return [SPINS(n), BINARY(n), *more]


def models_with_variables(n: int) -> list[tuple[str, Variables]]:
    """Every discrete kind, with all variables that it takes."""
    return [(kind, variables) for kind in KINDS for variables in variables_of(kind, n)]


def name_of(variables: Variables) -> str:
    """A word for variables, for the names of tests."""
    names = {(-1.0, 1.0): "spin", (0.0, 1.0): "binary"}
    first = variables.scores[0] if variables.scores else None
    return names.get(first, "categorical" if first is None else "values")


def dataset_of(states, variables: Variables, sample_weight=None, missing=None) -> gb.Dataset:
    """Rows of codes as data."""
    coding: Any = name_of(variables)
    if coding not in ("spin", "binary"):
        labels = variables.scores or tuple(tuple(range(size)) for size in variables.sizes)
        coding = CategoryCoding(labels, Categories(variables.sizes, variables.scores))
    return gb.Dataset.of_states(np.asarray(states, np.int8), coding, sample_weight=sample_weight, missing=missing)


def sampled_data(model, n_rows, rng) -> gb.Dataset:
    """Rows drawn exactly from a small model."""
    states, probabilities, _ = exact_law(model)
    return dataset_of(states[rng.choice(len(states), n_rows, p=probabilities)], model.variables)


def ask(engine: type[Engine], model: Any, max_seconds: float = 60.0) -> Any:
    """Exact answers about a model by one engine."""
    return engine(model.family, max_seconds).at(model.theta)
