"""Input that no honest user gives: one sentence of the library, or a right answer."""

from __future__ import annotations

import os
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import gibbsian as gb
from estimator_samples import small, table
from gibbsian.errors import GibbsianError, GibbsianWarning
from gibbsian.estimators import ESTIMATORS

X = np.random.default_rng(0).integers(0, 2, (40, 4))


def refused(call, *words):
    with pytest.raises(GibbsianError) as caught:
        call()
    sentence = str(caught.value)
    assert len(sentence) < 1000
    assert "\n" not in sentence
    for word in words:
        assert word in sentence
    return sentence


def npy(path, shape):
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64))
    return path


class TestTables:
    def test_spans_of_time_are_no_numbers(self):
        refused(lambda: gb.BoltzmannMachine().fit(X.astype("m8[s]")), "x0", "neither a number nor a label")
        spans = pd.DataFrame({"a": pd.to_timedelta(np.arange(40), unit="s"), "b": np.arange(40.0)})
        refused(lambda: gb.GaussianMachine().fit(spans), "give numbers")

    @pytest.mark.parametrize("name", list(ESTIMATORS))
    def test_a_name_twice(self, name):
        frame = pd.DataFrame(table(name)).set_axis(["a", "a", "b", "c"], axis=1)
        refused(lambda: small(name).fit(frame), "'a' occurs 2 times")

    def test_hundreds_of_constant_columns(self):
        rows = np.tile([0, 1], (6, 150))
        refused(lambda: gb.BoltzmannMachine(l2=0.0).fit(rows), "'x19' and 280 others have one value only")
        with pytest.warns(GibbsianWarning), np.errstate(all="raise"):
            assert np.isfinite(gb.PottsMachine().fit(rows[:, :100]).model_.theta).all()

    @pytest.mark.parametrize("name", ["gaussian", "pairwise", "potts", "mrf", "higher-order"])
    def test_a_column_that_no_row_shows(self, name):
        rows = table(name)
        rows[:, 0] = np.nan
        refused(lambda: small(name).fit(rows), "x0")

    def test_a_sparse_table_with_a_coding_that_is_none(self):
        refused(lambda: gb.BoltzmannMachine(coding=np.array([1, 2])).fit(csr_array(X)), "Sparse data is not supported")

    def test_dummies_of_nothing(self):
        refused(lambda: gb.BoltzmannMachine(coding=gb.data.OneHot([])).fit(X), "one_hot=[]")


class TestFiles:
    def test_a_name_longer_than_the_csv_module_reads(self, tmp_path):
        path = tmp_path / "long.csv"
        path.write_text("a" * 200_000 + ",b\n" + "0,1\n1,0\n1,1\n0,0\n" * 5)
        assert len(gb.BoltzmannMachine().fit(path).names_[0]) == 200_000

    def test_a_cell_of_any_length_is_shortened_in_the_sentence(self, tmp_path):
        path = tmp_path / "long.csv"
        path.write_text("a,b\n" + "0,1\n1,0\n" * 5 + "x" * 200_000 + ",1\n")
        refused(lambda: gb.BoltzmannMachine().fit(path), "column 'a'")

    def test_a_hundred_thousand_columns(self, tmp_path, monkeypatch):
        monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "4")
        refused(lambda: gb.BoltzmannMachine().fit(np.eye(2, 100_000)), "100,000 nodes", "GiB")

    @pytest.mark.parametrize("shape", [f"({2**63}, 2)", "(True, 8)", "(10**12, 5)", "(-1, 5)", "(1.5, 2)"])
    def test_impossible_shapes(self, tmp_path, shape):
        refused(lambda: gb.BoltzmannMachine().fit(npy(tmp_path / "x.npy", shape)), "is not a readable .npy file")

    @pytest.mark.parametrize("name", ["loop", "x" * 300, "zero\0"])
    def test_paths_that_lead_nowhere(self, tmp_path, name):
        os.symlink(tmp_path / "loop.csv", tmp_path / "pool.csv")
        os.symlink(tmp_path / "pool.csv", tmp_path / "loop.csv")
        path = tmp_path / f"{name}.csv"
        machine = gb.BoltzmannMachine().fit(X)
        refused(lambda: gb.BoltzmannMachine().fit(path), "check the path")
        refused(lambda: gb.load(path), "does not exist")
        refused(lambda: machine.save(path), "give another name")
        refused(lambda: gb.BoltzmannMachine(checkpoint=str(path)).fit(X), "give another name")


