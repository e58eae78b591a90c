"""The classifier: scikit-learn's checks and answers, every machine behind it, several labels."""

import itertools

import numpy as np
import pandas
import pytest
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from gibbsian.errors import ArgumentError, ConvergenceWarning

pytestmark = pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")


@parametrize_with_checks([gb.GibbsClassifier(), gb.GibbsClassifier(n_hidden=2, max_iter=200, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(150, centers=3, n_features=2, cluster_std=3.0, random_state=1)


@pytest.fixture(scope="module")
def table():
    """Bits with a label that depends on two of them together, and on a third."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 2, (200, 4))
    y = np.where(rng.random(200) < 0.9, X[:, 0] ^ X[:, 1], X[:, 2])
    return X, np.array(["no", "yes"])[y]


def test_without_hidden_units_it_is_multinomial_logistic_regression(blobs):
    X, y = blobs
    ones = np.column_stack([np.ones(len(X)), X])  # intercepts are penalised too
    found = gb.GibbsClassifier(l2=0.05, tol=1e-9).fit(X, y).predict_proba(X)
    judge = LogisticRegression(C=1 / (0.05 * len(X)), fit_intercept=False, tol=1e-10, max_iter=5000).fit(ones, y)
    np.testing.assert_allclose(found, judge.predict_proba(ones), atol=1e-5)


def test_temperature_scales_the_penalty_and_not_the_answer(blobs):
    X, y = blobs
    cold, warm = (gb.GibbsClassifier(temperature=T, l2=0.01 / T**2, tol=1e-9).fit(X, y) for T in (1.0, 2.0))
    np.testing.assert_allclose(cold.model_.theta, warm.model_.theta, atol=1e-4)
    np.testing.assert_allclose(cold.predict_proba(X), warm.predict_proba(X), atol=1e-5)


def test_hidden_units_tell_what_lines_do_not(table):
    X, y = table
    assert gb.GibbsClassifier(random_state=0).fit(X, y).score(X, y) < 0.7
    assert gb.GibbsClassifier(n_hidden=6, random_state=0).fit(X, y).score(X, y) > 0.85


MACHINES = {
    "pairwise": gb.BoltzmannMachine(l2=0.01),
    "higher-order": gb.HigherOrderBoltzmannMachine(3, l2=0.001),
    "potts": "potts",
    "hidden": gb.HiddenBoltzmannMachine(4, graph="restricted", l2=0.001, random_state=0),
    "rbm": gb.RestrictedBoltzmannMachine(6, l2=0.001, max_iter=400, random_state=0),
    "mixture": gb.MachineMixture(4, random_state=0),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("learning", ["conditional", "pseudo", "joint"])
def test_every_machine_tells_its_labels(name, learning, table):
    X, y = table
    if (learning == "pseudo" and name in ("hidden", "rbm")) or (learning != "joint" and name == "mixture"):
        pytest.skip("the machine has no such learner")
    classifier = gb.GibbsClassifier(MACHINES[name], learning=learning, l2=0.01, random_state=0).fit(X, y)
    assert classifier.classes_.tolist() == ["no", "yes"]
    probabilities = classifier.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (classifier.predict(X) == classifier.classes_[probabilities.argmax(axis=1)]).all()
    told = classifier.score(X, y)
    if name in ("higher-order", "hidden", "rbm") and learning == "conditional":
        assert told > 0.85  # terms of three columns
    # what it says is what its machine says of the column
    names = classifier.machine_.names_
    columns = pandas.DataFrame(np.column_stack([X, np.zeros(len(X), int)]), columns=names)
    np.testing.assert_allclose(probabilities, classifier.machine_.predict_proba(columns, columns="y"), atol=1e-12)


def test_pairwise_machine_is_the_model_of_numbers(table):
    """The machine without hidden units given its features: both are logistic regression, without a penalty."""
    X, y = table
    by_machine, by_numbers = (
        gb.GibbsClassifier(machine, l2=0.0, tol=1e-8).fit(X, y).predict_proba(X) for machine in ("pairwise", None)
    )
    np.testing.assert_allclose(by_machine, by_numbers, atol=1e-6)


def test_features_may_lack_cells_where_a_machine_learns_them(table):
    X, y = table
    holed = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    classifier = gb.GibbsClassifier("higher-order", l2=0.001).fit(holed, y)
    assert classifier.score(holed, y) > 0.7
    with pytest.raises(ValueError, match="NaN"):
        gb.GibbsClassifier().fit(holed, y)


def test_categories_in_frames_and_three_classes():
    rng = np.random.default_rng(0)
    y = rng.choice(["ant", "bee", "cow"], 120)
    size = np.where(rng.random(120) < 0.8, np.where(y == "cow", "big", "small"), "big")
    wings = np.where(rng.random(120) < 0.9, np.where(y == "bee", "two", "none"), "two")
    X = pandas.DataFrame({"size": size, "wings": wings, "y": rng.choice(["p", "q"], 120)})
    classifier = gb.GibbsClassifier("potts").fit(X, y)
    assert classifier.machine_.names_ == ("size", "wings", "y", "y_")
    assert classifier.score(X, y) > 0.7
    assert classifier.predict_proba(X).shape == (120, 3)
    with pytest.raises(ArgumentError, match="two values"):
        gb.GibbsClassifier("pairwise").fit(rng.integers(0, 2, (120, 2)), y)


def test_losses_move_decisions(blobs):
    X, y = blobs
    classifier = gb.GibbsClassifier().fit(X, y)
    losses = np.array([[0, 1, 1], [1, 0, 1], [9, 9, 0]])
    expected = (classifier.predict_proba(X) @ losses).argmin(axis=1)
    assert (classifier.predict(X, losses=losses) == expected).all()
    assert (expected != classifier.predict(X)).any()


@pytest.mark.parametrize("machine", [None, "pairwise"])
def test_several_labels(machine):
    """Hidden units or couplings make labels depend on each other: the joint decision is that of the joint law."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (200, 2))
    y = np.column_stack([rng.random(200) < 0.5, np.zeros(200)]).astype(int)
    y[:, 1] = np.where(rng.random(200) < 0.85, 1 - y[:, 0], X[:, 0])
    y[::10] = 1
    classifier = gb.GibbsClassifier(machine, n_hidden=0 if machine else 3, random_state=0).fit(X, y)
    marginals, together = classifier.predict_proba(X), classifier.predict(X, losses="joint")
    assert marginals.shape == (200, 2)
    assert ((marginals > 0.5) == classifier.predict(X)).all()
    law = {values: [] for values in itertools.product([0, 1], repeat=2)}
    for x in X:
        rows = y[(x == X).all(axis=1)]
        law[max(law, key=lambda values: (rows == values).all(axis=1).sum())].append(x)
    modes = {tuple(x): values for values, rows in law.items() for x in rows}
    agree = np.mean([tuple(told) == modes[tuple(x)] for x, told in zip(X, together, strict=True)])
    assert agree > 0.9
    with pytest.raises(ArgumentError, match="several labels"):
        classifier.predict(X, losses=np.eye(2))


def test_mistakes_and_warnings(blobs):
    X, y = blobs
    with pytest.raises(ArgumentError, match="give a machine"):
        gb.GibbsClassifier(learning="joint").fit(X, y)
    with pytest.raises(ArgumentError, match="registered name or an estimator"):
        gb.GibbsClassifier(LogisticRegression()).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        gb.GibbsClassifier(max_iter=1).fit(X, y)


def test_in_a_pipeline(blobs):
    X, y = blobs
    assert make_pipeline(StandardScaler(), gb.GibbsClassifier()).fit(X, y).score(X, y) > 0.7
