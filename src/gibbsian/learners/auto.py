"""Which learner ``"auto"`` is: exact likelihood where quick, else pseudolikelihood, or chains for missing cells."""

from __future__ import annotations

from gibbsian.data import Dataset
from gibbsian.inference import predict_cost
from gibbsian.inference.missing import PATIENT_SECONDS, clamped_seconds
from gibbsian.models import Model

# Exact likelihood is taken while one evaluation is predicted to take no longer; where cells are missing, when chains
# are the only other way, no longer than PATIENT_SECONDS.
QUICK_SECONDS = 0.05


def choose_learner(model: Model, data: Dataset) -> str:
    """Return the name of the learner that suits a model and data."""
    seconds = predict_cost(model).seconds
    if not data.has_missing:
        return "mle" if seconds <= QUICK_SECONDS else "mple"
    return "mle" if seconds + clamped_seconds(model, data) <= PATIENT_SECONDS else "pcd"
