"""Online EM: mixtures learned from a few rows at a time (YK15, "Online learning" and its mixtures).

A mixture of exponential families asks of the data no more than the mean statistics of each class. Online EM keeps them
running, ``s <- s + rate_t (S(rows; theta) - s)``, and takes theta from s by the M-step of all rows. With rates that sum
to infinity while their squares do not (Robbins and Monro) it ends where EM does, at a zero of the gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.backends.classes import ClassSums
from gibbsian.data.rows import Rows
from gibbsian.learning.averaging import FORGETTING
from gibbsian.learning.base import LEARNERS, Fit, Learner, check_supported
from gibbsian.learning.em import EM_STEPS, placing_setting
from gibbsian.learning.mixture_steps import ExponentialSteps, class_sums
from gibbsian.learning.optimizers import Decay, StepInfo
from gibbsian.models.base import Model
from gibbsian.models.mixtures.base import ExponentialMixtureFamily, Frame
from gibbsian.rng import Key
from gibbsian.settings import check, choice, declared, flag, number, whole


class OnlineEMState(NamedTuple):
    """Online EM between two passes; all parameters and statistics are relative to the frame of the first rows.

    Parameters
    ----------
    theta, iterate : ndarray
        The parameters to return, and those of the last minibatch.
    running, mean : ClassSums
        Running statistics per unit of weight, and their average.
    total : float
        The weight that the statistics stand for.
    shown, n_batches, n_passes : int
        Rows, minibatches and passes so far.
    key : Key
        The key of the orders of all passes.
    value : float
        The free energy of all rows, infinite before the first pass.
    frame : Frame
        The origin and the minimum variance.
    carried : bool
        Whether the earlier passes were over other rows.
    """

    theta: Floats
    iterate: Floats
    running: ClassSums
    mean: ClassSums
    total: float
    shown: int
    n_batches: int
    n_passes: int
    key: Key
    value: float
    frame: Frame
    carried: bool = False


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

    requires = (ExponentialMixtureFamily,)

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

    def rate(self, t: int) -> float:
        """Return the rate of minibatch t."""
        return self.learning_rate * Decay(power=self.power, delay=self.delay)(t)

    def bind(self, model: Model[ExponentialMixtureFamily[NamedTuple]], data: Rows) -> OnlineEMFit:
        """Bind the steps of EM to all rows."""
        check_supported(self, model)
        return OnlineEMFit(self, model, data)


class OnlineEMFit(Fit[OnlineEMState]):
    """Passes over the rows, whose order in a pass follows from the key and the number of the pass."""

    def __init__(self, learner: OnlineEM, start: Model[ExponentialMixtureFamily[NamedTuple]], data: Rows):
        self.learner, self.start, self.data, self.hard = learner, start, data, learner.assignment == "hard"
        self.family = start.family
        self.steps: ExponentialSteps[ExponentialMixtureFamily[NamedTuple], tuple[()]] = EM_STEPS.of(start.family)(
            start.family, data, self.hard, learner.placing
        )
        # rows before the parameters move for the first time
        self.wait = learner.wait * start.family.n_components

    def init(self, key: Key, theta: Floats | None = None) -> tuple[OnlineEMState, StepInfo]:
        """Place the classes where they have no place yet."""
        begun = self.steps.start(key.fold("start"), self.start.theta if theta is None else theta)
        total, nothing = self.steps.total_weight, begun.expected.statistics
        return (
            OnlineEMState(begun.theta, begun.theta, nothing, nothing, total, 0, 0, 0, key, np.inf, begun.memory),
            StepInfo(),
        )

    def step(self, state: OnlineEMState) -> tuple[OnlineEMState, StepInfo]:
        """Show all rows once: running statistics move towards those of every minibatch, the parameters with them."""
        learner, family, frame = self.learner, self.family, state.frame
        batches = self.data.minibatches(learner.batch_size, state.key.words, state.n_passes)
        theta, running, mean, shown = state.iterate, state.running, state.mean, state.shown
        for t, k in enumerate(range(len(batches)), start=state.n_batches):
            batch = batches[k]
            found = class_sums(family, frame, self.hard, theta, batch)[1]
            found = _times(found, 1.0 / float(found.mass.sum()))
            running = _towards(running, found, learner.rate(t)) if t else found
            mean = _towards(mean, running, (FORGETTING + 1) / (t + 1 + FORGETTING)) if t else running
            shown += batch.n_rows
            if shown >= self.wait:
                theta = family.maximise(_times(running, state.total), theta, frame.floor)
        answer, n_batches = theta, state.n_batches + len(batches)
        if learner.average and shown >= self.wait:
            answer = family.maximise(_times(mean, state.total), theta, frame.floor)
        if state.carried:
            value = class_sums(family, frame, self.hard, answer, self.data)[0]
            change = float(np.abs(answer - state.theta).max())
        else:
            value = self.steps.e_step(answer).value
            settling = np.isfinite(state.value) and shown >= self.wait
            change = abs(value - state.value) / self.steps.total_weight if settling else np.nan
        after = OnlineEMState(
            answer, theta, running, mean, state.total, shown, n_batches, state.n_passes + 1, state.key, value, frame
        )
        warning = family.warning(answer, running.mass, frame.floor)
        return after, StepInfo(value, change, learner.rate(n_batches - 1), n_batches, warning=warning)

    def model(self, state: OnlineEMState) -> Model[ExponentialMixtureFamily[NamedTuple]]:
        """Return the mixture."""
        return self.steps.model(state.theta, state.frame)

    def carry(self, state: OnlineEMState) -> OnlineEMState:
        """Return a state after other rows, in whose running statistics these are to be taken up."""
        before = state.total if state.n_passes else 0.0
        return state._replace(total=before + self.steps.total_weight, carried=True)


def _towards(old: ClassSums, new: ClassSums, share: float) -> ClassSums:
    return ClassSums(old.mass + share * (new.mass - old.mass), old.sums + share * (new.sums - old.sums))


def _times(sums: ClassSums, factor: float) -> ClassSums:
    return ClassSums(factor * sums.mass, factor * sums.sums)
