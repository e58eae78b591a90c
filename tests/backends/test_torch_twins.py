"""Twins of `backends.torch` against `backends.numba`, through what users call; on torch's CPU device, or a card."""

import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse

import gibbsian as gb
from estimator_samples import small, table
from gibbsian import Variables
from gibbsian.backends.device import on_device
from gibbsian.estimators import ESTIMATORS
from gibbsian.learning.nodewise import LOSSES, directed_pairs
from gibbsian.learning.objectives import ProbabilityFlow, Pseudolikelihood, RatioMatching
from gibbsian.models.conditionals import Loss
from gibbsian.storage import Checkpoint
from systems import SPINS, dataset_of

torch = pytest.importorskip("torch")
CLOSE = {"rtol": 0, "atol": 1e-10}


@pytest.fixture(params=["torch", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    return request.param


def spins(seed: int = 0, n: int = 9, n_rows: int = 300) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((n_rows, n)) < rng.uniform(0.3, 0.7, n), 1, -1)
    x[:, 1] = np.where(rng.random(n_rows) < 0.4, x[:, 0], x[:, 1])
    return x


def codes(seed: int = 0, n: int = 9, n_rows: int = 300) -> np.ndarray:
    return (spins(seed, n, n_rows) + 1) // 2


def categories(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, [3, 4, 2, 4, 3], (300, 5))


# -- conditionals ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("objective", [Pseudolikelihood(), RatioMatching(), ProbabilityFlow(), ProbabilityFlow(True)])
def test_values_and_gradients_of_dense_machines(objective, scores, device, monkeypatch):
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(9), scores))
    data = dataset_of(codes(), model.variables)
    theta = np.random.default_rng(1).normal(0, 0.5, model.theta.size)
    value, gradient = objective.bind(model, data)(theta)
    for cells in (2**28, 16 * 100):  # all rows at once, and four blocks
        with on_device(device, "float64"):
            monkeypatch.setattr("gibbsian.backends.torch.conditionals.BLOCK_CELLS", cells)
            function = objective.bind(model, data)
            assert type(function.conditionals).__name__ == "MatrixConditionals"
            twin_value, twin_gradient = function(theta)
        assert twin_value == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(twin_gradient, gradient, **CLOSE)


@pytest.mark.parametrize("objective", [Pseudolikelihood(), RatioMatching(), ProbabilityFlow()])
def test_what_a_metric_is_renewed_from(objective, scores, device, monkeypatch):
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(9), scores))
    data = dataset_of(codes(), model.variables)
    theta = np.random.default_rng(1).normal(0, 0.5, model.theta.size)
    monkeypatch.setattr("gibbsian.backends.torch.conditionals.BLOCK_CELLS", 16 * 100)
    with on_device(device, "float64"):
        weights = objective.bind(model, data).derivative_sums(theta)
    np.testing.assert_allclose(weights, objective.derivative_sums(model, data)(theta), **CLOSE)


@pytest.mark.parametrize("objective", [Pseudolikelihood(), RatioMatching(), ProbabilityFlow(), ProbabilityFlow(True)])
@pytest.mark.parametrize("kind", ["pairwise", "potts"])
def test_values_and_gradients_on_sparse_graphs(objective, kind, device, monkeypatch):
    graph = gb.graphs.from_edges([*((i, i + 1) for i in range(69)), *((0, i) for i in range(20, 69, 8))], 70)
    rng, sizes = np.random.default_rng(0), tuple(2 + i % 2 for i in range(70))
    if kind == "potts":
        family = gb.TablesFamily.potts(graph, Variables.categories(sizes))
        data = dataset_of(rng.integers(0, sizes, (60, 70)), family.variables)
    else:
        family, data = gb.PairwiseFamily(graph), gb.Dataset.read(spins(n=70, n_rows=60))
    model = gb.Model.zeros(family)
    theta = rng.normal(0, 0.5, model.theta.size)
    value, gradient = objective.bind(model, data)(theta)
    monkeypatch.setattr("gibbsian.backends.torch.conditionals.BLOCK_CELLS", 25 * 80)
    with on_device(device, "float64"):
        function = objective.bind(model, data)
        assert type(function.conditionals).__name__ == "MatrixConditionals"
        twin_value, twin_gradient = function(theta)
    assert twin_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(twin_gradient, gradient, **CLOSE)


