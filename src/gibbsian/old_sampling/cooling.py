"""Simulated annealing: the temperature goes to zero, and chains to states of large probability (YK15).

A chain starts hot at random and cools on a geometric ladder, from where all variables are free to where the weakest is
held; then single changes are made while they gain. Half of the chains of spins stay at temperatures that they exchange
(parallel tempering), and end at the best state that they have seen. Chains start anew, and cool more slowly, until
several of them end at the same largest log-weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gibbsian.backends.numba.cooling import cool, temper
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.ising import is_ising
from gibbsian.old_sampling.variable_paths import variable_path
from gibbsian.rng import chain_streams

# Chains of a round and their sweeps; a round has twice the sweeps of the one before. So many chains are to agree.
CHAINS, SWEEPS, ROUNDS, AGREEING = 32, 100, 5, 3
# Share of the chains of spins that do not cool but exchange temperatures (parallel tempering), and the ends of these in
# units of the spread of the field of the middle variable.
TEMPERED, HIGHEST, LOWEST = 0.5, 0.7, 0.2
# Where log-weights are all that is known of rows: rounds, and how often the first one asks for them.
ROW_ROUNDS, CALLS = 3, 2000
# The ladder, in units of the spread of the field of the strongest variable (hot) and of the weakest (cold).
HOT, COLD = 1.0, 0.1
# A log-weight is as large as another up to this share of their size.
SAME = 1e-10

Weigh = Callable[[np.ndarray], np.ndarray]


def annealed(
    cooled: Callable[[int, int], np.ndarray], weigh: Weigh, n_chains: int | None = None, n_rounds: int = ROUNDS
) -> tuple[np.ndarray, float, str]:
    """Return the best state of several rounds of chains, its log-weight, and how it was found in words.

    ``cooled(n_chains, n_sweeps)`` makes a round of chains and returns where they end.
    """
    best, ends = np.empty(0), np.empty(0)
    for number in range(n_rounds):
        states = cooled(n_chains or CHAINS, SWEEPS * 2**number)
        logs = weigh(states)
        if logs.max() > ends.max(initial=-np.inf):
            best = states[logs.argmax()]
        ends = np.concatenate([ends, logs])
        agreeing = int((ends >= ends.max() - SAME * (1.0 + abs(ends.max()))).sum())
        if agreeing >= AGREEING:
            break
    return best, float(ends.max()), f"annealing, {agreeing} of {ends.size} chains"


def ladder(spreads: np.ndarray, n_sweeps: int) -> np.ndarray:
    """Return falling temperatures for fields of these spreads."""
    spreads = spreads[spreads > 0]
    if not spreads.size:
        return np.ones(n_sweeps)
    return np.geomspace(HOT * spreads.max(), COLD * spreads.min(), n_sweeps)


def rungs(spreads: np.ndarray, n_chains: int) -> np.ndarray:
    """Return falling temperatures for chains that exchange them."""
    middle = float(np.median(spreads[spreads > 0])) if (spreads > 0).any() else 1.0
    return np.geomspace(HIGHEST * middle, LOWEST * middle, n_chains)


def cooled_states(model: Model[DiscreteFamily], n_chains: int, n_sweeps: int, rng: np.random.Generator) -> np.ndarray:
    """Return where chains of a model end when they are cooled."""
    return (_cooled_spins if is_ising(model.family) else _cooled_codes)(model, n_chains, n_sweeps, rng)


def _cooled_spins(model: Model[Any], n_chains: int, n_sweeps: int, rng: np.random.Generator) -> np.ndarray:
    graph, biases, couplings, _ = model.family.ising(model.theta)
    indptr, heads, edges = graph.csr
    couplings = couplings[edges]
    matrix = csr_array((couplings, heads, indptr), shape=(model.n_variables,) * 2)
    tails = np.repeat(np.arange(model.n_variables), np.diff(indptr))
    spreads = np.sqrt(biases**2 + np.bincount(tails, couplings**2, minlength=model.n_variables))
    states = rng.choice(np.array([-1, 1], np.int8), (n_chains, model.n_variables))
    streams, walked = chain_streams(rng, n_chains), (indptr, heads, 2.0 * couplings)
    least_gain = SAME * float(spreads.max(initial=0.0))

    def fields(spins: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(biases + (matrix @ spins.T.astype(np.float64)).T)

    own, tempered = np.split(states, [n_chains - int(TEMPERED * n_chains)])
    cool(own, streams[: len(own)], fields(own), ladder(spreads, n_sweeps), least_gain, *walked)
    if len(tempered) > 1:
        around = fields(tempered)
        logs = np.einsum("ci,ci->c", tempered, around + biases) / 2.0
        temper(tempered, streams[len(own) :], around, logs, rungs(spreads, len(tempered)), n_sweeps, *walked)
        cool(tempered, streams[len(own) :], fields(tempered), np.empty(0), least_gain, *walked)
    return (states > 0).view(np.int8)


def _cooled_codes(model: Model[DiscreteFamily], n_chains: int, n_sweeps: int, rng: np.random.Generator) -> np.ndarray:
    """Walk along the path of inverse temperatures beyond the model; at its end so cold that changes only gain."""
    squares = np.zeros(model.n_variables)
    for factor in model.family.factors(model.theta).factors:
        squares[list(factor.nodes)] += (np.ptp(factor.table) / 2.0) ** 2
    temperatures = ladder(np.sqrt(squares), n_sweeps)
    freezing = np.full(2 + n_sweeps // 4, temperatures[-1] * 1e-6)
    path = variable_path(model, "uniform")
    walkers = path.from_base(n_chains, rng)
    path.walk(walkers, 1.0 / np.concatenate([temperatures, freezing]))
    return path.states_of(walkers)


def cooled_rows(weigh: Weigh, sizes: np.ndarray, rng: np.random.Generator, starts: Any = ()) -> Callable[..., Any]:
    """Return rounds of chains over codes of which nothing is known but their log-weights; some begin cold at `starts`.

    Many variables get fewer sweeps, because each visit asks for the log-weights.
    """

    def cooled(n_chains: int, n_sweeps: int) -> np.ndarray:
        codes = (rng.random((n_chains, sizes.size)) * sizes).astype(np.int8)
        logs = weigh(codes)
        n_sweeps = max(2, min(n_sweeps, CALLS * n_sweeps // (SWEEPS * sizes.size)))
        for temperature in ladder(np.std(logs, keepdims=True) / np.sqrt(sizes.size), n_sweeps):
            _sweep(weigh, codes, logs, sizes, temperature * np.log(rng.random((n_chains, sizes.size))))
        if len(starts):
            others = np.unique(starts, axis=0).astype(np.int8)
            codes, logs = np.vstack([codes, others]), np.append(logs, weigh(others))
        while _sweep(weigh, codes, logs, sizes, np.zeros(codes.shape)):
            pass
        return codes

    return cooled


def _sweep(weigh: Weigh, codes: np.ndarray, logs: np.ndarray, sizes: np.ndarray, least: np.ndarray) -> bool:
    """Offer every chain every change of one variable in turn, to be made where it gains more than a least number."""
    changed = False
    for i, size in enumerate(sizes.tolist()):
        for _ in range(1, size):
            moved = codes.copy()
            moved[:, i] = (codes[:, i] + 1) % size
            after = weigh(moved)
            taken = after - logs > least[:, i] + SAME * (1.0 + np.abs(logs))
            codes[taken], logs[taken] = moved[taken], after[taken]
            changed |= bool(taken.any())
    return changed
