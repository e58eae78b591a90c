"""Spatial Monte Carlo integration of any model through its factors, one region or several for each statistic.

`statistics_from` of a family is linear in the joint probabilities it asks for. Asking it about made-up ones shows, once
for a family, to which target each statistic belongs and with what coefficients; those of a thousand samples are then
one product.

Estimates from different regions over the same samples all have the right mean and are correlated. With their covariance
matrix V the combination of least variance has the coefficients ``V^-1 1 / (1' V^-1 1)`` (generalised least squares,
Sekimoto and Yasuda 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from gibbsian.backends.numba.spatial import accumulate_rows
from gibbsian.errors import ArgumentError
from gibbsian.estimate import Estimate
from gibbsian.expectations.region_sums import RegionPlan, conditional_tables, plan_region
from gibbsian.expectations.regions import Region, RegionRule, Target, edge_strengths
from gibbsian.expectations.samples import Samples
from gibbsian.graphs import Graph
from gibbsian.models.base import Array, DiscreteFamily, ExponentialFamily, Family, Model, keeps
from gibbsian.resources import require_memory

# Directions whose variance is smaller by this factor than the largest are rounding errors.
SMALLEST_EIGENVALUE = 1e-10


@runtime_checkable
class InBlocks(Protocol):
    """A family of which a statistic may be a sum over several tables."""

    @property
    def blocks(self) -> list[tuple[Target, Array, Array]]:
        """For each table its variables, the places of its statistics, and for each what the entries have of it."""


@dataclass(frozen=True, eq=False)
class Contraction:
    """The targets of a model's statistics, and the statistics of each target.

    Parameters
    ----------
    targets : tuple of tuple of int
        The sets of variables whose joint distribution some statistic needs.
    statistics : tuple of ndarray of int
        For each target, the places in theta of its statistics.
    coefficients : tuple of ndarray
        For each target, one row for each of its statistics: what each cell of the table counts for.
    n_statistics : int
        Number of all statistics; some may need no target.
    """

    targets: tuple[Target, ...]
    statistics: tuple[Array, ...]
    coefficients: tuple[Array, ...]
    n_statistics: int

    @property
    def shared(self) -> bool:
        """Whether a statistic is a sum over several targets."""
        places = np.concatenate(self.statistics)
        return np.unique(places).size < places.size


@dataclass(frozen=True, eq=False)
class TablePlan:
    """The regions of the statistics of any model, summed over through its factors.

    Parameters
    ----------
    graph : Graph
        Which variables interact.
    rules : tuple of RegionRule
        How the regions were chosen; of several the estimates are combined by generalised least squares.
    contraction : Contraction
        Which joint distributions the statistics need.
    regions : tuple of tuple of RegionPlan
        For each of those, its region by each rule.
    known : mapping
        All regions that were ever planned.
    """

    graph: Graph
    rules: tuple[RegionRule, ...]
    contraction: Contraction
    regions: tuple[tuple[RegionPlan, ...], ...]
    known: Mapping[tuple[Target, Region], RegionPlan] = field(repr=False)

    @property
    def n_statistics(self) -> int:
        """Number of statistics."""
        return self.contraction.n_statistics

    @classmethod
    def of(cls, model: Model[Any], rules: Iterable[RegionRule], contraction: Contraction | None = None) -> Self:
        """Choose the regions and plan their sums; of the model's own statistics, unless others are given."""
        wanted = contraction_of(model.family) if contraction is None else contraction
        return cls(model.family.graph, tuple(rules), wanted, (), {})._planned(model)

    def renewed(self, model: Model[DiscreteFamily]) -> Self:
        """Choose again; sums that were planned before are kept."""
        return self._planned(model) if any(getattr(rule, "uses_strengths", True) for rule in self.rules) else self

    def _planned(self, model: Model[DiscreteFamily]) -> Self:
        targets, factors = self.contraction.targets, model.family.factors(model.theta)
        known, chosen, strengths = dict(self.known), [], edge_strengths(model.family, factors)
        for rule in self.rules:
            wanted = list(zip(targets, rule.regions(self.graph, targets, strengths), strict=True))
            known.update({each: plan_region(factors, *each) for each in wanted if each not in known})
            chosen.append([known[each] for each in wanted])
        return replace(self, regions=tuple(zip(*chosen, strict=True)), known=known)

    def statistics(self, model: Model[ExponentialFamily], samples: Samples) -> Estimate:
        """Return the expected statistics, averaged over the samples."""
        average = _average if len(self.rules) == 1 else combine
        if self.contraction.shared:
            total = np.zeros((len(self.rules), samples.n_samples, self.n_statistics))
            for places, values in self.values(model, samples):
                total[:, :, places] += values
            return average(samples, total)
        mean, stderr = np.zeros(self.n_statistics), np.zeros(self.n_statistics)
        for places, values in self.values(model, samples):
            part = average(samples, values)
            mean[places], stderr[places] = part.value, part.stderr
        return Estimate(mean, stderr)

    def values(self, model: Model[Any], samples: Samples) -> Iterator[tuple[Array, Array]]:
        """Yield, by target, the places of its statistics and their values for each rule and sample."""
        factors, rows = model.family.factors(model.theta), _by_variable(model, samples)
        parts = zip(self.regions, self.contraction.statistics, self.contraction.coefficients, strict=True)
        for plans, places, coefficients in parts:
            tables = (conditional_tables(factors, plan, rows).reshape(samples.n_samples, -1) for plan in plans)
            yield places, np.stack([table @ coefficients.T for table in tables])


