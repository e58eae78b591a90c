"""The log-likelihood of rows under deep machines: exact for small ones, else a lower bound, and said to be one.

Two things are out of reach. log Z, of the whole deep Boltzmann machine or of the machine at the top of a belief
network, is exact where every other layer can be summed over, else bracketed by annealing there and back. The sum over
the hidden units of a row is bounded from below: by mean field for a deep Boltzmann machine, by the recognition weights
for a belief network (the variational bound, made tighter by averaging several importance weights; Burda, Grosse and
Salakhutdinov 2016). A bound may be far below, so nothing is said about how good a machine could be, only how good it is
at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from gibbsian.blocks import row_blocks
from gibbsian.data.minibatches import draw_seed, seeded
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.expectations.deep_mean_field import DeepMeanField, log_weight_bound
from gibbsian.inference import exact as exactly
from gibbsian.inference import is_affordable
from gibbsian.layered import annealing as restricted
from gibbsian.layered import deep_annealing
from gibbsian.layered.annealing import LayerAnnealing
from gibbsian.layered.likelihood import LogLikelihood
from gibbsian.layered.rows import LayerRows, layer_columns
from gibbsian.models.belief_network import MOST_STATES, BeliefNetwork
from gibbsian.models.deep import DeepModel
from gibbsian.models.joined_layer import joined
from gibbsian.models.parameters import check_whole_number
from gibbsian.rng import RandomState, as_generator

# Rows whose hidden units are treated together.
_BLOCK = 1000
# The hidden units are summed exactly where rows times states times columns stay below this.
_MOST_TERMS = 1e8


@dataclass(frozen=True, eq=False)
class LogLikelihoodBound(LogLikelihood):
    """A lower bound on the mean log-likelihood of rows, in nats a row: the truth may be well above it.

    Parameters
    ----------
    log_weights : ndarray of shape (n_rows,)
        Lower bounds on ``log P(v) + log Z`` of each row.
    shares : ndarray of shape (n_rows,)
        Weights of the rows, adding up to 1.
    log_partition : float or LogPartitionInterval
        log Z, exact or between two annealed runs.
    method : str
        Where the bound comes from, in words.
    bound_stderr : float
        Standard error of the mean of `log_weights` from sampling; zero by mean field.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_likelihood import LogLikelihoodBound
    >>> found = LogLikelihoodBound(np.array([1.0, 3.0]), np.array([0.5, 0.5]), 4.0, "mean field")
    >>> found.exact, found.lower, found.upper
    (False, -2.0, inf)
    """

    method: str = "mean field"
    bound_stderr: float = 0.0

    @property
    def exact(self) -> bool:
        """Never: the hidden units are not summed over."""
        return False

    @property
    def lower(self) -> float:
        """The bound with the largest log Z that the reverse run and all errors allow."""
        return self.mean_log_weight - 2.0 * self.bound_stderr - self._log_partition("lower")

    @property
    def upper(self) -> float:
        """Infinite: a lower bound says nothing about how far above it the truth is."""
        return float("inf")

    def describe(self) -> str:
        """Say in words what is known.

        Examples
        --------
        >>> import numpy as np
        >>> from gibbsian.layered.deep_likelihood import LogLikelihoodBound
        >>> print(LogLikelihoodBound(np.array([1.0, 3.0]), np.array([0.5, 0.5]), 4.0, "mean field").describe())
        mean log-likelihood at least -2.00 nats a row, a lower bound by mean field with exact log Z (2 rows, which
        differ by a standard error of 1.00)
        """
        rows = f"{len(self.log_weights)} rows, which differ by a standard error of {self.rows_stderr:.2f}"
        sampled = f" (sampling error {self.bound_stderr:.2f})" if self.bound_stderr else ""
        text = f"mean log-likelihood at least {self.lower:.2f} nats a row, a lower bound by {self.method}{sampled}"
        if not isinstance(self.log_partition, LogPartitionInterval):
            return f"{text} with exact log Z ({rows})"
        above, below = self.stderrs
        text += (
            f" ({rows}): with log Z by annealing to the machine the bound is {self.optimistic:.2f} +- {above:.2f}, too "
            f"large in expectation; with that by annealing back {self.pessimistic:.2f} +- {below:.2f}, too small in "
            f"expectation as far as its start, {self.log_partition.start}, has the machine's law"
        )
        return f"{text}; beware: {self.trouble}" if self.trouble else text


def deep_log_likelihood(
    model: DeepModel | BeliefNetwork,
    rows: LayerRows | np.ndarray,
    *,
    annealing: LayerAnnealing | None = None,
    n_samples: int = 100,
    mean_field: DeepMeanField | None = None,
    rng: RandomState = None,
    exact: bool | None = None,
    exact_log_partition: bool | None = None,
    warn: bool = True,
) -> LogLikelihood:
    """Return the log-likelihood of rows, exact for small machines, else a `LogLikelihoodBound`.

    Parameters
    ----------
    model : DeepModel or BeliefNetwork
        The machine.
    rows : LayerRows or array-like
        Visible states. Missing cells are hidden units of a deep Boltzmann machine, and refused by a belief network.
    annealing : LayerAnnealing, optional
        Walkers, temperatures and base for log Z where it cannot be summed.
    n_samples : int
        Draws of the hidden units of each row from the recognition law of a belief network.
    mean_field : DeepMeanField, optional
        Rounds of the updates in a deep Boltzmann machine.
    rng : None, int or Generator
        Source of randomness.
    exact : bool, optional
        True insists on the sum over hidden units, False on the bound; by default the sum where it is quick.
    exact_log_partition : bool, optional
        The same for log Z; see `deep_log_partition`.
    warn : bool
        Whether to give a `MixingWarning` when the two annealed runs disagree beyond their errors.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_likelihood import deep_log_likelihood
    >>> from gibbsian.models.belief_network import BeliefNetwork
    >>> from gibbsian.models.layers import BinaryLayer
    >>> network = BeliefNetwork.zeros([BinaryLayer(2), BinaryLayer(3), BinaryLayer(3)])
    >>> deep_log_likelihood(network, np.eye(2)).exact
    True
    >>> print(deep_log_likelihood(network, np.eye(2), exact=False, rng=0))
    mean log-likelihood at least -1.39 nats a row, a lower bound by 100 draws a row from the recognition weights with
    exact log Z (2 rows, which differ by a standard error of 0.00)
    """
    if not isinstance(rows, LayerRows):
        rows = LayerRows(np.asarray(rows))
    if rows.n_units != model.n_variables:
        raise ArgumentError(f"rows has {rows.n_units} columns, but the machine has {model.n_variables} visible units")
    generator = as_generator(rng)
    holes = rows.missing is not None and bool(rows.missing.any())
    if exact is None:
        exact = not holes and can_sum_hidden(model, rows.n_rows)
    log_z = deep_log_partition(model, annealing, generator, exact=exact_log_partition, warn=warn, rows=rows)
    if exact:
        if holes:
            raise MissingValuesError(
                "the exact sum needs rows without missing cells", "leave them out, or set `exact=False`"
            )
        return LogLikelihood(model.log_weights(rows.states), rows.shares, log_z)
    if isinstance(model, DeepModel):
        return LogLikelihoodBound(mean_field_bounds(model, rows, mean_field), rows.shares, log_z)
    bounds, errors = recognition_bounds(model, rows, n_samples, generator)
    stderr = float(np.sqrt(np.square(rows.shares * errors).sum()))
    words = f"{n_samples} draws a row from the recognition weights"
    return LogLikelihoodBound(bounds, rows.shares, log_z, words, stderr)


def can_sum_hidden(model: DeepModel | BeliefNetwork, n_rows: int = 1, most_states: float = MOST_STATES) -> bool:
    """Say whether the hidden units of so many rows are quickly summed over, and have no more states than allowed.

    Examples
    --------
    >>> from gibbsian.layered.deep_likelihood import can_sum_hidden
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> can_sum_hidden(DeepModel.build([BinaryLayer(64), BinaryLayer(500), BinaryLayer(8)]), 100)
    True
    >>> can_sum_hidden(DeepModel.build([BinaryLayer(64), BinaryLayer(500), BinaryLayer(500)]))
    False
    """
    hidden = model.layers[1:]
    if len(hidden) == 1:
        return True
    if isinstance(model, BeliefNetwork):
        states = joined(hidden[:-1]).n_states
    else:
        states = min(joined(hidden[0::2]).n_states, joined(hidden[1::2]).n_states)
    return states <= most_states and n_rows * states * sum(layer.width for layer in hidden) <= _MOST_TERMS


def deep_log_partition(
    model: DeepModel | BeliefNetwork,
    annealing: LayerAnnealing | None = None,
    rng: RandomState = None,
    *,
    exact: bool | None = None,
    warn: bool = True,
    rows: LayerRows | None = None,
) -> float | LogPartitionInterval:
    """Return log Z of a deep Boltzmann machine, or of the machine at the top of a belief network.

    Parameters
    ----------
    model : DeepModel or BeliefNetwork
        The machine.
    annealing : LayerAnnealing, optional
        Walkers, temperatures and base, where log Z is bracketed.
    rng : None, int or Generator
        Source of randomness.
    exact : bool, optional
        True insists on the exact sum, False on annealing; by default the sum where it is in reach: every other layer,
        or one layer at the top of a belief network, has at most 25 two-valued units in all.
    warn : bool
        Whether to give a `MixingWarning` when the two runs disagree beyond their errors.
    rows : LayerRows, optional
        Data: annealing starts at the base rates the layers have given them, unless told otherwise.

    Examples
    --------
    >>> from gibbsian.layered.deep_likelihood import deep_log_partition
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import SpinLayer
    >>> round(deep_log_partition(DeepModel.build([SpinLayer(4), SpinLayer(3), SpinLayer(2)])), 4)       # 9 log 2
    6.2383
    """
    machine = model.folded() if isinstance(model, DeepModel) else model.top
    if exact is None:
        exact = is_affordable(machine)
    if exact:
        return exactly(model, instead="bracket log Z by annealing").log_partition()
    if isinstance(model, DeepModel):
        chosen = annealing
        if annealing is None and rows is not None:
            chosen = LayerAnnealing(base=rows, summed=_wider(machine))
        return deep_annealing.log_partition_interval(model, annealing=chosen, rng=rng, warn=warn)
    chosen = LayerAnnealing(summed=_wider(machine)) if annealing is None else annealing
    return restricted.log_partition_interval(machine, annealing=chosen, rng=rng, warn=warn)


def mean_field_bounds(model: DeepModel, rows: LayerRows, mean_field: DeepMeanField | None = None) -> np.ndarray:
    """Return lower bounds on ``log P(v) + log Z`` of each row by mean field; missing cells are hidden units.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_likelihood import mean_field_bounds
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.deep import DeepModel
    >>> from gibbsian.models.layers import BinaryLayer
    >>> dbm = DeepModel.build([BinaryLayer(2), BinaryLayer(1), BinaryLayer(1)])
    >>> np.exp(mean_field_bounds(dbm, LayerRows(np.eye(2))))                     # four hidden states, exact here
    array([4., 4.])
    """
    updates = DeepMeanField() if mean_field is None else mean_field
    bounds = np.empty(rows.n_rows)
    for start in range(0, rows.n_rows, _BLOCK):
        block = rows.take(np.arange(start, min(start + _BLOCK, rows.n_rows)))
        missing = None
        if block.missing is not None and block.missing.any():
            missing = layer_columns(model.visible, block.missing)
        values = model.visible.encode(block.encodable())
        bounds[start : start + _BLOCK] = log_weight_bound(model, updates(model, values, missing))
    return bounds


def recognition_bounds(
    network: BeliefNetwork, rows: LayerRows, n_samples: int = 100, rng: RandomState = None, common: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``log (1/K) sum_k P(v, h_k) Z / Q(h_k | v)`` of each row, a lower bound in expectation, and its error.

    The hidden units h_k are drawn from the recognition law Q. One draw would give the variational bound in
    expectation; the more draws, the nearer to ``log P(v) + log Z``.

    Parameters
    ----------
    network : BeliefNetwork
        The network.
    rows : LayerRows
        Visible states, none missing.
    n_samples : int
        Draws K, at least 2: their spread tells the error.
    rng : None, int or Generator
        Source of randomness.
    common : bool
        Use the same random numbers for every row: what is found for a row then does not depend on the others, but the
        errors of the rows do not average out.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.deep_likelihood import recognition_bounds
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.models.belief_network import BeliefNetwork
    >>> from gibbsian.models.layers import BinaryLayer
    >>> network = BeliefNetwork.zeros([BinaryLayer(2), BinaryLayer(1), BinaryLayer(1)])
    >>> np.exp(recognition_bounds(network, LayerRows(np.eye(2)), rng=0)[0])      # Z / 4 = 1
    array([1., 1.])
    """
    check_whole_number("n_samples", n_samples, least=2)
    if rows.missing is not None and rows.missing.any():
        row, column = np.argwhere(rows.missing)[0]
        raise MissingValuesError(f"row {row}, column {column} is missing, but a belief network needs complete rows")
    generator = as_generator(rng)
    seed = draw_seed(generator)
    logs = np.empty((rows.n_rows, n_samples))
    for block in row_blocks(rows.n_rows, n_samples * max(layer.width for layer in network.layers)):
        v = network.visible.encode(rows.states[block])
        numbers: Any = _CommonNumbers(seeded(seed), len(v)) if common else generator
        values = network.draw_up(np.repeat(v, n_samples, axis=0), numbers)
        logs[block] = (network.log_joint(values) - network.log_recognition(values)).reshape(-1, n_samples)
    bounds = logsumexp(logs, axis=1) - np.log(n_samples)
    # relative error of the mean weight
    errors = np.exp(logs - bounds[:, None]).std(axis=1, ddof=1) / np.sqrt(n_samples)
    return bounds, errors


class _CommonNumbers:
    """Uniform random numbers that are the same for each of some rows: all that layers of discrete units draw with."""

    def __init__(self, rng: np.random.Generator, n_rows: int):
        self.rng = rng
        self.n_rows = n_rows

    def random(self, size: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
        """Draw for one row, and repeat for all."""
        own = self.rng.random((size[0] // self.n_rows, *size[1:]), dtype=dtype)
        return np.tile(own, (self.n_rows, *(1 for _ in size[1:])))


def _wider(machine: object) -> str:
    return "visible" if machine.visible.width > machine.hidden.width else "hidden"  # type: ignore[attr-defined]


__all__ = [
    "LogLikelihoodBound",
    "can_sum_hidden",
    "deep_log_likelihood",
    "deep_log_partition",
    "mean_field_bounds",
    "recognition_bounds",
]
