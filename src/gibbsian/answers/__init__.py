"""Questions to a model: log Z, rows with missing cells, hidden units, samples, expectations.

Each kind of model names the class that answers for it (``model.answers``), which is loaded when it is first asked.
"""

from gibbsian.answers.base import Answers, answers_about

__all__ = ["Answers", "answers_about"]
