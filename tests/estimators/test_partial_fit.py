"""Learning from chunks and from rows on disk, through the estimator."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.data.stream import DataStream
from gibbsian.errors import ArgumentError, CodingError, ConstantColumnError, DataError
from gibbsian.learning import Online
from systems import random_model, sampled_data


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    truth = random_model(gb.graphs.complete(5), rng, scale=0.3)
    data = sampled_data(truth, 40_000, rng)
    return truth, 2 * data.states[data.row_of] - 1


def chunks(x, n):
    return np.array_split(x, n)


def test_chunks_approach_the_fit_of_all_rows(rows):
    truth, x = rows
    machine = gb.BoltzmannMachine(learner=Online(batch_size=200), random_state=0)
    for chunk in chunks(x, 10):
        machine.partial_fit(chunk)
    whole = gb.BoltzmannMachine(learner="mple").fit(x)
    error = 1 / np.sqrt(len(x))  # about one standard error of a moment
    assert np.abs(machine.model_.theta - whole.model_.theta).max() < 3 * error
    assert machine.result_.provenance["rows"] == len(x)
    assert machine.result_.reason == "learned from 40000 rows in 10 chunks"
    np.testing.assert_allclose(machine.result_.moments.mean, truth.family.mean_statistics((x + 1) // 2), atol=1e-12)
    assert machine.result_.training.is_trained


def test_same_chunks_same_bits(rows):
    thetas = []
    for _ in range(2):
        machine = gb.BoltzmannMachine(random_state=3)
        for chunk in chunks(rows[1][:4000], 4):
            machine.partial_fit(chunk)
        thetas.append(machine.model_.theta)
    assert np.array_equal(*thetas)


def test_later_chunks_must_look_like_the_first(rows):
    machine = gb.BoltzmannMachine(random_state=0).partial_fit(rows[1][:1000])
    with pytest.raises(CodingError, match="spin"):
        machine.partial_fit((rows[1][:1000] + 1) // 2)
    with pytest.raises(ValueError, match=r"features|columns"):
        machine.partial_fit(rows[1][:1000, :3])


def test_fit_forgets_the_chunks_and_chunks_go_on_from_a_fit(rows, tmp_path):
    machine = gb.BoltzmannMachine(random_state=0).partial_fit(rows[1][:1000]).fit(rows[1][:20_000])
    assert machine.result_.provenance["rows"] == 20_000
    fitted = machine.model_.theta
    machine.save(tmp_path / "m.gibbs")
    for continued in (machine, gb.load(tmp_path / "m.gibbs").set_params(random_state=0)):
        kept = continued.result_
        continued.partial_fit(rows[1][20_000:24_000])
        assert continued.result_.provenance["rows"] == 24_000
        assert np.abs(continued.model_.theta - fitted).max() < 0.1
        assert kept.provenance["rows"] == 20_000


@pytest.mark.parametrize("learner", ["mean-field", "em", "rise"])
def test_learners_that_need_all_rows_refuse_chunks(rows, learner):
    machine = gb.BoltzmannMachine(learner=learner)
    assert not hasattr(machine, "partial_fit")
    with pytest.raises(AttributeError) as caught:
        machine.partial_fit(rows[1][:100])
    assert str(caught.value.__cause__) == f"learner={learner!r} needs all rows at once"


@pytest.mark.parametrize("learner", ["pcd", "cd"])
def test_chains_go_on_from_chunk_to_chunk(rows, learner):
    machine = gb.BoltzmannMachine(learner=learner, random_state=0)
    for chunk in chunks(rows[1], 10):
        machine.partial_fit(chunk)
    whole = gb.BoltzmannMachine(learner="mle").fit(rows[1])
    assert np.abs(machine.model_.theta - whole.model_.theta).max() < 3 / np.sqrt(4000)  # errors of one chunk


@pytest.mark.parametrize("learner", ["mple", "rm", "mpf"])
def test_chunks_are_learned_by_the_objective_of_the_learner(rows, learner):
    machine = gb.BoltzmannMachine(learner=learner, random_state=0)
    for chunk in chunks(rows[1], 10):
        machine.partial_fit(chunk)
    whole = gb.BoltzmannMachine(learner=learner).fit(rows[1])
    assert np.abs(machine.model_.theta - whole.model_.theta).max() < 4 / np.sqrt(len(rows[1]))


def test_missing_cells_in_a_chunk_are_completed(rng):
    x = np.where(rng.random((2000, 3)) < 0.6, 1.0, -1.0)
    x[:, 1] = np.where(rng.random(2000) < 0.8, x[:, 0], x[:, 1])
    whole = gb.BoltzmannMachine(learner="mple").fit(x).model_.theta
    x[rng.random(x.shape) < 0.2] = np.nan
    machine = gb.BoltzmannMachine(learner="mple", random_state=0)
    for chunk in np.array_split(x, 10):
        machine.partial_fit(chunk)
    assert np.abs(machine.model_.theta - whole).max() < 0.2


class TestStream:
    @pytest.fixture
    def path(self, rows, tmp_path):
        np.save(tmp_path / "rows.npy", ((rows[1] + 1) // 2).astype(np.uint8))
        return tmp_path / "rows.npy"

    def test_rows_on_disk_are_learned(self, rows, path):
        stream = DataStream.open(path, memory="1MB")
        machine = gb.BoltzmannMachine(learner=Online(batch_size=200), random_state=0).fit(stream)
        whole = gb.BoltzmannMachine(learner="mple").fit(path)
        spins = machine.convert("spin").model_.theta, whole.convert("spin").model_.theta
        assert np.abs(spins[0] - spins[1]).max() < 3 / np.sqrt(len(rows[1]))
        assert machine.result_.provenance["rows"] == len(rows[1])
        assert machine.result_.training.is_trained
        assert machine.result_.converged, machine.result_.reason

    @pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
    def test_saved_like_any_other(self, path, tmp_path):
        machine = gb.BoltzmannMachine(l2=0.01, random_state=0, max_iter=50).fit(DataStream.open(path))
        machine.save(tmp_path / "m.gibbs")
        assert np.array_equal(gb.load(tmp_path / "m.gibbs").model_.theta, machine.model_.theta)

    @pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
    def test_resumes_to_the_same_bits(self, path, tmp_path):
        def fit(max_iter, **checkpoint):
            keep = gb.storage.Checkpoint(tmp_path / "c", every=2, **checkpoint)
            learner = Online(batch_size=2000)
            return gb.BoltzmannMachine(learner=learner, random_state=0, max_iter=max_iter, checkpoint=keep).fit(
                DataStream.open(path)
            )

        whole = fit(5)
        (tmp_path / "c").unlink()
        fit(2)
        assert np.array_equal(fit(5, resume=True).model_.theta, whole.model_.theta)

    def test_constant_columns_are_named(self, tmp_path):
        np.save(tmp_path / "flat.npy", np.column_stack([np.arange(100) % 2, np.ones(100, int)]))
        with pytest.raises(ConstantColumnError, match="'x1'"):
            gb.BoltzmannMachine(l2=0.0).fit(DataStream.open(tmp_path / "flat.npy"))

    def test_other_learners_are_refused(self, path):
        with pytest.raises(ArgumentError, match="learner='pcd'"):
            gb.BoltzmannMachine(learner="pcd").fit(DataStream.open(path))

    def test_what_is_for_rows_in_memory_is_refused(self, path):
        stream = DataStream.open(path)
        with pytest.raises(ArgumentError, match="validation_fraction="):
            gb.BoltzmannMachine(validation_fraction=0.1).fit(stream)
        with pytest.raises(ArgumentError, match="sample_weight is for"):
            gb.BoltzmannMachine().fit(stream, sample_weight=np.ones(stream.n_rows))
        with pytest.raises(CodingError, match="coding='spin'"):
            gb.BoltzmannMachine(coding="spin").fit(stream)
        with pytest.raises(DataError, match="learned by fit"):
            gb.BoltzmannMachine().partial_fit(stream)
