"""A small table with holes, and a machine fitted to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli_runner import run
from gibbsian.cli.compilation import announce_compilation

NAMES = ["a", "b", "c", "d"]


@pytest.fixture(autouse=True, scope="session")
def _compilation_is_silent():
    """Whether the kernels are cached already must not decide what stands on stderr."""
    announce_compilation().announced = True


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory, table: pd.DataFrame) -> bytes:
    path = tmp_path_factory.mktemp("cli")
    table.to_csv(path / "data.csv", index=False)
    result = run("fit", path / "data.csv", "--out", path / "m.gibbs", "--drop", "id", "--drop", "w", "--learner", "mle")
    assert result.exit_code == 0, result.stderr
    return (path / "m.gibbs").read_bytes()


@pytest.fixture
def fit_arguments(folder: Path) -> list[object]:
    return ["fit", folder / "data.csv", "--out", folder / "new.gibbs", "--drop", "id", "--drop", "w"]
