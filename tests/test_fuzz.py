"""Short runs of ``make fuzz``, and Hypothesis on the same choices, which finds the smallest case itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz import Call, any_call, any_line, ending, found_wrong, fuzz, picker, smallest


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1")


def test_a_short_run_finds_nothing():
    for case in range(40):
        call = any_call(picker(np.random.default_rng([7, case])))
        assert ending(call) in ("refused", "answered"), call


def test_a_short_run_of_command_lines_finds_nothing():
    ((_, counts, wrong),) = fuzz(1.0, seed=7, parts=("lines",))
    assert wrong == []
    assert counts["refused"] > 0


@settings(max_examples=15)
@given(st.data())
def test_hypothesis_finds_nothing(data):
    call = any_call(lambda things: things[data.draw(st.integers(0, len(things) - 1))])
    assert ending(call) in ("refused", "answered")


def test_cases_follow_from_the_seed():
    assert repr(any_call(picker(np.random.default_rng([3, 5])))) == repr(
        any_call(picker(np.random.default_rng([3, 5])))
    )


def test_what_is_wrong_is_found_and_made_small(monkeypatch):
    def broken(self):
        if ("l2", 0.5) in self.settings:
            raise KeyError("broken")
        return 1.0

    monkeypatch.setattr(Call, "run", broken)
    call = Call("pairwise", "hole", (("max_iter", 3), ("l2", 0.5)), "impute", "words")
    assert smallest(call, ending(call)) == Call("pairwise", settings=(("l2", 0.5),))
    counts, wrong = found_wrong(lambda pick: call, 0, 0.01)
    assert counts["wrong"] > 0
    assert len(wrong) == 1


def test_command_lines_are_chosen(tmp_path):
    assert any_line(picker(np.random.default_rng(0)), tmp_path).folder == tmp_path
