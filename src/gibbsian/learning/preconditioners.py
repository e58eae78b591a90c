"""Preconditioners for L-BFGS from the first two moments of the columns: approximate inverse Hessians of objectives.

In units of spins and about some mean, the loss of variable i bends with its field by ``w_i(x)`` in row x. Its bias
then goes with the means of the other columns under these weights, and with biases taken out a coupling bends by
``D_ij = w_i V_ij + w_j V_ji`` and by the ridge; V are the variances under the weights, which two-valued columns have
from their means. Scaled by the root of D, couplings of one variable go together by its covariance of the columns, and
by what a ridge keeps its bias from taking up. We take the mean R of these correlations over all variables, as of one:
the curvature acts as ``J -> (R J + J R) / 2``, which a division in a basis of eigenvectors inverts; that of the
likelihood, of independent columns, as ``J -> R J R``.

Weights are known at independent columns and, from one pass over the rows, anywhere else. They are those of the slopes:
where a model is right, ``2 E[phi''(d)] = -E[phi'(d)]`` for every loss of costs whose minimum is the model, and
slopes do not vanish in rows that a step too far has put on the wrong side.

At independent columns covariances are the slopes of pseudolikelihood too, so that its first step costs no pass over the
rows. It is where other losses start as well: those of rare columns are flat there, and a ridge outweighs them.

Scores of levels are columns as well. The levels of a variable bend as the covariance ``diag(p) - p p'`` of their
indicators, which couplings about the mean scores leave alone at independent columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask
from gibbsian.backends.device import library_of, twin
from gibbsian.learning.objectives.centring import LinearMap, pair_centring, product_centring
from gibbsian.models.base import Family
from gibbsian.models.families.tables import is_potts
from gibbsian.models.variables import Variables
from gibbsian.registry import Registry

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from gibbsian.models.families.pairwise import PairwiseFamily
    from gibbsian.models.families.potentials import OrdinalFamily
    from gibbsian.models.families.products import ProductsFamily
    from gibbsian.models.families.tables import TablesFamily

PRECONDITIONERS = Registry("preconditioner", "gibbsian.learning.objectives", "PRECONDITIONERS")

_Directions = tuple[Floats, Floats]
# Curvatures of parameters, and of couplings of all pairs, below these shares of the largest are taken for these.
_LIGHTEST, _FLATTEST = 1e-6, 1e-8
# A variable of a smaller share of the largest weight, as a constant column, bends much more as soon as it moves: more
# than this at independent columns, and than this where weights are known.
_MIN_WEIGHT, _MIN_RENEWED = 5e-3, 1e-3
# This share of the correlations is left out: steps from independent columns go too far where columns copy others.
_SHRUNK = 0.05
# Of tables with more parameters than this, steps are taken about the frequencies of the values. Fewer take few steps
# either way.
MANY_PARAMETERS = 2**12
# A ridge of more than this part of the curvature of a coupling: of a protein family with 0.001 steps about the
# frequencies are a third more than plain ones, with 0.0001 fewer.
STRONG_RIDGE = 0.2


# -- approximate inverse Hessians --------------------------------------------------------------------------------------
class Preconditioner(Protocol):
    """Maps the gradient of parameters about the mean (see `centring`) to a step: an approximate inverse Hessian."""

    @property
    def curvature(self) -> PairCurvature | None:
        """What makes it anew at other parameters, where something does."""

    def __call__(self, gradient: Floats) -> Floats:
        """Return the step along a gradient."""

    def first_step(self, slopes: Floats) -> Floats | None:
        """Return a step from independent columns that costs no pass over the rows, by the slopes of a ridge there."""

    def on_device(self, twins: ModuleType) -> Preconditioner:
        """Return the same for tensors, by `backends.torch.vectors`."""


@dataclass(frozen=True, eq=False)
class DiagonalPreconditioner:
    """A curvature for each parameter about the mean, on any graph and for products of any size."""

    curvatures: Floats
    curvature: ClassVar[None] = None

    @classmethod
    def of(cls, curvatures: Floats, ridges: Floats) -> Self:
        """Build it from curvatures, none of them too small, and a ridge."""
        # where all columns are constant there is no curvature at all
        least = _LIGHTEST * curvatures.max(initial=0.0) or 1.0
        return cls(np.maximum(curvatures, least) + ridges)

    def __call__(self, gradient: Floats) -> Floats:
        """Return the step along a gradient."""
        return gradient / self.curvatures

    def first_step(self, slopes: Floats) -> None:
        """Return None: what products of columns have in common is not known."""

    def on_device(self, twins: ModuleType) -> Self:
        """Return the same for tensors."""
        return replace(self, curvatures=twins.put(self.curvatures))


@dataclass(frozen=True, eq=False)
class PairPreconditioner:
    """The preconditioner of all pairs of columns; arrays are NumPy's or PyTorch's.

    Parameters
    ----------
    ends : array of int, shape (2, n_pairs)
        The two variables of each coupling.
    lean : array of shape (n, n)
        By how much each bias about the mean leans on each coupling: its own mean is another, and a ridge acts on it.
    bias_inverse : array
        The inverse curvature of the biases: numbers, or a matrix.
    scales, basis, divisors : array
        Couplings are multiplied by `scales`, divided in the `basis`, and multiplied again.
    curvature : PairCurvature
        What it is made from.
    """

    ends: Floats
    lean: Floats
    bias_inverse: Floats
    scales: Floats
    basis: Floats
    divisors: Floats
    curvature: PairCurvature

    def __call__(self, gradient: Floats) -> Floats:
        """Return the step along a gradient."""
        (i, j), library = self.ends, library_of(gradient)
        n_biases = len(gradient) - len(i)
        biases, slopes = gradient[:n_biases], library.zeros_like(self.divisors)
        slopes[i, j] = gradient[n_biases:]
        if not n_biases:
            return self._divided(slopes + slopes.T)[i, j]
        leaning = biases[:, None] * self.lean
        couplings = self._divided(slopes + slopes.T + leaning + leaning.T)
        own = self.bias_inverse @ biases if self.bias_inverse.ndim == 2 else self.bias_inverse * biases
        return library.concatenate([own + (self.lean * couplings).sum(axis=1), couplings[i, j]])

    def _divided(self, slopes: Floats) -> Floats:
        inside = self.basis.T @ (self.scales * slopes) @ self.basis
        return self.scales * (self.basis @ (inside / self.divisors) @ self.basis.T)

    @classmethod
    def of(cls, ends: Floats, numbers: Floats, curvature: PairCurvature) -> Self:
        """Cut up the numbers of a preconditioner, side by side in one array."""
        n = len(numbers)
        lean, scales, basis = (numbers[:, k * n : (k + 1) * n] for k in range(3))
        inverse, values = numbers[:, -2], numbers[:, -1]
        return cls(ends, lean, inverse, scales, basis, (values[:, None] + values) / 2, curvature)

    def at(self, numbers: Floats) -> Self:
        """Return the preconditioner at other parameters, from what `PairCurvature.renewed` says of them."""
        return self.of(self.ends, numbers, self.curvature)

    def first_step(self, slopes: Floats) -> Floats | None:
        """Return a step of pseudolikelihood from independent columns; None without biases."""
        return self.curvature.first_step(slopes) if self.curvature.bias else None

    def on_device(self, twins: ModuleType) -> Self:
        """Return the same for tensors."""
        lean, inverse, scales = twins.put(self.lean), twins.put(self.bias_inverse), twins.put(self.scales)
        basis, divisors = twins.put(self.basis), twins.put(self.divisors)
        return type(self)(twins.put_places(self.ends), lean, inverse, scales, basis, divisors, self.curvature)


@dataclass(frozen=True, eq=False)
class LevelPreconditioner:
    """Levels by the covariance of their indicators, ``diag(p) - p p'`` and a ridge, and couplings of scores.

    Parameters
    ----------
    curvatures : array
        ``p`` of each level above the lowest, with the ridge.
    ties : matrix of shape (n_levels, n_variables)
        Its products with its transpose are what the inverse has besides, in blocks of levels of one variable.
    couplings : DiagonalPreconditioner or PairPreconditioner
        That of the parameters after the levels.
    """

    curvatures: Floats
    ties: csr_array
    couplings: DiagonalPreconditioner | PairPreconditioner
    curvature: ClassVar[None] = None

    def __call__(self, gradient: Floats) -> Floats:
        """Return the step along a gradient."""
        levels, couplings = gradient[: len(self.curvatures)], gradient[len(self.curvatures) :]
        steps = levels / self.curvatures + self.ties @ (self.ties.T @ levels)
        return library_of(gradient).concatenate([steps, self.couplings(couplings)])

    def first_step(self, slopes: Floats) -> Floats | None:
        """Return a step of the couplings alone; None where not all pairs are coupled."""
        n_levels, shape = len(self.curvatures), self.couplings.curvature
        if shape is None:
            return None
        step = shape.first_step(np.concatenate([np.zeros_like(shape.spins), slopes[n_levels:]]))
        return np.concatenate([np.zeros(n_levels), step[len(shape.spins) :]])

    def on_device(self, twins: ModuleType) -> Self:
        """Return the same for tensors."""
        ties = twins.put(self.ties.toarray())
        return type(self)(twins.put(self.curvatures), ties, self.couplings.on_device(twins))


@dataclass(frozen=True, eq=False)
class PairCurvature:
    """What preconditioners of all pairs of columns share wherever they are made.

    Parameters
    ----------
    ends : ndarray of int, shape (2, n_pairs)
        The two variables of each coupling.
    spins, shifts : ndarray
        The mean that parameters are about, in spins; and what a coupling moves a bias by that is not about it.
    covariance : ndarray
        The moments of the columns about that mean, in units of spins.
    ridges : tuple of float
        How a ridge bends biases and couplings.
    bias : bool
        Whether there are biases, which take up what the weights do to the means.
    squares : ndarray, optional
        The mean squares of the columns, less those of `spins`: of scores about their means the variances.
    """

    ends: Floats
    spins: Floats
    shifts: Floats
    covariance: Floats
    ridges: tuple[float, float | Floats]
    bias: bool
    squares: float | Floats = 1.0

    @cached_property
    def _independent(self) -> tuple[Floats, Floats, _Directions]:
        """Weights and means of pseudolikelihood where columns are independent, and directions there."""
        weights = np.diag(self.covariance)
        means = -(self.spins / weights)[:, None] * self.covariance
        return weights, means, self._directions(weights, means)

    def _directions(self, weights: Floats, means: Floats) -> _Directions:
        """Eigenvalues and eigenvectors of the correlations between couplings of a variable, over all variables."""
        scales, held = self._scales(self._bent(weights, means)), weights * self._held(weights)
        np.fill_diagonal(scales, 0.0)
        away = scales * (means + self.shifts)
        seen = self.covariance * ((weights[:, None] * scales).T @ scales) + (held[:, None] * away).T @ away
        roots = np.sqrt(np.maximum(np.diag(seen), _LIGHTEST * np.diag(seen).max()))
        correlations = seen / np.outer(roots, roots)
        np.fill_diagonal(correlations, 1.0)
        values, basis = (np.linalg if (twins := twin("moments")) is None else twins).eigh(correlations)
        return np.maximum(values, _FLATTEST * values[-1]), basis

    def _held(self, weights: Floats) -> Floats:
        """Return the share that a ridge keeps each bias from taking up."""
        return self.bias * self.ridges[0] / (weights + self.ridges[0])

    def _bent(self, weights: Floats, means: Floats) -> Floats:
        """Return how each variable's loss bends with its couplings, its bias taken out as far as a ridge lets it."""
        spins = np.clip(self.spins + means, -1.0, 1.0)
        bent = self.squares - (spins**2 if self.bias else self.spins * (self.spins + 2.0 * means))
        return weights[:, None] * (bent + self._held(weights)[:, None] * np.square(means + self.shifts))

    def _scales(self, bent: Floats) -> Floats:
        bent = bent + bent.T
        return 1.0 / np.sqrt(np.maximum(bent, _FLATTEST * bent.max()) + self.ridges[1])

    def _lean(self, weights: Floats, means: Floats) -> Floats:
        held = self._held(weights)[:, None]
        lean = held * self.shifts - (1.0 - held) * means
        np.fill_diagonal(lean, 0.0)
        return lean

    def of_likelihood(self) -> PairPreconditioner:
        """Return the preconditioner of the likelihood where columns are independent."""
        values, basis = self._independent[2]
        variances = np.maximum(np.diag(self.covariance), _MIN_WEIGHT * np.diag(self.covariance).max())
        scaled = basis / np.sqrt(variances)[:, None]
        inverse = (scaled / (values + self.ridges[0] * np.square(scaled).sum(axis=0))) @ scaled.T
        held = (variances * self._held(variances))[:, None] * np.square(self.shifts)
        scales = self._scales(np.outer(variances, variances) / 2 + held)
        lean = self._lean(variances, np.zeros_like(scales))
        return PairPreconditioner(self.ends, lean, inverse, scales, basis, np.outer(values, values), self)

    def of_losses(self, weights: Floats, means: Floats) -> PairPreconditioner:
        """Return the preconditioner where columns are independent, by weights of variables and means under each."""
        weights = np.maximum(weights, _MIN_WEIGHT * weights.max(initial=0.0))
        numbers = self._numbers(weights, means, self._independent[2])
        return PairPreconditioner.of(self.ends, numbers, self)

    def renewed(self, sums: Floats) -> Floats:
        """Return the numbers of the preconditioner elsewhere, by weights of variables and column sums under each.

        They are one plain array, so that a checkpoint holds them; `PairPreconditioner.at` takes them.
        """
        weights = np.maximum(sums[:, 0], np.finfo(float).tiny)
        means = sums[:, 1:] / weights[:, None] - self.shifts
        weights = np.maximum(weights, _MIN_RENEWED * weights.max())
        return self._numbers(weights, means, self._directions(weights, means))

    def _numbers(self, weights: Floats, means: Floats, directions: _Directions) -> Floats:
        values = (1.0 - _SHRUNK) * directions[0] + _SHRUNK
        inverse, scales = 1.0 / (weights + self.ridges[0]), self._scales(self._bent(weights, means))
        return np.column_stack([self._lean(weights, means), scales, directions[1], inverse, values])

    def first_step(self, slopes: Floats) -> Floats:
        """Return a step of pseudolikelihood from independent columns, by which fields move by less than one.

        Moments of pairs tell all of it; `slopes` are those of a ridge there.
        """
        weights, means, _ = self._independent
        slopes = slopes - np.concatenate([np.zeros_like(weights), 2.0 * self.covariance[tuple(self.ends)]])
        step = self.of_losses(weights, means)(slopes)
        return -step / np.sqrt(1.0 + slopes @ step / weights.sum())


