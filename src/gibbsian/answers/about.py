"""Who answers for a model."""

from __future__ import annotations

from typing import Any

from gibbsian.registry import Registry

# classes by the names of the models that they answer for
ANSWERS = Registry("class of answers", "gibbsian.answers", "ANSWERS")


def answers_about(model: Any) -> Any:
    """Return the object that answers questions about a model.

    Examples
    --------
    >>> import gibbsian as gb
    >>> type(gb.answers.answers_about(gb.PairwiseModel.zeros(gb.graphs.complete(2)))).__name__
    'Answers'
    """
    return ANSWERS.of(model.family)(model)
