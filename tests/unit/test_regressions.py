"""Defects that users would have met; each was seen once."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from gibbsian.errors import (
    ArgumentError,
    ConstantColumnError,
    DataError,
    DegenerateDataWarning,
    GraphError,
    MaximumDoesNotExistError,
    StorageError,
    TooExpensiveError,
)
from gibbsian.learners import LEARNERS
from gibbsian.storage import write_atomically
from systems import random_model, sampled_data


@pytest.fixture
def x(rng):
    return rng.integers(0, 2, (300, 4))


def test_fingerprint_of_a_fit_is_the_same_in_every_process():
    """A function's address in a repr kept checkpoints from being resumed by the next process."""
    code = (
        "import numpy as np, gibbsian as gb\n"
        "from gibbsian.storage.checkpoints import fingerprint\n"
        "from gibbsian.learners import LEARNERS\n"
        "data = gb.Dataset.read([[0, 1], [1, 1], [1, 0]])\n"
        "model = gb.PairwiseModel.zeros(gb.graphs.complete(2), gb.domain.BINARY)\n"
        "print([fingerprint(LEARNERS.create(name), model, data) for name in LEARNERS])\n"
    )
    seen = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "ab"
    }
    assert len(seen) == 1
    assert not any(" at 0x" in repr(LEARNERS.create(name)) for name in LEARNERS)


class TestFiles:
    def test_only_regular_files_are_written_over(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(StorageError, match="not a regular file"):
            write_atomically(tmp_path / "pipe", b"x")
        assert not (tmp_path / "pipe").is_file()

    def test_links_stay_links(self, tmp_path):
        (tmp_path / "target").write_bytes(b"old")
        (tmp_path / "link").symlink_to(tmp_path / "target")
        write_atomically(tmp_path / "link", b"new")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "target").read_bytes() == b"new"

    def test_numpy_settings_survive(self, x, tmp_path):
        machine = gb.BoltzmannMachine(learner="mle", l2=np.float32(0.5), max_iter=np.int64(77)).fit(x)
        machine.save(tmp_path / "m.gibbs")
        loaded = gb.load(tmp_path / "m.gibbs")
        assert (loaded.l2, loaded.max_iter) == (0.5, 77)

    def test_names_are_stripped_and_headless_words_refused(self, tmp_path):
        (tmp_path / "spaces.csv").write_text("a , b\n0, 1\n1, 1\n")
        assert gb.Dataset.read(tmp_path / "spaces.csv").names == ("a", "b")
        (tmp_path / "headless.csv").write_text("yes,no\nyes,yes\nno,no\n")
        with pytest.raises(DataError, match="first line"):
            gb.Dataset.read(tmp_path / "headless.csv")


class TestCodingAndThreshold:
    def test_errors_of_a_converted_machine_are_not_guessed(self, x):
        machine = gb.BoltzmannMachine(learner="mle", l2=0.05, validation_fraction=0.2, random_state=0).fit(x)
        converted = machine.convert("spin")
        assert converted.result_.held_out == machine.result_.held_out
        assert converted.result_.penalised
        with pytest.raises(ArgumentError, match="converted from the coding binary"):
            gb.uncertainty.standard_errors(converted, 2 * x - 1)
        with pytest.raises(ArgumentError, match="converted from the coding binary"):
            gb.uncertainty.bootstrap(converted, 2 * x - 1, 5)

    def test_penalty_of_the_fit_decides_the_errors(self, x):
        machine = gb.BoltzmannMachine(learner="mle", l2=0.05).fit(x)
        before = gb.uncertainty.standard_errors(machine, x).theta_se
        np.testing.assert_array_equal(gb.uncertainty.standard_errors(machine.set_params(l2=5.0), x).theta_se, before)

    def test_own_samples_are_not_cut_again(self, rng):
        machine = gb.BoltzmannMachine(coding=gb.data.Threshold(5.0), random_state=0).fit(rng.normal(size=(200, 4)) * 10)
        drawn = machine.sample(50)
        plain = gb.Dataset.read(drawn, coding="binary")
        np.testing.assert_array_equal(machine.score_samples(drawn), machine.score_samples(plain))
        assert len(np.unique(machine.score_samples(drawn))) > 3

    def test_a_pair_that_is_a_known_coding_is_that_coding(self):
        assert gb.domain.as_coding((-1, 1)).name == "spin"
        assert gb.domain.as_coding(("no", "yes")).name == "yes/no"
        assert gb.domain.as_coding((False, True)).name == "true/false"
        assert gb.domain.as_coding((0, 1)).name == "binary"


