"""States drawn by chains that are watched: Gibbs sampling, or tempering where that does not mix."""

from __future__ import annotations

import numpy as np

from gibbsian.diagnostics.chains import report_on
from gibbsian.errors import MixingWarning, notify
from gibbsian.expectations.mixing import summaries
from gibbsian.models.base import DiscreteFamily, Model
from gibbsian.old_sampling import BlockGibbs, Sampler, as_sampler, draw
from gibbsian.old_sampling.bridges import COLUMNS, TemperedColumns
from gibbsian.old_sampling.layer_paths import LayerPath
from gibbsian.old_sampling.paths import Path
from gibbsian.old_sampling.variable_paths import variable_path

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

    A named sampler is kept to, with a warning there.
    """
    sampler = as_sampler("gibbs" if method == "auto" else method)
    draws = draw(model, n_samples, rng, sampler)
    r_hat = _r_hat(model, sampler, rng)
    if method == "auto" and r_hat > MAX_R_HAT:
        return tempered_draws(model, n_samples, rng)
    warn_of(r_hat)
    return draws.reshape(-1, model.n_variables)[:n_samples]


def _r_hat(model: Model[DiscreteFamily], sampler: Sampler, rng: np.random.Generator) -> float:
    """R-hat of chains from random states; what they were in the first half may be the start."""
    chains, seen = sampler.init(model, N_CHAINS, rng), []
    for _ in range(LOOKS):
        chains, _ = sampler.step(model, chains, SWEEPS)
        seen.append(chains.states)
    return report_on(summaries(model, np.stack(seen[LOOKS // 2 :], axis=1))).r_hat


def warn_of(r_hat: float) -> None:
    """Warn where chains do not agree."""
    if r_hat > MAX_R_HAT:
        reason = f"{N_CHAINS} chains from random states do not agree (R-hat {r_hat:.2f}), so modes may be lost"
        notify(MixingWarning(reason, "use `method='auto'`, which tempers such chains"))


def tempered_draws(model: Model[DiscreteFamily], n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw states of a model by tempered chains, and warn where their columns do not agree either."""
    return _tempered(variable_path(model), n_samples, rng)


def _tempered(path: Path, n_states: int, rng: np.random.Generator) -> np.ndarray:
    run = TemperedColumns.settled(path, rng).run(max(LEAST_ROUNDS, -(-n_states // COLUMNS)), n_states)
    if run.trouble:
        notify(MixingWarning(f"draws may miss modes: {run.trouble}"))
    return run.states


def layer_r_hat(path: LayerPath, rng: np.random.Generator) -> float:
    """Return the R-hat of block Gibbs chains of a machine in layers from the beginning of a path."""
    begun = path.units.split(path.draw_base(N_CHAINS, rng), 0)
    chains, seen = BlockGibbs().init(path.stack, N_CHAINS, rng, begun), []
    for _ in range(LOOKS):
        chains, _ = BlockGibbs().step(path.stack, chains, rng, SWEEPS)
        seen.append(np.hstack([np.asarray(part, np.float64) for part in chains.values]))
    late = np.stack(seen[LOOKS // 2 :], axis=1)
    flat = late.reshape(-1, late.shape[2])
    logs = path.log_weights(flat, path.features(flat), 1.0).reshape(late.shape[:2])
    unit = int(np.argmax(late.mean(axis=1).var(axis=0)))
    return report_on(np.stack([logs, late[..., unit]], axis=-1)).r_hat


def tempered_values(path: LayerPath, n_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Return values of the even layers of a machine by tempered chains, side by side: (rounds, columns, width)."""
    n_rounds = -(-n_rows // COLUMNS)
    states = _tempered(path, n_rounds * COLUMNS, rng)
    return np.hstack(path.encode(states)).reshape(n_rounds, COLUMNS, -1)
