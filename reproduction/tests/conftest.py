"""A small experiment with tables, a picture and claims, one of which fails."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian_reproduction.drawing import curve
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Series, Verdict
from gibbsian_reproduction.report import Report
from gibbsian_reproduction.tables import Table, mean_table


def draw(results, figure):
    axes = figure.subplots()
    curve(axes, [1, 2], results.mean("error"), results.stderr("error"), "mple")
    curve(axes, np.arange(50), np.arange(50), np.ones(50), "forest-smci", ours=True)


TABLES = (
    mean_table("Errors, all", "N", [10, 20], [Series("error", "mple")]),
    lambda results: Table("other/one", [{"method": "a|b", "value": np.nan}], "n"),
)


CLAIMS = (
    Claim("it is so", "section 1", lambda results: Verdict(True, "3 of 3 trials"), trials=2),
    Claim("it is not", "section 2", lambda results: Verdict(False, "<0 & 1>"), trials=100, ours=True),
)


@pytest.fixture
def report(monkeypatch) -> Report:
    EXPERIMENTS.names()
    experiment = Experiment("TOY", "Fig. 1", "a toy", lambda rng: {}, TABLES, draw, CLAIMS, scale="nothing")
    monkeypatch.setitem(EXPERIMENTS._factories, "toy", lambda: experiment)
    values = np.array([[1.0, 2.0], [1.5, np.nan], [2.0, 3.0]])
    return Report.of("toy", Results({"error": values}, seed=5, seconds=1.5, warnings=("odd (1 of 3 trials)",)), asked=3)
