"""Every registered family keeps its contracts: none is left out, and each is asked what its protocols promise."""

import pickle

import numpy as np
import pytest

import gibbsian as gb
from family_cases import CASES, NAMES, case_of
from gibbsian.models.base import FAMILIES, ClosedForm, Constrained, DiscreteFamily, ExponentialFamily, Family
from gibbsian.models.conditionals import WeightedRows
from gibbsian.models.interactions import Interactions

ALL = {name: case_of(name) for name in NAMES}


def of(protocol):
    """Parametrise over the cases that keep a protocol."""
    kept = [pytest.param(case, id=name) for name, case in ALL.items() if isinstance(case.family, protocol)]
    return pytest.mark.parametrize("case", kept)


def arrays_in(parts):
    """List the arrays in named tuples and lists, however deep."""
    return [parts] if isinstance(parts, np.ndarray) else [array for part in parts for array in arrays_in(part)]


def test_every_family_has_a_case():
    assert set(FAMILIES) == CASES.keys()


@of(object)
class TestFamily:
    def test_keeps_the_protocol_with_its_signatures(self, case):
        family = case.family
        assert isinstance(family, Family)
        assert family.penalised.shape == (family.n_parameters,)
        assert family.penalised.dtype == bool
        assert len(case.columns) == len(family.variables) - family.n_hidden
        assert type(family).registered_name in CASES

    def test_parameters_split_into_views_that_hold_all_of_them(self, case):
        arrays = arrays_in(case.family.split(case.theta))
        assert sum(part.size for part in arrays) == case.theta.size
        assert all(np.shares_memory(part, case.theta) for part in arrays if part.size)

    def test_functions_are_pure(self, case):
        theta, rows = case.theta.copy(), case.rows.copy()
        theta.flags.writeable = rows.flags.writeable = False
        first = case.family.log_weights(theta, rows)
        case.family.canonical(theta)
        case.family.interactions(theta)
        assert np.array_equal(first, case.family.log_weights(theta, rows))

    def test_a_gauge_changes_no_distribution_and_is_reached_once(self, case):
        family, theta = case.family, case.theta
        gauge = family.canonical(theta)
        change = family.log_weights(gauge, case.rows) - family.log_weights(theta, case.rows)
        np.testing.assert_allclose(change, change[0], atol=1e-10)
        np.testing.assert_allclose(family.canonical(gauge), gauge, atol=1e-12)

    def test_parameters_have_names_of_their_own(self, case):
        names = case.family.parameter_names([f"x{i}" for i in range(len(case.columns))])
        assert len(set(names)) == len(names) == case.family.n_parameters

    def test_interactions_are_among_the_variables(self, case):
        found = case.family.interactions(case.theta)
        assert isinstance(found, Interactions)
        assert found.sizes[0] == len(case.columns)  # then hidden units, or classes
        assert all(node < found.n_variables for scope in found.scopes for node in scope)
        assert len(found.scopes) == len(found.strengths)

    def test_a_file_gives_the_same_family(self, case):
        parts = case.family.to_parts()
        assert all(isinstance(array, np.ndarray) for array in parts.arrays.values())
        again = type(case.family).from_parts(parts, case.columns)
        assert np.array_equal(again.log_weights(case.theta, case.rows), case.family.log_weights(case.theta, case.rows))
        assert again.variables == case.family.variables
        assert again.n_hidden == case.family.n_hidden

    def test_pickles_hold_no_plans(self, case):
        case.family.log_weights(case.theta, case.rows)
        size = len(pickle.dumps(case.family))
        again = pickle.loads(pickle.dumps(case.family))
        assert len(pickle.dumps(again)) == size
        assert np.array_equal(again.log_weights(case.theta, case.rows), case.family.log_weights(case.theta, case.rows))

    def test_a_model_is_the_family_at_its_parameters(self, case):
        model = gb.Model(case.family, case.theta)
        assert np.array_equal(model.log_weights(case.rows), case.family.log_weights(case.theta, case.rows))
        assert np.array_equal(model.replace(2 * case.theta).theta, 2 * case.theta)
        with pytest.raises(ValueError, match="read-only"):
            model.theta[0] = 0.0
        with pytest.raises(gb.errors.ArgumentError, match="parameters"):
            gb.Model(case.family, np.append(case.theta, 0.0))


@of(ExponentialFamily)
class TestExponentialFamily:
    def test_log_weights_are_linear_in_theta(self, case):
        family, zero = case.family, np.zeros_like(case.theta)
        base = family.log_weights(zero, case.rows)
        statistics = family.statistics(case.rows)
        np.testing.assert_allclose(family.log_weights(case.theta, case.rows), base + statistics @ case.theta, atol=1e-9)

    def test_mean_statistics_are_weighted_means_within_their_range(self, case, rng):
        statistics, weights = case.family.statistics(case.rows), rng.random(len(case.rows))
        mean = case.family.mean_statistics(case.rows, weights)
        np.testing.assert_allclose(mean, weights @ statistics / weights.sum(), atol=1e-12)
        np.testing.assert_allclose(case.family.mean_statistics(case.rows), statistics.mean(axis=0), atol=1e-12)
        low, high = case.family.statistic_range
        assert (low <= statistics).all()
        assert (statistics <= high).all()


