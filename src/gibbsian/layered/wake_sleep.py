"""Fine-tuning all layers of a deep belief network: the up-down form of wake-sleep (Hinton, Osindero and Teh 2006).

*Wake*: rows go up by the recognition weights, layer by layer drawn, and the weights down learn to give each layer from
the one above: the gradient of the variational bound on log P(v). The machine at the top learns as restricted machines
do, the drawn layer below it for data. *Sleep*: chains at the top go down by the generative weights to fantasies, and
the recognition weights learn to give the layers that made them. The weights up and down, tied in a fresh stack, part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gibbsian.errors import MissingValuesError
from gibbsian.layered.epochs import Direction, EpochLearner
from gibbsian.layered.rows import LayerRows
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.layers import Layer
from gibbsian.models.restricted import RestrictedModel


@dataclass(frozen=True)
class WakeSleep(EpochLearner):
    """Learn the directed layers and the machine at the top together; one step is one epoch.

    Parameters
    ----------
    n_epochs, learning_rate, schedule, batch_size, momentum, l1, l2
        As for `RestrictedLearner`.
    n_chains, n_steps : int
        Chains at the top, which go on from minibatch to minibatch, and their steps at each. (The authors start them at
        the data every time; chains that go on dream what the network has come to believe, as PCD does for CD.)

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.epochs import train_epochs
    >>> from gibbsian.layered.rows import LayerRows
    >>> from gibbsian.layered.wake_sleep import WakeSleep
    >>> from gibbsian.models.belief_network import BeliefNetwork
    >>> from gibbsian.models.layers import BinaryLayer
    >>> rng = np.random.default_rng(0)
    >>> rows = LayerRows((rng.random((400, 2)) < [0.8, 0.1]).astype(np.int8))
    >>> network = BeliefNetwork.zeros([BinaryLayer(2), BinaryLayer(2), BinaryLayer(1)])
    >>> learner = WakeSleep(n_epochs=20, learning_rate=0.3, batch_size=40)
    >>> network = train_epochs(learner, network, rows, rng).model
    >>> drawn = network.draw_down(rng.integers(0, 2, (2000, 2)), rng)[0].mean(axis=0)
    >>> bool(drawn[0] > 0.7 > 0.2 > drawn[1])
    True
    """

    learning_rate: float = 0.01

    def start(self, model: BeliefNetwork, rows: LayerRows, rng: np.random.Generator) -> np.ndarray:
        """Start the chains at what the recognition weights make of rows: values of the second highest layer."""
        if rows.missing is not None and rows.missing.any():
            raise MissingValuesError("wake-sleep needs rows without missing cells", "fill them first")
        some = rows.states[rng.integers(rows.n_rows, size=self.n_chains)]
        return model.draw_up(model.visible.encode(some), rng)[-1]

    def direction(
        self, model: BeliefNetwork, phases: np.ndarray, batch: LayerRows, rng: np.random.Generator
    ) -> Direction:
        """Draw the layers upwards from the rows and downwards from the chains."""
        awake = model.draw_up(model.visible.encode(batch.states), rng)
        chains = phases
        for _ in range(self.n_steps):
            chains = model.top.draw_visible(model.top.draw_hidden(chains, rng), rng)
        asleep = model.draw_down(chains, rng)
        return Direction(up_down_gradient(model, awake, asleep), chains, _misfit(model, awake))


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

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.wake_sleep import up_down_gradient
    >>> from gibbsian.models.belief_network import BeliefNetwork
    >>> from gibbsian.models.layers import BinaryLayer
    >>> network = BeliefNetwork.zeros([BinaryLayer(1), BinaryLayer(1), BinaryLayer(1)])
    >>> rows = [np.array([[1.0], [1.0]]), np.array([[0.0], [1.0]])]
    >>> up_down_gradient(network, rows, rows)[:1]                   # the visible unit is 1, the network says 1/2
    array([0.5])
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
    v_centre, h_centre = data_shares @ data, data_shares @ h_data
    weights = ((data - v_centre) * data_shares[:, None]).T @ (h_data - h_centre)
    weights -= ((chains - v_centre) * chain_shares[:, None]).T @ (h_chains - h_centre)
    visible = v_centre - chain_shares @ chains - weights @ h_centre
    hidden = h_centre - chain_shares @ h_chains - v_centre @ weights
    return np.concatenate([visible, hidden, weights.ravel()])


def _equal(values: np.ndarray) -> np.ndarray:
    return np.full(len(values), 1.0 / len(values))


def _misfit(network: BeliefNetwork, awake: Sequence[np.ndarray]) -> float:
    """Mean of ``-log P(v | h)`` of drawn rows."""
    if network.pairs:
        fields = network.downward_fields(0, awake[1])
    else:
        fields = network.top.visible_fields(network.top.hidden_means(awake[0]))
    layer, v = network.tempered[0], awake[0]
    log_probability = np.einsum("mi,mi->m", fields, v) + layer.log_measure(v) - layer.log_normaliser(fields)
    return -float(log_probability.mean())


__all__ = ["WakeSleep", "up_down_gradient"]
