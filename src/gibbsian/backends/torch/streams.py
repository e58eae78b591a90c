"""Random numbers by counter (Philox 4x32-10), so that they do not depend on how a card cuts up its work.

The key is a seed; the counter says which number it is: a quarter of the units, the row, the step, the draw within the
step. The four numbers that one counter gives are those of four units, a quarter of the row apart. Key and step are
tensors, so that steps that were captured as a graph draw anew whenever they are replayed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gibbsian.backends.torch.philox import philox

_WORD = 0xFFFFFFFF


class Stream:
    """The random numbers of chains that move in steps."""

    def __init__(self, place: str):
        self.key, self.clock = torch.zeros(2, dtype=torch.int64, device=place).split(1)
        self.ahead, self.draw = 0, 0

    def restart(self, *seed: int) -> None:
        """Begin the numbers of a seed, at step 0."""
        words = np.random.SeedSequence(seed).generate_state(1, np.uint64)
        self.key.copy_(torch.from_numpy(words.view(np.int64)))
        self.clock.zero_()

    def at_step(self, ahead: int) -> None:
        """Begin a step, so many after the one that the clock shows."""
        self.ahead, self.draw = ahead, 0

    def next_draw(self) -> int:
        """Return the number of a draw within its step."""
        self.draw += 1
        return self.draw - 1

    def uniform(self, n_rows: int, width: int, dtype: Any) -> Any:
        """Return numbers from [0, 1), each with 32 random bits, or the 24 that a float32 holds."""
        quarter, place = -(-width // 4), self.clock.device
        units, rows = torch.arange(quarter, device=place), torch.arange(n_rows, device=place)[:, None]
        counter = (units, rows, (self.clock + self.ahead) & _WORD, torch.full_like(self.clock, self.next_draw()))
        four = philox(counter, (self.key & _WORD, (self.key >> 32) & _WORD))
        words = torch.cat(four, dim=1)[:, :width]
        if dtype == torch.float32:
            return (words >> 8).to(dtype) * 2.0**-24
        return words.to(dtype) * 2.0**-32

    def normal(self, n_rows: int, width: int, dtype: Any) -> Any:
        """Return standard normal numbers, by the transform of Box and Muller."""
        radius, angle = self.uniform(n_rows, 2 * width, dtype).split(width, dim=1)
        return torch.sqrt(-2.0 * torch.log1p(-radius)) * torch.cos(2.0 * np.pi * angle)
