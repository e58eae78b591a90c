"""The page of the papers' remarks names what is there, and every experiment stands on it."""

from __future__ import annotations

import pytest

from gibbsian.errors import ArgumentError
from gibbsian_reproduction.experiment import EXPERIMENTS
from papers_page import PAGE, page, remarks, resolve
from papers_page import test_exists as is_a_test

REMARKS = {f"{remark.paper} {remark.place} {remark.what}": remark for remark in remarks()}


@pytest.mark.parametrize("remark", REMARKS.values(), ids=REMARKS)
def test_names_tests_and_experiments_exist(remark):
    for name in remark.names:
        resolve(name)
    assert all(map(is_a_test, remark.tests)), remark.tests
    assert set(remark.experiments) <= set(EXPERIMENTS)
    assert remark.why_not or (remark.names and (remark.tests or remark.experiments))


def test_every_experiment_stands_on_the_page():
    assert set(EXPERIMENTS) == {name for remark in REMARKS.values() for name in remark.experiments}


def test_a_name_that_is_not_there_is_noticed():
    for name in ("learner:none", "PairwiseFamily.none", "none"):
        with pytest.raises((AttributeError, KeyError, ArgumentError)):
            resolve(name)
    assert not is_a_test("test_papers_page.py::none")


def test_the_page_is_that_of_the_list():
    assert PAGE.read_text() == page(), "run `make papers`"
