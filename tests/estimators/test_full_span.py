"""The full-span estimator: scikit-learn's checks, data of all kinds, answers in labels, files, checkpoints, Ctrl-C."""

from __future__ import annotations

import itertools
import math
import os
import pickle
import signal
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from gibbsian.answers import answers_about
from gibbsian.errors import (
    ArgumentError,
    CodingError,
    ConvergenceWarning,
    DataError,
    DegenerateDataWarning,
    FileFormatError,
    TooExpensiveError,
)
from gibbsian.resources import memory_limit
from gibbsian.storage import Checkpoint
from span_fits import basis_of, dense_model, dual_of, fit, learner_of, table_of
from systems import every_function


# As for the other machines: continuous numbers are cut.
@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@parametrize_with_checks(
    [
        gb.FullSpan(coding=gb.data.Threshold(0.0)),
        gb.FullSpan("span-newton", coding=gb.data.Threshold(0.0)),
        gb.FullSpan("span-dense", l2=0.1, coding=gb.data.Threshold(0.0)),
    ],
    expected_failed_checks=lambda machine: {
        "check_sample_weight_equivalence_on_dense_data": "30 columns have 2^30 states: refused by their memory"
    },
)
def test_scikit_learn_checks(estimator, check, monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1")
    check(estimator)


def hair(rng, n_rows=400):
    """Columns of two, three and four values, the last two related."""
    colour = rng.choice(["blond", "brown", "red"], n_rows)
    eyes = np.where(
        rng.random(n_rows) < 0.6, np.searchsorted(["blond", "brown", "red"], colour), rng.integers(0, 4, n_rows)
    )
    return pd.DataFrame({"tall": rng.random(n_rows) < 0.3, "hair": colour, "eyes": eyes})


def parities(rng, n_rows=300):
    rows = np.where(rng.random((n_rows, 5)) < 0.6, 1, -1)
    rows[:, 4] = np.where(rng.random(n_rows) < 0.8, rows[:, :3].prod(axis=1), rows[:, 4])
    return rows


@pytest.fixture(params=["hair", "spin"])
def fitted(request, rng):
    return gb.FullSpan(random_state=0).fit(hair(rng) if request.param == "hair" else parities(rng))


def law(machine):
    """Every row as it is written, and its probability."""
    labels = list(machine.labels_.values())
    rows = pd.DataFrame(list(itertools.product(*labels)), columns=list(machine.names_))
    return rows, np.exp(machine.score_samples(rows if hasattr(machine, "feature_names_in_") else rows.to_numpy()))


# -- data -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("low", "high", "name"), [(0, 1, "binary"), (-1, 1, "spin"), ("no", "yes", "yes/no"), (False, True, "true/false")]
)
def test_every_way_to_write_two_values_is_the_same_fit(low, high, name, rng):
    rows = parities(rng)
    machine = gb.FullSpan().fit(np.where(rows > 0, high, low))
    plain = fit((rows > 0).astype(int), np.ones(len(rows)), (2,) * 5)
    assert machine.coding_.name == name
    assert np.array_equal(machine.model_.family.functions, plain.model.family.functions)
    np.testing.assert_array_equal(machine.model_.theta, plain.model.theta)
    assert machine.cost_ == pytest.approx(plain.cost, abs=1e-12)
    assert machine.divergence_ == pytest.approx(plain.divergence, abs=1e-12)


def test_columns_of_different_kinds_are_read_by_their_labels(rng):
    machine = gb.FullSpan().fit(hair(rng))
    assert machine.labels_ == {"tall": (False, True), "hair": ("blond", "brown", "red"), "eyes": (0, 1, 2, 3)}
    assert machine.model_.variables.sizes == (2, 3, 4)
    assert set(machine.basis_.iloc[0]["variables"]) <= {"tall", "hair", "eyes"}
    assert ("hair", "eyes") in machine.basis_["variables"].tolist()


def test_weights_are_frequencies(rng):
    rows, times = parities(rng, 60), rng.integers(0, 4, 60)
    weighted = gb.FullSpan().fit(rows, sample_weight=times)
    repeated = gb.FullSpan().fit(np.repeat(rows, times, axis=0))
    np.testing.assert_allclose(weighted.model_.theta, repeated.model_.theta, atol=1e-12)
    with pytest.raises(DataError, match=r"sample_weight adds up to 0\.6: weights count rows"):
        gb.FullSpan().fit(rows, sample_weight=np.full(60, 0.01))


def test_missing_cells_are_learned_from(rng):
    rows = parities(rng, 600).astype(float)
    whole = gb.FullSpan().fit(rows)
    rows[rng.random(rows.shape) < 0.1] = np.nan
    machine = gb.FullSpan().fit(rows)
    assert machine.result_.provenance["missing_cells"] == np.isnan(rows).sum()
    assert machine.divergence(whole).forward.value < 0.02
    # the cost is that of the observed cells: minus their mean log-probability
    assert machine.cost_ == pytest.approx(machine.basis_["penalty"].sum() - machine.score(rows), abs=1e-12)
    assert machine.trace_["cost"].iloc[-1] == pytest.approx(machine.cost_, abs=1e-4)


def test_declared_categories_may_be_absent_from_the_fit(rng):
    machine = gb.FullSpan(coding={"hair": ["red", "brown", "blond", "black"]}).fit(hair(rng))
    assert machine.labels_["hair"] == ("red", "brown", "blond", "black")
    assert 0 < machine.marginal("hair").probability["black"] < 0.05


