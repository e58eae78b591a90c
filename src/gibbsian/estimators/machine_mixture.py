"""Mixtures of visible machines as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import validate_data

from gibbsian.errors import ArgumentError, DataError
from gibbsian.estimators.mixture_base import MixtureEstimator
from gibbsian.mixtures import (
    EMResult,
    ExponentialProblem,
    IndependentColumns,
    IndependentComponents,
    Levels,
    MachineComponents,
    MachineProblem,
    check_finite,
    log_joint,
)
from gibbsian.mixtures.em import best_of, iterate
from gibbsian.mixtures.exponential import nearest
from gibbsian.mixtures.levels import check_present
from gibbsian.mixtures.machines import check_machine
from gibbsian.mixtures.rows import collapse, column_label
from gibbsian.mixtures.seeds import spread_rows
from gibbsian.rng import RandomState, as_generator


class MachineMixture(MixtureEstimator):
    """Mixture of visible machines: independent columns, or any machine that can fit weighted rows and score them.

    Parameters
    ----------
    n_components : int
        k, the number of classes.
    machine : "categorical", "bernoulli" or estimator
        Independent columns of any labels, of two values each, or an object with ``fit(X, sample_weight=)`` and
        ``score_samples(X)``, cloned for each class.
    assignment : "soft" or "hard"
        Share each row among the classes or give it to the best.
    smoothing : float
        For independent columns: rows of each value added to every class (a Dirichlet prior, part of the free energy).
    n_init : int
        Starts; the one of least free energy is kept.
    max_iter : int
        Most steps of each.
    tol : float
        Converged when the free energy per row falls by no more.
    random_state : None, int or Generator
        Where the starts come from.

    Attributes
    ----------
    weights_ : array
        The weights of the classes.
    mixture_ : IndependentComponents or MachineComponents
        The probabilities or the machines of the classes.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.estimators.mixtures import MachineMixture
    >>> rows = np.repeat([["a", "x", "p"], ["b", "y", "q"]], 20, axis=0)
    >>> MachineMixture(random_state=0).fit(rows).weights_.round(2)
    array([0.5, 0.5])
    """

    kind = "machine-mixture"
    components = IndependentComponents

    def __init__(
        self,
        n_components: int = 2,
        *,
        machine: Any = "categorical",
        assignment: str = "soft",
        smoothing: float = 0.01,
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-7,
        random_state: RandomState = None,
    ):
        self.n_components = n_components
        self.machine = machine
        self.assignment = assignment
        self.smoothing = smoothing
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that words are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def _rows(self, X: Any, fitting: bool = False) -> np.ndarray:
        self._ready(fitting)
        table = validate_data(self, X, reset=fitting, dtype=None, ensure_all_finite=False)
        if table.dtype.kind in "fc":
            check_finite(table, self._names)
        check_present(table, self._names)
        return table

    @property
    def _names(self) -> Any:
        return getattr(self, "feature_names_in_", None)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the machines and weights of the classes.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_columns)
            Rows of labels or numbers.
        y : ignored
            For scikit-learn's pipelines.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        """
        table, hard = self._rows(X, fitting=True), self.assignment == "hard"
        if not isinstance(self.machine, str):
            check_machine(self.machine)
        levels = Levels.of(table, self._names)
        one_hot = collapse(levels.one_hot(table), sample_weight)
        one_hot.require(self.n_components)
        if isinstance(self.machine, str):
            self._check_named_machine(levels)
            problem: Any = ExponentialProblem(IndependentColumns(levels, self.smoothing), one_hot, hard)
        else:
            codes = (one_hot.rows.indices.reshape(-1, table.shape[1]) - levels.starts[:-1]).astype(np.int64)
            problem = MachineProblem(self.machine, replace(one_hot, rows=levels.decode(codes)), hard)

        def one(rng: np.random.Generator) -> EMResult:
            seeds = spread_rows(one_hot, self.n_components, rng)
            start = problem.from_labels(nearest(one_hot.rows, seeds), self.n_components)
            return iterate(problem, start, self.max_iter, self.tol)

        return self._finish(best_of(one, self.n_init, as_generator(self.random_state)), table)

    def _check_named_machine(self, levels: Levels) -> None:
        if self.machine not in ("categorical", "bernoulli"):
            raise ArgumentError(
                "must be 'categorical', 'bernoulli' or an estimator", argument="machine", value=self.machine
            )
        many = [j for j, values in enumerate(levels.values) if len(values) > 2]
        if self.machine == "bernoulli" and many:
            column, n_values = column_label(self._names, many[0]), len(levels.values[many[0]])
            raise DataError(
                f"column {column} has {n_values} values but `machine='bernoulli'` takes two",
                "use `machine='categorical'`",
            )

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        if isinstance(self.mixture_, MachineComponents):
            return self.mixture_.log_joint(rows)
        return log_joint(self.mixture_, self.mixture_.levels.one_hot(rows))

    def _count(self, mixture: Any) -> int | None:
        if isinstance(mixture, MachineComponents):
            return mixture.n_parameters()
        return IndependentColumns(mixture.levels).n_parameters(mixture)

    def _extra_header(self) -> dict[str, Any]:
        if isinstance(self.mixture_, MachineComponents):
            raise ArgumentError("a mixture of given machines has no file of its own", "save each of mixture_.machines")
        levels = self.mixture_.levels
        as_objects = levels.values[0].dtype == object
        return {**super()._extra_header(), "levels": levels.written(), "as_objects": as_objects}

    @classmethod
    def _rebuilt(cls, parts: dict[str, np.ndarray], header: dict[str, Any]) -> IndependentComponents:
        levels = Levels.read(header["levels"], header["as_objects"], header["names"])
        return IndependentComponents(parts["weights"], parts["probabilities"], levels)
