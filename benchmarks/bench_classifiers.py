"""Classifiers beside scikit-learn: accuracy and log-loss over five folds of the digits and of the house votes.

Run with ``python benchmarks/bench_classifiers.py``; ``--quick`` leaves the slow ones out. Times are of all five folds.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.naive_bayes import BernoulliNB

from gibbsian import GibbsClassifier, HiddenBoltzmannMachine, PottsMachine
from gibbsian.datasets import load_house_votes

FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def compared(title: str, X: np.ndarray, y: np.ndarray, classifiers: dict[str, Any]) -> None:
    """Print accuracy and log-loss of each."""
    print(f"{title:52s}{'accuracy':>10s}{'log-loss':>10s}{'time':>10s}")
    for name, classifier in classifiers.items():
        started = time.perf_counter()
        found = cross_validate(classifier, X, y, cv=FOLDS, scoring=("accuracy", "neg_log_loss"), error_score="raise")
        seconds = time.perf_counter() - started
        accuracy, loss = found["test_accuracy"].mean(), -found["test_neg_log_loss"].mean()
        print(f"{name:52s}{accuracy:>10.4f}{loss:>10.4f}{seconds:>8.1f} s", flush=True)
    print()


def digits(quick: bool) -> None:
    X, y = load_digits(return_X_y=True)
    X = X / 16
    lines = {
        "scikit-learn LogisticRegression": LogisticRegression(max_iter=1000),
        "scikit-learn BernoulliNB": BernoulliNB(binarize=0.5),
        "GibbsClassifier()": GibbsClassifier(),
        "GibbsClassifier(l2=1e-4)": GibbsClassifier(l2=1e-4),
    }
    hidden = GibbsClassifier(n_hidden=20, l2=1e-4, tol=1e-3, max_iter=200, random_state=0)
    units = {} if quick else {"GibbsClassifier(n_hidden=20, l2=1e-4)": hidden}
    compared(f"digits as numbers, {len(X):,} x {X.shape[1]}", X, y, {**lines, **units})
    joint = {
        "GibbsClassifier(PottsMachine('mple')), joint": GibbsClassifier(
            PottsMachine(learner="mple", l2=1e-3, tol=1e-3, max_iter=50), learning="joint"
        ),
    }
    more = {} if quick else {**units, **joint}
    compared("the same, above or below a half", (X > 0.5).astype(int), y, {**lines, **more})


def votes(quick: bool) -> None:
    data = load_house_votes()
    table = data.decode(*data.rows()).astype(float)
    X, y = table[:, :-1], table[:, -1].astype(int)
    rbm = HiddenBoltzmannMachine(5, graph="restricted", l2=0.01, random_state=0)
    compared(
        f"party by votes, {len(X)} x {X.shape[1]}, an absent vote a half",
        np.nan_to_num(X, nan=0.5),
        y,
        {
            "scikit-learn LogisticRegression": LogisticRegression(max_iter=1000),
            "scikit-learn BernoulliNB": BernoulliNB(binarize=0.4),
            "GibbsClassifier(l2=0.005)": GibbsClassifier(l2=0.005),
            "GibbsClassifier(n_hidden=10, l2=0.005)": GibbsClassifier(n_hidden=10, l2=0.005, random_state=0),
        },
    )
    machines = {
        "GibbsClassifier('pairwise'), conditional": GibbsClassifier("pairwise", l2=0.01),
        "GibbsClassifier('pairwise'), joint": GibbsClassifier("pairwise", learning="joint", l2=0.01),
        "discriminative restricted machine of 5": GibbsClassifier(rbm),
        "the same machine, joint": GibbsClassifier(rbm, learning="joint"),
    }
    slow = {
        "GibbsClassifier('pairwise'), pseudo": GibbsClassifier("pairwise", learning="pseudo", l2=0.01, random_state=0),
        "GibbsClassifier('potts'), conditional": GibbsClassifier("potts", l2=0.01),
        "GibbsClassifier('potts'), joint": GibbsClassifier("potts", learning="joint", l2=0.01),
    }
    compared("the same, absent votes summed out", X, y, {**machines, **({} if quick else slow)})


def main() -> None:
    quick = "--quick" in sys.argv
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are stopped early
        votes(quick)
        digits(quick)


if __name__ == "__main__":
    main()
