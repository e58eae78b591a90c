"""The command line: the whole road through a small table, and every mistake a user can make on it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gibbsian as gb
from gibbsian.cli.compilation import announce_compilation
from gibbsian.cli.fit import read_graph
from gibbsian.cli.main import app
from gibbsian.cli.progress import fit_progress
from gibbsian.optimizers import StepInfo

NAMES = ["a", "b", "c", "d"]


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments: object) -> dict:
    """Run a command with --json, which must succeed and print JSON and nothing else on stdout."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def refused(*arguments: object, code: int = 1) -> str:
    """Run a command that must fail with one sentence on stderr; return the sentence."""
    result = run(*arguments)
    lines = result.stderr.splitlines()
    assert result.exit_code == code
    assert result.stdout == ""
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert "Traceback" not in lines[0]
    return lines[0]


@pytest.fixture(autouse=True, scope="module")
def _compilation_is_silent():
    """Whether the kernels are cached already must not decide what stands on stderr."""
    announce_compilation().announced = True


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """Four correlated answers with holes, an id and a weight."""
    rng = np.random.default_rng(0)
    opinion = rng.random((200, 1)) < 0.5
    upper = np.where(rng.random((200, 4)) < 0.8, opinion, ~opinion)
    frame = pd.DataFrame(np.where(upper, "yes", "no"), columns=NAMES).astype(object)
    frame.loc[5::37, "c"] = "?"
    frame.insert(0, "id", [f"m{k}" for k in range(200)])
    frame["w"] = 1 + np.arange(200) % 2
    return frame


@pytest.fixture
def folder(tmp_path: Path, table: pd.DataFrame, fitted: bytes) -> Path:
    """A folder with the data and a fitted model."""
    table.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "model.gibbs").write_bytes(fitted)
    return tmp_path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, table: pd.DataFrame) -> bytes:
    path = tmp_path_factory.mktemp("cli")
    table.to_csv(path / "data.csv", index=False)
    result = run("fit", path / "data.csv", "--out", path / "m.gibbs", "--drop", "id", "--drop", "w", "--learner", "mle")
    assert result.exit_code == 0, result.stderr
    return (path / "m.gibbs").read_bytes()


@pytest.fixture
def fit_arguments(folder: Path) -> list[object]:
    return ["fit", folder / "data.csv", "--out", folder / "new.gibbs", "--drop", "id", "--drop", "w"]


# -- the road ---------------------------------------------------------------------------------------------------------
def test_fit_ends_with_the_reason_and_the_place_of_the_model(fit_arguments, folder):
    result = run(*fit_arguments)
    assert result.exit_code == 0
    *_, reason, trained, written = result.stdout.splitlines()
    assert reason.startswith("converged after ")
    assert trained.startswith("the moments of the model agree with those of the data")
    assert written == f"model written to {folder / 'new.gibbs'}"
    assert "strongest couplings" in result.stdout


def test_fit_gives_the_library_s_own_answer(fit_arguments, folder, table):
    told = answer(*fit_arguments, "--learner", "mle", "--l2", "0.01")
    machine = gb.BoltzmannMachine(learner="mle", l2=0.01).fit(table[NAMES])
    np.testing.assert_array_equal(gb.load(folder / "new.gibbs").model_.theta, machine.model_.theta)
    assert told["reason"] == machine.result_.reason
    assert told["strongest_couplings"] == machine.strongest_couplings(10).to_dict("records")


