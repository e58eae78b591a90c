"""Files are written whole or not at all, and over regular files alone."""

import os

import pytest

from gibbsian.errors import StorageError
from gibbsian.storage import write_atomically


def test_only_regular_files_are_written_over(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="not a regular file"):
        write_atomically(tmp_path / "pipe", b"x")
    assert not (tmp_path / "pipe").is_file()


def test_links_stay_links(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"


def test_written_files_have_the_usual_permissions(tmp_path):
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.write_text("x")
    write_atomically(ours, b"x")
    assert ours.stat().st_mode == plain.stat().st_mode
