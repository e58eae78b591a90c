"""Paths of distributions, from one without interactions to a model: what annealing and exchange go along.

theta is linear in the inverse temperature beta between the knots of a path. Two knots are the temperatures between
independent variables and a model; more are, for example, the models that a fit has passed (trajectory tempering).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np

from gibbsian.arrays import Floats, Integers, States
from gibbsian.data import Dataset
from gibbsian.errors import ArgumentError
from gibbsian.inference import exact
from gibbsian.models.base import DiscreteFamily, ExponentialFamily, Family, Layered, Model, keeps
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.ising import is_ising
from gibbsian.models.variables import Variables
from gibbsian.resources import require_memory
from gibbsian.rng import Key
from gibbsian.sampling.base import Chains, Kernel, kernel_for

F = TypeVar("F", bound=Family)


@dataclass(frozen=True, eq=False)
class Path:
    """Distributions of one family, from beta = 0 to the model at beta = 1.

    Their unnormalised weights are ``exp(theta(b) . S(x))``.

    Parameters
    ----------
    model : Model
        The end, as the caller has it.
    family : ExponentialFamily
        The family of the path: that of the model, or tables with a term for each variable.
    knots : ndarray of shape (n_knots, n_parameters)
        Parameters between which theta is linear. The first have no interactions.
    log_partition : float
        log Z at the first knot.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.5, 0.0], [2.0])
    >>> path = gb.sampling.variable_path(model, base="uniform")
    >>> path.theta(0.5).tolist(), round(path.log_partition, 4)         # 2 log 2
    ([0.25, 0.0, 1.0], 1.3863)
    """

    model: Model[Family]
    family: ExponentialFamily
    knots: Floats
    log_partition: float

    # what beta may be at most, where walkers are cooled beyond the model
    max_beta = 4.0

    def theta(self, beta: float) -> Floats:
        """Return the parameters at an inverse temperature; beyond 1 they go on along the last piece."""
        lower, share = self._piece(beta)
        return np.asarray(self.knots[lower] + share * (self.knots[lower + 1] - self.knots[lower]))

    def _piece(self, beta: float) -> tuple[int, float]:
        n_pieces = len(self.knots) - 1
        lower = min(max(int(beta * n_pieces), 0), n_pieces - 1)
        return lower, beta * n_pieces - lower

    def at(self, beta: float) -> Model[ExponentialFamily]:
        """Return the distribution at an inverse temperature."""
        return Model(self.family, self.theta(beta))

    def log_weights(self, states: States, betas: Floats) -> Floats:
        """Return the log-weight of each state at some inverse temperatures, shape ``(n_betas, n_states)``.

        A constant of each state, the same at all betas, may be left out.
        """
        pieces = {self._piece(beta)[0] for beta in betas.tolist()}
        if len(pieces) == 1:  # linear in beta: one pass over the states
            lower = pieces.pop()
            slope = self.family.log_weights(self.knots[lower + 1] - self.knots[lower], states)
            return np.outer(betas * (len(self.knots) - 1) - lower, slope)
        return np.array([self.family.log_weights(self.theta(beta), states) for beta in betas.tolist()])

    def reverses(self, falling: bool) -> bool:
        """Whether the sweeps of a walk that goes up or down are in the reverse order."""
        return falling

    def start(self, n_chains: int, key: Key) -> Chains:
        """Draw chains from the beginning: without interactions one sweep from anywhere is a draw."""
        kernel = self.kernel()
        return kernel.step(self.theta(0.0), kernel.init(n_chains, key))[0]._replace(n_sweeps=0)

    def kernel(self) -> Kernel:
        """Return the Gibbs kernel of the path's family."""
        return kernel_for(self.family)

    def chains_at(self, rows: object, key: Key, name: str = "states") -> Chains:
        """Put a chain at each of some rows of the model."""
        codes = self.model.variables.codes_of(self.model.variables.checked(rows, name))
        return Chains(codes.copy(), key.chains(len(codes)))

    def rows_of(self, data: Dataset, numbers: Integers) -> States:
        """Return some of the rows of data, which must be complete."""
        data.require_complete("annealing from data")
        return self.model.variables.checked(data.states, "samples")[numbers]

    def exact_rows(self, n_rows: int, rng: np.random.Generator) -> States:
        """Draw rows of the model exactly."""
        return exact(self.model).sample(n_rows, rng)

    def rows(self, states: States) -> States:
        """Return the rows of the model for states of chains."""
        return self.model.variables.rows_of(states)

    def require_memory(self, n_chains: int) -> None:
        """Raise unless so many chains fit."""
        n = len(self.family.variables)
        # states as int8 three times, uniform numbers for the start, streams and weights
        require_memory(
            n_chains * (11.0 * n + 64.0), f"annealing {n_chains} walkers of {n} variables", "use fewer walkers"
        )


