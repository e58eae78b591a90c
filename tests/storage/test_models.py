"""Model files: exact round trips, clear refusals, nothing half-written."""

import errno
import json
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gibbsian as gb
from gibbsian.domain import CODINGS, CategoryCoding, as_coding
from gibbsian.errors import ArgumentError, FileFormatError, StorageError
from gibbsian.models.layers.units import BinaryUnits, CategoricalUnits, GaussianUnits, SpinUnits
from gibbsian.models.variables import variables_of
from gibbsian.storage import StoredModel, read_model, write_model, write_tensors
from layered_systems import network, random_stack, restricted
from systems import random_model, random_model_of, sampled_data


@pytest.fixture
def machine(rng):
    data = sampled_data(random_model(gb.graphs.complete(4), rng), 200, rng)
    return gb.BoltzmannMachine(learner="mple", l2=0.01).fit(data)


@pytest.fixture
def saved(machine, tmp_path):
    path = tmp_path / "machine.gibbs"
    machine.save(path)
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10_000),
    coding=st.sampled_from([*CODINGS, ("disagree", "agree")]),
    bias=st.booleans(),
)
def test_model_files_round_trip_to_the_bit(seed, coding, bias, tmp_path):
    rng = np.random.default_rng(seed)
    written = as_coding(coding)
    graph = gb.graphs.random(int(rng.integers(1, 8)), 0.5, rng)
    variables = variables_of(written.domain, graph.n_nodes)
    model = random_model(graph, rng, variables, scale=10.0, bias=bias)
    names = tuple(f"sp\u00e4lte {i}" for i in range(graph.n_nodes))
    path = tmp_path / "model.gibbs"
    write_model(path, StoredModel(model, written, names, {"l2": 0.1}, {"rows": 7}))
    read = read_model(path)
    assert np.array_equal(read.model.theta, model.theta)
    assert read.model.family.graph == graph
    assert (read.model.family.bias, read.model.variables) == (bias, variables)
    assert (read.coding, read.names, read.settings, read.provenance) == (written, names, {"l2": 0.1}, {"rows": 7})


CATEGORIES = CategoryCoding.of_labels([("a", "B c"), (1, 2.5, -3), (False, True)])


def models_to_store(rng):
    """A model of every kind with a coding that it goes with."""
    graph, spin = gb.graphs.from_edges([(0, 1), (1, 2)], 3), as_coding("spin")
    values = CategoryCoding.of_values((-1, 0, 0.5), 3)
    products = {(0,): 0.5, (0, 2): -1.0, (0, 1, 2): 2.0}
    yield random_model(graph, rng), spin
    yield gb.ProductsFamily.model(products, 3), spin
    yield gb.ProductsFamily.model(products, 3, variables_of(values.domain, 3)), values
    yield gb.ProductsFamily.model({}, 3), spin
    yield random_model_of("ordinal", graph, rng, variables_of(values.domain, 3)), values
    categories = variables_of(CATEGORIES.domain, 3)
    yield gb.FullSpanFamily.model({3: 0.5, 7: -1.0}, categories), CATEGORIES
    for kind in ("potts", "tables", "potentials"):
        yield random_model_of(kind, graph, rng, categories), CATEGORIES
    yield restricted(SpinUnits(3), SpinUnits(2), [0.5, 0.0, -1.0]), spin
    yield restricted(CategoricalUnits((2, 3, 2)), BinaryUnits(2), c=[1.0, 2.0]), CATEGORIES
    yield restricted(GaussianUnits(3, (0.1, 1.0, 7.0)), BinaryUnits(1), [0.5, 0.0, -1.0]), None
    layers = (SpinUnits(3), SpinUnits(2), SpinUnits(1))
    yield random_stack(layers, rng), spin
    yield network(layers, rng.normal(size=16)), spin


def test_every_kind_of_model_round_trips(rng, tmp_path):
    kinds = set()
    for number, (model, coding) in enumerate(models_to_store(rng)):
        path = tmp_path / f"{number}.gibbs"
        write_model(path, StoredModel(model, coding, ("a", "b", "c")))
        read = read_model(path)
        assert type(read.model.family) is type(model.family)
        assert read.coding == coding
        for j in range(3 if coding is not None else 0):  # 1, 1.0 and True are equal, yet not the same label
            assert list(map(type, read.coding.labels_of(j))) == list(map(type, coding.labels_of(j)))
        assert np.array_equal(read.model.theta, model.theta)
        for part in ("variables", "graph", "scopes", "basis", "supports", "layers"):
            assert getattr(read.model.family, part, None) == getattr(model.family, part, None)
        kinds.add(json.loads(_header(path))["kind"])
    assert kinds == {
        "pairwise", "products", "tables", "potentials", "ordinal", "full-span", "stack", "belief-network",
    }  # fmt: skip


