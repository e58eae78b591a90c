"""Learning by minibatches: epochs of shuffled rows, a rate that falls, momentum and penalties, for models of layers.

What one minibatch teaches is in `gibbsian.learning.lessons`.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from gibbsian.backends.device import layer_kernels, left_to_cpu, on_device, twin
from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import without_hidden
from gibbsian.data.minibatches import Cuts, draw_seed, seeded
from gibbsian.errors import ArgumentError
from gibbsian.expectations.block_chains import FreePhase, as_free_phase
from gibbsian.learning.base import LEARNERS, Learner, LearnerState, Penalties
from gibbsian.learning.callbacks import Callback, Monitor
from gibbsian.learning.filling import EpochRows, check_states
from gibbsian.learning.layer_monitors import WATCHED_ROWS, HeldOutCurves
from gibbsian.learning.lessons import LESSONS, Lessons
from gibbsian.learning.objectives.priors import SmoothPenalty, bind_prior, check_prior
from gibbsian.learning.optimizers import Converged, Decay, Failed, Outcome, StepInfo
from gibbsian.learning.recipe import LOG_PRIOR
from gibbsian.learning.standard_units import ColumnScale
from gibbsian.models.base import Layered, Model, keeps
from gibbsian.models.ising import is_ising
from gibbsian.models.layers.stack import in_layers
from gibbsian.models.layers.units import idle_means, mean_values
from gibbsian.resources import require_memory
from gibbsian.settings import check, choice, declared, flag, free, number, whole

# Numbers that tell the generators of one seed apart: the start, and the epochs from there on.
_START = 0
# Log-odds beyond which parameters have run away, in the units of learning: no table has as many rows.
LARGEST_PARAMETER = 1e6
# Arrays of the size of the weights, of the rows whose curves are watched, and of those that are treated together.
COPIES_OF_WEIGHTS, _COPIES_OF_WATCHED, _COPIES_OF_ROWS = 9, 1.3, 6


@dataclass(frozen=True)
class MinibatchProgress:
    """All that the next epoch needs besides the rows: plain arrays and numbers.

    Parameters
    ----------
    theta, velocity : ndarray
        Parameters, and their last step for the momentum.
    memory : Memory
        What the lessons remember from one minibatch to the next: chains, offsets.
    filled : ndarray
        What stands in the missing cells.
    seed : ndarray
        What the order of the rows and all draws follow from.
    epoch, steps, last : int
        Epochs and minibatches so far, and epochs after which the model counts as trained.
    value, gradient_norm : float
        As reported after the last epoch.
    """

    theta: np.ndarray
    velocity: np.ndarray
    memory: Any
    filled: np.ndarray
    seed: np.ndarray
    epoch: int
    steps: int
    last: int
    value: float
    gradient_norm: float

    @property
    def verdict(self) -> str:
        """That the model counts as trained, where it does."""
        if self.epoch < self.last or not np.isfinite(self.gradient_norm):
            return ""
        return f"trained for {self.last} epoch{'s' * (self.last != 1)}"


@dataclass(frozen=True, eq=False)
class MinibatchProblem:
    """The layers and the rows, in the units of learning: made once, never saved."""

    model: Any
    rows: EpochRows
    lessons: Lessons
    scale: ColumnScale | None
    phase: str
    smooth: SmoothPenalty
    corners: np.ndarray
    stays: bool = False  # on the CPU, whatever the device
    ahead: dict[Any, np.ndarray] = field(default_factory=dict)  # orders of epochs to come, drawn while a device works

    def here(self, progress: MinibatchProgress) -> Any:
        """Return the model as learning has it, in its own units; one that has run away is refused elsewhere."""
        return self.model.replace(np.nan_to_num(progress.theta))

    def order(self, seed: np.ndarray, epoch: int, rng: np.random.Generator) -> np.ndarray:
        """Return the places of the rows of an epoch, as its generator shuffles them."""
        known = self.ahead.pop((epoch, seed.tobytes()), None)
        return rng.permutation(self.rows.data.draws(rng)) if known is None else known

    def look_ahead(self, seed: np.ndarray, epoch: int) -> None:
        """Shuffle the rows of an epoch before it begins."""
        self.ahead[epoch, seed.tobytes()] = self.order(seed, epoch, seeded(seed, epoch + 1))

    @cached_property
    def penalty_parts(self) -> list[tuple[slice, bool]]:
        """Parts of theta, with whether penalties apply to them."""
        return _runs(self.model.family.penalised)

    def in_units(self, data: Dataset) -> Dataset:
        """Return data in the units of learning."""
        return data if self.scale is None else self.scale.standard(data)


class EpochPlan(NamedTuple):
    """What an epoch does, decided before its first step."""

    order: np.ndarray  # places of rows, one minibatch after the other
    ends: np.ndarray  # where minibatches begin, and the end
    rates: np.ndarray  # of each minibatch
    parts: list[tuple[slice, float, float]]  # of theta that are penalised alike, with L1 and L2
    momentum: float

    def move(self, theta: Any, velocity: Any, gradient: Any, rate: Any) -> None:
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
    >>> learner = gb.learning.Minibatch(max_iter=30, learning_rate=1.0, batch_size=100, free_phase="cd")
    >>> rbm = gb.RestrictedBoltzmannMachine(2, learner=learner, random_state=0).fit(X)
    >>> rbm.result_.reason
    'trained for 30 epochs'
    """

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
    free_phase: FreePhase | str = free(
        "pcd",
        "How the moments under the model are found: chains that go on ('pcd'), chains from the minibatch ('cd'), "
        "spatial Monte Carlo integration over chains ('smci'), parallel tempering ('tempering'), or an object.",
        doc="str or FreePhase",
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
    log_prior: Any = free(None, LOG_PRIOR, doc="str, callable or None")
    mean_field_steps: int = whole(
        5, "Most rounds of updates of the hidden layers of a deep Boltzmann machine for each minibatch.", least=1
    )
    dtype: str = choice("float64", "Precision of parameters and chains.", "float64", "float32")

    def __post_init__(self) -> None:
        check(self)
        if not isinstance(self.schedule, Decay) and self.schedule not in ("linear", "constant"):
            raise ArgumentError("must be 'linear', 'constant' or a Decay", argument="schedule", value=self.schedule)
        check_prior(self.log_prior)
        self.phase()

    @property
    def penalties(self) -> Penalties:
        """The penalties of the weights, and the prior."""
        return Penalties(self.l1, self.l2, self.log_prior)

    def phase(self, family: Any = None) -> FreePhase:
        """Return the free phase of a family, with the numbers of steps and chains that were given for it.

        Moments of real numbers are noisy: few chains would lose what the rows of a minibatch teach.
        """
        settings = {"n_steps": self.n_steps, "n_chains": self.n_chains}
        phase: Any = as_free_phase(self.free_phase, **{name: n for name, n in settings.items() if n is not None})
        follows = self.n_chains is None and isinstance(self.free_phase, str) and hasattr(phase, "n_chains")
        if not follows or family is None or family.layers[0].variables.real:
            return phase
        return replace(phase, n_chains=self.batch_size)

    # -- beginnings -------------------------------------------------------------------------------------------------
    def start(self, model: Any, data: Dataset, rng: np.random.Generator, scale: float | None = None) -> Any:
        """Return where learning begins: visible units with the means of the data, and small random weights.

        One more row, without fields, keeps the biases finite where a column never varies.
        """
        here, data = as_layers(model, data)
        units = scale_of(here, data)
        if units is None:
            return returned(model, self.start_here(here, data, rng, scale))
        return units.to_data(self.start_here(units.from_data(here), units.standard(data), rng, scale))

    def start_here(self, model: Any, data: Dataset, rng: np.random.Generator, scale: float | None = None) -> Any:
        """Return the same in the units of learning."""
        n_rows = data.n_rows if data.on_cluster else EpochRows(data).n_rows
        visible = model.family.layers[0]
        means = (n_rows * mean_values(visible, data) + idle_means(visible)) / (n_rows + 1)
        return model.replace(model.family.initialised(means, rng, scale))

    def init(self, model: Any, data: Dataset, rng: np.random.Generator) -> LearnerState:
        """Go over to standard units where columns are real numbers, and begin."""
        model, data, scale = in_own_units(model, data)
        return self.begin(model, data, rng, scale)

    def begin(
        self,
        model: Any,
        data: Dataset,
        rng: np.random.Generator,
        scale: ColumnScale | None = None,
        seen: float = 0.0,
    ) -> LearnerState:
        """Draw the seed, start the chains and fill missing cells, in the units of learning; others have `seen` more."""
        problem = self._problem(model, data, scale, seen)
        seed, model = draw_seed(rng), problem.model
        memory, filled = problem.lessons.start(model, seeded(seed, _START))
        progress = MinibatchProgress(
            theta=model.theta,
            velocity=np.zeros_like(model.theta),
            memory=memory,
            filled=filled,
            seed=seed,
            epoch=0,
            steps=0,
            last=self.max_iter,
            value=problem.lessons.value(model.parts, filled, 0.0),
            gradient_norm=np.inf,
        )
        return LearnerState(problem, progress)

    def _problem(self, model: Any, data: Dataset, scale: ColumnScale | None, seen: float = 0.0) -> MinibatchProblem:
        rows = EpochRows(data)
        self._require_memory(model, rows.n_rows)
        model = model.replace(model.theta.astype(self.dtype))
        prior, corners = bind_prior(self.log_prior, model.family.penalised)
        n_rows = seen + float(data.total_weight)
        penalties = SmoothPenalty(0.0, prior, n_rows), corners / n_rows
        family = model.family
        lessons = LESSONS.of(family)(self, family, rows)
        problem = MinibatchProblem(model, rows, lessons, scale, repr(self.phase(family)), *penalties)
        there = twin("layer_programs")
        if there is None or not (reason := there.lacking(problem, self.log_prior is not None)):
            return problem
        left_to_cpu(reason)
        return replace(problem, stays=True)

    def _require_memory(self, model: Any, n_rows: int) -> None:
        """Refuse a fit that would not fit the memory, before it takes any."""
        phase: Any = self.phase(model.family)
        betas = getattr(phase, "betas", 1)
        n_copies = int(np.size(betas) if np.ndim(betas) else betas)
        treated = getattr(phase, "n_chains", 0) * n_copies + self.batch_size
        together = _COPIES_OF_ROWS * treated + _COPIES_OF_WATCHED * min(WATCHED_ROWS, n_rows)
        widths = [layer.width for layer in model.family.layers]
        require_memory(
            8.0 * (COPIES_OF_WEIGHTS * model.theta.size + together * float(sum(widths))),
            f"fitting layers of {', '.join(f'{width:,}' for width in widths)} columns",
            "ask for fewer hidden units, or fewer chains (`n_chains`)",
        )

    def rebound(self, state: LearnerState, data: Dataset) -> LearnerState:
        """Go on with other rows; chains begin anew where the free phase is another than before."""
        before, progress = state.problem, state.progress
        check_states(before.model.family.layers[0], data)
        problem = self._problem(before.model, before.in_units(data), before.scale, before.smooth.n_rows)
        here, rng = problem.here(progress), seeded(progress.seed, _START, progress.epoch)
        memory = progress.memory
        # other rows, other missing cells: they are drawn afresh
        filled = problem.rows.start(here, rng) if problem.lessons.fills_missing else progress.filled
        if problem.phase != before.phase:
            memory = problem.lessons.restarted(here, memory, rng)
        return LearnerState(problem, replace(progress, memory=memory, filled=filled))

    def by_chunks(self, batch_size: int) -> Minibatch:
        """Return the learner for chunks of rows that go on arriving: there is no last one for the rate to fall to."""
        return replace(self, schedule="constant") if self.schedule == "linear" else self

    # -- learning ---------------------------------------------------------------------------------------------------
    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Learn from every row once."""
        with on_device("cpu") if state.problem.stays else nullcontext():
            progress = self._epoch(state.problem, state.progress)
        rate = self._rate(progress.steps - 1, self.n_batches(state.problem))
        return LearnerState(state.problem, progress), self.step_info(progress, rate)

    def step_info(self, progress: MinibatchProgress, rate: float) -> StepInfo:
        """Return what an epoch has done."""
        outcome: Outcome | None = Converged(progress.verdict) if progress.verdict else None
        if not np.isfinite(progress.gradient_norm):
            reason = f"the parameters have run to infinity in {progress.steps} minibatches"
            outcome = Failed(reason, f"lower `learning_rate={self.learning_rate:g}`")
        return StepInfo(progress.value, progress.gradient_norm, rate, progress.steps, outcome=outcome)

    def _epoch(self, problem: MinibatchProblem, progress: MinibatchProgress) -> MinibatchProgress:
        """Go through the rows once, in minibatches; the progress that is given stays as it is."""
        rng = seeded(progress.seed, progress.epoch + 1)
        plan, there = self._plan(problem, progress, rng), twin("layer_programs")
        if there is None:
            after = self._taught(problem, progress, plan, rng)
        else:
            meanwhile = partial(problem.look_ahead, progress.seed, progress.epoch + 1)
            after = there.epoch(problem, progress, plan, meanwhile)
        theta, velocity, memory, filled, misfit = after
        moved = sum((plan.rates / (1.0 - self.momentum)).tolist())
        change = np.abs(theta - progress.theta).max() / moved if moved else 0.0
        return replace(
            progress,
            theta=theta,
            velocity=velocity,
            memory=memory,
            filled=filled,
            epoch=progress.epoch + 1,
            steps=progress.steps + len(plan.rates),
            value=problem.lessons.value(problem.model.family.split(theta), filled, misfit),
            gradient_norm=float(change) if np.abs(theta).max() < LARGEST_PARAMETER else np.inf,
        )

    def _plan(self, problem: MinibatchProblem, progress: MinibatchProgress, rng: np.random.Generator) -> EpochPlan:
        cuts = self._cuts(problem)
        steps = range(progress.steps, progress.steps + len(cuts))
        rates = [self._rate(number, len(cuts)) for number in steps]
        return EpochPlan(
            order=problem.order(progress.seed, progress.epoch, rng),
            ends=cuts.ends,
            rates=np.array(rates),
            parts=self._penalised_parts(problem),
            momentum=self.momentum,
        )

    def _taught(
        self, problem: MinibatchProblem, progress: MinibatchProgress, plan: EpochPlan, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray, float]:
        """Return theta, velocity, memory, filled cells and the mean misfit after the steps of an epoch."""
        theta, velocity, filled = progress.theta.copy(), progress.velocity.copy(), progress.filled.copy()
        # the parts share the memory of theta, which the steps change in place
        parts, memory, lessons, misfit = problem.model.family.split(theta), progress.memory, problem.lessons, 0.0
        for k, rate in enumerate(plan.rates.tolist()):
            lesson = lessons.teach(parts, memory, filled, plan.order[plan.ends[k] : plan.ends[k + 1]], rng)
            gradient = lesson.gradient
            if self.log_prior is not None:
                gradient = gradient - problem.smooth(theta)[1].astype(theta.dtype)
            plan.move(theta, velocity, gradient, rate)
            memory = lesson.memory
            misfit += float(lesson.misfit or 0.0) / len(plan.rates)
        return theta, velocity, memory, filled, misfit

    def _penalised_parts(self, problem: MinibatchProblem) -> list[tuple[slice, float, float]]:
        """Return the parts of theta that are penalised alike, with L1 and L2."""
        return [
            (part, self.l1 * penalised + float(problem.corners[part.start]), self.l2 * penalised)
            for part, penalised in problem.penalty_parts
        ]

    def _cuts(self, problem: MinibatchProblem) -> Cuts:
        return Cuts(problem.rows.data.n_draws, self.batch_size)

    def _rate(self, steps: int, n_batches: int) -> float:
        """Return the rate after so many minibatches, of which an epoch has `n_batches`."""
        if isinstance(self.schedule, Decay):
            return self.learning_rate * self.schedule(steps)
        if self.schedule == "constant":
            return self.learning_rate
        return self.learning_rate * max(0.0, 1.0 - steps / (n_batches * self.max_iter))

    # -- results ----------------------------------------------------------------------------------------------------
    def fitted(self, model: Any, state: LearnerState) -> Any:
        """Return the model as a state has it, in the units of the data."""
        problem, learned = state.problem, state.problem.here(state.progress)
        return returned(model, learned if problem.scale is None else problem.scale.to_data(learned))

    def most_steps(self, model: Any, max_iter: int) -> int:
        """Return the number of epochs."""
        return self.max_iter

    def at_most(self, epochs: int) -> Minibatch:
        """Return the learner with the smaller number of epochs; its rate falls to zero at the end of the last."""
        return replace(self, max_iter=min(self.max_iter, epochs))

    def kept(self, state: LearnerState) -> LearnerState | None:
        """Return the state where learning goes on after a fit with its chains; a device forgets it."""
        if (there := twin("layer_programs")) is not None:
            there.forget(state.problem)
        return state if state.problem.lessons.goes_on else None

    def on_cluster(self) -> Learner:
        """Return the learner whose epochs are made where the rows are."""
        from gibbsian.learning.epochs_there import EpochsThere

        return EpochsThere(self)

    def n_batches(self, problem: MinibatchProblem) -> int:
        """Return the number of minibatches of an epoch."""
        return len(self._cuts(problem))

    def for_layers(self) -> Minibatch:
        """Return the learner itself."""
        return self

    def figures(self, state: LearnerState) -> dict[str, float]:
        """Return what the learner measures after every epoch."""
        problem, now = state.problem, state.progress
        return problem.lessons.figures(now.value, now.epoch)

    def monitors(self, data: Dataset, held_out: Dataset | None) -> list[Callback]:
        """Return what keeps these figures, and those of rows held out, in the history of a run."""
        own: list[Callback] = super().monitors(data, held_out)
        return own if held_out is None else [*own, Monitor(HeldOutCurves(data, held_out))]


def as_layers(model: Model[Any], data: Dataset) -> tuple[Model[Any], Dataset]:
    """Return a model as one of layers, and the data without columns of hidden units; refuse what does not fit."""
    layers = model if keeps(model.family, Layered) else in_layers(model)
    if layers is None and not is_ising(model.family):
        raise ArgumentError("learning by minibatches of rows is for machines of layers", "use `learner='online'`")
    if layers is None:
        raise ArgumentError(
            "learning by layers needs biases, and every column to couple to every hidden unit and to nothing else",
            "set `graph='restricted'`, or learn otherwise" if model.n_hidden else "use `learner='online'`",
        )
    if not LESSONS.name_for(layers.family):
        reason = "the directed layers of a belief network have no gradient that chains know"
        raise ArgumentError(reason, "learn them one by one (`learner='stacking'`)")
    n_columns = layers.family.layers[0].n_units
    if data.n_variables == n_columns + layers.family.n_hidden:  # hidden units are columns of the model and the data
        data = without_hidden(data, layers.family.n_hidden)
    if not data.on_cluster:  # where cells were checked when they were read
        check_states(layers.family.layers[0], data)
    return layers, data


def returned(model: Any, learned: Model[Any]) -> Any:
    """Return what was learned in layers as the model was given."""
    return learned if keeps(model.family, Layered) else model.replace(learned.theta)


def scale_of(model: Model[Any], data: Dataset) -> ColumnScale | None:
    """Return the standard units of columns of real numbers; None for discrete ones."""
    return ColumnScale.of(data) if model.family.layers[0].variables.real else None


def in_own_units(model: Any, data: Dataset) -> tuple[Any, Dataset, ColumnScale | None]:
    """Return a model as one of layers and the data, in the units of learning, with the scale that leads back."""
    model, data = as_layers(model, data)
    scale = scale_of(model, data)
    return (model, data, None) if scale is None else (scale.from_data(model), scale.standard(data), scale)


def _runs(mask: np.ndarray) -> list[tuple[slice, bool]]:
    """Cut a mask where it changes; return the parts with what it says there."""
    ends = [*(np.flatnonzero(np.diff(mask)) + 1).tolist(), mask.size]
    return [(slice(a, b), bool(mask[a])) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
