"""A progress bar for fits: how far the gradient, or the gain of a step, has come on its way to the tolerance."""

from __future__ import annotations

import math
import time

from gibbsian.cli.bars import Bars
from gibbsian.learning.callbacks import Callback
from gibbsian.learning.run import Run


class Bar(Callback):
    """A bar on stderr while a fit runs: step, what is known of it, the time of a step."""

    def __init__(self, label: str):
        self.label, self.bars = label, Bars()

    def on_start(self, run: Run) -> None:
        """Show the bar."""
        self.bars.move(self.label, 0.0, 1.0, "starting")
        self.share, self.first_norm = 0.0, math.nan
        self.began, self.steps_before = time.perf_counter(), run.n_steps

    def on_step(self, run: Run) -> None:
        """Move it; never backwards."""
        assert run.info is not None
        pace = (time.perf_counter() - self.began) / (run.n_steps - self.steps_before)
        said = "  ".join([f"step {run.n_steps}", *(f"{name} {x:.4g}" for name, x in run.info.figures().items())])
        self.share = max(self.share, run.n_steps / run.max_iter, self._decades(run.info.gradient_norm, run.tol))
        self.bars.move(self.label, self.share, 1.0, f"{said}  {pace:.2g} s/step")

    def on_end(self, run: Run) -> None:
        """Take it away."""
        self.bars.stop()

    def _decades(self, norm: float, tol: float) -> float:
        """Return the share of the decades between the first gradient and the tolerance that lie behind."""
        if not (math.isfinite(norm) and norm > tol > 0):
            return 1.0 if norm <= tol else 0.0
        if math.isnan(self.first_norm):
            self.first_norm = norm
        whole = math.log(self.first_norm / tol)
        return math.log(self.first_norm / norm) / whole if whole > 0 else 0.0
