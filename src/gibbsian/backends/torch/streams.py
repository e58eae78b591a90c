"""Random numbers by counter (Philox 4x32-10), so that they do not depend on how a card cuts up its work.

The key is a seed; the counter says which number it is: a quarter of the units, the row, the step, the draw within the
step. The four numbers that one counter gives are those of four units, a quarter of the row apart. Key and step are
tensors, so that steps that were captured as a graph draw anew whenever they are replayed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

_WORD = 0xFFFFFFFF
_ROUND_A, _ROUND_B = 0xD2511F53, 0xCD9E8D57
_KEY_A, _KEY_B = 0x9E3779B9, 0xBB67AE85


def philox(key: Any, c0: Any, c1: Any, c2: Any, c3: Any) -> tuple[Any, Any, Any, Any]:
    """Return four 32-bit numbers, in int64, of a 64-bit key and four counters that broadcast."""
    low, high = key & _WORD, (key >> 32) & _WORD
    for _ in range(10):
        # the product wraps, but its two halves are what they are
        first, second = c0 * _ROUND_A, c2 * _ROUND_B
        c0 = ((second >> 32) & _WORD) ^ c1 ^ low
        c2 = ((first >> 32) & _WORD) ^ c3 ^ high
        c1, c3 = second & _WORD, first & _WORD
        low, high = (low + _KEY_A) & _WORD, (high + _KEY_B) & _WORD
    return c0, c1, c2, c3


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
        four = philox(self.key, units, rows, (self.clock + self.ahead) & _WORD, self.next_draw())
        words = torch.cat(four, dim=1)[:, :width]
        if dtype == torch.float32:
            return (words >> 8).to(dtype) * 2.0**-24
        return words.to(dtype) * 2.0**-32

    def normal(self, n_rows: int, width: int, dtype: Any) -> Any:
        """Return standard normal numbers, by the transform of Box and Muller."""
        radius, angle = self.uniform(n_rows, 2 * width, dtype).split(width, dim=1)
        return torch.sqrt(-2.0 * torch.log1p(-radius)) * torch.cos(2.0 * np.pi * angle)
