"""Cells before any coding: what they are compared by, and columns of distinct values."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.data.readers import read_table
from gibbsian.data.table import Table, as_label, as_names, canonical, factorise, label_key


def test_cells_are_compared_as_numbers_or_words():
    assert [canonical(cell) for cell in (" Yes ", "+1", True, "?")] == ["yes", 1.0, "true", None]
    assert [label_key(label) for label in (" Aa ", "3", True, "?")] == ["Aa", 3.0, "True", None]
    assert [as_label(value, canonical(value)) for value in (" Aa ", "3", 0.5, True)] == ["Aa", 3, 0.5, True]


def test_a_column_keeps_what_was_written_and_what_it_means():
    column = factorise(["Yes", "no", "YES", "?"])
    assert (column.written, column.places.tolist()) == (("Yes", "no", "YES", "?"), [0, 1, 2, 3])
    assert (tuple(column.tokens), column.used) == (("yes", "no", "yes", None), [0, 1, 2])
    assert column.spellings == {"yes": "Yes", "no": "no"}
    assert list(factorise([0, 1.0, None, "1"]).spellings) == [0.0, 1.0]


def test_a_column_of_numbers_or_truths_gives_numbers():
    np.testing.assert_array_equal(factorise(["1", 0.5, "?"]).numbers(), [1.0, 0.5, np.nan])
    assert factorise([True, "false"]).numbers() is None
    assert factorise([True, "false"]).numbers(truths=True).tolist() == [1.0, 0.0]
    assert factorise([True, "maybe"]).numbers(truths=True) is None


def test_names_are_words():
    assert as_names(["a", 1]) == ("a", "1")


@pytest.mark.parametrize("cells", [np.arange(6).reshape(3, 2), [["a", "x"], ["b", "y"], ["a", "z"]]])
def test_rows_and_columns_are_chosen(cells):
    table = read_table(cells, names=["first", "second"])
    assert (table.shape, table.rows(1, 3).shape, table.without(["first"]).names) == ((3, 2), (2, 2), ("second",))
    assert read_table([[0, 1]]).names == ("x0", "x1")


def test_rows_of_labels_show_their_own_values_only():
    part = read_table([["a"], ["b"], ["a"]]).rows(1, 2)
    assert list(part.cells[0].spellings) == ["b"]


def test_a_sparse_column_gives_its_numbers():
    from scipy import sparse

    table = Table(("a", "b"), sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]))
    assert table.numbers("b", "column").tolist() == [2.0, 0.0]
