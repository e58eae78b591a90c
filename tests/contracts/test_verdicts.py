"""The verdict of a fit is right on fits made to be good, overfitted, unconverged, diverged, not mixed and wrong.

Every row of the table makes one fit. No wrong one may have the verdict "good", no good one the verdict "bad".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ArgumentError
from gibbsian.learning import FitResult, Minibatch, Stacking

pytestmark = pytest.mark.filterwarnings(
    "ignore::gibbsian.errors.UntrainedWarning",  # of the fits that are made to be wrong
    "ignore::gibbsian.errors.ConvergenceWarning",
    "ignore::gibbsian.errors.PenaltyWarning",
)


def related(n_rows: int = 600, n_columns: int = 5) -> np.ndarray:
    """Rows of 0/1 whose columns copy their neighbour more often than not."""
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2, (n_rows, n_columns))
    for j in range(1, n_columns):
        rows[:, j] = np.where(rng.random(n_rows) < 0.4, rows[:, j - 1], rows[:, j])
    return rows


def missing() -> np.ndarray:
    """The same with every tenth cell missing."""
    rows = related().astype(float)
    rows[np.random.default_rng(2).random(rows.shape) < 0.1] = np.nan
    return rows


def groups() -> np.ndarray:
    """Two groups of columns that agree but for one cell in ten."""
    rng = np.random.default_rng(0)
    equal = np.repeat(rng.random((400, 2)) < 0.5, 4, axis=1)
    return (equal ^ (rng.random((400, 8)) < 0.1)).astype(int)


def two_modes(n_columns: int = 40) -> np.ndarray:
    """Rows near all zeros or near all ones (issue 31, item 2)."""
    rng = np.random.default_rng(11)
    half = rng.random(400) < 0.5
    return (half[:, None] ^ (rng.random((400, n_columns)) < 0.1)).astype(int)


def categories() -> np.ndarray:
    """Rows of three labels, of which two columns are alike in half of the rows."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 3, (600, 3))
    rows[:, 1] = np.where(rng.random(600) < 0.5, rows[:, 0], rows[:, 1])
    return np.array(["a", "b", "c"], dtype=object)[rows]


