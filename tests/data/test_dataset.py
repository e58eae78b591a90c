"""Codings, distinct states and weights of `Dataset`."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gibbsian as gb
from gibbsian.data import Threshold
from gibbsian.domain import CODINGS, as_coding
from gibbsian.errors import ArgumentError, CodingError, DataError, MissingValuesError


@st.composite
def tables(draw):
    """Where cells are high, where they are missing, and the rows' weights."""
    shape = (draw(st.integers(1, 30)), draw(st.integers(1, 20)))
    missing = draw(arrays(bool, shape, elements=st.booleans()))
    high = draw(arrays(bool, shape)) & ~missing
    weights = draw(arrays(float, shape[0], elements=st.integers(1, 5).map(float)))
    return high, missing, weights


def labels_of(high, missing, coding):
    cells = np.where(high, coding.high, coding.low).astype(object)
    cells[missing] = None
    return cells


def assert_rows(data, high, missing):
    """The data reproduces the original rows, in order."""
    holes = np.zeros(data.states.shape, bool) if data.missing is None else data.missing
    np.testing.assert_array_equal(holes[data.row_of], missing)
    np.testing.assert_array_equal((data.states == 1)[data.row_of], high)
    assert set(np.unique(data.states)) <= {0, 1}


# -- properties -------------------------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from(sorted(CODINGS)))
def test_reading_a_declared_coding_reproduces_every_row(table, name):
    high, missing, weights = table
    data = gb.Dataset.read(labels_of(high, missing, CODINGS[name]), coding=name, sample_weight=weights)
    assert_rows(data, high, missing)
    assert data.coding == CODINGS[name]
    assert data.weights.sum() == weights.sum()


@settings(max_examples=60, deadline=None)
@given(tables())
def test_distinct_states_and_weights_reproduce_the_multiset_of_rows(table):
    high, missing, weights = table
    data = gb.Dataset.read(np.where(missing, np.nan, high), coding="binary", sample_weight=weights)
    expected: dict[tuple, float] = {}
    for row, holes, weight in zip(high, missing, weights, strict=True):
        key = (*row.tolist(), *holes.tolist())
        expected[key] = expected.get(key, 0.0) + weight
    holes = np.zeros(data.states.shape, bool) if data.missing is None else data.missing
    found = {(*(s == 1).tolist(), *h.tolist()): w for s, h, w in zip(data.states, holes, data.weights, strict=True)}
    assert found == expected
    assert len(found) == data.n_states


@settings(max_examples=40, deadline=None)
@given(tables(), st.sampled_from(sorted(CODINGS)), st.sampled_from(sorted(CODINGS)))
def test_conversion_there_and_back_is_the_identity(table, one, other):
    high, missing, weights = table
    data = gb.Dataset.read(labels_of(high, missing, CODINGS[one]), coding=one, sample_weight=weights)
    back = data.convert(other).convert(one)
    np.testing.assert_array_equal(back.states, data.states)
    assert back.coding == data.coding
    assert_rows(data.convert(other), high, missing)


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_change_states_or_weights(table, seed):
    high, missing, weights = table
    order = np.random.default_rng(seed).permutation(len(high))
    cells = np.where(missing, np.nan, high)
    one = gb.Dataset.read(cells, coding="binary", sample_weight=weights)
    other = gb.Dataset.read(cells[order], coding="binary", sample_weight=weights[order])
    np.testing.assert_array_equal(one.states, other.states)
    np.testing.assert_array_equal(one.weights, other.weights)


@settings(max_examples=40, deadline=None)
@given(tables(), st.data())
def test_take_agrees_with_reading_the_rows(table, choice):
    high, missing, weights = table
    rows = choice.draw(st.lists(st.integers(0, len(high) - 1), min_size=1, max_size=20))
    cells = np.where(missing, np.nan, high)
    taken = gb.Dataset.read(cells, coding="binary", sample_weight=weights).take(rows)
    read = gb.Dataset.read(cells[rows], coding="binary", sample_weight=weights[rows])
    for field in ("states", "weights", "row_of", "row_weights"):
        np.testing.assert_array_equal(getattr(taken, field), getattr(read, field))
    assert taken.has_missing == read.has_missing == bool(missing[rows].any())