# -- answers ----------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
class TestAnswers:
    def test_probabilities_sum_to_one_and_agree_with_marginals(self, fitted):
        rows, p = law(fitted)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        for name in fitted.names_:
            expected = pd.Series(p).groupby(rows[name].to_numpy()).sum()
            for label, probability in fitted.marginal(name).probability.items():
                assert probability == pytest.approx(expected[label], abs=1e-12)
        first, last = fitted.names_[0], fitted.names_[-1]
        pair = fitted.marginal([last, first]).probability
        one, other = rows.iloc[-1][last], rows.iloc[0][first]
        match = (rows[last] == one) & (rows[first] == other)
        assert pair[one, other] == pytest.approx(p[match].sum(), abs=1e-12)

    def test_conditionals(self, fitted):
        rows, p = law(fitted)
        first, second, last = fitted.names_[0], fitted.names_[1], fitted.names_[-1]
        given = {last: rows.iloc[-1][last], first: rows.iloc[0][first]}
        match = ((rows[last] == given[last]) & (rows[first] == given[first])).to_numpy()
        expected = pd.Series(p[match] / p[match].sum()).groupby(rows[second][match].to_numpy()).sum()
        joint = fitted.conditional(given, second).probability
        every = fitted.conditional(given).probability
        assert set(every.index.get_level_values("column")) == set(fitted.names_) - {first, last}
        for label in expected.index:
            assert joint[label] == pytest.approx(expected[label], abs=1e-12)
            assert every[second, label] == pytest.approx(expected[label], abs=1e-12)
        rest = fitted.condition(given)
        assert rest.score([[expected.index[0], *rows.iloc[0, 2:-1]]]) <= 0
        assert rest.basis_["gain"].isna().all()

    def test_missing_cells_are_predicted(self, fitted):
        rows, p = law(fitted)
        row = rows.iloc[[3]].astype(object).copy()
        name = fitted.names_[1]
        row[name] = None
        match = (rows.drop(columns=name) == rows.drop(columns=name).iloc[3]).all(axis=1).to_numpy()
        posterior = p[match] / p[match].sum()
        source = row if hasattr(fitted, "feature_names_in_") else row.to_numpy()
        found = fitted.predict_proba(source)[0][1]
        if fitted.coding_.domain.two_valued:
            assert found == pytest.approx(posterior[1], abs=1e-12)
        else:
            np.testing.assert_allclose(found[: len(posterior)], posterior, atol=1e-12)
        filled = np.asarray(fitted.predict(source))
        assert filled[0][1] == rows[name][match].to_numpy()[posterior.argmax()]
        assert np.exp(fitted.score_samples(source))[0] == pytest.approx(p[match].sum(), abs=1e-12)

    def test_most_probable_and_samples(self, fitted):
        rows, p = law(fitted)
        best = fitted.most_probable(n_states=3)
        np.testing.assert_allclose(best.probabilities, np.sort(p)[::-1][:3], atol=1e-12)
        assert best.rows[0].tolist() == rows.iloc[p.argmax()].tolist()
        drawn = pd.DataFrame(fitted.sample(20_000), columns=list(fitted.names_)).value_counts(normalize=True)
        assert drawn[tuple(rows.iloc[p.argmax()])] == pytest.approx(p.max(), abs=0.02)
        assert np.array_equal(fitted.sample(5, random_state=1), fitted.sample(5, random_state=1))

    def test_information(self, fitted):
        _, p = law(fitted)
        assert fitted.entropy().value == pytest.approx(-(p * np.log(p)).sum(), abs=1e-10)
        a, b = fitted.names_[:2]
        expected = fitted.entropy(a).value + fitted.entropy(b).value - fitted.entropy([a, b]).value
        assert fitted.mutual_information(a, b).value == pytest.approx(max(expected, 0.0), abs=1e-12)

    def test_means_of_the_functions_and_the_basis_table(self, fitted):
        table = fitted.basis_
        assert list(table.columns) == [
            "variables", "function", "order", "theta", "dual", "data_dual", "gain", "penalty",
        ]  # fmt: skip
        assert table["gain"].is_monotonic_decreasing
        assert (table["order"] == table["variables"].map(len)).all()
        assert set(fitted.expect().value) == set(table["dual"])
        assert fitted.result_.training.is_trained

    def test_gain_is_what_the_divergence_grows_by_without_the_function(self, fitted):
        table, model = fitted.basis_, fitted.model_
        place = int(np.flatnonzero(model.theta == table["theta"].iloc[1])[0])
        without = gb.Model(model.family.take(np.arange(model.theta.size) != place), np.delete(model.theta, place))
        means = fitted.result_.moments.mean
        rise = (table_of(without).log_partition - np.delete(means, place) @ without.theta) - (
            table_of(model).log_partition - means @ model.theta
        )
        assert table["gain"].iloc[1] == pytest.approx(rise, abs=1e-10)
        assert rise > table["penalty"].iloc[1]  # or the function would have been removed

    def test_files_give_the_same_machine(self, fitted, tmp_path):
        fitted.save(tmp_path / "m.gibbs")
        loaded = gb.load(tmp_path / "m.gibbs")
        assert type(loaded) is gb.FullSpan
        assert np.array_equal(law(loaded)[1], law(fitted)[1])
        pd.testing.assert_frame_equal(loaded.basis_, fitted.basis_)
        pd.testing.assert_frame_equal(loaded.trace_, fitted.trace_)
        assert loaded.result_.reason == fitted.result_.reason
        assert loaded.cost_ == fitted.cost_
        assert pickle.loads(pickle.dumps(fitted)).cost_ == fitted.cost_


def test_wrong_names_and_labels_are_named(rng):
    machine = gb.FullSpan().fit(hair(rng))
    with pytest.raises(ArgumentError, match="column 'age' is not one of 'tall', 'hair', 'eyes'"):
        machine.marginal("age")
    with pytest.raises(CodingError, match=r"'hair' holds 'green', which the model has not seen"):
        machine.conditional({"hair": "green"})
    with pytest.raises(CodingError, match=r"'hair' holds 'green', which the model has not seen"):
        machine.predict_proba(pd.DataFrame({"tall": [True], "hair": ["green"], "eyes": [None]}))
    with pytest.raises(ArgumentError, match="'hair' is given and asked for"):
        machine.conditional({"hair": "red"}, ["eyes", "hair"])
    with pytest.raises(ArgumentError, match="every variable is given"):
        machine.condition({"hair": "red", "eyes": 1, "tall": True})
    with pytest.raises(ArgumentError, match="twice"):
        machine.mutual_information("hair", "hair")
    with pytest.raises(ArgumentError, match="names is empty"):
        machine.marginal([])


