"""The trajectory of training as a path: the parameters that a fit has passed, from no interactions to the fitted model.

Learning passes its transitions one at a time, so that neighbours on its way overlap where models at neighbouring
temperatures do not (Bereux, Decelle, Furtlehner, Rosset and Seoane 2025, "parallel trajectory tempering").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.samplers.base import as_sampler
from gibbsian.samplers.independent import IndependentVariables
from gibbsian.samplers.layer_paths import IndependentUnits, LayerPath
from gibbsian.samplers.paths import SteppedPath
from gibbsian.samplers.variable_paths import variable_path

# Sweeps whose way back is as likely as the way there, as annealing there and back wants them.
SAMPLER = "random-scan"


def trajectory_path(models: Sequence[Any]) -> TrajectoryPath:
    """Return the path along models of one structure, which begins at the first one without its interactions.

    Parameters
    ----------
    models : sequence of Model
        What a fit has passed (`gibbsian.learners.callbacks.KeepTrajectory`), up to the model that is asked about.
        Between two of them parameters are interpolated.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseModel.build(gb.graphs.grid(3, 3), [0.1] * 9, [0.4] * 12)
    >>> path = gb.samplers.trajectory_path([model.replace(0.5 * model.theta), model])
    >>> run = gb.samplers.Annealing(betas=500).forward(path, rng=0)
    >>> abs(run.log_partition - gb.inference.exact(model).log_partition()) < 3 * run.log_partition_stderr < 0.1
    True
    """
    if not len(models):
        raise ArgumentError("there are no models to go along", "give the models that a fit has passed")
    model = models[-1]
    machines = [each.folded() if hasattr(each, "folded") else each for each in models]
    if len({machine.theta.shape for machine in machines}) > 1:
        raise ArgumentError("the models have different numbers of parameters", "give models of one structure")
    first = np.where(machines[0].penalised, 0.0, machines[0].theta)
    thetas = np.array([first, *(machine.theta for machine in machines)], np.float64)
    return TrajectoryPath(model, thetas)


@dataclass(frozen=True, eq=False)
class TrajectoryPath(SteppedPath):
    """The path along parameters, evenly from one to the next.

    Parameters
    ----------
    model : Model
        The end.
    thetas : ndarray of shape (n_models, n_parameters)
        Parameters along the way, those of the folded machine for layers; the first have no interactions.
    """

    model: Any
    thetas: np.ndarray

    @property
    def _in_layers(self) -> bool:
        return hasattr(self.model, "folded")

    @cached_property
    def _machine(self) -> Any:
        return self.model.folded() if self._in_layers else self.model

    @cached_property
    def _direct(self) -> Any:
        """The path of temperatures from the same beginning to the same end, which knows its states."""
        first = self.at(0.0)
        if self._in_layers:
            fields = first.visible_biases / first.temperature, first.hidden_biases / first.temperature
            return LayerPath(self.model, self._machine, IndependentUnits(*fields))
        return variable_path(self.model, IndependentVariables.of_biases(first))

    def at(self, place: float) -> Any:
        """Return the model at a place; beyond the end it is cooled."""
        if place >= 1.0:
            return self._machine.replace(place * self.thetas[-1])
        before, share = divmod(place * (len(self.thetas) - 1), 1.0)
        lower, upper = self.thetas[int(before) : int(before) + 2]
        return self._machine.replace(lower + share * (upper - lower))

    @property
    def coldest(self) -> float:
        """That of the path of temperatures."""
        return self._direct.coldest

    @cached_property
    def log_base_partition(self) -> float:
        """log Z of the biases alone: any state has it, as its log-weight less its log-probability."""
        if self._in_layers:
            return self._direct.log_base_partition
        first, base = self.at(0.0), self._direct.base
        state = first.domain.from_codes(np.zeros((1, first.n_variables), np.int8))
        return float(first.log_weights(state)[0] - base.log_probabilities[base.starts[:-1]].sum())

    def require_memory(self, n_walkers: int) -> None:
        """Raise unless so many walkers fit."""
        self._direct.require_memory(n_walkers)

    def draw_base(self, n_rows: int, rng: np.random.Generator) -> np.ndarray:
        """Draw states of the biases alone."""
        return self._direct.states_of(self._direct.from_base(n_rows, rng))

    def enter(self, states: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the states themselves."""
        return np.array(states)

    def features(self, x: np.ndarray) -> np.ndarray:
        """Return the states: fields differ from place to place."""
        return x

    def log_weights(self, x: np.ndarray, features: np.ndarray, place: float) -> np.ndarray:
        """Return the log-weight of each state at a place, hidden layers summed out."""
        return self.at(place).log_weights(x)

    def step(self, features: np.ndarray, place: float, rng: np.random.Generator) -> np.ndarray:
        """Draw the layers from each other, or sweep through the variables."""
        here = self.at(place)
        if self._in_layers:
            hidden = here.draw_hidden(here.visible.encode(features), rng)
            return here.visible.decode(here.draw_visible(hidden, rng))
        sampler = as_sampler(SAMPLER)
        return sampler.step(here, sampler.init(here, len(features), rng, states=features))[0].states

    def check_states(self, states: Any, what: str) -> np.ndarray:
        """Return states as an array, or say why the model does not have them."""
        return self._direct.check_states(states, what)

    def rows_of(self, data: Dataset, numbers: np.ndarray) -> np.ndarray:
        """Return some of the data's states."""
        return self._direct.rows_of(data, numbers)

    def exact_draws(self, n_walkers: int, rng: np.random.Generator) -> np.ndarray:
        """Draw states exactly."""
        return self._direct.exact_draws(n_walkers, rng)

    def chains(self, n_walkers: int, rng: np.random.Generator, burn_in: int) -> tuple[np.ndarray, str]:
        """Return states at the end of chains."""
        return self._direct.chains(n_walkers, rng, burn_in)
