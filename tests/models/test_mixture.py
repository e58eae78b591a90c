"""Models with one hidden label: the contract, and missing cells against sums and integrals by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

import gibbsian as gb
from gibbsian.answers import answers_about
from gibbsian.domain import SPIN, Categories
from gibbsian.learners import EM, run
from gibbsian.models import MODELS
from gibbsian.models.class_shares import log_joint, posterior
from gibbsian.models.independent_columns import IndependentColumnsMixture
from gibbsian.models.machine_mixture import MachineMixtureModel
from gibbsian.models.spherical_gaussians import GaussianMixtureModel, KMeansModel, variance_schedule
from gibbsian.models.von_mises_fisher import VonMisesFisherMixtureModel, unit_rows
from systems import all_states

WEIGHTS = np.array([0.3, 0.7])


def gaussians(rng, n=3) -> GaussianMixtureModel:
    return GaussianMixtureModel(WEIGHTS, rng.normal(size=(2, n)), np.array([0.5, 2.0]), rng.normal(size=n))


def columns(rng, sizes=(2, 3, 4)) -> IndependentColumnsMixture:
    parts = [rng.dirichlet(np.ones(size), 2) for size in sizes]
    return IndependentColumnsMixture(WEIGHTS, np.column_stack(parts), Categories(sizes))


def models(rng) -> dict:
    directions = VonMisesFisherMixtureModel(WEIGHTS, unit_rows(rng.normal(size=(2, 3))), np.array([2.0, 9.0]))
    means = KMeansModel.unplaced(2, 3).with_shifts(rng.normal(size=(2, 3)))
    two_valued = IndependentColumnsMixture(WEIGHTS, rng.dirichlet(np.ones(2), (2, 4)).reshape(2, 8), SPIN)
    return {
        "gaussian": gaussians(rng),
        "vmf": directions,
        "k-means": means,
        "columns": columns(rng),
        "spins": two_valued,
    }


@pytest.mark.parametrize("kind", ["gaussian", "vmf", "k-means", "columns", "spins"])
def test_keeps_what_all_models_have(kind, rng):
    model = models(rng)[kind]
    assert MODELS.factory(type(model).registered_name) is type(model)
    again = model.replace(model.theta)
    np.testing.assert_array_equal(again.theta, model.theta)
    assert model.penalised.shape == model.theta.shape
    rows, classes = model.sample(20, rng)
    assert rows.shape == (20, model.n_variables)
    assert set(classes) <= {0, 1}
    np.testing.assert_array_equal(again.log_weights(rows), model.log_weights(rows))
    structure, arrays = model.to_parts()
    rebuilt = type(model).from_parts(structure, arrays, model.domain)
    np.testing.assert_array_equal(rebuilt.log_weights(rows), model.log_weights(rows))
    other = model.replace(model.theta * 1.1)
    assert not np.array_equal(other.theta, model.theta)


@pytest.mark.parametrize("kind", ["columns", "spins"])
def test_discrete_probabilities_add_up_to_one(kind, rng):
    model = models(rng)[kind]
    states = all_states(model.n_variables, model.domain)
    assert np.exp(model.log_weights(states)).sum() == pytest.approx(1.0)


def test_a_gaussian_mixture_by_its_definition(rng):
    model = gaussians(rng)
    rows = rng.normal(size=(5, 3))
    densities = sum(
        w * norm.pdf(rows, mean, np.sqrt(v)).prod(axis=1)
        for w, mean, v in zip(model.weights, model.means, model.variances, strict=True)
    )
    np.testing.assert_allclose(model.log_weights(rows), np.log(densities), rtol=1e-12)


# -- missing cells ----------------------------------------------------------------------------------------------------
def test_missing_numbers_are_integrated_out(rng):
    model = gaussians(rng, n=2)
    row, missing = np.array([[0.4, 0.0]]), np.array([[False, True]])

    def density(x):
        return float(np.exp(model.log_weights(np.array([[0.4, x]])))[0])

    assert np.exp(model.log_weights(row, missing))[0] == pytest.approx(quad(density, -30, 30)[0], rel=1e-9)
    mean = quad(lambda x: x * density(x), -30, 30)[0] / quad(density, -30, 30)[0]
    answers = answers_about(model)
    data = gb.Dataset.of_states(row, "real", missing=missing)
    assert answers.cell_means(data)[0, 1] == pytest.approx(mean, rel=1e-9)
    assert answers.completed_states(data, rng)[0] == pytest.approx([0.4, mean])


def test_missing_labels_are_summed_out(rng):
    model = columns(rng)
    states = all_states(3, model.domain)
    law = np.exp(model.log_weights(states))
    row, missing = np.array([[1, 0, 2]], np.int8), np.array([[False, True, False]])
    agree = (states[:, 0] == 1) & (states[:, 2] == 2)
    assert np.exp(model.log_weights(row, missing))[0] == pytest.approx(law[agree].sum())
    coding = gb.domain.CategoryCoding.of_labels([tuple(range(size)) for size in (2, 3, 4)])
    data = gb.Dataset.of_states(row, coding, missing=missing)
    cells = answers_about(model).cell_probabilities(data, rng)
    np.testing.assert_allclose(cells[0, 1, :3], law[agree] / law[agree].sum())
    assert cells[0, 0].tolist() == [0, 1, 0, 0]
    assert cells[0, 2].tolist() == [0, 0, 1, 0]


def test_the_pseudolikelihood_is_the_sum_of_conditionals(rng):
    model = columns(rng)
    states = all_states(3, model.domain)
    law = np.exp(model.log_weights(states))
    coding = gb.domain.CategoryCoding.of_labels([tuple(range(size)) for size in (2, 3, 4)])
    row = np.array([[1, 2, 0]], np.int8)
    here = law[(states == row).all(axis=1)][0]
    expected = sum(
        np.log(here / law[(np.delete(states, i, 1) == np.delete(row, i, 1)).all(axis=1)].sum()) for i in range(3)
    )
    assert answers_about(model).log_pseudolikelihood(gb.Dataset.of_states(row, coding)) == pytest.approx(expected)


def holes_of(rng, n_rows=300, share=0.3):
    """Two clouds of numbers with holes, no row without a cell."""
    rows = rng.normal(size=(n_rows, 3)) * 0.8 + 3.0 * (np.arange(n_rows) % 2)[:, None]
    rows[rng.random(rows.shape) < share] = np.nan
    rows[np.isnan(rows).all(axis=1), 0] = 0.5
    return rows


@pytest.mark.parametrize("variance", ["free", "tied", 0.6])
def test_em_with_missing_numbers_ends_at_a_maximum(variance, rng):
    """The gradient of the likelihood of the present cells, by finite differences, vanishes in what is learned."""
    data = gb.Dataset.read(holes_of(rng), coding="real", sample_weight=rng.random(300) + 0.5)
    model = GaussianMixtureModel.unplaced(2, 3, variance=variance, free_weights=False)
    result = run(EM(), model, data, rng, max_iter=5000, tol=1e-14)
    energies, fitted = result.trace.column("value"), result.model
    assert (np.diff(energies) <= 0).all()

    def likelihood(theta):
        return float(data.weights @ fitted.replace(theta).log_weights(data.states, data.missing))

    assert likelihood(fitted.theta) == pytest.approx(-energies[-1])
    moves = list(np.eye(fitted.theta.size)[2:8])  # the means
    if variance == "free":
        moves += list(np.eye(fitted.theta.size)[8:])
    elif variance == "tied":
        moves.append(np.repeat([0.0, 1.0], [8, 2]))
    for move in moves:
        slope = (likelihood(fitted.theta + 1e-5 * move) - likelihood(fitted.theta - 1e-5 * move)) / 2e-5
        assert abs(slope) < 1e-3


def test_k_means_with_missing_cells_is_the_limit_of_soft_k_means(rng):
    data = gb.Dataset.read(holes_of(rng), coding="real")
    hard_steps = KMeansModel.unplaced(2, 3).em_steps(data)
    start = hard_steps.start(rng)
    hard = run(EM(), start, data, rng, max_iter=500, tol=0.0)
    model = GaussianMixtureModel.unplaced(2, 3, variance=1e-6, free_weights=False)
    soft = run(EM(), model.em_steps(data).adopted(model.with_shifts(start.means)), data, rng, max_iter=500, tol=0.0)
    np.testing.assert_allclose(soft.model.means, hard.model.means, atol=1e-8)
    # the energy is the sum over present cells
    distances = np.where(data.missing[:, None], 0.0, data.states[:, None] - hard.model.means) ** 2
    assert hard.trace.column("value")[-1] == pytest.approx(data.weights @ distances.sum(axis=2).min(axis=1))
    np.testing.assert_array_equal(answers_about(hard.model).classes(data), distances.sum(axis=2).argmin(axis=1))


def test_holes_everywhere_and_nowhere_are_one_code(rng):
    """A mask without a hole gives the sums of complete rows."""
    model, rows = gaussians(rng), rng.normal(size=(20, 3))
    none = np.zeros(rows.shape, dtype=bool)
    np.testing.assert_allclose(model.log_joint(rows, none), model.log_joint(rows), rtol=1e-12)
    np.testing.assert_allclose(model.log_joint(rows, ~none), np.tile(np.log(WEIGHTS), (20, 1)))


def test_units_move_in_present_cells_only(rng):
    rows = holes_of(rng)
    units = gb.OnlineKMeans(2, normalize=False, random_state=0).fit(rows)
    assert np.abs(np.sort(units.means_.mean(axis=1)) - [0.0, 3.0]).max() < 0.5
    before, cells = units.means_.copy(), units.model_.cells.copy()
    winner = int(units.predict([[3.0, np.nan, np.nan]])[0])
    units.partial_fit([[3.0, np.nan, np.nan]])
    expected = before.copy()
    expected[winner, 0] += (3.0 - before[winner, 0]) / (cells[winner, 0] + 1.0)
    np.testing.assert_allclose(units.means_, expected)


def test_a_mixture_of_machines_leaves_missing_cells_to_them(rng):
    rows = (rng.random((200, 4)) < np.where(np.arange(200) % 2, 0.2, 0.8)[:, None]).astype(float)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    machine = gb.BoltzmannMachine("empty", learner="mle", tol=1e-10)
    fitted = gb.MachineMixture(2, machine=machine, n_init=1, tol=1e-9, random_state=0).fit(rows)
    named = gb.MachineMixture(2, smoothing=0.0, tol=1e-9, n_init=3, random_state=0).fit(rows)
    assert fitted.score(rows) == pytest.approx(named.score(rows), abs=1e-5)
    np.testing.assert_array_equal(fitted.impute(rows), named.impute(rows))
    cells = fitted.cell_probabilities(rows)
    np.testing.assert_allclose(cells, named.cell_probabilities(rows)[:, :, 1], atol=2e-3)


def test_shares_of_rows_that_no_class_explains():
    scores = np.array([[-1e20, -1e20], [0.0, -np.inf], [-np.inf, -np.inf]])
    np.testing.assert_array_equal(posterior(scores), [[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])
    assert log_joint(np.zeros((1, 1)), np.zeros((2, 1)), np.log([0.5, 0.5])).shape == (1, 2)
    assert logsumexp(np.log(WEIGHTS)) == pytest.approx(0.0)


@pytest.mark.parametrize("variance", ["free", "tied"])
def test_parameters_of_spherical_gaussians_are_counted_as_they_can_move(rng, variance):
    model = gb.GaussianMixture(2, variance=variance, random_state=0).fit(rng.normal(size=(60, 3))).model_
    expected = 2 * 3 + {"free": 2, "tied": 1}[variance] + 1
    assert model.n_parameters == model.free_directions().shape[1] == expected


def test_the_energy_of_a_row_is_minus_its_log_density(rng):
    rows = rng.normal(size=(20, 2))
    model = gb.GaussianMixture(n_components=2, random_state=0).fit(rows).model_
    np.testing.assert_allclose(model.energy(rows), -logsumexp(model.log_joint(rows), axis=1), atol=1e-12)


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 3)])
def test_interactions_of_classes_are_changes_of_probability(sizes, rng):
    probabilities = [rng.dirichlet(np.ones(size), 3) for size in sizes]
    weights = rng.dirichlet(np.ones(3))
    domain = SPIN if set(sizes) == {2} else Categories(sizes)
    model = IndependentColumnsMixture(weights, np.hstack(probabilities), domain)
    for i, own in enumerate(probabilities):
        change = own - weights @ own
        expected = change[:, 1] if set(sizes) == {2} else np.abs(change).sum(axis=1) / 2
        found = model.interactions()
        strengths = dict(zip(found.scopes, found.strengths.tolist(), strict=True))
        of_column = [strength for scope, strength in strengths.items() if i in scope]
        np.testing.assert_allclose(sorted(of_column), sorted(expected), atol=1e-12)


def test_a_row_with_holes_moves_to_a_nearer_mean_only(rng):
    rows = np.array([[0.0, np.nan], [5.0, 5.0], [np.nan, 5.0], [0.0, 0.0]])
    data = gb.Dataset.read(rows, coding="real")
    steps = KMeansModel.unplaced(2, 2).em_steps(data)
    placed = steps.from_means(np.array([[0.0, 0.0], [5.0, 5.0]]))
    energy, found = steps.expect(placed)
    again, moved = steps.expect(placed, before=found._replace(labels=1 - found.labels))
    np.testing.assert_array_equal(moved.labels, found.labels)
    assert again == energy
    even = steps.from_means(np.array([[1.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(steps.expect(even, before=found)[1].labels, found.labels)  # no nearer: stays


def test_interactions_of_machines_are_means_over_the_classes():
    rows = np.random.default_rng(0).integers(0, 2, (40, 3)) * 2 - 1
    machines = [gb.BoltzmannMachine(l2=0.1).fit(part) for part in (rows[:20], rows[20:])]
    model = MachineMixtureModel(np.array([0.3, 0.7]), tuple(machines), machines[0], machines[0].coding_, 3)
    found = model.interactions()
    first, second = (machine.model_.interactions().strengths for machine in machines)
    assert found.scopes == machines[0].model_.interactions().scopes
    np.testing.assert_allclose(found.strengths, 0.3 * first + 0.7 * second, atol=1e-14)


@pytest.mark.parametrize("variance", [0.01, 0.5])
def test_variances_fall_geometrically_from_the_first_phase_transition(rng, variance):
    """That is the largest eigenvalue of the weighted covariance; no step falls by more than the ratio."""
    points, weights = rng.normal(size=(50, 3)) * (3.0, 1.0, 0.5), rng.uniform(1, 2, 50)
    schedule = variance_schedule(points, weights, variance, 0.5)
    top = np.linalg.eigvalsh(np.cov(points.T, aweights=weights, ddof=0))[-1]
    np.testing.assert_allclose(schedule[[0, -1]], [top, variance], rtol=1e-10)
    steps = schedule[1:] / schedule[:-1]
    np.testing.assert_allclose(steps, steps[0], rtol=1e-10)
    assert 0.5 - 1e-9 <= steps[0] < 0.75
