"""Which learner ``"auto"`` is: exact likelihood where quick, else pseudolikelihood, or chains for missing cells.

Of very many cells pseudolikelihood again, where the missing ones are few in each row, and for very many parameters.
"""

from __future__ import annotations

from gibbsian.data import Dataset
from gibbsian.inference import predict_cost
from gibbsian.inference.missing import PATIENT_SECONDS, clamped_seconds
from gibbsian.learners.completing import are_few, never_shown
from gibbsian.models import Model

# Exact likelihood is taken while one evaluation is predicted to take no longer; where cells are missing, when chains
# are the only other way, no longer than PATIENT_SECONDS.
QUICK_SECONDS = 0.05
# Of more cells than this, chains would redraw the missing ones for minutes; where all completions of the rows can be
# listed, pseudolikelihood averages over them, and with so many rows its larger errors are small.
MANY_CELLS = 2**24
# Chains and parameters take hundreds of steps to come to rest together, and longer the more there are; of 50 columns
# with 21 values (541,275 parameters) chains are far from it when pseudolikelihood, in a hundred steps, is there.
MANY_PARAMETERS = 2**12


def choose_learner(model: Model, data: Dataset) -> str:
    """Return the name of the learner that suits a model and data."""
    seconds = predict_cost(model).seconds
    if not data.has_missing:
        return "mle" if seconds <= QUICK_SECONDS else "mple"
    if seconds <= PATIENT_SECONDS and seconds + clamped_seconds(model, data) <= PATIENT_SECONDS:
        return "mle"
    many = model.theta.size > MANY_PARAMETERS or (data.n_states * data.n_variables > MANY_CELLS and are_few(data))
    return "mple" if many and not model.n_hidden and not never_shown(data).any() else "pcd"
