"""Simulated annealing: the temperature goes to zero, and chains to states of large probability (YK15).

A chain starts hot at random and cools on a geometric ladder, from where all variables are free to where the weakest is
held; then single changes are made while they gain. Half of the chains of spins stay at temperatures that they exchange
(parallel tempering), and end at the best state that they have seen. Both are walks on the path from uniform variables,
beyond the model. Chains start anew, and cool more slowly, until several of them end at the same largest log-weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from gibbsian.arrays import Codes, Floats, Integers, States
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.models.ising import is_ising
from gibbsian.rng import Key
from gibbsian.sampling.base import Chains
from gibbsian.sampling.paths import variable_path
from gibbsian.sampling.walks import SpinWalk, Walk, bind_walk

# Chains of a round and their sweeps; a round has twice the sweeps of the one before. So many chains are to agree.
CHAINS, SWEEPS, ROUNDS, AGREEING = 32, 100, 5, 3
# Share of the chains of spins that do not cool but exchange temperatures, in so many columns, of which the best state
# counts; and the ends of their ladder in units of the spread of the field of the middle variable.
TEMPERED, COLUMNS, HIGHEST, LOWEST = 0.5, 2, 0.7, 0.2
# Where log-weights are all that is known of rows: rounds, and how often the first one asks for them.
ROW_ROUNDS, CALLS = 3, 2000
# The ladder, in units of the spread of the field of the strongest variable (hot) and of the weakest (cold).
HOT, COLD = 1.0, 0.1
# A temperature at which only gains are accepted, in units of the lowest.
FROZEN = 1e-6
# A log-weight is as large as another up to this share of their size.
SAME = 1e-10

Weigh = Callable[[Codes], Floats]
Cooled = Callable[[int, int], Codes]


def annealed(
    cooled: Cooled, weigh: Weigh, n_chains: int | None = None, n_rounds: int = ROUNDS
) -> tuple[Codes, float, str]:
    """Return the best state of several rounds of chains, its log-weight, and how it was found in words.

    ``cooled(n_chains, n_sweeps)`` makes a round of chains and returns where they end.
    """
    best, ends = np.empty(0, np.int8), np.empty(0)
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


def ladder(spreads: Floats, n_sweeps: int) -> Floats:
    """Return falling temperatures for fields of these spreads."""
    spreads = spreads[spreads > 0]
    if not spreads.size:
        return np.ones(n_sweeps)
    return np.geomspace(HOT * spreads.max(), COLD * spreads.min(), n_sweeps)


def cooled_states(model: Model[DiscreteFamily], n_chains: int, n_sweeps: int, key: Key) -> Codes:
    """Return the codes at which chains of a model end when they are cooled."""
    path, spreads, key = variable_path(model, "uniform"), field_spreads(model), key.fold("cooled", n_chains, n_sweeps)
    walk, temperatures = bind_walk(path, path.kernel()), ladder(spreads, n_sweeps)
    chains = path.start(n_chains, key)
    n_tempered = int(TEMPERED * n_chains) if is_ising(model.family) else 0
    cooled, _ = walk.anneal(chains.take(slice(n_tempered, n_chains)), 1.0 / temperatures)
    states = cooled.states
    if n_tempered > 1:
        middle = float(np.median(spreads[spreads > 0])) if (spreads > 0).any() else 1.0
        betas = 1.0 / np.geomspace(HIGHEST * middle, LOWEST * middle, max(2, n_tempered // COLUMNS))
        rungs = [chains.take(slice(k, k + COLUMNS)) for k in range(0, len(betas) * COLUMNS, COLUMNS)]
        found = cast("SpinWalk", walk).best_seen(rungs, betas, n_sweeps, key.fold("exchange"))
        states = cast("States", np.vstack([states, found]))
    ends = Chains(states, chains.streams[: len(states)])
    return frozen(walk, ends, 1.0 / (FROZEN * float(temperatures[-1])))


def frozen(walk: Walk, chains: Chains, beta: float) -> Codes:
    """Return where sweeps end that change single variables while that gains."""
    while True:
        logs = walk.path.log_weights(chains.states, np.ones(1))[0]
        after, _ = walk.anneal(chains, np.full(2, beta))
        gains = walk.path.log_weights(after.states, np.ones(1))[0] - logs
        if not (gains > SAME * (1.0 + np.abs(logs))).any():
            return np.asarray(chains.states, np.int8)
        chains = after


def field_spreads(model: Model[DiscreteFamily]) -> Floats:
    """Return how much the field of each variable varies when all are random."""
    if is_ising(model.family):
        graph, fields, couplings, _ = model.family.ising(model.theta)
        return np.sqrt(fields**2 + np.bincount(graph.edges.ravel(), np.repeat(couplings**2, 2), minlength=len(fields)))
    squares = np.zeros(model.n_variables)
    for factor in model.family.factors(model.theta).factors:
        squares[list(factor.nodes)] += (np.ptp(factor.table) / 2.0) ** 2
    return np.sqrt(squares)


def cooled_rows(weigh: Weigh, sizes: Integers, key: Key, starts: Sequence[Codes] = ()) -> Cooled:
    """Return rounds of chains over codes of which nothing is known but their log-weights; some begin cold at `starts`.

    Many variables get fewer sweeps, because each visit asks for the log-weights.
    """

    def cooled(n_chains: int, n_sweeps: int) -> Codes:
        rng = key.fold("cooled", n_chains, n_sweeps).generator()
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


def _sweep(weigh: Weigh, codes: Codes, logs: Floats, sizes: Integers, least: Floats) -> bool:
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
