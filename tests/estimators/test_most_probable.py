"""The most probable row of fitted estimators: evidence by label, rows completed, frames, temperature."""

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from estimator_samples import small, table
from gibbsian.errors import ArgumentError, CodingError, TooExpensiveError
from gibbsian.estimators import ESTIMATORS
from gibbsian.inference.layer_pseudolikelihood import conditional_costs
from layered_systems import restricted

pytestmark = pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
DISCRETE = [name for name in ESTIMATORS if ESTIMATORS.trait(name, "rows", "two-valued") in ("two-valued", "categories")]


@pytest.fixture(scope="module")
def votes():
    rng = np.random.default_rng(2)
    party = rng.choice(["democrat", "republican"], 300)
    other = [np.where(rng.random(300) < 0.8, party, rng.choice(["democrat", "republican"], 300)) for _ in range(3)]
    frame = pd.DataFrame({"party": party, "a": other[0], "b": other[1], "c": other[2]})
    return frame, gb.BoltzmannMachine(coding=("democrat", "republican"), random_state=0).fit(frame)


@pytest.mark.parametrize("name", DISCRETE)
def test_every_estimator_of_discrete_rows(name):
    rows = table(name)
    machine = small(name).fit(rows)
    found = machine.most_probable()
    every = np.array(np.meshgrid(*[np.unique(column) for column in rows.T])).reshape(rows.shape[1], -1).T
    scores = machine.score_samples(every)
    if not machine.scores_are_bounds:
        assert np.log(found.probabilities[0]) == pytest.approx(scores.max(), abs=1e-9)
    assert found.exact.all()
    holes = table(name, n_rows=6, holes=0.4, seed=1)
    completed = machine.most_probable(holes).rows
    shown = ~np.isnan(holes)
    assert np.array_equal(np.asarray(completed, float)[shown], holes[shown])
    for row, mask, filled in zip(holes, shown, completed, strict=True):
        evidence = {f"x{j}": row[j] for j in np.flatnonzero(mask)}
        alone = machine.most_probable(evidence=evidence)
        assert machine.score_samples(alone.rows) == pytest.approx(machine.score_samples(filled[None]), abs=1e-9)


def test_evidence_by_label(votes):
    _, machine = votes
    for label in ("democrat", "republican"):
        assert machine.most_probable(evidence={"party": label}).rows.tolist() == [[label] * 4]
    with pytest.raises(ArgumentError, match="column 'size' is not one of 'party'"):
        machine.most_probable(evidence={"size": 1})
    with pytest.raises(CodingError, match="whig"):
        machine.most_probable(evidence={"party": "whig"})


def test_cells_are_completed_together_where_impute_takes_each_alone():
    """Zero is the best of the first column and one of the second, but the two of them hardly occur together."""
    machine = gb.PottsMachine(l2=0.001).fit([[1, 1]] * 40 + [[0, 0]] * 30 + [[0, 2]] * 30)
    nothing = np.full((1, 2), np.nan)
    assert machine.impute(nothing).tolist() == [[0, 1]]
    assert machine.most_probable(nothing).rows.tolist() == [[1, 1]]


def test_frames_come_back_as_frames_and_repeated_rows_in_their_order(votes):
    frame, machine = votes
    holes = frame.iloc[[3, 0, 3]].copy()
    holes.loc[:, "b"] = None
    found = machine.most_probable(holes)
    assert list(found.rows.columns) == list(frame.columns)
    assert list(found.rows.index) == [3, 0, 3]
    assert found.rows["party"].tolist() == holes["party"].tolist()
    assert found.log_weights[0] == found.log_weights[2]
    assert found.gaps.tolist() == [0.0] * 3


