"""Randomness: one `random_state` in, independent streams out.

A `Key` names a stream of random numbers and is folded with names and numbers to get others, as in JAX: what is drawn
depends on the key alone, never on what was drawn before or elsewhere. States hold keys, no generators.

Compiled samplers take one 256-bit state per chain (xoshiro256++). Chain `c` owns stream `c`, so
what it draws does not depend on how many chains or threads run beside it, and the states are a plain array that a
checkpoint can hold.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import numpy as np

from gibbsian.errors import ArgumentError

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)

# random words: of a key, of the streams of chains
Words = np.ndarray[tuple[int, ...], np.dtype[np.uint64]]
RandomState = None | int | np.random.Generator | np.random.RandomState


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turn any accepted `random_state` into a NumPy generator.

    Parameters
    ----------
    random_state : None, int, Generator or RandomState
        None draws fresh entropy; an int gives the same stream every time; a generator is used as it is.

    Examples
    --------
    >>> from gibbsian.rng import as_generator
    >>> bool(as_generator(7).random() == as_generator(7).random())
    True
    """
    if random_state is None or isinstance(random_state, int | np.integer):
        if random_state is not None and random_state < 0:
            raise ArgumentError("must be zero or positive", argument="random_state", value=random_state)
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    raise ArgumentError("must be None, an int or a numpy Generator", argument="random_state", value=random_state)


class Key(NamedTuple):
    """The name of a stream of random numbers: 128 bits, from which generators, chains and counters are made.

    Parameters
    ----------
    words : ndarray of uint64, shape (2,)
        The bits; a checkpoint holds them as they are.

    Examples
    --------
    >>> from gibbsian.rng import Key
    >>> key = Key.of(7)
    >>> bool(key.fold("epoch", 3).generator().random() == key.fold("epoch", 3).generator().random())
    True
    >>> bool(key.fold("epoch", 3).generator().random() == key.fold("epoch", 4).generator().random())
    False
    """

    words: Words

    @classmethod
    def of(cls, random_state: RandomState) -> Key:
        """Draw a key from any accepted `random_state`."""
        return cls(as_generator(random_state).integers(0, 2**64, size=2, dtype=np.uint64))

    def fold(self, *place: int | str) -> Key:
        """Return the key of a place below this one; other places and other keys have unrelated streams."""
        high, low = self.words.tolist()
        for part in place:
            # a text and a number never meet: texts are lifted above 64 bits' worth of numbers by a salt of their own
            number = crc32(part.encode()) ^ _TEXT if isinstance(part, str) else part % 2**64
            high = _mix(high ^ _mix((number + _STEP) % 2**64))
            low = _mix((low + high + _STEP) % 2**64)
        return Key(np.array([high, low], np.uint64))

    def generator(self) -> np.random.Generator:
        """Return a NumPy generator (PCG64) at the start of the stream."""
        return np.random.Generator(np.random.PCG64(self.words))

    def chains(self, n_chains: int) -> Words:
        """Return one xoshiro256++ state per chain, shape ``(n_chains, 4)``; row `c` depends on the key and on `c`."""
        first, second = self.words
        counters = np.arange(1, 4 * n_chains + 1, dtype=np.uint64)
        states = _mixed(first + counters * _GOLDEN) ^ _mixed(_mixed(second + counters * _GOLDEN))
        return states.reshape(n_chains, 4)

    def philox(self) -> tuple[int, int]:
        """Return the key of a counter-based generator on a card."""
        high, low = self.words.tolist()
        return high, low


# Salt of texts, and the golden ratio in 64 bits: constants of splitmix64.
_TEXT, _STEP = 0x5851F42D4C957F2D, 0x9E3779B97F4A7C15


def _mix(word: int) -> int:
    """Mix a 64-bit word: the finaliser of splitmix64, in Python's integers."""
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) % 2**64
    return word ^ (word >> 31)


def _mixed(words: Words) -> Words:
    """The finaliser of splitmix64, which the authors of xoshiro256++ recommend for its seeds."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
