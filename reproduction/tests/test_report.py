"""Tables for the eye, verdicts in sentences, files on disk."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from gibbsian.errors import FileFormatError
from gibbsian_reproduction.drawing import METHOD_STYLES, label_axes, method_style
from gibbsian_reproduction.report import count_of_claims, read_records, shown_cells
from gibbsian_reproduction.ta22_methods import METHODS


def test_claims_are_said_with_their_verdicts(report):
    assert report.summary == "1 of 2 claims holds"
    assert report.sentences() == [
        "it is so: holds (3 of 3 trials)",
        "it is not (ours): does not hold (<0 & 1>); with 3 trials that may be chance, from 100 on hardly",
    ]
    assert count_of_claims([True] * 3) == "3 of 3 claims hold"
    assert count_of_claims([False]) == "the claim does not hold"


def test_files_are_whole_and_the_same_every_time(report, tmp_path):
    names = {path.name for path in report.write(tmp_path)}
    assert names == {"toy-errors-all.csv", "toy-other-one.csv", "toy.json", "toy.png", "toy.svg"}
    assert names == {path.name for path in tmp_path.iterdir()}
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    report.write(tmp_path)
    assert first == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert b"<dc:date>" not in first["toy.svg"]
    assert first["toy.png"].startswith(b"\x89PNG")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "toy-errors-all.csv"), report.tables[0].frame)


def test_the_record_holds_everything_and_is_plain_json(report, tmp_path):
    report.write(tmp_path)
    (record,) = read_records(tmp_path)
    assert record == json.loads(json.dumps(report.record(), allow_nan=False))
    assert record["command"] == "gibbsian-reproduce toy --trials 3 --seed 5 --out results/"
    assert (record["trials"], record["seed"], record["seconds"]) == (3, 5, 1.5)
    assert record["tables"][1]["rows"] == [["a|b", None]]
    assert [claim["holds"] for claim in record["claims"]] == [True, False]
    assert record["versions"]["numpy"] == np.__version__


def test_a_foreign_file_among_the_records_is_passed_over_and_a_broken_one_named(report, tmp_path):
    report.write(tmp_path)
    (tmp_path / "settings.json").write_text('{"a": 1}')
    assert len(read_records(tmp_path)) == 1
    (tmp_path / "broken.json").write_text('{"a"')
    with pytest.raises(FileFormatError, match=r"broken\.json is not JSON"):
        read_records(tmp_path)


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [
        (0.123456, 0.0123, "0.123 ± 0.012"),
        (1234.5, 98.7, "1234 ± 99"),
        (2.5e-9, 1e-10, "2.5e-09 ± 1e-10"),
        (0.5, None, "0.5"),
        (3.0, None, "3"),
        (None, None, "-"),
        ("text", None, "text"),
        (7, None, "7"),
        (2.0, 0.0, "2"),
    ],
)
def test_numbers_are_shown_to_the_digits_that_matter(value, error, shown):
    assert shown_cells(["x", "x stderr"], [[value, error]]) == (["x"], [[shown]])


def test_every_method_looks_alike_everywhere_and_different_from_others():
    looks = {name: tuple(method_style(name).values()) for name in METHOD_STYLES}
    assert method_style("MPLE") == method_style("mple")
    assert method_style("something else") == {"color": "#000000", "marker": ">"}  # in every process
    compared = [looks[name] for name in ("mle", "mple", "rm", "mpf", "1-smci", "s2-smci", "2-smci", "ais", "mci")]
    assert len(set(compared)) == len(compared)


@pytest.mark.parametrize("ends", [(0.07, 4.2), (3.0, 9.5), (0.8, 9.0), (1e-4, 2.0)])
def test_labels_between_powers_of_ten_do_not_collide(ends):
    axes = Figure((3.2, 3.6)).subplots()
    axes.plot(ends, ends)
    label_axes(axes, "x", "y")
    axes.figure.draw_without_rendering()
    for axis in (axes.xaxis, axes.yaxis):
        texts = [label for label in axis.get_ticklabels(which="both") if label.get_text() and label.get_visible()]
        low, high = axis.get_view_interval()
        boxes = [text.get_window_extent() for text in texts if low <= text.get_position()[axis is axes.yaxis] <= high]
        assert boxes
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_models_of_one_picture_differ_in_colour_and_marker():
    for part in ("color", "marker"):
        assert len({method_style(model)[part] for model in METHODS}) == len(METHODS)
