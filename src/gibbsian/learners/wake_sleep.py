"""Fine-tuning all layers of a deep belief network: the up-down form of wake-sleep (Hinton, Osindero and Teh 2006).

*Wake*: rows go up by the recognition weights, layer by layer drawn, and the weights down learn to give each layer from
the one above: the gradient of the variational bound on log P(v). The machine at the top learns as restricted machines
do, the drawn layer below it for data. *Sleep*: chains at the top go down by the generative weights to fantasies, and
the recognition weights learn to give the layers that made them. The weights up and down, tied in a fresh stack, part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.errors import MissingValuesError
from gibbsian.learners.filling import EpochRows
from gibbsian.learners.layer_gradient import centred_products
from gibbsian.learners.lessons import Lesson, Lessons
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.layers import Layer, log_probability
from gibbsian.models.restricted import RestrictedModel

if TYPE_CHECKING:
    from gibbsian.learners.minibatch import Minibatch

# Chains at the top where their number is left open.
_N_CHAINS = 100


class WakeSleepLessons(Lessons):
    """Rows drawn upwards and fantasies drawn downwards teach the directed layers and the machine at the top.

    The chains at the top go on from minibatch to minibatch. (The authors start them at the data every time; chains that
    go on dream what the network has come to believe, as PCD does for CD.)
    """

    def __init__(self, learner: Minibatch, model: BeliefNetwork, rows: EpochRows):
        if rows.data.missing is not None:
            raise MissingValuesError(
                "wake-sleep needs rows without missing cells",
                "learn by `learner='stacking'`, whose lowest machine fills them, or fill them first",
            )
        self.rows = rows
        self.n_chains, self.n_steps = learner.n_chains or _N_CHAINS, learner.n_steps or 1

    def start(self, model: BeliefNetwork, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Start the chains: values of the second highest layer."""
        return self.restarted(model, np.empty(0), rng), np.empty(0, self.rows.data.states.dtype)

    def restarted(self, model: BeliefNetwork, memory: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return chains at what the recognition weights make of rows."""
        return model.draw_up(self._values(model, rng.integers(self.rows.n_rows, size=self.n_chains)), rng)[-1]

    def _values(self, model: BeliefNetwork, places: np.ndarray) -> np.ndarray:
        return self.rows.values(model.visible, places, np.empty(0), np.dtype(np.float64))

    def teach(
        self, model: BeliefNetwork, memory: np.ndarray, filled: np.ndarray, places: np.ndarray, rng: np.random.Generator
    ) -> Lesson:
        """Draw the layers upwards from some rows and downwards from the chains."""
        awake, chains = model.draw_up(self._values(model, places), rng), memory
        for _ in range(self.n_steps):
            chains = model.top.draw_visible(model.top.draw_hidden(chains, rng), rng)
        gradient = up_down_gradient(model, awake, model.draw_down(chains, rng))
        return Lesson(gradient.astype(model.theta.dtype, copy=False), chains, _misfit(model, awake))


def up_down_gradient(
    network: BeliefNetwork,
    awake: Sequence[np.ndarray],
    asleep: Sequence[np.ndarray],
    shares: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Return the direction of one step, in the layout of theta.

    Weights down and up are those of regressions of one layer on another, with the regressors about their means; the
    top machine's are clamped less free moments, likewise about the clamped means.

    Parameters
    ----------
    network : BeliefNetwork
        The network.
    awake : sequence of ndarray
        Values of the layers from the visible one to the second highest, drawn upwards from rows.
    asleep : sequence of ndarray
        The same layers drawn downwards from the chains at the top.
    shares : pair of ndarray, optional
        Weights of the rows of each, which sum to one; equal by default.
    """
    wake_shares, sleep_shares = shares if shares is not None else (_equal(awake[0]), _equal(asleep[0]))
    parts = []
    for place in range(len(network.pairs)):
        lower, upper = network.tempered[place], network.tempered[place + 1]
        down = _regression(lower, network.downward_fields(place, awake[place + 1]), awake, place, 1, wake_shares)
        up = _regression(upper, network.upward_fields(place, asleep[place]), asleep, place + 1, -1, sleep_shares)
        parts += [down[0], up[0], down[1].ravel(), up[1].T.ravel()]
    parts.append(_top_gradient(network.top, awake[-1], asleep[-1], wake_shares, sleep_shares))
    return np.concatenate(parts) / network.temperature


def _regression(
    layer: Layer, fields: np.ndarray, values: Sequence[np.ndarray], place: int, way: int, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient of the mean ``log P(values[place] | values[place + way])`` by biases and weights, regressors centred."""
    given = values[place + way]
    residual = (values[place] - layer.means(fields)) * shares[:, None].astype(fields.dtype)
    centre = shares.astype(fields.dtype) @ given
    weights = residual.T @ (given - centre)
    return residual.sum(axis=0) - weights @ centre, weights


def _top_gradient(
    top: RestrictedModel, data: np.ndarray, chains: np.ndarray, data_shares: np.ndarray, chain_shares: np.ndarray
) -> np.ndarray:
    """Clamped less free moments of the machine at the top, about the clamped means."""
    h_data, h_chains = top.hidden_means(data), top.hidden_means(chains)
    dtype = h_data.dtype
    data_shares, chain_shares = data_shares.astype(dtype), chain_shares.astype(dtype)
    mu, nu = data_shares @ data, data_shares @ h_data
    dv, dh = mu - chain_shares @ chains, nu - chain_shares @ h_chains
    products = (data * data_shares[:, None]).T @ h_data - (chains * chain_shares[:, None]).T @ h_chains
    weights = centred_products(products, dv, dh, mu, nu)
    return np.concatenate([dv - weights @ nu, dh - mu @ weights, weights.ravel()])


def _equal(values: np.ndarray) -> np.ndarray:
    return np.full(len(values), 1.0 / len(values))


def _misfit(network: BeliefNetwork, awake: Sequence[np.ndarray]) -> float:
    """Mean of ``-log P(v | h)`` of drawn rows."""
    if network.pairs:
        fields = network.downward_fields(0, awake[1])
    else:
        fields = network.top.visible_fields(network.top.hidden_means(awake[0]))
    return -float(log_probability(network.tempered[0], fields, awake[0]).mean())
