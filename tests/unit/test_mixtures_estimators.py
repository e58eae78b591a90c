"""The faces of mixtures: scikit-learn's contract, files, criteria, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.mixture import GaussianMixture as ScikitGaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from gibbsian.errors import ArgumentError, ConvergenceWarning, DataError, DegenerateDataWarning, FileFormatError
from gibbsian.estimators.mixture_files import fit_mixture_file, load_mixture
from gibbsian.estimators.mixtures import (
    MIXTURES,
    GaussianMixture,
    HardKMeans,
    MachineMixture,
    OnlineKMeans,
    SoftKMeans,
    VonMisesFisherMixture,
)
from gibbsian.mixtures import select_components
from gibbsian.storage import read_tensors

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
        SoftKMeans(random_state=0),
        SoftKMeans(anneal=True, n_init=1, random_state=0),
        GaussianMixture(random_state=0),
        VonMisesFisherMixture(random_state=0),
        VonMisesFisherMixture(assignment="hard", kappa="tied", weights="equal", random_state=0),
        MachineMixture(random_state=0),
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
    again = load_mixture(tmp_path / "m.gibbs")
    assert type(again) is MIXTURES[kind]
    assert again.get_params() == fitted.get_params()
    assert again.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(again.predict(frame), fitted.predict(frame))
    np.testing.assert_array_equal(again.result_.free_energies, fitted.result_.free_energies)
    assert again.score(frame) == fitted.score(frame)


def test_file_of_words(tmp_path):
    rows = np.array([["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"], ["a", "x"]])
    fitted = MachineMixture(random_state=0).fit(rows)
    fitted.save(tmp_path / "m.gibbs")
    np.testing.assert_array_equal(load_mixture(tmp_path / "m.gibbs").predict_proba(rows), fitted.predict_proba(rows))


def test_files_of_another_kind_are_refused(tmp_path, blobs):
    HardKMeans(random_state=0).fit(blobs).save(tmp_path / "m.gibbs")
    with pytest.raises(FileFormatError, match="holds a mixture"):
        read_tensors(tmp_path / "m.gibbs", ("pairwise",))
    gb.BoltzmannMachine().fit([[1, 1], [1, -1], [-1, -1], [-1, 1]]).save(tmp_path / "b.gibbs")
    with pytest.raises(FileFormatError, match="not a mixture"):
        load_mixture(tmp_path / "b.gibbs")


def test_fit_from_a_file(tmp_path, blobs):
    frame = pd.DataFrame({"id": range(len(blobs)), "a": blobs[:, 0], "b": blobs[:, 1], "w": 2.0})
    frame.to_csv(tmp_path / "t.csv", index=False)
    fitted = fit_mixture_file(
        tmp_path / "t.csv", "gaussian-mixture", drop=["id"], weights="w", n_components=3, random_state=0
    )
    direct = GaussianMixture(3, random_state=0).fit(blobs, sample_weight=np.full(len(blobs), 2.0))
    np.testing.assert_allclose(fitted.means_, direct.means_)
    with pytest.raises(ArgumentError, match="use one of gaussian-mixture, k-means"):
        fit_mixture_file(tmp_path / "t.csv", "vmf")
    with pytest.raises(ArgumentError, match="has no setting kapa"):
        fit_mixture_file(tmp_path / "t.csv", "vmf-mixture", kapa=3)
    frame["a"] = "word"
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(DataError, match="'a' must name a column of numbers, but it holds 'word'"):
        fit_mixture_file(tmp_path / "t.csv", "vmf-mixture")
    words = fit_mixture_file(tmp_path / "t.csv", "machine-mixture", random_state=0, drop=["id", "b"], n_components=1)
    assert words.mixture_.levels.values[0].tolist() == ["word"]


@pytest.mark.parametrize("kind", sorted(set(FITTED) - {"online-k-means"}))
def test_weights_count_as_repetitions_in_any_order(kind, blobs):
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, len(blobs))
    repeated = np.repeat(blobs, weights, axis=0)
    order = rng.permutation(len(repeated))
    first = FITTED[kind].fit(blobs, sample_weight=weights).result_.mixture.means
    second = FITTED[kind].fit(repeated[order]).result_.mixture.means
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
    assert VonMisesFisherMixture(2, kappa=3.0, weights="equal", random_state=0).fit(blobs).n_parameters_ == 2


def test_the_number_of_classes_is_found(blobs):
    chosen = select_components(GaussianMixture(random_state=0), blobs, range(1, 6))
    assert chosen.best.n_components == 3
    table = chosen.to_frame()
    assert table.index.tolist() == [1, 2, 3, 4, 5]
    assert (table["log_likelihood"].diff().dropna() > -1e-6).all()
    with pytest.raises(ArgumentError, match="must be 'bic' or 'aic'"):
        select_components(GaussianMixture(), blobs, [1], criterion="dic")


class TestBadInput:
    @pytest.mark.parametrize("kind", FITTED)
    def test_nan_names_row_and_column(self, kind, blobs):
        frame = pd.DataFrame(blobs, columns=["a", "b"])
        frame.iloc[4, 1] = np.nan
        with pytest.raises(DataError, match="row 4, column 'b' holds NaN"):
            FITTED[kind].fit(frame)

    def test_nan_in_sparse_rows(self):
        rows = sparse.csr_array(np.array([[0.0, 1.0, 0.0], [2.0, 0.0, np.nan]]))
        with pytest.raises(DataError, match="row 1, column 2 holds NaN"):
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
        with pytest.raises(DataError, match="row 3, column 1 holds -1e\\+200, too large to square"):
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
            (OnlineKMeans(rate=0.0), "rate=0.0"),
            (OnlineKMeans(n_epochs=0), "n_epochs=0"),
            (SoftKMeans(variance=0.0), "variance=0.0"),
            (SoftKMeans(variance="free"), "GaussianMixture learns it"),
            (SoftKMeans(anneal=True, cooling=1.0), "cooling=1.0"),
            (GaussianMixture(variance="full"), "'free' or 'tied'"),
            (GaussianMixture(variance_floor=0.0), "variance_floor=0.0"),
            (VonMisesFisherMixture(kappa="full"), "kappa='full'"),
            (VonMisesFisherMixture(kappa=-1.0), "kappa=-1.0"),
            (VonMisesFisherMixture(kappa_method="guess"), "banerjee, newton, song, sra"),
            (VonMisesFisherMixture(weights="some"), "weights='some'"),
            (VonMisesFisherMixture(assignment="firm"), "assignment='firm'"),
            (MachineMixture(machine="poisson"), "machine='poisson'"),
            (MachineMixture(smoothing=-1.0), "smoothing=-1.0"),
        ],
        ids=str,
    )
    def test_settings(self, estimator, words, blobs):
        with pytest.raises(ArgumentError, match=words):
            estimator.fit(blobs)
