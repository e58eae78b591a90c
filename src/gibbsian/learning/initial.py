"""Where learning begins: at a model's own parameters, a mean-field solution, another model, or random couplings."""

from __future__ import annotations

from typing import Any

import numpy as np

from gibbsian.arrays import Tensor
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.models.base import DiscreteFamily, Family, Model
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.ising import is_ising
from gibbsian.models.variables import Variables
from gibbsian.settings import Setting, check_value
from gibbsian.startup import BaseEstimator

_SCALE = Setting("Size of the random parameters.", "number", low=0)


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
    theirs, ours = ((each.variables, each.scopes, each.n_parameters) for each in (given.family, family))
    if theirs != ours:
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


def break_symmetry(model: Model[Any], hidden: Any, rng: np.random.Generator, scale: float = 0.1) -> Model[Any]:
    """Give the interactions of hidden units small random parameters.

    Where they are all zero hidden units are independent of everything and of each other's making: the gradient of
    their interactions vanishes, and two units that start alike stay alike. All other parameters keep their values.

    Parameters
    ----------
    model : Model
        Where learning would start.
    hidden : array-like of bool, of int, or Dataset
        Which variables are hidden, as a mask or by number; of a data set, the columns that no row shows.
    rng : Generator
        Source of the random numbers.
    scale : float
        Their standard deviation, times T: it belongs to parameters over T.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learning import break_symmetry
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
    >>> start = break_symmetry(model, [False, False, True], np.random.default_rng(0))
    >>> (start.theta != 0).tolist()                            # the biases, then the pairs 01, 02 and 12
    [False, False, False, False, True, True]
    """
    check_value("scale", scale, _SCALE)
    touched = model.penalised & model.family.terms_of(hidden_columns(model, hidden))
    noise = rng.normal(scale=scale, size=model.theta.size)
    return model.replace(model.theta + np.where(touched, noise, 0.0))


def scattered(model: Model[Any], rng: np.random.Generator) -> Model[Any]:
    """Return random couplings of the hidden units of a pairwise model from which learning can start.

    Their spread is one over the root of the number of couplings of a hidden unit, as of spins: the field on a unit is
    then of order one, whatever their number.
    """
    family, hidden = model.family, np.arange(model.n_variables) >= model.n_variables - model.n_hidden
    scale = 1.0 / np.sqrt(family.graph.degrees[hidden].mean())
    if not family.bias:  # there are no biases to convert with; a product of 0/1 is a quarter of that of spins
        return break_symmetry(model, hidden, rng, scale * (2.0 / family.layout.gap) ** 2)
    spins = break_symmetry(family.recode(model.theta, Variables.spins)[0], hidden, rng, scale)
    return model.replace(spins.family.recode(spins.theta, model.variables)[0].theta)


def hidden_columns(model: Model[Family], hidden: Tensor) -> np.ndarray:
    """Return a mask of the hidden variables, given as a mask, by number, or as the data that do not show them."""
    if isinstance(hidden, Dataset):
        return np.zeros(hidden.n_variables, bool) if hidden.missing is None else np.asarray(hidden.missing.all(axis=0))
    given = np.asarray(hidden)
    if given.dtype == bool and given.shape == (model.n_variables,):
        return given
    if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= model.n_variables):
        raise ArgumentError(
            f"must be a mask of {model.n_variables} variables, or their numbers", argument="hidden", value=hidden
        )
    return np.isin(np.arange(model.n_variables), given)