def _average(samples: Samples, values: Array) -> Estimate:
    """Means of quantities that one region estimates."""
    sums = samples.running_sums(values.shape[2])
    ((_, block),) = samples.blocks(samples.n_samples)
    accumulate_rows(sums, np.ascontiguousarray(values[0].T), block)
    return samples.summarise(sums)


def _by_variable(model: Model[Family], samples: Samples) -> Array:
    """The samples as factors take those outside a region: codes, or numbers where variables are real."""
    n_cells = samples.states.size
    require_memory(17.0 * n_cells, f"{samples.n_samples:,} samples of {model.n_variables:,} variables", "use fewer")
    return np.ascontiguousarray(samples.states.T, dtype=None if model.variables.real else np.intp)


def contraction_of(family: DiscreteFamily) -> Contraction:
    """Find out which joint distributions a family's statistics need, and how they depend on them."""
    if keeps(family, InBlocks):
        targets, places, tables = zip(*family.blocks, strict=True)
        return Contraction(targets, places, tables, family.n_parameters)
    probe = _Probe(family)
    targets = probe.targets
    largest = max(probe.sizes.values())
    # irregular numbers, so that no statistic answers zero and no two cells give the same answer
    irregular = np.random.default_rng(0).uniform(1.0, 2.0, size=largest)
    answers = probe.ask(lambda target, size: irregular[:size])
    number = {target: t + 1 for t, target in enumerate(targets)}
    numbered = probe.ask(lambda target, size: irregular[:size] * number[target])
    owners = np.rint(numbered / answers).astype(np.int64) - 1
    if not np.allclose(numbered, answers * (owners + 1), rtol=1e-9):
        raise ArgumentError(f"{type(family).__name__} has statistics that depend on several sets of variables at once")
    coefficients = _coefficients(probe, answers, irregular)
    places = tuple(np.flatnonzero(owners == t) for t in range(len(targets)))
    tables = tuple(coefficients[own][:, : probe.sizes[target]] for own, target in zip(places, targets, strict=True))
    return Contraction(targets, places, tables, family.n_parameters)


def _coefficients(probe: _Probe, answers: Array, irregular: Array) -> Array:
    """Coefficients of all statistics, one column for each cell of the largest table."""
    coefficients = np.zeros((answers.size, irregular.size))
    cell_of = {value: cell for cell, value in enumerate(irregular.tolist())}
    # a statistic that is the probability of one cell returns that cell's number
    cells = np.array([cell_of.get(answer, -1) for answer in answers.tolist()])
    single = cells >= 0
    coefficients[np.flatnonzero(single), cells[single]] = 1.0
    if not single.all():
        for cell in range(irregular.size):
            coefficients[~single, cell] = probe.ask(_unit_table(cell))[~single]
    return coefficients


def _unit_table(cell: int) -> Callable[[Target, int], Array]:
    """One at a cell, zero at all others; zero everywhere where a table has fewer cells."""
    return lambda target, size: (np.arange(size) == cell).astype(np.float64)


class _Probe:
    """Asks a family for statistics from made-up tables."""

    def __init__(self, family: DiscreteFamily):
        self.family = family
        self.sizes: dict[Target, int] = {}
        self.ask(lambda target, size: self.sizes.setdefault(target, size) * np.zeros(size))
        self.targets = tuple(self.sizes)

    def ask(self, flat_table: Callable[[Target, int], Array]) -> Array:
        def marginal(nodes: Target) -> Array:
            shape = tuple(self.family.variables.sizes[node] for node in nodes)
            return flat_table(tuple(nodes), int(np.prod(shape))).reshape(shape)

        return self.family.statistics_from(marginal)


def combine(samples: Samples, values: Array) -> Estimate:
    """Return means of quantities that several regions estimate.

    Parameters
    ----------
    samples : Samples
        What the samples count for.
    values : ndarray of shape (n_regions, n_samples, n_quantities)
        Conditional expectations given each sample.
    """
    each = [_combine_one(samples, values[:, :, k].T) for k in range(values.shape[2])]
    return Estimate(np.array([one.value for one in each]), np.array([one.stderr for one in each]))


def _combine_one(samples: Samples, values: Array) -> Estimate:
    means, covariance = samples.mean_and_covariance(values)
    n_regions = len(means)
    worth = samples.effective_sample_size
    coefficients = least_squares_coefficients(covariance, worth)
    stderr = float(np.sqrt(max(coefficients @ covariance @ coefficients, 0.0)))
    if np.count_nonzero(coefficients) > 1:
        # the coefficients were fitted to the same samples, which makes the spread look smaller than it is
        stderr *= np.sqrt((worth - 1) / (worth - n_regions))
    return Estimate(float(coefficients @ means), float(stderr) if np.isfinite(covariance).all() else np.nan)


def least_squares_coefficients(covariance: Array, n_effective: float) -> Array:
    """Return coefficients that sum to one and make the variance least.

    Regions that say the same make the covariance matrix singular: then they share their coefficient. With few samples
    the matrix is not known well enough, and the region of least variance is taken alone; so is one without variance.
    """
    n_regions = len(covariance)
    variances = np.diag(covariance)
    alone = np.zeros(n_regions)
    alone[np.argmin(variances) if np.isfinite(variances).all() else 0] = 1.0
    if n_regions == 1 or n_effective <= 10 * n_regions or not variances.min() > 0:
        return alone
    scale = np.sqrt(variances)
    eigenvalues, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1]
    projected = vectors[:, kept].T @ (1.0 / scale)
    direction = vectors[:, kept] @ (projected / eigenvalues[kept]) / scale
    coefficients = direction / direction.sum()
    improves = np.isfinite(coefficients).all() and coefficients @ covariance @ coefficients <= variances.min()
    return coefficients if improves else alone
