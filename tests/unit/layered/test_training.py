"""Training restricted machines: quality, missing cells, precision, resuming, schedules, what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from gibbsian.layered.filling import Filling
from gibbsian.layered.monitors import HeldOutRows, unit_log_probabilities
from gibbsian.layered.phases import PersistentChains
from gibbsian.layered.pseudolikelihood import log_pseudolikelihood
from gibbsian.layered.rows import LayerRows
from gibbsian.layered.start import start_model
from gibbsian.layered.training import RestrictedLearner, train_restricted, update

from gibbsian.errors import ArgumentError, DataError
from gibbsian.learners import Learner, run
from gibbsian.models.layers import BinaryLayer, GaussianLayer
from gibbsian.models.restricted import RestrictedModel
from gibbsian.optimizers import Decay
from gibbsian.storage import Checkpoint
from layered_systems import DISCRETE, all_values, joint_law, layer_of, log_partition, random_machine


def sampled_rows(machine, n_rows, rng):
    """Rows of the exact law of a small discrete machine."""
    v, _, law, _ = joint_law(machine)
    return LayerRows(machine.visible.decode(v[rng.choice(len(v), n_rows, p=law.sum(axis=1))]))


def log_likelihood(model, rows):
    return float(rows.shares @ model.log_weights(rows.states)) - log_partition(model)


def strong_machine(visible, hidden, rng, n_visible=6, n_hidden=2):
    """A machine with large weights whose biases balance them, so that its units vary and depend on each other."""
    weak = random_machine(visible, hidden, rng, n_visible=n_visible, n_hidden=n_hidden)
    v, h = (layer.means(np.zeros((1, layer.width)))[0] for layer in (weak.visible, weak.hidden))
    size = {"binary": 5.0, "spin": 1.2, "categorical": 4.0}[visible] / (1.0 if hidden == "binary" else 2.0)
    weights = size * rng.choice([-1.0, 1.0], weak.weights.shape)
    return RestrictedModel.build(weak.visible, weak.hidden, -weights @ h, -v @ weights, weights)


@pytest.fixture
def truth(rng):
    return strong_machine("binary", "binary", rng)


@pytest.fixture
def rows(truth, rng):
    return sampled_rows(truth, 3000, rng)


def started(rows, rng, visible="binary", n_hidden=3, hidden="binary", **settings):
    """A start with weights large enough to leave the saddle at zero in few steps."""
    layers = layer_of(visible, rows.n_units), layer_of(hidden, n_hidden)
    return start_model(*layers, rows, rng, scale=0.3, **settings)


@pytest.mark.parametrize("visible", DISCRETE)
@pytest.mark.parametrize("hidden", ["binary", "spin"])
def test_comes_close_to_the_law_that_made_the_rows(visible, hidden, rng):
    truth = strong_machine(visible, hidden, rng, n_visible=5)
    rows = sampled_rows(truth, 3000, rng)
    start = started(rows, rng, visible, 3, hidden)
    fit = train_restricted(RestrictedLearner(n_epochs=40, learning_rate=0.5, batch_size=50), start, rows, rng)
    best, reached, begun = (log_likelihood(model, rows) for model in (truth, fit.model, start))
    assert begun < best - 0.1
    assert reached > best - 0.03


def test_gaussian_units_learn_two_clusters(rng):
    which = rng.random(2000) < 0.3
    rows = LayerRows(np.where(which[:, None], 2.0, -1.0) + rng.normal(size=(2000, 2)))
    start = start_model(GaussianLayer(2), BinaryLayer(1), rows, rng)
    fit = train_restricted(RestrictedLearner(n_epochs=60, learning_rate=0.05, batch_size=50), start, rows, rng)
    means = fit.model.visible_means(np.array([[0.0], [1.0]]))
    means = means[np.argsort(means[:, 0])]
    np.testing.assert_allclose(means, [[-1.0, -1.0], [2.0, 2.0]], atol=0.4)
    errors = fit.history["reconstruction_error"]
    assert errors[-1] < 0.6 * errors[0]


@pytest.mark.parametrize("phase", ["pcd", "cd"])
@pytest.mark.parametrize("centred", [True, False])
def test_phases_and_gradients_raise_the_likelihood(rows, rng, phase, centred):
    start = started(rows, rng)
    learner = RestrictedLearner(n_epochs=15, learning_rate=0.2, free_phase=phase, n_steps=2, centred=centred)
    fit = train_restricted(learner, start, rows, rng)
    assert log_likelihood(fit.model, rows) > log_likelihood(start, rows) + 0.1


def test_temperature_changes_the_scale_of_the_parameters_alone(rows, rng):
    """Energies T times as large at temperature T are the same machine, and rates T^2 times as large keep it so."""
    cold = started(rows, rng)
    hot = replace(cold, theta=3.0 * cold.theta, temperature=3.0)
    learned = [
        train_restricted(RestrictedLearner(n_epochs=3, learning_rate=rate), start, rows, np.random.default_rng(0)).model
        for start, rate in ((cold, 0.5), (hot, 4.5))
    ]
    np.testing.assert_allclose(learned[1].theta, 3.0 * learned[0].theta, rtol=1e-8)
    assert np.abs(learned[0].theta - cold.theta).max() > 0.1


def test_the_start_has_the_means_of_the_rows_at_any_temperature(rows, rng):
    start = start_model(BinaryLayer(6), BinaryLayer(2), rows, rng, temperature=3.0)
    np.testing.assert_allclose(start.visible_means(np.zeros((1, 2)))[0], rows.states.mean(axis=0), atol=1e-3)


def test_missing_cells_are_drawn_given_the_rest(truth, rng):
    """Cells that are missing at random leave the optimum of the likelihood where it is, unlike zeros in their place."""
    full = sampled_rows(truth, 4000, rng)
    missing = rng.random(full.states.shape) < 0.3
    holed = LayerRows(np.where(missing, 0, full.states).astype(np.int8), missing=missing)
    zeros = LayerRows(holed.states)
    learner = RestrictedLearner(n_epochs=40, learning_rate=0.2, batch_size=50)
    scores = [
        log_likelihood(train_restricted(learner, started(rows, rng, n_hidden=6), rows, rng).model, full)
        for rows in (full, holed, zeros)
    ]
    assert scores[1] > scores[0] - 0.05
    assert scores[1] > scores[2] + 0.1


def test_renewed_cells_stay_at_the_conditional_law(truth, rng):
    """Started at any state, cells drawn again and again follow the model given the present cells of the row."""
    present = np.array([1, 0, 1, 1, 0, 0], np.int8)
    missing = np.zeros((3000, 6), bool)
    missing[:, 3:] = True
    filling = Filling(LayerRows(np.tile(present, (3000, 1)), missing=missing))
    filled, places = filling.start(truth, rng), np.arange(3000)
    for _ in range(60):
        filling.renew(truth, places, filled, rng)
    v, _, law, _ = joint_law(truth)
    weights = np.where((v[:, :3] == present[:3]).all(axis=1), law.sum(axis=1), 0.0)
    expected = weights @ v[:, 3:] / weights.sum()
    found = filling.states(places, filled)
    np.testing.assert_array_equal(found[:, :3], missing[:, :3] + present[:3])
    assert np.abs(found[:, 3:].mean(axis=0) - expected).max() < 4.5 * 0.5 / np.sqrt(3000)


def test_filled_cells_belong_to_their_rows(rng):
    missing = rng.random((20, 4)) < 0.4
    filling = Filling(LayerRows(np.zeros((20, 4), np.int16), missing=missing))
    filled = np.arange(missing.sum(), dtype=np.int16) + 1
    whole = np.zeros((20, 4), np.int16)
    whole[missing] = filled
    places = np.array([7, 3, 19, 0, 3])
    np.testing.assert_array_equal(filling.states(places, filled), whole[places])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("phase", ["pcd", "cd", "tempering", "smci"])
def test_a_resumed_fit_ends_at_the_same_bits(rows, rng, tmp_path, dtype, phase):
    missing = rng.random(rows.states.shape) < 0.1
    rows = LayerRows(rows.states[:200], rng.random(200), missing[:200])
    start = started(rows, rng)
    learner = RestrictedLearner(n_epochs=6, batch_size=20, momentum=0.5, dtype=dtype, free_phase=phase)
    whole = train_restricted(learner, start, rows, np.random.default_rng(3))
    assert whole.model.theta.dtype == dtype
    checkpoint = Checkpoint(tmp_path / "fit.checkpoint", every=1, resume=True)
    run(learner, start, rows, np.random.default_rng(3), max_iter=4, checkpoint=checkpoint)
    resumed = train_restricted(learner, start, rows, np.random.default_rng(99), checkpoint=checkpoint)
    assert resumed.result.provenance == {"resumed_at_step": 4}
    np.testing.assert_array_equal(resumed.model.theta, whole.model.theta)
    np.testing.assert_array_equal(resumed.progress.filled, whole.progress.filled)
    for name, figures in whole.history.items():
        np.testing.assert_array_equal(resumed.history[name], figures)
    assert resumed.result.reason == whole.result.reason == "trained for 6 epochs"
    again = train_restricted(learner, start, rows, np.random.default_rng(5), checkpoint=checkpoint)
    np.testing.assert_array_equal(again.model.theta, whole.model.theta)


def test_the_same_seed_gives_the_same_machine_and_another_another(rows, rng):
    start, learner = started(rows, rng), RestrictedLearner(n_epochs=2)
    first, second, other = (
        train_restricted(learner, start, rows, np.random.default_rng(seed)).model.theta for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_the_start_is_left_as_it_was(rows, rng):
    start = started(rows, rng)
    before = start.theta.copy()
    train_restricted(RestrictedLearner(n_epochs=2), start, rows, rng)
    np.testing.assert_array_equal(start.theta, before)


def test_single_precision_learns(rows, rng):
    start = started(rows, rng, n_hidden=6)
    learner = RestrictedLearner(n_epochs=20, learning_rate=0.5, dtype="float32")
    fit = train_restricted(learner, start, rows, rng)
    assert fit.progress.free.hidden.dtype == np.float32
    assert log_likelihood(fit.model, rows) > log_likelihood(start, rows) + 0.5


def test_chunks_that_arrive_are_learned_from(rows, rng):
    model, progress = started(rows, rng), None
    begun = log_likelihood(model, rows)
    learner = RestrictedLearner(learning_rate=0.2, batch_size=20)
    for _ in range(10):
        chunk = rows.take(rng.permutation(rows.n_rows)[:500])
        model, progress = update(learner, progress, model, chunk, rng)
    assert progress.epoch == 10
    assert log_likelihood(model, rows) > begun + 0.1


def test_history_has_the_start_and_every_epoch(rows, rng):
    training, held_out = rows.take(np.arange(2000)), rows.take(np.arange(2000, 3000))
    monitor = HeldOutRows(training, held_out, exact=True)
    fit = train_restricted(RestrictedLearner(n_epochs=5, monitor=monitor), started(rows, rng), training, rng)
    assert list(fit.history) == [
        "log_pseudolikelihood",
        "free_energy_gap",
        "log_likelihood",
        "held_out_log_likelihood",
    ]
    assert all(len(figures) == 6 for figures in fit.history.values())
    seen, unseen = log_likelihood(fit.model, training), log_likelihood(fit.model, held_out)
    assert fit.history["log_likelihood"][-1] == pytest.approx(seen)
    assert fit.history["held_out_log_likelihood"][-1] == pytest.approx(unseen)
    assert fit.history["free_energy_gap"][-1] == pytest.approx(seen - unseen)
    np.testing.assert_allclose(fit.result.trace.column("value"), -fit.history["log_pseudolikelihood"][1:])


@pytest.mark.parametrize("kind", DISCRETE)
def test_unit_probabilities_add_up_to_the_pseudolikelihood(kind, rng):
    machine = random_machine(kind, "binary", rng, n_visible=4, n_hidden=3, temperature=1.3)
    values = all_values(machine.visible)
    total = sum(unit_log_probabilities(machine, values, np.full(len(values), unit)) for unit in range(4))
    np.testing.assert_allclose(total, log_pseudolikelihood(machine, machine.visible.decode(values)), rtol=1e-10)


def test_schedules():
    rates = [
        RestrictedLearner(learning_rate=0.4, schedule=schedule).rate_after(50, 100)
        for schedule in ("linear", "constant", Decay(power=1.0, delay=50))
    ]
    np.testing.assert_allclose(rates, [0.2, 0.4, 0.2])


def test_it_is_a_learner_and_settings_of_the_phase_have_one_home():
    learner = RestrictedLearner(n_chains=7, n_steps=2)
    assert isinstance(learner, Learner)
    assert learner.free_phase == PersistentChains(n_chains=7, n_steps=2)
    assert replace(learner, l2=0.1).free_phase == learner.free_phase
    with pytest.raises(ArgumentError, match="brings its own settings"):
        RestrictedLearner(free_phase=PersistentChains(), n_chains=7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_epochs": 0}, "n_epochs=0"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"learning_rate": 0.0}, "learning_rate=0.0"),
        ({"momentum": 1.0}, "momentum=1.0"),
        ({"schedule": "cosine"}, "schedule='cosine'"),
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"l2": -1.0}, "l2=-1.0"),
        ({"free_phase": "magic"}, "free_phase='magic' is not known"),
        ({"n_chains": 0}, "n_chains=0"),
        ({"free_phase": "cd", "n_steps": 0}, "n_steps=0"),
    ],
    ids=lambda value: "" if isinstance(value, str) else ",".join(value),
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ArgumentError, match=message):
        RestrictedLearner(**settings)


def test_rows_that_do_not_fit_are_refused(rng):
    machine = random_machine("spin", "spin", rng, n_visible=3, n_hidden=2)
    with pytest.raises(DataError, match="column 2 has the value 0, but spin units take -1 and 1"):
        RestrictedLearner().init(machine, LayerRows(np.array([[1, -1, 0]])), rng)
    with pytest.raises(DataError, match="3 visible units but the rows have 2 columns"):
        RestrictedLearner().init(machine, LayerRows(np.ones((4, 2))), rng)
    with pytest.raises(DataError, match="weights has shape"):
        LayerRows(np.ones((4, 2)), weights=np.ones(3))


def test_a_column_that_never_varies_keeps_finite_biases(rng):
    rows = LayerRows(np.column_stack([np.ones(50), np.zeros(50), rng.integers(0, 2, 50)]))
    start = start_model(BinaryLayer(3), BinaryLayer(2), rows, rng)
    np.testing.assert_allclose(start.visible_biases[:2], [np.log(101), -np.log(101)])
