"""Losses of costs, fused with their derivatives, as `backends.numba.flip_losses` and `grouped_losses` have them.

Each takes tensors of ``costs`` and ``shares`` (one per state), returns the weighted sum of losses as a float64 tensor,
and overwrites the costs with the weighted derivatives. Costs of two-valued variables have the shape (states,
variables); those with a column for every value (states, variables, values), infinite where a variable has fewer.
"""

from __future__ import annotations

from typing import Any

import torch

# As in `backends.numba.flip_losses`: beyond exp(300), or what float32 can hold, exp(-d/2) goes on as a straight line.
_LARGEST_EXPONENT = {torch.float64: 300.0, torch.float32: 40.0}


def _weighted(losses: Any, shares: Any) -> Any:
    """The sum over states and variables in float64."""
    return losses.sum(dim=tuple(range(1, losses.ndim)), dtype=torch.float64) @ shares.double()


def _by_state(shares: Any, costs: Any) -> Any:
    return shares.reshape(-1, *[1] * (costs.ndim - 1))


def logistic(costs: Any, shares: Any) -> Any:
    """Pseudolikelihood: ``phi(d) = log(1 + exp(-d))`` (H06 eq. 7, Y18 eq. 7)."""
    value = _weighted(torch.nn.functional.softplus(-costs), shares)
    costs.neg_().sigmoid_().mul_(-_by_state(shares, costs))
    return value


def squared_sigmoid(costs: Any, shares: Any) -> Any:
    """Ratio matching: ``phi(d) = sigmoid(-d)^2`` (Hyvarinen 2007, Y18 section 5)."""
    other, same = torch.sigmoid(-costs), torch.sigmoid(costs)
    losses = other.square()
    torch.mul(losses * same, -2.0 * _by_state(shares, costs), out=costs)
    return _weighted(losses, shares)


def half_exponential(costs: Any, shares: Any) -> Any:
    """Minimum probability flow: ``phi(d) = exp(-d/2)``, continued as a straight line where it would overflow."""
    largest = _LARGEST_EXPONENT[costs.dtype]
    exponents = -0.5 * costs
    grown = exponents.clamp(max=largest).exp()
    torch.mul(grown, -0.5 * _by_state(shares, costs), out=costs)
    return _weighted(grown.mul_(1.0 + (exponents - largest).clamp_(min=0.0)), shares)


def scaled_half_exponential(costs: Any, shares: Any) -> tuple[Any, Any]:
    """Return per variable the largest exponent ``-d/2`` and the sum of ``shares exp(-d/2)`` over its exponential."""
    exponents = -0.5 * costs
    tops = exponents.amax(dim=0)
    weights = (exponents - tops).exp_().mul_(_by_state(shares, costs))
    torch.mul(weights, -0.5, out=costs)
    return tops.double(), weights.sum(dim=0, dtype=torch.float64)


def softmax(costs: Any, shares: Any) -> Any:
    """Pseudolikelihood: ``log sum_a exp(-d_a)``, which is ``-log P(x_i | the others)``."""
    value = _weighted(torch.logsumexp(-costs, dim=2), shares)
    torch.mul(torch.softmax(-costs, dim=2), -_by_state(shares, costs), out=costs)
    return value


def squared_distance(costs: Any, shares: Any) -> Any:
    """Ratio matching: ``1/2 sum_a (1[a = x_i] - p_a)^2``, with p the conditional probabilities."""
    present = torch.exp(-torch.logsumexp(-costs, dim=2, keepdim=True))
    chances = torch.softmax(-costs, dim=2)
    squares = chances.square().sum(dim=2, keepdim=True)
    torch.mul(chances * (squares - chances - present), _by_state(shares, costs), out=costs)
    return _weighted(0.5 - present + 0.5 * squares, shares)


def half_exponentials(costs: Any, shares: Any) -> Any:
    """Minimum probability flow: ``sum_a exp(-d_a / 2)`` over the other values, straight where it would overflow."""
    n_variables = costs.shape[1]
    return half_exponential(costs, shares) - n_variables * shares.sum(dtype=torch.float64)
