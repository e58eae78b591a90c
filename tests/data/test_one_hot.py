"""One-hot arrays and tables of dummies become categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import OneHotEncoder

import gibbsian as gb
from gibbsian.errors import ArgumentError, DataError

FRAME = pd.DataFrame({"hair_colour": ["red", "blond", None, "red"], "size": [2, 10, 2, 2]})


def test_arrays_of_rows_variables_values(rng):
    codes = rng.integers(0, 4, (30, 5))
    array = np.eye(4, dtype=np.uint8)[codes]
    array[3, 2] = 0
    data = gb.Dataset.read(array, coding="categorical", names=list("abcde"))
    assert data.variables.sizes == (4,) * 5
    assert data.names == tuple("abcde")
    missing = data.missing[data.row_of]
    assert np.argwhere(missing).tolist() == [[3, 2]]
    np.testing.assert_array_equal(data.states[data.row_of][~missing], codes[~missing])
    assert gb.Dataset.read(array.astype(float), coding=data.coding, names=list("abcde")).n_states == data.n_states


@pytest.mark.parametrize("dtype", [bool, int, float])
def test_pandas_dummies(dtype):
    dummies = pd.get_dummies(FRAME, columns=["hair_colour", "size"], dtype=dtype)
    data = gb.Dataset.read(dummies, coding=gb.data.OneHot("_"))
    assert data.names == ("hair_colour", "size")
    assert data.labels == (("blond", "red"), (2, 10))
    assert data.decode(data.states, data.missing)[data.row_of].tolist() == [
        ["red", 2],
        ["blond", 10],
        [None, 2],
        ["red", 2],
    ]


def test_scikit_learns_encoder():
    frame = FRAME.dropna()
    encoder = OneHotEncoder(sparse_output=False).set_output(transform="pandas")
    data = gb.Dataset.read(encoder.fit_transform(frame), coding=gb.data.OneHot("_"))
    assert data.decode(data.states)[data.row_of].tolist() == frame.to_numpy().tolist()


def test_groups_by_name_beside_ordinary_columns():
    frame = pd.DataFrame({"n": [5, 6], "is_red": [0, 1], "is_blond": [1, 0], "w": [1.0, 3.0]})
    data = gb.Dataset.read(frame, coding=gb.data.OneHot({"hair": ["is_red", "is_blond"]}), weight_column="w")
    assert data.names == ("n", "hair")
    assert data.labels == ((5, 6), ("is_red", "is_blond"))
    assert data.weights.tolist() == [1.0, 3.0]
    named = gb.Dataset.read(frame, coding=gb.data.OneHot({"is": ["is_red", "is_blond"]}), drop=["w", "n"])
    assert named.labels == (("red", "blond"),)


def test_two_ones_are_refused_with_row_and_columns():
    dummies = pd.DataFrame({"hair_red": [1, 1], "hair_blond": [0, 1]})
    with pytest.raises(DataError, match=r"row 1 has a one in both 'hair_red' and 'hair_blond'.*variable 'hair'"):
        gb.Dataset.read(dummies, coding=gb.data.OneHot("_"))
    with pytest.raises(DataError, match=r"row 0 has a one in both 'x1\[0\]' and 'x1\[2\]'"):
        gb.Dataset.read(np.array([[[1, 0, 0], [1, 0, 1]]]), coding="categorical")


@pytest.mark.parametrize(
    ("frame", "one_hot", "error", "words"),
    [
        ({"a_x": [0, 2], "a_y": [1, 0]}, "_", DataError, "column 'a_x' of the one-hot variable 'a' holds 2 at row 1"),
        ({"a_x": ["0", "x"], "a_y": [1, 0]}, "_", DataError, "column 'a_x' of the one-hot variable 'a' holds text"),
        ({"a_x": [0, 1], "b": [1, 0]}, "_", DataError, "one column only, 'a_x'.*no drop_first"),
        ({"a": [0, 1], "b": [1, 0]}, "_", ArgumentError, "one_hot='_' stands in no column's name"),
        ({"a": [0, 1], "b": [1, 0]}, {"c": ["a", "z"]}, DataError, "names the column 'z'"),
        ({"a": [0, 1], "b": [1, 0]}, {"c": ["a"], "d": ["a"]}, ArgumentError, "column 'a' in 'c' and in 'd'"),
        ({"a": [0, 1], "b": [1, 0]}, {"c": "a"}, ArgumentError, "must be a list"),
        ({"a_x": [0, 1], "a_y": [1, 0], "a": [0, 1]}, "_", DataError, "rename it"),
    ],
)
def test_what_does_not_fit_is_named(frame, one_hot, error, words):
    with pytest.raises(error, match=words):
        gb.Dataset.read(pd.DataFrame(frame), coding=gb.data.OneHot(one_hot))


def test_two_valued_reading_still_refuses_three_dimensions():
    with pytest.raises(DataError, match="dim 3"):
        gb.Dataset.read(np.zeros((2, 2, 2)))
