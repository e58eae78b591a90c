"""Random numbers by counter: Philox-4x32-10 (Salmon, Moraes, Dror and Shaw 2011), the same bits on every device.

A chain's stream is four words of 64 bits, of which here the first is the key, the second half of the counter, and the
last the number of sweeps made: what a chain draws depends on its own stream, the sweep and the variable, and on nothing
else. The Triton kernels of this folder draw the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

_LOW = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def _product(a: Any, b: int) -> tuple[Any, Any]:
    """Both halves of a product of two words of 32 bits, in whole numbers that have 63."""
    low, high = a * (b & 0xFFFF), a * (b >> 16)
    middle = high + (low >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (low & 0xFFFF)


def philox(counter: tuple[Any, ...], key: tuple[Any, Any]) -> tuple[Any, ...]:
    """Return four words of 32 bits, as int64, of a counter of four words and a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        (high0, low0), (high1, low1) = _product(c0, _MULTIPLIERS[0]), _product(c2, _MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return c0, c1, c2, c3


def chain_words(streams: np.ndarray) -> np.ndarray:
    """Return the key, half of the counter and the number of the sweep of each chain: five words of 32 bits."""
    halves = [
        half for word in (streams[:, 0], streams[:, 1]) for half in (word & np.uint64(_LOW), word >> np.uint64(32))
    ]
    return np.stack([*halves, streams[:, 3] & np.uint64(_LOW)], axis=1).astype(np.int64)


def site_words(words: Any, n: int) -> Any:
    """Return a word of 32 bits for each of `n` variables of every chain: word ``i % 4`` of the call ``i // 4``."""
    k0, k1, c2, c3, sweep = words.T.unsqueeze(2)
    calls = torch.arange(-(-n // 4), device=words.device)
    drawn = philox((calls, sweep & _LOW, c2, c3), (k0, k1))
    return torch.stack(drawn, dim=2).reshape(len(words), -1)[:, :n]


def uniforms(words: Any) -> Any:
    """Return numbers between 0 and 1 in float32."""
    return (words.to(torch.float32) + 0.5) * 2.0**-32


def half_logits(words: Any) -> Any:
    """Return half the log-odds of uniform numbers: a spin is up where its field is larger."""
    uniform = uniforms(words)
    return 0.5 * torch.log(uniform / (1.0 - uniform))
