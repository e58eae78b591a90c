"""Mixtures of machines as a scikit-learn estimator: independent columns of labels, or machines of this library."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, DataError
from gibbsian.estimators.base import Estimator
from gibbsian.estimators.frames import validate_data
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.mixtures import MixtureEstimator
from gibbsian.models.machine_mixture import MachineMixtureModel
from gibbsian.models.mixtures.categorical import LatentClassFamily, smoothing_to_frequencies
from gibbsian.models.variables import variables_of
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
        elif self.machine not in INDEPENDENT:
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
        return data

    # -- learning -----------------------------------------------------------------------------------------------------
    def _family(self, data: Dataset) -> Any:
        k, n = self.n_components, data.n_variables
        if isinstance(self.machine, str):
            columns, by_data = variables_of(data.domain, n), self.smooth_to == "frequencies"
            smoothing = smoothing_to_frequencies(data, columns, self.smoothing) if by_data else self.smoothing
            return LatentClassFamily(k, columns, smoothing)
        if self._is_given:
            remedy = "use 'k-means++', 'random' or 'partition'"
            raise ArgumentError(
                "places no machines, which are fitted to classes", remedy, argument="start", value="means"
            )
        return MachineMixtureModel(np.full(k, 1.0 / k), (), self.machine, data.coding, n)

    def _shown_parts(self) -> dict[str, Any]:
        model: Any = self.model_
        if isinstance(self.machine, str):
            return super()._shown_parts()
        return {"weights": model.weights, "machines": model.machines}

    def tables(self, n: int = 10) -> dict[str, Any]:
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
        machines = tuple(kind.from_stored(part) for kind, part in zip(kinds, stored.parts, strict=True))
        prototype, weights = clone(machines[0]), cast(Any, stored.model)
        model = replace(weights, machines=machines, prototype=prototype, coding=stored.coding)
        settings = {**stored.settings, "machine": prototype}
        return super().from_stored(replace(stored, model=model, settings=settings))