# -- recognition ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cells", "name"),
    [
        ([[-1, 1], [1, 1]], "spin"),
        ([[0, 1], [1, 1]], "binary"),
        ([[1, 1], [1, 1]], "binary"),
        ([["1", "-1"], ["+1", "1.0"]], "spin"),
        ([["Yes", "no"], ["NO", "yes "]], "yes/no"),
        ([["Y", "n"], ["y", "N"]], "y/n"),
        ([[True, False], [True, True]], "true/false"),
        ([["True", "FALSE"], ["true", "false"]], "true/false"),
        ([[True, None], [False, True]], "true/false"),
        ([[None, None], [np.nan, np.nan]], "binary"),
    ],
)
def test_recognises_the_coding_over_all_columns(cells, name):
    assert gb.Dataset.read(cells).coding.name == name


@pytest.mark.parametrize(
    "mark", ["", "  ", "?", "NA", "n/a", "nan", "NaN", "<NA>", "NULL", None, np.nan, pd.NA, pd.NaT]
)
def test_missing_marks(mark):
    data = gb.Dataset.read(np.array([["yes", mark], ["no", "yes"]], dtype=object))
    assert data.missing is not None
    assert data.missing[data.row_of].tolist() == [[False, True], [False, False]]


def test_a_pair_of_labels_is_compared_without_letter_case_and_decoded_as_declared():
    data = gb.Dataset.read([["Agree", "disagree"], ["agree", "?"]], coding=("Disagree", "Agree"))
    assert data.states[data.row_of].tolist() == [[1, 0], [1, 0]]
    decoded = data.decode(data.states[data.row_of], data.missing[data.row_of])
    assert decoded.tolist() == [["Agree", "Disagree"], ["Agree", None]]


def test_a_pair_of_numbers():
    data = gb.Dataset.read(np.array([[1, 2], [2, 2]]), coding=(1, 2))
    assert data.states[data.row_of].tolist() == [[0, 1], [1, 1]]
    assert data.decode(data.states)[data.row_of].tolist() == [[1, 2], [2, 2]]


@pytest.mark.parametrize("cells", [np.array([[0.5, 1.5]]), [["0.5", "1.5"]], np.array([[0, 2]], dtype=np.uint8)])
def test_binarize_puts_only_larger_numbers_high(cells):
    assert gb.Dataset.read(cells, coding=gb.data.Threshold(0.5)).states.tolist() == [[0, 1]]


def test_binarize_keeps_missing_cells_and_a_declared_domain():
    data = gb.Dataset.read([[0.3, np.nan], [7.0, 0.1]], coding=gb.data.Threshold(0.2, "spin"))
    assert data.states[data.row_of].tolist() == [[1, 0], [1, 0]]
    assert data.missing[data.row_of].tolist() == [[False, True], [False, False]]


