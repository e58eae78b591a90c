"""Names of columns and files are text to the terminal; tables go through pipes unharmed."""

import ast
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import gibbsian.cli
from cli_runner import printed, run
from gibbsian.cli.bars import Bars
from gibbsian.cli.main import app
from gibbsian.cli.output import print_table

STEERING = "\x1b[31mred\x07\u202e"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """A folder, and in it a table and a model, whose names steer a terminal."""
    folder = tmp_path_factory.mktemp("hostile") / STEERING
    folder.mkdir()
    rows = np.random.default_rng(0).integers(0, 2, (80, 3))
    pd.DataFrame(rows, columns=["a", f"b{STEERING}", "c"]).to_csv(folder / "data.csv", index=False)
    assert run("fit", folder / "data.csv", "--out", folder / "m.gibbs").exit_code == 0
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ("fit", "data.csv", "--out", "new.gibbs"),
        ("show", "m.gibbs"),
        ("expect", "m.gibbs"),
        ("compare", "data.csv", "--quiet"),
        ("structure", "data.csv", "--out", "s.gibbs"),
        ("intervals", "m.gibbs", "data.csv"),
        ("impute", "m.gibbs", "data.csv", "--out", "filled.csv"),
        ("fit", "none.csv", "--out", "new.gibbs"),
        ("show", "none.gibbs"),
        ("predict", "m.gibbs", "data.csv", "--columns", STEERING),
        ("fit", "data.csv", "--out", "m.gibbs", "--drop", STEERING),
        ("fit", "data.csv", "--out", "m.gibbs", f"--{STEERING}"),
    ],
)
def test_nothing_in_a_name_steers_the_terminal(hostile, command):
    files = {".csv", ".gibbs"}
    result = run(*(hostile / word if Path(word).suffix in files else word for word in command))
    for text in (result.stdout, result.stderr):
        assert not any(character in text for character in STEERING if not character.isprintable())
    assert "\\x1b[31m" in result.stdout + result.stderr or command[0] == "compare"


def _on_a_terminal(monkeypatch, name) -> io.StringIO:
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(f"sys.{name}", screen := Terminal())
    return screen


def test_tables_and_bars_on_a_terminal_are_steered_by_rich_alone(monkeypatch):
    hostile, escaped = f"[bold]{STEERING}[/bold]", "[bold]\\x1b[31mred\\x07\\u202e[/bold]"
    table = _on_a_terminal(monkeypatch, "stdout")
    print_table(hostile, [hostile, "b"], [[hostile, 1.0], [(hostile, 2), None]])
    assert table.getvalue().count(escaped) == 4
    screen = _on_a_terminal(monkeypatch, "stderr")
    bars = Bars()
    bars.move(hostile, 1, 2, f"said {hostile}")
    bars.stop()
    assert escaped in screen.getvalue()
    assert f"said {escaped}" in screen.getvalue()
    for text in (table.getvalue(), screen.getvalue()):
        assert not any(part in text for part in ("\x1b[31mred", "\x07", "\u202e"))


def test_there_is_one_display_of_progress():
    """Others would have to be escaped again."""
    users = {
        path.name for path in Path(gibbsian.cli.__file__).parent.glob("*.py") if "rich.progress" in path.read_text()
    }
    assert users == {"bars.py"}


def test_only_two_functions_print():
    """What is printed elsewhere would not be escaped."""
    folder = Path(gibbsian.cli.__file__).parent
    calls = {
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert calls == {"guard.py", "output.py"}


# -- pipes ------------------------------------------------------------------------------------------------------------
def test_tables_come_from_stdin_and_go_to_stdout(folder):
    text = (folder / "data.csv").read_text()
    told = CliRunner().invoke(app, ["fit", "-", "--out", str(folder / "p.gibbs"), "--drop", "id", "--drop", "w"], text)
    assert told.exit_code == 0, told.stderr
    piped = CliRunner().invoke(app, ["impute", str(folder / "p.gibbs"), "-", "--out", "-"], text)
    assert piped.exit_code == 0, piped.stderr
    assert piped.stdout == printed("impute", folder / "p.gibbs", folder / "data.csv")


def test_stdin_is_asked_more_than_one_question(folder):
    text = (folder / "data.csv").read_text()
    assert run("fit", folder / "data.csv", "--out", folder / "p.gibbs", "--drop", "id", "--drop", "w").exit_code == 0
    piped = CliRunner().invoke(app, ["unusual", str(folder / "p.gibbs"), "-"], text)
    assert piped.exit_code == 0, piped.stderr
    assert piped.stdout == printed("unusual", folder / "p.gibbs", folder / "data.csv")


def test_a_model_does_not_go_to_stdout(folder):
    result = run("fit", folder / "data.csv", "--out", "-")
    assert result.exit_code == 1
    assert "--out - would be stdout, which is for tables: give the name of a file" in result.stderr
