"""A hidden variable by EM: the cost never rises, and what is hidden is found."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.answers.span import SpanAnswers
from gibbsian.errors import ArgumentError
from gibbsian.learners import run
from gibbsian.learners.span_hidden import SpanHidden
from gibbsian.models import FullSpanModel
from gibbsian.storage import Checkpoint
from span_fits import counted, fit, learner_of

DENSE = {"l2": 0.003, "l2_growth": 4.0}


def fit_hidden(data, cardinalities, algorithm="newton", n_values=2, seed=0, max_iter=100, last=1e-5, **settings):
    """Learn a hidden variable; return the learner and the result."""
    learner = SpanHidden(learner_of(algorithm, **settings), tol=last)
    model = FullSpanModel.build((*cardinalities, n_values), n_hidden=1)
    return learner, run(learner, model, data, seed, max_iter=max_iter)


def costs_of(result):
    return result.trace.column("value")


def two_classes(n_rows, rng, n_variables=6):
    """Independent variables within each of two classes."""
    hidden = rng.random(n_rows) < 0.4
    x = np.where(hidden[:, None], rng.random((n_rows, n_variables)) < 0.85, rng.random((n_rows, n_variables)) < 0.15)
    return x.astype(int), hidden


@pytest.mark.parametrize("algorithm", ["greedy", "newton", "dense"])
@pytest.mark.parametrize(("cardinalities", "n_values"), [((2,) * 6, 2), ((2,) * 5, 4), ((3, 2, 3), 3)], ids=str)
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


@pytest.mark.parametrize("algorithm", ["newton", "dense"])
def test_cost_is_that_of_the_definition(algorithm, rng):
    x, _ = two_classes(400, rng)
    states, counts = np.unique(x, axis=0, return_counts=True)
    settings = DENSE if algorithm == "dense" else {"l2": 0.001}
    data = counted(states, counts, (2,) * 6)
    learner, result = fit_hidden(data, (2,) * 6, algorithm, **settings)
    model, shares = result.model, counts / 400
    divergence = shares @ (np.log(shares) - model.without_hidden().log_probabilities(states))
    length, shrinkage = learner.learner.penalties(model.basis, 400)
    penalties = length(model.basis, model.indices).sum() + shrinkage(model.basis, model.indices, model.theta).sum()
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
    assert best.model.indices.size < plain.model.indices.size


def test_equal_rows_are_counted_together(rng):
    x, _ = two_classes(200, rng, n_variables=4)
    states, counts = np.unique(x, axis=0, return_counts=True)
    every, distinct = (
        costs_of(fit_hidden(data, (2,) * 4, "dense", seed=3, **DENSE)[1])[-1]
        for data in (gb.Dataset.read(x), counted(states, counts, (2,) * 4))
    )
    assert every == pytest.approx(distinct, abs=1e-9)


def test_a_resumed_fit_has_the_bits_of_an_uninterrupted_one(tmp_path, rng):
    data = counted(two_classes(200, rng)[0], np.ones(200), (2,) * 6)
    learner, model = SpanHidden(tol=0.0), FullSpanModel.build((2,) * 7, n_hidden=1)
    whole = run(learner, model, data, 0, max_iter=9)
    path = tmp_path / "fit.checkpoint"
    run(learner, model, data, 0, [Checkpoint(path, every=2)], max_iter=4)
    rest = run(learner, model, data, 0, [Checkpoint(path, resume=True)], max_iter=9)
    assert rest.provenance["resumed_at_step"] == 4
    assert np.array_equal(rest.model.theta, whole.model.theta)
    assert np.array_equal(costs_of(rest), costs_of(whole))


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
        run(SpanHidden(), FullSpanModel.build((2, 2)), data)
    with pytest.raises(ArgumentError, match=r"l2=0\.0 must be above 0"):
        run(SpanHidden("span-dense"), FullSpanModel.build((2, 2, 2), n_hidden=1), data)
