"""``gibbsian demo``."""

from __future__ import annotations

from pathlib import Path

import gibbsian as gb
from cli_runner import answer, refused


def test_demo(tmp_path):
    told = answer("demo", "--out-dir", tmp_path / "new" / "demo")
    for row in told["fits"]:
        assert row["fitted"] > row["held_out"] > row["independent_columns"] + 3
        assert row["convergence"].startswith("converged after")
    assert "'physician-fee-freeze' tended to be 'republican' (+" in told["strongest_couplings"][0]
    assert told["imputation"]["model"] > told["imputation"]["majority"] + 0.1
    assert sorted(path.name for path in (tmp_path / "new" / "demo").iterdir()) == [
        "couplings.png", "moments.png", "network.png", "votes.csv",
    ]  # fmt: skip
    assert all(Path(picture).read_bytes().startswith(b"\x89PNG") for picture in told["pictures"])
    assert Path(told["table"]).read_bytes() == gb.datasets.house_votes_path().read_bytes()


def test_demo_writes_over_no_other_table(tmp_path):
    (tmp_path / "votes.csv").write_text("a,b\n0,1\n")
    assert "--out-dir" in refused("demo", "--out-dir", tmp_path)
    assert (tmp_path / "votes.csv").read_text() == "a,b\n0,1\n"
