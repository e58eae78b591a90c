"""Probabilities, entropies and divergences of any variables of a model: exact where in reach, else by samples.

All is asked of one model over the columns and the hidden variables (``answers.joint()``): evidence is fixed by
conditioning, which needs no sum, and what is left is summed by the exact engines or drawn by chains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gibbsian.data import Dataset
from gibbsian.diagnostics.chains import report_on
from gibbsian.diagnostics.partition import log_partition_interval
from gibbsian.domain import CategoryCoding
from gibbsian.errors import ArgumentError, MixingWarning, TooExpensiveError, notify
from gibbsian.estimate import Estimate
from gibbsian.inference import exact
from gibbsian.inference.log_tables import digits
from gibbsian.inference.posterior import clamped_seconds, log_evidence
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.resources import row_blocks
from gibbsian.sampling import Annealing, draw
from gibbsian.startup import entr

# Combinations of values that a table lists, and that an entropy or a divergence sums over.
MAX_CELLS, MOST_TERMS = 2.0**20, 2.0**24
# Samples where none are asked for: chains, draws of each, and sweeps before the first.
N_CHAINS, N_DRAWS, BURN_IN = 100, 200, 500
# Temperatures of the annealing behind a log Z that cannot be summed.
N_BETAS = 1000
# Entropies are counted from draws where each combination of values has so many.
DRAWS_PER_CELL = 50
# The most seconds for what rows weigh, summed over what they do not show.
MOST_SECONDS = 60.0
# Probabilities that were given may miss a sum of one by this much, and are then divided by it.
SUM_TOLERANCE = 1e-6

Given = Mapping[int, int]
T = TypeVar("T")


class Divergence(NamedTuple):
    """How far two distributions are from each other, in nats.

    Parameters
    ----------
    forward : Estimate
        ``KL(this || other)``: what is lost when the other stands for this one.
    backward : Estimate
        ``KL(other || this)``.
    jensen_shannon : Estimate
        The mean divergence of both from their mean, at most log 2.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.BoltzmannMachine(l2=0).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    >>> round(model.divergence([[0.25, 0.25], [0.25, 0.25]]).forward.value, 4)
    0.0541
    """

    forward: Estimate
    backward: Estimate
    jensen_shannon: Estimate


@dataclass(frozen=True, eq=False)
class Queries:
    """Questions to one model, over codes of its variables.

    Parameters
    ----------
    model : Model
        The columns and the hidden variables together.
    rng : Generator
        Source of randomness.
    method : str, default="auto"
        ``"exact"``, or a sampler's name; ``"auto"`` is exact where possible and else draws by Gibbs sampling.
    n_samples : int, optional
        How many samples, which are then drawn in any case.
    """

    model: Model[DiscreteFamily]
    rng: np.random.Generator
    method: str = "auto"
    n_samples: int | None = None

    @property
    def sizes(self) -> np.ndarray:
        """Number of values of each variable."""
        return np.array(self.model.variables.sizes)

    def _answered(self, exactly: Callable[[], T], sampled: Callable[[], T]) -> T:
        """Answer as the method says."""
        if self.method == "exact" and self.n_samples is not None:
            raise ArgumentError("`n_samples` belongs to sampling", "leave it out")
        if self.method == "exact" or (self.method == "auto" and self.n_samples is None):
            try:
                return exactly()
            except TooExpensiveError:
                if self.method == "exact":
                    raise
        return sampled()

    # -- probabilities ------------------------------------------------------------------------------------------------
    def probabilities(self, listed: Sequence[int], fixed: Given, given: Given) -> Estimate:
        """Return ``P(listed, fixed | given)``, an axis for each variable that is listed."""
        if not fixed or _product(self.model, [*listed, *fixed]) <= MAX_CELLS:
            table, at = self.tables([[*listed, *fixed]], given)[0], (..., *fixed.values())
            return Estimate(table.value[at], table.monte_carlo_error[at])
        share = self._probability(fixed, given)
        table = self.tables([listed], {**given, **fixed})[0] if listed else Estimate(np.ones(()))
        errors = np.hypot(share.value * table.monte_carlo_error, share.stderr * table.value)
        return Estimate(share.value * table.value, errors)

    def _probability(self, fixed: Given, given: Given) -> Estimate:
        """Return the probability of values of many variables: what they weigh, of what all weigh."""
        rest, place = self._rest(given)
        codes = np.array([list(fixed.values())], np.int8)
        log_weight = float(log_weights_of(rest, codes, [place[node] for node in fixed])[0])
        log_z = self._log_partition(rest)
        share = math.exp(log_weight - log_z.value)
        return Estimate(share, share * log_z.stderr)

    def tables(self, scopes: Sequence[Sequence[int]], given: Given) -> list[Estimate]:
        """Return the joint probabilities of each group of variables given values of others."""
        for scope in scopes:
            if (cells := _product(self.model, scope)) > MAX_CELLS:
                raise TooExpensiveError(
                    f"a table over {len(scope)} columns has {cells:.2g} cells", "list fewer of them, or fix some"
                )
        rest, place = self._rest(given)
        places = [[place[node] for node in scope] for scope in scopes]
        return self._answered(lambda: _exact_tables(rest, places), lambda: self._sampled_tables(rest, places))

    def columns_given(self, codes: np.ndarray, nodes: Sequence[int], n_columns: int) -> np.ndarray:
        """Return the probabilities of each of the first columns given each row of codes of other variables.

        An array of shape (2, rows, columns, values), the errors behind the probabilities.
        """
        rows, row_of = np.unique(codes, axis=0, return_inverse=True)
        found = np.zeros((2, len(rows), n_columns, int(self.sizes[:n_columns].max())))
        for number, row in enumerate(rows):
            tables = self.tables([[i] for i in range(n_columns)], dict(zip(nodes, row.tolist(), strict=True)))
            for i, table in enumerate(tables):
                found[:, number, i, : self.sizes[i]] = table.value, table.monte_carlo_error
        return found[:, row_of.ravel()]

    def _sampled_tables(self, rest: Model[DiscreteFamily], places: list[list[int]]) -> list[Estimate]:
        codes = self._draws(rest, sorted({node for scope in places for node in scope}))
        found = []
        for scope in places:
            shape = rest.variables.take(scope).sizes
            cells = _cell_numbers(rest, codes, scope)
            shares = np.array([np.bincount(chain, minlength=math.prod(shape)) for chain in cells]) / codes.shape[1]
            # what no draw has shown, or every one, is known up to one draw
            errors = np.maximum(_stderr(shares), 1.0 / cells.size)
            found.append(Estimate(shares.mean(axis=0).reshape(shape), errors.reshape(shape)))
        return found

    def _rest(self, given: Given) -> tuple[Model[DiscreteFamily], dict[int, int]]:
        """Return the model of what is not given, and where its variables stand there."""
        fixed = sorted(given)
        if not fixed:
            return self.model, {node: node for node in range(self.model.n_variables)}
        rest, _ = self.model.given(fixed, [given[node] for node in fixed])
        free = [node for node in range(self.model.n_variables) if node not in given]
        return rest, {node: place for place, node in enumerate(free)}

    def _draws(self, model: Model[DiscreteFamily], watched: Sequence[int]) -> np.ndarray:
        """Draw rows of codes, (chains, draws, variables): independent ones as chains of one draw."""
        n_samples = N_CHAINS * N_DRAWS if self.n_samples is None else self.n_samples
        if not isinstance(n_samples, int | np.integer) or isinstance(n_samples, bool) or n_samples < 2:
            raise ArgumentError("must be a whole number, 2 or more", argument="n_samples", value=n_samples)
        if self.method == "auto":
            try:
                return exact(model).sample(n_samples, self.rng)[:, None]
            except TooExpensiveError:
                pass
        transition = "gibbs" if self.method == "auto" else self.method
        n_chains = int(np.clip(math.sqrt(n_samples), 2, N_CHAINS))  # errors need chains, R-hat needs draws of each
        codes = draw(model, n_samples, self.rng, transition, n_chains=n_chains, burn_in=BURN_IN)
        energies = model.energy(codes.reshape(-1, model.n_variables)).reshape(codes.shape[:2])
        shown = codes[..., list(watched)]
        with np.errstate(invalid="ignore"):  # of what never changes
            report = report_on(np.stack([energies, shown[..., shown.mean(axis=1).var(axis=0).argmax()]], axis=-1))
        if not report.is_good():
            notify(MixingWarning(report.describe(), "draw more with `n_samples`, or ask exactly about fewer columns"))
        return codes

    # -- information --------------------------------------------------------------------------------------------------
    def information(self, terms: Sequence[tuple[int, Sequence[int]]], given: Given) -> Estimate:
        """Return a sum of joint entropies with signs, given values of other variables.

        ``H(a | c) = H(a, c) - H(c)`` and ``I(a; b | c) = H(a, c) + H(b, c) - H(a, b, c) - H(c)``.
        """
        rest, place = self._rest(given)
        placed = [(sign, [place[node] for node in nodes]) for sign, nodes in terms if len(nodes)]
        return self._answered(
            lambda: Estimate(max(0.0, sum(sign * _exact_entropy(rest, nodes) for sign, nodes in placed))),
            lambda: self._sampled_information(rest, placed),
        )

    def _sampled_information(self, rest: Model[DiscreteFamily], terms: list[tuple[int, list[int]]]) -> Estimate:
        """Return the mean of minus the log-probabilities of drawn states: summed, or counted where values are few."""
        union = sorted({node for _, nodes in terms for node in nodes})
        codes = self._draws(rest, union)
        each, bias, signs = np.zeros(codes.shape[:2]), 0.0, 0
        counted = _product(rest, union) * DRAWS_PER_CELL <= each.size
        for sign, nodes in terms:
            if counted:
                numbers = _cell_numbers(rest, codes, nodes)
                shares = np.bincount(numbers.ravel()) / each.size
                each -= sign * np.log(shares[numbers])
                bias += sign * (np.count_nonzero(shares) - 1) / (2.0 * each.size)  # of counted entropies (Miller 1955)
            else:
                each -= sign * log_weights_of(rest, codes[..., nodes], nodes)
                signs += sign
        log_z = self._log_partition(rest) if signs else Estimate(0.0)
        mean = each.mean() + bias + signs * log_z.value
        return Estimate(mean, math.sqrt(_stderr(each.mean(axis=1)) ** 2 + bias**2 + (signs * log_z.stderr) ** 2))

    def _log_partition(self, model: Model[DiscreteFamily]) -> Estimate:
        """Return log Z, its error none where it is summed, half of what lies between two sides else."""
        try:
            return Estimate(exact(model).log_partition)
        except TooExpensiveError:
            if self.method == "exact":
                raise
            sides = log_partition_interval(model, annealing=Annealing(betas=N_BETAS), rng=self.rng, warn=False)
            return Estimate((sides.lower + sides.upper) / 2, (sides.upper - sides.lower) / 2)

    # -- beside another model -----------------------------------------------------------------------------------------
    def divergence(self, other: Model[DiscreteFamily], numbers: Sequence[np.ndarray]) -> Divergence:
        """Return the divergences between two models' distributions of the first columns.

        `numbers` has for each column the codes that the other model gives to this one's values.
        """
        n = range(len(numbers))

        def summed() -> Divergence:
            log_z = exact(other).log_partition
            return self.divergence_of(n, lambda codes: log_weights_of(other, _recoded(codes, numbers), n) - log_z)

        return self._answered(summed, lambda: self._sampled_divergence(other, numbers))

    def divergence_of(self, nodes: Sequence[int], logs: Callable[[np.ndarray], np.ndarray]) -> Divergence:
        """Return the divergences from a distribution whose log-probabilities are a function of codes, by summing."""
        if (size := _product(self.model, nodes)) > MOST_TERMS:
            raise TooExpensiveError(f"the divergence is a sum over {size:.2g} states", "use sampling")
        totals, log_z = np.zeros(3), exact(self.model).log_partition
        for block in row_blocks(int(size), len(nodes)):
            codes = digits(np.arange(block.start, block.stop), self.sizes[list(nodes)])
            totals += _divergence_terms(log_weights_of(self.model, codes, nodes) - log_z, logs(codes))
        return Divergence(*(Estimate(max(total, 0.0)) for total in totals))

    def _sampled_divergence(self, other: Model[DiscreteFamily], numbers: Sequence[np.ndarray]) -> Divergence:
        n, back = range(len(numbers)), [np.argsort(number) for number in numbers]
        log_zp, log_zq = self._log_partition(self.model), self._log_partition(other)
        drawn = self._draws(self.model, n)[..., : len(n)]
        back_drawn = _recoded(self._draws(other, n)[..., : len(n)], back)
        ratios = []  # log p / q at draws of either
        for codes in (drawn, back_drawn):
            p, q = log_weights_of(self.model, codes, n), log_weights_of(other, _recoded(codes, numbers), n)
            ratios.append(p - log_zp.value - q + log_zq.value)
        error = math.hypot(log_zp.stderr, log_zq.stderr)
        forward, backward = ratios[0].mean(axis=1), -ratios[1].mean(axis=1)
        halves = [np.logaddexp(0.0, sign * ratio).mean(axis=1) for sign, ratio in zip((-1, 1), ratios, strict=True)]
        middle = math.log(2.0) - 0.5 * (halves[0].mean() + halves[1].mean())
        return Divergence(
            Estimate(forward.mean(), math.hypot(_stderr(forward), error)),
            Estimate(backward.mean(), math.hypot(_stderr(backward), error)),
            Estimate(middle, 0.5 * np.sqrt(_stderr(halves[0]) ** 2 + _stderr(halves[1]) ** 2 + error**2)),
        )


# -- exact answers ----------------------------------------------------------------------------------------------------
def _exact_tables(model: Model[DiscreteFamily], scopes: list[list[int]]) -> list[Estimate]:
    wanted = sorted({node for scope in scopes for node in scope})
    model, place = _connected(model, wanted)
    answers = exact(model)
    return [Estimate(answers.marginal([place[node] for node in scope])) for scope in scopes]


def _connected(model: Model[DiscreteFamily], nodes: Sequence[int]) -> tuple[Model[DiscreteFamily], dict[int, int]]:
    """Fix what does not interact with some variables, by whatever way, at any value: it changes nothing."""
    from scipy.sparse.csgraph import connected_components

    _, part = connected_components(model.family.graph.adjacency, directed=False)
    far = np.flatnonzero(~np.isin(part, part[list(nodes)]))
    near = np.setdiff1d(np.arange(model.n_variables), far)
    if far.size and near.size:
        model, _ = model.given(far, np.zeros(far.size, np.int8))
    return model, {int(node): place for place, node in enumerate(near)}


def _exact_entropy(model: Model[DiscreteFamily], nodes: list[int]) -> float:
    """Return ``log Z - E[log weight]`` of all variables of a model, or ``-sum p ln p`` of the table of some."""
    if len(nodes) == model.n_variables:
        answers = exact(model)
        return answers.log_partition - float(model.theta @ answers.moments)
    if _product(model, nodes) > MAX_CELLS:
        raise TooExpensiveError(f"{len(nodes)} of {model.n_variables} variables have too many values to list")
    return float(entr(_exact_tables(model, [nodes])[0].value).sum())


def _divergence_terms(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the parts of both divergences and of Jensen's and Shannon's that states with these logarithms have."""
    middle = np.logaddexp(p, q) - math.log(2.0)
    forward, backward = _directed(p, q), _directed(q, p)
    return np.array([forward, backward, 0.5 * (_directed(p, middle) + _directed(q, middle))])


