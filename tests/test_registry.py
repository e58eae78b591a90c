"""Parts that go by a name: what they do not take is named with what they take."""

import pkgutil
import threading

import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.registry import Registry


def test_unknown_settings_are_named_with_the_known_ones():
    with pytest.raises(ArgumentError, match="learner='smci' has no setting regions: it takes l1, l2, log_prior"):
        gb.learners.as_learner("smci", regions=2)
    with pytest.raises(ArgumentError, match=r"no setting burn: it takes .*burn_in"):
        gb.expectations.EXPECTATIONS.create("s2-smci", burn=2)
    with pytest.raises(ArgumentError, match="sampler='gibbs' has no setting size: it takes none"):
        gb.samplers.SAMPLERS.create("gibbs", size=2)


def test_a_thread_that_asks_while_another_reads_the_sources_gets_all_names(monkeypatch):
    registry, reading, go_on = (
        Registry("learner", "gibbsian.learners", "LEARNERS"),
        threading.Event(),
        threading.Event(),
    )
    read = pkgutil.get_data

    def slow_at_first(package, resource):
        if not reading.is_set():
            reading.set()
            go_on.wait(20)
        return read(package, resource)

    monkeypatch.setattr(pkgutil, "get_data", slow_at_first)
    first = threading.Thread(target=registry.names)
    first.start()
    try:
        assert reading.wait(20)
        assert registry.names() == gb.learners.LEARNERS.names()
    finally:
        go_on.set()
        first.join()