# -- what is known of a family -----------------------------------------------------------------------------------------
def frequencies(variables: Variables, mean: Floats) -> Floats:
    """Return how often each value occurs, which is what means of columns are unless these have two scores."""
    if not variables.two_valued or variables.scores is None:
        return mean
    low, gap = variables.lows_and_gaps
    rates = (mean - low) / gap
    return np.stack([1.0 - rates, rates], axis=1).ravel()


@dataclass(frozen=True, eq=False)
class Preconditioning:
    """What steps know of a family: of those without an entry nothing."""

    family: Family

    def centred(self, origin: Floats, l1: bool = False) -> LinearMap:
        """Return the change to parameters about a mean; with `l1` one that leaves what is penalised apart."""
        return LinearMap(np.ones(self.family.n_parameters))

    def independent(self, mean: Floats) -> Floats | None:
        """Return theta of independent columns with these means, or None where that is not a matter of biases."""
        return None

    def preconditioner(
        self, mean: Floats, statistics: Callable[[], Floats], weights: Floats | None, l2: float
    ) -> Preconditioner | None:
        """Return an approximate inverse Hessian where columns are independent, or None.

        `statistics()` are the means of the data, asked for where they matter; `weights` say how the loss of a variable
        bends with its field, and how much more where its own spin is up, None for the likelihood.
        """
        return None


