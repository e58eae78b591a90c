"""Parts that go by a name: what they do not take is named with what they take."""

import threading
from pathlib import Path

import pytest

import gibbsian as gb
from gibbsian.answers.about import ANSWERS
from gibbsian.data.findings import CHECKS
from gibbsian.errors import ArgumentError
from gibbsian.expectations.exact import EXACT_ROWS
from gibbsian.registry import Registry
from gibbsian.sampling.base import SWEEPS
from gibbsian.sampling.codes import potential_kernel
from gibbsian.sampling.spins import spin_kernel


def test_unknown_settings_are_named_with_the_known_ones():
    with pytest.raises(ArgumentError, match="learner='smci' has no setting regions: it takes l1, l2, log_prior"):
        gb.learning.as_learner("smci", regions=2)
    with pytest.raises(ArgumentError, match=r"no setting burn: it takes .*burn_in"):
        gb.expectations.EXPECTATIONS.create("s2-smci", burn=2)
    with pytest.raises(ArgumentError, match="transition='gibbs' has no setting size: it takes none"):
        gb.sampling.TRANSITIONS.create("gibbs", size=2)


def test_a_thread_that_asks_while_another_reads_the_sources_gets_all_names(monkeypatch):
    registry, reading, go_on = (
        Registry("learner", "gibbsian.learning", "LEARNERS"),
        threading.Event(),
        threading.Event(),
    )
    read = Path.read_text

    def slow_at_first(path, **how):
        if not reading.is_set():
            reading.set()
            go_on.wait(20)
        return read(path, **how)

    monkeypatch.setattr(Path, "read_text", slow_at_first)
    first = threading.Thread(target=registry.names)
    first.start()
    try:
        assert reading.wait(20)
        assert registry.names() == gb.learning.LEARNERS.names()
    finally:
        go_on.set()
        first.join()


def test_parts_are_found_in_folders_at_any_depth(tmp_path, monkeypatch):
    deep = tmp_path / "shelf" / "upper" / "left"
    deep.mkdir(parents=True)
    for folder in (deep, deep.parent, deep.parent.parent):
        (folder / "__init__.py").write_text("")
    (tmp_path / "shelf" / "base.py").write_text(
        'from gibbsian.registry import Registry\n\nBOOKS = Registry("book", "shelf", "BOOKS")\n'
    )
    (deep / "novels.py").write_text(
        'from shelf.base import BOOKS\n\n\n@BOOKS.register("novel", about="long")\nclass Novel:\n    pass\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    from shelf.base import BOOKS

    assert BOOKS.abouts() == {"novel": "long"}
    assert type(BOOKS.create("novel")).__module__ == "shelf.upper.left.novels"


def test_who_serves_a_family_is_found_along_its_bases():
    class Own(gb.PairwiseFamily):
        pass

    graph = gb.graphs.complete(2)
    assert SWEEPS.of(Own(graph)) is spin_kernel
    assert SWEEPS.of(gb.PotentialsFamily.ordinal(graph, gb.Variables.spins(2))) is potential_kernel
    with pytest.raises(ArgumentError, match="model is a list, for which there is no Gibbs sampler"):
        SWEEPS.of([])


def test_registries_of_who_serves_name_families_and_their_bases_alone():
    kinds = {base for name in gb.models.FAMILIES for base in gb.models.FAMILIES.factory(name).__mro__}
    names = {vars(kind).get("registered_name") for kind in kinds}
    for registry in (ANSWERS, CHECKS, SWEEPS, EXACT_ROWS):
        assert set(registry) <= names, registry.kind
