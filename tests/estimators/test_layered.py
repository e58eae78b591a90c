"""What restricted and deep machines share: real columns, settings, chunks, exact and annealed answers."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import (
    ArgumentError,
    ConvergenceWarning,
    DataError,
    DegenerateDataWarning,
    StorageError,
    TooExpensiveError,
)
from layered_systems import bits, small_machine
from layered_systems import rbm as RBM

PHASES = ("pcd", "cd", "smci", "tempering")


class TestGaussianUnits:
    X = np.random.default_rng(1).normal(3.0, 2.0, (300, 2))

    @pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
    def test_deviations_given_are_those_of_the_draws(self, temperature):
        rbm = RBM(2, visible="gaussian", deviations=[0.5, 4.0], temperature=temperature, max_iter=1, random_state=0)
        model = rbm.fit(self.X).model_
        draws = model.family.draw(model.parts, 0, [None, np.zeros((20000, 2))], np.random.default_rng(0))
        np.testing.assert_allclose(draws.std(axis=0), [0.5, 4.0], rtol=0.02)

    def test_estimated_deviations_do_not_depend_on_the_temperature(self):
        cool, warm = (RBM(2, visible="gaussian", temperature=t, max_iter=1).fit(self.X).model_ for t in (1.0, 9.0))
        np.testing.assert_allclose(*(model.family.layers[0].deviations for model in (warm, cool)))

    @pytest.mark.parametrize("deviations", [[1.0], [[1.0, 1.0]], ["a", "b"], "wide", None, -1.0, [1.0, np.nan]])
    def test_wrong_deviations_are_shown_as_given(self, deviations):
        with pytest.raises(
            ArgumentError, match=r"deviations=.* must be 'residual', 'plain', a positive number, or one"
        ):
            RBM(2, visible="gaussian", deviations=deviations).fit(self.X)

    def test_discrete_data_do_not_hide_wrong_deviations(self):
        with pytest.raises(ArgumentError, match="deviations='foo'"):
            RBM(2, deviations="foo").fit(bits())

    @pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
    def test_a_constant_column_is_named_once(self, name):
        X = np.column_stack([self.X, np.full(300, 7.0)])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            small_machine(name, visible="gaussian").fit(X)
        assert [w.category for w in caught] == [DegenerateDataWarning]
        assert "'x2'" in str(caught[0].message)

    def test_given_deviations_need_no_warning(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            machine = RBM(2, visible="gaussian", deviations=1.0, max_iter=1)
            machine.fit(np.column_stack([self.X, np.ones(300)]))
        assert np.isfinite(machine.model_.theta).all()

    def test_one_row_has_columns_that_never_vary(self):
        with pytest.warns(DegenerateDataWarning, match="'x0', 'x1'"):
            RBM(2, visible="gaussian", max_iter=1).fit(self.X[:1])

    @pytest.mark.parametrize("factor", [1e200, 1e-300])
    def test_numbers_without_a_square_are_refused_by_column(self, factor):
        X = self.X * [1.0, factor]
        with pytest.raises(DataError, match=r"column 'x1' .* square"):
            RBM(2, visible="gaussian").fit(X)


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_steps", 2.5), ("n_steps", "a"), ("n_steps", True), ("n_chains", "a"), ("n_chains", True),
        ("n_chains", 0), ("dtype", 3), ("dtype", None), ("centred", "a"), ("verbose", "a"), ("temperature", -1.0),
        ("negative_phase", "xx"),
    ],
)  # fmt: skip
def test_settings_are_refused_by_their_own_name(name, setting, value):
    with pytest.raises(ArgumentError, match=rf"^{setting}="):
        small_machine(name, **{setting: value}).fit(bits())


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_a_checkpoint_in_no_folder_is_refused_before_training(name, tmp_path):
    epochs = []
    told = small_machine(name, checkpoint=tmp_path / "none" / "c", callbacks=lambda step, info: epochs.append(step))
    with pytest.raises(StorageError, match="which is no folder"):
        told.fit(bits())
    assert not epochs


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_layers_too_wide_for_the_memory_are_refused(name, monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "4")
    wide = small_machine(name).set_params(n_components=10**7 if name == "rbm" else (10**7, 2))
    with pytest.raises(TooExpensiveError, match="10,000,000"):
        wide.fit(bits(n_columns=1))


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_exact_is_true_or_false(name):
    with pytest.raises(ArgumentError, match="exact='no' must be True, False or None"):
        small_machine(name).fit(bits()).log_likelihood(bits(), exact="no")


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_a_table_without_a_cell_is_refused(name):
    with pytest.raises(DataError, match="all cells of all 5 rows are missing: there is nothing to fit"):
        small_machine(name).fit(np.full((5, 3), np.nan))


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_weights_of_one_change_nothing(name):
    X = bits(60)
    plain, weighted = small_machine(name).fit(X), small_machine(name).fit(X, sample_weight=np.ones(60))
    np.testing.assert_array_equal(plain.model_.theta, weighted.model_.theta)
    some = small_machine(name).fit(X, sample_weight=[0] * 30 + [1] * 30)
    np.testing.assert_array_equal(small_machine(name).fit(X[30:]).model_.theta, some.model_.theta)


@pytest.mark.parametrize(
    ("name", "first", "then"),
    [
        (name, *pair)
        for name, phases in (("rbm", PHASES), ("dbm", [phase for phase in PHASES if phase != "smci"]))
        for pair in itertools.permutations(phases, 2)
    ],
)
def test_the_negative_phase_may_change_between_chunks(name, first, then):
    told = small_machine(name, learner=gb.learning.Minibatch(negative_phase=first)).partial_fit(bits())
    told.set_params(learner=gb.learning.Minibatch(negative_phase=then)).partial_fit(bits())
    assert told.result_.provenance["chunks"] == 2


def test_deep_machines_learn_by_spatial_integration_too():
    learner = gb.learning.Minibatch(negative_phase="smci")
    fitted = gb.DeepBoltzmannMachine((3, 2), learner=learner, max_iter=3, random_state=0).fit(bits())
    assert np.isfinite(fitted.model_.theta).all()


@pytest.mark.parametrize("name", ["rbm", "dbm"])
@pytest.mark.parametrize("changed", [{"hidden": "spin"}, {"visible": "spin"}], ids=",".join)
def test_settings_of_the_model_cannot_change_between_chunks(name, changed):
    told = small_machine(name).partial_fit(bits()).set_params(**changed)
    with pytest.raises(ArgumentError, match=rf"{next(iter(changed))}=.* but the machine has learned with"):
        told.partial_fit(bits())


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
class TestAnnealingAskedFor:
    def test_by_its_settings(self, name):
        told = small_machine(name).fit(bits())
        assert isinstance(told.log_partition(), float)
        assert not isinstance(told.log_partition(n_samples=20, betas=50), float)
        assert not isinstance(told.log_likelihood(bits(), betas=50).log_partition, float)

    def test_in_numbers_it_can_use(self, name):
        with pytest.raises(ArgumentError, match=r"^n_samples=0"):
            small_machine(name).fit(bits()).log_partition(n_samples=0)
        with pytest.raises(ArgumentError, match=r"^n_samples=0"):
            small_machine(name).fit(bits()).score_interval(bits(), n_samples=0)


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_exact_answers_out_of_reach_name_the_limit_and_the_way_out(name):
    sizes = {"rbm": 30, "dbn": (30, 30), "dbm": (60, 30)}[name]
    told = small_machine(name, max_iter=1).set_params(n_components=sizes).fit(bits(20, 30))
    with pytest.raises(TooExpensiveError, match=r"more than 3.4e\+07 terms.*draw with method='gibbs'"):
        told.sample(method="exact")
    with pytest.raises(TooExpensiveError, match="set exact=False"):
        told.log_likelihood(bits(5, 30), exact=True)
    with pytest.raises(TooExpensiveError, match="method='ais'"):
        told.log_partition("exact")


class TestEpochs:
    """`max_iter` is heeded beside a learner object that brings a number of its own: the smaller one counts."""

    @pytest.mark.parametrize(("max_iter", "own", "taken"), [(2, 10, 2), (20, 3, 3), (None, 13, 13), (5, 5, 5)])
    def test_the_smaller_number_of_epochs_counts(self, max_iter, own, taken):
        rbm = gb.RestrictedBoltzmannMachine(
            2, max_iter=max_iter, learner=gb.learning.Minibatch(max_iter=own), random_state=0
        ).fit(bits())
        assert (rbm.result_.n_steps, rbm.result_.converged) == (taken, True)
        assert rbm.result_.reason == f"trained for {taken} epochs"

    def test_a_number_is_ten_where_nothing_is_said(self):
        assert gb.RestrictedBoltzmannMachine(2, random_state=0).fit(bits()).result_.reason == "trained for 10 epochs"

    def test_each_stage_of_a_stack(self):
        dbm = gb.DeepBoltzmannMachine((3, 2), max_iter=2, learner=gb.learning.Stacking(), random_state=0).fit(bits())
        assert dbm.result_.reason == "trained for 2 epochs a layer, 2 layers, then 2 epochs together"

    def test_shortened_epochs_end_with_a_rate_of_zero(self):
        """As if the number had been given to the learner: the rate falls over the epochs that are made."""
        shortened = gb.RestrictedBoltzmannMachine(2, max_iter=3, learner=gb.learning.Minibatch(), random_state=0).fit(
            bits()
        )
        given = gb.RestrictedBoltzmannMachine(2, learner=gb.learning.Minibatch(max_iter=3), random_state=0).fit(bits())
        assert np.array_equal(shortened.model_.theta, given.model_.theta)

    def test_machines_whose_graph_is_restricted(self):
        learner = gb.learning.Minibatch()
        machine = gb.HiddenBoltzmannMachine(2, graph="restricted", max_iter=2, learner=learner, random_state=0)
        assert machine.fit(bits()).result_.reason == "trained for 2 epochs"


def groups(n_rows=400, n_columns=8):
    """Two groups of columns that agree but for one cell in ten."""
    rng = np.random.default_rng(0)
    equal = np.repeat(rng.random((n_rows, 2)) < 0.5, n_columns // 2, axis=1)
    return (equal ^ (rng.random((n_rows, n_columns)) < 0.1)).astype(int)


def at_rate(name, rate, **settings):
    """A machine whose every stage learns at a rate."""
    learner = gb.learning.Minibatch(learning_rate=rate)
    if name == "rbm":
        return gb.RestrictedBoltzmannMachine(4, learner=learner, random_state=0, **settings)
    stacked = {"dbm": gb.DeepBoltzmannMachine, "dbn": gb.DeepBeliefNetwork}[name]
    together = None if name == "dbn" else learner
    return stacked((4, 3), learner=gb.learning.Stacking(alone=learner, together=together), random_state=0, **settings)


class TestDivergence:
    """A rate that is too high is a failure with a remedy, whether parameters run away or go to and fro."""

    @pytest.mark.parametrize("rate", [100.0, 1e4])
    @pytest.mark.parametrize("name", ["rbm", "dbm", "dbn"])
    def test_rows_that_score_worse_than_independent_columns(self, name, rate):
        machine = at_rate(name, rate, validation_fraction=0.2)
        with pytest.warns(ConvergenceWarning, match=f"worse than independent columns .*lower learning_rate={rate:g}"):
            machine.fit(groups())
        assert not machine.result_.converged
        assert machine.result_.verdict.status == "bad"
        assert f"lower `learning_rate={rate:g}`" in machine.result_.remedy

    def test_what_is_said_is_so(self):
        X = groups()
        with pytest.warns(ConvergenceWarning, match="the fitted rows score"):
            machine = at_rate("rbm", 100.0).fit(X)
        shares = X.mean(axis=0)
        independent = float((shares * np.log(shares) + (1 - shares) * np.log(1 - shares)).sum())
        assert f"score {machine.score(X):.4g} nats, worse than independent columns" in machine.result_.reason
        assert independent == pytest.approx(float(machine.result_.reason.split("columns (")[1].split(")")[0]), abs=1e-2)

    @pytest.mark.parametrize("name", ["rbm", "dbm", "dbn"])
    def test_numbers_that_run_away(self, name):
        X = np.random.default_rng(0).standard_cauchy((300, 5))
        with pytest.raises(ArgumentError, match=r"the parameters have run to infinity .*lower learning_rate=10"):
            at_rate(name, 10.0, visible="gaussian").fit(X)

    @pytest.mark.parametrize("visible", ["binary", "spin", "categorical", "gaussian"])
    @pytest.mark.parametrize(("name", "max_iter"), [("rbm", 1), ("rbm", 10), ("dbm", 1), ("dbn", 1)])
    def test_cautious_fits_and_few_epochs_are_no_failures(self, name, max_iter, visible):
        """Warnings are errors here: random weights that have hardly learned are not called wrong."""
        X = groups()
        X = {
            "binary": X,
            "spin": 2 * X - 1,
            "categorical": np.array(list("abc"))[X + (np.arange(400)[:, None] % 2)],
            "gaussian": X + np.random.default_rng(1).normal(size=X.shape),
        }[visible]
        settings = {"visible": visible} if visible == "gaussian" else {}
        assert at_rate(name, 0.05, max_iter=max_iter, **settings).fit(X).result_.converged

    def test_columns_without_anything_in_common(self):
        X = (np.random.default_rng(0).random((300, 8)) < np.linspace(0.05, 0.95, 8)).astype(int)
        assert at_rate("rbm", 0.1).fit(X).result_.converged

    def test_large_machines_are_judged_by_pseudolikelihood(self):
        X = groups(200, 60)
        learner = gb.learning.Minibatch(learning_rate=100.0, max_iter=3)
        with pytest.warns(ConvergenceWarning, match="worse than independent columns"):
            gb.RestrictedBoltzmannMachine(60, learner=learner, random_state=0).fit(X)
