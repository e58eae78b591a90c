"""What walks share: commands typed one after the other, and what a person sees of the files they leave."""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
from pathlib import Path

from cli_runner import run

PNG = b"\x89PNG"
# What may stand on stderr when all is well.
FINE = ("warning: ", "compiling kernels")


def typed(*arguments: object) -> str:
    """Run a command that must succeed, warnings but no error on the way; return what it prints."""
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    assert all(line.startswith(FINE) for line in result.stderr.splitlines()), result.stderr
    return result.stdout


def typed_in(folder: Path, line: str) -> str:
    """Run a line that begins with ``gibbsian`` in a folder, in this process."""
    with contextlib.chdir(folder):
        return typed(*shlex.split(line)[1:])


def in_a_shell(folder: Path, line: str) -> str:
    """Run a line in a folder as a shell would, ``gibbsian`` being this one; return what it prints."""
    words = line.replace("gibbsian ", f"'{sys.executable}' -m gibbsian ")
    done = subprocess.run(words, shell=True, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert all(said.startswith(FINE) for said in done.stderr.splitlines()), done.stderr
    return done.stdout


def is_picture(path: Path) -> bool:
    """Whether a PNG file of some size was written."""
    return path.read_bytes().startswith(PNG) and path.stat().st_size > 10_000