@pytest.mark.parametrize(
    ("cells", "options", "error", "sentence"),
    [
        (
            [[0, 5], [1, 3], [1, 4]],
            {},
            DataError,
            r"'x1' holds 3 different values \(3, 4, 5\).*Threshold.*drop=\['x1'\]",
        ),
        ([[-1, 0], [0, 0], [1, 1]], {}, DataError, r"column 'x0' holds 3 different values \(-1, 0, 1\)"),
        ([["0", "Ann"], ["1", "Bob"], ["1", "Cy"]], {}, DataError, r"column 'x1' holds text \('Ann'\).*drop=\['x1'\]"),
        ([[0.5, 1], [2, 0]], {}, CodingError, r"'x0' holds 0.5, 2, which is no known coding: .*\{'x0': \[0.5, 2\]\}"),
        ([["f", "f"], ["m", "f"]], {}, DataError, r"column 'x1' holds one value only \('f'\).*drop=\['x1'\]"),
        ([[0, np.inf], [1, 0]], {}, DataError, r"column 'x1' holds infinity \(inf\)"),
        ([[0, np.inf], [1, 0]], {"coding": Threshold(0.5)}, DataError, r"column 'x1' holds infinity \(inf\)"),
        ([[0, np.inf], [1, 0]], {"coding": "binary"}, DataError, r"column 'x1' holds infinity \(inf\)"),
        ([["0", "inf"], ["1", "?"]], {"coding": Threshold(0)}, DataError, r"column 'x1' holds infinity \(inf\)"),
        ([["0", "Ann"], ["1", "2"]], {"coding": Threshold(0.5)}, DataError, r"column 'x1' holds text \('Ann'\)"),
        (
            [[-1, 1], [1, 1]],
            {"coding": "binary"},
            CodingError,
            r"column 'x0' holds -1, which is not a value of the coding binary \(0/1\): declare coding='spin'",
        ),
        ([[0, 3], [1, 1]], {"coding": "binary"}, CodingError, r"column 'x1' holds 3, which is not a value"),
        ([[True, False]], {"coding": "binary"}, CodingError, r"holds True, .*declare coding='true/false'"),
        ([["a", "b"]], {"coding": ("a", "A")}, CodingError, "differ in letter case"),
        ([["a", "b"]], {"coding": ("a", "NA")}, CodingError, "stands for a missing value"),
        ([[0, 1]], {"coding": "ternary"}, CodingError, "coding='ternary' is not known"),
    ],
)
def test_refuses_values_that_fit_no_coding(cells, options, error, sentence):
    with pytest.raises(error, match=sentence):
        gb.Dataset.read(cells, **options)


def test_a_declared_coding_is_kept_where_the_values_could_mean_another():
    assert gb.Dataset.read([[1, 1]], coding="spin").states.tolist() == [[1, 1]]
    assert gb.Dataset.read([[1, 1]], coding="spin").coding.domain.name == "spin"
    assert gb.Dataset.read([[None, None]], coding="yes/no").coding.name == "yes/no"


def test_says_who_was_fitted_on_the_coding():
    with pytest.raises(
        CodingError,
        match=r"the model was fitted on spin \(-1/1\) data but this data is binary \(0/1\) \(column 'x0' holds 0\): "
        r"convert it with Dataset.read\(...\).convert\('spin'\)",
    ):
        gb.Dataset.read([[0, 1]], coding="spin", declared_by="the model")
    with pytest.raises(
        CodingError, match=r"the model was fitted on spin \(-1/1\) data but column 'x1' holds 7: give it"
    ):
        gb.Dataset.read([[1, 7]], coding="spin", declared_by="the model")


def test_codings_are_compared_by_labels_and_not_python_equality():
    data = gb.Dataset.read([[0, 1]])
    assert gb.Dataset.read(data, coding=as_coding((0, 1)), declared_by="the model") is data
    with pytest.raises(CodingError, match=r"fitted on true/false \(False/True\) data but this data is binary"):
        gb.Dataset.read(data, coding=as_coding("true/false"), declared_by="the model")


# -- a Dataset read again, weights, parts -----------------------------------------------------------------------------
def test_a_dataset_is_returned_as_it_is_or_refused():
    data = gb.Dataset.read([[0, 1], [1, 1]])
    assert gb.Dataset.read(data) is data
    assert gb.Dataset.read(data, coding="binary") is data
    with pytest.raises(CodingError, match=r"coding spin \(-1/1\) was declared but the Dataset is binary"):
        gb.Dataset.read(data, coding="spin")
    with pytest.raises(CodingError, match=r"the model was fitted on spin"):
        gb.Dataset.read(data, coding="spin", declared_by="the model")
    with pytest.raises(ArgumentError, match="belong to the reading of a table"):
        gb.Dataset.read(data, drop=["x0"])


def test_a_dataset_can_be_weighted_anew():
    data = gb.Dataset.read([[0, 1], [1, 1], [0, 1]])
    weighted = gb.Dataset.read(data, sample_weight=[1.0, 2.0, 0.5])
    assert weighted.weights.tolist() == [1.5, 2.0]
    assert weighted.total_weight == 3.5


