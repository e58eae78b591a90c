"""A classifier: labels y predicted from features x, with any machine behind it."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.answers.decisions import bayes_decision
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, ConvergenceWarning, DataError, MaximumDoesNotExistError, notify
from gibbsian.estimators.base import Estimator
from gibbsian.estimators.frames import is_frame, validate_data
from gibbsian.estimators.held_out import one_over
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.estimators.reported import Reported
from gibbsian.inference.log_tables import digits
from gibbsian.learning import MCL, MCPLE, run
from gibbsian.learning.result import FitResult
from gibbsian.models import BinaryUnits, CategoricalUnits, ConditionalFamily
from gibbsian.models.base import Model
from gibbsian.rng import RandomState, as_generator
from gibbsian.settings import check, choice, declared, free, number, positional, settings_of, whole
from gibbsian.startup import (
    BaseEstimator,
    ClassifierMixin,
    _check_sample_weight,
    check_classification_targets,
    check_is_fitted,
    clone,
    column_or_1d,
    pandas,
    type_of_target,
)

CONDITIONAL: dict[str, object] = {"conditional": MCL, "pseudo": MCPLE}


@declared
class GibbsClassifier(Reported, ClassifierMixin, BaseEstimator):
    """Predicts labels y from features x, by the distribution ``P(y | x)`` of a Gibbs model (YK15).

    Without a `machine` the features are any numbers, which enter the energy linearly and need no distribution of their
    own: multinomial logistic regression, and with hidden units the discriminative restricted Boltzmann machine with
    weights from features to labels besides. With a `machine` features and labels are the columns of one table of
    discrete values that the machine learns, given the features or as a whole, and x may lack cells. A table y of zeros
    and ones holds several labels of a row (multi-label); their joint values are summed over, so about ten are many.

    Attributes
    ----------
    classes_ : ndarray, or list of ndarray
        The labels; for several labels 0 and 1 of each.
    model_ : Model of a ConditionalFamily, or the model of the machine
        What was learned.
    machine_ : estimator
        The fitted machine, where there is one; its `save` writes a file.
    result_ : FitResult
        Trace and reason of the end.

    Examples
    --------
    >>> import gibbsian as gb
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], ["low", "low", "high", "low", "high", "high"]
    >>> classifier = gb.GibbsClassifier().fit(X, y)
    >>> classifier.predict([[0.5], [4.5]]).tolist()
    ['low', 'high']
    >>> classifier.predict([[2.4], [2.4]], losses=[[0, 1], [3, 0]]).tolist()       # a missed low costs three times more
    ['low', 'low']
    """

    machine: Any = positional(
        kw_only=False,
        default=free(
            None,
            "What learns the table of features and labels: a registered name ('potts', 'pairwise', 'higher-order', "
            "'rbm', ...) or an estimator with its own settings; None takes features as numbers.",
            doc="str or estimator, optional",
        ),
    )
    learning: str = choice(
        "conditional",
        "What is maximised: the likelihood of the labels given the features ('conditional'), of each label given all "
        "else ('pseudo'), or what the machine's own learner does with the whole table ('joint').",
        "conditional",
        "pseudo",
        "joint",
    )
    n_hidden: int = whole(0, "Number of hidden units, without a machine or with one that is named.")
    l2: Any = number(
        1e-3,
        "Penalty `(l2/2) sum parameter^2` on the mean loss per row, without a machine or with one that is named. It "
        "keeps parameters finite where features separate the labels. 'auto' is 1 / rows.",
        least=0,
        words=("auto",),
    )
    temperature: float = number(1.0, "T in `P = exp(-E/T) / Z`, without a machine or with one that is named.", above=0)
    max_iter: int = whole(1000, "Most steps, without a machine or with one that is named.", least=1)
    tol: float = number(1e-5, "When learning has converged, without a machine or with one that is named.", least=0)
    random_state: RandomState = free(None, "Seed of all random numbers.", doc="int, Generator or None")

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn which tables are welcome."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.allow_nan = tags.input_tags.categorical = self.machine is not None
        return tags

    # -- learning -----------------------------------------------------------------------------------------------------
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn to tell y by X.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The features: numbers, or with a machine what it takes.
        y : array of shape (n_rows,), or of shape (n_rows, n_labels) with zeros and ones
            The labels.
        sample_weight : array of shape (n_rows,), default=None
            How much each row counts.
        """
        check(self)
        X, y = self._checked(X, y)
        labels = _Labels.of(y)
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)
        back = _Numbers if self.machine is None else _Columns
        self._back = back.fitted(self, X, labels, weights)
        self._labels, self.result_, self.model_ = labels, self._back.result, self._back.result.model
        self.classes_ = list(labels.classes) if labels.several else labels.classes[0]
        self.n_iter_ = max(1, self.result_.n_steps)
        return self

    def _checked(self, X: Any, *y: Any) -> Any:
        """Return what scikit-learn has checked; what a machine takes it reads itself."""
        loose = {"dtype": None, "ensure_all_finite": False} if self.machine is not None else {"dtype": np.float64}
        if not y:
            checked = validate_data(self, X, reset=False, **loose)
            return X if self.machine is not None and is_frame(X) else checked
        checked, labels = validate_data(self, X, *y, multi_output=True, **loose)
        return (X if self.machine is not None and is_frame(X) else checked), labels

    def report_parts(self, data: Any, y: Any) -> tuple[Any, Any]:
        """Return the machine that a report is about, and the rows of features and labels as it reads them."""
        return self._back.report_parts(self, data, y)

    # -- predictions --------------------------------------------------------------------------------------------------
    def _joint(self, X: Any) -> np.ndarray:
        """Return the probabilities of all combinations of labels."""
        check_is_fitted(self)
        return self._back.joint(self._checked(X), self._labels)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class, or of each of several labels to be 1, given each row."""
        joint = self._joint(X)
        return joint @ self._labels.listed if self._labels.several else joint

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of `predict_proba`."""
        return np.log(self.predict_proba(X))

    def predict(self, X: Any, losses: Any = None) -> np.ndarray:
        """Return the label of least expected loss for each row (the Bayes decision, YK15).

        Parameters
        ----------
        X : array or frame
            The features.
        losses : matrix or "joint", default=None
            The loss ``losses[i, j]`` of deciding class j where i is true; by default 0 for the true class and 1 for
            others. Several labels are decided each by itself (the Hamming loss), or with "joint" together.
        """
        joint, labels = self._joint(X), self._labels
        if not labels.several:
            return labels.classes[0][bayes_decision(joint, losses)]
        if losses is None:
            return (joint @ labels.listed > 0.5).astype(int)
        if not isinstance(losses, str) or losses != "joint":
            raise ArgumentError("must be None or 'joint' for several labels", argument="losses", value=losses)
        return labels.listed[joint.argmax(axis=1)].astype(int)


