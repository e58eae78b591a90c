"""Gibbs chains of tables and of higher-order machines through PyTorch: they stay at the exact distribution."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Variables
from gibbsian.backends.device import on_device
from gibbsian.estimators import ESTIMATORS
from systems import BINARY, SPINS, exact_law, functions_on, products_of_order, products_on
from systems import KINDS as FAMILIES

torch = pytest.importorskip("torch")
with pytest.MonkeyPatch.context() as patch:
    if not torch.cuda.is_available():
        patch.setenv("TRITON_INTERPRET", "1")  # which Triton's own functions ask for when they are loaded
    pytest.importorskip("triton")

TRIANGLE = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2)], 4)  # the last variable stands alone
KINDS = {
    "potts": lambda: gb.TablesFamily.potts(gb.graphs.grid(2, 2), Variables.categories((3, 2, 4, 2))),
    "tables": lambda: FAMILIES["tables"](TRIANGLE, Variables.categories((3, 2, 4, 2))),
    "order 4": lambda: products_of_order(5, 4, BINARY),
    "levels": lambda: products_on(gb.graphs.complete(3), Variables.ordinal([(-1, 0, 1), (0, 1), (0, 1, 2)])),
    "functions": lambda: functions_on(gb.graphs.complete(3), SPINS(3)),
}


@pytest.fixture(params=["torch", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    return request.param


def random_model(kind):
    family = KINDS[kind]()
    return gb.Model(family, np.random.default_rng(3).normal(0, 0.5, family.n_parameters))


def swept(model, device, states, steps=(2,), clamped=None, sampler="gibbs"):
    """Return the chains after some sweeps, and what the last ones did."""
    with on_device(device):
        kernel = gb.sampling.kernel_for(model.family, sampler, clamped)
        chains = kernel.init(len(states), gb.rng.Key.of(1), states)
        for n_sweeps in steps:
            chains, info = kernel.step(model.theta, chains, n_sweeps)
    return chains.states, info


def scores(model, states, given=None):
    """Return how far counts of states are from the exact distribution, in standard deviations of chi-square."""
    listed, shares, _ = exact_law(model)
    if given is not None:
        kept = listed[:, 1] == given
        listed, shares = listed[kept], shares[kept] / shares[kept].sum()
    numbers = {state.tobytes(): k for k, state in enumerate(listed)}
    counts = np.bincount([numbers[state.tobytes()] for state in states.astype(listed.dtype)], minlength=len(listed))
    expected = len(states) * shares
    return (((counts - expected) ** 2 / expected).sum() - len(listed) + 1) / np.sqrt(2.0 * (len(listed) - 1))


@pytest.mark.parametrize("sampler", ["gibbs", "chromatic"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_chains_that_start_at_the_exact_distribution_stay_there(kind, sampler, device):
    model = random_model(kind)
    starts = gb.inference.exact(model).sample(8_000, np.random.default_rng(2))
    ends, info = swept(model, device, starts, sampler=sampler)
    assert scores(model, ends) < 4.5
    # as often as on the CPU, up to the noise of both
    assert info.acceptance == pytest.approx(swept(model, "cpu", starts, sampler=sampler)[1].acceptance, abs=0.015)


@pytest.mark.parametrize("each", [False, True], ids=["all", "each"])
@pytest.mark.parametrize("kind", ["potts", "order 4"])
def test_clamped_variables_keep_their_value_and_condition_the_others(kind, each, device):
    model = random_model(kind)
    starts = np.ones((3_000, model.n_variables), np.int8)
    mask = np.arange(model.n_variables) == 1
    ends, info = swept(model, device, starts, (10,), np.tile(mask, (3_000, 1)) if each else mask)
    np.testing.assert_array_equal(ends[:, 1], starts[:, 1])
    assert scores(model, ends, given=starts[0, 1]) < 4.5
    assert 0.1 < info.acceptance < 0.6


@pytest.mark.parametrize("kind", ["potts", "order 4"])
def test_a_chain_depends_on_its_own_stream_only(kind, device, monkeypatch):
    model, starts = random_model(kind), gb.inference.exact(random_model(kind)).sample(9, np.random.default_rng(2))
    ends, _ = swept(model, device, starts, (5,))
    monkeypatch.setattr("gibbsian.backends.torch.table_gibbs.CELLS", 100)  # few chains at a time
    np.testing.assert_array_equal(swept(model, device, starts, (2, 1, 2))[0], ends)
    np.testing.assert_array_equal(swept(model, device, starts[:2], (5,))[0], ends[:2])


@pytest.mark.parametrize("clamped", [None, "all", "each"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_triton_draws_the_same_codes(kind, clamped, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("kernels are compiled for the card of this machine, and tested there")
    rng, found = np.random.default_rng(1), []
    for number in "01":
        monkeypatch.setenv("TRITON_INTERPRET", number)
        model = random_model(kind)
        starts = gb.inference.exact(model).sample(20, np.random.default_rng(2))
        held = {None: None, "all": np.arange(model.n_variables) == 1, "each": rng.random(starts.shape) < 0.3}[clamped]
        rng = np.random.default_rng(1)
        found.append(swept(model, "torch", starts, clamped=held))
    np.testing.assert_array_equal(found[1][0], found[0][0])
    assert found[1][1] == found[0][1]
    assert (found[0][0] != starts).any()


def test_memory_is_predicted_and_refused(monkeypatch):
    def refuse(n_bytes, what, instead):
        raise gb.errors.TooExpensiveError(f"{what} needs {n_bytes}", instead)

    monkeypatch.setattr("gibbsian.backends.torch.table_gibbs.require_card_memory", refuse)
    model = random_model("potts")
    with pytest.raises(gb.errors.TooExpensiveError, match="7 chains of 4 variables needs"):
        swept(model, "torch", np.zeros((7, 4), np.int8))


@pytest.mark.parametrize("learner", ["pcd", "cd"])
@pytest.mark.parametrize("name", ["potts", "mrf", "higher-order"])
@pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
def test_learning_by_chains_and_sampling_ask_for_twins(name, learner, device, recwarn):
    rows = np.random.default_rng(0).integers(0, 2, (60, 4))
    machine = ESTIMATORS.create(name, learner=learner, max_iter=3, random_state=0, device=device).fit(rows)
    assert not [one for one in recwarn if issubclass(one.category, gb.errors.DeviceWarning)]
    assert machine.sample(7).shape == (7, 4)
