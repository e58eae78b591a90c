"""Answers about models made of layers: exact where a layer can be summed over, else by bounds and annealing."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from gibbsian.answers.base import Answers
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.expectations.deep_mean_field import DeepMeanField
from gibbsian.inference import exact, is_affordable
from gibbsian.layered import annealing as restricted_annealing
from gibbsian.layered.annealing import LayerAnnealing
from gibbsian.layered.deep_likelihood import (
    can_sum_hidden,
    deep_log_likelihood,
    deep_log_partition,
    mean_field_bounds,
    recognition_bounds,
)
from gibbsian.layered.likelihood import LogLikelihood, log_likelihood_of
from gibbsian.layered.missing import fill, log_evidence
from gibbsian.layered.pseudolikelihood import log_pseudolikelihood
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.sampling import draw, gibbs_steps
from gibbsian.models.layers import CategoricalLayer, Layer
from gibbsian.settings import Setting, check_value

# "auto" samples exactly where listing a layer takes no longer.
QUICK_SECONDS = 2.0
# Steps of the chains behind samples.
SAMPLE_STEPS = 1000
# Draws behind the score of a row under a belief network, and their seed: a score is asked for twice and is the same.
SCORE_DRAWS, SCORE_SEED = 100, 0
# States of the hidden layers of a belief network below the top that are summed over instead, and completions of a row
# with missing cells: whatever the number of rows, so that the score of a row does not depend on the others.
SCORE_STATES = 2.0**12
# Nothing that the user sees shall depend on which rows were updated together.
PATIENT = DeepMeanField(max_iter=500, tol=1e-9)
_N_STEPS = Setting("Steps of each chain.", "whole", low=1)


class LayerAnswers(Answers):
    """Answers about a restricted machine."""

    def log_partition_interval(
        self,
        rng: np.random.Generator,
        n_samples: int | None = None,
        betas: int | None = None,
        data: Dataset | None = None,
        warn: bool = True,
    ) -> Any:
        """Return log Z between two sides, by annealing from independent units, with the rates of data where given."""
        annealing = self._annealing(n_samples, betas, data)
        return restricted_annealing.log_partition_interval(self.model, annealing=annealing, rng=rng, warn=warn)

    def _annealing(self, n_samples: int | None, betas: int | None, data: Dataset | None) -> LayerAnnealing:
        base: dict[str, Any] = {} if data is None else {"base": LayerRows.of(data)}
        return LayerAnnealing(**base, **_given(n_walkers=n_samples, betas=betas))

    # -- rows ---------------------------------------------------------------------------------------------------------
    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return ``log P + log Z`` of the present cells of each distinct row, all else summed out exactly."""
        return log_evidence(self.model, _distinct(data))

    def log_evidence_interval(
        self, data: Dataset, rng: np.random.Generator, n_samples: int | None = None, betas: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the same twice: rows are summed out exactly."""
        evidence = self.log_evidence(data)
        return evidence, evidence

    def log_evidence_bound(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the same: the hidden units of a row are independent given it."""
        return self.log_evidence(data)

    def log_likelihood(
        self,
        data: Dataset,
        rng: np.random.Generator,
        n_samples: int | None = None,
        betas: int | None = None,
        exactly: bool | None = None,
    ) -> LogLikelihood:
        """Return the mean log-likelihood per row: exact where log Z is, else between two sides with standard errors."""
        exactly = _whether_exact(exactly, n_samples, betas)
        annealing = self._annealing(n_samples, betas, data)
        return log_likelihood_of(self.model, LayerRows.of(data), annealing=annealing, rng=rng, exact=exactly)

    def log_pseudolikelihood(self, data: Dataset) -> float:
        """Return the mean of ``sum_i log P(v_i | the other columns)``, hidden units summed out."""
        if self.model.visible.kind == "gaussian":
            raise ArgumentError("the pseudolikelihood has no closed form for Gaussian units", "ask for the score")
        data.require_complete("the pseudolikelihood", "")
        return float(np.average(log_pseudolikelihood(self.model, data.states), weights=data.weights))

    def cell_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the probabilities of the values of each cell given the present cells of its distinct row."""
        return by_value(self.model.visible, self.expected_visible(data, rng))

    def expected_visible(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the expected values of the visible units given the present cells of each distinct row."""
        return fill(self.model, _distinct(data), rng).visible

    def hidden_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the probability of the upper value of each unit of the highest layer given each distinct row."""
        return self.layer_probabilities(data, rng)[-1]

    def layer_probabilities(self, data: Dataset, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the same for every hidden layer, from the lowest."""
        hidden = zip(self.model.layers[1:], self.layer_means(data, rng), strict=True)
        return [shares_of(layer, means) for layer, means in hidden]

    def layer_means(self, data: Dataset, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the expected values of the hidden layers given the present cells of each distinct row."""
        if data.missing is None:
            return [self.model.hidden_means(self.model.visible.encode(data.states))]
        return [fill(self.model, _distinct(data), rng).hidden]

    def visible_probabilities(self, hidden: np.ndarray) -> np.ndarray:
        """Return the expected visible values given probabilities of the hidden units, as probabilities."""
        values = 2.0 * hidden - 1.0 if self.model.hidden.kind == "spin" else hidden
        return shares_of(self.model.visible, self.model.visible_means(values))

    # -- samples ------------------------------------------------------------------------------------------------------
    def gibbs(self, states: np.ndarray, n_steps: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the hidden units given states of the visible ones and back, so many times."""
        visible = self.model.visible
        return visible.decode(gibbs_steps(self.model, visible.encode(states), n_steps, rng))

    def sample(
        self,
        n_samples: int,
        rng: np.random.Generator,
        method: str = "auto",
        n_steps: int | None = None,
        start: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw states of the visible and of the hidden units, exactly where that is quick and else by chains.

        Chains make `n_steps` steps, from states `start` or from the visible biases alone.
        """
        if method not in ("auto", "exact", "gibbs"):
            raise ArgumentError("is not known", "use one of auto, exact, gibbs", argument="method", value=method)
        if n_steps is not None:
            check_value("n_steps", n_steps, _N_STEPS)
        by_chains = n_steps is not None or start is not None
        if method == "exact" and by_chains:
            raise ArgumentError("`n_steps` and `start` belong to `method='gibbs'`", "leave them out")
        if method == "exact" or (method == "auto" and not by_chains and is_affordable(self.model, QUICK_SECONDS)):
            values = exact(self.model, instead="draw with `method='gibbs'`").sample_layers(n_samples, rng)
        else:
            values = self._chains(n_samples, rng, SAMPLE_STEPS if n_steps is None else n_steps, start)
        states = [layer.decode(part) for layer, part in zip(self.model.layers, values, strict=True)]
        return states[0], np.hstack(states[1:])

    def _chains(
        self, n_samples: int, rng: np.random.Generator, n_steps: int, start: np.ndarray | None
    ) -> list[np.ndarray]:
        model = self.model
        values = None if start is None else model.visible.encode(start)[np.arange(n_samples) % len(start)]
        drawn = draw(model, n_samples, rng, n_chains=n_samples, burn_in=n_steps, values=values)[:, 0]
        visible = model.visible.encode(drawn)
        return [visible, model.draw_hidden(visible, rng)]


class DeepAnswers(LayerAnswers):
    """Answers about a deep Boltzmann machine: what its rows say of hidden units is bounded by mean field."""

    def log_partition_interval(
        self,
        rng: np.random.Generator,
        n_samples: int | None = None,
        betas: int | None = None,
        data: Dataset | None = None,
        warn: bool = True,
    ) -> Any:
        """Return log Z between two sides, by annealing from independent units, with the rates of data where given."""
        annealing = self._annealing(n_samples, betas, data)
        return deep_log_partition(self.model, annealing, rng, exact=False, warn=warn)

    def _annealing(self, n_samples: int | None, betas: int | None, data: Dataset | None) -> LayerAnnealing:
        folded = self.model.folded()
        summed = "visible" if folded.visible.width > folded.hidden.width else "hidden"
        base: dict[str, Any] = {} if data is None or not self.model.hides_missing else {"base": LayerRows.of(data)}
        return LayerAnnealing(summed=summed, **base, **_given(n_walkers=n_samples, betas=betas))

    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return a lower bound on ``log P + log Z`` of the present cells of each distinct row."""
        return mean_field_bounds(self.model, _distinct(data), PATIENT)

    def log_evidence_interval(
        self, data: Dataset, rng: np.random.Generator, n_samples: int | None = None, betas: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return exact sums twice where the hidden units are few, else the bound and infinity."""
        if data.missing is None and can_sum_hidden(self.model, data.n_rows):
            evidence = self.model.log_weights(data.states)
            return evidence, evidence
        lower = self.log_evidence(data)
        return lower, np.full_like(lower, np.inf)

    def log_likelihood(
        self,
        data: Dataset,
        rng: np.random.Generator,
        n_samples: int | None = None,
        betas: int | None = None,
        exactly: bool | None = None,
    ) -> LogLikelihood:
        """Return what is known of the mean log-likelihood per row: exact for small machines, else a lower bound."""
        exactly = _whether_exact(exactly, None, None)
        summed = _whether_exact(exactly or None, n_samples, betas)
        annealing = self._annealing(n_samples, betas, data)
        return deep_log_likelihood(
            self.model, LayerRows.of(data), annealing=annealing, rng=rng, exact=exactly, exact_log_partition=summed
        )

    def log_pseudolikelihood(self, data: Dataset) -> float:
        """Refuse: it would need the hidden layers summed out exactly for every value of every cell."""
        raise ArgumentError("a deep machine has no pseudolikelihood in closed form", "ask for the score")

    def expected_visible(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the expected values of the visible units given the present cells of each distinct row."""
        return self._posterior(data)[0]

    def layer_means(self, data: Dataset, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the expected values of the hidden layers by mean field; missing cells are hidden units too."""
        return list(self._posterior(data)[1:])

    def _posterior(self, data: Dataset) -> tuple[np.ndarray, ...]:
        visible, rows = self.model.visible, _distinct(data)
        missing = None if rows.missing is None else visible.spread(rows.missing)
        return PATIENT(self.model, visible.encode(rows.encodable()), missing).means

    def _chains(
        self, n_samples: int, rng: np.random.Generator, n_steps: int, start: np.ndarray | None
    ) -> list[np.ndarray]:
        if start is not None:
            raise ArgumentError("the chains of deep machines start from the biases alone", "leave `start` out")
        machine = self.model.folded()
        fields = np.tile(machine.visible_biases / machine.temperature, (n_samples, 1))
        values = gibbs_steps(machine, machine.draw_visible_at(fields, rng), n_steps, rng)
        # hidden values by a generator of their own: whether they are looked at has no effect on the rows
        return self.model.unfold_values(values, machine.draw_hidden(values, rng.spawn(1)[0]), rng)


class NetworkAnswers(DeepAnswers):
    """Answers about a belief network: rows go up by its recognition weights.

    Missing cells are summed over, each completion of a row by its probability, where there are few.
    """

    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return a lower bound on ``log P + log Z`` of the present cells of each distinct row.

        Exact where the hidden layers below the top are small, else by draws from the recognition weights, less two
        standard errors: with the same random numbers for every row.
        """
        states, firsts = self._completions(data)
        return np.logaddexp.reduceat(self._of_complete(states), firsts)

    def _of_complete(self, states: np.ndarray) -> np.ndarray:
        if can_sum_hidden(self.model, most_states=SCORE_STATES):
            return self.model.log_weights(states)
        bounds, errors = recognition_bounds(self.model, LayerRows(states), SCORE_DRAWS, SCORE_SEED, common=True)
        return bounds - 2.0 * errors

    def _completions(self, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
        """All ways to fill the missing cells of each distinct row, and where those of a row begin."""
        if data.missing is None:
            return data.states, np.arange(data.n_states)
        sizes, domain = data.domain.cardinalities(data.n_variables), data.domain
        filled, counts = [], []
        for codes, holes in zip(domain.to_codes(data.states), data.missing, strict=True):
            ways = np.prod(sizes[holes], dtype=float)
            if ways > SCORE_STATES:
                raise TooExpensiveError(
                    f"a row lacks cells that {ways:.2g} combinations of values fill, and a belief network has no other "
                    "sum over them",
                    "give rows with fewer missing cells, or use a DeepBoltzmannMachine, in which they are hidden units",
                )
            rows = np.tile(codes, (int(ways), 1))
            rows[:, holes] = list(itertools.product(*map(range, sizes[holes])))
            filled.append(domain.from_codes(rows))
            counts.append(len(rows))
        return np.concatenate(filled), np.concatenate([[0], np.cumsum(counts)[:-1]])

    def _averaged(self, data: Dataset, values: Any) -> list[np.ndarray]:
        """Average what `values` makes of completions over those of each row, by their probabilities."""
        states, firsts = self._completions(data)
        parts = values(states)
        if data.missing is None:
            return parts
        weights = self._of_complete(states)
        totals = np.repeat(np.logaddexp.reduceat(weights, firsts), np.diff([*firsts, len(states)]))
        shares = np.exp(weights - totals)[:, None]
        return [np.add.reduceat(shares * part, firsts, axis=0) for part in parts]

    def expected_visible(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the expected values of the visible units given the present cells of each distinct row."""
        return self._averaged(data, lambda states: [self.model.visible.encode(states)])[0]

    def layer_means(self, data: Dataset, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the means of the hidden layers, each given the means of the one below."""
        visible = self.model.visible
        return self._averaged(data, lambda states: self.model.upward_means(visible.encode(states))[1:])


def by_value(layer: Layer, values: np.ndarray) -> np.ndarray:
    """Return expected values as probabilities: of the upper of two values, or of each, on an axis of their own."""
    if layer.kind == "gaussian":
        raise ArgumentError("real numbers have no probabilities of single values", "ask for this of discrete columns")
    if not isinstance(layer, CategoricalLayer):
        return shares_of(layer, values)
    shaped = np.zeros((len(values), layer.n_units, max(layer.sizes)))
    for unit, (start, size) in enumerate(zip(layer.starts, layer.sizes, strict=True)):
        shaped[:, unit, :size] = values[:, start : start + size]
    return shaped


def shares_of(layer: Layer, means: np.ndarray) -> np.ndarray:
    """Return means of units as probabilities of the upper value, where they have two."""
    return 0.5 * (1.0 + means) if layer.kind == "spin" else means


def _distinct(data: Dataset) -> LayerRows:
    return LayerRows(data.states, None, data.missing)


def _given(**settings: Any) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _whether_exact(exactly: bool | None, n_samples: int | None, betas: int | None) -> bool | None:
    """Whether sums are to be exact, None where the machine decides; numbers of annealing ask for annealing."""
    if exactly is not None and not isinstance(exactly, bool | np.bool_):
        raise ArgumentError("must be True, False or None", argument="exact", value=exactly)
    if n_samples is not None:
        check_value("n_samples", n_samples, Setting("Walkers.", "whole", low=2))
    asked = n_samples is not None or betas is not None
    if exactly and asked:
        raise ArgumentError("`n_samples` and `betas` belong to `exact=False`", "leave them out")
    return (False if asked else None) if exactly is None else bool(exactly)
