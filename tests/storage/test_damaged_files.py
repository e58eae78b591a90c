"""Model files and checkpoints that are not whole: one sentence which names file and field, never another error."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import gibbsian as gb
from damaged_files import GOOD, outcomes, written
from estimator_samples import small, table
from gibbsian.errors import ArgumentError, FileFormatError, TooExpensiveError
from gibbsian.models.base import FAMILIES
from gibbsian.models.file_parts import NumericArray
from gibbsian.storage import pack, read_model, unpack


@pytest.mark.parametrize(("n_cases", "checkpoints"), [(480, False), (80, True)])
def test_damaged_files_end_in_one_sentence_or_a_finite_answer(n_cases, checkpoints):
    found = list(outcomes(n_cases, seed=20, checkpoints=checkpoints))
    assert [case for case in found if case[1].word not in GOOD] == []
    assert sum(case[1].word == "refused" for case in found) > n_cases / 2


def test_every_flipped_bit_of_an_array_is_noticed(tmp_path):
    """Another number is a number too: only the digest tells."""
    path = tmp_path / "m.gibbs"
    small("pairwise").fit(table("pairwise")).save(path)
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"m\.gibbs is damaged"):
        gb.load(path)


@pytest.fixture
def parts(tmp_path):
    """The header and the arrays of a pairwise machine's file."""
    return parts_of_file(tmp_path, "pairwise")


def parts_of_file(tmp_path, name):
    path = tmp_path / "whole.gibbs"
    small(name).fit(table(name)).save(path)
    with safe_open(str(path), "numpy") as file:
        header = json.loads(file.metadata()["gibbsian"])
        return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def refused(tmp_path, header, tensors, match, error=FileFormatError):
    path = tmp_path / "m.gibbs"
    path.write_bytes(written(header, tensors))
    with pytest.raises(error, match=match):
        gb.load(path)


def test_codings_with_other_values_than_the_model(tmp_path):
    """Found by `make fuzz` (files, seed 32)."""
    header, tensors = parts_of_file(tmp_path, "machine-mixture")
    header["coding"]["labels"][0].pop()
    refused(tmp_path, header, tensors, "coding has 11 values, but the model 12")
    header, tensors = parts_of_file(tmp_path, "mrf")
    refused(tmp_path, header | {"coding": {"name": "real"}}, tensors, "variables are real numbers")
    mixed = parts_of_file(tmp_path, "gaussian")
    refused(tmp_path, mixed[0] | {"coding": header["coding"]}, mixed[1], "coding has other values than the model")


EDGES = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]


@pytest.mark.parametrize(
    ("name", "array", "match"),
    [
        ("model.theta", np.full(10, np.nan), r"m\.gibbs .*model\.theta holds numbers that are not between"),
        ("model.theta", np.full(10, np.inf), r"model\.theta holds"),
        ("model.theta", np.zeros(9), "has shape"),
        ("model.theta", np.zeros(()), "has shape"),
        ("model.theta", np.zeros(10, np.float32), r"model\.theta must hold float64, not float32"),
        ("model.edges", np.array(EDGES[::-1]), "edges must name each pair once"),
        ("model.edges", np.array([*EDGES[:5], EDGES[0]]), "edges must name each pair once"),
        ("model.edges", np.array([*EDGES[:5], [2, 2]]), "joins a node to itself"),
        ("model.edges", np.array([*EDGES[:5], [2, -3]]), r"model\.edges holds numbers that are not between 0 and 3"),
        ("model.edges", np.array([*EDGES[:5], [2, 2**40]]), r"model\.edges holds"),
        ("model.edges", np.array(EDGES, np.int32), r"model\.edges must hold int64"),
        ("moments.count", np.full(10, -1.0), r"moments\.count holds"),
        ("trace", np.zeros((3, 5)), r"trace has shape \(3, 5\), not \(3, 6\)"),
        ("model.more", np.zeros(3), r"model\.more does not belong in this file"),
        ("part.0.trace", np.zeros((3, 6)), r"part\.0\.trace does not belong in this file"),
    ],
)
def test_arrays_are_named_and_refused(tmp_path, parts, name, array, match):
    header, tensors = parts
    refused(tmp_path, header, {**tensors, name: array}, match)


