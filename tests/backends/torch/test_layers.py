"""Machines of layers through PyTorch: the same steps as NumPy's, given the same draws, and the same distributions."""

import warnings

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.backends.device import here, on_device
from gibbsian.errors import DeviceWarning, TooExpensiveError
from gibbsian.expectations import PersistentBlockChains, RestartedBlockChains, SampledLayers, TemperedBlockChains
from gibbsian.learning import Minibatch
from gibbsian.learning.callbacks import Callback
from gibbsian.learning.minibatch import EpochFit
from gibbsian.learning.optimizers import Decay
from gibbsian.learning.run import StopRun
from gibbsian.models.layers.units import codes_of
from gibbsian.rng import Key
from gibbsian.sampling import Annealing, ReplicaLadder, layer_path
from gibbsian.sampling.layer_paths import LayerWalk, RowStreams
from gibbsian.sampling.layers import visible_chains
from gibbsian.storage import Checkpoint
from layered_systems import (
    PAIRS,
    all_values,
    data_rows,
    joint_law,
    layer_of,
    log_partition,
    random_machine,
    random_stack,
)

torch = pytest.importorskip("torch")
programs = pytest.importorskip("gibbsian.backends.torch.layer_programs")
repeated = pytest.importorskip("gibbsian.backends.torch.repeated")
from gibbsian.backends.torch.streams import Stream  # noqa: E402

PHASES = {
    "cd": SampledLayers(RestartedBlockChains(n_steps=2)),
    "pcd": SampledLayers(PersistentBlockChains(n_steps=2, n_chains=7)),
    "tempering": SampledLayers(TemperedBlockChains(n_steps=3, n_chains=5, betas=4)),
}


class Given(Stream):
    """The numbers of a NumPy generator, in the order in which they are asked for."""

    def __init__(self, rng, owner):
        self.rng, self.clock, self.key = rng, owner.stream.clock, owner.stream.key
        owner.stream = self

    def uniform(self, n_rows, width, dtype):
        return torch.from_numpy(self.rng.random((n_rows, width)))

    def normal(self, n_rows, width, dtype):
        return torch.from_numpy(self.rng.standard_normal((n_rows, width)))


def a_fit(visible, hidden, rng, **settings):
    """A learner bound to rows, and where it stands before its first epoch."""
    machine = random_machine(visible, hidden, rng)
    states = codes_of(machine.visible, machine.draw_visible(rng.normal(size=(37, machine.hidden.width)), rng))
    rows = data_rows(states, weights=settings.pop("weights", None))
    learner = Minibatch(max_iter=3, batch_size=9, **settings)
    return begun(learner, machine, rows)


def begun(learner, machine, rows):
    """A fit in the units of the data, and where it stands before its first epoch."""
    fit = EpochFit(learner, machine, rows)
    return fit, fit.init(Key.of(0))[0]


def one_epoch_there(fit, state):
    """An epoch through PyTorch, with the numbers that NumPy would draw."""
    rng = state.key.fold("epoch", state.epoch).generator()
    with on_device("torch"):
        plan = fit._plan(state)
        program = programs.program_of(fit, state, plan, here())
        Given(rng, program)
        return program(fit, state, plan)


def arrays_of(part):
    """All arrays of nested tuples."""
    if isinstance(part, np.ndarray):
        return [part]
    return [array for inner in part for array in arrays_of(inner)] if isinstance(part, tuple) else []


def assert_same_epochs(fit, state, n_epochs=2):
    for _ in range(n_epochs):
        expected, info = fit.step(state)
        found = one_epoch_there(fit, state)
        wanted = (expected.theta, expected.velocity, expected.phases, expected.imputed)
        if len(fit.family.layers) > 2:
            assert found[4] == pytest.approx(info.value, abs=1e-10)
        for mine, theirs in zip(arrays_of(found), arrays_of(wanted), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-10)
        state = expected


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
def test_epochs_are_those_of_numpy_given_the_same_draws(visible, hidden, rng):
    settings = {"momentum": 0.5, "l1": 0.01, "l2": 0.02, "schedule": Decay(0.01)}
    assert_same_epochs(*a_fit(visible, hidden, rng, negative_phase=PHASES["pcd"], **settings))


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("phase", PHASES)
def test_negative_phases_are_those_of_numpy_given_the_same_draws(phase, centred, rng):
    assert_same_epochs(*a_fit("spin", "categorical", rng, negative_phase=PHASES[phase], centred=centred))


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("kinds", [("spin", "binary", "spin"), ("binary", "spin", "binary", "categorical", "binary")])
def test_epochs_of_deep_machines_are_those_of_numpy_given_the_same_draws(kinds, phase, rng):
    sizes = [layer_of(kind, 6 - place) for place, kind in enumerate(kinds)]
    deep = random_stack(sizes, rng, 0.5)
    learner = Minibatch(batch_size=9, negative_phase=PHASES[phase], momentum=0.5, l2=0.02, l1=0.01)
    states = codes_of(deep.visible, all_values(deep.visible)[:37])
    assert_same_epochs(*begun(learner, deep, data_rows(states)))


