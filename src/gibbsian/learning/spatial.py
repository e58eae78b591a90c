"""Learning by spatial Monte Carlo integration: over the data themselves (Y18) or over chains that leave them (YU20)."""

from __future__ import annotations

from gibbsian.expectations import Expectation, Spatial, SpatialChains
from gibbsian.expectations.in_spins import InSpins
from gibbsian.learning.base import LEARNERS, Learner
from gibbsian.learning.contrastive_divergence import ChainRecipe
from gibbsian.learning.moment_matching import CENTRED, MomentMatching, Runaway
from gibbsian.learning.optimizers import Anderson, GradientStep
from gibbsian.learning.recipe import Recipe, as_optimizer
from gibbsian.settings import declared, flag, free, whole

# Over a fixed sample the equations are without noise but the gradient of nothing, so a root finder solves them.
SOLVER = Anderson(learning_rate=1.0)
# Where there is a solution the solver takes some ten steps on sparse graphs and up to two hundred on dense ones.
PATIENCE = 500
REMEDY = (
    "with the data as samples this happens on dense graphs, for few rows and for strong couplings; "
    "use `learner='smci-pcd'`, or a penalty `l2=0.01`"
)
REGION = (
    "What is summed over exactly around each statistic: an order k (1-SMCI, 2-SMCI, ...), 's2', 'forest', 'planar', or "
    "any region (see `gibbsian.expectations.plan_regions`)."
)
REGION_TYPE = "int, str, callable, mapping or rule, or list of these"
COPIES = "Chains for each row, e in YU20."


@LEARNERS.register("smci")
@declared(frozen=True)
class SMCI(Recipe):
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

    optimizer: GradientStep | str = free(
        SOLVER,
        "How to solve the equations. The default takes about ten evaluations where plain ascent, `Ascent(0.2)` with "
        "`centred=False` as in Y18, takes a hundred.",
        doc="GradientStep or str",
    )
    centred: bool = flag(True, CENTRED)
    region: object = free(1, REGION, doc=REGION_TYPE)

    def build(self) -> Learner:
        """Match the moments; a solver that needs few steps is given up when it does not settle."""
        solver = as_optimizer(self.optimizer)
        runaway = Runaway(REMEDY, patience=PATIENCE if isinstance(solver, Anderson) else None)
        expectation = InSpins(Spatial(region=self.region))
        return MomentMatching(
            expectation=expectation, optimizer=solver, centred=self.centred, runaway=runaway, **self.penalties._asdict()
        )


@LEARNERS.register("smci-pcd", consistent=False, stochastic=True)
@declared(frozen=True)
class SpatialPCD(ChainRecipe):
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

    copies: int = whole(5, COPIES, least=1)
    region: object = free(1, REGION, doc=REGION_TYPE)

    def chains(self) -> Expectation:
        """Return the expectation over the chains, taken in spins."""
        return InSpins(
            SpatialChains(region=self.region, copies=self.copies, n_steps=self.n_steps, sampler=self.sampler)
        )
