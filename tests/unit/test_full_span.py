"""The full-span estimator: scikit-learn's checks, data of all kinds, answers in labels, files, checkpoints, Ctrl-C."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from gibbsian.errors import (
    ArgumentError,
    CodingError,
    ConvergenceWarning,
    DataError,
    DegenerateDataWarning,
    FileFormatError,
    TooExpensiveError,
)
from gibbsian.full_span import fit_full_span
from gibbsian.storage import Checkpoint


# As for the other machines: continuous numbers are cut.
@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@parametrize_with_checks(
    [gb.FullSpan(binarize=0.0), gb.FullSpan("newton", binarize=0.0), gb.FullSpan("dense", l2=0.1, binarize=0.0)],
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
    plain = fit_full_span((rows > 0).astype(int), np.ones(len(rows)), (2,) * 5)
    assert machine.coding_.name == name
    assert np.array_equal(machine.model_.indices, plain.model.indices)
    np.testing.assert_array_equal(machine.model_.theta, plain.model.theta)
    assert machine.cost_ == pytest.approx(plain.cost, abs=1e-12)
    assert machine.divergence_ == pytest.approx(plain.divergence, abs=1e-12)


def test_columns_of_different_kinds_are_read_by_their_labels(rng):
    machine = gb.FullSpan().fit(hair(rng))
    assert machine.labels_ == {"tall": (False, True), "hair": ("blond", "brown", "red"), "eyes": (0, 1, 2, 3)}
    assert machine.model_.cardinalities == (2, 3, 4)
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
    assert machine.divergence_to(whole).forward < 0.02
    # the cost is that of the observed cells: minus their mean log-probability
    assert machine.cost_ == pytest.approx(machine.basis_["penalty"].sum() - machine.score(rows), abs=1e-12)
    assert machine.trace_["cost"].iloc[-1] == pytest.approx(machine.cost_, abs=1e-4)


def test_declared_categories_may_be_absent_from_the_fit(rng):
    machine = gb.FullSpan(categories={"hair": ["red", "brown", "blond", "black"]}).fit(hair(rng))
    assert machine.labels_["hair"] == ("red", "brown", "blond", "black")
    assert 0 < machine.marginal("hair")["black"] < 0.05


# -- answers ----------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
class TestAnswers:
    def test_probabilities_sum_to_one_and_agree_with_marginals(self, fitted):
        rows, p = law(fitted)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        for name in fitted.names_:
            expected = pd.Series(p).groupby(rows[name].to_numpy()).sum()
            for label, probability in fitted.marginal(name).items():
                assert probability == pytest.approx(expected[label], abs=1e-12)
        first, last = fitted.names_[0], fitted.names_[-1]
        pair = fitted.marginal([last, first])
        one, other = rows.iloc[-1][last], rows.iloc[0][first]
        match = (rows[last] == one) & (rows[first] == other)
        assert pair[one, other] == pytest.approx(p[match].sum(), abs=1e-12)

    def test_conditionals(self, fitted):
        rows, p = law(fitted)
        first, second, last = fitted.names_[0], fitted.names_[1], fitted.names_[-1]
        given = {last: rows.iloc[-1][last], first: rows.iloc[0][first]}
        match = ((rows[last] == given[last]) & (rows[first] == given[first])).to_numpy()
        expected = pd.Series(p[match] / p[match].sum()).groupby(rows[second][match].to_numpy()).sum()
        joint = fitted.conditional(given, second)
        every = fitted.conditional(given)
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
        best = fitted.most_probable(3)
        np.testing.assert_allclose(best["probability"], np.sort(p)[::-1][:3], atol=1e-12)
        assert best[list(fitted.names_)].iloc[0].tolist() == rows.iloc[p.argmax()].tolist()
        drawn = pd.DataFrame(fitted.sample(20_000), columns=list(fitted.names_)).value_counts(normalize=True)
        assert drawn[tuple(rows.iloc[p.argmax()])] == pytest.approx(p.max(), abs=0.02)
        assert np.array_equal(fitted.sample(5, random_state=1), fitted.sample(5, random_state=1))

    def test_information(self, fitted):
        _, p = law(fitted)
        assert fitted.entropy() == pytest.approx(-(p * np.log(p)).sum(), abs=1e-10)
        a, b = fitted.names_[:2]
        expected = fitted.entropy(a) + fitted.entropy(b) - fitted.entropy([a, b])
        assert fitted.mutual_information(a, b) == pytest.approx(max(expected, 0.0), abs=1e-12)

    def test_means_of_the_functions_and_the_basis_table(self, fitted):
        table = fitted.basis_
        assert list(table.columns) == [
            "variables", "function", "order", "theta", "dual", "data_dual", "gain", "penalty",
        ]  # fmt: skip
        assert table["gain"].is_monotonic_decreasing
        assert (table["order"] == table["variables"].map(len)).all()
        assert set(fitted.expect().mean) == set(table["dual"])
        assert fitted.result_.training.is_trained

    def test_gain_is_what_the_divergence_grows_by_without_the_function(self, fitted):
        table, model = fitted.basis_, fitted.model_
        place = int(np.flatnonzero(model.theta == table["theta"].iloc[1])[0])
        without = gb.FullSpanModel(model.basis, np.delete(model.indices, place), np.delete(model.theta, place))
        means = fitted.result_.moments.mean
        rise = (without.log_partition - np.delete(means, place) @ without.theta) - (
            model.log_partition - means @ model.theta
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
    with pytest.raises(ArgumentError, match="log Z of a full-span model is exact"):
        machine.score_interval(hair(rng))


# -- other models -----------------------------------------------------------------------------------------------------
class TestOtherModels:
    def test_divergence_to_a_pairwise_machine(self, rng):
        rows = parities(rng)
        span, pairwise = gb.FullSpan().fit(rows), gb.BoltzmannMachine(learner="mle").fit(rows)
        states, p = law(span)
        log_q = pairwise.score_samples(states.to_numpy())
        found = span.divergence_to(pairwise)
        assert found.forward == pytest.approx(p @ (np.log(p) - log_q), abs=1e-10)
        assert found.backward == pytest.approx(np.exp(log_q) @ (log_q - np.log(p)), abs=1e-10)
        assert span.divergence_to(pairwise.model_).forward == pytest.approx(found.forward, abs=1e-10)

    def test_divergence_between_full_span_models_with_labels_in_another_order(self, rng):
        rows = hair(rng)
        one = gb.FullSpan().fit(rows)
        other = gb.FullSpan(categories={"hair": ["red", "brown", "blond"]}).fit(rows)
        assert other.labels_["hair"] != one.labels_["hair"]
        states, p = law(one)
        q = np.exp(other.score_samples(states))
        assert one.divergence_to(other).forward == pytest.approx(p @ np.log(p / q), abs=1e-10)
        assert one.divergence_to(one) == pytest.approx((0.0, 0.0), abs=1e-14)
        assert one.divergence_to(p.reshape(2, 3, 4)).backward == pytest.approx(0.0, abs=1e-12)
        potts = gb.PottsMachine(l2=0.01, learner="mle").fit(rows)
        q = np.exp(potts.score_samples(states))
        assert one.divergence_to(potts).backward == pytest.approx(q @ np.log(q / p), abs=1e-10)

    def test_models_that_cannot_be_compared_are_refused(self, rng):
        machine = gb.FullSpan().fit(hair(rng))
        with pytest.raises(ArgumentError, match="other model has the columns 'a', 'b', 'c' but this one has 'tall'"):
            machine.divergence_to(gb.FullSpan().fit(hair(rng).set_axis(["a", "b", "c"], axis=1)))
        with pytest.raises(ArgumentError, match=r"variables of \(2, 2\) values but this one of \(2, 3, 4\)"):
            machine.divergence_to(gb.PairwiseModel.zeros(gb.graphs.complete(2)))
        with pytest.raises(ArgumentError, match="shape"):
            machine.divergence_to([0.5, 0.5])
        with pytest.raises(ArgumentError, match="str is no distribution: give a fitted machine"):
            machine.divergence_to("uniform")
        with pytest.raises(NotFittedError):
            machine.divergence_to(gb.FullSpan())
        with pytest.raises(ArgumentError, match="StandardScaler gives no probabilities"):
            machine.divergence_to(StandardScaler().fit([[0.0], [1.0]]))

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

    def test_columns_with_labels_of_their_own_are_exported_as_spins(self, rng):
        rows = pd.DataFrame(np.where(parities(rng)[:, :3] > 0, [1, "yes", "b"], [0, "no", "a"]))
        span = gb.FullSpan().fit(rows.set_axis(["x", "y", "z"], axis=1))
        machine = span.to_higher_order()
        assert machine.coding_.name == "spin"
        labels = span.labels_
        states = np.array(list(itertools.product([-1, 1], repeat=3)))
        named = [[labels[name][(s + 1) // 2] for name, s in zip("xyz", row, strict=True)] for row in states]
        np.testing.assert_allclose(
            machine.score_samples(pd.DataFrame(states, columns=list("xyz"))),
            span.score_samples(pd.DataFrame(named, columns=list("xyz"))),
            atol=1e-10,
        )

    def test_only_two_valued_columns_have_spins(self, rng):
        with pytest.raises(CodingError, match="column 'hair' has 3 values"):
            gb.FullSpan().fit(hair(rng)).to_higher_order()


# -- fits that end early ----------------------------------------------------------------------------------------------
def stop_after(n_steps):
    def callback(number, step):
        if number == n_steps:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("algorithm", ["greedy", "newton"])
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
        half = gb.FullSpan(algorithm, checkpoint=path, callback=stop_after(n_steps)).fit(data)
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
    for other in (gb.FullSpan("newton"), gb.FullSpan(epsilon=1e-3), gb.FullSpan(l2=0.01)):
        with pytest.raises(FileFormatError, match="checkpoint of another fit"):
            other.set_params(callbacks=[Checkpoint(path, resume=True)]).fit(parities(np.random.default_rng(20061)))


def test_ctrl_c_leaves_a_usable_model(rng):
    rows = parities(rng)

    def press(number, step):
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(ConvergenceWarning, match="interrupted after 2 steps, the model so far is kept: go on .* start="):
        machine = gb.FullSpan(callback=press).fit(rows)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not machine.result_.converged
    assert len(machine.basis_) == 2
    assert machine.most_probable()["probability"].iloc[0] > 0
    whole = gb.FullSpan(start=machine).fit(rows)
    assert whole.result_.converged
    assert whole.cost_ == pytest.approx(gb.FullSpan().fit(rows).cost_, abs=1e-3)


def test_start_must_have_the_same_columns(rng):
    machine = gb.FullSpan().fit(parities(rng))
    with pytest.raises(ArgumentError, match="other columns or values"):
        gb.FullSpan(start=machine).fit(hair(rng))
    with pytest.raises(ArgumentError, match="must be None, a fitted FullSpan or a FullSpanModel"):
        gb.FullSpan(start="newton").fit(hair(rng))


def test_callback_tells_cost_size_and_time(rng):
    told = []
    machine = gb.FullSpan(callback=lambda number, step: told.append(step)).fit(parities(rng))
    assert [step.cost for step in told] == machine.trace_["cost"].tolist()
    assert [step.n_functions for step in told] == machine.trace_["n_functions"].tolist()
    assert machine.result_.seconds == pytest.approx(sum(step.seconds for step in told))


# -- settings ---------------------------------------------------------------------------------------------------------
def test_shrinkage_leaves_no_zeros_and_a_consistent_cost(rng):
    for algorithm in ("greedy", "newton"):
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


def test_held_out_rows_and_model_selection(rng):
    machine = gb.FullSpan(held_out=0.25, random_state=0).fit(parities(rng))
    assert machine.result_.held_out.n_rows == 75
    assert machine.result_.held_out.kind == "log-likelihood"
    search = GridSearchCV(gb.FullSpan(), {"mdl_scale": [1.0, 50.0]}, cv=3).fit(parities(rng))
    assert search.best_params_ == {"mdl_scale": 1.0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithm": "quick"}, "algorithm='quick' must be one of greedy, newton, dense"),
        ({"dtype": "int8"}, "dtype='int8' must be one of float64, float32"),
        ({"epsilon": "small"}, "epsilon='small' must be a number"),
        ({"epsilon": 0}, "epsilon=0 is less than float64 tables resolve"),
        ({"max_iter": 0}, "max_iter=0 must be at least 1"),
        ({"held_out": 1.0}, "held_out=1.0 must be a share"),
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
    with pytest.raises(ArgumentError, match="lies in no folder: create /absent first"):
        gb.FullSpan(checkpoint="/absent/c").fit(rows)
    with pytest.raises(TooExpensiveError, match="100 variables"):
        gb.FullSpan().fit(rng.integers(0, 2, (50, 100)))


def test_a_column_with_one_value_is_named_and_modelled(rng):
    rows = pd.DataFrame(parities(rng), columns=list("abcde")).assign(b=1)
    with pytest.warns(DegenerateDataWarning, match="column 'b' holds 1 only"):
        machine = gb.FullSpan().fit(rows)
    assert machine.marginal("b")[1] > 0.99
    labelled = gb.FullSpan().fit(hair(rng).assign(country="here"))  # one label only: nothing to estimate
    assert labelled.marginal("country")["here"] == pytest.approx(1.0)
    assert labelled.sample(2).shape == (2, 4)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.DegenerateDataWarning")
def test_one_row_and_equal_rows_give_sane_models():
    one = gb.FullSpan().fit([[0, 1, 1]])
    assert one.result_.converged
    assert len(one.basis_) == 0
    assert one.score([[0, 1, 1]]) == pytest.approx(-3 * np.log(2))
    assert one.predict([[0, np.nan, 1]]).shape == (1, 3)
    assert len(one.trace_) == 0
    equal = gb.FullSpan().fit([[0, 1, 1]] * 200)
    assert np.exp(equal.score([[0, 1, 1]])) > 0.95
    assert np.isfinite(equal.score([[1, 0, 0]]))
    with pytest.raises(DataError, match="every variable has one value only: there is nothing to learn"):
        gb.FullSpan().fit([["a", "b"]] * 5)


def test_data_that_are_neither_are_refused_by_name(rng, tmp_path):
    with pytest.raises(DataError, match="column 'x0' holds 500 different values"):
        gb.FullSpan().fit(rng.normal(size=(500, 2)))
    with pytest.raises(DataError, match="column 'b' has no observed cell"):
        gb.FullSpan().fit(pd.DataFrame({"a": [0, 1, 1], "b": [None, None, None]}))
    np.save(tmp_path / "rows.npy", rng.integers(0, 2, (20, 3), dtype=np.int8))
    with pytest.raises(ArgumentError, match="read rows into memory with Dataset"):
        gb.FullSpan().fit(gb.data.DataStream.open(tmp_path / "rows.npy"))


def test_a_fit_takes_no_more_memory_than_was_predicted(monkeypatch):
    """Nothing after the last step asks for a third table while the two of the fit are held."""
    rows = np.random.default_rng(0).integers(0, 2, (50, 12))
    held = []

    def require(n_bytes, what, instead):
        held.append((what, n_bytes))

    monkeypatch.setattr("gibbsian.models.full_span.require_memory", require)
    gb.FullSpan("newton").fit(rows)
    assert held == []
