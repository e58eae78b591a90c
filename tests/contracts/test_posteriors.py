"""Every way to sum out what rows do not show, against the sum over all states that agree with each row."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import gibbsian as gb
from gibbsian.inference import posterior as module
from gibbsian.inference.completions import value_indicators
from gibbsian.inference.log_tables import digits
from gibbsian.inference.posterior import EnumeratedRows, InParts, OneByOne, Posterior, posterior, split_rows
from gibbsian.models.layers.stack import StackFamily
from gibbsian.models.layers.units import SpinUnits, as_units
from systems import exact_law, models_with_variables, name_of, random_model_of

GRAPH = gb.graphs.from_edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], 5)
MODELS = {f"{kind}-{name_of(variables)}": (kind, variables) for kind, variables in models_with_variables(5)}


def together(family, x, missing):
    """The rows that are cheap together, which must be all of these."""
    light, rows, _ = split_rows(family, x, missing)
    assert len(light) == len(x)
    return rows


def in_parts(family, x, missing):
    """Every other row by itself."""
    odd, even = np.arange(len(x)) % 2 == 1, np.arange(len(x)) % 2 == 0
    parts = [(odd, EnumeratedRows), (even, OneByOne)]
    return InParts([(np.flatnonzero(rows), kind(family, x[rows], missing[rows])) for rows, kind in parts])


KINDS = {
    "together": together,
    "listed": EnumeratedRows,
    "one-by-one": OneByOne,
    "in-parts": in_parts,
    "chosen": posterior,
}
CASES = [(kind, name) for kind in KINDS for name in MODELS]


@pytest.fixture(params=CASES, ids=lambda case: "-".join(case))
def bound(request, rng):
    """A model at other parameters than those of the family, rows with missing cells, and these bound."""
    kind, (name, variables) = request.param[0], MODELS[request.param[1]]
    model = random_model_of(name, GRAPH, rng, variables, scale=0.8)
    x = rng.integers(0, variables.sizes, size=(30, 5)).astype(np.int8)
    missing = rng.random(x.shape) < 0.4
    missing[0], missing[1] = False, True
    if kind in {"one-by-one", "in-parts"}:  # a row by itself lacks something
        missing[~missing.any(axis=1), 2] = True
    rows = KINDS[kind](model.family, x, missing)
    return model.replace(rng.normal(scale=0.8, size=model.theta.size)), x, missing, rows


def agreeing(model, x, missing):
    """For each row the states that agree with what it shows, and their weights."""
    states, probabilities, log_partition = exact_law(model)
    weights = probabilities * np.exp(log_partition)
    for row, hidden in zip(x, missing, strict=True):
        same = ((states == row) | hidden).all(axis=1)
        yield states[same], weights[same]


def test_evidence_is_the_sum_over_what_is_missing(bound):
    model, x, missing, rows = bound
    assert isinstance(rows, Posterior)
    assert rows.seconds > 0
    expected = [np.log(weights.sum()) for _, weights in agreeing(model, x, missing)]
    np.testing.assert_allclose(rows.log_evidence(model.theta), expected, atol=1e-11)


@pytest.mark.parametrize("signs", [1.0, -1.0])
def test_expected_statistics_are_weighted_sums(bound, signs, rng):
    """Weights of either sign: differences of rows have both."""
    model, x, missing, rows = bound
    share = rng.random(len(x)) * np.where(np.arange(len(x)) % 3, 1.0, signs)
    share[2] = 0.0
    evidence, statistics = rows.expect(model.theta, share)
    np.testing.assert_array_equal(evidence, rows.log_evidence(model.theta))
    means = [model.family.mean_statistics(states, weights) for states, weights in agreeing(model, x, missing)]
    np.testing.assert_allclose(statistics, share @ means, atol=1e-11)


def test_statistics_are_the_slope_of_the_evidence(bound, rng):
    model, x, _, rows = bound
    share, direction, step = rng.random(len(x)), rng.normal(size=model.theta.size), 1e-5
    up, down = (share @ rows.log_evidence(model.theta + sign * step * direction) for sign in (1, -1))
    assert rows.expect(model.theta, share)[1] @ direction == pytest.approx((up - down) / (2 * step), abs=1e-7)


def test_cells_have_their_probabilities(bound):
    model, x, missing, rows = bound
    found = rows.cell_probabilities(model.theta)
    for own, (states, weights) in zip(found, agreeing(model, x, missing), strict=True):
        expected = weights @ value_indicators(model.variables, states) / weights.sum()
        np.testing.assert_allclose(own, expected, atol=1e-11)


def test_rows_that_lack_the_same_cells_share_an_engine(rng, monkeypatch):
    model = random_model_of("pairwise", GRAPH, rng)
    missing = np.repeat([[True, True, False, False, False], [False, True, False, True, False]], 10, axis=0)
    x = rng.integers(0, 2, size=missing.shape).astype(np.int8)
    rows, planned = OneByOne(model.family, x, missing), []
    plan = module.plan_exact
    monkeypatch.setattr(module, "plan_exact", lambda *args, **how: planned.append(args) or plan(*args, **how))
    for _ in range(3):
        rows.log_evidence(model.theta)
    assert len(planned) == 2


def test_completions_that_are_not_kept_are_listed_again(rng, monkeypatch):
    model = random_model_of("tables", GRAPH, rng, gb.Variables.categories((3, 2, 2, 3, 2)))
    x = rng.integers(0, 2, size=(20, 5)).astype(np.int8)
    missing, share = rng.random(x.shape) < 0.4, rng.random(20)
    kept = EnumeratedRows(model.family, x, missing)
    evidence, statistics = kept.expect(model.theta, share)
    monkeypatch.setattr(module, "MAX_KEPT_BYTES", 0.0)
    monkeypatch.setattr(module, "LISTED_AT_ONCE", 10)
    again, others = EnumeratedRows(model.family, x, missing).expect(model.theta, share)
    np.testing.assert_array_equal(again, evidence)
    np.testing.assert_allclose(others, statistics, atol=1e-12)
    np.testing.assert_array_equal(EnumeratedRows(model.family, x, missing).log_evidence(model.theta), evidence)


def test_rows_beyond_the_time_are_refused(rng):
    model = random_model_of("pairwise", gb.graphs.complete(40), rng)
    rows = posterior(model.family, np.ones((1, 40), np.int8), np.ones((1, 40), bool), max_seconds=0.1)
    with pytest.raises(gb.errors.TooExpensiveError, match="exact inference on 40 variables would take"):
        rows.log_evidence(model.theta)


@pytest.mark.parametrize("n_hidden", [1, 3, 7], ids=lambda n: f"{n} hidden units")
@pytest.mark.parametrize("units", ["binary", "spin", "categorical"])
def test_rows_of_two_layers(units, n_hidden, rng):
    """Whether the missing or the hidden units are enumerated: against the sum over all units that are not shown."""
    visible = as_units(units, 4, (2, 3, 2, 2) if units == "categorical" else ())
    family = StackFamily((visible, SpinUnits(n_hidden)))
    theta, sizes = rng.normal(scale=0.7, size=family.n_parameters), family.variables.sizes
    x = rng.integers(0, sizes[:4], size=(30, 4)).astype(np.int8)
    missing = rng.random(x.shape) < 0.5
    missing[0], missing[1] = False, True
    rows, share = posterior(family, x, missing), rng.normal(size=len(x))
    every = digits(np.arange(np.prod(sizes)), sizes)
    weights, values = np.exp(family.log_weights(theta, every)), np.hstack(family.encode(every))
    evidence, statistics = rows.expect(theta, share)
    cells, expected = rows.cell_probabilities(theta), np.zeros(theta.size)
    for m, (row, hidden) in enumerate(zip(x, missing, strict=True)):
        same = ((every[:, :4] == row) | hidden).all(axis=1)
        probabilities = weights[same] / weights[same].sum()
        assert evidence[m] == pytest.approx(np.log(weights[same].sum()), abs=1e-12)
        np.testing.assert_allclose(cells[m], probabilities @ (values[same] > 0), atol=1e-12)
        expected += share[m] * family.mean_statistics(every[same], probabilities)
    np.testing.assert_allclose(rows.log_evidence(theta), evidence, atol=1e-12)
    np.testing.assert_allclose(statistics, expected, atol=1e-11)


class TestGaussianRows:
    @pytest.fixture
    def bound(self, rng):
        family = gb.GaussianFamily(GRAPH, rng.normal(size=5), rng.uniform(0.5, 2.0, size=5))
        precision = 3.0 * np.eye(5)
        precision[tuple(GRAPH.edges.T)] = precision[tuple(GRAPH.edges.T[::-1])] = rng.normal(scale=0.5, size=5)
        x, missing = rng.normal(size=(20, 5)), rng.random((20, 5)) < 0.4
        missing[0], missing[1] = False, True
        return family, family.theta_of(precision, rng.normal(size=5)), x, missing

    def test_evidence_is_the_density_of_the_present_cells(self, bound):
        family, theta, x, missing = bound
        mean, covariance = family.moments(theta)
        evidence = posterior(family, x, missing).log_evidence(theta) - family.log_partition(theta)
        for row, mask, found in zip(x, missing, evidence, strict=True):
            if mask.all():
                assert found == pytest.approx(0.0, abs=1e-12)
                continue
            law = multivariate_normal(mean[~mask], covariance[np.ix_(~mask, ~mask)])
            assert found == pytest.approx(law.logpdf(row[~mask]))

    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_expected_statistics_are_the_gradient_of_the_evidence(self, bound, rng, sign):
        family, theta, x, missing = bound
        rows, weights, step = posterior(family, x, missing), sign * rng.uniform(0.5, 1.5, size=20), 1e-5
        evidence, statistics = rows.expect(theta, weights)
        np.testing.assert_array_equal(evidence, rows.log_evidence(theta))
        slopes = [
            weights @ (rows.log_evidence(theta + move) - rows.log_evidence(theta - move)) / (2 * step)
            for move in step * np.eye(theta.size)
        ]
        np.testing.assert_allclose(statistics, slopes, rtol=1e-6, atol=1e-6)
