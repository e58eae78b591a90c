"""Deep machines as scikit-learn estimators: the deep belief network and the deep Boltzmann machine."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.layered import LayeredMachine
from gibbsian.learning import HeldOut, Minibatch
from gibbsian.models.base import Model, Units
from gibbsian.models.layers.belief_network import BeliefNetworkFamily
from gibbsian.models.layers.stack import StackFamily
from gibbsian.settings import LARGEST_WHOLE, declared, free, positional
from gibbsian.storage import StoredModel


@declared
class DeepMachine(LayeredMachine):
    """What both deep machines share."""

    n_components: Any = positional(
        kw_only=False,
        default=free(
            (500, 500),
            "Units of the hidden layers, from the lowest; a number is one layer.",
            doc="sequence of int, or int",
        ),
    )
    learner: Any = free(
        "auto",
        "How to learn: 'stacking' (the layers one after the other, those of a Boltzmann machine then together, "
        "`max_iter` epochs each), which 'auto' is; of a Boltzmann machine 'minibatch' (all together from random "
        "weights) too; or a learner object such as Stacking.",
        doc="str or Learner",
    )

    learners: ClassVar[tuple[str, ...]] = ("stacking",)
    auto_learner = "stacking"

    scores_are_bounds: ClassVar[bool] = True

    def _sizes(self) -> tuple[int, ...]:
        given = (self.n_components,) if isinstance(self.n_components, Integral) else self.n_components
        # sets and mappings have no lowest layer
        sizes = tuple(given) if isinstance(given, Sequence) or getattr(given, "ndim", 0) == 1 else ()
        if not sizes or not all(
            isinstance(n, Integral) and not isinstance(n, bool) and 1 <= int(n) <= LARGEST_WHOLE for n in sizes
        ):
            reason = "must be the numbers of units of the hidden layers from the lowest, such as (64, 32)"
            raise ArgumentError(reason, argument="n_components", value=self.n_components)
        return tuple(int(n) for n in sizes)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Rebuild a fitted machine from what a file holds; a single size that was given as a number stays one."""
        machine = super().from_stored(stored)
        machine.n_components = stored.settings.get("n_components", machine.n_components)
        return machine

    @classmethod
    def _structure_of(cls, model: Any, coding: Any) -> dict[str, object]:
        return {"n_components": tuple(layer.n_units for layer in model.family.layers[1:])}

    def score_or_pseudo_score(self, X: Any) -> HeldOut:
        """Return the mean of `score_samples`, and say what it is: a lower bound."""
        data = self._read(X)
        return HeldOut(self.score(data), "lower bound on the log-likelihood", data.n_rows)

    def transform_layers(self, X: Any) -> list[np.ndarray]:
        """Return what `transform` gives for every hidden layer, from the lowest."""
        data = self._read(X)
        return [part[data.row_of] for part in self._answers.layer_probabilities(data, self._rng())]


@ESTIMATORS.register(
    "dbn", about="restricted machines stacked, each learned from the units of the one below", epochs=True, layers=True
)
@declared
class DeepBeliefNetwork(DeepMachine):
    """Deep belief network: restricted machines stacked, one after the other (Hinton, Osindero and Teh 2006).

    Each machine learns from the hidden units of the one below (YK15, "stacking"). The network then has a restricted
    machine at the top and layers below that are drawn given the one above. Missing cells are drawn anew by the lowest
    machine whenever their row is visited. All layers together learn in a `DeepBoltzmannMachine`.

    Attributes
    ----------
    model_ : Model of a BeliefNetworkFamily
        The distribution, in the units of the data.
    history_, result_, coding_
        As in `RestrictedBoltzmannMachine`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.random((200, 2)) < 0.5, 3, axis=1).astype(int)       # two groups of three equal columns
    >>> dbn = gb.DeepBeliefNetwork((4, 3), max_iter=30, random_state=0).fit(X)
    >>> dbn.result_.reason
    'trained for 30 epochs a layer, 2 layers'
    >>> dbn.transform(X).shape
    (200, 3)
    """

    def _model(self, layers: list[Units]) -> Model[BeliefNetworkFamily]:
        family = BeliefNetworkFamily(tuple(layers))
        return Model(family, np.zeros(family.n_parameters))

    def _learns_by_chunks(self) -> bool:
        reason = "needs all rows at once, because each layer learns from what the one below makes of them"
        raise ArgumentError(reason, "call `fit`, or learn a `DeepBoltzmannMachine`")


@ESTIMATORS.register(
    "dbm", about="layers in a row with weights between neighbours, learned together", epochs=True, layers=True
)
@declared
class DeepBoltzmannMachine(DeepMachine):
    """Deep Boltzmann machine: layers in a row, weights between neighbours (Salakhutdinov and Hinton 2009).

    ``P(v, h_1, .., h_L) = exp((sum_l b_l . h_l + sum_l h_(l-1) W_l h_l) / T) / Z`` with ``h_0 = v``. Learned with a
    mean-field posterior for the clamped phase and persistent chains for the free one, from a stack of restricted
    machines that learn one after the other.

    Attributes
    ----------
    model_ : Model of a StackFamily
        The distribution, in the units of the data.
    history_, result_, coding_
        As in `RestrictedBoltzmannMachine`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.random((200, 2)) < 0.5, 3, axis=1).astype(int)       # two groups of three equal columns
    >>> dbm = gb.DeepBoltzmannMachine((4, 3), max_iter=50, random_state=0).fit(X)
    >>> bool(dbm.score(X) > -4.2)                                              # independent: 6 log 1/2 = -4.16
    True
    """

    learners = ("stacking", "minibatch", "mle", "em", "mple", "pcd")

    def _model(self, layers: list[Units]) -> Model[StackFamily]:
        return StackFamily(tuple(layers)).build()

    def _start(self, data: Dataset, rng: np.random.Generator) -> Model[StackFamily]:
        # random weights also before a stack, so that what follows draws the same numbers with and without it
        if self.start is None:
            return Minibatch().start(self._zeros(data), data, rng)
        return super()._start(data, rng)
