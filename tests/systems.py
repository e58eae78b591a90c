"""Small systems that can be enumerated: the judge of everything else."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import gibbsian as gb
from gibbsian.domain import BINARY, SPIN, Categories, CategoryCoding
from gibbsian.inference import Engine
from gibbsian.models import MODELS


def all_states(n: int, domain=SPIN) -> np.ndarray:
    """Every state of n variables, the last variable changing fastest."""
    codes = itertools.product(*(range(size) for size in domain.cardinalities(n)))
    return domain.from_codes(np.array(list(codes), dtype=np.int8))


def costs_of(model, states) -> np.ndarray:
    """The log-odds of each state against those with one value changed, column by column."""
    return model.conditionals(model.domain.to_codes(np.asarray(states)), by_row=True).costs(model.theta)


def with_one_changed(model, states):
    """For each column of the costs, the states with that change made: to the other of two values, or to each."""
    for i, size in enumerate(model.domain.cardinalities(model.n_variables)):
        codes = model.domain.to_codes(np.asarray(states))
        for value in [1 - codes[:, i]] if model.domain.two_valued else range(size):
            changed = codes.copy()
            changed[:, i] = value
            yield model.domain.from_codes(changed)


def exact_law(model) -> tuple[np.ndarray, np.ndarray, float]:
    """States, probabilities and log Z by plain summation: the judge of everything else."""
    states = all_states(model.n_variables, model.domain)
    log_weights = model.log_weights(states)
    log_partition = float(np.logaddexp.reduce(log_weights))
    return states, np.exp(log_weights - log_partition), log_partition


def random_model(graph, rng, domain=SPIN, scale=0.6, bias=True) -> gb.PairwiseModel:
    size = graph.n_edges + graph.n_nodes * bias
    return gb.PairwiseModel(graph, rng.normal(scale=scale, size=size), domain, bias)


def random_model_of(name, graph, rng, domain=SPIN, scale=0.6):
    """A model of any registered kind with random parameters."""
    zeros = MODELS.factory(name).zeros(graph, domain)
    return zeros.replace(rng.normal(scale=scale, size=zeros.theta.size))


def domains_of(name, n: int) -> list:
    """Domains of n variables that models of a registered kind accept, as the models' own traits say."""
    many_valued = {
        "values": [Categories.of_values((-1, 0, 1), n)],
        "categories": [Categories(tuple(2 + i % 3 for i in range(n)))],
        None: [],
    }
    return [SPIN, BINARY, *many_valued[MODELS.trait(name, "many_valued")]]


def models_with_domains(n: int) -> list:
    """Every registered kind of model on a graph, with each domain it accepts."""
    other = ("layers", "classes", "numbers", "continuous")
    names = [name for name in MODELS.names() if not any(MODELS.trait(name, trait, False) for trait in other)]
    return [(name, domain) for name in names for domain in domains_of(name, n)]


def dataset_of(states, domain, sample_weight=None) -> gb.Dataset:
    """States of a domain as data."""
    if domain.two_valued:
        return gb.Dataset.read(states, coding=domain.name, sample_weight=sample_weight)
    labels = domain.values or tuple(tuple(range(size)) for size in domain.sizes)
    coding = CategoryCoding(labels, domain)
    return gb.Dataset.read(coding.decode(states), coding=coding, sample_weight=sample_weight)


def sampled_data(model, n_rows, rng) -> gb.Dataset:
    """Rows drawn exactly from a small model."""
    states, probabilities, _ = exact_law(model)
    return dataset_of(states[rng.choice(len(states), n_rows, p=probabilities)], model.domain)


def ask(engine: type[Engine], model: Any, max_seconds: float = 60.0) -> Any:
    """Exact answers about a model by one engine."""
    return engine(model.family, max_seconds).at(model.theta)
