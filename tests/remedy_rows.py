"""Situations with a remedy: what users of estimators and of the command line run into."""

from __future__ import annotations

import contextlib
import sys
import warnings
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import gibbsian as gb
from cli_runner import run
from gibbsian.backends.device import on_device, require_card_memory
from gibbsian.data import DataStream, Labels, OneHot, Threshold, Values
from gibbsian.models.variables import require_two_values
from remedies import OUT, SOURCE, Command, Later, Refused, Row, Warned

RNG = np.random.default_rng(0)
BITS = pd.DataFrame(RNG.integers(0, 2, (40, 3)), columns=list("abc"))
HOLES = BITS.astype(float).mask(RNG.random(BITS.shape) < 0.15)
CATEGORIES = pd.DataFrame(RNG.choice(["low", "mid", "top"], (60, 3)), columns=list("abc"))
NUMBERS = pd.DataFrame(RNG.normal(size=(50, 3)), columns=list("abc"))
CONSTANT = BITS.assign(c=1)
TWINS = BITS.assign(c=BITS["a"])
DISJOINT = BITS.astype(float).assign(
    a=np.where(np.arange(40) < 20, BITS["a"], np.nan), b=np.where(np.arange(40) < 20, np.nan, BITS["b"])
)
IMPLIED = pd.DataFrame({"a": [0, 0, 1, 1, 1] * 8, "b": [0, 1, 1, 1, 1] * 8, "c": [0, 1] * 20})


# -- calls ------------------------------------------------------------------------------------------------------------
def read(rows, complete=False, **how):
    data = gb.Dataset.read(rows, **how)
    return data.complete_rows() if complete else data


