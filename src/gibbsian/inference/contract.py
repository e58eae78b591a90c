"""What engines ask of a family, whether it is one of `gibbsian.models.families` or a model that is its own family.

Rows of families are codes, or numbers where codes are nodes of a quadrature rule; models that are their own families
write rows in the values of a domain. This module is all that inference knows of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.domain import BINARY, AnyDomain, Categories, Continuum
from gibbsian.graphs import Graph
from gibbsian.models.base import ExponentialFamily
from gibbsian.models.factors import FactorGraph
from gibbsian.models.family import Model
from gibbsian.models.ising import is_ising
from gibbsian.models.variables import Quadrature


def is_old(family: Any) -> bool:
    """Say whether a family is a model, with parameters of its own and rows in the values of a domain."""
    return isinstance(family, ExponentialFamily)


def model_at(family: Any, theta: np.ndarray) -> Any:
    """Return the distribution of a family at some parameters."""
    return family.replace(theta) if is_old(family) else Model(family, theta)


def sizes_of(family: Any) -> np.ndarray:
    """Return the number of values of each variable."""
    if is_old(family):
        return family.domain.cardinalities(family.n_variables)
    return np.array(family.variables.sizes, dtype=np.int64)


def levels_of(family: Any) -> tuple[np.ndarray, ...] | None:
    """Return the numbers that stand for the values of each variable; None where they have none."""
    if not is_old(family):
        return None if family.variables.scores is None else family.variables.levels
    no_numbers = family.domain.name == "categorical" and family.domain.values is None
    return None if no_numbers else family.domain.levels(family.n_variables)


def has_quadrature(family: Any) -> bool:
    """Say whether the values of variables are the nodes of a quadrature rule."""
    return isinstance(family.domain, Continuum) if is_old(family) else isinstance(family.variables, Quadrature)


def graph_of(family: Any) -> Graph:
    """Return which variables share a term."""
    return family.graph if is_old(family) or is_ising(family) else family.scopes.graph


def factors_of(family: Any, theta: np.ndarray) -> FactorGraph:
    """Return the distribution as a product of small tables over codes."""
    return family.replace(theta).factors() if is_old(family) else family.factors(theta)


def log_weight_table(family: Any, theta: np.ndarray) -> np.ndarray:
    """Return the log-weights of all rows by their numbers, a new array, where the family has a transform."""
    return np.array(family.replace(theta).log_weight_table() if is_old(family) else family.log_weight_table(theta))


def rows_of(family: Any, codes: np.ndarray) -> np.ndarray:
    """Return codes as rows of the family."""
    return family.domain.from_codes(codes) if is_old(family) else family.variables.rows_of(codes)


def codes_of(family: Any, rows: np.ndarray) -> np.ndarray:
    """Return rows of the family as codes."""
    return domain_of(family).to_codes(rows)


def domain_of(family: Any) -> AnyDomain:
    """Return the values that rows of the family write: codes are those of categories, or 0 and 1 where all have two."""
    if is_old(family):
        return family.domain
    if isinstance(family.variables, Quadrature):
        return family.variables.support
    return BINARY if family.variables.two_valued else Categories(tuple(family.variables.sizes))
