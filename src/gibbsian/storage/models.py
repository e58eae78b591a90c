"""Model files: the family and theta, with the coding, the names and the story of the fit."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.diagnostics import DataMoments
from gibbsian.domain import AnyCoding
from gibbsian.errors import ArgumentError
from gibbsian.learning import Trace
from gibbsian.models.base import FAMILIES, Array, Constrained, Family, Model, Parts, keeps
from gibbsian.models.file_parts import reject
from gibbsian.models.variables import Variables, variables_of
from gibbsian.storage.codings import Header, read_coding, written_coding
from gibbsian.storage.container import read_tensors, reading, write_tensors
from gibbsian.storage.schema import check_same, check_whole, within


@dataclass(frozen=True)
class StoredModel:
    """All that a model file holds.

    Parameters
    ----------
    model : Model
        The distribution, of any family in `FAMILIES`.
    coding : Coding, CategoryCoding or None
        How its values are written; None for real numbers.
    names : tuple of str
        The variables' names.
    settings : dict
        The estimator's plain settings.
    provenance : dict
        Where the model came from.
    trace : Trace
        The steps of the fit.
    moments : DataMoments, optional
        The moments of the data.
    history : dict of str to ndarray
        Figures that were followed.
    parts : tuple of StoredModel
        Models that this one is made of: the machines of a mixture.
    carry : dict of str to ndarray
        What of the learner's state `partial_fit` goes on from.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
    >>> gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).save(path)
    >>> gb.storage.read_model(path).names
    ('x0', 'x1')
    """

    model: Model[Family]
    coding: AnyCoding | None
    names: tuple[str, ...]
    settings: dict[str, object] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    moments: DataMoments | None = None
    history: dict[str, Array] = field(default_factory=dict)
    estimator: str = ""
    parts: tuple[StoredModel, ...] = ()
    carry: dict[str, Array] = field(default_factory=dict)


def write_model(path: str | os.PathLike[str], stored: StoredModel) -> None:
    """Write a model file.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> from gibbsian.storage import StoredModel, read_model, write_model
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> write_model(path, StoredModel(model, gb.domain.as_coding("spin"), ("a", "b")))
    >>> read_model(path).coding.name
    'spin'
    """
    header, tensors = _written(stored)
    write_tensors(path, header.pop("kind"), header, tensors)


def _written(stored: StoredModel) -> tuple[Header, dict[str, Array]]:
    """Return a model as header and arrays, those of its parts after its own."""
    family = stored.model.family
    kind = FAMILIES.name_for(family)
    if not kind or FAMILIES.factory(kind) is not type(family):
        raise ArgumentError(f"a {type(family).__name__} cannot be written to a file", "register the family")
    structure, arrays, _ = family.to_parts()
    parts = [_written(part) for part in stored.parts]
    header = {
        "kind": kind,
        "parts": [header for header, _ in parts],
        "estimator": stored.estimator,
        "coding": written_coding(stored.coding),
        "names": list(stored.names),
        "structure": structure,
        "settings": stored.settings,
        "provenance": stored.provenance,
        "details": list(stored.trace.details),
        "history": list(stored.history),
    }
    tensors = {f"model.{name}": array for name, array in {**arrays, "theta": stored.model.theta}.items()}
    tensors["trace"] = stored.trace.to_array()
    tensors |= {f"history.{name}": np.asarray(values) for name, values in stored.history.items()}
    tensors |= {f"carry.{name}": array for name, array in stored.carry.items()}
    if stored.moments is not None:
        tensors |= {"moments.mean": stored.moments.mean, "moments.count": stored.moments.count}
    for place, (_, own) in enumerate(parts):
        tensors |= {f"part.{place}.{name}": array for name, array in own.items()}
    return header, tensors


def read_model(path: str | os.PathLike[str]) -> StoredModel:
    """Read a model file.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.storage.read_model("absent.gibbs")
    Traceback (most recent call last):
        ...
    gibbsian.errors.FileFormatError: absent.gibbs does not exist or is not a file
    """
    header, tensors = read_tensors(path, tuple(FAMILIES))
    with reading(path):
        check_whole(header, tensors)
        return _rebuilt(header, tensors)


def _rebuilt(header: Header, tensors: dict[str, Array]) -> StoredModel:
    coding, names = read_coding(header["coding"]), tuple(header["names"])
    parts = tuple(_rebuilt(part, within(tensors, f"part.{place}.")) for place, part in enumerate(header["parts"]))
    variables = Variables.reals(len(names)) if coding is None else variables_of(coding.domain, len(names))
    return StoredModel(
        _model(header, within(tensors, "model."), variables, tuple(part.model for part in parts)),
        coding,
        names,
        header["settings"],
        header["provenance"],
        Trace.from_array(tensors["trace"], header["details"]),
        DataMoments(tensors["moments.mean"], tensors["moments.count"]) if "moments.mean" in tensors else None,
        {name: tensors[f"history.{name}"] for name in header["history"]},
        header["estimator"],
        parts,
        within(tensors, "carry."),
    )


def _model(
    header: Header, arrays: dict[str, Array], variables: Variables, models: tuple[Model[Family], ...]
) -> Model[Family]:
    """Build a model, which must have the columns that the coding says, and be what the file says."""
    theta, structure = arrays.pop("theta"), header["structure"]
    kind: Any = FAMILIES.factory(header["kind"])
    family = kind.from_parts(Parts(structure, arrays, models), variables)
    if family.variables.sizes[: len(family.variables) - family.n_hidden] != variables.sizes:
        reject("coding", "has other values than the model")
    if keeps(family, Constrained):
        family.require_distribution(theta)
    check_same(family.to_parts(), structure, arrays)
    return Model(family, theta)