def preconditioning(family: Family) -> Preconditioning:
    """Return what steps know of a family.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learning.preconditioners import preconditioning
    >>> preconditioning(gb.PairwiseFamily(gb.graphs.complete(2))).independent(np.zeros(2))
    array([0., 0., 0.])
    """
    name = PRECONDITIONERS.name_for(family)
    return (PRECONDITIONERS.factory(name) if name else Preconditioning)(family)


@PRECONDITIONERS.register("pairwise")
class PairPreconditioning(Preconditioning):
    """Biases and couplings of two-valued columns: of all pairs a `PairPreconditioner`, else a diagonal one."""

    family: PairwiseFamily

    def centred(self, origin: Floats, l1: bool = False) -> LinearMap:
        """Return the change to parameters about a mean; couplings are only rescaled."""
        family, half = self.family, self.family.layout.gap / 2
        scales = np.full(family.n_parameters, half**2)
        scales[: family.layout.n_biases] = half
        return pair_centring(family.graph.edges, origin, scales) if family.bias else LinearMap(scales)

    def independent(self, mean: Floats) -> Floats:
        """Return theta of independent columns with these means, all between the two values."""
        theta, n_biases = np.zeros(self.family.n_parameters), self.family.layout.n_biases
        theta[:n_biases] = _log_odds(self.family.variables, mean)[:n_biases]
        return theta

    def preconditioner(
        self, mean: Floats, statistics: Callable[[], Floats], weights: Floats | None, l2: float
    ) -> Preconditioner | None:
        """Return an approximate inverse Hessian where columns are independent."""
        family, (_, bias, low, gap, _), n_biases = self.family, self.family.layout, self.family.layout.n_biases
        half, high, origin = gap / 2, low + gap, mean if bias else np.zeros_like(mean)
        variances = ((low + high) * mean - low * high - origin**2) / half**2
        ridges, (i, j) = l2 / np.square(self.centred(origin).scales), family.graph.edges.T
        single = variances if weights is None else weights[0]
        if family.graph.density < 1.0:
            pairs = variances[i] * single[j] + (0.0 if weights is None else variances[j] * single[i])
            return DiagonalPreconditioner.of(np.concatenate([single[:n_biases], pairs]), ridges)
        covariance = np.diag(variances / 2)
        covariance[i, j] = (statistics()[n_biases:] - origin[i] * origin[j]) / half**2
        spins, moments = (origin - (low + half)) / half, covariance + covariance.T
        shape = PairCurvature(family.graph.edges.T, spins, origin / half, moments, (ridges[0], ridges[-1]), family.bias)
        if weights is None:
            return shape.of_likelihood()
        apart = (mean - origin) / half  # of what parameters are about; zero with biases
        tilted = (weights[1] / weights[0])[:, None] * (moments - np.outer(apart, apart))
        return shape.of_losses(weights[0], apart + tilted)