def variable_path(model: Model[F], base: object = "biases") -> Path:
    """Return the path of inverse temperatures from independent variables to a model.

    Pairs of two-valued variables stay what they are; any other model is written out as tables, with one for each
    variable.

    Parameters
    ----------
    model : Model of a DiscreteFamily
        The end.
    base : str, Dataset or ndarray, default "biases"
        The independent variables at inverse temperature 0: ``"biases"`` (what the model says of each variable when the
        others are random), ``"uniform"`` (YU20), the base rates of data, or the log-probabilities of all values of all
        variables, one variable after the other.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.PairwiseFamily.model(gb.graphs.grid(3, 3), [0.1] * 9, [0.4] * 12)
    >>> path = gb.sampling.variable_path(model, base="uniform")
    >>> run = gb.sampling.Annealing(betas=1000).forward(path, random_state=0)
    >>> abs(run.log_partition - gb.inference.exact(model).log_partition) < 3 * run.log_partition_stderr < 0.1
    True
    """
    family = model.family
    assert keeps(family, DiscreteFamily)
    logs = base_log_probabilities(model, base)
    if isinstance(family, PairwiseFamily):
        low, gap = family.variables.lows_and_gaps
        biases = np.diff(logs.reshape(-1, 2), axis=1).ravel() / gap
        start = np.zeros(family.n_parameters)
        start[: len(biases)] = biases
        log_partition = float(np.logaddexp(low * biases, (low + gap) * biases).sum())
        return Path(model, family, np.stack([start, model.theta]), log_partition)
    factors, offsets = family.factors(model.theta), family.variables.offsets
    require_memory(
        8.0 * sum(factor.table.size for factor in factors.factors),
        f"the tables of {len(factors.factors)} factors",
        "use a model with smaller factors",
    )
    variables = Variables.categories(family.variables.sizes)
    tables: dict[tuple[int, ...], Floats] = {(i,): np.zeros(q) for i, q in enumerate(variables.sizes)}
    end = TablesFamily.model(tables | {each.nodes: each.table for each in factors.factors}, variables)
    start = np.zeros(end.family.n_parameters)
    start[: offsets[-1]] = logs  # tables of single variables come first
    return Path(model, end.family, np.stack([start, end.theta]), 0.0)


def base_log_probabilities(model: Model[F], base: object) -> Floats:
    """Return the log-probabilities of all values of independent variables (see `variable_path`)."""
    variables = model.variables
    if isinstance(base, Dataset):
        return _of_data(variables, base)
    if isinstance(base, np.ndarray):
        if base.shape != (variables.offsets[-1],):
            raise ArgumentError(
                f"`base=` has shape {base.shape}, for other variables than those of the model",
                f"give {variables.offsets[-1]} log-probabilities",
            )
        return _normalised(variables, base)
    check_base(base)
    return _normalised(variables, _of_biases(model) if base == "biases" else np.zeros(variables.offsets[-1]))


def check_base(base: object) -> None:
    """Raise unless `base` names independent variables."""
    if isinstance(base, Dataset | np.ndarray) or (isinstance(base, str) and base in ("uniform", "biases")):
        return
    raise ArgumentError(
        "is not known", "use 'uniform', 'biases', a Dataset or log-probabilities", argument="base", value=base
    )


def _of_biases(model: Model[F]) -> Floats:
    """Return what the model says of each variable when all others are uniformly random."""
    family = model.family
    if is_ising(family):  # without a table for every edge
        fields = family.ising(model.theta).fields
        return np.stack([-fields, fields], axis=1).ravel()
    assert keeps(family, DiscreteFamily)
    factors = family.factors(model.theta)
    logs = [np.zeros(q) for q in factors.cardinalities]
    for nodes, table in ((factor.nodes, factor.table) for factor in factors.factors):
        for axis, node in enumerate(nodes):
            logs[node] += table.mean(axis=tuple(other for other in range(len(nodes)) if other != axis))
    return np.concatenate(logs)


def _of_data(variables: Variables, data: Dataset) -> Floats:
    """Return the base rates of data, each value counted once more than it occurs.

    Without the extra count a value that the data lacks would have no way into the walkers.
    """
    present = np.ones(data.states.shape, bool) if data.missing is None else ~data.missing
    codes = variables.codes_of(variables.checked(data.states, "the data"))
    counts = [
        1.0 + np.bincount(codes[present[:, i], i], data.weights[present[:, i]], minlength=q)
        for i, q in enumerate(variables.sizes)
    ]
    return _normalised(variables, np.log(np.concatenate(counts)))


def _normalised(variables: Variables, logs: Floats) -> Floats:
    starts = variables.offsets[:-1].astype(np.intp)
    totals = np.logaddexp.reduceat(logs, starts)
    return np.asarray(logs - np.repeat(totals, variables.sizes))


def as_path(model: Path | Model[F], key: Key) -> Path:
    """Return a path as it is, and for a model the one from independent variables to it."""
    if isinstance(model, Path):
        return model
    if keeps(model.family, Layered):
        from gibbsian.sampling.layer_paths import layer_path

        return layer_path(cast("Model[Layered]", model), random_state=key.generator())
    return variable_path(model)