def test_rows_of_weight_zero_keep_their_state():
    data = gb.Dataset.read([[0, 1], [1, 1]], sample_weight=[0, 2])
    assert data.weights.tolist() == [0.0, 2.0]
    assert data.row_of.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1.0], "sample_weight has 1 entries but the data has 2 rows"),
        ([1.0, np.nan], "sample_weight holds nan at row 1: weights must be finite"),
        ([np.inf, 1.0], "sample_weight holds inf at row 0: weights must be finite"),
        ([1.0, -0.5], "sample_weight holds -0.5 at row 1: weights must be zero or positive"),
        ([0.0, 0.0], "sample_weight is zero for every row"),
        (["a", "b"], "sample_weight must be a list of numbers"),
        ([[1.0], [1.0]], r"sample_weight has shape \(2, 1\)"),
    ],
)
def test_refuses_bad_weights(weights, sentence):
    with pytest.raises(DataError, match=sentence):
        gb.Dataset.read([[0, 1], [1, 1]], sample_weight=weights)


def test_complete_rows_keeps_order_and_weights():
    data = gb.Dataset.read([[1, 1], [0, None], [0, 1]], sample_weight=[2, 3, 4]).complete_rows()
    assert not data.has_missing
    assert data.states[data.row_of].tolist() == [[1, 1], [0, 1]]
    assert data.row_weights.tolist() == [2, 4]


def test_complete_rows_refuses_when_none_is_left():
    with pytest.raises(MissingValuesError, match="every one of the 2 rows has a missing cell"):
        gb.Dataset.read([[0, None], [None, 1]]).complete_rows()


def test_require_complete_names_who_and_the_column():
    with pytest.raises(MissingValuesError, match=r"the learner needs complete rows but 2 of 3 rows have .* 'x1'"):
        gb.Dataset.read([[0, None], [1, None], [1, 0]]).require_complete("the learner")
    gb.Dataset.read([[0, 1]]).require_complete("the learner")


def test_split_keeps_every_row_once_and_is_repeatable():
    cells = np.array([[int(b) for b in f"{k:06b}"] for k in range(50)])
    data = gb.Dataset.read(cells, sample_weight=np.arange(50) + 1.0)
    train, test = data.split(0.7, random_state=3)
    assert (train.n_rows, test.n_rows) == (35, 15)
    assert sorted([*train.row_weights, *test.row_weights]) == sorted(data.row_weights)
    numbers = train.states[train.row_of] @ (1 << np.arange(6)[::-1])
    np.testing.assert_array_equal(numbers + 1.0, train.row_weights)
    again, _ = data.split(0.7, random_state=3)
    np.testing.assert_array_equal(again.row_weights, train.row_weights)


@pytest.mark.parametrize(("fraction", "error"), [(0.0, ArgumentError), (1.0, ArgumentError), (0.1, DataError)])
def test_split_refuses_an_empty_part(fraction, error):
    with pytest.raises(error, match="fraction="):
        gb.Dataset.read([[0, 1], [1, 1]]).split(fraction, random_state=0)


def test_decode_gives_the_kind_of_the_coding():
    missing = np.array([[False, True]])
    states = np.array([[1, 0]], dtype=np.int8)
    truth = gb.Dataset.read([[True, False]])
    assert truth.decode(states).dtype == bool
    assert truth.decode(states, missing).tolist() == [[True, None]]
    number = gb.Dataset.read([[1, 0]])
    assert number.decode(states).dtype.kind == "i"
    np.testing.assert_array_equal(number.decode(states, missing), [[1.0, np.nan]])


def test_sizes():
    data = gb.Dataset.read([[0, 1], [1, 1], [0, 1]])
    assert (data.n_rows, data.n_states, data.n_variables, data.total_weight) == (3, 2, 2, 3.0)
    assert data.nbytes == 2 * 2 + 2 * 8 + 3 * 8
    assert data.states.dtype == np.int8
    assert data.row_of.dtype == np.int64


def test_memory_is_asked_for_before_it_is_taken(monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1e-6")
    with pytest.raises(gb.errors.TooExpensiveError, match="reading 100 x 50 cells needs"):
        gb.Dataset.read(np.zeros((100, 50), dtype=np.int8))
