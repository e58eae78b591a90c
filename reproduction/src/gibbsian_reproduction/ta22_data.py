"""The six data sets of TA22 section 3.4, drawn anew, beside the distributions that they are drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models import FullSpanFamily, SpanBasis, Variables
from gibbsian.rng import RandomState, as_generator

N_VARIABLES = 20
N_SAMPLES = {"S": 1_000, "L": 100_000}
# Most parents of a node; 37 and 54 edges in all.
_PARENTS = {"BN20-37": 2, "BN20-54": 3}
_ISING = "Ising5x4"

TA22_NAMES = tuple(f"{system}{size}" for system in (_ISING, *_PARENTS) for size in N_SAMPLES)


@dataclass(frozen=True, eq=False)
class TrueSample:
    """Rows and the distribution that they come from.

    Parameters
    ----------
    name : str
        Of the data set.
    states : (N, 20) of int8
        Codes 0 and 1.
    probabilities : (2^20,)
        ``p*`` of every state, in the order of their indices (the last variable changes fastest).

    Examples
    --------
    >>> from gibbsian_reproduction.ta22_data import make_ta22
    >>> sample = make_ta22("Ising5x4S", random_state=0)
    >>> sample.states.shape, sample.probabilities.size == 2**20
    ((1000, 20), True)
    """

    name: str
    states: np.ndarray
    probabilities: np.ndarray

    def counted(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct rows and how often each was drawn."""
        return self._counted

    @cached_property
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        return np.unique(self.states, axis=0, return_counts=True)

    def divergence(self, probabilities: np.ndarray) -> float:
        """Return ``KL(p* || p)``: how far another distribution is from the true one."""
        true = self.probabilities
        some = true > 0
        return float(true[some] @ np.log(true[some] / probabilities[some]))

    def empirical_divergence(self, probabilities: np.ndarray) -> float:
        """Return ``KL(p_d || p)``: how far another distribution is from the rows."""
        states, counts = self.counted()
        shares = counts / counts.sum()
        numbers = SpanBasis(Variables.binary(states.shape[1])).numbers(states)
        return float(shares @ np.log(shares / probabilities[numbers]))


def make_ta22(name: str, random_state: RandomState = None) -> TrueSample:
    """Draw one of TA22's data sets.

    ``Ising5x4`` is the Ising model on a grid of 5 x 4 nodes with couplings 1/2; ``BN20-37`` and ``BN20-54`` are
    Bayesian networks of 20 nodes with two and three parents each (fewer for the first nodes), these and their
    conditional probabilities drawn at random. ``S`` has 1,000 rows, ``L`` 100,000.

    Parameters
    ----------
    name : str
        ``Ising5x4S``, ``Ising5x4L``, ``BN20-37S``, ``BN20-37L``, ``BN20-54S`` or ``BN20-54L``.
    random_state : None, int or Generator
        For the network and the rows. With the same integer S and L come from the same network.

    Examples
    --------
    >>> from gibbsian_reproduction.ta22_data import make_ta22
    >>> sample = make_ta22("BN20-37S", random_state=1)
    >>> sample.states[:2].tolist() == make_ta22("BN20-37S", random_state=1).states[:2].tolist()
    True
    """
    if name not in TA22_NAMES:
        raise ArgumentError(f"must be one of {', '.join(TA22_NAMES)}", argument="name", value=name)
    rng = as_generator(random_state)
    system, size = name[:-1], name[-1]
    probabilities = ising_probabilities() if system == _ISING else network_probabilities(_PARENTS[system], rng)
    drawn = np.searchsorted(np.cumsum(probabilities), rng.random(N_SAMPLES[size]) * (1.0 - 1e-12), side="right")
    states = SpanBasis(Variables.binary(N_VARIABLES)).digits(np.minimum(drawn, probabilities.size - 1)).astype(np.int8)
    return TrueSample(name, states, probabilities)


def ising_probabilities(width: int = 5, height: int = 4, coupling: float = 0.5) -> np.ndarray:
    """Return the probability of every state of an Ising model on a grid."""
    n = width * height
    node = np.arange(n).reshape(height, width)
    across = zip(node[:, :-1].ravel(), node[:, 1:].ravel(), strict=True)
    down = zip(node[:-1].ravel(), node[1:].ravel(), strict=True)
    edges = [2 ** (n - 1 - int(i)) + 2 ** (n - 1 - int(j)) for i, j in (*across, *down)]
    model = FullSpanFamily.model(dict.fromkeys(edges, coupling), Variables.binary(n))
    return model.family.probabilities(model.theta).values


def network_probabilities(n_parents: int, rng: np.random.Generator, n_variables: int = N_VARIABLES) -> np.ndarray:
    """Return the probability of every state of a random Bayesian network.

    Node i has `n_parents` parents among the nodes before it, or all of these where there are fewer; its
    conditional probabilities are drawn uniformly.
    """
    table = np.ones((2,) * n_variables)
    for i in range(n_variables):
        parents = np.sort(rng.choice(i, min(i, n_parents), replace=False)) if i else np.empty(0, int)
        one = rng.random((2,) * len(parents))
        factor = np.stack([1.0 - one, one], axis=-1)
        shape = [2 if axis == i or axis in parents else 1 for axis in range(n_variables)]
        table *= factor.reshape(shape)
    return table.ravel()
