"""A symptom checklist: identifiers, F/M, yes/no items and 0-4 items with holes, questions as names of columns."""

import re

import numpy as np
import pandas as pd

from walk_steps import in_a_shell, is_picture, typed_in

YES_NO = (
    "Has felt sad or empty most of the day, nearly every day",
    "Has lost interest in things that used to be enjoyed",
    "Has had trouble falling asleep or staying asleep",
    "Has felt tired without having done much",
)
LEVELS = (
    "How often were you bothered by worrying too much about different things?",
    "How often were you so restless that it was hard to sit still?",
    "How often did you feel afraid as if something awful might happen?",
    "How often did you become easily annoyed or irritable?",
)


def checklist(rng: np.random.Generator, n: int = 400) -> pd.DataFrame:
    """One trait behind all items; worry and restlessness share something more."""
    trait, unrest = rng.normal(size=(2, n, 1))
    own = rng.normal(size=(n, len(LEVELS))) + unrest * [1.5, 1.5, 0.0, 0.0]
    yes = trait + rng.logistic(size=(n, len(YES_NO))) > [-0.5, 0.0, 0.3, 0.6]
    table = pd.DataFrame({"id": [f"P{i:04d}" for i in range(n)], "sex": rng.choice(["F", "M"], n)})
    table[list(YES_NO)] = np.where(yes, "yes", "no")
    table[list(LEVELS)] = np.clip(np.round(1.7 + trait + own), 0, 4).astype(int)
    for name in (*YES_NO, *LEVELS):
        table[name] = table[name].astype("Int64" if name in LEVELS else object).mask(rng.random(n) < 0.03)
    return table


def test_a_symptom_checklist_becomes_a_network_with_intervals_and_a_report(tmp_path, rng):
    table = checklist(rng)
    table.to_csv(tmp_path / "symptoms.csv", index=False)

    said = in_a_shell(tmp_path, "gibbsian fit symptoms.csv")
    assert "an ordinal machine" in said
    assert "left out:    id" in said
    assert "the moments of the model agree with those of the data" in said
    assert "model written to symptoms.gibbs" in said
    assert "2 to 5 values" in typed_in(tmp_path, "gibbsian show symptoms.gibbs --picture network.png")
    assert is_picture(tmp_path / "network.png")

    intervals = typed_in(tmp_path, "gibbsian intervals symptoms.gibbs symptoms.csv --picture forest.svg")
    pair = next(line for line in intervals.splitlines() if LEVELS[0] in line and LEVELS[1] in line)
    assert float(pair.split()[-2]) > 0  # the two that share more than the trait, by the lower end of their interval
    assert len(re.findall("…", (tmp_path / "forest.svg").read_text())) > 10  # names by beginning and end

    typed_in(tmp_path, "gibbsian report symptoms.gibbs --data symptoms.csv --out report.html")
    page = (tmp_path / "report.html").read_text()
    assert all(name in page for name in (*YES_NO, *LEVELS))

    typed_in(tmp_path, "gibbsian unusual symptoms.gibbs symptoms.csv --top 5 --out unusual.csv")
    assert pd.read_csv(tmp_path / "unusual.csv")["id"].isin(table["id"]).sum() == 5

    typed_in(tmp_path, "gibbsian impute symptoms.gibbs symptoms.csv --out filled.csv")
    filled = pd.read_csv(tmp_path / "filled.csv", dtype=dict.fromkeys(LEVELS, "Int64"))
    assert list(filled) == list(table)
    assert not filled.isna().any().any()
    assert set(filled[YES_NO[0]]) == {"yes", "no"}
    for name in table:
        shown = table[name].notna()
        assert list(filled[name][shown]) == list(table[name][shown])
