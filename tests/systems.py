"""Small systems that can be enumerated: the judge of everything else."""

from __future__ import annotations

import itertools

import numpy as np

import gibbsian as gb
from gibbsian.domain import SPIN


def all_states(n: int, domain=SPIN) -> np.ndarray:
    """Every state of n variables, the last variable changing fastest."""
    return np.array(list(itertools.product([domain.low, domain.high], repeat=n)), dtype=np.int8)


def exact_law(model) -> tuple[np.ndarray, np.ndarray, float]:
    """States, probabilities and log Z by plain summation: the judge of everything else."""
    states = all_states(model.n_variables, model.domain)
    log_weights = model.log_weights(states)
    log_partition = float(np.logaddexp.reduce(log_weights))
    return states, np.exp(log_weights - log_partition), log_partition


def random_model(graph, rng, domain=SPIN, scale=0.6, temperature=1.0, bias=True) -> gb.PairwiseModel:
    size = graph.n_edges + graph.n_nodes * bias
    return gb.PairwiseModel(graph, rng.normal(scale=scale, size=size), domain, temperature, bias)


def sampled_data(model, n_rows, rng) -> gb.Dataset:
    """Rows drawn exactly from a small model."""
    states, probabilities, _ = exact_law(model)
    return gb.Dataset.read(states[rng.choice(len(states), n_rows, p=probabilities)], coding=model.domain.name)
