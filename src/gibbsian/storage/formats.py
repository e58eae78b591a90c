"""What each kind of model keeps in a file besides its parameters, and how it is put together again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gibbsian.domain import DOMAINS, AnyCoding, AnyDomain, CategoryCoding, Coding
from gibbsian.errors import ArgumentError
from gibbsian.graphs import Graph
from gibbsian.models import FullSpanModel, HigherOrderModel, MarkovRandomField, Model, PairwiseModel, PottsModel
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.deep import DeepModel
from gibbsian.models.restricted import RestrictedModel
from gibbsian.models.scopes import Scopes
from gibbsian.storage.layers import read_layer, written_layer

Header = dict[str, Any]
Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class ModelFormat:
    """How one kind of model is written and read.

    Parameters
    ----------
    name : str
        What the file calls it: the name in ``gibbsian.models.MODELS``.
    model : type
        Its class.
    version : int
        The oldest version of the format that knows the kind.
    structure : callable
        ``structure(model)`` is a dictionary of arrays that, with theta, make up the model.
    rebuild : callable
        ``rebuild(header, tensors, domain)`` is the model again; the domain is None where the variables are numbers.
    settings : callable
        ``settings(model)`` is a dictionary of plain values for the header.

    Examples
    --------
    >>> from gibbsian.storage.formats import FORMATS
    >>> FORMATS["pairwise"].model.__name__
    'PairwiseModel'
    """

    name: str
    model: type
    version: int
    structure: Callable[[Any], Tensors]
    rebuild: Callable[[Header, Tensors, Any], Any]
    settings: Callable[[Any], Header] = lambda model: {}


def _edges(model: PairwiseModel | PottsModel) -> Tensors:
    return {"edges": model.graph.edges}


def _graph(header: Header, tensors: Tensors) -> Graph:
    return Graph(len(header["names"]) + header.get("n_hidden", 0), tensors["edges"])


def _members(scopes: Sequence[tuple[int, ...]], n_variables: int) -> Tensors:
    indptr, members = Scopes(scopes, n_variables).csr
    return {"indptr": indptr, "members": members}


def _scopes(header: Header, tensors: Tensors) -> Scopes:
    members, indptr = tensors["members"].tolist(), tensors["indptr"].tolist()
    return Scopes((members[start:end] for start, end in itertools.pairwise(indptr)), len(header["names"]))


def _pairwise(header: Header, tensors: Tensors, domain: Any) -> PairwiseModel:
    return PairwiseModel(
        _graph(header, tensors), tensors["theta"], domain, header["temperature"], header["bias"], header["n_hidden"]
    )


def _higher_order(header: Header, tensors: Tensors, domain: AnyDomain) -> HigherOrderModel:
    n = len(header["names"])
    return HigherOrderModel(n, _scopes(header, tensors), tensors["theta"], domain, header["temperature"])


def _potts(header: Header, tensors: Tensors, domain: AnyDomain) -> PottsModel:
    return PottsModel(_graph(header, tensors), tensors["theta"], domain, header["temperature"])


def _markov_random_field(header: Header, tensors: Tensors, domain: AnyDomain) -> MarkovRandomField:
    n = len(header["names"])
    return MarkovRandomField(n, _scopes(header, tensors), tensors["theta"], domain, header["temperature"])


def _full_span(header: Header, tensors: Tensors, domain: AnyDomain) -> FullSpanModel:
    cardinalities = domain.cardinalities(len(header["names"])).tolist()
    return FullSpanModel.build(cardinalities, tensors["indices"], tensors["theta"])


def _layers(model: RestrictedModel) -> Header:
    return {"visible": written_layer(model.visible), "hidden": written_layer(model.hidden)}


def _restricted(header: Header, tensors: Tensors, domain: Any) -> RestrictedModel:
    visible, hidden = read_layer(header["visible"]), read_layer(header["hidden"])
    return RestrictedModel(visible, hidden, tensors["theta"], header["temperature"])


def _all_layers(model: DeepModel | BeliefNetwork) -> Header:
    return {"layers": [written_layer(layer) for layer in model.layers]}


def _of_layers(kind: type) -> Callable[[Header, Tensors, Any], Any]:
    """How a model of layers in a row is put together again."""

    def rebuild(header: Header, tensors: Tensors, domain: Any) -> Any:
        return kind(tuple(map(read_layer, header["layers"])), tensors["theta"], header["temperature"])

    return rebuild


FORMATS = {
    kind.name: kind
    for kind in (
        ModelFormat(
            "pairwise",
            PairwiseModel,
            1,
            _edges,
            _pairwise,
            lambda model: {"bias": model.bias, "n_hidden": model.n_hidden},
        ),
        ModelFormat(
            "higher-order", HigherOrderModel, 2, lambda model: _members(model.cliques, model.n_variables), _higher_order
        ),
        ModelFormat("potts", PottsModel, 2, _edges, _potts),
        ModelFormat(
            "markov-random-field",
            MarkovRandomField,
            2,
            lambda model: _members(model.scopes, model.n_variables),
            _markov_random_field,
        ),
        ModelFormat("full-span", FullSpanModel, 2, lambda model: {"indices": model.indices}, _full_span),
        ModelFormat("restricted", RestrictedModel, 3, lambda model: {}, _restricted, _layers),
        ModelFormat("deep", DeepModel, 3, lambda model: {}, _of_layers(DeepModel), _all_layers),
        ModelFormat("belief-network", BeliefNetwork, 3, lambda model: {}, _of_layers(BeliefNetwork), _all_layers),
    )
}


def format_of(model: Model) -> ModelFormat:
    """Return how a model is written.

    Examples
    --------
    >>> import gibbsian as gb
    >>> from gibbsian.storage.formats import format_of
    >>> format_of(gb.PairwiseModel.zeros(gb.graphs.complete(2))).name
    'pairwise'
    """
    for kind in FORMATS.values():
        if type(model) is kind.model:
            return kind
    raise ArgumentError(
        f"a {type(model).__name__} cannot be written to a file", f"only {', '.join(FORMATS)} models can"
    )


def written_coding(coding: AnyCoding | None) -> Header | None:
    """Return a coding as a header holds it; real numbers have none.

    Examples
    --------
    >>> from gibbsian.domain import CategoryCoding
    >>> from gibbsian.storage.formats import written_coding
    >>> written_coding(CategoryCoding.of_values((-1, 0, 1), 2))
    {'name': 'values', 'labels': [[-1, 0, 1], [-1, 0, 1]]}
    """
    if coding is None:
        return None
    if isinstance(coding, CategoryCoding):
        return {"name": coding.name, "labels": [list(labels) for labels in coding.labels]}
    return {"name": coding.name, "low": coding.low, "high": coding.high, "domain": coding.domain.name}


def read_coding(written: Header | None) -> AnyCoding | None:
    """Return the coding that `written_coding` wrote.

    Examples
    --------
    >>> from gibbsian.storage.formats import read_coding
    >>> read_coding({"name": "categorical", "labels": [["a", "b"], [1, 2, 3]]}).domain.sizes
    (2, 3)
    """
    if written is None:
        return None
    if "labels" not in written:
        return Coding(written["name"], written["low"], written["high"], DOMAINS[written["domain"]])
    if written["name"] == "values":
        return CategoryCoding.of_values(written["labels"][0], len(written["labels"]))
    return CategoryCoding.of_labels(written["labels"])
