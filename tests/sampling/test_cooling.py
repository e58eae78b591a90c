"""Simulated annealing: states where no single change gains, and the best one found."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.rng import Key
from gibbsian.sampling.cooling import annealed, cooled_rows, cooled_states, ladder
from systems import costs_of, models_with_variables, name_of, random_model, random_model_of


@pytest.mark.parametrize("case", models_with_variables(8), ids=lambda case: f"{case[0]}-{name_of(case[1])}")
def test_chains_end_where_no_change_of_one_variable_gains(case, rng):
    name, variables = case
    model = random_model_of(name, gb.graphs.complete(8), rng, variables, scale=1.0)
    states = cooled_states(model, 20, 20, Key.of(rng))
    assert costs_of(model, states).min() > -1e-9


def test_rows_end_where_no_change_gains_and_may_start_anywhere(rng):
    model = random_model(gb.graphs.complete(8), rng)
    starts = np.zeros((3, 8), np.int8)
    codes = cooled_rows(model.log_weights, np.full(8, 2), Key.of(rng), starts)(5, 10)
    assert len(codes) == 6  # of equal starts one is enough
    assert costs_of(model, codes).min() > -1e-9


def test_large_glasses_are_solved(rng):
    """A ferromagnet in disguise: the best state is known."""
    hidden = rng.choice([-1, 1], 200)
    graph = gb.graphs.complete(200)
    couplings = rng.exponential(size=graph.n_edges) * hidden[graph.edges].prod(axis=1)
    model = gb.PairwiseFamily.model(graph, 0.01 * hidden, couplings)
    state, log_weight, words = annealed(lambda *sizes: cooled_states(model, *sizes, Key.of(0)), model.log_weights)
    assert np.array_equal(2 * state - 1, hidden)
    assert log_weight == pytest.approx(np.abs(couplings).sum() + 2.0)
    assert words.endswith(" chains")


def test_more_slowly_until_several_agree():
    asked = []

    def cooled(n_chains, n_sweeps):
        asked.append(n_sweeps)
        return np.full((n_chains, 1), len(asked))

    state, log_weight, _ = annealed(cooled, lambda states: states[:, 0].astype(float), 2, 3)
    assert asked == [100, 200, 400]
    assert state == [3]
    assert log_weight == 3.0


def test_the_ladder_spans_strong_and_weak_variables_and_allows_for_none():
    temperatures = ladder(np.array([0.0, 2.0, 0.1]), 5)
    assert temperatures[0] == pytest.approx(2.0)
    assert temperatures[-1] == pytest.approx(0.01)
    assert (np.diff(temperatures) < 0).all()
    assert len(ladder(np.zeros(3), 4)) == 4


def test_the_same_seed_gives_the_same_states():
    model = random_model(gb.graphs.complete(12), np.random.default_rng(0))
    one, other = (cooled_states(model, 5, 3, Key.of(1)) for _ in range(2))
    assert np.array_equal(one, other)


def test_frustrated_lattices_are_solved_by_exchanging_temperatures():
    """Twelve 12x12 glasses, of which chains that only cool solve less than half."""
    rng, solved = np.random.default_rng(0), 0
    graph = gb.graphs.grid(12, 12)
    for _ in range(12):
        couplings = rng.normal(size=graph.n_edges) / np.sqrt(graph.degrees.mean())
        model = gb.PairwiseFamily.model(graph, 0.1 * rng.normal(size=144), couplings)
        _, log_weight, _ = annealed(lambda *sizes, m=model: cooled_states(m, *sizes, Key.of(5)), model.log_weights)
        best, _ = gb.inference.exact(model).mode
        solved += log_weight >= model.log_weights(best[None])[0] - 1e-9
    assert solved >= 8