@pytest.mark.parametrize("variables", [SPINS(3), Variables.categories((3, 2, 3))], ids=["spins", "categories"])
@pytest.mark.parametrize("graph", [gb.graphs.complete(3), gb.graphs.from_edges([], 3)], ids=["dense", "sparse"])
def test_changes_into_the_data_are_masked_in_tables_too(graph, variables, device):
    rng, model = np.random.default_rng(0), gb.Model.zeros(gb.TablesFamily.potts(graph, variables))
    data = dataset_of(rng.integers(0, variables.sizes, (12, 3)), variables)
    masked, theta = ProbabilityFlow(True).masked(data), rng.normal(0, 0.5, model.theta.size)
    assert 0.2 < masked.mean() < 0.8
    value, gradient = ProbabilityFlow(True).bind(model, data)(theta)
    with on_device(device, "float64"):
        function = ProbabilityFlow(True).bind(model, data)
        bound = function.conditionals.base if variables.two_valued else function.conditionals
        assert type(bound).__name__ == "MatrixConditionals"
        twin_value, twin_gradient = function(theta)
    assert twin_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(twin_gradient, gradient, **CLOSE)


def test_rows_whose_neighbourhoods_are_few_are_counted_on_the_cpu_which_is_said(device):
    graph, rows = gb.graphs.grid(8, 9), spins(n=72, n_rows=2000)
    with on_device(device):
        bound = Pseudolikelihood().bind(gb.Model.zeros(gb.PairwiseFamily(graph)), gb.Dataset.read(rows))
        assert type(bound.conditionals).__name__ == "LocalPairs"
    with pytest.warns(gb.errors.DeviceWarning, match="has no kernels"):
        gb.BoltzmannMachine(graph=graph, learner="mple", device=device).fit(rows)


@pytest.mark.parametrize("graph", [gb.graphs.complete(9), gb.graphs.grid(7, 10)], ids=["dense", "grid"])
@pytest.mark.parametrize("loss", ["rise", "logrise", "rple"])
def test_values_and_gradients_of_screening(loss, graph, device, monkeypatch):
    (pairs, _), data = directed_pairs(gb.Model.zeros(gb.PairwiseFamily(graph))), gb.Dataset.read(spins(n=graph.n_nodes))
    theta = np.random.default_rng(1).normal(0, 0.5, pairs.n_parameters)
    value, gradient = LOSSES[loss](pairs, data)(theta)
    monkeypatch.setattr("gibbsian.backends.torch.conditionals.BLOCK_CELLS", 16 * 100)
    with on_device(device, "float64"):
        twin_value, twin_gradient = LOSSES[loss](pairs, data)(theta)
    assert twin_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(twin_gradient, gradient, **CLOSE)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("learner", ["mple", "rm", "mpf", "rise"])
def test_fits_end_at_the_same_parameters(learner, penalty, device):
    settings = {"learner": learner, "tol": 1e-11, penalty: 0.01}
    one = gb.BoltzmannMachine(**settings).fit(spins())
    other = gb.BoltzmannMachine(**settings, device=device, precision="float64").fit(spins())
    np.testing.assert_allclose(other.model_.theta, one.model_.theta, **CLOSE)
    if learner != "rise":  # the same steps: vectors of L-BFGS are there, the steps are those of the one optimiser
        assert other.result_.n_steps == one.result_.n_steps


@pytest.mark.parametrize("learner", ["mple", "rm", "mpf"])
def test_fits_of_many_valued_columns_end_at_the_same_parameters(learner, device):
    settings = {"learner": learner, "tol": 1e-9, "l2": 0.01}
    one = gb.PottsMachine(**settings).fit(categories())
    other = gb.PottsMachine(**settings, device=device, precision="float64").fit(categories())
    np.testing.assert_allclose(other.model_.theta, one.model_.theta, **CLOSE)


@pytest.mark.parametrize("learner", ["mple", "logrise"])
def test_short_numbers_converge_as_well(learner, device):
    one = gb.BoltzmannMachine(learner=learner, l2=0.01).fit(spins())
    other = gb.BoltzmannMachine(learner=learner, l2=0.01, device=device, precision="float32").fit(spins())
    assert other.result_.converged
    np.testing.assert_allclose(other.model_.theta, one.model_.theta, atol=2e-5)


def test_an_objective_without_a_twin_stays_on_the_cpu(device):
    def hinge(costs, weights):
        return 0.0

    class Hinge(Pseudolikelihood):
        loss = Loss(hinge)

    model, data = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(9))), gb.Dataset.read(spins())
    with on_device(device):
        assert type(Hinge().bind(model, data).conditionals).__name__ == "DensePairs"


