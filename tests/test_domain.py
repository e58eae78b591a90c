"""Codings: which numbers and labels stand for the values of a variable."""

import gibbsian as gb


def test_a_pair_that_is_a_known_coding_is_that_coding():
    assert gb.domain.as_coding((-1, 1)).name == "spin"
    assert gb.domain.as_coding(("no", "yes")).name == "yes/no"
    assert gb.domain.as_coding((False, True)).name == "true/false"
    assert gb.domain.as_coding((0, 1)).name == "binary"
