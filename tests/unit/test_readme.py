"""What the README says works: its Python runs, its commands run, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import gibbsian as gb
from cli_runner import run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    exec(block, {})
    printed = capsys.readouterr().out
    assert "converged" in printed
    assert "physician-fee-freeze" in printed


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "votes.csv").write_bytes(gb.datasets.house_votes_path().read_bytes())
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^gibbsian (.*)$", README, flags=re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        assert run(*shlex.split(command, comments=True)).exit_code == 0, command


def test_links_and_targets_exist() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert len(links) > 5
    assert [link for link in links if not (ROOT / link).exists()] == []
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"make (?:\w+=\S+ )?(\w+)", README)) <= targets
