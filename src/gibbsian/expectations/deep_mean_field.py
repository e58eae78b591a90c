"""The hidden layers of a deep machine given the visible one, by mean field: a bound on log P(v) for any size.

Of all distributions Q under which the hidden units are independent, the nearest to ``P(h | v)`` makes

    F(v) = E_Q[E(v, h)] - H(Q)  >=  -log sum_h exp(-E(v, h))

smallest (YK15's free energy). It is lowered by putting the odd layers where they are best given the even ones, exactly
and all at once because they do not interact, then the even ones given the odd ones, and so on: it never rises. Missing
cells of the visible layer are hidden units of their row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Mask, Tensor
from gibbsian.backends.device import library_of
from gibbsian.errors import MissingValuesError
from gibbsian.expectations.convergence import sweep
from gibbsian.models.base import StackParts, Units
from gibbsian.models.layers.stack import StackFamily
from gibbsian.settings import check, declared, number, whole


class MeanFieldPosterior(NamedTuple):
    """Independent hidden units that stand for ``P(h | v)``, row by row.

    Parameters
    ----------
    means : tuple of ndarray
        Expected values of every layer, from the visible one, which is as given.
    fields : tuple of ndarray
        Natural parameters of every layer, of which `means` are the expected values; those of visible units count only
        where they are missing.
    missing : bool ndarray, optional
        Visible columns that were not observed.

    """

    means: tuple[Tensor, ...]
    fields: tuple[Tensor, ...]
    missing: Mask | None = None


@declared(frozen=True)
class DeepMeanField:
    """The hidden layers of a deep machine given the visible one: coordinate updates of odd, then of even layers.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> dbm = gb.models.StackFamily([gb.models.BinaryUnits(n) for n in (2, 1, 1)]).build()
    >>> [part.shape for part in gb.expectations.DeepMeanField()(dbm.family, dbm.parts, np.ones((3, 2))).means]
    [(3, 2), (3, 1), (3, 1)]
    """

    max_iter: int = whole(50, "Most rounds of updates.", least=1)
    tol: float = number(1e-6, "Stop when no mean moved by more in a round.", least=0)

    def __post_init__(self) -> None:
        check(self)

    def __call__(
        self, family: StackFamily, parts: StackParts, v: Tensor, missing: Mask | None = None
    ) -> MeanFieldPosterior:
        """Return the independent hidden units nearest to the posterior of rows.

        Parameters
        ----------
        family, parts : StackFamily and StackParts
            The machine.
        v : ndarray of shape (n_rows, width)
            Values of the visible layer.
        missing : bool ndarray of the same shape, optional
            Columns that were not observed, whatever `v` has there: hidden units of that row.
        """
        library = library_of(v)
        means = upward_means(family, parts, v if missing is None else _filled(family, parts, v, missing))
        fields = [library.zeros_like(part) for part in means]
        # what the rows say to the lowest hidden layer is the widest product, and stays the same where they are complete
        said = None if missing is not None else means[0] @ parts.weights[0] + parts.biases[1]

        def update(place: int) -> Tensor:
            if place == 1 and said is not None:
                fields[1] = said + means[2] @ parts.weights[1].T if len(means) > 2 else said
            else:
                fields[place] = family.fields(parts, place, means)
            updated = family.layers[place].means(fields[place])
            return library.where(missing, updated, means[0]) if place == 0 and missing is not None else updated

        even, odd = family.sides
        places = (*odd, *(even[1:] if missing is None else even))
        if library is np:

            def moved(place: int) -> float:
                before, means[place] = means[place], update(place)
                return float(np.abs(means[place] - before).max(initial=0.0))

            sweep(moved, places, self.max_iter, self.tol)
        else:
            self._settle_there(update, places, means)
        return MeanFieldPosterior(tuple(means), tuple(fields), missing)

    def _settle_there(self, update: Callable[[int], Tensor], places: Sequence[int], means: list[Tensor]) -> None:
        """The same on a device, which makes all rounds: after the last that is needed nothing moves."""
        library, zero = library_of(means[0]), means[0][0, 0] * 0.0
        moving = zero == 0.0
        for _ in range(self.max_iter):
            change = zero
            for place in places:
                before, after = means[place], update(place)
                change = library.maximum(library.abs(after - before).max(), change)
                means[place] = library.where(moving, after, before)
            moving = moving & (change > self.tol)


def _filled(family: StackFamily, parts: StackParts, v: Tensor, missing: Mask) -> Tensor:
    """Put into missing columns what the visible biases alone say."""
    if family.layers[0].variables.real:
        raise MissingValuesError("missing cells of Gaussian units cannot be treated as hidden units", "fill them first")
    return np.where(missing, family.layers[0].means(parts.biases[0][None]), v)


def upward_means(family: StackFamily, parts: StackParts, v: Tensor) -> list[Tensor]:
    """Return means of all layers from one pass upwards, the start of the updates.

    A layer that will hear from above counts what it hears from below twice (Salakhutdinov and Hinton 2009).

    """
    means = [v if library_of(v) is not np else np.asarray(v, dtype=parts.biases[0].dtype)]
    top = len(family.layers) - 1
    for place in range(1, top + 1):
        heard = means[-1] @ parts.weights[place - 1] * (1.0 if place == top else 2.0)
        means.append(family.layers[place].means(heard + parts.biases[place]))
    return means


def log_weight_bound(family: StackFamily, parts: StackParts, posterior: MeanFieldPosterior) -> Tensor:
    """Return ``-F(v)`` of each row: a lower bound on ``log P(v) + log Z``, exact with one hidden layer."""
    means = [np.asarray(part, dtype=np.float64) for part in posterior.means]
    visible, *hidden = family.layers
    total = family.linear_terms(parts, means) + visible.log_measure(means[0])
    for layer, fields, part in zip(hidden, posterior.fields[1:], means[1:], strict=True):
        total = total + entropies(layer, fields, part)
    if posterior.missing is None:
        return total
    unseen = np.where(posterior.missing, posterior.fields[0], 0.0)
    # units that were seen count as uniform in the normaliser, so their share is taken off again
    seen = np.where(posterior.missing, 0.0, _log_sizes(visible)).sum(axis=1)
    bound: Tensor = total + entropies(visible, unseen, means[0]) - seen
    return bound


def entropies(layer: Units, fields: Tensor, means: Tensor) -> Tensor:
    """Return the entropy of each row of independent discrete units."""
    fields = np.asarray(fields, dtype=np.float64)
    found: Tensor = layer.log_normaliser(fields) - np.einsum("mj,mj->m", fields, means)
    return found


def _log_sizes(layer: Units) -> Tensor:
    """The logarithm of the number of values of each unit, shared among its columns."""
    sizes = np.array(layer.variables.sizes)
    return np.log(sizes) if layer.width == layer.n_units else np.repeat(np.log(sizes) / sizes, sizes)