def test_quiet_fit_prints_nothing(fit_arguments):
    result = run(*fit_arguments, "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_fit_takes_weights_from_a_column(fit_arguments, folder, table):
    run("fit", folder / "data.csv", "--out", folder / "new.gibbs", "--drop", "id", "--weights", "w", "--learner", "mle")
    machine = gb.BoltzmannMachine(learner="mle").fit(table[NAMES], sample_weight=table["w"])
    np.testing.assert_array_equal(gb.load(folder / "new.gibbs").model_.theta, machine.model_.theta)


def test_fit_on_edges_from_a_file(fit_arguments, folder):
    (folder / "edges.csv").write_text("first,second\na,b\nc,b\n")
    assert answer(*fit_arguments, "--graph", folder / "edges.csv")["edges"] == 2
    assert gb.load(folder / "new.gibbs").model_.graph.edges.tolist() == [[0, 1], [1, 2]]


def test_edges_without_a_header(folder):
    (folder / "edges.csv").write_text("a,b\nb,c\n")
    assert read_graph(str(folder / "edges.csv"), ("a", "b", "c")) == [("a", "b"), ("b", "c")]


def test_plain_ascent_reaches_the_maximum_of_lbfgs(fit_arguments, folder):
    pseudo = [*fit_arguments, "--learner", "mple", "--complete-rows", "--l2", "0.05"]
    assert answer(*pseudo)["converged"]
    quick = gb.load(folder / "new.gibbs").model_.theta
    assert answer(*pseudo, "--optimizer", "ascent", "--rate", "0.5", "--max-iter", "5000")["converged"]
    np.testing.assert_allclose(gb.load(folder / "new.gibbs").model_.theta, quick, atol=1e-4)


def test_a_resumed_fit_is_bit_identical(fit_arguments, folder):
    keeping = [*fit_arguments, "--learner", "mle", "--checkpoint", folder / "progress", "--checkpoint-every", "3"]
    assert run(*fit_arguments, "--learner", "mle").exit_code == 0
    whole = gb.load(folder / "new.gibbs").model_.theta.tobytes()
    assert not answer(*keeping, "--max-iter", "6")["converged"]
    told = answer(*keeping, "--resume")
    assert told["converged"]
    assert gb.load(folder / "new.gibbs").model_.theta.tobytes() == whole


def test_the_threshold_of_binarize_is_kept_for_later_data(tmp_path):
    numbers = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 3)), columns=["a", "b", "c"])
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    run("fit", tmp_path / "numbers.csv", "--out", tmp_path / "m.gibbs", "--binarize", "0.25")
    told = answer("score", tmp_path / "m.gibbs", tmp_path / "numbers.csv")
    machine = gb.BoltzmannMachine().fit((numbers > 0.25).astype(int))
    assert told["mean_log_likelihood"] == pytest.approx(machine.score((numbers > 0.25).astype(int)), abs=1e-6)


def test_show(folder):
    result = run("show", folder / "model.gibbs")
    assert result.exit_code == 0
    for word in ("yes/no (no/yes)", "a, b, c, d", "6 couplings", "converged after", "200 rows, 6 missing cells"):
        assert word in result.stdout
    told = answer("show", folder / "model.gibbs", "--top", "2")
    assert told["names"] == NAMES
    assert len(told["strongest_couplings"]) == 2
    assert told["biases"] == gb.load(folder / "model.gibbs").biases_.to_dict()


def test_score(folder, table):
    told = answer("score", folder / "model.gibbs", folder / "data.csv", "--per-row")
    rows = gb.load(folder / "model.gibbs").score_samples(table[NAMES])
    np.testing.assert_allclose(told["per_row"], rows)
    assert told["rows"] == 200
    assert told["mean_log_likelihood"] == pytest.approx(rows.mean())
    assert f"{rows.mean():.6f} nats over 200 rows" in run("score", folder / "model.gibbs", folder / "data.csv").stdout


def test_score_weighs_rows(folder, table):
    told = answer("score", folder / "model.gibbs", folder / "data.csv", "--weights", "w")
    rows = gb.load(folder / "model.gibbs").score_samples(table[NAMES])
    assert told["mean_log_likelihood"] == pytest.approx(np.average(rows, weights=table["w"]))


def test_score_writes_rows_to_a_file(folder):
    told = answer("score", folder / "model.gibbs", folder / "data.csv", "--per-row", "--out", folder / "rows.npy")
    assert np.load(folder / "rows.npy").mean() == pytest.approx(told["mean_log_likelihood"])


def test_score_of_converted_data_is_the_same(folder, table):
    spins = table[NAMES].replace({"yes": 1, "no": -1, "?": np.nan})
    spins.to_csv(folder / "spins.csv", index=False)
    told = answer("score", folder / "model.gibbs", folder / "spins.csv", "--convert")
    assert told == answer("score", folder / "model.gibbs", folder / "data.csv")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npy"])
def test_sample_writes_every_format(folder, suffix):
    told = answer("sample", folder / "model.gibbs", "-n", "50", "--seed", "3")
    out = folder / f"rows{suffix}"
    assert run("sample", folder / "model.gibbs", "-n", "50", "--seed", "3", "--out", out).exit_code == 0
    data = gb.Dataset.read(out, coding="yes/no")
    assert data.decode(data.states)[data.row_of].tolist() == told["values"]


def test_sample_by_gibbs_sampling_to_stdout(folder):
    result = run("sample", folder / "model.gibbs", "-n", "7", "--seed", "0", "--method", "gibbs")
    header, *rows = result.stdout.splitlines()
    assert header == "a,b,c,d"
    assert len(rows) == 7
    assert {cell for row in rows for cell in row.split(",")} <= {"yes", "no"}


