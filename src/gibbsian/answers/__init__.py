"""Questions to a model: log Z, rows with missing cells, hidden units, samples, expectations.

Each kind of model names the class that answers for it (``model.answers``), which is loaded when it is first asked.
"""

from __future__ import annotations

import importlib
from typing import Any

from gibbsian.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__,
    {
        "Answers": "gibbsian.answers.base",
        "Divergence": "gibbsian.answers.queries",
        "Modes": "gibbsian.answers.modes",
        "Nats": "gibbsian.answers.queries",
        "Query": "gibbsian.answers.query_text",
        "bayes_decision": "gibbsian.answers.decisions",
    },
)
__all__ += ["answers_about"]


def answers_about(model: Any) -> Any:
    """Return the object that answers questions about a model; the model says which class that is.

    Examples
    --------
    >>> import gibbsian as gb
    >>> type(gb.answers.answers_about(gb.PairwiseModel.zeros(gb.graphs.complete(2)))).__name__
    'Answers'
    """
    module, _, name = model.answers.partition(":")
    return getattr(importlib.import_module(module), name)(model)
