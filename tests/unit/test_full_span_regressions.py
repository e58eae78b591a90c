"""What users of the full-span model ran into: each test is one of their sessions."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import gibbsian as gb
from gibbsian.errors import ArgumentError, DataError, DegenerateDataWarning, TooExpensiveError
from gibbsian.full_span import (
    FullSpanModel,
    SpanAverage,
    SpanBasis,
    bootstrap_average,
    fit_full_span,
    fit_hidden,
    fit_selected,
    stack,
)
from gibbsian.resources import memory_limit

STATES, COUNTS, SIZES = np.array([[0, 0], [0, 1], [1, 1]]), [40, 10, 30], (2, 2)


def coupled(rng, n_rows=200):
    rows = rng.integers(0, 2, (n_rows, 3))
    rows[:, 2] = np.where(rng.random(n_rows) < 0.6, rows[:, 0], rows[:, 2])
    return rows


def with_holes(rows, rng, share=0.3):
    holes = rng.random(rows.shape) < share
    holes[holes.all(axis=1)] = False  # rows that show nothing are left out of a fit
    return np.where(holes, np.nan, rows)


@pytest.fixture
def fitted(rng):
    return gb.FullSpan(random_state=0).fit(coupled(rng))


@pytest.fixture
def mixed():
    """Columns of every type that a frame may have."""
    n = 40
    code = np.arange(n) % 2
    return pd.DataFrame(
        {
            "colour": pd.Categorical(np.where(code, "red", "blue"), categories=["red", "blue", "green"]),
            "size": np.array([3, 7, 9])[np.arange(n) % 3],
            "dose": np.array([0.5, 1.5])[code],
            "grade": pd.array(code + 1, dtype="Int64"),
            "ill": pd.array(code == 1, dtype="boolean"),
            "old": code == 0,
            "word": np.where(code, "a", "b"),
        }
    )


# -- missing cells ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("settings", [{}, {"algorithm": "newton"}, {"algorithm": "dense", "l2": 0.01}], ids=str)
def test_with_missing_cells_the_cost_is_the_likelihood_of_the_observed_ones(settings, tmp_path, rng):
    rows = with_holes(coupled(rng), rng)
    machine = gb.FullSpan(**settings).fit(rows)
    told = machine.result_.provenance
    shrinks = 0.5 * told["l2"] * float(machine.model_.theta @ machine.model_.theta)
    expected = machine.basis_["penalty"].sum() + shrinks - machine.score(rows)
    assert machine.cost_ == pytest.approx(expected, abs=1e-12)
    assert math.isnan(machine.divergence_)
    assert "divergence" not in told
    assert (machine.trace_["cost"] > 0).all()
    assert machine.cost_ - 1e-12 <= machine.trace_["cost"].iloc[-1] <= machine.cost_ + 1e-4
    machine.save(tmp_path / "model.gibbs")
    loaded = gb.load(tmp_path / "model.gibbs")
    assert loaded.cost_ == machine.cost_
    assert math.isnan(loaded.divergence_)


@pytest.mark.filterwarnings("ignore:stopped at max_iter")
def test_a_fit_stopped_before_the_first_fill_tells_the_cost_of_all_rows(rng):
    rows = with_holes(coupled(rng), rng)
    machine = gb.FullSpan(max_iter=1).fit(rows)
    assert machine.trace_["kind"].tolist() == ["append"]
    assert machine.result_.provenance["samples"] == len(rows)
    assert machine.cost_ == pytest.approx(machine.basis_["penalty"].sum() - machine.score(rows), abs=1e-12)


# -- answers ----------------------------------------------------------------------------------------------------------
def test_conditional_keeps_truth_values_and_numbers_apart():
    n = np.arange(40)
    frame = pd.DataFrame({"s": n % 2, "flag": n % 4 > 1, "count": n % 3})
    machine = gb.FullSpan().fit(frame)
    found = machine.conditional({"s": 1})
    assert found.index.tolist() == [("flag", "False"), ("flag", "True"), ("count", 0), ("count", 1), ("count", 2)]
    np.testing.assert_allclose(found["flag"], machine.conditional({"s": 1}, "flag"))
    np.testing.assert_allclose(found["count"], machine.conditional({"s": 1}, "count"))
    assert machine.conditional({"count": 1}, "flag").index.tolist() == [False, True]


def test_a_conditioned_model_does_not_tell_the_cost_of_its_parent(fitted, tmp_path):
    rest = fitted.condition({"x0": 1})
    assert math.isnan(rest.cost_)
    assert math.isnan(rest.divergence_)
    assert not {"cost", "divergence", "steps", "seconds"} & set(rest.result_.provenance)
    assert rest.result_.provenance["functions"] == rest.model_.theta.size
    rest.save(tmp_path / "rest.gibbs")
    assert math.isnan(gb.load(tmp_path / "rest.gibbs").cost_)


def test_columns_by_number(fitted):
    assert fitted.marginal(np.int64(1)).equals(fitted.marginal("x1"))
    assert fitted.marginal(np.array([2, 0])).equals(fitted.marginal(["x2", "x0"]))
    assert fitted.conditional({np.int64(0): 1}).equals(fitted.conditional({"x0": 1}))


@pytest.mark.parametrize("names", [1.5, None, True, np.int64(7), [None]], ids=repr)
def test_columns_that_do_not_exist_are_named(fitted, names):
    with pytest.raises(ArgumentError, match=r"column (1\.5|None|True|7) is not one of 'x0', 'x1', 'x2'"):
        fitted.marginal(names)


def test_given_must_be_a_mapping_of_each_column_once(fitted):
    for given in ("s", ["x0"], None):
        with pytest.raises(ArgumentError, match="must map columns to their values"):
            fitted.conditional(given)
    with pytest.raises(ArgumentError, match="given holds a column twice"):
        fitted.condition({"x0": 1, 0: 1})
    with pytest.raises(DataError, match="5") as refused:
        fitted.condition({"x0": np.int64(5)})
    assert "np.int64" not in str(refused.value)


def test_counts_of_answers_are_whole_numbers(fitted):
    for wrong in (2.5, "3", None, True):
        with pytest.raises(ArgumentError, match=r"n_samples=.* must be a whole number"):
            fitted.sample(wrong)
        with pytest.raises(ArgumentError, match=r"n_states=.* must be a whole number"):
            fitted.most_probable(wrong)
    assert len(fitted.sample(np.int64(3))) == 3


def test_filled_frames_keep_the_types_of_their_columns(mixed):
    machine = gb.FullSpan().fit(mixed)
    for filled in (machine.impute(mixed), machine.predict(mixed)):
        pd.testing.assert_frame_equal(filled, mixed)
    holes = mixed.copy()
    holes.loc[::5, ["colour", "dose", "grade", "ill", "word"]] = None
    filled = machine.impute(holes)
    assert filled.dtypes.tolist() == mixed.dtypes.tolist()
    assert not filled.isna().any().any()


def test_filled_frames_of_numbers_keep_their_types(rng):
    whole = pd.DataFrame(coupled(rng), columns=["a", "b", "c"], index=np.arange(200) + 7)
    for kind in ("int64", "float32", "Int64", "bool", "uint8"):
        frame = whole.astype(kind)
        pd.testing.assert_frame_equal(gb.FullSpan().fit(frame).impute(frame), frame)
    assert gb.BoltzmannMachine().fit(whole).impute(whole).dtypes.eq("int64").all()


def test_filled_polars_frames_keep_their_types():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {"colour": ["red", "blue"] * 20, "dose": [0.5, 1.5] * 20, "old": [True, False] * 20, "size": [3, 7] * 20},
        schema_overrides={"colour": polars.Categorical},
    )
    machine = gb.FullSpan().fit(frame)
    assert machine.impute(frame).equals(frame)
    assert machine.impute(frame).schema == frame.schema


# -- settings ---------------------------------------------------------------------------------------------------------
def test_a_clone_of_a_start_says_that_it_is_not_fitted(fitted, rng):
    rows = coupled(rng)
    with pytest.raises(ArgumentError, match=r"start is a FullSpan that is not fitted.*start=machine\.model_"):
        clone(gb.FullSpan(start=fitted)).fit(rows)
    assert np.isfinite(cross_val_score(gb.FullSpan(start=fitted.model_), rows, cv=2)).all()
    with pytest.raises(ArgumentError, match="start is a BoltzmannMachine that is not fitted"):
        gb.BoltzmannMachine(start=gb.BoltzmannMachine()).fit(rows)


@pytest.mark.parametrize("machine", [gb.FullSpan, gb.BoltzmannMachine, gb.PottsMachine, gb.HigherOrderBoltzmannMachine])
def test_hooks_are_checked_before_the_fit(machine):
    for settings in ({"checkpoint": 3}, {"checkpoint": gb.storage.Checkpoint(3)}, {"callback": 3}):
        with pytest.raises(ArgumentError, match=f"{next(iter(settings))}=.*3.* must be None"):
            machine(**settings).fit("no such file")


def test_a_loaded_machine_is_fitted_to_new_values(tmp_path):
    machine = gb.FullSpan().fit([["a", "x"], ["b", "y"]] * 20)
    machine.save(tmp_path / "model.gibbs")
    loaded = gb.load(tmp_path / "model.gibbs")
    assert loaded.get_params() == machine.get_params()
    assert loaded.impute([["b", None]]).tolist() == [["b", "y"]]
    assert loaded.fit([[0, 5, 1], [1, 6, 1], [1, 5, 0]] * 20).labels_["x1"] == (5, 6)


def test_declared_categories_survive_a_file(tmp_path):
    machine = gb.FullSpan(categories=["a", "b", "c"]).fit([["a", "b"], ["b", "a"]] * 20)
    machine.save(tmp_path / "model.gibbs")
    assert gb.load(tmp_path / "model.gibbs").fit([["a", "a"], ["b", "b"]] * 20).labels_["x0"] == ("a", "b", "c")


def test_a_loaded_boltzmann_machine_reads_by_its_own_coding(tmp_path):
    machine = gb.BoltzmannMachine().fit([["yes", "no"], ["no", "no"], ["yes", "yes"], ["no", "yes"]])
    machine.save(tmp_path / "model.gibbs")
    loaded = gb.load(tmp_path / "model.gibbs")
    assert loaded.coding == "auto"
    assert loaded.score([["yes", "no"]]) == machine.score([["yes", "no"]])
    assert loaded.fit([[0, 1], [1, 1], [0, 0], [1, 0]]).coding_.name == "binary"


def test_tables_of_float32_by_type(tmp_path, rng):
    rows = coupled(rng)
    machine = gb.FullSpan(dtype=np.float32).fit(rows)
    assert np.array_equal(machine.model_.theta, gb.FullSpan(dtype="float32").fit(rows).model_.theta)
    machine.save(tmp_path / "model.gibbs")
    assert gb.load(tmp_path / "model.gibbs").dtype == "float32"
    for wrong in (None, "float16", 3, int):
        with pytest.raises(ArgumentError, match=r"dtype=.* must be one of float64, float32"):
            gb.FullSpan(dtype=wrong).fit(rows)


@pytest.mark.parametrize("machine", [gb.FullSpan, gb.BoltzmannMachine])
def test_too_small_a_share_held_out_is_named(machine, rng):
    for share in (0.001, 0.999):
        with pytest.raises(ArgumentError, match=f"held_out={share} of 200 rows"):
            machine(held_out=share).fit(coupled(rng))


def test_what_needs_no_table_is_named(monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1e-5")
    with pytest.raises(TooExpensiveError, match=r"conditional\(\), pseudo_score\(\) or model_\.log_weights\(\)"):
        FullSpanModel.build((2,) * 20, [3], [0.5]).probabilities()


@pytest.mark.parametrize("declared", ["-1", "0", "nan", "inf", "much"])
def test_a_memory_limit_that_is_none(declared, monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", declared)
    with pytest.raises(ArgumentError, match=f"GIBBSIAN_MEMORY_LIMIT='{declared}' must be a number of GiB above 0"):
        memory_limit()


def test_warnings_point_at_the_call(rng):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gb.FullSpan(coding="binary").fit(np.column_stack([coupled(rng), np.zeros(200, int)]))
        gb.FullSpan(max_iter=1).fit(coupled(rng))
        gb.BoltzmannMachine(max_iter=1).fit(coupled(rng))
    assert caught[0].category is DegenerateDataWarning
    assert len(caught) == 3
    assert {one.filename for one in caught} == {__file__}


# -- functions --------------------------------------------------------------------------------------------------------
def test_fit_hidden_runs_no_more_than_max_rounds():
    for rounds in (1, 2, 3):
        fit = fit_hidden(STATES, COUNTS, SIZES, max_rounds=rounds, tolerance=-1.0, random_state=0)
        assert len(fit.costs) == rounds


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit_hidden(STATES, COUNTS, SIZES, n_hidden=2.5), "n_hidden=2.5 must be a whole number"),
        (lambda: fit_hidden(STATES, COUNTS, SIZES, l3=1), "setting 'l3' is not known"),
        (lambda: fit_hidden(STATES, COUNTS[:2], SIZES), "counts has shape"),
        (lambda: fit_full_span(STATES, COUNTS, SIZES, epsilon="a"), "epsilon='a' must be a number"),
        (lambda: fit_full_span(STATES, COUNTS, SIZES, max_steps=1.5), "max_steps=1.5 must be a whole number"),
        (lambda: fit_full_span(STATES, COUNTS, SIZES, l2="a"), "l2='a' must be a number"),
        (lambda: fit_full_span(STATES, COUNTS, SIZES, callback=3), "callback=3 must be None or a function"),
        (lambda: bootstrap_average(STATES, [40, -1, 30], SIZES), "counts holds negative"),
        (lambda: bootstrap_average(STATES, [0, 0, 0], SIZES), "counts add up to 0"),
        (lambda: bootstrap_average(STATES, COUNTS[:2], SIZES), "counts has shape"),
        (lambda: bootstrap_average(STATES, ["a", 1, 2], SIZES), "counts holds something that is no number"),
        (lambda: bootstrap_average(STATES, COUNTS, SIZES, n_fits=2.5), "n_fits=2.5 must be a whole number"),
        (lambda: bootstrap_average(STATES, COUNTS, SIZES, epsilom=1), "setting 'epsilom' is not known"),
        (lambda: fit_selected(STATES, [40, -1, 30], SIZES, [{}]), "counts holds negative"),
        (lambda: fit_selected(STATES, [40, np.nan, 30], SIZES, [{}]), "counts holds negative, NaN"),
        (lambda: fit_selected(STATES, COUNTS, SIZES, [{}], held_out=np.nan), "held_out=nan must be a share"),
        (lambda: fit_selected(STATES, COUNTS, SIZES, [{}], held_out="a"), "held_out='a' must be a number"),
        (lambda: fit_selected(STATES, COUNTS, SIZES, {"l2": 1.0}), "candidates is one set of settings"),
        (lambda: fit_selected(STATES, COUNTS, SIZES, [{}, "l2"]), r"candidates\[1\]='l2' must be a set of settings"),
        (
            lambda: fit_selected(STATES, COUNTS, SIZES, [{}, {"l3": 1}]),
            r"candidates\[1\]={'l3': 1} .*'l3' is not known",
        ),
        (lambda: fit_selected(STATES, COUNTS, SIZES, [{"l2": -1}]), r"candidates\[0\]={'l2': -1} .*l2=-1 must be zero"),
    ],
)
def test_arguments_are_checked_by_name(call, message):
    with pytest.raises((ArgumentError, DataError), match=message):
        call()


def test_stack_checks_its_rows_and_members():
    members = [FullSpanModel.build(SIZES, [3], [theta]) for theta in (0.2, 0.6)]
    for counts, message in (([1, -1, 1], "negative"), ([0, 0, 0], "add up to 0"), ([1, 1], "shape")):
        with pytest.raises(DataError, match=message):
            stack(members, STATES, counts)
    machine = gb.FullSpan().fit([[0, 0], [1, 1]] * 20)
    with pytest.raises(ArgumentError, match=r"members\[1\] is a FullSpan: give a FullSpanModel, such as a FullSpan's"):
        stack([members[0], machine], STATES, COUNTS)
    with pytest.raises(ArgumentError, match="members is a FullSpanModel: give a list"):
        stack(members[0], STATES, COUNTS)
    with pytest.raises(ArgumentError, match="differ in their cardinalities"):
        stack([members[0], FullSpanModel.build((2,), [1], [1.0])], STATES, COUNTS)
    with pytest.raises(ArgumentError, match=r"models\[0\] is a FullSpan"):
        SpanAverage((machine,))


def test_logarithms_of_an_average_do_not_saturate():
    models = tuple(FullSpanModel.build((2,), [1], [theta]) for theta in (600.0, 1000.0))
    found = SpanAverage(models, (0.25, 0.75)).log_probabilities(np.array([[0], [1]]))
    np.testing.assert_allclose(found, [0.0, np.log(0.25) - 1200.0], atol=1e-12)
    np.testing.assert_allclose(stack(models, np.array([[1]]), [9]).weights, [1.0, 0.0], atol=1e-12)


def test_logarithms_of_a_hidden_fit_do_not_saturate():
    joint = FullSpanModel.build((2, 2), [2], [1000.0])
    fit = gb.full_span.HiddenFit(joint, (0.0,), True)
    np.testing.assert_allclose(fit.log_probabilities(np.array([[0], [1]])), [0.0, -2000.0], atol=1e-12)
    np.testing.assert_allclose(fit.responsibilities(np.array([[1]])), [[0.5, 0.5]])


def test_orders_and_supports_of_many_functions():
    basis = SpanBasis((2, 3, 2) + (2,) * 15)
    indices = np.arange(100_000)
    digits = basis.digits(indices)
    assert np.array_equal(basis.orders(indices), (digits > 0).sum(axis=1))
    supports = basis.supports(indices)
    assert len(supports) == indices.size
    assert all(supports[k] == tuple(np.flatnonzero(digits[k]).tolist()) for k in range(0, indices.size, 997))
    assert basis.supports([]) == []
