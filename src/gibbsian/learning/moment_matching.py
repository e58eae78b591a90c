"""Learning by matching moments: steps along the difference of both phases, each expectation taken in any way.

Contrastive divergence and its persistent form take the model's moments by short runs of Markov chains, SMCI by spatial
Monte Carlo integration over the data themselves (Y18) or over chains that leave them (YU20).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np

from gibbsian.arrays import Floats
from gibbsian.data.rows import Rows
from gibbsian.diagnostics.moments import moment_errors
from gibbsian.errors import ArgumentError, MissingValuesError
from gibbsian.expectations import (
    Expectation,
    FixedSamples,
    ListedCompletions,
    PersistentChains,
    RestartedChains,
    Sampled,
    as_expectation,
)
from gibbsian.expectations.imputation import shrunk_means
from gibbsian.learning.base import LEARNERS
from gibbsian.learning.completing import are_few, require_shown
from gibbsian.learning.descend import Descent
from gibbsian.learning.objectives.centring import LinearMap
from gibbsian.learning.optimizers import Adam, Anderson, Ascent, Decay, Failed, GradientStep, StepInfo
from gibbsian.learning.phases import bind_phases
from gibbsian.learning.preconditioners import preconditioning
from gibbsian.learning.recipe import CLAMPED_HELP, WithPrior, as_optimizer
from gibbsian.models.base import DiscreteFamily, Family, Model
from gibbsian.models.ising import is_ising
from gibbsian.sampling import Transition
from gibbsian.settings import declared, flag, free, positional, whole

# Steps on one chunk of rows; Adam forgets the first ones within some chunks.
STEPS_PER_CHUNK = 10
OPTIMIZER = (
    "How to move; None is Adam at a rate of at most 0.05 that falls with the number of interactions of a variable."
)
AVERAGE = "Whether the answer is the mean of the parameters over the steps, late ones counting more (Polyak)."
MIN_ITER = "Steps before a fit may end within its Monte Carlo noise; more give a finer answer."
CENTRED = "Make the steps in parameters about the mean of the data, where couplings do not drag biases along."
SAMPLER = "Scan order: 'gibbs', 'random-scan' or 'chromatic', or a transition."
REGION = (
    "What is summed over exactly around each statistic: an order k (1-SMCI, 2-SMCI, ...), 's2', 'forest', 'planar', or "
    "any region (see `gibbsian.expectations.plan_regions`)."
)
REGION_TYPE = "int, str, callable, mapping or rule, or list of these"
# Parameters have unequal curvatures, and noise must fade: Adam with a Robbins-Monro rate. Chains have more noise than
# minibatches: on the house votes they settle sooner if it fades sooner.
OF_CHAINS = Adam(learning_rate=0.05, decay=Decay(power=0.75, delay=50))
# What the parameters around a variable may move in one step, all together. Two synthetic tables of 60 columns, learned
# with 10 hidden units (35 interactions a variable), ended lower at the rate 0.05 than at 0.03 or less, at times by
# nats; complete graphs of 100 variables fared as well at 0.01 as at 0.05. A tuned rate may still be better.
MAX_FIELD = 1.0
# Over a fixed sample the equations are without noise but not the gradient of any function: a root finder solves them.
SOLVER = Anderson(learning_rate=1.0)
# Where there is a solution the solver takes some ten steps on sparse graphs and up to two hundred on dense ones.
PATIENCE = 500


@dataclass(frozen=True)
class DivergenceCheck:
    """Gives up on equations that seem to have no solution: parameters grow beyond reason, or steps never settle.

    Parameters
    ----------
    remedy : str
        What to do instead.
    largest : float
        Size of a parameter that ends the fit.
    patience : int, optional
        Steps after which a solver that needs few is given up; by default only ``max_iter`` ends it.
    """

    remedy: str
    largest: float = 20.0
    patience: int | None = None

    def __call__(self, info: StepInfo, theta: Floats, n_steps: int) -> StepInfo:
        """Return a step whose outcome is that the fit cannot succeed, where it cannot."""
        size, stopped = float(np.abs(theta).max(initial=0.0)), f"stopped after {n_steps} steps"
        if not size <= self.largest:
            why = f"{stopped}, a parameter has run away to {size:.3g}, so the equations have no solution nearby"
            return info._replace(outcome=Failed(why, self.remedy))
        if self.patience is not None and n_steps >= self.patience:
            why = f"{stopped} that do not settle, so the equations have no good solution"
            return info._replace(outcome=Failed(why, self.remedy))
        return info


@declared(frozen=True)
class PhaseLearner(WithPrior):
    """Steps along the difference of both phases; a subclass says how the free one is taken."""

    optimizer: GradientStep[Any] | str | None = free(None, OPTIMIZER, doc="GradientStep, str or None")
    average: bool = flag(True, AVERAGE)
    min_iter: int = whole(100, MIN_ITER, least=1)
    centred: bool = flag(True, CENTRED)
    clamped: Expectation[Any] | str | None = free(None, CLAMPED_HELP, doc="Expectation, str or None")

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle(optimizer=as_gradient_step(self.optimizer))
        if self.clamped is not None:
            self._settle(clamped=as_expectation(self.clamped, "clamped"))

    @property
    def free_phase(self) -> Expectation[Any]:
        """How the model's statistics are taken."""
        raise NotImplementedError

    @property
    def divergence(self) -> DivergenceCheck | None:
        """When to give up because the parameters grow without end."""
        return None

    def bind(self, model: Model[Any], data: Any) -> Descent[Any, Any]:
        """Bind both phases to a model and rows."""
        known, l1 = preconditioning(model.family), bool(self._l1_of(model, data).any())
        assert not isinstance(self.optimizer, str)  # names are settled
        return Descent(
            from_independent(model, data) if self.optimizer is None else model,
            data,
            bind_phases(model, data, self.free_phase, self.clamped),
            paced_adam(model) if self.optimizer is None else self.optimizer,
            cache(partial(self._penalties, model, data)),  # the same in all steps on these rows
            partial(known.centred, l1=l1) if self.centred else lambda means: LinearMap(np.ones(model.theta.size)),
            average=self.average,
            min_steps=self.min_iter,
            data_error=moment_errors(model, data),
            check=self.divergence,
            steps_per_chunk=STEPS_PER_CHUNK,
        )


