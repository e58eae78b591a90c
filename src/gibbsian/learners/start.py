"""Where learning begins: at a model's own parameters, at a mean-field solution, or at another model."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.startup import BaseEstimator


def start_from(start: Any, model: Any, data: Dataset) -> Any:
    """Return where the learner begins: at zero, at a mean-field solution, or at the parameters of another model."""
    if start is None:
        return model
    if isinstance(start, str):
        if model.is_pairwise:
            from gibbsian.learners.mean_field import warm_start

            return warm_start(start, model, data)
        raise ArgumentError(
            "is for a BoltzmannMachine", "start from a model of the same kind", argument="start", value=start
        )
    given = model_to_start_from(start)
    if type(given) is not type(model):
        raise ArgumentError(
            "must be None, the name of a mean-field learner, a model or a fitted machine", argument="start", value=start
        )
    if given.graph != model.graph:
        raise ArgumentError("start has another graph than the machine", "start from a model on the same graph")
    if model.is_pairwise:
        given, _ = given.to_domain(model.domain)
        parts = [given.biases, given.couplings] if model.bias else [given.couplings]
        return model.replace(np.concatenate(parts))
    if _structure(given) != _structure(model):
        raise ArgumentError("start has other cliques or values than the machine", "start from a model of the same ones")
    return model.replace(given.theta)


def model_to_start_from(start: Any) -> Any:
    """Return the model of a fitted machine, or what else was given; refuse a machine that is not fitted."""
    if isinstance(start, BaseEstimator) and not hasattr(start, "model_"):
        raise ArgumentError(
            f"start is a {type(start).__name__} that is not fitted, as are all that scikit-learn has cloned",
            "fit it, or give the model of a fitted one (start=machine.model_), which clones keep",
        )
    return getattr(start, "model_", start)


def _structure(model: Any) -> tuple[Any, ...]:
    """What a model has besides parameters and graph."""
    return model.domain, getattr(model, "cliques", None)
