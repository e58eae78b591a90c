"""Every message that names a remedy: the remedy is followed and arrives."""

from __future__ import annotations

import contextlib
from functools import cache

import pytest

from cli_runner import run
from gibbsian.cli.main import app
from remedies import FLAG, SOURCE, sites
from remedy_cluster import CLUSTER
from remedy_parts import PARTS
from remedy_rows import COMMANDS, DEEPER, FITS, KINDS, QUESTIONS, READING, folder

ROWS = [*READING, *FITS, *QUESTIONS, *COMMANDS, *DEEPER, *KINDS, *PARTS, *CLUSTER]


@cache
def walked(name: str) -> set[tuple[str, int]]:
    return next(row for row in ROWS if row.name == name).follow()


@pytest.mark.parametrize("name", [row.name for row in ROWS])
def test_the_remedy_arrives(name):
    walked(name)


def test_rows_have_names_of_their_own():
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_commands_have_the_flags_that_their_messages_name(row):
    with contextlib.chdir(folder().name):
        sentence = run(*row.wrong["args"].split("|")).stderr
    name = row.wrong["args"].partition("|")[0]
    known = {option for param in app.commands[name].params for option in (*param.opts, *param.secondary_opts)}
    missing = {flag.split()[0] for flag in FLAG.findall(sentence)} - known
    assert all(flag in " ".join(run(name, "--help-all", "--model", "pairwise").stdout.split()) for flag in missing)


# -- all of them ------------------------------------------------------------------------------------------------------
# Remedies that a test cannot follow: file, words of the remedy, and why.
UNFOLLOWED = {
    ("plots/canvas.py", "install one that has, such as Noto Sans CJK"): "a test cannot install fonts",
    ("cluster/connection.py", "_ABSENT"): "a test cannot install packages",
    **dict.fromkeys(
        (
            ("cluster/connection.py", "give workers more memory"),
            ("cluster/connection.py", "go on from the checkpoint"),
            ("cluster/connection.py", "install the same versions"),
            ("cluster/dataset.py", "add workers or memory"),
        ),
        "needs processes of its own: tests/cluster",
    ),
}


def test_every_remedy_is_walked():
    """A new message with a remedy needs a row."""
    seen: dict[str, set[int]] = {}
    for row in ROWS:
        for file, line in walked(row.name):
            seen.setdefault(file, set()).add(line)
    unwalked = [
        (file, lines[0], words)
        for file, at in sites().items()
        for lines, words in at
        if not seen.get(str(SOURCE / file), set()) & set(lines)
    ]
    left = {key for key in UNFOLLOWED for file, _, words in unwalked if key[0] == file and key[1] in words}
    new = [(file, line) for file, line, words in unwalked if not any(f == file and w in words for f, w in UNFOLLOWED)]
    assert not new, f"messages with a remedy that no row of ROWS provokes, by file and line: {new}"
    assert left == set(UNFOLLOWED), "a remedy that is followed by now, or has other words"
