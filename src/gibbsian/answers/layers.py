"""Answers about machines in layers: restricted and deep ones, and belief networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from gibbsian.answers.about import ANSWERS
from gibbsian.answers.base import Answers, annealing_of, by_value
from gibbsian.answers.draws import MAX_R_HAT, layer_r_hat, tempered_states, warn_of
from gibbsian.answers.modes import Modes, Rounds, Search, climbed
from gibbsian.answers.queries import Queries
from gibbsian.data import Dataset
from gibbsian.diagnostics.evidence import EvidenceInterval
from gibbsian.diagnostics.likelihood import LogLikelihood, LogLikelihoodBound
from gibbsian.diagnostics.partition import LogPartitionInterval, log_partition_interval
from gibbsian.errors import ArgumentError, MissingValuesError, TooExpensiveError
from gibbsian.estimate import Estimate
from gibbsian.expectations import Expectation
from gibbsian.expectations.deep_mean_field import DeepMeanField
from gibbsian.expectations.error_rules import error_floor
from gibbsian.expectations.layers import expected_layers, mean_field_bounds, mean_field_posterior, recognition_bounds
from gibbsian.inference import exact, is_affordable
from gibbsian.inference.completions import Completions, count_completions, enumerate_completions
from gibbsian.inference.layer_pseudolikelihood import column_costs, conditional_costs, log_pseudolikelihood
from gibbsian.inference.log_tables import digits
from gibbsian.inference.posterior import log_evidence, split_rows
from gibbsian.models.base import DiscreteFamily, Model, Units
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.layers.belief_network import BeliefNetworkFamily
from gibbsian.models.layers.stack import StackFamily, top_of
from gibbsian.models.layers.units import codes_of, columns_of, count_states, value_tables
from gibbsian.models.variables import Variables
from gibbsian.resources import spans
from gibbsian.rng import Key
from gibbsian.sampling import draw_layers, layer_path
from gibbsian.sampling.cooling import cooled_states
from gibbsian.sampling.layer_paths import LayerPath, fields_of_values, filled_values
from gibbsian.sampling.layers import independent_chains, visible_chains
from gibbsian.settings import Setting, check_value
from gibbsian.startup import log_softmax

if TYPE_CHECKING:
    from gibbsian.inference.layer_sums import LayerSumAnswers

# "auto" samples exactly where listing a layer takes no longer.
QUICK_SECONDS = 2.0
# Steps of the chains behind samples.
SAMPLE_STEPS = 1000
# A flip that gains less gains nothing but rounding.
STILL = 1e-9
# Climbs to the peaks of a density.
CLIMBS = 100
# Draws behind the score of a row under a belief network, and their seed: a score is asked for twice and is the same.
SCORE_DRAWS, SCORE_SEED = 100, 0
# States of the hidden layers of a belief network below the top that are summed over instead: whatever the number of
# rows, so that the score of a row does not depend on the others.
SCORE_STATES = 2.0**12
# The hidden layers of rows are summed exactly, where that is asked for or quick, up to so many states, and while rows
# times states times columns stay below this.
MOST_STATES, MOST_TERMS = 2.0**16, 1e8
# Entries of the tables that make a belief network a Markov random field.
MOST_ENTRIES = 2.0**20
# Nothing that the user sees shall depend on which rows were updated together.
PATIENT = DeepMeanField(max_iter=500, tol=1e-9)
# Temperatures of the annealing of a row that lacks too many cells to sum over.
EVIDENCE_BETAS = 1000
# Rows from which base rates of all layers are taken.
ROWS_FOR_RATES = 2000
_N_STEPS = Setting("Steps of each chain.", "whole", low=1)
_N_SAMPLES = Setting("Walkers.", "whole", low=2)


class LayerAnswers(Answers[StackFamily]):
    """Answers about a restricted machine, by sums over its smaller layer, annealing and block Gibbs chains."""

    most_listed = 2.0**18

    def __init__(self, model: Model[StackFamily]):
        super().__init__(model)
        self.layers: tuple[Units, ...] = model.family.layers
        # the sums over several hidden layers are long, and real numbers have no list of values
        self.has_conditionals = len(self.layers) == 2 and not self.layers[0].variables.real

    def conditional_costs(self, codes: np.ndarray) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
        """Return the costs of changing each column of complete rows, hidden units summed out."""
        return *column_costs(self.model, self._values(codes)), self._log_weights(codes)

    def _values(self, codes: np.ndarray) -> np.ndarray:
        """Return the values of rows of the visible layer."""
        return np.asarray(self.layers[0].encode(codes), np.float64)

    def _log_weights(self, codes: np.ndarray) -> np.ndarray:
        """Return ``log P + log Z`` of rows, hidden units summed out exactly."""
        return self.model.family.log_evidence(self.model.theta, self._values(codes))

    # -- log Z --------------------------------------------------------------------------------------------------------
    def _way(self, data: Dataset | None, rng: np.random.Generator) -> LayerPath:
        """Return the path from units with the base rates of data, or of walkers to the machine."""
        return layer_path(self.model, "chains" if data is None else self._base(data), random_state=rng)

    def _base(self, data: Dataset) -> str | Dataset | np.ndarray:
        """Where annealing starts, given data."""
        return data

    # -- rows ---------------------------------------------------------------------------------------------------------
    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return ``log P + log Z`` of the present cells of each distinct row, all else summed out exactly."""
        return log_evidence(self.model, data)

    def log_evidence_interval(
        self, data: Dataset, rng: np.random.Generator, n_samples: int | None = None, betas: int | None = None
    ) -> EvidenceInterval:
        """Return the same between two sides: rows that lack too many cells to sum over are annealed."""
        light, together, heavy = split_rows(self.model.family, data.states, data.missing)
        lower = np.empty(data.n_states)
        if len(light):
            lower[light] = together.log_evidence(self.model.theta)
        upper, annealing = lower.copy(), annealing_of(n_samples, EVIDENCE_BETAS if betas is None else betas)
        for state in heavy:
            rest, constant = self._rest(data.states[state], data.holes[state])
            found = log_partition_interval(rest, "gibbs", annealing, rng, warn=False)
            lower[state], upper[state] = constant + found.lower, constant + found.upper
        return EvidenceInterval(lower, upper)

    def log_evidence_bound(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the evidence itself, which no bound is above."""
        return self.log_evidence(data)

    def log_likelihood(
        self,
        data: Dataset,
        rng: np.random.Generator,
        n_samples: int | None = None,
        betas: int | None = None,
        exactly: bool | None = None,
    ) -> LogLikelihood:
        """Return the mean log-likelihood of rows: exact where log Z is, else between two sides with standard errors.

        `exactly` True insists on the sum, False on annealing; `n_samples` and `betas` ask for annealing.
        """
        exactly = asked_exactly(exactly, n_samples, betas)
        # summing over missing cells is the cheaper thing to be refused for
        log_weights = self.log_evidence(data)
        log_z = self._log_partition(data, rng, exactly, n_samples, betas)
        return LogLikelihood(log_weights[data.row_of], data.shares, log_z)

    def _log_partition(
        self, data: Dataset, rng: np.random.Generator, exactly: bool | None, n_samples: int | None, betas: int | None
    ) -> float | LogPartitionInterval:
        """Return log Z, exactly if asked for or left open and in reach, else between two sides."""
        if is_affordable(self.model.family) if exactly is None else exactly:
            return exact(self.model, instead="set `exact=False`, which brackets or bounds it").log_partition
        return self.log_partition_interval(rng, n_samples, betas, data)

    def log_pseudolikelihood(self, data: Dataset) -> float:
        """Return the mean of ``sum_i log P(v_i | the other columns)``, hidden units summed out."""
        if self.layers[0].variables.real:
            raise ArgumentError("the pseudolikelihood has no closed form for Gaussian units", "ask for the score")
        data.require_complete("the pseudolikelihood", "")
        return float(np.average(log_pseudolikelihood(self.model, data.states), weights=data.weights))

    def cell_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the probabilities of the values of each cell given the present cells of its distinct row."""
        return cell_shares(self.layers[0], self.expected(data, rng)[0])

    def hidden_probabilities(self, data: Dataset, rng: np.random.Generator) -> np.ndarray:
        """Return the probability of the upper value of each unit of the highest layer given each distinct row."""
        return self.layer_probabilities(data, rng)[-1]

    def layer_probabilities(self, data: Dataset, rng: np.random.Generator) -> list[np.ndarray]:
        """Return the same for every hidden layer, from the lowest."""
        hidden = zip(self.layers[1:], self.expected(data, rng)[1:], strict=True)
        return [shares_of(layer, means) for layer, means in hidden]

    def expected(self, data: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return the expected values of all layers given the present cells of each distinct row."""
        return expected_layers(self.model, data, rng)

    # -- between the layers -------------------------------------------------------------------------------------------
    def visible_probabilities(self, hidden: np.ndarray) -> np.ndarray:
        """Return the expected visible values given probabilities of the hidden units, as probabilities."""
        values = 2.0 * hidden - 1.0 if self.layers[1].kind == "spin" else hidden
        return shares_of(self.layers[0], self.model.family.means(self.model.parts, 0, [None, values]))

    def _hidden_parts(self) -> list[Variables]:
        return [layer.variables for layer in self.layers[1:]]

    def hidden_groups(self) -> list[range]:
        """Return which hidden units are given together: those of all layers, or of the lowest."""
        return [*super().hidden_groups(), range(self.layers[1].n_units)]

    def visible_given_hidden(
        self, codes: np.ndarray, group: range, n_visible: int, ask: Callable[[], Queries]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return ``P(column | lowest hidden layer)``, exactly: layers above do not count; means of real columns."""
        visible, lowest = self.layers[:2]
        (biases, _), (weights,) = self.model.family.lowest(self.model.theta)
        means = visible.means(lowest.encode(codes[:, : lowest.n_units]) @ weights.T + biases)
        found = means if visible.variables.real else cell_shares(self.layers[0], means)
        return found, np.zeros_like(found)

    def joint(self) -> Model[DiscreteFamily]:
        """Return the model of the units of all layers, from the lowest."""
        return self.model.family.joint(self.model.theta)

    def gibbs(self, codes: np.ndarray, n_steps: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the hidden units given rows of the visible ones and back, so many times."""
        kernel, chains = visible_chains(self.model, codes, Key.of(rng))
        return kernel.step(self.model.theta, chains, n_steps)[0].states[:, : self.layers[0].n_units]

    # -- the whole distribution ---------------------------------------------------------------------------------------
    def sample(
        self,
        n_samples: int,
        rng: np.random.Generator,
        method: str = "auto",
        n_steps: int | None = None,
        start: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows of codes and values of the hidden units.

        ``"exact"`` lists one side of the layers; ``"gibbs"`` runs a chain for each row, of `n_steps` steps from visible
        rows `start`; ``"auto"`` is exact where that is quick and nothing is said of chains.
        """
        if method not in ("auto", "exact", "gibbs"):
            raise ArgumentError("is not known", "use one of auto, exact, gibbs", argument="method", value=method)
        if n_steps is not None:
            n_steps = check_value("n_steps", n_steps, _N_STEPS)
        chains_asked = n_steps is not None or start is not None
        if method == "exact" and chains_asked:
            raise ArgumentError("`n_steps` and `start` belong to `method='gibbs'`", "leave them out")
        quick = not chains_asked and is_affordable(self.model.family, QUICK_SECONDS)
        if method == "exact" or (method == "auto" and quick):
            answers = cast("LayerSumAnswers", exact(self.model, instead="draw with `method='gibbs'`"))
            layers = answers.sample_layers(n_samples, rng)
        else:
            burn_in = self._burn_in(SAMPLE_STEPS if n_steps is None else n_steps)
            if start is not None and len(self.layers) > 2:
                raise ArgumentError("the chains of deep machines start from the biases alone", "leave `start` out")
            states = None if start is None else np.asarray(start)[np.arange(n_samples) % len(start)]
            drawn = draw_layers(self.model, n_samples, rng, n_chains=n_samples, burn_in=burn_in, states=states)
            layers = [part[:, 0] for part in drawn]
            if not chains_asked and not self._chains_agree(rng, method):
                path = layer_path(self.model, summed="hidden", random_state=rng)
                states = np.concatenate(tempered_states(path, n_samples, rng))[:n_samples]
                layers = self.model.family.draw_below(self.model.theta, path.stack.encode(states), rng)
        visible, *hidden = map(codes_of, self.layers, layers)
        return visible, self._told(np.hstack(hidden))

    def _burn_in(self, n_steps: int) -> int:
        """Steps before the one that ends at the draw."""
        return n_steps

    def _chains_agree(self, rng: np.random.Generator, method: object) -> bool:
        """Whether chains from units without fields agree; where they were asked for, a warning says if they do not."""
        r_hat = layer_r_hat(layer_path(self.model, "uniform", "hidden"), rng)
        if method != "auto":
            warn_of(r_hat)
        return method != "auto" or not r_hat > MAX_R_HAT

    def mode_of(self, data: Dataset, state: np.ndarray, free: np.ndarray, search: Search, joint: bool) -> Modes:
        """Return the most probable row that has the `free` cells anew."""
        if not data.variables.real or joint:
            return super().mode_of(data, state, free, search, joint)
        return self._peak(state, free, search)

    def _rounds(self, state: np.ndarray, free: np.ndarray, rng: np.random.Generator) -> Rounds | None:
        """Cool the units of both layers, then let the rows climb, hidden units summed out.

        Rows go to the likelier value of each cell given the hidden means, where they are no less probable, and at last
        by the single flip that gains most.
        """
        visible, family, parts = self.layers[0], self.model.family, self.model.parts
        if not visible.variables.two_valued:
            return None
        rest, _ = self._rest(state, free)
        middle, key = 0.0 if visible.kind == "spin" else 0.5, Key.of(rng)

        def step(v: np.ndarray) -> np.ndarray:
            above = family.means(parts, 0, family.means_of_side(parts, 1, [v, None])) > middle
            return np.where(free, visible.encode(above.astype(np.int8)), v)

        def cooled(n_chains: int, n_sweeps: int) -> np.ndarray:
            ends = cooled_states(rest, n_chains, n_sweeps, key)[:, : free.sum()]
            rows = np.repeat(state[None], len(ends), axis=0)
            rows[:, free] = ends
            rows = np.unique(codes_of(visible, climbed(step, self._values(rows))), axis=0)
            while True:
                gains = -conditional_costs(self.model, self._values(rows))[:, free]
                better = np.flatnonzero(gains.max(axis=1) > STILL)
                if not better.size:
                    return rows[:, free]
                rows[better, np.flatnonzero(free)[gains[better].argmax(axis=1)]] ^= 1

        return cooled

    def _peak(self, state: np.ndarray, free: np.ndarray, search: Search) -> Modes:
        """Climb the density of real rows: at the mean given the hidden means it is no lower."""
        search.require_one_peak()
        n_starts = search.restarts or CLIMBS
        family, parts, upper = self.model.family, self.model.parts, self.layers[1]
        hidden = upper.draw(np.zeros((n_starts, upper.width)), search.rng)

        def step(v: np.ndarray) -> np.ndarray:
            return np.where(free, family.means(parts, 0, family.means_of_side(parts, 1, [v, None])), state)

        rows = climbed(step, np.where(free, family.means(parts, 0, [None, hidden]), state))
        logs = self._log_weights(rows)
        best = int(logs.argmax())
        bound = np.inf if free.any() else logs[best]
        return Modes.one(rows[best], float(logs[best]), float(bound), f"{n_starts} climbs")

    def _log_weights_of(self, data: Dataset) -> np.ndarray:
        return self._log_weights(data.states)

    def expect(
        self, rng: np.random.Generator, method: str | Expectation = "auto", n_samples: int | None = None
    ) -> Estimate:
        """Return the expected statistics in the layout of theta: exact where possible, else over block Gibbs chains."""
        if method not in ("auto", "exact", "gibbs", "monte-carlo"):
            raise ArgumentError("is not for layers", "use one of auto, exact, gibbs", argument="method", value=method)
        if method == "exact" or (method == "auto" and n_samples is None and is_affordable(self.model.family)):
            answers = exact(self.model)
            return Estimate(answers.moments, parts={"log_partition": Estimate(answers.log_partition)})
        n_chains = SAMPLE_STEPS if n_samples is None else n_samples
        family, parts = self.model.family, self.model.parts
        if self._chains_agree(rng, method):
            kernel, chains = independent_chains(self.model, n_chains, Key.of(rng))
            states, n_groups = kernel.step(self.model.theta, chains, SAMPLE_STEPS)[0].states, n_chains
        else:
            path = layer_path(self.model, summed="hidden", random_state=rng)
            groups = np.swapaxes(tempered_states(path, n_chains, rng), 0, 1)
            n_groups, states = len(groups), np.concatenate(groups)
        even = family.encode(states)[::2]
        values = [np.asarray(part, np.float64) for part in family.means_of_side(parts, 1, family.spread_side(0, even))]
        mean, n_rows = family.statistics_of(values), len(values[0])
        if n_groups == n_rows:
            squares = family.statistics_of([np.square(part) for part in values])
        else:
            by_group = zip(*(np.split(part, n_groups) for part in values), strict=True)
            squares = np.mean([np.square(family.statistics_of(rows)) for rows in by_group], axis=0)
        stderr = np.sqrt(np.maximum(squares - np.square(mean), 0.0) / (n_groups - 1))
        return Estimate(mean, error_floor(stderr, np.ptp(family.statistic_range, axis=0), n_rows))


@ANSWERS.register("stack")
def stack_answers(model: Model[StackFamily]) -> LayerAnswers:
    """Return the answers about a restricted machine, or about a deep one where there are more layers."""
    return (LayerAnswers if len(model.family.layers) == 2 else DeepAnswers)(model)


class DeepAnswers(LayerAnswers):
    """Answers about a deep Boltzmann machine: hidden layers of a row by mean field, log Z by sums or annealing."""

    most_listed = 2.0**14

    def _base(self, data: Dataset) -> str | Dataset | np.ndarray:
        """Return fields of independent units with the rates of all layers given rows of data, by mean field."""
        some = np.arange(data.n_states)
        if data.n_states > ROWS_FOR_RATES:
            some = np.random.default_rng(0).choice(data.n_states, ROWS_FOR_RATES, replace=False)
        visible = filled_values(self.layers[0], data, some)
        means = DeepMeanField()(self.model.family, self.model.parts, visible).means
        return fields_of_values(self.model, means[::2], data.weights[some] / data.weights[some].sum())

    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return lower bounds of ``log P + log Z`` of the present cells of each distinct row."""
        return mean_field_bounds(self.model, data, PATIENT)

    def log_evidence_interval(
        self, data: Dataset, rng: np.random.Generator, n_samples: int | None = None, betas: int | None = None
    ) -> EvidenceInterval:
        """Return the same exactly where that is quick; a lower bound says nothing of the upper side.

        A bound that is drawn is lowered by two standard errors.
        """
        if self._sums_hidden(data):
            evidence = self._log_weights(data.states)
            return EvidenceInterval(evidence, evidence)
        bounds, errors, _ = self._bounds(data, rng)
        return EvidenceInterval(bounds - 2.0 * errors, np.full_like(bounds, np.inf))

    def log_likelihood(
        self,
        data: Dataset,
        rng: np.random.Generator,
        n_samples: int | None = None,
        betas: int | None = None,
        exactly: bool | None = None,
    ) -> LogLikelihood:
        """Return the mean log-likelihood of rows, exact for small machines, else a `LogLikelihoodBound`.

        `exactly` True insists on the sum over hidden units, False on the bound; `n_samples` and `betas` ask for
        annealing of log Z.
        """
        exactly = asked_exactly(exactly, None, None)
        summed = asked_exactly(exactly or None, n_samples, betas)
        if exactly is None:
            exactly = self._sums_hidden(data)
        if exactly and data.has_missing:
            raise MissingValuesError(
                "the exact sum needs rows without missing cells", "leave them out, or set `exact=False`"
            )
        log_z = self._log_partition(data, rng, summed, n_samples, betas)
        if exactly:
            return LogLikelihood(self._log_weights(data.states)[data.row_of], data.shares, log_z)
        bounds, errors, words = self._bounds(data, rng)
        shares = data.weights / data.weights.sum()
        stderr = float(np.sqrt(np.square(shares * errors).sum()))
        return LogLikelihoodBound(bounds[data.row_of], data.shares, log_z, words, stderr)

    def _bounds(self, data: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, str]:
        """Lower bounds on the evidence, their sampling errors, and where they come from."""
        return mean_field_bounds(self.model, data), np.zeros(data.n_states), "mean field"

    def _sums_hidden(self, data: Dataset) -> bool:
        """Whether the hidden units of rows are quickly summed over."""
        if data.has_missing:
            return False
        states = self._hidden_states()
        terms = data.n_rows * states * sum(layer.width for layer in self.layers[1:])
        return states <= MOST_STATES and terms <= MOST_TERMS

    def _hidden_states(self) -> float:
        """Terms of the sum over the hidden layers of a row: states of every other one."""
        hidden = self.layers[1:]
        return 1.0 if len(hidden) == 1 else min(count_states(hidden[0::2]), count_states(hidden[1::2]))

    def log_pseudolikelihood(self, data: Dataset) -> float:
        """Refuse: it would need the hidden layers summed out exactly for every value of every cell."""
        raise ArgumentError("a deep machine has no pseudolikelihood in closed form", "ask for the score")

    def expected(self, data: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return the expected values of all layers by mean field, in which missing cells are hidden units too."""
        return mean_field_posterior(self.model, data, slice(None), PATIENT).means

    def _burn_in(self, n_steps: int) -> int:
        return n_steps - 1

    def _rounds(self, state: np.ndarray, free: np.ndarray, rng: np.random.Generator) -> None:
        return None

    def _log_weights_of(self, data: Dataset) -> np.ndarray:
        """Log-weights of rows, or lower bounds of them where hidden layers are too large to sum over."""
        return self._log_weights(data.states) if self._sums_hidden(data) else self.log_evidence(data)

    def _peak(self, state: np.ndarray, free: np.ndarray, search: Search) -> Modes:
        raise ArgumentError(
            "the density of real rows under several hidden layers has no climb in closed form",
            "ask a restricted machine, or discrete columns",
        )


@ANSWERS.register("belief-network")
class NetworkAnswers(DeepAnswers):
    """Answers about a belief network: rows go up by the recognition weights, samples come down from the top machine."""

    model: Model[BeliefNetworkFamily]  # type: ignore[assignment]

    def _base(self, data: Dataset) -> str | Dataset | np.ndarray:
        return "chains"

    def log_evidence(self, data: Dataset) -> np.ndarray:
        """Return a lower bound on ``log P + log Z`` of the present cells of each distinct row.

        Exact where the hidden layers below the top are small, else by draws from the recognition weights, less two
        standard errors: with the same random numbers for every row.
        """
        completions = self._completions(data)
        return np.logaddexp.reduceat(self._of_complete(completions.states), completions.starts)

    def _of_complete(self, codes: np.ndarray) -> np.ndarray:
        terms = self._hidden_states() * sum(layer.width for layer in self.layers[1:])
        if self._hidden_states() <= SCORE_STATES and terms <= MOST_TERMS:
            return self._log_weights(codes)
        bounds, errors = recognition_bounds(self.model, codes, SCORE_DRAWS, SCORE_SEED, common=True)
        return bounds - 2.0 * errors

    def _completions(self, data: Dataset) -> Completions:
        """All ways to fill the missing cells of each distinct row, where there are few."""
        self._require_few(data)
        return enumerate_completions(data.variables, data.states, data.missing)

    def _require_few(self, data: Dataset) -> None:
        most = count_completions(data.variables, data.missing, data.n_states).max(initial=1.0)
        if most > SCORE_STATES:
            raise TooExpensiveError(
                f"a row lacks cells that {most:.2g} combinations of values fill, and a belief network has no other "
                "sum over them",
                "give rows with fewer missing cells, or use a DeepBoltzmannMachine, in which they are hidden units",
            )

    def _bounds(self, data: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, str]:
        self._require_few(data)
        data.require_complete("the likelihood of a belief network", "ask for the score, which sums over them, or ")
        words = f"{SCORE_DRAWS} draws a row from the recognition weights"
        return *recognition_bounds(self.model, data.states, SCORE_DRAWS, rng), words

    def _hidden_states(self) -> float:
        hidden = self.layers[1:]
        return 1.0 if len(hidden) == 1 else count_states(hidden[:-1])

    def expected(self, data: Dataset, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return the means of all layers, each given the means of the one below, averaged over completions of a row."""
        completions = self._completions(data)
        parts = self.model.family.upward_means(self.model.theta, self._values(completions.states))
        if not data.has_missing:
            return tuple(parts)
        weights = self._of_complete(completions.states)
        totals = np.logaddexp.reduceat(weights, completions.starts)
        shares = np.exp(weights - totals[completions.row])[:, None]
        return tuple(np.add.reduceat(shares * part, completions.starts, axis=0) for part in parts)

    def joint(self) -> Model[TablesFamily]:
        """Return all units as a Markov random field: every directed unit has a table with the whole layer above."""
        units = spans(layer.n_units for layer in self.layers)
        pairs = list(zip(self.layers[:-2], self.layers[1:-1], strict=True))
        if (entries := sum(lower.width * count_states([upper]) for lower, upper in pairs)) > MOST_ENTRIES:
            raise TooExpensiveError(
                f"queries to this belief network need tables of {entries:.2g} entries",
                "draw rows with `sample` and count them, or use a DeepBoltzmannMachine",
            )
        network, tables = self.model.family, {}
        machines = zip(network.machines, network.split(self.model.theta).machines, strict=True)
        for place, ((lower, upper), (machine, parts)) in enumerate(zip(pairs, machines, strict=False)):
            sizes = list(upper.variables.sizes)
            above = np.asarray(upper.encode(digits(np.arange(int(count_states([upper]))), sizes)), np.float64)
            fields = np.asarray(machine.fields(parts, 0, [None, above]), np.float64)
            each = zip(value_tables(lower), columns_of(lower), strict=True)
            for unit, (table, at) in enumerate(each):
                scope = (units[place].start + unit, *range(units[place + 1].start, units[place + 1].stop))
                tables[scope] = log_softmax(table @ fields[:, at].T, axis=0).reshape(len(table), *sizes)
        top = network.top.joint(top_of(self.model).theta)
        for factor in top.family.factors(top.theta).factors:
            scope = tuple(units[-2].start + node for node in factor.nodes)
            tables[scope] = tables.get(scope, 0.0) + factor.table
        return TablesFamily.model(tables, Variables.categories(network.variables.sizes))

    def _log_weights_of(self, data: Dataset) -> np.ndarray:
        return self._of_complete(data.states)

    def _bound(self, state: np.ndarray, free: np.ndarray) -> float:
        """Log Z of the top machine, where it is in reach: no probability is above one."""
        return self.log_partition() if is_affordable(self.model.family) else np.inf

    def _starts(self, state: np.ndarray, free: np.ndarray, rng: np.random.Generator) -> Sequence[np.ndarray]:
        return ()

    def expect(
        self, rng: np.random.Generator, method: str | Expectation = "auto", n_samples: int | None = None
    ) -> Estimate:
        """Refuse: the directed layers have no expected statistics in the layout of theta."""
        raise ArgumentError(
            "a belief network has no moments in the layout of its parameters", "use a DeepBoltzmannMachine"
        )


def asked_exactly(exactly: object, n_samples: int | None, betas: int | None) -> bool | None:
    """Return whether a sum is insisted on, ruled out, or left open, after a check of what annealing is given."""
    if exactly is not None and not isinstance(exactly, bool | np.bool_):
        raise ArgumentError("must be True, False or None", argument="exact", value=exactly)
    if n_samples is not None:
        n_samples = check_value("n_samples", n_samples, _N_SAMPLES)
    asked = n_samples is not None or betas is not None
    if exactly and asked:
        raise ArgumentError("`n_samples` and `betas` belong to `exact=False`", "leave them out")
    return (False if asked else None) if exactly is None else bool(exactly)


def cell_shares(layer: Units, values: np.ndarray) -> np.ndarray:
    """Return expected values as probabilities: of the upper of two values, or of each, on an axis of their own."""
    return by_value(values, layer.variables.sizes) if layer.width > layer.n_units else shares_of(layer, values)


def shares_of(layer: Units, means: np.ndarray) -> np.ndarray:
    """Return means of units as probabilities of the upper value, where they have two."""
    return 0.5 * (1.0 + means) if layer.kind == "spin" else means
