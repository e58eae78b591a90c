"""Small restricted machines of every kind that can be enumerated without any shortcut."""

from __future__ import annotations

import numpy as np

import gibbsian as gb
from gibbsian.data import Dataset
from gibbsian.domain import CategoryCoding
from gibbsian.inference import LayerSums, exact
from gibbsian.inference.layer_sums import LayerSumAnswers
from gibbsian.models.base import Model, Units
from gibbsian.models.layers.belief_network import BeliefNetworkFamily
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import (
    BinaryUnits,
    CategoricalUnits,
    GaussianUnits,
    SpinUnits,
    codes_of,
    count_states,
    enumerate_values,
)
from gibbsian.settings import settings_of

CODINGS = {"binary": "binary", "spin": "spin", "gaussian": "real"}
DISCRETE = ("binary", "spin", "categorical")
# Kinds of the visible and of the hidden layer.
PAIRS = [(v, h) for v in (*DISCRETE, "gaussian") for h in DISCRETE] + [("binary", "gaussian")]


class Machine(Model[StackFamily]):
    """A stack with short words for what tests ask of its two lowest layers."""

    @property
    def layers(self):
        return self.family.layers

    @property
    def visible(self):
        return self.family.layers[0]

    @property
    def hidden(self):
        return self.family.layers[1]

    @property
    def weights(self):
        return self.parts.weights[0]

    @property
    def biases(self):
        return self.parts.biases

    def hidden_means(self, v):
        return self.family.means(self.parts, 1, [v, None])

    def visible_means(self, h):
        return self.family.means(self.parts, 0, [None, h])

    def draw_hidden(self, v, rng):
        return self.family.draw(self.parts, 1, [v, None], rng)

    def draw_visible(self, h, rng):
        return self.family.draw(self.parts, 0, [None, h], rng)

    def log_evidence(self, v):
        return self.family.log_evidence(self.theta, v)

    def log_weights_of_hidden(self, h):
        return self.family.log_weights_of_side(self.parts, 1, [None, h])

    def log_weights_of_values(self, *values):
        return self.family.log_weights_of_values(self.parts, values)

    def joint(self):
        return self.family.joint(self.theta)


class Network(Model[BeliefNetworkFamily]):
    """A belief network with short words for what tests ask of it."""

    @property
    def layers(self):
        return self.family.layers

    @property
    def visible(self):
        return self.family.layers[0]

    def log_evidence(self, v):
        return self.family.log_evidence(self.theta, v)


def stack(layers, biases=None, weights=None) -> Machine:
    """A stack of these layers; what is left out is zero."""
    built = StackFamily(tuple(layers)).build(biases, weights)
    return Machine(built.family, built.theta)


def restricted(visible, hidden, b=None, c=None, w=None) -> Machine:
    """A machine of two layers."""
    return stack((visible, hidden), [b, c], [w])


def network(layers, theta=None) -> Network:
    """A belief network of these layers."""
    family = BeliefNetworkFamily(tuple(layers))
    return Network(family, np.zeros(family.n_parameters) if theta is None else theta)


def network_of(machines) -> Network:
    """The belief network of machines on top of each other."""
    layers = (machines[0].visible, *(machine.hidden for machine in machines))
    return network(layers, np.concatenate([machine.theta for machine in machines]))


def layer_of(kind: str, n_units: int) -> Units:
    if kind == "gaussian":
        return GaussianUnits(n_units, tuple(0.6 + 0.2 * i for i in range(n_units)))
    if kind == "categorical":
        return CategoricalUnits([2 + i % 2 for i in range(n_units)])
    return BinaryUnits(n_units) if kind == "binary" else SpinUnits(n_units)


def random_stack(layers, rng, scale=0.8) -> Machine:
    blank = stack(layers)
    return blank.replace(rng.normal(scale=scale, size=blank.theta.size))


def random_machine(visible: str | Units, hidden: str | Units, rng, n_visible=5, n_hidden=4, scale=0.8) -> Machine:
    v = layer_of(visible, n_visible) if isinstance(visible, str) else visible
    h = layer_of(hidden, n_hidden) if isinstance(hidden, str) else hidden
    return random_stack((v, h), rng, scale)


def all_values(layer: Units) -> np.ndarray:
    return enumerate_values([layer], 0, int(count_states([layer])))[0]


