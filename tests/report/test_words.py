"""Odds in words against conditional probabilities of the model."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import gibbsian as gb
from estimator_samples import table
from gibbsian.report.subject import Subject
from gibbsian.report.words import in_words


def sentences(machine, data=None):
    """Return the sentences as plain text."""
    subject = Subject(*machine.report_parts(data, None), machine)
    items = re.findall("<li>(.*?)</li>", in_words(subject))
    return [re.sub("<[^>]*>", "", item) for item in items]


def odds(machine, of, given):
    """Return the odds that a column has its upper value."""
    low, high = machine.conditional(given, of).probability
    return high / low


def test_pairs_are_odds_ratios_in_either_coding(scores):
    ((low, high),) = scores(1).scores
    rows = table("pairwise", seed=3) * (high - low) + low
    machine = gb.BoltzmannMachine(l2=0.01, temperature=1.5).fit(rows)
    others = {"x0": low, "x1": high, "x2": low, "x3": low}
    said = sentences(machine)
    assert len(said) == 6
    for sentence in said:
        pattern = r"When (\w+) is (\S+), the odds that (\w+) is (\S+) are (\S+) times those when \w+ is (\S+), all.*"
        one, on, last, value, factor, off = re.fullmatch(pattern, sentence).groups()
        rest = {name: other for name, other in others.items() if name not in (one, last)}
        ratio = odds(machine, last, {**rest, one: int(on)}) / odds(machine, last, {**rest, one: int(off)})
        assert float(factor) == pytest.approx(ratio if int(value) == high else 1 / ratio, rel=6e-3)
        assert float(factor) >= 1


def test_triples_are_ratios_of_odds_ratios(scores):
    ((low, high),) = scores(1).scores
    rows = table("pairwise", seed=4, n_columns=3) * (high - low) + low
    machine = gb.HigherOrderBoltzmannMachine(order=3, l2=0.01).fit(rows)
    assert not any("all else equal" in sentence for sentence in sentences(machine))

    def odds_ratio(z):
        return odds(machine, "x1", {"x0": high, "x2": z}) / odds(machine, "x1", {"x0": low, "x2": z})

    (sentence,) = [one for one in sentences(machine) if one.startswith("The odds ratio")]
    factor, when = re.search(r"is (\S+) times as large when x2 is (\S+) as", sentence).groups()
    ratio = odds_ratio(high) / odds_ratio(low)
    assert float(factor) == pytest.approx(ratio if int(when) == high else 1 / ratio, rel=6e-3)


def test_intervals_of_odds_are_those_of_the_parameters():
    rows = table("pairwise", seed=3)
    machine = gb.BoltzmannMachine(l2=0.01).fit(rows)
    limits = gb.uncertainty.confidence_intervals(machine, rows)
    name = machine.strongest_couplings(1).iloc[0]
    ends = [table.loc[name["first"], name["second"]] for table in (limits.couplings_low, limits.couplings_high)]
    low, high = re.search(r"95% interval (\S+) to ([\d.]+)", sentences(machine, rows)[0]).groups()
    expected = sorted(np.exp(np.sign(name["coupling"]) * np.array(ends)))
    assert [float(low), float(high.rstrip("."))] == pytest.approx(expected, rel=6e-3)


def test_categories_are_compared_with_the_average_over_both_columns():
    rows = table("potts", seed=1)
    machine = gb.PottsMachine(l2=0.05, temperature=2.0).fit(rows)
    for sentence in sentences(machine):
        pattern = r"(\w+) = (\S+) with (\w+) = (\S+) is (\S+) times (more|less) likely, all else equal\."
        i, a, j, b, factor, more = re.fullmatch(pattern, sentence).groups()
        coupling = machine.couplings_.loc[(i, float(a)), (j, float(b))] / 2.0
        assert (coupling > 0) == (more == "more")
        assert float(factor) == pytest.approx(np.exp(abs(coupling)), rel=6e-3)


def test_numbers_are_partial_correlations():
    rows = table("gaussian")
    machine = gb.GaussianMachine().fit(rows)
    found = machine.partial_correlations_
    for sentence in sentences(machine):
        one, other, how, size = re.search(
            r"When (\w+) rises, (\w+) (rises|falls), .* correlation (\S+)\.", sentence
        ).groups()
        assert float(size) == pytest.approx(found.loc[one, other], rel=6e-3)
        assert (found.loc[one, other] > 0) == (how == "rises")


def test_every_pair_of_a_small_machine_is_said_once():
    machine = gb.BoltzmannMachine(l2=0.01).fit(table("pairwise"))
    pairs = {frozenset(re.search(r"When (\w+) is .* odds that (\w+) is", one).groups()) for one in sentences(machine)}
    assert pairs == {frozenset(pair) for pair in itertools.combinations(machine.names_, 2)}
