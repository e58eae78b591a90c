"""States drawn by chains that are watched: Gibbs sampling, or tempering where that does not mix."""

from __future__ import annotations

import numpy as np

from gibbsian.arrays import States
from gibbsian.diagnostics.chains import report_on
from gibbsian.errors import MixingWarning, notify
from gibbsian.expectations.mixing import summaries
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.rng import Key
from gibbsian.sampling import ReplicaLadder, Transition, as_transition, draw
from gibbsian.sampling.bridges import COLUMNS
from gibbsian.sampling.layer_paths import LayerPath
from gibbsian.sampling.paths import Path, variable_path

# Chains from random states, how often they are looked at, and sweeps between two looks.
N_CHAINS, LOOKS, SWEEPS = 16, 40, 10
# Largest R-hat of chains that agree, looked at so often.
MAX_R_HAT = 1.2
# Rounds of tempered chains, at least.
LEAST_ROUNDS = 200


def watched_draws(
    model: Model[DiscreteFamily], n_samples: int, rng: np.random.Generator, method: str = "auto"
) -> np.ndarray:
    """Draw states of a model by chains; ``"auto"`` tempers them where Gibbs chains from random states do not agree.

    A named transition is kept to, with a warning there.
    """
    transition = as_transition("gibbs" if method == "auto" else method)
    draws = draw(model, n_samples, rng, transition)
    r_hat = _r_hat(model, transition, rng)
    if method == "auto" and r_hat > MAX_R_HAT:
        return tempered_draws(variable_path(model), n_samples, rng)
    warn_of(r_hat)
    return draws.reshape(-1, model.n_variables)[:n_samples]


def _r_hat(model: Model[DiscreteFamily], transition: Transition, rng: np.random.Generator) -> float:
    """R-hat of chains from random states; what they were in the first half may be the start."""
    kernel = transition.bind(model.family)
    chains = kernel.init(N_CHAINS, Key.of(rng))
    seen = np.empty((N_CHAINS, LOOKS, model.n_variables), chains.states.dtype)
    for look in range(LOOKS):
        chains, _ = kernel.step(model.theta, chains, SWEEPS)
        seen[:, look] = chains.states
    late: States = seen[:, LOOKS // 2 :]
    return report_on(summaries(model, late)).r_hat


def warn_of(r_hat: float) -> None:
    """Warn where chains do not agree."""
    if r_hat > MAX_R_HAT:
        reason = f"{N_CHAINS} chains from random states do not agree (R-hat {r_hat:.2f}), so modes may be lost"
        notify(MixingWarning(reason, "use `method='auto'`, which tempers such chains"))


def tempered_draws(path: Path, n_states: int, rng: np.random.Generator) -> np.ndarray:
    """Draw states at the end of a path by tempered chains, and warn where their columns do not agree either."""
    ladder = ReplicaLadder.settled(path, Key.of(rng))
    _, run = ladder.run(max(LEAST_ROUNDS, -(-n_states // COLUMNS)), n_states)
    if run.warning:
        notify(MixingWarning(f"draws may miss modes: {run.warning}"))
    return run.states


def layer_r_hat(path: LayerPath, rng: np.random.Generator) -> float:
    """Return the R-hat of block Gibbs chains of a machine in layers from the beginning of a path."""
    kernel, chains, seen = path.kernel(), path.start(N_CHAINS, Key.of(rng)), []
    for _ in range(LOOKS):
        chains, _ = kernel.step(path.theta(1.0), chains, SWEEPS)
        seen.append(chains.states)
    late: np.ndarray = np.stack(seen[LOOKS // 2 :], axis=1)
    logs = path.log_weights(late.reshape(-1, late.shape[2]), np.ones(1)).reshape(late.shape[:2])
    unit = int(np.argmax(late.mean(axis=1).var(axis=0)))
    return report_on(np.stack([logs, late[..., unit]], axis=-1)).r_hat


def tempered_states(path: LayerPath, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Return states of all units of a machine by tempered chains: (rounds, columns, units)."""
    n_rounds = -(-n_rows // COLUMNS)
    return tempered_draws(path, n_rounds * COLUMNS, rng).reshape(n_rounds, COLUMNS, -1)