def test_a_checkpoint_resumes_to_the_same_bits(device, tmp_path):
    settings = {"learner": "mple", "l2": 0.01, "device": device, "precision": "float64", "tol": 1e-9}
    with pytest.warns(gb.errors.ConvergenceWarning):
        gb.BoltzmannMachine(**settings, max_iter=4, checkpoint=Checkpoint(tmp_path / "fit", every=4)).fit(spins())
    again = gb.BoltzmannMachine(**settings, checkpoint=Checkpoint(tmp_path / "fit", resume=True)).fit(spins())
    assert again.result_.provenance["resumed_at_step"] == 4
    np.testing.assert_array_equal(again.model_.theta, gb.BoltzmannMachine(**settings).fit(spins()).model_.theta)


@pytest.mark.parametrize("kind", ["tensor", "capsule"])
def test_tensors_are_taken_as_data(kind, device):
    class Foreign:  # of a library that knows DLPack only
        def __init__(self, tensor):
            self.tensor, self.shape, self.ndim = tensor, tensor.shape, 2

        def __dlpack__(self, **options):
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    tensor = torch.from_numpy(spins()).to("cpu" if kind == "capsule" or device == "torch" else device)
    bm = gb.BoltzmannMachine(learner="mple", device=device).fit(Foreign(tensor) if kind == "capsule" else tensor)
    np.testing.assert_array_equal(
        bm.model_.theta, gb.BoltzmannMachine(learner="mple", device=device).fit(spins()).model_.theta
    )


# What small fits of are exact sums without a twin, or closed forms.
ON_THE_CPU = ("gaussian", "higher-order", "mrf", "ordinal", "potts")


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if not ESTIMATORS.trait(name, "epochs")])
def test_every_estimator_learns_and_answers_on_a_device(name, device):
    one, there = small(name).fit(table(name)), small(name, device=device, precision="float64")
    with pytest.warns(gb.errors.DeviceWarning) if name in ON_THE_CPU else nullcontext():
        other = there.fit(table(name))
    assert other.result_.provenance["device"].startswith(device)
    np.testing.assert_allclose(other.model_.theta, one.model_.theta, atol=1e-5)
    assert np.shape(other.sample(5)) == np.shape(one.sample(5))
    assert other.log_partition() == pytest.approx(one.log_partition(), abs=1e-3)


