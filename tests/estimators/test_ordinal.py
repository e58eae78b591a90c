"""Ordered levels: against enumeration, against the pairwise machine, and what is recovered from simulated answers."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from gibbsian.domain import CategoryCoding
from gibbsian.errors import ArgumentError, MaximumDoesNotExistError

CODING = CategoryCoding.of_levels([(0, 1, 2, 3), ("low", "mid", "high"), ("F", "M"), (1, 2, 5)])
COUPLINGS = np.array([0.5, -0.8, 0.0, 0.4, 0.3, -0.6])


def truth() -> gb.Model[gb.OrdinalFamily]:
    family = gb.PotentialsFamily.ordinal(gb.graphs.complete(4), gb.Variables.ordinal(CODING.domain.values))
    levels = np.array([0.2, 0.4, -0.3, 0.5, -0.2, 0.3, 0.1, -0.4])
    return gb.Model(family, np.concatenate([levels, COUPLINGS]))


def test_weights_are_levels_and_products_of_scores():
    model = truth()
    states = np.array(list(itertools.product(range(4), range(3), range(2), range(3))), np.int8)
    scores = np.column_stack([np.array(CODING.domain.values[j])[states[:, j]] for j in range(4)])
    levels = sum(np.append(0.0, model.parts.levels[j])[states[:, j]] for j in range(4))
    pairs = list(itertools.combinations(range(4), 2))
    products = sum(w * scores[:, i] * scores[:, j] for w, (i, j) in zip(COUPLINGS, pairs, strict=True))
    np.testing.assert_allclose(model.log_weights(states), levels + products, atol=1e-12)
    log_z = np.logaddexp.reduce(levels + products)
    assert gb.inference.exact(model).log_partition == pytest.approx(log_z, abs=1e-10)
    np.testing.assert_array_equal(model.parts.couplings, COUPLINGS)


def test_a_coupling_is_the_log_odds_ratio_of_levels_a_unit_apart():
    """The odds of level 3 against 2 given the neighbour's 5 instead of 2, three units apart, and of 1 against 0."""
    model = truth()
    for low in (0, 2):
        corner = np.array([[a, 1, 0, b] for a in (low, low + 1) for b in (1, 2)], np.int8)
        table = model.log_weights(corner).reshape(2, 2)
        assert table[1, 1] - table[1, 0] - table[0, 1] + table[0, 0] == pytest.approx(COUPLINGS[2] * 3)
        corner[:, 3], corner[:, 1] = 0, [0, 1, 0, 1]
        table = model.log_weights(corner).reshape(2, 2)
        assert table[1, 1] - table[1, 0] - table[0, 1] + table[0, 0] == pytest.approx(COUPLINGS[0])


def test_two_levels_are_the_pairwise_machine(rng):
    rows = rng.integers(0, 2, (200, 4))
    rows[:, 1] = np.where(rng.random(200) < 0.7, rows[:, 0], rows[:, 1])
    pairwise, ordinal = gb.BoltzmannMachine(tol=1e-9).fit(rows), gb.OrdinalMachine(tol=1e-9).fit(rows)
    np.testing.assert_allclose(ordinal.score_samples(rows), pairwise.score_samples(rows), atol=1e-6)
    np.testing.assert_allclose(ordinal.couplings_.to_numpy(), pairwise.couplings_.to_numpy(), atol=1e-5)


@pytest.fixture(scope="module")
def survey():
    states = truth_samples(4000)
    names = ["mood", "size", "sex", "dose"]
    return pd.DataFrame(CODING.decode(states), columns=names).infer_objects()


def truth_samples(n_rows):
    model = truth()
    states = np.array(list(itertools.product(range(4), range(3), range(2), range(3))), np.int8)
    weights = np.exp(model.log_weights(states))
    return states[np.random.default_rng(1).choice(len(states), n_rows, p=weights / weights.sum())]


DECLARED = {"size": ["low", "mid", "high"]}


