"""States of a restricted machine by block Gibbs chains."""

from __future__ import annotations

import numpy as np

from gibbsian.errors import ArgumentError
from gibbsian.models.parameters import check_whole_number
from gibbsian.models.restricted import RestrictedModel
from gibbsian.resources import require_memory
from gibbsian.rng import RandomState, as_generator


def gibbs_steps(
    model: RestrictedModel,
    values: np.ndarray,
    n_steps: int = 1,
    rng: RandomState = None,
) -> np.ndarray:
    """Draw the hidden layer given the visible one and back, `n_steps` times.

    Parameters
    ----------
    model : RestrictedModel
        The machine.
    values : ndarray of shape (n_rows, visible.width)
        Visible values of the chains.
    n_steps : int
        Steps.
    rng : None, int or Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_rows, visible.width)
        Visible values after the last step.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.layered.sampling import gibbs_steps
    >>> from gibbsian.models.layers import SpinLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> rbm = RestrictedModel.build(SpinLayer(2), SpinLayer(1), weights=[[20.0], [20.0]])
    >>> gibbs_steps(rbm, np.array([[1.0, 1.0], [-1.0, -1.0]]), n_steps=5, rng=0)
    array([[ 1.,  1.],
           [-1., -1.]])
    """
    generator = as_generator(rng)
    for _ in range(n_steps):
        values = model.draw_visible(model.draw_hidden(values, generator), generator)
    return values


def draw(
    model: RestrictedModel,
    n_samples: int,
    rng: RandomState = None,
    n_chains: int = 100,
    burn_in: int = 1000,
    thin: int = 1,
    values: np.ndarray | None = None,
) -> np.ndarray:
    """Draw visible states with block Gibbs chains.

    Parameters
    ----------
    model : RestrictedModel
        The machine.
    n_samples : int
        Draws wanted in all; each chain gives ``ceil(n_samples / n_chains)``.
    rng : None, int or Generator
        Source of randomness.
    n_chains : int
        Chains, which are rows of a matrix and so cost little.
    burn_in, thin : int
        Steps before the first draw, and between two draws of a chain.
    values : ndarray of shape (n_chains, visible.width), optional
        Where the chains start; by default at the visible biases alone.

    Returns
    -------
    ndarray of shape (n_chains, n_draws, n_units)
        States, chain by chain, as the diagnostics want them.

    Examples
    --------
    >>> from gibbsian.layered.sampling import draw
    >>> from gibbsian.models.layers import BinaryLayer
    >>> from gibbsian.models.restricted import RestrictedModel
    >>> draw(RestrictedModel.build(BinaryLayer(3), BinaryLayer(2)), 40, rng=0, n_chains=20).shape
    (20, 2, 3)
    """
    for name, value, least in (("n_samples", n_samples, 1), ("n_chains", n_chains, 1), ("burn_in", burn_in, 0)):
        check_whole_number(name, value, least)
    check_whole_number("thin", thin)
    generator = as_generator(rng)
    n_draws = -(-n_samples // n_chains)
    require_memory(
        8.0 * n_chains * (n_draws + 4) * model.visible.width,
        f"keeping {n_chains * n_draws} draws of {model.visible.n_units} units",
        "draw fewer at a time with n_samples=",
    )
    if values is None:
        values = model.draw_visible_at(np.tile(model.visible_biases / model.temperature, (n_chains, 1)), generator)
    elif np.shape(values) != (n_chains, model.visible.width):
        raise ArgumentError(f"values has shape {np.shape(values)}", f"give {(n_chains, model.visible.width)}")
    draws = []
    for number in range(n_draws):
        values = gibbs_steps(model, values, burn_in + thin if number == 0 else thin, generator)
        draws.append(model.visible.decode(values))
    return np.stack(draws, axis=1)


__all__ = ["draw", "gibbs_steps"]