def test_expect(folder):
    told = answer("expect", folder / "model.gibbs", "--method", "exact")
    estimate = gb.load(folder / "model.gibbs").expect("exact")
    assert [row["column"] for row in told["means"]] == NAMES
    assert [(row["first"], row["second"]) for row in told["pairs"]][:2] == [("a", "b"), ("a", "c")]
    assert [row["mean"] for row in told["means"] + told["pairs"]] == estimate.mean.tolist()
    assert all(row["standard_error"] == 0 for row in told["pairs"])


def test_expect_by_sampling_has_errors_and_a_seed(folder):
    command = ("expect", folder / "model.gibbs", "--method", "monte-carlo", "--seed", "1")
    told = answer(*command)
    assert all(row["standard_error"] > 0 for row in told["means"])
    assert told == answer(*command)
    assert "values are 0 for 'no' and 1 for 'yes'" in run(*command).stdout


def test_expect_without_biases_lists_pairs_only(fit_arguments, folder):
    run(*fit_arguments, "--no-bias")
    told = answer("expect", folder / "new.gibbs")
    assert told["means"] == []
    assert len(told["pairs"]) == 6


def test_impute_fills_the_missing_cells_only(folder, table):
    told = answer("impute", folder / "model.gibbs", folder / "data.csv", "--out", folder / "full.csv")
    assert told["filled_cells"] == (table["c"] == "?").sum() > 0
    full = pd.read_csv(folder / "full.csv")
    present = table[NAMES] != "?"
    assert list(full.columns) == NAMES
    assert (full[present] == table[NAMES][present]).where(present, True).all(axis=None)
    assert full["c"].isin(["yes", "no"]).all()


def test_impute_probabilities(folder, table):
    told = answer("impute", folder / "model.gibbs", folder / "data.csv", "--probabilities")
    values = np.array(told["values"])
    np.testing.assert_allclose(values, gb.load(folder / "model.gibbs").predict_proba(table[NAMES]))
    hole = (table["c"] == "?").to_numpy()
    assert ((values[hole, 2] > 0) & (values[hole, 2] < 1)).all()


def test_demo(tmp_path):
    told = answer("demo", "--out-dir", tmp_path / "new" / "demo")
    exact, pseudo, independent = (row["held_out_log_likelihood"] for row in told["fits"])
    assert min(exact, pseudo) > independent + 3
    assert all(row["convergence"].startswith("converged after") for row in told["fits"])
    assert "'physician-fee-freeze' tended to be 'republican' (+" in told["strongest_couplings"][0]
    assert told["imputation"]["model"] > told["imputation"]["majority"] + 0.1
    assert sorted(path.name for path in (tmp_path / "new" / "demo").iterdir()) == [
        "couplings.png", "moments.png", "network.png",
    ]  # fmt: skip
    assert all(Path(picture).read_bytes().startswith(b"\x89PNG") for picture in told["pictures"])


# -- mistakes ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, ["data.csv", "not found"]),
        ("", ["data.csv", "empty"]),
        ("a,b\n", ["data.csv", "no rows"]),
        ("a,b\n0,x\n1,y\n1,z\n", ["column 'b' holds text", "--drop b"]),
        ("a,b\n0,1\n1,2\n2,0\n", ["column 'a' holds 3 different values", "--binarize"]),
        ("a,b\n0,1\n1,1\n0,1\n", ["'b'", "--l2"]),
        ("a,b\n0,1\n1\n", ["ragged"]),
    ],
)
def test_fit_refuses_bad_data_and_writes_nothing(tmp_path, content, words):
    if content is not None:
        (tmp_path / "data.csv").write_text(content)
    before = sorted(tmp_path.iterdir())
    sentence = refused("fit", tmp_path / "data.csv", "--out", tmp_path / "m.gibbs")
    assert [word for word in words if word not in sentence] == []
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--drop", "nope"], ["--drop names the column 'nope'", "it has id, a, b"]),
        (["--weights", "nope"], ["--weights names the column 'nope'"]),
        (["--learner", "nope"], ["--learner nope is not known", "mle", "mple"]),
        (["--optimizer", "nope"], ["--optimizer nope is not known", "ascent", "lbfgs"]),
        (["--rate", "0.1"], ["--rate", "ascent"]),
        (["--graph", "nope"], ["--graph nope", "complete, empty, chain, grid:RxC"]),
        (["--graph", "grid:3x3"], ["9 nodes", "4 columns"]),
        (["--coding", "nope"], ["--coding nope is not known", "spin, binary, yes/no"]),
        (["--coding", "spin"], ["column 'a'", "spin (-1/1)", "--coding yes/no"]),
        (["--learner", "mple"], ["6 of 200 rows", "--complete-rows"]),
        (["--l2", "-1"], ["--l2 -1.0 must be zero or positive"]),
        (["--max-iter", "0"], ["--max-iter 0 must be at least 1"]),
        (["--tol", "0"], ["--tol 0.0 must be positive"]),
        (["--temperature", "-2"], ["--temperature -2.0 must be a positive number"]),
        (["--resume"], ["--resume needs --checkpoint"]),
        (["--checkpoint", "nowhere/progress"], ["--checkpoint nowhere/progress", "does not exist"]),
        (["--checkpoint", "progress", "--checkpoint-every", "0"], ["--checkpoint-every 0 must be at least 1"]),
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
    assert "must end in one of .csv, .tsv, .parquet, .npy" in sentence


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
    run(*fit_arguments, "--learner", "mle", "--checkpoint", folder / "progress", "--checkpoint-every", "2")
    assert "holds a checkpoint, not a pairwise" in refused("show", folder / "progress")