@declared(frozen=True)
class MomentMatching(PhaseLearner):
    """Steps along the gradient of the likelihood, with the model's expectation taken in any way.

    Sampled moments make noisy steps that never come to rest. With ``average=True`` the answer is the running mean of
    the parameters (Polyak), the gradient is averaged in the same way, and from `min_iter` on the fit ends when no
    entry of that mean is larger than two of its Monte Carlo standard errors: the moments agree as far as the samples
    can tell. The errors count samples that repeat each other, as those of persistent chains do, for fewer. Chains that
    are slow still may end after 500 steps, when no moment is further off than half the standard error of the data's.

    Examples
    --------
    >>> import gibbsian as gb
    >>> learner = gb.learning.MomentMatching("exact", optimizer=gb.learning.optimizers.Ascent(learning_rate=0.5))
    >>> bm = gb.BoltzmannMachine(learner=learner, tol=1e-5).fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]])
    >>> bm.expect().value.round(4).tolist()                            # the data's own moments
    [0.2, 0.2, 0.2]
    """

    expectation: Expectation[Any] | str = positional(
        kw_only=False, default=free("exact", "How the model's statistics are computed.", doc="Expectation or str")
    )
    optimizer: GradientStep[Any] | str | None = free(
        Ascent(),
        "How to move: 'ascent', 'adam', 'anderson' (for expectations without noise), or one with its own settings; "
        "None is Adam at a rate that suits the model. Line searches (L-BFGS) have no value to search along.",
        doc="GradientStep, str or None",
    )
    average: bool = flag(False, AVERAGE)
    centred: bool = flag(False, CENTRED)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._settle(expectation=as_expectation(self.expectation, needs_starts=True))

    @property
    def free_phase(self) -> Expectation[Any]:
        """How the model's statistics are taken."""
        assert not isinstance(self.expectation, str)
        return self.expectation


@declared(frozen=True)
class ChainLearner(PhaseLearner):
    """Moment matching over chains."""

    n_steps: int = whole(1, "Sweeps of each chain in every step: the k of CD-k and PCD-k.", least=1)
    sampler: str | Transition = free("gibbs", SAMPLER, doc="str or Transition")


