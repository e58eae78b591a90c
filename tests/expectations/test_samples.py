"""Samples, what they are worth, and the regions and functions that are averaged over them."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.domain import CategoryCoding
from gibbsian.errors import ArgumentError, CodingError, MissingValuesError
from gibbsian.expectations import GivenRegions, Samples, expect_of, plan_regions, spatial_statistics
from gibbsian.expectations.convergence import sweep
from gibbsian.expectations.error_rules import error_floor
from gibbsian.expectations.sources import spread
from gibbsian.expectations.table_regions import combine
from systems import random_model

FOUR = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.grid(1, 4)))


# -- states -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [0.9, 257, -129, np.inf])
def test_no_number_is_changed(value):
    with pytest.raises(CodingError, match=r"samples holds .* or a Dataset"):
        Samples(np.array([[1.0, value]])).check(random_model(gb.graphs.complete(2), np.random.default_rng(0)))


def test_missing_cells_and_words_are_refused():
    with pytest.raises(MissingValuesError, match="samples has missing cells"):
        Samples(np.array([[1.0, np.nan]]))
    with pytest.raises(CodingError, match=r"read labels with Dataset\.read"):
        Samples(np.array([["yes", "no"]]))


def test_real_values_come_in_through_a_dataset():
    coding = CategoryCoding.of_values((0.0, 0.5, 1.0), n_variables=2)
    model = gb.ProductsFamily.model({(0,): 0.3, (0, 1): 0.5}, 2, gb.Variables.ordinal([(0.0, 0.5, 1.0)] * 2))
    codes = np.array([[0, 1], [2, 2], [1, 0], [1, 0]], np.int8)
    numbers = coding.decode(codes)
    with pytest.raises(CodingError, match="Dataset"):
        spatial_statistics(model, numbers)
    data = gb.Dataset.read(numbers, coding=coding)
    by_data, by_codes = (spatial_statistics(model, given) for given in (data, codes))
    assert by_data.value == pytest.approx(by_codes.value, abs=1e-15)
    assert by_data.stderr == pytest.approx(by_codes.stderr, abs=1e-15)


# -- weights ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"weights": ["a", "b"]}, "weights must be finite numbers"),
        ({"weights": ["1", "2"]}, "weights must be finite numbers"),
        ({"weights": [1.0, np.nan]}, "weights must be finite numbers"),
        ({"weights": [[1.0], [1.0, 2.0]]}, "weights must be finite numbers"),
        ({"repeats": [1.0, 0.0]}, "repeats must be positive"),
        ({"repeats": [1.0, -1.0]}, "repeats must be positive"),
        ({"repeats": [1.0]}, "repeats has shape"),
    ],
)
def test_unusable_weights_are_refused(settings, match):
    with pytest.raises(ArgumentError, match=match):
        Samples(np.ones((2, 1)), **settings)


def test_repeats_count_as_rows(rng):
    model = random_model(gb.graphs.grid(2, 3), rng)
    states, repeats = rng.integers(0, 2, (5, 6)), np.array([3, 1, 2, 1, 4])
    together = spatial_statistics(model, Samples(states, repeats=repeats))
    apart = spatial_statistics(model, Samples(np.repeat(states, repeats, axis=0)))
    assert together.value == pytest.approx(apart.value, abs=1e-13)
    assert together.stderr == pytest.approx(apart.stderr, abs=1e-13)
    assert Samples(states, repeats=repeats).effective_sample_size == pytest.approx(11.0)


def test_groups_of_equal_weight_count_as_one_each():
    samples = Samples.of(np.ones((5, 10, 3)))
    assert samples.effective_sample_size == pytest.approx(5.0)


@pytest.mark.parametrize("rest", [0.0, 1e-300, 1e-12])
def test_weight_in_one_hand_tells_nothing_of_the_error(rest, rng):
    model = random_model(gb.graphs.grid(2, 3), rng)
    states = rng.integers(0, 2, (4, 6))
    samples = Samples(states, np.array([1.0, rest, rest, rest]))
    for region in (1, [1, "s2"]):
        estimate = spatial_statistics(model, samples, region)
        assert np.isnan(estimate.stderr).all()
        assert not estimate.is_exact
    assert np.isnan(expect_of(model, lambda x: x, 0, samples).stderr)


def test_regions_are_combined_where_the_samples_are_worth_enough(rng):
    values = rng.normal(size=(2, 1000, 1)) * np.array([1.0, 1.1])[:, None, None]
    states = np.zeros((1000, 1), np.int8)
    few = np.full(1000, 1e-9)
    few[:15] = 1.0
    alone = combine(Samples(states, few), values).stderr
    variances = [float(Samples(states, few).mean_and_covariance(each)[1][0, 0]) for each in values]
    assert alone[0] == pytest.approx(np.sqrt(min(variances)))  # worth 15: the better region is taken alone
    both = combine(Samples(states), values).stderr
    assert both[0] < 0.9 * np.sqrt(min(float(Samples(states).mean_and_covariance(each)[1][0, 0]) for each in values))


def test_fitted_coefficients_do_not_make_the_error_look_smaller(rng):
    """Three regions of independent errors: the inverse of the sum of precisions, of which two were spent on weights."""
    values = rng.normal(size=(3, 60, 1))
    stderr = combine(Samples(np.zeros((60, 1), np.int8)), values).stderr
    covariance = np.cov(values[:, :, 0]) / 60
    least = 1.0 / np.linalg.inv(covariance).sum()
    assert stderr[0] == pytest.approx(np.sqrt(least * 59 / 57))


# -- regions ----------------------------------------------------------------------------------------------------------
def test_keys_of_a_mapping_have_no_order():
    chain = gb.graphs.grid(1, 4)
    wanted = [(0, 1, 2)]
    for key in ((0, 1), (1, 0), frozenset((0, 1))):
        assert GivenRegions({key: (0, 1, 2)}).regions(chain, [(0, 1)], None) == wanted
    assert GivenRegions({(0, 1): (0, 1, 2)}).regions(chain, [(1, 0)], None) == wanted


@pytest.mark.parametrize(
    ("region", "match"),
    [
        ({(0, 3): (0, 3)}, r"region names \(0, 3\), which is no target"),
        ({"a": (0,)}, "the key 'a' of region"),
        ({(0, 1): (0, 1), (1, 0): (0, 1)}, r"names the target \(0, 1\) twice"),
        ({(0,): (0, 1.5)}, r"the region of \(0,\) holds 1.5"),
        (lambda graph, target: None, r"the region of \(0,\) holds None"),
        (lambda graph, target: "01", r"the region of \(0,\) holds '01'"),
        ([], "region is an empty list"),
        (np.array([0, 1]), "is not known"),
        (GivenRegions, "is not known"),
        (None, "is not known"),
        (1.5, "is not known"),
    ],
)
def test_unusable_regions_are_refused(region, match):
    with pytest.raises(ArgumentError, match=match):
        plan_regions(FOUR, region)


# -- functions --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "nodes", "match"),
    [
        (lambda x: None, 0, "function returned None"),
        (lambda x: "a", 0, "function returned 'a'"),
        (lambda x: 1j * x, 0, "function returned"),
        (lambda x: [x] if x > 0 else [x, x], 0, "function returned"),
        (lambda x: x, [0, 1], r"function takes \(x\) but there are 2 nodes"),
        (lambda x, y: x, 0, "there are 1 nodes"),
        (3, 0, "function=3 cannot be called"),
        (lambda x: x, 1.0, "nodes=1.0"),
        (lambda x: x, [1.0], "names 1.0"),
        (lambda: 1.0, [], "nodes is empty"),
    ],
)
def test_unusable_functions_are_refused(function, nodes, match):
    with pytest.raises(ArgumentError, match=match):
        expect_of(FOUR, function, nodes, np.ones((3, 4)))


def test_functions_without_a_signature_are_called():
    assert expect_of(FOUR, max, [0, 1], np.ones((3, 4))).value == pytest.approx(0.5)


def test_several_regions_of_a_function_must_be_named():
    with pytest.raises(ArgumentError, match="region is an empty list"):
        expect_of(FOUR, lambda x: x, 0, np.ones((3, 4)), [])


def test_chains_are_dealt_out_by_shares():
    rows, shares = spread(np.array([0.5, 0.25, 0.25]), 4)
    assert rows.tolist() == [0, 0, 1, 2]
    np.testing.assert_allclose(shares, 0.25)
    rows, shares = spread(np.array([6.0, 1.0]), 3)
    assert rows.tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(shares, [2.0, 2.0, 2.0, 1.0])


def test_errors_hold_what_draws_cannot_exclude():
    np.testing.assert_allclose(error_floor(np.array([0.0, 0.4]), np.array([2.0, 0.2]), 10), [0.3, np.hypot(0.4, 0.03)])


def test_sweeps_end_when_nothing_changes_or_their_number_is_reached():
    sizes = iter(2.0**-k for k in range(100))
    assert sweep(lambda piece: next(sizes), "a", 50, 0.2) == (4, 0.125)
    assert sweep(lambda piece: 1.0, "ab", 7, 0.2) == (7, 1.0)
    assert sweep(lambda piece: 1.0, "", 7, 0.2) == (1, 0.0)
