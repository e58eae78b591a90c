"""The page: text that stays text, rows that are sampled, numbers that are the library's."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from estimator_samples import table
from gibbsian.report import subject as subjects
from gibbsian.report.cells import unusual
from gibbsian.report.draws import _compared
from gibbsian.report.html import phrase, text
from gibbsian.report.html import table as html_table
from gibbsian.report.network import _places
from gibbsian.report.page import page
from gibbsian.report.subject import Subject
from gibbsian.report.svg import Chart, shade
from report_pages import HOSTILE, Page, hostile_table, read_page


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    rows = hostile_table()
    gb.BoltzmannMachine(l2=0.05).fit(rows).report(path, rows)
    return read_page(path)


def test_names_are_text_whatever_they_hold(hostile):
    assert len(hostile.named("script")) == 1
    assert hostile.named("img") == []
    assert not [attribute for _, part in hostile.elements for attribute in part if attribute.startswith("on")]
    assert HOSTILE[0] in hostile.sections["words"]
    assert len([part for part in hostile.named("g") if part.get("class") == "node"]) == len(HOSTILE)
    assert "\u202e" not in hostile.source
    assert "\\u202e" in hostile.source
    assert "\x07" not in hostile.source
    assert "$kind" in hostile.sections["words"]


def test_a_page_asks_for_nothing_outside(hostile):
    for _, part in hostile.elements:
        assert not {"src", "srcset"} & set(part)
        assert part.get("href", "#").startswith("#")
    assert "url(" not in hostile.source
    assert "default-src 'none'" in hostile.named("meta")[2]["content"]


def test_pictures_have_titles_and_tables_captions(hostile):
    kinds = [kind for kind, _ in hostile.elements]
    assert kinds.count("caption") == kinds.count("table") > 2
    for place, (kind, _) in enumerate(hostile.elements):
        if kind == "svg":
            assert hostile.elements[place + 1][0] == "title"
    assert all(part.get("scope") == "col" for part in hostile.named("th"))


def test_moments_are_those_of_the_training_report(hostile):
    machine = gb.BoltzmannMachine(l2=0.05).fit(hostile_table())
    report = machine.result_.training
    np.testing.assert_allclose((machine.result_.moments.mean - report.mean) / report.error, report.z_scores, atol=1e-12)
    assert f"{report.z_scores[report.worst]:.3g}" in hostile.sections["moments"]


def test_of_many_rows_a_sample_is_looked_at_and_said(monkeypatch):
    monkeypatch.setattr(subjects, "MOST_ROWS", 500)
    rows = table("pairwise", n_rows=3000)
    machine = gb.BoltzmannMachine().fit(rows)
    subject = Subject(*machine.report_parts(rows, None), machine)
    assert "a random sample of 500 of the 3,000 rows" in Page(page(subject)).sections["held-out"]
    limits, whole = subject.intervals, gb.uncertainty.confidence_intervals(machine, rows)
    np.testing.assert_allclose(limits.high - limits.low, whole.high - whole.low, rtol=0.1)  # of all rows, by a sample


def test_unusual_rows_of_a_sample_keep_their_own_numbers(monkeypatch):
    monkeypatch.setattr(subjects, "MOST_ROWS", 500)
    rows = table("pairwise", n_rows=3000)
    machine = gb.BoltzmannMachine().fit(rows)

    def first_and_last(_, data, n, cells=False):
        return pd.DataFrame({"row": [0, data.n_rows - 1], "probability": 0.1})

    monkeypatch.setattr(gb.BoltzmannMachine, "unusual", first_and_last, raising=False)
    subject = Subject(*machine.report_parts(rows, None), machine)
    said = unusual(subject)
    np.testing.assert_array_equal(subject.rows.rows()[0], rows[subject.chosen])
    assert [f"{subject.chosen[k]:,}" in said for k in (0, -1)] == [True, True]


def test_other_rows_than_those_of_the_fit_give_no_intervals():
    machine = gb.BoltzmannMachine(l2=0.1).fit(table("pairwise"))
    subject = Subject(*machine.report_parts(table("pairwise", seed=1), None), machine)
    assert "not that which the model was fitted to" in subject.without_intervals


def test_warnings_and_origin_are_said():
    machine = gb.BoltzmannMachine(l2=0.1).fit(table("pairwise"))
    found = Page(page(Subject(machine, asked=machine, origin={"Command": "gibbsian report <x>"}, warnings=["beware"])))
    assert "beware" in found.sections["fit"]
    assert "gibbsian report <x>" in found.sections["origin"]
    assert "not converged" not in found.sections["fit"]


def test_names_of_a_frame_give_no_warnings(hostile):
    assert "Warnings" not in hostile.sections["origin"]


def test_triplets_that_the_model_lacks_are_seen(tmp_path):
    parity = np.array([[x, y, x ^ y] for x in (0, 1) for y in (0, 1)] * 100)
    gb.BoltzmannMachine().fit(parity).report(tmp_path / "r.html", parity)
    assert "1 of 1 differ by more than 3" in read_page(tmp_path / "r.html").sections["triplets"]


def test_the_error_of_draws_counts_that_chains_are_slow(rng):
    slow = np.repeat(rng.normal(size=(40, 1)), 100, axis=0)
    free = rng.normal(size=(4000, 1))
    assert _compared(free, slow)[2] > 4 * _compared(free, free)[2]


def test_imputation_beats_the_base_rate_only_where_columns_tell(tmp_path):
    for noise, better in ((0.05, True), (0.5, False)):
        rng = np.random.default_rng(0)
        rows = np.where(rng.random((600, 4)) < noise, rng.integers(0, 2, (600, 4)), rng.integers(0, 2, (600, 1)))
        rows = rows if better else rng.integers(0, 2, (600, 4))
        gb.BoltzmannMachine(l2=0.01).fit(rows).report(tmp_path / "r.html", rows)
        said = read_page(tmp_path / "r.html").sections["imputation"]
        filled, base = re.search(r"rightly: (\S+); .* itself: ([\d.]+\d)", said).groups()
        assert (float(filled) > float(base) + 0.2) == better


# -- pieces -----------------------------------------------------------------------------------------------------------
def test_pieces_escape_what_is_no_markup():
    assert text("a<b>&\"'\x00") == "a&lt;b&gt;&amp;&quot;&#x27;\\x00"
    assert phrase("<b>$x</b>", x="<i>$y") == "<b>&lt;i&gt;$y</b>"
    assert "&lt;i&gt;" in html_table("<u>", ["<i>"], [("<i>",)])


def test_missing_numbers_are_dashes():
    assert Page(html_table("t", ["a"], [(np.float64("nan"),), (None,)])).source.count("\u2013") == 2


def test_colours_run_from_white_to_both_ends():
    assert shade(0.0, 1.0) == "#ffffff"
    assert (shade(1.0, 1.0), shade(-1.0, 1.0)) == ("#d55e00", "#0072b2")


def test_charts_hold_their_points_and_survive_constants():
    chart = Chart([1.0, 1.0], [2.0, 2.0], ("x", "y"))
    chart.points([1.0], [2.0], ["here"], "one", 0)
    assert "nan" not in chart.svg("title")


def test_what_is_strong_stands_close():
    scopes, sizes = [(0, 1), (2, 3), (0, 2)], np.array([5.0, 5.0, 0.1])
    places, around = _places(6, scopes, sizes)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert apart[0, 1] < apart[0, 3]
    assert apart[2, 3] < apart[1, 3]
    assert apart[np.triu_indices(6, 1)].min() > 0.05
    assert np.abs(places).max() <= 1 + 1e-9
    assert np.abs(around).max() <= 0.74 + 1e-9