def joint_law(model: Machine) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Values of both layers, their probabilities (visible by hidden) and log Z, from the log-weights alone."""
    v, h = all_values(model.visible), all_values(model.hidden)
    pairs = np.repeat(v, len(h), axis=0), np.tile(h, (len(v), 1))
    log_weights = model.family.log_weights_of_values(model.parts, pairs).reshape(len(v), len(h))
    log_partition = float(np.logaddexp.reduce(log_weights.ravel()))
    return v, h, np.exp(log_weights - log_partition), log_partition


def statistics_of(v: np.ndarray, h: np.ndarray, law: np.ndarray) -> np.ndarray:
    """E[v], E[h], E[v h^T] in the layout of theta, from a joint law."""
    return np.concatenate([law.sum(axis=1) @ v, law.sum(axis=0) @ h, (v.T @ law @ h).ravel()])


def log_partition(model: Machine) -> float:
    return exact(model).log_partition


def layer_sums(model: Machine, side: str = "auto") -> LayerSumAnswers:
    """The distribution as a table over the states of one side."""
    return LayerSums(model.family, side=side).at(model.theta)


def log_likelihood(model: Machine, codes: np.ndarray) -> np.ndarray:
    """log P(v) of each row of codes of the visible layer."""
    return model.family.log_evidence(model.theta, model.family.layers[0].encode(codes)) - log_partition(model)


def likelihood_gradient(model: Machine, codes: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Gradient of the mean log P(v) by theta: clamped less free moments."""
    v = model.visible.encode(codes)
    shares = None if weights is None else weights / weights.sum()
    return model.family.statistics_of([v, model.hidden_means(v)], shares) - layer_sums(model).moments


def rows_of(layer: Units, codes: np.ndarray, missing: np.ndarray | None = None, weights=None) -> Dataset:
    """Codes of a visible layer as data, each row by itself."""
    coding = CODINGS.get(layer.kind) or CategoryCoding.of_labels([range(size) for size in layer.variables.sizes])
    return Dataset.of_states(np.asarray(codes), coding, missing=missing, sample_weight=weights, distinct=False)


def all_codes(layer: Units) -> np.ndarray:
    """Every row of a discrete layer, in the order of `all_values`."""
    return codes_of(layer, all_values(layer))


# -- estimators -------------------------------------------------------------------------------------------------------
ON_LEARNER = set(settings_of(gb.learning.Minibatch)) - set(settings_of(gb.RestrictedBoltzmannMachine))


def by_minibatches(settings: dict, **stages: int) -> dict:
    """Settings of an estimator, with those that belong to its learner put there: a stack where stages are given."""
    inner = {name: settings.pop(name) for name in list(settings) if name in ON_LEARNER}
    carried = {name: settings.pop(name) for name in list(settings) if name == "carried"}
    if not inner and not stages and not carried:
        return settings
    inner |= {name: settings.pop(name) for name in ("l1", "l2") if name in settings}
    epochs = settings.pop("max_iter", 10)
    together = gb.learning.Minibatch(max_iter=epochs, **inner)
    if not stages and not carried:
        return {**settings, "learner": together}
    if stages.get("pretrain") == 0:
        return {**settings, "learner": together}
    alone = gb.learning.Minibatch(max_iter=stages.get("pretrain", epochs), **inner)
    last = None if stages.get("together") == 0 else together
    return {**settings, "learner": gb.learning.Stacking(alone=alone, together=last, **carried)}


def rbm(*sizes, **settings) -> gb.RestrictedBoltzmannMachine:
    """A restricted machine by settings of its own and of its learner."""
    return gb.RestrictedBoltzmannMachine(*sizes, **by_minibatches(settings))


def dbn(*sizes, **settings) -> gb.DeepBeliefNetwork:
    """A belief network, `max_iter` epochs for each layer."""
    return gb.DeepBeliefNetwork(*sizes, **by_minibatches(settings, together=0))


def dbm(*sizes, pretrain=10, **settings) -> gb.DeepBoltzmannMachine:
    """A deep Boltzmann machine, `pretrain` epochs for each layer and `max_iter` together."""
    return gb.DeepBoltzmannMachine(*sizes, **by_minibatches(settings, pretrain=pretrain))


# -- learning ---------------------------------------------------------------------------------------------------------
def data_rows(codes: np.ndarray, weights=None, missing=None) -> Dataset:
    """Rows as data, each by itself and as it is."""
    return Dataset.of_states(np.asarray(codes), "real", sample_weight=weights, missing=missing, distinct=False)


def start_model(visible: Units, hidden: Units, rows: Dataset, rng, scale=None) -> Machine:
    """Where a restricted machine starts to learn."""
    return gb.learning.Minibatch().start(restricted(visible, hidden), rows, rng, scale)


def trained(learner, start, rows: Dataset, rng, callbacks=(), held_out=None):
    """The result of a fit, with its history."""
    callbacks = [*learner.monitors(rows, held_out), *callbacks]
    return gb.learning.run(learner, start, rows, rng, callbacks, max_iter=learner.most_steps(start, 1))


def bits(n_rows: int = 40, n_columns: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (n_rows, n_columns))


def small_machine(name: str, **settings):
    """Build a restricted or deep machine that is fitted in no time."""
    kind, sizes = {"rbm": (rbm, 3), "dbn": (dbn, (3, 2)), "dbm": (dbm, (3, 2))}[name]
    return kind(sizes, **{"max_iter": 2, "random_state": 0, **settings})