@PRECONDITIONERS.register("products")
class ProductPreconditioning(Preconditioning):
    """Products of two-valued columns, where every part of a product is a product."""

    family: ProductsFamily

    def centred(self, origin: Floats, l1: bool = False) -> LinearMap:
        """Return the change to parameters about a mean, where every part of a product is one and nothing is sparse.

        The change mixes products, so that an L1 penalty, which would act on the mixtures, leaves them as they are.
        """
        family, known = self.family, None
        if family.variables.two_valued and not l1:
            (_, gaps), (pointers, members) = family.variables.lows_and_gaps, family.scopes.csr
            known = product_centring(family.scopes, origin, np.multiply.reduceat((gaps / 2)[members], pointers[:-1]))
        return super().centred(origin) if known is None else known

    def independent(self, mean: Floats) -> Floats | None:
        """Return theta of independent columns with these means, where all have two values and a bias."""
        scopes, singles = self.family.scopes, np.flatnonzero(self.family.scopes.sizes == 1)
        if not self.family.variables.two_valued or len(singles) < scopes.n_variables:
            return None
        columns, theta = np.array([scopes[int(place)][0] for place in singles]), np.zeros(len(scopes))
        theta[singles] = _log_odds(self.family.variables, mean)[columns]
        return theta

    def preconditioner(
        self, mean: Floats, statistics: Callable[[], Floats], weights: Floats | None, l2: float
    ) -> Preconditioner | None:
        """Return an approximate inverse Hessian where columns are independent: a curvature for each product."""
        centring = self.centred(mean)
        if centring.inner is None:
            return None
        rates, (pointers, members) = frequencies(self.family.variables, mean)[1::2], self.family.scopes.csr
        variances = 4.0 * rates * (1.0 - rates)
        curvatures = np.multiply.reduceat(variances[members], pointers[:-1])
        if weights is not None:
            curvatures = curvatures * np.add.reduceat((weights[0] / variances)[members], pointers[:-1])
        return DiagonalPreconditioner.of(curvatures, l2 / np.square(centring.scales))


