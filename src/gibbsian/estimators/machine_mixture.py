"""Mixtures of machines as a scikit-learn estimator: independent columns of labels, or machines of this library."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, DataError
from gibbsian.estimators.base import Estimator
from gibbsian.estimators.frames import validate_data
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.mixtures import MixtureEstimator
from gibbsian.estimators.numbers import NumberTables
from gibbsian.learning import EM, FitResult, Learner
from gibbsian.learning.result import Trace
from gibbsian.models.mixtures.categorical import LatentClassFamily, smoothing_to_frequencies
from gibbsian.models.mixtures.of_models import MixtureOfFamily
from gibbsian.settings import choice, declared, free, number
from gibbsian.startup import check_is_fitted, clone, pandas
from gibbsian.storage import StoredModel

INDEPENDENT = ("categorical", "bernoulli")


@ESTIMATORS.register(
    "machine-mixture", about="labels, independent columns or a machine of any kind for each class", rows="categories"
)
@declared
class MachineMixture(MixtureEstimator):
    """Mixture of machines: independent columns of labels, or any estimator of this library with a density.

    The fit leaves ``weights_`` and ``probabilities_`` (of each value of each column, side by side) or ``machines_``.

    Examples
    --------
    >>> import numpy as np, gibbsian as gb
    >>> rows = np.repeat([["a", "x", "p"], ["b", "y", "q"]], 20, axis=0)
    >>> gb.MachineMixture(random_state=0).fit(rows).weights_.round(2)
    array([0.5, 0.5])
    """

    machine: Any = free(
        "categorical",
        "Independent columns of any labels ('categorical'), of two values each ('bernoulli'), or an estimator "
        "of this library, cloned for each class.",
        doc="{'categorical', 'bernoulli'} or Estimator",
    )
    assignment: str = choice("soft", "Share each row among the classes or give it to the best.", "soft", "hard")
    smoothing: float = number(
        0.01,
        "Of independent columns: rows of each value added to every class (a Dirichlet prior, part of the free energy).",
        least=0.0,
    )
    smooth_to: str = choice(
        "uniform",
        "Those rows have all values of a column equally often ('uniform'), or as often as the data ('frequencies': "
        "better where values are rare and classes many).",
        "uniform",
        "frequencies",
    )

    _welcome = ("string", "categorical")

    # -- reading ------------------------------------------------------------------------------------------------------
    def _coding(self) -> Any:
        """Return what the machines take labels for."""
        self._check_machine()
        return "categorical" if isinstance(self.machine, str) else self.machine._coding()

    def _table(self, X: Any, fitting: bool) -> Any:
        if not fitting:
            check_is_fitted(self)
        validate_data(self, X, reset=fitting, dtype=None, ensure_all_finite=False)
        return X

    @property
    def _learns_on_cluster(self) -> bool:  # type: ignore[override]
        return isinstance(self.machine, str) or self.machine._learns_on_cluster

    def _check_machine(self) -> None:
        if isinstance(self.machine, Estimator):
            if not self.machine.has_density:
                kind = type(self.machine).__name__
                raise ArgumentError("has no density, which a mixture needs", argument="machine", value=kind)
        elif not isinstance(self.machine, str) or self.machine not in INDEPENDENT:
            raise ArgumentError(
                "must be 'categorical', 'bernoulli' or an estimator of this library",
                "give one, such as `BoltzmannMachine()`",
                argument="machine",
                value=self.machine,
            )

    def _prepared(self, data: Dataset) -> Dataset:
        sizes = [len(labels) for labels in data.labels]
        if self.machine == "bernoulli" and max(sizes) > 2:
            column = int(np.argmax(sizes))
            raise DataError(
                f"column {data.names[column]!r} has {sizes[column]} values but `machine='bernoulli'` takes two",
                "use `machine='categorical'`",
            )
        return self.machine._prepared(data) if isinstance(self.machine, NumberTables) else data

    # -- learning -----------------------------------------------------------------------------------------------------
    def _family(self, data: Dataset) -> Any:
        k = self.n_components
        if isinstance(self.machine, str):
            columns, by_data = data.variables, self.smooth_to == "frequencies"
            smoothing = smoothing_to_frequencies(data, columns, self.smoothing) if by_data else self.smoothing
            return LatentClassFamily(k, columns, smoothing)
        if self._is_given:
            remedy = "use 'k-means++', 'random' or 'partition'"
            raise ArgumentError(
                "places no machines, which are fitted to classes", remedy, argument="start", value="means"
            )
        return MixtureOfFamily(k, data.variables)

    def _chunk_learner(self, model: Any, data: Dataset) -> Learner:
        learner = super()._chunk_learner(model, data)
        if isinstance(self.machine, str) or not isinstance(learner, EM):
            return learner
        return replace(learner, components=MachineFits(self.machine, data.coding, data.n_variables))

    def _set_fitted(self, result: FitResult, coding: Any, names: tuple[str, ...]) -> Self:
        super()._set_fitted(result, coding, names)
        if not isinstance(self.machine, str):
            family, theta = self.model_.family, self.model_.theta
            fits = MachineFits(self.machine, coding, len(names))
            parts, rows = family.split(theta), result.provenance.get("rows", 0)
            known = parts.log_partitions.tolist(), (rows * parts.weights).tolist()
            self.machines_ = [fits.machine(*each) for each in zip(family.models_at(theta), *known, strict=True)]
        return self

    def _shown_parts(self) -> dict[str, object]:
        parts = super()._shown_parts()
        return parts if isinstance(self.machine, str) else {"weights": parts["weights"]}

    def tables(self, n: int = 10) -> dict[str, object]:
        """Return the weights of the classes, and for each the values that set it apart most, or its machine's."""
        tables = super().tables(n)
        if hasattr(self, "machines_"):
            return tables | {
                f"class {a}: {title}": table
                for a, machine in enumerate(self.machines_)
                for title, table in machine.tables(n).items()
            }
        values = [
            (name, label) for name, known in zip(self.names_, self._column_labels, strict=True) for label in known
        ]
        apart = np.argsort(self.weights_ @ self.probabilities_ - self.probabilities_, axis=1, kind="stable")[:, :n]
        rows = [(a, *values[j], self.probabilities_[a, j]) for a, chosen in enumerate(apart) for j in chosen]
        found = pandas.DataFrame(rows, columns=["class", "column", "value", "probability"])
        return {**tables, "what sets the classes apart": found}

    # -- files --------------------------------------------------------------------------------------------------------
    def to_stored(self) -> StoredModel:
        """Return what a file holds of the fitted estimator: of a mixture of machines each machine as well."""
        stored = super().to_stored()
        if not hasattr(self, "machines_"):
            return stored
        parts = tuple(machine.to_stored() for machine in self.machines_)
        return replace(stored, parts=parts)

    @classmethod
    def from_stored(cls, stored: StoredModel) -> Self:
        """Rebuild a fitted estimator from what a file holds."""
        if not stored.parts:
            return super().from_stored(stored)
        kinds: Any = [ESTIMATORS.factory(part.estimator) for part in stored.parts]
        machine = kinds[0].from_stored(stored.parts[0])
        return super().from_stored(replace(stored, settings={**stored.settings, "machine": clone(machine)}))


