"""Mixtures of machines: estimators that can be fitted to weighted rows and asked for the log-density of rows.

With fits that reach their maximum EM is monotone.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from gibbsian.errors import ArgumentError, DataError
from gibbsian.models.base import MODELS
from gibbsian.models.file_parts import MOST, Plain, Tensor
from gibbsian.models.interactions import Interactions
from gibbsian.models.mixtures.base import MixtureFamily, log_shares
from gibbsian.startup import logsumexp

_Base: Any = MixtureFamily


@MODELS.register("machine-mixture", classes=True)
@dataclass(frozen=True, eq=False)
class MachineMixtureModel(_Base):
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
    parts_in_file: ClassVar[dict[str, Any]] = {
        "weights": Tensor(("parts",), low=0, high=1, total=1),
        "n_columns": Plain((int,), 1, MOST, size="n"),
    }

    @property
    def family(self) -> Self:
        """The structure, by which registries find who serves a model: this class is both in one."""
        return self

    def unfitted(self) -> Self:
        """Return the mixture whose machines have yet to be fitted."""
        return self

    def is_fitted(self, theta: np.ndarray) -> bool:
        """Whether there are machines."""
        return bool(self.machines)

    @classmethod
    def from_parts(cls, structure: dict[str, Any], arrays: dict[str, Any], domain: Any) -> Self:
        """Put the weights together again; the machines are parts of the file of their own."""
        return cls(**structure, **arrays, machines=(), prototype=None, coding=None)

    @property
    def n_components(self) -> int:
        """Number of classes."""
        return len(self.weights)

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

    def log_weights(self, states: Any, missing: np.ndarray | None = None) -> np.ndarray:
        """Return the log-density of each row."""
        return logsumexp(self.log_joint(states, missing), axis=1)

    def canonical(self) -> Self:
        """Return the same mixture."""
        return self

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return what a file keeps of the mixture itself."""
        return {"n_columns": self.n_columns}, {"weights": self.weights}

    def replace(self, theta: np.ndarray) -> Self:
        """Return the same machines with other parameters."""
        machines, start = [], self.n_components
        for machine in self.machines:
            size = machine.model_.theta.size
            machines.append(_moved(machine, theta[start : start + size]))
            start += size
        return replace(self, weights=theta[: self.n_components], machines=tuple(machines))

    @property
    def n_free(self) -> int:
        """Number of parameters of all machines, and the weights."""
        models = [machine.model_ for machine in self.machines]
        counts = [m.family.n_free if isinstance(m.family, MixtureFamily) else m.theta.size for m in models]
        return sum(counts) + self.n_components - 1

    def rows_for_machines(self, states: Any, missing: np.ndarray | None = None) -> Any:
        """Return rows as the machines want them."""
        return self.coding.decode(states, missing)

    def log_joint(self, states: Any, missing: np.ndarray | None = None) -> np.ndarray:
        """Return ``log P(x, class)`` of each row and class; missing cells are left to the machines."""
        rows = self.rows_for_machines(states, missing)
        scores = np.column_stack([machine.score_samples(rows) for machine in self.machines])
        return np.ascontiguousarray(scores, dtype=np.float64) + log_shares(self.weights)

    def fitted(self, a: int, rows: Any, weights: np.ndarray | None = None) -> Any:
        """Return the machine of a class, fitted to its rows."""
        from gibbsian.startup import clone

        try:
            return clone(self.prototype).fit(rows, sample_weight=weights)
        except ArgumentError:  # of the machine's own settings: nothing to do with the class
            raise
        except ValueError as error:
            raise DataError(
                f"the machine of class {a} cannot be fitted to the rows of this class",
                f"{error} (a penalty in the machine, `assignment='soft'` or fewer classes may help)",
            ) from error

    def sample(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows, as the machines write them, and their classes."""
        classes = self.draw_classes(self.weights, n_samples, rng)
        parts = [
            _drawn(machine, int((classes == a).sum()), rng)
            for a, machine in enumerate(self.machines)
            if (classes == a).any()
        ]
        rows = np.concatenate(parts)
        rows[np.argsort(classes, kind="stable")] = rows.copy()
        return rows, classes


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
