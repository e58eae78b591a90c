"""Test log-likelihood on the real data of the density estimation suite, strengths chosen on the validation split."""

import numpy as np
import pytest

from gibbsian.full_span import select_on
from gibbsian.full_span.selection import fit_with, mean_log_likelihood

PLAIN = {"algorithm": "greedy", "epsilon": 1e-6}


def splits(path):
    def counted(rows):
        states, counts = np.unique(rows, axis=0, return_counts=True)
        return states.astype(np.int64), counts

    with np.load(path) as file:
        return tuple(counted(file[split]) for split in ("train", "valid", "test"))


@pytest.mark.parametrize(
    ("name", "strengths", "plain", "least"),
    [
        ("nltcs", [(1e-3, 8.0), (4e-3, 24.0)], -6.05, -5.995),
        ("msnbc", [(3e-3, 2.5)], -6.08, -6.05),
    ],
)
def test_log_likelihood_of_the_test_split(name, strengths, plain, least, shared_data):
    train, valid, test = splits(shared_data(f"debd/{name}.npz"))
    cardinalities = (2,) * train[0].shape[1]
    greedy = fit_with(train, cardinalities, PLAIN)
    grid = [{"algorithm": "dense", "l2": l2, "l2_growth": growth} for l2, growth in strengths]
    dense = select_on(train, valid, cardinalities, grid)
    assert dense.best.settings == grid[0]
    assert dense.best.log_likelihood > mean_log_likelihood(greedy, valid, cardinalities) + 0.02
    assert mean_log_likelihood(greedy, test, cardinalities) == pytest.approx(plain, abs=0.015)
    assert mean_log_likelihood(dense.model, test, cardinalities) > least
