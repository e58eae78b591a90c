"""Weights of classes: learned or equal, drawn from, and what to say of a class that lost all its rows."""

from __future__ import annotations

import numpy as np

EMPTY = 1e-14  # share of all weight below which a class has no rows


def class_weights(mass: np.ndarray, free: bool = True) -> np.ndarray:
    """Return the share of each class, or equal shares.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.weights import class_weights
    >>> class_weights(np.array([1.0, 3.0])), class_weights(np.array([1.0, 3.0]), free=False)
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """
    if free:
        kept = np.where(is_empty(mass), 0.0, mass)
        return kept / kept.sum()
    return np.full(len(mass), 1.0 / len(mass))


def log_weights(weights: np.ndarray) -> np.ndarray:
    """Return the logarithms, minus infinity for a class of weight zero.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.weights import log_weights
    >>> log_weights(np.array([1.0, 0.0]))
    array([  0., -inf])
    """
    with np.errstate(divide="ignore"):
        return np.log(weights)


def shares_of(scores: np.ndarray) -> np.ndarray:
    """Return ``P(class | x)`` from ``log P(x, class)``; a row that no class can explain is shared equally.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.weights import shares_of
    >>> shares_of(np.array([[-1e20, -1e20], [0.0, -np.inf], [-np.inf, -np.inf]]))
    array([[0.5, 0.5],
           [1. , 0. ],
           [0.5, 0.5]])
    """
    highest = scores.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        shares = np.exp(np.where(highest == -np.inf, 0.0, scores - highest))
    return shares / shares.sum(axis=1, keepdims=True)


def pick_classes(weights: np.ndarray, n_samples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw one class per row.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.weights import pick_classes
    >>> pick_classes(np.array([0.0, 1.0]), 3, np.random.default_rng(0))
    array([1, 1, 1])
    """
    return rng.choice(len(weights), size=n_samples, p=weights / weights.sum())


def is_empty(mass: np.ndarray) -> np.ndarray:
    """Tell which classes have lost all their rows, up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.weights import is_empty
    >>> is_empty(np.array([5.0, 1e-300]))
    array([False,  True])
    """
    return mass <= EMPTY * mass.sum()


def emptied(empty: np.ndarray) -> str:
    """Say which class has lost all its rows; the empty string when none has.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.mixtures.weights import emptied
    >>> emptied(np.array([False, True]))
    'class 1 has lost all its rows and keeps its last parameters: ask for fewer classes or more starts'
    """
    if not empty.any():
        return ""
    number = int(np.flatnonzero(empty)[0])
    return f"class {number} has lost all its rows and keeps its last parameters: ask for fewer classes or more starts"
