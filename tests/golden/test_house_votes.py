"""House votes of 1984 with all 392 missing cells used: hidden cells are guessed better than without those rows."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb

SEEDS = range(3)
HELD_OUT = 0.1


@pytest.fixture(scope="module")
def votes():
    """435 rows of 16 votes and the party, as spins with NaN."""
    data = gb.datasets.load_house_votes().convert("spin")
    return data.decode(data.states, data.missing)[data.row_of]


def hide(votes, seed):
    """Hide a tenth of the present cells: where they are, and what is left."""
    hidden = ~np.isnan(votes) & (np.random.default_rng(seed).random(votes.shape) < HELD_OUT)
    return hidden, np.where(hidden, np.nan, votes)


def losses(votes, hidden, probabilities):
    """Mean log-loss of the hidden cells, and the share guessed right."""
    upper = votes[hidden] > 0
    guess = np.clip(probabilities[hidden], 1e-12, 1 - 1e-12)
    return -np.log(np.where(upper, guess, 1 - guess)).mean(), ((guess > 0.5) == upper).mean()


def learned(rows, machine=gb.BoltzmannMachine, **settings):
    """Fit with the penalty of a rule, not of a search: each parameter has a normal prior of variance one as a spin."""
    return machine(learner="mle", coding="spin", l2=1 / len(rows), tol=1e-4, **settings).fit(rows)


def majority(rows):
    """The share of the upper value of each column."""
    present = ~np.isnan(rows)
    return np.broadcast_to((((rows > 0) & present).sum(axis=0) + 0.5) / (present.sum(axis=0) + 1), rows.shape)


def test_the_table_is_the_one_it_should_be(votes):
    assert votes.shape == (435, 17)
    assert np.isnan(votes).sum() == 392
    assert (~np.isnan(votes).any(axis=1)).sum() == 232


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
def test_all_rows_beat_complete_rows_and_the_majority(votes):
    """The rows without a missing cell are taken before cells are hidden, which is in their favour."""
    whole = ~np.isnan(votes).any(axis=1)
    found = []
    for seed in SEEDS:
        hidden, shown = hide(votes, seed)
        left = ~np.isnan(shown).any(axis=1)
        guesses = [
            learned(shown).predict_proba(shown),
            learned(shown[whole]).predict_proba(shown),
            learned(shown[left]).predict_proba(shown),
            majority(shown),
        ]
        found.append([losses(votes, hidden, guess) for guess in guesses])
    loss, right = np.moveaxis(np.array(found), 2, 0)
    differences = loss[:, 1:] - loss[:, :1]
    assert np.all(differences > 0)  # with every seed, against each of the three
    assert np.all(differences.mean(axis=0) > [0.01, 0.1, 0.25])
    assert np.all(right[:, 0].mean() > right[:, 1:].mean(axis=0))
    assert right[:, 0].mean() > 0.8


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
def test_hidden_units_guess_as_well(votes):
    """Three hidden units and no coupling between votes: 71 parameters in place of 153."""
    hidden, shown = hide(votes, 0)
    settings = {"graph": "restricted", "n_components": 3, "max_iter": 60, "random_state": 0}
    units = losses(votes, hidden, learned(shown, gb.HiddenBoltzmannMachine, **settings).predict_proba(shown))
    columns = losses(votes, hidden, learned(shown).predict_proba(shown))
    assert units[0] < columns[0] + 0.01
    assert units[0] < losses(votes, hidden, majority(shown))[0] - 0.25
    assert units[1] > 0.8