@dataclass(frozen=True)
class MachineFits:
    """How the machines of classes are fitted and their rows scored: clones of one estimator."""

    prototype: Any
    coding: Any
    n_columns: int

    def table(self, states: np.ndarray, missing: np.ndarray | None) -> Any:
        """Return rows as machines read them."""
        return self.coding.decode(states, missing)

    def fit(self, a: int, rows: Any, weights: np.ndarray | None = None) -> tuple[Any, float]:
        """Return the model of a class, fitted to its rows, and log Z."""
        try:
            machine = clone(self.prototype).fit(rows, sample_weight=weights)
        except ArgumentError:  # of the machine's own settings: nothing to do with the class
            raise
        except ValueError as error:
            raise DataError(
                f"the machine of class {a} cannot be fitted to the rows of this class",
                f"{error} (a penalty in the machine, `assignment='soft'` or fewer classes may help)",
            ) from error
        return machine.model_, machine._log_partition_estimate()

    def machine(self, model: Any, log_partition: float, weight: float = 0.0) -> Any:
        """Return the machine with a model, of a class of this weight."""
        machine, names = clone(self.prototype), tuple(f"x{j}" for j in range(self.n_columns))
        machine._set_columns(names)
        machine._set_fitted(
            FitResult(model, Trace(), True, "", {"rows": weight, "samples": weight}), self.coding, names
        )
        machine._log_z = log_partition
        return machine

    def log_densities(self, model: Any, log_partition: float, table: Any) -> np.ndarray:
        """Return the log-density of each row of a table."""
        return self.machine(model, log_partition).score_samples(table)
