"""Model files: one kind for each model, all with the coding, the names and the story of the fit."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gibbsian.diagnostics import DataMoments
from gibbsian.domain import REALS, AnyCoding, AnyDomain
from gibbsian.errors import ArgumentError
from gibbsian.learners import Trace
from gibbsian.models.family import FAMILIES, Constrained, Model, Parts
from gibbsian.models.file_parts import refuse
from gibbsian.models.variables import variables_of
from gibbsian.storage.codings import read_coding, written_coding
from gibbsian.storage.container import read_tensors, reading, write_tensors
from gibbsian.storage.schema import check_same, check_whole, kind_of, kinds, within


@dataclass(frozen=True)
class StoredModel:
    """All that a model file holds.

    Parameters
    ----------
    model : Model
        The distribution, of any family in `FAMILIES` or kind in `MODELS`.
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

    model: Any
    coding: AnyCoding | None
    names: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    trace: Trace = field(default_factory=Trace)
    moments: DataMoments | None = None
    history: dict[str, np.ndarray] = field(default_factory=dict)
    estimator: str = ""
    parts: tuple[StoredModel, ...] = ()
    carry: dict[str, np.ndarray] = field(default_factory=dict)


def write_model(path: str | os.PathLike[str], stored: StoredModel) -> None:
    """Write a model file.

    Examples
    --------
    >>> import tempfile, pathlib, gibbsian as gb
    >>> from gibbsian.storage import StoredModel, read_model, write_model
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.gibbs"
    >>> model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    >>> write_model(path, StoredModel(model, gb.domain.as_coding("spin"), ("a", "b")))
    >>> read_model(path).coding.name
    'spin'
    """
    header, tensors = _written(stored)
    write_tensors(path, header.pop("kind"), header, tensors)


def _written(stored: StoredModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a model as header and arrays, those of its parts after its own."""
    family = type(stored.model.family)
    kind = family.registered_name
    if kind not in kinds() or kind_of(kind) is not family:
        raise ArgumentError(f"a {family.__name__} cannot be written to a file", "register the family")
    structure, arrays, *_ = stored.model.family.to_parts()
    if kind in FAMILIES:
        arrays = {**arrays, "theta": stored.model.theta}
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
    tensors = {**{f"model.{name}": array for name, array in arrays.items()}, "trace": stored.trace.to_array()}
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
    header, tensors = read_tensors(path, kinds())
    with reading(path):
        check_whole(header, tensors)
        return _rebuilt(header, tensors)


def _rebuilt(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> StoredModel:
    coding = read_coding(header["coding"])
    parts = tuple(_rebuilt(part, within(tensors, f"part.{place}.")) for place, part in enumerate(header["parts"]))
    domain = None if coding is None else coding.domain
    return StoredModel(
        _model(header, within(tensors, "model."), domain, tuple(part.model for part in parts)),
        coding,
        tuple(header["names"]),
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
    header: dict[str, Any], arrays: dict[str, np.ndarray], domain: AnyDomain | None, models: tuple[Any, ...]
) -> Any:
    """Build a model, which must have as many columns as there are names, and be what the file says."""
    kind, structure, n_columns = kind_of(header["kind"]), header["structure"], len(header["names"])
    if header["kind"] in FAMILIES:
        theta, others = arrays["theta"], {name: array for name, array in arrays.items() if name != "theta"}
        family = kind.from_parts(Parts(structure, others, models), variables_of(domain or REALS, n_columns))
        if isinstance(family, Constrained):
            family.require_distribution(theta)
        check_same(family.to_parts(), structure, others)
        return Model(family, theta)
    model = kind.from_parts(structure, arrays, domain)
    if model.n_variables != n_columns + structure.get("n_hidden", 0):
        refuse("names", f"has {n_columns} entries, but the model has {model.n_variables} variables")
    if not structure.get("n_hidden") and getattr(model, "domain", domain) != (domain or REALS):
        refuse("coding", "has other values than the model")
    check_same(model.to_parts(), structure, arrays)
    return model
