"""A few members of every family, with parameters and rows, for the contract tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import gibbsian as gb
from gibbsian.domain import Continuum
from gibbsian.models.base import Family
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.families.potentials import Potential, PotentialsFamily
from gibbsian.models.families.products import ProductsFamily
from gibbsian.models.families.quadrature import QuadratureFamily
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.layers.belief_network import BeliefNetworkFamily
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import BinaryUnits, CategoricalUnits, GaussianUnits, SpinUnits
from gibbsian.models.mixtures.categorical import LatentClassFamily
from gibbsian.models.mixtures.gaussian import GaussianMixtureFamily, KMeansFamily
from gibbsian.models.mixtures.of_models import MixtureOfFamily
from gibbsian.models.mixtures.von_mises_fisher import VonMisesFisherMixtureFamily
from gibbsian.models.scopes import Scopes
from gibbsian.models.variables import Quadrature, Variables
from systems import every_function, functions_on, products_on

# five variables with a triangle and a pendant, so that families of higher order have a term of three
GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)


SIZES = Variables.categories((2, 3, 2, 4, 3))
SCORES = Variables.ordinal([(-1, 0, 1), (0, 1), (-1, 1), (0.5, 1, 2), (0, 1, 2)])


class Case(NamedTuple):
    """A member of a family, the variables of its columns, parameters, and complete rows; the codes of all if listed."""

    family: Family
    columns: Variables
    theta: np.ndarray
    rows: np.ndarray
    codes: np.ndarray | None = None


def every_row(variables: Variables) -> np.ndarray:
    """Return all rows of codes, variable 0 as the slowest."""
    return np.array(list(np.ndindex(*variables.sizes)), dtype=np.int8)


def discrete(family: Family, rng: np.random.Generator) -> Case:
    """A family over few states, or nodes: all of them, and random parameters."""
    theta, codes = rng.normal(size=family.n_parameters), every_row(family.variables)
    columns = family.variables.take(range(len(family.variables) - family.n_hidden))
    return Case(family, columns, theta, family.variables.rows_of(codes), codes)


def gaussian(rng: np.random.Generator) -> Case:
    """A Gaussian on a graph, with units that are not standard."""
    family = gb.GaussianFamily(GRAPH, rng.normal(size=5), rng.uniform(0.1, 10.0, size=5))
    theta = np.concatenate([rng.normal(size=5), 4.0 + rng.random(5), rng.uniform(-0.8, 0.8, GRAPH.n_edges)])
    return Case(family, family.variables, theta, rng.normal(size=(20, 5)))


def pairwise(variables: Variables, **options: object) -> Callable[[np.random.Generator], Case]:
    """A pairwise family of these variables."""
    return lambda rng: discrete(PairwiseFamily(GRAPH, variables, **options), rng)


def near(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A function of two statistics, which is not the same for both variables."""
    return np.abs(x - y) < 1.5, x * y * y


NEAR = Potential("near", near, scopes=[(1, 0), (4, 3)], tied=False)
UNTIED = Potential("bias", tied=False)


def potentials(named: object, variables: Variables, **how: object) -> Callable[[np.random.Generator], Case]:
    """A family of potentials on the graph, over few values or over nodes."""
    kind = QuadratureFamily if variables.real else PotentialsFamily
    return lambda rng: discrete(kind.build(named, variables, GRAPH, **how), rng)


def full_span(
    variables: Variables, n_functions: int, hidden: tuple[int, ...] = ()
) -> Callable[[np.random.Generator], Case]:
    """A full-span family with functions drawn from all."""

    def draw(rng: np.random.Generator) -> Case:
        none = FullSpanFamily.uniform(variables, hidden)
        return discrete(none.append(1 + rng.permutation(none.basis.size - 1)[:n_functions]), rng)

    return draw


def layered(kind: type, *layers: object) -> Callable[[np.random.Generator], Case]:
    """Layers of units, with all their rows; real units have random numbers."""

    def made(rng: np.random.Generator) -> Case:
        family = kind(layers)
        rows = every_row(Variables.categories([size or 1 for size in family.variables.sizes]))
        real = np.array(family.variables.sizes) == 0
        if real.any():
            rows = np.where(real, rng.normal(size=rows.shape), rows)
        return Case(family, layers[0].variables, rng.normal(size=family.n_parameters), rows)

    return made


def mixture(family: Family, *parts: object, columns: np.ndarray) -> Callable[[np.random.Generator], Case]:
    """A mixture of two classes with rows of some columns, each in both classes."""
    rows = np.vstack([np.column_stack([columns, np.full(len(columns), label)]) for label in (0, 1)])
    return lambda rng: Case(family, family.columns, family.join(*parts), rows)


NUMBERS = np.random.default_rng(1).normal(size=(10, 3))
MEANS = [[0.0, 1.0, 2.0], [-1.0, 0.0, 0.5]]
DIRECTIONS = np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])