def test_parameters_are_recovered_within_their_errors(survey):
    machine = gb.OrdinalMachine(coding=DECLARED).fit(survey)
    assert machine.coding_ == CODING
    errors = gb.uncertainty.standard_errors(machine, survey)
    assert (np.abs(machine.model_.theta - truth().theta) < 4 * errors.theta_se).all()
    assert machine.strongest_couplings(1)[["first", "second"]].values.tolist() == [["mood", "sex"]]
    assert machine.biases_.loc["mood"].index.tolist() == [0, 1, 2, 3]
    assert sum(map(len, machine.statistics().values())) == machine.model_.theta.size
    assert list(machine.tables()) == ["biases", "strongest couplings"]


def test_scores_do_not_depend_on_where_they_begin(survey):
    """Columns counted from another number have the same couplings and the same likelihood."""
    one = gb.OrdinalMachine(coding=DECLARED, tol=1e-8).fit(survey)
    other = gb.OrdinalMachine(coding=DECLARED, tol=1e-8).fit(survey.assign(mood=survey["mood"] + 7))
    np.testing.assert_allclose(one.couplings_, other.couplings_, atol=1e-6)
    fewer = gb.OrdinalMachine(coding=DECLARED, tol=1e-8).fit(survey.assign(mood=survey["mood"] * 2))
    np.testing.assert_allclose(fewer.couplings_.loc["mood"] * 2, one.couplings_.loc["mood"], atol=1e-6)


def test_the_table_with_holes_and_an_identifier_from_fit_to_file(survey, tmp_path):
    frame = survey.head(300).assign(id=[f"p{k}" for k in range(300)])
    frame.loc[5::17, "mood"] = np.nan
    with pytest.warns(gb.errors.IdentifierWarning):
        machine = gb.OrdinalMachine(coding=DECLARED).fit(frame)
    assert machine.dropped_ == ("id",)
    machine.save(tmp_path / "m.gibbs")
    again = gb.load(tmp_path / "m.gibbs")
    assert again.dropped_ == ("id",)
    assert again.coding_ == machine.coding_
    np.testing.assert_array_equal(again.score_samples(frame), machine.score_samples(frame.drop(columns="id")))
    filled = again.impute(frame)
    assert set(filled["mood"]) <= {0, 1, 2, 3}
    drawn = again.sample(5, random_state=0)
    assert np.isfinite(again.score_samples(pd.DataFrame(drawn, columns=list(again.names_)))).all()
    assert again.most_probable(evidence={"sex": "F"}).rows[0, 2] == "F"


def test_refusals():
    with pytest.raises(MaximumDoesNotExistError, match=r"x0\[3\] has its least value in every row"):
        gb.OrdinalMachine(l2=0, coding={"x0": [0, 1, 2, 3]}).fit([[0, 1], [1, 0], [2, 0], [2, 1], [0, 0]])
    with pytest.raises(ArgumentError, match=r"learns ordered levels, but the coding is categorical"):
        gb.OrdinalMachine(coding="categorical").fit([[0, 1], [1, 0], [2, 0]])


def test_pictures_rank_pairs_as_tables_do(survey):
    machine = gb.OrdinalMachine(coding=DECLARED).fit(survey)
    drawn, listed = machine.interactions().strongest(), machine.strongest_couplings()
    pairs = [tuple(drawn.names[i] for i in scope) for scope in drawn.scopes]
    assert pairs == list(zip(listed["first"], listed["second"], strict=True))
    np.testing.assert_array_equal(drawn.strengths, listed["coupling"])


def test_a_level_of_its_own_is_refused_also_after_conversion():
    data = gb.Dataset.read([["a", "b"], ["a", "c"], ["a", "d"]] * 5, coding="categorical").convert("ordinal")
    with pytest.raises(gb.errors.ConstantColumnError, match=r"column 'x0' holds one level only \('a'\): drop it"):
        gb.OrdinalMachine().fit(data)


def test_an_ordinal_machine_is_pickled():
    rows = pd.DataFrame({"mood": [0, 1, 2, 2, 1, 0, 0, 2, 1, 1], "sex": list("FMMMFFMMFM")})
    machine = gb.OrdinalMachine(l2=0.1).fit(rows)
    again = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(again.model_.theta, machine.model_.theta)
    assert again.score(rows) == machine.score(rows)
