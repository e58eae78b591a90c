"""Parameters about the mean of the data and in units of spins: the same model, better directions for gradient steps.

Written with ``u_i = 2 (x_i - m_i) / gap``, where m is the mean of the data, as
``sum_i c_i u_i + sum_ij w_ij u_i u_j`` over T = 1, the couplings are the old ones times ``gap^2 / (4 T)`` and the
biases take up ``sum_j w_ij m_j``. Without it, in 0/1 coding or with lopsided columns, every coupling drags two biases
along, gradient steps creep through a narrow valley, and a rate means something else in every coding. Couplings are
only rescaled, so an L1 penalty on them is too. Knows the layout of the pairwise model; other models stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gibbsian.models import Model, PairwiseModel


@dataclass(frozen=True, eq=False)
class Centring:
    """The change of parameters that belongs to a model and an origin.

    Parameters
    ----------
    model : Model
        The model; only its structure counts.
    origin : ndarray of shape (n_variables,)
        The mean of the data.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.learners.centring import Centring
    >>> model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.0, 0.0], [4.0], gb.domain.BINARY)
    >>> centring = Centring(model, np.array([0.5, 0.25]))
    >>> centring.inwards(model.theta).tolist()
    [0.5, 1.0, 1.0]
    >>> centring.outwards(np.array([0.5, 1.0, 1.0])).tolist()
    [0.0, 0.0, 4.0]
    """

    model: Model
    origin: np.ndarray

    @cached_property
    def scales(self) -> np.ndarray:
        """By what each parameter is multiplied."""
        if not isinstance(self.model, PairwiseModel):
            return np.ones(self.model.theta.size)
        half = self.model.domain.gap / 2
        scales = np.full(self.model.theta.size, half**2 / self.model.temperature)
        scales[: self.model.n_biases] = half / self.model.temperature
        return scales

    def inwards(self, theta: np.ndarray) -> np.ndarray:
        """Return the centred parameters of the model with parameters `theta`."""
        return self.scales * self._shifted(theta, self.origin)

    def outwards(self, centred: np.ndarray) -> np.ndarray:
        """Return theta of the model with these centred parameters."""
        return self._shifted(centred / self.scales, -self.origin)

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to the centred parameters, given that with respect to theta."""
        pulled = gradient / self.scales
        if self._has_biases:
            i, j = self.model.graph.edges.T
            n = self.model.n_biases  # type: ignore[attr-defined]
            dragged = gradient[i] * self.origin[j] + gradient[j] * self.origin[i]
            pulled[n:] -= dragged / self.scales[n:]
        return pulled

    def l1(self, l1: np.ndarray) -> np.ndarray:
        """Return the same L1 penalty for the centred parameters; biases have none."""
        return l1 / self.scales

    @property
    def _has_biases(self) -> bool:
        return isinstance(self.model, PairwiseModel) and self.model.bias

    def _shifted(self, theta: np.ndarray, origin: np.ndarray) -> np.ndarray:
        if not self._has_biases:
            return theta
        i, j = self.model.graph.edges.T
        n = self.model.n_biases  # type: ignore[attr-defined]
        shifted, couplings = theta.copy(), theta[n:]
        shifted[:n] += np.bincount(i, couplings * origin[j], n) + np.bincount(j, couplings * origin[i], n)
        return shifted
