"""Tables for machines of layers: which units they ask for, and their rows as states."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from gibbsian.domain import as_coding
from gibbsian.errors import ArgumentError, CodingError, DataError
from gibbsian.estimators.layered_data import hidden_kind, read_again, read_visible


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([[0, 1], [1, 1]], "binary"),
        ([[1, 1], [1, 1]], "binary"),
        ([[-1, 1], [1, 1]], "spin"),
        ([["y", "n"], ["n", "?"]], "binary"),
        ([[True, False], [False, False]], "binary"),
        ([[0.0, 0.3], [1.0, 0.0]], "binary"),
        ([["a", "x"], ["b", "y"], ["c", "x"]], "categorical"),
    ],
    ids=["0/1", "ones", "spins", "y/n", "truths", "shares", "words"],
)
def test_the_table_says_which_units(rows, kind):
    data = read_visible(rows)
    assert data.kind == kind
    assert data.layer().kind == kind
    assert data.layer().n_units == 2


def test_rows_keep_their_order_and_number():
    rows = np.array([[1, 0], [0, 1], [1, 0], [1, 1]])
    for source in (rows, gb.Dataset.read(rows), pd.DataFrame(rows)):
        np.testing.assert_array_equal(read_visible(source).rows.states, rows)


def test_missing_cells_are_masked():
    for rows in ([[0.0, np.nan], [1.0, 0.0]], [[0.5, np.nan], [1.0, 0.0]], [["a", None], ["b", "c"], ["d", "e"]]):
        data = read_visible(rows)
        assert data.rows.missing[:2].tolist() == [[False, True], [False, False]]
        assert data.n_missing == 1
        assert np.isfinite(data.layer().encode(data.rows.states)).all()


def test_a_declared_coding_decides():
    assert read_visible([[1, 2], [2, 1]], coding=(1, 2)).coding.low == 1
    assert read_visible([[1, 2], [2, 1]], coding="categorical").kind == "categorical"
    assert read_visible([[0, 1], [1, 1]], "spin").rows.states.tolist() == [[-1, 1], [1, 1]]
    assert read_visible([[3.5, 7.0], [9.0, 1.0]], binarize=5.0).rows.states.tolist() == [[0, 1], [1, 0]]
    with pytest.raises(CodingError):
        read_visible([[0, 1], [1, 1]], coding="yes/no")
    with pytest.raises(DataError):
        read_visible([[0.5, 1], [1, 1]], "spin")


def test_data_sets_in_the_units_asked_for():
    votes = gb.datasets.load_house_votes()
    assert read_visible(votes, "spin").rows.states.min() == -1
    assert read_visible(votes, "categorical").layer().sizes == (2,) * votes.n_variables
    many = gb.Dataset.read([["a"], ["b"], ["c"]], coding="categorical")
    with pytest.raises(CodingError, match="visible='binary' units have two values"):
        read_visible(many, "binary")
    with pytest.raises(CodingError, match="takes numbers"):
        read_visible(many, "gaussian")
    with pytest.raises(ArgumentError, match="belong to the reading of a table"):
        read_visible(votes, drop=["party"])


def test_reading_again_keeps_the_labels():
    coding = as_coding("yes/no")
    assert read_again([["no", "YES"]], "binary", coding).rows.states.tolist() == [[0, 1]]
    with pytest.raises(CodingError, match="the model was fitted on"):
        read_again(gb.Dataset.read([[0, 1], [1, 0]]), "binary", coding)
    with pytest.raises(DataError):
        read_again([[0.5, 0.5]], "binary", coding)


def test_columns_are_chosen_by_name():
    frame = pd.DataFrame({"id": [7, 8], "a": [0, 1], "b": [1, 0], "w": [2.0, 0.5]})
    data = read_visible(frame, drop=["id"], weight_column="w")
    assert (data.names, data.rows.weights.tolist()) == (("a", "b"), [2.0, 0.5])
    again = read_again(frame, "binary", data.coding, columns=["b", "a"], weight_column="w")
    assert again.rows.states.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(DataError, match="no columns are left"):
        read_visible(frame[["a"]], drop=["a"])


def test_hidden_units_follow_the_visible_ones():
    assert [hidden_kind("auto", kind) for kind in ("binary", "spin", "gaussian", "categorical")] == [
        "binary",
        "spin",
        "binary",
        "binary",
    ]


def test_an_array_of_an_archive_is_named_after_a_colon(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.full((2, 3), 9), flat=np.eye(3))
    assert read_visible(tmp_path / "t.npz:flat").rows.n_rows == 3
    assert gb.Dataset.read(str(tmp_path / "t.npz:flat")).n_rows == 3
    with pytest.raises(DataError, match=r"holds no array 'grey' \(x, flat\)"):
        gb.Dataset.read(tmp_path / "t.npz:grey")
