"""Conditional likelihood and pseudolikelihood against enumeration, finite differences and logistic regression."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import gibbsian as gb
from gibbsian.errors import ArgumentError, MaximumDoesNotExistError
from gibbsian.learning import MCL, MCPLE
from gibbsian.learning.objectives import ConditionalLikelihood, ConditionalPseudolikelihood
from gibbsian.models import BinaryUnits, CategoricalUnits, ConditionalFamily, SpinUnits
from gibbsian.models.base import Model
from gibbsian.models.layers.units import codes_of
from layered_systems import all_values, restricted
from systems import SPINS, dataset_of, exact_law, models_with_variables, name_of, random_model_of, sampled_data

SMALL = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], 4)
TARGETS = [1, 3]


def with_holes(data, rng, columns):
    """The data without some cells of some columns."""
    holes = np.zeros(data.states.shape, bool)
    holes[:, columns] = rng.random((data.n_states, len(columns))) < 0.4
    return gb.Dataset.of_states(data.states, data.coding, names=data.names, sample_weight=data.weights, missing=holes)


def enumerated(model, data, targets):
    """Minus the mean of log P(targets | other present cells), from the list of all states."""
    states, probabilities, _ = exact_law(model)
    total = 0.0
    for x, weight, holes in zip(data.states, data.weights, data.missing, strict=True):
        agrees = ((states == x) | holes).all(axis=1)
        free = holes.copy()
        free[targets] = True
        given = ((states == x) | free).all(axis=1)
        total -= weight * np.log(probabilities[agrees].sum() / probabilities[given].sum())
    return total / data.total_weight


def slopes(function, theta, rng, n=4):
    """Directional derivatives by differences, and by the gradient."""
    directions, h = rng.normal(size=(n, theta.size)), 1e-5
    differences = [(function(theta + h * d)[0] - function(theta - h * d)[0]) / (2 * h) for d in directions]
    return np.array(differences), directions @ function(theta)[1]


@pytest.mark.parametrize(
    ("name", "variables"), models_with_variables(4), ids=lambda part: part if isinstance(part, str) else name_of(part)
)
def test_conditional_likelihood_of_every_model_is_that_of_the_list_of_states(name, variables, rng):
    """T is not 1, cells of features and of a target are missing."""
    model = random_model_of(name, SMALL, rng, variables, scale=0.7)
    data = with_holes(sampled_data(model, 30, rng), rng, [0, 3])
    function = ConditionalLikelihood(TARGETS).bind(model, data)
    assert function(model.theta)[0] == pytest.approx(enumerated(model, data, TARGETS), abs=1e-10)
    np.testing.assert_allclose(*slopes(function, model.theta, rng), atol=1e-8)


@pytest.mark.parametrize(
    ("name", "variables"), models_with_variables(4), ids=lambda part: part if isinstance(part, str) else name_of(part)
)
def test_pseudolikelihood_of_targets_is_a_sum_of_conditionals(name, variables, rng):
    model = random_model_of(name, SMALL, rng, variables, scale=0.7)
    data = sampled_data(model, 30, rng)
    function = ConditionalPseudolikelihood(TARGETS).bind(model, data)
    value = sum(ConditionalLikelihood(target).bind(model, data)(model.theta)[0] for target in TARGETS)
    assert function(model.theta)[0] == pytest.approx(value, abs=1e-10)
    np.testing.assert_allclose(*slopes(function, model.theta, rng), atol=1e-8)


def test_parameters_that_touch_no_target_have_no_gradient(scores, rng):
    model = random_model_of("pairwise", SMALL, rng, scores)
    _, gradient = ConditionalLikelihood([3]).bind(model, sampled_data(model, 30, rng))(model.theta)
    touched = model.family.terms_of(np.array([False, False, False, True]))
    np.testing.assert_allclose(gradient[~touched], 0.0, atol=1e-14)
    assert (np.abs(gradient[touched]) > 1e-6).all()


def test_hidden_units_are_summed_out(scores, rng):
    """The last variable is hidden: a column that is missing everywhere."""
    model = random_model_of("pairwise", gb.graphs.complete(4), rng, scores)
    data = sampled_data(model, 30, rng).hide([3])
    function = ConditionalLikelihood([0]).bind(model, data)
    assert function(model.theta)[0] == pytest.approx(enumerated(model, data, [0]), abs=1e-10)
    np.testing.assert_allclose(*slopes(function, model.theta, rng), atol=1e-8)


LAYERS = {
    "binary": (BinaryUnits(4), BinaryUnits(2)),
    "spin": (SpinUnits(4), SpinUnits(2)),
    "categories": (CategoricalUnits((2, 3, 2, 3)), BinaryUnits(2)),
}


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("holes", [False, True])
def test_discriminative_restricted_machine(kind, holes, rng):
    """P(y | x) is the weight of the row over the sum of its weights with every label: the closed form of the RBM."""
    visible, hidden = LAYERS[kind]
    model = restricted(visible, hidden)
    model = model.replace(rng.normal(size=model.theta.size))
    states = codes_of(visible, visible.draw(rng.normal(size=(25, visible.width)), rng))
    missing = np.zeros(states.shape, bool)
    if holes:
        missing[:, 0] = rng.random(len(states)) < 0.5
    data = dataset_of(states, visible.variables, missing=missing)
    function = ConditionalLikelihood([3]).bind(model, data)
    labels, total = range(visible.variables.sizes[3]), 0.0
    for x, weight, empty in zip(data.states, data.weights, data.holes, strict=True):
        fills = (0, 1) if empty[0] else (x[0],)
        rows = np.array([[first, *x[1:3], label] for label in labels for first in fills])
        logs = np.logaddexp.reduce(model.log_evidence(visible.encode(rows)).reshape(len(labels), -1), axis=1)
        total -= weight * (logs[x[3]] - np.logaddexp.reduce(logs))
    assert function(model.theta)[0] == pytest.approx(total / data.total_weight, abs=1e-10)
    np.testing.assert_allclose(*slopes(function, model.theta, rng), atol=1e-7)


@pytest.mark.parametrize("outputs", [CategoricalUnits((3,)), BinaryUnits(2)], ids=["classes", "labels"])
@pytest.mark.parametrize("n_hidden", [0, 2])
def test_conditional_model_with_inputs(outputs, n_hidden, rng):
    """The energy is written out here once more, over all outputs and hidden states."""
    family = ConditionalFamily.of(2, outputs, BinaryUnits(n_hidden))
    model = Model(family, rng.normal(size=family.n_parameters))
    b, c, direct, inward, upward = model.parts
    x, every = rng.normal(size=(6, 2)), all_values(outputs)
    h = all_values(BinaryUnits(n_hidden))
    energies = ((b + x @ direct) @ every.T)[:, :, None] + ((c + x @ inward) @ h.T)[:, None] + (every @ upward @ h.T)
    weights = np.exp(energies).sum(axis=2)
    law = weights / weights.sum(axis=1, keepdims=True)
    listed = codes_of(outputs, every)
    np.testing.assert_allclose(family.output_probabilities(model.theta, x, listed), law, atol=1e-12)
    data = gb.Dataset.of_states(np.hstack([x, listed[[0, 1, 2, 2, 0, 1]]]), "real")
    function = ConditionalLikelihood(list(range(2, data.n_variables))).bind(model, data)
    assert function(model.theta)[0] == pytest.approx(-np.log(law[np.arange(6), [0, 1, 2, 2, 0, 1]]).mean(), abs=1e-12)
    np.testing.assert_allclose(*slopes(function, model.theta, rng), atol=1e-8)


# -- learners ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def rows():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, (300, 4))
    return np.column_stack([x, x @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=300) > 0.3]).astype(int)


@pytest.mark.parametrize("learner", [MCL, MCPLE])
@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_pairwise_machine_given_its_features_is_logistic_regression(learner, l2, rows):
    """The bias of the target is penalised too, so the reference has a column of ones instead of an intercept."""
    machine = gb.BoltzmannMachine(learner=learner(targets="x4", l2=l2), tol=1e-9).fit(rows)
    inputs = np.column_stack([np.ones(len(rows)), rows[:, :4]])
    strength = np.inf if l2 == 0 else 1 / (l2 * len(rows))
    judge = LogisticRegression(C=strength, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(inputs, rows[:, 4])
    model = machine.model_
    found = [model.parts.biases[4], *model.parts.couplings[(model.family.graph.edges == 4).any(axis=1)]]
    np.testing.assert_allclose(found, judge.coef_[0], atol=1e-5)
    np.testing.assert_allclose(machine.predict_proba(rows, columns="x4"), judge.predict_proba(inputs), atol=1e-5)
    assert not model.parts.biases[:4].round(12).any()


@pytest.mark.parametrize("learner", [MCL, MCPLE])
@pytest.mark.parametrize("targets", ["x4", ["x3", "x4"]])
def test_separable_targets_are_refused_without_a_penalty(learner, targets, rows):
    rows[:, 4] = rows[:, 0]
    with pytest.raises(MaximumDoesNotExistError, match="no finite maximum"):
        gb.BoltzmannMachine(learner=learner(targets=targets)).fit(rows)
    assert gb.BoltzmannMachine(learner=learner(targets=targets, l2=0.01)).fit(rows).result_.converged


def test_constant_features_and_pairs_that_never_meet_are_no_matter(rows):
    rows[:, 3], rows[:, 2] = 1, np.where(rows[:, 1] == 1, 0, rows[:, 2])
    assert gb.BoltzmannMachine(learner=MCL(targets="x4")).fit(rows).result_.converged
    with pytest.raises(gb.errors.ConstantColumnError):
        gb.BoltzmannMachine(l2=0.0).fit(rows)


def test_wrong_targets_are_refused_by_name(rows):
    for wrong in ("x9", [0, 0], 17, []):
        with pytest.raises(ArgumentError) as caught:
            gb.BoltzmannMachine(learner=MCL(targets=wrong, l2=0.1)).fit(rows)
        assert caught.value.argument == "targets"


def test_restricted_and_hidden_machines_learn_the_exclusive_or():
    """No machine without hidden units tells it."""
    rows = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 5)
    learner = MCL(targets=[2], l2=1e-4)
    for machine in (
        gb.RestrictedBoltzmannMachine(4, learner=learner, max_iter=300, random_state=0),
        gb.HiddenBoltzmannMachine(2, learner=learner, random_state=0),
        gb.RestrictedBoltzmannMachine(4, visible="categorical", learner=learner, max_iter=300, random_state=0),
    ):
        assert (machine.fit(rows).predict(rows, columns=2) == rows[:, 2]).all()
    pairwise = gb.BoltzmannMachine(learner=learner).fit(rows)
    np.testing.assert_allclose(pairwise.predict_proba(rows, columns=2), 0.5, atol=1e-6)


def test_deep_machines_are_refused_with_a_reason(rows):
    with pytest.raises(ArgumentError, match="no sum in closed form"):
        gb.DeepBoltzmannMachine((2, 2), learner=MCL(), l2=0.0).fit(rows)


def test_rows_may_lack_the_target(rows):
    """Such rows say nothing: with features complete, the fit is that of the others."""
    table = rows.astype(float)
    table[::3, 4] = np.nan
    parts = rows[np.arange(300) % 3 > 0], table
    some, every = (gb.BoltzmannMachine(learner=MCL(targets=4), tol=1e-9).fit(part).model_.theta for part in parts)
    np.testing.assert_allclose(some, every, atol=1e-6)


def test_data_of_states_keeps_domains(rng):
    """Hiding columns puts rows together that were told apart by these alone."""
    data = dataset_of(np.array([[0, 1], [0, 0], [1, 1]]), SPINS(2)).hide(1)
    assert data.n_states == 2
    assert data.weights.tolist() == [2.0, 1.0]
    assert data.row_of.tolist() == [0, 0, 1]
