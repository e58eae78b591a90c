"""Fields of any potentials: closed forms, quadrature by SciPy, and the models they are special cases of."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import nquad
from scipy.stats import norm

import gibbsian as gb
from gibbsian.domain import Categories, Continuum
from gibbsian.errors import ArgumentError, CodingError
from gibbsian.inference import exact
from gibbsian.models import MarkovRandomField, Potential, PotentialField
from gibbsian.objectives import Pseudolikelihood, value_and_gradient
from systems import all_states, costs_of, exact_law


def empty(n):
    return gb.graphs.from_edges([], n)


BOX = Continuum("interval", -1.0, 2.0)
LINE = Continuum("gaussian", 0.5, 1.3, 40)


# -- discrete ---------------------------------------------------------------------------------------------------------
def test_tables_are_the_field_of_tables(rng):
    domain, graph = Categories((2, 3, 2)), gb.graphs.grid(1, 3)
    field = PotentialField.build(["table"], graph, domain, tied=False)
    tables = MarkovRandomField.on_cliques([(0,), (1,), (2,), (0, 1), (1, 2)], 3, domain)
    theta = rng.normal(size=tables.theta.size)
    field, tables, states = field.replace(theta), tables.replace(theta), all_states(3, domain)
    np.testing.assert_allclose(costs_of(field, states), costs_of(tables, states), atol=1e-12)
    for name in ("energy", "statistics", "mean_statistics"):
        np.testing.assert_allclose(getattr(field, name)(states), getattr(tables, name)(states), atol=1e-12)
    np.testing.assert_allclose(exact(field).moments, exact(tables).moments, atol=1e-12)


def test_a_lattice_with_one_coupling_is_the_pairwise_machine():
    graph = gb.graphs.grid(3, 4)
    field = PotentialField.build(["bias", "product"], graph, theta=[0.1, 0.4])
    machine = gb.PairwiseModel.build(graph, np.full(12, 0.1), np.full(graph.n_edges, 0.4))
    states = all_states(12)[::97]
    np.testing.assert_allclose(field.log_weights(states), machine.log_weights(states), atol=1e-12)
    pairs, own = exact(machine), exact(field)
    assert own.log_partition == pytest.approx(pairs.log_partition, abs=1e-10)
    np.testing.assert_allclose(own.moments, [pairs.moments[:12].sum(), pairs.moments[12:].sum()], atol=1e-10)


def test_a_tied_coupling_of_a_chain_is_solved_by_its_sufficient_statistic(rng):
    """On a chain of spins without biases the products are independent: the maximum is atanh of their mean."""
    rows = np.where(rng.random((400, 6)) < 0.5, -1, 1)
    rows[:, 1:] = np.where(rng.random((400, 5)) < 0.5, rows[:, :-1], rows[:, 1:])
    mean = (rows[:, 1:] * rows[:, :-1]).mean()
    for learner in ("mle", "mple"):
        machine = gb.MarkovRandomFieldMachine("product", graph="chain", tied=True, learner=learner).fit(rows)
        tolerance = 1e-5 if learner == "mle" else 0.1
        assert machine.parameters_["product"] == pytest.approx(np.arctanh(mean), abs=tolerance)


@pytest.mark.parametrize("region", [1, "s2", [1, 2]])
def test_spatial_integration_of_tied_statistics_is_unbiased(rng, region):
    """YU20 eq. 8 with one parameter for many scopes, at the exact law; its error is that of the sum."""
    field = PotentialField.build(
        ["bias", "absolute-difference"], gb.graphs.grid(2, 2), Categories.of_values((0, 1, 3), 4)
    )
    field = field.replace(np.array([0.2, -0.5]))
    states, law, _ = exact_law(field)
    samples = gb.expectations.Samples(states, law, repeats=np.full(len(law), 1.0))
    estimate = gb.expectations.spatial_statistics(field, samples, region)
    np.testing.assert_allclose(estimate.value, exact(field).moments, atol=1e-10)
    drawn = [states[rng.choice(len(states), 200, p=law)] for _ in range(60)]
    found = [gb.expectations.spatial_statistics(field, own, region) for own in drawn]
    spread = np.std([one.value for one in found], axis=0)
    np.testing.assert_allclose(np.mean([one.stderr for one in found], axis=0), spread, rtol=0.4)


def test_functions_with_several_statistics_and_argument_order():
    def signed(x, y):
        return x - y, (x == 1) & (y == 0)

    field = PotentialField.build(
        [Potential("signed", signed, scopes=[(1, 0), (1, 2)])],
        domain=gb.domain.BINARY,
        theta=[1.0, 10.0],
        n_variables=3,
    )
    assert field.statistics(np.array([[0, 1, 0], [1, 0, 0]])).tolist() == [[2.0, 2.0], [-1.0, 0.0]]
    assert field.parameter_names(["a", "b", "c"]) == ["signed[0]", "signed[1]"]
    assert {tuple(edge) for edge in field.graph.edges.tolist()} == {(0, 1), (1, 2)}


def test_names_of_one_kind_share_parameters():
    left, right = Potential("edge", lambda x, y: x * y, [(0, 1)]), Potential("edge", lambda x, y: x == y, [(1, 2)])
    field = PotentialField.build([left, right], n_variables=3, theta=[1.0])
    assert field.energy(np.array([[1, 1, 1], [1, -1, 1]])).tolist() == [-2.0, 1.0]


def test_gauge_is_what_changes_nothing(rng):
    field = PotentialField.build(["table"], gb.graphs.complete(3), Categories((2, 3, 2)), tied=False)
    field = field.replace(rng.normal(size=field.theta.size))
    moved = field.replace(field.theta + 3.0 * field.structure.gauge[:, 0])
    np.testing.assert_allclose(exact_law(moved)[1], exact_law(field)[1], atol=1e-12)
    np.testing.assert_allclose(moved.canonical().theta, field.canonical().theta, atol=1e-12)
    # 3 x 2 x 3 - 1 free probabilities less those of the interaction of all three
    assert field.theta.size - field.structure.gauge.shape[1] == 1 + 2 + 1 + 2 + 1 + 2


@pytest.mark.parametrize(
    ("potentials", "words"),
    [(["twice"], "is not known"), (["square"], "categories have no numbers"), (["indicator:red"], "names no number")],
)
def test_mistakes_are_said(potentials, words):
    with pytest.raises(ArgumentError, match=words):
        PotentialField.build(potentials, gb.graphs.complete(2), Categories((2, 3)))


def test_tying_tables_of_different_sizes_is_refused():
    with pytest.raises(ArgumentError, match="2 statistics on one scope and 3"):
        PotentialField.build(["table"], empty(2), Categories((2, 3)))


# -- continuous: against SciPy's integrals ----------------------------------------------------------------------------
def field_of(domain, n=3):
    theta = [0.4, -0.3, 0.5, -0.2]
    potentials = ["bias", "square", "product", "squared-difference"]
    return PotentialField.build(potentials, gb.graphs.grid(1, n), domain, theta=theta)


def statistics_of_two(x, y):
    return x + y, x * x + y * y, x * y, (x - y) ** 2


def integral(domain, function=lambda x, y: 1.0):
    """The integral of a function under the unnormalised density of `field_of` two variables, written out."""
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
    field = field_of(domain, 2)
    z, engine = integral(domain), exact(field)
    assert engine.log_partition == pytest.approx(np.log(z), abs=1e-8)
    moments = engine.moments
    assert engine.means == pytest.approx(np.full(2, moments[0] / 2), abs=1e-12)
    for k in range(4):
        expected = integral(domain, lambda x, y, k=k: statistics_of_two(x, y)[k]) / z
        assert moments[k] == pytest.approx(expected, abs=1e-7)
    node = 7  # a marginal probability over the node's weight is the density there
    x = domain.nodes[node]
    rest, constant = field.given([0], [x]).at(field.theta)
    density = np.exp(constant + exact(rest).log_partition) / z
    mass = engine.marginal([0])[node] / np.exp(domain.node_log_weights[node] - domain.log_base(x))
    assert mass == pytest.approx(density, abs=1e-8)


def test_three_variables_of_a_ring():
    field = PotentialField.build(["bias", "product"], gb.graphs.complete(3), BOX, theta=[0.5, -0.7])
    ends = [(BOX.low, BOX.high)] * 2

    def inner(x, y):  # the third variable has a closed form: a truncated exponential
        slope = 0.5 - 0.7 * (x + y)
        edge = (np.exp(slope * BOX.high) - np.exp(slope * BOX.low)) / slope if abs(slope) > 1e-9 else BOX.high - BOX.low
        return np.exp(0.5 * (x + y) - 0.7 * x * y) * edge

    assert exact(field).log_partition == pytest.approx(np.log(nquad(inner, ends)[0]), abs=1e-8)


def test_uniform_and_truncated_exponential_are_closed_forms():
    still = PotentialField.build(["bias"], empty(2), BOX)
    assert exact(still).log_partition == pytest.approx(2 * np.log(3.0), abs=1e-12)
    for theta in (0.7, -3.0, 8.0):
        field = PotentialField.build(["bias"], empty(1), BOX, theta=[theta])
        z = (np.exp(2 * theta) - np.exp(-theta)) / theta
        mean = (2 * np.exp(2 * theta) + np.exp(-theta)) / (z * theta) - 1 / theta
        assert exact(field).log_partition == pytest.approx(np.log(z), abs=1e-12)
        assert exact(field).moments[0] == pytest.approx(mean, abs=1e-12)


def test_a_gaussian_with_a_coupling_is_bivariate_normal():
    domain, coupling = Continuum("gaussian", 0.0, 1.0, 60), 0.4
    field = PotentialField.build(["product"], gb.graphs.complete(2), domain, theta=[coupling])
    covariance = np.linalg.inv(np.array([[1.0, -coupling], [-coupling, 1.0]]))
    found = exact(field)
    assert found.log_partition == pytest.approx(0.5 * np.log(np.linalg.det(covariance)), abs=1e-9)
    assert found.moments[0] == pytest.approx(covariance[0, 1], abs=1e-8)


# -- continuous: rows of any numbers ----------------------------------------------------------------------------------
@pytest.mark.parametrize("domain", [BOX, LINE], ids=["interval", "gaussian"])
def test_pseudolikelihood_is_the_conditional_density_with_its_gradient(rng, domain):
    field = field_of(domain)
    rows = rng.uniform(-1, 2, size=(20, 3))
    data = gb.Dataset.of_states(rows, gb.domain.RealCoding(domain))
    value, gradient = value_and_gradient(Pseudolikelihood(), field, data)
    expected = 0.0
    for row, i in itertools.product(rows, range(3)):
        others = [j for j in range(3) if j != i]
        rest, constant = field.given(others, row[others]).at(field.theta)
        expected += constant + exact(rest).log_partition - field.log_weights(row[None])[0]
    assert value == pytest.approx(expected / 20, abs=1e-10)
    function, h = Pseudolikelihood().bind(field, data), 1e-6
    for k, unit in enumerate(np.eye(4)):
        difference = function(field.theta + h * unit)[0] - function(field.theta - h * unit)[0]
        assert gradient[k] == pytest.approx(difference / (2 * h), abs=1e-7)


@pytest.mark.parametrize("domain", [BOX, LINE], ids=["interval", "gaussian"])
@pytest.mark.parametrize("sampler", ["gibbs", "chromatic", "random-scan"])
def test_chains_stay_at_the_density(rng, domain, sampler):
    """Started at exact draws, all moments stay where they are; a kink does not disturb them."""
    field = PotentialField.build(["bias", "square", "absolute-difference"], gb.graphs.grid(1, 3), domain)
    field = field.replace(np.array([0.5, -0.4, -1.0]))
    n, chosen = 8000, gb.samplers.as_sampler(sampler)
    start, _ = gb.answers.answers_about(field).sample(n, rng)
    chains, info = chosen.step(field, chosen.init(field, n, rng, states=start), 2)
    assert info.flips > 0.97
    drawn = field.statistics(chains.states)
    error = drawn.std(axis=0) / np.sqrt(n)
    assert (np.abs(drawn.mean(axis=0) - moments_of_chain(domain, field.theta)) < 4.5 * error + 1e-3).all()


def test_chains_stay_at_the_density_on_a_coarse_grid(rng, monkeypatch):
    """What straight lines between four points leave out is rejected."""
    monkeypatch.setattr("gibbsian.samplers.continuous_gibbs.N_CELLS", 3)
    field = PotentialField.build(["square"], empty(1), BOX, theta=[-4.0])
    n, sampler = 20_000, gb.samplers.Gibbs()
    chains, info = sampler.step(field, sampler.init(field, n, rng), 30)
    squares = chains.states[:, 0] ** 2
    assert 0.3 < info.flips < 0.95
    assert abs(squares.mean() - exact(field).moments[0]) < 4.5 * squares.std() / np.sqrt(n)


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
    field = PotentialField.build(["bias"], empty(1), BOX, theta=[1.5])
    rows = np.sort(gb.answers.answers_about(field).sample(20_000, rng)[0][:, 0])
    cdf = np.expm1(1.5 * (rows + 1)) / np.expm1(4.5)
    assert np.abs(cdf - (np.arange(rows.size) + 0.5) / rows.size).max() < 1.7 / np.sqrt(rows.size)  # Kolmogorov, 0.6 %


def test_draws_on_the_line_are_normal(rng):
    field = PotentialField.build(["bias", "square"], empty(1), Continuum("gaussian"), theta=[1.0, -0.5])
    rows = np.sort(gb.answers.answers_about(field).sample(20_000, rng)[0][:, 0])  # precision 2, mean 1/2
    cdf = norm.cdf(rows, 0.5, np.sqrt(0.5))
    assert np.abs(cdf - (np.arange(rows.size) + 0.5) / rows.size).max() < 1.7 / np.sqrt(rows.size)


@pytest.mark.parametrize("domain", [Continuum("interval", -1.0, 2.0, 12), Continuum("gaussian", 0.0, 1.0, 14)])
def test_spatial_integration_is_unbiased_with_less_variance(rng, domain):
    """Y18 and YU20 theorems 1 and 2 for continuous sample spaces."""
    field = PotentialField.build(["bias", "product"], gb.graphs.grid(2, 2), domain, theta=[0.2, 0.3])
    truth = exact(field).moments
    rows, _ = gb.answers.answers_about(field).sample(1500, rng)
    plain = field.statistics(rows).std(axis=0) / np.sqrt(len(rows))
    before = plain
    for region in (1, "s2"):
        estimate = gb.expectations.spatial_statistics(field, rows, region)
        assert (np.abs(estimate.value - truth) < 4.5 * estimate.stderr + 1e-9).all()
        assert (estimate.stderr < before).all()
        before = estimate.stderr


def test_annealing_brackets_log_z(rng):
    field = field_of(Continuum("interval", -1.0, 2.0, 10))
    bracket = gb.answers.answers_about(field).log_partition_interval(rng, 60, 200)
    assert bracket.lower < exact(field).log_partition < bracket.upper


def test_other_questions_are_refused_in_words(rng):
    field = field_of(BOX)
    with pytest.raises(CodingError, match="the support is from -1 to 2"):
        field.energy(np.full((1, 3), 2.5))
    with pytest.raises(ArgumentError, match="no formula for continuous"):
        gb.expectations.MeanField().init(field, None, rng)
    with pytest.raises(ArgumentError, match="none is a mode"):
        exact(field).mode  # noqa: B018
    with pytest.raises(ArgumentError, match="have no tables"):
        PotentialField.build(["table"], gb.graphs.complete(2), BOX)
    with pytest.raises(CodingError, match="no support"):
        Continuum("interval", 1.0, 0.0)


def test_ranges_of_functions_are_within_the_box_or_four_deviations():
    for domain, low, high in ((BOX, -1.0, 2.0), (LINE, 0.5 - 4 * 1.3, 0.5 + 4 * 1.3)):
        field = PotentialField.build(["bias", "square"], empty(1), domain, theta=[1.0, -0.5])
        least, most, widest = field.structure.ranges
        np.testing.assert_allclose([least[0], most[0], widest[0]], [low, high, high - low])
        assert most[1] == pytest.approx(max(low**2, high**2))


def test_what_is_left_of_a_field_keeps_its_functions_in_a_file(rng):
    domain = Categories.of_values((-1.0, 0.0, 2.0), 3)
    field = PotentialField.build(["bias", "product"], gb.graphs.complete(3), domain)
    field = field.replace(rng.normal(size=field.theta.size))
    rest, _ = field.given([1], [2]).at(field.theta)
    again = type(rest).from_parts(*rest.to_parts(), rest.domain)
    states = all_states(2, rest.domain)
    np.testing.assert_allclose(again.log_weights(states), rest.log_weights(states), atol=1e-12)
