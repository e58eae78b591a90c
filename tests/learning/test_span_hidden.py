"""Hidden variables by EM: the cost never rises, and what is hidden is found."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian import Model, Variables
from gibbsian.answers.span import SpanAnswers
from gibbsian.errors import ArgumentError
from gibbsian.learning import run
from gibbsian.learning.span_filling import SpreadRows
from gibbsian.learning.span_hidden import SpanHidden
from gibbsian.learning.span_problem import DescriptionLength, Shrinkage
from span_fits import counted, dual_of, fit, learner_of, span_model, table_of
from systems import every_function

DENSE = {"l2": 0.003, "l2_growth": 4.0}


def fit_hidden(data, cardinalities, algorithm="newton", n_values=2, seed=0, max_iter=100, last=1e-5, **settings):
    """Learn a hidden variable, or several; return the learner and the result."""
    learner = SpanHidden(learner_of(algorithm, **settings), tol=last)
    hidden = np.atleast_1d(n_values).tolist()
    model = span_model((*cardinalities, *hidden), n_hidden=len(hidden))
    return learner, run(learner, model, data, seed, max_iter=max_iter)


def costs_of(result):
    return result.trace.column("value")


def two_classes(n_rows, rng, n_variables=6):
    """Independent variables within each of two classes."""
    hidden = rng.random(n_rows) < 0.4
    x = np.where(hidden[:, None], rng.random((n_rows, n_variables)) < 0.85, rng.random((n_rows, n_variables)) < 0.15)
    return x.astype(int), hidden


@pytest.mark.parametrize("algorithm", ["greedy", "newton", "dense"])
@pytest.mark.parametrize(
    ("cardinalities", "n_values"),
    [((2,) * 6, 2), ((2,) * 5, 4), ((3, 2, 3), 3), ((2,) * 5, (2, 2)), ((3, 2, 3), (3, 2))],
    ids=str,
)
@pytest.mark.parametrize("share", [0.0, 0.15], ids=["complete", "missing"])
def test_cost_never_rises(algorithm, cardinalities, n_values, share, rng):
    x = (rng.random((300, len(cardinalities))) ** 1.5 * cardinalities).astype(int)
    x[:150, 1] = x[:150, 0] % 2
    settings = DENSE if algorithm == "dense" else {"mdl_scale": 0.3}
    data = counted(x, np.ones(300), cardinalities, rng.random(x.shape) < share)
    _, result = fit_hidden(data, cardinalities, algorithm, n_values, seed=1, max_iter=400, **{"tol": 1e-6, **settings})
    assert result.n_steps > 2
    assert np.diff(costs_of(result)).max() <= 1e-8
    assert result.converged


@pytest.mark.parametrize("n_values", [2, (2, 3)])
@pytest.mark.parametrize("algorithm", ["newton", "dense"])
def test_cost_is_that_of_the_definition(algorithm, n_values, rng):
    x, _ = two_classes(400, rng)
    states, counts = np.unique(x, axis=0, return_counts=True)
    settings = DENSE if algorithm == "dense" else {"l2": 0.001}
    data = counted(states, counts, (2,) * 6)
    learner, result = fit_hidden(data, (2,) * 6, algorithm, n_values, **settings)
    model, family, shares = result.model, result.model.family, counts / 400
    law = table_of(model).values.reshape(64, -1).sum(axis=1)[states @ 2 ** np.arange(5, -1, -1)]
    divergence = shares @ (np.log(shares) - np.log(law))
    inner = learner.learner
    length = DescriptionLength.of_samples(family.basis, 400, inner.mdl_scale)
    shrinkage = Shrinkage(inner.l1, inner.l2, inner.l2_growth)
    penalties = length(family.basis, family.functions) + shrinkage(family.basis, family.functions, model.theta)
    penalties = penalties.sum()
    assert costs_of(result)[-1] == pytest.approx(divergence + penalties, abs=1e-10)
    told = learner.costs(model, data)
    assert told["cost"] == pytest.approx(divergence + penalties, abs=1e-10)
    assert told["divergence"] == pytest.approx(divergence, abs=1e-10)


def test_two_classes_are_found(rng):
    x, hidden = two_classes(1500, rng)
    states, place, counts = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    data = counted(states, counts, (2,) * 6)
    generator = np.random.default_rng(0)
    fits = [fit_hidden(data, (2,) * 6, seed=generator)[1] for _ in range(3)]
    best = min(fits, key=lambda result: costs_of(result)[-1])
    first = SpanAnswers(best.model).hidden_probabilities(data)[place.ravel(), 0] > 0.5
    agreement = np.mean(first == hidden)
    assert max(agreement, 1 - agreement) > 0.95
    plain = fit(states, counts, (2,) * 6)
    assert costs_of(best)[-1] < plain.cost  # six functions of one class variable instead of fifteen pairs
    assert best.model.theta.size < plain.model.theta.size


def test_equal_rows_are_counted_together(rng):
    x, _ = two_classes(200, rng, n_variables=4)
    states, counts = np.unique(x, axis=0, return_counts=True)
    every, distinct = (
        costs_of(fit_hidden(data, (2,) * 4, "dense", seed=3, **DENSE)[1])[-1]
        for data in (gb.Dataset.read(x), counted(states, counts, (2,) * 4))
    )
    assert every == pytest.approx(distinct, abs=1e-9)


def test_it_takes_no_more_rounds_than_asked(rng):
    data = counted(two_classes(200, rng)[0], np.ones(200), (2,) * 6)
    for rounds in (1, 2):
        assert fit_hidden(data, (2,) * 6, max_iter=rounds, last=0.0)[1].n_steps == rounds


def test_bad_arguments_are_named(rng):
    data = counted([[0, 1]], [5], (2, 2))
    with pytest.raises(ArgumentError, match="learner='span-em' is not known"):
        SpanHidden("span-em")
    with pytest.raises(ArgumentError, match="must choose functions of a full-span model"):
        SpanHidden("mple")
    with pytest.raises(ArgumentError, match="the model has no hidden variable"):
        run(SpanHidden(), span_model((2, 2)), data)
    with pytest.raises(ArgumentError, match=r"l2=0\.0 must be above 0"):
        run(SpanHidden("span-dense"), span_model((2, 2, 2), n_hidden=1), data)


# -- several hidden variables -----------------------------------------------------------------------------------------
def two_causes(n_rows, rng, noise=0.1):
    """Four columns that follow one hidden cause, and four that follow another."""
    causes = rng.integers(0, 2, (n_rows, 2))
    return np.repeat(causes, 4, axis=1) ^ (rng.random((n_rows, 8)) < noise), causes


def test_two_causes_are_found_each_by_a_variable_of_its_own(rng):
    x, causes = two_causes(1500, rng)
    data = counted(x, np.ones(1500), (2,) * 8)
    none = fit(data.states, data.weights, (2,) * 8).cost
    one, two = (
        min(
            (fit_hidden(data, (2,) * 8, n_values=values, seed=seed)[1] for seed in range(4)),
            key=lambda r: costs_of(r)[-1],
        )
        for values in (2, (2, 2))
    )
    assert costs_of(two)[-1] < costs_of(one)[-1] < none
    found = SpanAnswers(two.model).hidden_probabilities(data)[data.row_of][:, [1, 3]] > 0.5
    agreement = np.abs(np.mean(found[:, :, None] == causes[:, None, :], axis=0) - 0.5) + 0.5
    assert np.sort(agreement.ravel())[-2:].min() > 0.95
    assert agreement.max(axis=0).min() > 0.95
    # eight columns with one cause each; a bias costs more than it saves
    assert two.model.theta.size == 8
    assert {scope[0] for scope in two.model.family.scopes} == set(range(8))


def test_most_starts_of_several_variables_find_both_causes(rng):
    x, _ = two_causes(1500, rng)
    data = counted(x, np.ones(1500), (2,) * 8)
    ends = np.array([costs_of(fit_hidden(data, (2,) * 8, n_values=(2, 2), seed=seed)[1])[-1] for seed in range(10)])
    assert np.mean(ends < ends.min() + 0.005) >= 0.5


@pytest.mark.parametrize(("cardinalities", "hidden"), [((2,) * 4, (2, 3)), ((3, 2), (2, 2))], ids=str)
def test_filled_rows_give_the_gradient_of_the_visible_divergence(cardinalities, hidden, rng):
    """d KL(data || p(x)) / d theta_y is the model's mean of Phi_y less that of the filled rows, at any theta."""
    every = (*cardinalities, *hidden)
    family = every_function(Variables.categories(cardinalities), hidden)
    model = Model(family, rng.normal(0, 0.3, family.n_parameters))
    n_states, m = int(np.prod(cardinalities)), int(np.prod(hidden))
    shares = rng.dirichlet(np.ones(n_states))
    visible = np.array(list(np.ndindex(cardinalities)))
    codes = np.column_stack([visible, np.zeros((n_states, len(hidden)), int)])
    missing = np.arange(len(every))[None, :] >= len(cardinalities)
    rows = SpreadRows.unfilled(learner_of(), family.basis, codes, np.repeat(missing, n_states, axis=0), 1000 * shares)
    gradient = (dual_of(model) - rows.filled(table_of(model).values).problem.data_dual)[1:]

    def divergence(theta):
        law = family.probabilities(theta).values.reshape(n_states, m).sum(axis=1)
        return shares @ np.log(shares / law)

    for y in rng.choice(family.n_parameters, 12, replace=False):
        step = np.zeros(family.n_parameters)
        step[y] = 1e-5
        slope = (divergence(model.theta + step) - divergence(model.theta - step)) / 2e-5
        assert gradient[y] == pytest.approx(slope, abs=1e-8)


def test_a_fit_ends_where_the_likelihood_has_no_slope(rng):
    x, _ = two_causes(800, rng)
    data = counted(x, np.ones(800), (2,) * 8)
    _, result = fit_hidden(data, (2,) * 8, n_values=(2, 2), max_iter=2000, last=1e-12)
    model = result.model
    filled = result.moments.mean
    np.testing.assert_allclose(dual_of(model)[model.family.functions], filled, atol=1e-4)


def test_more_values_than_distinct_rows():
    data = counted([[0, 1, 0], [1, 0, 1]], [30, 20], (2, 2, 2))
    _, result = fit_hidden(data, (2, 2, 2), n_values=(3, 2))
    assert result.converged
    assert np.isfinite(costs_of(result)).all()