def numbers(n_rows: int = 400) -> np.ndarray:
    """Rows of normal numbers, of which each column depends on the one before it."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(n_rows, 4))
    for j in range(1, 4):
        rows[:, j] += 0.7 * rows[:, j - 1]
    return rows


def cauchy() -> np.ndarray:
    """Numbers without a mean."""
    return np.random.default_rng(0).standard_cauchy((300, 5))


def holed_numbers() -> np.ndarray:
    """The same with some cells missing."""
    rows = numbers()
    rows[np.random.default_rng(5).random(rows.shape) < 0.05] = np.nan
    return rows


def layers(kind: type = gb.RestrictedBoltzmannMachine, units: Any = 4, **settings) -> FitResult:
    return kind(units, random_state=0, **settings).fit(groups()).result_


def at_rate(rate: float, n_epochs: int = 10) -> Minibatch:
    return Minibatch(learning_rate=rate, max_iter=n_epochs)


def few(n_rows: int = 100, n_columns: int = 10, **settings) -> FitResult:
    """A fit to few rows for its parameters, in parts too."""
    settings = {"learner": "mle", "validation_fraction": "auto", "random_state": 0, **settings}
    return gb.BoltzmannMachine(**settings).fit(related(n_rows, n_columns)).result_


def few_categories(**settings) -> FitResult:
    return gb.PottsMachine(validation_fraction="auto", random_state=0, **settings).fit(categories()[:100]).result_


def machine(**settings) -> FitResult:
    return gb.BoltzmannMachine(random_state=0, **settings).fit(related()).result_


def gaussian(rows: Callable[[], np.ndarray] = numbers, **settings) -> FitResult:
    return gb.GaussianMachine(**settings).fit(rows()).result_


def wide(**settings) -> FitResult:
    """A fit to 26 columns, out of quick exact reach."""
    return gb.BoltzmannMachine(random_state=0, **settings).fit(related(800, 26)).result_


def modes(**settings) -> FitResult:
    return gb.BoltzmannMachine(random_state=0, **settings).fit(two_modes()).result_


def planted(result: FitResult, change: Callable[[np.ndarray], np.ndarray]) -> FitResult:
    """A fit that says it has converged, with other parameters than it found."""
    return replace(result, model=result.model.replace(change(result.model.theta.copy())))


def all_on(result: FitResult) -> FitResult:
    """Couplings so strong that nearly all weight is on the state of all ones, which no row is near."""
    model = result.model
    return planted(result, lambda theta: np.where(model.penalised, 0.5, theta))


def first_moved(theta: np.ndarray) -> np.ndarray:
    return theta + np.eye(theta.size)[0]


def in_chunks(n_chunks: int) -> FitResult:
    fitted = gb.BoltzmannMachine(random_state=0)
    for rows in np.array_split(related(), 4)[:n_chunks]:
        fitted.partial_fit(rows)
    return fitted.result_


def loaded(tmp_path, fitted) -> FitResult:
    fitted.save(tmp_path / "model.gibbs")
    return gb.load(tmp_path / "model.gibbs").result_


GOOD = {
    "exact likelihood": lambda: machine(learner="mle"),
    "exact likelihood, spins": lambda: gb.BoltzmannMachine().fit(2 * related() - 1).result_,
    "one over rows": lambda: machine(l2=1 / 600),
    "penalty by cross-validation": lambda: machine(l2="cv"),
    "a few edges dropped": lambda: machine(learner="mple", l1=0.02),
    "pseudolikelihood": lambda: machine(learner="mple"),
    "Monte Carlo likelihood": lambda: machine(learner="mcmle"),
    "persistent chains": lambda: machine(learner="pcd"),
    "a chain of columns": lambda: machine(graph="chain", learner="mle"),
    "missing cells": lambda: gb.BoltzmannMachine().fit(missing()).result_,
    "categories": lambda: gb.PottsMachine().fit(categories()).result_,
    "interactions of three": lambda: gb.HigherOrderBoltzmannMachine(order=3).fit(related()).result_,
    "full span": lambda: gb.FullSpan().fit(related()).result_,
    "numbers": gaussian,
    "numbers, a common penalty": lambda: gaussian(l2=1 / 400),
    "numbers, missing cells": lambda: gaussian(holed_numbers),
    "numbers, their graph": lambda: gaussian(graph="chain"),
    "auto beyond exact reach": wide,
    "auto, two modes": modes,
    "held-out rows": lambda: machine(learner="mle", validation_fraction=0.2),
    "a penalty beyond exact reach": lambda: wide(l2=0.01),
    "few rows": few,
    "few rows, some held out": lambda: few(validation_fraction=0.2),
    "few rows, pseudolikelihood": lambda: few(learner="mple"),
    "few rows of categories": few_categories,
    "votes": lambda: (
        gb.BoltzmannMachine(validation_fraction="auto", random_state=0).fit(gb.datasets.load_house_votes()).result_
    ),
    "layers, some rows held out": lambda: layers(learner=at_rate(0.1), validation_fraction=0.2),
    "layers, rows held out in turn": lambda: layers(validation_fraction="auto"),
    "deep layers": lambda: layers(gb.DeepBoltzmannMachine, (4, 3), validation_fraction=0.2),
    "a belief network": lambda: layers(gb.DeepBeliefNetwork, (4, 3), validation_fraction=0.2),
}

# What may not be called good, by how it was made.
NOT_GOOD = {
    "unconverged": {
        "two steps": lambda: machine(max_iter=2, learner="mple", tol=1e-12),
        "a round": lambda: machine(max_iter=1, learner="mcmle"),
        "three steps of chains": lambda: machine(max_iter=3, learner="pcd"),
        "two steps beyond exact reach": lambda: wide(max_iter=2),
        "a step of EM": lambda: gb.BoltzmannMachine(max_iter=1, learner="em").fit(missing()).result_,
    },
    "diverged": {
        "layers at a rate of 100": lambda: layers(learner=at_rate(100.0)),
        "layers at a rate of 100, some rows held out": lambda: layers(
            learner=at_rate(100.0, 3), validation_fraction=0.2
        ),
        "deep layers at a rate of 100": lambda: layers(gb.DeepBoltzmannMachine, (4, 3), learner=at_rate(100.0)),
        "a belief network at a rate of 100": lambda: layers(
            gb.DeepBeliefNetwork, (4, 3), learner=Stacking(alone=at_rate(100.0), together=None)
        ),
        "a failure": lambda: replace(machine(), converged=False, reason="stopped: parameters have run away"),
        "parameters of 1e6": lambda: planted(machine(), lambda theta: 1e6 * np.sign(theta)),
        "numbers run away": lambda: planted(gaussian(), lambda theta: 1e6 * theta),
    },
    "overfitted": {
        "no penalty": lambda: few(l2=0),
        "no penalty, pseudolikelihood": lambda: few(learner="mple", l2=0),
        "no penalty of categories": lambda: few_categories(l2=0),
        "no penalty, some held out": lambda: few(150, 14, l2=0, validation_fraction=0.4),
        "no maximum in parts": lambda: few(60, l2=0),
        "no maximum in parts, pseudolikelihood": lambda: few(60, learner="mple", l2=0),
        "numbers that have nothing in common": lambda: (
            gb.GaussianMachine(validation_fraction="auto", random_state=0)
            .fit(np.random.default_rng(0).normal(size=(40, 15)))
            .result_
        ),
    },
    "not mixed": {
        "mean field of two modes": lambda: modes(learner=gb.learning.InverseMeanField("tap")),
        "pseudolikelihood of two modes": lambda: modes(learner="mple"),
        "contrastive divergence of two modes": lambda: modes(learner="cd"),
        "one mode of two": lambda: planted(modes(learner="mple"), lambda theta: theta + 0.02),
    },
    "wrong": {
        "all on": lambda: all_on(wide(l2=0.01)),
        "all on, exact": lambda: all_on(machine()),
        "no interactions": lambda: planted(machine(), np.zeros_like),
        "signs turned": lambda: planted(machine(), lambda theta: -theta),
        "a bias moved": lambda: planted(machine(), first_moved),
        "categories moved": lambda: planted(gb.PottsMachine().fit(categories()).result_, first_moved),
        "numbers moved": lambda: planted(gaussian(), first_moved),
        "full span without its functions": lambda: planted(gb.FullSpan().fit(related()).result_, np.zeros_like),
        "too strong a penalty": lambda: machine(l2=1e9),
        "too strong a penalty of numbers": lambda: gaussian(l2=1e9),
    },
    "not checked": {
        "layers without held-out rows": layers,
        "no parameters": lambda: machine(graph="empty", bias=False),
        "no function kept": lambda: gb.FullSpan(mdl_scale=1e6).fit(related()).result_,
        "no moments kept": lambda: replace(machine(), moments=None),
    },
}


def test_no_good_fit_is_called_bad_and_no_wrong_one_good():
    """The table, counted."""
    counts: Counter[tuple[str, str]] = Counter()
    mistakes = []
    for kind, rows in {"good": GOOD, **NOT_GOOD}.items():
        for name, fit in rows.items():
            verdict = fit().verdict
            counts[kind, verdict.status] += 1
            if (verdict.status == "good") != (kind == "good"):
                mistakes.append(f"{kind}, {name}: {verdict}")
            assert verdict.is_good == (not verdict.problems)
    for machine_of_layers in (gb.RestrictedBoltzmannMachine(4), gb.DeepBoltzmannMachine((4, 3))):
        with pytest.raises(ArgumentError, match="run to infinity"):
            machine_of_layers.set_params(visible="gaussian", learner=at_rate(10.0), random_state=0).fit(cauchy())
        counts["diverged", "refused"] += 1
    assert not mistakes, "\n".join(mistakes)
    assert sum(counts.values()) >= 60, counts


@pytest.mark.parametrize("l2", [0.0, 1e9])
def test_a_file_keeps_what_the_verdict_needs(tmp_path, l2):
    fitted = gb.BoltzmannMachine(learner="mle", l2=l2).fit(related())
    assert loaded(tmp_path, fitted).verdict.status == fitted.result_.verdict.status == ("bad" if l2 else "good")


def test_chunks_are_judged_by_the_moments_of_all():
    """Four chunks of 150 rows are learned nearly as well as 600 rows; their ending is no matter."""
    assert "max_iter" not in " ".join(in_chunks(4).verdict.problems)
    assert in_chunks(1).verdict.status != "unknown"


class TestWarnings:
    pytestmark = pytest.mark.filterwarnings("error::gibbsian.errors.UntrainedWarning")

    def test_a_model_that_does_not_reproduce_its_data_warns(self):
        """Contrastive divergence starts in both modes, and cannot weigh them."""
        rng = np.random.default_rng(20061)
        rows = np.where(np.arange(1000)[:, None] < 900, 1, -1) * np.where(rng.random((1000, 8)) < 0.05, -1, 1)
        with pytest.warns(gb.errors.UntrainedWarning, match="does not reproduce the data"):
            gb.BoltzmannMachine(learner="cd", l2=0.003, random_state=0).fit(rows)

    def test_a_good_one_and_a_strong_penalty_that_was_asked_for_do_not(self):
        machine(learner="mle")
        machine(learner="mle", l2=10.0)

    def test_chains_that_do_not_mix_in_auto_warn(self, monkeypatch):
        monkeypatch.setattr("gibbsian.learning.trained._tempered", lambda model, rng: None)
        monkeypatch.setattr("gibbsian.learning.trained.MAX_R_HAT", 0.9)
        rows = np.random.default_rng(0).integers(0, 2, (300, 40))
        with pytest.warns(gb.errors.UntrainedWarning, match="do not mix"):
            result = gb.BoltzmannMachine(l2=0.01, random_state=0).fit(rows).result_
        assert result.verdict.status == "unknown"
