"""Where annealing starts: distributions of independent variables."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.models.base import DiscreteFamily, Family, Model
from gibbsian.models.ising import is_ising


class IndependentVariables(NamedTuple):
    """Independent variables, each with the probabilities of its values.

    Parameters
    ----------
    log_probabilities : ndarray
        Of every value of every variable, one variable after the other.
    starts : ndarray of int
        Where those of each variable begin, and one more where the last end.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.old_sampling.independent import IndependentVariables
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.5, 0.0], [3.0])
    >>> IndependentVariables.uniform(model).probabilities(0)
    array([0.5, 0.5])
    >>> IndependentVariables.of_biases(model).probabilities(0).round(4)   # 1 / (1 + exp(1)) for the lower value
    array([0.2689, 0.7311])
    """

    log_probabilities: np.ndarray
    starts: np.ndarray

    @classmethod
    def from_log_weights(cls, log_weights: list[np.ndarray]) -> Self:
        """Normalise one array of log-weights for each variable."""
        starts = np.concatenate([[0], np.cumsum([len(each) for each in log_weights])]).astype(np.int64)
        return cls(np.concatenate([each - np.logaddexp.reduce(each) for each in log_weights]), starts)

    @classmethod
    def uniform(cls, model: Model[Family]) -> Self:
        """Give every value of a variable the same probability (YU20 section 4.2)."""
        return cls.from_log_weights([np.zeros(q) for q in model.variables.sizes])

    @classmethod
    def of_biases(cls, model: Model[DiscreteFamily]) -> Self:
        """Take what the model says of each variable when all others are uniformly random.

        For spins these are the biases. In any other coding it is the same, because the interactions' averages over
        the other variables are counted in.
        """
        if is_ising(model.family):  # without a table for every edge
            spins = model.family.ising(model.theta).fields
            return cls.from_log_weights([np.array([-field, field]) for field in spins])
        factors = model.family.factors(model.theta)
        fields = [np.zeros(q) for q in factors.cardinalities]
        for nodes, table in ((factor.nodes, factor.table) for factor in factors.factors):
            for axis, node in enumerate(nodes):
                fields[node] += table.mean(axis=tuple(other for other in range(len(nodes)) if other != axis))
        return cls.from_log_weights(fields)

    @classmethod
    def of_data(cls, model: Model[Family], data: Dataset | np.ndarray) -> Self:
        """Take the base rates of the data, each value counted once more than it occurs.

        Without the extra count a value that the data lacks would have no way into the walkers.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> from gibbsian.old_sampling.independent import IndependentVariables
        >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
        >>> IndependentVariables.of_data(model, np.array([[1, 1], [1, 0]])).probabilities(0)
        array([0.25, 0.75])
        """
        states = data.states if isinstance(data, Dataset) else np.atleast_2d(data)
        weights = data.weights if isinstance(data, Dataset) else np.ones(len(states))
        present = np.ones(states.shape, bool)
        if isinstance(data, Dataset) and data.missing is not None:
            present = ~data.missing
        codes = model.variables.codes_of(model.variables.checked(states, "the data"))
        counts = [
            1.0 + np.bincount(codes[present[:, i], i], weights[present[:, i]], minlength=q)
            for i, q in enumerate(model.variables.sizes)
        ]
        return cls.from_log_weights([np.log(each) for each in counts])

    def probabilities(self, variable: int) -> np.ndarray:
        """Return the probabilities of the values of one variable."""
        return np.exp(self.log_probabilities[self.starts[variable] : self.starts[variable + 1]])

    def draw_codes(self, streams: np.ndarray) -> np.ndarray:
        """Draw one state for each stream, as codes; the streams stay where they are."""
        n_variables = len(self.starts) - 1
        uniforms = np.array([np.random.default_rng(stream).random(n_variables) for stream in streams])
        codes = np.empty((len(streams), n_variables), np.int8)
        for i in range(n_variables):
            bounds = np.cumsum(self.probabilities(i))[:-1]
            codes[:, i] = np.searchsorted(bounds, uniforms[:, i], side="right")
        return codes


def as_independent(base: str | IndependentVariables | Dataset, model: Model[Any]) -> IndependentVariables:
    """Return the start that `base` names for a model."""
    if isinstance(base, Dataset):
        return IndependentVariables.of_data(model, base)
    if isinstance(base, IndependentVariables):
        if not np.array_equal(model.variables.offsets, base.starts):
            raise ArgumentError("`base=` was made for other variables than those of the model", "make it anew")
        return base
    check_base(base)
    if base == "uniform":
        return IndependentVariables.uniform(model)
    return IndependentVariables.of_biases(model)


def check_base(base: object) -> None:
    """Raise unless `base` names independent variables."""
    if isinstance(base, Dataset | IndependentVariables) or (isinstance(base, str) and base in ("uniform", "biases")):
        return
    raise ArgumentError(
        "is not known", "use 'uniform', 'biases', a Dataset or IndependentVariables", argument="base", value=base
    )
