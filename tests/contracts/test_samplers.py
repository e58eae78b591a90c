"""What every registered sampler promises."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.backends import parallel
from gibbsian.backends.parallel import limited_threads
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.inference import exact
from gibbsian.models.layers.units import codes_of
from gibbsian.old_sampling import SAMPLERS, ChainState, Sampler, layer_path
from gibbsian.old_sampling.block_gibbs import LAYER_SAMPLERS, LayerSampler
from layered_systems import random_machine
from systems import BINARY, costs_of, models_with_variables, name_of, random_model_of

TRIANGLES = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (2, 4)], 40)
MODELS = {
    "dense": gb.PairwiseFamily.model(
        gb.graphs.complete(12), np.linspace(-1, 1, 12), np.random.default_rng(0).normal(0, 0.4, 66)
    ),
    "grid": gb.PairwiseFamily.model(
        gb.graphs.grid(20, 20), np.linspace(-1, 1, 400), np.random.default_rng(1).normal(0, 1, 760), BINARY
    ),
    "no edges": gb.Model.zeros(gb.PairwiseFamily(gb.graphs.from_edges([], 70))),
} | {
    f"{kind} {name_of(variables)}": random_model_of(kind, TRIANGLES, np.random.default_rng(2), variables, 0.5)
    for kind, variables in models_with_variables(40)
    if kind != "pairwise"
}


@pytest.fixture(params=SAMPLERS.names())
def sampler(request):
    return SAMPLERS.create(request.param)


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def generator(seed=0):
    return np.random.default_rng(seed)


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def copy(chains):
    return ChainState(*(np.copy(part) for part in chains))


def test_is_a_sampler(sampler):
    assert isinstance(sampler, Sampler)


def test_states_are_plain_arrays_of_codes(sampler, model):
    chains = sampler.init(model, 11, generator())
    chains, info = sampler.step(model, chains, 2)
    assert chains.states.shape == (11, model.n_variables)
    assert chains.states.dtype == np.int8
    assert chains.streams.shape == (11, 4)
    assert chains.streams.dtype == np.uint64
    assert (chains.states >= 0).all()
    assert (chains.states < model.variables.sizes).all()
    assert len(np.unique(chains.states)) == max(model.variables.sizes)
    assert chains.n_sweeps == info.n_sweeps == 2
    assert 0 < info.flips < 1


def test_step_leaves_its_input_alone(sampler, model):
    chains = sampler.init(model, 9, generator())
    before = copy(chains)
    after, _ = sampler.step(model, chains, 3)
    assert same(chains, before)
    assert not any(np.shares_memory(new, old) for new, old in zip(after[:2], chains[:2], strict=True))


@pytest.mark.parametrize("n_chains", [1, 40])
def test_sweeps_may_be_split_over_calls(sampler, model, n_chains):
    chains = sampler.init(model, n_chains, generator())
    whole, _ = sampler.step(model, chains, 5)
    part, _ = sampler.step(model, chains, 2)
    parts, _ = sampler.step(model, part, 3)
    assert same(whole, parts)
    assert not np.array_equal(whole.streams, part.streams)


def test_no_sweeps_change_nothing(sampler, model):
    chains = sampler.init(model, 3, generator())
    after, info = sampler.step(model, chains, 0)
    assert same(after, chains)
    assert info.flips == 0


@pytest.mark.parametrize("n_chains", [1, 70])
def test_threads_do_not_matter(sampler, model, n_chains, monkeypatch):
    chains = sampler.init(model, n_chains, generator())
    monkeypatch.setattr(parallel, "WORTH_THREADS", 0)
    results = []
    for threads in (1, 2):
        with limited_threads(threads):
            results.append(sampler.step(model, chains, 4))
    assert same(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]


def test_other_chains_do_not_matter(sampler, model):
    few, _ = sampler.step(model, sampler.init(model, 2, generator()), 20)
    many, _ = sampler.step(model, sampler.init(model, 45, generator()), 20)
    assert np.array_equal(few.states, many.states[:2])
    assert np.array_equal(few.streams, many.streams[:2])


def test_chains_differ(sampler, model):
    chains, _ = sampler.step(model, sampler.init(model, 6, generator()), 3)
    assert len(np.unique(chains.states, axis=0)) > 1
    assert len(np.unique(chains.streams, axis=0)) == 6


@pytest.mark.parametrize("n_chains", [3, 40])
def test_clamped_variables_never_move(sampler, model, n_chains):
    start = sampler.init(model, n_chains, generator()).states
    mask = generator(1).random((n_chains, model.n_variables)) < 0.5
    for clamped in (mask, mask[0]):
        held = np.broadcast_to(clamped, start.shape)
        chains = sampler.init(model, n_chains, generator(), states=start, clamped=clamped)
        chains, _ = sampler.step(model, chains, 10)
        assert np.array_equal(chains.states[held], start[held])
        assert (chains.states[~held] != start[~held]).any()


def test_everything_clamped_is_no_error(sampler, model):
    start = sampler.init(model, 2, generator()).states
    everything = np.ones(model.n_variables, bool)
    chains = sampler.init(model, 2, generator(), states=start, clamped=everything)
    after, info = sampler.step(model, chains, 3)
    assert np.array_equal(after.states, start)
    assert info.flips == 0


@pytest.mark.parametrize("graph", [gb.graphs.complete(30), gb.graphs.grid(12, 12)], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_chains", [2, 33])
def test_extreme_couplings_align_every_spin_with_its_field(sampler, graph, n_chains):
    signs = generator(7).choice([-1, 1], graph.n_edges)
    model = gb.PairwiseFamily.model(graph, np.full(graph.n_nodes, 20.0), 50.0 * signs)
    chains, info = sampler.step(model, sampler.init(model, n_chains, generator()), 60)
    assert (costs_of(model, chains.states) > 0).all()
    assert 0 < info.flips < 1


@pytest.mark.parametrize("case", models_with_variables(6), ids=lambda case: f"{case[0]}-{name_of(case[1])}")
def test_extreme_parameters_leave_the_most_probable_values(sampler, case):
    """Chains come to rest where no single change is better."""
    kind, variables = case
    model = random_model_of(kind, gb.graphs.complete(6), generator(3), variables, scale=400.0)
    chains, _ = sampler.step(model, sampler.init(model, 5, generator()), 80)
    costs = costs_of(model, chains.states)
    assert np.isfinite(costs).all()
    assert (costs >= -1e-9).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_chains": 0}, "n_chains=0"),
        ({"states": np.ones((3, 12))}, "states has 3 rows"),
        ({"states": np.ones((2, 11))}, r"states has shape \(2, 11\): give rows of 12 variables"),
        ({"clamped": np.ones(12, bool)}, "needs states="),
        ({"states": np.ones((2, 12)), "clamped": np.ones(5, bool)}, "clamped has shape"),
    ],
)
def test_bad_starts_are_named(sampler, arguments, message):
    settings = {"n_chains": 2, **arguments}
    with pytest.raises(ArgumentError, match=message):
        sampler.init(MODELS["dense"], settings.pop("n_chains"), generator(), **settings)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([[0, 3]], "states holds 3 for variable 1: give its code, from 0 to 2"),
        ([[-1, 0]], "states holds -1 for variable 0: give its code, from 0 to 1"),
        ([[0, 0.5]], "states holds 0.5"),
    ],
)
def test_states_must_be_codes_of_their_variable(sampler, states, message):
    model = gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(2), Variables.categories((2, 3))))
    with pytest.raises(CodingError, match=message):
        sampler.init(model, 1, generator(), states=np.array(states))


def test_states_are_not_scores(sampler):
    with pytest.raises(CodingError, match="states holds -1 for variable 0: give its code, from 0 to 1"):
        sampler.init(MODELS["dense"], 2, generator(), states=np.full((2, 12), -1))


def test_bad_steps_are_named(sampler):
    chains = sampler.init(MODELS["dense"], 2, generator())
    with pytest.raises(ArgumentError, match="n_sweeps=-1"):
        sampler.step(MODELS["dense"], chains, -1)
    with pytest.raises(ArgumentError, match="12 variables but the model has 400"):
        sampler.step(MODELS["grid"], chains)


# -- samplers of machines in layers: rows of a matrix, one random stream for all ---------------------------------------
@pytest.fixture(params=LAYER_SAMPLERS.names())
def layer_sampler(request):
    return LAYER_SAMPLERS.create(request.param), LAYER_SAMPLERS.trait(request.param, "over", "model")


@pytest.fixture(params=[("binary", "binary"), ("spin", "categorical"), ("categorical", "spin"), ("gaussian", "binary")])
def machine(request):
    return random_machine(*request.param, generator(4), 4, 3, scale=0.6)


def target_of(machine, over):
    return machine if over == "model" else layer_path(machine, "biases")


def coldest(state):
    """Values of the chains at the machine itself."""
    return state.values[0] if isinstance(state.values, tuple) else state.values[-1]


def test_layer_chains_are_rows_of_values(layer_sampler, machine):
    sampler, over = layer_sampler
    assert isinstance(sampler, LayerSampler)
    target = target_of(machine, over)
    state, _ = sampler.step(target, sampler.init(target, 7, generator()), generator(1), 2)
    assert coldest(state).shape == (7, machine.visible.width)
    assert int(state.n_steps) == 2
    assert np.array_equal(machine.visible.encode(codes_of(machine.visible, coldest(state))), coldest(state))


def test_layer_steps_leave_their_input_alone_and_may_be_split(layer_sampler, machine):
    sampler, over = layer_sampler
    target = target_of(machine, over)
    start = sampler.init(target, 6, generator())
    before = np.copy(coldest(start))
    whole, _ = sampler.step(target, start, generator(1), 5)
    rng = generator(1)
    part, _ = sampler.step(target, sampler.step(target, start, rng, 2)[0], rng, 3)
    assert np.array_equal(coldest(start), before)
    assert np.array_equal(coldest(whole), coldest(part))
    assert np.array_equal(coldest(sampler.step(target, start, generator(1), 0)[0]), before)


def test_layer_chains_stay_at_the_exact_distribution(layer_sampler, machine):
    """From exact draws at every place: means of both layers within their errors."""
    sampler, over = layer_sampler
    target, rng, n = target_of(machine, over), generator(2), 20_000
    engine = exact(machine)
    drawn = engine.sample_layers(n, rng)[0]
    state = sampler.init(target, n, rng, drawn if over == "path" else [drawn])
    if over == "path":
        # one place only: what exchanges do is tested where tempering is
        sampler, state = type(sampler)(betas=[0.999999, 1.0]), state._replace(values=np.stack([drawn, drawn]))
    state, _ = sampler.step(target, state, rng, 3)
    values = coldest(state)
    truth = engine.moments[: machine.visible.width]
    assert (np.abs(values.mean(axis=0) - truth) < 4.5 * values.std(axis=0) / np.sqrt(n)).all()


def test_layer_chains_name_bad_steps(layer_sampler, machine):
    sampler, over = layer_sampler
    target = target_of(machine, over)
    with pytest.raises(ArgumentError, match="n_chains=0"):
        sampler.init(target, 0, generator())
    with pytest.raises(ArgumentError, match="n_steps=-1"):
        sampler.step(target, sampler.init(target, 2, generator()), generator(), -1)
