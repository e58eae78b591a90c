"""Mixtures and clusterings as estimators: scikit-learn's contract, files, criteria, bad input, extreme scales."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture as ScikitGaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from gibbsian import GaussianMixture, HardKMeans, MachineMixture, OnlineKMeans, SoftKMeans, VonMisesFisherMixture
from gibbsian.errors import (
    ArgumentError,
    ConvergenceWarning,
    DataError,
    DegenerateDataWarning,
    FileFormatError,
    MissingValuesError,
    MissingValuesWarning,
)
from gibbsian.estimators import ESTIMATORS
from gibbsian.learning.bound_mixtures import BoundMixture, Shared
from gibbsian.learning.em import ClassAlternation
from gibbsian.models import GaussianMixtureFamily, Model
from gibbsian.models.mixtures.von_mises_fisher import log_sphere_area, unit_rows
from gibbsian.storage import read_tensors

KINDS = ["gaussian-mixture", "k-means", "machine-mixture", "online-k-means", "soft-k-means", "vmf-mixture"]
ASKS_A_CLASSIFIER = "the check takes whatever has predict_proba and sparse rows for a classifier"
EXPECTED_FAILURES = {
    MachineMixture: {
        "check_sample_weight_equivalence_on_dense_data": "asks for the class of values that the fit has not seen"
    },
    VonMisesFisherMixture: {
        "check_estimator_sparse_array": ASKS_A_CLASSIFIER,
        "check_estimator_sparse_matrix": ASKS_A_CLASSIFIER,
    },
}


# Continuous tables of a few rows and few steps: warnings of slow or degenerate fits are in order there.
@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@parametrize_with_checks(
    [
        HardKMeans(random_state=0),
        OnlineKMeans(random_state=0),
        OnlineKMeans(normalize=False, random_state=0),
        SoftKMeans(n_init=1, random_state=0),
        SoftKMeans(anneal=True, n_init=1, random_state=0),
        GaussianMixture(n_init=1, random_state=0),
        VonMisesFisherMixture(n_init=1, random_state=0),
        VonMisesFisherMixture(assignment="hard", kappa="tied", class_weights="equal", n_init=1, random_state=0),
        MachineMixture(n_init=1, random_state=0),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES.get(type(estimator), {}),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def blobs() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(n, 2)) * s + m for n, s, m in ((60, 0.5, 0), (90, 1.0, 7), (30, 2.0, -9))])


FITTED = {
    "k-means": HardKMeans(3, random_state=0),
    "online-k-means": OnlineKMeans(3, normalize=False, random_state=0),
    "soft-k-means": SoftKMeans(3, variance=0.5, random_state=0),
    "gaussian-mixture": GaussianMixture(3, random_state=0),
    "vmf-mixture": VonMisesFisherMixture(3, random_state=0),
}


@pytest.mark.parametrize("kind", FITTED)
def test_files_give_back_the_mixture(kind, blobs, tmp_path):
    frame = pd.DataFrame(blobs, columns=["a", "b"])
    fitted = FITTED[kind].fit(frame)
    fitted.save(tmp_path / "m.gibbs")
    again = gb.load(tmp_path / "m.gibbs")
    assert type(again) is ESTIMATORS.factory(kind)
    assert again.get_params() == fitted.get_params()
    assert again.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(again.predict(frame), fitted.predict(frame))
    np.testing.assert_array_equal(again.free_energies_, fitted.free_energies_)
    assert again.score(frame) == fitted.score(frame)


def test_file_of_words(tmp_path):
    rows = np.array([["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"], ["a", "x"]])
    fitted = MachineMixture(random_state=0).fit(rows)
    fitted.save(tmp_path / "m.gibbs")
    np.testing.assert_array_equal(gb.load(tmp_path / "m.gibbs").predict_proba(rows), fitted.predict_proba(rows))


def test_files_of_another_kind_are_refused(tmp_path, blobs):
    HardKMeans(random_state=0).fit(blobs).save(tmp_path / "m.gibbs")
    with pytest.raises(FileFormatError, match="holds a k-means"):
        read_tensors(tmp_path / "m.gibbs", ("pairwise",))


def test_fit_from_a_file(tmp_path, blobs):
    frame = pd.DataFrame({"id": range(len(blobs)), "a": blobs[:, 0], "b": blobs[:, 1], "w": 2.0})
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = gb.Dataset.read(tmp_path / "t.csv", coding="real", drop=["id"], weight_column="w")
    fitted = GaussianMixture(3, random_state=0).fit(data)
    direct = GaussianMixture(3, random_state=0).fit(blobs, sample_weight=np.full(len(blobs), 2.0))
    np.testing.assert_allclose(fitted.means_, direct.means_)
    assert fitted.names_ == ("a", "b")
    frame["a"] = "word"
    frame[["a", "b"]].to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="'a'"):
        VonMisesFisherMixture().fit(tmp_path / "t.csv")
    words = MachineMixture(1, random_state=0).fit(frame[["a"]])
    assert words.coding_.labels == (("word",),)


@pytest.mark.parametrize("kind", sorted(set(FITTED) - {"online-k-means"}))
def test_weights_count_as_repetitions_in_any_order(kind, blobs):
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, len(blobs))
    repeated = np.repeat(blobs, weights, axis=0)
    order = rng.permutation(len(repeated))
    first = FITTED[kind].fit(blobs, sample_weight=weights).means_
    second = FITTED[kind].fit(repeated[order]).means_
    np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-9)


def test_criteria_by_their_definition(blobs):
    mixture = GaussianMixture(3, random_state=0).fit(blobs)
    likelihood = mixture.score_samples(blobs).sum()
    assert mixture.n_parameters_ == 3 * 2 + 3 + 2
    assert mixture.bic(blobs) == pytest.approx(-2 * likelihood + 11 * np.log(len(blobs)))
    assert mixture.aic(blobs) == pytest.approx(-2 * likelihood + 22)
    theirs = ScikitGaussianMixture(3, covariance_type="spherical", random_state=0, n_init=5, tol=1e-9).fit(blobs)
    assert mixture.bic(blobs) == pytest.approx(theirs.bic(blobs), abs=0.05)
    assert VonMisesFisherMixture(2, random_state=0).fit(blobs).n_parameters_ == 2 * 1 + 2 + 1
    assert VonMisesFisherMixture(2, kappa=3.0, class_weights="equal", random_state=0).fit(blobs).n_parameters_ == 2


def test_the_number_of_classes_is_found(blobs):
    fits = [GaussianMixture(k, random_state=0).fit(blobs) for k in range(1, 6)]
    assert int(np.argmin([fitted.bic(blobs) for fitted in fits])) == 2
    assert (np.diff([fitted.score(blobs) for fitted in fits]) > -1e-6).all()


class TestChunks:
    """The sums of each class add over chunks."""

    KINDS = (HardKMeans(3), SoftKMeans(3, variance=0.5), GaussianMixture(3), VonMisesFisherMixture(3))

    @pytest.mark.parametrize("estimator", KINDS, ids=str)
    def test_a_chunk_after_a_fit_is_one_step_of_all_rows(self, estimator, blobs):
        """The fit's own rows have their shares of the fit, the others those of its end; then one M-step."""
        order = np.random.default_rng(0).permutation(len(blobs))
        first, second = blobs[order[:120]], blobs[order[120:]]
        fitted = clone(estimator).set_params(random_state=0).fit(first)
        unit = [unit_rows(rows) for rows in (first, second)]
        rows = np.concatenate(unit if isinstance(estimator, VonMisesFisherMixture) else [first, second])
        shares = np.concatenate([fitted.predict_proba(first), fitted.predict_proba(second)])
        sums = shares.T @ rows
        expected = sums / shares.sum(axis=0)[:, None]
        if isinstance(estimator, VonMisesFisherMixture):
            expected = unit_rows(sums)
        np.testing.assert_allclose(fitted.partial_fit(second).means_, expected, atol=1e-9)

    @pytest.mark.parametrize("estimator", KINDS, ids=str)
    def test_chunks_come_near_the_fit_of_all_rows(self, estimator, blobs):
        order = np.random.default_rng(0).permutation(len(blobs))
        chunks = clone(estimator).set_params(random_state=0)
        for rows in np.array_split(blobs[order], 4):
            chunks.partial_fit(rows)
        whole = clone(estimator).set_params(random_state=0).fit(blobs)
        assert chunks.score(blobs) > whole.score(blobs) - 0.3
        assert chunks.labels_.shape == (45,)

    def test_the_classes_stay(self, blobs):
        fitted = GaussianMixture(2, random_state=0).partial_fit(blobs).set_params(n_components=3)
        with pytest.raises(ArgumentError, match="n_components=3 but there are 2 classes already"):
            fitted.partial_fit(blobs)

    def test_machines_need_all_rows(self):
        mixture = MachineMixture(2, machine=gb.BoltzmannMachine("empty"))
        with pytest.raises(ArgumentError, match="needs all rows at once"):
            mixture.partial_fit(np.array([[0, 1], [1, 0], [1, 1]]))


