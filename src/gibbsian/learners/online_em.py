"""Online EM: mixtures learned from a few rows at a time (YK15, "Online learning" and its mixtures).

A mixture of exponential families asks of the data no more than the mean statistics of each class. Online EM keeps them
running, ``s <- s + rate_t (S(rows; theta) - s)``, and takes theta from s by the M-step of all rows. With rates that sum
to infinity while their squares do not (Robbins and Monro) it ends where EM does, at a zero of the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gibbsian.data.minibatches import draw_seed
from gibbsian.learners.base import LEARNERS, Learner, LearnerState
from gibbsian.learners.class_em import NOT_YET, placing_setting, require_sums
from gibbsian.models.class_shares import ClassSums
from gibbsian.optimizers import Decay, StepInfo
from gibbsian.settings import check, choice, declared, flag, number, whole

# The average of the statistics forgets its start, as that of `Online` does: step s of t counts like s^3.
FORGETTING = 3


@dataclass(frozen=True)
class OnlineEMProgress:
    """The parameters to return and those of the last step, running statistics per unit of weight, and their average.

    `total` is the weight that the statistics stand for, `shown` the rows so far, `value` the free energy of all rows.
    """

    theta: np.ndarray
    iterate: np.ndarray
    running: ClassSums
    mean: ClassSums
    total: float
    shown: int
    steps: int
    passes: int
    seed: np.ndarray
    value: float


@dataclass(frozen=True, eq=False)
class _Problem:
    """The mixture with what it took from the first rows, the rows, and their free energy as `steps` have it."""

    model: Any
    data: Any
    steps: Any


@LEARNERS.register("online-em", models=("gaussian-mixture", "vmf-mixture"), stochastic=True, penalised=False)
@declared(frozen=True)
class OnlineEM(Learner):
    """EM on running statistics of shuffled minibatches, for every mixture of exponential families.

    A step is a pass over the rows. The rate of minibatch t is ``learning_rate / (1 + t / delay)^power``: with
    ``power=1`` and ``delay=1`` every row counts alike (the rate 1/n), with ``power=0`` it is constant. The fit has
    converged when a pass changes the free energy per row by no more than `tol`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.random.default_rng(0).normal(size=(300, 1)) + 9 * (np.arange(300) % 2)[:, None]
    >>> mixture = gb.GaussianMixture(learner=gb.learners.OnlineEM(batch_size=10), random_state=0).fit(rows)
    >>> np.sort(mixture.means_.ravel()).round(0)
    array([-0.,  9.])

    References
    ----------
    O. Cappe and E. Moulines, "On-line expectation-maximization algorithm for latent data models", Journal of the Royal
    Statistical Society B 71 (2009).
    """

    learns_classes: ClassVar[bool] = True

    batch_size: int = whole(20, "About how many rows a minibatch has; 1 shows them one by one.", least=1)
    learning_rate: float = number(1.0, "Rate of the first minibatch.", above=0, most=1)
    power: float = number(0.6, "How fast the rate falls: above 1/2 for the noise to die out.", least=0, most=1)
    delay: float = number(1.0, "Minibatches before the fall sets in.", above=0)
    wait: int = whole(10, "Rows of each class that are shared out before the parameters move for the first time.")
    average: bool = flag(True, "Take the answer from the average of the statistics, late ones counting more (Polyak).")
    assignment: str = choice("soft", "Share each row among the classes, or give it to the likeliest.", "soft", "hard")
    placing: str = placing_setting()

    def __post_init__(self) -> None:
        check(self)

    def refusal(self, model: Any) -> str:
        """Only mixtures have classes to learn."""
        return "" if hasattr(model, "em_steps") else "learns classes, and the model has no hidden label"

    def start(self, model: Any, data: Any, rng: np.random.Generator) -> Any:
        """Return the model as it is: classes are placed by the data."""
        return model

    def init(self, model: Any, data: Any, rng: np.random.Generator) -> LearnerState:
        """Place the classes where they have no place yet."""
        require_sums(model)
        steps = model.em_steps(data, self._hard)
        model = steps.adopted(model) if model.is_placed else steps.start(rng, self.placing)
        nothing, total = ClassSums(np.zeros(0), np.zeros((0, 0))), steps.total_weight
        start = (model.theta, model.theta, nothing, nothing)
        progress = OnlineEMProgress(*start, total, shown=0, steps=0, passes=0, seed=draw_seed(rng), value=np.inf)
        return LearnerState(_Problem(model, data, steps), progress)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Show all rows once; the value is the free energy of all of them at the answer so far."""
        problem, before = state.problem, state.progress
        after = self._shown_once(problem.model, problem.data, before)
        value, _ = problem.steps.expect(problem.model.replace(after.theta))
        change = abs(value - before.value) / problem.steps.total_weight
        moved = np.isfinite(before.value) and after.shown >= self.wait * problem.model.n_components
        info = StepInfo(value, change if moved else NOT_YET, self._rate(after.steps - 1), after.steps)
        return LearnerState(problem, replace(after, value=value)), info

    def update(
        self, state: LearnerState | None, model: Any, data: Any, rng: np.random.Generator
    ) -> tuple[LearnerState, StepInfo]:
        """Show the rows of a chunk once, in minibatches."""
        if state is None:
            state = self.init(model, data, rng)
        else:
            total = state.progress.total + float(data.weights.sum())
            state = LearnerState(state.problem, replace(state.progress, total=total))
        model, before = state.problem.model, state.progress
        after = self._shown_once(model, data, before)
        value, _ = model.replace(after.theta).class_sums(data, self._hard)
        moved = float(np.abs(after.theta - before.theta).max())
        return LearnerState(state.problem, after), StepInfo(value, moved, self._rate(after.steps - 1), after.steps)

    def kept(self, state: LearnerState) -> LearnerState:
        """Return where `partial_fit` goes on."""
        return LearnerState(_Problem(state.problem.model, None, None), state.progress)

    def fitted(self, model: Any, state: LearnerState) -> Any:
        """Return the mixture, with words about what is wrong with it."""
        fitted, mass = state.problem.model.replace(state.progress.theta), state.progress.running.mass
        return replace(fitted, trouble=fitted.what_is_wrong(mass) if mass.size else "")

    @property
    def _hard(self) -> bool:
        return self.assignment == "hard"

    def _rate(self, t: int) -> float:
        return self.learning_rate * Decay(power=self.power, delay=self.delay)(t)

    def _shown_once(self, model: Any, data: Any, before: OnlineEMProgress) -> OnlineEMProgress:
        """Move running statistics towards those of every minibatch of a pass, and the parameters with them."""
        batches = data.minibatches(self.batch_size, before.seed, before.passes)
        here, running, mean = model.replace(before.iterate), before.running, before.mean
        shown, first = before.shown, before.steps
        for t in range(first, first + len(batches)):
            found, rows = self._per_weight(here, batches[t - first])
            running = _towards(running, found, self._rate(t)) if t else found
            mean = _towards(mean, running, (FORGETTING + 1) / (t + 1 + FORGETTING)) if t else running
            shown += rows
            if shown >= self.wait * model.n_components:
                here = here.maximise(_times(running, before.total))
        steps, theta = first + len(batches), here.theta
        if self.average and shown >= self.wait * model.n_components:
            theta = here.maximise(_times(mean, before.total)).theta
        moved = {"theta": theta, "iterate": here.theta, "running": running, "mean": mean}
        return replace(before, **moved, shown=shown, steps=steps, passes=before.passes + 1)

    def _per_weight(self, model: Any, batch: Any) -> tuple[ClassSums, int]:
        """Return the statistics of a minibatch per unit of weight, and the number of its rows."""
        _, found = model.class_sums(batch, self._hard)
        return _times(found, 1.0 / float(found.mass.sum())), batch.n_rows


def _towards(old: ClassSums, new: ClassSums, share: float) -> ClassSums:
    return ClassSums(old.mass + share * (new.mass - old.mass), old.sums + share * (new.sums - old.sums))


def _times(sums: ClassSums, factor: float) -> ClassSums:
    return ClassSums(factor * sums.mass, factor * sums.sums)
