"""``gibbsian report``."""

from __future__ import annotations

import hashlib

import pytest

from cli_runner import answer, printed, refused
from report_pages import read_page

pytestmark = pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")


def test_from_a_table_to_a_page(folder):
    out = folder / "report.html"
    said = answer(
        "report", folder / "data.csv", "-o", out, "--drop", "id", "--drop", "w", "--learner", "mle", "--seed", 3
    )
    assert said["report"] == str(out)
    assert said["converged"]
    page = read_page(out)
    assert {"fit", "held-out", "triplets", "network", "words", "imputation", "origin"} <= set(page.sections)
    assert hashlib.sha256((folder / "data.csv").read_bytes()).hexdigest() in page.sections["origin"]
    assert "yes" in page.sections["words"]


def test_from_a_model_with_rows_and_without(folder):
    out = folder / "report.html"
    assert printed("report", folder / "model.gibbs", "-o", out) == f"report written to {out}\n"
    assert "imputation" not in read_page(out).sections
    assert printed("report", folder / "model.gibbs", "--data", folder / "data.csv", "-o", out, "-q") == ""
    page = read_page(out)
    assert "imputation" in page.sections
    assert "95% interval" in page.sections["words"]


def test_what_does_not_belong_is_refused(folder):
    out = folder / "report.html"
    assert "leave it out" in refused("report", folder / "model.gibbs", "-o", out, "--l2", 0.1)
    assert "leave --data out" in refused("report", folder / "data.csv", "--data", folder / "model.gibbs", "-o", out)
    assert ".html" in refused("report", folder / "model.gibbs", "-o", folder / "report.txt")
    assert not out.exists()