@pytest.mark.parametrize("command", ["sample", "expect"])
def test_unknown_methods_list_the_choices(folder, command):
    sentence = refused(command, folder / "model.gibbs", "--method", "nope")
    assert "--method nope is not known: use one of" in sentence


def test_usage_errors_exit_with_2(folder):
    for arguments in (["fit", folder / "data.csv"], ["sample", folder / "model.gibbs", "-n", "many"], ["nope"]):
        result = run(*arguments)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert "Traceback" not in result.stderr


# -- manners ----------------------------------------------------------------------------------------------------------
def test_warnings_are_one_line_on_stderr(fit_arguments):
    result = run(*fit_arguments, "--max-iter", "2", "--json")
    assert json.loads(result.stdout)["converged"] is False
    (line,) = result.stderr.splitlines()
    assert line.startswith("warning: stopped at --max-iter 2")


def test_an_interrupt_is_one_line(folder, monkeypatch):
    monkeypatch.setattr("gibbsian.estimators.load", _raiser(KeyboardInterrupt()))
    result = run("show", folder / "model.gibbs")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


def test_an_unexpected_error_says_that_it_is_a_bug(folder, monkeypatch):
    monkeypatch.setattr("gibbsian.estimators.load", _raiser(RuntimeError("no\nsuch luck")))
    sentence = refused("show", folder / "model.gibbs", code=70)
    assert "RuntimeError: no such luck" in sentence
    assert "GIBBSIAN_TRACEBACK=1" in sentence


def test_tracebacks_on_demand(folder, monkeypatch):
    monkeypatch.setattr("gibbsian.estimators.load", _raiser(RuntimeError("no such luck")))
    monkeypatch.setenv("GIBBSIAN_TRACEBACK", "1")
    assert isinstance(run("show", folder / "model.gibbs").exception, RuntimeError)


def test_unreadable_files_are_named(folder, monkeypatch):
    monkeypatch.setattr("gibbsian.estimators.load", _raiser(PermissionError(13, "Permission denied", "model.gibbs")))
    assert refused("show", folder / "model.gibbs") == "error: model.gibbs: Permission denied"


def _raiser(error: BaseException):
    def fail(*_):
        raise error

    return fail


def test_progress_shows_step_value_and_gradient(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen := Terminal())
    with fit_progress("fitting", max_iter=100, tol=1e-6) as callback:
        callback(3, StepInfo(value=2.5, gradient_norm=1e-3, step_size=1.0, evaluations=4))
    assert "step 3  value 2.5  gradient 1.0e-03" in screen.getvalue()


def test_compilation_is_announced_once_and_only_when_it_happens(capsys):
    from numba import njit
    from numba.core import event

    event.unregister("numba:compile", announce_compilation())  # the silent one
    announce_compilation.cache_clear()
    announce_compilation()

    def first(x):
        return x + 1

    def second(x):
        return x - 1

    for function in (first, second):
        function.__module__ = "gibbsian.backends.test"
    foreign = njit(lambda x: x)
    assert foreign(1) == 1
    assert capsys.readouterr().err == ""
    kernel = njit(first)
    assert kernel(1) == 2
    assert capsys.readouterr().err == "compiling kernels (first run only) ...\n"
    assert kernel(2) == 3
    assert njit(second)(1) == 0
    assert capsys.readouterr().err == ""