@pytest.mark.parametrize(
    ("place", "value", "match"),
    [
        (("format_version",), "1", "damaged header"),
        (("format_version",), [1], "damaged header"),
        (("kind",), ["pairwise"], "damaged header"),
        (("provenance", "deep"), "@deep", "damaged header"),
        (("provenance", "deep"), json.loads("[" * 40 + "]" * 40), "damaged header"),
        (("structure", "n_variables"), 5, "names has 4 entries, but the model has 5 variables"),
        (("structure", "n_hidden"), -1, r"structure\.n_hidden must lie between"),
        (("structure", "bias"), 1, r"structure\.bias must be bool, not int"),
        (("names",), ["a", "b", "c"], "names has 3 entries"),
        (("names",), "abcd", "names must be list, not str"),
        (("coding", "domain"), "octal", r"coding\.domain must be one of spin, binary"),
        (("coding", "high"), None, r"coding\.high must be"),
        (("settings", "max_iter"), -3, "max_iter=-3 must be"),
        (("settings", "colour"), "red", "has no setting colour"),
        (("estimator",), "oracle", "oracle.* is not known"),
        (("estimator",), "gaussian", "has no setting"),
        (("parts",), [{}], "parts must be empty"),
    ],
)
def test_fields_of_the_header_are_named_and_refused(tmp_path, parts, place, value, match):
    header, tensors = parts
    owner = header
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = value
    refused(tmp_path, header, tensors, match)


def test_sizes_are_held_against_the_memory_limit(tmp_path, parts, monkeypatch):
    header, tensors = parts
    huge = {"n_variables": 10**12 + 4, "n_hidden": 10**12, "bias": False}
    changed = {**header, "structure": {**header["structure"], **huge}}
    few = {**tensors, "model.theta": tensors["model.theta"][4:]}
    for name in ("moments.mean", "moments.count"):
        del few[name]
    refused(tmp_path, changed, few, r"1,000,000,000,004 variables needs", TooExpensiveError)
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1e-6")
    refused(tmp_path, header, tensors, r"to read .*m\.gibbs needs", TooExpensiveError)


def test_a_file_without_a_digest_is_read_by_its_parts(tmp_path, parts):
    """Files of before have none."""
    header, tensors = parts
    save_file(tensors, tmp_path / "old.gibbs", metadata={"gibbsian": json.dumps(header)})
    assert np.array_equal(read_model(tmp_path / "old.gibbs").model.theta, tensors["model.theta"])


def test_a_precision_matrix_that_is_none_is_refused(tmp_path):
    header, tensors = parts_of_file(tmp_path, "gaussian")
    refused(tmp_path, header, {**tensors, "model.theta": -tensors["model.theta"]}, "positive definite")


@pytest.mark.parametrize("name", list(FAMILIES))
def test_every_family_declares_the_shapes_of_its_arrays(name):
    parts = FAMILIES.factory(name).parts_in_file
    assert any(isinstance(part, NumericArray) for part in parts.values())
    assert all(part.shape is not None for part in parts.values() if isinstance(part, NumericArray))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_of_single_precision_are_finite_too(number):
    theta = FAMILIES.factory("stack").parts_in_file["theta"]
    theta.check("theta", np.ones(3, np.float32), {})
    with pytest.raises(ArgumentError, match="theta holds numbers"):
        theta.check("theta", np.array([0.0, number], np.float32), {})


def test_progress_of_single_precision_is_finite_too():
    template = np.zeros(2, np.float32)
    with pytest.raises(ArgumentError, match="state holds numbers"):
        unpack(template, pack(np.array([0.0, np.inf], np.float32)))
    with pytest.raises(ArgumentError, match=r"state holds float64 of shape \(3,\)"):
        unpack(template, pack(np.zeros(3)))
    with pytest.raises(ArgumentError, match=r"state\.1 is missing"):
        unpack((template, template), pack((template,)))


def test_totals_are_checked():
    shares = NumericArray(("k",), low=0, high=1, total=1)
    shares.check("weights", np.array([0.5, 0.5]), {})
    with pytest.raises(ArgumentError, match="weights must add up to 1"):
        shares.check("weights", np.array([0.5, 0.4]), {})