# -- other models -----------------------------------------------------------------------------------------------------
class TestOtherModels:
    def test_divergence_a_pairwise_machine(self, rng):
        rows = parities(rng)
        span, pairwise = gb.FullSpan().fit(rows), gb.BoltzmannMachine(learner="mle").fit(rows)
        states, p = law(span)
        log_q = pairwise.score_samples(states.to_numpy())
        found = span.divergence(pairwise)
        assert found.forward.value == pytest.approx(p @ (np.log(p) - log_q), abs=1e-10)
        assert found.backward.value == pytest.approx(np.exp(log_q) @ (log_q - np.log(p)), abs=1e-10)
        assert span.divergence(pairwise.model_).forward.value == pytest.approx(found.forward.value, abs=1e-10)

    def test_divergence_between_full_span_models_with_labels_in_another_order(self, rng):
        rows = hair(rng)
        one = gb.FullSpan().fit(rows)
        other = gb.FullSpan(coding={"hair": ["red", "brown", "blond"]}).fit(rows)
        assert other.labels_["hair"] != one.labels_["hair"]
        states, p = law(one)
        q = np.exp(other.score_samples(states))
        assert one.divergence(other).forward.value == pytest.approx(p @ np.log(p / q), abs=1e-10)
        assert [float(number) for number in one.divergence(one)] == pytest.approx((0.0, 0.0, 0.0), abs=1e-14)
        assert one.divergence(p.reshape(2, 3, 4)).backward.value == pytest.approx(0.0, abs=1e-12)
        potts = gb.PottsMachine(l2=0.01, learner="mle").fit(rows)
        q = np.exp(potts.score_samples(states))
        assert one.divergence(potts).backward.value == pytest.approx(q @ np.log(q / p), abs=1e-10)

    def test_models_that_cannot_be_compared_are_refused(self, rng):
        machine = gb.FullSpan().fit(hair(rng))
        with pytest.raises(ArgumentError, match="other model has the columns 'a', 'b', 'c' but this one has 'tall'"):
            machine.divergence(gb.FullSpan().fit(hair(rng).set_axis(["a", "b", "c"], axis=1)))
        with pytest.raises(ArgumentError, match=r"variables of \(2, 2\) values but this one of \(2, 3, 4\)"):
            machine.divergence(gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2))))
        with pytest.raises(ArgumentError, match="shape"):
            machine.divergence([0.5, 0.5])
        with pytest.raises(ArgumentError, match="str is no distribution: give a fitted machine"):
            machine.divergence("uniform")
        with pytest.raises(NotFittedError):
            machine.divergence(gb.FullSpan())
        with pytest.raises(ArgumentError, match="StandardScaler gives no probabilities"):
            machine.divergence(StandardScaler().fit([[0.0], [1.0]]))

    @pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 1), ("no", "yes"), ("a", "b")])
    def test_export_to_a_higher_order_machine(self, low, high, rng, tmp_path):
        rows = np.where(parities(rng) > 0, high, low)
        span = gb.FullSpan().fit(rows)
        machine = span.to_higher_order()
        assert machine.log_partition() == pytest.approx(span.log_partition(), abs=1e-10)
        np.testing.assert_allclose(machine.score_samples(rows), span.score_samples(rows), atol=1e-10)
        assert sorted(machine.weights_["clique"]) == sorted(span.basis_["variables"])
        machine.save(tmp_path / "m.gibbs")
        assert gb.load(tmp_path / "m.gibbs").score(rows) == pytest.approx(span.score(rows), abs=1e-10)

    def test_columns_keep_labels_of_their_own_when_exported_as_spins(self, rng):
        rows = pd.DataFrame(np.where(parities(rng)[:, :3] > 0, [1, "yes", "b"], [0, "no", "a"]))
        span = gb.FullSpan().fit(rows.set_axis(["x", "y", "z"], axis=1))
        machine = span.to_higher_order()
        assert machine.coding_.name == "spin"
        labels = span.labels_
        named = pd.DataFrame(list(itertools.product(*(labels[name] for name in "xyz"))), columns=list("xyz"))
        np.testing.assert_allclose(machine.score_samples(named), span.score_samples(named), atol=1e-10)

    def test_only_two_valued_columns_have_spins(self, rng):
        with pytest.raises(CodingError, match="column 'hair' has 3 values"):
            gb.FullSpan().fit(hair(rng)).to_higher_order()


# -- fits that end early ----------------------------------------------------------------------------------------------
def press_after(n_steps):
    """Press Ctrl-C after some steps."""

    def callback(number, step):
        if number == n_steps:
            os.kill(os.getpid(), signal.SIGINT)

    return callback


