"""Mixtures of machines: estimators that can be fitted to weighted rows and asked for the log-density of rows.

With fits that reach their maximum EM is monotone.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.backends.numba.mixtures import hard_assignment, soft_assignment
from gibbsian.errors import ArgumentError, DataError
from gibbsian.models.base import MODELS
from gibbsian.models.class_shares import class_weights, emptied, is_empty, log_weights, nearest
from gibbsian.models.file_parts import MOST, Plain, Tensor
from gibbsian.models.independent_columns import one_hot
from gibbsian.models.interactions import Interactions
from gibbsian.models.mixture import (
    FAR_APART,
    PARTITION,
    PLACING_ROWS,
    Mixture,
    Rows,
    mean_of_columns,
    random_partition,
    require_distinct,
    starting_points,
)

# The partition a mixture of machines starts from is softened by this share, so that no machine sees too few rows.
SOFTENED = 0.2


@MODELS.register("machine-mixture", classes=True)
@dataclass(frozen=True, eq=False)
class MachineMixtureModel(Mixture):
    """A mixture of machines, one fitted object per class.

    Parameters
    ----------
    weights : array of shape (n_components,)
        The share of each class.
    machines : tuple
        One fitted machine per class; empty before learning has placed them.
    prototype : estimator
        It is cloned for each class.
    coding : Coding, CategoryCoding or RealCoding
        How machines want rows written.
    n_columns : int
        The number of columns.
    trouble : str, default=""
        What is wrong with the solution, in words.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> from gibbsian.models.machine_mixture import MachineMixtureModel
    >>> bm = gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]])
    >>> model = MachineMixtureModel(np.array([0.5, 0.5]), (bm, bm), bm, bm.coding_, 2)
    >>> np.exp(model.log_joint(np.array([[1, 1]]))).round(3)
    array([[0.125, 0.125]])
    """

    weights: np.ndarray
    machines: tuple[Any, ...]
    prototype: Any
    coding: Any
    n_columns: int
    trouble: str = ""
    parts: ClassVar[tuple[str, ...]] = ("weights",)
    shown: ClassVar[tuple[str, ...]] = ("weights", "machines")
    parts_in_file: ClassVar[dict[str, Any]] = {
        "weights": Tensor(("parts",), low=0, high=1, total=1),
        "n_columns": Plain((int,), 1, MOST, size="n"),
    }

    @classmethod
    def unplaced(cls, n_components: int, prototype: Any, coding: Any, n_columns: int) -> Self:
        """Return a mixture whose machines have yet to be fitted."""
        return cls(np.full(n_components, np.nan), (), prototype, coding, n_columns)

    @classmethod
    def from_parts(cls, structure: dict[str, Any], arrays: dict[str, Any], domain: Any) -> Self:
        """Put the weights together again; the machines are parts of the file of their own."""
        return cls(**structure, **arrays, machines=(), prototype=None, coding=None)

    @property
    def n_variables(self) -> int:
        """The number of columns."""
        return self.n_columns

    @property
    def domain(self) -> Any:
        """The values of the columns."""
        return self.coding.domain

    @property
    def theta(self) -> np.ndarray:
        """The weights, and the parameters of the machines."""
        return np.concatenate([self.weights, *(machine.model_.theta for machine in self.machines)])

    def interactions(self) -> Interactions:
        """Return the interactions of the machines, averaged over the classes."""
        found = [machine.interactions() for machine in self.machines]
        totals: dict[tuple[int, ...], float] = {}
        for weight, part in zip(self.weights.tolist(), found, strict=True):
            for scope, strength in zip(part.scopes, part.strengths.tolist(), strict=True):
                totals[scope] = totals.get(scope, 0.0) + weight * strength
        measure = f"mean {found[0].measure} of the classes"
        return replace(found[0], scopes=tuple(totals), strengths=np.array(list(totals.values())), measure=measure)

    def replace(self, theta: np.ndarray) -> Self:
        """Return the same machines with other parameters."""
        machines, start = [], self.n_components
        for machine in self.machines:
            size = machine.model_.theta.size
            machines.append(_moved(machine, theta[start : start + size]))
            start += size
        return replace(self, weights=theta[: self.n_components], machines=tuple(machines))

    @property
    def n_parameters(self) -> int:
        """The number of parameters of all machines, and the weights."""
        models = [machine.model_ for machine in self.machines]
        counts = [model.n_parameters if isinstance(model, Mixture) else model.theta.size for model in models]
        return sum(counts) + self.n_components - 1

    def rows_for_machines(self, states: Any, missing: np.ndarray | None = None) -> Any:
        """Return rows as the machines want them."""
        return self.coding.decode(states, missing)

    def log_joint(self, states: Any, missing: np.ndarray | None = None) -> np.ndarray:
        """Return ``log P(x, class)`` of each row and class; missing cells are left to the machines."""
        rows = self.rows_for_machines(states, missing)
        scores = np.column_stack([machine.score_samples(rows) for machine in self.machines])
        return np.ascontiguousarray(scores, dtype=np.float64) + log_weights(self.weights)

    def em_steps(self, data: Any, hard: bool = False) -> Any:
        """Bind both steps of EM to data."""
        return StepsThere(self, data, hard) if getattr(data, "on_cluster", False) else MachineSteps(self, data, hard)

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows, as the machines write them, and their classes."""
        classes = self.draw_classes(n_samples, rng)
        parts = [
            _drawn(machine, int((classes == a).sum()), rng)
            for a, machine in enumerate(self.machines)
            if (classes == a).any()
        ]
        rows = np.concatenate(parts)
        rows[np.argsort(classes, kind="stable")] = rows.copy()
        return rows, classes


