"""What `coding=` can say: thresholds, labels, dummy columns, shares, units; and reading again what a fit has seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import gibbsian as gb
from gibbsian import Variables
from gibbsian.data import Labels, OneHot, Shares, Threshold, Units, Values
from gibbsian.domain import BINARY, REALS, SPIN, CategoryCoding, Coding, RealCoding, as_coding
from gibbsian.errors import ArgumentError, CodingError, DataError, MissingValuesError
from gibbsian.models.variables import require_two_values
from gibbsian.storage.codings import read_coding, written_coding


def read(source, coding, **options):
    return gb.Dataset.read(source, coding=coding, **options)


def rows_of(data):
    return data.rows()[0].tolist()


# -- thresholds -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("threshold", [np.nan, np.inf, "1", True, None])
def test_a_threshold_is_a_number(threshold):
    with pytest.raises(ArgumentError, match=r"threshold=.* must be a number"):
        Threshold(threshold)


def test_a_model_reads_numbers_by_its_threshold_and_its_own_labels_as_they_are():
    coding = read([[1.0, 7.0], [8.0, 2.0]], Threshold(5.0, "spin")).coding
    assert coding == as_coding("spin")
    assert rows_of(read([[4.0, 6.0]], coding, declared_by="the model")) == [[0, 1]]
    assert rows_of(read([[-1, 1]], coding, declared_by="the model")) == [[0, 1]]
    again = read_coding(written_coding(coding))
    assert (again, again.rule) == (coding, coding.rule)


def test_a_threshold_survives_a_conversion():
    data = read([[1.0, 7.0], [8.0, 2.0]], Threshold(5.0)).convert("spin")
    assert (rows_of(data), data.variables) == ([[0, 1], [1, 0]], Variables.spins(2))
    assert data.coding.rule == Threshold(5.0)


def test_real_data_are_cut_and_discrete_data_have_passed_the_threshold():
    real = read([[1.0, 7.0], [8.0, 2.0], [1.5, 9.0]], "real", sample_weight=[1, 2, 3])
    cut = read(real, Threshold(5.0))
    assert rows_of(cut) == [[0, 1], [1, 0], [0, 1]]
    assert cut.weights.tolist() == [4.0, 2.0]
    assert read(cut, Threshold(0.5)) is cut


def test_dummy_columns_are_put_together_again():
    names = ["hair_blond", "hair_red"]
    data = read([[1, 0], [0, 1]], OneHot("_"), names=names)
    for later, columns in (([[0, 1]], names), ([["red"]], ["hair"])):
        assert rows_of(read(later, data.coding, names=columns, declared_by="the model")) == [[1]]
    again = read_coding(written_coding(data.coding))
    assert (again, again.rule) == (data.coding, OneHot("_"))
    grouped = read([[1, 0], [0, 1]], OneHot({"hair": names}), names=names).coding
    assert read_coding(written_coding(grouped)).rule == grouped.rule


@pytest.mark.parametrize("categories", [3, "abc"])
def test_categories_that_list_nothing_are_refused(categories):
    with pytest.raises(ArgumentError, match="categories="):
        read([["a"], ["b"]], Labels(categories))


def test_values_that_list_nothing_are_refused():
    with pytest.raises(ArgumentError, match="values=3"):
        read([[1, 2], [2, 1], [1, 1]], Values(3))


# -- two values or categories -----------------------------------------------------------------------------------------
def test_auto_categorical_takes_two_values_where_all_columns_have_the_same():
    assert read([["y", "n"], ["n", "n"]], "auto-categorical").coding.name == "y/n"
    assert read([["a", 1], ["b", 2], ["c", 1]], "auto-categorical").coding.labels == (("a", "b", "c"), (1, 2))


# -- visible units ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([[0, 1], [1, 1]], "binary"),
        ([[1, 1], [1, 1]], "binary"),
        ([[-1, 1], [1, 1]], "spin"),
        ([["y", "n"], ["n", "?"]], "binary"),
        ([[True, False], [False, False]], "binary"),
        ([[0.0, 0.3], [1.0, 0.0]], "binary"),
        ([[0, 255], [255, 0]], "binary"),
        ([["a", "x"], ["b", "y"], ["c", "x"]], "categorical"),
    ],
    ids=["0/1", "ones", "spins", "y/n", "truths", "shares", "any two numbers", "words"],
)
def test_the_table_says_which_units(rows, name):
    for coding in ("auto-visible", Units()):
        assert read(rows, coding).coding.domain.name == name


def test_units_keep_the_labels_and_change_the_numbers():
    data = read([["no", "yes"], ["yes", "yes"]], Units("spin"))
    assert (data.coding.domain, data.coding.low) == (SPIN, "no")
    assert (rows_of(data), data.variables) == ([[0, 1], [1, 1]], Variables.spins(2))
    assert rows_of(read([["YES", "no"]], data.coding, declared_by="the model")) == [[1, 0]]
    zero_one = gb.Dataset.read([[0, 1], [1, 1]])
    spins = read(zero_one, replace(as_coding("binary"), domain=SPIN), declared_by="the model")
    assert (rows_of(spins), spins.variables) == ([[0, 1], [1, 1]], Variables.spins(2))


def test_units_of_a_dataset():
    votes = gb.datasets.load_house_votes()
    assert read(votes, Units("spin")).coding.domain == SPIN
    assert read(votes, Units("categorical")).variables.sizes == (2,) * votes.n_variables
    assert read(votes, Units("gaussian")).coding.domain == REALS
    many = read([["a"], ["b"], ["c"]], "categorical")
    assert read(many, "auto-visible") is many
    with pytest.raises(CodingError, match="visible='binary' units have two values"):
        read(many, Units("binary"))
    with pytest.raises(CodingError, match="takes numbers, but the Dataset is categorical"):
        read(many, Units("gaussian"))
    with pytest.raises(ArgumentError, match="visible='soft' is not known"):
        Units("soft")


def test_a_declared_coding_decides_the_units():
    assert read([[1, 2], [2, 1]], Units(coding=(1, 2))).coding.low == 1
    assert isinstance(read([[1, 2], [2, 1]], Units(coding="categorical")).coding, CategoryCoding)
    assert rows_of(read([[3.5, 7.0], [9.0, 1.0]], Units(coding=Threshold(5.0)))) == [[0, 1], [1, 0]]
    spins = read([[3.5, 7.0], [9.0, 1.0]], Units("spin", Threshold(5.0)))
    assert (rows_of(spins), spins.variables) == ([[0, 1], [1, 0]], Variables.spins(2))
    with pytest.raises(CodingError):
        read([[0, 1], [1, 1]], Units(coding="yes/no"))
    with pytest.raises(DataError):
        read([[0.5, 1], [1, 1]], Units("spin"))


# -- shares -----------------------------------------------------------------------------------------------------------
def test_shares_are_numbers_in_a_binary_coding():
    data = read([[0.25, 1.0], [0.0, np.nan], [0.25, 1.0]], Shares())
    assert data.has_shares
    assert (data.coding.domain, data.n_states, data.weights.tolist()) == (BINARY, 2, [1.0, 2.0])
    assert data.rows()[1].tolist() == [[False, False], [False, True], [False, False]]
    assert not read([[0, 1], [1, 1]], Shares()).has_shares
    with pytest.raises(CodingError, match="shares of two values cannot be written as spin"):
        data.convert("spin")


def test_a_model_of_zero_and_one_takes_shares_where_its_fit_did():
    coding = read([[0, 1], [1, 1]], "auto-visible").coding
    assert rows_of(read([[0.25, 1.0]], coding, declared_by="the model")) == [[0.25, 1.0]]
    with pytest.raises(DataError, match="numbers from 0 to 1: scale the numbers as those of the fit were"):
        read([[0.25, 3.0]], coding, declared_by="the model")
    with pytest.raises(CodingError, match="the model was fitted on binary"):
        read([[2, 1]], coding, declared_by="the model")
    for other in (gb.Dataset.read([[0, 1], [1, 1]]).coding, read([["n", "y"], ["y", "y"]], Units()).coding):
        with pytest.raises(DataError):
            read([[0.25, 1.0]], other, declared_by="the model")
    assert read_coding(written_coding(coding)).rule == Shares()


def test_numbers_outside_shares_name_the_other_kinds():
    with pytest.raises(DataError, match=r"'x1' holds 3.7, .*visible='gaussian'.*Threshold"):
        read([[0.2, 3.7], [0.9, 0.0]], "auto-visible")


# -- real numbers -----------------------------------------------------------------------------------------------------
def test_real_columns_keep_numbers_and_gather_equal_rows():
    rows = np.array([[2.5, 0.0], [-1.0, 3.0], [2.5, -0.0], [7.0, 1.0]])
    data = read(rows, "real", sample_weight=[1.0, 2.0, 3.0, 0.0])
    assert isinstance(data.coding, RealCoding)
    assert (data.n_states, data.n_rows, data.total_weight) == (3, 4, 6.0)
    np.testing.assert_array_equal(data.rows()[0], rows)
    np.testing.assert_array_equal(data.weights[data.row_of], [4.0, 2.0, 4.0, 0.0])
    np.testing.assert_array_equal(data.decode(data.states)[data.row_of], rows)
    assert read_coding(written_coding(data.coding)) == data.coding


def test_the_order_of_real_states_does_not_depend_on_that_of_the_rows(rng):
    rows = np.repeat(rng.normal(size=(30, 3)).round(1), 2, axis=0)
    data, shuffled = read(rows, "real"), read(rows[rng.permutation(60)], "real")
    np.testing.assert_array_equal(data.states, shuffled.states)
    # by their bytes: seeds of mixtures are drawn in this order, so it must never change
    np.testing.assert_array_equal(data.states, sorted(set(map(tuple, rows)), key=lambda row: np.array(row).tobytes()))


def test_missing_real_cells_are_masked():
    data = read([[1.5, np.nan], [1.5, 0.0], [1.5, np.nan]], "real")
    assert (data.n_states, data.missing.sum()) == (2, 1)
    np.testing.assert_array_equal(data.decode(*data.rows()), [[1.5, np.nan], [1.5, 0.0], [1.5, np.nan]])
    assert data.complete_rows().n_rows == 1


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([[1.0, np.inf]], "row 0, column 'x1' holds inf"),
        ([[1.0, -np.inf]], "row 0, column 'x1' holds -inf"),
        ([[1.0, "red"]], "column 'x1' holds words, dates or truth values"),
        ([[True, False]], "column 'x0' holds words, dates or truth values"),
    ],
)
def test_real_columns_refuse(rows, sentence):
    with pytest.raises(DataError, match=sentence):
        read(rows, "real")


def test_sparse_rows_stay_sparse_only_as_real_numbers():
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    data = read(sparse.csr_matrix(dense), "real", sample_weight=[1, 2, 4])
    assert sparse.issparse(data.states)
    np.testing.assert_array_equal(data.rows()[0].toarray(), dense)
    np.testing.assert_array_equal(data.weights[data.row_of], [5.0, 2.0, 5.0])
    np.testing.assert_array_equal(data.take([2, 1]).rows()[0].toarray(), dense[[2, 1]])
    assert data.nbytes > 0
    ones = sparse.csr_array(dense > 0)
    units = read(ones, "auto-visible")
    np.testing.assert_array_equal(units.rows()[0], dense > 0)
    np.testing.assert_array_equal(read(ones, units.coding, declared_by="the model").rows()[0], dense > 0)
    with pytest.raises(DataError, match="Sparse data is not supported"):
        gb.Dataset.read(ones)
    assert rows_of(read(data, Threshold(1.5))) == [[0, 1, 0], [0, 0, 0], [0, 1, 0]]
    with pytest.raises(MissingValuesError, match="row 1, column 'x0' holds NaN"):
        read(sparse.csr_array([[0.0, 1.0], [np.nan, 0.0]]), "real")
    with pytest.raises(DataError, match="Complex data not supported"):
        read(sparse.csr_array([[1j]]), "real")


def test_discrete_data_become_numbers_where_their_labels_are():
    data = read(gb.Dataset.read([[0, 1], [1, None]]), "real")
    assert data.coding.domain == REALS
    np.testing.assert_array_equal(data.decode(*data.rows()), [[0, 1], [1, np.nan]])
    assert rows_of(read(data, "binary")) == [[0, 1], [1, 0]]
    with pytest.raises(CodingError, match=r"takes numbers, but the Dataset is y/n \(n/y\)"):
        gb.Dataset.read([["y", "n"]]).convert("real")


def test_what_needs_two_values_refuses_numbers():
    with pytest.raises(CodingError, match="two-valued variables, but they are real numbers"):
        require_two_values(read([[0.5]], "real").variables)


def test_coding_with_a_rule_equals_the_coding_without():
    assert Coding("binary", 0, 1, BINARY, Threshold(0.5)) == as_coding("binary")


@pytest.mark.parametrize(
    "coding",
    [
        None,
        as_coding("spin"),
        as_coding(("no", "yes")),
        CategoryCoding.of_labels([("a", "b"), (1, 2, 3)]),
        CategoryCoding.of_values((-1, 0, 1), 2),
    ],
)
def test_codings_survive_a_file(coding):
    assert read_coding(written_coding(coding)) == coding


def test_columns_with_other_pairs_are_told_so():
    with pytest.raises(DataError, match="two values, the same in every column, or numbers from 0 to 1"):
        gb.Dataset.read(np.array([[0, 1], [255, 2]]), coding=gb.data.Units())
