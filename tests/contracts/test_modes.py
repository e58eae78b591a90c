"""The most probable state of every registered model, against lists of all states, given evidence too."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import gibbsian as gb
from gibbsian.answers import answers_about
from gibbsian.answers.modes import Search
from gibbsian.errors import ArgumentError
from gibbsian.estimators import ESTIMATORS
from gibbsian.models import FAMILIES, BinaryUnits, CategoricalUnits, SpinUnits
from gibbsian.models.base import Layered, Model
from gibbsian.models.layers.belief_network import BeliefNetworkFamily
from gibbsian.models.mixtures.base import MixtureFamily
from gibbsian.models.mixtures.categorical import LatentClassFamily
from gibbsian.models.mixtures.gaussian import GaussianMixtureFamily
from gibbsian.models.mixtures.of_models import MixtureOfFamily
from gibbsian.models.mixtures.von_mises_fisher import VonMisesFisherMixtureFamily, unit_rows
from gibbsian.models.variables import Variables
from layered_systems import all_codes, network_of, random_machine, rows_of, stack
from systems import (
    BINARY,
    SPINS,
    all_states,
    dataset_of,
    functions_on,
    models_with_variables,
    name_of,
    random_model,
    random_model_of,
)

GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)
EVIDENCE = (None, (1,), (0, 3), (0, 1, 2, 3, 4))


def _flat(kind, variables):
    return lambda rng: random_model_of(kind, GRAPH, rng, variables, scale=1.0)


def _hidden(rng):
    return random_model(gb.graphs.complete(7), rng, scale=1.0, n_hidden=2)


def _hidden_span(rng):
    functions = functions_on(gb.graphs.complete(6), BINARY).functions
    family = gb.FullSpanFamily.uniform(BINARY(5), hidden=(2,)).append(functions)
    return Model(family, rng.normal(size=family.n_parameters))


def _stack(kind, visible, rng):
    layers = (visible, SpinUnits(3), BinaryUnits(2))
    if kind == "deep":
        zeros = stack(layers)
        return zeros.replace(rng.normal(size=zeros.theta.size))
    return network_of([random_machine(a, b, rng) for a, b in pairwise(layers)])


def _classes(rng):
    family = LatentClassFamily(3, Variables.categories((2, 3, 2, 3, 2)))
    parts = [rng.dirichlet(np.ones(q), 3) for q in (2, 3, 2, 3, 2)]
    return Model(family, family.join(rng.dirichlet(np.ones(3)), np.hstack(parts)))


def _machines(rng):
    rows = (rng.random((60, 5)) < rng.choice([0.2, 0.8], (60, 1))).astype(int)
    return (
        gb.MachineMixture(2, machine=gb.BoltzmannMachine(l2=0.1), random_state=0, max_iter=3, tol=1.0).fit(rows).model_
    )


FIVE = CategoricalUnits((2, 3, 2, 2, 3))
CASES = {
    **{f"{kind}-{name_of(variables)}": _flat(kind, variables) for kind, variables in models_with_variables(5)},
    "pairwise-hidden": _hidden,
    "full-span-hidden": _hidden_span,
    "stack-restricted": lambda rng: random_machine("spin", "binary", rng),
    "stack-restricted-categories": lambda rng: random_machine("categorical", "categorical", rng),
    "stack-deep": lambda rng: _stack("deep", BinaryUnits(5), rng),
    "stack-deep-categories": lambda rng: _stack("deep", FIVE, rng),
    "belief-network": lambda rng: _stack("network", BinaryUnits(5), rng),
    "categorical-mixture": _classes,
    "machine-mixture": _machines,
}
PEAKED = ("gaussian-mixture", "k-means", "vmf-mixture")  # densities, below
pytestmark = pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")


@pytest.fixture(params=CASES)
def model(request, rng):
    return CASES[request.param](rng)


def visible_rows(model):
    """All rows of the columns as data."""
    if isinstance(model.family, Layered):
        return rows_of(model.visible, all_codes(model.visible))
    mixed = isinstance(model.family, MixtureFamily)
    columns = model.family.columns if mixed else model.variables.take(range(model.n_variables - model.n_hidden))
    return dataset_of(all_states(columns), columns)


def truth_of(model, rows):
    """The log-weight of every row, hidden units summed out term by term."""
    if isinstance(model.family, MixtureOfFamily):
        return logsumexp(answers_about(model).log_joint(rows), axis=1)
    if isinstance(model.family, MixtureFamily):
        return model.family.log_evidence(model.theta, rows.states)
    if isinstance(model.family, Layered):
        return model.log_evidence(model.visible.encode(rows.states))
    if not model.n_hidden:
        return model.log_weights(rows.states)
    hidden = all_states(model.variables.take(range(rows.n_variables, model.n_variables)))
    whole = np.hstack([np.repeat(rows.states, len(hidden), axis=0), np.tile(hidden, (rows.n_states, 1))])
    return logsumexp(model.log_weights(whole).reshape(rows.n_states, -1), axis=1)


def given(rows, nodes, number=3):
    """One row of which only some cells are known; none of None."""
    row = rows.take([number])
    missing = np.ones(row.states.shape, bool)
    missing[:, list(nodes or ())] = False
    return replace(row, missing=missing if missing.any() else None)


def test_every_registered_model_is_here():
    tried = {name for name in FAMILIES if any(case.startswith(name) for case in CASES)}
    densities = {"quadrature", "gaussian"}  # in the tests of their estimators
    assert tried | set(PEAKED) | densities == {*FAMILIES}


@pytest.mark.parametrize("method", ["auto", "exact", "annealing"])
def test_is_the_largest_of_all_rows_that_agree_with_the_evidence(model, rng, method):
    rows = visible_rows(model)
    truth = truth_of(model, rows)
    for nodes in EVIDENCE[: 2 if method == "annealing" else None]:
        known = given(rows, nodes)
        agree = (rows.states[:, list(nodes or ())] == known.states[:, list(nodes or ())]).all(axis=1)
        found = answers_about(model).most_probable(known, Search(rng, method=method, restarts=4))
        best = truth[agree].max()
        assert found.log_weights[0] == pytest.approx(best, abs=1e-9)
        assert found.bounds[0] >= best - 1e-9
        at = (rows.states == found.rows[0]).all(axis=1)
        assert truth[at & agree] == pytest.approx(best, abs=1e-9)
        assert found.exact[0] or method == "annealing"


def test_several_are_the_largest_in_order(model, rng):
    rows = visible_rows(model)
    found = answers_about(model).most_probable(given(rows, None), Search(rng, n_states=5))
    np.testing.assert_allclose(found.log_weights, np.sort(truth_of(model, rows))[::-1][:5], atol=1e-9)
    assert len({tuple(row) for row in found.rows.tolist()}) == 5


@pytest.mark.parametrize("method", ["auto", "annealing"])
def test_joint_states_are_the_largest_of_columns_and_hidden_units(model, rng, method):
    rows, answers = visible_rows(model), answers_about(model)
    for nodes in EVIDENCE[:2]:
        known = given(rows, nodes)
        agree = (rows.states[:, list(nodes or ())] == known.states[:, list(nodes or ())]).all(axis=1)
        found = answers.most_probable(known, Search(rng, method=method), joint=True)
        at = (rows.states == found.rows[0]).all(axis=1)
        if isinstance(model.family, MixtureFamily):
            scores = answers.log_joint(rows)
            assert scores[at, found.hidden[0]] == found.log_weights == pytest.approx(scores[agree].max(), abs=1e-9)
            continue
        whole = answers.joint()
        codes = all_states(whole.variables)
        logs, own, n = whole.log_weights(codes), rows.states[agree], rows.n_variables
        agrees = np.isin(codes[:, :n] @ 10 ** np.arange(n), own @ 10 ** np.arange(n))
        assert found.log_weights[0] == pytest.approx(logs[agrees].max(), abs=1e-9)
        assert at.sum() == 1
        assert agree[at]
        known_values = answers.hidden_variables([f"x{i}" for i in range(n)]).values()
        hidden = [values.index(value) for values, value in zip(known_values, found.hidden[0], strict=True)]
        row = np.concatenate([found.rows[0], np.array(hidden, np.int8)])[None]
        assert whole.log_weights(row)[0] == pytest.approx(found.log_weights[0], abs=1e-9)


# -- densities --------------------------------------------------------------------------------------------------------
def peak_by_search(log_density, starts, free):
    """The largest density over the free cells, by a general optimiser from many starts."""

    def minus(part, row):
        return -log_density(np.where(free, _put(part, row, free), row)[None])[0]

    return max(-minimize(minus, row[free], (row,), tol=1e-12).fun for row in starts)


def _put(part, row, free):
    whole = row.copy()
    whole[free] = part
    return whole


@pytest.mark.parametrize("nodes", [None, (1,)])
def test_a_mixture_of_gaussians_is_climbed_to_its_highest_peak(nodes, rng):
    means = rng.normal(size=(4, 3)) * 0.8  # close together, so that the peak is not a mean
    family = GaussianMixtureFamily(4, 3)
    model = Model(family, family.join(rng.dirichlet(np.ones(4)), means, rng.uniform(0.3, 1.0, 4)))
    known = given(gb.Dataset.read(rng.normal(size=(5, 3)), coding="real"), nodes)
    found, row = answers_about(model).most_probable(known, Search(rng)), known.states[0]
    free = np.array([j not in (nodes or ()) for j in range(3)])
    starts = np.where(free, np.vstack([means, rng.normal(size=(20, 3))]), row)
    density = partial(family.log_evidence, model.theta)
    assert found.log_weights[0] == pytest.approx(peak_by_search(density, starts, free), abs=1e-7)
    assert found.bounds[0] >= found.log_weights[0]
    assert np.array_equal(found.rows[0][~free], row[~free])


def test_a_mixture_of_directions_is_climbed_to_its_highest_peak(rng):
    family = VonMisesFisherMixtureFamily(3, 3)
    theta = family.join(rng.dirichlet(np.ones(3)), unit_rows(rng.normal(size=(3, 3))), np.ones(3) * 3)
    model = Model(family, theta)
    rows = gb.Dataset.read(unit_rows(rng.normal(size=(4, 3))), coding="real")
    found = answers_about(model).most_probable(given(rows, None), Search(rng))
    many = unit_rows(rng.normal(size=(200_000, 3)))
    best = family.log_evidence(theta, many).max()
    assert best - 1e-9 <= found.log_weights[0] <= best + 1e-3
    assert found.bounds[0] >= found.log_weights[0]
    with pytest.raises(gb.errors.MissingValuesError, match="unit norm"):
        answers_about(model).most_probable(given(rows, (1,)), Search(rng))


def test_k_means_completes_from_the_nearest_mean(rng):
    model = gb.HardKMeans(3, random_state=0).fit(rng.normal(size=(50, 2))).model_
    known = given(gb.Dataset.read(rng.normal(size=(4, 2)), coding="real"), (0,))
    found = answers_about(model).most_probable(known, Search(rng), joint=True)
    nearest = np.abs(model.parts.means[:, 0] - known.states[0, 0]).argmin()
    assert found.hidden[0] == nearest
    assert found.rows[0].tolist() == [known.states[0, 0], model.parts.means[nearest, 1]]


@pytest.mark.parametrize("nodes", [None, (1,)])
def test_a_restricted_machine_of_real_rows_is_climbed(nodes, rng):
    model = random_machine("gaussian", "binary", rng, n_visible=3, scale=1.5)
    known = given(gb.Dataset.read(rng.normal(size=(5, 3)), coding="real"), nodes)
    found, row = answers_about(model).most_probable(known, Search(rng)), known.states[0]
    free = np.array([j not in (nodes or ()) for j in range(3)])
    starts = np.where(free, rng.normal(size=(30, 3)) * 3, row)
    assert found.log_weights[0] == pytest.approx(peak_by_search(model.log_evidence, starts, free), abs=1e-6)
    with pytest.raises(ArgumentError, match="one peak"):
        answers_about(model).most_probable(known, Search(rng, n_states=2))


def test_a_deep_machine_of_real_rows_is_refused_in_words(rng):
    layers = (gb.models.GaussianUnits(2), BinaryUnits(2), BinaryUnits(2))
    rows = gb.Dataset.read(rng.normal(size=(5, 2)), coding="real")
    with pytest.raises(ArgumentError, match="restricted machine"):
        answers_about(stack(layers)).most_probable(given(rows, None), Search(rng))


# -- temperature ------------------------------------------------------------------------------------------------------
def test_another_temperature_is_the_same_energies_over_it(model, rng):
    if isinstance(model.family, MixtureFamily):
        return  # which is refused at the door: a mixture has no energies
    if isinstance(model.family, BeliefNetworkFamily):
        with pytest.raises(ArgumentError, match="temperature"):
            model.at(0.5)
        return
    cold = model.at(50.0)  # nothing is left of it but its best state
    known = given(visible_rows(model), None)
    best = answers_about(cold).most_probable(known, Search(rng))
    drawn, _ = answers_about(cold).sample(200, rng)
    assert (drawn == best.rows[0]).all(axis=1).mean() > 0.9
    states = all_states(model.variables)
    np.testing.assert_allclose(0.02 * cold.log_weights(states), model.log_weights(states), atol=1e-9)


def test_every_estimator_can_be_asked():
    assert all(hasattr(ESTIMATORS.factory(name), "most_probable") for name in ESTIMATORS)


def test_pairwise_machines_as_spins_and_as_bits_have_the_same_best_state(rng):
    spins = random_model(gb.graphs.complete(12), rng, SPINS, scale=1.0)
    bits, _ = spins.family.recode(spins.theta, BINARY)
    assert bits.variables == BINARY(12)
    best = [answers_about(m).most_probable(_nothing(m), Search(rng, method="annealing")).rows[0] for m in (spins, bits)]
    assert np.array_equal(*best)


def _nothing(model):
    known = dataset_of(np.zeros((1, model.n_variables), np.int8), model.variables)
    return replace(known, missing=np.ones(known.states.shape, bool))


def test_searches_check_their_method(rng):
    with pytest.raises(ArgumentError, match="auto, exact, annealing"):
        Search(rng, method="best")


def test_rows_with_and_without_missing_cells_come_in_any_order():
    machine = gb.BoltzmannMachine(learner="mle", l2=0.1).fit([[0, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 0], [1, 1, 1]])
    holed, whole = [0, None, 1], [0, 1, 1]
    first, second = machine.most_probable([holed, whole]), machine.most_probable([whole, holed])
    assert np.array_equal(first.rows, second.rows[::-1])
