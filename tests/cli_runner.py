"""Run the command line in this process and judge how it ended."""

from __future__ import annotations

import json

import click
from click.testing import CliRunner

from gibbsian.cli.main import app


def run(*arguments: object, command: click.Command = app):
    """Run a command."""
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def answer(*arguments: object, command: click.Command = app) -> dict:
    """Run a command with --json, which must succeed and print JSON and nothing else on stdout."""
    result = run(*arguments, "--json", command=command)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def printed(*arguments: object, command: click.Command = app) -> str:
    """Run a command that must succeed and say nothing on stderr; return what it prints."""
    result = run(*arguments, command=command)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def refused(*arguments: object, code: int = 1, command: click.Command = app) -> str:
    """Run a command that must fail with one sentence on stderr; return the sentence."""
    result = run(*arguments, command=command)
    lines = result.stderr.splitlines()
    assert result.exit_code == code, result.stderr
    assert result.stdout == ""
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert "Traceback" not in lines[0]
    return lines[0]
