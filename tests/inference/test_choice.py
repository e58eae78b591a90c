"""The choice between the engines, and conditioning."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.inference import Cost, Elimination, Enumeration, ExactAnswers, conditional, exact, predict_cost
from systems import BINARY, ask


def zeros(graph):
    return gb.Model.zeros(gb.PairwiseFamily(graph))


@pytest.mark.parametrize(
    ("graph", "engine"),
    [
        (gb.graphs.complete(20), Enumeration),
        (gb.graphs.complete(3), Enumeration),
        (gb.graphs.grid(12, 12), Elimination),
        (gb.graphs.grid(1, 5000), Elimination),
        (gb.graphs.grid(5, 5), Elimination),
        (gb.graphs.from_edges([], 200), Elimination),
    ],
    ids=str,
)
def test_the_cheaper_engine_is_chosen(graph, engine):
    chosen = exact(zeros(graph))
    assert isinstance(chosen.engine, engine)
    assert isinstance(chosen, ExactAnswers)
    assert chosen.engine.cost == predict_cost(zeros(graph).family)
    assert chosen.log_partition == pytest.approx(graph.n_nodes * np.log(2), rel=1e-12)


def test_refusal_says_what_both_would_cost():
    message = (
        r"exact inference on 60 variables would take at least .* s and .* GiB by elimination \(treewidth 35 or more\),"
        r" or about 3\.5e\+09 s and 2e\+08 GiB by enumeration, but max_seconds=60 .*: use sampling"
    )
    with pytest.raises(TooExpensiveError, match=message):
        exact(zeros(gb.graphs.complete(60)))
    with pytest.raises(TooExpensiveError, match=r"2000 variables would take at least \d"):
        exact(zeros(gb.graphs.complete(2000)))


def test_limits_are_kept(monkeypatch):
    grid = zeros(gb.graphs.grid(16, 16))
    with pytest.raises(TooExpensiveError, match=r"treewidth 16.*max_seconds=0\.01"):
        exact(grid, max_seconds=0.01)
    with pytest.raises(ArgumentError, match="max_seconds=0 must be"):
        exact(grid, max_seconds=0)
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.01")
    with pytest.raises(TooExpensiveError, match="MiB may be used"):
        exact(grid)


def test_cost_reads_well():
    assert Cost("enumeration", 3e8, 2.0**70).describe() == "about 3e+08 s and 1e+12 GiB by enumeration"
    bound = Cost("elimination", 1e3, 2.0**38, treewidth=35, lower_bound=True)
    assert bound.describe() == "at least 1e+03 s and 256.0 GiB by elimination (treewidth 35 or more)"


@pytest.mark.parametrize("engine", [Enumeration, Elimination])
def test_conditional_is_the_ratio_of_marginals(engine):
    rng = np.random.default_rng(2)
    graph = gb.graphs.grid(3, 4)
    model = gb.PairwiseFamily.model(graph, rng.normal(size=12), rng.normal(size=17), BINARY)
    rest, constant = conditional(model, [7, 2], [1, 0])
    joint = ask(engine, model).marginal([7, 2, 5])[1, 0]
    np.testing.assert_allclose(rest.marginal([4]), joint / joint.sum(), atol=1e-12)  # node 5 is the fourth of the rest
    evidence = rest.log_partition + constant - ask(engine, model).log_partition
    assert evidence == pytest.approx(np.log(joint.sum()), abs=1e-12)


def test_conditional_checks_its_arguments():
    model = zeros(gb.graphs.complete(3))
    with pytest.raises(ArgumentError, match="codes gives -1 to variable 1: its codes are 0 to 1"):
        conditional(model, [1], [-1])
    with pytest.raises(ArgumentError, match="give one for each of 2 nodes"):
        conditional(model, [0, 1], [1])
    with pytest.raises(ArgumentError, match="leave at least one free"):
        conditional(model, [0, 1, 2], [1, 1, 1])
