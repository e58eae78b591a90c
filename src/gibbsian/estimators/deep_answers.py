"""Questions to a fitted deep machine: hidden units, samples, bounds on likelihoods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError, MissingValuesError, TooExpensiveError
from gibbsian.estimators.answers import ScoreInterval
from gibbsian.estimators.layered_answers import QUICK_SECONDS
from gibbsian.estimators.layered_data import VisibleRows
from gibbsian.estimators.layered_scores import UpperLogPartitionMixin, checked_exact, checked_method, given_of
from gibbsian.inference import exact as exactly
from gibbsian.inference import is_affordable
from gibbsian.layered.annealing import LayerAnnealing
from gibbsian.layered.deep_likelihood import (
    can_sum_hidden,
    deep_log_likelihood,
    deep_log_partition,
    mean_field_bounds,
    recognition_bounds,
)
from gibbsian.layered.deep_mean_field import MeanField
from gibbsian.layered.likelihood import LogLikelihood
from gibbsian.layered.rows import LayerRows, layer_columns
from gibbsian.layered.sampling import gibbs_steps
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.deep import DeepModel
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.restricted import RestrictedModel
from gibbsian.rng import RandomState, as_generator

# Draws behind the score of a row under a belief network, and their seed: a score is asked for twice and is the same.
SCORE_DRAWS, SCORE_SEED = 100, 0
# States of the hidden layers of a belief network below the top that are summed over instead: whatever the number of
# rows, so that the score of a row does not depend on the others.
SCORE_STATES = 2.0**12
# Steps of the chains behind samples.
SAMPLE_STEPS = 1000
# Nothing that the user sees shall depend on which rows were updated together.
PATIENT = MeanField(max_iter=500, tol=1e-9)


class DeepAnswersMixin(TransformerMixin, UpperLogPartitionMixin):
    """What can be asked of a machine that has a deep model as ``model_`` and reads data by ``_read``."""

    model_: Any
    coding_: Any
    names_: tuple[str, ...]
    random_state: RandomState

    score_kind = "log_likelihood_lower_bound"
    _width_is_said = "scores are lower by up to {width:.2g} more than the bound on each row"

    if TYPE_CHECKING:

        def _read(self, X: Any, sample_weight: Any = None) -> VisibleRows: ...
        def _labels(self, states: np.ndarray) -> np.ndarray: ...

    # -- between the layers ---------------------------------------------------------------------------------------
    def transform(self, X: Any) -> np.ndarray:
        """Return the probability of the upper value of each unit of the top layer given each row.

        A deep Boltzmann machine answers by mean field, in which missing cells are hidden units too; a belief network by
        one pass upwards.

        Examples
        --------
        >>> import gibbsian as gb
        >>> dbm = gb.DeepBoltzmannMachine((3, 2), random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> dbm.transform([[0, 1], [1, None]]).shape
        (2, 2)
        """
        return self.transform_layers(X)[-1]

    def transform_layers(self, X: Any) -> list[np.ndarray]:
        """Return the same for every hidden layer, from the lowest.

        Examples
        --------
        >>> import gibbsian as gb
        >>> dbn = gb.DeepBeliefNetwork((3, 2), random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> [part.shape for part in dbn.transform_layers([[0, 1]])]
        [(1, 3), (1, 2)]
        """
        rows = self._read(X).rows
        model = self.model_
        if isinstance(model, BeliefNetwork):
            means = model.upward_means(self._complete(rows, "transform"))[1:]
        else:
            means = list(_posterior_means(model, rows)[1:])
        kinds = [layer.kind for layer in model.layers[1:]]
        return [0.5 * (1.0 + part) if kind == "spin" else part for part, kind in zip(means, kinds, strict=True)]

    def sample(
        self,
        n_samples: int = 1,
        method: str = "auto",
        n_steps: int | None = None,
        random_state: RandomState = None,
    ) -> np.ndarray:
        """Draw rows from the machine, in the coding of the data it was fitted on.

        A deep Boltzmann machine draws odd and even layers in turn; a belief network runs the machine at its top, and
        then goes down once.

        Parameters
        ----------
        n_samples : int
            How many rows.
        method : "auto", "exact" or "gibbs"
            ``"exact"`` lists every other layer, or one layer at the top of a belief network (at most 25 two-valued
            units in all); ``"gibbs"`` runs a chain for each row. ``"auto"`` is exact where that is quick.
        n_steps : int, optional
            Steps of each chain; 1000 by default.
        random_state : None, int or Generator
            Overrides the machine's own.

        Examples
        --------
        >>> import gibbsian as gb
        >>> dbm = gb.DeepBoltzmannMachine((3, 2), random_state=0).fit([["yes", "no"], ["no", "yes"], ["no", "no"]])
        >>> dbm.sample(4).shape
        (4, 2)
        """
        check_is_fitted(self)
        check_whole_number("n_samples", n_samples)
        if method not in ("auto", "exact", "gibbs"):
            raise ArgumentError("is not known", "use one of auto, exact, gibbs", argument="method", value=method)
        if n_steps is not None:
            check_whole_number("n_steps", n_steps)
            if method == "exact":
                raise ArgumentError("n_steps belongs to `method='gibbs'`", "leave it out")
        rng = as_generator(self.random_state if random_state is None else random_state)
        machine = self._summable
        model = self.model_
        if method == "exact" or (method == "auto" and n_steps is None and is_affordable(model, QUICK_SECONDS)):
            return self._labels(exactly(model, instead="draw with `method='gibbs'`").sample(n_samples, rng))
        start = machine.draw_visible_at(np.tile(machine.visible_biases / machine.temperature, (n_samples, 1)), rng)
        values = gibbs_steps(machine, start, SAMPLE_STEPS if n_steps is None else n_steps, rng)
        if isinstance(model, BeliefNetwork):
            visible = model.draw_down(values, rng)[0]
        else:
            visible = values[:, : model.visible.width]
        return self._labels(model.visible.decode(visible))

    @property
    def _summable(self) -> RestrictedModel:
        """The restricted machine whose log Z is that of the model."""
        model = self.model_
        return model.folded() if isinstance(model, DeepModel) else model.top

    # -- likelihoods ----------------------------------------------------------------------------------------------
    def score_samples(self, X: Any) -> np.ndarray:
        """Return a lower bound on the log-likelihood of each row, in nats.

        By mean field for a deep Boltzmann machine, where missing cells are hidden units. For a belief network the
        hidden layers are summed over where they are small (at most 4096 states below the top one); else by draws from
        the recognition weights, with the same random numbers for every row: a lower bound in expectation, less two
        standard errors. log Z is exact where few enough units are to be summed over, else its upper side, and a warning
        says so once. The truth is higher: compare machines of one kind by it, and see `log_likelihood` for what is
        known in words.

        Examples
        --------
        >>> import numpy as np, gibbsian as gb
        >>> X = [[0, 1], [1, 0], [1, 1], [0, 0]]
        >>> dbm = gb.DeepBoltzmannMachine((3, 2), random_state=0).fit(X)
        >>> bool(np.exp(dbm.score_samples(X)).sum() < 1)
        True
        """
        return self._bounds(self._rows_to_score(X)) - self._log_partition_above()

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean of `score_samples`.

        Examples
        --------
        >>> import gibbsian as gb
        >>> dbn = gb.DeepBeliefNetwork((3, 2), random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> bool(dbn.score([[0, 1]]) == dbn.score_samples([[0, 1]])[0])
        True
        """
        rows = self._rows_to_score(X, sample_weight)
        return float(rows.shares @ self._bounds(rows)) - self._log_partition_above()

    def log_likelihood(
        self,
        X: Any,
        sample_weight: Any = None,
        n_samples: int | None = None,
        betas: int | None = None,
        exact: bool | None = None,
    ) -> LogLikelihood:
        """Return what is known of the mean log-likelihood per row: exact for small machines, else a lower bound.

        Parameters
        ----------
        X : array, frame, path or Dataset
            The rows.
        sample_weight : array of shape (n_rows,), optional
            How much each row counts.
        n_samples, betas : int, optional
            As in `log_partition`.
        exact : bool, optional
            True insists on exact sums, over the hidden units of each row and for log Z, False on the bound; by default
            what is quick, with log Z by annealing where `n_samples` or `betas` are given.

        Examples
        --------
        >>> import gibbsian as gb
        >>> dbm = gb.DeepBoltzmannMachine((3, 2), random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> truth, bound = dbm.log_likelihood([[0, 1]]), dbm.log_likelihood([[0, 1]], exact=False)
        >>> truth.exact, bool(bound.lower < truth.lower)
        (True, True)
        """
        rows = self._rows_to_score(X, sample_weight)
        exact = checked_exact(exact, None, None)
        summed = checked_exact(exact or None, n_samples, betas)
        annealing = self._annealing(rows, n_samples, betas)
        rng = as_generator(self.random_state)
        if exact:
            exactly(self.model_, instead="set `exact=False` for a lower bound")
        try:
            return deep_log_likelihood(
                self.model_, rows, annealing=annealing, rng=rng, exact=exact, exact_log_partition=summed
            )
        except TooExpensiveError as error:
            if not exact:
                raise
            raise TooExpensiveError(f"{str(error).partition(': ')[0]}", "set `exact=False` for a lower bound") from None

    def score_interval(
        self, X: Any, sample_weight: Any = None, n_samples: int | None = None, betas: int | None = None
    ) -> ScoreInterval:
        """Return the mean log-likelihood per row between two sides, log Z by annealed importance sampling.

        The upper side is infinite where the hidden units of a row are too many to be summed over: only a lower bound
        is known then.

        Examples
        --------
        >>> import gibbsian as gb
        >>> dbm = gb.DeepBoltzmannMachine((3, 2), random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> found = dbm.score_interval([[0, 1]], n_samples=100, betas=100)
        >>> found.lower <= dbm.log_likelihood([[0, 1]]).lower <= found.upper
        True
        """
        rows = self._rows_to_score(X, sample_weight)
        checked_exact(False, n_samples, betas)
        annealing = self._annealing(rows, n_samples, betas)
        rng = as_generator(self.random_state)
        found = deep_log_likelihood(self.model_, rows, annealing=annealing, rng=rng, exact_log_partition=False)
        assert isinstance(found.log_partition, LogPartitionInterval)
        return ScoreInterval(found.lower, found.upper, found.log_partition)

    def log_partition(
        self, method: str = "auto", n_samples: int | None = None, betas: int | None = None
    ) -> float | LogPartitionInterval:
        """Return log Z exactly, or between two sides; of a belief network that of the machine at the top.

        Parameters
        ----------
        method : "auto", "exact" or "ais"
            ``"exact"`` sums over every other layer, of at most 25 two-valued units in all. ``"ais"`` brackets log Z by
            annealed importance sampling to the machine and back. ``"auto"`` is exact where possible, unless `n_samples`
            or `betas` ask for annealing.
        n_samples, betas : int, optional
            Walkers of annealed importance sampling, and temperatures on their way.

        Examples
        --------
        >>> import gibbsian as gb
        >>> dbm = gb.DeepBoltzmannMachine((3, 2), random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        >>> bracket = dbm.log_partition("ais", n_samples=100, betas=100)
        >>> bracket.lower <= dbm.log_partition() <= bracket.upper
        True
        """
        check_is_fitted(self)
        exact = checked_method(method, n_samples, betas)
        annealing = self._annealing(None, n_samples, betas)
        if exact:
            exactly(self.model_, instead="bracket log Z by `method='ais'` (of scores: log_likelihood)")
        return deep_log_partition(self.model_, annealing, as_generator(self.random_state), exact=exact)

    def _annealing(self, rows: LayerRows | None, n_samples: int | None, betas: int | None) -> LayerAnnealing:
        machine = self._summable
        settings: dict[str, Any] = {"summed": "visible" if machine.visible.width > machine.hidden.width else "hidden"}
        if rows is not None and isinstance(self.model_, DeepModel):
            settings["base"] = rows
        return LayerAnnealing(**settings, **given_of(n_walkers=n_samples, betas=betas))

    def _rows_to_score(self, X: Any, sample_weight: Any = None) -> LayerRows:
        rows = self._read(X, sample_weight).rows
        if isinstance(self.model_, BeliefNetwork):
            self._complete(rows, "the likelihood of a belief network")
        return rows

    def _expected_visible(self, rows: LayerRows) -> np.ndarray:
        return _posterior_means(self.model_, rows)[0]

    def _bounds(self, rows: LayerRows) -> np.ndarray:
        """Return lower bounds on log P(v) + log Z."""
        if isinstance(self.model_, DeepModel):
            return mean_field_bounds(self.model_, rows, PATIENT)
        if can_sum_hidden(self.model_, most_states=SCORE_STATES):
            return self.model_.log_weights(rows.states)
        bounds, errors = recognition_bounds(self.model_, rows, SCORE_DRAWS, SCORE_SEED, common=True)
        return bounds - 2.0 * errors

    def _complete(self, rows: LayerRows, what: str) -> np.ndarray:
        """Return the values of rows in which nothing is missing."""
        if rows.missing is not None and rows.missing.any():
            row, column = np.argwhere(rows.missing)[0]
            raise MissingValuesError(
                f"row {row}, column {self.names_[column]!r} is missing, but {what} needs complete rows",
                "fill it with a DeepBoltzmannMachine or a RestrictedBoltzmannMachine, in which it is a hidden unit",
            )
        return self.model_.visible.encode(rows.states)


def _posterior_means(model: DeepModel, rows: LayerRows) -> tuple[np.ndarray, ...]:
    missing = None if rows.missing is None else layer_columns(model.visible, rows.missing)
    return PATIENT(model, model.visible.encode(rows.encodable()), missing).means
