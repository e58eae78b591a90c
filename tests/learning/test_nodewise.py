"""Directed parameters and the nodewise learners: gradients, layouts, penalties, blocks."""

import warnings

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError, ConvergenceWarning, MissingValuesError
from gibbsian.learning import as_learner, run
from gibbsian.learning.nodewise import LOSSES, directed_pairs, noise_level
from systems import BINARY, SPINS, dataset_of, exact_law, random_model, sampled_data


@pytest.fixture(params=sorted(LOSSES))
def loss(request):
    return request.param


def losses_by_definition(loss, model, biases, matrix, data):
    """Sum over variables, straight from the formulas; row u of `matrix` holds the couplings of variable u."""
    codes = data.states[data.row_of]
    signs = np.where(codes == 1, 1.0, -1.0)
    half = signs * (model.variables.scores_of(codes) @ matrix.T + biases) * model.family.layout.gap / 2
    if loss == "rple":
        return np.logaddexp(0, -2 * half).mean(axis=0).sum()
    means = np.exp(-half).mean(axis=0)
    return (np.log(means) if loss == "logrise" else means).sum()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("bias", [True, False])
def test_value_by_definition_and_gradient_by_differences(loss, scores, bias, sparse, rng, monkeypatch):
    if sparse:
        monkeypatch.setattr("gibbsian.graphs.ALWAYS_DENSE_UP_TO", 0)
        monkeypatch.setattr("gibbsian.graphs.DENSE_ABOVE", 1.0)
    model = random_model(gb.graphs.grid(2, 3), rng, scores, bias=bias)
    assert model.family.graph.is_dense != sparse
    data = sampled_data(model, 60, rng)
    pairs, _ = directed_pairs(model)
    function = LOSSES[loss](pairs, data)
    theta = rng.normal(scale=0.4, size=pairs.n_parameters)
    biases, couplings = pairs.split(theta)
    forward, backward = np.split(couplings, 2)
    matrix = np.zeros((6, 6))
    for (i, j), there, back in zip(model.family.graph.edges, forward, backward, strict=True):
        matrix[i, j], matrix[j, i] = there, back
    value, gradient = function(theta)
    assert value == pytest.approx(losses_by_definition(loss, model, biases, matrix, data), abs=1e-12)
    for k, unit in enumerate(np.eye(theta.size)):
        slope = (function(theta + 1e-5 * unit)[0] - function(theta - 1e-5 * unit)[0]) / 2e-5
        assert gradient[k] == pytest.approx(slope, abs=1e-8)


def test_blocks_equal_one_block(loss, rng, monkeypatch):
    model = random_model(gb.graphs.complete(4), rng)
    function = LOSSES[loss](directed_pairs(model)[0], sampled_data(model, 200, rng))
    theta = rng.normal(scale=3.0, size=16)
    whole = function(theta)
    monkeypatch.setattr("gibbsian.resources.row_blocks.__defaults__", (8, 1))
    blocked = function(theta)
    assert blocked[0] == pytest.approx(whole[0], rel=1e-13)
    np.testing.assert_allclose(blocked[1], whole[1], rtol=1e-11, atol=1e-13)


def test_huge_parameters_stay_finite(loss, scores, rng):
    model = random_model(gb.graphs.complete(30), rng, scores)
    data = dataset_of(rng.integers(0, 2, size=(50, 30)), model.variables)
    function = LOSSES[loss](directed_pairs(model)[0], data)
    value, gradient = function(np.full(30 * 30, -50.0))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_rows_of_weight_zero_count_for_nothing(loss, rng):
    model = random_model(gb.graphs.complete(4), rng)
    rows = sampled_data(model, 30, rng)
    x, counts = rows.states[rows.row_of], rng.integers(0, 3, size=30)
    theta = rng.normal(size=16)
    directed, _ = directed_pairs(model)
    weighted = LOSSES[loss](directed, dataset_of(x, model.variables, counts))(theta)
    repeated = LOSSES[loss](directed, dataset_of(np.repeat(x, counts, axis=0), model.variables))(theta)
    assert weighted[0] == pytest.approx(repeated[0], rel=1e-13)
    np.testing.assert_allclose(weighted[1], repeated[1], rtol=1e-11, atol=1e-13)


