"""The pseudolikelihood with hidden units summed out: enumeration, finite differences, recovery, RBMs."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.data.hidden_columns import with_hidden
from gibbsian.learning.objectives import HiddenPseudolikelihood, Pseudolikelihood, value_and_gradient
from systems import BINARY, SPINS, all_states, dataset_of, exact_law, random_model

# three columns and two hidden units, coupled to each other too
GRAPH = gb.graphs.from_edges([(0, 1), (0, 3), (1, 3), (2, 3), (2, 4), (3, 4), (1, 4)], 5)
N_HIDDEN = 2


def hidden_model(rng, scores):
    return random_model(GRAPH, rng, scores, scale=1.0, n_hidden=N_HIDDEN)


def rows_of(rng, scores, holes=0.0):
    rows = rng.integers(0, 2, (30, 3), np.int8)
    missing = rng.random(rows.shape) < holes
    missing[missing.all(axis=1), 0] = False
    return dataset_of(rows, scores(3), rng.random(30), missing)


def by_enumeration(model, data):
    """Sum over everything that is not given, conditional by conditional."""
    states, law, _ = exact_law(model)
    seen, holes = data.rows()
    holes = np.zeros(seen.shape, bool) if holes is None else holes
    weights = data.row_weights / data.row_weights.sum()
    total = 0.0
    for row, hole, weight in zip(seen, holes, weights, strict=True):
        agrees = states[:, :3] == row
        for i in np.flatnonzero(~hole):
            others = agrees[:, [j for j in np.flatnonzero(~hole) if j != i]].all(axis=1)
            total -= weight * np.log(law[others & agrees[:, i]].sum() / law[others].sum())
    return total


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_the_value_is_that_of_enumeration(scores, holes, rng):
    model, data = hidden_model(rng, scores), rows_of(rng, scores, holes)
    value, _ = value_and_gradient(HiddenPseudolikelihood(), model, with_hidden(data, N_HIDDEN))
    assert value == pytest.approx(by_enumeration(model, data), abs=1e-12)


@pytest.mark.parametrize("cut", [12, 0], ids=["cut sets", "one by one"])
def test_the_gradient_is_the_derivative(cut, rng, monkeypatch):
    monkeypatch.setattr("gibbsian.inference.cut_sets.LARGEST_CUT", cut)
    model, data = hidden_model(rng, BINARY), rows_of(rng, BINARY, 0.2)
    function = HiddenPseudolikelihood().bind(model, with_hidden(data, N_HIDDEN))
    gradient, h = function(model.theta)[1], 1e-5
    for k, unit in enumerate(np.eye(model.theta.size)):
        slope = (function(model.theta + h * unit)[0] - function(model.theta - h * unit)[0]) / (2 * h)
        assert gradient[k] == pytest.approx(slope, abs=1e-8)


def test_the_truth_is_stationary_on_its_own_distribution(rng):
    truth = hidden_model(rng, SPINS)
    states, law, _ = exact_law(truth)
    data = dataset_of(states[:, :3], SPINS(3), law)
    _, gradient = value_and_gradient(HiddenPseudolikelihood(), truth, with_hidden(data, N_HIDDEN))
    assert np.abs(gradient).max() < 1e-12


def test_without_hidden_units_it_is_the_pseudolikelihood(rng):
    model, data = random_model(gb.graphs.complete(3), rng), rows_of(rng, SPINS)
    expected = value_and_gradient(Pseudolikelihood(), model, data)
    found = value_and_gradient(HiddenPseudolikelihood(), model, data)
    assert found[0] == pytest.approx(expected[0])
    np.testing.assert_allclose(found[1], expected[1], atol=1e-12)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.UntrainedWarning")  # two hidden units do not hold an exclusive or
def test_a_restricted_machine_has_the_objective_of_the_hidden_one_on_its_graph(rng):
    rows = rng.integers(0, 2, (200, 4))
    rows[:, 3] = rows[:, 0] ^ rows[:, 1]
    settings = {"learner": "mple", "l2": 1e-3, "random_state": 0, "max_iter": 500}
    hidden = gb.HiddenBoltzmannMachine(2, graph="restricted", **settings).fit(rows)
    restricted = gb.RestrictedBoltzmannMachine(2, start=None, **settings).fit(rows)
    np.testing.assert_allclose(
        restricted.model_.family.joint(restricted.model_.theta).theta, hidden.model_.theta, atol=1e-10
    )
    assert restricted.pseudo_score(rows) == pytest.approx(hidden.pseudo_score(rows), abs=1e-10)


def test_hidden_units_are_found(rng):
    """Two columns of noise and their exclusive or, mostly: no pairwise machine of the columns tells it from noise."""
    rows = rng.integers(0, 2, (400, 3))
    rows[:, 2] = (rows[:, 0] ^ rows[:, 1]) ^ (rng.random(400) < 0.1)
    test = all_states(BINARY(3))
    truth = np.where((test[:, 0] ^ test[:, 1]) == test[:, 2], 0.9, 0.1) / 4
    machine = gb.HiddenBoltzmannMachine(1, learner="mple", l2=1e-4, random_state=0).fit(rows)
    assert truth @ machine.score_samples(test) > truth @ np.log(truth) - 0.05
    assert truth @ machine.score_samples(test) > np.log(1 / 8) + 0.2


def test_the_command_line_learns_hidden_units_so(tmp_path):
    from cli_runner import run

    np.save(tmp_path / "rows.npy", np.random.default_rng(0).integers(0, 2, (60, 3)))
    arguments = ["--model", "rbm", "--n-components", "2", "--learner", "mple", "--l2", "0.1", "--max-iter", "200"]
    result = run("fit", tmp_path / "rows.npy", *arguments, "--seed", 0, "--out", tmp_path / "m.gibbs")
    assert result.exit_code == 0, result.stderr
