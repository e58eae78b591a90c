"""Columns with any number of values: labels recognised and declared, what comes back, and clear refusals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import gibbsian as gb
from gibbsian.data import Columns, Labels, Threshold
from gibbsian.data.distinct import distinct_codes
from gibbsian.data.two_values import same_coding
from gibbsian.domain import Categories, CategoryCoding, as_coding
from gibbsian.errors import ArgumentError, CodingError, DataError

WORDS = ["ant", "bee", "Cat", "dog", "elk"]


def read(source, coding="categorical", **options):
    return gb.Dataset.read(source, coding=coding, **options)


@st.composite
def coded_tables(draw):
    """Codes, sizes and missing cells of a table with columns of several sizes."""
    n_rows, n = draw(st.integers(1, 25)), draw(st.integers(1, 8))
    sizes = draw(st.lists(st.integers(1, 5), min_size=n, max_size=n))
    codes = np.column_stack([draw(arrays(np.int8, n_rows, elements=st.integers(0, q - 1))) for q in sizes])
    return codes, sizes, draw(arrays(bool, (n_rows, n)))


@given(coded_tables(), st.booleans())
def test_reading_and_decoding_is_the_identity(table, numbers):
    codes, sizes, missing = table
    labels = [tuple(range(3, 3 + q)) if numbers else tuple(WORDS[:q]) for q in sizes]
    cells = np.array([[labels[j][code] for j, code in enumerate(row)] for row in codes], dtype=object)
    cells[missing] = None
    data = gb.Dataset.read(cells, coding=CategoryCoding.of_labels(labels))
    holes = np.zeros_like(missing) if data.missing is None else data.missing[data.row_of]
    np.testing.assert_array_equal(holes, missing)
    np.testing.assert_array_equal(data.states[data.row_of], np.where(missing, 0, codes))
    back = data.decode(data.states, data.missing)[data.row_of]
    assert (back[~missing] == cells[~missing]).all()
    assert pd.isna(back[missing]).all()


@given(coded_tables())
def test_distinct_codes_reproduce_the_rows(table):
    codes, sizes, missing = table
    first, row_of = distinct_codes(codes, sizes, missing)
    rows = np.where(missing, -1, codes)
    np.testing.assert_array_equal(rows[first][row_of], rows)
    assert len(np.unique(rows, axis=0)) == len(first)
    assert rows[first].tolist() == sorted(rows[first].tolist())


def test_rows_too_wide_for_one_number_are_told_apart(rng):
    codes = rng.integers(0, 100, (50, 40)).astype(np.int8)
    codes = np.concatenate([codes, codes[::-1]])
    codes[3, 39] = 100
    first, row_of = distinct_codes(codes, [127] * 40)
    assert len(first) == 51
    np.testing.assert_array_equal(codes[first][row_of], codes)


class TestRecognition:
    def test_numbers_and_words_are_sorted_numbers_first(self):
        data = read(pd.DataFrame({"size": [10, 9, 10], "kind": ["b", "a", "B2"], "mixed": ["x", 2, 1]}))
        assert data.labels == ((9, 10), ("B2", "a", "b"), (1, 2, "x"))
        assert data.coding.domain == Categories((2, 3, 3))
        assert data.decode(data.states)[data.row_of].tolist() == [[10, "b", "x"], [9, "a", 2], [10, "B2", 1]]

    @pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32])
    def test_label_coded_arrays(self, dtype):
        x = np.array([[0, 3], [2, 0], [1, 1]], dtype=dtype)
        data = read(x)
        assert data.labels == ((0, 1, 2), (0, 1, 3))
        decoded = data.decode(data.states)[data.row_of]
        assert decoded.dtype == np.int8
        np.testing.assert_array_equal(decoded, x)

    def test_pandas_categories_keep_their_order_and_the_unused(self):
        kind = pd.CategoricalDtype(["small", "large", "huge"])
        data = read(pd.DataFrame({"size": pd.Series(["large", "small"], dtype=kind), "n": [1, 2]}))
        assert data.labels == (("small", "large", "huge"), (1, 2))
        assert data.states.tolist() == [[0, 1], [1, 0]]

    def test_polars_enums_do_too_and_categoricals_are_sorted(self):
        frame = pl.DataFrame(
            {
                "size": pl.Series(["large", "small"], dtype=pl.Enum(["small", "large", "huge"])),
                "hair": pl.Series(["red", "blond"], dtype=pl.Categorical),
            }
        )
        assert read(frame).labels == (("small", "large", "huge"), ("blond", "red"))

    def test_files(self, tmp_path):
        frame = pd.DataFrame({"hair": ["red", "blond", "?"], "n": [3, 1, 2]})
        frame.to_csv(tmp_path / "t.csv", index=False)
        data = read(tmp_path / "t.csv")
        assert data.labels == (("blond", "red"), (1, 2, 3))
        assert int(data.missing.sum()) == 1
        kind = pd.CategoricalDtype(["red", "grey", "blond"])
        frame.assign(hair=frame["hair"].replace("?", None).astype(kind)).to_parquet(tmp_path / "t.parquet")
        assert read(tmp_path / "t.parquet").labels[0] == ("red", "grey", "blond")

    def test_truth_values(self):
        data = read(np.array([[True, False], [False, False]]))
        assert data.labels == ((False, True), (False,))
        assert data.decode(data.states).dtype == bool

    def test_dates_and_bytes_are_words(self):
        data = read(pd.DataFrame({"day": pd.to_datetime(["2020-01-02", "2020-01-01"]), "b": [b"y", b"x"]}))
        assert data.labels == (("2020-01-01T00:00:00", "2020-01-02T00:00:00"), ("x", "y"))

    def test_letter_case_counts_where_a_column_shows_both(self):
        data = read([["AA", "Yes"], ["Aa", "no"], ["aa", "Yes"]])
        assert data.labels == (("AA", "Aa", "aa"), ("Yes", "no"))
        later = gb.Dataset.read([["Aa", "YES"]], coding=data.coding)
        assert later.states.tolist() == [[1, 0]]
        with pytest.raises(CodingError, match="'aA'"):
            gb.Dataset.read([["aA", "no"]], coding=data.coding)

    def test_numerals_are_numbers(self):
        assert read([["1", "01"], ["2", " 10 "]]).labels == ((1, 2), (1, 10))

    def test_categories_can_be_declared_for_all_columns_or_some(self):
        rows = [["b", 0], ["a", 1]]
        assert read(rows, Columns({"x0": ["c", "b", "a"]}, "categorical")).labels == (("c", "b", "a"), (0, 1))
        data = gb.Dataset.read([[0, 2], [1, 1]], coding=Labels(range(4)))
        assert data.variables.sizes == (4, 4)
        with pytest.raises(DataError, match=r"coding=\{'z': \.\.\.\} names the column 'z'"):
            read(rows, Columns({"z": ["a"]}, "categorical"))
        with pytest.raises(ArgumentError, match=r"'\?', which stands for a missing cell"):
            read(rows, Labels(["a", "?"]))


class TestValues:
    def test_recognised_over_all_columns(self):
        data = gb.Dataset.read([[0, 1], [-1, np.nan]], coding="values")
        assert data.coding.domain == Categories.of_values((-1, 0, 1), 2)
        assert data.states.tolist() == [[0, 0], [1, 2]]
        np.testing.assert_array_equal(data.decode(data.states, data.missing), [[-1, np.nan], [0, 1]])

    def test_declared(self):
        data = gb.Dataset.read([[0, 1], [1, 0.5]], coding=gb.data.Values((0, 0.5, 1, 2)))
        assert data.variables.levels[1].tolist() == [0, 0.5, 1, 2]
        assert data.coding.describe() == "values (0/0.5/1/2)"
        with pytest.raises(CodingError, match=r"column 'x1' holds 3, .* declared values \(0, 1\)"):
            gb.Dataset.read([[0, 3]], coding=gb.data.Values((0, 1)))

    def test_words_are_refused(self):
        with pytest.raises(CodingError, match=r"column 'b' holds 'x', but coding='values' needs numbers"):
            gb.Dataset.read(pd.DataFrame({"a": [1, 2], "b": ["x", 1]}), coding="values")
        with pytest.raises(ArgumentError, match="values="):
            gb.Dataset.read([[0, 1]], coding=gb.data.Values(("a", "b")))


class TestRefusals:
    def test_unseen_values_are_named_with_the_known_ones(self):
        coding = read([["red", 1], ["blue", 2]], names=["hair", "n"]).coding
        with pytest.raises(
            CodingError, match=r"column 'hair' holds 'green', which the model has not seen \(it knows 'blue', 'red'\)"
        ):
            gb.Dataset.read([["green", 1]], coding=coding, names=["hair", "n"], declared_by="the model")
        with pytest.raises(CodingError, match="'green'"):
            gb.Dataset.read(read([["green", 1]]), coding=coding, declared_by="the model")

    def test_other_numbers_of_columns(self):
        coding = read([[0, 1], [1, 2]]).coding
        with pytest.raises(CodingError, match="3 columns but the coding is of 2"):
            gb.Dataset.read([[0, 1, 2]], coding=coding)

    def test_continuous_columns(self, rng):
        with pytest.raises(DataError, match=r"column 'x1' holds 200 different values, but up to 127.*pandas\.cut"):
            read(np.column_stack([np.arange(200) % 3, rng.random(200)]))
        words = np.array([[f"w{k}"] for k in range(150)])
        with pytest.raises(DataError, match="150 different values"):
            read(words)

    def test_infinity_and_empty_columns(self):
        with pytest.raises(DataError, match="column 'x0' holds infinity"):
            read([[np.inf, 1.0], [0.0, 1.0]])
        with pytest.raises(DataError, match="column 'x1' has no observed cell"):
            read([[1, np.nan], [0, np.nan]])

    def test_two_valued_readers_point_here(self):
        for rows in ([[0, 1], [1, 2], [2, 0]], [["a"], ["b"], ["c"]]):
            with pytest.raises(DataError, match="PottsMachine"):
                gb.Dataset.read(rows)
        with pytest.raises(CodingError, match="many values"):
            as_coding("categorical")

    def test_labels_must_differ(self):
        with pytest.raises(CodingError, match="name a value twice"):
            CategoryCoding.of_labels([("a", "a")])


class TestDataset:
    rows = (["a", 1], ["b", None], ["a", 1], ["c", 2], ["b", 1])

    def test_weights_parts_and_splits(self):
        data = read(self.rows, sample_weight=[1, 2, 3, 4, 5])
        assert (data.n_rows, data.n_states, data.total_weight) == (5, 4, 15.0)
        assert sorted(data.weights.tolist()) == [2.0, 4.0, 4.0, 5.0]
        assert data.complete_rows().n_rows == 4
        assert not data.complete_rows().has_missing
        part = data.take([4, 0])
        assert part.decode(part.states)[part.row_of].tolist() == [["b", 1], ["a", 1]]
        train, test = data.split(0.6, random_state=0)
        assert (train.n_rows, test.n_rows, test.coding) == (3, 2, data.coding)

    def test_conversion_between_codings(self):
        two = gb.Dataset.read([["no", "yes"], ["yes", "yes"]])
        many = two.convert("categorical")
        assert many.labels == (("no", "yes"),) * 2
        assert many.states.tolist() == two.states.tolist()
        assert many.convert("yes/no").coding == two.coding
        assert many.convert("spin").states.tolist() == [[0, 1], [1, 1]]
        spins = gb.Dataset.read([[1, -1], [-1, -1]]).convert("values")
        assert spins.coding.domain == Categories.of_values((-1, 1), 2)
        with pytest.raises(CodingError, match="'x0' has 3 values, so it cannot be written as spin"):
            read(self.rows).convert("spin")

    def test_conversion_to_more_labels_and_another_order(self):
        data = read(self.rows)
        wider = data.convert(CategoryCoding.of_labels([("d", "c", "b", "a"), (2, 1)]))
        back = wider.decode(wider.states, wider.missing)[wider.row_of]
        assert back.tolist() == list(self.rows)
        assert (wider.weights[wider.row_of] == data.weights[data.row_of]).all()

    def test_a_smaller_table_is_read_in_a_fitted_coding(self):
        coding = read(self.rows).coding
        for later in ([["c", 1]], read([["c", 1]])):
            assert gb.Dataset.read(later, coding=coding, declared_by="the model").states.tolist() == [[2, 0]]

    def test_thresholds_give_zeros_and_ones(self):
        data = read([[0.2, 3.0], [np.nan, -1.0]], Threshold(0.5, "categorical"))
        assert data.labels == ((0, 1), (0, 1))
        assert data.decode(data.states, data.missing)[data.row_of][0].tolist() == [0.0, 1.0]


def test_codings_are_compared_and_described():
    coding = CategoryCoding.of_labels([("a", "b"), (1, 2, 3)])
    assert coding == CategoryCoding.of_labels([["a", "b"], [1, 2, 3]])
    assert coding.describe() == "categorical (a/b, 1/2/3)"
    assert CategoryCoding.of_labels([("a", "b")] * 3).describe() == "categorical (a/b)"
    assert CategoryCoding.of_labels([range(20)] * 3).describe() == "categorical (20 values each)"
    assert same_coding(coding, CategoryCoding.of_labels([("a", "b"), (1.0, 2.0, 3.0)]))
    assert not same_coding(coding, CategoryCoding.of_labels([("b", "a"), (1, 2, 3)]))
    assert not same_coding(CategoryCoding.of_labels([(0, 1)]), CategoryCoding.of_labels([(False, True)]))
    assert not same_coding(CategoryCoding.of_labels([(0, 1)]), CategoryCoding.of_values((0, 1), 1))
    assert json.loads(json.dumps(coding.labels)) == [["a", "b"], [1, 2, 3]]
