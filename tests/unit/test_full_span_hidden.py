"""A hidden variable by EM: the cost never rises, and what is hidden is found."""

import numpy as np
import pytest

from gibbsian.errors import ArgumentError, DataError
from gibbsian.full_span import SpanProblem, fit_full_span, fit_hidden
from gibbsian.models.span_basis import SpanBasis

DENSE = {"l2": 0.003, "l2_growth": 4.0}


def two_classes(n_rows, rng, n_variables=6):
    """Independent variables within each of two classes."""
    hidden = rng.random(n_rows) < 0.4
    x = np.where(hidden[:, None], rng.random((n_rows, n_variables)) < 0.85, rng.random((n_rows, n_variables)) < 0.15)
    return x.astype(int), hidden


@pytest.mark.parametrize("algorithm", ["greedy", "newton", "dense"])
@pytest.mark.parametrize(("cardinalities", "n_hidden"), [((2,) * 6, 2), ((2,) * 5, 4), ((3, 2, 3), 3)], ids=str)
def test_cost_never_rises(algorithm, cardinalities, n_hidden, rng):
    x = (rng.random((300, len(cardinalities))) ** 1.5 * cardinalities).astype(int)
    x[:150, 1] = x[:150, 0] % 2
    settings = DENSE if algorithm == "dense" else {"mdl_scale": 0.3}
    fit = fit_hidden(
        x, np.ones(300), cardinalities, n_hidden=n_hidden, algorithm=algorithm, random_state=1, epsilon=1e-6, **settings
    )
    assert len(fit.costs) > 2
    assert np.diff(fit.costs).max() <= 1e-8
    assert fit.converged


@pytest.mark.parametrize("algorithm", ["newton", "dense"])
def test_cost_is_that_of_the_definition(algorithm, rng):
    x, _ = two_classes(400, rng)
    settings = DENSE if algorithm == "dense" else {"l2": 0.001}
    fit = fit_hidden(x, np.ones(400), (2,) * 6, algorithm=algorithm, random_state=0, **settings)
    states, counts = np.unique(x, axis=0, return_counts=True)
    shares = counts / 400
    divergence = shares @ (np.log(shares) - fit.log_probabilities(states))
    joint = SpanProblem.build(np.column_stack([x, x[:, 0]]), np.ones(400), (2,) * 7, **settings)
    penalties = joint.shrinks(fit.joint.indices, fit.joint.theta)
    if algorithm == "newton":
        penalties += joint.penalties(fit.joint.indices).sum()
    assert fit.costs[-1] == pytest.approx(divergence + penalties, abs=1e-10)


def test_two_classes_are_found(rng):
    x, hidden = two_classes(1500, rng)
    fit = fit_hidden(x, np.ones(1500), (2,) * 6, n_starts=3, random_state=0)
    first = fit.responsibilities(x)[:, 0] > 0.5
    agreement = np.mean(first == hidden)
    assert max(agreement, 1 - agreement) > 0.95
    plain = fit_full_span(x, np.ones(1500), (2,) * 6)
    assert fit.costs[-1] < plain.cost  # six functions of one class variable instead of fifteen pairs
    assert fit.joint.indices.size < plain.model.indices.size


def test_tables_are_consistent(rng):
    x, _ = two_classes(300, rng)
    fit = fit_hidden(x, np.ones(300), (2,) * 6, n_hidden=4, random_state=0)
    joint = fit.joint_probabilities()
    assert joint.shape == (64, 4)
    assert np.allclose(fit.probabilities(), joint.sum(axis=1))
    assert fit.probabilities().sum() == pytest.approx(1.0)
    assert np.allclose(np.exp(fit.log_probabilities(x[:5])), fit.probabilities()[SpanBasis((2,) * 6).indices(x[:5])])
    assert np.allclose(fit.responsibilities(x).sum(axis=1), 1.0)


def test_more_starts_never_end_higher(rng):
    x, _ = two_classes(300, rng)
    ends = [fit_hidden(x, np.ones(300), (2,) * 6, n_starts=k, random_state=7).costs[-1] for k in (1, 4)]
    assert ends[1] <= ends[0]


def test_equal_rows_are_counted_together(rng):
    x, _ = two_classes(200, rng, n_variables=4)
    states, counts = np.unique(x, axis=0, return_counts=True)
    rows, distinct = (
        fit_hidden(s, c, (2,) * 4, algorithm="dense", random_state=3, **DENSE).costs
        for s, c in ((x, np.ones(200)), (states, counts))
    )
    assert rows == pytest.approx(distinct, abs=1e-9)


def test_bad_arguments_are_named():
    states = np.array([[0, 1]])
    for settings, message in (
        ({"n_hidden": 1}, "n_hidden=1 must be at least 2"),
        ({"algorithm": "em"}, "algorithm='em' must be one of greedy, newton, dense"),
        ({"max_rounds": 0}, "max_rounds=0"),
        ({"n_starts": 0}, "n_starts=0"),
        ({"algorithm": "dense"}, "l2=0 must be above 0"),
    ):
        with pytest.raises(ArgumentError, match=message):
            fit_hidden(states, [5], (2, 2), **settings)
    with pytest.raises(DataError, match="column 1 of states"):
        fit_hidden(np.array([[0, 2]]), [5], (2, 2))