def _directed(p: np.ndarray, q: np.ndarray) -> float:
    possible = p > -np.inf  # 0 ln 0 is nothing
    return float(np.exp(p[possible]) @ (p[possible] - q[possible]))


# -- rows -------------------------------------------------------------------------------------------------------------
def log_weights_of(model: Model[DiscreteFamily], codes: np.ndarray, shown: Sequence[int]) -> np.ndarray:
    """Return the log-weights of codes of some variables (the last axis), the others summed out."""
    shown = list(shown)
    rows, row_of = np.unique(codes.reshape(-1, len(shown)), axis=0, return_inverse=True)
    every = np.zeros((len(rows), model.n_variables), np.int8)
    every[:, shown] = rows
    missing = np.ones(every.shape, bool)
    missing[:, shown] = False
    data = _dataset(model, every, missing if missing.any() else None)
    if data.has_missing and (seconds := clamped_seconds(model, data)) > MOST_SECONDS:
        raise TooExpensiveError(
            f"what {len(rows)} states weigh, summed over what they do not show, would take about {seconds:.2g} s",
            "ask about fewer columns" + ", or lower `n_samples`" * (seconds < MOST_SECONDS * len(rows) / 2),
        )
    return log_evidence(model, data)[row_of.ravel()].reshape(codes.shape[:-1])


