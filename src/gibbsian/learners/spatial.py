"""Learning by spatial Monte Carlo integration: over the data themselves (Y18) or over chains that leave them (YU20)."""

from __future__ import annotations

from typing import Any

from gibbsian.expectations import Expectation, Spatial, SpatialChains
from gibbsian.expectations.in_spins import InSpins
from gibbsian.learners.base import LEARNERS
from gibbsian.learners.moment_matching import MomentMatching, Runaway
from gibbsian.optimizers import OPTIMIZERS, Anderson, GradientStep
from gibbsian.samplers import Sampler

# Over a fixed sample the equations are without noise but the gradient of nothing, so a root finder solves them.
SOLVER = Anderson(rate=1.0)
# Where there is a solution the solver takes some ten steps on sparse graphs and up to two hundred on dense ones.
PATIENCE = 500
REMEDY = (
    "with the data as samples this happens on dense graphs, for few rows and for strong couplings; "
    "use learner='smci-pcd', or a penalty l2=0.01"
)


@LEARNERS.register("smci")
def spatial_matching(
    optimizer: GradientStep | str = SOLVER,
    l1: float = 0.0,
    l2: float = 0.0,
    region: Any = 1,
    centred: bool = True,
) -> MomentMatching:
    """Return moment matching by generalised SMCI with the data as samples (Y18 section 4; "fix" in YU20 section 5).

    Deterministic, and consistent: where the data have the law of a model of this kind, it is the solution. In the
    papers' settings it is several times nearer the maximum of the likelihood than pseudolikelihood (Y18 theorem 1
    compares their variances). On dense graphs, with few rows or strong couplings, it can be worse, have
    several solutions, or run away, which is said; `spatial_persistent` does not.

    Parameters
    ----------
    optimizer : GradientStep or str
        How to solve the equations. The default takes about ten evaluations where plain ascent, ``Ascent(rate=0.2)``
        with ``centred=False`` as in Y18, takes a hundred.
    l1, l2 : float
        Penalties, as for `ObjectiveLearner`.
    region : int, str, callable, mapping or rule, or list of these
        What is summed over exactly around each statistic: an order k, ``"s2"``, ``"forest"``, or any region (see
        `gibbsian.expectations.plan_regions`).
    centred : bool
        As for `MomentMatching`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1, -1], [1, -1, 1], [-1, -1, 1], [-1, 1, 1], [1, 1, 1], [-1, -1, -1]]
    >>> learner = gb.learners.as_learner("smci", region="forest", l2=0.01)
    >>> gb.BoltzmannMachine("chain", learner=learner).fit(rows).result_.converged
    True
    """
    solver = OPTIMIZERS.create(optimizer) if isinstance(optimizer, str) else optimizer
    patience = PATIENCE if isinstance(solver, Anderson) else None
    runaway = Runaway(REMEDY, patience=patience)
    return MomentMatching(InSpins(Spatial(region)), solver, l1, l2, centred=centred, runaway=runaway)


@LEARNERS.register("1-smci")
def first_order(
    optimizer: GradientStep | str = SOLVER, l1: float = 0.0, l2: float = 0.0, centred: bool = True
) -> MomentMatching:
    """Return 1-SMCI learning (Y18 section 4): see `spatial_matching`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="1-smci").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """
    return spatial_matching(optimizer, l1, l2, 1, centred)


@LEARNERS.register("s2-smci")
def semi_second_order(
    optimizer: GradientStep | str = SOLVER, l1: float = 0.0, l2: float = 0.0, centred: bool = True
) -> MomentMatching:
    """Return s2-SMCI learning (YU20 sections 4.1 and 5): see `spatial_matching`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> gb.BoltzmannMachine(learner="s2-smci").fit([[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]).result_.converged
    True
    """
    return spatial_matching(optimizer, l1, l2, "s2", centred)


@LEARNERS.register("smci-pcd", consistent=False, stochastic=True)
def spatial_persistent(
    optimizer: GradientStep | str | None = None,
    l1: float = 0.0,
    l2: float = 0.0,
    region: Any = 1,
    copies: int = 5,
    n_sweeps: int = 1,
    sampler: str | Sampler = "gibbs",
    average: bool = True,
    min_steps: int = 100,
    centred: bool = True,
    clamped: Expectation | str | None = None,
) -> MomentMatching:
    """Return SMCI+PCD (YU20 Algorithm 2): persistent chains, started at copies of the data, are the samples.

    It ends at the maximum of the likelihood up to Monte Carlo noise, which is far smaller than that of plain PCD with
    as many chains, also where the graph is not that of the data.

    Parameters
    ----------
    optimizer : GradientStep or str, optional
        How to move; by default as for `persistent_contrastive_divergence`.
    l1, l2 : float
        Penalties, as for `ObjectiveLearner`.
    region : int, str, callable, mapping or rule, or list of these
        As for `spatial_matching`.
    copies : int
        Chains for each row, e in YU20.
    n_sweeps : int
        Sweeps in each step, kappa in YU20.
    sampler : str or Sampler
        Name of a registered sampler, or a sampler.
    average, min_steps, centred
        When a noisy fit ends, and in which parameters it moves, as for `MomentMatching`.
    clamped : Expectation or str, optional
        How missing cells and hidden units are summed out, as for `MomentMatching`.

    Notes
    -----
    The paper's own steps are ``spatial_persistent(Ascent(rate=0.02), average=False, centred=False)``.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]] * 20
    >>> bm = gb.BoltzmannMachine(learner="smci-pcd", random_state=0).fit(rows)
    >>> bool(abs(bm.expect().mean - 0.2).max() < 0.02)                            # the data's moments are 0.2
    True
    """
    chains = InSpins(SpatialChains(region, copies, n_sweeps, sampler))
    return MomentMatching(chains, optimizer, l1, l2, average, min_steps, centred, clamped=clamped)


@LEARNERS.register("s2-smci-pcd", consistent=False, stochastic=True)
def semi_second_order_persistent(
    optimizer: GradientStep | str | None = None,
    l1: float = 0.0,
    l2: float = 0.0,
    copies: int = 5,
    n_sweeps: int = 1,
    sampler: str | Sampler = "gibbs",
    average: bool = True,
    min_steps: int = 100,
    centred: bool = True,
    clamped: Expectation | str | None = None,
) -> MomentMatching:
    """Return SMCI+PCD with the regions of s2-SMCI: see `spatial_persistent`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]] * 20
    >>> bm = gb.BoltzmannMachine(learner="s2-smci-pcd", random_state=0).fit(rows)
    >>> bool(abs(bm.expect().mean - 0.2).max() < 0.02)                            # the data's moments are 0.2
    True
    """
    return spatial_persistent(optimizer, l1, l2, "s2", copies, n_sweeps, sampler, average, min_steps, centred, clamped)
