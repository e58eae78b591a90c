"""Fixtures of all tests, of the library and of the reproduction."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """The generator of a test."""
    return np.random.default_rng(20061)


@pytest.fixture(autouse=True)
def heeded_interrupts() -> Iterator[None]:
    """Ctrl-C raises, as at a terminal: a run in the background inherits that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
