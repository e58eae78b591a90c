"""The parts of Gibbs sampling, each against a plain computation."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import gibbsian as gb
from gibbsian.backends.numba import random
from gibbsian.backends.threads import limited_threads
from gibbsian.errors import ArgumentError, MixingWarning, TooExpensiveError
from gibbsian.expectations.sampled import monte_carlo
from gibbsian.rng import Key
from gibbsian.sampling import ChromaticGibbs, draw, kernel_for, spins
from gibbsian.sampling.spins import SpinSystem, colour_plan
from systems import BINARY, SPINS, random_model, take


def words_of(stream, size):
    words = np.empty(size, np.uint64)
    random.fill_words(stream, words)
    return words


def test_xoshiro_gives_the_reference_outputs():
    words = words_of(np.array([1, 2, 3, 4], np.uint64), 4)
    assert words.tolist() == [41943041, 58720359, 3588806011781223, 3591011842654386]


def test_a_stream_goes_on_where_it_stopped():
    whole, parts = Key.of(0).chains(1)[0], Key.of(0).chains(1)[0]
    assert np.array_equal(words_of(whole, 10), np.concatenate([words_of(parts, 3), words_of(parts, 7)]))


def test_uniform_stays_inside_the_interval():
    assert random.uniform(np.uint64(0)) == 2.0**-53
    assert random.uniform(np.uint64(2**64 - 1)) == 1 - 2.0**-53


def test_below_reaches_every_integer_evenly():
    words = words_of(Key.of(0).chains(1)[0], 70_000)
    picks = [random.below(word, 7) for word in words]
    assert stats.chisquare(np.bincount(picks, minlength=7)).pvalue > 1e-3


def test_thresholds_are_half_logits_of_uniform_numbers():
    words = words_of(Key.of(0).chains(1)[0], 50_000)
    words[:4] = [0, 2**64 - 1, 2**63, 2**63 - 2**12]
    thresholds = np.empty(words.size)
    random.fill_thresholds(words, thresholds)
    k = (words >> np.uint64(12)).astype(np.longdouble) + np.longdouble(0.5)
    expected = np.log(k / (np.longdouble(2) ** 52 - k)) / 2
    assert np.abs(thresholds - expected).max() < 1e-14
    assert np.isfinite(thresholds).all()


def test_substreams_differ_from_each_other_and_their_parent():
    word = np.uint64(12345)
    assert len({int(word), *(int(random.substream_word(word, k)) for k in range(100))}) == 101


def sparse_model(scale=1.0):
    graph = gb.graphs.random(80, 0.05, random_state=1)
    rng = np.random.default_rng(2)
    return gb.PairwiseFamily.model(graph, rng.normal(size=80), scale * rng.normal(size=graph.n_edges), BINARY)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 50.0])
def test_field_sums_are_exact_in_any_order(scale):
    model = sparse_model(scale)
    form = SpinSystem(model.family, model.theta)
    matrix = np.zeros((80, 80))
    i, j = model.family.graph.edges.T
    matrix[i, j] = matrix[j, i] = form.couplings
    rng = np.random.default_rng(3)
    terms = matrix * rng.choice([-1.0, 1.0], 80)
    orders = [terms[:, rng.permutation(80)] for _ in range(5)]
    sums = {tuple(np.add.accumulate(order, axis=1)[:, -1] + form.biases) for order in orders}
    assert len(sums) == 1


def test_rounded_parameters_are_the_parameters():
    model = sparse_model()
    spin, _ = model.family.recode(model.theta, SPINS)
    form = SpinSystem(model.family, model.theta)
    np.testing.assert_allclose(form.biases, spin.parts.biases, rtol=0, atol=1e-14)
    np.testing.assert_allclose(form.couplings, spin.parts.couplings, rtol=0, atol=1e-14)


def test_dense_and_sparse_kernels_take_the_same_path(monkeypatch):
    model = sparse_model()
    paths = {}
    for name, dense, n_chains in (("dense", True, 3), ("sparse", False, 3), ("grouped", False, 40)):
        monkeypatch.setattr(gb.Graph, "is_dense", dense)
        kernel = kernel_for(model.family)
        chains, _ = kernel.step(model.theta, kernel.init(n_chains, Key.of(0)), 200)
        paths[name] = chains.states[:3]
    assert np.array_equal(paths["dense"], paths["sparse"])
    assert np.array_equal(paths["dense"], paths["grouped"])


def test_sequential_scan_is_the_textbook_loop():
    """The kernel against three lines of Python fed by the same stream."""
    model = gb.PairwiseFamily.model(gb.graphs.complete(6), np.linspace(-1, 1, 6), np.linspace(-1, 1, 15))
    kernel = kernel_for(model.family)
    start = kernel.init(1, Key.of(0))
    chains, info = kernel.step(model.theta, start, 50)
    fields = model.family.layout.coupling_fields(model.theta)
    x, words = 2.0 * start.states[0] - 1.0, words_of(start.streams[0].copy(), 300)
    flips = 0
    for k, word in enumerate(words):
        field = model.parts.biases[k % 6] + fields(x[None])[0, k % 6]
        new = 1.0 if random.uniform(word) < 1 / (1 + np.exp(-2 * field)) else -1.0
        flips += new != x[k % 6]
        x[k % 6] = new
    assert np.array_equal(2 * chains.states[0] - 1, x)
    assert info.acceptance == flips / 300


def test_colour_blocks_cover_each_site_once_and_keep_to_one_colour():
    graph = gb.graphs.random(60, 0.1, random_state=0)
    free = np.arange(0, 60, 2)
    plan = colour_plan(graph, free.tobytes(), 4)
    sites = plan.order[: free.size]
    assert np.array_equal(np.sort(sites), free)
    assert np.array_equal(plan.order[plan.place], np.arange(60))
    assert np.diff(plan.blocks).max() <= 4
    assert np.diff(plan.blocks).min() >= 1
    for first, last in pairwise(plan.colours):
        assert np.unique(graph.colouring[sites[plan.blocks[first] : plan.blocks[last]]]).size == 1


def test_colour_plan_has_the_rows_of_the_graph():
    graph = gb.graphs.random(60, 0.1, random_state=0)
    plan = colour_plan(graph, np.arange(60).tobytes(), 4)
    for row, site in enumerate(plan.order):
        span = slice(plan.indptr[row], plan.indptr[row + 1])
        assert np.array_equal(plan.order[plan.heads[span]], graph.neighbours(site))
        assert np.array_equal(np.sort(graph.edges[plan.edges[span]].sum(axis=1) - site), graph.neighbours(site))


def test_blocks_in_parallel_and_chains_in_parallel_take_the_same_path():
    model = gb.PairwiseFamily.model(gb.graphs.grid(20, 20), None, np.random.default_rng(0).normal(size=760))
    kernel = ChromaticGibbs(block_size=16).bind(model.family)
    few, _ = kernel.step(model.theta, kernel.init(2, Key.of(1)), 15)
    many, _ = kernel.step(model.theta, kernel.init(12, Key.of(1)), 15)
    assert np.array_equal(few.states, many.states[:2])


def test_block_size_must_be_positive():
    with pytest.raises(ArgumentError, match="block_size=0"):
        ChromaticGibbs(block_size=0)


def test_draw_thins_and_burns_in():
    model = sparse_model()
    every = draw(model, 40, 3, n_chains=2, burn_in=5)
    third = draw(model, 12, 3, n_chains=2, burn_in=5, thin=3)
    assert every.shape == (2, 20, 80)
    assert np.array_equal(every[:, 2::3], third)


@pytest.mark.parametrize(("name", "value"), [("n_samples", 0), ("burn_in", -1), ("thin", 0)])
def test_draw_names_what_is_wrong(name, value):
    with pytest.raises(ArgumentError, match=f"{name}={value}"):
        draw(sparse_model(), **{"n_samples": 10, name: value})


def test_draw_asks_for_memory_first():
    with pytest.raises(TooExpensiveError, match="draws of 80 variables"):
        draw(sparse_model(), 10**13)


def test_monte_carlo_chains_persist():
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4)))
    bound = monte_carlo(n_chains=20, n_draws=10, burn_in=7).bind(model)
    estimate, state = bound(model.theta, bound.init(model.theta, Key.of(0)))
    assert estimate.value.shape == estimate.stderr.shape == (10,)
    assert state.chains.n_sweeps == 17
    _, state = bound(model.theta, state)
    assert state.chains.n_sweeps == 27


def test_monte_carlo_warns_when_chains_are_stuck():
    ferromagnet = gb.PairwiseFamily.model(gb.graphs.complete(8), np.zeros(8), np.full(28, 3.0))
    with pytest.warns(MixingWarning, match="worst R-hat inf"):
        estimate = take(monte_carlo(n_chains=20, n_draws=10), ferromagnet)
    assert estimate.parts["r_hat"] == np.inf
    take(monte_carlo(n_chains=20, n_draws=10, warn=False), ferromagnet)


def test_monte_carlo_needs_two_chains():
    with pytest.raises(ArgumentError, match="n_chains=1"):
        monte_carlo(n_chains=1)


def test_a_stencil_has_every_edge_of_a_lattice_and_none_of_a_random_graph():
    graph = gb.graphs.grid(30, 40)
    plan = colour_plan(graph, np.arange(1200).tobytes(), 128)
    own = np.repeat(np.arange(1200), np.diff(plan.indptr))
    colour = np.searchsorted(plan.blocks[plan.colours], own, side="right") - 1
    found = []
    for entry, slot in enumerate(plan.slots):
        first = plan.blocks[plan.colours[colour[entry]]]
        of_colour = slice(plan.stencil.pointers[colour[entry]], plan.stencil.pointers[colour[entry] + 1])
        row = np.flatnonzero(slot - plan.stencil.starts[of_colour] == own[entry] - first)
        found.append(own[entry] + plan.stencil.offsets[of_colour][row])
    assert np.array_equal(np.concatenate(found), plan.heads)
    assert colour_plan(gb.graphs.random(1200, 0.003, random_state=0), np.arange(1200).tobytes(), 128).stencil is None


@pytest.mark.parametrize(("graph", "n_chains"), [(gb.graphs.grid(20, 40), 70), (gb.graphs.grid(30, 40), 2)])
@pytest.mark.parametrize("name", ["gibbs", "chromatic"])
@pytest.mark.parametrize("held", [False, True])
def test_lanes_take_the_path_of_exact_fields(graph, n_chains, name, held, rng, monkeypatch):
    """With every lane in doubt all is decided by exact fields; lanes that decide themselves must do the same."""
    model = random_model(graph, rng, scale=0.6)
    chains = kernel_for(model.family).init(n_chains, Key.of(1))
    mask = rng.random(chains.states.shape) < 0.3 if held else None
    quick = kernel_for(model.family, name, mask).step(model.theta, chains, 20)
    monkeypatch.setattr(spins, "MARGIN", 1e30)
    exact = kernel_for(model.family, name, mask).step(model.theta, chains, 20)
    assert np.array_equal(quick[0].states, exact[0].states)
    assert quick[1] == exact[1]


def test_threads_share_one_large_chain(rng, monkeypatch):
    model = random_model(gb.graphs.grid(90, 90), rng)
    kernel = ChromaticGibbs(block_size=64).bind(model.family)
    chains = kernel.init(1, Key.of(0))
    alone, info = kernel.step(model.theta, chains, 3)
    monkeypatch.setattr(spins, "BLOCKWISE_FROM", 0)
    with limited_threads(3):
        shared, again = kernel.step(model.theta, chains, 3)
    assert np.array_equal(alone.states, shared.states)
    assert np.array_equal(alone.streams, shared.streams)
    assert info == again


@pytest.mark.parametrize("name", ["gibbs", "chromatic"])
@pytest.mark.parametrize("graph", [gb.graphs.complete(6), gb.graphs.grid(2, 3)], ids=["dense", "sparse"])
def test_reverse_sweeps_are_the_time_reversal(graph, name, rng):
    """p(x) P(x -> y) = p(y) R(y -> x): pairs of states before and after, from exact draws, both ways."""
    model, n = random_model(graph, rng, scale=0.7), 40_000
    kernel, number = kernel_for(model.family, name), 1 << np.arange(6)
    start = gb.inference.exact(model).sample(n, rng)
    there, _ = kernel.step(model.theta, kernel.init(n, Key.of(1), start))
    back, _ = kernel.step(model.theta, kernel.init(n, Key.of(2), start), reverse=True)
    one = np.bincount((start @ number) * 64 + there.states @ number, minlength=4096)
    other = np.bincount((back.states @ number) * 64 + start @ number, minlength=4096)
    enough = one + other > 20
    squares = (one - other)[enough] ** 2 / (one + other)[enough]
    assert stats.chi2.sf(squares.sum(), enough.sum()) > 1e-4
