"""Matrices of interactions."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.models.interactions import Interactions
from gibbsian.plots import couplings
from gibbsian.plots.canvas import robust_limit


def test_colours_are_centred_at_zero_and_end_at_a_quantile(machine):
    ax = couplings(machine)
    (picture,) = ax.images
    low, high = picture.get_clim()
    assert low == -high == -robust_limit(machine.model_.parts.couplings, 0.98)
    assert high < np.abs(machine.model_.parts.couplings).max()
    assert [label.get_text() for label in ax.get_xticklabels()] == list(machine.names_)
    assert len(ax.figure.axes) == 2  # the second holds the colour bar


def test_pairs_that_do_not_interact_are_left_out(small):
    shown = couplings(small).images[0].get_array()
    assert np.ma.getmaskarray(shown).tolist() == [[True, False, False], [False, True, True], [False, True, True]]
    assert shown[0, 2] == small.couplings_.iloc[0, 2]


def test_two_layers_are_rows_and_columns(rbm):
    shown = couplings(rbm).images[0].get_array()
    np.testing.assert_allclose(shown, rbm.model_.parts.weights[0])


def test_norms_have_a_scale_from_zero():
    found = Interactions(((0, 1), (1, 2)), np.array([1.0, 2.0]), (3,), "norm", signed=False, names=("a", "b" * 90, "c"))
    ax = couplings(found)
    assert ax.images[0].get_clim() == pytest.approx((0.0, 2.0))
    assert len(ax.get_yticklabels()[1].get_text()) == 40  # so that a sentence leaves room for the picture
