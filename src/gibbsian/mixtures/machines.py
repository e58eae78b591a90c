"""Mixtures of visible machines: independent columns here, any other machine as an object that can fit and score.

Independent two-valued or categorical columns are an exponential family with S(x) = the row written one-hot. Any other
machine needs ``fit(X, sample_weight=)`` and ``score_samples(X)``; with fits that reach their maximum EM is monotone.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from gibbsian.backends.numba.mixtures import hard_assignment, soft_assignment
from gibbsian.errors import ArgumentError, DataError
from gibbsian.mixtures.exponential import ClassSums
from gibbsian.mixtures.levels import Levels
from gibbsian.mixtures.rows import WeightedRows
from gibbsian.mixtures.settings import check
from gibbsian.mixtures.weights import class_weights, emptied, is_empty, log_weights, pick_classes

# The partition a mixture of machines starts from is softened by this share, so that no machine sees too few rows.
SOFTENED = 0.2


# -- independent columns ----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class IndependentComponents:
    """A mixture of machines whose columns are independent within a class (latent class analysis).

    Parameters
    ----------
    weights : array of shape (n_components,)
        The share of each class.
    probabilities : array of shape (n_components, n_values)
        The probability of each value of each column, columns side by side.
    levels : Levels
        The values of each column.
    trouble : str
        What is wrong with the solution, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures import IndependentComponents, Levels
    >>> levels = Levels((np.array([0, 1]),))
    >>> IndependentComponents(np.ones(1), np.array([[0.0, 1.0]]), levels).sample(3, np.random.default_rng(0))[0].ravel()
    array([1, 1, 1])
    """

    weights: np.ndarray
    probabilities: np.ndarray
    levels: Levels
    trouble: str = ""

    def features(self, rows: Any) -> Any:
        """Return the rows, which come one-hot."""
        return rows

    def natural(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-probabilities and log-weights; a value never seen counts as all but impossible."""
        return np.log(np.maximum(self.probabilities, np.finfo(float).tiny)), log_weights(self.weights)

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows in the labels of the table, and their classes."""
        classes = pick_classes(self.weights, n_samples, rng)
        starts = self.levels.starts
        codes = np.empty((n_samples, len(self.levels.values)), dtype=np.int64)
        for j in range(codes.shape[1]):
            steps = np.cumsum(self.probabilities[classes, starts[j] : starts[j + 1]], axis=1)
            codes[:, j] = (rng.random((n_samples, 1)) * steps[:, -1:] >= steps[:, :-1]).sum(axis=1)
        return self.levels.decode(codes), classes


@dataclass(frozen=True)
class IndependentColumns:
    """What is learned of independent columns.

    Parameters
    ----------
    levels : Levels
        The values of each column.
    smoothing : float
        Rows of each value added to every class: a Dirichlet prior, part of the free energy.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.exponential import ClassSums
    >>> from gibbsian.mixtures import IndependentColumns, Levels
    >>> family = IndependentColumns(Levels((np.array([0, 1]),)), smoothing=0.0)
    >>> family.maximise(ClassSums(np.array([4.0]), np.array([[1.0, 3.0]])), None).probabilities
    array([[0.25, 0.75]])
    """

    levels: Levels
    smoothing: float = 0.01

    def __post_init__(self) -> None:
        check("smoothing", self.smoothing)

    def features(self, rows: Any) -> Any:
        """Return the rows, which come one-hot."""
        return rows

    def penalty(self, mixture: IndependentComponents) -> float:
        """Return minus the log of the Dirichlet prior, up to a constant."""
        return -self.smoothing * float(mixture.natural()[0].sum()) if self.smoothing else 0.0

    def maximise(self, expected: ClassSums, before: IndependentComponents | None) -> IndependentComponents:
        """Return frequencies, smoothed."""
        mass, sums = expected
        empty = is_empty(mass)
        counts = sums + self.smoothing
        starts = self.levels.starts
        totals = np.add.reduceat(counts, starts[:-1], axis=1)
        spread = np.repeat(totals, np.diff(starts), axis=1)
        uniform = np.repeat(1.0 / np.diff(starts), np.diff(starts))
        probabilities = np.where(spread > 0, counts / np.where(spread > 0, spread, 1.0), uniform)
        if before is not None and not self.smoothing:
            probabilities = np.where(empty[:, None], before.probabilities, probabilities)
        return IndependentComponents(class_weights(mass), probabilities, self.levels, emptied(empty))

    def n_parameters(self, mixture: IndependentComponents) -> int:
        """Count what was learned: one less than the values of each column, for each class, and the weights."""
        k = len(mixture.weights)
        return k * int(self.levels.starts[-1] - len(self.levels.values)) + k - 1


# -- any machine ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class MachineComponents:
    """A mixture of machines given as fitted objects.

    Parameters
    ----------
    weights : array of shape (n_components,)
        The share of each class.
    machines : tuple
        One fitted machine per class.
    trouble : str
        What is wrong with the solution, in words.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.mixtures.machines import MachineComponents
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    >>> np.exp(MachineComponents(np.array([0.5, 0.5]), (bm, bm)).log_joint([[1, 1]])).round(3)
    array([[0.125, 0.125]])
    """

    weights: np.ndarray
    machines: tuple[Any, ...]
    trouble: str = ""

    def log_joint(self, rows: Any) -> np.ndarray:
        """Return ``log P(x, a)`` of each row and class."""
        scores = np.column_stack([machine.score_samples(rows) for machine in self.machines])
        return np.ascontiguousarray(scores, dtype=np.float64) + log_weights(self.weights)

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows and their classes."""
        classes = pick_classes(self.weights, n_samples, rng)
        parts = [
            _drawn(machine, int((classes == a).sum()), rng)
            for a, machine in enumerate(self.machines)
            if (classes == a).any()
        ]
        rows = np.concatenate(parts)
        rows[np.argsort(classes, kind="stable")] = rows.copy()
        return rows, classes

    def n_parameters(self) -> int | None:
        """Count the parameters of all machines, and the weights; None where the machines do not tell."""
        counts = [_n_parameters(machine) for machine in self.machines]
        told = [count for count in counts if count is not None]
        return sum(told) + len(self.weights) - 1 if len(told) == len(counts) else None


