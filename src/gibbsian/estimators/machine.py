"""What machines of discrete variables share: the learner by name, penalties, where learning starts, rows on disk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gibbsian.data import Dataset, fit_memory, preflight
from gibbsian.data.findings import Findings
from gibbsian.data.readers import is_on_disk
from gibbsian.diagnostics.moments import DataMoments, data_moments
from gibbsian.domain import as_coding
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.estimators.common import LearnedMachine
from gibbsian.estimators.held_out import one_over
from gibbsian.inference import predict_cost
from gibbsian.inference.posterior import clamped_seconds
from gibbsian.learning import FitResult, Learner, as_learner
from gibbsian.learning.base import check_supported
from gibbsian.learning.initial import start_from
from gibbsian.learning.objectives.priors import check_prior
from gibbsian.learning.runaway import check_runaway
from gibbsian.models.base import Model
from gibbsian.models.variables import CUT, require_two_values, variables_of
from gibbsian.resources import memory_limit, require_memory
from gibbsian.settings import declared, free
from gibbsian.startup import check_is_fitted

# Seconds of pseudolikelihood for one parameter and distinct row, right to an order of magnitude.
PSEUDO_SECONDS = 1e-9


@declared
class Machine(LearnedMachine):
    """A machine of discrete variables; its subclasses say which model it has."""

    learner: Any = free(
        "auto",
        "How to learn: 'mle' (exact likelihood), 'mple' (pseudolikelihood), any registered name, or a learner object "
        "with its own settings. 'auto' takes the exact likelihood where one evaluation is quick. Else it begins with "
        "pseudolikelihood, or with 'pcd' where cells are missing (of many millions of cells with few missing in a row: "
        "pseudolikelihood, averaged over all ways to fill them), compares the moments of the model with the data's, "
        "and where they differ goes on by Monte Carlo likelihood ('mcmle').",
        doc="str or Learner",
    )
    start: Any = free(
        None,
        "Where learning begins: at zero, at a mean-field solution ('naive', 'bethe', ...; pairwise "
        "machines), or at the parameters of another model of the same structure.",
        doc="str, Model or fitted estimator, optional",
    )

    learners: ClassVar[tuple[str, ...]] = (
        "mle",
        "mple",
        "rm",
        "mpf",
        "mcl",
        "mcple",
        "mcmle",
        "cd",
        "pcd",
        "smci",
        "smci-pcd",
        "em",
        "online",
    )
    # Whether rows on disk stay there; else their distinct rows are read into memory.
    _learns_from_disk: ClassVar[bool] = False
    _learns_on_cluster: ClassVar[bool] = True

    def _zeros(self, data: Dataset) -> Model[Any]:
        """Return the model of the data at zero parameters."""
        raise NotImplementedError

    def _start(self, data: Dataset, rng: np.random.Generator) -> Model[Any]:
        model = self._zeros(data)
        if not data.on_disk:
            _require_memory(data, model)
        return start_from(self.start, model, data)

    def _learner(self, model: Model[Any], data: Dataset) -> Learner:
        if data.on_disk:
            learner = self._chunk_learner(model, data)
            if "disk" not in learner.takes:
                remedy = "leave `memory` out, or give `stream.collect()`"
                raise ArgumentError("needs rows in memory", remedy, argument="learner", value=self.learner)
            return learner
        if not self._is_auto:
            return self._learner_named(self.learner, epochs=self.max_iter)
        from gibbsian.learning.auto import auto_learner

        check_prior(self.log_prior)
        return auto_learner(model, data, self.tol, **self._natural_penalties())

    def _parameters_per_row(self, data: Any) -> float:
        return float(self._zeros(data).theta.size * one_over(data))

    def _evaluation_seconds(self, data: Any) -> float:
        if data.on_disk or data.on_cluster:
            return float("inf")
        from gibbsian.learning.auto import choose_learner

        model = self._zeros(data)
        if self.learner == "mple" and not data.has_missing:
            return data.n_states * model.theta.size * PSEUDO_SECONDS
        if self.learner == "mle" or (self._is_auto and choose_learner(model, data) == "mle"):
            missing = clamped_seconds(model, data) if data.has_missing else 0.0
            return predict_cost(model.family).seconds + missing
        return float("inf")  # chains, which differ from fit to fit

    @property
    def _is_auto(self) -> bool:
        return isinstance(self.learner, str) and self.learner == "auto"

    def _chunk_learner(self, model: Model[Any], data: Dataset) -> Learner:
        """Return the learner by minibatches: the machine's own, or one with the objective of its learner.

        Minibatches are sized for about 500 steps a pass: enough to settle, not so small that overhead rules.
        """
        batch_size = int(np.clip(data.n_rows // 500, 50, 50_000))
        if self._is_auto or self.learner == "online":
            return as_learner("online", **self._natural_penalties(), batch_size=batch_size)
        whole = self._learner_named(self.learner)
        check_supported(whole, model)
        return whole.by_chunks(batch_size)

    def _learns_by_chunks(self) -> bool:
        if not self._is_auto:
            self._learner_named(self.learner).by_chunks(1)
        return True

    def _preflight(self, data: Dataset, model: Model[Any], learner: Learner) -> None:
        if learner.targets_in(data) is not None:  # what the other columns never show together is no matter
            Findings(data, 0.0, 0.0).check_rows()
            return
        # a prior keeps parameters finite, as a penalty does
        l1, l2, log_prior = learner.penalties
        preflight(data, model, l1=1.0 if isinstance(l1, str) else l1, l2=l2 or float(log_prior is not None))

    def _judged(self, result: FitResult, data: Dataset, learner: Learner) -> FitResult:
        """Refuse parameters that have run away, and keep the data's moments to compare the model's with."""
        if not learner.penalties.any:
            check_runaway(result.model, data, learner, certain=not self._may_penalise)
        if learner.targets_in(data) is not None:  # the distribution of the other columns was not learned
            return result
        return replace(result, moments=self._moments(result.model, data))

    def _moments(self, model: Model[Any], data: Dataset) -> DataMoments | None:
        return data_moments(model, data)

    # -- rows on disk -------------------------------------------------------------------------------------------------
    def _read(self, X: Any, fitting: bool = False, sample_weight: ArrayLike | None = None) -> Any:
        stays = fitting and self._learns_from_disk and is_on_disk(X)
        if not stays or sample_weight is not None:
            data = super()._read(X, fitting, sample_weight)
            if data.coding.name == "real":
                raise CodingError("this needs discrete values, but the variables are real numbers", CUT)
            return data
        if not self._suits(X):
            reason = f"was declared but the stream is {X.coding.describe()}"
            raise CodingError(reason, "open it in that coding", argument="coding", value=self.coding)
        self._set_columns(X.names)
        return X

    def _suits(self, stream: Any) -> bool:
        """Say whether rows of a stream would be read as they are."""
        try:
            return self._coding_of(stream) == stream.coding
        except CodingError:
            return False


class Convertible:
    """Machines of two-valued variables can be written in another coding."""

    def convert(self: Any, coding: Any) -> Any:
        """Return the same distribution of two-valued variables written in another coding, exactly."""
        check_is_fitted(self)
        target = as_coding(coding)
        require_two_values(self.model_.variables)
        model, variables = self.model_, variables_of(target.domain, self.model_.n_variables)
        if variables != model.variables:
            model, _ = model.family.recode(model.theta, variables)
        provenance = {**self.result_.provenance, "converted_from": self.coding_.name}
        result = replace(self.result_, model=model, moments=None, provenance=provenance)
        converted = type(self)(**self.get_params(deep=False))
        converted.coding = target
        if model is not self.model_:
            converted.bias = True  # writing products of other values makes biases
        converted._set_columns(self.names_)
        return converted._set_fitted(result, target, self.names_)


def _require_memory(data: Dataset, model: Model[Any]) -> None:
    """Refuse a fit that would not fit the memory, and say how many variables would."""
    needed = fit_memory(data, model)
    most = int(model.n_variables * min(1.0, memory_limit() / needed) ** 0.5)  # parameters grow with their square
    require_memory(
        needed,
        f"fitting {model.n_variables:,} variables with {model.theta.size:,} parameters",
        f"use a sparser graph, or about {most:,} variables",
    )
