"""The data sets that come with the package."""

from __future__ import annotations

import csv

import numpy as np

import gibbsian as gb


def test_house_votes_hold_what_the_file_holds():
    with gb.datasets.house_votes_path().open() as lines:
        header, *rows = list(csv.reader(lines))
    data = gb.datasets.load_house_votes()
    assert data.names == tuple(header)
    assert (data.n_rows, data.n_variables) == (435, 17)
    missing = np.array([[cell == "" for cell in row] for row in rows])
    high = np.array([[cell == "1" for cell in row] for row in rows])
    np.testing.assert_array_equal(data.missing[data.row_of], missing)
    np.testing.assert_array_equal((data.states == 1)[data.row_of], high)


def test_house_votes_count_the_parties():
    data = gb.datasets.load_house_votes()
    republican = data.states[data.row_of, data.names.index("republican")]
    assert republican.sum() == 168
    assert int(data.missing[data.row_of].sum()) == 392