@dataclass(frozen=True)
class MachineProblem:
    """A mixture of any machine, for the EM loop.

    Parameters
    ----------
    prototype : estimator
        With ``fit(X, sample_weight=)`` and ``score_samples(X)``; it is cloned for each class.
    data : WeightedRows
        Distinct rows with weights.
    hard : bool
        Give each row to its best class instead of sharing it.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.mixtures import em
    >>> from gibbsian.mixtures.machines import MachineProblem
    >>> from gibbsian.mixtures.rows import collapse
    >>> data = collapse([[1, 1], [1, 1], [-1, -1], [-1, -1], [1, -1], [-1, 1]])
    >>> problem = MachineProblem(gb.BoltzmannMachine("empty", l2=0.1), data)
    >>> start = problem.from_labels((data.rows[:, 0] > 0).astype(int), 2)
    >>> em.iterate(problem, start, 3, 0.0).n_steps
    3
    """

    prototype: Any
    data: WeightedRows
    hard: bool = False

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return self.data.total_weight

    def expect(self, mixture: MachineComponents) -> tuple[float, np.ndarray]:
        """Return the free energy and the shares."""
        shares = np.ascontiguousarray(mixture.log_joint(self.data.rows).T)
        assign = hard_assignment if self.hard else soft_assignment
        return float(assign(shares, self.data.weights)), shares

    def maximise(self, expected: np.ndarray, before: MachineComponents | None) -> MachineComponents:
        """Fit one machine to each class."""
        mass = expected.sum(axis=1)
        empty = is_empty(mass)
        machines = tuple(
            before.machines[a] if empty[a] and before is not None else self._fitted(a, expected[a])
            for a in range(len(mass))
        )
        return MachineComponents(class_weights(mass), machines, emptied(empty))

    def _fitted(self, a: int, weights: np.ndarray) -> Any:
        try:
            return clone(self.prototype).fit(self.data.rows, sample_weight=weights)
        except ArgumentError:  # of the machine's own settings: nothing to do with the class
            raise
        except ValueError as error:
            raise DataError(
                f"the machine of class {a} cannot be fitted to the rows of this class",
                f"{error} (a penalty in the machine, `assignment='soft'` or fewer classes may help)",
            ) from error

    def from_labels(self, labels: np.ndarray, n_components: int) -> MachineComponents:
        """Return the mixture of a partition, softened."""
        shares = (1 - SOFTENED) * np.eye(n_components)[labels] + SOFTENED / n_components
        return self.maximise(shares.T * self.data.weights, None)


def check_machine(machine: Any) -> None:
    """Raise `ArgumentError` unless an object can be cloned, fitted to weighted rows and asked for their density.

    Examples
    --------
    >>> from gibbsian.mixtures.machines import check_machine
    >>> check_machine(None)
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: machine=None must be 'categorical', 'bernoulli' or an estimator
    """
    if isinstance(machine, type):
        raise ArgumentError(f"machine is the class {machine.__name__}", f"give an object of it, {machine.__name__}()")
    asked = ("get_params", "fit", "score_samples")
    lacking = [name for name in asked if not hasattr(machine, name)]
    if len(lacking) == len(asked):
        raise ArgumentError("must be 'categorical', 'bernoulli' or an estimator", argument="machine", value=machine)
    if lacking:
        raise ArgumentError(
            f"has no {lacking[0]}, which a mixture needs", argument="machine", value=type(machine).__name__
        )
    if not _takes(machine.fit, "sample_weight"):
        raise ArgumentError(
            "takes no `sample_weight` in fit, which a mixture needs", argument="machine", value=type(machine).__name__
        )


def _takes(method: Any, argument: str) -> bool:
    parameters = inspect.signature(method).parameters
    return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _drawn(machine: Any, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows from a machine; of a pair (rows, classes) the rows. A seed is understood by every generator."""
    if not hasattr(machine, "sample"):
        raise ArgumentError(
            "has no sample, so the mixture cannot be sampled", argument="machine", value=type(machine).__name__
        )
    seed = {"random_state": int(rng.integers(2**31 - 1))} if _takes(machine.sample, "random_state") else {}
    drawn = machine.sample(n_samples, **seed)
    return np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn)


def _n_parameters(machine: Any) -> int | None:
    told = getattr(machine, "n_parameters_", None)
    if told is not None:
        return int(told)
    theta = getattr(getattr(machine, "model_", None), "theta", None)
    return None if theta is None else np.size(theta)
