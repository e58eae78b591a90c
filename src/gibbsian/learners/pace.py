"""How fast noisy steps may go: the rate that suits a model where the user gives none."""

from __future__ import annotations

from dataclasses import replace

from gibbsian.models import Model
from gibbsian.optimizers import Adam, Decay

# Parameters have unequal curvatures, and noise must fade: Adam with a Robbins-Monro rate.
DEFAULT_OPTIMIZER = Adam(learning_rate=0.05, decay=Decay(power=0.75, delay=100))
# What the parameters around a variable may move in one step, all together. Two synthetic tables of 60 columns, learned
# with 10 hidden units (35 interactions a variable), ended lower at the rate 0.05 than at 0.03 or less, at times by
# nats; complete graphs of 100 variables fared as well at 0.01 as at 0.05. A tuned rate may still be better.
MOST_FIELD = 1.0


def paced_adam(model: Model) -> Adam:
    """Return Adam at the default rate, lower where variables have more than twenty interactions.

    Adam moves all parameters by about the rate at once, in the first steps all the same way, so that the field on a
    variable moves by the rate times the number of its interactions. Chains do not keep up with fields that jump.
    """
    rate = min(DEFAULT_OPTIMIZER.learning_rate, MOST_FIELD / max(_interactions_around(model), 1.0))
    return replace(DEFAULT_OPTIMIZER, learning_rate=rate)


def _interactions_around(model: Model) -> float:
    """Interactions of a variable, in the mean over the ends of all interactions: hubs count as often as they act."""
    degrees = model.interactions_around
    total = float(degrees.sum())
    return float(degrees @ degrees) / total if total else 0.0
