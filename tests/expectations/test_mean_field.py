"""Mean field and belief propagation as expectations: bounds, trees, and the same answers by every road."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError, ConvergenceWarning
from gibbsian.expectations import Bethe, MeanField
from gibbsian.expectations.bethe import FactorMessages
from gibbsian.expectations.mean_field import IndependentFactors
from gibbsian.rng import Key
from systems import exact_law, models_with_variables, name_of, random_model, random_model_of, take

TREE = gb.graphs.from_edges([(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)], 6)


def named(part):
    return part if isinstance(part, str) else name_of(part)


@pytest.mark.parametrize(("kind", "variables"), models_with_variables(6), ids=named)
def test_bethe_is_exact_on_trees_of_every_model(kind, variables, rng):
    model = random_model_of(kind, TREE, rng, variables)
    states, probabilities, log_partition = exact_law(model)
    found = take(Bethe(tol=1e-12), model)
    np.testing.assert_allclose(found.value, model.family.mean_statistics(states, probabilities), atol=1e-10)
    assert found.parts["log_partition"].value == pytest.approx(log_partition, abs=1e-10)
    assert found.parts["converged"]


@pytest.mark.parametrize(("kind", "variables"), models_with_variables(6), ids=named)
def test_mean_field_is_a_lower_bound_that_never_falls(kind, variables, rng):
    model = random_model_of(kind, gb.graphs.complete(6), rng, variables, scale=0.4)
    bound = MeanField(max_iter=1, warn=False).bind(model)
    state, bounds = bound.init(model.theta, Key.of(rng)), []
    for _ in range(30):
        found, state = bound(model.theta, state)
        bounds.append(found.parts["log_partition"].value)
        assert found.parts["free_energy"] == -found.parts["log_partition"].value
    assert np.diff(bounds).min() >= -1e-12
    assert bounds[-1] < exact_law(model)[2]


def test_compiled_kernels_agree_with_those_on_factors(scores, rng):
    for graph in (gb.graphs.complete(5), gb.graphs.grid(2, 3)):
        model = random_model(graph, rng, scores, scale=0.2)
        factors = model.family.factors(model.theta)
        q = IndependentFactors(factors, np.zeros(int(factors.cardinalities.sum())))
        q.settle(1000, 1e-13)
        bound = sum(float((factor.table * q.marginal(factor.nodes)).sum()) for factor in factors.factors) + q.entropy
        found = take(MeanField(tol=1e-13), model)
        np.testing.assert_allclose(found.value, model.family.statistics_from(q.marginal), atol=1e-10)
        assert found.parts["log_partition"].value == pytest.approx(bound, abs=1e-10)
        passing = FactorMessages(factors, np.zeros(FactorMessages.size(factors)))
        passing.settle(1000, 1e-13, 0.0)
        found = take(Bethe(tol=1e-13), model)
        np.testing.assert_allclose(found.value, model.family.statistics_from(passing.marginal), atol=1e-10)
        assert found.parts["log_partition"].value == pytest.approx(passing.log_partition(), abs=1e-10)


def test_sparse_and_dense_kernels_agree(rng):
    """On 70 variables a grid takes the kernels along the edges; a few more edges in a dense model change nothing."""
    grid = random_model(gb.graphs.grid(7, 10), rng, scale=0.2)
    assert not grid.family.graph.is_dense
    full = gb.graphs.complete(70)
    couplings = {tuple(edge): w for edge, w in zip(grid.family.graph.edges.tolist(), grid.parts.couplings, strict=True)}
    dense = gb.PairwiseFamily.model(
        full, grid.parts.biases, [couplings.get(tuple(edge), 0.0) for edge in full.edges.tolist()]
    )
    assert dense.family.graph.is_dense
    for expectation in (MeanField(), Bethe()):
        first, second = take(expectation, grid), take(expectation, dense)
        np.testing.assert_allclose(first.value[:70], second.value[:70], atol=1e-8)
        assert first.parts["log_partition"].value == pytest.approx(second.parts["log_partition"].value, abs=1e-8)


def test_bethe_is_nearer_than_mean_field_on_weak_loops(rng):
    model = random_model(gb.graphs.grid(3, 3), rng, scale=0.3)
    states, probabilities, log_partition = exact_law(model)
    truth = model.family.mean_statistics(states, probabilities)
    naive, bethe = (take(expectation, model) for expectation in (MeanField(), Bethe()))
    assert np.abs(bethe.value - truth).max() < 0.1 * np.abs(naive.value - truth).max()
    assert abs(bethe.parts["log_partition"].value - log_partition) < 0.1 * abs(
        naive.parts["log_partition"].value - log_partition
    )


@pytest.mark.parametrize("expectation", [MeanField(), Bethe()], ids=["mean-field", "bethe"])
def test_strong_couplings_do_not_overflow(expectation):
    model = gb.PairwiseFamily.model(gb.graphs.grid(1, 3), [400.0, 0.0, 0.0], [800.0, -700.0])
    found = take(expectation, model)
    np.testing.assert_allclose(found.value, [1.0, 1.0, -1.0, 1.0, -1.0])
    assert found.parts["log_partition"].value == pytest.approx(1900.0)


def test_what_does_not_settle_is_said(rng):
    model = random_model(gb.graphs.complete(6), rng)
    for expectation in (MeanField(max_iter=1), Bethe(max_iter=1)):
        with pytest.warns(ConvergenceWarning, match="did not settle in max_iter=1"):
            found = take(expectation, model)
        assert not found.parts["converged"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Bethe(damping=1.0), "damping=1.0"),
        (lambda: Bethe(max_iter=0), "max_iter=0"),
        (lambda: MeanField(tol=-1.0), "tol=-1.0"),
    ],
)
def test_wrong_settings_are_refused(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_a_model_without_edges_is_exact():
    model = gb.PairwiseFamily.model(gb.graphs.from_edges([], 3), [0.3, -0.2, 0.0], [])
    for expectation in (MeanField(), Bethe()):
        found = take(expectation, model)
        np.testing.assert_allclose(found.value, np.tanh([0.3, -0.2, 0.0]), atol=1e-12)
        assert found.parts["log_partition"].value == pytest.approx(np.log(2 * np.cosh([0.3, -0.2, 0.0])).sum())


def test_a_damped_message_goes_part_of_the_way(rng):
    model = random_model(gb.graphs.complete(2), rng, bias=False)
    factors = model.family.factors(model.theta)
    whole, part = (FactorMessages(factors, np.zeros(FactorMessages.size(factors))) for _ in range(2))
    whole.settle(1, 0.0, 0.0), part.settle(1, 0.0, 0.4)
    np.testing.assert_allclose(part.messages, 0.6 * whole.messages, atol=1e-14)
