"""Parts that go by a name: what they do not take is named with what they take."""

import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError


def test_unknown_settings_are_named_with_the_known_ones():
    with pytest.raises(ArgumentError, match="learner='smci' has no setting regions: it takes l1, l2, log_prior"):
        gb.learners.as_learner("smci", regions=2)
    with pytest.raises(ArgumentError, match=r"no setting burn: it takes .*burn_in"):
        gb.expectations.EXPECTATIONS.create("s2-smci", burn=2)
    with pytest.raises(ArgumentError, match="sampler='gibbs' has no setting size: it takes none"):
        gb.samplers.SAMPLERS.create("gibbs", size=2)