class TestBadInput:
    @pytest.mark.parametrize("kind", FITTED)
    def test_infinity_names_row_and_column(self, kind, blobs):
        frame = pd.DataFrame(blobs, columns=["a", "b"])
        frame.iloc[4, 1] = np.inf
        with pytest.raises(DataError, match="row 4, column 'b' holds inf"):
            FITTED[kind].fit(frame)

    @pytest.mark.parametrize("estimator", [VonMisesFisherMixture(), OnlineKMeans()], ids=str)
    def test_unit_norm_needs_all_cells(self, estimator, blobs):
        rows = blobs.copy()
        rows[4, 1] = np.nan
        with pytest.raises(MissingValuesError, match=r"row 4, column 1 is missing \(NaN\), but unit norm"):
            estimator.fit(rows)

    def test_nan_in_sparse_rows(self):
        rows = sparse.csr_array(np.array([[0.0, 1.0, 0.0], [2.0, 0.0, np.nan]]))
        with pytest.raises(DataError, match="row 1, column 'x2' holds NaN"):
            VonMisesFisherMixture().fit(rows)

    @pytest.mark.parametrize("kind", FITTED)
    def test_more_classes_than_distinct_rows(self, kind):
        rows = np.repeat([[1.0, 2.0], [3.0, 1.0]], 10, axis=0)
        with pytest.raises(DataError, match=r"n_components=3 is more than the 2 distinct rows \(n_samples=20\)"):
            FITTED[kind].fit(rows)

    @pytest.mark.parametrize("weights", [[1.0, np.nan, 1.0], [1.0, -1.0, 1.0], [1.0, 1.0], [0.0, 0.0, 0.0]])
    def test_weights(self, weights):
        with pytest.raises(DataError, match="weight"):
            GaussianMixture(1).fit([[1.0], [2.0], [3.0]], sample_weight=weights)

    def test_rows_without_direction_are_left_out_and_said(self, blobs):
        with_zeros = np.insert(blobs, [0, 5], 0.0, axis=0)
        for rows in (with_zeros, sparse.csr_array(with_zeros)):
            with pytest.warns(gb.errors.MissingValuesWarning, match="row 0 and 1 more have norm zero"):
                mixture = VonMisesFisherMixture(2, random_state=0).fit(rows)
            np.testing.assert_allclose(
                mixture.means_, VonMisesFisherMixture(2, random_state=0).fit(blobs).means_, atol=1e-9
            )
            with pytest.warns(gb.errors.MissingValuesWarning):
                shares = mixture.predict_proba(rows[:2])
            np.testing.assert_allclose(shares[0], mixture.weights_)
        with (
            pytest.warns(gb.errors.MissingValuesWarning),
            pytest.raises(DataError, match="no row has a weight above zero"),
        ):
            VonMisesFisherMixture(1).fit(np.zeros((5, 3)))

    @pytest.mark.parametrize("kind", sorted(set(FITTED) - {"vmf-mixture"}))
    def test_entries_too_large_to_square(self, kind, blobs):
        rows = blobs.copy()
        rows[3, 1] = -1e200
        with pytest.raises(DataError, match="row 3, column 'x1' holds -1e\\+200, too large to square"):
            FITTED[kind].fit(rows)

    def test_unit_norm_may_be_required(self):
        with pytest.raises(DataError, match="row 1 has norm 2, not 1: set normalize=True"):
            VonMisesFisherMixture(1, normalize=False).fit([[1.0, 0.0], [0.0, 2.0]])

    def test_a_class_of_one_direction_is_said(self):
        rng = np.random.default_rng(0)
        rows = np.concatenate([np.tile([[0.0, 0.0, 1.0]], (30, 1)), rng.normal(size=(30, 3)) / 4 + [-3.0, 0.0, 0.0]])
        with pytest.warns(DegenerateDataWarning, match="gathered on one direction: its concentration was held"):
            mixture = VonMisesFisherMixture(2, random_state=0).fit(rows)
        assert np.isfinite(mixture.score(rows))
        assert mixture.concentrations_.max() == 1e8

    def test_a_class_of_one_point_is_said(self):
        rows = np.concatenate([np.zeros((30, 2)), np.random.default_rng(0).normal(size=(30, 2)) + 9])
        with pytest.warns(DegenerateDataWarning, match="shrunk to a point: its variance was held at variance_floor"):
            mixture = GaussianMixture(2, random_state=0).fit(rows)
        assert np.isfinite(mixture.score(rows))

    def test_an_emptied_class_is_said(self):
        """Hard assignment with learned weights starves small classes."""
        rng = np.random.default_rng(1)
        rows = rng.normal(size=(40, 3)) + 2 * np.eye(3)[0]
        with pytest.warns(DegenerateDataWarning, match="has lost all its rows and keeps its last parameters"):
            mixture = VonMisesFisherMixture(12, kappa=2.0, assignment="hard", n_init=1, random_state=0).fit(rows)
        assert (mixture.weights_ == 0).any()
        assert np.isfinite(mixture.score(rows))

    def test_too_few_steps_are_said(self, blobs):
        with pytest.warns(ConvergenceWarning, match="stopped at max_iter=2"):
            GaussianMixture(3, max_iter=2, random_state=0).fit(blobs)

    @pytest.mark.parametrize(
        ("estimator", "words"),
        [
            (HardKMeans(0), "n_components=0 must be at least 1"),
            (HardKMeans(n_init=0), "n_init=0"),
            (HardKMeans(max_iter=0), "max_iter=0"),
            (OnlineKMeans(learning_rate=0.0), "learning_rate=0.0"),
            (OnlineKMeans(max_iter=0), "max_iter=0"),
            (SoftKMeans(variance=0.0), "variance=0.0"),
            (SoftKMeans(variance="free"), "variance='free' must be a number"),
            (SoftKMeans(anneal=True, cooling=1.0), "cooling=1.0"),
            (GaussianMixture(variance="full"), "use one of free, tied"),
            (GaussianMixture(variance_floor=0.0), "variance_floor=0.0"),
            (VonMisesFisherMixture(kappa="full"), "kappa='full'"),
            (VonMisesFisherMixture(kappa=-1.0), "kappa=-1.0"),
            (VonMisesFisherMixture(class_weights="some"), "class_weights='some'"),
            (VonMisesFisherMixture(assignment="firm"), "assignment='firm'"),
            (MachineMixture(machine="poisson"), "machine='poisson'"),
            (MachineMixture(smoothing=-1.0), "smoothing=-1.0"),
        ],
        ids=str,
    )
    def test_settings(self, estimator, words, blobs):
        with pytest.raises(ArgumentError, match=words):
            estimator.fit(blobs)


