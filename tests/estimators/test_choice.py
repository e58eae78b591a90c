"""Which model a table gets when nothing is said of it."""

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from gibbsian.data import Ordinal, Threshold
from gibbsian.errors import ArgumentError, DataError
from gibbsian.estimators import choose_model

RNG = np.random.default_rng(3)
N = 60
COLUMNS = {
    "id": np.arange(N),
    "sex": RNG.choice(["F", "M"], N),
    "smokes": RNG.choice(["yes", "no"], N),
    "ill": RNG.integers(0, 2, N),
    "mood": RNG.integers(0, 5, N),
    "hair": RNG.choice(["red", "brown", "blond"], N),
    "size": pd.Categorical(RNG.choice(["s", "m", "l"], N), ["s", "m", "l"], ordered=True),
    "age": RNG.integers(20, 80, N),
    "weight": RNG.normal(70, 9, N),
}


def table(*names):
    return pd.DataFrame({name: COLUMNS[name] for name in names})


@pytest.mark.parametrize(
    ("names", "coding", "model", "why"),
    [
        (("id", "sex", "smokes", "ill"), None, "pairwise", "two values in every column"),
        (("sex", "smokes", "mood"), None, "ordinal", "ordered levels ('mood') beside two values"),
        (("sex", "size", "mood"), None, "ordinal", "ordered levels ('size' and 1 more) beside two values"),
        (("id", "mood"), None, "ordinal", "ordered levels ('mood')"),
        (("sex", "age"), None, "ordinal", "ordered levels ('age') beside two values"),
        (("sex", "hair", "mood"), None, "potts", "words or labels without an order ('hair')"),
        (("ill", "weight", "age"), None, "gaussian", "real numbers ('weight' and 1 more)"),
        (("sex", "mood"), {"mood": Threshold(2)}, "pairwise", "two values in every column"),
        (("sex", "hair"), {"hair": Ordinal(["blond", "brown", "red"])}, "ordinal", "ordered levels"),
        (("sex", "hair"), {"hair": "drop"}, "pairwise", "two values"),
        (("sex", "mood"), {"mood": "categorical"}, "potts", "without an order ('mood')"),
        (("sex", "ill"), "categorical", "potts", "declared to be categories"),
        (("ill", "mood"), Threshold(0.5), "pairwise", "declared to have two values"),
        (("ill", "mood"), "ordinal", "ordinal", "declared to be ordered"),
        (("ill", "mood"), "real", "gaussian", "declared to be real numbers"),
    ],
)
def test_the_model_follows_from_the_columns(names, coding, model, why):
    choice = choose_model(table(*names), coding)
    assert choice.name == model
    assert why in choice.reason


def test_numbers_beside_words_are_refused_and_the_remedies_work():
    frame = table("sex", "ill", "weight")
    with pytest.raises(DataError, match=r"'weight' holds real numbers and 'sex' does not.*Threshold\(t\)"):
        choose_model(frame)
    assert choose_model(frame, {"weight": Threshold(70)}).name == "pairwise"
    assert choose_model(frame, drop=["weight"]).name == "pairwise"


@pytest.mark.filterwarnings("ignore::gibbsian.errors.IdentifierWarning")
@pytest.mark.parametrize("form", ["pandas", "csv", "numpy"])
def test_fit_needs_no_more_than_the_table(form, tmp_path):
    frame = table("id", "sex", "smokes", "mood")
    frame.to_csv(tmp_path / "t.csv", index=False)
    source = {"pandas": frame, "csv": tmp_path / "t.csv", "numpy": frame.to_numpy(dtype=object)}[form]
    machine = gb.fit(source, l2=0.1)
    assert isinstance(machine, gb.OrdinalMachine)
    assert machine.result_.provenance["chosen"].endswith("beside two values: an ordinal machine")
    assert len(machine.names_) == 3
    assert machine.score(source) == pytest.approx(gb.OrdinalMachine(l2=0.1).fit(frame).score(frame))
    machine.save(tmp_path / "m.gibbs")
    assert gb.load(tmp_path / "m.gibbs").score(source) == machine.score(source)


def test_fit_takes_settings_weights_and_codings():
    frame = table("sex", "smokes", "hair").assign(w=np.where(COLUMNS["ill"] == 1, 2.0, 1.0))
    machine = gb.fit(frame, coding={"sex": ["M", "F"]}, drop="hair", weights="w", learner="mple")
    assert machine.coding_.labels == (("M", "F"), ("no", "yes"))
    assert machine.result_.provenance["learner"] == "mple"
    again = gb.BoltzmannMachine(learner="mple", coding={"sex": ["M", "F"]}).fit(
        frame[["sex", "smokes"]], sample_weight=frame["w"]
    )
    np.testing.assert_allclose(machine.model_.theta, again.model_.theta)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.IdentifierWarning")
def test_numbers_with_an_identifier():
    frame = table("id", "age", "weight")
    machine = gb.fit(frame)
    assert (type(machine).__name__, machine.names_, machine.dropped_) == ("GaussianMachine", ("age", "weight"), ("id",))
    assert machine.score(frame) == machine.score(frame[["age", "weight"]])


@pytest.mark.parametrize(
    ("names", "coding", "model"),
    [
        (("sex", "smokes"), "auto", "BoltzmannMachine"),
        (("ill",), "spin", "BoltzmannMachine"),
        (("hair", "sex"), "categorical", "PottsMachine"),
        (("mood", "ill"), "ordinal", "OrdinalMachine"),
        (("age", "weight"), "real", "GaussianMachine"),
    ],
)
def test_data_that_have_been_read_say_what_they_hold(names, coding, model):
    data = gb.Dataset.read(table(*names), coding="auto" if coding == "spin" else coding)
    data = data.convert("spin") if coding == "spin" else data
    machine = gb.fit(data, **({} if coding == "real" else {"l2": 0.1}))
    assert type(machine).__name__ == model
    assert machine.coding_ == data.coding
    assert "were declared to" in machine.result_.provenance["chosen"]
    with pytest.raises(ArgumentError, match="drop='sex' is for tables"):
        gb.fit(data, drop="sex")


def test_a_stream_is_learned_by_the_model_that_suits_it(tmp_path):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).integers(0, 2, (500, 3)))
    assert isinstance(gb.fit(gb.data.DataStream.open(tmp_path / "rows.npy"), random_state=0), gb.BoltzmannMachine)