class _Labels(NamedTuple):
    """Labels as codes: a column for each, the classes of each, and every combination of codes."""

    codes: np.ndarray
    classes: list[np.ndarray]
    several: bool
    listed: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray) -> _Labels:
        """Number the labels."""
        check_classification_targets(y)
        several = type_of_target(y) == "multilabel-indicator"
        if y.ndim == 2 and not several and y.shape[1] > 1:
            raise DataError("several columns of labels must hold zeros and ones only", "fit a classifier for each")
        columns = y.T if several else [column_or_1d(y, warn=True)]
        classes = [np.array([0, 1]) if several else np.unique(column) for column in columns]
        codes = np.column_stack(
            [np.searchsorted(known, column) for known, column in zip(classes, columns, strict=True)]
        )
        sizes = [len(known) for known in classes]
        return cls(codes, classes, several, digits(np.arange(np.prod(sizes)), sizes))


class _Numbers(NamedTuple):
    """Features as numbers: the conditional model."""

    result: FitResult

    @classmethod
    def fitted(cls, asked: GibbsClassifier, X: np.ndarray, labels: _Labels, weights: Any) -> _Numbers:
        """Learn the labels given the numbers."""
        if asked.learning != "conditional":
            raise ArgumentError(
                "needs a distribution of the features", "give a `machine`", argument="learning", value=asked.learning
            )
        n_inputs, sizes = X.shape[1], [len(known) for known in labels.classes]
        outputs: Any = BinaryUnits(len(sizes)) if labels.several else CategoricalUnits(sizes)
        rng = as_generator(asked.random_state)
        family = ConditionalFamily.of(n_inputs, outputs, BinaryUnits(asked.n_hidden))
        data = Dataset.of_states(np.hstack([X, labels.codes]), "real", sample_weight=weights)
        start = Model(family, family.random_init(data, rng))
        l2 = one_over(data) if asked.l2 == "auto" else asked.l2
        learner = MCL(targets=range(n_inputs, n_inputs + len(sizes)), l2=asked.temperature**2 * l2)
        result = run(learner, start, data, rng, max_iter=asked.max_iter, tol=asked.tol)
        if not result.converged:
            notify(ConvergenceWarning(result.without_hint, result.remedy))
        return cls(result)

    def joint(self, X: np.ndarray, labels: _Labels) -> np.ndarray:
        """Return the probabilities of all combinations of labels."""
        model = self.result.model
        return model.family.output_probabilities(model.theta, X, labels.listed)

    def report_parts(self, asked: GibbsClassifier, data: Any, y: Any) -> tuple[Any, Any]:
        """Return the classifier itself: numbers have no distribution of their own."""
        return asked, None


