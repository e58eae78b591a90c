"""Run the command line in this process and judge how it ended."""

from __future__ import annotations

import json

from click.testing import CliRunner

from gibbsian.cli.main import app


def run(*arguments: object):
    """Run a command."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def answer(*arguments: object) -> dict:
    """Run a command with --json, which must succeed and print JSON and nothing else on stdout."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def printed(*arguments: object) -> str:
    """Run a command that must succeed and say nothing on stderr; return what it prints."""
    result = run(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def refused(*arguments: object, code: int = 1) -> str:
    """Run a command that must fail with one sentence on stderr; return the sentence."""
    result = run(*arguments)
    lines = result.stderr.splitlines()
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert "Traceback" not in lines[0]
    return lines[0]
