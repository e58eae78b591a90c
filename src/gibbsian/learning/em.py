"""Expectation maximisation: machines with hidden units or missing cells, and mixtures (YK15; Neal and Hinton 1998).

The free energy ``F(Q, theta) = log Z - E_Q[theta . S] - H(Q)``, averaged over the rows, is lowered in turn: over Q (the
E-step, a clamped expectation) and over theta at fixed Q (the M-step, a convex problem that asks of Q no more than its
expected statistics). With the exact posterior for Q it touches minus the log-likelihood, which therefore never rises.

`EMFit` is the loop; `EMSteps` are both steps for one family and its rows. Here are those of machines; those of mixtures
are closed forms (`gibbsian.learning.mixture_steps`), as is that of the graphical lasso.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from gibbsian.arrays import Floats, Mask, States, Tensor
from gibbsian.backends.classes import ClassSums
from gibbsian.data import Dataset
from gibbsian.data.rows import Rows
from gibbsian.errors import ArgumentError
from gibbsian.expectations import Expectation, as_expectation
from gibbsian.inference import plan_exact
from gibbsian.learning.base import LEARNERS, Fit
from gibbsian.learning.objectives import Equations, Likelihood
from gibbsian.learning.optimizers import LBFGS, StepInfo
from gibbsian.learning.optimizers.anderson import LastRounds
from gibbsian.learning.optimizers.base import ROUNDED, gradient_norm, penalty
from gibbsian.learning.optimizers.lbfgs import LBFGSState
from gibbsian.learning.phases import bind_clamped
from gibbsian.learning.recipe import CLAMPED_HELP, WithPrior
from gibbsian.models.base import DiscreteFamily, ExponentialFamily, Family, Mixture, Model, keeps
from gibbsian.models.mixtures.base import Frame, MixtureFamily
from gibbsian.registry import Registry
from gibbsian.rng import Key
from gibbsian.settings import choice, declared, flag, free, number, positional, whole

if TYPE_CHECKING:
    from gibbsian.learning.mixture_steps import ExponentialSteps
    from gibbsian.models.mixtures.base import ExponentialMixtureFamily

# Both steps of mixtures, by family.
EM_STEPS = Registry("EM of classes", "gibbsian.learning", "EM_STEPS")

# Sampled statistics of E-step s are averaged with weights of about s^3, so that early ones are soon forgotten, and ...
FORGETTING = 4.0
# ... a fit may end within their noise after this many steps: at the start the gradient of hidden units is near zero.
MIN_SAMPLED_STEPS = 50

# How classes are placed before the first step (YK15, "K-means (2)": "randomly partition the datapoints, or use K++").
FAR_APART, RANDOM, PARTITION = PLACINGS = "k-means++", "random", "partition"
PLACING = (
    "How classes that have no parameters begin: at rows far apart, at any rows, or as those of a random partition "
    "(YK15)."
)

S = TypeVar("S")  # expected statistics
P = TypeVar("P")  # the state of the E-step
M = TypeVar("M")  # the memory of the M-step


def placing_setting() -> str:
    """Declare where classes begin."""
    setting: str = choice(FAR_APART, PLACING, *PLACINGS)
    return setting


class Expected(NamedTuple, Generic[S, P]):
    """What an E-step leaves.

    Parameters
    ----------
    value : float
        The penalised free energy; NaN where the E-step draws samples.
    statistics : array or NamedTuple of arrays
        The expected statistics of the rows, all that the M-step asks for.
    posterior : array or NamedTuple of arrays
        Where the next E-step goes on from.
    """

    value: float
    statistics: S
    posterior: P


class EMState(NamedTuple, Generic[S, P, M]):
    """EM between two steps.

    Parameters
    ----------
    theta : ndarray
        The parameters.
    memory : NamedTuple or tuple
        What the M-step remembers.
    expected : Expected
        The last E-step.
    n_e_steps : int
        Number of E-steps so far; before the first one there are no statistics.
    rounds : LastRounds
        The last steps, from which the next are extrapolated.
    carried : bool
        Whether the statistics are those of earlier rows and these, of which no more than an M-step is to be made.
    """

    theta: Floats
    memory: M
    expected: Expected[S, P]
    n_e_steps: int
    rounds: LastRounds
    carried: bool = False


class EMSteps(ABC, Generic[S, P, M]):
    """The E-step and the M-step of a family bound to rows."""

    # The name of the learner.
    learner_name: ClassVar[str] = "em"

    @abstractmethod
    def start(self, key: Key, theta: Floats) -> EMState[S, P, M]:
        """Return the state at the start, before or after its E-step."""

    @abstractmethod
    def e_step(self, theta: Floats, before: Expected[S, P], memory: M) -> Expected[S, P]:
        """Return the expected statistics of the rows."""

    @abstractmethod
    def m_step(self, theta: Floats, expected: Expected[S, P], memory: M) -> tuple[Floats, M]:
        """Return the parameters that lower the free energy at fixed statistics."""

    @abstractmethod
    def judge(self, before: EMState[S, P, M], after: EMState[S, P, M]) -> tuple[EMState[S, P, M], StepInfo]:
        """Return the better of two states, and what the step between them did."""

    @abstractmethod
    def model(self, theta: Floats, memory: M) -> Model[Family]:
        """Return the model as users know it."""

    def joined(self, state: EMState[S, P, M]) -> Expected[S, P]:
        """Return the statistics of a state of other rows and of these together; refuse where they do not add."""
        raise ArgumentError("needs all rows at once", argument="learner", value=self.learner_name)

    def handover(self, state: EMState[S, P, M]) -> EMState[S, P, M] | None:
        """Return what of a state `joined` takes."""
        return None


class EMFit(Fit[EMState[S, P, M]], Generic[S, P, M]):
    """EM steps in turn; where `accelerated`, the last ones are extrapolated if that lowers the value further.

    Entries of theta that the L1 penalty `l1` holds at zero stay there.
    """

    def __init__(
        self, steps: EMSteps[S, P, M], theta: Floats, accelerated: bool = False, l1: Floats | float = 0.0
    ) -> None:
        self.steps, self.theta, self.accelerated, self.l1 = steps, theta, accelerated, np.asarray(l1)

    def init(self, key: Key, theta: Floats | None = None) -> tuple[EMState[S, P, M], StepInfo]:
        """Return the state before the first step."""
        return self.steps.start(key, self.theta if theta is None else theta), StepInfo()

    def step(self, state: EMState[S, P, M]) -> tuple[EMState[S, P, M], StepInfo]:
        """Take an M-step by the statistics there are, and an E-step."""
        theta, memory = state.theta, state.memory
        if state.n_e_steps:
            theta, memory = self.steps.m_step(theta, state.expected, memory)
        after = state._replace(theta=theta, memory=memory, carried=False)
        if not state.carried:
            expected = self.steps.e_step(theta, state.expected, memory)
            after = after._replace(expected=expected, n_e_steps=state.n_e_steps + 1)
        if self.accelerated:
            after = self._extrapolated(state, after)
        return self.steps.judge(state, after)

    def _extrapolated(self, before: EMState[S, P, M], after: EMState[S, P, M]) -> EMState[S, P, M]:
        """Return where the last steps would end, if that lowers the value; else the plain step without their memory."""
        rounds = before.rounds.added(before.theta, after.theta)
        after = after._replace(rounds=rounds)
        if rounds.is_first or np.isnan(after.expected.value):
            return after
        theta, n_e_steps = rounds.end(after.theta, self.l1), after.n_e_steps + 1
        expected = self.steps.e_step(theta, after.expected, after.memory)
        if expected.value < after.expected.value:
            return after._replace(theta=theta, expected=expected, n_e_steps=n_e_steps)
        return after._replace(rounds=rounds.last(), n_e_steps=n_e_steps)

    def model(self, state: EMState[S, P, M]) -> Model[Family]:
        """Return the model at a state."""
        return self.steps.model(state.theta, state.memory)

    def carry(self, state: EMState[S, P, M]) -> EMState[S, P, M]:
        """Return a state of other rows with the statistics of these added, by its parameters; a step learns from all.

        That is incremental EM in one pass over rows that come in chunks.
        """
        expected = self.steps.joined(state)
        return state._replace(expected=expected, n_e_steps=state.n_e_steps + 1, carried=True)

    def handover(self, state: EMState[S, P, M]) -> EMState[S, P, M] | None:
        """Return the state at the end of a fit, where `carry` takes it."""
        return self.steps.handover(state)


class ComponentFits(Protocol):
    """How the models of classes are fitted to rows, and their rows scored."""

    def table(self, states: States, missing: Mask | None) -> Tensor:
        """Return rows as both others take them."""

    def fit(self, a: int, rows: Tensor | Rows, weights: Floats | None = None) -> tuple[Model[Family], float]:
        """Return the model of a class, fitted to a table with weights or to `Rows` that are not here, and log Z."""

    def log_densities(self, model: Model[Family], log_partition: float, table: Tensor) -> Floats:
        """Return the log-density of each row."""


def mixture_steps(
    family: Family,
    data: Rows,
    hard: bool = False,
    placing: str = FAR_APART,
    components: ComponentFits | None = None,
) -> ExponentialSteps[ExponentialMixtureFamily[NamedTuple], tuple[()]]:
    """Bind both steps of a mixture to rows; mixtures of models of any family need `components`."""
    steps: ExponentialSteps[ExponentialMixtureFamily[NamedTuple], tuple[()]]
    steps = EM_STEPS.of(family)(family, data, hard, placing, components)
    return steps


@LEARNERS.register("em")
@declared(frozen=True)
class EM(WithPrior):
    """Generalised EM: in every step a few quasi-Newton steps on the expected complete-data likelihood, then an E-step.

    Each step lowers the penalised negative log-likelihood (or, with ``clamped="mean-field"``, the free energy, an upper
    bound on it), which is the value that is reported. Plain EM is slow where much is hidden; so the last steps are
    extrapolated to where they would end (Anderson's acceleration), and the extrapolation is taken where it lowers the
    value further than the plain step. ``"mle"`` climbs the same function. Hidden units need a start that is not
    symmetric in them: see `break_symmetry`.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = [[1, 1], [1, 1], [-1, -1], [1, -1], [-1, 1], [float("nan"), 1], [-1, float("nan")]]
    >>> data = gb.Dataset.read(rows, coding="spin")
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> result = gb.learning.run(gb.learning.EM(), model, data, np.random.default_rng(0))
    >>> best = gb.learning.run(gb.learning.as_learner("mle"), model, data, np.random.default_rng(0))
    >>> result.converged, bool(np.allclose(result.model.theta, best.model.theta, atol=1e-4))
    (True, True)
    >>> bool((np.diff(result.trace.column("value")) <= 1e-12).all())
    True

    References
    ----------
    R. M. Neal and G. E. Hinton, "A view of the EM algorithm that justifies incremental, sparse, and other variants",
    Learning in Graphical Models (1998).
    B. Delyon, M. Lavielle and E. Moulines, "Convergence of a stochastic approximation version of the EM algorithm",
    Annals of Statistics 27 (1999).
    N. C. Henderson and R. Varadhan, "Damped Anderson acceleration with restarts and monotonicity control for
    accelerating EM and EM-like algorithms", Journal of Computational and Graphical Statistics 28 (2019).
    """

    requires = (ExponentialFamily, Mixture)
    # What is lowered, by way of the free energy.
    objective: ClassVar[Likelihood] = Likelihood()

    clamped: Expectation[object] | str | None = positional(
        kw_only=False, default=free(None, CLAMPED_HELP, doc="Expectation, str or None")
    )
    m_steps: int = whole(3, "Quasi-Newton steps in each M-step.", least=1)
    max_seconds: float = number(10.0, "Refuse when the exact free phase is predicted to take longer.", above=0)
    accelerated: bool = flag(
        True,
        "Whether to extrapolate, at the price of one more evaluation a step. E-steps that draw samples have no value "
        "to judge it by, and make plain steps.",
    )
    assignment: str = choice(
        "soft",
        "For models of classes: 'soft' weighs a row by the probabilities of its classes, 'hard' gives it to the "
        "likeliest (k-means).",
        "soft",
        "hard",
    )
    placing: str = placing_setting()
    components: ComponentFits | None = free(
        None,
        "How the models of classes of any family are fitted and their rows scored.",
        doc="ComponentFits, optional",
        flag=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clamped is not None:
            self._settle(clamped=as_expectation(self.clamped, "clamped"))

    def bind(self, model: Model[Family], data: Dataset) -> Fit[MachineState] | Fit[MixtureState]:
        """Bind both steps to the rows."""
        if not keeps(model.family, Mixture):
            machine = MachineSteps(self, model, data)
            return EMFit(machine, model.theta, self.accelerated, machine.l1)
        if self.log_prior is not None:
            raise ArgumentError("is of machines, not of classes", "leave it out", argument="log_prior")
        hard = self.assignment == "hard"
        return EMFit(mixture_steps(model.family, data, hard, self.placing, self.components), model.theta)

    def by_chunks(self, batch_size: int) -> EM:
        """Refuse minibatches, which are for machines, whose EM needs all rows; mixtures take whole chunks."""
        raise self.needs_all_rows()

    def equations(self, model: Model[Family], data: Dataset, max_seconds: float = 60.0) -> Equations:
        """Return the likelihood equations, which a fit ends at."""
        from gibbsian.learning.class_equations import class_equations
        from gibbsian.learning.descend import Descend

        if self.assignment == "hard" or self.clamped is not None:
            how = "hard assignments" if self.assignment == "hard" else "a clamped phase of its own"
            raise ArgumentError(
                f"EM with {how} does not end at a maximum of the likelihood", "use `gibbsian.uncertainty.bootstrap`"
            )
        family = model.family
        if isinstance(family, MixtureFamily):
            return class_equations(Model(family, model.theta), data, max_seconds)
        likelihood = Descend(self.objective, l1=self.l1, l2=self.l2, log_prior=self.log_prior)
        assert keeps(family, DiscreteFamily)
        return likelihood.equations(Model(family, model.theta), data, max_seconds)


# -- machines ---------------------------------------------------------------------------------------------------------
class MachinePosterior(NamedTuple):
    """Both phases at the parameters.

    Parameters
    ----------
    free : ndarray
        Expected statistics of the model.
    log_partition : float
        log Z.
    gap, variance : ndarray
        The gradient, expected statistics of the model less those of the rows, averaged over the E-steps where these
        draw samples, and its variance.
    n : int
        Number of E-steps so far.
    clamped : object
        State of the clamped expectation.
    """

    free: Floats
    log_partition: float
    gap: Floats
    variance: Floats
    n: int
    clamped: object


class MachineMemory(NamedTuple):
    """Moves and gradient changes of the quasi-Newton steps, and the number of their evaluations.

    The curvature of the M-step does not depend on Q, so it serves them all.
    """

    moves: Floats
    changes: Floats
    evaluations: int


MachineExpected = Expected[Floats, MachinePosterior]
MachineState = EMState[Floats, MachinePosterior, MachineMemory]
MixtureState = EMState[ClassSums, tuple[()], Frame]


class MachineSteps(EMSteps[Floats, MachinePosterior, MachineMemory]):
    """Both steps of a machine with hidden units or missing cells: expectations, and quasi-Newton steps between them."""

    def __init__(self, learner: EM, start: Model[Family], data: Dataset):
        self.learner, self.data, self.family = learner, data, start.family
        assert keeps(start.family, ExponentialFamily)
        self.clamped = bind_clamped(learner.clamped, Model(start.family, start.theta), data)
        self.engine = plan_exact(start.family, max_seconds=learner.max_seconds)
        self.l1, self.smooth = learner._l1_of(start, data), learner._smooth_of(start, data)

    def start(self, key: Key, theta: Floats) -> MachineState:
        """Take both expectations at the start."""
        clamped = self.clamped.init(theta, key)
        zeros, nothing = np.zeros_like(theta), np.empty((0, theta.size))
        memory = MachineMemory(nothing, nothing, 0)
        before = Expected(float("nan"), zeros, MachinePosterior(zeros, float("nan"), zeros, zeros, 0, clamped))
        return EMState(theta, memory, self.e_step(theta, before, memory), 1, LastRounds.none(theta))

    def e_step(self, theta: Floats, before: MachineExpected, memory: MachineMemory) -> MachineExpected:
        """Take the free phase and the clamped one, which goes on from where it was; average what is sampled."""
        last, answers = before.posterior, self.engine.at(theta)
        estimate, clamped = self.clamped(theta, last.clamped)
        weight = FORGETTING / (FORGETTING + last.n) if estimate.monte_carlo_error.any() else 1.0
        gap = (1 - weight) * last.gap + weight * (answers.moments - estimate.value)
        variance = (1 - weight) ** 2 * last.variance + weight**2 * estimate.monte_carlo_error**2
        fit = answers.log_partition - float(estimate.parts.get("log_partition", "nan"))
        return Expected(
            fit + self.smooth(theta)[0] + penalty(theta, self.l1),
            (1 - weight) * before.statistics + weight * estimate.value,
            MachinePosterior(answers.moments, answers.log_partition, gap, variance, last.n + 1, clamped),
        )

    def complete_data_loss(self, theta: Floats, statistics: Floats) -> tuple[float, Floats]:
        """Return ``log Z - theta . statistics`` and its gradient: what an M-step goes down, without penalties."""
        answers = self.engine.at(theta)
        return answers.log_partition - float(theta @ statistics), answers.moments - statistics

    def m_step(self, theta: Floats, expected: MachineExpected, memory: MachineMemory) -> tuple[Floats, MachineMemory]:
        """Take a few steps down the loss of complete data and the penalties, none of which goes up."""
        statistics, last = expected.statistics, expected.posterior
        more, slope = self.smooth(theta)
        value = float(last.log_partition - theta @ statistics) + more + penalty(theta, self.l1)
        state = LBFGSState(
            theta, last.free - statistics + slope, value, memory.evaluations, memory.moves, memory.changes
        )
        function = self.smooth.added_to(lambda theta: self.complete_data_loss(theta, statistics))
        for _ in range(self.learner.m_steps):
            state, info = LBFGS().step(function, state, self.l1)
            if info.outcome is not None:
                break
        return state.theta, MachineMemory(state.moves, state.changes, state.evaluations)

    def judge(self, before: MachineState, after: MachineState) -> tuple[MachineState, StepInfo]:
        """Return the state after the step; the gradient decides about its end."""
        theta, (value, _, now) = after.theta, after.expected
        norm = gradient_norm(theta, now.gap + self.smooth(theta)[1], self.l1)
        noise = float(np.sqrt(now.variance.max(initial=0.0))) if now.n > MIN_SAMPLED_STEPS else 0.0
        moved = float(np.abs(theta - before.theta).max(initial=0.0))
        # samples have no value, and another E-step may move them
        outcome = ROUNDED if moved == 0 and value >= before.expected.value else None
        return after, StepInfo(value, norm, moved, after.memory.evaluations + after.n_e_steps, noise, outcome)

    def model(self, theta: Floats, memory: MachineMemory) -> Model[Family]:
        """Return the model."""
        return Model(self.family, theta)