def _dataset(model: Model[DiscreteFamily], codes: np.ndarray, missing: np.ndarray | None) -> Dataset:
    """Return codes of a model's variables as data."""
    coding = CategoryCoding.of_labels([range(size) for size in model.variables.sizes])
    names = tuple(f"x{i}" for i in range(model.n_variables))
    return Dataset(codes, np.ones(len(codes)), missing, coding, names, np.arange(len(codes)))


def _product(model: Model[DiscreteFamily], nodes: Sequence[int]) -> float:
    """Return how many combinations of values some variables have."""
    return math.prod(map(float, model.variables.take(nodes).sizes))


def _cell_numbers(model: Model[DiscreteFamily], codes: np.ndarray, nodes: Sequence[int]) -> np.ndarray:
    """Return the number of the combination of values that some variables have, the last changing fastest."""
    sizes = model.variables.take(nodes).sizes
    return codes[..., list(nodes)].astype(np.int64) @ np.cumprod([1, *sizes[:0:-1]])[::-1]


def _recoded(codes: np.ndarray, numbers: Sequence[np.ndarray]) -> np.ndarray:
    """Write codes of columns in another order of their values."""
    return np.stack([number[codes[..., j]] for j, number in enumerate(numbers)], axis=-1)


def _stderr(chains: np.ndarray) -> Any:
    """Return the standard error of the mean of independent chains, whose means stand on the first axis."""
    return chains.std(axis=0, ddof=1) / math.sqrt(len(chains))


def log_table(probabilities: object, shape: tuple[int, ...]) -> np.ndarray:
    """Return the logarithms of a given table, of the shape of the columns' values or flat, after a check."""
    try:
        table = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{type(probabilities).__name__} is no distribution",
            "give a fitted machine, a model, or a table of probabilities",
        ) from None
    if table.shape not in ((math.prod(shape),), shape):
        raise ArgumentError(
            f"the table of probabilities has shape {table.shape}",
            f"give one of shape {shape}, or {math.prod(shape)} numbers in that order",
        )
    if not (table >= 0).all():
        raise ArgumentError("the table of probabilities holds negative numbers or NaN")
    total = float(table.sum())
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise ArgumentError(f"the table of probabilities sums to {total:.6g}", "give numbers that sum to one")
    with np.errstate(divide="ignore"):
        return np.log(table.ravel() / total)