@pytest.mark.parametrize("algorithm", ["span-greedy", "span-newton"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("n_steps", [3, 17])
def test_a_resumed_fit_ends_in_the_same_bits(algorithm, missing, n_steps, tmp_path, rng):
    votes = gb.datasets.load_house_votes()
    data = (votes if missing else votes.complete_rows()).take(np.arange(150))
    plain = gb.FullSpan(algorithm).fit(data)
    path = tmp_path / "fit.checkpoint"
    with pytest.warns(
        ConvergenceWarning, match=r"interrupted after \d+ steps, .* checkpoint=Checkpoint\('.*resume=True"
    ):
        half = gb.FullSpan(algorithm, checkpoint=path, callbacks=press_after(n_steps)).fit(data)
    assert not half.result_.converged
    assert half.result_.n_steps == n_steps
    assert np.isfinite(half.score(data))
    whole = gb.FullSpan(algorithm, checkpoint=Checkpoint(path, resume=True)).fit(data)
    assert whole.result_.provenance["resumed_at_step"] == n_steps
    assert np.array_equal(whole.model_.theta, plain.model_.theta)
    assert whole.cost_ == plain.cost_
    columns = ["kind", "variables", "gain", "cost", "n_functions"]
    pd.testing.assert_frame_equal(whole.trace_[columns], plain.trace_[columns])


def test_a_new_process_resumes_to_the_same_bits(tmp_path):
    votes = gb.datasets.load_house_votes()
    plain = gb.FullSpan().fit(votes)
    with pytest.warns(ConvergenceWarning, match="max_iter=40"):
        gb.FullSpan(max_iter=40, checkpoint=Checkpoint(tmp_path / "c", every=20)).fit(votes)
    code = (
        "import sys, gibbsian as gb\n"
        "checkpoint = gb.storage.Checkpoint(sys.argv[1] + '/c', resume=True)\n"
        "gb.FullSpan(checkpoint=checkpoint).fit(gb.datasets.load_house_votes()).save(sys.argv[1] + '/m')\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    resumed = gb.load(tmp_path / "m")
    assert resumed.result_.provenance["resumed_at_step"] == 40
    assert np.array_equal(resumed.model_.theta, plain.model_.theta)
    assert resumed.cost_ == plain.cost_


def test_a_checkpoint_of_another_fit_is_refused(tmp_path, rng):
    path = tmp_path / "c"
    gb.FullSpan(checkpoint=Checkpoint(path, every=1)).fit(parities(rng))
    for other in (gb.FullSpan("span-newton"), gb.FullSpan(tol=1e-3), gb.FullSpan(l2=0.01)):
        with pytest.raises(FileFormatError, match="checkpoint of another fit"):
            other.set_params(callbacks=[Checkpoint(path, resume=True)]).fit(parities(np.random.default_rng(20061)))


def test_ctrl_c_leaves_a_usable_model(rng):
    rows = parities(rng)

    with pytest.warns(ConvergenceWarning, match="interrupted after 2 steps, the model so far is kept: go on .* start"):
        machine = gb.FullSpan(callbacks=press_after(2)).fit(rows)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not machine.result_.converged
    assert len(machine.basis_) == 2
    assert machine.most_probable().probabilities[0] > 0
    whole = gb.FullSpan(start=machine).fit(rows)
    assert whole.result_.converged
    assert whole.cost_ == pytest.approx(gb.FullSpan().fit(rows).cost_, abs=1e-3)


def test_start_must_have_the_same_columns(rng):
    machine = gb.FullSpan().fit(parities(rng))
    with pytest.raises(ArgumentError, match="other columns or values"):
        gb.FullSpan(start=machine).fit(hair(rng))
    with pytest.raises(ArgumentError, match="must be None, a fitted FullSpan or a model of a FullSpanFamily"):
        gb.FullSpan(start="span-newton").fit(hair(rng))


def test_callback_tells_cost_size_and_time(rng):
    told = []
    machine = gb.FullSpan(callbacks=lambda number, step: told.append(step)).fit(parities(rng))
    assert [step.value for step in told] == machine.trace_["cost"].tolist()
    assert [step.metrics["n_functions"] for step in told] == machine.trace_["n_functions"].tolist()
    assert machine.result_.seconds == pytest.approx(machine.trace_["seconds"].sum())


# -- settings ---------------------------------------------------------------------------------------------------------
def test_shrinkage_leaves_no_zeros_and_a_consistent_cost(rng):
    for algorithm in ("span-greedy", "span-newton"):
        machine = gb.FullSpan(algorithm, l1=0.02).fit(parities(rng))
        assert (machine.model_.theta != 0).all()
        shrinks = 0.02 * np.abs(machine.model_.theta).sum()
        assert machine.cost_ == pytest.approx(
            machine.divergence_ + machine.basis_["penalty"].sum() + shrinks, abs=1e-10
        )


def test_penalties_reach_the_fit(rng):
    rows = parities(rng)
    plain, heavy = gb.FullSpan().fit(rows), gb.FullSpan(l2=1.0).fit(rows)
    assert np.abs(heavy.model_.theta).max() < 0.7 * np.abs(plain.model_.theta).max()
    assert len(gb.FullSpan(mdl_scale=5.0).fit(rows).basis_) < len(plain.basis_)


def test_a_penalty_that_grows_with_the_order_accounts_for_the_moments(rng):
    """At the maximum a penalty holds each moment off the data's by its own slope: ``l2 growth^(order - 1) theta``."""
    rows = np.column_stack([rng.integers(0, 2, (400, 3)), np.zeros(400, int)])
    rows[:, 3] = rows[:, 0] ^ rows[:, 1] ^ (rng.random(400) < 0.1)
    report = gb.FullSpan("span-dense", l2=0.1, l2_growth=2.0, tol=1e-9).fit(rows).result_.training
    assert report.largest_z > 5
    np.testing.assert_allclose(report.unexplained, 0.0, atol=1e-5)


def test_held_out_rows_and_model_selection(rng):
    machine = gb.FullSpan(validation_fraction=0.25, random_state=0).fit(parities(rng))
    assert machine.result_.held_out.n_rows == 75
    assert machine.result_.held_out.kind == "log-likelihood"
    search = GridSearchCV(gb.FullSpan(), {"mdl_scale": [1.0, 50.0]}, cv=3).fit(parities(rng))
    assert search.best_params_ == {"mdl_scale": 1.0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": "quick"}, "learner='quick' is not known"),
        ({"learner": "mple"}, "learner='mple' does not learn a FullSpan"),
        ({"learner": "span-dense", "l2": 0.0}, r"l2=0\.0 must be above 0 with learner='span-dense', .* give l2"),
        ({"learner": "span-dense", "l2": 0.1, "l1": 0.1}, "learner='span-dense' has no setting l1"),
        ({"learner": "span-dense", "l2": 0.1, "dtype": "float32"}, "learner='span-dense' has no setting dtype"),
        ({"dtype": "int8"}, "dtype='int8' is not known: use one of float64, float32"),
        ({"tol": "small"}, "tol='small' must be a number"),
        ({"tol": 0}, "tol=0 must be above 0"),
        ({"tol": 1e-14}, "tol=1e-14 is less than float64 tables resolve"),
        ({"max_iter": 0}, "max_iter=0 must be at least 1"),
        ({"n_components": 0}, "n_components=0 must be at least 1"),
        ({"validation_fraction": 1.0}, r"validation_fraction=1\.0 must be at least 0 and below 1"),
    ],
)
def test_bad_settings_are_named(settings, message, rng):
    with pytest.raises(ArgumentError, match=message):
        gb.FullSpan(**settings).fit(parities(rng))


# -- hard data --------------------------------------------------------------------------------------------------------
def test_too_many_variables_are_refused_before_anything_is_allocated(monkeypatch, rng):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1")
    rows = rng.integers(0, 2, (50, 27))
    with pytest.raises(TooExpensiveError, match=r"27 variables .* needs 2\.0 GiB but 1\.0 GiB may be used: choose"):
        gb.FullSpan().fit(rows)
    with pytest.raises(TooExpensiveError, match=r"27 variables .* with a checkpoint needs 1\.5 GiB"):
        gb.FullSpan(dtype="float32", checkpoint="absent").fit(rows)
    with pytest.raises(TooExpensiveError, match="100 variables"):
        gb.FullSpan().fit(rng.integers(0, 2, (50, 100)))


def test_a_column_with_one_value_is_named_and_modelled(rng):
    rows = pd.DataFrame(parities(rng), columns=list("abcde")).assign(b=1)
    with pytest.warns(DegenerateDataWarning, match="column 'b' holds 1 only"):
        machine = gb.FullSpan().fit(rows)
    assert machine.marginal("b").probability[1] > 0.99
    labelled = gb.FullSpan().fit(hair(rng).assign(country="here"))  # one label only: nothing to estimate
    assert labelled.marginal("country").probability["here"] == pytest.approx(1.0)
    assert labelled.sample(2).shape == (2, 4)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.DegenerateDataWarning")
def test_one_row_and_equal_rows_give_sane_models():
    one = gb.FullSpan().fit([[0, 1, 1]])
    assert one.result_.converged
    assert len(one.basis_) == 0
    assert one.score([[0, 1, 1]]) == pytest.approx(-3 * np.log(2))
    assert one.predict([[0, np.nan, 1]]).shape == (1, 3)
    assert one.trace_["kind"].tolist() == ["stop"]
    equal = gb.FullSpan().fit([[0, 1, 1]] * 200)
    assert np.exp(equal.score([[0, 1, 1]])) > 0.95
    assert np.isfinite(equal.score([[1, 0, 0]]))
    with pytest.raises(DataError, match="every variable has one value only: there is nothing to learn"):
        gb.FullSpan().fit([["a", "b"]] * 5)


def test_data_that_are_neither_are_refused_by_name(rng):
    with pytest.raises(DataError, match="column 'x0' holds 500 different values"):
        gb.FullSpan().fit(rng.normal(size=(500, 2)))
    with pytest.raises(DataError, match="column 'b' has no observed cell"):
        gb.FullSpan().fit(pd.DataFrame({"a": [0, 1, 1], "b": [None, None, None]}))


def test_a_stream_is_counted(rng, tmp_path):
    rows = (parities(rng) > 0).astype(np.int8)
    np.save(tmp_path / "rows.npy", rows)
    streamed = gb.FullSpan().fit(gb.data.DataStream.open(tmp_path / "rows.npy"))
    assert np.array_equal(streamed.model_.theta, gb.FullSpan().fit(rows).model_.theta)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "settings", [{}, {"learner": "span-dense", "l2": 1.0, "l2_growth": 5.0}], ids=["greedy", "dense"]
)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_a_fit_takes_no_more_memory_than_was_predicted(settings, missing, rng):
    rows = rng.integers(0, 2, (100, 18)).astype(float)
    if missing:
        rows[:40, 3] = np.nan
    machine = gb.FullSpan(**settings, max_iter=12)
    machine.fit(rows[:, :5])  # what is compiled and imported
    tracemalloc.start()
    machine.fit(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ("fill" in set(machine.trace_["kind"])) == missing
    learner = learner_of("dense", l2=1.0) if settings else learner_of()
    assert peak <= learner.memory(basis_of((2,) * 18), missing=missing) + 2**20


# -- all functions at once --------------------------------------------------------------------------------------------
STRENGTHS = {"l2": 0.003, "l2_growth": 3.0}


def noisy_parities(rng, n_rows=300, n_variables=6):
    rows = rng.integers(0, 2, (n_rows, n_variables))
    follows = rng.random(n_rows) < 0.8
    rows[follows, -1] = rows[follows, :3].sum(axis=1) % 2
    return rows


def pierced(rows, rng, share=0.15):
    holes = rng.random(rows.shape) < share
    holes[holes.all(axis=1), 0] = False
    return np.where(holes, np.nan, rows.astype(float))


def test_the_estimator_finds_the_minimum_over_all_functions(rng):
    rows = noisy_parities(rng)
    machine = gb.FullSpan("span-dense", **STRENGTHS).fit(rows)
    plain = fit(rows, np.ones(len(rows)), (2,) * 6, "dense", **STRENGTHS)
    assert machine.result_.converged
    assert machine.cost_ == pytest.approx(plain.cost, abs=1e-12)
    assert machine.divergence_ == pytest.approx(plain.divergence, abs=1e-12)
    assert machine.result_.provenance["mdl_scale"] == 0.0
    np.testing.assert_allclose(table_of(machine.model_).values, table_of(plain.model).values, atol=1e-9)
    table = machine.basis_
    assert len(table) == 63
    assert (table["penalty"] == 0).all()
    assert np.average(machine.score_samples(rows)) == pytest.approx(machine.score(rows))


def test_files_hold_a_model_of_all_functions(tmp_path, rng):
    rows = noisy_parities(rng)
    machine = gb.FullSpan("span-dense", **STRENGTHS).fit(rows)
    machine.save(tmp_path / "m")
    again = gb.load(tmp_path / "m")
    assert again.learner == "span-dense"
    assert np.array_equal(again.score_samples(rows), machine.score_samples(rows))
    pd.testing.assert_frame_equal(again.basis_, machine.basis_)


def test_held_out_rows_prefer_it_where_much_is_weak():
    rng = np.random.default_rng(1)
    rows = basis_of((2,) * 7).digits(rng.choice(128, 600, p=table_of(dense_model(rng, (2,) * 7)).values))
    scores = [
        gb.FullSpan(**settings, validation_fraction=0.5, random_state=0).fit(rows).result_.held_out.score
        for settings in ({"learner": "span-dense", "l2": 0.01, "l2_growth": 2.0}, {"learner": "span-greedy"})
    ]
    assert scores[0] > scores[1]


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("n_steps", [2, 9])
def test_a_resumed_fit_of_all_functions_ends_in_the_same_bits(missing, n_steps, tmp_path, rng):
    rows = pierced(noisy_parities(rng), rng) if missing else noisy_parities(rng)
    settings = {"learner": "span-dense", "l2": 1e-4, "l2_growth": 2.0}
    plain = gb.FullSpan(**settings).fit(rows)
    n_steps = min(n_steps, plain.result_.n_steps - 1)
    path = tmp_path / "fit.checkpoint"

    with pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ steps, .*resume=True"):
        half = gb.FullSpan(**settings, checkpoint=path, callbacks=press_after(n_steps)).fit(rows)
    assert np.isfinite(half.score(rows))
    whole = gb.FullSpan(**settings, checkpoint=Checkpoint(path, resume=True)).fit(rows)
    assert whole.result_.provenance["resumed_at_step"] == n_steps
    assert np.array_equal(whole.model_.theta, plain.model_.theta)
    assert whole.cost_ == plain.cost_
    columns = ["kind", "gain", "cost", "n_functions"]
    pd.testing.assert_frame_equal(whole.trace_[columns], plain.trace_[columns])


def test_ctrl_c_leaves_a_model_to_go_on_from(rng):
    rows = noisy_parities(rng)

    with pytest.warns(ConvergenceWarning, match="interrupted after 2 steps"):
        half = gb.FullSpan("span-dense", **STRENGTHS, callbacks=press_after(2)).fit(rows)
    plain = gb.FullSpan("span-dense", **STRENGTHS).fit(rows)
    whole = gb.FullSpan("span-dense", **STRENGTHS, start=half).fit(rows)
    assert half.cost_ > plain.cost_
    assert whole.result_.n_steps < plain.result_.n_steps
    assert whole.cost_ == pytest.approx(plain.cost_, abs=1e-10)


def test_a_sparse_model_is_a_start_and_a_dense_one_for_others(rng):
    rows = noisy_parities(rng)
    sparse = gb.FullSpan().fit(rows)
    dense = gb.FullSpan("span-dense", **STRENGTHS, start=sparse).fit(rows)
    assert dense.cost_ == pytest.approx(gb.FullSpan("span-dense", **STRENGTHS).fit(rows).cost_, abs=1e-10)
    assert gb.FullSpan(start=dense).fit(rows).result_.converged


@pytest.mark.parametrize("complete_rows", [True, False])
def test_missing_cells_are_summed_out_to_a_minimum(complete_rows, rng):
    """The end is a minimum of the cost on the observed cells: as good as what a general minimiser finds from there."""
    rows = pierced(noisy_parities(rng, 200, 4), rng)
    if not complete_rows:
        rows[~np.isnan(rows).any(axis=1), 3] = np.nan
    machine = gb.FullSpan("span-dense", l2=0.01, l2_growth=2.0, tol=1e-8).fit(rows)
    fills = machine.trace_[machine.trace_["kind"] == "fill"]
    assert len(fills) > 2
    assert (np.diff(fills["cost"]) < 1e-12).all()
    data = gb.Dataset.read(rows)
    family = every_function(machine.model_.variables)
    strengths = 0.01 * 2.0 ** (family.basis.orders(family.functions) - 1.0)

    def cost(theta):
        model = gb.Model(family, theta)
        evidence = answers_about(model).log_evidence(data) - table_of(model).log_partition
        return -np.average(evidence, weights=data.weights) + 0.5 * strengths @ theta**2

    theta = np.zeros(15)
    theta[machine.model_.family.functions - 1] = machine.model_.theta
    assert minimize(cost, theta).fun == pytest.approx(cost(theta), abs=1e-6)


# -- what users ran into ----------------------------------------------------------------------------------------------
def coupled(rng, n_rows=200):
    rows = rng.integers(0, 2, (n_rows, 3))
    rows[:, 2] = np.where(rng.random(n_rows) < 0.6, rows[:, 0], rows[:, 2])
    return rows


def with_holes(rows, rng, share=0.3):
    holes = rng.random(rows.shape) < share
    holes[holes.all(axis=1)] = False  # rows that show nothing are left out of a fit
    return np.where(holes, np.nan, rows)


@pytest.fixture
def coupled_fit(rng):
    return gb.FullSpan(random_state=0).fit(coupled(rng))


@pytest.fixture
def mixed():
    """Columns of every type that a frame may have."""
    n = 40
    code = np.arange(n) % 2
    return pd.DataFrame(
        {
            "colour": pd.Categorical(np.where(code, "red", "blue"), categories=["red", "blue", "green"]),
            "size": np.array([3, 7, 9])[np.arange(n) % 3],
            "dose": np.array([0.5, 1.5])[code],
            "grade": pd.array(code + 1, dtype="Int64"),
            "ill": pd.array(code == 1, dtype="boolean"),
            "old": code == 0,
            "word": np.where(code, "a", "b"),
        }
    )


# -- missing cells ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("settings", [{}, {"learner": "span-newton"}, {"learner": "span-dense", "l2": 0.01}], ids=str)
def test_with_missing_cells_the_cost_is_the_likelihood_of_the_observed_ones(settings, tmp_path, rng):
    rows = with_holes(coupled(rng), rng)
    machine = gb.FullSpan(**settings).fit(rows)
    story = machine.result_.provenance
    shrinks = 0.5 * story["l2"] * float(machine.model_.theta @ machine.model_.theta)
    expected = machine.basis_["penalty"].sum() + shrinks - machine.score(rows)
    assert machine.cost_ == pytest.approx(expected, abs=1e-12)
    assert math.isnan(machine.divergence_)
    assert "divergence" not in story
    assert (machine.trace_["cost"] > 0).all()
    assert machine.cost_ - 1e-12 <= machine.trace_["cost"].iloc[-1] <= machine.cost_ + 1e-4
    machine.save(tmp_path / "model.gibbs")
    loaded = gb.load(tmp_path / "model.gibbs")
    assert loaded.cost_ == machine.cost_
    assert math.isnan(loaded.divergence_)


@pytest.mark.filterwarnings("ignore:stopped at max_iter")
def test_a_fit_stopped_before_the_first_fill_tells_the_cost_of_all_rows(rng):
    rows = with_holes(coupled(rng), rng)
    machine = gb.FullSpan(max_iter=1).fit(rows)
    assert machine.trace_["kind"].tolist() == ["append"]
    assert machine.result_.provenance["samples"] == len(rows)
    assert machine.cost_ == pytest.approx(machine.basis_["penalty"].sum() - machine.score(rows), abs=1e-12)


# -- answers ----------------------------------------------------------------------------------------------------------
def test_conditional_keeps_truth_values_and_numbers_apart():
    n = np.arange(40)
    frame = pd.DataFrame({"s": n % 2, "flag": n % 4 > 1, "count": n % 3})
    machine = gb.FullSpan().fit(frame)
    found = machine.conditional({"s": 1}).probability
    assert found.index.tolist() == [("flag", "False"), ("flag", "True"), ("count", 0), ("count", 1), ("count", 2)]
    np.testing.assert_allclose(found["flag"], machine.conditional({"s": 1}, "flag").probability)
    np.testing.assert_allclose(found["count"], machine.conditional({"s": 1}, "count").probability)
    assert machine.conditional({"count": 1}, "flag").index.tolist() == [False, True]


def test_a_conditioned_model_does_not_tell_the_cost_of_its_parent(coupled_fit, tmp_path):
    rest = coupled_fit.condition({"x0": 1})
    assert math.isnan(rest.cost_)
    assert math.isnan(rest.divergence_)
    assert not {"cost", "divergence", "steps", "seconds"} & set(rest.result_.provenance)
    assert rest.result_.provenance["functions"] == rest.model_.theta.size
    rest.save(tmp_path / "rest.gibbs")
    assert math.isnan(gb.load(tmp_path / "rest.gibbs").cost_)


def test_columns_by_number(coupled_fit):
    assert coupled_fit.marginal(np.int64(1)).equals(coupled_fit.marginal("x1"))
    assert coupled_fit.marginal(np.array([2, 0])).equals(coupled_fit.marginal(["x2", "x0"]))
    assert coupled_fit.conditional({np.int64(0): 1}).equals(coupled_fit.conditional({"x0": 1}))


@pytest.mark.parametrize("names", [1.5, None, True, np.int64(7), [None]], ids=repr)
def test_columns_that_do_not_exist_are_named(coupled_fit, names):
    with pytest.raises(ArgumentError, match=r"column (1\.5|None|True|7) is not one of 'x0', 'x1', 'x2'"):
        coupled_fit.marginal(names)


def test_given_must_be_a_mapping_of_each_column_once(coupled_fit):
    for given in ("s", ["x0"], None):
        with pytest.raises(ArgumentError, match="must map columns to their values"):
            coupled_fit.conditional(given)
    with pytest.raises(ArgumentError, match="column 'x0' is named twice"):
        coupled_fit.condition({"x0": 1, 0: 1})
    with pytest.raises(DataError, match="5") as refused:
        coupled_fit.condition({"x0": np.int64(5)})
    assert "np.int64" not in str(refused.value)


def test_counts_of_answers_are_whole_numbers(coupled_fit):
    for wrong in (2.5, "3", None, True):
        with pytest.raises(ArgumentError, match=r"n_samples=.* must be a whole number"):
            coupled_fit.sample(wrong)
        with pytest.raises(ArgumentError, match=r"n_states=.* must be a whole number"):
            coupled_fit.most_probable(n_states=wrong)
    assert len(coupled_fit.sample(np.int64(3))) == 3


def test_filled_frames_keep_the_types_of_their_columns(mixed):
    machine = gb.FullSpan().fit(mixed)
    for filled in (machine.impute(mixed), machine.predict(mixed)):
        pd.testing.assert_frame_equal(filled, mixed)
    holes = mixed.copy()
    holes.loc[::5, ["colour", "dose", "grade", "ill", "word"]] = None
    filled = machine.impute(holes)
    assert filled.dtypes.tolist() == mixed.dtypes.tolist()
    assert not filled.isna().any().any()


def test_filled_frames_of_numbers_keep_their_types(rng):
    whole = pd.DataFrame(coupled(rng), columns=["a", "b", "c"], index=np.arange(200) + 7)
    for kind in ("int64", "float32", "Int64", "bool", "uint8"):
        frame = whole.astype(kind)
        pd.testing.assert_frame_equal(gb.FullSpan().fit(frame).impute(frame), frame)
    assert gb.BoltzmannMachine().fit(whole).impute(whole).dtypes.eq("int64").all()


def test_filled_polars_frames_keep_their_types():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {"colour": ["red", "blue"] * 20, "dose": [0.5, 1.5] * 20, "old": [True, False] * 20, "size": [3, 7] * 20},
        schema_overrides={"colour": polars.Categorical},
    )
    machine = gb.FullSpan().fit(frame)
    assert machine.impute(frame).equals(frame)
    assert machine.impute(frame).schema == frame.schema


# -- settings ---------------------------------------------------------------------------------------------------------
def test_a_clone_of_a_start_says_that_it_is_not_fitted(coupled_fit, rng):
    rows = coupled(rng)
    with pytest.raises(ArgumentError, match=r"start is a FullSpan that is not fitted.*start=machine\.model_"):
        clone(gb.FullSpan(start=coupled_fit)).fit(rows)
    assert np.isfinite(cross_val_score(gb.FullSpan(start=coupled_fit.model_), rows, cv=2)).all()
    with pytest.raises(ArgumentError, match="start is a BoltzmannMachine that is not fitted"):
        gb.BoltzmannMachine(start=gb.BoltzmannMachine()).fit(rows)


@pytest.mark.parametrize("machine", [gb.FullSpan, gb.BoltzmannMachine, gb.PottsMachine, gb.HigherOrderBoltzmannMachine])
def test_hooks_are_checked_before_the_fit(machine, rng):
    for settings in ({"checkpoint": 3}, {"callbacks": 3}):
        with pytest.raises(ArgumentError, match=f"{next(iter(settings))}=3 must be"):
            machine(**settings, **({"coding": "categorical"} if machine is gb.PottsMachine else {})).fit(coupled(rng))


def test_a_loaded_machine_is_fitted_to_new_values(tmp_path):
    machine = gb.FullSpan().fit([["a", "x"], ["b", "y"]] * 20)
    machine.save(tmp_path / "model.gibbs")
    loaded = gb.load(tmp_path / "model.gibbs")
    assert loaded.get_params() == machine.get_params()
    assert loaded.impute([["b", None]]).tolist() == [["b", "y"]]
    assert loaded.fit([[0, 5, 1], [1, 6, 1], [1, 5, 0]] * 20).labels_["x1"] == (5, 6)


def test_declared_categories_survive_a_file(tmp_path):
    machine = gb.FullSpan(coding=gb.data.Labels(["a", "b", "c"])).fit([["a", "b"], ["b", "a"]] * 20)
    machine.save(tmp_path / "model.gibbs")
    assert gb.load(tmp_path / "model.gibbs").fit([["a", "a"], ["b", "b"]] * 20).labels_["x0"] == ("a", "b", "c")


def test_a_loaded_boltzmann_machine_reads_by_its_own_coding(tmp_path):
    machine = gb.BoltzmannMachine().fit([["yes", "no"], ["no", "no"], ["yes", "yes"], ["no", "yes"]])
    machine.save(tmp_path / "model.gibbs")
    loaded = gb.load(tmp_path / "model.gibbs")
    assert loaded.coding == "auto"
    assert loaded.score([["yes", "no"]]) == machine.score([["yes", "no"]])
    assert loaded.fit([[0, 1], [1, 1], [0, 0], [1, 0]]).coding_.name == "binary"


def test_tables_of_float32(tmp_path, rng):
    rows = coupled(rng)
    machine = gb.FullSpan(dtype="float32").fit(rows)
    np.testing.assert_allclose(machine.model_.theta, gb.FullSpan().fit(rows).model_.theta, atol=1e-5)
    machine.save(tmp_path / "model.gibbs")
    assert gb.load(tmp_path / "model.gibbs").dtype == "float32"
    for wrong in (None, "float16", 3, int):
        with pytest.raises(ArgumentError, match=r"dtype=.* is not known: use one of float64, float32"):
            gb.FullSpan(dtype=wrong).fit(rows)


@pytest.mark.parametrize("machine", [gb.FullSpan, gb.BoltzmannMachine])
def test_too_small_a_share_held_out_is_named(machine, rng):
    for share in (0.001, 0.999):
        with pytest.raises(ArgumentError, match=f"validation_fraction={share} of 200 rows"):
            machine(validation_fraction=share).fit(coupled(rng))


@pytest.mark.parametrize("declared", ["-1", "0", "nan", "inf", "much"])
def test_a_memory_limit_that_is_none(declared, monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", declared)
    with pytest.raises(ArgumentError, match=f"GIBBSIAN_MEMORY_LIMIT='{declared}' must be a number of GiB above 0"):
        memory_limit()


def test_warnings_point_at_the_call(rng):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gb.FullSpan(coding="binary").fit(np.column_stack([coupled(rng), np.zeros(200, int)]))
        gb.FullSpan(max_iter=1, mdl_scale=0.0).fit(coupled(rng))
        gb.BoltzmannMachine(max_iter=1).fit(coupled(rng))
    assert caught[0].category is DegenerateDataWarning
    assert len(caught) == 3
    assert {one.filename for one in caught} == {__file__}


# -- a hidden variable, averages, choices -----------------------------------------------------------------------------
def two_classes(rng, n_rows=400):
    """Independent columns within each of two classes, written as -1 and +1."""
    return np.where(rng.random((n_rows, 5)) < rng.choice([0.15, 0.85], (n_rows, 1)), 1, -1)


@pytest.mark.parametrize("n_components", [2, 3])
def test_a_hidden_variable_explains_what_columns_share(n_components, tmp_path, rng):
    rows = two_classes(rng)
    machine = gb.FullSpan(n_components=n_components, random_state=0).fit(rows)
    assert machine.result_.converged
    assert machine.model_.variables.sizes == (2, 2, 2, 2, 2, n_components)
    shares = machine.transform(rows)
    assert shares.shape == (400, n_components)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    if n_components == 2:  # as there are classes
        assert machine.cost_ < gb.FullSpan().fit(rows).cost_
    assert set(np.unique(machine.sample(100))) == {-1, 1}
    drawn, hidden = machine.sample(20, return_hidden=True)
    assert drawn.shape == (20, 5)
    assert hidden.shape == (20, 1)
    _, p = law_of_columns(machine, rows)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    machine.save(tmp_path / "m")
    loaded = gb.load(tmp_path / "m")
    assert np.array_equal(loaded.score_samples(rows), machine.score_samples(rows))
    np.testing.assert_allclose(loaded.transform(rows), shares)


def law_of_columns(machine, rows):
    every = np.array(list(itertools.product(*(np.unique(column) for column in rows.T))))
    return every, np.exp(machine.score_samples(every))


def test_a_hidden_variable_with_missing_cells_and_labels(rng):
    rows = np.where(two_classes(rng) > 0, "yes", "no").astype(object)
    rows[rng.random(rows.shape) < 0.1] = None
    machine = gb.FullSpan(n_components=2, random_state=0, max_iter=300).fit(rows)
    assert machine.result_.converged
    assert math.isnan(machine.divergence_)
    assert set(machine.impute(rows)[:, 0]) == {"no", "yes"}


def two_causes(rng, n_rows=500):
    """Three columns that follow one hidden cause, and three that follow another, written as no and yes."""
    causes = rng.integers(0, 2, (n_rows, 2))
    return np.where(np.repeat(causes, 3, axis=1) ^ (rng.random((n_rows, 6)) < 0.1), "yes", "no").astype(object), causes


@pytest.fixture(scope="module")
def with_causes():
    rows, causes = two_causes(np.random.default_rng(5))
    return gb.FullSpan("span-newton", n_components=(2, 3), n_init=3, random_state=0).fit(rows), rows, causes


class TestSeveralHiddenVariables:
    def test_answers_are_sums_over_the_joint_table(self, with_causes):
        machine, rows, _ = with_causes
        assert machine.model_.variables.sizes == (2,) * 6 + (2, 3)
        assert machine.result_.converged
        assert "the best of 3 starts" in machine.result_.reason
        joint = table_of(machine.model_).values.reshape(64, 2, 3)
        place = (rows == "yes") @ 2 ** np.arange(5, -1, -1)
        np.testing.assert_allclose(machine.score_samples(rows), np.log(joint.sum(axis=(1, 2)))[place], atol=1e-12)
        given = joint / joint.sum(axis=(1, 2), keepdims=True)
        expected = np.hstack([given.sum(axis=2), given.sum(axis=1)])[place]
        np.testing.assert_allclose(machine.transform(rows), expected, atol=1e-12)
        names = ["hidden 0=0", "hidden 0=1", "hidden 1=0", "hidden 1=1", "hidden 1=2"]
        assert machine.get_feature_names_out().tolist() == names
        assert list(machine.labels_)[-2:] == ["hidden 0", "hidden 1"]

    def test_the_causes_are_found(self, with_causes):
        machine, rows, causes = with_causes
        shares = machine.transform(rows)
        for cause in causes.T:  # each is told by one of the variables
            told = [np.mean((part @ _means_by(part, cause) > 0.5) == cause) for part in (shares[:, :2], shares[:, 2:])]
            assert max(told) > 0.93

    def test_samples_show_hidden_values_on_demand(self, with_causes):
        machine, _, _ = with_causes
        drawn, hidden = machine.sample(4000, return_hidden=True, random_state=1)
        assert drawn.shape == (4000, 6)
        joint = table_of(machine.model_).values.reshape(64, 2, 3).sum(axis=0)
        seen = np.bincount(hidden @ [3, 1], minlength=6).reshape(2, 3) / 4000
        np.testing.assert_allclose(seen, joint, atol=0.04)

    def test_a_file_keeps_them(self, with_causes, tmp_path):
        machine, rows, _ = with_causes
        machine.save(tmp_path / "m")
        loaded = gb.load(tmp_path / "m")
        assert loaded.n_components == (2, 3)
        assert np.array_equal(loaded.transform(rows), machine.transform(rows))
        assert np.array_equal(loaded.score_samples(rows), machine.score_samples(rows))

    def test_conditions_and_divergences_sum_them_out(self, with_causes):
        machine, rows, _ = with_causes
        rest = machine.condition({"x0": "yes"})
        others = pd.DataFrame(rows[:, 1:], columns=list(rest.names_))
        assert rest.transform(others).shape == (500, 5)
        full = machine.score_samples(np.column_stack([np.full(500, "yes", object), rows[:, 1:]]))
        marginal = machine.marginal("x0").probability["yes"]
        np.testing.assert_allclose(rest.score_samples(others), full - np.log(marginal), atol=1e-12)
        assert machine.divergence(machine).forward.value == pytest.approx(0.0, abs=1e-12)

    def test_variables_of_one_value_are_none(self, rng):
        rows = two_classes(rng, 200)
        one, same, also = (gb.FullSpan(n_components=n, random_state=0).fit(rows) for n in (2, (2,), [1, 2, 1]))
        assert np.array_equal(one.model_.theta, same.model_.theta)
        assert np.array_equal(one.model_.theta, also.model_.theta)
        assert one.get_feature_names_out().tolist() == ["hidden=0", "hidden=1"]

    def test_the_learner_of_hidden_variables_by_name(self, rng):
        rows = two_classes(rng, 200)
        by_name = gb.FullSpan(gb.learning.SpanHidden(), n_components=(2, 2), random_state=0).fit(rows)
        around = gb.FullSpan("span-newton", n_components=(2, 2), random_state=0).fit(rows)
        assert np.array_equal(by_name.model_.theta, around.model_.theta)

    @pytest.mark.parametrize(("given", "words"), [((2, 0), "0 must be at least 1"), ((2, 2.5), "2.5 must be a whole")])
    def test_bad_numbers_of_values_are_named(self, given, words, rng):
        with pytest.raises(ArgumentError, match=f"n_components={words}"):
            gb.FullSpan(n_components=given).fit(two_classes(rng, 50))


def _means_by(shares, cause):
    """The share of a cause among the rows of each hidden value."""
    return shares.T @ cause / np.maximum(shares.sum(axis=0), 1e-9)


def test_l1_by_itself_keeps_every_mean_within_its_strength(tmp_path, rng):
    rows = noisy_parities(rng)
    machine = gb.FullSpan("span-l1", l1=0.03).fit(rows)
    assert machine.result_.converged
    basis = machine.basis_
    np.testing.assert_allclose(np.abs(basis["dual"] - basis["data_dual"]), 0.03, atol=1e-5)
    assert (np.sign(basis["data_dual"] - basis["dual"]) == np.sign(basis["theta"])).all()
    functions = machine.model_.family.basis.values(np.arange(64), rows)
    assert np.abs(functions.mean(axis=0) - dual_of(machine.model_)).max() < 0.03 + 1e-5
    penalty = 0.03 * np.abs(machine.model_.theta).sum()
    assert machine.cost_ == pytest.approx(machine.divergence_ + penalty, abs=1e-12)
    assert len(gb.FullSpan("span-l1", l1=0.3).fit(rows).basis_) < len(basis)
    machine.save(tmp_path / "m")
    assert gb.load(tmp_path / "m").result_.provenance["l1"] == 0.03
    with pytest.raises(ArgumentError, match="has no setting mdl_scale"):
        gb.FullSpan("span-l1", mdl_scale=0.5).fit(rows)


def test_without_a_hidden_variable_there_is_nothing_to_transform(coupled_fit):
    assert not hasattr(coupled_fit, "transform")


def test_a_learner_object_brings_its_own_settings(rng):
    rows = noisy_parities(rng)
    given = gb.FullSpan(gb.learning.SpanGreedy(tol=1e-3, mdl_scale=0.5)).fit(rows)
    named = gb.FullSpan(tol=1e-3, mdl_scale=0.5).fit(rows)
    assert np.array_equal(given.model_.theta, named.model_.theta)
    with pytest.raises(ArgumentError, match="a learner object brings its own settings"):
        gb.FullSpan(gb.learning.SpanGreedy(), mdl_scale=0.5).fit(rows)


def test_more_starts_of_a_hidden_variable_end_no_higher(rng):
    rows = two_classes(rng)
    one, many = (gb.FullSpan(n_components=3, n_init=n, random_state=0).fit(rows) for n in (1, 4))
    assert many.result_.converged
    assert "the best of 4 starts" in many.result_.reason
    assert many.cost_ <= one.cost_ + 1e-3
    assert np.isfinite(many.basis_["dual"]).all()
    assert many.transform(rows).shape == (400, 3)
