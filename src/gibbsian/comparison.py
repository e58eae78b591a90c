"""Several learners on the same rows, side by side."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gibbsian.backends.processes import map_fits
from gibbsian.data import Dataset
from gibbsian.display import Shown
from gibbsian.errors import ArgumentError, ConvergenceWarning, GibbsianError, UntrainedWarning
from gibbsian.estimators import BoltzmannMachine
from gibbsian.estimators.machine import Machine
from gibbsian.learning import HeldOut, Learner
from gibbsian.rng import RandomState, as_generator
from gibbsian.startup import clone


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """How one learner did.

    Parameters
    ----------
    learner : str
        Its name.
    machine : Machine or None
        The fitted machine; None where the learner failed.
    held_out : HeldOut or None
        Score of the rows that no learner saw.
    distance : float or None
        Root mean square difference of the parameters to those of exact maximum likelihood, where that exists; those of
        a Potts machine in the zero-sum gauge.
    largest_z : float or None
        Largest difference of a moment to the data's, in standard errors.
    failure : str
        Why it failed, if it did.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes().complete_rows()
    >>> rows = gb.comparison.compare(votes, ["mle", "mple"], gb.BoltzmannMachine(l2=0.01), random_state=0)
    >>> [row.learner for row in rows], rows[0].distance
    (['mle', 'mple'], 0.0)
    """

    learner: str
    machine: Machine | None
    held_out: HeldOut | None = None
    distance: float | None = None
    largest_z: float | None = None
    failure: str = ""

    def _facts(self) -> dict[str, object]:
        return {
            "learner": self.learner,
            "score": None if self.held_out is None else self.held_out.score,
            "distance to mle": self.distance,
            "largest z": self.largest_z,
            "seconds": self.seconds,
            "steps": self.n_steps,
            "verdict": self.verdict,
        }

    @property
    def seconds(self) -> float | None:
        """Time of the fit."""
        return None if self.machine is None else self.machine.result_.seconds

    @property
    def n_steps(self) -> int | None:
        """Steps of the fit."""
        return None if self.machine is None else self.machine.result_.n_steps

    @property
    def verdict(self) -> str:
        """How the fit ended, or why there is none."""
        return self.failure if self.machine is None else self.machine.result_.reason


class Comparisons(Shown, list[Comparison]):
    """What `compare` found: a list with one `Comparison` for each learner, shown as a table.

    Examples
    --------
    >>> from gibbsian.comparison import Comparison, Comparisons
    >>> Comparisons([Comparison("mle", None, failure="too few rows")])
    Comparisons([
      learner='mle', verdict='too few rows',
    ])
    """

    def _rows(self) -> list[dict[str, object]]:
        return [comparison._facts() for comparison in self]


def compare(
    data: object,
    learners: Sequence[str | Learner],
    machine: Machine | None = None,
    *,
    validation_fraction: float = 0.2,
    random_state: RandomState = None,
    callback: Callable[[str], None] | None = None,
    n_jobs: int | None = None,
) -> Comparisons:
    """Fit the same training rows with each learner and score them on the same held-out rows.

    A learner that fails is reported with its reason; the others go on.

    Parameters
    ----------
    data : array, frame, path or Dataset
        The rows.
    learners : sequence of str or Learner
        Names of learners, or learner objects, which bring their own settings (penalties too).
    machine : Machine, default=None
        What is learned, with all its other settings; by default a `BoltzmannMachine`.
    validation_fraction : float, default=0.2
        Share of the rows to score on.
    random_state : None, int or Generator
        Decides the split; each learner then starts from the same seed.
    callback : callable, optional
        Called with the name of each learner before it starts.
    n_jobs : int, optional
        Processes to fit in, as in scikit-learn; inside `gibbsian.cluster.fits_on` the workers of a cluster.

    Examples
    --------
    >>> import gibbsian as gb
    >>> votes = gb.datasets.load_house_votes()
    >>> rows = gb.comparison.compare(votes, ["mle", "minibatch"], gb.BoltzmannMachine(l2=0.01), random_state=0)
    >>> "does not learn a BoltzmannMachine" in rows[1].failure
    True
    """
    if not 0 < validation_fraction < 1:
        raise ArgumentError(
            "must be a share of the rows between 0 and 1", argument="validation_fraction", value=validation_fraction
        )
    rng, asked = as_generator(random_state), BoltzmannMachine() if machine is None else machine
    training, test = asked.read(data).split(1 - validation_fraction, rng)
    seed = int(rng.integers(2**31))

    def machines() -> Iterator[tuple[str, Machine]]:
        for learner in learners:
            name = learner if isinstance(learner, str) else type(learner).__name__
            own = {} if isinstance(learner, str) else {"l1": 0.0, "l2": 0.0}
            if callback is not None:
                callback(name)
            yield name, clone(asked).set_params(learner=learner, random_state=seed, **own)

    rows = list(map_fits(partial(_fit_one, training, test), machines(), n_jobs))
    return Comparisons(_with_distances(rows, training, asked))


def _fit_one(training: Dataset, test: Dataset, named: tuple[str, Machine]) -> Comparison:
    name, machine = named
    try:
        with warnings.catch_warnings():
            for warned in (ConvergenceWarning, UntrainedWarning):  # the table has columns for both
                warnings.simplefilter("ignore", warned)
            machine.fit(training)
        z = None if machine.result_.moments is None else machine.result_.training.largest_z
        return Comparison(name, machine, machine.score_or_pseudo_score(test), largest_z=z)
    except GibbsianError as error:
        return Comparison(name, None, failure=str(error))


def _with_distances(rows: list[Comparison], training: Dataset, asked: Machine) -> list[Comparison]:
    """Add the distance to exact maximum likelihood, fitted for the purpose where it is not among the learners."""
    exact = next((row for row in rows if row.learner == "mle"), None)
    if exact is None:
        exact = _fit_one(training, training, ("mle", clone(asked).set_params(learner="mle")))
    if exact.machine is None:
        return rows
    target = _parameters(exact.machine)
    return [
        row
        if row.machine is None
        else replace(row, distance=float(np.sqrt(np.mean((_parameters(row.machine) - target) ** 2))))
        for row in rows
    ]


def _parameters(machine: Machine) -> np.ndarray:
    """The parameters, in a gauge where equal distributions have equal ones."""
    return machine.reported_model.canonical().theta