@PRECONDITIONERS.register("tables")
class TablePreconditioning(Preconditioning):
    """Many tables of single values and of pairs, about the frequencies of the values."""

    family: TablesFamily

    @cached_property
    def _is_large(self) -> bool:
        return self.family.n_parameters > MANY_PARAMETERS and is_potts(self.family)

    @cached_property
    def _value_pairs(self) -> Integers:
        """Which two values, counted over all variables, each entry of the tables of pairs is of: a row for each."""
        values = np.split(np.arange(sum(self.family.variables.sizes)), self.family.variables.offsets[1:-1])
        grids = [np.meshgrid(values[i], values[j], indexing="ij") for i, j in self.family.graph.edges.tolist()]
        return np.vstack([np.zeros((0, 2), np.intp), *(np.reshape(grid, (2, -1)).T for grid in grids)])

    def centred(self, origin: Floats, l1: bool = False) -> LinearMap:
        """Return the change to parameters about the frequencies of values; couplings are only rescaled."""
        if not self._is_large:
            return super().centred(origin, l1)
        scales = np.ones(self.family.n_parameters)
        return pair_centring(self._value_pairs, frequencies(self.family.variables, origin), scales)

    def independent(self, mean: Floats) -> Floats | None:
        """Return theta of independent columns with these frequencies of values, none of them zero."""
        if not self._is_large:
            return None
        theta, logs = np.zeros(self.family.n_parameters), np.log(frequencies(self.family.variables, mean))
        theta[: len(logs)] = logs
        return self.family.canonical(theta)

    def preconditioner(
        self, mean: Floats, statistics: Callable[[], Floats], weights: Floats | None, l2: float
    ) -> Preconditioner | None:
        """Return an approximate inverse Hessian where columns are independent: a curvature for each entry.

        None where a ridge, which acts on parameters that are not about frequencies, bends more than the data do.
        """
        if not self._is_large:
            return None
        rates, (first, second) = frequencies(self.family.variables, mean), self._value_pairs.T
        variances = rates * (1.0 - rates)
        pairs = variances[first] * variances[second]
        if l2 > STRONG_RIDGE * pairs.mean():
            return None
        return DiagonalPreconditioner.of(np.concatenate([variances, pairs]), np.full(self.family.n_parameters, l2))


