"""Minibatches: near the full fit from memory, from disk and from chunks; rates, averages, penalties, resume."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.data.stream import DataStream
from gibbsian.errors import ArgumentError, CodingError, DataError
from gibbsian.learning import Online, PolyakMean, as_learner, run
from gibbsian.learning.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.learning.optimizers import Adam, Ascent, Decay
from gibbsian.learning.preconditioners import preconditioning
from gibbsian.rng import Key
from gibbsian.storage import Checkpoint, pack, unpack
from systems import BINARY, dataset_of, random_model, sampled_data

ROBBINS_MONRO = Ascent(learning_rate=0.4, decay=Decay(power=0.75, delay=50))


@pytest.fixture
def learned(scores, rng):
    """A start, 20,000 rows of a small machine, and the full pseudolikelihood fit."""
    truth = random_model(gb.graphs.complete(5), rng, scores, scale=0.4)
    data = sampled_data(truth, 20_000, rng)
    start = truth.replace(np.zeros_like(truth.theta))
    return start, data, run(as_learner("mple"), start, data, rng, tol=1e-8).model.theta


def sampling_errors(model, data):
    """Rough standard errors of the parameters: spins' own, carried to the coding."""
    return 1.0 / np.sqrt(data.n_rows) / preconditioning(model.family).centred(np.zeros(model.n_variables)).scales


@pytest.mark.parametrize(
    "optimizer", [Adam(learning_rate=0.05, decay=Decay(delay=100)), ROBBINS_MONRO], ids=["adam", "ascent"]
)
def test_comes_as_close_to_the_full_fit_as_the_rows_make_sense(learned, optimizer):
    start, data, target = learned
    learner = Online(optimizer=optimizer, batch_size=100)
    result = run(learner, start, data, np.random.default_rng(0), max_iter=10)
    distance = (result.model.theta - target) / sampling_errors(start, data)
    assert np.sqrt(np.mean(distance**2)) < 2.0
    assert result.converged, result.reason
    assert "of its sampling error" in result.reason


def test_few_steps_are_not_called_converged(learned):
    start, data, _ = learned
    learner = Online(batch_size=500)
    result = run(learner, start, data, np.random.default_rng(0), max_iter=1)
    assert not result.converged
    assert "raise max_iter" in result.reason


def test_a_constant_rate_is_not_called_converged(learned):
    """Large steps average to a gradient of zero beside the optimum."""
    start, data, target = learned
    learner = Online(optimizer=Ascent(learning_rate=1.0), batch_size=50)
    result = run(learner, start, data, np.random.default_rng(0), max_iter=2)
    assert np.sqrt(np.mean(((result.model.theta - target) / sampling_errors(start, data)) ** 2)) > 2.0
    assert not result.converged


def test_average_is_closer_than_the_last_step(learned):
    """At a constant rate the last step keeps the noise of its minibatch; the average does not."""
    start, data, target = learned
    errors = []
    for average in (True, False):
        learner = Online(optimizer=Ascent(learning_rate=0.3), batch_size=50, average=average)
        result = run(learner, start, data, np.random.default_rng(0), max_iter=1)
        errors.append(np.linalg.norm((result.model.theta - target) / sampling_errors(start, data)))
    assert errors[0] < 0.6 * errors[1]


def test_the_average_weighs_step_s_by_its_cube(rng):
    """The rule ``newest = 4 / (t + 3)`` gives step s the weight s (s + 1) (s + 2) over the sum of all."""
    data = sampled_data(random_model(gb.graphs.complete(3), rng), 600, rng)
    learner = Online(optimizer=Ascent(learning_rate=0.3), batch_size=600)
    fit = learner.bind(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3))), data)
    state, steps = fit.init(Key.of(rng))[0], []
    for _ in range(8):
        state, _ = fit.step(state)
        steps.append(state.iterate)
    s = np.arange(1, 9)
    expected = np.average(steps, axis=0, weights=s * (s + 1) * (s + 2))
    np.testing.assert_allclose(state.mean.iterate, expected, atol=1e-14)


