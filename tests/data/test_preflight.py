"""The checks before a fit, and that what they say about the maximum is true."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsian as gb
from gibbsian import Model, Variables
from gibbsian.data import drop_empty_rows, fit_memory
from gibbsian.data.pairs import CELLS, _empty_triangle, count_pairs
from gibbsian.diagnostics.existence import maximum_exists
from gibbsian.errors import (
    ConstantColumnError,
    DataError,
    DegenerateDataWarning,
    GraphError,
    MaximumDoesNotExistError,
    MissingValuesWarning,
)
from preflights import preflight_graph
from systems import dataset_of

FULL = np.array(list(itertools.product([0, 1], repeat=3)))


def read(cells, **options):
    return gb.Dataset.read(cells, coding="binary", **options)


def complete(data):
    return gb.graphs.complete(data.n_variables)


def test_good_data_passes_without_a_word():
    data = read(FULL)
    report = preflight_graph(data, complete(data))
    assert (report.n_rows, report.n_states, report.n_missing) == (8, 8, 0)
    assert not any((report.constant, report.nearly_constant, report.duplicates, report.notes, report.empty_rows))


def test_one_row_is_too_few():
    with pytest.raises(DataError, match="n_samples = 1"):
        preflight_graph(read([[0, 1]]), gb.graphs.complete(2))


def test_the_graph_must_be_of_the_datas_size():
    with pytest.raises(GraphError, match="graph has 4 nodes but the data has 3 columns"):
        preflight_graph(read(FULL), gb.graphs.complete(4))


def test_empty_rows_are_counted_and_can_be_dropped():
    cells = np.vstack([np.full((2, 3), np.nan), FULL])
    data = read(cells)
    with pytest.warns(MissingValuesWarning, match=r"2 rows carry no information .*\(first: row 0\)"):
        report = preflight_graph(data, complete(data))
    assert report.empty_rows == 2
    kept = drop_empty_rows(data)
    assert kept.n_rows == 8
    assert not kept.has_missing
    assert drop_empty_rows(kept) is kept


def test_nothing_observed():
    with pytest.raises(DataError, match="all cells of all 2 rows are missing"):
        preflight_graph(read([[None, None], [None, None]]), gb.graphs.complete(2))


def test_a_column_without_observed_cells_is_named():
    cells = FULL.astype(float)
    cells[:, 1] = np.nan
    with pytest.raises(DataError, match="column 'x1' has no observed cell"):
        preflight_graph(read(cells), gb.graphs.complete(3), l2=1.0)


def test_constant_columns_are_all_named():
    cells = np.hstack([FULL, np.zeros((8, 5))])
    data = read(cells)
    sentence = r"columns 'x3', 'x4', 'x5', 'x6', 'x7' have one value only.*drop them or add a penalty by l2='auto'"
    for l1 in (0.0, 0.5):
        with pytest.raises(ConstantColumnError, match=sentence):
            preflight_graph(data, complete(data), l1=l1)
    with pytest.warns(DegenerateDataWarning, match="columns 'x3', 'x4', 'x5' and 2 others have one value only"):
        report = preflight_graph(data, complete(data), l2=0.01)
    assert report.constant == ("x3", "x4", "x5", "x6", "x7")


def test_rows_of_weight_zero_do_not_count():
    data = read([[0, 0], [0, 1], [1, 1]], sample_weight=[1, 1, 0])
    with pytest.raises(ConstantColumnError, match="column 'x0' has one value only"):
        preflight_graph(data, gb.graphs.complete(2))


def test_nearly_constant_columns_warn_in_long_tables_only():
    rare = np.zeros((100, 1), int)
    rare[:2] = 1
    data = read(np.hstack([np.tile(FULL, (13, 1))[:100], rare]))
    with pytest.warns(DegenerateDataWarning, match="column 'x3' has the rarer value in fewer than 3 rows"):
        report = preflight_graph(data, gb.graphs.complete(4), l2=0.1)
    assert report.nearly_constant == ("x3",)
    assert preflight_graph(read(FULL[:6]), gb.graphs.complete(3), l2=0.1).nearly_constant == ()


def test_empty_combinations_are_named_and_counted():
    cells = np.eye(4, dtype=int)
    data = gb.Dataset.read(np.vstack([cells, 0 * cells]), names=list("abcd"))
    with pytest.raises(
        MaximumDoesNotExistError,
        match=r"'a'=1 never occurs together with 'b'=1; .*; and 3 other pairs likewise: add a penalty by l2='auto'",
    ):
        preflight_graph(data, complete(data))
    for penalty in ({"l1": 0.1}, {"l2": 0.1}):
        (note,) = preflight_graph(data, complete(data), **penalty).notes
        assert "the penalty alone keeps the parameters finite" in note
    assert preflight_graph(data, gb.graphs.as_graph("empty", data.names)).notes == ()


def test_labels_in_messages_are_the_users_own():
    data = gb.Dataset.read([["no", "no"], ["no", "yes"], ["yes", "yes"]], names=["a", "b"])
    with pytest.raises(MaximumDoesNotExistError, match="'a'=yes never occurs together with 'b'=no"):
        preflight_graph(data, gb.graphs.complete(2))


def test_missing_cells_leave_an_empty_combination_open():
    data = gb.Dataset.read([[0, 0], [0, 1], [1, 0], [1, None]])
    (note,) = preflight_graph(data, gb.graphs.complete(2)).notes
    assert "in the observed cells 'x0'=1 never occurs together with 'x1'=1" in note
    closed = gb.Dataset.read([[0, 0], [0, 1], [1, 0], [0, None]])
    with pytest.raises(MaximumDoesNotExistError, match="'x0'=1 never occurs together with 'x1'=1"):
        preflight_graph(closed, gb.graphs.complete(2))


@pytest.mark.filterwarnings("ignore::gibbsian.errors.DegenerateDataWarning")
def test_duplicates_are_found_on_and_off_the_edges():
    a, b, c = FULL.T
    data = gb.Dataset.read(np.column_stack([a, b, 1 - a, c, b]), names=list("abAcB"))
    expected = (("a", "A", "opposite"), ("b", "B", "equal"))
    assert preflight_graph(data, complete(data), l2=0.1).duplicates == expected
    assert preflight_graph(data, gb.graphs.as_graph([("a", "b"), ("c", "B")], data.names)).duplicates == expected


@pytest.mark.filterwarnings("ignore::gibbsian.errors.DegenerateDataWarning")
def test_duplicates_ignore_cells_that_are_not_observed_together():
    cells = np.array([[0, 0], [1, 1], [0, np.nan], [1, np.nan]])
    assert preflight_graph(gb.Dataset.read(cells), gb.graphs.complete(2)).duplicates == (("x0", "x1", "equal"),)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.DegenerateDataWarning")
@pytest.mark.parametrize(
    ("cells", "coding", "sentence"),
    [
        ([[-1, -1], [1, 1]], "spin", "'x0' and 'x1' are always equal"),
        ([[-1, 1], [1, -1]], "spin", "'x0' and 'x1' are always opposite"),
        ([[0, 1], [1, 0], [0, 0]], "binary", "'x0'=1 never occurs together with 'x1'=1"),
        ([[1, 1], [1, 1]], "binary", "'x0'=1 always occurs together with 'x1'=1"),
    ],
)
def test_without_biases_only_the_product_matters(cells, coding, sentence):
    data = gb.Dataset.read(cells, coding=coding)
    with pytest.raises(MaximumDoesNotExistError, match=sentence):
        preflight_graph(data, gb.graphs.complete(2), bias=False)
    assert preflight_graph(data, gb.graphs.complete(2), bias=False, l1=0.1).notes


@pytest.mark.filterwarnings("ignore::gibbsian.errors.DegenerateDataWarning")
@pytest.mark.parametrize(
    ("cells", "coding"), [([[-1, -1], [-1, 1]], "spin"), ([[1, 0], [1, 1]], "binary"), ([[0, 0], [1, 1]], "binary")]
)
def test_without_biases_other_empty_combinations_are_harmless(cells, coding):
    data = gb.Dataset.read(cells, coding=coding)
    assert preflight_graph(data, gb.graphs.complete(2), bias=False).notes == ()


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(0, 7), min_size=2, max_size=12), st.booleans(), st.sampled_from(["spin", "binary"]), st.data()
)
def test_an_error_is_never_raised_where_the_maximum_exists(rows, bias, coding, choice):
    """The linear programme is the exact judge: an error means no maximum; on two variables the converse holds too."""
    n = choice.draw(st.sampled_from([2, 3]))
    data = gb.Dataset.read(FULL[rows][:, :n], coding="binary").convert(coding)
    graph = gb.graphs.complete(n)
    model = Model.zeros(gb.PairwiseFamily(graph, data.variables, bias))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)
            preflight_graph(data, graph, bias=bias)
        passed = True
    except (ConstantColumnError, MaximumDoesNotExistError):
        passed = False
    exists = maximum_exists(model, data, "likelihood")
    if n == 2:
        assert passed == exists
    else:
        assert passed or not exists


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(1, 1300))
def test_pair_cells_agree_with_counting(seed, n, n_rows):
    rng = np.random.default_rng(seed)
    cells = (rng.random((n_rows, n)) < rng.random(n) ** 3).astype(float)
    cells[rng.random((n_rows, n)) < 0.1] = np.nan
    data = gb.Dataset.read(cells, coding="binary")
    edges = gb.graphs.complete(n).edges
    found = count_pairs(data, edges)
    for e, (i, j) in enumerate(edges):
        for k, (a, b) in enumerate(CELLS):
            observed = (cells[:, i] == a) & (cells[:, j] == b)
            possible = ((cells[:, i] == a) | np.isnan(cells[:, i])) & ((cells[:, j] == b) | np.isnan(cells[:, j]))
            assert found.observed[e, k] == observed.any()
            assert found.possible[e, k] == possible.any()


def test_fit_memory_grows_with_the_dense_matrix_only_where_there_is_one():
    n = 3000
    data = gb.Dataset.read(np.random.default_rng(0).integers(0, 2, (4, n)))
    chain, full = (Model.zeros(gb.PairwiseFamily(graph)) for graph in (gb.graphs.grid(1, n), gb.graphs.complete(n)))
    assert fit_memory(data, chain) < 8 * n**2 < fit_memory(data, full)


def test_fit_memory_counts_the_matrix_of_all_values_where_they_are_few():
    n, q = 80, 5
    variables = Variables.ordinal([range(q)] * n)
    full, chain = (
        Model.zeros(gb.PotentialsFamily.ordinal(graph, variables))
        for graph in (gb.graphs.complete(n), gb.graphs.grid(1, n))
    )
    data = dataset_of(np.zeros((1, n), np.int8), variables)
    vectors = 8 * 110 * (full.theta.size - chain.theta.size)
    assert fit_memory(data, full) - fit_memory(data, chain) - vectors > 16 * (n * q) ** 2


class TestTriangles:
    """Three columns that rule a finite maximum out together."""

    @pytest.mark.parametrize("pattern", [(1, 1, 1), (1, 1, -1), (1, -1, 1), (-1, 1, 1)])
    def test_named_with_the_pattern(self, pattern):
        states = np.array(list(itertools.product([-1, 1], repeat=3)))
        kept = states[np.abs(states @ pattern) != 3]
        data = gb.Dataset.read(kept, names=["a", "b", "c"])
        opposite = tuple(-spin for spin in pattern)
        with pytest.raises(MaximumDoesNotExistError, match="never occur together, nor do their opposites") as error:
            preflight_graph(data, gb.graphs.complete(3))
        named = [", ".join(f"'{n}'={s}" for n, s in zip("abc", spins, strict=True)) for spins in (pattern, opposite)]
        assert any(words in str(error.value) for words in named)
        assert not maximum_exists(Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3))), data, "likelihood")
        preflight_graph(data, gb.graphs.complete(3), l2=0.1)
        preflight_graph(data, gb.graphs.from_edges([(0, 1), (1, 2)], 3))

    @pytest.mark.parametrize("seed", range(8))
    def test_pairs_and_triangles_decide_three_variables(self, seed):
        """Against the linear programme, on random sets of states."""
        rng = np.random.default_rng(seed)
        states = np.array(list(itertools.product([0, 1], repeat=3)))
        kept = states[rng.random(8) < 0.8]
        data, graph = gb.Dataset.read(np.vstack([kept, kept])), gb.graphs.complete(3)
        exists = maximum_exists(Model.zeros(gb.PairwiseFamily(graph, Variables.binary)), data, "likelihood")
        try:
            preflight_graph(data, graph)
        except (ConstantColumnError, MaximumDoesNotExistError):
            assert not exists
        else:
            assert exists

    @pytest.mark.parametrize("seed", range(12))
    @pytest.mark.parametrize("low", [0, -1])
    def test_found_as_by_looking_at_every_row(self, seed, low):
        """Few rows on random graphs, in both codings, some of weight zero, against sets of patterns."""
        rng = np.random.default_rng(seed)
        graph = gb.graphs.random(9, 0.6, rng)
        cells, weights = rng.integers(0, 2, (28, 9)), rng.integers(0, 2, 28)
        data = gb.Dataset.read(np.where(cells, 1, low), coding="spin" if low else "binary", sample_weight=weights)
        graph = without_empty_pairs(cells[weights > 0], graph)
        triangles = [
            t for t in itertools.combinations(range(9), 3) if {*itertools.combinations(t, 2)} <= edge_set(graph)
        ]
        expected = {
            (triangle, pattern)
            for triangle in triangles
            for pattern in itertools.product([1], [0, 1], [0, 1])
            if not any(tuple(row) in (pattern, tuple(1 - np.array(pattern))) for row in cells[weights > 0][:, triangle])
        }
        found = _empty_triangle(count_pairs(data, graph.edges, differences=True), graph)
        assert graph.has_triangles == bool(triangles)
        assert (found is None) == (not expected)
        assert found is None or (found in expected and found[0] == min(expected)[0])

    def test_many_columns_are_looked_at_too(self):
        """One planted triangle of 36 million."""
        rows = np.random.default_rng(0).choice([-1, 1], (300, 600))
        preflight_graph(gb.Dataset.read(rows), gb.graphs.complete(600))
        rows[:, 599] = np.where(rows[:, 10] == rows[:, 300], -rows[:, 10], rows[:, 599])
        with pytest.raises(MaximumDoesNotExistError, match="'x10'=1, 'x300'=1, 'x599'=1 never occur together"):
            preflight_graph(gb.Dataset.read(rows), gb.graphs.complete(600))

    def test_a_check_beyond_its_price_is_said_to_be_left_out(self, monkeypatch):
        states = np.array(list(itertools.product([-1, 1], repeat=3)))
        data, graph = gb.Dataset.read(states[np.abs(states.sum(axis=1)) != 3]), gb.graphs.complete(3)
        monkeypatch.setattr("gibbsian.data.pairs.MOST_MEETINGS", 0.0)
        assert preflight_graph(data, graph).notes == ("there are too many triangles of columns to look at",)


def edge_set(graph):
    return {tuple(edge) for edge in graph.edges.tolist()}


def without_empty_pairs(cells, graph):
    """Leave only the edges whose four combinations occur, as triangles are looked at after pairs."""
    kept = [edge for edge in edge_set(graph) if len({tuple(row) for row in cells[:, edge].tolist()}) == 4]
    return gb.graphs.from_edges(kept, graph.n_nodes)


def test_a_large_lattice_takes_no_matrix_of_all_pairs():
    data = gb.Dataset.read(np.random.default_rng(0).choice([-1, 1], (40, 300 * 300)))
    assert preflight_graph(data, gb.graphs.grid(300, 300), l2=0.1).n_states == 40


def test_duplicate_columns_are_named_when_a_penalty_makes_the_fit_possible():
    data = gb.Dataset.read([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]], names=["a", "copy", "c"])
    with pytest.warns(DegenerateDataWarning, match="'a' and 'copy' are equal"):
        preflight_graph(data, gb.graphs.complete(3), l2=0.1)