@PRECONDITIONERS.register("ordinal")
class ScorePreconditioning(Preconditioning):
    """Free levels and couplings of scores, about the mean scores and in halves of their ranges."""

    family: OrdinalFamily

    @cached_property
    def _levels(self) -> tuple[Floats, Integers, Mask]:
        """The score of each level, which variable it is of, and which are not the lowest of theirs."""
        scores, sizes = self.family.variables.levels, self.family.variables.sizes
        owner = np.repeat(np.arange(len(sizes)), sizes)
        return np.concatenate(scores), owner, np.diff(owner, prepend=-1) == 0

    @cached_property
    def _halves(self) -> Floats:
        """Half of the range of each variable's scores, the unit of centred ones."""
        ranges = np.array([np.ptp(levels) for levels in self.family.variables.levels])
        return np.where(ranges > 0, ranges / 2, 1.0)

    def centred(self, origin: Floats, l1: bool = False) -> LinearMap:
        """Return the change to parameters about the mean scores: levels take up couplings, which are only rescaled."""
        from scipy.sparse import block_array, csr_array, eye_array

        variables, (scores, owner, above), (i, j) = self.family.variables, self._levels, self.family.graph.edges.T
        means, lowest = np.bincount(owner, scores * frequencies(variables, origin)), scores[~above]
        fields, n_levels, edges = (scores - lowest[owner])[above], int(above.sum()), np.arange(i.size)
        by_level = csr_array((fields, (np.arange(n_levels), owner[above])), shape=(n_levels, len(variables)))
        ends = np.concatenate([i, j]), np.concatenate([edges, edges])
        taken = by_level @ csr_array((means[np.concatenate([j, i])], ends), shape=(len(variables), i.size))
        wholes = eye_array(n_levels), eye_array(i.size)
        inner, outer = (block_array([[wholes[0], part], [None, wholes[1]]], format="csr") for part in (taken, -taken))
        scales = np.concatenate([np.ones(n_levels), self._halves[i] * self._halves[j]])
        return LinearMap(scales, inner, outer)

    def independent(self, mean: Floats) -> Floats:
        """Return theta of independent columns with these frequencies of levels, none of them zero."""
        (_, owner, above), logs = self._levels, np.log(frequencies(self.family.variables, mean))
        levels = (logs - logs[~above][owner])[above]
        return np.concatenate([levels, np.zeros(self.family.graph.n_edges)])

    def preconditioner(
        self, mean: Floats, statistics: Callable[[], Floats], weights: Floats | None, l2: float
    ) -> Preconditioner | None:
        """Return an approximate inverse Hessian where columns are independent."""
        graph, (scores, owner, _), rates = self.family.graph, self._levels, frequencies(self.family.variables, mean)
        means, squares = np.bincount(owner, scores * rates), np.bincount(owner, scores**2 * rates)
        variances, (i, j) = (squares - means**2) / self._halves**2, graph.edges.T
        units = np.outer(self._halves, self._halves)
        if graph.density < 1.0:
            pairs = (1.0 if weights is None else 2.0) * variances[i] * variances[j]
            return self._with_levels(rates, l2, DiagonalPreconditioner.of(pairs, l2 / units[i, j] ** 2))
        covariance = np.diag(variances / 2)
        covariance[i, j] = (statistics()[-i.size :] - means[i] * means[j]) / units[i, j]
        moments, zeros = covariance + covariance.T, np.zeros_like(covariance)
        ridges = 0.0, l2 / units**2
        shape = PairCurvature(graph.edges.T, zeros[0], zeros[0], moments, ridges, bias=True, squares=variances)
        dense = shape.of_likelihood() if weights is None else shape.of_losses(variances, zeros)
        return self._with_levels(rates, l2, dense)

    def _with_levels(
        self, rates: Floats, l2: float, couplings: DiagonalPreconditioner | PairPreconditioner
    ) -> LevelPreconditioner:
        from scipy.sparse import csr_array

        _, owner, above = self._levels
        p, of = rates[above], owner[above]
        shares = p / (p + l2)
        left = 1.0 - np.bincount(of, p * shares, minlength=owner[-1] + 1)[of]
        ties = csr_array((shares / np.sqrt(left), (np.arange(p.size), of)), shape=(p.size, owner[-1] + 1))
        return LevelPreconditioner(p + l2, ties, couplings)


def _log_odds(variables: Variables, mean: Floats) -> Floats:
    """Return the bias at which a two-valued column by itself has each mean."""
    low, gap = variables.lows_and_gaps
    rates = (mean - low) / gap
    return np.log(rates / (1.0 - rates)) / gap
