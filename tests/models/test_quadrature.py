"""Families of real variables by quadrature: against SciPy's integrals, closed forms, and chains that stay."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import nquad
from scipy.stats import norm

import gibbsian as gb
from gibbsian.domain import Continuum
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.inference import exact
from gibbsian.learning.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.models import Quadrature, QuadratureFamily

BOX = Continuum("interval", -1.0, 2.0)
LINE = Continuum("gaussian", 0.5, 1.3, 40)


def empty(n):
    return gb.graphs.from_edges([], n)


def model_on(graph, domain, potentials, theta):
    """A model of potentials on a graph over real variables."""
    family = QuadratureFamily.build(potentials, Quadrature.of(domain, graph.n_nodes), graph)
    return gb.Model(family, np.array(theta))


def chain_of(domain, n=3):
    theta = [0.4, -0.3, 0.5, -0.2]
    potentials = ["bias", "square", "product", "squared-difference"]
    return model_on(gb.graphs.grid(1, n), domain, potentials, theta)


def statistics_of_two(x, y):
    return x + y, x * x + y * y, x * y, (x - y) ** 2


def integral(domain, function=lambda x, y: 1.0):
    """The integral of a function under the unnormalised density of `chain_of` two variables, written out."""
    ends = (domain.low, domain.high) if domain.bounded else (domain.low - 8 * domain.high, domain.low + 8 * domain.high)

    def weighted(x, y):
        first, square, product, difference = statistics_of_two(x, y)
        log_weight = 0.4 * first - 0.3 * square + 0.5 * product - 0.2 * difference
        base = 0.0
        if not domain.bounded:
            base = -sum(((z - domain.low) / domain.high) ** 2 / 2 + math.log(domain.high) for z in (x, y))
            base -= math.log(2 * math.pi)
        return math.exp(log_weight + base) * function(x, y)

    return nquad(weighted, [ends] * 2, opts={"epsabs": 1e-9, "epsrel": 1e-9})[0]


@pytest.mark.parametrize("domain", [BOX, LINE], ids=["interval", "gaussian"])
def test_log_z_moments_and_marginals_are_integrals(domain):
    model = chain_of(domain, 2)
    z, engine = integral(domain), exact(model)
    assert engine.log_partition == pytest.approx(np.log(z), abs=1e-8)
    moments = engine.moments
    assert engine.means == pytest.approx(np.full(2, moments[0] / 2), abs=1e-12)
    for k in range(4):
        expected = integral(domain, lambda x, y, k=k: statistics_of_two(x, y)[k]) / z
        assert moments[k] == pytest.approx(expected, abs=1e-7)
    node = 7  # a marginal probability over the node's weight is the density there
    x = domain.nodes[node]
    rest, constant = model.given([0], [x])
    density = np.exp(constant + exact(rest).log_partition) / z
    mass = engine.marginal([0])[node] / np.exp(domain.node_log_weights[node] - domain.log_base(x))
    assert mass == pytest.approx(density, abs=1e-8)


def test_three_variables_of_a_ring():
    model = model_on(gb.graphs.complete(3), BOX, ["bias", "product"], [0.5, -0.7])
    ends = [(BOX.low, BOX.high)] * 2

    def inner(x, y):  # the third variable has a closed form: a truncated exponential
        slope = 0.5 - 0.7 * (x + y)
        edge = (np.exp(slope * BOX.high) - np.exp(slope * BOX.low)) / slope if abs(slope) > 1e-9 else BOX.high - BOX.low
        return np.exp(0.5 * (x + y) - 0.7 * x * y) * edge

    assert exact(model).log_partition == pytest.approx(np.log(nquad(inner, ends)[0]), abs=1e-8)


def test_uniform_and_truncated_exponential_are_closed_forms():
    still = model_on(empty(2), BOX, ["bias"], [0.0])
    assert exact(still).log_partition == pytest.approx(2 * np.log(3.0), abs=1e-12)
    for theta in (0.7, -3.0, 8.0):
        model = model_on(empty(1), BOX, ["bias"], [theta])
        z = (np.exp(2 * theta) - np.exp(-theta)) / theta
        mean = (2 * np.exp(2 * theta) + np.exp(-theta)) / (z * theta) - 1 / theta
        assert exact(model).log_partition == pytest.approx(np.log(z), abs=1e-12)
        assert exact(model).moments[0] == pytest.approx(mean, abs=1e-12)


def test_a_gaussian_with_a_coupling_is_bivariate_normal():
    domain, coupling = Continuum("gaussian", 0.0, 1.0, 60), 0.4
    model = model_on(gb.graphs.complete(2), domain, ["product"], [coupling])
    covariance = np.linalg.inv(np.array([[1.0, -coupling], [-coupling, 1.0]]))
    found = exact(model)
    assert found.log_partition == pytest.approx(0.5 * np.log(np.linalg.det(covariance)), abs=1e-9)
    assert found.moments[0] == pytest.approx(covariance[0, 1], abs=1e-8)


# -- continuous: rows of any numbers ----------------------------------------------------------------------------------
@pytest.mark.parametrize("domain", [BOX, LINE], ids=["interval", "gaussian"])
def test_pseudolikelihood_is_the_conditional_density_with_its_gradient(rng, domain):
    model = chain_of(domain)
    rows = rng.uniform(-1, 2, size=(20, 3))
    data = gb.Dataset.of_states(rows, gb.domain.RealCoding(domain))
    value, gradient = value_and_gradient(Pseudolikelihood(), model, data)
    expected = 0.0
    for row, i in itertools.product(rows, range(3)):
        others = [j for j in range(3) if j != i]
        rest, constant = model.given(others, row[others])
        expected += constant + exact(rest).log_partition - model.log_weights(row[None])[0]
    assert value == pytest.approx(expected / 20, abs=1e-10)
    function, h = Pseudolikelihood().bind(model, data), 1e-6
    for k, unit in enumerate(np.eye(4)):
        difference = function(model.theta + h * unit)[0] - function(model.theta - h * unit)[0]
        assert gradient[k] == pytest.approx(difference / (2 * h), abs=1e-7)


@pytest.mark.parametrize("domain", [BOX, LINE], ids=["interval", "gaussian"])
@pytest.mark.parametrize("sampler", ["gibbs", "chromatic", "random-scan"])
def test_chains_stay_at_the_density(rng, domain, sampler):
    """Started at exact draws, all moments stay where they are; a kink does not disturb them."""
    model = model_on(gb.graphs.grid(1, 3), domain, ["bias", "square", "absolute-difference"], [0.5, -0.4, -1.0])
    n, kernel = 8000, gb.sampling.kernel_for(model.family, sampler)
    start, _ = gb.answers.answers_about(model).sample(n, rng)
    chains, info = kernel.step(model.theta, kernel.init(n, gb.rng.Key.of(rng), start), 2)
    assert info.acceptance > 0.97
    drawn = model.family.statistics(chains.states)
    error = drawn.std(axis=0) / np.sqrt(n)
    assert (np.abs(drawn.mean(axis=0) - moments_of_chain(domain, model.theta)) < 4.5 * error + 1e-3).all()


def test_chains_stay_at_the_density_on_a_coarse_grid(rng, monkeypatch):
    """What straight lines between four points leave out is rejected."""
    monkeypatch.setattr("gibbsian.sampling.continuous.N_CELLS", 3)
    model = model_on(empty(1), BOX, ["square"], [-4.0])
    n, kernel = 20_000, gb.sampling.kernel_for(model.family)
    chains, info = kernel.step(model.theta, kernel.init(n, gb.rng.Key.of(rng)), 30)
    squares = chains.states[:, 0] ** 2
    assert 0.3 < info.acceptance < 0.95
    assert abs(squares.mean() - exact(model).moments[0]) < 4.5 * squares.std() / np.sqrt(n)


def moments_of_chain(domain, theta, n_points=601):
    """Moments of three variables in a row as derivatives of log Z, by the midpoint rule on a fine grid."""
    ends = (domain.low, domain.high) if domain.bounded else (domain.low - 8 * domain.high, domain.low + 8 * domain.high)
    step = (ends[1] - ends[0]) / n_points
    x = ends[0] + step * (np.arange(n_points) + 0.5)
    base = np.zeros(n_points) if domain.bounded else norm.logpdf(x, domain.low, domain.high)

    def log_z(theta):
        single = np.exp(theta[0] * x + theta[1] * x * x + base)
        pair = np.exp(theta[2] * np.abs(x[:, None] - x))
        return np.log(single @ (pair @ (single * (pair @ single))))

    return [(log_z(theta + 1e-4 * unit) - log_z(theta - 1e-4 * unit)) / 2e-4 for unit in np.eye(3)]


def test_draws_of_linear_energies_are_truncated_exponentials(rng):
    model = model_on(empty(1), BOX, ["bias"], [1.5])
    rows = np.sort(gb.answers.answers_about(model).sample(20_000, rng)[0][:, 0])
    cdf = np.expm1(1.5 * (rows + 1)) / np.expm1(4.5)
    assert np.abs(cdf - (np.arange(rows.size) + 0.5) / rows.size).max() < 1.7 / np.sqrt(rows.size)  # Kolmogorov, 0.6 %


def test_draws_on_the_line_are_normal(rng):
    model = model_on(empty(1), Continuum("gaussian"), ["bias", "square"], [1.0, -0.5])
    rows = np.sort(gb.answers.answers_about(model).sample(20_000, rng)[0][:, 0])  # precision 2, mean 1/2
    cdf = norm.cdf(rows, 0.5, np.sqrt(0.5))
    assert np.abs(cdf - (np.arange(rows.size) + 0.5) / rows.size).max() < 1.7 / np.sqrt(rows.size)


@pytest.mark.parametrize("domain", [Continuum("interval", -1.0, 2.0, 12), Continuum("gaussian", 0.0, 1.0, 14)])
def test_spatial_integration_is_unbiased_with_less_variance(rng, domain):
    """Y18 and YU20 theorems 1 and 2 for continuous sample spaces."""
    model = model_on(gb.graphs.grid(2, 2), domain, ["bias", "product"], [0.2, 0.3])
    truth = exact(model).moments
    rows, _ = gb.answers.answers_about(model).sample(1500, rng)
    plain = model.family.statistics(rows).std(axis=0) / np.sqrt(len(rows))
    before = plain
    for region in (1, "s2"):
        estimate = gb.expectations.spatial_statistics(model, rows, region)
        assert (np.abs(estimate.value - truth) < 4.5 * estimate.stderr + 1e-9).all()
        assert (estimate.stderr < before).all()
        before = estimate.stderr


def test_annealing_brackets_log_z(rng):
    model = chain_of(Continuum("interval", -1.0, 2.0, 10))
    bracket = gb.answers.answers_about(model).log_partition_interval(rng, 60, 200)
    assert bracket.lower < exact(model).log_partition < bracket.upper


def test_other_questions_are_refused_in_words(rng):
    model = chain_of(BOX)
    with pytest.raises(CodingError, match="the support is from -1 to 2"):
        model.energy(np.full((1, 3), 2.5))
    with pytest.raises(ArgumentError, match="no formula for continuous"):
        gb.expectations.MeanField().bind(model)
    with pytest.raises(ArgumentError, match="none is a mode"):
        exact(model).mode  # noqa: B018
    with pytest.raises(ArgumentError, match="have no tables"):
        model_on(gb.graphs.complete(2), BOX, ["table"], [])
    with pytest.raises(CodingError, match="no support"):
        Continuum("interval", 1.0, 0.0)


def test_ranges_of_functions_are_within_the_box_or_four_deviations():
    for domain, low, high in ((BOX, -1.0, 2.0), (LINE, 0.5 - 4 * 1.3, 0.5 + 4 * 1.3)):
        model = model_on(empty(1), domain, ["bias", "square"], [1.0, -0.5])
        (least, most), widest = model.family.statistic_range, model.family.log_odds(np.array([1.0, 1.0]))
        np.testing.assert_allclose([least[0], most[0]], [low, high])
        assert widest[0] == pytest.approx((high - low) / (1.0 if domain.bounded else 8.0))
        assert most[1] == pytest.approx(max(low**2, high**2))
