"""Columns told by the others: probabilities and Bayes decisions against the list of all states."""

import itertools

import numpy as np
import pandas
import pytest

import gibbsian as gb
from gibbsian.answers import answers_about, bayes_decision
from gibbsian.answers.decisions import column_probabilities, decided_codes, joint_probabilities
from gibbsian.errors import ArgumentError, TooExpensiveError
from systems import exact_law, models_with_variables, name_of, random_model_of, sampled_data

SMALL = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], 4)
COLUMNS = np.array([3, 1])


def named(part):
    return part if isinstance(part, str) else name_of(part)


def enumerated(model, data, columns):
    """P(values of columns | present cells) of each state, the last column's values changing fastest."""
    states, probabilities, _ = exact_law(model)
    sizes = [model.variables.sizes[j] for j in columns]
    law = np.empty((data.n_states, int(np.prod(sizes))))
    for row, (x, holes) in enumerate(zip(data.states, data.missing, strict=True)):
        agrees = ((states == x) | holes).all(axis=1)
        for number, values in enumerate(np.ndindex(*sizes)):
            law[row, number] = probabilities[agrees & (states[:, columns] == values).all(axis=1)].sum()
    return law / law.sum(axis=1, keepdims=True), sizes


@pytest.mark.parametrize(("kind", "variables"), models_with_variables(4), ids=named)
def test_probabilities_and_decisions_of_every_model(kind, variables, rng):
    model = random_model_of(kind, SMALL, rng, variables, scale=0.9)
    data = sampled_data(model, 20, rng)
    holes = rng.random(data.states.shape) < 0.2
    data = gb.Dataset.of_states(data.states, data.coding, names=data.names, missing=holes).hide(COLUMNS)
    answers, law, sizes = answers_about(model), *enumerated(model, data, COLUMNS)
    np.testing.assert_allclose(joint_probabilities(answers, data, COLUMNS), law, atol=1e-10)
    tables = law.reshape(-1, *sizes)
    marginals = tables.sum(axis=2), tables.sum(axis=1)
    for found, expected in zip(column_probabilities(answers, data, COLUMNS, rng), marginals, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)
    # the decision of least expected loss, by the list of decisions, for a loss of each column and for all together
    losses = [rng.exponential(size=(size, size)) * (1 - np.eye(size)) for size in sizes]
    decided = decided_codes(answers, data, COLUMNS, losses, rng)
    together = decided_codes(answers, data, COLUMNS, "joint", rng)
    hamming = decided_codes(answers, data, COLUMNS, None, rng)
    choices = list(itertools.product(*map(range, sizes)))

    def expected_loss(table, choice, cost):
        return sum(table[true] * cost(true, choice) for true in itertools.product(*map(range, sizes)))

    def least(table, cost):
        return min(choices, key=lambda choice: expected_loss(table, choice, cost))

    for row, table in enumerate(tables):
        assert tuple(decided[row]) == least(table, lambda t, c: losses[0][t[0], c[0]] + losses[1][t[1], c[1]])
        assert tuple(together[row]) == least(table, lambda t, c: t != c)
        assert tuple(hamming[row]) == least(table, lambda t, c: (t[0] != c[0]) + (t[1] != c[1]))


def test_losses_have_a_direction():
    """Rows are what is true: where deciding 1 is dear, 0 is decided."""
    p = np.array([[0.4, 0.6]])
    assert bayes_decision(p, [[0, 2], [1, 0]]).tolist() == [0]
    assert bayes_decision(p, [[0, 1], [2, 0]]).tolist() == [1]


@pytest.fixture(scope="module")
def machine():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, (200, 3))
    rows[:, 2] = np.where(rng.random(200) < 0.8, rows[:, 0], rows[:, 2])
    table = {"a": rows[:, 0], "b": rows[:, 1], "c": np.array(["low", "high"])[rows[:, 2]]}
    return gb.PottsMachine(l2=0.01).fit(pandas.DataFrame(table)), pandas.DataFrame(table)


class TestEstimators:
    def test_columns_by_name_or_number(self, machine):
        potts, table = machine
        one = potts.predict_proba(table, columns="c")
        assert one.shape == (200, 2)
        np.testing.assert_array_equal(one, potts.predict_proba(table, columns=2))
        first, second = potts.predict_proba(table, columns=["b", "c"])
        assert first.shape == second.shape == (200, 2)
        assert potts.predict_proba(table, columns=["b", "c"], joint=True).shape == (200, 4)
        told = potts.predict(table, columns="c")
        assert (told == np.array(potts.coding_.labels_of(2))[one.argmax(axis=1)]).all()
        assert np.mean(told == table["c"]) > 0.75

    def test_numbers_beside_words_stay_numbers(self, machine):
        potts, table = machine
        told = potts.predict(table[:2], columns=["a", "c"])
        assert isinstance(told[0, 0], int)
        assert told[0, 1] in ("low", "high")

    def test_what_stands_in_the_columns_is_not_looked_at(self, machine):
        potts, table = machine
        other = table.assign(c="low")
        np.testing.assert_array_equal(potts.predict_proba(table, "c"), potts.predict_proba(other, "c"))

    def test_a_table_may_lack_the_columns(self, machine):
        potts, table = machine
        rows = potts.read(table[["a", "b"]], unseen=["c"])
        np.testing.assert_array_equal(potts.predict(rows, columns="c"), potts.predict(table, columns="c"))

    def test_mistakes(self, machine):
        potts, table = machine
        for columns in ("d", [], ["a", "a"], 7, True):
            with pytest.raises(ArgumentError) as caught:
                potts.predict(table, columns=columns)
            assert caught.value.argument == "columns"
        for losses in ("some", [[0, 1]], [[0, np.nan], [1, 0]], [np.eye(2), np.eye(2)]):
            with pytest.raises(ArgumentError) as caught:
                potts.predict(table, columns="a", losses=losses)
            assert caught.value.argument == "losses"

    def test_too_many_combinations(self):
        rows = np.random.default_rng(0).integers(0, 2, (50, 14))
        wide = gb.BoltzmannMachine("chain", l2=0.1).fit(rows)
        with pytest.raises(TooExpensiveError, match="combinations"):
            wide.predict_proba(rows, columns=list(range(13)), joint=True)
        assert len(wide.predict_proba(rows, columns=list(range(13)))) == 13

    def test_conditional_score_is_minus_the_log_loss(self, machine):
        potts, table = machine
        known = np.array(potts.coding_.labels_of(2))
        chosen = (table["c"].to_numpy()[:, None] == known).argmax(axis=1)
        expected = np.log(potts.predict_proba(table, columns="c"))[np.arange(len(table)), chosen].mean()
        assert potts.conditional_score(table, "c") == pytest.approx(expected, abs=1e-12)

    def test_rows_held_out_of_a_conditional_fit_are_scored_conditionally(self, machine):
        _, table = machine
        learner = gb.learning.MCL(targets="c", l2=0.01)
        told = gb.PottsMachine(learner=learner, validation_fraction=0.5, random_state=0).fit(table)
        assert told.result_.held_out.kind == "conditional log-likelihood"
        assert -np.log(2) < told.result_.held_out.score < 0