# -- Gibbs ------------------------------------------------------------------------------------------------------------
def test_philox_gives_the_published_words():
    from gibbsian.backends.torch.philox import philox

    known = {
        (0, 0, 0, 0, 0, 0): (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
        (0xFFFFFFFF,) * 6: (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0): (
            0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1,
        ),
    }  # fmt: skip
    for words, drawn in known.items():
        parts = [torch.tensor([word]) for word in words]
        assert tuple(int(word) for word in philox(tuple(parts[:4]), (parts[4], parts[5]))) == drawn


GRAPHS = {"dense": gb.graphs.complete(4), "grid": gb.graphs.grid(8, 9)}


def random_model(kind: str, variables=SPINS) -> gb.Model:
    rng, graph = np.random.default_rng(5), GRAPHS[kind]
    return gb.PairwiseFamily.model(
        graph, rng.normal(0, 0.4, graph.n_nodes), rng.normal(0, 0.4, graph.n_edges), variables
    )


def swept(model, device, n_chains=6, steps=(3,), clamped=None, sampler="gibbs"):
    with on_device(device):
        kernel = gb.sampling.kernel_for(model.family, sampler, clamped)
        states = np.random.default_rng(0).integers(0, 2, (n_chains, model.n_variables))
        chains = kernel.init(n_chains, gb.rng.Key.of(1), states)
        for n_sweeps in steps:
            chains, info = kernel.step(model.theta, chains, n_sweeps)
    return chains.states, info


@pytest.mark.parametrize("clamped", [None, "all", "each"])
def test_dense_chains_reach_the_exact_distribution(clamped, scores, device):
    model, n_chains = random_model("dense", scores), 20_000
    mask = None if clamped is None else np.array([False, True, False, False])
    held = np.tile(mask, (n_chains, 1)) if clamped == "each" else mask
    states, info = swept(model, device, n_chains, (15,), held)
    if clamped:
        np.testing.assert_array_equal(states[:, 1], np.random.default_rng(0).integers(0, 2, (n_chains, 4))[:, 1])
        states = states[states[:, 1] == 1]
    counts = np.bincount(states @ [8, 4, 2, 1], minlength=16)
    shares = gb.inference.exact(model).marginal(range(4)).ravel()
    shares = np.where((np.arange(16) & 4 > 0) | (clamped is None), shares, 0.0)
    expected = len(states) * shares / shares.sum()
    squares = (counts - expected)[expected > 0] ** 2 / expected[expected > 0]
    assert squares.sum() < (37.7 if clamped is None else 24.3)  # one in a thousand of chi-square with 15, or 7
    assert 0.2 < info.acceptance < 0.5


@pytest.mark.parametrize("sampler", ["gibbs", "chromatic"])
def test_chains_of_a_lattice_have_its_moments(sampler, device):
    model = random_model("grid")
    states, _ = swept(model, device, 3000, (20,), sampler=sampler)
    truth = gb.inference.exact(model).moments
    scores = (model.family.mean_statistics(states) - truth) / np.sqrt((1.0 - truth**2) / 3000)
    assert np.abs(scores).max() < 4.5
    assert 0.8 < scores.std() < 1.2


@pytest.mark.parametrize("kind", list(GRAPHS))
def test_a_chain_depends_on_its_own_stream_only(kind, device):
    model = random_model(kind)
    many, few = swept(model, device, 6, (5,))[0], swept(model, device, 6, (2, 1, 2))[0]
    np.testing.assert_array_equal(many, few)
    with on_device(device):
        kernel = gb.sampling.kernel_for(model.family)
        starts = np.random.default_rng(0).integers(0, 2, (6, model.n_variables))[:2]
        alone = kernel.init(2, gb.rng.Key.of(1), starts)
        np.testing.assert_array_equal(kernel.step(model.theta, alone, 5)[0].states, many[:2])


# -- sums -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("kind", list(GRAPHS))
@pytest.mark.parametrize("rule", ["1", "s2"])
def test_spatial_integrals(rule, kind, grouped, scores, device, monkeypatch):
    """Biases, pairs, members beside one end and between both, in several parts."""
    model = random_model(kind, scores)
    draws = np.random.default_rng(2).integers(0, 2, (5, 40, model.n_variables))
    samples = draws if grouped else draws.reshape(-1, model.n_variables)
    regions = gb.expectations.IndependentNeighbours() if rule == "s2" else gb.expectations.Neighbourhood(1)
    one = gb.expectations.spatial_statistics(model, samples, regions)
    monkeypatch.setattr("gibbsian.backends.torch.spatial._CELLS", 200 * 50)
    with on_device(device, "float64"):
        other = gb.expectations.spatial_statistics(model, samples, regions)
    np.testing.assert_allclose(other.value, one.value, **CLOSE)
    np.testing.assert_allclose(other.stderr, one.stderr, **CLOSE)


def test_enumeration(scores, device):
    rng, graph = np.random.default_rng(3), gb.graphs.complete(13)
    model = gb.PairwiseFamily.model(graph, rng.normal(0, 0.3, 13), rng.normal(0, 0.3, graph.n_edges), scores)
    engine = gb.inference.Enumeration(model.family)
    one, other = engine.at(model.theta), engine.at(model.theta)
    with on_device(device):
        drawn = other.sample(20, np.random.default_rng(0))
        np.testing.assert_allclose(other.moments, one.moments, **CLOSE)
    assert other.log_partition == pytest.approx(one.log_partition, abs=1e-10)
    np.testing.assert_array_equal(drawn, one.sample(20, np.random.default_rng(0)))


@pytest.mark.parametrize("kind", [gb.GaussianMixture, gb.SoftKMeans, gb.VonMisesFisherMixture])
def test_mixtures(kind, device):
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(300, 3)) + 5 * rng.integers(0, 3, (300, 1))
    settings = {"n_components": 3, "random_state": 0, "max_iter": 5, "n_init": 1}  # starts may tie, steps may end
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gb.errors.ConvergenceWarning)
        weights = rng.uniform(0.5, 2.0, 300)
        one, other = (kind(**settings, device=place).fit(rows, sample_weight=weights) for place in ("cpu", device))
    np.testing.assert_allclose(other.model_.theta, one.model_.theta, **CLOSE)
    np.testing.assert_allclose(other.score_samples(rows), one.score_samples(rows), rtol=1e-9)


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_steps_of_k_means(holes, device):
    """Energies and means of both halves, where cells are missing and a class has lost its rows."""
    rng = np.random.default_rng(4)
    rows = 100.0 + rng.normal(size=(300, 3)) + 2 * rng.integers(0, 3, (300, 1))
    rows[rng.random(rows.shape) < holes] = np.nan
    start = np.array([[100.0, 100, 100], [101, 102, 103], [104, 104, 104], [900, 900, 900]])
    weights, settings = rng.uniform(0.5, 2.0, 300), {"start": start, "n_components": 4}
    one, other = (gb.HardKMeans(**settings, device=place).fit(rows, sample_weight=weights) for place in ("cpu", device))
    assert len(one.free_energies_) > 4
    np.testing.assert_allclose(other.free_energies_, one.free_energies_, rtol=1e-12)
    np.testing.assert_allclose(other.means_, one.means_, **CLOSE)
    np.testing.assert_array_equal(other.labels_, one.labels_)


