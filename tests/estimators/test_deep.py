"""Deep machines as estimators: scikit-learn's contract, kinds of units, files, missing cells, resuming."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from gibbsian.answers import layers as layer_answers
from gibbsian.diagnostics.likelihood import LogLikelihoodBound
from gibbsian.diagnostics.partition import LogPartitionInterval
from gibbsian.errors import ArgumentError, TooExpensiveError
from gibbsian.expectations.layers import recognition_bounds
from gibbsian.models.layers.units import BinaryUnits, SpinUnits
from layered_systems import bits, network, small_machine
from layered_systems import dbm as DBM
from layered_systems import dbn as DBN

SMALL = {"n_components": (4, 3), "max_iter": 3, "random_state": 0}
MACHINES = {"dbn": DBN, "dbm": DBM}


RANDOM = "random minibatches: weights and repeated rows agree in law"


@parametrize_with_checks(
    [
        gb.DeepBeliefNetwork((4, 3), max_iter=2, visible="gaussian"),
        gb.DeepBoltzmannMachine((4, 3), max_iter=2, visible="gaussian"),
    ],
    expected_failed_checks=lambda machine: {
        "check_sample_weight_equivalence_on_dense_data": RANDOM,
        "check_sample_weight_equivalence_on_sparse_data": RANDOM,
    },
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def two_groups(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(rng.random((n_rows, 2)) < 0.5, 3, axis=1).astype(int)


def tables():
    rng = np.random.default_rng(1)
    X = two_groups()
    return {
        "binary": X,
        "spin": 2 * X - 1,
        "words": np.where(X, "yes", "no"),
        "categories": np.array([["a", "b", "c"], ["x", "y", "z"]])[[0, 1], rng.integers(0, 3, (100, 2))],
        "shares": np.clip(X + rng.normal(0, 0.1, X.shape), 0, 1),
        "gaussian": X + rng.normal(0, 0.3, X.shape),
    }


@pytest.mark.parametrize("table", tables())
@pytest.mark.parametrize("name", MACHINES)
def test_every_kind_of_visible_unit(name, table, tmp_path):
    X = tables()[table]
    settings = {"visible": "gaussian"} if table == "gaussian" else {}
    if (name, table) == ("dbm", "spin"):  # a step in weights of -1/+1 units is a larger one
        settings["learning_rate"] = 0.02
    machine = MACHINES[name](**SMALL, **settings).fit(X)
    top = machine.transform(X)
    assert top.shape == (len(X), 3)
    assert ((top >= 0) & (top <= 1)).all()
    drawn = machine.sample(20, random_state=1)
    assert drawn.shape == (20, X.shape[1])
    if table not in ("shares", "gaussian"):
        assert set(drawn.ravel().tolist()) <= set(X.ravel().tolist())
    scores = machine.score_samples(X[:30])
    truth = machine.log_likelihood(X[:30], exact=True).per_row()
    assert np.isfinite(scores).all()
    # a bound by mean field always, by draws up to their error
    assert (scores <= truth + (1e-6 if name == "dbm" else 0.3)).all()
    path = tmp_path / "machine.gibbs"
    machine.save(path)
    again = gb.load(path)
    assert type(again) is type(machine)
    assert again.n_components == (4, 3)
    np.testing.assert_array_equal(again.score_samples(X[:30]), scores)
    np.testing.assert_array_equal(again.transform(X), top)
    assert again.result_.reason == machine.result_.reason


@pytest.mark.parametrize("name", MACHINES)
def test_learns_two_groups(name):
    X = two_groups(400)
    settings = {"max_iter": 60, "batch_size": 20, "learning_rate": 0.2}
    machine = MACHINES[name]((6, 4), random_state=0, **settings).fit(X)
    found = machine.log_likelihood(X)
    assert found.exact
    # independent columns have -6 log 2 = -4.16, the truth has -2 log 2 = -1.39
    assert found.lower > -2.2
    drawn = machine.sample(500, random_state=0)
    assert (drawn[:, 0] == drawn[:, 1]).mean() > 0.85


@pytest.mark.parametrize("layers", [3, (3,), (3, 2, 2), np.array([4, 2])], ids=["number", "one", "three", "array"])
@pytest.mark.parametrize("name", MACHINES)
def test_any_number_of_layers(name, layers):
    machine = MACHINES[name](layers, max_iter=2, random_state=0).fit(two_groups(50))
    sizes = tuple(np.atleast_1d(layers).tolist())
    assert [part.shape[1] for part in machine.transform_layers(two_groups(5))] == list(sizes)
    assert np.isfinite(machine.score(two_groups(20)))


def test_model_kinds_and_stories():
    X = two_groups(60)
    dbn = DBN(**SMALL).fit(X)
    assert isinstance(dbn.model_.family, gb.models.BeliefNetworkFamily)
    assert dbn.n_iter_ == 6
    named = gb.DeepBeliefNetwork((4, 3), max_iter=3, random_state=0).fit(X)  # with learning together, which it skips
    assert named.result_.reason == dbn.result_.reason == "trained for 3 epochs a layer, 2 layers"
    dbm = DBM(**SMALL, pretrain=0).fit(X)
    assert isinstance(dbm.model_.family, gb.models.StackFamily)
    assert dbm.result_.reason == "trained for 3 epochs"
    assert DBM(**SMALL).fit(X).result_.reason.endswith("2 layers, then 3 epochs together")


@pytest.mark.parametrize("name", MACHINES)
def test_same_seed_same_machine(name):
    X = two_groups(60)
    one, two = (MACHINES[name](**SMALL).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.model_.theta, two.model_.theta)
    np.testing.assert_array_equal(one.sample(5), two.sample(5))


def test_missing_cells():
    X = two_groups(150).astype(object)
    rng = np.random.default_rng(0)
    X[rng.random(X.shape) < 0.1] = None
    dbm = DBM(**SMALL).fit(X)
    assert dbm.transform(X).shape == (150, 3)
    assert np.isfinite(dbm.score_samples(X)).all()
    nothing = dbm.score_samples([[None] * 6])
    assert -1.0 < nothing[0] <= 1e-9


def test_a_belief_network_sums_over_missing_cells():
    """Scores, hidden units and cells are those of all completions of a row, each by its probability."""
    X = two_groups(150)
    dbn = DBN(**SMALL).fit(np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X))
    row = np.array([[1, np.nan, 1, 0, np.nan, 0]])
    filled = np.tile(np.nan_to_num(row), (4, 1)).astype(int)
    filled[:, [1, 4]] = [[0, 0], [0, 1], [1, 0], [1, 1]]
    logs = dbn.score_samples(filled)
    assert dbn.score_samples(row)[0] == pytest.approx(np.logaddexp.reduce(logs))
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    np.testing.assert_allclose(dbn.predict_proba(row)[0], shares @ filled)
    np.testing.assert_allclose(dbn.transform(row)[0], shares @ dbn.transform(filled))
    assert dbn.impute(row).shape == (1, 6)


def test_a_row_with_too_many_missing_cells_is_refused_by_a_belief_network():
    dbn = gb.DeepBeliefNetwork((2, 2), max_iter=1, random_state=0).fit(np.tile(two_groups(20), (1, 3)))
    with pytest.raises(TooExpensiveError, match="a row lacks cells"):
        dbn.score_samples([[None] * 18])


def test_a_deep_boltzmann_machine_fills_missing_cells():
    """Near the exact conditional law where units above tell of both groups; the present cells as they are."""
    X = two_groups(400)
    dbm = DBM((6, 4), max_iter=60, batch_size=20, learning_rate=0.2, random_state=0).fit(X)
    rows = np.array([[1, None, 1, 0, None, 0], [0, 0, None, 1, 1, None]], dtype=object)
    found = dbm.predict_proba(rows)
    for row, probabilities in zip(rows, found, strict=True):
        holes = [i for i, cell in enumerate(row) if cell is None]
        filled = np.tile(np.where([cell is None for cell in row], 0, row), (4, 1)).astype(int)
        filled[:, holes] = [[0, 0], [0, 1], [1, 0], [1, 1]]
        law = np.exp(dbm.log_likelihood(filled, exact=True).per_row())
        truth = law @ filled / law.sum()
        np.testing.assert_allclose(probabilities, truth, atol=0.05)
    assert dbm.impute(rows).tolist() == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]


def test_missing_categories_and_frames_are_filled():
    rng = np.random.default_rng(0)
    words = np.array(["red", "green", "blue"])[rng.integers(0, 3, 300)]
    frame = pd.DataFrame({"a": words, "b": words})
    dbm = DBM((8, 3), max_iter=60, batch_size=20, learning_rate=0.1, random_state=0).fit(frame)
    holed = pd.DataFrame({"a": ["red", "blue"], "b": [None, "blue"]})
    assert dbm.predict_proba(holed).shape == (2, 2, 3)
    pd.testing.assert_frame_equal(dbm.impute(holed), pd.DataFrame({"a": ["red", "blue"], "b": ["red", "blue"]}))


@pytest.mark.parametrize("name", MACHINES)
def test_an_interval_holds_the_truth_and_a_bound_has_no_upper_side(name, monkeypatch):
    X = two_groups(100)
    machine = MACHINES[name](**SMALL).fit(X)
    truth = machine.log_likelihood(X, exact=True)
    assert truth.exact
    found = machine.score_interval(X, n_samples=100, betas=200)
    assert found.lower <= truth.lower <= found.upper < found.lower + 0.5
    monkeypatch.setattr(layer_answers, "MOST_TERMS", 0)
    bound = machine.score_interval(X, n_samples=100, betas=200)
    assert truth.lower - 0.5 < bound.lower < truth.lower
    assert bound.upper == np.inf


def test_binary_chunks_teach_at_the_default_rate():
    X = two_groups(3000)
    dbm = gb.DeepBoltzmannMachine((6, 4), random_state=0)
    for chunk in np.split(X, 30):
        dbm.partial_fit(chunk)
    assert dbm.score(X) > -6 * np.log(2) + 0.5


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_rate_that_runs_to_infinity_is_named(name):
    """Parameters that are no numbers are refused, by a fit and by a chunk."""
    X = two_groups(100) + np.random.default_rng(0).normal(0, 0.3, (100, 6))
    machine = MACHINES[name](**SMALL, learning_rate=1e90, visible="gaussian")
    for learn in (clone(machine).fit, *([machine.partial_fit] if name == "dbm" else [])):
        with pytest.raises(ArgumentError, match=r"lower learning_rate=1e\+90"):
            learn(X)
    assert not hasattr(machine, "model_")


def test_weights_of_rows_count():
    X = np.array([[0, 0, 1], [1, 1, 0]])
    often = gb.DeepBoltzmannMachine((2, 2), max_iter=60, random_state=0).fit(X, sample_weight=[30.0, 10.0])
    shares = np.exp(often.log_likelihood(X).per_row())
    assert shares[0] > 2 * shares[1]


@pytest.mark.parametrize("name", MACHINES)
def test_held_out_rows_are_scored_with_a_bound(name):
    machine = MACHINES[name](**SMALL, validation_fraction=0.25).fit(two_groups(80))
    assert machine.result_.held_out.n_rows == 20
    assert machine.result_.held_out.kind == "lower bound on the log-likelihood"
    assert np.isfinite(machine.result_.held_out.score)


@pytest.mark.parametrize("name", MACHINES)
def test_log_partition_and_words(name):
    X = two_groups(50)
    machine = MACHINES[name](**SMALL).fit(X)
    bracket = machine.log_partition("ais", n_samples=50, betas=50)
    assert isinstance(bracket, LogPartitionInterval)
    assert bracket.lower - 0.1 < machine.log_partition() < bracket.upper + 0.1
    bound = machine.log_likelihood(X, exact=False)
    assert isinstance(bound, LogLikelihoodBound)
    assert str(bound).startswith("mean log-likelihood at least")


@pytest.mark.parametrize("name", MACHINES)
def test_pipeline(name):
    X = two_groups(200)
    y = X[:, 0] ^ X[:, 5]
    model = make_pipeline(MACHINES[name]((8, 8), max_iter=20, random_state=0), LogisticRegression()).fit(X, y)
    assert model.predict(X).shape == y.shape
    assert model[:-1].get_feature_names_out().tolist()[0] == f"{type(model[0]).__name__.lower()}0"


@pytest.mark.parametrize("name", MACHINES)
def test_pandas_output(name):
    machine = MACHINES[name](**SMALL).set_output(transform="pandas").fit(two_groups(50))
    assert list(machine.transform(two_groups(5)).columns) == [f"{type(machine).__name__.lower()}{j}" for j in range(3)]


@pytest.mark.parametrize("name", MACHINES)
def test_single_precision(name):
    machine = MACHINES[name](**SMALL, dtype="float32").fit(two_groups(50))
    assert machine.model_.theta.dtype == np.float32
    assert np.isfinite(machine.score(two_groups(20)))


@pytest.mark.parametrize("kind", ["auto", "gaussian"])
def test_chunks_teach_as_they_arrive(kind):
    rng = np.random.default_rng(0)
    X = two_groups(3000) + (rng.normal(0, 0.3, (3000, 6)) if kind == "gaussian" else 0)
    dbm = DBM((6, 4), batch_size=20, learning_rate=0.5, random_state=0, visible=kind)
    first = dbm.partial_fit(X[:100]).score(X[:200])
    for chunk in np.split(X[100:], 29):
        dbm.partial_fit(chunk)
    assert dbm.score(X[:200]) > first + 0.5
    assert dbm.result_.reason == "learned from 3000 rows in 30 chunks"
    assert len(dbm.history_["log_reconstruction"]) == 30
    with pytest.raises(ArgumentError, match="call fit"):
        dbm.set_params(n_components=(5, 4)).partial_fit(X[:10])


def test_partial_fit_goes_on_after_a_fit_and_a_load(tmp_path):
    X = two_groups(100)
    dbm = DBM(**SMALL).fit(X)
    dbm.save(tmp_path / "m.gibbs")
    for machine in (dbm, gb.load(tmp_path / "m.gibbs").set_params(random_state=0)):
        before = machine.model_.theta
        machine.partial_fit(X)
        assert 0 < np.abs(machine.model_.theta - before).max() < 1.0
        assert machine.result_.reason.endswith("1 chunk after a fit")


def test_mistakes_are_named():
    X = two_groups(20)
    with pytest.raises(ArgumentError, match="n_components=0 must be the numbers"):
        gb.DeepBeliefNetwork(0).fit(X)
    with pytest.raises(ArgumentError, match="n_components='64' must be"):
        gb.DeepBoltzmannMachine("64").fit(X)
    with pytest.raises(ArgumentError, match="alone='pcd' must be a Minibatch learner"):
        gb.learning.Stacking(alone="pcd")
    with pytest.raises(ArgumentError, match="carried='both' is not known"):
        DBN(**SMALL, carried="both").fit(X)
    with pytest.raises(ArgumentError, match="which can be probabilities"):
        DBN(**SMALL, carried="means").fit(2 * X - 1)
    machine = DBM(**SMALL).fit(X)
    with pytest.raises(ArgumentError, match="method='magic' is not known"):
        machine.sample(method="magic")
    with pytest.raises(ArgumentError, match="leave them out"):
        machine.sample(method="exact", n_steps=3)
    with pytest.raises(ArgumentError, match="leave them out"):
        machine.log_partition("exact", betas=10)


@pytest.mark.parametrize("sizes", [{4, 3}, {4: 1, 3: 1}, "43", 2.0])
def test_sizes_without_an_order_are_refused(sizes):
    with pytest.raises(ArgumentError, match="n_components="):
        DBM(sizes).fit(bits())


def test_chunks_of_a_deep_machine_tell_their_own_story():
    X = np.where(bits(30) == 1, 1.0, 0.0)
    X[0, 0] = np.nan
    dbm = small_machine("dbm").partial_fit(X).partial_fit(X, sample_weight=[1] * 10 + [0] * 20)
    told = dbm.result_.provenance
    assert told["missing_cells"] == 2
    assert told["learner"] == "minibatch"
    assert dbm.result_.reason == "learned from 40 rows in 2 chunks"


def test_the_history_of_a_deep_machine_is_that_of_its_fit_and_chunks():
    X = bits()
    dbm = small_machine("dbm", max_iter=4, pretrain=3).fit(X)
    curve = dbm.history_["log_reconstruction"]
    assert len(curve) == 4
    dbm.set_params(learner="stacking", max_iter=7)
    np.testing.assert_array_equal(dbm.history_["log_reconstruction"], curve)
    dbm.partial_fit(X).partial_fit(X)
    np.testing.assert_array_equal(dbm.history_["log_reconstruction"][:4], curve)
    assert len(dbm.history_["log_reconstruction"]) == 6
    assert dbm.result_.reason.endswith("2 chunks after a fit")


def test_a_single_size_stays_a_number_in_files(tmp_path):
    for sizes in (3, (3,), (3, 2)):
        DBM(sizes, max_iter=1, random_state=0).fit(bits()).save(tmp_path / "m.gibbs")
        loaded = gb.load(tmp_path / "m.gibbs").n_components
        assert loaded == sizes


class TestBeliefNetworkScores:
    X = bits(60, 4)
    EVERY = np.array(list(itertools.product((0, 1), repeat=4)))

    def test_small_networks_are_summed(self):
        dbn = DBN((5, 4), max_iter=30, learning_rate=1.0, random_state=0).fit(self.X)
        np.testing.assert_allclose(np.exp(dbn.score_samples(self.EVERY)).sum(), 1.0)
        assert dbn.score(self.X) == pytest.approx(dbn.log_likelihood(self.X).lower)

    def test_large_ones_stay_below_one(self):
        dbn = DBN((14, 4), max_iter=30, learning_rate=1.0, random_state=0).fit(self.X)
        assert np.exp(dbn.score_samples(self.EVERY)).sum() < 1.0
        assert dbn.score(self.X) < dbn.log_likelihood(self.X, exact=True).lower

    def test_rows_are_scored_alike_alone_and_together(self):
        layers = [BinaryUnits(4), SpinUnits(6), SpinUnits(3), BinaryUnits(2)]
        zeros = network(layers)
        found = zeros.replace(np.random.default_rng(0).normal(scale=0.2, size=zeros.theta.size))
        together, errors = recognition_bounds(found, self.EVERY, 50, 0, common=True)
        alone = [recognition_bounds(found, row[None], 50, 0, common=True)[0][0] for row in self.EVERY]
        np.testing.assert_allclose(together, alone)
        assert (np.abs(together - found.log_evidence(self.EVERY)) < 5 * errors + 0.05).all()

    def test_rows_held_out_that_all_lack_cells_are_scored(self):
        X = np.where(self.X == 1, 1.0, 0.0)
        X[:, 0] = np.nan
        X[0, 0] = 1.0
        dbn = DBN((3, 2), max_iter=2, validation_fraction=0.2, random_state=0).fit(X)
        assert np.isfinite(dbn.result_.held_out.score)
