"""Models with one hidden label: the contract, and missing cells against sums and integrals by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

import gibbsian as gb
from gibbsian.answers import answers_about
from gibbsian.backends.classes import log_joint, responsibilities
from gibbsian.learning import EM, run
from gibbsian.learning.bound_mixtures import bound
from gibbsian.models import (
    FAMILIES,
    GaussianMixtureFamily,
    KMeansFamily,
    LatentClassFamily,
    MixtureOfFamily,
    VonMisesFisherMixtureFamily,
)
from gibbsian.models.base import Model
from gibbsian.models.mixtures.base import SphericalMixtureFamily
from gibbsian.models.mixtures.gaussian import variance_schedule
from gibbsian.models.mixtures.of_models import mixture_of
from gibbsian.models.mixtures.von_mises_fisher import unit_rows
from gibbsian.models.variables import Variables
from systems import all_states

WEIGHTS = np.array([0.3, 0.7])


def model_of(family, *parts) -> Model:
    return Model(family, family.join(*parts))


def gaussians(rng, n=3) -> Model:
    return model_of(GaussianMixtureFamily(2, n), WEIGHTS, rng.normal(size=(2, n)), [0.5, 2.0])


def columns(rng, sizes=(2, 3, 4)) -> Model:
    parts = [rng.dirichlet(np.ones(size), 2) for size in sizes]
    return model_of(LatentClassFamily(2, Variables.categories(sizes)), WEIGHTS, np.column_stack(parts))


def models(rng) -> dict:
    means = unit_rows(rng.normal(size=(2, 3)))
    directions = model_of(VonMisesFisherMixtureFamily(2, 3), WEIGHTS, means, [2.0, 9.0])
    k_means = KMeansFamily(2, 3)
    spins = LatentClassFamily(2, Variables.spins(4))
    return {
        "gaussian": gaussians(rng),
        "vmf": directions,
        "k-means": Model(k_means, k_means.equal(rng.normal(size=(2, 3)))),
        "columns": columns(rng),
        "spins": model_of(spins, WEIGHTS, rng.dirichlet(np.ones(2), (2, 4)).reshape(2, 8)),
    }


def log_evidence(model, rows, missing=None):
    return model.family.log_evidence(model.theta, rows, missing)


@pytest.mark.parametrize("kind", ["gaussian", "vmf", "k-means", "columns", "spins"])
def test_keeps_what_all_families_have(kind, rng):
    model = models(rng)[kind]
    family = model.family
    assert FAMILIES.factory(type(family).registered_name) is type(family)
    assert model.theta.size == family.n_parameters == model.penalised.size
    np.testing.assert_array_equal(family.join(*family.split(model.theta)), model.theta)
    family.require_distribution(model.theta)
    rows, classes = family.sample(model.theta, 20, rng)
    assert rows.shape == (20, len(family.columns)) == (20, model.n_variables - model.n_hidden)
    assert set(classes) <= {0, 1}
    # complete rows have the label last
    complete = np.stack([model.log_weights(np.column_stack([rows, np.full(20, a)])) for a in range(2)], axis=1)
    np.testing.assert_array_equal(logsumexp(complete, axis=1), log_evidence(model, rows))
    rebuilt = type(family).from_parts(family.to_parts(), family.columns)
    np.testing.assert_array_equal(rebuilt.log_evidence(model.theta, rows), log_evidence(model, rows))
    assert not Model.zeros(family).theta.any()


def test_a_mixture_that_lacks_a_member_cannot_be_built():
    class WithoutSteps(SphericalMixtureFamily):
        scale = 1.0

    with pytest.raises(TypeError, match=r"abstract.*maximise"):
        WithoutSteps()


@pytest.mark.parametrize("kind", ["columns", "spins"])
def test_discrete_probabilities_add_up_to_one(kind, rng):
    model = models(rng)[kind]
    codes = all_states(model.family.columns)
    assert np.exp(log_evidence(model, codes)).sum() == pytest.approx(1.0)


def test_a_gaussian_mixture_by_its_definition(rng):
    model = gaussians(rng)
    rows = rng.normal(size=(5, 3))
    densities = sum(w * norm.pdf(rows, mean, np.sqrt(v)).prod(axis=1) for w, mean, v in zip(*model.parts, strict=True))
    np.testing.assert_allclose(log_evidence(model, rows), np.log(densities), rtol=1e-12)


# -- missing cells ----------------------------------------------------------------------------------------------------
def test_missing_numbers_are_integrated_out(rng):
    model = gaussians(rng, n=2)
    row, missing = np.array([[0.4, 0.0]]), np.array([[False, True]])

    def density(x):
        return float(np.exp(log_evidence(model, np.array([[0.4, x]])))[0])

    assert np.exp(log_evidence(model, row, missing))[0] == pytest.approx(quad(density, -30, 30)[0], rel=1e-9)
    mean = quad(lambda x: x * density(x), -30, 30)[0] / quad(density, -30, 30)[0]
    answers = answers_about(model)
    data = gb.Dataset.of_states(row, "real", missing=missing)
    assert answers.cell_means(data)[0, 1] == pytest.approx(mean, rel=1e-9)
    assert answers.completed_states(data, rng)[0] == pytest.approx([0.4, mean])


def test_missing_labels_are_summed_out(rng):
    model = columns(rng)
    states = all_states(model.family.columns)
    law = np.exp(log_evidence(model, states))
    row, missing = np.array([[1, 0, 2]], np.int8), np.array([[False, True, False]])
    agree = (states[:, 0] == 1) & (states[:, 2] == 2)
    assert np.exp(log_evidence(model, row, missing))[0] == pytest.approx(law[agree].sum())
    coding = gb.domain.CategoryCoding.of_labels([tuple(range(size)) for size in (2, 3, 4)])
    data = gb.Dataset.of_states(row, coding, missing=missing)
    cells = answers_about(model).cell_probabilities(data, rng)
    np.testing.assert_allclose(cells[0, 1, :3], law[agree] / law[agree].sum())
    assert cells[0, 0].tolist() == [0, 1, 0, 0]
    assert cells[0, 2].tolist() == [0, 0, 1, 0]


def test_the_pseudolikelihood_is_the_sum_of_conditionals(rng):
    model = columns(rng)
    states = all_states(model.family.columns)
    law = np.exp(log_evidence(model, states))
    coding = gb.domain.CategoryCoding.of_labels([tuple(range(size)) for size in (2, 3, 4)])
    row = np.array([[1, 2, 0]], np.int8)
    here = law[(states == row).all(axis=1)][0]
    expected = sum(
        np.log(here / law[(np.delete(states, i, 1) == np.delete(row, i, 1)).all(axis=1)].sum()) for i in range(3)
    )
    assert answers_about(model).log_pseudolikelihood(gb.Dataset.of_states(row, coding)) == pytest.approx(expected)


def incomplete_rows(rng, n_rows=300, share=0.3):
    """Two clouds of numbers with missing cells, no row without a cell."""
    rows = rng.normal(size=(n_rows, 3)) * 0.8 + 3.0 * (np.arange(n_rows) % 2)[:, None]
    rows[rng.random(rows.shape) < share] = np.nan
    rows[np.isnan(rows).all(axis=1), 0] = 0.5
    return rows


@pytest.mark.parametrize("variance", ["free", "tied", 0.6])
def test_em_with_missing_numbers_ends_at_a_maximum(variance, rng):
    """The gradient of the likelihood of the present cells, by finite differences, vanishes in what is learned."""
    data = gb.Dataset.read(incomplete_rows(rng), coding="real", sample_weight=rng.random(300) + 0.5)
    family = GaussianMixtureFamily(2, 3, variance=variance, free_weights=False)
    result = run(EM(), Model.zeros(family), data, rng, max_iter=5000, tol=1e-14)
    energies, fitted = result.trace.column("value"), result.model
    assert (np.diff(energies) <= 0).all()

    def likelihood(theta):
        return float(data.weights @ family.log_evidence(theta, data.states, data.missing))

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
    data = gb.Dataset.read(incomplete_rows(rng), coding="real")
    hard_steps = bound(KMeansFamily(2, 3), data, hard=True)
    start = hard_steps.reported(hard_steps.start(rng))
    hard = run(EM(), start, data, rng, max_iter=500, tol=0.0)
    means, family = hard.model.parts.means, GaussianMixtureFamily(2, 3, variance=1e-6, free_weights=False)
    soft = run(EM(), Model(family, family.equal(start.parts.means)), data, rng, max_iter=500, tol=0.0)
    np.testing.assert_allclose(soft.model.parts.means, means, atol=1e-8)
    # the energy is the sum over present cells
    distances = np.where(data.missing[:, None], 0.0, data.states[:, None] - means) ** 2
    assert hard.trace.column("value")[-1] == pytest.approx(data.weights @ distances.sum(axis=2).min(axis=1))
    np.testing.assert_array_equal(answers_about(hard.model).classes(data), distances.sum(axis=2).argmin(axis=1))


def test_masks_of_all_and_of_no_cells_need_no_other_code(rng):
    """A mask of no cells gives the sums of complete rows."""
    model, rows = gaussians(rng), rng.normal(size=(20, 3))
    none = np.zeros(rows.shape, dtype=bool)
    joint = model.family.log_joint(model.theta, rows)
    np.testing.assert_allclose(model.family.log_joint(model.theta, rows, none), joint, rtol=1e-12)
    np.testing.assert_allclose(model.family.log_joint(model.theta, rows, ~none), np.tile(np.log(WEIGHTS), (20, 1)))


def test_units_move_in_present_cells_only(rng):
    rows = incomplete_rows(rng)
    units = gb.OnlineKMeans(2, normalize=False, random_state=0).fit(rows)
    assert np.abs(np.sort(units.means_.mean(axis=1)) - [0.0, 3.0]).max() < 0.5
    before, cells = units.means_.copy(), units._state.progress.cells.copy()
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
    np.testing.assert_array_equal(responsibilities(scores), [[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])
    assert log_joint(np.zeros((1, 1)), np.zeros((2, 1)), np.log([0.5, 0.5])).shape == (1, 2)
    assert logsumexp(np.log(WEIGHTS)) == pytest.approx(0.0)


@pytest.mark.parametrize("variance", ["free", "tied"])
def test_parameters_of_spherical_gaussians_are_counted_as_they_can_move(rng, variance):
    model = gb.GaussianMixture(2, variance=variance, random_state=0).fit(rng.normal(size=(60, 3))).model_
    expected = 2 * 3 + {"free": 2, "tied": 1}[variance] + 1
    assert model.family.n_free == model.family.free_directions(model.theta).shape[1] == expected


@pytest.mark.parametrize("sizes", [(2, 2, 2), (2, 3)])
def test_interactions_of_classes_are_changes_of_probability(sizes, rng):
    probabilities = [rng.dirichlet(np.ones(size), 3) for size in sizes]
    weights = rng.dirichlet(np.ones(3))
    model = model_of(LatentClassFamily(3, Variables.categories(sizes)), weights, np.hstack(probabilities))
    for i, own in enumerate(probabilities):
        change = own - weights @ own
        expected = change[:, 1] if set(sizes) == {2} else np.abs(change).sum(axis=1) / 2
        found = model.interactions()
        strengths = dict(zip(found.scopes, found.strengths.tolist(), strict=True))
        of_column = [strength for scope, strength in strengths.items() if i in scope]
        np.testing.assert_allclose(sorted(of_column), sorted(expected), atol=1e-12)


def test_an_incomplete_row_moves_to_a_nearer_mean_only(rng):
    rows = np.array([[0.0, np.nan], [5.0, 5.0], [np.nan, 5.0], [0.0, 0.0]])
    data = gb.Dataset.read(rows, coding="real")
    steps = bound(KMeansFamily(2, 2), data, hard=True)
    placed = steps.from_means(np.array([[0.0, 0.0], [5.0, 5.0]]))
    energy, _, found = steps.e_step(placed)
    again, _, moved = steps.e_step(placed, found._replace(labels=1 - found.labels))
    np.testing.assert_array_equal(moved.labels, found.labels)
    assert again == energy
    even = steps.from_means(np.array([[1.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(steps.e_step(even, found).memory.labels, found.labels)  # no nearer: stays


def test_interactions_of_machines_are_means_over_the_classes():
    rows = np.random.default_rng(0).integers(0, 2, (40, 3)) * 2 - 1
    machines = [gb.BoltzmannMachine(l2=0.1).fit(part) for part in (rows[:20], rows[20:])]
    models = [machine.model_ for machine in machines]
    logs = np.array([machine.log_partition() for machine in machines])
    model = mixture_of(MixtureOfFamily(2, Variables.spins(3)), models, np.array([0.3, 0.7]), logs)
    found = model.interactions()
    # the answers sum over the classes what the family gives for whole rows
    data = gb.Dataset.read(rows)
    joint = model.family.log_joint(model.theta, data.states)
    np.testing.assert_allclose(answers_about(model).log_joint(data), joint, atol=1e-12)
    each = np.column_stack(
        [machine.score_samples(data)[np.unique(data.row_of, return_index=True)[1]] for machine in machines]
    )
    np.testing.assert_allclose(joint, each + np.log([0.3, 0.7]), atol=1e-12)
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
