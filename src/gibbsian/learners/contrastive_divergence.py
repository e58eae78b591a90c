"""Contrastive divergence and its persistent form: moment matching with short runs of Markov chains."""

from __future__ import annotations

from gibbsian.expectations import Expectation
from gibbsian.expectations.contrastive import PersistentChains, RestartedChains
from gibbsian.learners.base import LEARNERS
from gibbsian.learners.moment_matching import MomentMatching
from gibbsian.optimizers import GradientStep
from gibbsian.samplers import Sampler


@LEARNERS.register("cd", consistent=False, stochastic=True)
def contrastive_divergence(
    optimizer: GradientStep | str | None = None,
    l1: float = 0.0,
    l2: float = 0.0,
    n_sweeps: int = 1,
    sampler: str | Sampler = "gibbs",
    n_chains: int | None = None,
    average: bool = True,
    min_steps: int = 100,
    centred: bool = True,
    clamped: Expectation | str | None = None,
) -> MomentMatching:
    """Return contrastive divergence, CD-k (Hinton 2002): chains restart at the data in every step.

    With one update of one random variable the expected step is that of pseudolikelihood (H06 section 5). With whole
    sweeps it ends elsewhere than the likelihood does, nearer the more sweeps there are; data from the model
    itself give the truth in the limit of many rows.

    Parameters
    ----------
    optimizer : GradientStep or str, optional
        How to move; by default Adam at a rate of at most 0.05 that falls with the number of interactions of a variable.
    l1, l2 : float
        Penalties, as for `ObjectiveLearner`.
    n_sweeps : int
        The k of CD-k.
    sampler : str or Sampler
        Scan order: ``"gibbs"``, ``"random-scan"`` or ``"chromatic"``.
    n_chains : int, optional
        About how many chains; by default one for each row. Every distinct row starts one at least.
    average, min_steps, centred
        When a noisy fit ends, and in which parameters it moves, as for `MomentMatching`.
    clamped : Expectation or str, optional
        How missing cells and hidden units are summed out, as for `MomentMatching`.

    Examples
    --------
    >>> import gibbsian as gb
    >>> data = gb.datasets.load_house_votes().complete_rows()
    >>> gb.BoltzmannMachine(learner="cd", l2=0.01, random_state=0).fit(data).result_.reason
    'converged after ... steps to within Monte Carlo noise: gradient ..., noise ...'
    """
    chains = RestartedChains(n_sweeps, sampler, n_chains)
    return MomentMatching(chains, optimizer, l1, l2, average, min_steps, centred, clamped=clamped)


@LEARNERS.register("pcd", consistent=False, stochastic=True)
def persistent_contrastive_divergence(
    optimizer: GradientStep | str | None = None,
    l1: float = 0.0,
    l2: float = 0.0,
    n_chains: int = 500,
    n_sweeps: int = 1,
    sampler: str | Sampler = "gibbs",
    average: bool = True,
    min_steps: int = 100,
    centred: bool = True,
    clamped: Expectation | str | None = None,
) -> MomentMatching:
    """Return persistent contrastive divergence, PCD-k (Tieleman 2008): chains go on from step to step.

    It ends at the maximum of the likelihood up to Monte Carlo noise, provided that the chains keep up with the
    parameters: slow ones need a smaller rate, a faster decay or more sweeps.

    Parameters
    ----------
    optimizer : GradientStep or str, optional
        How to move; by default Adam at a rate of at most 0.05 that falls with the number of interactions of a variable.
    l1, l2 : float
        Penalties, as for `ObjectiveLearner`.
    n_chains : int
        Number of chains; the noise falls with the square root.
    n_sweeps : int
        Sweeps in each step, the k of PCD-k.
    sampler : str or Sampler
        Name of a registered sampler, or a sampler.
    average, min_steps, centred
        When a noisy fit ends, and in which parameters it moves, as for `MomentMatching`.
    clamped : Expectation or str, optional
        How missing cells and hidden units are summed out, as for `MomentMatching`.

    Notes
    -----
    BM-PCD of TA22 section 3.3 has 100 chains of length 10,000 and the rate 0.01; with one sweep a step that is
    ``persistent_contrastive_divergence(Ascent(rate=0.01), n_chains=100, average=False, centred=False)`` with
    ``max_iter=10_000``.

    Examples
    --------
    >>> import gibbsian as gb
    >>> rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]] * 100
    >>> bm = gb.BoltzmannMachine(learner="pcd", random_state=0).fit(rows)
    >>> bm.result_.converged, bool(abs(bm.expect().mean - 0.2).max() < 0.05)     # the data's moments are 0.2
    (True, True)
    """
    chains = PersistentChains(n_chains, n_sweeps, sampler)
    return MomentMatching(chains, optimizer, l1, l2, average, min_steps, centred, clamped=clamped)
