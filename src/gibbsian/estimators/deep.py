"""Deep machines as scikit-learn estimators: the deep belief network and the deep Boltzmann machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gibbsian.estimators.deep_base import DeepMachineEstimator
from gibbsian.estimators.layered_chunks import ChunkedMachine
from gibbsian.estimators.layered_missing import MissingCellsMixin
from gibbsian.layered.deep_mean_field import MeanField
from gibbsian.layered.deep_scaling import deep_from_data
from gibbsian.layered.deep_training import DeepLearner
from gibbsian.layered.epochs import EpochProgress, update_epoch
from gibbsian.layered.phases import FreePhase
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.scaling import ColumnScale
from gibbsian.layered.stacking import Stacking
from gibbsian.layered.start import start_deep
from gibbsian.layered.wake_sleep import WakeSleep
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.deep import DeepModel
from gibbsian.models.layers import Layer
from gibbsian.optimizers import Decay
from gibbsian.rng import RandomState

NO_MISSING_CELLS = (
    "a DeepBeliefNetwork cannot fill missing cells, because its weights upwards need complete rows: fill them with a "
    "DeepBoltzmannMachine or a RestrictedBoltzmannMachine"
)


class DeepBeliefNetwork(DeepMachineEstimator):
    """Deep belief network: restricted machines stacked, then fine-tuned together (Hinton, Osindero and Teh 2006).

    Each machine learns from the hidden units of the one below (YK15, "stacking"). The network then has a restricted
    machine at the top and layers below that are drawn given the one above. Fine-tuning by wake-sleep lets the weights
    up and down part.

    Parameters
    ----------
    n_components : sequence of int
        Units of the hidden layers, from the lowest; a number is one layer.
    learning_rate, batch_size, n_iter, verbose, random_state
        As in `RestrictedBoltzmannMachine`; `n_iter` epochs for each layer.
    fine_tune : int
        Epochs of wake-sleep over all layers afterwards; 0 for none.
    visible, hidden, free_phase, n_steps, n_chains, centred, momentum, l1, l2, schedule, temperature, deviations
        As in `RestrictedBoltzmannMachine`. The free phase is that of the stacked machines.
    carried : "samples" or "means"
        What a machine learns from: draws of the hidden units below, or their probabilities (binary units only).
    coding, binarize, held_out, dtype, checkpoint, callback
        As in `RestrictedBoltzmannMachine`.

    Attributes
    ----------
    model_ : BeliefNetwork
        The distribution, in the units of the data.
    result_ : FitResult
        Trace over the epochs of all stages, reason of the end, score of rows held out.
    coding_ : Coding, CategoryCoding or None
        How the values are written; None for real numbers.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.random((200, 2)) < 0.5, 3, axis=1).astype(int)       # two groups of three equal columns
    >>> dbn = gb.DeepBeliefNetwork((4, 3), n_iter=50, random_state=0).fit(X)
    >>> dbn.result_.reason
    'trained for 50 epochs a layer, 2 layers, then 10 epochs together'
    >>> dbn.transform(X).shape
    (200, 3)
    """

    model_: BeliefNetwork

    def __init__(
        self,
        n_components: Any = (500, 500),
        *,
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        fine_tune: int = 10,
        verbose: int = 0,
        random_state: RandomState = None,
        visible: str = "auto",
        hidden: str = "auto",
        free_phase: str | FreePhase = "pcd",
        n_steps: int | None = None,
        n_chains: int | None = None,
        centred: bool = True,
        momentum: float = 0.0,
        l1: float = 0.0,
        l2: float = 0.0,
        schedule: Decay | str = "linear",
        temperature: float = 1.0,
        deviations: Any = "residual",
        carried: str = "samples",
        coding: Any = "auto",
        binarize: float | None = None,
        held_out: float = 0.0,
        dtype: str = "float64",
        checkpoint: Any = None,
        callback: Any = None,
    ):
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.fine_tune = fine_tune
        self.verbose = verbose
        self.random_state = random_state
        self.visible = visible
        self.hidden = hidden
        self.free_phase = free_phase
        self.n_steps = n_steps
        self.n_chains = n_chains
        self.centred = centred
        self.momentum = momentum
        self.l1 = l1
        self.l2 = l2
        self.schedule = schedule
        self.temperature = temperature
        self.deviations = deviations
        self.carried = carried
        self.coding = coding
        self.binarize = binarize
        self.held_out = held_out
        self.dtype = dtype
        self.checkpoint = checkpoint
        self.callback = callback

    def _check_settings(self) -> None:
        super()._check_settings()
        self._check_count("fine_tune", 0)

    def _learner(self) -> Stacking:
        joint = WakeSleep(**self._together(self.fine_tune)) if self.fine_tune else None
        return Stacking(self._restricted_learner(self.n_iter), joint, self.carried)

    def _start_model(self, layers: Sequence[Layer], rows: LayerRows, rng: np.random.Generator) -> BeliefNetwork:
        return BeliefNetwork.zeros(layers, float(self.temperature))

    @property
    def predict_proba(self) -> Any:
        """Not to be had: AttributeError says which machines have it."""
        raise AttributeError(NO_MISSING_CELLS)

    @property
    def impute(self) -> Any:
        """Not to be had: AttributeError says which machines have it."""
        raise AttributeError(NO_MISSING_CELLS)

    def _told_learner(self) -> str:
        return f"stacking by {self._phase_name}" + (", wake-sleep" if self.fine_tune else "")

    @property
    def _greedy_epochs(self) -> int:
        return self.n_iter * len(self._sizes())

    @property
    def total_epochs(self) -> int:
        """Epochs of a fit, over all its stages."""
        return self._greedy_epochs + self.fine_tune

    @property
    def components_(self) -> np.ndarray:
        """Weights from the lowest hidden layer down to the visible one, shape (n_hidden, n_visible)."""
        model = self.model_
        return (model.pairs[0].downward_weights if model.pairs else model.top.weights).T

    @property
    def intercept_hidden_(self) -> np.ndarray:
        """Biases of the lowest hidden layer given the visible one."""
        model = self.model_
        return model.pairs[0].upward_biases if model.pairs else model.top.hidden_biases


class DeepBoltzmannMachine(MissingCellsMixin, DeepMachineEstimator, ChunkedMachine):
    """Deep Boltzmann machine: layers in a row, weights between neighbours (Salakhutdinov and Hinton 2009).

    ``P(v, h_1, .., h_L) = exp((sum_l b_l . h_l + sum_l h_(l-1) W_l h_l) / T) / Z`` with ``h_0 = v``. Learned with a
    mean-field posterior for the clamped phase and persistent chains for the free one, from a stack of restricted
    machines that learn one after the other.

    Parameters
    ----------
    n_components : sequence of int
        Units of the hidden layers, from the lowest; a number is one layer.
    learning_rate, batch_size, n_iter, verbose, random_state
        As in `RestrictedBoltzmannMachine`; `n_iter` epochs over all layers together.
    pretrain : int
        Epochs of greedy learning for each layer before; 0 starts from random weights.
    visible, hidden, free_phase, n_steps, n_chains, centred, momentum, l1, l2, schedule, temperature, deviations
        As in `RestrictedBoltzmannMachine`.
    carried : "samples" or "means"
        What a machine of the stack learns from: draws of the hidden units below, or their probabilities (binary units
        only).
    mean_field_steps : int
        Most rounds of updates of the posterior for each minibatch.
    coding, binarize, held_out, dtype, checkpoint, callback
        As in `RestrictedBoltzmannMachine`.

    Attributes
    ----------
    model_ : DeepModel
        The distribution, in the units of the data.
    result_ : FitResult
        Trace over the epochs of all stages, reason of the end, score of rows held out.
    coding_ : Coding, CategoryCoding or None
        How the values are written; None for real numbers.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.random((200, 2)) < 0.5, 3, axis=1).astype(int)       # two groups of three equal columns
    >>> dbm = gb.DeepBoltzmannMachine((4, 3), n_iter=100, random_state=0).fit(X)
    >>> print(dbm.log_likelihood(X).describe())                                # at best 2 log 1/2 = -1.39
    mean log-likelihood ... nats a row, exact (200 rows, which differ by a standard error of ...)
    """

    model_: DeepModel
    _progress: EpochProgress | None

    def __init__(
        self,
        n_components: Any = (500, 500),
        *,
        learning_rate: float = 0.1,
        batch_size: int = 10,
        n_iter: int = 10,
        pretrain: int = 10,
        verbose: int = 0,
        random_state: RandomState = None,
        visible: str = "auto",
        hidden: str = "auto",
        free_phase: str | FreePhase = "pcd",
        n_steps: int | None = None,
        n_chains: int | None = None,
        centred: bool = True,
        momentum: float = 0.0,
        l1: float = 0.0,
        l2: float = 0.0,
        schedule: Decay | str = "linear",
        temperature: float = 1.0,
        deviations: Any = "residual",
        carried: str = "samples",
        mean_field_steps: int = 5,
        coding: Any = "auto",
        binarize: float | None = None,
        held_out: float = 0.0,
        dtype: str = "float64",
        checkpoint: Any = None,
        callback: Any = None,
    ):
        self.n_components = n_components
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.n_iter = n_iter
        self.pretrain = pretrain
        self.verbose = verbose
        self.random_state = random_state
        self.visible = visible
        self.hidden = hidden
        self.free_phase = free_phase
        self.n_steps = n_steps
        self.n_chains = n_chains
        self.centred = centred
        self.momentum = momentum
        self.l1 = l1
        self.l2 = l2
        self.schedule = schedule
        self.temperature = temperature
        self.deviations = deviations
        self.carried = carried
        self.mean_field_steps = mean_field_steps
        self.coding = coding
        self.binarize = binarize
        self.held_out = held_out
        self.dtype = dtype
        self.checkpoint = checkpoint
        self.callback = callback

    def _check_settings(self) -> None:
        super()._check_settings()
        self._check_count("pretrain", 0)
        self._check_count("mean_field_steps", 1)

    def _free_phase(self) -> Any:
        return self._joint().free_phase

    def _with_new_chains(
        self, progress: EpochProgress, model: DeepModel, rows: LayerRows, rng: np.random.Generator
    ) -> EpochProgress:
        started = self._joint().start(model.replace(progress.theta), rows, rng)
        return replace(progress, phases=started._replace(offsets=progress.phases.offsets))

    def _learn(
        self, progress: EpochProgress | None, model: DeepModel, rows: LayerRows, rng: np.random.Generator
    ) -> EpochProgress:
        return update_epoch(self._joint(), progress, model, rows, rng)

    def _in_standard_units(self, model: Any, scale: ColumnScale | None) -> Any:
        return model if scale is None else deep_from_data(scale, model)

    def _joint(self) -> DeepLearner:
        return DeepLearner(
            **self._together(self.n_iter),
            free_phase=self.free_phase,
            centred=self.centred,
            mean_field=MeanField(self.mean_field_steps, tol=1e-3),
        )

    def _learner(self) -> Stacking | DeepLearner:
        joint = self._joint()
        return Stacking(self._restricted_learner(self.pretrain), joint, self.carried) if self.pretrain else joint

    def _start_model(self, layers: Sequence[Layer], rows: LayerRows, rng: np.random.Generator) -> DeepModel:
        return start_deep(layers, rows, rng, temperature=float(self.temperature), dtype=np.dtype(self.dtype))

    def _told_learner(self) -> str:
        return self._told_chunk_learner() + (", from a stack" if self.pretrain else "")

    def _told_chunk_learner(self) -> str:
        return f"mean field and {self._phase_name}"

    @property
    def _greedy_epochs(self) -> int:
        return self.pretrain * len(self._sizes())

    @property
    def total_epochs(self) -> int:
        """Epochs of a fit, over all its stages."""
        return self._greedy_epochs + self.n_iter

    @property
    def components_(self) -> np.ndarray:
        """Weights between the visible and the lowest hidden layer, shape (n_hidden, n_visible)."""
        return self.model_.weights[0].T

    @property
    def intercept_hidden_(self) -> np.ndarray:
        """Biases of the lowest hidden layer."""
        return self.model_.biases[1]
