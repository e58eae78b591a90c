"""How well chains mix: what is watched of their draws, and the limits beyond which an expectation warns."""

from __future__ import annotations

import numpy as np

from gibbsian.arrays import Floats, States
from gibbsian.diagnostics.chains import report_on
from gibbsian.errors import MixingWarning, notify
from gibbsian.models.base import Family, Model
from gibbsian.settings import check, declared, flag, number, whole


@declared(frozen=True)
class MixingCheck:
    """R-hat and the effective sample size of chains, with a warning if they are beyond these limits.

    R-hat compares chains of the length of one call. Chains much shorter than their memory get a large one although they
    are where they should be.

    Examples
    --------
    >>> import gibbsian as gb
    >>> chains = gb.expectations.PersistentChains(n_draws=500, mixing=gb.expectations.MixingCheck(max_r_hat=1.02))
    >>> chains.mixing.max_r_hat
    1.02
    """

    max_r_hat: float = number(1.05, "Largest R-hat without a warning.", above=1)
    min_ess: float = number(100.0, "Smallest effective sample size, over all chains, without a warning.", least=0)
    warn: bool = flag(True, "Whether to warn.")
    between_looks: int = whole(
        1,
        "Sweeps between two draws that are compared. If more than one, so are draws of the second half of the burn-in, "
        "and the first call alone is checked: for calls too short to tell.",
        least=1,
    )

    def __post_init__(self) -> None:
        check(self)

    def parts(self, model: Model[Family], draws: States, remedy: str) -> dict[str, float]:
        """Return how well chains mix, of draws of shape (n_chains, n_draws, n_variables)."""
        report = report_on(summaries(model, draws))
        if self.warn and not report.is_good(self.max_r_hat, self.min_ess):
            notify(MixingWarning(report.describe(), remedy))
        return {"r_hat": report.r_hat, "effective_sample_size": report.effective_sample_size}


def summaries(model: Model[Family], draws: States) -> Floats:
    """Return the energy and the variable whose chain means differ most, shape (n_chains, n_draws, 2)."""
    n_chains, n_draws, n = draws.shape
    energies = model.energy(draws.reshape(-1, n)).reshape(n_chains, n_draws)
    variable = int(np.argmax(draws.mean(axis=1).var(axis=0)))
    return np.stack([energies, draws[..., variable]], axis=-1)