class TestGraphs:
    def test_columns_called_by_numbers(self, x):
        machine = gb.BoltzmannMachine(graph=[(1, 0)]).fit(pd.DataFrame(x, columns=[3, 2, 1, 0]))
        assert machine.model_.graph.edges.tolist() == [[2, 3]]
        far = gb.BoltzmannMachine(graph=[(10, 11)]).fit(pd.DataFrame(x, columns=[10, 11, 12, 13]))
        assert far.model_.graph.edges.tolist() == [[0, 1]]
        with pytest.raises(GraphError, match="99"):
            gb.BoltzmannMachine(graph=[(10, 99)]).fit(pd.DataFrame(x, columns=[10, 11, 12, 13]))


class TestWeightsAndMissing:
    def test_columns_never_seen_together(self):
        nan = np.nan
        rows = np.array([[1, nan], [0, nan], [1, nan], [nan, 1], [nan, 0]] * 5)
        with pytest.raises(MaximumDoesNotExistError, match="never observed in the same row"):
            gb.BoltzmannMachine().fit(rows)
        assert gb.BoltzmannMachine(l2=0.1).fit(rows).result_.converged

    def test_rows_without_weight_do_not_count(self, rng):
        x = rng.integers(0, 2, (600, 4)).astype(float)
        weights = np.zeros(600)
        weights[:60] = 1
        x[300, 0] = np.nan  # a hole where it does not matter
        machine = gb.BoltzmannMachine(learner="mple", validation_fraction=0.2, l2=0.1, random_state=1).fit(
            x, sample_weight=weights
        )
        assert machine.result_.held_out.n_rows == 12

    def test_weights_with_an_infinite_sum(self, x):
        with pytest.raises(DataError, match="sum"):
            gb.BoltzmannMachine().fit(x, sample_weight=np.full(300, 1e307))

    def test_missing_cells_out_of_reach_are_not_sent_to_pseudolikelihood(self, rng):
        x = rng.integers(0, 2, (200, 60)).astype(float)
        x[0, 0] = np.nan
        with pytest.raises(TooExpensiveError, match=r"learner='pcd'.*complete_rows"):
            gb.BoltzmannMachine(learner="mle").fit(x)

    def test_sampled_answers_do_not_depend_on_other_rows(self, rng):
        model = random_model(gb.graphs.complete(40), rng, gb.domain.BINARY, scale=0.1)
        names = tuple(f"x{i}" for i in range(40))
        stored = gb.storage.StoredModel(model, gb.domain.as_coding("binary"), names, {"random_state": 0})
        machine = gb.BoltzmannMachine.from_stored(stored)
        rows = np.where(rng.random((3, 40)) < 0.1, rng.integers(0, 2, (3, 40)), np.nan)
        together, alone = machine.predict_proba(rows), machine.predict_proba(rows[1:2])
        np.testing.assert_array_equal(together[1:2], alone)


class TestRefusals:
    def test_a_refused_refit_leaves_the_machine_as_it_was(self, x):
        machine = gb.BoltzmannMachine().fit(x)
        before = machine.score(x)
        constant = np.column_stack([x, np.ones(300, int)])
        with pytest.raises(ConstantColumnError):
            machine.fit(constant)
        assert machine.score(x) == before

    def test_streams_and_lazy_frames_are_named(self, x, tmp_path):
        import polars

        np.save(tmp_path / "x.npy", x)
        machine = gb.BoltzmannMachine().fit(x)
        with pytest.raises(DataError, match="DataStream is learned by fit"):
            machine.score(gb.data.DataStream.open(tmp_path / "x.npy"))
        with pytest.raises(DataError, match="collect"):
            machine.score(polars.DataFrame({"a": [0, 1]}).lazy())

    @pytest.mark.parametrize(
        "setting",
        [
            {"l2": "x"},
            {"temperature": "a"},
            {"max_iter": 2.5},
            {"tol": None},
            {"validation_fraction": "x"},
            {"l1": True},
        ],
    )
    def test_settings_that_are_no_numbers(self, x, setting):
        ((name, value),) = setting.items()
        with pytest.raises(ArgumentError, match=f"{name}={value!r} must be a"):
            gb.BoltzmannMachine(**setting).fit(x)

    def test_remedies_that_would_not_help_are_not_given(self, x):
        constant = np.column_stack([x, np.ones(300, int)])
        with pytest.raises(ConstantColumnError) as error:
            gb.structure.learn_structure(constant, l2=0.01)
        assert "l2" not in str(error.value)