@LEARNERS.register("cd", consistent=False, stochastic=True)
@declared(frozen=True)
class CD(ChainLearner):
    """Contrastive divergence, CD-k (Hinton 2002): chains restart at the data in every step.

    With one update of one random variable the expected step is that of pseudolikelihood (H06 section 5). With whole
    sweeps it ends elsewhere than the likelihood does, nearer the more sweeps there are; data from the model
    itself give the truth in the limit of many rows.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.datasets.load_house_votes().complete_rows()
    >>> gb.BoltzmannMachine(learner="cd", l2=0.01, random_state=0).fit(data).result_.reason
    'converged after ... steps to within Monte Carlo noise: gradient ..., noise ...'
    """

    n_chains: int | None = whole(
        None,
        "About how many chains; by default one for each row. Every distinct row starts one at least.",
        least=2,
        optional=True,
    )
    n_updates: int | None = whole(
        None,
        "Updates of single variables in place of sweeps: one is the step of H06 section 5.",
        least=1,
        optional=True,
    )

    @property
    def free_phase(self) -> Expectation[Any]:
        """Chains that start at the data."""
        return Sampled(
            RestartedChains(
                n_steps=self.n_steps, sampler=self.sampler, n_chains=self.n_chains, n_updates=self.n_updates
            )
        )

    def bind(self, model: Model[Any], data: Rows) -> Descent[Any, Any]:
        """Bind both phases; missing cells are completed by chains, so that there are rows to start at."""
        if data.has_missing and self.clamped is None:
            return replace(self, clamped="pcd").bind(model, data)
        return super().bind(model, data)


@LEARNERS.register("pcd", consistent=False, stochastic=True)
@declared(frozen=True)
class PCD(ChainLearner):
    """Persistent contrastive divergence, PCD-k (Tieleman 2008): chains go on from step to step.

    It ends at the maximum of the likelihood up to Monte Carlo noise, provided that the chains keep up with the
    parameters: slow ones need a smaller rate, a faster decay or more sweeps.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]] * 100
    >>> bm = gb.BoltzmannMachine(learner=gb.learning.PCD(n_chains=500), random_state=0).fit(rows)
    >>> bm.result_.converged, bool(abs(bm.expect().value - 0.2).max() < 0.05)     # the data's moments are 0.2
    (True, True)

    Notes
    -----
    BM-PCD of TA22 section 3.3 has 100 chains of length 10,000 and the rate 0.01; with one sweep a step that is
    ``PCD(optimizer=Ascent(0.01), n_chains=100, average=False, centred=False)`` with ``max_iter=10_000``.
    """

    n_chains: int = whole(500, "Number of chains; the noise falls with the square root.", least=2)

    @property
    def free_phase(self) -> Expectation[Any]:
        """Chains that go on."""
        return Sampled(PersistentChains(n_chains=self.n_chains, n_steps=self.n_steps, sampler=self.sampler))