@dataclass(frozen=True)
class MachineSteps:
    """Both steps of EM for a mixture of machines, on given data: the M-step fits one machine to each class."""

    model: MachineMixtureModel
    data: Any
    hard: bool = False
    rows: Rows = field(init=False, repr=False)
    table: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rows = Rows.of(self.data)
        table = self.model.rows_for_machines(rows.states, rows.missing)
        for name, value in {"rows": rows, "table": table}.items():
            object.__setattr__(self, name, value)

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return float(self.rows.weights.sum())

    def start(self, rng: np.random.Generator, placing: str = FAR_APART) -> MachineMixtureModel:
        """Return the mixture of a random partition, or of one around rows that are drawn, softened."""
        k, weights = self.model.n_components, self.rows.weights
        require_distinct(weights, k, self.data.n_rows)
        if placing == PARTITION:
            labels = random_partition(len(weights), k, rng)
        else:
            points = self._points()
            labels = nearest(points, starting_points(points, weights, k, rng, placing))
        shares = (1 - SOFTENED) * np.eye(k)[labels] + SOFTENED / k
        return self.maximise(shares.T * weights, self.model)

    def _points(self) -> Any:
        """Rows as points: numbers from their mean, labels one-hot."""
        states, _, missing = self.rows
        if self.model.domain.name != "real":
            return one_hot(self.model.domain, states, missing)
        points = states - mean_of_columns(self.rows)
        return points if missing is None else np.where(missing, 0.0, points)

    def adopted(self, model: MachineMixtureModel) -> MachineMixtureModel:
        """Return a placed mixture as it is."""
        return model

    def expect(self, model: MachineMixtureModel, before: Any = None) -> tuple[float, np.ndarray]:
        """Return the free energy and the shares."""
        scores = np.column_stack([machine.score_samples(self.table) for machine in model.machines])
        shares = np.ascontiguousarray((scores + log_weights(model.weights)).T, dtype=np.float64)
        assign = hard_assignment if self.hard else soft_assignment
        return float(assign(shares, self.rows.weights)), shares

    def maximise(self, expected: np.ndarray, model: MachineMixtureModel) -> MachineMixtureModel:
        """Fit one machine to each class; one that has lost all its rows keeps its machine."""
        mass = expected.sum(axis=1)
        empty = is_empty(mass)
        machines = tuple(
            model.machines[a] if empty[a] and model.machines else fitted(self.model, a, self.table, expected[a])
            for a in range(len(mass))
        )
        return replace(model, weights=class_weights(mass), machines=machines)

    def judged(self, model: MachineMixtureModel, expected: np.ndarray) -> MachineMixtureModel:
        """Return the mixture with words about what is wrong with it."""
        return replace(model, trouble=emptied(expected.sum(axis=1)))


