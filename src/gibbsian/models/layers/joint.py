"""The joint distribution of discrete layers as a model of plain variables: the units of all layers, from the lowest.

Layers of one two-valued kind make a `PairwiseModel` whose theta has the layout of the layers' own. Other discrete
layers make a `PottsModel`, whose tables can say a few things twice; `parts_of` reads the layers' parameters off it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from gibbsian.domain import DOMAINS, Categories
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models.family import StackParts, Units
from gibbsian.models.layers.units import columns_of, count_states, value_tables
from gibbsian.models.pairwise import PairwiseModel
from gibbsian.models.potts import PottsModel
from gibbsian.resources import spans

JointModel = PairwiseModel | PottsModel


def joint_model(layers: Sequence[Units], parts: StackParts) -> JointModel:
    """Return the distribution of layers with weights between neighbours; the visible units come first."""
    biases, weights = parts
    if not np.isfinite(count_states(layers)):
        raise ArgumentError(
            "real numbers have no list of values to sum over", "ask for this of a machine whose units are all discrete"
        )
    graph, n_hidden = _graph(layers), sum(layer.n_units for layer in layers[1:])
    kinds = {layer.kind for layer in layers}
    if len(kinds) == 1 and layers[0].kind in DOMAINS:
        theta = np.concatenate([*biases, *(matrix.ravel() for matrix in weights)])
        return PairwiseModel(graph, theta, DOMAINS[layers[0].kind], n_hidden=n_hidden)
    features = [table for layer in layers for table in value_tables(layer)]
    columns = _columns(layers)
    flat = np.concatenate(biases)
    tables = [feature @ flat[at] for feature, at in zip(features, columns, strict=True)]
    matrix = _square(layers, weights)
    couplings = [features[i] @ matrix[columns[i], columns[j]] @ features[j].T for i, j in graph.edges]
    domain = Categories(tuple(len(feature) for feature in features))
    return PottsModel.build(graph, tables, couplings, domain)


def parts_of(layers: Sequence[Units], joint: JointModel, split: Callable[[np.ndarray], StackParts]) -> StackParts:
    """Return the biases of the layers and the weights between neighbours that make this joint distribution."""
    if isinstance(joint, PairwiseModel):
        return split(joint.theta)
    columns = _columns(layers)
    readers = [_reader(table) for layer in layers for table in value_tables(layer)]
    sides = spans(layer.width for layer in layers)
    size = sides[-1].stop
    flat, matrix = np.zeros(size), np.zeros((size, size))
    for i, (reader, table) in enumerate(zip(readers, joint.biases, strict=True)):
        flat[columns[i]] += (reader @ table)[-len(flat[columns[i]]) :]
    for (i, j), table in zip(joint.graph.edges, joint.couplings, strict=True):
        found = readers[i] @ table @ readers[j].T
        high, wide = len(flat[columns[i]]), len(flat[columns[j]])
        matrix[columns[i], columns[j]] = found[-high:, -wide:]
        # what a unit's constant goes with is a bias of the other unit
        if len(found) > high:
            flat[columns[j]] += found[0, -wide:]
        if found.shape[1] > wide:
            flat[columns[i]] += found[-high:, 0]
    return StackParts([flat[side] for side in sides], [matrix[low, high] for low, high in itertools.pairwise(sides)])


def _graph(layers: Sequence[Units]) -> Graph:
    """Every unit of a layer with every unit of the next."""
    starts = np.concatenate([[0], np.cumsum([layer.n_units for layer in layers])])
    edges = []
    for place, (lower, upper) in enumerate(itertools.pairwise(layers)):
        i, j = np.divmod(np.arange(lower.n_units * upper.n_units), upper.n_units)
        edges.append(np.column_stack([starts[place] + i, starts[place + 1] + j]))
    return Graph(int(starts[-1]), np.concatenate(edges))


def _columns(layers: Sequence[Units]) -> list[slice]:
    """The columns of values of each unit."""
    return spans(at.stop - at.start for layer in layers for at in columns_of(layer))


def _square(layers: Sequence[Units], weights: Sequence[np.ndarray]) -> np.ndarray:
    """All weights as one matrix over the columns of all layers."""
    sides = spans(layer.width for layer in layers)
    matrix = np.zeros((sides[-1].stop, sides[-1].stop))
    for (lower, upper), part in zip(itertools.pairwise(sides), weights, strict=True):
        matrix[lower, upper] = part
    return matrix


def _reader(feature: np.ndarray) -> np.ndarray:
    """The matrix that turns a table over a unit's values into coefficients: of a constant, where needed, and values."""
    n_values, width = feature.shape
    full = feature if width == n_values else np.column_stack([np.ones(n_values), feature])
    return np.linalg.inv(full)