def many(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows so often that `l2="auto"` finds no penalty needed."""
    return pd.concat([rows] * 20, ignore_index=True)


def fit(rows=BITS, model=gb.BoltzmannMachine, drop=(), complete=False, convert=None, **settings):
    if drop or complete or convert:
        rows = read(rows, complete, drop=drop, **({"coding": settings.pop("coding")} if "coding" in settings else {}))
    return model(**settings).fit(rows if convert is None else rows.convert(convert))


def on_fake_card(device, n_cards, has_torch=True, n_bytes=1.0, fills=False):
    """Take memory on a machine with so many cards, or without PyTorch."""
    cuda = SimpleNamespace(
        is_available=lambda: bool(n_cards),
        device_count=lambda: n_cards,
        mem_get_info=lambda place: (2**30, 2**30),
        memory_stats=lambda place: {},
    )
    backends = SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False)))
    torch = SimpleNamespace(
        cuda=cuda, version=SimpleNamespace(cuda=None), backends=backends, OutOfMemoryError=MemoryError
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", torch if has_torch else None)
        with on_device(device) as found:
            require_card_memory(n_bytes, "a table", "take less")
            if fills and found is not None:
                raise MemoryError


def potts(**settings):
    return fit(**{"rows": CATEGORIES, "model": gb.PottsMachine, "l2": 0.01, **settings})


def rbm(rows=BITS, **settings):
    return gb.RestrictedBoltzmannMachine(**{"n_components": 2, "max_iter": 2, "random_state": 0, **settings}).fit(rows)


@cache
def fitted(kind="pairwise"):
    makers = {
        "pairwise": lambda: gb.BoltzmannMachine(l2=0.01, random_state=0).fit(BITS),
        "chain": lambda: gb.BoltzmannMachine("chain", learner="mple", l2=0.01, random_state=0).fit(
            np.random.default_rng(1).integers(0, 2, (80, 30))
        ),
        "dense": lambda: gb.BoltzmannMachine(learner="mple", l2=0.01, max_iter=3, random_state=0).fit(
            np.random.default_rng(1).integers(0, 2, (80, 60))
        ),
        "potts": potts,
        "rbm": rbm,
        "gaussian": lambda: gb.GaussianMachine().fit(NUMBERS),
        "mixture": lambda: gb.GaussianMixture(2, random_state=0).fit(NUMBERS),
    }
    return makers[kind]()


def ask(question, kind="pairwise", **how):
    return getattr(fitted(kind), question)(**how)


def learner(name, **settings):
    return gb.learning.LEARNERS.create(name, **settings)


# -- reading ----------------------------------------------------------------------------------------------------------
READING = [
    Row(
        "a folder",
        read,
        {"rows": SOURCE},
        ({"rows": SOURCE / "datasets" / "house_votes_84.csv", "coding": "categorical"},),
        "one of the files",
    ),
    Row("no such file", read, {"rows": "absent.csv"}, ({"rows": BITS},), "check the path"),
    Row(
        "text in a column",
        read,
        {"rows": BITS.assign(d=list("pqrs") * 10)},
        code={"low": "p", "high": "q"},
        but=("coding",),
    ),
    Row(
        "a column with three numbers",
        read,
        {"rows": BITS.assign(d=np.arange(40) % 3)},
        ({"rows": (np.arange(120) % 3).reshape(40, 3), "coding": Threshold(1)},),
        "Threshold",
    ),
    Row(
        "columns to drop from data that have been read",
        lambda rows, drop: gb.fit(rows, drop=drop),
        {"rows": Later(lambda: gb.Dataset.read(BITS)), "drop": "a"},
        ({"rows": Later(lambda: gb.Dataset.read(BITS, drop="a")), "drop": ()},),
        "give it to `Dataset.read`",
    ),
    Row(
        "a level of its own",
        fit,
        {"rows": Later(lambda: read(CATEGORIES.assign(c="x"), coding="categorical")), "model": gb.OrdinalMachine},
        ({"rows": Later(lambda: read(CATEGORIES.assign(c="x"), coding="categorical", drop="c"))},),
        "drop it",
    ),
    Row(
        "a rare value",
        potts,
        {
            "rows": CATEGORIES.assign(a=np.where(np.arange(60) < 2, "rare", CATEGORIES["a"])),
            "l2": 0.0,
            "graph": "empty",
        },
        ({"rows": CATEGORIES},),
        "one over the number of rows",
    ),
    Row("infinity", read, {"rows": BITS.assign(c=np.where(np.arange(40) == 3, np.inf, BITS["c"]))}),
    Row("words where numbers are declared", read, {"rows": CATEGORIES, "coding": "values"}),
    Row(
        "an undeclared value",
        read,
        {"rows": CATEGORIES, "coding": Labels(["low", "mid"])},
        ({"coding": Labels(["low", "mid", "top"])},),
        "declare it too",
    ),
    Row(
        "a missing mark declared as a value",
        read,
        {"rows": CATEGORIES, "coding": Labels(["low", "mid", "top", "?"])},
        ({"coding": Labels(["low", "mid", "top"])},),
        "leave it out",
    ),
    Row("too many numbers", read, {"rows": NUMBERS, "coding": "values"}, ({"rows": NUMBERS.round()},), "round them"),
    Row(
        "too many labels",
        read,
        {
            "rows": pd.DataFrame({"id": [f"m{k // 2}" for k in range(2000)], "x": list("ab") * 1000}),
            "coding": "categorical",
        },
        ({"drop": ["id"]},),
        "drop=['id']",
    ),
    Row(
        "an empty column",
        read,
        {"rows": CATEGORIES.assign(d=None), "coding": "categorical"},
        ({"drop": ["d"]},),
        "drop=['d']",
    ),
    Row("all columns dropped", read, {"rows": BITS, "drop": list("abc")}, ({"drop": ["a"]},), "drop fewer"),
    Row(
        "a name twice",
        read,
        {"rows": pd.DataFrame(BITS.to_numpy(), columns=["a", "a", "b"])},
        ({"rows": BITS},),
        "its own name",
    ),
    Row("complex numbers", read, {"rows": np.ones((2, 2)) * 1j}, ({"rows": BITS},), "real numbers"),
    Row("complex numbers in a frame", read, {"rows": BITS * 1j}, ({"rows": BITS},), says="complex numbers"),
    Row("three dimensions", read, {"rows": np.zeros((2, 2, 2))}, ({"rows": BITS},), "one row per state"),
    Row("ragged lists", read, {"rows": [[1, 0], [1]]}, ({"rows": [[1, 0], [1, 1]]},), "the same columns"),
    Row(
        "two weights",
        read,
        {"rows": BITS.assign(w=1.0), "weight_column": "w", "sample_weight": np.ones(40)},
        ({"sample_weight": OUT}, {"weight_column": OUT, "drop": ["w"]}),
        "one of them",
    ),
    Row(
        "weights that are all zero",
        read,
        {"rows": BITS, "sample_weight": np.zeros(40)},
        ({"sample_weight": np.arange(40.0)},),
        "a positive weight",
    ),
    Row(
        "a negative weight",
        read,
        {"rows": BITS, "sample_weight": np.arange(40.0) - 1},
        ({"sample_weight": np.arange(40.0)},),
        "weights must be",
    ),
    Row(
        "weights beyond the largest number",
        read,
        {"rows": BITS, "sample_weight": np.full(40, 1e308)},
        ({"sample_weight": np.full(40, 1e300)},),
        "divide all weights",
    ),
    Row(
        "weights of a wrong shape",
        read,
        {"rows": BITS, "sample_weight": np.ones((40, 2))},
        ({"sample_weight": np.ones(40)},),
        says="has shape (40, 2)",
    ),
    Row("an unknown coding", read, {"rows": BITS, "coding": "binray"}, but=("spin", "yes/no", "y/n", "true/false")),
    Row("a label that is missing", read, {"rows": BITS, "coding": ("?", 1)}, ({"coding": (0, 1)},), "choose another"),
    Row(
        "no hole-free row",
        lambda rows: read(rows, True),
        {
            "rows": BITS.astype(float).assign(
                c=np.where(np.arange(40) % 2, np.nan, 1.0), b=np.where(np.arange(40) % 2, 0.0, np.nan)
            )
        },
        ({"rows": BITS},),
        "drop the columns",
    ),
    Row(
        "a Dataset read again",
        read,
        {"rows": gb.Dataset.read(BITS), "drop": ["a"]},
        ({"drop": OUT},),
        "a Dataset already",
    ),
    Row(
        "a Dataset in another coding",
        read,
        {"rows": gb.Dataset.read(BITS), "coding": "spin"},
        ({"rows": gb.Dataset.read(BITS).convert("spin")},),
        "Dataset.convert",
    ),
    Row(
        "no rows chosen",
        lambda rows, chosen: gb.Dataset.read(rows).take(chosen),
        {"rows": BITS, "chosen": np.array([], int)},
        ({"chosen": [0, 2]},),
        "1 or more",
    ),
    Row(
        "an empty part",
        lambda rows, share: gb.Dataset.read(rows).split(share, 0),
        {"rows": BITS.head(1), "share": 0.5},
        ({"rows": BITS},),
        "more rows",
    ),
    Row(
        "one-hot without the separator",
        read,
        {"rows": BITS, "coding": OneHot("_")},
        ({"rows": pd.DataFrame({"h_r": [0, 1], "h_g": [1, 0], "e_x": [1, 0], "e_y": [0, 1]})},),
        "the separator",
    ),
    Row(
        "one-hot with two ones",
        read,
        {"rows": pd.DataFrame({"h_r": [1, 1], "h_g": [1, 0]}), "coding": OneHot("_")},
        ({"rows": pd.DataFrame({"h_r": [0, 1], "h_g": [1, 0]})},),
        "one value at most",
    ),
    Row(
        "one-hot with text",
        read,
        {"rows": pd.DataFrame({"h_r": ["x", "y"], "h_g": [1, 0]}), "coding": OneHot("_")},
        ({"rows": pd.DataFrame({"h_r": [0, 1], "h_g": [1, 0]})},),
        says="0 and 1 only",
    ),
    Row(
        "one-hot with a two",
        read,
        {"rows": pd.DataFrame({"h_r": [2, 0], "h_g": [0, 1]}), "coding": OneHot("_")},
        ({"rows": pd.DataFrame({"h_r": [1, 0], "h_g": [0, 1]})},),
        says="0 and 1 only",
    ),
    Row(
        "one-hot of one column",
        read,
        {"rows": pd.DataFrame({"h_r": [1, 0], "x": [0, 1]}), "coding": OneHot("_")},
        ({"rows": pd.DataFrame({"h_r": [1, 0], "h_g": [0, 1], "x": [0, 1]})},),
        "every value",
    ),
    Row(
        "one-hot that takes a name",
        read,
        {"rows": pd.DataFrame({"h_r": [1, 0], "h_g": [0, 1], "h": [0, 1]}), "coding": OneHot("_")},
        ({"rows": pd.DataFrame({"h_r": [1, 0], "h_g": [0, 1], "g": [0, 1]})},),
        "rename",
    ),
]


# -- fits -------------------------------------------------------------------------------------------------------------
FITS = [
    Row("a constant column", fit, {"rows": CONSTANT, "l2": 0.0}, says="drop"),
    Row("a constant column, dropped", fit, {"rows": CONSTANT, "l2": 0.0}, ({"drop": ["c"]},), "drop it"),
    Row(
        "a constant column of many rows", fit, {"rows": pd.concat([CONSTANT] * 10)}, says="one over the number of rows"
    ),
    Row("twins", fit, {"rows": many(TWINS)}),
    Row("one implies the other", fit, {"rows": many(IMPLIED)}),
    Row("never together", fit, {"rows": DISJOINT, "l2": 0.0}, says="leave the edge out"),
    Row(
        "never together, without the edge",
        fit,
        {"rows": DISJOINT, "l2": 0.0},
        ({"graph": [("a", "c"), ("b", "c")]},),
        "leave the edge out",
    ),
    Row("one row", fit, {"rows": BITS.head(1)}, ({"rows": BITS},), "at least 2 rows"),
    Row("a row of holes", fit, {"rows": pd.concat([HOLES, HOLES.head(1) * np.nan])}, ({"rows": HOLES},), "left out"),
    Row("nothing but holes", fit, {"rows": HOLES * np.nan, "coding": "binary"}, ({"rows": HOLES},), "nothing to fit"),
    Row("a column of holes", fit, {"rows": HOLES.assign(c=np.nan), "coding": "binary"}, ({"drop": ["c"]},), "drop"),
    Row(
        "categories in a pairwise machine",
        fit,
        {"rows": CATEGORIES},
        ({"model": gb.PottsMachine, "l2": 0.01},),
        "`PottsMachine`",
        but=("drop", "coding"),
    ),
    Row(
        "two-valued data in a Potts machine",
        potts,
        {"rows": BITS, "coding": "binary"},
        (
            {"rows": Later(lambda: gb.Dataset.read(BITS).convert("categorical")), "coding": OUT},
            {"model": gb.BoltzmannMachine},
        ),
        "Dataset.convert('categorical')",
    ),
    Row(
        "an unknown learner",
        fit,
        {"learner": "mpel"},
        ({"learner": "mple"}, {"learner": "mle"}),
        "mple",
        but=tuple(gb.learning.LEARNERS),  # among them those of other models
    ),
    Row("an unknown graph", fit, {"graph": "ring"}),
    Row("a loop", fit, {"graph": [("a", "a"), ("a", "b")]}, ({"graph": [("a", "b")]},), "leave it out"),
    Row(
        "no prior",
        fit,
        {"log_prior": "cuachy"},
        ({"log_prior": "biases=normal:10,interactions=laplace:0.5"},),
        "biases=normal:10,interactions=laplace:0.5",
    ),
    Row(
        "a share that leaves no row",
        fit,
        {"rows": BITS.head(3), "validation_fraction": 0.01, "l2": 0.1},
        ({"rows": pd.concat([BITS] * 4)}, {"validation_fraction": 0.4, "rows": BITS}),
        "another share",
    ),
    Row(
        "mean field with l1",
        fit,
        {"learner": "mean-field", "l1": 0.1},
        ({"l1": OUT, "l2": 0.1}, {"learner": "mple"}),
        "use `l2=`",
    ),
    Row("mean field of a constant column", fit, {"rows": many(CONSTANT), "learner": "mean-field"}),
    Row("mean field of twins", fit, {"rows": many(TWINS), "learner": "mean-field"}),
    Row(
        "mean field of a pair never seen",
        fit,
        {"rows": DISJOINT, "learner": "mean-field", "l2": 0.01},
        ({"drop": ["a"]},),
        "drop one of them",
    ),
    Row(
        "independent pairs with an empty cell",
        fit,
        {"rows": IMPLIED, "learner": Later(lambda: learner("mean-field", approximation="independent-pair"))},
        ({"learner": Later(lambda: learner("mean-field", approximation="independent-pair", l2=0.01)), "l2": OUT},),
        but=("l2",),
    ),
    Row(
        "an approximation of a Potts machine",
        lambda approximation: gb.PottsMachine(learner=learner("mean-field", approximation=approximation, l2=1.0)).fit(
            CATEGORIES
        ),
        {"approximation": "tap"},
    ),
    Row(
        "a closed form of a higher-order machine",
        lambda **how: fit(model=gb.HigherOrderBoltzmannMachine, **how),
        {"learner": Later(lambda: learner("mean-field")), "l2": 0.0},
        ({"learner": "pcd", "max_iter": 5, "tol": 1.0},),
        "'mple' or 'pcd'",
    ),
    Row(
        "mean field of a Potts machine without a value",
        potts,
        {"rows": CATEGORIES, "coding": Labels(["low", "mid", "top", "never"]), "learner": "mean-field", "l2": 0.0},
    ),
    Row(
        "mean field of too few rows",
        potts,
        {"rows": pd.DataFrame(RNG.choice(list("pqr"), (5, 4))), "learner": "mean-field", "l2": 0.0},
    ),
    Row("screening of a Potts machine", potts, {"learner": Later(lambda: learner("rise")), "l2": 0.0}),
    Row("a learner of other models", potts, {"learner": "rise"}, ({"learner": "mple"},), "use one of auto"),
    Row(
        "a learner object and a penalty",
        fit,
        {"learner": Later(lambda: learner("mle")), "l2": 0.1},
        ({"learner": Later(lambda: learner("mle", l2=0.1)), "l2": OUT},),
        "give it there",
    ),
    Row(
        "contrastive divergence with an objective's optimiser",
        fit,
        {"learner": Later(lambda: learner("cd", optimizer="lbfgs"))},
        ({"learner": Later(lambda: learner("cd", optimizer="adam")), "tol": 1.0},),
        "'adam'",
    ),
    Row(
        "minibatches of a pairwise machine",
        fit,
        {"learner": Later(lambda: learner("minibatch")), "l2": 0.0},
        says="`learner='online'`",
    ),
    Row("too few steps", fit, {"learner": "mple", "max_iter": 1}, ({"max_iter": 500},), "`max_iter"),
    Row(
        "cliques and a graph",
        fit,
        {"model": gb.HigherOrderBoltzmannMachine, "cliques": [("a", "b")], "graph": "chain", "l2": 0.01},
        ({"cliques": OUT}, {"graph": OUT}),
        "one of them",
    ),
    Row(
        "no cliques",
        fit,
        {"model": gb.HigherOrderBoltzmannMachine, "order": 1, "bias": False, "l2": 0.01},
        ({"order": 2},),
        "`order`",
    ),
    Row(
        "a clique that names a column twice",
        fit,
        {"model": gb.HigherOrderBoltzmannMachine, "cliques": [("a", "a")], "l2": 0.01},
        ({"cliques": [("a", "b")]},),
        "each once",
    ),
    Row(
        "a clique that is no tuple",
        fit,
        {"model": gb.HigherOrderBoltzmannMachine, "cliques": ["ab", 3], "l2": 0.01},
        ({"cliques": [("a", "b")]},),
        "a tuple",
    ),
    Row(
        "a start that is not fitted",
        fit,
        {"start": gb.BoltzmannMachine()},
        (
            {"start": Later(lambda: gb.BoltzmannMachine(l2=0.1).fit(BITS))},
            {"start": Later(lambda: gb.BoltzmannMachine(l2=0.1).fit(BITS).model_)},
        ),
        "fit it",
    ),
    Row(
        "a start on another graph",
        fit,
        {"start": Later(lambda: gb.BoltzmannMachine("chain").fit(BITS))},
        ({"start": Later(lambda: gb.BoltzmannMachine().fit(BITS))},),
        "the same graph",
    ),
    Row("a start of another kind", potts, {"start": "bethe"}, ({"start": Later(potts)},), "the same kind"),
    Row(
        "a Gaussian by pseudolikelihood of categories",
        fit,
        {"rows": NUMBERS, "model": gb.GaussianMachine, "learner": "pcd"},
    ),
    Row(
        "a number that never varies",
        fit,
        {"rows": NUMBERS.assign(c=1.0), "model": gb.GaussianMachine},
        ({"rows": NUMBERS[["a", "b"]]},),
        "drop it",
    ),
    Row(
        "numbers that are functions of others",
        fit,
        {"rows": NUMBERS.assign(c=NUMBERS["a"] + NUMBERS["b"]), "model": gb.GaussianMachine, "l2": 0.0},
    ),
    Row(
        "words where numbers are needed",
        lambda rows: gb.GaussianMachine().read(rows),
        {"rows": NUMBERS.assign(c="x")},
        ({"rows": NUMBERS[["a", "b"]]},),
        "leave the column out",
    ),
    Row(
        "numbers too large to square",
        fit,
        {"rows": NUMBERS * 1e200, "model": gb.GaussianMixture, "n_components": 2, "random_state": 0},
        ({"rows": NUMBERS},),
        "scale",
    ),
    Row(
        "more classes than rows",
        fit,
        {"rows": NUMBERS.head(3), "model": gb.GaussianMixture, "n_components": 5, "random_state": 0},
        ({"n_components": 2},),
        "fewer classes",
    ),
    Row(
        "directions that are none",
        fit,
        {"rows": NUMBERS, "model": gb.VonMisesFisherMixture, "n_components": 2, "normalize": False, "random_state": 0},
    ),
    Row(
        "directions in one column",
        fit,
        {"rows": NUMBERS[["a"]], "model": gb.VonMisesFisherMixture, "n_components": 1, "random_state": 0},
        ({"rows": NUMBERS},),
        "two columns",
    ),
    Row(
        "a mixture with a start where none is",
        fit,
        {"rows": CATEGORIES, "model": gb.MachineMixture, "machine": "bernoulli", "n_components": 2, "random_state": 0},
    ),
    Row(
        "hidden units and a learner of columns",
        lambda **settings: gb.HiddenBoltzmannMachine(
            **{"n_components": 1, "max_iter": 3, "tol": 1.0, "random_state": 0, "l2": 0.01, **settings}
        ).fit(BITS),
        {"learner": "rise"},
    ),
    Row("rbm visible numbers beyond 0 to 1", rbm, {"rows": NUMBERS}),
    Row(
        "a free phase that no card has",
        rbm,
        {"device": "torch", "learner": gb.learning.Minibatch(negative_phase="smci")},
    ),
    Row("span-dense without a penalty", fit, {"rows": BITS, "model": gb.FullSpan, "learner": "span-dense", "l2": 0.0}),
]

# -- questions --------------------------------------------------------------------------------------------------------
QUESTIONS = [
    Row(
        "other columns",
        ask,
        {"question": "score", "X": Later(lambda: gb.Dataset.read(BITS.rename(columns={"a": "z"})))},
        ({"X": BITS},),
        "the same columns",
    ),
    Row(
        "rows in another coding",
        ask,
        {"question": "score", "X": gb.Dataset.read(BITS).convert("spin")},
        ({"X": gb.Dataset.read(BITS).convert("spin").convert("binary")},),
        "Dataset.convert",
    ),
    Row(
        "an unknown method of log Z",
        ask,
        {"question": "log_partition", "method": "guess"},
        ({"method": "ais", "n_samples": 20, "betas": 20},),
        "auto, exact, ais",
    ),
    Row(
        "samples for an exact log Z",
        ask,
        {"question": "log_partition", "method": "exact", "n_samples": 5},
        ({"n_samples": OUT},),
        "leave them out",
    ),
    Row(
        "samples for exact expectations",
        ask,
        {"question": "expect", "method": "exact", "n_samples": 5},
        ({"n_samples": OUT},),
        "leave `n_samples` out",
    ),
    Row("an unknown expectation", ask, {"question": "expect", "method": "guess"}, ({"method": "exact"},), "exact"),
    Row("an unknown column", ask, {"question": "marginal", "names": ["z"]}, ({"names": ["a"]},), "a column of the fit"),
    Row("no column", ask, {"question": "marginal", "names": []}, ({"names": ["a"]},), "at least one"),
    Row("a column twice", ask, {"question": "marginal", "names": ["a", "a"]}, ({"names": ["a"]},), "each once"),
    Row(
        "given and asked for",
        ask,
        {"question": "conditional", "names": ["a"], "given": {"a": 1}},
        ({"given": {"b": 1}},),
        "leave it out",
    ),
    Row(
        "given as a list",
        ask,
        {"question": "conditional", "names": ["a"], "given": ["b"]},
        ({"given": {"b": 1}},),
        "{'column': value}",
    ),
    Row(
        "given a missing cell",
        ask,
        {"question": "conditional", "names": ["a"], "given": {"b": None}},
        ({"given": {"b": 1}},),
        "1",
    ),
    Row(
        "given an unknown value",
        ask,
        {"question": "conditional", "names": ["a"], "given": {"b": 7}},
        ({"given": {"b": 1}},),
        "1",
    ),
    Row(
        "everything given",
        ask,
        {"question": "query", "query": "P(a | b=1, c=1, a=1)"},
        ({"query": "P(a | b=1, c=1)"},),
        says="name each once",
    ),
    Row(
        "a query that is none",
        ask,
        {"question": "query", "query": "what is a?"},
        ({"query": "P(a)"},),
        says="P(a=1, b | c=0)",
    ),
    Row(
        "samples for an exact query",
        ask,
        {"question": "query", "query": "P(a)", "method": "exact", "n_samples": 9},
        ({"n_samples": OUT},),
        "leave it out",
    ),
    Row(
        "a table that does not add up",
        ask,
        {"question": "divergence", "other": np.full((2, 2, 2), 0.2)},
        ({"other": np.full((2, 2, 2), 0.125)},),
        "sum to one",
    ),
    Row(
        "a table of another shape",
        ask,
        {"question": "divergence", "other": np.full((2, 2), 0.25)},
        ({"other": np.full((2, 2, 2), 0.125)},),
        "shape",
    ),
    Row(
        "a word for a distribution",
        ask,
        {"question": "divergence", "other": "m.gibbs"},
        ({"other": Later(fitted)},),
        "a fitted machine",
    ),
    Row(
        "another machine's columns",
        ask,
        {"question": "divergence", "other": Later(lambda: gb.BoltzmannMachine(l2=0.1).fit(BITS[["b", "a", "c"]]))},
        ({"other": Later(fitted)},),
        "the same columns",
    ),
    Row(
        "evidence and rows",
        ask,
        {"question": "most_probable", "X": BITS, "evidence": {"a": 1}},
        ({"evidence": OUT}, {"X": OUT}),
        "leave them out",
    ),
    Row(
        "several joint states",
        ask,
        {"question": "most_probable", "kind": "rbm", "joint": True, "n_states": 2},
        ({"joint": OUT}, {"n_states": OUT}),
        "leave `joint` or",
    ),
    Row("an unknown search", ask, {"question": "most_probable", "method": "guess"}),
    Row(
        "too many states to list",
        ask,
        {"question": "most_probable", "kind": "chain", "n_states": 2},
        ({"n_states": OUT, "method": "annealing"},),
        "method='annealing'",
        but=("method",),
    ),
    Row(
        "unknown losses",
        ask,
        {"question": "predict", "X": BITS, "columns": ["a"], "losses": "square"},
        ({"losses": "joint"}, {"losses": [[[0, 1], [2, 0]]]}),
        "'joint' or matrices",
    ),
    Row(
        "too many combinations",
        ask,
        {
            "question": "predict_proba",
            "kind": "chain",
            "X": np.zeros((2, 30), int),
            "columns": list(range(30)),
            "joint": True,
        },
        ({"columns": [0, 1]}, {"joint": False}),
        "fewer columns",
    ),
    Row("an unknown sampler", ask, {"question": "sample", "method": "guess"}, ({"method": "gibbs"},), "gibbs"),
    Row(
        "an exact log Z out of reach",
        ask,
        {"question": "log_partition", "kind": "dense", "method": "exact"},
        ({"method": "ais", "n_samples": 20, "betas": 20},),
        "`method='ais'`",
        but=("method",),
    ),
    Row(
        "a Gaussian has no probabilities",
        ask,
        {"question": "query", "kind": "gaussian", "query": "P(a)"},
        ({"question": "conditional", "query": OUT, "given": {"a": 1.0}},),
        "ask `conditional`",
    ),
    Row(
        "a mixture has no log Z",
        ask,
        {"question": "log_partition", "kind": "mixture", "method": "ais"},
        ({"method": OUT},),
        "leave `method`",
    ),
    Row(
        "a mixture is no exponential family",
        ask,
        {"question": "expect", "kind": "mixture"},
        ({"question": "tables"},),
        "ask for its parameters",
    ),
    Row(
        "a mixture has no sampler",
        ask,
        {"question": "sample", "kind": "mixture", "method": "gibbs"},
        ({"method": OUT},),
        "leave it out",
    ),
    Row(
        "hidden units of a pairwise machine",
        ask,
        {"question": "visible_given_hidden", "hidden": [[1]]},
        ({"kind": "rbm", "hidden": [[1, 0]]},),
        "one that has",
    ),
    Row(
        "too few hidden values",
        ask,
        {"question": "visible_given_hidden", "kind": "rbm", "hidden": [[1]]},
        ({"hidden": [[1, 0]]},),
        "2 values a row",
    ),
    Row("steps of an exact sample", ask, {"question": "sample", "kind": "rbm", "method": "nothing"}),
]


# -- the command line -------------------------------------------------------------------------------------------------
@cache
def folder():
    """A folder with tables and models, for all rows."""
    import tempfile

    place = tempfile.TemporaryDirectory()
    path = Path(place.name)
    BITS.to_csv(path / "bits.csv", index=False)
    BITS.assign(w=1 + np.arange(40) % 2).to_csv(path / "weighted.csv", index=False)
    BITS.replace({0: -1}).to_csv(path / "spins.csv", index=False)
    HOLES.to_csv(path / "holes.csv", index=False)
    CONSTANT.to_csv(path / "constant.csv", index=False)
    TWINS.to_csv(path / "twins.csv", index=False)
    CATEGORIES.to_csv(path / "categories.csv", index=False)
    CATEGORIES.mask(RNG.random(CATEGORIES.shape) < 0.1).to_csv(path / "gaps.csv", index=False)
    NUMBERS.to_csv(path / "numbers.csv", index=False)
    BITS.assign(name=[f"m{k}" for k in range(40)]).to_csv(path / "named.csv", index=False)
    BITS.assign(score=NUMBERS["a"]).to_csv(path / "scored.csv", index=False)
    (path / "headless.csv").write_text("0,1\n1,0\n1,1\n0,0\n")
    (path / "header.csv").write_text("a,b\n")
    (path / "latin.csv").write_bytes(b"a,b\n\xe9,0\n")
    (path / "ragged.csv").write_text("a,b\n0,1\n0,1,1\n")
    (path / "loop.txt").write_text("a,a\n")
    (path / "none.txt").write_text("\n")
    (path / "edges.txt").write_text("a,b\nb,c\n")
    (path / "sub").mkdir()
    np.savez(path / "two.npz", one=BITS.to_numpy(), other=BITS.to_numpy())
    np.save(path / "bits.npy", BITS.to_numpy())
    for name, rows, more in (
        ("m", "bits.csv", ()),
        ("potts", "categories.csv", ("--model", "potts", "--l2", "0.01")),
        ("gaussian", "numbers.csv", ("--model", "gaussian")),
        ("rbm", "bits.csv", ("--model", "rbm", "--n-components", "2", "--max-iter", "2")),
    ):
        assert run("fit", path / rows, "--out", path / f"{name}.gibbs", "--seed", "0", *more).exit_code == 0
    (path / "data.ods").write_bytes(b"PK")
    (path / "no.parquet").write_bytes(b"PAR1")
    fitted("dense").save(path / "dense.gibbs")
    fitted("mixture").save(path / "mixture.gibbs")
    pd.DataFrame(np.zeros((2, 60), int), columns=[f"x{j}" for j in range(60)]).to_csv(path / "dense.csv", index=False)
    return place


def command(args, more=()):
    """Run a command; what it says on stderr is raised or warned of, and the remedy stands after its first colon."""
    with contextlib.chdir(folder().name):
        result = run(*args.split("|"), *more)
    said = [line for line in result.stderr.splitlines() if line.startswith(("error: ", "warning: "))]
    text = said[-1].partition(": ")[2] if said else result.stderr
    if result.exit_code:
        raise Refused(text, text.partition(": ")[2])
    if said:
        warnings.warn(Warned(text, text.partition(": ")[2]), stacklevel=1)


def typed(name, line, *then, says=""):
    """A row about a line: what is typed instead, or flags after it."""
    ways = ({"more": tuple(way.split("|"))} if way.startswith("-") else {"args": way} for way in then)
    return Command(name, command, {"args": line}, tuple(ways), says)


FIT = "--out|new.gibbs"
COMMANDS = [
    typed("fit: a constant column", f"fit|constant.csv|{FIT}|--l2|0"),
    typed("fit: a constant column, dropped", f"fit|constant.csv|{FIT}|--l2|0", "--drop|c", says="drop it"),
    typed("fit: twins", f"fit|twins.csv|{FIT}|--l2|0"),
    typed("structure: too exact", "structure|bits.csv|--tol|1e-30", "--tol|1e-6", says="--tol 1e-30"),
    typed("structure: a constant column", "structure|constant.csv", "--drop|c", says="drop"),
    typed("compare: twins", "compare|twins.csv|--quiet|--l2|0", "--l2|0.01", says="see the reasons above"),
    typed("fit: text", f"fit|named.csv|{FIT}", "--drop|name", says="--column name=categorical"),
    typed("fit: no header", f"fit|headless.csv|{FIT}", f"fit|bits.csv|{FIT}", says="a row of column names"),
    typed("fit: a header only", f"fit|header.csv|{FIT}", f"fit|bits.csv|{FIT}", says="1 row or more"),
    typed("fit: no UTF-8", f"fit|latin.csv|{FIT}", f"fit|bits.csv|{FIT}", says="UTF-8"),
    typed("fit: ragged", f"fit|ragged.csv|{FIT}", f"fit|bits.csv|{FIT}", says="3 fields"),
    typed("fit: an unknown extension", f"fit|two.ods|{FIT}", f"fit|bits.csv|{FIT}", says="check the path"),
    typed("fit: two arrays", f"fit|two.npz|{FIT}", f"fit|two.npz:one|{FIT}", says="two.npz:one"),
    typed("fit: no such array", f"fit|two.npz:third|{FIT}", f"fit|two.npz:one|{FIT}", says="one of them"),
    typed("fit: an unknown model", f"fit|bits.csv|{FIT}|--model|ising", "--model|pairwise", says="pairwise"),
    typed("fit: an unknown learner", f"fit|bits.csv|{FIT}|--learner|magic", "--learner|mple", says="mple"),
    typed(
        "fit: too few steps",
        f"fit|bits.csv|{FIT}|--learner|mple|--max-iter|1|--json",
        "--max-iter|1000",
        says="--max-iter",
    ),
    typed("fit: out is the data", "fit|bits.csv|--out|bits.csv", f"fit|bits.csv|{FIT}", says="another name"),
    typed("fit: out is a folder", "fit|bits.csv|--out|sub", "fit|bits.csv|--out|sub/m.gibbs", says="a file in it"),
    typed(
        "fit: out is nowhere",
        "fit|bits.csv|--out|void/m.gibbs",
        "fit|bits.csv|--out|sub/m.gibbs",
        says="create it first",
    ),
    typed("fit: out is stdout", "fit|bits.csv|--out|-", f"fit|bits.csv|{FIT}", says="name of a file"),
    typed(
        "fit: a checkpoint over a model",
        f"fit|bits.csv|{FIT}|--checkpoint|m.gibbs",
        "--checkpoint|new.ck",
        says="another name",
    ),
    typed("fit: no edges", f"fit|bits.csv|{FIT}|--graph|none.txt"),
    typed("fit: a loop", f"fit|bits.csv|{FIT}|--graph|loop.txt", "--graph|edges.txt", says="leave it out"),
    typed(
        "fit: no cliques",
        f"fit|bits.csv|{FIT}|--model|higher-order|--cliques|none.txt",
        "--cliques|edges.txt",
        says="one a line",
    ),
    typed(
        "fit: a coding of its own",
        f"fit|numbers.csv|{FIT}|--model|gaussian|--coding|spin",
        f"fit|numbers.csv|{FIT}|--model|gaussian",
        says="--coding, --binarize",
    ),
    typed(
        "fit: from the disk with weights",
        f"fit|bits.npy|{FIT}|--memory|50MB|--max-iter|2|--weights|w",
        f"fit|bits.npy|{FIT}|--memory|50MB|--max-iter|2",
        says="leave them out",
    ),
    typed(
        "fit: from the disk, a CSV file",
        f"fit|bits.csv|{FIT}|--memory|50MB|--max-iter|2",
        f"fit|bits.npy|{FIT}|--memory|50MB|--max-iter|2",
        says=".npy",
    ),
    typed("score: another coding", "score|m.gibbs|spins.csv", says="--convert"),
    typed(
        "score: per row of a pseudolikelihood",
        "score|m.gibbs|bits.csv|--per-row|--pseudo",
        "score|m.gibbs|bits.csv|--per-row",
        says="leave --pseudo out",
    ),
    typed(
        "score: an unknown method",
        "score|m.gibbs|bits.csv|--method|guess",
        "--method|exact",
        "--method|ais|-n|10|--betas|10",
        says="exact, ais",
    ),
    typed(
        "score: a pseudolikelihood with a method",
        "score|m.gibbs|bits.csv|--pseudo|--method|exact",
        "score|m.gibbs|bits.csv|--pseudo",
        says="leave --method out",
    ),
    typed(
        "score: samples without a method",
        "score|m.gibbs|bits.csv|-n|5",
        "score|m.gibbs|bits.csv",
        says="leave them out",
    ),
    typed("score: out without rows", "score|m.gibbs|bits.csv|--out|s.csv"),
    typed(
        "score: exact and out of reach",
        "score|dense.gibbs|dense.csv|--method|exact",
        "--method|ais|-n|10|--betas|10",
        says="--method ais",
    ),
    typed(
        "impute: probabilities of numbers",
        "impute|gaussian.gibbs|numbers.csv|--probabilities",
        "impute|gaussian.gibbs|numbers.csv",
        says="leave it out",
    ),
    typed(
        "predict: losses and probabilities",
        "predict|m.gibbs|bits.csv|--columns|a|--losses|0,1;1,0|--joint",
        "predict|m.gibbs|bits.csv|--columns|a|--losses|0,1;1,0",
        says="leave --probabilities and --joint out",
    ),
    typed(
        "transform: no hidden units", "transform|m.gibbs|bits.csv", "transform|rbm.gibbs|bits.csv", says="one that has"
    ),
    typed("mode: no cell", "mode|m.gibbs|--given|a", "mode|m.gibbs|--given|a=1", says="--given party=democrat"),
    typed(
        "show: a drawing without a picture", "show|m.gibbs|--draw|couplings", "--picture|p.png", says="--picture FILE"
    ),
    typed(
        "show: an unknown drawing", "show|m.gibbs|--picture|p.png|--draw|filters", "--draw|couplings", says="couplings"
    ),
    typed(
        "show: a layout of couplings",
        "show|m.gibbs|--picture|p.png|--draw|couplings|--layout|circle",
        "show|m.gibbs|--picture|p.png|--draw|couplings",
        "--draw|network",
        says="leave it out, or use --draw network",
    ),
    typed("fit: a graph that is no UTF-8", f"fit|bits.csv|{FIT}|--graph|latin.csv", "--graph|edges.txt", says="utf-8"),
    typed(
        "fit: a column and all of them",
        f"fit|bits.csv|{FIT}|--column|a=binary|--coding|binary",
        f"fit|bits.csv|{FIT}|--coding|binary",
        f"fit|bits.csv|{FIT}|--column|a=binary",
        says="leave out what is said of all, or --column",
    ),
    typed(
        "report: settings of a model that is fitted",
        "report|m.gibbs|--out|r.html|--l2|0.1",
        "report|m.gibbs|--out|r.html",
        says="leave it out",
    ),
    typed("intervals: other rows", "intervals|m.gibbs|twins.csv", "intervals|m.gibbs|bits.csv", says="the same rows"),
    typed("compare: no learner", "compare|bits.csv|--quiet|--learners|,", "--learners|mle", says="at least one"),
    typed(
        "compare: a model without learners",
        "compare|numbers.csv|--quiet|--model|k-means",
        "compare|numbers.csv|--quiet|--model|gaussian",
        says="use another",
    ),
    typed(
        "fit: a flag of another model",
        f"fit|numbers.csv|{FIT}|--no-bias",
        f"fit|numbers.csv|{FIT}",
        says="leave it out",
    ),
    typed(
        "report: rows beside a table",
        "report|bits.csv|--out|r.html|--quiet|--data|spins.csv",
        "report|bits.csv|--out|r.html|--quiet",
        says="leave --data out",
    ),
]

# -- learners, streams, files, errors of estimates --------------------------------------------------------------------
WIDE = pd.DataFrame(RNG.integers(0, 2, (60, 40)), columns=[f"x{j}" for j in range(40)])
WIDE_HOLES = WIDE.astype(float).mask(RNG.random(WIDE.shape) < 0.3)
QUICK = {"max_iter": 3, "tol": 1.0, "l2": 0.01, "random_state": 0}


def in_file(name, content):
    path = Path(folder().name) / name
    path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content)
    return path


def stream(rows=BITS, name="stream.npy", **how):
    return DataStream.open(in_file(name, np.asarray(rows)), **{"memory": "50MB", **how})


def errors_of(rows=BITS, method=gb.uncertainty.standard_errors, how=None, **settings):
    if method != gb.uncertainty.standard_errors:
        how = {"n_replicates": 3, "random_state": 0}
    return method(fit(rows, **settings), rows, **(how or {}))


def uniform(graph):
    return gb.Model.zeros(gb.PairwiseFamily(graph))


def structure(rows=BITS, drop=(), **settings):
    return gb.structure.learn_structure(read(rows, drop=drop), **settings)


def classify(labels=None, rows=BITS, **settings):
    return gb.GibbsClassifier(**settings).fit(rows, BITS["a"] if labels is None else labels)


def mixture(rows=NUMBERS, **settings):
    return gb.GaussianMixture(**{"n_components": 2, "random_state": 0, **settings}).fit(rows)


def machines(rows=BITS, **settings):
    return gb.MachineMixture(**{"n_components": 2, "random_state": 0, "n_init": 1, "tol": 0.01, **settings}).fit(rows)


def hidden(rows=BITS, **settings):
    return gb.HiddenBoltzmannMachine(**{"n_components": 1, **QUICK, **settings}).fit(rows)


def span(rows=BITS, **settings):
    return gb.FullSpan(**settings).fit(rows)


def field(rows=NUMBERS, **settings):
    return gb.MarkovRandomFieldMachine(**{**QUICK, **settings}).fit(rows)


def stored(name="kept.gibbs", change=lambda content: content):
    path = Path(folder().name) / name
    fitted().save(path)
    path.write_bytes(change(path.read_bytes()))
    return gb.load(path)


def checkpointed(path="a.ck", **settings):
    kept = gb.storage.Checkpoint(str(Path(folder().name) / "a.ck"), every=1)
    gb.BoltzmannMachine(learner="mple", max_iter=2, checkpoint=kept, l2=0.3).fit(BITS)
    again = gb.storage.Checkpoint(str(Path(folder().name) / path), resume=True)
    return gb.BoltzmannMachine(**{"learner": "mple", "checkpoint": again, **settings}).fit(BITS)


def expected(model=None, method="exact", **how):
    return gb.expectations.EXPECTATIONS.create(method, **how)


DEEPER = [
    # learners and holes
    Row(
        "exact likelihood with holes out of reach",
        fit,
        {"rows": WIDE_HOLES, "learner": "mle", **QUICK},
        calls={"Dataset.complete_rows()": {"rows": WIDE, "graph": "chain"}},
    ),
    Row("samples of too many completions", fit, {"rows": WIDE_HOLES, "learner": "smci", **QUICK}),
    Row("regressions with too many completions", fit, {"rows": WIDE_HOLES, "learner": "rise", **QUICK}),
    Row(
        "contrastive divergence without chains",
        fit,
        {"rows": HOLES, "learner": Later(lambda: learner("cd", clamped="exact")), **QUICK, "l2": OUT},
        ({"learner": Later(lambda: learner("cd", clamped="chains"))},),
        "learner='pcd'",
        but=("clamped",),
    ),
    Row("exact likelihood out of reach", fit, {"rows": WIDE, "learner": "mle", **QUICK}),
    Row("a learner of columns for hidden units", hidden, {"learner": Later(lambda: learner("mean-field")), "l2": 0.0}),
    Row("a start for hidden units", hidden, {"start": "bethe"}, ({"start": OUT},), "None"),
    Row(
        "minibatches for pairs",
        hidden,
        {"learner": Later(lambda: learner("minibatch")), "l2": 0.0, "graph": [("a", "b"), ("a", "h0")]},
        ({"learner": "em"},),
        "`graph='restricted'`",
    ),
    Row("a hidden unit without an edge", hidden, {"graph": [("a", "b")]}, ({"graph": [("a", "h0")]},), "join it"),
    Row(
        "runaway parameters",
        fit,
        {"rows": pd.DataFrame(np.vstack([np.eye(6, dtype=int)] * 80)), "learner": "mple", "max_iter": 500},
    ),
    Row(
        "an unknown setting of a learner",
        lambda **how: learner("mple", **how),
        {"tolerance": 1},
        ({"tolerance": OUT, "l2": 0.1},),
        "l2",
    ),
    Row("an optimiser that is none", lambda **how: learner("mple", **how), {"optimizer": "sgd"}),
    Row(
        "sparse data",
        lambda rows: rbm(rows),
        {"rows": Later(lambda: sparse.csr_matrix(BITS.to_numpy().astype(complex)))},
        ({"rows": BITS},),
        "real numbers or labels",
    ),
    # exact reach and memory
    Row(
        "exact inference out of reach",
        lambda model, how=gb.inference.exact: how(model),
        {"model": Later(lambda: uniform(gb.graphs.complete(60)))},
        (
            {"how": lambda model: gb.sampling.draw(model, 10, np.random.default_rng(0))},
            {"model": Later(lambda: uniform(gb.graphs.grid(8, 8)))},
        ),
        "use sampling or pseudolikelihood",
    ),
    Row(
        "no time for an exact score",
        gb.inference.exact,
        {"model": Later(lambda: uniform(gb.graphs.complete(12))), "max_seconds": 1e-12},
        ({"max_seconds": 10.0},),
        "use sampling or pseudolikelihood",
    ),
    Row(
        "errors in too little time",
        errors_of,
        {"learner": "mle", "how": {"max_seconds": 1e-9}},
        ({"how": {"max_seconds": 60.0}}, {"method": gb.uncertainty.bootstrap, "how": OUT}),
        "`max_seconds`",
    ),
    # errors of estimates
    Row(
        "errors of a closed form",
        errors_of,
        {"learner": "mean-field", "l2": 0.1},
        ({"method": gb.uncertainty.bootstrap},),
        "bootstrap",
    ),
    Row(
        "errors under a prior",
        errors_of,
        {"log_prior": "cauchy:2.5"},
        ({"method": gb.uncertainty.bootstrap},),
        "bootstrap",
    ),
    Row(
        "errors of chains", errors_of, {"learner": "pcd", **QUICK}, ({"method": gb.uncertainty.bootstrap},), "bootstrap"
    ),
    Row(
        "Fisher's information of a pseudolikelihood",
        errors_of,
        {"learner": "mple", "how": {"kind": "fisher"}},
        ({"how": {"kind": "sandwich"}},),
        "`kind='sandwich'`",
        but=("kind",),
    ),
    Row(
        "errors of twins",
        errors_of,
        {"rows": TWINS, "learner": "mple", "l2": 0.0},
        ({"l2": 0.01}, {"rows": BITS}),
        "`l2='auto'`",
    ),
    Row(
        "errors of a converted machine",
        lambda converted: gb.uncertainty.standard_errors(
            fitted().convert("spin") if converted else fitted(),
            gb.Dataset.read(BITS).convert("spin") if converted else BITS,
        ),
        {"converted": True},
        ({"converted": False},),
        "before its conversion",
    ),
    Row(
        "too few rows to draw from",
        lambda **how: gb.uncertainty.bootstrap(fit(l2=0.1), BITS, 3, random_state=0, **how),
        {"sample_weight": np.full(40, 0.01)},
        ({"sample_weight": np.ones(40)}, {"weights": "importance"}),
        "scale them to the number of rows, or say weights='importance'",
    ),
    Row(
        "refits that fail",
        lambda rows, n: gb.uncertainty.bootstrap(fit(rows, l2=0), rows, n, random_state=0),
        {"rows": BITS.head(12), "n": 4},
        ({"rows": BITS},),
        "add a penalty by l2='auto', or drop",
    ),
    # structure
    Row("an unknown way to a structure", structure, {"method": "magic"}),
    Row("a setting of another way", structure, {"method": "rise", "fraction": 0.1}, ({"fraction": OUT},), "it takes"),
    Row("no candidates", structure, {"graph": "empty"}, ({"graph": "complete"}, {"graph": [("a", "b")]}), "'complete'"),
    Row("structure with holes", structure, {"rows": HOLES}, ({"rows": BITS},), "complete_rows"),
    Row("a structure that is asked for too exactly", structure, {"tol": 1e-30}, ({"tol": 1e-6},), "raise `tol=1e-30`"),
    # streams
    Row(
        "no files",
        lambda paths: DataStream.open(paths),
        {"paths": []},
        ({"paths": Later(lambda: in_file("s.npy", BITS.to_numpy()))},),
        "1 or more",
    ),
    Row(
        "a stream of text",
        lambda path: DataStream.open(Path(folder().name) / path),
        {"path": "bits.csv"},
        ({"path": "bits.npy"},),
        ".npy",
    ),
    Row(
        "a stream that is not there",
        lambda path: DataStream.open(Path(folder().name) / path),
        {"path": "absent.npy"},
        ({"path": "bits.npy"},),
        "check the path",
    ),
    Row(
        "a stream of three dimensions",
        stream,
        {"rows": np.zeros((2, 2, 2)), "name": "cube.npy"},
        ({"rows": BITS},),
        "two",
    ),
    Row("a stream in too little memory", stream, {"memory": "1B"}, ({"memory": "8MB"},), "megabytes"),
    Row(
        "a stream where rows are needed",
        lambda rows: fitted().score(rows),
        {"rows": Later(stream)},
        ({"rows": Later(lambda: stream().collect())},),
        "collect",
    ),
    Row("a stream read as a table", read, {"rows": Later(stream)}, ({"rows": BITS},), "Dataset.read"),
    Row(
        "a stream in chunks",
        lambda rows: gb.BoltzmannMachine(l2=0.1, random_state=0).partial_fit(rows),
        {"rows": Later(stream)},
        ({"rows": BITS},),
        "rows in memory",
    ),
    Row(
        "a stream with held-out rows",
        fit,
        {"rows": Later(stream), "validation_fraction": 0.2, **QUICK},
        ({"validation_fraction": OUT},),
        "a file of their own",
    ),
    Row(
        "a stream in another coding",
        fit,
        {"rows": Later(stream), "coding": "spin", **QUICK},
        ({"coding": "binary"},),
        "that coding",
    ),
    Row(
        "a stream with weights",
        lambda rows, weights: gb.BoltzmannMachine(**QUICK).fit(rows, sample_weight=weights),
        {"rows": Later(stream), "weights": np.ones(40)},
        ({"weights": None},),
        "a stream has no weights",
    ),
    Row(
        "streams with other columns",
        lambda paths: DataStream.open(paths),
        {"paths": Later(lambda: [in_file("s.npy", BITS.to_numpy()), in_file("t.npy", BITS.to_numpy()[:, :2])])},
        ({"paths": Later(lambda: [in_file("s.npy", BITS.to_numpy())])},),
        "the same columns",
    ),
    # files
    Row(
        "a file with a changed bit",
        stored,
        {"change": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]},
        ({"change": lambda content: content},),
        "save it again",
    ),
    Row("a checkpoint of another fit", checkpointed, {"l2": 0.5}, ({"l2": 0.3},), "started with"),
    Row(
        "a checkpoint in no folder",
        lambda path: fit(checkpoint=str(Path(folder().name) / path), l2=0.1),
        {"path": "void/a.ck"},
        ({"path": "b.ck"},),
        "create it first",
    ),
    Row(
        "a model onto a folder",
        lambda path: fitted().save(Path(folder().name) / path),
        {"path": "sub"},
        ({"path": "sub/m.gibbs"},),
        "another name",
    ),
    Row(
        "a model into nowhere",
        lambda path: fitted().save(Path(folder().name) / path),
        {"path": "void/m.gibbs"},
        ({"path": "sub/m.gibbs"},),
        "nothing was changed",
    ),
    # other estimators
    Row(
        "three classes in two values",
        classify,
        {"labels": Later(lambda: np.arange(40) % 3), "machine": "pairwise", "l2": 0.1},
    ),
    Row(
        "labels that are no bits",
        classify,
        {"labels": Later(lambda: np.arange(80).reshape(40, 2) % 3), "l2": 0.1},
        ({"labels": OUT},),
        "a classifier for each",
    ),
    Row(
        "a joint classifier of numbers",
        classify,
        {"rows": NUMBERS.head(40), "learning": "joint"},
        ({"rows": BITS, "machine": "pairwise", "l2": 0.1},),
        "`machine`",
    ),
    Row(
        "chunks of another number of classes",
        lambda n: mixture().set_params(n_components=n).partial_fit(NUMBERS),
        {"n": 3},
        ({"n": 2},),
        "call fit",
    ),
    Row(
        "means of another shape",
        mixture,
        {"start": np.zeros((3, 3))},
        ({"start": NUMBERS.head(2)},),
        "for each of 2 classes",
    ),
    Row(
        "means of machines",
        machines,
        {"machine": Later(lambda: gb.BoltzmannMachine(l2=0.1)), "start": BITS.head(2)},
        ({"start": "k-means++"}, {"start": "partition"}),
        "'k-means++'",
    ),
    Row(
        "a class for a machine",
        machines,
        {"machine": gb.BoltzmannMachine},
        ({"machine": Later(lambda: gb.BoltzmannMachine(l2=0.1))},),
        "BoltzmannMachine()",
    ),
    Row(
        "chunks of machines",
        lambda machine: gb.MachineMixture(n_components=2, machine=machine, random_state=0).partial_fit(BITS),
        {"machine": Later(lambda: gb.BoltzmannMachine(l2=0.1))},
    ),
    Row("a mixture of nothing", mixture, {"rows": NUMBERS * 0}, ({"rows": NUMBERS},), "fewer classes"),
    Row(
        "holes in directions",
        lambda rows: gb.VonMisesFisherMixture(2, random_state=0).fit(rows),
        {"rows": NUMBERS.mask(NUMBERS > 1.5)},
        ({"rows": NUMBERS},),
        "fill it",
    ),
    Row(
        "numbers with NaN in Gaussian units",
        rbm,
        {"rows": NUMBERS.mask(NUMBERS > 1.5), "visible": "gaussian"},
        ({"rows": NUMBERS},),
        "fill it",
    ),
    Row(
        "a constant number in Gaussian units",
        rbm,
        {"rows": NUMBERS.assign(c=1.0), "visible": "gaussian"},
        ({"rows": NUMBERS[["a", "b"]]},),
        "drop them",
    ),
    Row(
        "a narrow number in Gaussian units",
        rbm,
        {"rows": NUMBERS.assign(c=NUMBERS["c"] * 1e-170), "visible": "gaussian"},
        ({"rows": NUMBERS},),
        "large number",
    ),
    Row(
        "a wide number in Gaussian units",
        rbm,
        {"rows": NUMBERS.assign(c=NUMBERS["c"] * 1e170), "visible": "gaussian"},
        ({"rows": NUMBERS},),
        "large number",
    ),
    Row(
        "other units than learned",
        lambda n: rbm().set_params(n_components=n).partial_fit(BITS),
        {"n": 3},
        ({"n": 2},),
        "call fit",
    ),
    Row(
        "chunks with held-out rows",
        lambda **how: gb.RestrictedBoltzmannMachine(2, random_state=0, **how).partial_fit(BITS),
        {"validation_fraction": 0.2},
        ({"validation_fraction": OUT},),
        "leave it out",
    ),
    Row("an unknown kind of unit", rbm, {"hidden": "ternary"}),
    Row(
        "pseudolikelihood of Gaussian units",
        lambda question: getattr(rbm(NUMBERS, visible="gaussian"), question)(NUMBERS),
        {"question": "pseudo_score"},
        ({"question": "score"},),
        "the score",
    ),
    Row(
        "samples and an exact score",
        lambda **how: rbm().log_likelihood(BITS, **how),
        {"exact": True, "n_samples": 5},
        ({"n_samples": OUT},),
        "leave them out",
    ),
    Row("a column of one value", span, {"rows": CONSTANT}, ({"rows": BITS},), "drop the column"),
    Row(
        "a column without a cell",
        span,
        {"rows": HOLES.assign(c=np.nan).astype(object)},
        ({"rows": HOLES},),
        "drop the column",
        but=("drop",),
    ),
    Row("a tolerance beyond resolution", span, {"tol": 1e-30}, ({"tol": OUT},), "at least"),
    Row(
        "a support that is none",
        field,
        {"support": (1, 0), "potentials": "bias,product", "graph": "chain"},
        ({"support": "gaussian"},),
        "the lower first",
    ),
    Row(
        "an unknown potential",
        field,
        {"rows": BITS, "potentials": "triple", "graph": "chain"},
        ({"potentials": "bias,product"},),
        "square, indicator",
    ),
    # pictures
    Row(
        "an image that is no square",
        lambda **how: gb.plots.filters(fitted("rbm"), **how),
        {},
        ({"shape": (1, 3)},),
        "shape=(height, width)",
    ),
    # parts of their own
    Row("an unknown graph of nodes", gb.graphs.as_graph, {"graph": "ring", "names": ("a", "b")}),
    Row(
        "states of labels",
        lambda x: fitted().model_.log_weights(x),
        {"x": [["a", "b", "c"]]},
        ({"x": [[0, 1, 1]]},),
        "Dataset.read",
    ),
    Row(
        "states with holes",
        lambda x: fitted().model_.log_weights(x),
        {"x": [[0, np.nan, 1]]},
        ({"x": [[0, 1, 1]]},),
        "fill them",
    ),
    Row(
        "states that are none",
        lambda x: fitted().model_.log_weights(x),
        {"x": [[0, 0.5, 1]]},
        ({"x": [[0, 1, 1]]},),
        "the codes 0, 1, 2",
    ),
    Row(
        "states beyond the values",
        lambda x: fitted().model_.log_weights(x),
        {"x": [[0, 2, 1]]},
        ({"x": [[0, 1, 1]]},),
        "from 0 to 1",
    ),
    Row(
        "ragged states",
        lambda x: fitted().model_.log_weights(x),
        {"x": [[0, 1], [1]]},
        ({"x": [[0, 1, 1]]},),
        "rows of one length",
    ),
    Row(
        "temperatures that do not rise",
        lambda betas: fitted().log_partition("ais", n_samples=10, betas=betas),
        {"betas": [0.5, 0.2, 1.0]},
        ({"betas": 50},),
        "the number of steps",
    ),
    Row(
        "too few temperatures",
        lambda betas: fitted("dense").log_partition("ais", n_samples=10, betas=betas),
        {"betas": 2},
        ({"betas": 1000},),
        "betas=2",
    ),
    Row(
        "chains that do not mix",
        lambda **how: gb.expectations.MonteCarlo(**how)(
            strong(), gb.expectations.MonteCarlo(**how).init(strong(), None, np.random.default_rng(0))
        ),
        {"n_chains": 4, "n_steps": 20, "burn_in": 0},
        ({"n_steps": 4000, "burn_in": 500},),
        "n_steps=20",
    ),
    Row(
        "draws by chains that lose modes",
        lambda method: gb.answers.answers_about(strong(1.5)).sample(20, np.random.default_rng(0), method),
        {"method": "gibbs"},
    ),
]


@cache
def strong(coupling=0.35):
    return gb.PairwiseFamily.model(gb.graphs.grid(4, 4), np.zeros(16), np.full(24, coupling))


# -- what only one kind of model says ---------------------------------------------------------------------------------
def within(call, gibibytes=64.0, **how):
    """Make a call in so much memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIBBSIAN_MEMORY_LIMIT", str(gibibytes))
        return call(**how)


def deep(rows=BITS, model=gb.DeepBoltzmannMachine, **settings):
    return model(**{"n_components": (2, 2), "max_iter": 2, "random_state": 0, **settings}).fit(rows)


@cache
def answering(kind):
    makers = {
        "dbm": deep,
        "dbn": lambda: deep(model=gb.DeepBeliefNetwork),
        "numbers": lambda: rbm(NUMBERS, visible="gaussian"),
        "span": span,
        "wide": lambda: gb.BoltzmannMachine("empty", learner="mple").fit(WIDE),
        "machines": lambda: machines(machine="categorical"),
    }
    return makers[kind]()


def answer_of(kind, question, **how):
    machine = answering(kind) if kind in ("dbm", "dbn", "numbers", "span", "wide", "machines") else fitted(kind)
    return getattr(machine, question)(**how)


def polars():
    return pytest.importorskip("polars")


def parquet(frame, **how):
    frame.to_parquet(Path(folder().name) / "t.parquet", index=False, **how)
    return Path(folder().name) / "t.parquet"


KINDS = [
    # memory
    Row(
        "a table beyond memory",
        within,
        {"call": read, "rows": np.zeros((2000, 50), int), "gibibytes": 1e-4},
        ({"rows": np.zeros((20, 5), int)}, {"gibibytes": 1.0}),
        "GIBBSIAN_MEMORY_LIMIT",
    ),
    Row(
        "layers beyond memory",
        within,
        {"call": rbm, "n_components": 2000, "gibibytes": 1e-3},
        ({"n_components": 2},),
        "fewer hidden units",
    ),
    Row(
        "draws beyond memory",
        within,
        {
            "call": lambda **how: fitted().expect(gb.expectations.MonteCarlo(warn=False, **how)),
            "gibibytes": 1e-5,
            "n_steps": 5000,
            "n_chains": 100,
        },
        ({"n_chains": 2, "n_steps": 100},),
        "lower `n_chains`",
    ),
    # answers
    Row(
        "a method of a Gaussian",
        answer_of,
        {"kind": "gaussian", "question": "sample", "method": "gibbs"},
        ({"method": OUT},),
        "leave it out",
    ),
    Row(
        "pseudolikelihood of a deep machine",
        answer_of,
        {"kind": "dbm", "question": "pseudo_score", "X": BITS},
        ({"question": "score"},),
        "the score",
    ),
    Row(
        "moments of a belief network",
        answer_of,
        {"kind": "dbn", "question": "expect"},
        ({"kind": "dbm"},),
        "a DeepBoltzmannMachine",
    ),
    Row("an expectation for layers", answer_of, {"kind": "rbm", "question": "expect", "method": "bethe"}),
    Row(
        "steps of an exact sample of layers",
        answer_of,
        {"kind": "rbm", "question": "sample", "method": "exact", "n_steps": 5},
        ({"n_steps": OUT}, {"method": "gibbs"}),
        "leave them out",
    ),
    Row(
        "a start of deep chains",
        answer_of,
        {"kind": "dbm", "question": "sample", "method": "gibbs", "start": BITS},
        ({"start": OUT},),
        "leave `start` out",
    ),
    Row(
        "exact sums with holes",
        answer_of,
        {"kind": "dbm", "question": "log_likelihood", "X": HOLES, "exact": True},
        ({"X": BITS},),
        "`exact=False`",
    ),
    Row(
        "a query to numbers in a mixture",
        answer_of,
        {"kind": "mixture", "question": "query", "query": "P(a)"},
        (
            {"question": "score_samples", "query": OUT, "X": NUMBERS},
            {"question": "predict_proba", "query": OUT, "X": NUMBERS},
        ),
        "`score_samples`",
    ),
    Row(
        "a query to Gaussian units",
        answer_of,
        {"kind": "numbers", "question": "query", "query": "P(a)"},
        ({"kind": "rbm"},),
        "discrete",
    ),
    Row(
        "decisions about numbers",
        answer_of,
        {"kind": "gaussian", "question": "predict", "X": NUMBERS, "columns": ["a"]},
        ({"question": "impute", "columns": OUT},),
        "`impute`",
    ),
    Row(
        "several peaks of numbers",
        answer_of,
        {"kind": "gaussian", "question": "most_probable", "n_states": 2},
        ({"n_states": OUT},),
        "leave `n_states`",
    ),
    Row(
        "a query with too large a table",
        answer_of,
        {"kind": "wide", "question": "query", "query": f"P({', '.join(WIDE.columns)})"},
        ({"query": "P(x0, x1)"},),
        "fewer",
    ),
    Row(
        "a divergence of too many states",
        answer_of,
        {"kind": "wide", "question": "divergence", "other": Later(lambda: answering("wide")), "method": "exact"},
        ({"method": "gibbs", "n_samples": 50},),
        "use sampling",
    ),
    Row(
        "a score that is out of exact reach",
        answer_of,
        {"kind": "dense", "question": "score", "X": np.zeros((2, 60), int)},
        ({"question": "score_interval", "n_samples": 10, "betas": 20},),
        "score_interval",
    ),
    Row(
        "an unknown column of evidence",
        answer_of,
        {"kind": "pairwise", "question": "most_probable", "evidence": {"z": 1}},
        ({"evidence": {"a": 1}},),
        "column of the fit",
    ),
    Row(
        "a hidden value that is none",
        answer_of,
        {"kind": "rbm", "question": "visible_given_hidden", "hidden": [[1, 7]]},
        ({"hidden": [[1, 0]]},),
        "use one of 0, 1",
    ),
    Row(
        "too many conditions",
        answer_of,
        {"kind": "wide", "question": "query", "query": f"P(x0 | {', '.join(WIDE.columns[1:])})"},
        ({"query": "P(x0 | x1)"},),
        "fix some of them",
    ),
    Row(
        "hidden probabilities of a wrong shape",
        answer_of,
        {"kind": "rbm", "question": "inverse_transform", "H": [[0.5]]},
        ({"H": [[0.5, 0.5]]},),
        "2 hidden units",
    ),
    Row(
        "hidden probabilities with NaN",
        answer_of,
        {"kind": "rbm", "question": "inverse_transform", "H": [[0.5, np.nan]]},
        ({"H": [[0.5, 0.5]]},),
        "fill it",
    ),
    Row(
        "hidden words",
        answer_of,
        {"kind": "rbm", "question": "inverse_transform", "H": [["x", "y"]]},
        ({"H": [[0.5, 0.5]]},),
        "transform gives",
    ),
    Row(
        "a machine with other values",
        answer_of,
        {
            "kind": "potts",
            "question": "divergence",
            "other": Later(lambda: gb.Model.zeros(gb.TablesFamily.potts(gb.graphs.complete(3), gb.Variables.spins))),
        },
        ({"other": Later(lambda: fitted("potts"))},),
        "the same columns",
    ),
    # fits of one kind
    Row(
        "an annealed fit with a start",
        lambda **how: gb.SoftKMeans(2, random_state=0, **how).fit(NUMBERS),
        {"anneal": True, "start": NUMBERS.head(2)},
        ({"start": OUT},),
        "leave it out",
    ),
    Row(
        "a start with other cliques",
        fit,
        {
            "model": gb.HigherOrderBoltzmannMachine,
            "order": 3,
            "l2": 0.1,
            "start": Later(lambda: gb.HigherOrderBoltzmannMachine(order=2, l2=0.1).fit(BITS)),
        },
        ({"order": 2},),
        "the same ones",
    ),
    Row(
        "a full-span start of other columns",
        span,
        {"start": Later(lambda: span(BITS[["a", "b"]]))},
        ({"start": Later(span)},),
        "the same ones",
    ),
    Row(
        "ratio matching of continuous values",
        field,
        {"potentials": "bias,product", "graph": "chain", "support": "gaussian", "learner": "rm"},
    ),
    Row(
        "tables of continuous values",
        field,
        {"potentials": "table", "graph": "chain", "support": "gaussian"},
        ({"potentials": "bias,product"},),
        "other potentials",
    ),
    Row(
        "products of categories",
        field,
        {"rows": np.arange(120).reshape(40, 3) % 3, "coding": "categorical", "potentials": "product", "graph": "chain"},
        ({"potentials": "table"},),
        "`coding='values'`",
    ),
    Row(
        "an indicator of no number",
        field,
        {"rows": BITS, "potentials": "indicator:x", "graph": "chain"},
        ({"potentials": "bias,indicator:1"},),
        "indicator:2",
    ),
    Row(
        "no potentials",
        field,
        {"rows": BITS, "potentials": "product", "graph": "empty"},
        ({"graph": "chain"},),
        "a graph, cliques or other potentials",
    ),
    Row(
        "a mixture of nothing that counts",
        lambda weights: gb.GaussianMixture(2, random_state=0).fit(NUMBERS, sample_weight=weights),
        {"weights": np.zeros(50)},
        ({"weights": np.ones(50)},),
        "a positive weight",
    ),
    Row(
        "cross-validation with holes",
        fit,
        {"rows": NUMBERS.mask(NUMBERS > 1.8), "model": gb.GaussianMachine, "learner": "graphical-lasso"},
    ),
    Row(
        "errors with too many completions",
        errors_of,
        {"rows": WIDE_HOLES, "learner": "mple", "graph": "chain", **QUICK},
        ({"rows": WIDE}, {"method": gb.uncertainty.bootstrap}),
        "bootstrap",
    ),
    Row(
        "errors with missing numbers",
        errors_of,
        {"rows": NUMBERS.mask(NUMBERS > 1.8), "model": gb.GaussianMachine},
        ({"rows": NUMBERS}, {"method": gb.uncertainty.bootstrap}),
        "`gibbsian.uncertainty.bootstrap`",
    ),
    # tables of other makers
    Row(
        "a lazy frame",
        read,
        {"rows": Later(lambda: polars().from_pandas(BITS).lazy())},
        ({"rows": Later(lambda: polars().from_pandas(BITS).lazy().collect())},),
        "collect()",
    ),
    Row(
        "row groups beyond memory",
        lambda size, memory: DataStream.open(parquet(pd.concat([BITS] * 3000), row_group_size=size), memory=memory),
        {"size": 120000, "memory": "1MB"},
        ({"memory": "200MB"}, {"size": 1000}),
        "`memory=`",
    ),
    Row(
        "categories for binary units",
        rbm,
        {"rows": Later(lambda: gb.Dataset.read(CATEGORIES, coding="categorical")), "visible": "binary"},
    ),
    Row(
        "convert of categories",
        lambda **how: fitted("potts").read(CATEGORIES, **how),
        {"convert": True},
        ({"convert": OUT},),
        "leave it out",
    ),
    Row(
        "a graph with too few nodes",
        hidden,
        {"graph": Later(lambda: gb.graphs.complete(3))},
        ({"graph": Later(lambda: gb.graphs.complete(4))},),
        "a node to each",
    ),
    Row(
        "values of categories as numbers",
        lambda coding: gb.HigherOrderBoltzmannMachine(coding=coding, l2=0.1).fit(
            read(CATEGORIES, coding="categorical") if coding == "categorical" else np.arange(120).reshape(40, 3) % 3
        ),
        {"coding": "categorical"},
        ({"coding": "values"},),
        "a family of tables, or give scores",
    ),
    Row(
        "two values of numbers",
        require_two_values,
        {"variables": gb.Variables.reals(2)},
        ({"variables": gb.Variables.binary(2)},),
        "Threshold",
    ),
    Row(
        "two values of categories",
        require_two_values,
        {"variables": gb.Variables.categories((3, 3))},
        ({"variables": gb.Variables.binary(2)},),
        "PottsMachine",
    ),
    Row(
        "an unknown way to know that a maximum exists",
        lambda kind: gb.diagnostics.maximum_exists(fitted().model_, gb.Dataset.read(BITS), kind),
        {"kind": "guess"},
        ({"kind": "likelihood"}, {"kind": "pseudolikelihood"}),
        "likelihood",
    ),
    Row(
        "a maximum of data in another coding",
        lambda data: gb.diagnostics.maximum_exists(fitted().model_, data),
        {"data": Later(lambda: gb.Dataset.read(BITS).convert("spin"))},
        ({"data": Later(lambda: gb.Dataset.read(BITS))},),
        "convert the data",
    ),
    Row(
        "mean field of a column of one value",
        lambda l2, rows: fit(rows, learner="mean-field", l2=l2),
        {"rows": CONSTANT, "l2": 0.0},
        ({"l2": 0.01}, {"rows": BITS}),
        "`l2='auto'`",
    ),
    # domains and states
    Row(
        "a Gaussian table in a pairwise machine",
        fit,
        {"rows": Later(lambda: gb.GaussianMachine().read(NUMBERS))},
        ({"rows": NUMBERS, "coding": Threshold(0.0)},),
        "Threshold",
        but=("coding", "drop"),
    ),
    Row(
        "categories where two values are needed",
        structure,
        {"rows": Later(lambda: gb.Dataset.read(CATEGORIES, coding="categorical"))},
        ({"rows": BITS},),
        "`coding=Threshold(t)`",
    ),
    Row(
        "values that are named twice",
        read,
        {"rows": BITS, "coding": Values([0, 1, 1])},
        ({"coding": Values([0, 1])},),
        "each once",
    ),
    Row(
        "labels that are named twice",
        read,
        {"rows": CATEGORIES, "coding": Labels(["low", "low", "mid", "top"])},
        ({"coding": Labels(["low", "mid", "top"])},),
        "give each once",
    ),
    Row(
        "a value that the model has not seen",
        lambda rows: fitted("potts").score(rows),
        {"rows": CATEGORIES.replace("top", "new")},
        ({"rows": CATEGORIES}, {"rows": CATEGORIES.replace("top", np.nan)}),
        "make the cell missing",
    ),
    Row(
        "a third value in two-valued rows",
        lambda rows: fitted().score(rows),
        {"rows": BITS * 2},
        ({"rows": BITS},),
        "in the coding binary (0/1)",
    ),
    Row(
        "marginals of a node twice",
        lambda nodes: gb.inference.exact(fitted().model_).marginal(nodes),
        {"nodes": (0, 0)},
        ({"nodes": (0, 1)},),
        "each once",
    ),
    Row(
        "marginals of no node",
        lambda nodes: gb.inference.exact(fitted().model_).marginal(nodes),
        {"nodes": (9,)},
        ({"nodes": (0,)},),
        "0 to 2",
    ),
    Row(
        "an unknown extension",
        command,
        {"args": "fit|data.ods|--out|new.gibbs"},
        ({"args": "fit|bits.csv|--out|new.gibbs"},),
        ".csv",
    ),
    Row(
        "no Parquet file",
        command,
        {"args": "fit|no.parquet|--out|new.gibbs"},
        ({"args": "fit|bits.csv|--out|new.gibbs"},),
        "Parquet file size is 4 bytes",
    ),
    Row("no such device", fit, {"device": "gpu"}),
    *(
        Row(f"device: {name}", on_fake_card, {"n_cards": cards, "has_torch": cards is not None, "device": device})
        for name, cards, device in (("no torch", None, "cuda"), ("no card", 0, "cuda"), ("no such card", 1, "cuda:7"))
    ),
    Row(
        "a table for which a card is too small",
        on_fake_card,
        {"n_cards": 1, "n_bytes": 2.0**40, "device": "cuda"},
        ({"n_bytes": 1.0},),
        "take less",
    ),
    Row("a card that is full", on_fake_card, {"n_cards": 1, "fills": True, "device": "cuda"}),
]