def fitted(model: MachineMixtureModel, a: int, rows: Any, weights: np.ndarray | None = None) -> Any:
    """Return the machine of a class, fitted to its rows."""
    from gibbsian.startup import clone

    try:
        return clone(model.prototype).fit(rows, sample_weight=weights)
    except ArgumentError:  # of the machine's own settings: nothing to do with the class
        raise
    except ValueError as error:
        raise DataError(
            f"the machine of class {a} cannot be fitted to the rows of this class",
            f"{error} (a penalty in the machine, `assignment='soft'` or fewer classes may help)",
        ) from error


@dataclass(frozen=True)
class StepsThere:
    """The same of rows on a cluster: workers take the shares of their rows, and each machine is learned there.

    Classes are placed among all rows where these are few, else among some that are drawn.
    """

    model: MachineMixtureModel
    data: Any
    hard: bool = False
    adopted = MachineSteps.adopted

    @property
    def total_weight(self) -> float:
        """The weight of all rows."""
        return self.data.total_weight

    def start(self, rng: np.random.Generator, placing: str = FAR_APART) -> MachineMixtureModel:
        """Return the mixture of a partition of some rows."""
        return MachineSteps(self.model, self.data.at_most(PLACING_ROWS, rng), self.hard).start(rng, placing)

    def expect(self, model: MachineMixtureModel, before: Any = None) -> tuple[float, np.ndarray]:
        """Return the free energy and the weight of each class."""
        for machine in model.machines:
            machine._log_partition_estimate()  # once, and here
        return self.data.reduce(partial(_energy_and_mass, model, self.hard))

    def maximise(self, expected: np.ndarray, model: MachineMixtureModel) -> MachineMixtureModel:
        """Fit one machine to each class; one that has lost all its rows keeps its machine."""
        empty = is_empty(expected)
        machines = tuple(
            machine if empty[a] else fitted(model, a, self._of_class(model, a))
            for a, machine in enumerate(model.machines)
        )
        return replace(model, weights=class_weights(expected), machines=machines)

    def _of_class(self, model: MachineMixtureModel, a: int) -> Any:
        """Return the rows with the weights that they have in a class."""
        return self.data.map(partial(_of_class, model, self.hard, a))

    def judged(self, model: MachineMixtureModel, expected: np.ndarray) -> MachineMixtureModel:
        """Return the mixture with words about what is wrong with it."""
        return replace(model, trouble=emptied(expected))


def _energy_and_mass(model: MachineMixtureModel, hard: bool, data: Any) -> tuple[float, np.ndarray]:
    free_energy, shares = MachineSteps(model, data, hard).expect(model)
    return free_energy, shares.sum(axis=1)


def _of_class(model: MachineMixtureModel, hard: bool, a: int, data: Any) -> Any:
    """Return the rows with the weights that they have in a class, without the names that machines do not see."""
    _, shares = MachineSteps(model, data, hard).expect(model)
    names, numbers = tuple(f"x{j}" for j in range(data.n_variables)), np.arange(data.n_states)
    return replace(data, weights=shares[a], row_weights=shares[a], row_of=numbers, names=names)


# -- machines ---------------------------------------------------------------------------------------------------------
def _drawn(machine: Any, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows from a machine."""
    return np.asarray(machine.sample(n_samples, random_state=int(rng.integers(2**31 - 1))))


def _moved(machine: Any, theta: np.ndarray) -> Any:
    """A copy of a fitted machine at other parameters."""
    moved = copy.copy(machine)
    moved.__dict__.pop("_log_z", None)  # of the model that was there before
    moved.model_ = machine.model_.replace(theta)
    return moved
