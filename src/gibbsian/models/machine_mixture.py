"""Mixtures of any machines: objects that can be fitted to weighted rows and asked for the log-density of rows.

With fits that reach their maximum EM is monotone.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.backends.numba.mixtures import hard_assignment, soft_assignment
from gibbsian.errors import ArgumentError, DataError, FileFormatError
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
        With ``fit(X, sample_weight=)`` and ``score_samples(X)``; it is cloned for each class.
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
    answers: ClassVar[str] = "gibbsian.answers.mixtures:MachineMixtureAnswers"

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
        """The weights, and the parameters of the machines that have some."""
        return np.concatenate([self.weights, *(part for part in map(_theta, self.machines) if part is not None)])

    def interactions(self) -> Interactions:
        """Return the interactions of the machines, averaged over the classes."""
        if not all(hasattr(machine, "interactions") for machine in self.machines):
            kind = type(self.prototype).__name__
            raise ArgumentError(f"a {kind} does not say what interacts", "ask a mixture of this library's machines")
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
            own = _theta(machine)
            if own is None:
                kind = type(machine).__name__
                raise FileFormatError(
                    f"a checkpoint holds vectors of parameters, and a {kind} has none", "leave `checkpoint` out"
                )
            machines.append(_moved(machine, theta[start : start + own.size]))
            start += own.size
        return replace(self, weights=theta[: self.n_components], machines=tuple(machines))

    @property
    def n_parameters(self) -> int | None:
        """The number of parameters of all machines, and the weights; None where the machines do not say."""
        counts = [_n_parameters(machine) for machine in self.machines]
        known = [count for count in counts if count is not None]
        return sum(known) + self.n_components - 1 if len(known) == len(counts) else None

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
        return MachineSteps(self.model, self.data.some(PLACING_ROWS, rng), self.hard).start(rng, placing)

    def expect(self, model: MachineMixtureModel, before: Any = None) -> tuple[float, np.ndarray]:
        """Return the free energy and the weight of each class."""
        for machine in model.machines:
            machine._log_partition_estimate()  # once, and here
        return self.data.summed(partial(_energy_and_mass, model, self.hard))

    def maximise(self, expected: np.ndarray, model: MachineMixtureModel) -> MachineMixtureModel:
        """Fit one machine to each class; one that has lost all its rows keeps its machine."""
        empty = is_empty(expected)
        machines = tuple(
            machine if empty[a] else fitted(model, a, self._of_class(model, a))
            for a, machine in enumerate(model.machines)
        )
        return replace(model, weights=class_weights(expected), machines=machines)

    def _of_class(self, model: MachineMixtureModel, a: int) -> Any:
        """Return the rows with the weights that they have in a class, without the names that machines do not see."""
        names = tuple(f"x{j}" for j in range(self.data.n_variables))
        return replace(self.data.reweighted(partial(_of_class, model, self.hard, a)), names=names)

    def judged(self, model: MachineMixtureModel, expected: np.ndarray) -> MachineMixtureModel:
        """Return the mixture with words about what is wrong with it."""
        return replace(model, trouble=emptied(expected))


def _energy_and_mass(model: MachineMixtureModel, hard: bool, data: Any) -> tuple[float, np.ndarray]:
    free_energy, shares = MachineSteps(model, data, hard).expect(model)
    return free_energy, shares.sum(axis=1)


def _of_class(model: MachineMixtureModel, hard: bool, a: int, data: Any) -> Any:
    """Return the rows with the weights that they have in a class."""
    _, shares = MachineSteps(model, data, hard).expect(model)
    numbers = np.arange(data.n_states)
    return replace(data, weights=shares[a], row_weights=shares[a], row_of=numbers)


# -- machines ---------------------------------------------------------------------------------------------------------
def check_machine(machine: Any) -> None:
    """Raise `ArgumentError` unless an object can be cloned, fitted to weighted rows and asked for their density."""
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
    if not getattr(machine, "has_density", True):
        raise ArgumentError("has no density, which a mixture needs", argument="machine", value=type(machine).__name__)
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


def _theta(machine: Any) -> np.ndarray | None:
    """The parameters of a fitted machine, None where it has no such vector."""
    return getattr(getattr(machine, "model_", None), "theta", None)


def _moved(machine: Any, theta: np.ndarray) -> Any:
    """A copy of a fitted machine at other parameters."""
    moved = copy.copy(machine)
    moved.__dict__.pop("_log_z", None)  # of the model that was there before
    moved.model_ = machine.model_.replace(theta)
    return moved


def _n_parameters(machine: Any) -> int | None:
    known = getattr(machine, "n_parameters_", None)
    theta = _theta(machine)
    return int(known) if known is not None else None if theta is None else theta.size
