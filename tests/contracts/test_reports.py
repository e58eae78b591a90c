"""The contract of reports: every estimator writes one, with rows and without, that a browser can read."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

import gibbsian as gb
from estimator_samples import small, table
from gibbsian.estimators import ESTIMATORS
from gibbsian.report import SECTIONS
from report_pages import read_page

pytestmark = pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
OF_ALL = {"fit", "network", "origin"}
OF_ROWS = {"held-out", "triplets", "imputation"}


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_every_estimator_writes_a_report(name, tmp_path):
    machine, path = small(name).fit(table(name)), tmp_path / "report.html"
    machine.report(path, table(name))
    page = read_page(path)
    expected = OF_ALL | OF_ROWS | ({"unusual"} if hasattr(machine, "unusual") else set())
    assert expected <= set(page.sections)
    assert not [number for _, part in page.elements for number in part.values() if number in ("nan", "inf")]
    assert not re.search(r"\b(nan|None)\b", page.sections["network"])
    assert len({part["id"] for _, part in page.elements if "id" in part}) == sum(
        "id" in part for _, part in page.elements
    )
    if ESTIMATORS.trait(name, "missing") is not False:
        assert "Left out" not in page.source


@pytest.mark.parametrize("name", ESTIMATORS.names())
def test_a_model_from_a_file_says_what_needs_rows(name, tmp_path):
    small(name).fit(table(name)).save(tmp_path / "m.gibbs")
    gb.load(tmp_path / "m.gibbs").report(tmp_path / "report.html")
    page = read_page(tmp_path / "report.html")
    assert set(page.sections) >= OF_ALL
    assert not OF_ROWS & set(page.sections)
    sentence = page.source.split("Left out, because the report was written without rows: ")[1].split(".</p>")[0]
    assert len(sentence.split(", ")) >= len(OF_ROWS)


@pytest.mark.parametrize("machine", [None, "pairwise"])
def test_classifiers_write_one_too(machine, tmp_path):
    X = table("pairwise")
    y = np.where(X[:, 0] == X[:, 1], "same", "other")
    classifier = gb.GibbsClassifier(machine, l2=0.1).fit(X, y)
    classifier.report(tmp_path / "report.html", X, y)
    page = read_page(tmp_path / "report.html")
    folds = KFold(5, shuffle=True, random_state=0)
    said = cross_val_predict(clone(classifier), X, y, cv=folds)
    assert f"label 0{(said == y).mean():.3g}" in page.sections["labels"]
    assert ("network" in page.sections) == (machine is not None)


def test_sections_stand_in_files_that_say_where_they_belong():
    places = [SECTIONS.trait(name, "place") for name in SECTIONS.names()]
    assert len(set(places)) == len(places) >= 14
    assert all(SECTIONS.trait(name, "title") for name in SECTIONS.names())