class TestSettings:
    @pytest.mark.parametrize(("name", "value"), [("max_iter", 10**400), ("l2", 1e308), ("temperature", 10**300)])
    def test_numbers_without_end(self, name, value):
        refused(lambda: gb.BoltzmannMachine(**{name: value}).fit(X), name)

    def test_arrays_are_no_numbers(self):
        refused(lambda: gb.BoltzmannMachine(l2=np.array([1, 2])).fit(X), "l2=array([1, 2]) must be a number")

    @pytest.mark.parametrize("value", [pd.NA, np.array([1, 2])])
    @pytest.mark.parametrize("name", ["learner", "device", "l2"])
    def test_what_answers_no_comparison_is_no_setting(self, name, value):
        refused(lambda: gb.GaussianMachine(**{name: value}).fit(table("gaussian")), name)

    def test_an_array_without_places_is_what_it_holds(self):
        refused(lambda: small("mrf", cliques=np.array(1)).fit(X), "cliques holds 1:")
        assert small("pairwise", l2=np.array(0.5)).fit(X).l2 == 0.5

    def test_narrow_numbers_and_fractions_count_as_what_they_are(self):
        plain = gb.RestrictedBoltzmannMachine(n_components=2, max_iter=100, l2=0.5, random_state=0).fit(X)
        odd = gb.RestrictedBoltzmannMachine(
            n_components=np.int8(2), max_iter=np.int8(100), l2=Fraction(1, 2), random_state=0
        ).fit(X)
        np.testing.assert_array_equal(odd.model_.theta, plain.model_.theta)

    def test_a_temperature_near_zero_or_a_wide_grid(self):
        refused(lambda: gb.BoltzmannMachine(temperature=1e-300).fit(X), "temperature")
        refused(lambda: gb.BoltzmannMachine(graph="grid:1000000x1000000").fit(X), "GiB")
        refused(lambda: gb.BoltzmannMachine(graph=f"grid:{'9' * 5000}x1").fit(X), "is not known")


class TestQuestions:
    @pytest.mark.parametrize("method", [3, None, [], np.array([1, 2])])
    def test_a_method_that_is_none(self, method):
        machine = gb.BoltzmannMachine().fit(X)
        refused(lambda: machine.expect(method=method), "method=", "must be the name of a method")

    def test_what_answers_no_comparison_names_nothing(self):
        machine = gb.BoltzmannMachine().fit(X)
        refused(lambda: machine.most_probable(method=pd.NA), "method=<NA>")
        refused(lambda: machine.predict(X, columns=pd.NA), "columns=<NA>")

    def test_labels_beyond_the_whole_numbers_of_the_machine(self):
        rows = np.where(X > 0, 1e300, 0.0)
        np.testing.assert_array_equal(small("dbm").fit(rows).impute(rows), rows)

    def test_expectations_next_to_temperature_zero(self):
        # the gradient is that of theta / T, so a step of the default size would run away
        learner = gb.learning.Minibatch(learning_rate=1e-17, max_iter=4)
        machine = gb.RestrictedBoltzmannMachine(2, learner=learner, temperature=1e-8, random_state=0).fit(X)
        assert np.isfinite(machine.expect(n_samples=200).value).all()

    def test_holes_of_gaussian_units(self):
        rows = table("gaussian")
        machine = small("rbm", visible="gaussian").fit(rows)
        rows[0, 0] = np.nan
        refused(lambda: machine.impute(rows), "row 0, column 'x0'", "fill it")
