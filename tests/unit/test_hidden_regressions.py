"""Machines with hidden units or missing cells: mistakes that were made once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError, ConvergenceWarning, GraphError, TooExpensiveError
from gibbsian.expectations import ClampedChains, ClampedExact
from gibbsian.inference.cut_sets import split_by_cut
from gibbsian.learners import as_learner
from gibbsian.learners.pace import DEFAULT_OPTIMIZER, paced_adam
from gibbsian.optimizers import Adam, Ascent


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def with_holes(rng, n_rows, n_columns, share, coding="binary"):
    rows = rng.integers(0, 2, (n_rows, n_columns)).astype(float)
    if coding == "spin":
        rows = 2 * rows - 1
    rows[rng.random(rows.shape) < share] = np.nan
    return rows


# -- the number of hidden units ---------------------------------------------------------------------------------------
def test_a_setting_changed_after_the_fit_does_not_change_the_fitted_units(rng, tmp_path):
    rows = rng.integers(0, 2, (80, 4))
    machine = gb.HiddenBoltzmannMachine(1, l2=0.1, random_state=0).fit(rows)
    before = machine.transform(rows)
    machine.set_params(n_components=3)
    converted = machine.convert("spin")
    assert (converted.names_, converted.hidden_names_) == (("x0", "x1", "x2", "x3"), ("h0",))
    np.testing.assert_allclose(converted.transform(2 * rows - 1), before, atol=1e-12)
    machine.save(tmp_path / "model.gibbs")
    np.testing.assert_allclose(gb.load(tmp_path / "model.gibbs").transform(rows), before, atol=1e-12)


@pytest.mark.parametrize("n_columns", [2, 4])
def test_rows_of_another_width_than_the_model_are_refused_before_any_kernel_sees_them(n_columns):
    data = gb.Dataset.read([[1.0] * (n_columns - 1) + [np.nan]], coding="spin")
    with pytest.raises(ArgumentError, match=f"the data has {n_columns} variables but the model has 3"):
        split_by_cut(gb.PairwiseModel.zeros(gb.graphs.complete(3)), data)


def test_false_is_no_number_of_hidden_units(rng):
    with pytest.raises(ArgumentError, match="n_components=False must be a whole number"):
        gb.HiddenBoltzmannMachine(False).fit(rng.integers(0, 2, (8, 3)))


def test_a_grid_of_another_size_is_told_of_columns_and_hidden_units(rng):
    with pytest.raises(GraphError, match="has 4 nodes but the machine has 6 units, 4 columns and then 2 hidden"):
        gb.HiddenBoltzmannMachine(2, "grid:2x2").fit(rng.integers(0, 2, (20, 4)))


def test_too_many_hidden_units_are_refused_before_the_fit_is_planned(rng, monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.05")
    machine = gb.HiddenBoltzmannMachine(500, l2=0.1)
    monkeypatch.setattr(type(machine), "_learner", lambda *_: pytest.fail("planned before memory was asked for"))
    with pytest.raises(TooExpensiveError, match=r"504 variables .*about \d+ variables"):
        machine.fit(rng.integers(0, 2, (60, 4)))


def test_a_conversion_makes_biases_and_says_so():
    machine = gb.BoltzmannMachine(bias=False).fit([[1, 1], [1, 1], [-1, -1], [-1, 1], [1, -1]])
    converted = machine.convert("binary")
    assert converted.model_.bias
    assert converted.bias
    assert not machine.bias
    assert not machine.convert("spin").bias


# -- rows that are held out -------------------------------------------------------------------------------------------
def test_held_out_rows_with_missing_cells_do_not_cost_a_large_machine_its_fit(rng):
    rows = with_holes(rng, 60, 40, 0.02)
    machine = gb.BoltzmannMachine(learner="pcd", l2=0.1, max_iter=3, validation_fraction=0.1, random_state=0)
    with pytest.warns(ConvergenceWarning):
        machine.fit(rows)
    held_out = machine.result_.held_out
    assert held_out.kind == "lower side of the log-likelihood"
    assert -60 < held_out.score < 0


# -- the rate of noisy steps ------------------------------------------------------------------------------------------
def test_the_rate_falls_where_variables_have_many_interactions():
    rates = [paced_adam(gb.PairwiseModel.zeros(gb.graphs.complete(n))).learning_rate for n in (2, 21, 41, 101)]
    np.testing.assert_allclose(rates, [0.05, 0.05, 0.025, 0.01])
    assert paced_adam(gb.PairwiseModel.zeros(gb.graphs.from_edges([], 3))) == DEFAULT_OPTIMIZER


def test_the_rate_counts_cliques_and_not_edges():
    model = gb.models.HigherOrderModel.build(dict.fromkeys(itertools.combinations(range(12), 3), 0.1), n_variables=12)
    assert paced_adam(model).learning_rate == pytest.approx(1 / 55)  # each variable is in 11 * 10 / 2 triples


@pytest.mark.parametrize("name", ["cd", "pcd", "smci-pcd", "s2-smci-pcd"])
def test_an_optimizer_of_the_users_own_is_left_alone(name, rng):
    data = gb.Dataset.read(rng.integers(0, 2, (10, 30)))
    model = gb.PairwiseModel.zeros(gb.graphs.complete(30), data.domain)
    assert as_learner(name).init(model, data, rng).problem.steps.optimizer.learning_rate == pytest.approx(1 / 29)
    own = Adam(learning_rate=0.05)
    assert as_learner(name, optimizer=own).init(model, data, rng).problem.steps.optimizer is own


@pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
def test_persistent_chains_with_hidden_units_do_not_diverge(rng):
    factors = rng.integers(0, 2, (1000, 5)) - 0.5
    columns = factors @ rng.normal(scale=4.0, size=(5, 60))
    rows = (rng.random((1000, 60)) < 1 / (1 + np.exp(-columns))).astype(np.int8)
    independent = -60 * np.log(2)
    for max_iter, gain in ((30, 8.0), (100, 10.0)):
        machine = gb.HiddenBoltzmannMachine(10, "restricted", learner="pcd", l2=0.01, max_iter=max_iter, random_state=0)
        assert machine.fit(rows).score(rows) > independent + gain


def test_steps_that_are_too_large_are_blamed_on_an_argument():
    rows = [[1, 1], [1, -1], [-1, -1], [-1, 1], [1, 1]]
    learner = gb.learners.MomentMatching("exact", Ascent(learning_rate=50.0))
    with pytest.warns(ConvergenceWarning, match=r"optimizer=Adam\(learning_rate=\.\.\.\) of the learner"):
        machine = gb.BoltzmannMachine(learner=learner, max_iter=20).fit(rows)
    assert machine.result_.remedy.startswith("lower the rate of the steps (`optimizer=")


# -- the clamped phase ------------------------------------------------------------------------------------------------
def test_beside_a_sampled_free_phase_slow_exact_sums_give_way_to_chains(rng):
    data = gb.Dataset.read(with_holes(rng, 5000, 60, 0.1, "spin"), coding="spin")
    model = gb.PairwiseModel.zeros(gb.graphs.complete(60))
    assert isinstance(as_learner("pcd").init(model, data, rng).problem.clamped, ClampedChains)
    assert isinstance(as_learner("pcd").init(model, data.take(np.arange(50)), rng).problem.clamped, ClampedExact)