@pytest.fixture(scope="module")
def clouds() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(n, 2)) * s + m for n, s, m in ((60, 0.5, 2), (90, 1.0, 9), (30, 2.0, -9))])


def saved(estimator, path):
    estimator.save(path / "m.gibbs")
    return gb.load(path / "m.gibbs")


class TestNumbers:
    @pytest.mark.parametrize(
        "mixture",
        [SoftKMeans(3, variance=1e-16), VonMisesFisherMixture(3, kappa=1e16), GaussianMixture(3)],
        ids=str,
    )
    def test_shares_sum_to_one_however_far_the_rows(self, mixture, clouds):
        fitted = mixture.set_params(random_state=0).fit(clouds)
        for rows in (clouds, 1e9 * clouds):
            shares = fitted.predict_proba(rows)
            np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
            np.testing.assert_array_equal(shares.argmax(axis=1), fitted.predict(rows))

    def test_a_density_that_is_no_number_is_said(self, clouds):
        fitted = SoftKMeans(2, variance=1e-140, random_state=0).fit(1e70 * clouds)
        with pytest.raises(DataError, match="row 1 is too far from the classes"):
            fitted.predict_proba([[0.0, 0.0], [1e99, 1e99]])

    @pytest.mark.parametrize("scale", [1e-60, 1e-8, 1e8])
    def test_gaussian_mixtures_do_not_depend_on_the_unit(self, scale, clouds):
        one = GaussianMixture(3, random_state=0).fit(clouds)
        other = GaussianMixture(3, random_state=0).fit(clouds * scale)
        np.testing.assert_allclose(np.sort(other.variances_), np.sort(one.variances_) * scale**2, rtol=1e-6)
        assert other.score(clouds * scale) == pytest.approx(one.score(clouds) - 2 * np.log(scale))

    def test_equal_rows_and_rows_too_close_to_square(self):
        with pytest.warns(DegenerateDataWarning, match="shrunk to a point"):
            assert np.isfinite(GaussianMixture(1).fit(np.full((7, 3), 0.1)).score([[0.1] * 3]))
        with pytest.raises(DataError, match="differ by too little"):
            GaussianMixture(1).fit([[0.0], [1e-170]])

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_weights_have_no_unit(self, scale, clouds):
        weights = np.random.default_rng(0).random(len(clouds)) + 0.5
        one = VonMisesFisherMixture(2, random_state=0).fit(clouds, sample_weight=weights)
        other = VonMisesFisherMixture(2, random_state=0).fit(clouds, sample_weight=weights * scale)
        np.testing.assert_allclose(other.means_, one.means_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(other.concentrations_, one.concentrations_, rtol=1e-5)
        np.testing.assert_allclose(other.weights_, one.weights_, rtol=1e-6)

    @pytest.mark.parametrize("estimator", [GaussianMixture(2), VonMisesFisherMixture(2), SoftKMeans(2)], ids=str)
    def test_mixtures_have_no_temperature(self, estimator, clouds):
        with pytest.raises(ArgumentError, match="a mixture has no temperature: leave temperature out"):
            estimator.set_params(random_state=0).fit(clouds).sample(3, temperature=2.0)

    def test_a_free_energy_that_is_not_finite_stops_the_loop(self):
        class Broken(BoundMixture):
            def e_step(self, model, memory=None):
                return Shared(np.nan, None)

        family, rows = GaussianMixtureFamily(1, 1), gb.Dataset.read([[0.0], [1.0]], coding="real")
        broken = Broken.bind(family, rows, hard=False, rng=np.random.default_rng(0))
        with pytest.raises(DataError, match="the free energy is nan at step 0: scale the columns"):
            ClassAlternation(broken).begin(Model.zeros(family), np.random.default_rng(0))

    @pytest.mark.filterwarnings("error::RuntimeWarning")
    def test_a_variance_too_small_for_the_rows(self, clouds):
        with pytest.raises(DataError, match=r"the free energy is (nan|inf) at step 0"):
            SoftKMeans(2, variance=1e-140).fit(1e98 * clouds)

    @pytest.mark.parametrize("estimator", [VonMisesFisherMixture(kappa=1e160), SoftKMeans(variance=1e-320)], ids=str)
    def test_settings_beyond_the_range_of_squares(self, estimator, clouds):
        with pytest.raises(ArgumentError, match=r"1e\+160 must be|1e-320 must be"):
            estimator.fit(clouds)

    @pytest.mark.filterwarnings("error")
    def test_huge_rows_have_directions(self, clouds):
        plain = VonMisesFisherMixture(2, random_state=0).fit(clouds)
        huge = VonMisesFisherMixture(2, random_state=0).fit(clouds * 1e306)
        np.testing.assert_allclose(huge.means_, plain.means_, atol=1e-9)
        with pytest.raises(DataError, match="not 1: set normalize=True"):
            VonMisesFisherMixture(2, normalize=False).fit(np.full((3, 4), 1.5e308))


class TestRowsWithoutDirection:
    def test_they_have_no_weight_in_any_criterion(self, clouds):
        fitted = VonMisesFisherMixture(2, random_state=0).fit(clouds)
        rows = np.insert(clouds, [0, 5, 9], 0.0, axis=0)
        for ask in (fitted.score, fitted.bic, fitted.aic):
            with pytest.warns(MissingValuesWarning):
                assert ask(rows) == pytest.approx(ask(clouds))
        with pytest.warns(MissingValuesWarning):
            assert fitted.score_samples(rows, relative_to="uniform")[0] == 0.0

    def test_energy_and_score_of_online_k_means_agree(self, clouds):
        rows = np.insert(clouds, [0, 5], 0.0, axis=0)
        with pytest.warns(MissingValuesWarning):
            units = OnlineKMeans(2, random_state=0).fit(rows)
        with pytest.warns(MissingValuesWarning):
            assert -units.score(rows) * len(clouds) == pytest.approx(units.energy_)

    @pytest.mark.parametrize("estimator", [VonMisesFisherMixture(2, random_state=0), OnlineKMeans(2, random_state=0)])
    def test_one_warning_at_the_line_of_the_caller(self, estimator, clouds):
        rows = np.insert(clouds, 0, 0.0, axis=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit_predict(rows)
        assert [(w.category, w.filename) for w in caught] == [(MissingValuesWarning, __file__)]


def test_warnings_of_fits_point_to_the_caller(clouds):
    for estimator in (GaussianMixture(3), SoftKMeans(3), VonMisesFisherMixture(3), HardKMeans(3)):
        with pytest.warns(ConvergenceWarning) as caught:
            estimator.set_params(random_state=0, n_init=1, max_iter=1).fit(clouds)
        assert caught[0].filename == __file__


class TestCriteria:
    @pytest.mark.parametrize("weight", [None, 2.0])
    def test_relative_to_uniform(self, weight, clouds):
        fitted = VonMisesFisherMixture(2, random_state=0).fit(clouds)
        factor = 1.0 if weight is None else weight
        gap = 2 * factor * len(clouds) * log_sphere_area(2)
        for ask in (fitted.bic, fitted.aic):
            assert ask(clouds, weight) - ask(clouds, weight, relative_to="uniform") == pytest.approx(gap)

    def test_weights_of_zero_are_refused(self, clouds):
        fitted = GaussianMixture(2, random_state=0).fit(clouds)
        for ask in (fitted.score, fitted.bic, fitted.aic):
            with pytest.raises(DataError, match="sample_weight is zero for every row"):
                ask(clouds, sample_weight=np.zeros(len(clouds)))
        with pytest.raises(DataError, match="sample_weight must be a list of numbers"):
            fitted.bic(clouds, sample_weight=["a"] * len(clouds))

    @pytest.mark.parametrize(
        ("fitted", "changed"),
        [
            (GaussianMixture(2, random_state=0), {"variance": "tied"}),
            (VonMisesFisherMixture(2, random_state=0), {"kappa": 1.0, "class_weights": "equal"}),
        ],
    )
    def test_they_are_of_the_fit_and_not_of_later_settings(self, fitted, changed, clouds, tmp_path):
        before = fitted.fit(clouds).bic(clouds)
        fitted.set_params(**changed)
        assert fitted.bic(clouds) == before
        assert saved(fitted, tmp_path).bic(clouds) == before

    def test_unfitted(self):
        with pytest.raises(NotFittedError):
            _ = GaussianMixture().n_parameters_


class TestFiles:
    def test_numpy_settings_are_kept(self, clouds, tmp_path):
        fitted = GaussianMixture(np.int64(3), tol=np.float64(1e-5), random_state=np.int64(4)).fit(clouds)
        assert saved(fitted, tmp_path).get_params() == fitted.get_params()

    def test_more_classes_than_codes_of_columns(self, tmp_path):
        rows = np.random.default_rng(0).normal(size=(400, 2))
        many = saved(HardKMeans(200, random_state=0).fit(rows), tmp_path)
        assert many.model_.n_variables == 3
        assert many.predict(rows).max() > 127
        table = (rows[:, :1] * np.ones(9) > np.linspace(-2, 2, 9)).astype(int)
        columns = saved(
            MachineMixture(130, n_init=1, tol=1e9, random_state=0, start="random").fit(
                np.random.default_rng(1).integers(0, 2, (300, 9))
            ),
            tmp_path,
        )
        assert np.isfinite(columns.score(table))

    def test_online_units_go_on_where_they_were(self, clouds, tmp_path):
        units = OnlineKMeans(2, normalize=False, random_state=0).partial_fit(clouds[:90])
        again = saved(units, tmp_path)
        np.testing.assert_array_equal(again.partial_fit(clouds[90:]).means_, units.partial_fit(clouds[90:]).means_)

    def test_labels_of_the_fit_stay_behind(self, clouds, tmp_path):
        for kind in sorted(set(KINDS) - {"machine-mixture"}):
            assert not hasattr(saved(ESTIMATORS.factory(kind)(random_state=0).fit(clouds), tmp_path), "labels_")

    def test_labels_keep_their_types(self, tmp_path):
        frame = pd.DataFrame({"colour": ["red", "blue", "red"], "size": [1, 2, 1], "old": [True, False, True]})
        fitted = MachineMixture(2, random_state=0).fit(frame)
        drawn, again = (m.sample(20, random_state=0) for m in (fitted, saved(fitted, tmp_path)))
        assert drawn.values.tolist() == again.tolist()
        assert {tuple(map(type, row)) for row in again.tolist()} == {(str, int, bool)}

    @pytest.mark.parametrize("column", [pd.to_datetime(["2020-01-01", "2021-01-01"]), [b"a", b"b"]])
    def test_dates_and_bytes_are_kept_as_words(self, column, tmp_path):
        frame = pd.DataFrame({"when": column})
        fitted = MachineMixture(1).fit(frame)
        np.testing.assert_array_equal(saved(fitted, tmp_path).score_samples(frame), fitted.score_samples(frame))


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        *[(HardKMeans(k), f"n_components={k!r} must be a whole number") for k in (None, "3", True, 1.5)],
        (HardKMeans(max_iter=2.5), "max_iter=2.5 must be a whole number"),
        (HardKMeans(n_init=1.5), "n_init=1.5 must be a whole number"),
        *[
            (GaussianMixture(tol=tol), "tol=.* must be (a finite number|a number|at least 0)")
            for tol in (np.nan, -1, "a")
        ],
        *[
            (SoftKMeans(variance=v), "variance=.* must be (a number|a finite number|at least 1e-140)")
            for v in (None, -1, np.inf)
        ],
        *[
            (VonMisesFisherMixture(kappa=k), "kappa=.* must be a (finite )?number or 'free' or 'tied'")
            for k in (None, [1.0], 10**400)
        ],
        (VonMisesFisherMixture(kappa_max=np.inf), "kappa_max=inf must be a finite number"),
        (OnlineKMeans(max_iter=1.5), "max_iter=1.5 must be a whole number"),
        (OnlineKMeans(learning_rate="x"), "learning_rate='x' must be"),
        (SoftKMeans(anneal=True, cooling="x"), "cooling='x' must be a number"),
        *[(GaussianMixture(variance_floor=v), "variance_floor=.* must be a (finite )?number") for v in ("a", np.inf)],
        (MachineMixture(smoothing=np.inf), "smoothing=inf must be a finite number"),
        (VonMisesFisherMixture(normalize="no"), "normalize='no' must be True or False"),
    ],
    ids=str,
)
def test_settings(estimator, words, clouds):
    with pytest.raises(ArgumentError, match=words) as refused:
        estimator.fit(clouds)
    assert not (isinstance(estimator, SoftKMeans) and "free" in str(refused.value))


@pytest.mark.parametrize("n_samples", [1.5, None, 0, "3"])
def test_numbers_of_samples(n_samples, clouds):
    with pytest.raises(ArgumentError, match=f"n_samples={n_samples!r} must be"):
        GaussianMixture(1).fit(clouds).sample(n_samples)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_predict(kind, clouds):
    rows = np.round(clouds)
    predicted = ESTIMATORS.factory(kind)(random_state=0).fit_predict(rows)
    np.testing.assert_array_equal(predicted, ESTIMATORS.factory(kind)(random_state=0).fit(rows).labels_)
