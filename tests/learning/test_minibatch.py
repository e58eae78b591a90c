"""Training restricted machines: quality, missing cells, precision, resuming, schedules, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from gibbsian.errors import ArgumentError, DataError
from gibbsian.expectations import PersistentBlockChains, SampledLayers
from gibbsian.inference.layer_pseudolikelihood import log_pseudolikelihood
from gibbsian.learning import Learner, Minibatch
from gibbsian.learning.curves import cell_scores
from gibbsian.learning.imputation import BatchRows
from gibbsian.learning.minibatch import EpochPlan
from gibbsian.learning.optimizers import Decay
from gibbsian.models.layers.units import BinaryUnits, GaussianUnits, codes_of
from gibbsian.rng import Key
from layered_systems import (
    DISCRETE,
    all_values,
    data_rows,
    joint_law,
    layer_of,
    log_partition,
    random_machine,
    restricted,
    start_model,
    trained,
)

# About a hundred minibatches an epoch.
SETTINGS = {"learning_rate": 0.2, "batch_size": 30}


def sampled_rows(machine, n_rows, rng):
    """Rows of the exact law of a small discrete machine."""
    v, _, law, _ = joint_law(machine)
    return data_rows(codes_of(machine.visible, v[rng.choice(len(v), n_rows, p=law.sum(axis=1))]))


def log_likelihood(model, rows):
    values = model.family.layers[0].encode(rows.rows()[0])
    return float(rows.shares @ model.family.log_evidence(model.theta, values)) - log_partition(model)


def strong_machine(visible, hidden, rng, n_visible=6, n_hidden=2):
    """A machine with large weights whose biases balance them, so that its units vary and depend on each other."""
    weak = random_machine(visible, hidden, rng, n_visible=n_visible, n_hidden=n_hidden)
    v, h = (layer.means(np.zeros((1, layer.width)))[0] for layer in (weak.visible, weak.hidden))
    size = {"binary": 5.0, "spin": 1.2, "categorical": 4.0}[visible] / (1.0 if hidden == "binary" else 2.0)
    weights = size * rng.choice([-1.0, 1.0], weak.weights.shape)
    return restricted(weak.visible, weak.hidden, -weights @ h, -v @ weights, weights)


@pytest.fixture
def truth(rng):
    return strong_machine("binary", "binary", rng)


@pytest.fixture
def rows(truth, rng):
    return sampled_rows(truth, 3000, rng)


def started(rows, rng, visible="binary", n_hidden=3, hidden="binary", **settings):
    """A start with weights large enough to leave the saddle at zero in few steps."""
    layers = layer_of(visible, rows.n_variables), layer_of(hidden, n_hidden)
    return start_model(*layers, rows, rng, scale=0.3, **settings)


@pytest.mark.parametrize("visible", DISCRETE)
@pytest.mark.parametrize("hidden", ["binary", "spin"])
def test_comes_close_to_the_law_that_made_the_rows(visible, hidden, rng):
    truth = strong_machine(visible, hidden, rng, n_visible=5)
    rows = sampled_rows(truth, 3000, rng)
    start = started(rows, rng, visible, 3, hidden)
    fit = trained(Minibatch(max_iter=40, learning_rate=0.5, batch_size=50), start, rows, rng)
    best, reached, begun = (log_likelihood(model, rows) for model in (truth, fit.model, start))
    assert begun < best - 0.1
    assert reached > best - 0.03


def test_gaussian_units_learn_two_clusters(rng):
    which = rng.random(2000) < 0.3
    rows = data_rows(np.where(which[:, None], 2.0, -1.0) + rng.normal(size=(2000, 2)))
    start = start_model(GaussianUnits(2), BinaryUnits(1), rows, rng)
    fit = trained(Minibatch(max_iter=60, learning_rate=0.05, batch_size=50, curves=True), start, rows, rng)
    means = fit.model.family.means(fit.model.parts, 0, [None, np.array([[0.0], [1.0]])])
    means = means[np.argsort(means[:, 0])]
    np.testing.assert_allclose(means, [[-1.0, -1.0], [2.0, 2.0]], atol=0.4)
    errors = fit.history["reconstruction_error"]
    assert errors[-1] < 0.6 * errors[0]


@pytest.mark.parametrize("phase", ["pcd", "cd"])
@pytest.mark.parametrize("centred", [True, False])
def test_phases_and_gradients_raise_the_likelihood(rows, rng, phase, centred):
    start = started(rows, rng)
    learner = Minibatch(max_iter=15, **SETTINGS, negative_phase=phase, n_steps=2, centred=centred)
    fit = trained(learner, start, rows, rng)
    assert log_likelihood(fit.model, rows) > log_likelihood(start, rows) + 0.1


def test_the_start_has_the_means_of_the_rows(rows, rng):
    start = start_model(BinaryUnits(6), BinaryUnits(2), rows, rng)
    np.testing.assert_allclose(start.visible_means(np.zeros((1, 2)))[0], rows.states.mean(axis=0), atol=1e-3)


def test_missing_cells_are_drawn_given_the_rest(truth, rng):
    """Cells that are missing at random leave the optimum of the likelihood where it is, unlike zeros in their place."""
    full = sampled_rows(truth, 4000, rng)
    missing = rng.random(full.states.shape) < 0.3
    holed = data_rows(np.where(missing, 0, full.states).astype(np.int8), missing=missing)
    zeros = data_rows(np.where(missing, 0, full.states).astype(np.int8))
    learner = Minibatch(max_iter=40, learning_rate=0.2, batch_size=50)
    scores = [
        log_likelihood(trained(learner, started(rows, rng, n_hidden=6), rows, rng).model, full)
        for rows in (full, holed, zeros)
    ]
    assert scores[1] > scores[0] - 0.2  # two of six hidden units may end alike
    assert scores[1] > scores[2] + 0.1


def test_renewed_cells_stay_at_the_conditional_law(truth, rng):
    """Started at any state, cells drawn again and again follow the model given the present cells of the row."""
    present = np.array([1, 0, 1, 1, 0, 0], np.int8)
    missing = np.zeros((3000, 6), bool)
    missing[:, 3:] = True
    filling = BatchRows(data_rows(np.tile(present, (3000, 1)), missing=missing))
    imputed, places = filling.start(truth.family, truth.parts, rng), np.arange(3000)
    for _ in range(60):
        filling.impute(truth.family, truth.parts, places, imputed, rng)
    v, _, law, _ = joint_law(truth)
    weights = np.where((v[:, :3] == present[:3]).all(axis=1), law.sum(axis=1), 0.0)
    expected = weights @ v[:, 3:] / weights.sum()
    found = filling.states(places, imputed)
    np.testing.assert_array_equal(found[:, :3], missing[:, :3] + present[:3])
    assert np.abs(found[:, 3:].mean(axis=0) - expected).max() < 4.5 * 0.5 / np.sqrt(3000)


def test_filled_cells_belong_to_their_rows(rng):
    missing = rng.random((20, 4)) < 0.4
    filling = BatchRows(data_rows(np.zeros((20, 4), np.int16), missing=missing))
    filled = np.arange(missing.sum(), dtype=np.int16) + 1
    whole = np.zeros((20, 4), np.int16)
    whole[missing] = filled
    places = np.array([7, 3, 19, 0, 3])
    np.testing.assert_array_equal(filling.states(places, filled), whole[places])


def test_the_same_seed_gives_the_same_machine_and_another_another(rows, rng):
    start, learner = started(rows, rng), Minibatch(max_iter=2)
    first, second, other = (
        trained(learner, start, rows, np.random.default_rng(seed)).model.theta for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_the_start_is_left_as_it_was(rows, rng):
    start = started(rows, rng)
    before = start.theta.copy()
    trained(Minibatch(max_iter=2), start, rows, rng)
    np.testing.assert_array_equal(start.theta, before)


def test_single_precision_learns(rows, rng):
    start = started(rows, rng, n_hidden=6)
    learner = Minibatch(max_iter=20, learning_rate=0.2, batch_size=30, dtype="float32")
    fit = trained(learner, start, rows, rng)
    assert fit.state.phases.free.hidden[0].dtype == np.float32
    assert log_likelihood(fit.model, rows) > log_likelihood(start, rows) + 0.5


def test_chunks_that_arrive_are_learned_from(rows, rng):
    start, state = started(rows, rng), None
    learner = Minibatch(learning_rate=0.2, batch_size=20).by_chunks(20)
    assert learner.schedule == "constant"
    for _ in range(10):
        fit = learner.bind(start, rows.take(rng.permutation(rows.n_rows)[:500]))
        state, _ = fit.step(fit.init(Key.of(rng))[0] if state is None else fit.carry(state))
    assert (state.epoch, state.n_rows) == (10, 5000)
    assert log_likelihood(fit.model(state), rows) > log_likelihood(start, rows) + 0.1


def test_history_has_the_start_and_every_epoch(rows, rng):
    training, held_out = rows.take(np.arange(2000)), rows.take(np.arange(2000, 3000))
    fit = trained(Minibatch(max_iter=5, curves=True), started(rows, rng), training, rng, held_out=held_out)
    assert list(fit.history) == [
        "log_pseudolikelihood",
        "held_out_log_pseudolikelihood",
        "free_energy_gap",
        "log_likelihood",
        "held_out_log_likelihood",
    ]
    assert all(len(figures) == 6 for figures in fit.history.values())
    some = training.take(np.arange(0, 2000, 2))  # of many rows an even selection is followed
    seen, unseen = log_likelihood(fit.model, some), log_likelihood(fit.model, held_out)
    assert fit.history["log_likelihood"][-1] == pytest.approx(seen)
    assert fit.history["held_out_log_likelihood"][-1] == pytest.approx(unseen)
    assert fit.history["free_energy_gap"][-1] == pytest.approx(seen - unseen)
    np.testing.assert_allclose(fit.trace.column("value"), -fit.history["log_pseudolikelihood"][1:])


@pytest.mark.parametrize("kind", DISCRETE)
def test_unit_probabilities_add_up_to_the_pseudolikelihood(kind, rng):
    machine = random_machine(kind, "binary", rng, n_visible=4, n_hidden=3)
    values = all_values(machine.visible)
    total = cell_scores(machine.family, machine.parts, values).sum(axis=1)
    np.testing.assert_allclose(total, log_pseudolikelihood(machine, codes_of(machine.visible, values)), rtol=1e-10)


def test_a_unit_that_holds_a_probability_is_scored_by_the_mean_over_its_values(rng):
    machine = random_machine("binary", "spin", rng, n_visible=3, n_hidden=2)
    grey = np.array([[0.3, 0.5, 0.9]])
    odds = machine.log_evidence(np.array([[1.0, 0.5, 0.9], [0.0, 0.5, 0.9]]))
    expected = 0.3 * odds[0] + 0.7 * odds[1] - np.logaddexp(*odds)
    assert cell_scores(machine.family, machine.parts, grey)[0, 0] == pytest.approx(expected)


def test_schedules():
    """The rate after half of the minibatches, as a trace tells it."""
    machine, rows = random_machine("binary", "binary", np.random.default_rng(0)), data_rows(np.eye(5))
    for schedule, rate in (("linear", 0.2), ("constant", 0.4), (Decay(power=1.0, delay=50), 0.2)):
        learner = Minibatch(max_iter=102, learning_rate=0.4, batch_size=5, schedule=schedule)
        trace = trained(learner, machine, rows, np.random.default_rng(0)).trace
        assert trace.column("step_size")[51] == pytest.approx(rate, rel=0.02)


def test_it_is_a_learner_and_settings_of_the_phase_have_one_home():
    learner = Minibatch(n_chains=7, n_steps=2)
    assert isinstance(learner, Learner)
    family = random_machine("binary", "binary", np.random.default_rng(0)).family
    assert learner.phase(family) == SampledLayers(PersistentBlockChains(n_chains=7, n_steps=2))
    assert replace(learner, l2=0.1).phase(family) == learner.phase(family)
    with pytest.raises(ArgumentError, match="brings its own settings"):
        Minibatch(negative_phase=SampledLayers(), n_chains=7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_iter": 0}, "max_iter=0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"learning_rate": 0.0}, "learning_rate=0.0"),
        ({"momentum": 1.0}, "momentum=1.0"),
        ({"schedule": "cosine"}, "schedule='cosine'"),
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"l2": -1.0}, "l2=-1.0"),
        ({"negative_phase": "magic"}, "negative_phase='magic' is not known"),
        ({"n_chains": 0}, "n_chains=0"),
        ({"negative_phase": "cd", "n_steps": 0}, "n_steps=0"),
    ],
    ids=lambda value: "" if isinstance(value, str) else ",".join(value),
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ArgumentError, match=message):
        Minibatch(**settings)


def test_rows_that_do_not_fit_are_refused(rng):
    machine = random_machine("spin", "spin", rng, n_visible=3, n_hidden=2)
    with pytest.raises(DataError, match="column 'x2' has the value -1, but spin units take codes 0 and 1"):
        Minibatch().bind(machine, data_rows(np.array([[1, 0, -1]])))
    with pytest.raises(DataError, match="3 visible units but the rows have 2 columns"):
        Minibatch().bind(machine, data_rows(np.ones((4, 2))))


def test_a_column_that_never_varies_keeps_finite_biases(rng):
    rows = data_rows(np.column_stack([np.ones(50), np.zeros(50), rng.integers(0, 2, 50)]))
    start = start_model(BinaryUnits(3), BinaryUnits(2), rows, rng)
    np.testing.assert_allclose(start.parts.biases[0][:2], [np.log(101), -np.log(101)])


def test_curves_score_every_unit_of_rows_seen_and_not_seen(rng):
    states = rng.integers(0, 2, (60, 5))
    training, held_out = data_rows(states[:40]), data_rows(states[40:])
    fit = trained(
        Minibatch(max_iter=2, batch_size=10), random_machine("binary", "binary", rng), training, rng, held_out=held_out
    )  # fmt: skip
    for name, rows in (("log_pseudolikelihood", states[:40]), ("held_out_log_pseudolikelihood", states[40:])):
        expected = log_pseudolikelihood(fit.model, rows).mean()
        assert fit.history[name][-1] == pytest.approx(expected, rel=1e-6)


def test_momentum_lengthens_the_pull_of_l1_as_it_does_the_gradient(rng):
    """A constant gradient g moves by rate g / (1 - momentum) in the long run, and l1 pulls as far back."""
    theta, velocity, rate = np.array([0.5, -0.5, 0.001, 2.0]), np.array([0.1, 0.0, 0.0, -0.1]), 0.01
    gradient = np.array([1.0, -1.0, 0.0, 0.5])
    penalised = slice(0, 3)
    expected = theta + 0.8 * velocity + rate * (gradient - np.where(np.arange(4) < 3, 0.1 * theta, 0.0))
    threshold = rate * 0.3 / (1.0 - 0.8)
    expected[:3] = np.sign(expected[:3]) * np.maximum(np.abs(expected[:3]) - threshold, 0.0)
    nothing = np.empty(0)
    parts = [(penalised, 0.3, 0.1), (slice(3, 4), 0.0, 0.0)]
    EpochPlan(nothing, nothing, nothing, parts, 0.8).move(theta, velocity, gradient, rate)
    np.testing.assert_allclose(theta, expected, rtol=1e-14)
    assert theta[2] == 0.0
