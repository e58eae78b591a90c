"""The checks before a fit of many-valued and higher-order models."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from gibbsian.errors import (
    ConstantColumnError,
    DataError,
    DegenerateDataWarning,
    GraphError,
    MaximumDoesNotExistError,
    MissingValuesWarning,
)
from preflights import preflight_cliques, preflight_graph
from systems import products_of_order

FULL = np.array(list(itertools.product(range(3), range(2), range(3))))


def read(cells, coding="categorical", **options):
    return gb.Dataset.read(cells, coding=coding, **options)


def complete(data):
    return gb.graphs.complete(data.n_variables)


def test_good_data_passes_without_a_word():
    data = read(FULL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = preflight_graph(data, complete(data))
    assert (report.n_rows, report.n_states, report.n_missing) == (18, 18, 0)
    assert not any((report.constant, report.duplicates, report.notes, report.empty_rows))


def test_rows_and_graphs_are_checked_as_ever():
    with pytest.raises(DataError, match="n_samples = 1"):
        preflight_graph(read([[0, 2]]), gb.graphs.complete(2))
    with pytest.raises(GraphError, match="4 nodes"):
        preflight_graph(read(FULL), gb.graphs.complete(4))
    cells = np.vstack([np.full((1, 3), np.nan), FULL])
    with pytest.warns(MissingValuesWarning, match="1 row carries no information"):
        assert preflight_graph(read(cells), gb.graphs.complete(3)).empty_rows == 1


def test_a_column_with_one_value_is_idle():
    data = read(np.hstack([FULL, np.ones((18, 1), int)]))
    with pytest.warns(DegenerateDataWarning, match="column 'x3' has one value only"):
        assert preflight_graph(data, complete(data)).constant == ("x3",)


def test_one_of_several_declared_values_has_no_finite_bias():
    data = read(np.hstack([FULL, np.ones((18, 1), int)]), coding=gb.data.Columns({"x3": [0, 1]}, "categorical"))
    for l1 in (0.0, 1.0):
        with pytest.raises(ConstantColumnError, match="column 'x3' has one value only, so no finite bias"):
            preflight_graph(data, complete(data), l1=l1)
    with pytest.warns(DegenerateDataWarning, match="'x3'"):
        preflight_graph(data, complete(data), l2=0.1)


def test_values_that_never_occur_are_named():
    data = read(FULL, coding=gb.data.Columns({"x0": [0, 1, 2, 7]}, "categorical"))
    with pytest.raises(MaximumDoesNotExistError, match=r"'x0'=7 never occurs.*l2='auto'"):
        preflight_graph(data, complete(data), l1=0.5)
    (note,) = preflight_graph(data, complete(data), l2=0.1).notes
    assert note == "'x0'=7 never occurs: the penalty alone keeps the parameters finite"


def test_rare_values_are_named():
    cells = np.tile(FULL, (10, 1))
    cells[:2, 0] = 9
    data = read(cells)
    with pytest.warns(
        DegenerateDataWarning, match="'x0'=9 occurs in 2 rows: their parameters are poorly determined"
    ) as said:
        preflight_graph(data, gb.graphs.as_graph("empty", data.names))
    # 'auto' is in use already, and is no penalty where a maximum exists
    assert "auto" not in str(said[0].message)
    assert f"l2={1 / data.n_rows:.2g}" in str(said[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "'x0'=9 occurs in 2 rows" in preflight_graph(data, complete(data), l2=0.1).notes[0]


def test_pairs_that_never_occur_are_named_and_counted():
    cells = FULL[(FULL[:, 0] != 2) | (FULL[:, 2] != 1)]
    data = gb.Dataset.read(pd.DataFrame(cells, columns=["a", "b", "c"]), coding="categorical")
    with pytest.raises(MaximumDoesNotExistError, match=r"'a'=2 never occurs together with 'c'=1: .*l2='auto'"):
        preflight_graph(data, complete(data))
    for penalty in ({"l1": 0.1}, {"l2": 0.1}):
        (note,) = preflight_graph(data, complete(data), **penalty).notes
        assert note == "'a'=2 never occurs together with 'c'=1: the penalty alone keeps the parameters finite"
    assert preflight_graph(data, gb.graphs.from_edges([(0, 1)], 3)).notes == ()


def test_missing_cells_leave_pairs_in_doubt():
    cells = FULL[(FULL[:, 0] != 2) | (FULL[:, 2] != 1)].astype(float)
    data = read(np.vstack([cells, [2, 1, np.nan]]))
    (note,) = preflight_graph(data, complete(data)).notes
    assert "in the observed cells 'x0'=2 never occurs together with 'x2'=1" in note
    apart = read([[0, np.nan], [1, np.nan], [np.nan, 1], [np.nan, 0]])
    with pytest.raises(MaximumDoesNotExistError, match="'x0' and 'x1' are never observed in the same row"):
        preflight_graph(apart, complete(apart))


@pytest.mark.parametrize("graph", ["complete", "empty"])
def test_relabelled_columns_are_duplicates(graph):
    names = np.array(["z", "y", "x"])
    frame = pd.DataFrame({"code": FULL[:, 0], "other": FULL[:, 1], "name": names[FULL[:, 0]]})
    data = gb.Dataset.read(frame, coding="categorical")
    with pytest.warns(DegenerateDataWarning, match="'code' and 'name' are relabelled in every row"):
        report = preflight_graph(data, gb.graphs.as_graph(graph, data.names), l2=0.1)
    assert report.duplicates == (("code", "name", "relabelled"),)


def test_words_alike_but_for_letter_case_are_noted():
    data = read([["Yes", 0], ["yes", 1], ["no", 0], ["no", 1], ["Yes", 1], ["yes", 0]])
    assert preflight_graph(data, complete(data)).notes == ("'x0' has 'Yes' and 'yes', taken as different values",)


def test_rows_of_weight_zero_do_not_count():
    weights = np.where(FULL[:, 0] == 2, 0.0, 1.0)
    with pytest.raises(MaximumDoesNotExistError, match="'x0'=2 never occurs"):
        preflight_graph(read(FULL, sample_weight=weights), gb.graphs.complete(3))


class TestCliques:
    spins = np.array(list(itertools.product([-1, 1], repeat=3)))
    cliques = products_of_order(3, 3).scopes

    def test_good_data_passes(self):
        assert preflight_cliques(gb.Dataset.read(self.spins), self.cliques).notes == ()

    def test_three_values_that_never_meet(self):
        data = gb.Dataset.read(self.spins[1:])
        assert preflight_cliques(data, self.cliques[:-1]).notes == ()
        with pytest.raises(MaximumDoesNotExistError, match="'x0'=-1, 'x1'=-1, 'x2'=-1 never occur together"):
            preflight_cliques(data, self.cliques)
        (note,) = preflight_cliques(data, self.cliques, l1=0.1).notes
        assert "penalty" in note

    def test_a_lone_clique_is_judged_by_its_product(self):
        even = gb.Dataset.read(self.spins[self.spins.prod(axis=1) == 1])
        with pytest.raises(MaximumDoesNotExistError, match="the product of 'x0', 'x1', 'x2' has its largest possible"):
            preflight_cliques(even, [(0, 1, 2)])
        assert preflight_cliques(gb.Dataset.read(self.spins[1:]), [(0, 1, 2)]).notes == ()

    def test_numbers_are_judged_by_the_ends_of_their_range(self):
        values = np.array(list(itertools.product([-1, 0, 1], repeat=2)))
        data = gb.Dataset.read(values, coding="values")
        assert preflight_cliques(data, [(0,), (1,), (0, 1)]).notes == ()
        middle = gb.Dataset.read([[0, -1], [0, 1], [0, 0]], coding=gb.data.Values((-1, 0, 1)))
        assert preflight_cliques(middle, [(0,), (1,), (0, 1)]).notes == ()
        top = gb.Dataset.read([[1, -1], [1, 1], [1, 0]], coding=gb.data.Values((-1, 0, 1)))
        for l1 in (0.0, 0.1):
            with pytest.raises(MaximumDoesNotExistError, match="'x0' has its largest possible value in every row"):
                preflight_cliques(top, [(0,), (1,), (0, 1)], l1=l1)

    def test_missing_cells_prove_nothing(self):
        cells = np.vstack([self.spins[1:], [[-1, -1, np.nan]]])
        assert preflight_cliques(gb.Dataset.read(cells), self.cliques).notes == ()
