"""A few members of every family, with parameters and rows, for the contract tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import gibbsian as gb
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.families.products import ProductsFamily
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.family import Family
from gibbsian.models.scopes import Scopes
from gibbsian.models.variables import Variables

# five variables with a triangle and a pendant, so that families of higher order have a term of three
GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)


SIZES = Variables.categories((2, 3, 2, 4, 3))
SCORES = Variables.ordinal([(-1, 0, 1), (0, 1), (-1, 1), (0.5, 1, 2), (0, 1, 2)])


class Case(NamedTuple):
    """A member of a family, the variables of its columns, parameters, and complete rows."""

    family: Family
    columns: Variables
    theta: np.ndarray
    rows: np.ndarray


def every_row(variables: Variables) -> np.ndarray:
    """Return all rows of codes, variable 0 as the slowest."""
    return np.array(list(np.ndindex(*variables.sizes)), dtype=np.int8)


def discrete(family: Family, rng: np.random.Generator) -> Case:
    """A family over few states: all of them, and random parameters."""
    theta = rng.normal(size=family.n_parameters)
    columns = family.variables.take(range(len(family.variables) - family.n_hidden))
    return Case(family, columns, theta, every_row(family.variables))


def gaussian(rng: np.random.Generator) -> Case:
    """A Gaussian on a graph, with units that are not standard."""
    family = gb.GaussianFamily(GRAPH, rng.normal(size=5), rng.uniform(0.1, 10.0, size=5))
    theta = np.concatenate([rng.normal(size=5), 4.0 + rng.random(5), rng.uniform(-0.8, 0.8, GRAPH.n_edges)])
    return Case(family, family.variables, theta, rng.normal(size=(20, 5)))


def pairwise(variables: Variables, **options: object) -> Callable[[np.random.Generator], Case]:
    """A pairwise family of these variables."""
    return lambda rng: discrete(PairwiseFamily(GRAPH, variables, **options), rng)


def full_span(
    variables: Variables, n_functions: int, hidden: tuple[int, ...] = ()
) -> Callable[[np.random.Generator], Case]:
    """A full-span family with functions drawn from all."""

    def draw(rng: np.random.Generator) -> Case:
        none = FullSpanFamily.uniform(variables, hidden)
        return discrete(none.append(1 + rng.permutation(none.basis.size - 1)[:n_functions]), rng)

    return draw


CASES: dict[str, dict[str, Callable[[np.random.Generator], Case]]] = {
    "gaussian": {"on a graph": gaussian},
    "full-span": {
        "two values": full_span(Variables.binary(5), 20),
        "mixed sizes": full_span(SIZES, 40),
        "scores": full_span(SCORES, 40),
        "few functions": full_span(SIZES, 3),
        "all functions": lambda rng: discrete(FullSpanFamily.dense(SIZES), rng),
        "of a graph": lambda rng: discrete(FullSpanFamily.on_graph(GRAPH), rng),
        "hidden variables": full_span(Variables.spins(3), 20, hidden=(2, 3)),
    },
    "pairwise": {
        "spins": pairwise(Variables.spins(5)),
        "0/1": pairwise(Variables.binary(5)),
        "no biases": pairwise(Variables.spins(5), bias=False),
        "hidden units": pairwise(Variables.binary(5), n_hidden=2),
    },
    "products": {
        "spins": lambda rng: discrete(ProductsFamily.on_graph(GRAPH), rng),
        "0/1": lambda rng: discrete(ProductsFamily.on_graph(GRAPH, Variables.binary(5)), rng),
        "scores": lambda rng: discrete(ProductsFamily.on_graph(GRAPH, SCORES), rng),
        "some products": lambda rng: discrete(ProductsFamily(Scopes([(1,), (0, 4), (0, 1, 2)], 5)), rng),
    },
    "tables": {
        "potts": lambda rng: discrete(TablesFamily.potts(GRAPH, SIZES), rng),
        "potts of spins": lambda rng: discrete(TablesFamily.potts(GRAPH, Variables.spins(5)), rng),
        "cliques": lambda rng: discrete(TablesFamily(Scopes([(0,), (3, 4), (0, 1, 2), (0, 1, 3)], 5), SIZES), rng),
    },
}
NAMES = [f"{name}: {case}" for name in CASES for case in CASES[name]]
BESIDE = {"full-span", "pairwise", "products", "tables"}  # written, and not in the registry yet


def case_of(name: str) -> Case:
    """Build a case by its name."""
    family, _, case = name.partition(": ")
    return CASES[family][case](np.random.default_rng(0))