def test_symmetrising_is_the_same_distribution_in_both_codings(rng):
    """Convert the directed parameters by hand, variable by variable: h01 = 2 h - 2 sum_j J_uj, J01 = 4 J."""
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(2, 3)))
    spin, _ = directed_pairs(model)
    theta = rng.normal(size=spin.n_parameters)
    biases, couplings = spin.split(theta)
    pull = np.bincount(spin.owner[6:], couplings, minlength=6)
    binary, _ = directed_pairs(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(2, 3), BINARY)))
    converted = np.concatenate([2 * biases - 2 * pull, 4 * couplings])
    expected, _ = model.family.recode(spin.symmetrised(theta), BINARY)
    np.testing.assert_allclose(binary.symmetrised(converted), expected.theta, atol=1e-13)


def test_without_penalty_rise_and_logrise_agree(rng):
    data = sampled_data(random_model(gb.graphs.complete(4), rng), 400, rng)
    fits = [gb.BoltzmannMachine(learner=name, tol=1e-10).fit(data).model_.theta for name in ("rise", "logrise")]
    np.testing.assert_allclose(*fits, atol=1e-8)


def test_sparse_graph_regresses_on_neighbours_only(loss, rng):
    truth = random_model(gb.graphs.grid(2, 3), rng, scale=0.4)
    states, probabilities, _ = exact_law(truth)
    data = dataset_of(states, truth.variables, probabilities)
    start = truth.replace(np.zeros_like(truth.theta))
    fitted = run(as_learner(loss), start, data, rng, tol=1e-10).model
    np.testing.assert_allclose(fitted.theta, truth.theta, atol=1e-7)


def test_theory_acts_on_spin_couplings_in_either_coding_at_any_temperature(loss, rng):
    data = sampled_data(random_model(gb.graphs.complete(5), rng, scale=0.3), 300, rng)
    learner = as_learner(loss, l1="theory")
    spin = gb.BoltzmannMachine(learner=learner, tol=1e-9).fit(data).model_
    binary = gb.BoltzmannMachine(learner=learner, tol=1e-9, temperature=3.0).fit(data.convert("binary")).model_
    back, _ = binary.family.recode(binary.theta, SPINS)
    np.testing.assert_allclose(back.theta, spin.theta, atol=1e-6)
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(5)))
    constant = {"rise": 0.4, "logrise": 0.8, "rple": 0.2}[loss]
    assert learner.penalty(model, data) == pytest.approx(constant * np.sqrt(np.log(25 / 0.05) / 300))


def test_noise_level_falls_with_the_square_root_of_the_rows():
    assert noise_level(10, 400) == pytest.approx(noise_level(10, 100) / 2)


def test_warm_start_from_the_solution_needs_one_step(loss, rng):
    """On two variables both directions have the same solution, so the symmetric model is the directed minimum."""
    data = sampled_data(random_model(gb.graphs.complete(2), rng), 300, rng)
    start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    first = run(as_learner(loss), start, data, rng, tol=1e-7)
    again = run(as_learner(loss), first.model, data, rng, tol=1e-6)
    assert len(again.trace) == 1 < len(first.trace)


def test_too_many_completions_are_refused(rng):
    rows = np.where(rng.random((60, 25)) < 0.5, 1.0, -1.0)
    rows[0, :20] = np.nan
    with pytest.raises(MissingValuesError, match="every way to complete the rows, and there are too many"):
        gb.BoltzmannMachine(learner="rise", l2=0.1).fit(rows)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"l1": "practice"}, "l1='practice'"),
        ({"l1": -0.1}, "l1=-0.1"),
        ({"l2": -0.1}, "l2=-0.1"),
    ],
)
def test_bad_settings_are_named(settings, words):
    with pytest.raises(ArgumentError, match=words):
        gb.learning.RISE(**settings)


def test_plain_ascent_reaches_the_same_minimum(loss, rng):
    data = sampled_data(random_model(gb.graphs.complete(3), rng, scale=0.3), 400, rng)
    quick = gb.BoltzmannMachine(learner=loss).fit(data).model_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        slow = gb.BoltzmannMachine(learner=as_learner(loss, optimizer="ascent")).fit(data).model_
    np.testing.assert_allclose(slow.theta, quick.theta, atol=1e-4)
