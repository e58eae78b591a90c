"""Fixtures for all tests: a seed, both codings, and the real data that stays outside the repository."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from gibbsian import Variables

# No deadline: the first call of a kernel compiles it. Derandomised, so that a red run can be repeated.
settings.register_profile("gibbsian", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("gibbsian")

SHARED_DATA = Path(os.environ.get("GIBBSIAN_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture
def x(rng: np.random.Generator) -> np.ndarray:
    """Rows of four columns that are independent."""
    return rng.integers(0, 2, (300, 4))


# Files of many seconds, in the order in which they are dealt out, before all others: no worker is left with one of them
# when the others are done. What compiles most comes first; processes of a cluster come when kernels are on disk.
HEAVY = (
    "contracts/test_capabilities",
    "backends/torch/",
    "golden/test_frozen",
    "contracts/test_remedies",
    "reproduction/tests/test_yu20",
    "contracts/",
    "learning/test_em",
    "statistical/",
    "estimators/",
    "cluster/",
    "browser/",
    "walks/",
    "reproduction/",
)


def pytest_collection_modifyitems(items):
    """Put heavy files first; skip what needs a card where there is none, with a word."""
    items.sort(key=lambda item: next((place for place, name in enumerate(HEAVY) if name in item.nodeid), len(HEAVY)))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _has_card():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="this machine has no card that torch can use"))


def pytest_collection_finish():
    """Keep modules and tests out of the search for garbage: a pass over them takes more than half a second."""
    gc.freeze()


def pytest_sessionfinish():
    """Let them go at the end: some packages count what is left."""
    gc.unfreeze()


def _has_card() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


@pytest.fixture(params=[Variables.spins, Variables.binary], ids=["spin", "binary"])
def scores(request):
    """Two-valued variables of any number, with the scores -1/+1 or 0/1."""
    return request.param


@pytest.fixture
def shared_data():
    """Return a function that finds a file of ../shared/data, or skips the test and says why."""

    def find(relative: str) -> Path:
        path = SHARED_DATA / relative
        if not path.exists():
            pytest.skip(f"real data {relative} is not on this machine (set GIBBSIAN_SHARED_DATA)")
        return path

    return find
