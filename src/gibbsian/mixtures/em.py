"""Expectation-maximisation, the loop that every mixture shares (YK15, "BM and EM").

Both steps lower one function, the free energy ``F(Q, theta) = -sum log P(x; theta) + KL(Q || P(class | x; theta))``:
the first over the shares Q, after which F is minus the log-likelihood, the second over theta. Hard assignments are the
same with Q restricted to one class per row. F is traced, and a fit that sees it rise stops and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gibbsian.errors import DataError
from gibbsian.mixtures.settings import check

# Rises below this, per unit of free energy and row, are rounding.
ROUNDING = 1e-10
# Falls below this share of the free energy are rounding, too.
LAST_DIGITS = 1e-14


class Problem(Protocol):
    """What the loop needs to know: the data, and both steps on it."""

    @property
    def total_weight(self) -> float:
        """The weight of all rows, by which free energies are compared."""
        ...

    def expect(self, mixture: Any) -> tuple[float, Any]:
        """Return the free energy of a mixture, minimised over the shares, and what the other step needs of them."""
        ...

    def maximise(self, expected: Any, before: Any) -> Any:
        """Return the mixture that minimises the free energy at fixed shares."""
        ...


@dataclass(frozen=True)
class EMResult:
    """A fitted mixture with the story of its fit.

    Parameters
    ----------
    mixture : object
        The mixture at the last step.
    free_energies : array
        One value per step, over all rows; never rising within a stage.
    stages : array
        The stage of each step: the variance of an annealed fit, 0 otherwise.
    converged : bool
        Whether the last fall was below the tolerance.
    reason : str
        Why the fit ended, in a sentence.
    seconds : float
        Time spent.
    degenerate : str
        What is wrong with the solution (an emptied class, a class of one point), in words; empty when nothing is.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.mixtures import GaussianMixture
    >>> rows = np.random.default_rng(0).normal(size=(60, 2)) + 9 * (np.arange(60) % 2)[:, None]
    >>> result = GaussianMixture(random_state=0).fit(rows).result_
    >>> bool(result.converged and (np.diff(result.free_energies) <= 0).all())
    True
    """

    mixture: Any
    free_energies: np.ndarray
    stages: np.ndarray
    converged: bool
    reason: str
    seconds: float = 0.0
    degenerate: str = ""

    @property
    def n_steps(self) -> int:
        """Number of steps taken."""
        return len(self.free_energies)

    @property
    def free_energy(self) -> float:
        """The last value."""
        return float(self.free_energies[-1])


def iterate(problem: Problem, start: Any, max_iter: int, tol: float, stage: float = 0.0) -> EMResult:
    """Alternate both steps until the free energy per unit weight falls by no more than `tol`.

    Parameters
    ----------
    problem : Problem
        Data and steps.
    start : mixture
        Where to begin.
    max_iter : int
        Most steps.
    tol : float
        Least fall per step and row that counts as progress.
    stage : float
        Written beside every step.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures import em, exponential, soft_kmeans
    >>> from gibbsian.mixtures.rows import collapse
    >>> data = collapse([[0.0], [1.0], [10.0], [11.0]])
    >>> problem = exponential.ExponentialProblem(soft_kmeans.SphericalGaussians(variance=1.0), data)
    >>> start = problem.from_means(np.array([[0.0], [11.0]]))
    >>> em.iterate(problem, start, max_iter=100, tol=1e-9).mixture.means.round(6).ravel()
    array([ 0.5, 10.5])
    """
    check("max_iter", max_iter)
    check("tol", tol)
    began = time.perf_counter()
    mixture = previous = start
    trace: list[float] = []
    converged, reason = False, f"stopped at max_iter={max_iter} before the free energy settled: give more steps"
    while True:
        with np.errstate(all="ignore"):  # what overflows shows in the free energy
            free_energy, expected = problem.expect(mixture)
        _require_finite(free_energy, len(trace))
        if trace and free_energy > trace[-1] + ROUNDING * (abs(trace[-1]) + problem.total_weight):
            reason = f"stopped at step {len(trace)}: the free energy rose, so a component's own fit is not a maximum"
            mixture = previous
            break
        trace.append(min(free_energy, trace[-1]) if trace else free_energy)
        if len(trace) > 1 and trace[-2] - trace[-1] <= tol * problem.total_weight + LAST_DIGITS * abs(trace[-1]):
            converged, reason = True, f"converged after {len(trace)} steps"
            break
        if len(trace) == max_iter:
            break
        previous, mixture = mixture, problem.maximise(expected, mixture)
    energies = np.array(trace)
    return EMResult(
        mixture,
        energies,
        np.full(len(energies), stage),
        converged,
        reason,
        time.perf_counter() - began,
        _trouble(mixture),
    )


def best_of(fit: Callable[[np.random.Generator], EMResult], n_init: int, rng: np.random.Generator) -> EMResult:
    """Fit from several starts and keep the least free energy.

    A degenerate solution (its likelihood may have no bound) is kept only where no start gave a sound one.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures import em
    >>> fit = lambda rng: em.EMResult(None, np.array([rng.normal()]), np.zeros(1), True, "")
    >>> few, many = (em.best_of(fit, n, np.random.default_rng(0)).free_energy for n in (1, 20))
    >>> many < few
    True
    """
    check("n_init", n_init)
    results = [fit(generator) for generator in rng.spawn(n_init)]
    best = min(results, key=lambda result: (bool(result.degenerate), result.free_energy))
    return replace(best, seconds=sum(result.seconds for result in results))


def joined(results: list[EMResult]) -> EMResult:
    """Join the stages of one fit; the last says whether it converged.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.em import EMResult, joined
    >>> stages = [EMResult(None, np.array([3.0, 2.0]), np.full(2, s), True, "done", 1.0) for s in (4.0, 1.0)]
    >>> joined(stages).stages, joined(stages).seconds
    (array([4., 4., 1., 1.]), 2.0)
    >>> joined(stages).reason
    'converged after 4 steps in 2 stages'
    """
    last, n_steps = results[-1], sum(result.n_steps for result in results)
    told = f"converged after {n_steps} steps in {len(results)} stages"
    return replace(
        last,
        reason=told if last.converged and len(results) > 1 else last.reason,
        free_energies=np.concatenate([result.free_energies for result in results]),
        stages=np.concatenate([result.stages for result in results]),
        seconds=sum(result.seconds for result in results),
    )


def _require_finite(free_energy: float, step: int) -> None:
    if not np.isfinite(free_energy):
        raise DataError(
            f"the free energy is {free_energy} at step {step}",
            "scale the columns, or give a variance or kappa that is less extreme",
        )


def _trouble(mixture: Any) -> str:
    return getattr(mixture, "trouble", "")
