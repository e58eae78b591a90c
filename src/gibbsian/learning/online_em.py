"""Online EM: mixtures learned from a few rows at a time (YK15, "Online learning" and its mixtures).

A mixture of exponential families asks of the data no more than the mean statistics of each class. Online EM keeps them
running, ``s <- s + rate_t (S(rows; theta) - s)``, and takes theta from s by the M-step of all rows. With rates that sum
to infinity while their squares do not (Robbins and Monro) it ends where EM does, at a zero of the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gibbsian.backends.classes import ClassSums
from gibbsian.data import Dataset
from gibbsian.data.minibatches import draw_seed
from gibbsian.data.rows import Rows
from gibbsian.learning.base import LEARNERS, Learner, LearnerState, has_classes
from gibbsian.learning.bound_mixtures import bound, class_sums, placing_setting
from gibbsian.learning.em import require_sums
from gibbsian.learning.optimizers import Decay, StepInfo
from gibbsian.learning.optimizers.base import largest
from gibbsian.models.base import Family, Model
from gibbsian.models.mixtures.base import Frame
from gibbsian.settings import check, choice, declared, flag, number, whole

# The average of the statistics forgets its start, as that of `Online` does: step s of t counts like s^3.
FORGETTING = 3


@dataclass(frozen=True)
class OnlineEMProgress:
    """The parameters to return and those of the last step, running statistics per unit of weight, and their average.

    All are relative to the `frame` of the first rows. `total` is the weight that the statistics stand for, `shown` the
    rows so far, `value` the free energy of all rows.
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
    frame: Frame


@dataclass(frozen=True, eq=False)
class _Problem:
    """The mixture, and the rows of a fit, which are bound for their free energy."""

    family: Any
    data: Any
    rows: Any


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
    >>> mixture = gb.GaussianMixture(learner=gb.learning.OnlineEM(batch_size=10), random_state=0).fit(rows)
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

    def refusal(self, model: Model[Family]) -> str:
        """Only mixtures have classes to learn."""
        return "" if has_classes(model) else "learns classes, and the model has no hidden label"

    def start(self, model: Model[Family], data: Dataset, rng: np.random.Generator) -> Any:
        """Return the model as it is: classes are placed by the data."""
        return model

    def init(self, model: Any, data: Rows, rng: np.random.Generator) -> LearnerState:
        """Place the classes where they have no place yet."""
        family, rows = model.family, bound(model.family, data, self._hard, rng)
        require_sums(rows)
        model = rows.adopted(model) if model.theta.any() else rows.start(rng, self.placing)
        nothing = ClassSums(np.zeros(0), np.zeros((0, 0)))
        progress = OnlineEMProgress(
            theta=model.theta,
            iterate=model.theta,
            running=nothing,
            mean=nothing,
            total=rows.total_weight,
            shown=0,
            steps=0,
            passes=0,
            seed=draw_seed(rng),
            value=np.inf,
            frame=rows.frame,
        )
        return LearnerState(_Problem(family, data, rows), progress)

    def step(self, state: LearnerState) -> tuple[LearnerState, StepInfo]:
        """Show all rows once; the value is the free energy of all of them at the answer so far."""
        problem, before = state.problem, state.progress
        after = self._shown_once(problem.family, problem.data, before)
        value = problem.rows.e_step(Model(problem.family, after.theta)).free_energy
        change = abs(value - before.value) / problem.rows.total_weight
        moved = np.isfinite(before.value) and after.shown >= self.wait * problem.family.n_components
        info = StepInfo(
            value, largest(np.array([change])) if moved else np.nan, self._rate(after.steps - 1), after.steps
        )
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
        family, before = state.problem.family, state.progress
        after = self._shown_once(family, data, before)
        value, _ = class_sums(family, before.frame, self._hard, after.theta, data)
        moved = float(np.abs(after.theta - before.theta).max())
        return LearnerState(state.problem, after), StepInfo(value, moved, self._rate(after.steps - 1), after.steps)

    def kept(self, state: LearnerState) -> LearnerState:
        """Return where `partial_fit` goes on."""
        return LearnerState(_Problem(state.problem.family, None, None), state.progress)

    def fitted(self, model: Model[Family], state: LearnerState) -> Any:
        """Return the mixture."""
        family, progress = state.problem.family, state.progress
        return Model(family, family.translated(progress.theta, -progress.frame.origin))

    def warning(self, state: LearnerState) -> str:
        """Say what is wrong with the solution."""
        progress, mass = state.progress, state.progress.running.mass
        return state.problem.family.warning(progress.theta, mass, progress.frame.floor) if mass.size else ""

    @property
    def _hard(self) -> bool:
        return self.assignment == "hard"

    def _rate(self, t: int) -> float:
        return self.learning_rate * Decay(power=self.power, delay=self.delay)(t)

    def _shown_once(self, family: Any, data: Rows, before: OnlineEMProgress) -> OnlineEMProgress:
        """Move running statistics towards those of every minibatch of a pass, and the parameters with them."""
        batches, floor = data.minibatches(self.batch_size, before.seed, before.passes), before.frame.floor
        theta, running, mean = before.iterate, before.running, before.mean
        shown, first = before.shown, before.steps
        for t in range(first, first + len(batches)):
            batch = batches[t - first]
            _, found = class_sums(family, before.frame, self._hard, theta, batch)
            found = _times(found, 1.0 / float(found.mass.sum()))
            running = _towards(running, found, self._rate(t)) if t else found
            mean = _towards(mean, running, (FORGETTING + 1) / (t + 1 + FORGETTING)) if t else running
            shown += batch.n_rows
            if shown >= self.wait * family.n_components:
                theta = family.maximise(_times(running, before.total), theta, floor)
        steps, answer = first + len(batches), theta
        if self.average and shown >= self.wait * family.n_components:
            answer = family.maximise(_times(mean, before.total), theta, floor)
        moved: dict[str, Any] = {"theta": answer, "iterate": theta, "running": running, "mean": mean}
        return replace(before, **moved, shown=shown, steps=steps, passes=before.passes + 1)


def _towards(old: ClassSums, new: ClassSums, share: float) -> ClassSums:
    return ClassSums(old.mass + share * (new.mass - old.mass), old.sums + share * (new.sums - old.sums))


def _times(sums: ClassSums, factor: float) -> ClassSums:
    return ClassSums(factor * sums.mass, factor * sums.sums)