def test_rows_with_weights_come_as_often_as_on_the_cpu(rng):
    assert_same_epochs(*a_fit("binary", "binary", rng, weights=rng.integers(1, 4, 37)))


def test_missing_cells_are_filled_by_their_conditional_distribution(rng):
    """At a rate of zero the cells are Gibbs chains given their row: their means are conditional expectations."""
    machine = random_machine("binary", "binary", rng, n_visible=4, n_hidden=2, scale=1.2)
    states, missing = np.tile([1, 0, 1, 0], (4000, 1)), np.tile([True, False, False, True], (4000, 1))
    missing[::2] = False
    learner = Minibatch(max_iter=6, batch_size=500, learning_rate=1e-12)
    fit, state = begun(learner, machine, data_rows(states, missing=missing))
    with on_device("torch"):
        for _ in range(6):
            state, _ = fit.step(state)
    v, _, law, _ = joint_law(machine)
    given = law.sum(axis=1) * (v[:, 1] == 0) * (v[:, 2] == 1)
    expected = given @ v[:, [0, 3]] / given.sum()
    found = state.imputed.reshape(-1, 2)
    np.testing.assert_allclose(found.mean(axis=0), expected, atol=4 * 0.5 / np.sqrt(len(found)))


def test_a_state_that_was_handed_out_stays_as_it_is(rng):
    """Steps change tensors in place: what they return are copies."""
    fit, state = a_fit("binary", "binary", rng)
    with on_device("torch"):
        first, _ = fit.step(state)
        before = [part.copy() for part in arrays_of((first.theta, first.velocity, first.phases))]
        second, _ = fit.step(first)
        again, _ = fit.step(first)
    for part, kept in zip(arrays_of((first.theta, first.velocity, first.phases)), before, strict=True):
        np.testing.assert_array_equal(part, kept)
    np.testing.assert_array_equal(again.theta, second.theta)


@pytest.mark.parametrize(("visible", "hidden"), PAIRS)
@pytest.mark.parametrize("summed", ["hidden", "visible"])
def test_walks_are_those_of_numpy_given_the_same_draws(visible, hidden, summed, rng):
    path = layer_path(random_machine(visible, hidden, rng), "biases", summed)
    walk, betas = LayerWalk(path, path.kernel()), np.linspace(0.0, 1.0, 12)
    rows = walk.enter(path.start(20, Key.of(1)))
    there_streams = rows.streams.copy()
    moved, expected = walk._go(betas, rows._replace(streams=rows.streams.copy()))
    with on_device("torch"):
        there = programs.Walk(path.units, rows.values, len(betas), 0, here())
        Given(RowStreams(there_streams), there)
        np.testing.assert_allclose(there(betas), expected, atol=1e-10)
        np.testing.assert_allclose(programs.as_numpy(there.values), moved.values, atol=1e-10)


@pytest.mark.parametrize(("visible", "hidden"), [("binary", "spin"), ("categorical", "binary"), ("gaussian", "binary")])
def test_annealing_finds_log_z(visible, hidden, rng):
    machine = random_machine(visible, hidden, rng, scale=0.5)
    with on_device("torch"):
        run = Annealing(n_walkers=100, betas=100).forward(layer_path(machine, random_state=rng), rng)
    assert abs(run.log_partition - log_partition(machine)) < 4 * run.log_partition_stderr < 0.2
    assert run.states.shape == (100, len(machine.family.variables))


