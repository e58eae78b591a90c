"""Test log-likelihood on the real data of the density estimation suite, strengths chosen on the validation split."""

import numpy as np
import pytest

import gibbsian as gb


def splits(path):
    with np.load(path) as file:
        return tuple(gb.Dataset.read(file[split], coding="binary") for split in ("train", "valid", "test"))


@pytest.mark.parametrize(
    ("name", "strengths", "plain", "least"),
    [
        ("nltcs", [(1e-3, 8.0), (4e-3, 24.0)], -6.05, -5.995),
        pytest.param("msnbc", [(3e-3, 2.5)], -6.08, -6.05, marks=pytest.mark.long),
    ],
)
def test_log_likelihood_of_the_test_split(name, strengths, plain, least, shared_data):
    train, valid, test = splits(shared_data(f"debd/{name}.npz"))
    greedy = gb.FullSpan(tol=1e-6).fit(train)
    dense = [gb.FullSpan("span-dense", l2=l2, l2_growth=growth).fit(train) for l2, growth in strengths]
    scores = [machine.score(valid) for machine in dense]
    assert np.argmax(scores) == 0
    assert scores[0] > greedy.score(valid) + 0.02
    assert greedy.score(test) == pytest.approx(plain, abs=0.015)
    assert dense[0].score(test) > least
