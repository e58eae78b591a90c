"""The default fit works: rare columns, holes, penalties by word, and what is said of how it ended."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.cli.show import facts_of
from gibbsian.errors import ArgumentError, MaximumDoesNotExistError, PenaltyWarning
from gibbsian.rng import Key
from gibbsian.sampling import kernel_for


def spikes(rng, n_rows=2000, n_columns=6):
    """Columns that are seldom up, and never all pairs of them together."""
    return (rng.random((n_rows, n_columns)) < 0.01).astype(int)


def simulated(rng, n_rows, n=10):
    model = gb.Model(gb.PairwiseFamily(gb.graphs.complete(n)), rng.normal(size=n * (n + 1) // 2) * 0.3)
    kernel = kernel_for(model.family)
    chains, _ = kernel.step(model.theta, kernel.init(n_rows, Key.of(rng)), 30)
    return 2 * chains.states.astype(int) - 1


# -- penalties by word ------------------------------------------------------------------------------------------------
def test_rare_columns_need_no_penalty_of_the_users(rng):
    rows = spikes(rng)
    with pytest.warns(PenaltyWarning, match=r"no finite maximum.*l2=0\.0005, one over the number of rows"):
        machine = gb.BoltzmannMachine().fit(rows)
    assert machine.result_.converged
    assert machine.result_.training.is_trained
    assert machine.result_.provenance["l2"] == 1 / 2000
    assert facts_of(machine)["penalty"] == "l2 0.0005 (1 / rows, without which there is no finite maximum)"
    np.testing.assert_array_equal(machine.model_.theta, gb.BoltzmannMachine(l2=1 / 2000).fit(rows).model_.theta)


def test_where_a_maximum_exists_there_is_no_penalty(rng):
    rows = simulated(rng, 500, 5)
    machine = gb.BoltzmannMachine().fit(rows)
    assert machine.result_.provenance["l2"] == 0.0
    assert facts_of(machine)["penalty"] == "none, with 33 rows for each parameter"
    np.testing.assert_array_equal(machine.model_.theta, gb.BoltzmannMachine(l2=0.0).fit(rows).model_.theta)


def test_parameters_that_run_away_are_held(rng):
    """No pair is empty: only the fit itself shows that three columns determine each other."""
    rows = np.array([[1, 1, -1], [1, -1, 1], [-1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]] * 20)
    with pytest.warns(PenaltyWarning):
        machine = gb.BoltzmannMachine().fit(rows)
    assert machine.result_.converged
    assert np.abs(machine.model_.theta).max() < 5


def test_the_rule_leaves_the_moments_of_many_rows_alone(rng):
    rows = simulated(rng, 20_000)
    ruled = gb.BoltzmannMachine(learner="mle", l2=1 / len(rows)).fit(rows).result_.training
    fixed = gb.BoltzmannMachine(learner="mle", l2=0.1).fit(rows).result_.training
    assert ruled.largest_z < 0.1
    assert fixed.n_far > 5
    assert "the penalty holds them there" in fixed.describe()


def test_remedies_of_preflight_are_followed_to_a_fit(rng):
    rows = spikes(rng)
    with pytest.raises(MaximumDoesNotExistError, match="l2='auto'"):
        gb.BoltzmannMachine(l2=0.0).fit(rows)
    with pytest.warns(PenaltyWarning):
        assert gb.BoltzmannMachine(l2="auto").fit(rows).result_.converged


@pytest.mark.parametrize("kind", [gb.BoltzmannMachine, gb.GaussianMachine])
def test_cross_validation_chooses_by_rows_it_did_not_see(kind, rng):
    related = np.where(rng.random((600, 5)) < 0.2, rng.integers(0, 2, (600, 5)), rng.integers(0, 2, (600, 1)))
    alone = rng.integers(0, 2, (60, 5))
    if kind is gb.GaussianMachine:
        related, alone = related + 0.1 * rng.normal(size=(600, 5)), rng.normal(size=(60, 5))
    strengths = []
    for rows in (related, alone):
        story = kind(l2="cv", random_state=0).fit(rows).result_.provenance
        strengths.append(story["l2"] * len(rows))
        assert "best of 5 by log-" in story["l2_rule"]
    assert strengths[0] < strengths[1]


def test_cross_validation_needs_rows():
    with pytest.raises(ArgumentError, match="l2='cv' needs at least 6 rows"):
        gb.BoltzmannMachine(l2="cv").fit([[0, 1], [1, 0], [1, 1], [0, 0]])


# -- endings ----------------------------------------------------------------------------------------------------------
def test_persistent_chains_end_where_the_moments_agree():
    votes = gb.datasets.load_house_votes().complete_rows()
    exact = gb.BoltzmannMachine(learner="mle", l2=0.01).fit(votes)
    machine = gb.BoltzmannMachine(learner="pcd", l2=0.01, random_state=0).fit(votes)
    assert machine.result_.converged
    assert "to within Monte Carlo noise" in machine.result_.reason
    assert machine.result_.training.is_trained
    assert np.abs(machine.model_.theta - exact.model_.theta).max() < 0.1


def test_a_sampled_fit_prints_no_nan(capsys, rng):
    gb.BoltzmannMachine(learner="pcd", max_iter=150, verbose=1, random_state=0).fit(simulated(rng, 200, 4))
    printed = capsys.readouterr().out
    assert "gradient = " in printed
    assert "noise = " in printed
    assert "nan" not in printed


# -- holes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [gb.BoltzmannMachine, gb.HigherOrderBoltzmannMachine, gb.PottsMachine])
def test_moments_are_those_of_the_rows_that_show_them(kind, rng):
    rows = rng.integers(0, 2 + (kind is gb.PottsMachine), (300, 4)).astype(float)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    machine = kind(random_state=0).fit(rows)
    assert machine.result_.converged
    assert machine.result_.training.is_trained
    assert "agree" in facts_of(machine)["trained"]
    moments = machine.result_.moments
    both = rows[~np.isnan(rows[:, [0, 1]]).any(axis=1)]
    place = {gb.PottsMachine: 12}.get(kind, 4)  # the first pair stands after the biases
    expected = np.mean(both[:, 0] * both[:, 1]) if place == 4 else np.mean((both[:, :2] == 0).all(axis=1))
    assert moments.count[place] == pytest.approx(len(both))
    assert moments.mean[place] == pytest.approx(expected)


def test_holes_past_exact_reach_end_converged(rng):
    rows = np.where(rng.random((200, 32)) < 0.3, rng.integers(0, 2, (200, 1)), rng.integers(0, 2, (200, 32)))
    machine = gb.BoltzmannMachine(random_state=0).fit(np.where(rng.random(rows.shape) < 0.2, np.nan, rows))
    assert machine.result_.provenance["learner"] == "pcd"
    assert machine.result_.converged
