"""Learning by minibatches: epochs of shuffled rows, a rate that falls, momentum and penalties, for models of layers.

The gradient of a minibatch is in `gibbsian.learning.layer_phases`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, Slice, States, Tensor
from gibbsian.backends.device import layer_kernels, left_to_cpu, on_device, twin
from gibbsian.data import Dataset
from gibbsian.data.minibatches import Cuts
from gibbsian.errors import ArgumentError
from gibbsian.expectations.layer_chains import LayerExpectation, as_negative_phase
from gibbsian.learning.base import LEARNERS, Fit, Learner, Penalties
from gibbsian.learning.callbacks import Callback, Monitor
from gibbsian.learning.curves import HeldOutCurves, RowScore, curve_of
from gibbsian.learning.imputation import BatchRows
from gibbsian.learning.layer_fits import InStandardUnits, as_layers, initial_layers
from gibbsian.learning.layer_phases import LayerPhases, PhaseState
from gibbsian.learning.objectives.priors import Prior, SmoothPenalty, bind_prior, check_prior
from gibbsian.learning.optimizers import Converged, Decay, Failed, Outcome, Running, StepInfo
from gibbsian.learning.recipe import LOG_PRIOR
from gibbsian.models.base import ExponentialFamily, Family, Layered, Model
from gibbsian.models.layers.stack import StackFamily
from gibbsian.resources import require_memory
from gibbsian.rng import Key
from gibbsian.settings import check, choice, declared, flag, free, number, whole

# Log-odds beyond which parameters have run away, in the units of learning: no table has as many rows.
LARGEST_PARAMETER = 1e6
# Arrays of the size of the weights, and of the rows that are treated together.
COPIES_OF_WEIGHTS, COPIES_OF_ROWS = 9, 6


class EpochPlan(NamedTuple):
    """What an epoch does, decided before its first step."""

    order: Integers  # places of rows, one minibatch after the other
    ends: Integers  # where minibatches begin, and the end
    rates: Floats  # of each minibatch
    parts: list[tuple[Slice, float, float]]  # of theta that are penalised alike, with L1 and L2
    momentum: float

    def move(self, theta: Tensor, velocity: Tensor, gradient: Tensor, rate: float) -> None:
        """Make a step in place: momentum for all, and the penalties of each part; arrays are of either library."""
        step = layer_kernels(theta).momentum_step
        for part, l1, l2 in self.parts:
            step(theta[part], velocity[part], gradient[part], rate, self.momentum, l1, l2)


@LEARNERS.register("minibatch", models="layers", epochs=True)
@declared(frozen=True)
class Minibatch(Learner):
    """Follow the gradient of the log-likelihood on shuffled minibatches; a step of the fit is an epoch.

    For models of layers. Rows with whole numbers as weights occur that many times in an epoch. Columns of real numbers
    are learned in standard units. The defaults are those of scikit-learn's ``BernoulliRBM`` and are cautious:
    ``learning_rate=0.2`` in minibatches of a hundredth of the rows, 10 to 100, learns more of many rows of 0 and 1 in
    the same time (MNIST, 16 hidden units, 4.5 s: -141 instead of -148 nats a held-out row), but is no better for few
    rows, and too much for Gaussian units and deep machines of -1 and +1. Machines of a few units bear up to 1.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> X = np.repeat(np.random.default_rng(0).random((1000, 1)) < 0.5, 4, axis=1).astype(int)     # all on or all off
    >>> learner = gb.learning.Minibatch(max_iter=30, learning_rate=1.0, batch_size=100, negative_phase="cd")
    >>> rbm = gb.RestrictedBoltzmannMachine(2, learner=learner, random_state=0).fit(X)
    >>> rbm.result_.reason
    'trained for 30 epochs'
    """

    requires = (Layered, ExponentialFamily)

    max_iter: int = whole(10, "Epochs: how often all rows are shown.", least=1)
    learning_rate: float = number(0.1, "Rate of the first step.", above=0)
    batch_size: int = whole(10, "About how many rows a minibatch has.", least=1)
    schedule: Decay | str = free(
        "linear",
        "How the rate falls: evenly to zero at the end of the last epoch, not at all, or as a Decay counted in "
        "minibatches says.",
        doc="'linear', 'constant' or Decay",
    )
    momentum: float = number(0.0, "Share of the last step that is made again.", least=0, below=1)
    negative_phase: LayerExpectation[object] | str = free(
        "pcd",
        "How the moments under the model are taken: by persistent chains ('pcd'), chains from the minibatch ('cd'), "
        "spatial Monte Carlo integration over persistent chains ('smci'), parallel tempering ('tempering'), or an "
        "expectation.",
        doc="str or LayerExpectation",
    )
    n_steps: int | None = whole(None, "Steps of the chains for each minibatch.", least=1, optional=True)
    n_chains: int | None = whole(
        None,
        "Number of chains; by default as many as rows in a minibatch, 100 for real numbers.",
        least=1,
        optional=True,
    )
    centred: bool = flag(
        True, "Use the centred gradient, which does not depend on which value is called 0 and which 1."
    )
    l1: float = number(0.0, "Penalty ``l1 * sum |W|`` on the weights.", least=0)
    l2: float = number(0.0, "Penalty l2 / 2 * sum W^2 on the weights.", least=0)
    log_prior: Prior | None = free(None, LOG_PRIOR, doc="str, callable or None")
    mean_field_steps: int = whole(
        5, "Most rounds of updates of the hidden layers of a deep Boltzmann machine for each minibatch.", least=1
    )
    curves: bool = flag(
        False,
        "Follow the pseudolikelihood of up to 1,000 rows in the history after every epoch, for real numbers the "
        "error of their reconstruction. Deep machines always follow log P(v | h).",
    )
    dtype: str = choice("float64", "Precision of parameters and chains.", "float64", "float32")

    def __post_init__(self) -> None:
        check(self)
        if not isinstance(self.schedule, Decay) and self.schedule not in ("linear", "constant"):
            raise ArgumentError("must be 'linear', 'constant' or a Decay", argument="schedule", value=self.schedule)
        check_prior(self.log_prior)
        as_negative_phase(self.negative_phase, n_steps=self.n_steps, n_chains=self.n_chains)

    @property
    def penalties(self) -> Penalties:
        """The penalties of the weights, and the prior."""
        return Penalties(self.l1, self.l2, self.log_prior)

    def phase(self, family: StackFamily) -> LayerExpectation[object]:
        """Return the negative phase of a family; chains that go by name are as many as rows in a minibatch.

        Moments of real numbers are noisy: few chains would lose what the rows of a minibatch teach.
        """
        phase = as_negative_phase(self.negative_phase, n_steps=self.n_steps, n_chains=self.n_chains)
        by_name = isinstance(self.negative_phase, str) and self.negative_phase != "cd" and self.n_chains is None
        if by_name and not family.layers[0].variables.real:
            return as_negative_phase(self.negative_phase, n_steps=self.n_steps, n_chains=self.batch_size)
        return phase

    def rate(self, steps: int, n_batches: int) -> float:
        """Return the rate after so many minibatches, of which an epoch has `n_batches`."""
        if isinstance(self.schedule, Decay):
            return self.learning_rate * self.schedule(steps)
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * max(0.0, 1.0 - steps / (n_batches * self.max_iter))

    def bind(self, model: Model[Family], data: Dataset) -> Fit[object]:
        """Bind to a machine of layers and rows, which may be on a cluster."""
        from gibbsian.learning.local_sgd import LocalSGD

        stack, rows = as_layers(model, data)
        bind = cast(
            "Callable[[Model[Family], Dataset], Fit[object]]", partial(LocalSGD if data.on_cluster else EpochFit, self)
        )
        if stack.family.layers[0].variables.real:
            return cast("Fit[object]", InStandardUnits(bind, model, rows))
        return bind(model, rows)

    # -- what estimators ask ------------------------------------------------------------------------------------------
    def start(
        self, model: Model[Family], data: Dataset, rng: np.random.Generator, scale: float | None = None
    ) -> Model[Family]:
        """Return where learning begins."""
        return initial_layers(model, data, rng, scale)

    def by_chunks(self, batch_size: int) -> Minibatch:
        """Return the learner for chunks of rows that go on arriving: there is no last one for the rate to fall to."""
        return replace(self, schedule="constant") if self.schedule == "linear" else self

    def most_steps(self, model: Model[Family], max_iter: int) -> int:
        """Return the number of epochs."""
        return self.max_iter

    def at_most(self, epochs: int) -> Minibatch:
        """Return the learner with the smaller number of epochs; its rate falls to zero at the end of the last."""
        return replace(self, max_iter=min(self.max_iter, epochs))

    def monitors(self, data: Dataset, held_out: Dataset | None) -> list[Callback]:
        """Return what follows rows held out."""
        return [] if held_out is None else [Monitor(HeldOutCurves(data, held_out))]


class EpochState(NamedTuple):
    """All that the next epoch needs besides the rows.

    Parameters
    ----------
    theta, velocity : ndarray
        Parameters, and their last step for the momentum.
    phases : PhaseState
        What the gradient remembers from one minibatch to the next: chains, offsets.
    imputed : ndarray
        The missing cells, as they are imputed now.
    key : Key
        Of all epochs.
    epoch, steps : int
        Epochs and minibatches so far.
    n_rows : float
        Weight of all rows so far, against which a prior counts once.
    """

    theta: Floats
    velocity: Floats
    phases: PhaseState
    imputed: States
    key: Key
    epoch: int
    steps: int
    n_rows: float


class EpochFit(Fit[EpochState]):
    """Minibatches bound to a machine and rows in memory: a step is an epoch."""

    def __init__(self, learner: Minibatch, model: Model[Family], data: Dataset):
        stack, data = as_layers(model, data)
        self.learner, self.given = learner, model
        self.family, self.theta = stack.family, stack.theta.astype(learner.dtype)
        self.rows = BatchRows(data)
        self.cuts = Cuts(self.rows.data.n_draws, learner.batch_size)
        phase = learner.phase(self.family)
        self.gradient = LayerPhases(self.family, phase, learner.centred, learner.mean_field_steps)
        self._require_memory(phase)
        self.curve, self.sign = curve_of(self.family)
        self.score = RowScore(self.rows, self.family) if learner.curves and not self.gradient.is_deep else None
        self.prior, self.corners = bind_prior(learner.log_prior, self.family.penalised)
        self.stays = self._stays()
        self._orders: dict[bytes, Integers] = {}  # of epochs to come, drawn while a device works

    def init(self, key: Key, theta: Floats | None = None) -> tuple[EpochState, StepInfo]:
        """Start the chains and impute missing cells."""
        start = self.theta if theta is None else theta.astype(self.theta.dtype)
        rng, data = key.fold("start").generator(), self.rows.data
        phases = self.gradient.init(Model(self.family, start), data, rng)
        imputed = self.impute(start, rng)
        state = EpochState(start, np.zeros_like(start), phases, imputed, key, 0, 0, float(data.total_weight))
        return state, self._info(state, np.nan)

    def impute(self, theta: Floats, rng: np.random.Generator, n_sweeps: int = 0) -> States:
        """Draw missing cells; deep machines sum over them instead."""
        if self.gradient.is_deep:
            return np.empty(0, np.int8)
        return self.rows.start(self.family, self.family.split(theta), rng, n_sweeps)

    def carry(self, state: EpochState) -> EpochState:
        """Continue the chains with other rows, unless there are others now; missing cells are imputed anew."""
        begun, _ = self.init(state.key.fold("carried", state.epoch), state.theta)
        same = _shapes(begun.phases.free) == _shapes(state.phases.free)
        phases = state.phases if same else state.phases._replace(free=begun.phases.free)
        return state._replace(phases=phases, imputed=begun.imputed, n_rows=state.n_rows + begun.n_rows)

    def model(self, state: EpochState) -> Model[Family]:
        """Return the model; parameters that have run away are refused elsewhere."""
        return self.given.replace(np.nan_to_num(state.theta))

    def step(self, state: EpochState) -> tuple[EpochState, StepInfo]:
        """Go through the rows once, in minibatches."""
        plan, there = self._plan(state), None if self.stays else twin("layer_programs")
        with on_device("cpu") if self.stays else nullcontext():
            if there is None:
                theta, velocity, phases, imputed, misfit = self._epoch(state, plan)
            else:
                theta, velocity, phases, imputed, misfit = there.epoch(self, state, plan)
            after = state._replace(
                theta=theta,
                velocity=velocity,
                phases=phases,
                imputed=imputed,
                epoch=state.epoch + 1,
                steps=state.steps + len(plan.rates),
            )
            moved = float(plan.rates.sum()) / (1.0 - self.learner.momentum)
            change = float(np.abs(theta - state.theta).max()) / moved if moved else 0.0
            gradient_norm = change if np.abs(theta).max() < LARGEST_PARAMETER else np.inf
            return after, self._info(after, misfit)._replace(
                gradient_norm=gradient_norm,
                step_size=float(plan.rates[-1]),
                evaluations=after.steps,
                outcome=epoch_outcome(self.learner, after.epoch, after.steps, gradient_norm),
            )

    def _epoch(self, state: EpochState, plan: EpochPlan) -> tuple[Floats, Floats, PhaseState, States, float]:
        """Return theta, velocity, phases, imputed cells and the mean misfit after the steps of an epoch."""
        rng = state.key.fold("epoch", state.epoch).generator()
        theta, velocity, imputed = state.theta.copy(), state.velocity.copy(), state.imputed.copy()
        # the parts share the memory of theta, which the steps change in place
        parts, phases, misfit, missing = self.family.split(theta), state.phases, 0.0, None
        prior = SmoothPenalty(0.0, self.prior, state.n_rows)
        for k, rate in enumerate(plan.rates.tolist()):
            places = plan.order[plan.ends[k] : plan.ends[k + 1]]
            if self.gradient.is_deep:
                values, missing = self.rows.with_missing(self.family.layers[0], places, theta.dtype)
            else:
                values = self.rows.impute(self.family, parts, places, imputed, rng)
            gradient, phases, found = self.gradient(parts, phases, values, rng, missing)
            if self.prior is not None:
                gradient = gradient - prior(theta)[1].astype(theta.dtype)
            plan.move(theta, velocity, gradient, rate)
            misfit += 0.0 if found is None else float(found) / len(plan.rates)
        return theta, velocity, phases, imputed, misfit

    def _plan(self, state: EpochState) -> EpochPlan:
        """Decide what an epoch does before its first step."""
        n_batches, learner, family = len(self.cuts), self.learner, self.family
        rates = [learner.rate(steps, n_batches) for steps in range(state.steps, state.steps + n_batches)]
        ends = [0, *(np.flatnonzero(np.diff(family.penalised)) + 1).tolist(), family.n_parameters]
        parts: list[tuple[Slice, float, float]] = []
        for start, stop in pairwise(ends):  # biases, then weights
            penalised = float(family.penalised[start])
            l1 = learner.l1 * penalised + float(self.corners[start]) / state.n_rows
            parts.append((slice(start, stop), l1, learner.l2 * penalised))
        return EpochPlan(self.order(state.key, state.epoch), self.cuts.ends, np.array(rates), parts, learner.momentum)

    def order(self, key: Key, epoch: int) -> Integers:
        """Return the places of the rows of an epoch, one minibatch after the other."""
        own = key.fold("order", epoch)
        known = self._orders.pop(own.words.tobytes(), None)
        if known is not None:
            return known
        rng = own.generator()
        return rng.permutation(self.rows.data.draws(rng))

    def look_ahead(self, key: Key, epoch: int) -> None:
        """Shuffle the rows of an epoch before it begins."""
        self._orders[key.fold("order", epoch).words.tobytes()] = self.order(key, epoch)

    def _info(self, state: EpochState, misfit: float) -> StepInfo:
        """Return what is measured: log P(v | h) of deep machines as they learn, else the curve that was asked for."""
        if self.score is not None:
            score = self.score(self.family.split(state.theta), state.imputed)
        elif self.gradient.is_deep:
            score = -misfit
        else:
            return StepInfo()
        return StepInfo(-score, metrics={self.curve: self.sign * score})

    def _stays(self) -> bool:
        """Say that a fit stays on the CPU, where a device lacks what it asks for."""
        if twin("layer_programs") is None:
            return False
        data, deep = self.rows.data, self.gradient.is_deep
        lacks = {
            "has only the negative phases 'cd', 'pcd' and 'tempering'": not self.gradient.free.capturable,
            "cannot ask for the slope of a `log_prior`": self.learner.log_prior is not None,
            "needs complete rows for a deep machine": deep and data.missing is not None,
            "cannot fill the missing cells of weighted rows": data.missing is not None and data.row_weights is not None,
        }
        reason = next((reason for reason, lacking in lacks.items() if lacking), None)
        if reason:
            left_to_cpu(reason)
        return reason is not None

    def _require_memory(self, phase: LayerExpectation[object]) -> None:
        """Refuse a fit that would not fit the memory, before it takes any."""
        batch_size, widths = self.learner.batch_size, [layer.width for layer in self.family.layers]
        treated = phase.n_samples(batch_size) + batch_size
        require_memory(
            8.0 * (COPIES_OF_WEIGHTS * self.theta.size + COPIES_OF_ROWS * treated * float(sum(widths))),
            f"fitting layers of {', '.join(f'{width:,}' for width in widths)} columns",
            "ask for fewer hidden units, or fewer chains (`n_chains`)",
        )


def epoch_outcome(learner: Minibatch, epoch: int, steps: int, gradient_norm: float) -> Outcome:
    """Return whether a fit has had all its epochs, or has run away."""
    if not np.isfinite(gradient_norm):
        reason = f"the parameters have run to infinity in {steps} minibatches"
        return Failed(reason, f"lower `learning_rate={learner.learning_rate:g}`")
    if epoch < learner.max_iter:
        return Running()
    return Converged(f"trained for {learner.max_iter} epoch{'s' * (learner.max_iter != 1)}")


def _shapes(part: object) -> object:
    """Return the shapes of the arrays of nested tuples."""
    return [_shapes(inner) for inner in part] if isinstance(part, tuple) else np.asarray(part).shape
