"""Intervals and refits: what is drawn is what was computed."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.models.families.tables import coupling_norms
from gibbsian.plots import intervals, stability
from gibbsian.plots.forests import SURE


@pytest.fixture(scope="module")
def refits(small):
    rows = small.sample(200, random_state=0)
    return gb.uncertainty.bootstrap(small, rows, n_replicates=12, random_state=0)


def bars(ax):
    return [line for line in ax.lines[1:] if len(line.get_xdata()) == 2]


def test_bars_are_the_ends_of_intervals_the_strongest_first(small):
    limits = gb.uncertainty.confidence_intervals(small, small.sample(200, random_state=0))
    ax = intervals(limits)
    table = limits.table[small.model_.penalised]
    table = table.reindex(table["estimate"].abs().sort_values(ascending=False).index)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(table.index)
    np.testing.assert_allclose([bar.get_xdata() for bar in bars(ax)], table[["low", "high"]])
    excluded = ((table["low"] > 0) | (table["high"] < 0)).tolist()
    assert [bar.get_color() == SURE for bar in bars(ax)] == excluded
    assert len(bars(intervals(limits, biases=True))) == small.model_.theta.size
    assert len(bars(intervals(limits, n=1))) == 1


def test_errors_and_refits_give_intervals_of_any_level(small, refits):
    narrow, wide = (bars(intervals(refits, level=level))[0].get_xdata() for level in (0.5, 0.99))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_stability_counts_the_refits_of_the_same_sign(small, refits):
    table = refits.stability
    expected = (np.sign(refits.thetas) == np.sign(refits.model.theta)).mean(axis=0)[small.model_.penalised]
    np.testing.assert_allclose(table["share"], expected)
    shown = [text.get_text() for text in stability(refits).texts]
    assert sorted(shown) == sorted(f"{share:.0%}" for share in expected)


def test_stability_of_tables_is_that_of_their_norms():
    rows = np.random.default_rng(0).integers(0, 3, (60, 3)).astype(str)
    machine = gb.PottsMachine(l2=0.1, learner="mple").fit(rows)
    refits = gb.uncertainty.bootstrap(machine, rows, n_replicates=3, random_state=0)
    assert (refits.stability["share"] == 1.0).all()
    np.testing.assert_allclose(refits.stability["estimate"], coupling_norms(machine.model_))
