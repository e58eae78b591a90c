"""Who answers for a model."""

from __future__ import annotations

from typing import Any

from gibbsian.startup import named


def answers_about(model: Any) -> Any:
    """Return the object that answers questions about a model; the model says which class that is.

    Examples
    --------
    >>> import gibbsian as gb
    >>> type(gb.answers.answers_about(gb.PairwiseModel.zeros(gb.graphs.complete(2)))).__name__
    'Answers'
    """
    return named(model.answers)(model)