def test_report_of_a_model_without_parameters(x):
    report = gb.BoltzmannMachine("empty", bias=False).fit(x).result_.training
    assert report.is_trained
    assert report.largest_z == 0.0
    assert "of 0" in report.describe()


def test_sessak_monasson_biases_leave_pairs_without_an_edge_alone(rng):
    data = sampled_data(random_model(gb.graphs.complete(4), rng, scale=0.5), 500, rng)
    machine = gb.BoltzmannMachine("empty", learner="sessak-monasson").fit(data)
    means = np.average(data.states, axis=0, weights=data.weights)
    np.testing.assert_allclose(machine.biases_, np.arctanh(means), atol=1e-12)


@pytest.mark.parametrize("learner", ["cd", "pcd", "mle", "mple"])
def test_bits_do_not_depend_on_blas_threads(learner):
    code = (
        "import sys, warnings, hashlib, numpy as np, gibbsian as gb\n"
        "warnings.simplefilter('ignore')\n"
        "x = np.random.default_rng(0).integers(0, 2, (2000, 12))\n"
        f"bm = gb.BoltzmannMachine(learner={learner!r}, l2=0.01, random_state=0, max_iter=30).fit(x)\n"
        "print(hashlib.sha256(bm.model_.theta.tobytes()).hexdigest())\n"
    )
    digests = set()
    for threads in "12":
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        digests.add(ran.stdout)
    assert len(digests) == 1


class TestMemory:
    """Refused with the number, before anything is allocated, and with what would fit."""

    def test_a_fit_that_is_too_large(self, rng, monkeypatch):
        x = rng.integers(0, 2, (50, 200))
        monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.002")
        with pytest.raises(TooExpensiveError, match=r"fitting 200 variables .* needs .* MiB .* about \d+ variables"):
            gb.BoltzmannMachine(learner="mple", l2=0.1).fit(x)

    def test_a_graph_that_is_too_large(self):
        with pytest.raises(TooExpensiveError, match=r"complete graph on 3,000,000 nodes needs .* nodes would fit"):
            gb.graphs.complete(3_000_000)


# -- many values ------------------------------------------------------------------------------------------------------
def test_truth_values_beside_numbers_keep_their_names_in_the_couplings():
    frame = pd.DataFrame({"n": [0, 1, 2] * 20, "k": [True, False] * 30})
    machine = gb.PottsMachine(l2=0.1).fit(frame)
    assert machine.couplings_.columns.tolist() == [("n", 0), ("n", 1), ("n", 2), ("k", "False"), ("k", "True")]


@pytest.mark.parametrize("clique", [(0.5, 1), np.int64(0), (None, 1), (True, 1), "ab"])
def test_cliques_that_are_not_columns_are_refused(clique):
    rows = np.random.default_rng(0).integers(0, 2, (40, 3))
    with pytest.raises(ArgumentError, match="clique"):
        gb.HigherOrderBoltzmannMachine(cliques=[clique], l2=0.1).fit(rows)


def test_three_values_point_to_the_machines_that_take_them():
    with pytest.raises(DataError, match="HigherOrderBoltzmannMachine with coding='values'"):
        gb.HigherOrderBoltzmannMachine().fit([[-1, 0], [1, 1], [0, -1]])


def test_columns_of_names_or_measurements_are_no_categories():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"height": rng.normal(size=60), "shoe": rng.integers(0, 3, 60)})
    with pytest.warns(DegenerateDataWarning, match="column 'height' has a value of its own in most rows"):
        gb.PottsMachine(l2=0.01).fit(frame)