def test_from_disk_as_from_memory(tmp_path, rng):
    truth = random_model(gb.graphs.complete(6), rng, scale=0.3)
    data = sampled_data(truth, 30_000, rng)
    np.save(tmp_path / "rows.npy", data.variables.scores_of(data.states[data.row_of]).astype(np.int8))
    stream = DataStream.open(tmp_path / "rows.npy", memory=100_000)
    assert stream.window_rows < 6000
    start = truth.replace(np.zeros_like(truth.theta))
    learner = Online(batch_size=100)
    result = run(learner, start, stream, np.random.default_rng(0), max_iter=2)
    full = run(as_learner("mple"), start, data, rng, tol=1e-8).model.theta
    assert np.sqrt(np.mean((result.model.theta - full) ** 2)) < 2.0 / np.sqrt(30_000)


def test_stream_resumes_to_the_same_bits(tmp_path, rng):
    rows = (rng.random((4000, 5)) < 0.5).astype(np.int8)
    np.save(tmp_path / "rows.npy", rows)
    start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(5), BINARY))
    learner = Online(batch_size=150, l1=0.01, l2=0.01)
    path = tmp_path / "fit.checkpoint"

    def learn(max_iter, *callbacks):
        stream = DataStream.open(tmp_path / "rows.npy", memory=20_000)
        return run(learner, start, stream, np.random.default_rng(3), callbacks, max_iter=max_iter)

    whole = learn(3)
    learn(2, Checkpoint(path, every=2))
    rest = learn(3, Checkpoint(path, resume=True))
    assert rest.provenance["resumed_at_step"] == 2
    assert np.array_equal(rest.model.theta, whole.model.theta)


def test_chunks_approach_the_full_fit_and_their_state_is_plain(learned):
    start, data, target = learned
    rng, learner = np.random.default_rng(0), Online(batch_size=100)
    order = rng.permutation(data.n_rows)
    state, distances = None, []
    for chunk in np.array_split(order, 40):
        fit = learner.bind(start, data.take(chunk))
        fresh = fit.init(Key.of(rng))[0]
        # as if it had been on disk meanwhile
        state, _ = fit.step(fresh if state is None else fit.carry(unpack(fresh, pack(state))))
        distances.append(np.linalg.norm((fit.model(state).theta - target) / sampling_errors(start, data)))
    assert state.epoch == 40
    assert state.n_steps == 200
    assert state.seen == data.n_rows
    assert distances[-1] < 0.25 * distances[0]
    assert distances[-1] / np.sqrt(target.size) < 3.0


def test_a_prior_counts_once_against_all_chunks(rng):
    """Ten chunks, each shown often: the maximum of the posterior of all rows."""
    data = sampled_data(random_model(gb.graphs.complete(3), rng, scale=0.3), 1000, rng)
    start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
    learner, state = Online(batch_size=100, log_prior="normal:0.05"), None
    for chunk in np.array_split(rng.permutation(data.n_rows), 10):
        fit = learner.bind(start, data.take(chunk))
        state = fit.init(Key.of(rng))[0] if state is None else fit.carry(state)
        assert fit.penalties(state.seen)[1].n_rows == state.seen
    assert state.seen == data.n_rows


def test_penalties_reach_the_full_fit_with_exact_zeros(rng):
    truth = random_model(gb.graphs.grid(2, 3), rng, scale=0.8)
    data = sampled_data(truth, 20_000, rng)
    start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(6)))
    full = run(as_learner("mple", l1=0.1, l2=0.05), start, data, rng, tol=1e-8).model
    learner = Online(batch_size=200, l1=0.1, l2=0.05)
    online = run(learner, start, data, np.random.default_rng(0), max_iter=15).model
    assert (full.parts.couplings == 0).any()
    assert not online.parts.couplings[full.parts.couplings == 0].any()
    # it stops within the noise of the rows: allow three sampling errors of a spin's parameter
    np.testing.assert_allclose(online.theta, full.theta, atol=3 / np.sqrt(data.n_rows))


def test_weights_count(rng):
    data = sampled_data(random_model(gb.graphs.complete(3), rng), 4000, rng)
    rows = data.states[data.row_of]
    doubled = dataset_of(rows, data.variables, np.where(rows[:, 0] == 1, 3.0, 1.0))
    start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
    target = run(as_learner("mple"), start, doubled, rng).model.theta
    learner = Online(batch_size=100)
    result = run(learner, start, doubled, np.random.default_rng(0), max_iter=20)
    np.testing.assert_allclose(result.model.theta, target, atol=0.04)