class _Columns(NamedTuple):
    """Features and labels as columns of a table that a machine learns."""

    machine: Any
    targets: list[str]
    result: FitResult

    @classmethod
    def fitted(cls, asked: Any, X: Any, labels: _Labels, weights: Any) -> _Columns:
        """Learn the table."""
        machine = _machine(asked)
        features = Dataset.read(X, coding=machine._coding())
        targets = ["y"] if not labels.several else [f"y{k}" for k in range(labels.codes.shape[1])]
        while set(targets) & set(features.names):
            targets = [f"{name}_" for name in targets]
        table = _table(X, features.names, targets, _words(features, labels))
        if asked.learning == "joint":
            machine.fit(table, sample_weight=weights)
        else:
            _fit_given(machine, CONDITIONAL[asked.learning], targets, table, weights)
        asked.machine_ = machine
        return cls(machine, targets, machine.result_)

    def joint(self, X: Any, labels: _Labels) -> np.ndarray:
        """Return the probabilities of all combinations of labels."""
        names = self.machine.names_[: -len(self.targets)]
        table = _table(X, names, self.targets, np.full((len(X), len(self.targets)), np.nan))
        return self.machine.predict_proba(table, columns=self.targets, joint=True)

    def report_parts(self, asked: GibbsClassifier, data: Any, y: Any) -> tuple[Any, Any]:
        """Return the machine, and the table of features and labels."""
        if data is None or y is None:
            return self.machine, None
        names = self.machine.names_[: -len(self.targets)]
        features = Dataset.read(data, coding=self.machine._coding())
        words = _words(features, _Labels.of(np.asarray(y)))
        return self.machine.report_parts(_table(data, names, self.targets, words), None)


def _fit_given(machine: Any, kind: Any, targets: list[str], table: Any, weights: Any) -> None:
    """Learn the targets given the other columns; where features separate them `l2="auto"` holds the parameters."""
    l1, asked, t = machine.l1, machine.l2, machine.temperature
    strengths = (0.0, 1.0 / len(table)) if isinstance(asked, str) else (asked,)
    for l2 in strengths:
        machine.set_params(learner=kind(targets=targets, l1=t * l1, l2=t**2 * l2), l1=0.0, l2=0.0)
        try:
            machine.fit(table, sample_weight=weights)
            return
        except MaximumDoesNotExistError:
            if l2 == strengths[-1]:
                raise


def _machine(asked: GibbsClassifier) -> Any:
    """Return the machine that was asked for, not fitted."""
    if isinstance(asked.machine, Estimator):
        return clone(asked.machine)
    if not isinstance(asked.machine, str):
        raise ArgumentError(
            "must be a registered name or an estimator of this library", argument="machine", value=asked.machine
        )
    kind = ESTIMATORS.factory(asked.machine)
    wanted = {name: getattr(asked, name) for name in ("l2", "temperature", "max_iter", "tol", "random_state")}
    if asked.n_hidden:
        wanted["n_components"] = asked.n_hidden
    return kind(**{name: value for name, value in wanted.items() if name in settings_of(kind)})


def _words(features: Dataset, labels: _Labels) -> np.ndarray:
    """Return the labels as the machine writes values: those of its features where all columns have the same."""
    if not features.coding.domain.two_valued:
        return labels.codes
    if any(len(known) != 2 for known in labels.classes):
        raise ArgumentError(
            f"there are {len(labels.classes[0])} classes, but the machine's columns have two values",
            "use `machine='potts'`",
        )
    return np.array(features.coding.labels_of(0))[labels.codes]


def _table(X: Any, names: tuple[str, ...], targets: list[str], words: np.ndarray) -> Any:
    """Put labels beside features."""
    frame = X.copy() if is_frame(X) else pandas.DataFrame(np.asarray(X))
    frame.columns = list(names)
    return frame.assign(**{name: words[:, k] for k, name in enumerate(targets)})
