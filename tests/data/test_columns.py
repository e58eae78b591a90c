"""Each column in a coding of its own: recognised, declared, read back; identifiers are noticed and left out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gibbsian as gb
from gibbsian import Variables
from gibbsian.data import Columns, Ordinal, Threshold
from gibbsian.data.columns import kinds_of
from gibbsian.data.readers import read_table
from gibbsian.domain import BINARY, SPIN, CategoryCoding
from gibbsian.errors import ArgumentError, CodingError, ConstantColumnError, DataError, IdentifierWarning
from gibbsian.storage.codings import read_coding, written_coding

MIXED = pd.DataFrame(
    {
        "sex": ["F", "M", "M", "F", "F", "M"],
        "smokes": ["yes", "no", "no", "No", "yes", "no"],
        "married": [True, False, True, True, False, False],
        "ill": [0, 1, 1, 0, 1, 0],
        "mood": [0, 4, 2, 1, 3, 3],
    }
)
TWO_VALUED = MIXED.drop(columns="mood")


def cells_of(data):
    return data.decode(data.states, data.missing)[data.row_of].tolist()


# -- two values -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", ["pandas", "numpy", "csv"])
def test_columns_have_their_own_two_values(form, tmp_path):
    TWO_VALUED.to_csv(tmp_path / "t.csv", index=False)
    source = {"pandas": TWO_VALUED, "numpy": TWO_VALUED.to_numpy(dtype=object), "csv": tmp_path / "t.csv"}[form]
    data = gb.Dataset.read(source)
    assert data.coding.domain == BINARY
    assert data.labels == (("F", "M"), ("no", "yes"), (False, True), (0, 1))
    assert data.states[data.row_of][:2].tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]
    assert cells_of(data)[3] == ["F", "no", True, 0]
    later = gb.Dataset.read([["M", "YES", "true", "1"]], coding=data.coding, declared_by="the model")
    assert later.states.tolist() == [[1, 1, 1, 1]]
    with pytest.raises(CodingError, match="'x0' holds 'X', which the model has not seen"):
        gb.Dataset.read([["X", "yes", True, 0]], coding=data.coding, declared_by="the model")


def test_the_same_two_values_everywhere_are_one_coding():
    assert gb.Dataset.read([["F", "M"], ["M", "F"]]).coding == gb.domain.as_coding(("F", "M"))
    assert gb.Dataset.read([[1, 2], [2, 1]]).coding.describe() == "1/2 (1/2)"
    assert gb.Dataset.read([["no", "yes"], ["yes", "no"]]).coding.name == "yes/no"


def test_a_column_with_one_value_has_the_other_of_a_known_coding():
    rows = [["F", "yes"], ["M", "yes"]]
    assert gb.Dataset.read(rows).labels == (("F", "M"), ("no", "yes"))
    with pytest.raises(ConstantColumnError, match=r"'x1' holds one value only \('old'\)"):
        gb.Dataset.read([["F", "old"], ["M", "old"]])
    declared = gb.Dataset.read([["F", "old"], ["M", "old"]], coding={"x1": ["young", "old"]})
    assert declared.states[declared.row_of].tolist() == [[0, 1], [1, 1]]


def test_declared_columns():
    coding = {"sex": ["M", "F"], "smokes": "yes/no", "mood": Threshold(2, ("calm", "wild")), "ill": "drop"}
    data = gb.Dataset.read(MIXED, coding=coding)
    assert data.names == ("sex", "smokes", "married", "mood")
    assert data.dropped == ("ill",)
    assert data.labels == (("M", "F"), ("no", "yes"), (False, True), ("calm", "wild"))
    assert cells_of(data)[1] == ["M", "no", False, "wild"]
    later = gb.Dataset.read(MIXED.drop(columns="ill"), coding=data.coding, declared_by="the model")
    assert cells_of(later) == cells_of(data)
    again = read_coding(written_coding(data.coding))
    assert (again, again.rule) == (data.coding, Columns({"mood": Threshold(2.0)}))
    assert gb.Dataset.read(data, coding={"sex": ["M", "F"]}) is data
    turned = gb.Dataset.read(data, coding={"sex": ["F", "M"]})
    assert turned.labels[0] == ("F", "M")
    assert cells_of(turned) == cells_of(data)


def test_labels_are_declared_of_data_in_one_coding_of_all_columns():
    data = gb.Dataset.read([[0, 1], [1, 1], [0, 0]])
    turned = gb.Dataset.read(data, coding={"x0": [1, 0]})
    assert turned.labels == ((1, 0), (0, 1))
    assert turned.decode(turned.rows()[0]).tolist() == data.decode(data.rows()[0]).tolist()


@pytest.mark.parametrize(
    ("coding", "sentence"),
    [
        ({"age": ["a", "b"]}, "coding={'age': ...} names the column 'age'"),
        ({"sex": 3}, r"coding\['sex'\]=3 must list the labels"),
        ({"sex": ["F", "X"], "mood": "drop"}, "'sex' holds 'M', which is not one of the declared values"),
        ({"mood": "categorical"}, "column 'mood' holds 5 different values"),
        ({"mood": Threshold(1), "sex": Threshold(1)}, "column 'sex' holds text"),
        (Columns({"sex": ["F", "M"]}, "real"), "columns have no codings of their own here"),
    ],
)
def test_refusals(coding, sentence):
    with pytest.raises((DataError, ArgumentError), match=sentence):
        gb.Dataset.read(MIXED, coding=coding)


def test_two_values_of_each_column_in_other_forms():
    data = gb.Dataset.read(TWO_VALUED)
    spins = data.in_coding(CategoryCoding(data.labels, SPIN))
    assert (spins.states == data.states).all()
    assert spins.variables == Variables.spins(4)
    assert spins.decode(spins.states).tolist() == data.decode(data.states).tolist()
    assert data.convert("spin").states.tolist() == spins.states.tolist()
    assert data.convert("categorical").labels == data.labels
    assert data.coding.describe() == "binary (2 values each)"


# -- ordered levels ---------------------------------------------------------------------------------------------------
def test_ordered_levels_and_their_scores():
    frame = MIXED.assign(size=pd.Categorical(["s", "m", "l", "s", "m", "s"], ["s", "m", "l", "xl"], ordered=True))
    data = gb.Dataset.read(frame, coding="ordinal")
    assert data.labels[-2:] == ((0, 1, 2, 3, 4), ("s", "m", "l", "xl"))
    assert data.variables.scores[-3:] == ((-0.5, 0.5), (-2.0, -1.0, 0.0, 1.0, 2.0), (-1.5, -0.5, 0.5, 1.5))
    assert data.coding.name == "ordinal"
    assert read_coding(written_coding(data.coding)) == data.coding
    with pytest.raises(CodingError, match=r"'x0' holds words whose order is not known .*\{'x0': \['l', 'm', 's'\]\}"):
        gb.Dataset.read([["s"], ["m"], ["l"]], coding="ordinal")
    assert gb.Dataset.read([["s"], ["l"]], coding=Ordinal(["s", "m", "l"])).states.tolist() == [[0], [2]]
    assert gb.Dataset.read(TWO_VALUED).convert("ordinal").variables.scores == ((-0.5, 0.5),) * 4


# -- identifiers ------------------------------------------------------------------------------------------------------
N = 12
IDENTIFIERS = {
    "id": range(100, 100 + 7 * N, 7),
    "user_id": [f"u{k}" for k in range(N)],
    "patientId": range(N, 0, -1),
    "Unnamed: 0": range(N),
    "key": range(0, 3 * N, 3),
    "serial": range(1, N + 1),
    "name": [f"person {k}" for k in range(N)],
}
OTHERS = {
    "paid": [k % 2 for k in range(N)],
    "id": [k % 3 for k in range(N)],
    "income": range(0, 7 * N, 7),
    "weight": np.linspace(0, 1, N),
    "index": [np.nan] * 10 + [1, 2],
    "name": ["Ann", "Bob"] * (N // 2),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_identifiers_are_left_out_with_a_word(name):
    frame = pd.DataFrame({name: IDENTIFIERS[name], "a": [0, 1] * (N // 2)})
    with pytest.warns(IdentifierWarning, match=rf"column '{name}' .*coding=\{{'{name}': 'categorical'\}}"):
        data = gb.Dataset.read(frame)
    assert (data.names, data.dropped) == (("a",), (name,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gb.Dataset.read(frame, drop=name).dropped == (name,)
        assert gb.Dataset.read(frame, coding={name: "drop"}).dropped == (name,)
        kept = gb.Dataset.read(frame, coding=Columns({name: "categorical"}, "categorical"))
    assert (kept.names, kept.dropped) == ((name, "a"), ())


@pytest.mark.parametrize("name", OTHERS)
def test_other_columns_are_no_identifiers(name):
    table = read_table(pd.DataFrame({name: OTHERS[name], "a": [0, 1] * (N // 2)}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gb.Dataset.read(table, coding="categorical").names == (name, "a")


def test_a_few_rows_or_a_single_column_show_no_identifier():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gb.Dataset.read([["x", "r"], ["y", "g"], ["z", "b"]], coding="categorical").n_variables == 2
        assert gb.Dataset.read(np.arange(30)[:, None], coding="categorical").n_variables == 1


def test_identifiers_of_arrays():
    rows = np.column_stack([np.arange(40), np.arange(40) % 2, np.arange(40) // 2 % 2])
    with pytest.warns(IdentifierWarning, match="'x0'"):
        data = gb.Dataset.read(rows)
    assert data.names == ("x1", "x2")


# -- any table --------------------------------------------------------------------------------------------------------
WORDS = st.lists(
    st.text(alphabet="abcdefghij", min_size=1, max_size=4).filter(lambda word: word not in ("na", "nan", "null")),
    min_size=2, max_size=2, unique=True,
)  # fmt: skip
PAIRS = st.one_of(
    st.sampled_from([[0, 1], [-1, 1], ["no", "yes"], ["n", "y"], [False, True], ["F", "M"]]),
    WORDS,
    st.lists(st.integers(-99, 99), min_size=2, max_size=2, unique=True),
)
LEVELS = st.lists(st.integers(-9, 9), min_size=3, max_size=6, unique=True)


@given(st.lists(st.one_of(PAIRS, LEVELS), min_size=1, max_size=5), st.data())
@settings(max_examples=30, deadline=None)
def test_what_is_read_can_be_decoded(columns, data):
    """Tables of random kinds of columns, with holes: two-valued, ordinal and categorical reading lose nothing."""
    n_rows = max(map(len, columns)) + 2
    drawn = [
        [*labels, *data.draw(st.lists(st.sampled_from([*labels, None]), min_size=n_rows, max_size=n_rows))][:n_rows]
        for labels in columns
    ]
    frame = pd.DataFrame({f"c{j}": pd.Series(column, dtype=object) for j, column in enumerate(drawn)})
    for coding in ("ordinal", "categorical", *(["auto"] if max(map(len, columns)) == 2 else [])):
        read = gb.Dataset.read(frame, coding=coding)
        decoded = read.decode(read.states, read.missing)[read.row_of]
        for j, column in enumerate(drawn):
            found = [None if pd.isna(cell) else cell for cell in decoded[:, j].tolist()]
            assert found == column
        again = gb.Dataset.read(decoded, coding=read_coding(written_coding(read.coding)), declared_by="the model")
        assert (again.states[again.row_of] == read.states[read.row_of]).all()


def test_kinds_of_columns():
    frame = pd.DataFrame(
        {
            "sex": ["F", "M"] * 6,
            "mood": [0, 1, 2, 3] * 3,
            "size": pd.Categorical(["s", "m", "l"] * 4, ["s", "m", "l"], ordered=True),
            "hair": ["red", "blond", "brown"] * 4,
            "age": range(20, 80, 5),
            "weight": np.linspace(50, 90, 12),
        }
    )
    found = kinds_of(read_table(frame), {"hair": ["red", "brown"], "age": Threshold(40), "mood": Ordinal([0, 1, 2, 3])})
    assert [*found.values()] == ["two-valued", "ordered", "ordered", "two-valued", "two-valued", "numbers"]
    assert [*kinds_of(read_table(frame)).values()][3:5] == ["categories", "numbers"]