def test_centring_is_the_same_model_and_its_gradient(scores, rng):
    for bias in (True, False):
        model = random_model(gb.graphs.complete(4), rng, scores, bias=bias)
        data = sampled_data(model, 200, rng)
        centring = preconditioning(model.family).centred(
            data.variables.scores_of(data.states[data.row_of]).mean(axis=0)
        )
        inner = centring.inwards(model.theta)
        np.testing.assert_allclose(centring.outwards(inner), model.theta, atol=1e-12)
        objective = Pseudolikelihood()

        def value(centred, centring=centring, model=model, data=data, objective=objective):
            return value_and_gradient(objective, model.replace(centring.outwards(centred)), data)[0]

        steps = 1e-5 * np.eye(inner.size)
        slopes = np.array([(value(inner + step) - value(inner - step)) / 2e-5 for step in steps])
        _, gradient = value_and_gradient(objective, model, data)
        np.testing.assert_allclose(centring.gradient(gradient), slopes, atol=1e-8)


def test_likelihood_online_follows_the_rule_of_yk15(rng):
    """One row at a time, exact likelihood: theta + rate * (statistics of the row - expected statistics)."""
    start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
    data = gb.Dataset.read([[1, 1, 1], [-1, -1, -1]])  # mean zero, so that centring changes nothing
    learner = Online(gb.learning.objectives.Likelihood(), optimizer=Ascent(0.1), batch_size=2, average=False)
    fit = learner.bind(start, data)
    state, info = fit.step(fit.init(Key.of(0))[0])
    np.testing.assert_allclose(state.theta, [0, 0, 0, 0.1, 0.1, 0.1], atol=1e-12)
    assert info.step_size == 0.1


def test_unusable_settings_and_data_are_refused(rng):
    for bad in ({"batch_size": 0}, {"optimizer": "lbfgs"}, {"l1": -1.0}, {"objective": "nonsense"}):
        with pytest.raises(ArgumentError):
            Online(**bad)
    start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), BINARY))
    with pytest.raises(CodingError, match="the data, which is spin"):
        Online().bind(start, gb.Dataset.read([[-1, 1], [1, -1]]))
    with pytest.raises(DataError, match="2 variables but the data has 3 columns"):
        Online().bind(start, gb.Dataset.read([[0, 1, 0], [1, 1, 1]]))
    with pytest.raises(DataError, match="takes a Dataset or a DataStream, not list"):
        Online().bind(start, [[0, 1]])


def test_the_mean_gradient_is_measured_by_the_error_of_a_mean_over_all_rows(rng):
    gradient, spread = rng.normal(size=5), rng.uniform(0.5, 2.0, 5)
    mean = PolyakMean.start(np.zeros(5))._replace(n_steps=10**6, gradient=gradient, square=gradient**2 + spread**2)
    expected = np.sqrt(np.mean(gradient**2 / (spread**2 / 30)))
    assert mean.share_of_sampling_error(gradient, 30) == pytest.approx(expected, rel=1e-12)
    assert mean.share_of_sampling_error(gradient, 1) == np.inf


def test_learning_by_single_rows_is_the_printed_rule():
    """YK15, online learning: ``theta <- theta + rate * (gradient of the log-pseudolikelihood of one row)``."""
    rows = np.where(np.random.default_rng(0).random((40, 3)) < [0.3, 0.5, 0.8], 1, -1)
    learner, theta = Online(optimizer=Ascent(0.1), batch_size=1, average=False, centred=False), np.zeros(6)
    machine = gb.BoltzmannMachine(coding="spin", learner=learner, l2=0.0, random_state=0)
    for row in rows:
        weights = np.zeros((3, 3))
        weights[np.triu_indices(3, 1)] = theta[3:]
        excess = row - np.tanh(theta[:3] + (weights + weights.T) @ row)
        slopes = np.outer(excess, row)
        theta = theta + 0.1 * np.concatenate([excess, (slopes + slopes.T)[np.triu_indices(3, 1)]])
        machine.partial_fit(row[None])
        np.testing.assert_allclose(machine.model_.theta, theta, atol=1e-12)
