"""Randomness: one `random_state` in, independent streams out.

Compiled samplers take one 256-bit state per chain (xoshiro256++). Chain `c` owns stream `c`, so
what it draws does not depend on how many chains or threads run beside it, and the states are a plain array that a
checkpoint can hold.
"""

from __future__ import annotations

import numpy as np

from gibbsian.errors import ArgumentError

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
            raise ArgumentError(f"random_state={random_state} must be zero or positive")
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    raise ArgumentError(f"random_state={random_state!r} must be None, an int or a numpy Generator")


def chain_streams(rng: np.random.Generator, n_chains: int) -> np.ndarray:
    """Draw one xoshiro256++ state per chain, shape ``(n_chains, 4)``.

    Row `c` depends on the generator and on `c` only: asking for more chains leaves the first ones unchanged.

    Examples
    --------
    >>> from gibbsian.rng import as_generator, chain_streams
    >>> few, many = chain_streams(as_generator(0), 2), chain_streams(as_generator(0), 5)
    >>> bool((few == many[:2]).all())
    True
    """
    entropy = [int(word) for word in rng.integers(0, 2**32, size=8, dtype=np.uint64)]
    children = np.random.SeedSequence(entropy).spawn(n_chains)
    states = np.array([child.generate_state(4, np.uint64) for child in children], dtype=np.uint64)
    return states.reshape(n_chains, 4)
