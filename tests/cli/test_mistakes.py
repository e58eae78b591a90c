"""Every mistake that a user can make with files and flags ends in one sentence, and nothing is half-written."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from cli_runner import refused, run

NAMES = ["a", "b", "c", "d"]
TABLE = ("--drop", "id", "--drop", "w", "--complete-rows")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["data.csv", "not found"]),
        ("", ["data.csv", "empty"]),
        ("a,b\n", ["data.csv", "no rows"]),
        ("a,b\n0,x\n1,y\n1,z\n", ["column 'b' holds text", "--drop b"]),
        ("a,b\n0,1\n1,2\n2,0\n", ["column 'a' holds 3 different values", "--binarize"]),
        ("a,b\n0,1\n1\n", ["ragged"]),
    ],
)
def test_fit_refuses_bad_data_and_writes_nothing(tmp_path, content, words):
    if content is not None:
        (tmp_path / "data.csv").write_text(content)
    before = sorted(tmp_path.iterdir())
    sentence = refused("fit", tmp_path / "data.csv", "--out", tmp_path / "m.gibbs", "--model", "pairwise")
    assert [word for word in words if word not in sentence] == []
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--drop", "nope"], ["--drop names the column 'nope'", "it has id, a, b"]),
        (["--weights", "nope"], ["--weights names the column 'nope'"]),
        (["--learner", "nope"], ["--learner nope is not known", "mle", "mple"]),
        (["--learner", "mple", "--optimizer", "nope"], ["--optimizer nope is not known", "ascent", "lbfgs"]),
        (["--graph", "nope"], ["--graph nope is not known", "'complete', 'empty', 'chain' or 'grid:RxC'"]),
        (["--graph", "grid:3x3"], ["9 nodes", "4 columns"]),
        (["--coding", "nope"], ["--coding nope is not known", "spin, binary, yes/no"]),
        (["--coding", "spin"], ["column 'a'", "spin (-1/1)", "--coding yes/no"]),
        (["--l2", "-1"], ["--l2 -1 must be at least 0"]),
        (["--max-iter", "0"], ["--max-iter 0 must be at least 1"]),
        (["--tol", "-1"], ["--tol -1 must be at least 0"]),
        (["--max-iter", "many"], ["--max-iter many must be a whole number"]),
        (["--temperature", "-2"], ["--temperature -2 must be above 0"]),
        (["--resume"], ["--resume needs --checkpoint"]),
        (["--checkpoint", "nowhere/progress"], ["--checkpoint nowhere/progress", "does not exist"]),
        (["--checkpoint", "progress", "--every", "0"], ["--every 0 must be at least 1"]),
    ],
)
def test_fit_refuses_bad_flags_and_writes_nothing(fit_arguments, folder, flags, words):
    before = sorted(folder.iterdir())
    sentence = refused(*fit_arguments, *flags)
    assert [word for word in words if word not in sentence] == []
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\na,zz\n", ["node 'zz'"]),
        ("a,b,c\n", ["line 1", "3 names"]),
        ("a,a\n", ["line 1", "joins 'a' to itself"]),
        ("zz,yy\nb,c\n", ["node 'zz'"]),
        ("", ["holds no edges", "--graph empty"]),
        ("source,target\n", ["holds no edges"]),
    ],
)
def test_fit_refuses_a_bad_file_of_edges(fit_arguments, folder, text, words):
    (folder / "edges.csv").write_text(text)
    sentence = refused(*fit_arguments, "--graph", folder / "edges.csv")
    assert [word for word in words if word not in sentence] == []


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "{0}/data.csv", "--drop", "id", "--drop", "w"),
        ("sample", "{0}/model.gibbs"),
        ("impute", "{0}/model.gibbs", "{0}/data.csv"),
        ("score", "{0}/model.gibbs", "{0}/data.csv", "--per-row"),
    ],
)
def test_an_absent_output_directory_is_named(folder, command):
    arguments = [part.format(folder) for part in command]
    sentence = refused(*arguments, "--out", folder / "nowhere" / "out.csv")
    assert f"directory {folder / 'nowhere'} does not exist" in sentence


def test_an_unknown_output_format_is_named(folder):
    sentence = refused("sample", folder / "model.gibbs", "--out", folder / "rows.xls")
    assert "must end in one of .csv, .csv.gz, .parquet" in sentence


def test_data_in_another_coding_is_refused(folder, table):
    table[NAMES].replace({"yes": 1, "no": -1, "?": np.nan}).to_csv(folder / "spins.csv", index=False)
    sentence = refused("score", folder / "model.gibbs", folder / "spins.csv")
    assert "the model was fitted on yes/no (no/yes) data but this data is spin (-1/1)" in sentence
    assert "--convert" in sentence


def test_a_column_that_the_data_lacks_is_named(folder, table):
    table.drop(columns="d").to_csv(folder / "short.csv", index=False)
    sentence = refused("impute", folder / "model.gibbs", folder / "short.csv", "--out", folder / "full.csv")
    assert "the model needs the column 'd'" in sentence
    assert not (folder / "full.csv").exists()


@pytest.mark.parametrize(
    "command", [("show",), ("sample",), ("expect",), ("score", "{0}/data.csv"), ("impute", "{0}/data.csv")]
)
def test_damaged_and_foreign_model_files_are_refused(folder, fitted, command):
    (folder / "cut.gibbs").write_bytes(fitted[:100])
    rest = [part.format(folder) for part in command[1:]]
    assert "truncated" in refused(command[0], folder / "cut.gibbs", *rest)
    assert "not a gibbsian file" in refused(command[0], folder / "data.csv", *rest)
    assert "absent.gibbs does not exist" in refused(command[0], folder / "absent.gibbs", *rest)


def test_a_checkpoint_is_not_a_model(fit_arguments, folder):
    run(*fit_arguments, "--learner", "mle", "--checkpoint", folder / "progress", "--every", "2")
    assert "holds a checkpoint, not one of " in refused("show", folder / "progress")


@pytest.mark.parametrize("command", ["sample", "expect"])
def test_unknown_methods_list_the_choices(folder, command):
    sentence = refused(command, folder / "model.gibbs", "--method", "nope")
    assert "--method nope is not known: use one of" in sentence


def test_usage_errors_exit_with_2(folder):
    for arguments in (["fit"], ["sample", folder / "model.gibbs", "-n", "many"], ["nope"]):
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "Traceback" not in result.stderr


def test_inputs_are_not_written_over(folder):
    before = (folder / "data.csv").read_bytes()
    same = (folder / "data.csv", "--out", folder / "data.csv")
    assert "is the data file" in refused("fit", *same, "--drop", "id", "--drop", "w")
    assert "is the data file" in refused("structure", *same, *TABLE)
    checkpoint = ("--out", folder / "m.gibbs", "--checkpoint", folder / "m.gibbs")
    assert "is the out file" in refused("fit", folder / "data.csv", *checkpoint)
    assert (folder / "data.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compare", "--validation-fraction", "1.5"], "--validation-fraction 1.5"),
        (["compare", "--validation-fraction", "0"], "--validation-fraction 0.0"),
        (["fit", "--out", "m.gibbs", "--validation-fraction", "1.5"], "--validation-fraction 1.5"),
        (["fit", "--out", "m.gibbs", "--start", "foo"], "--start foo"),
        (["structure", "--method", "foo"], "--method foo"),
        (["structure", "--rule", "xor"], "--rule xor"),
    ],
)
def test_messages_speak_of_flags(folder, monkeypatch, arguments, words):
    monkeypatch.chdir(folder)
    command, *flags = arguments
    assert words in refused(command, folder / "data.csv", *TABLE, *flags)


def test_mistyped_flags_end_in_one_sentence(folder):
    for flags in (["fit", "x.csv", "--nope"], ["fit"], ["show"], ["magic"], ["sample", "m", "--seed", "-1"]):
        ran = subprocess.run([sys.executable, "-m", "gibbsian", *flags], capture_output=True, text=True, cwd=folder)
        assert ran.returncode == 2
        assert ran.stdout == ""
        assert len(ran.stderr.splitlines()) == 1, ran.stderr
        assert ran.stderr.startswith("error: ")
        assert "--help" in ran.stderr


def test_outputs_never_overwrite_inputs(folder, fitted):
    data = (folder / "data.csv").read_bytes()
    (folder / "model.csv").write_bytes(fitted)
    for command in (
        ("impute", folder / "model.gibbs", folder / "data.csv", "--out", folder / "data.csv"),
        ("score", folder / "model.gibbs", folder / "data.csv", "--per-row", "--out", folder / "data.csv"),
        ("sample", folder / "model.csv", "--out", folder / "model.csv"),
        ("expect", folder / "model.csv", "--out", folder / "model.csv"),
    ):
        assert "give another name" in refused(*command)
    assert (folder / "data.csv").read_bytes() == data
    assert (folder / "model.csv").read_bytes() == fitted


def test_a_checkpoint_never_overwrites_another_file(fit_arguments, folder, fitted):
    (folder / "other.gibbs").write_bytes(fitted)
    sentence = refused(*fit_arguments, "--learner", "mle", "--checkpoint", folder / "other.gibbs")
    assert "exists and is no checkpoint" in sentence
    assert (folder / "other.gibbs").read_bytes() == fitted


def test_intervals_of_other_data_are_refused(folder, table):
    table.head(40).to_csv(folder / "part.csv", index=False)
    assert "not that which the model was fitted to" in refused("intervals", folder / "model.gibbs", folder / "part.csv")