def _header(path):
    from safetensors import safe_open

    with safe_open(str(path), "numpy") as file:
        return file.metadata()["gibbsian"]


def test_models_without_a_format_are_refused(tmp_path):
    class Other(gb.PairwiseFamily):
        pass

    model = gb.Model.zeros(Other(gb.graphs.complete(2)))
    with pytest.raises(ArgumentError, match="a Other cannot be written to a file"):
        write_model(tmp_path / "m", StoredModel(model, as_coding("spin"), ("a", "b")))


def test_loaded_machine_answers_like_the_saved_one(machine, saved):
    loaded = gb.load(saved)
    x = machine.sample(5, random_state=0)
    assert np.array_equal(loaded.score_samples(x), machine.score_samples(x))
    assert loaded.result_.reason == machine.result_.reason
    assert loaded.result_.converged
    assert len(loaded.result_.trace) == len(machine.result_.trace)
    assert loaded.result_.provenance["learner"] == "mple"
    assert loaded.l2 == 0.01
    assert loaded.couplings_.equals(machine.couplings_)


@pytest.mark.parametrize("keep", [0, 5, 40, -1])
def test_truncated_files_are_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(FileFormatError, match=r"machine\.gibbs is truncated or is not a gibbsian file"):
        gb.load(saved)


def test_foreign_files_are_refused(tmp_path):
    from safetensors.numpy import save_file

    text = tmp_path / "notes.gibbs"
    text.write_text("dear diary, " * 50)
    with pytest.raises(FileFormatError, match="not a gibbsian file"):
        gb.load(text)
    other = tmp_path / "other.gibbs"
    save_file({"w": np.zeros(3)}, other)
    with pytest.raises(FileFormatError, match="not written by gibbsian"):
        gb.load(other)
    with pytest.raises(FileFormatError, match="does not exist"):
        gb.load(tmp_path / "absent.gibbs")
    with pytest.raises(FileFormatError, match="not a file"):
        gb.load(tmp_path)


def test_newer_versions_and_other_kinds_are_refused(tmp_path, monkeypatch):
    newer, other, damaged = tmp_path / "newer.gibbs", tmp_path / "other.gibbs", tmp_path / "damaged.gibbs"
    write_tensors(other, "checkpoint", {}, {})
    with pytest.raises(FileFormatError, match="holds a checkpoint, not one of"):
        gb.load(other)
    write_tensors(damaged, "pairwise", {"names": ["a"]}, {})
    with pytest.raises(FileFormatError, match="lacks a part"):
        gb.load(damaged)
    with monkeypatch.context() as patch:
        patch.setattr("gibbsian.storage.container.FORMAT_VERSION", 99)
        write_tensors(newer, "pairwise", {}, {})
    with pytest.raises(FileFormatError, match=r"version 99.*upgrade"):
        gb.load(newer)


def test_header_is_plain_json(saved):
    from safetensors import safe_open

    with safe_open(str(saved), "numpy") as file:
        header = json.loads(file.metadata()["gibbsian"])
    assert header["format_version"] == 1
    assert header["coding"]["name"] == "spin"


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_full_disk_leaves_the_old_file_and_no_other(machine, saved, monkeypatch, call):
    before = saved.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if call == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        import tempfile

        real = tempfile.NamedTemporaryFile

        def broken(*args, **kwargs):
            file = real(*args, **kwargs)
            file.file.write(b"part")
            monkeypatch.setattr(file, "write", full, raising=False)
            return file

        monkeypatch.setattr(tempfile, "NamedTemporaryFile", broken)
    with pytest.raises(StorageError, match=r"could not write .*machine\.gibbs: No space left on device; nothing"):
        machine.save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_absent_folder_is_named(machine, tmp_path):
    with pytest.raises(StorageError, match="absent"):
        machine.save(tmp_path / "absent" / "machine.gibbs")


def test_numpy_settings_survive(x, tmp_path):
    machine = gb.BoltzmannMachine(learner="mle", l2=np.float32(0.5), max_iter=np.int64(77)).fit(x)
    machine.save(tmp_path / "m.gibbs")
    loaded = gb.load(tmp_path / "m.gibbs")
    assert (loaded.l2, loaded.max_iter) == (0.5, 77)