@pytest.mark.parametrize("hard", [False, True])
def test_mixtures_of_sparse_rows(hard, device):
    """Rows of few numbers, as those of a mixture of machines without couplings are."""
    from gibbsian.backends.classes import blocks_of, e_step

    rng = np.random.default_rng(0)
    rows = scipy.sparse.random_array((300, 40), density=0.1, rng=rng, format="csr")
    weights, theta, offsets = rng.uniform(0.5, 2.0, 300), rng.normal(size=(4, 40)), rng.normal(size=4)
    energy, sums = e_step(blocks_of(rows, weights), theta, offsets, hard)
    with on_device(device):
        found, found_sums = e_step(blocks_of(rows, weights), theta, offsets, hard)
    assert found == pytest.approx(energy, rel=1e-12)
    for one, other in zip(sums, found_sums, strict=True):
        np.testing.assert_allclose(other, one, **CLOSE)


# -- full span --------------------------------------------------------------------------------------------------------
def bits(n: int = 12) -> np.ndarray:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 2, (400, n))
    x[:, 3] = x[:, 0] ^ x[:, 1] ^ (rng.random(400) < 0.1)
    x[:, 5] = np.where(rng.random(400) < 0.8, x[:, 4], x[:, 5])
    return x


@pytest.mark.parametrize("settings", [{}, {"l1": 0.01}, {"l2": 0.1, "l2_growth": 2.0}, {"dtype": "float32"}])
@pytest.mark.parametrize("learner", ["span-greedy", "span-newton"])
def test_full_span_chooses_the_same_functions(learner, settings, device):
    one, other = (
        gb.FullSpan(learner=learner, mdl_scale=0.3, device=place, **settings).fit(bits()) for place in ("cpu", device)
    )
    np.testing.assert_array_equal(other.model_.family.functions, one.model_.family.functions)
    assert one.model_.family.functions.size > 4
    # a move leads to a target; Newton steps end when they are small
    atol = 1e-4 if "dtype" in settings else 1e-10 if learner == "span-greedy" else 1e-7
    np.testing.assert_allclose(other.model_.theta, one.model_.theta, rtol=0, atol=atol)


@pytest.mark.parametrize("columns", [bits(8), np.column_stack([bits(6), np.arange(400) % 3])], ids=["bits", "others"])
def test_full_span_of_all_functions(columns, device):
    one, other = (gb.FullSpan(learner="span-dense", l2=0.1, device=place).fit(columns) for place in ("cpu", device))
    np.testing.assert_allclose(other.model_.theta, one.model_.theta, **CLOSE)


def test_a_full_span_checkpoint_resumes_on_the_device(device, tmp_path):
    settings = {"learner": "span-greedy", "mdl_scale": 0.3, "device": device}
    with pytest.warns(gb.errors.ConvergenceWarning):
        gb.FullSpan(**settings, max_iter=3, checkpoint=Checkpoint(tmp_path / "fit", every=3)).fit(bits())
    again = gb.FullSpan(**settings, checkpoint=Checkpoint(tmp_path / "fit", resume=True)).fit(bits())
    np.testing.assert_array_equal(again.model_.theta, gb.FullSpan(**settings).fit(bits()).model_.theta)


@pytest.mark.parametrize("chunk", [2**28, 2**7])
def test_walsh_hadamard(chunk, device, monkeypatch):
    from gibbsian.backends.numba.walsh import walsh_hadamard
    from gibbsian.backends.torch import span

    table = np.random.default_rng(7).normal(size=2**11)
    expected = table.copy()
    walsh_hadamard(expected)
    monkeypatch.setattr(span, "_CHUNK", chunk)
    tensor = torch.from_numpy(table).to("cpu" if device == "torch" else device)
    span.walsh_hadamard(tensor)
    np.testing.assert_allclose(tensor.cpu().numpy(), expected, atol=1e-10)