@LEARNERS.register("smci")
@declared(frozen=True)
class SMCI(PhaseLearner):
    """Moment matching by SMCI with the data as samples (1-SMCI: Y18 section 4; other regions: YU20 section 5, "fix").

    Deterministic, and consistent: where the data come from a model of this kind, it is the solution. In the
    papers' settings it is several times nearer the maximum of the likelihood than pseudolikelihood (Y18 theorem 1
    compares their variances). On dense graphs, with few rows or strong couplings, it can be worse, have
    several solutions, or run away, which is said; `SpatialPCD` does not.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1, -1], [1, -1, 1], [-1, -1, 1], [-1, 1, 1], [1, 1, 1], [-1, -1, -1]]
    >>> learner = gb.learning.SMCI(region="forest", l2=0.01)
    >>> gb.BoltzmannMachine("chain", learner=learner).fit(rows).result_.converged
    True
    """

    optimizer: GradientStep[Any] | str | None = free(
        SOLVER,
        "How to solve the equations. The default takes about ten evaluations where plain ascent, `Ascent(0.2)` with "
        "`centred=False` as in Y18, takes a hundred.",
        doc="GradientStep or str",
    )
    average: bool = flag(False, AVERAGE)
    region: object = free(1, REGION, doc=REGION_TYPE)

    @property
    def free_phase(self) -> Expectation[Any]:
        """SMCI over the rows."""
        return Sampled(FixedSamples(), self.region)

    @property
    def divergence(self) -> DivergenceCheck:
        """Give up where parameters grow, and a solver that needs few steps where it does not settle."""
        remedy = (
            "with the data as samples this happens on dense graphs, for few rows and for strong couplings; "
            "use `learner='smci-pcd'`, or a penalty `l2=0.01`"
        )
        return DivergenceCheck(remedy, patience=PATIENCE if isinstance(self.optimizer, Anderson) else None)

    def bind(self, model: Model[Any], data: Rows) -> Descent[Any, Any]:
        """Bind both phases; every way to complete a row is a sample."""
        if not data.has_missing or self.clamped is not None:
            return super().bind(model, data)
        require_shown(data)
        if not are_few(data):
            raise MissingValuesError(
                "with the data as samples every way to complete the rows is one, and there are too many",
                "learn with `learner='smci-pcd'` or 'pcd', or drop the rows with the most missing cells",
            )
        return replace(self, clamped=ListedCompletions()).bind(model, data)


@LEARNERS.register("smci-pcd", consistent=False, stochastic=True)
@declared(frozen=True)
class SpatialPCD(ChainLearner):
    """SMCI+PCD (YU20 Algorithm 2): persistent chains, started at copies of the data, are the samples.

    It ends at the maximum of the likelihood up to Monte Carlo noise, which is far smaller than that of plain PCD with
    as many chains, also where the graph is not that of the data.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]] * 20
    >>> bm = gb.BoltzmannMachine(learner="smci-pcd", random_state=0).fit(rows)
    >>> bool(abs(bm.expect().value - 0.2).max() < 0.02)                            # the data's moments are 0.2
    True

    Notes
    -----
    The paper's own steps are ``SpatialPCD(optimizer=Ascent(0.02), average=False, centred=False)``.
    """

    copies: int = whole(5, "Chains for each row, e in YU20.", least=1)
    region: object = free(1, REGION, doc=REGION_TYPE)

    @property
    def free_phase(self) -> Expectation[Any]:
        """SMCI over chains."""
        chains = PersistentChains(copies=self.copies, n_steps=self.n_steps, sampler=self.sampler, data_first=True)
        return Sampled(chains, self.region)


def as_gradient_step(optimizer: object) -> GradientStep[Any] | None:
    """Turn a name into an optimiser that moves by a gradient alone; None stays."""
    made = optimizer if optimizer is None else as_optimizer(optimizer)
    if not isinstance(made, GradientStep | None):
        raise ArgumentError(
            "needs the value of an objective, which this learner does not have",
            "use 'ascent', 'adam' or 'anderson'",
            argument="optimizer",
            value=optimizer,
        )
    return made


# -- the rate that suits a model, and where the steps begin ------------------------------------------------------------
def paced_adam(model: Model[DiscreteFamily]) -> Adam:
    """Return Adam at the default rate, lower where variables have more than twenty interactions.

    Adam moves all parameters by about the rate at once, in the first steps all the same way, so that the field on a
    variable moves by the rate times the number of its interactions. Chains do not keep up with fields that jump.
    """
    if is_ising(model.family):
        degrees = model.family.graph.degrees
    else:
        scopes = model.family.scopes
        larger = np.repeat(scopes.sizes > 1, scopes.sizes)
        degrees = np.bincount(scopes.csr[1][larger], minlength=model.n_variables)
    # the mean over the ends of all interactions: hubs count as often as they act
    total = float(degrees.sum())
    around = float(degrees @ degrees) / total if total else 0.0
    return replace(OF_CHAINS, learning_rate=min(OF_CHAINS.learning_rate, MAX_FIELD / max(around, 1.0)))


def from_independent(model: Model[Family], data: Rows) -> Model[Any]:
    """Return the machine of independent columns with the data's means, where learning would begin at zero."""
    if model.theta.any() or model.n_hidden:
        return model
    theta = preconditioning(model.family).independent(shrunk_means(model, data))
    return model if theta is None else model.replace(theta)
