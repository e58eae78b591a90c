"""``gibbsian demo``."""

from __future__ import annotations

from pathlib import Path

from cli_runner import answer


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