CASES: dict[str, dict[str, Callable[[np.random.Generator], Case]]] = {
    "gaussian": {"on a graph": gaussian},
    "full-span": {
        "two values": full_span(Variables.binary(5), 20),
        "mixed sizes": full_span(SIZES, 40),
        "scores": full_span(SCORES, 40),
        "few functions": full_span(SIZES, 3),
        "all functions": lambda rng: discrete(every_function(SIZES), rng),
        "of a graph": lambda rng: discrete(functions_on(GRAPH), rng),
        "hidden variables": full_span(Variables.spins(3), 20, hidden=(2, 3)),
    },
    "stack": {
        "restricted": layered(StackFamily, BinaryUnits(3), BinaryUnits(2)),
        "spins and categories": layered(StackFamily, CategoricalUnits((2, 3)), SpinUnits(2)),
        "numbers": layered(StackFamily, GaussianUnits(2), BinaryUnits(2)),
        "deep": layered(StackFamily, BinaryUnits(3), SpinUnits(2), BinaryUnits(2)),
    },
    "belief-network": {
        "0/1": layered(BeliefNetworkFamily, BinaryUnits(2), BinaryUnits(2), BinaryUnits(1)),
        "numbers": layered(BeliefNetworkFamily, GaussianUnits(2), BinaryUnits(2), SpinUnits(2)),
    },
    "gaussian-mixture": {
        "two classes": mixture(GaussianMixtureFamily(2, 3), [0.3, 0.7], MEANS, [1.0, 0.5], columns=NUMBERS),
    },
    "k-means": {
        "two classes": mixture(KMeansFamily(2, 3), [0.5, 0.5], MEANS, [0.5, 0.5], columns=NUMBERS),
    },
    "vmf-mixture": {
        "two classes": mixture(
            VonMisesFisherMixtureFamily(2, 3),
            [0.3, 0.7],
            DIRECTIONS,
            [2.0, 5.0],
            columns=NUMBERS / np.linalg.norm(NUMBERS, axis=1, keepdims=True),
        ),
    },
    "machine-mixture": {
        "two pairwise models": mixture(
            MixtureOfFamily(2, Variables.spins(3), (gb.Model.zeros(PairwiseFamily(gb.graphs.complete(3))),) * 2),
            [0.3, 0.7],
            [0.5, 2.5],
            np.linspace(-1.0, 1.0, 12),
            columns=every_row(Variables.spins(3)),
        ),
    },
    "categorical-mixture": {
        "two classes": mixture(
            LatentClassFamily(2, Variables.categories((2, 3))),
            [0.3, 0.7],
            [[0.2, 0.8, 0.1, 0.4, 0.5]] * 2,
            columns=every_row(Variables.categories((2, 3))),
        ),
    },
    "pairwise": {
        "spins": pairwise(Variables.spins(5)),
        "0/1": pairwise(Variables.binary(5)),
        "no biases": pairwise(Variables.spins(5), bias=False),
        "hidden units": pairwise(Variables.binary(5), n_hidden=2),
    },
    "products": {
        "spins": lambda rng: discrete(products_on(GRAPH), rng),
        "0/1": lambda rng: discrete(products_on(GRAPH, Variables.binary(5)), rng),
        "scores": lambda rng: discrete(products_on(GRAPH, SCORES), rng),
        "some products": lambda rng: discrete(ProductsFamily(Scopes([(1,), (0, 4), (0, 1, 2)], 5)), rng),
    },
    "tables": {
        "potts": lambda rng: discrete(TablesFamily.potts(GRAPH, SIZES), rng),
        "potts of spins": lambda rng: discrete(TablesFamily.potts(GRAPH, Variables.spins(5)), rng),
        "cliques": lambda rng: discrete(TablesFamily(Scopes([(0,), (3, 4), (0, 1, 2), (0, 1, 3)], 5), SIZES), rng),
    },
    "potentials": {
        "tied spins": potentials(["product", "bias"], Variables.spins(5)),
        "0/1": potentials([UNTIED, "equal"], Variables.binary(5), cliques=[(0, 1, 2)]),
        "scores": potentials(["square", "absolute-difference", UNTIED, "squared-difference", "indicator:1"], SCORES),
        "categories": potentials(["bias", "equal"], SIZES, tied=False),
        "tables": potentials(["table"], SIZES, tied=False, cliques=[(0, 1, 2)]),
        "functions": potentials([NEAR, "product", UNTIED], SCORES),
        "functions of categories": potentials([NEAR, "indicator:2"], SIZES),
    },
    "ordinal": {
        "scores": lambda rng: discrete(PotentialsFamily.ordinal(GRAPH, SCORES), rng),
        "spins": lambda rng: discrete(PotentialsFamily.ordinal(GRAPH, Variables.spins(5)), rng),
    },
    "quadrature": {
        "interval": potentials(["product", UNTIED], Quadrature.of(Continuum("interval", -1.0, 2.0, 3), 5)),
        "interval of two": potentials(
            ["bias", "product"], Quadrature.of(Continuum("interval", 0.0, 1.0, 2), 5), tied=False
        ),
        "line": potentials(
            ["bias", "square", "absolute-difference"], Quadrature.of(Continuum("gaussian", 0.5, 1.3, 4), 5)
        ),
        "cliques": potentials(
            [UNTIED, "product"], Quadrature.of(Continuum("interval", -1.0, 1.0, 3), 5), cliques=[(0, 1, 2)]
        ),
    },
}
NAMES = [f"{name}: {case}" for name in CASES for case in CASES[name]]


def case_of(name: str) -> Case:
    """Build a case by its name."""
    family, _, case = name.partition(": ")
    return CASES[family][case](np.random.default_rng(0))
