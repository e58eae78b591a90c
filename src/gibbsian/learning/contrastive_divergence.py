"""Contrastive divergence and its persistent form: moment matching with short runs of Markov chains."""

from __future__ import annotations

from gibbsian.expectations import Expectation
from gibbsian.expectations.chains import PersistentChains, RestartedChains
from gibbsian.learning.base import LEARNERS, Learner
from gibbsian.learning.moment_matching import AVERAGE, CENTRED, MIN_ITER, OPTIMIZER, MomentMatching
from gibbsian.learning.optimizers import GradientStep
from gibbsian.learning.recipe import CLAMPED_HELP, Recipe
from gibbsian.old_sampling import Sampler
from gibbsian.settings import declared, flag, free, whole


@declared(frozen=True)
class ChainRecipe(Recipe):
    """Moment matching with an expectation over chains."""

    optimizer: GradientStep | str | None = free(None, OPTIMIZER, doc="GradientStep, str or None")
    n_steps: int = whole(1, "Sweeps of each chain in every step: the k of CD-k and PCD-k.", least=1)
    sampler: str | Sampler = free(
        "gibbs", "Scan order: 'gibbs', 'random-scan' or 'chromatic', or a sampler.", doc="str or Sampler"
    )
    average: bool = flag(True, AVERAGE)
    min_iter: int = whole(100, MIN_ITER, least=1)
    centred: bool = flag(True, CENTRED)
    clamped: Expectation | str | None = free(None, CLAMPED_HELP, doc="Expectation, str or None")

    def chains(self) -> Expectation:
        """Return the expectation of the free phase."""
        raise NotImplementedError

    def build(self) -> Learner:
        """Match the moments of the chains."""
        return MomentMatching(
            expectation=self.chains(),
            optimizer=self.optimizer,
            **self.penalties._asdict(),
            average=self.average,
            min_iter=self.min_iter,
            centred=self.centred,
            clamped=self.clamped,
        )


@LEARNERS.register("cd", consistent=False, stochastic=True)
@declared(frozen=True)
class CD(ChainRecipe):
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

    def chains(self) -> Expectation:
        """Return chains that start at the data."""
        return RestartedChains(n_steps=self.n_steps, sampler=self.sampler, n_chains=self.n_chains)


@LEARNERS.register("pcd", consistent=False, stochastic=True)
@declared(frozen=True)
class PCD(ChainRecipe):
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

    def chains(self) -> Expectation:
        """Return chains that live on."""
        return PersistentChains(n_chains=self.n_chains, n_steps=self.n_steps, sampler=self.sampler)
