"""Means, ratios and verdicts of trials, some of which have no value."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from gibbsian_reproduction.drawing import curve, label_axes, legend, lines
from gibbsian_reproduction.experiment import Results, Series, Verdict
from gibbsian_reproduction.systems import all_states, first_values, largest_rise
from gibbsian_reproduction.verdicts import (
    Measured,
    at_most,
    below_everywhere,
    ends_below,
    in_every_trial,
    never_rises,
    ratio_of_means,
    slope,
    trials_below,
)

ONE, OTHER = Series("a", "A"), Series("b", "B")
CURVES = Results({"a": np.array([[1.0, 1.0]] * 3), "b": np.array([[4.0, 2.0]] * 3)}, seed=0)


def test_means_leave_out_trials_without_a_value():
    results = Results({"error": np.array([[1.0, 2.0], [3.0, np.nan]])}, seed=0)
    assert results.n_trials == 2
    assert results.mean("error").tolist() == [2.0, 2.0]
    assert results.count("error").tolist() == [2, 1]
    assert results.stderr("error") == pytest.approx([1.0, np.nan], nan_ok=True)


def test_a_ratio_of_proportional_values_has_no_spread():
    assert ratio_of_means(np.array([2.0, 4.0, np.nan]), np.array([1.0, 2.0, 7.0])) == (2.0, 0.0)
    assert trials_below(np.array([1.0, 2.0, np.nan]), np.array([2.0, 1.0, 1.0])) == "1 of 2 trials"


def test_measured_numbers_are_written_with_their_error_where_there_is_one():
    assert str(Measured(4.123, 0.051)) == "4.12 +- 0.051"
    assert str(Measured(4.123, np.nan)) == "4.12"
    assert str(Measured([1.0, 2.0], [0.1, 0.2]).at(1)) == "2 +- 0.2"


def test_one_method_below_another():
    claim = below_everywhere(ONE, OTHER, "N", [10, 100], "here", 3)
    assert claim.text == "A below B at every N"
    assert str(claim.check(CURVES)) == "holds (in 6 of 6 trials x N; ratio 4 +- 0 at N = 10, 2 +- 0 at N = 100)"
    assert not below_everywhere(OTHER, ONE, "N", [10, 100], "here", 3).check(CURVES).holds


@pytest.mark.parametrize(
    ("least", "text", "holds"), [(1.0, "A ends below B", True), (2.5, "A ends far below B", False)]
)
def test_one_method_ends_below_another(least, text, holds):
    claim = ends_below(ONE, OTHER, "here", 3, least)
    assert (claim.text, claim.check(CURVES).holds) == (text, holds)
    assert claim.check(CURVES).numbers == "in 3 of 3 trials; error 2 +- 0 times smaller"


def test_limits_and_rises():
    results = Results({"gap": np.array([1e-3, -2e-3]), "rise": np.array([-0.1, 1e-16])}, seed=0)
    assert str(at_most("gap", 3e-3, "largest gap")(results)) == "holds (largest gap 2.0e-03 in 2 trials)"
    assert not at_most("gap", 1.5e-3, "largest gap")(results).holds
    verdict = never_rises("rise", "energy")(results)
    assert str(verdict) == "holds (2 of 2 trials, largest rise of the energy 1.0e-16 of it)"


def test_what_is_to_hold_in_every_trial():
    assert str(in_every_trial(np.array([[True, True], [True, False]]), "so")) == "does not hold (1 of 2 trials; so)"
    assert type(Verdict(np.bool_(True), "").holds) is bool


def test_slopes_are_exponents():
    sizes = np.array([10.0, 100.0, 1000.0])
    assert slope(sizes, sizes**-0.5) == pytest.approx(-0.5)


def test_rises_and_first_values():
    assert largest_rise([4.0, 2.0, 2.5]) == 0.25
    assert largest_rise([4.0, 2.0]) == -0.5
    assert first_values(np.array([3.0, 2.0]), 4).tolist() == [3.0, 2.0, 2.0, 2.0]
    assert first_values(np.array([3.0, 2.0]), 1).tolist() == [3.0]


def test_states_are_listed_with_the_first_changing_fastest():
    assert all_states(2).tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]


def test_curves_have_labels_scales_and_legends():
    axes = Figure().subplots()
    curve(axes, [1, 2], [0.5, 0.4], [0.1, 0.1], "forest-smci", ours=True)
    label_axes(axes, "N", "mean absolute error", log="x")
    legend(axes)
    assert axes.get_legend().get_texts()[0].get_text() == "forest-smci (ours)"
    assert (axes.get_xscale(), axes.get_yscale(), axes.get_ylabel()) == ("log", "linear", "mean absolute error")


def test_lines_are_drawn_for_series_with_values_only():
    axes = Figure().subplots()
    results = Results({**CURVES.values, "c": np.full((3, 2), np.nan)}, seed=0)
    lines([10, 100], [ONE, OTHER, Series("c", "C")], "N", "error", least=1.5)(axes, results)
    assert axes.get_legend_handles_labels()[1] == ["A", "B"]
    assert np.isnan(axes.containers[0].lines[0].get_ydata()).all()
