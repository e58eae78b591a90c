"""Short runs of ``make crash``: what is killed loses nothing, and says one sentence where it can."""

import pytest

from crash import crashes


@pytest.mark.parametrize("part", ["fits", "saves", "full"])
def test_nothing_is_lost(part):
    assert list(crashes([part], 0.0, seed=0)) == [(part, [])]
