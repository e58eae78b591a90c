"""Who answers for a model."""

from __future__ import annotations

from typing import Any

from gibbsian.models.base import Family, Model
from gibbsian.registry import Registry

# classes by the names of the families that they answer for
ANSWERS = Registry("class of answers", "gibbsian.answers", "ANSWERS")


def answers_about(model: Model[Family]) -> Any:
    """Return the object that answers questions about a model.

    Examples
    --------
    >>> import gibbsian as gb
    >>> model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    >>> type(gb.answers.answers_about(model)).__name__
    'Answers'
    """
    return ANSWERS.of(model.family)(model)