@of(ClosedForm)
def test_closed_forms_are_derivatives_of_log_z(case):
    family, theta, h = case.family, case.theta, 1e-5
    expected, variances = family.expected_statistics(theta), family.statistic_variances(theta)
    for k, unit in enumerate(np.eye(theta.size)):
        up, down = theta + h * unit, theta - h * unit
        assert expected[k] == pytest.approx((family.log_partition(up) - family.log_partition(down)) / (2 * h), abs=1e-7)
        slope = (family.expected_statistics(up)[k] - family.expected_statistics(down)[k]) / (2 * h)
        assert variances[k] == pytest.approx(slope, abs=1e-7)


@of(Constrained)
def test_parameters_without_a_distribution_are_refused(case):
    case.family.require_distribution(case.theta)
    with pytest.raises(gb.errors.ArgumentError):
        case.family.require_distribution(-case.theta)


@of(DiscreteFamily)
class TestDiscreteFamily:
    """Rows and what is given are codes, or numbers where codes are nodes; factors and marginals go over codes."""

    def law(self, case):
        """The probabilities of all codes."""
        logs = case.family.log_weights(case.theta, case.rows) + case.family.variables.log_widths(case.codes)
        return np.exp(logs - np.logaddexp.reduce(logs))

    def test_the_gauge_is_the_same_for_all_parameters_of_a_distribution(self, case, rng):
        statistics = case.family.statistics(case.rows)
        _, sizes, directions = np.linalg.svd(statistics - statistics.mean(axis=0))
        silent = directions[int((sizes > 1e-9).sum()) :]
        moved = case.theta + rng.normal(size=len(silent)) @ silent
        np.testing.assert_allclose(case.family.canonical(moved), case.family.canonical(case.theta), atol=1e-9)

    def test_conditionals_are_log_odds_of_each_value(self, case):
        family, rows = case.family, case.rows[:: max(1, len(case.rows) // 40)]
        bound = family.conditionals(WeightedRows.of(rows, by_row=True))
        costs, logs = bound.costs(case.theta), family.log_weights(case.theta, rows)
        columns = iter(costs.T)
        for i, size in enumerate(family.variables.sizes):
            own = family.variables.take([i])
            for value in range(size):
                changed, codes = rows.copy(), np.full((len(rows), 1), value)
                changed[:, i] = 1 - rows[:, i] if bound.groups is None else own.rows_of(codes)[:, 0]
                others = family.log_weights(case.theta, changed) + own.log_widths(codes)
                np.testing.assert_allclose(next(columns), logs - others, atol=1e-10)
                if bound.groups is None:
                    break
        assert next(columns, None) is None

    def test_bound_losses_have_the_gradient_of_their_value(self, case, rng):
        bound = case.family.conditionals(WeightedRows.of(case.rows, rng.random(len(case.rows))))
        loss, h = gb.learning.objectives.Pseudolikelihood.loss, 1e-5
        gradient = bound.evaluate(case.theta, loss)[1]
        for k, unit in enumerate(np.eye(case.theta.size)):
            up, down = (bound.evaluate(case.theta + sign * h * unit, loss)[0] for sign in (1, -1))
            assert gradient[k] == pytest.approx((up - down) / (2 * h), abs=1e-7)

    def test_factors_are_the_same_distribution(self, case):
        factors = case.family.factors(case.theta)
        logs = case.family.log_weights(case.theta, case.rows) + case.family.variables.log_widths(case.codes)
        np.testing.assert_allclose(factors.log_weights(case.codes), logs, atol=1e-12)
        assert set(map(tuple, factors.graph.edges)) <= set(map(tuple, case.family.scopes.graph.edges))

    def test_statistics_follow_from_marginals(self, case):
        probabilities, n = self.law(case), len(case.family.variables)
        table = probabilities.reshape(case.family.variables.sizes)

        def marginal(nodes):
            return table.sum(axis=tuple(i for i in range(n) if i not in nodes))

        expected = case.family.mean_statistics(case.rows, probabilities)
        np.testing.assert_allclose(case.family.statistics_from(marginal), expected, atol=1e-12)

    def test_given_variables_leave_the_conditional_law_and_its_statistics(self, case):
        probabilities, (first, second) = self.law(case), (1, 4)
        held = case.rows[-2, [first, second]]
        agree = (case.rows[:, [first, second]] == held).all(axis=1)
        given = case.family.given([first, second], held)
        parameters, constant = given.parameters(case.theta)
        free = np.delete(case.rows[agree], [first, second], axis=1)
        logs = given.family.log_weights(parameters, free)
        wanted = case.family.log_weights(case.theta, case.rows[agree])
        np.testing.assert_allclose(logs + constant, wanted, atol=1e-12)
        law = probabilities[agree] / probabilities[agree].sum()
        found = given.statistics(given.family.mean_statistics(free, law))
        np.testing.assert_allclose(found, case.family.mean_statistics(case.rows[agree], law), atol=1e-12)

    def test_given_statistics_are_the_transpose_of_given_parameters(self, case, rng):
        given = case.family.given([1, 4], [0, 1])
        direction, free = rng.normal(size=case.theta.size), rng.normal(size=given.family.n_parameters)
        parameters, constant = given.parameters(direction)
        wanted = given.statistics(free) @ direction
        assert parameters @ free + constant - given.offset == pytest.approx(wanted, abs=1e-12)