@pytest.mark.long
@pytest.mark.parametrize("summed", ["hidden", "visible"])
def test_tempered_columns_find_log_z(summed, rng):
    machine = random_machine("binary", "spin", rng, scale=0.5)
    with on_device("torch"):
        _, run = ReplicaLadder.settled(layer_path(machine, "biases", summed), Key.of(rng)).run(100)
    assert abs(run.log_partition - log_partition(machine)) < 4 * run.log_partition_stderr < 0.2


def test_adapted_places_are_closer_where_states_change(rng):
    machine = random_machine("spin", "spin", rng, n_visible=8, n_hidden=8, scale=0.0)
    strong = machine.replace(np.concatenate([np.zeros(16), np.full(64, 0.8)]))
    with on_device("torch"):
        ladder = Annealing(betas=50).adapted(layer_path(strong, "biases"), rng).ladder
    assert ladder[25] < 0.45


def test_chains_keep_the_distribution_that_they_start_from(rng):
    """Started at exact draws they stay there, layer by layer, and the same seed gives the same bits."""
    for visible, hidden in (("binary", "categorical"), ("spin", "spin")):
        machine = random_machine(visible, hidden, rng, n_visible=4, n_hidden=3)
        v, _, law, _ = joint_law(machine)
        start = v[rng.choice(len(v), 4000, p=law.sum(axis=1))]
        with on_device("torch"):
            codes = codes_of(machine.visible, start)
            ends = []
            for seed in (1, 1, 2):
                kernel, chains = visible_chains(machine, codes, Key.of(seed))
                ends.append(kernel.step(machine.theta, chains, 15)[0].states)
        first, again, other = (machine.family.encode(states)[0] for states in ends)
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
        pairs = (first.T @ first / 4000, (v * law.sum(axis=1)[:, None]).T @ v)
        np.testing.assert_allclose(*pairs, atol=4.5 / np.sqrt(4000))


def test_deep_machines_are_sampled_and_annealed(rng):
    sizes = [gb.models.BinaryUnits(3), gb.models.SpinUnits(2), gb.models.CategoricalUnits((2, 3))]
    deep = random_stack(sizes, rng, 0.5)
    with on_device("torch"):
        run = Annealing(n_walkers=100, betas=100).forward(deep, rng)
        draws = gb.sampling.draw_layers(deep, 40, rng, n_chains=20, burn_in=5)
    assert abs(run.log_partition - gb.inference.exact(deep).log_partition) < 4 * run.log_partition_stderr + 1e-9
    assert [part.shape for part in draws] == [(20, 2, 3), (20, 2, 2), (20, 2, 5)]


# -- whole fits -------------------------------------------------------------------------------------------------------
def planted(rng, n_rows=2000):
    truth = random_machine("binary", "binary", rng, n_visible=6, n_hidden=2, scale=2.0)
    v, _, law, _ = joint_law(truth)
    return v[rng.choice(len(v), n_rows, p=law.sum(axis=1))].astype(int)


