"""Answers about models of discrete variables, exact where possible: what all estimators ask, in one form."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np

from gibbsian.answers.about import ANSWERS
from gibbsian.answers.draws import watched_draws
from gibbsian.answers.modes import Modes, Rounds, Search, modes_of_rows
from gibbsian.answers.queries import Queries
from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import hidden_names, with_hidden
from gibbsian.diagnostics.evidence import log_evidence_interval
from gibbsian.diagnostics.partition import LogPartitionInterval, log_partition_interval
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.estimate import Estimate
from gibbsian.expectations import EXPECTATIONS, Expectation, MonteCarlo
from gibbsian.expectations.mean_field import mean_field_evidence
from gibbsian.expectations.missing_cells import fill_probabilities
from gibbsian.inference import exact
from gibbsian.inference.posterior import log_evidence
from gibbsian.inference.upper_bounds import largest_log_weight_bound
from gibbsian.learning.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.learning.objectives.base import for_model
from gibbsian.models.base import DiscreteFamily, Family, Model
from gibbsian.models.conditionals import WeightedRows
from gibbsian.models.variables import Variables
from gibbsian.sampling.annealing import Annealing
from gibbsian.sampling.cooling import CHAINS, SWEEPS, cooled_states
from gibbsian.sampling.paths import Path
from gibbsian.settings import Setting, check_value

A = TypeVar("A", bound=Family, covariant=True)
# Where annealing back starts, by the name of a method.
STARTS = {"auto": "tempering", "ais": "gibbs"}


@ANSWERS.register("pairwise")
@ANSWERS.register("products")
@ANSWERS.register("tables")
@ANSWERS.register("potentials")
class Answers(Generic[A]):
    """Answers about one model, asked with data of its visible columns.

    Parameters
    ----------
    model : Model
        What is asked about. Its last ``n_hidden`` variables are units that no row shows.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> answers = gb.answers.Answers(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3))))
    >>> bool(np.isclose(answers.log_partition(), 3 * np.log(2)))
    True
    """

    # Up to so many rows are listed where no engine finds the most probable one.
    most_listed: ClassVar[float] = 2.0**24

    def __init__(self, model: Model[A]):
        self.model = model
        # whether conditionals of the model are about rows: hidden variables would have to be summed out of them
        self.has_conditionals = not model.n_hidden

    def conditional_costs(self, codes: np.ndarray) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
        """Return the costs of changing each column of complete rows, with where columns begin, and the log-weights.

        This is asked only where `has_conditionals` says so; costs and columns are those of `Conditionals`.
        """
        conditionals = discrete(self.model).family.conditionals(WeightedRows.of(codes, by_row=True))
        return conditionals.groups, conditionals.costs(self.model.theta), self.model.log_weights(codes)

    @property
    def two_valued(self) -> bool:
        """Whether the upper of two values stands for a column where probabilities are told."""
        return self.model.variables.two_valued and self.model.variables.scores is not None

    # -- log Z --------------------------------------------------------------------------------------------------------
    def log_partition(self) -> float:
        """Return log Z exactly, or raise `TooExpensiveError`."""
        return exact(self.model).log_partition

    def log_partition_interval(
        self,
        rng: np.random.Generator,
        n_samples: int | None = None,
        betas: int | None = None,
        data: Dataset | None = None,
        warn: bool = True,
        method: str = "auto",
    ) -> LogPartitionInterval:
        """Return log Z between two sides; `data` may tell where the model lives.

        By annealing there and back and by tempered chains, or with ``"ais"`` by annealing alone.
        """
        start, annealing = STARTS[method], annealing_of(n_samples, betas)
        return log_partition_interval(self._way(data, rng), start, annealing, rng, warn=warn)

    def _way(self, data: Dataset | None, rng: np.random.Generator) -> Model[Family] | Path:
        """Return what is annealed to: the model, from independent variables, or another path to it."""
        return self.model

    # -- rows ---------------------------------------------------------------------------------------------------------
    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return ``log P + log Z`` of the present cells of each distinct row, all else summed out exactly."""
        return log_evidence(self.model, self.completed(data))

    def log_evidence_interval(
        self, data: Dataset, rng: np.random.Generator, n_samples: int | None = None, betas: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the same between two sides, where sums are out of reach."""
        annealing = None if n_samples is betas is None else annealing_of(n_samples, betas)
        return log_evidence_interval(self.model, self.completed(data), annealing, rng)

    def log_evidence_bound(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return a lower bound of `log_evidence` by mean field."""
        return mean_field_evidence(self.model, self.completed(data), rng)

    def log_pseudolikelihood(self, data: Dataset) -> float:
        """Return the mean of ``sum_i log P(x_i | the other columns)``, hidden units summed out.

        With hidden units missing cells are summed out as well, and the sum is over present cells.
        """
        model: Any = self.model
        return -value_and_gradient(for_model(Pseudolikelihood(), model), model, self.completed(data))[0]

    def cell_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the probabilities of the values of each cell given the present cells of its distinct row.

        An array of shape (rows, columns) with the probability of the upper value where columns have two, else of shape
        (rows, columns, values) with zeros after the last value of a column that has fewer.
        """
        flat, variables = self._filled(data, rng), self.model.variables
        if not variables.two_valued:
            return by_value(flat, variables.sizes)
        upper = flat[:, : data.n_variables]
        return upper if data.coding.domain.two_valued else np.stack([1.0 - upper, upper], axis=2)

    def completed_states(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the distinct rows with missing cells at their most probable values, each by itself."""
        return likeliest(self.cell_probabilities(data, rng))

    def hidden_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the probability of the upper value of each hidden unit given the present cells of a distinct row."""
        return self._filled(data, rng)[:, data.n_variables :]

    def _filled(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        return fill_probabilities(self.model, self.completed(data), rng)

    def completed(self, data: Dataset) -> Dataset:
        """Return the data with the hidden units after its columns, missing in every row."""
        return with_hidden(data, self.model.n_hidden) if self.model.n_hidden else data

    # -- queries ------------------------------------------------------------------------------------------------------
    def joint(self) -> Model[DiscreteFamily]:
        """Return the model of the columns and, after them, of all that is hidden: what queries are asked of."""
        return discrete(self.model)

    def hidden_variables(self, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return the values of each hidden variable of `joint`, by a name that no column has."""
        values = [values for part in self._hidden_parts() for values in values_of(part)]
        return dict(zip(hidden_names(names, len(values)), values, strict=True))

    def _hidden_parts(self) -> list[Variables]:
        """The hidden variables, in parts that have scores or have none."""
        n = self.model.n_variables
        return [self.model.variables.take(range(n - self.model.n_hidden, n))]

    def _told(self, codes: np.ndarray) -> np.ndarray:
        """What users read of codes of the hidden variables: their values, as `hidden_variables` has them."""
        parts = self._hidden_parts()
        each = np.split(codes, np.cumsum([len(part) for part in parts])[:-1], axis=1)
        return np.hstack([_values_at(part, own) for part, own in zip(parts, each, strict=True)])

    def hidden_groups(self) -> list[range]:
        """Return which of the hidden variables are given together: all."""
        return [range(self.model.n_hidden)]

    def visible_given_hidden(
        self, codes: np.ndarray, group: range, n_visible: int, ask: Callable[[], Queries]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ``P(column | hidden)`` as `cell_probabilities` has it, and errors, given codes of hidden variables.

        Each column is summed over the others, which may be coupled with it (YK15).
        """
        found = ask().columns_given(codes, [n_visible + place for place in group], n_visible)
        return tuple(found[..., 1] if self.two_valued else found)

    # -- the whole distribution ---------------------------------------------------------------------------------------
    def sample(self, n_samples: int, rng: np.random.Generator, method: str = "auto") -> tuple[np.ndarray, np.ndarray]:
        """Draw rows of codes and values of the hidden units, exactly where possible and else by chains."""
        codes = self._drawn(n_samples, rng, method)
        n_visible = self.model.n_variables - self.model.n_hidden
        return codes[:, :n_visible], self._told(codes[:, n_visible:])

    def _drawn(self, n_samples: int, rng: np.random.Generator, method: str) -> np.ndarray:
        if method in ("auto", "exact"):
            try:
                return exact(self.model).sample(n_samples, rng)
            except TooExpensiveError:
                if method == "exact":
                    raise
                method = "auto"
        return watched_draws(discrete(self.model), n_samples, rng, method)

    # -- most probable states -----------------------------------------------------------------------------------------
    def most_probable(self, data: Dataset, search: Search, joint: bool = False) -> Modes:
        """Return each distinct row with its missing cells at their jointly most probable values.

        Hidden units are summed out; with `joint` they are part of the state.
        """
        return modes_of_rows(self, data, search, joint)

    def mode_of(self, data: Dataset, state: np.ndarray, free: np.ndarray, search: Search, joint: bool) -> Modes:
        """Return the most probable row that has the `free` cells anew; `data` has its columns."""
        if (joint and self.model.n_hidden) or (free.any() and not self.model.n_hidden and search.n_states == 1):
            return self._joint_mode(data, state, free, search)
        return search.of_rows(
            lambda states: self._log_weights_of(rows_like(data, states)),
            data.variables.sizes,
            state,
            free,
            self.most_listed,
            lambda: self._bound(state, free),
            lambda: self._starts(state, free, search.rng),
            self._rounds(state, free, search.rng),
        )

    def _log_weights_of(self, data: Dataset) -> np.ndarray:
        """Log-weights of rows without missing cells, hidden units summed out."""
        return self.log_evidence(data)

    def _joint_mode(self, data: Dataset, state: np.ndarray, free: np.ndarray, search: Search) -> Modes:
        rest, constant = self._rest(state, free)
        found, log_weight, bound, method = search.of_model(rest)
        row, hidden = state.copy(), found[free.sum() :]
        row[free] = found[: free.sum()]
        return Modes.one(row, log_weight + constant, bound + constant, method, self._told(hidden[None])[0])

    def _rest(self, state: np.ndarray, free: np.ndarray) -> tuple[Model[DiscreteFamily], float]:
        """The model of the free cells and the hidden units given the others, and the log-weight taken out."""
        whole, held = self.joint(), np.flatnonzero(~free)
        return whole.given(held, state[held]) if held.size else (whole, 0.0)

    def _bound(self, state: np.ndarray, free: np.ndarray) -> float:
        """What no row exceeds: a sum over hidden units is at most its largest term times their number."""
        rest, constant = self._rest(state, free)
        hidden = rest.variables.sizes[free.sum() :]
        return largest_log_weight_bound(rest) + constant + float(np.log(hidden).sum())

    def _rounds(self, state: np.ndarray, free: np.ndarray, rng: np.random.Generator) -> Rounds | None:
        """Rounds of chains that end at good codes of the free cells; none where only log-weights of rows are known."""
        return None

    def _starts(self, state: np.ndarray, free: np.ndarray, rng: np.random.Generator) -> Sequence[np.ndarray]:
        """Codes of the free cells where joint states end when they are cooled: near the best rows."""
        rest, _ = self._rest(state, free)
        return list(cooled_states(rest, CHAINS, SWEEPS, rng)[:, : free.sum()])

    def expect(
        self, rng: np.random.Generator, method: str | Expectation = "auto", n_samples: int | None = None
    ) -> Estimate:
        """Return the expected statistics in the layout of theta, with standard errors."""
        if method == "auto":
            try:
                return self._sampled(rng, n_samples) if n_samples is not None else self.expect(rng, "exact")
            except TooExpensiveError:
                return self._sampled(rng, n_samples)
        expectation: Expectation = EXPECTATIONS.create(method) if isinstance(method, str) else method
        if n_samples is not None:
            expectation = _with_samples(expectation, method, n_samples)
        return expectation(self.model, expectation.init(self.model, None, rng))[0]

    def _sampled(self, rng: np.random.Generator, n_samples: int | None) -> Estimate:
        """Expected statistics by Gibbs chains, or by tempered ones where these do not mix."""
        found = self.expect(rng, MonteCarlo(warn=False), n_samples)
        limits, seen = MonteCarlo(), found.parts
        few = seen["effective_sample_size"] < min(limits.min_ess, (n_samples or np.inf) / 10)
        return self.expect(rng, "tempering", n_samples) if few or seen["r_hat"] > limits.max_r_hat else found


def discrete(model: Model[Family]) -> Model[DiscreteFamily]:
    """Return the model, whose family is one of discrete variables."""
    return cast("Model[DiscreteFamily]", model)


def rows_like(data: Dataset, states: np.ndarray) -> Dataset:
    """Return complete rows as data with the columns of other data."""
    number = np.arange(len(states))
    return replace(data, states=states, weights=np.ones(number.size), missing=None, row_of=number, row_weights=None)


def annealing_of(n_samples: int | None, betas: int | None) -> Annealing:
    """Return annealing with the numbers that are given and its own for the others."""
    if n_samples is not None:
        n_samples = check_value("n_samples", n_samples, Setting("Walkers.", "whole", low=2))
    settings = {"n_walkers": n_samples, "betas": betas}
    return Annealing(**{name: value for name, value in settings.items() if value is not None})


def _with_samples(expectation: Any, method: object, n_samples: int) -> Expectation:
    """Return the expectation with so many samples in a call.

    As many chains as each has draws, but no more than its own number: many chains make the standard error reliable,
    many draws R-hat.
    """
    known = {field.name for field in dataclasses.fields(expectation)} if dataclasses.is_dataclass(expectation) else ()
    if "n_walkers" in known:
        return dataclasses.replace(expectation, n_walkers=n_samples)
    if "n_steps" not in known:
        raise ArgumentError("draws no samples", "leave `n_samples` out", argument="method", value=method)
    if n_samples < 2:
        raise ArgumentError("must be at least 2", argument="n_samples", value=n_samples)
    n_chains = int(np.clip(np.sqrt(n_samples), 2, max(2, expectation.n_chains)))
    return dataclasses.replace(expectation, n_chains=n_chains, n_steps=-(-n_samples // n_chains))


def values_of(variables: Variables) -> list[tuple[int, ...]]:
    """Return what each hidden variable can be, in the order of the codes: whole scores, or the codes themselves."""
    if variables.scores is None:
        return [tuple(range(size)) for size in variables.sizes]
    return [tuple(map(int, scores)) for scores in variables.scores]


def _values_at(variables: Variables, codes: np.ndarray) -> np.ndarray:
    scored = variables.scores is not None and len(variables) > 0
    return variables.scores_of(codes).astype(np.int8) if scored else codes


def likeliest(probabilities: np.ndarray) -> np.ndarray:
    """Return the most probable code of each cell, given probabilities as `Answers.cell_probabilities` has them."""
    codes = probabilities > 0.5 if probabilities.ndim == 2 else probabilities.argmax(axis=2)
    return codes.astype(np.int8)


def by_value(flat: np.ndarray, sizes: Sequence[int] | np.ndarray) -> np.ndarray:
    """Give each variable's values an axis of their own, filled with zeros: (rows, all values) to (rows, n, values)."""
    counts = np.asarray(sizes)
    shaped = np.zeros((len(flat), counts.size, counts.max()))
    shaped[:, np.arange(counts.max()) < counts[:, None]] = flat
    return shaped