def test_several_states_and_what_does_not_go_together(votes):
    frame, machine = votes
    found = machine.most_probable(n_states=100)
    assert len(found.rows) == 16
    assert found.probabilities.sum() == pytest.approx(1.0)
    for wrong in ({"X": frame, "n_states": 2}, {"X": frame, "evidence": {}}, {"joint": True, "n_states": 2}):
        with pytest.raises(ArgumentError, match="leave"):
            machine.most_probable(**wrong)
    for wrong in ({"n_states": 0}, {"restarts": 0}, {"method": "guess"}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            machine.most_probable(**wrong)


def test_large_machines_are_annealed_under_a_bound(rng):
    model = gb.PairwiseFamily.model(gb.graphs.complete(60), None, rng.normal(size=1770) / 60**0.5)
    machine = gb.BoltzmannMachine(coding="spin", l2=1.0, max_iter=1).fit(rng.choice([-1, 1], (30, 60)))
    machine.model_ = model
    found = machine.most_probable(random_state=0)
    again = machine.most_probable(random_state=5)
    assert found.log_weights == pytest.approx(again.log_weights)
    assert not found.exact[0]
    assert 0 < found.gaps[0] < 0.4 * found.log_weights[0]
    assert np.isnan(found.probabilities[0])
    with pytest.raises(TooExpensiveError, match="annealing"):
        machine.most_probable(method="exact")
    with pytest.raises(TooExpensiveError, match="more evidence"):
        machine.most_probable(n_states=2)
    known = {f"x{j}": int(found.rows[0, j]) for j in range(40)}
    assert machine.most_probable(evidence=known).log_weights == pytest.approx(found.log_weights)
    assert machine.most_probable(evidence=known).exact[0]


def test_the_most_probable_row_need_not_be_part_of_the_joint_state():
    """One hidden unit: a row that goes with both of its values beats one that goes well with one value alone."""
    layers = gb.models.BinaryUnits(1), gb.models.BinaryUnits(1)
    machine = gb.RestrictedBoltzmannMachine(1, max_iter=1, random_state=0).fit([[0], [1], [0], [1]])
    machine.model_ = restricted(*layers, [0.5], [0.3], [[-5.0]])
    assert machine.most_probable().rows.tolist() == [[0]]
    assert machine.most_probable(joint=True).rows.tolist() == [[1]]
    assert machine.most_probable(joint=True).hidden.tolist() == [[0]]


def test_samples_at_another_temperature(votes):
    _, machine = votes
    best = machine.most_probable().rows[0]
    shares = [(machine.sample(2000, temperature=t, random_state=0) == best).all(axis=1).mean() for t in (0.01, 1, 10)]
    assert shares[0] > 0.9 > shares[1] > shares[2]
    own = machine.sample(50, random_state=0)
    assert np.array_equal(own, machine.sample(50, random_state=0, temperature=machine.temperature))
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(ArgumentError, match="temperature"):
            machine.sample(1, temperature=wrong)


def test_rows_at_a_temperature_have_their_law(rng):
    """The energies of joint states of a restricted machine, over T."""
    rbm = gb.RestrictedBoltzmannMachine(2, max_iter=5, random_state=0).fit(rng.integers(0, 2, (40, 3)))
    hot = rbm.model_.at(1 / 3.0)
    states = np.array(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij")).reshape(3, -1).T
    hidden = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    both = np.hstack([np.repeat(states, 4, axis=0), np.tile(hidden, (8, 1))])
    law = np.exp(hot.log_weights(both)).reshape(8, 4).sum(axis=1)
    drawn = rbm.sample(20_000, temperature=3.0, random_state=1)
    counts = np.bincount(drawn @ [4, 2, 1], minlength=8) / 20_000
    np.testing.assert_allclose(counts, law / law.sum(), atol=0.015)


def test_wide_restricted_machines_climb_to_rows_that_no_flip_improves():
    rng = np.random.default_rng(5)
    machine = gb.RestrictedBoltzmannMachine(30, max_iter=1, random_state=0).fit(
        (rng.random((40, 120)) < 0.3).astype(int)
    )
    layers = gb.models.BinaryUnits(120), gb.models.BinaryUnits(30)
    machine.model_ = restricted(*layers, w=rng.normal(0, 0.4, (120, 30)))
    found = machine.most_probable(evidence={"x3": 1, "x7": 0}, random_state=0)
    free = np.setdiff1d(np.arange(120), [3, 7])
    assert found.rows[0, [3, 7]].tolist() == [1, 0]
    assert conditional_costs(machine.model_, found.rows.astype(float))[0, free].min() > -1e-9
    drawn = machine.sample(100, random_state=1, n_steps=50)
    assert found.log_weights[0] > machine.model_.log_evidence(drawn).max() - 1.0
    assert found.bounds[0] >= found.log_weights[0]
