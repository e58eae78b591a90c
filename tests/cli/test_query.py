"""Queries and divergences from the command line."""

from __future__ import annotations

import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused


def test_query(folder):
    machine = gb.load(folder / "model.gibbs")
    text = "P(a=yes, b | c=no)"
    told = answer("query", folder / "model.gibbs", text, "I(a; b | c)", "H()")
    assert told[text]["columns"] == ["b", "probability", "standard_error"]
    expected = machine.query(text).probability
    assert {label: value for label, value, _ in told[text]["values"]} == pytest.approx(expected.to_dict())
    assert told["I(a; b | c)"]["values"][0] == [machine.query("I(a; b | c)").mutual_information[0], 0.0]
    assert told["H()"]["values"][0][0] == pytest.approx(machine.entropy().value)
    shown = printed("query", folder / "model.gibbs", text)
    assert text in shown
    assert f"{expected['yes']:.6g}" in shown


def test_query_by_samples(folder):
    asked = "query", folder / "model.gibbs", "P(a)", "--method", "gibbs", "--samples", "4000", "--seed", "1"
    told = answer(*asked)
    exact = answer("query", folder / "model.gibbs", "P(a)", "--method", "exact")
    for (_, drawn, error), (_, value, none) in zip(told["P(a)"]["values"], exact["P(a)"]["values"], strict=True):
        assert 0 < abs(drawn - value) < 5 * error
        assert none == 0
    assert told == answer(*asked)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_query_writes_all_answers_as_one_table(folder, suffix):
    out = folder / f"found{suffix}"
    assert "5 numbers" in printed("query", folder / "model.gibbs", "P(a, b)", "H(a)", "--out", out)
    found = pd.read_csv(out) if suffix == ".csv" else pd.read_parquet(out)
    assert found.columns.tolist() == ["query", "at", "value", "standard_error"]
    assert found["at"][1] == "a=no, b=yes"
    assert found["value"][:4].astype(float).sum() == pytest.approx(1.0)


def test_divergence(folder):
    machine = gb.load(folder / "model.gibbs")
    other = gb.BoltzmannMachine(l2=0.1).fit(pd.read_csv(folder / "data.csv")[list(machine.names_)])
    other.save(folder / "other.gibbs")
    told = answer("divergence", folder / "model.gibbs", folder / "other.gibbs")["divergence"]["values"]
    assert [value for _, value, _ in told] == pytest.approx(list(map(float, machine.divergence(other))))
    assert "Jensen-Shannon" in printed("divergence", folder / "model.gibbs", folder / "other.gibbs")


def test_mistakes(folder):
    assert "column 'e' is not one of 'a', 'b', 'c', 'd'" in refused("query", folder / "model.gibbs", "P(e)")
    assert "use one of 'no', 'yes'" in refused("query", folder / "model.gibbs", "P(a=maybe)")
    assert "write it like P(a=1, b | c=0)" in refused("query", folder / "model.gibbs", "p(a)")
    refused("query", folder / "model.gibbs", code=2)