def test_help_and_version_need_no_heavy_imports():
    code = (
        "import sys, gibbsian.cli.main; "
        "print({'numpy', 'numba', 'scipy', 'sklearn', 'pandas', 'matplotlib', 'rich', 'pyarrow'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
    done = subprocess.run([sys.executable, "-m", "gibbsian", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"gibbsian {gb.__version__}\n"


def test_help_names_every_command():
    listed = run("--help").stdout
    for command in ("fit", "score", "sample", "expect", "impute", "show", "demo"):
        assert f"\n  {command} " in listed


COMPARE = ("--drop", "id", "--drop", "w", "--complete-rows", "--learners", "mle,mple", "--l2", "0.01")


def test_compare_prints_one_table(folder):
    result = run("compare", folder / "data.csv", *COMPARE, "--seed", "1")
    assert result.exit_code == 0, result.stderr
    for words in ("mle", "mple", "rms to mle", "converged after"):
        assert words in result.stdout


def test_compare_as_json(folder):
    records = answer("compare", folder / "data.csv", *COMPARE)
    assert [record["learner"] for record in records] == ["mle", "mple"]
    assert records[0]["distance_to_mle"] == 0.0
    assert records[0]["score_kind"] == "log-likelihood"


def test_compare_refuses_unknown_learners_before_fitting(folder):
    assert "magic is not known: use one of" in refused("compare", folder / "data.csv", "--learners", "mle,magic")
    assert "--learners names none" in refused("compare", folder / "data.csv", "--learners", ",")


TABLE = ("--drop", "id", "--drop", "w", "--complete-rows")


def test_structure_lists_edges_and_writes_the_refitted_model(folder):
    found = answer("structure", folder / "data.csv", *TABLE, "--out", folder / "s.gibbs")
    assert all(set(edge) <= set(NAMES) for edge in found["edges"])
    assert len(found["edges"]) == len(found["couplings"]) == gb.load(folder / "s.gibbs").model_.graph.n_edges > 0
    printed = run("structure", folder / "data.csv", *TABLE, "--method", "decimation")
    assert printed.exit_code == 0
    assert "of 6 pairs interact" in printed.stdout


def test_structure_refuses_unknown_methods(folder):
    assert "magic" in refused("structure", folder / "data.csv", *TABLE, "--method", "magic")


@pytest.mark.parametrize("extra", [(), ("--bootstrap", "30", "--seed", "1")])
def test_intervals_hold_the_estimates(folder, extra):
    rows = answer("intervals", folder / "model.gibbs", folder / "data.csv", *extra)
    assert len(rows) == 6
    for row in rows:
        assert row["low"] < row["high"]
        assert 0 < row["error"] < 1
    assert sum(row["low"] < row["coupling"] < row["high"] for row in rows) >= 5
    assert "95% intervals" in run("intervals", folder / "model.gibbs", folder / "data.csv").stdout


def test_intervals_refuse_bad_numbers(folder):
    files = (folder / "model.gibbs", folder / "data.csv")
    assert "--level 2.0" in refused("intervals", *files, "--level", "2")
    assert "--bootstrap -1" in refused("intervals", *files, "--bootstrap", "-1")


def test_fit_from_the_disk(folder):
    rng = np.random.default_rng(0)
    first = rng.random(5000) < 0.5
    second = np.where(rng.random(5000) < 0.8, first, ~first)
    np.save(folder / "rows.npy", np.column_stack([first, second]).astype(np.uint8))
    told = answer("fit", folder / "rows.npy", "--out", folder / "d.gibbs", "--memory", "1MB", "--seed", "0")
    assert told["provenance"]["learner"] == "online"
    assert told["strongest_couplings"][0]["coupling"] == pytest.approx(2 * np.log(4), abs=0.3)
    assert "--memory learns from the disk" in refused(
        "fit", folder / "rows.npy", "--out", folder / "e.gibbs", "--memory", "1MB", "--complete-rows"
    )


def test_edges_by_title_and_by_position(fit_arguments, folder):
    (folder / "edges.csv").write_text("source,target\na,b\n2,3\n")
    assert run(*fit_arguments, "--graph", folder / "edges.csv").exit_code == 0
    assert read_graph(str(folder / "edges.csv"), tuple(NAMES)) == [("a", "b"), (2, 3)]


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
        (["compare", "--held-out", "1.5"], "--held-out 1.5"),
        (["compare", "--held-out", "0"], "--held-out 0.0"),
        (["fit", "--out", "m.gibbs", "--held-out", "1.5"], "--held-out 1.5"),
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
    for flags in (["fit", "x.csv", "--nope"], ["fit", "x.csv"], ["show"], ["magic"], ["sample", "m", "--seed", "-1"]):
        ran = subprocess.run([sys.executable, "-m", "gibbsian", *flags], capture_output=True, text=True, cwd=folder)
        assert ran.returncode == 2
        assert ran.stdout == ""
        assert len(ran.stderr.splitlines()) == 1, ran.stderr
        assert ran.stderr.startswith("error: ")
        assert "--help" in ran.stderr
