"""Defects of restricted and deep machines that were found by use, each held here."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import gibbsian as gb
from gibbsian import plots
from gibbsian.errors import (
    ArgumentError,
    DataError,
    DegenerateDataWarning,
    MissingValuesError,
    StorageError,
    TooExpensiveError,
)
from gibbsian.expectations.layer_bounds import recognition_bounds
from gibbsian.models.belief_network import BeliefNetwork
from gibbsian.models.layers import BinaryLayer, CategoricalLayer, SpinLayer
from layered_systems import dbm as DBM
from layered_systems import dbn as DBN
from layered_systems import rbm as RBM

PHASES = ("pcd", "cd", "smci", "tempering")


def bits(n_rows: int = 40, n_columns: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (n_rows, n_columns))


def machine(name: str, **settings):
    if name == "rbm":
        return RBM(3, **{"max_iter": 2, "random_state": 0, **settings})
    kind = {"dbn": DBN, "dbm": DBM}[name]
    return kind((3, 2), **{"max_iter": 2, "random_state": 0, **settings})


# -- real numbers -----------------------------------------------------------------------------------------------------
class TestGaussianUnits:
    X = np.random.default_rng(1).normal(3.0, 2.0, (300, 2))

    @pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
    def test_deviations_given_are_those_of_the_draws(self, temperature):
        rbm = RBM(2, visible="gaussian", deviations=[0.5, 4.0], temperature=temperature, max_iter=1, random_state=0)
        model = rbm.fit(self.X).model_
        draws = model.draw_visible(np.zeros((20000, 2)), np.random.default_rng(0))
        np.testing.assert_allclose(draws.std(axis=0), [0.5, 4.0], rtol=0.02)

    def test_estimated_deviations_do_not_depend_on_the_temperature(self):
        cool, warm = (RBM(2, visible="gaussian", temperature=t, max_iter=1).fit(self.X).model_ for t in (1.0, 9.0))
        np.testing.assert_allclose(3.0 * np.asarray(warm.visible.deviations), cool.visible.deviations)

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
            machine(name, visible="gaussian").fit(X)
        assert [w.category for w in caught] == [DegenerateDataWarning]
        assert "'x2'" in str(caught[0].message)

    def test_given_deviations_need_no_warning(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            RBM(2, visible="gaussian", deviations=1.0, max_iter=1).fit(np.column_stack([self.X, np.ones(300)]))

    def test_one_row_has_columns_that_never_vary(self):
        with pytest.warns(DegenerateDataWarning, match="'x0', 'x1'"):
            RBM(2, visible="gaussian", max_iter=1).fit(self.X[:1])

    @pytest.mark.parametrize("factor", [1e200, 1e-300])
    def test_numbers_without_a_square_are_refused_by_column(self, factor):
        X = self.X * [1.0, factor]
        with pytest.raises(DataError, match=r"column 'x1' .* square"):
            RBM(2, visible="gaussian").fit(X)


# -- settings ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_steps", 2.5), ("n_steps", "a"), ("n_steps", True), ("n_chains", "a"), ("n_chains", True),
        ("n_chains", 0), ("dtype", 3), ("dtype", None), ("centred", "a"), ("verbose", "a"), ("temperature", -1.0),
        ("free_phase", "xx"),
    ],
)  # fmt: skip
def test_settings_are_refused_by_their_own_name(name, setting, value):
    with pytest.raises(ArgumentError, match=rf"^{setting}="):
        machine(name, **{setting: value}).fit(bits())


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_a_checkpoint_in_no_folder_is_refused_before_training(name, tmp_path):
    epochs = []
    told = machine(name, checkpoint=tmp_path / "none" / "c", callbacks=lambda step, info: epochs.append(step))
    with pytest.raises(StorageError, match="which is no folder"):
        told.fit(bits())
    assert not epochs


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_layers_too_wide_for_the_memory_are_refused(name, monkeypatch):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "4")
    wide = machine(name).set_params(n_components=10**7 if name == "rbm" else (10**7, 2))
    with pytest.raises(TooExpensiveError, match="10,000,000"):
        wide.fit(bits(n_columns=1))


@pytest.mark.parametrize("sizes", [{4, 3}, {4: 1, 3: 1}, "43", 2.0])
def test_sizes_without_an_order_are_refused(sizes):
    with pytest.raises(ArgumentError, match="n_components="):
        DBM(sizes).fit(bits())


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_exact_is_true_or_false(name):
    with pytest.raises(ArgumentError, match="exact='no' must be True, False or None"):
        machine(name).fit(bits()).log_likelihood(bits(), exact="no")


# -- data -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_a_table_without_a_cell_is_refused(name):
    with pytest.raises(DataError, match="all cells of all 5 rows are missing: there is nothing to fit"):
        machine(name).fit(np.full((5, 3), np.nan))


@pytest.mark.parametrize("labels", [(0, 255), (1, 2), (-3.5, 4)])
@pytest.mark.parametrize("visible", ["auto", "binary", "spin"])
def test_any_two_numbers_are_two_values(labels, visible):
    X = np.where(bits() == 1, labels[1], labels[0])
    found = gb.Dataset.read(X, coding=gb.data.Units(visible))
    assert (found.coding.low, found.coding.high) == labels
    np.testing.assert_array_equal(found.rows()[0] > 0, labels[1] == X)
    assert set(np.unique(RBM(2, visible=visible, max_iter=1, random_state=0).fit(X).sample(20))) <= set(labels)


def test_columns_with_other_pairs_are_told_so():
    with pytest.raises(DataError, match="two values, the same in every column, or numbers from 0 to 1"):
        gb.Dataset.read(np.array([[0, 1], [255, 2]]), coding=gb.data.Units())


@pytest.mark.parametrize("visible", ["binary", "gaussian"])
def test_dates_are_refused_in_a_sentence(visible):
    frame = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=4), "x": [0, 1, 0, 1]})
    with pytest.raises(DataError, match="column 'day' holds"):
        RBM(2, visible=visible).fit(frame)


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_weights_of_one_change_nothing(name):
    X = bits(60)
    plain, weighted = machine(name).fit(X), machine(name).fit(X, sample_weight=np.ones(60))
    np.testing.assert_array_equal(plain.model_.theta, weighted.model_.theta)
    some = machine(name).fit(X, sample_weight=[0] * 30 + [1] * 30)
    np.testing.assert_array_equal(machine(name).fit(X[30:]).model_.theta, some.model_.theta)


def test_machines_with_thousands_of_columns_can_be_asked():
    X = bits(10, 1100)
    rbm = RBM(3, max_iter=1, validation_fraction=0.2, random_state=0).fit(X)
    assert rbm.sample(2).shape == (2, 1100)
    assert np.isfinite(rbm.score(X))
    wide = RBM(1100, max_iter=1, random_state=0).fit(X)
    with pytest.raises(TooExpensiveError, match="method='gibbs'"):
        wide.sample(2, method="exact")
    for layer in (BinaryLayer(2000), SpinLayer(2000), CategoricalLayer([3] * 2000)):
        assert np.isfinite(layer.n_states)


# -- chunks -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["rbm", "dbm"])
@pytest.mark.parametrize(("first", "then"), list(itertools.permutations(PHASES, 2)))
def test_the_free_phase_may_change_between_chunks(name, first, then):
    told = machine(name, learner=gb.learners.Minibatch(free_phase=first)).partial_fit(bits())
    told.set_params(learner=gb.learners.Minibatch(free_phase=then)).partial_fit(bits())
    assert told.result_.provenance["chunks"] == 2


@pytest.mark.parametrize(("first", "then"), [("pcd", "tempering"), ("tempering", "pcd"), ("cd", "smci")])
def test_the_free_phase_may_change_after_a_fit(first, then):
    rbm = RBM(3, free_phase=first, max_iter=1, random_state=0).fit(bits())
    rbm.set_params(learner=gb.learners.Minibatch(free_phase=then)).partial_fit(bits())


def test_other_chains_begin_anew_and_the_same_go_on():
    rbm = RBM(3, n_chains=20, max_iter=1, random_state=0).fit(bits())
    assert rbm.partial_fit(bits()).h_samples_.shape == (20, 3)
    assert rbm.set_params(learner=gb.learners.Minibatch(n_chains=7)).partial_fit(bits()).h_samples_.shape == (7, 3)


@pytest.mark.parametrize("name", ["rbm", "dbm"])
@pytest.mark.parametrize("changed", [{"temperature": 2.0}, {"hidden": "spin"}, {"visible": "spin"}], ids=",".join)
def test_settings_of_the_model_cannot_change_between_chunks(name, changed):
    told = machine(name).partial_fit(bits()).set_params(**changed)
    with pytest.raises(ArgumentError, match=rf"{next(iter(changed))}=.* but the machine has learned with"):
        told.partial_fit(bits())


@pytest.mark.parametrize("settings", [{"validation_fraction": 0.2}, {"checkpoint": "c"}], ids=",".join)
def test_what_belongs_to_a_fit_is_refused_by_the_first_chunk(settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=rf"{next(iter(settings))}=.* is for fit"):
        RBM(2, **settings).partial_fit(bits())


def test_chunks_of_a_deep_machine_tell_their_own_story():
    X = np.where(bits(30) == 1, 1.0, 0.0)
    X[0, 0] = np.nan
    dbm = machine("dbm").partial_fit(X).partial_fit(X, sample_weight=[1] * 10 + [0] * 20)
    told = dbm.result_.provenance
    assert told["missing_cells"] == 2
    assert told["learner"] == "minibatch"
    assert dbm.result_.reason == "learned from 40 rows in 2 chunks"


def test_the_history_of_a_deep_machine_is_that_of_its_fit_and_chunks():
    X = bits()
    dbm = machine("dbm", max_iter=4, pretrain=3).fit(X)
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


# -- answers ----------------------------------------------------------------------------------------------------------
def test_unfitted_machines_say_so():
    with pytest.raises(NotFittedError):
        RBM(2).free_energy([[0, 1]])


def test_hidden_probabilities_must_be_numbers():
    rbm = machine("rbm").fit(bits())
    with pytest.raises(ArgumentError, match="H holds what is no number"):
        rbm.inverse_transform([["a", "b", "c"]])
    with pytest.raises(MissingValuesError, match="row 0, column 1 of H is NaN"):
        rbm.inverse_transform([[0.5, np.nan, 0.5]])


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
class TestAnnealingAskedFor:
    def test_by_its_settings(self, name):
        told = machine(name).fit(bits())
        assert isinstance(told.log_partition(), float)
        assert not isinstance(told.log_partition(n_samples=20, betas=50), float)
        assert not isinstance(told.log_likelihood(bits(), betas=50).log_partition, float)

    def test_in_numbers_it_can_use(self, name):
        with pytest.raises(ArgumentError, match=r"^n_samples=0"):
            machine(name).fit(bits()).log_partition(n_samples=0)
        with pytest.raises(ArgumentError, match=r"^n_samples=0"):
            machine(name).fit(bits()).score_interval(bits(), n_samples=0)


@pytest.mark.parametrize("name", ["rbm", "dbn", "dbm"])
def test_exact_answers_out_of_reach_name_the_limit_and_the_way_out(name):
    sizes = {"rbm": 30, "dbn": (30, 30), "dbm": (60, 30)}[name]
    told = machine(name, max_iter=1).set_params(n_components=sizes).fit(bits(20, 30))
    with pytest.raises(TooExpensiveError, match=r"more than 3.4e\+07 terms.*draw with method='gibbs'"):
        told.sample(method="exact")
    with pytest.raises(TooExpensiveError, match="set exact=False"):
        told.log_likelihood(bits(5, 30), exact=True)
    with pytest.raises(TooExpensiveError, match="method='ais'"):
        told.log_partition("exact")


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
        layers = [BinaryLayer(4), SpinLayer(6), SpinLayer(3), BinaryLayer(2)]
        zeros = BeliefNetwork.zeros(layers)
        network = zeros.replace(np.random.default_rng(0).normal(scale=0.2, size=zeros.theta.size))
        together, errors = recognition_bounds(network, self.EVERY, 50, 0, common=True)
        alone = [recognition_bounds(network, row[None], 50, 0, common=True)[0][0] for row in self.EVERY]
        np.testing.assert_allclose(together, alone)
        assert (np.abs(together - network.value_log_weights(self.EVERY)) < 5 * errors + 0.05).all()

    def test_rows_held_out_that_all_lack_cells_are_scored(self):
        X = np.where(self.X == 1, 1.0, 0.0)
        X[:, 0] = np.nan
        X[0, 0] = 1.0
        dbn = DBN((3, 2), max_iter=2, validation_fraction=0.2, random_state=0).fit(X)
        assert np.isfinite(dbn.result_.held_out.score)


# -- pictures ---------------------------------------------------------------------------------------------------------
class TestPictures:
    def test_what_a_deep_machine_cannot_show_is_said(self):
        dbm = machine("dbm").fit(bits())
        with pytest.raises(ArgumentError, match="a DeepBoltzmannMachine has no reconstruct"):
            plots.reconstructions(dbm, bits())
        with pytest.raises(ArgumentError, match="a DeepBoltzmannMachine has no free_energy"):
            plots.free_energies(dbm, {"fit": bits()})

    def test_layers_that_never_learned_together_have_no_curve(self):
        with pytest.raises(ArgumentError, match="never learned together"):
            plots.training_curves(machine("dbn", fine_tune=0).fit(bits()))

    @pytest.mark.parametrize("shape", [8, (-2, -2), (2, 2, 1), (2.0, 2.0)])
    def test_shapes_are_height_and_width(self, shape):
        with pytest.raises(ArgumentError, match=r"shape=.* must be the height and the width"):
            plots.filters(machine("rbm").fit(bits()), shape)

    def test_categories_are_no_image(self):
        X = [["a", "x"], ["b", "y"], ["c", "z"]] * 5
        with pytest.raises(ArgumentError, match="2 columns of categories have a weight for each of 6 values"):
            plots.filters(RBM(2, random_state=0).fit(X))
