"""Where learning begins: at a model's own parameters, at a mean-field solution, or at another model."""

from __future__ import annotations

from typing import Any

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.ising import is_ising
from gibbsian.startup import BaseEstimator


def start_from(start: Any, model: Model[Any], data: Dataset) -> Model[DiscreteFamily]:
    """Return where the learner begins: at zero, at a mean-field solution, or at the parameters of another model."""
    if start is None:
        return model
    if isinstance(start, str):
        if is_ising(model.family):
            from gibbsian.learning.mean_field import warm_start

            return warm_start(start, model, data)
        raise ArgumentError(
            "is for a BoltzmannMachine", "start from a model of the same kind", argument="start", value=start
        )
    given = model_to_start_from(start)
    family = model.family
    if not isinstance(given, Model) or type(given.family) is not type(family):
        raise ArgumentError(
            "must be None, the name of a mean-field learner, a model or a fitted machine", argument="start", value=start
        )
    if given.family.graph != family.graph:
        raise ArgumentError("start has another graph than the machine", "start from a model on the same graph")
    if isinstance(family, PairwiseFamily):
        recoded, _ = given.family.recode(given.theta, model.variables)
        return model.replace(recoded.theta if family.bias else recoded.parts.couplings)
    if _structure(given.family) != _structure(family):
        raise ArgumentError("start has other cliques or values than the machine", "start from a model of the same ones")
    return model.replace(given.theta)


def model_to_start_from(start: object) -> Any:
    """Return the model of a fitted machine, or what else was given; refuse a machine that is not fitted."""
    if not isinstance(start, BaseEstimator):
        return start
    if not hasattr(start, "model_"):
        raise ArgumentError(
            f"start is a {type(start).__name__} that is not fitted, as are all that scikit-learn has cloned",
            "fit it, or give the model of a fitted one (start=machine.model_), which clones keep",
        )
    return start.model_


def _structure(family: DiscreteFamily) -> tuple[object, ...]:
    """What a family has besides a graph."""
    return family.variables, family.scopes, family.n_parameters