def test_fits_reach_the_likelihood_that_they_reach_on_the_cpu(rng):
    rows = planted(rng, 800)
    learner = Minibatch(max_iter=12, learning_rate=0.5, batch_size=50, dtype="float32", curves=True)
    fits = [gb.RestrictedBoltzmannMachine(3, learner=learner, random_state=seed, device=device).fit(rows)
            for device in ("cpu", "torch") for seed in (0, 1)]  # fmt: skip
    cpu, there = np.reshape([fit.score(rows) for fit in fits], (2, 2))
    assert fits[2].model_.theta.dtype == np.float32
    assert abs(cpu.mean() - there.mean()) < 0.02
    assert fits[2].result_.history["log_pseudolikelihood"][-1] == pytest.approx(fits[2].pseudo_score(rows), abs=0.1)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("device", ["torch", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_resumed_fit_goes_on_to_the_same_bits(phase, dtype, device, tmp_path, rng):
    rows = planted(rng, 100).astype(float)
    rows[3, 2] = np.nan

    class Stop(Callback):
        def on_step(self, run):
            if run.n_steps == 2:
                raise StopRun("enough")

    def fit(callbacks=(), resume=False):
        learner = Minibatch(max_iter=4, batch_size=30, negative_phase=phase, dtype=dtype)
        checkpoint = Checkpoint(tmp_path / "fit", resume=resume)
        settings = {"learner": learner, "random_state": 0, "device": device, "checkpoint": checkpoint}
        return gb.RestrictedBoltzmannMachine(2, callbacks=callbacks, **settings).fit(rows)

    whole = fit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gb.errors.ConvergenceWarning)
        fit([Stop()])
    resumed = fit(resume=True)
    assert resumed.result_.provenance["resumed_at_step"] == 2
    np.testing.assert_array_equal(resumed.model_.theta, whole.model_.theta)


@pytest.mark.parametrize(
    ("fit", "reason"),
    [
        (lambda x, device: rbm_on(device, negative_phase="smci").fit(x), "has only the negative phases 'cd', 'pcd'"),
        (lambda x, device: rbm_on(device, log_prior="normal:1").fit(x), "cannot ask for the slope of a log_prior"),
        (
            lambda x, device: gb.DeepBoltzmannMachine(
                (2, 2), learner=Minibatch(max_iter=2), device=device, random_state=0
            ).fit(HOLES),
            "needs complete rows",
        ),
        (lambda x, device: rbm_on(device).fit(HOLES, sample_weight=[1, 2, 2]), "missing cells of weighted"),
    ],
)
def test_what_is_not_learned_there_is_learned_on_the_cpu_with_a_word(fit, reason, x):
    with pytest.warns(DeviceWarning, match=f"device='torch' .*{reason}.*runs on the CPU: set device='cpu'") as said:
        there = fit(x, "torch")
    assert len(said) == 1
    np.testing.assert_array_equal(there.model_.theta, fit(x, "cpu").model_.theta)


HOLES = [[None, 0], [1, 1], [0, 1]]


def rbm_on(device, **settings):
    return gb.RestrictedBoltzmannMachine(2, learner=Minibatch(max_iter=2, **settings), device=device, random_state=0)


@pytest.mark.parametrize("phase", PHASES)
def test_memory_is_predicted(phase, rng):
    """Of what stays from step to step; what steps make besides is counted too."""
    fit, state = a_fit("binary", "binary", rng, negative_phase=PHASES[phase])
    taken = []
    with on_device("torch"):
        plan = fit._plan(state)
        own = programs.program_of(fit, state, plan, here())
    programs.each(lambda part: taken.append(part.nbytes), (own.theta, own.velocity, own.phases, own.rows, own.order))
    predicted = programs.predicted_bytes(fit, state, plan, own.dtype, *own.rows.shape[:1], False)
    assert sum(taken) < predicted < 4 * sum(taken) + 2**14


def test_memory_is_asked_for_before_it_is_taken(monkeypatch, x):
    monkeypatch.setattr(programs, "predicted_bytes", lambda *_: 2.0**60)
    with pytest.raises(TooExpensiveError, match="fitting layers of 4, 3 columns needs"):
        gb.RestrictedBoltzmannMachine(3, device="torch", random_state=0).fit(x)


def test_a_device_forgets_a_fit_that_is_over_and_learns_on_from_its_state(x):
    machine = rbm_on("torch").fit(x)
    assert not any(isinstance(owner, EpochFit) for owner in repeated._KEPT)
    before = machine.model_.theta
    assert (machine.partial_fit(x).model_.theta != before).any()


@pytest.mark.parametrize("kinds", [(v, h) for v in ("binary", "spin") for h in ("binary", "spin")])
def test_exact_sums_over_a_layer(kinds, monkeypatch):
    """Log Z, moments and draws by summing out one layer, in several parts, with fields of any size."""
    for scale in (0.8, 60.0):
        model = random_machine(*kinds, np.random.default_rng(0), 6, 5, scale=scale)
        one, log_z = gb.inference.exact(model).moments, log_partition(model)
        monkeypatch.setattr("gibbsian.backends.torch.layer_sums._CELLS", 50)
        with on_device("torch"):
            other = gb.inference.exact(model).moments
            assert log_partition(model) == pytest.approx(log_z, abs=1e-10)
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore:stopped at max_iter")
def test_exact_likelihood_of_two_layers_is_learned_there(x):
    """Both phases are one sum over the states of the smaller layer, in float64 whatever the precision."""
    one, other = (
        gb.RestrictedBoltzmannMachine(
            5, learner="mle", max_iter=8, random_state=0, device=device, precision=precision
        ).fit(x)
        for device, precision in (("cpu", "auto"), ("torch", "float32"))
    )
    np.testing.assert_allclose(other.model_.theta, one.model_.theta, rtol=0, atol=1e-9)
