"""What every registered transition promises, over every kind of family."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.backends.threads import limited_threads
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.rng import Key
from gibbsian.sampling import TRANSITIONS, Chains, Kernel, Transition
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
KINDS = [("binary", "binary"), ("spin", "categorical"), ("categorical", "spin"), ("gaussian", "binary")]
DEEP = gb.models.StackFamily((gb.models.BinaryUnits(5), gb.models.SpinUnits(4), gb.models.BinaryUnits(3)))
LAYERS = {f"layers {a} {b}": random_machine(a, b, np.random.default_rng(4), 12, 6, scale=0.6) for a, b in KINDS} | {
    "layers deep": gb.Model(DEEP, 0.3 * np.random.default_rng(5).normal(size=DEEP.n_parameters))
}
CASES = [(name, kind) for kind in MODELS for name in TRANSITIONS.names()] + [
    (name, kind) for kind in LAYERS for name in ("gibbs", "chromatic")
]


@pytest.fixture(params=CASES, ids=lambda case: " ".join(case))
def case(request):
    name, kind = request.param
    model = {**MODELS, **LAYERS}[kind]
    return TRANSITIONS.create(name), gb.Model(model.family, model.theta)


@pytest.fixture(params=TRANSITIONS.names())
def transition(request):
    return TRANSITIONS.create(request.param)


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_is_a_transition_with_kernels(transition):
    assert isinstance(transition, Transition)
    assert isinstance(transition.bind(MODELS["dense"].family), Kernel)


def test_states_are_plain_arrays_of_codes(case):
    transition, model = case
    kernel, real = transition.bind(model.family), model.variables.real
    chains, info = kernel.step(model.theta, kernel.init(11, Key.of(0)), 2)
    assert chains.states.shape == (11, model.n_variables)
    assert chains.states.dtype == (np.float64 if real else np.int8)
    assert chains.streams.shape == (11, 4)
    assert chains.streams.dtype == np.uint64
    assert chains.n_sweeps == info.n_sweeps == 2
    assert 0 < info.acceptance <= 1
    if not real:
        assert (chains.states >= 0).all()
        assert (chains.states < model.variables.sizes).all()
        assert len(np.unique(chains.states)) == max(model.variables.sizes)


def test_step_leaves_its_input_alone(case):
    transition, model = case
    kernel = transition.bind(model.family)
    chains = kernel.init(9, Key.of(0))
    before = Chains(*map(np.copy, chains))
    after, _ = kernel.step(model.theta, chains, 3)
    assert same(chains, before)
    assert not any(np.shares_memory(new, old) for new, old in zip(after[:2], chains[:2], strict=True))


@pytest.mark.parametrize("n_chains", [1, 40])
def test_sweeps_may_be_split_over_calls_and_kernels(case, n_chains):
    transition, model = case
    kernel = transition.bind(model.family)
    chains = kernel.init(n_chains, Key.of(0))
    whole, _ = kernel.step(model.theta, chains, 5)
    part, _ = kernel.step(model.theta, chains, 2)
    kernel.step(np.zeros_like(model.theta), part)  # another theta in between
    assert same(whole, kernel.step(model.theta, part, 3)[0])
    assert same(whole, transition.bind(model.family).step(model.theta, part, 3)[0])
    assert not np.array_equal(whole.streams, part.streams)


def test_theta_may_change_in_place(case):
    transition, model = case
    kernel, theta = transition.bind(model.family), np.zeros_like(model.theta)
    chains = kernel.init(5, Key.of(0))
    kernel.step(theta, chains)
    theta[:] = model.theta
    assert same(kernel.step(theta, chains, 3)[0], transition.bind(model.family).step(model.theta, chains, 3)[0])


def test_no_sweeps_change_nothing(case):
    transition, model = case
    kernel = transition.bind(model.family)
    chains = kernel.init(3, Key.of(0))
    after, info = kernel.step(model.theta, chains, 0)
    assert same(after, chains)
    assert info.acceptance == 0


@pytest.mark.parametrize("n_chains", [1, 70])
def test_threads_do_not_matter(case, n_chains, monkeypatch):
    transition, model = case
    kernel = transition.bind(model.family)
    chains = kernel.init(n_chains, Key.of(0))
    monkeypatch.setattr("gibbsian.backends.threads.WORTH_THREADS", 0)
    results = []
    for threads in (1, 2):
        with limited_threads(threads):
            results.append(kernel.step(model.theta, chains, 4))
    assert same(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]


def test_other_chains_do_not_matter(case):
    transition, model = case
    kernel = transition.bind(model.family)
    few, _ = kernel.step(model.theta, kernel.init(2, Key.of(0)), 20)
    many, _ = kernel.step(model.theta, kernel.init(45, Key.of(0)), 20)
    if model.variables.real:
        np.testing.assert_allclose(few.states, many.states[:2], rtol=1e-9)
    else:
        assert np.array_equal(few.states, many.states[:2])
    assert np.array_equal(few.streams, many.streams[:2])
    assert same(many.take(slice(0, 2))[1:], few[1:])


def test_chains_differ(case):
    transition, model = case
    kernel = transition.bind(model.family)
    chains, _ = kernel.step(model.theta, kernel.init(6, Key.of(0)), 3)
    assert len(np.unique(chains.states, axis=0)) > 1
    assert len(np.unique(chains.streams, axis=0)) == 6


@pytest.mark.parametrize("n_chains", [3, 40])
@pytest.mark.parametrize("reverse", [False, True])
def test_masked_variables_never_move(case, n_chains, reverse):
    transition, model = case
    start = transition.bind(model.family).init(n_chains, Key.of(0)).states
    mask = np.random.default_rng(1).random((n_chains, model.n_variables)) < 0.5
    for held in (mask, mask[0]):
        kernel, fixed = transition.bind(model.family, held), np.broadcast_to(held, start.shape)
        chains, _ = kernel.step(model.theta, kernel.init(n_chains, Key.of(0), start), 10, reverse=reverse)
        assert np.array_equal(chains.states[fixed], start[fixed])
        assert (chains.states[~fixed] != start[~fixed]).any()


def test_everything_masked_is_no_error(case):
    transition, model = case
    start = transition.bind(model.family).init(2, Key.of(0)).states
    kernel = transition.bind(model.family, np.ones(model.n_variables, bool))
    after, info = kernel.step(model.theta, kernel.init(2, Key.of(0), start), 3)
    assert np.array_equal(after.states, start)
    assert info.acceptance == 0


@pytest.mark.parametrize("kind", MODELS)
def test_single_updates(transition, kind):
    model = MODELS[kind]
    kernel, n = transition.bind(model.family), model.n_variables
    chains = kernel.init(20, Key.of(0))
    few, _ = kernel.step(model.theta, chains, n_updates=3)
    assert ((few.states != chains.states).sum(axis=1) <= 3).all()
    assert (few.states != chains.states).any()
    many, info = kernel.step(model.theta, chains, n_updates=2 * n + 1)
    assert many.n_sweeps == info.n_sweeps == 2
    assert 0 < info.acceptance < 1


def test_layers_are_drawn_as_a_whole():
    model = LAYERS["layers deep"]
    kernel = gb.sampling.Gibbs().bind(model.family)
    with pytest.raises(ArgumentError, match="use n_sweeps="):
        kernel.step(model.theta, kernel.init(2, Key.of(0)), n_updates=3)
    with pytest.raises(ArgumentError, match="use the transition 'gibbs'"):
        gb.sampling.RandomScanGibbs().bind(model.family)


@pytest.mark.parametrize("graph", [gb.graphs.complete(30), gb.graphs.grid(12, 12)], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_chains", [2, 33])
def test_extreme_couplings_align_every_spin_with_its_field(transition, graph, n_chains):
    signs = np.random.default_rng(7).choice([-1, 1], graph.n_edges)
    model = gb.PairwiseFamily.model(graph, np.full(graph.n_nodes, 20.0), 50.0 * signs)
    kernel = transition.bind(model.family)
    chains, info = kernel.step(model.theta, kernel.init(n_chains, Key.of(0)), 60)
    assert (costs_of(model, chains.states) > 0).all()
    assert 0 < info.acceptance < 1


@pytest.mark.parametrize("case", models_with_variables(6), ids=lambda case: f"{case[0]}-{name_of(case[1])}")
def test_extreme_parameters_leave_the_most_probable_values(transition, case):
    """Chains come to rest where no single change is better."""
    kind, variables = case
    model = random_model_of(kind, gb.graphs.complete(6), np.random.default_rng(3), variables, scale=400.0)
    kernel = transition.bind(model.family)
    chains, _ = kernel.step(model.theta, kernel.init(5, Key.of(0)), 80)
    costs = costs_of(model, chains.states)
    assert np.isfinite(costs).all()
    assert (costs >= -1e-9).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_chains": 0}, "n_chains=0"),
        ({"states": np.ones((3, 12))}, "states has 3 rows"),
        ({"states": np.ones((2, 11))}, r"states has shape \(2, 11\): give rows of 12 variables"),
        ({"mask": np.ones(12, bool)}, "needs states="),
        ({"states": np.ones((2, 12)), "mask": np.ones(5, bool)}, "the mask has shape"),
        ({"states": np.ones((2, 12)), "mask": np.ones((3, 12), bool)}, "the mask has 3 rows for 2 chains"),
    ],
)
def test_bad_starts_are_named(transition, arguments, message):
    settings = {"n_chains": 2, "states": None, "mask": None, **arguments}
    with pytest.raises(ArgumentError, match=message):
        transition.bind(MODELS["dense"].family, settings["mask"]).init(
            settings["n_chains"], Key.of(0), settings["states"]
        )


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([[0, 3]], "states holds 3 for variable 1: give its code, from 0 to 2"),
        ([[-1, 0]], "states holds -1 for variable 0: give its code, from 0 to 1"),
        ([[0, 0.5]], "states holds 0.5"),
    ],
)
def test_states_must_be_codes_of_their_variable(transition, states, message):
    family = gb.TablesFamily.potts(gb.graphs.complete(2), Variables.categories((2, 3)))
    with pytest.raises(CodingError, match=message):
        transition.bind(family).init(1, Key.of(0), np.array(states))


def test_states_are_not_scores(transition):
    with pytest.raises(CodingError, match="states holds -1 for variable 0: give its code, from 0 to 1"):
        transition.bind(MODELS["dense"].family).init(2, Key.of(0), np.full((2, 12), -1))


def test_bad_steps_are_named(transition):
    model = MODELS["dense"]
    kernel = transition.bind(model.family)
    chains = kernel.init(2, Key.of(0))
    with pytest.raises(ArgumentError, match="n_sweeps=-1"):
        kernel.step(model.theta, chains, -1)
    with pytest.raises(ArgumentError, match="12 variables but the model has 400"):
        transition.bind(MODELS["grid"].family).step(MODELS["grid"].theta, chains)
