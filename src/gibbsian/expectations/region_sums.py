"""Exact sums over a region given the samples around it (YU20 eq. 8), for any model.

The conditional distribution of the target is found by eliminating the other variables of the region one by one, in the
log domain, for all samples at once: a message is an array with an axis for the samples and one for each variable it
depends on. Trees and forests, with or without cycles through the target, need tables of few cells; any region of small
treewidth will do. Wider ones are summed by Pfaffians where they are planar with a ghost that stands for their fields.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gibbsian.errors import TooExpensiveError
from gibbsian.expectations.regions import Region, Target
from gibbsian.graphs import Graph
from gibbsian.inference import Planar
from gibbsian.inference.planar.kasteleyn import is_planar
from gibbsian.models.base import Array
from gibbsian.models.factors import FactorGraph, Table
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.resources import format_bytes

# Cells of the largest table for one sample; beyond, the sum takes seconds a sample.
MAX_CELLS = 2**22
# Cells of the largest table of a block of samples.
BLOCK_CELLS = 2**20


@dataclass(frozen=True, eq=False)
class RegionPlan:
    """How to sum one region out: it depends on which variables share factors, not on samples or parameters.

    Parameters
    ----------
    target : tuple of int
        The variables whose joint distribution is wanted.
    region : tuple of int
        The variables that are summed over, as far as they are connected with the target; empty for plain Monte Carlo.
    factors : tuple of int
        The factors that touch the region.
    order : tuple of int
        The variables of the region outside the target, in the order of their elimination.
    cells : int
        Cells of the largest table of one sample.
    fields : tuple of int or None
        The variables of the region that may have fields, where Pfaffians take the place of elimination.
    """

    target: Target
    region: Region
    factors: tuple[int, ...]
    order: tuple[int, ...]
    cells: int
    fields: tuple[int, ...] | None = None


def plan_region(graph: FactorGraph, target: Target, region: Region) -> RegionPlan:
    """Plan the sum over a region, or refuse it where its tables would be too large."""
    if not region:
        return RegionPlan(target, (), (), (), 1)
    links = _connected_part(graph, target, region)
    kept = tuple(sorted(links))
    factors = tuple(sorted({number for node in kept for number in graph.factors_of[node]}))
    order, cells = _elimination_order(links, target, graph.cardinalities)
    if cells <= MAX_CELLS:
        return RegionPlan(target, kept, factors, order, cells)
    fields = _planar_fields(graph, kept, factors)
    if fields is None:
        raise TooExpensiveError(
            f"summing over the region of {len(region)} variables around {target} needs a table of "
            f"{format_bytes(8.0 * cells)} or more for each sample",
            "choose a smaller region, for example 's2'",
        )
    return RegionPlan(target, kept, factors, (), 1, fields)


def _connected_part(graph: FactorGraph, target: Target, region: Region) -> dict[int, set[int]]:
    """The neighbours, within the region, of each variable that can be reached from the target inside it."""
    inside, links, waiting = set(region), {}, list(target)
    while waiting:
        node = waiting.pop()
        if node not in links:
            touched = {other for number in graph.factors_of[node] for other in graph.factors[number].nodes}
            links[node] = (touched & inside) - {node}
            waiting.extend(links[node])
    return links


def _elimination_order(links: dict[int, set[int]], target: Target, cardinalities: Array) -> tuple[tuple[int, ...], int]:
    """Take the variable whose table is smallest, again and again; targets stay to the end. Give up at a large one."""
    links = {node: set(others) for node, others in links.items()}
    left = set(links) - set(target)
    order, largest = [], math.prod(int(cardinalities[node]) for node in target)
    while left:
        cells, node = min((_cells(other, links, cardinalities), other) for other in left)
        largest = max(largest, cells)
        if largest > MAX_CELLS:
            break
        neighbours = links.pop(node)
        for other in neighbours:
            links[other] |= neighbours - {other}
            links[other].discard(node)
        left.remove(node)
        order.append(node)
    return tuple(order), largest


def _cells(node: int, links: dict[int, set[int]], cardinalities: Array) -> int:
    return math.prod(int(cardinalities[other]) for other in (node, *links[node]))


def conditional_tables(graph: FactorGraph, plan: RegionPlan, codes: Array) -> Array:
    """Return ``P(x_target | x outside the region)`` for each sample, shape ``(n_samples, *cardinalities of target)``.

    Parameters
    ----------
    graph : FactorGraph
        The distribution.
    plan : RegionPlan
        From `plan_region`.
    codes : ndarray of shape (n_variables, n_samples)
        The samples by variable, in codes; numbers outside the region where variables are real.
    """
    shape = tuple(int(graph.cardinalities[node]) for node in plan.target)
    result = np.empty((codes.shape[1], *shape))
    if plan.fields is not None:
        return _by_pfaffians(graph, plan, codes)
    size = max(1, BLOCK_CELLS // plan.cells)
    for start in range(0, codes.shape[1], size):
        rows = slice(start, start + size)
        result[rows] = _tables_of_block(graph, plan, codes[:, rows], shape)
    return result


def _tables_of_block(graph: FactorGraph, plan: RegionPlan, codes: Array, shape: tuple[int, ...]) -> Array:
    if not plan.region:
        return _point_masses(plan.target, codes, shape)
    inside = set(plan.region)
    tables = [graph.given_outside(number, inside, codes) for number in plan.factors]
    for node in plan.order:
        touching = [table for table in tables if node in table[0]]
        tables = [table for table in tables if node not in table[0]]
        tables.append(_sum_out(node, _product(touching)))
    ordered = tuple(sorted(plan.target))
    uniform = np.zeros((1, *(shape[plan.target.index(node)] for node in ordered)))
    _, log_weights = _product([*tables, (ordered, uniform)])
    axes = tuple(range(1, log_weights.ndim))
    weights = np.exp(log_weights - log_weights.max(axis=axes, keepdims=True))
    weights /= weights.sum(axis=axes, keepdims=True)
    return weights.transpose(0, *(1 + ordered.index(node) for node in plan.target))


def _point_masses(target: Target, codes: Array, shape: tuple[int, ...]) -> Array:
    """The samples themselves: plain Monte Carlo integration."""
    masses = np.zeros((codes.shape[1], *shape))
    masses[(np.arange(codes.shape[1]), *(codes[node] for node in target))] = 1.0
    return masses


def _product(tables: list[Table]) -> Table:
    """Add log-weights over the union of their variables."""
    scope = tuple(sorted({node for nodes, _ in tables for node in nodes}))
    total: Array | float = 0.0
    for nodes, rows in tables:
        spread = [1 if node not in nodes else rows.shape[1 + nodes.index(node)] for node in scope]
        total = total + rows.reshape(len(rows), *spread)
    return scope, np.asarray(total)


def _sum_out(node: int, table: Table) -> Table:
    """Log-sum-exp over one variable."""
    scope, rows = table
    axis = 1 + scope.index(node)
    top = rows.max(axis=axis, keepdims=True)
    top[~np.isfinite(top)] = 0.0  # all its states are impossible: the message says so
    with np.errstate(divide="ignore"):
        message = np.log(np.exp(rows - top).sum(axis=axis)) + np.squeeze(top, axis)
    return tuple(other for other in scope if other != node), message


def _planar_fields(graph: FactorGraph, region: Region, factors: tuple[int, ...]) -> tuple[int, ...] | None:
    """The variables with fields of a region that is planar together with its ghost; None for other regions."""
    inside, fields = set(region), set()
    for number in factors:
        nodes, table = graph.factors[number].nodes, graph.factors[number].table
        free = inside.intersection(nodes)
        if len(free) > 2 or any(graph.cardinalities[node] != 2 for node in free):
            return None
        if len(nodes) == 1 or len(free) == 1 or not np.allclose(table, table[(slice(None, None, -1),) * len(nodes)]):
            fields |= free
    part, _ = graph.graph.subgraph(region)
    places = tuple(place for place, node in enumerate(region) if node in fields)
    return tuple(sorted(fields)) if is_planar(part, places) else None


def _by_pfaffians(graph: FactorGraph, plan: RegionPlan, codes: Array) -> Array:
    """Tables of the target by the exact engine of planar graphs; equal boundaries are summed once."""
    assert plan.fields is not None  # the plan was made for Pfaffians
    part, _ = graph.graph.subgraph(plan.region)
    distinct, which = np.unique(_spin_parameters(graph, plan, part, codes), axis=0, return_inverse=True)
    place = {node: number for number, node in enumerate(plan.region)}
    family = PairwiseFamily(part, bias=bool(plan.fields))
    engine = Planar(family, max_seconds=np.inf)
    engine.dual(tuple(place[node] for node in plan.fields))  # one for all samples, though some have fewer fields
    own = [place[node] for node in plan.target]
    tables = [engine.at(theta[-family.n_parameters :]).marginal(own) for theta in distinct]
    return np.array(tables)[which.ravel()]


def _spin_parameters(graph: FactorGraph, plan: RegionPlan, part: Graph, codes: Array) -> Array:
    """Biases and couplings of the region's spins given each sample."""
    inside, place = set(plan.region), {node: number for number, node in enumerate(plan.region)}
    edge_of = {tuple(edge): number + len(plan.region) for number, edge in enumerate(part.edges.tolist())}
    theta = np.zeros((codes.shape[1], len(plan.region) + part.n_edges))
    for number in plan.factors:
        nodes, rows = graph.given_outside(number, inside, codes)
        for axis, node in enumerate(nodes):
            low, high = np.moveaxis(rows, 1 + axis, 0)
            theta[:, place[node]] += 0.5 * (high - low).reshape(len(rows), -1).mean(axis=1)
        if len(nodes) == 2:
            slope = rows[:, 1, 1] - rows[:, 1, 0] - rows[:, 0, 1] + rows[:, 0, 0]
            theta[:, edge_of[tuple(place[node] for node in nodes)]] += 0.25 * slope
    return theta
