"""Where Gibbs chains lose modes: log Z holds, means hold or the run is flagged."""

import warnings

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.answers import answers_about
from gibbsian.answers.draws import tempered_states, watched_draws
from gibbsian.errors import MixingWarning
from gibbsian.inference import exact
from gibbsian.rng import Key
from gibbsian.sampling import ReplicaLadder
from layered_systems import restricted
from systems import take


def ferromagnet(coupling):
    return gb.PairwiseFamily.model(gb.graphs.grid(4, 4), [0.1] * 16, [coupling] * 24)


def bars():
    """The lines of a 4x4 picture and their opposites, in 0/1 coding: its visible biases lead to one of two halves."""
    lines = np.array([np.eye(4)[k][:, None] * np.ones(4) for k in range(4)])
    weights = 0.8 * (2.0 * np.concatenate([lines, np.swapaxes(lines, 1, 2)]).reshape(8, 16).T - 1.0)
    layers = gb.models.BinaryUnits(16), gb.models.BinaryUnits(8)
    return restricted(*layers, -2 * weights.sum(axis=1), -2 * weights.sum(axis=0), 4 * weights)


def test_errors_of_tempered_columns_are_those_they_make():
    rng = np.random.default_rng(3)
    graph, scores = gb.graphs.complete(10), []
    for _ in range(20):
        model = gb.PairwiseFamily.model(graph, None, 5.0 * rng.normal(size=graph.n_edges) / np.sqrt(10))
        _, run = ReplicaLadder.settled(gb.sampling.variable_path(model), Key.of(rng)).run(60)
        scores.append((run.log_partition - exact(model).log_partition) / run.log_partition_stderr)
    assert abs(np.mean(scores)) < 3 / np.sqrt(20)
    assert 0.6 < np.std(scores) < 1.5


@pytest.mark.parametrize("model", [ferromagnet(2.0), bars()], ids=["ferromagnet", "bars"])
def test_log_partition_holds_where_chains_lose_modes(model):
    truth = exact(model).log_partition
    for seed in range(4):
        found = answers_about(model).log_partition_interval(np.random.default_rng(seed), 100, 300, warn=False)
        assert found.trouble is None
        assert found.lower < truth < found.upper < found.lower + 1.0


@pytest.mark.parametrize("name", ["monte-carlo", "1-smci", "s2-smci", "forest-smci"])
def test_means_of_chains_that_never_cross_are_flagged(name):
    with pytest.warns(MixingWarning, match="R-hat"):
        take(name, ferromagnet(1.0))


def test_auto_tempers_where_chains_do_not_mix_and_its_errors_hold():
    model = ferromagnet(1.0)
    truth, held = exact(model).moments, []
    for seed in range(6):
        found = answers_about(model).expect(np.random.default_rng(seed), n_samples=5000)
        held.append(np.abs(found.value - truth) <= 2 * found.stderr)
        assert "log_partition" in found.parts  # by tempered chains
        assert found.stderr[:16].max() < 0.1
    assert np.mean(held) > 0.85


def test_weak_interactions_are_left_to_gibbs_chains():
    model = ferromagnet(0.2)
    assert "log_partition" not in answers_about(model).expect(np.random.default_rng(0), n_samples=5000).parts


def test_draws_by_gibbs_chains_warn_and_auto_tempers():
    model = ferromagnet(1.5)
    answers = answers_about(model)
    with pytest.warns(MixingWarning, match="do not agree"):
        answers.sample(100, np.random.default_rng(0), "gibbs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers_about(ferromagnet(0.2)).sample(100, np.random.default_rng(0), "gibbs")
    rows = watched_draws(model, 4000, np.random.default_rng(0))
    assert abs(rows.mean() - exact(model).moments[:16].mean()) < 0.12


def test_machines_in_layers_draw_from_all_modes():
    model, answers = bars(), answers_about(bars())
    with pytest.warns(MixingWarning, match="do not agree"):
        answers.sample(50, np.random.default_rng(0), "gibbs")
    rows = tempered_states(gb.sampling.layer_path(model, random_state=0), 640, np.random.default_rng(0))[..., :16]
    truth = exact(model).moments[:16]
    spread = rows.mean(axis=0).std(axis=0, ddof=1) / np.sqrt(rows.shape[1])
    assert np.all(np.abs(rows.mean(axis=(0, 1)) - truth) < 4.5 * spread + 1e-9)


@pytest.mark.parametrize("name", ["monte-carlo", "ais", "tempering"])
def test_no_error_is_zero_because_no_draw_differs(name):
    model = gb.PairwiseFamily.model(gb.graphs.complete(2), [12.0, -9.0], [0.5])
    estimate = take(name, model)
    truth = exact(model).moments
    assert (estimate.stderr > 0).all()
    assert np.all(np.abs(estimate.value - truth) <= 2 * estimate.stderr)
