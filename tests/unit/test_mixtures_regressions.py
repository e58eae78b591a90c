"""Mixtures at the edges: extreme scales, files, settings, missing cells, machines of others."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture as ScikitGaussianMixture
from sklearn.neighbors import KernelDensity

import gibbsian as gb
from gibbsian.errors import (
    ArgumentError,
    ConvergenceWarning,
    DataError,
    DegenerateDataWarning,
    MissingValuesError,
    MissingValuesWarning,
)
from gibbsian.estimators.mixture_files import fit_mixture_file, load_mixture, read_rows
from gibbsian.estimators.mixtures import (
    MIXTURES,
    GaussianMixture,
    HardKMeans,
    MachineMixture,
    OnlineKMeans,
    SoftKMeans,
    VonMisesFisherMixture,
)
from gibbsian.mixtures import KMeansProblem, bessel, collapse, em, select_components
from gibbsian.plots_mixtures import circle, free_energy_trace, sphere


@pytest.fixture(scope="module")
def blobs() -> np.ndarray:
    rng = np.random.default_rng(3)
    return np.concatenate([rng.normal(size=(n, 2)) * s + m for n, s, m in ((60, 0.5, 2), (90, 1.0, 9), (30, 2.0, -9))])


def saved(estimator, path):
    estimator.save(path / "m.gibbs")
    return load_mixture(path / "m.gibbs")


class TestNumbers:
    @pytest.mark.parametrize(
        "mixture",
        [SoftKMeans(3, variance=1e-16), VonMisesFisherMixture(3, kappa=1e16), GaussianMixture(3)],
        ids=str,
    )
    def test_shares_sum_to_one_however_far_the_rows(self, mixture, blobs):
        fitted = mixture.set_params(random_state=0).fit(blobs)
        for rows in (blobs, 1e9 * blobs):
            shares = fitted.predict_proba(rows)
            np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
            np.testing.assert_array_equal(shares.argmax(axis=1), fitted.predict(rows))

    def test_a_density_that_is_no_number_is_said(self, blobs):
        fitted = SoftKMeans(2, variance=1e-140, random_state=0).fit(1e40 * blobs)
        with pytest.raises(DataError, match="row 1 is too far from the classes"):
            fitted.predict_proba([[0.0, 0.0], [1e140, 1e140]])

    @pytest.mark.parametrize("scale", [1e-60, 1e-8, 1e8])
    def test_gaussian_mixtures_do_not_depend_on_the_unit(self, scale, blobs):
        one = GaussianMixture(3, random_state=0).fit(blobs)
        other = GaussianMixture(3, random_state=0).fit(blobs * scale)
        np.testing.assert_allclose(np.sort(other.variances_), np.sort(one.variances_) * scale**2, rtol=1e-6)
        assert other.score(blobs * scale) == pytest.approx(one.score(blobs) - 2 * np.log(scale))

    def test_equal_rows_and_rows_too_close_to_square(self):
        with pytest.warns(DegenerateDataWarning, match="shrunk to a point"):
            assert np.isfinite(GaussianMixture(1).fit(np.full((7, 3), 0.1)).score([[0.1] * 3]))
        with pytest.raises(DataError, match="differ by too little"):
            GaussianMixture(1).fit([[0.0], [1e-170]])

    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_weights_have_no_unit(self, scale, blobs):
        weights = np.random.default_rng(0).random(len(blobs)) + 0.5
        one = VonMisesFisherMixture(2, random_state=0).fit(blobs, sample_weight=weights)
        other = VonMisesFisherMixture(2, random_state=0).fit(blobs, sample_weight=weights * scale)
        np.testing.assert_allclose(other.means_, one.means_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(other.concentrations_, one.concentrations_, rtol=1e-5)
        np.testing.assert_allclose(other.weights_, one.weights_, rtol=1e-6)

    def test_a_free_energy_that_is_not_finite_stops_the_loop(self):
        class Broken:
            total_weight = 1.0

            def expect(self, mixture):
                return np.nan, None

        with pytest.raises(DataError, match="the free energy is nan at step 0: scale the columns"):
            em.iterate(Broken(), None, 10, 0.0)

    @pytest.mark.filterwarnings("error::RuntimeWarning")
    def test_a_variance_too_small_for_the_rows(self, blobs):
        with pytest.raises(DataError, match=r"the free energy is (nan|inf) at step 0"):
            SoftKMeans(2, variance=1e-140).fit(1e100 * blobs)

    @pytest.mark.parametrize("estimator", [VonMisesFisherMixture(kappa=1e160), SoftKMeans(variance=1e-320)], ids=str)
    def test_settings_beyond_the_range_of_squares(self, estimator, blobs):
        with pytest.raises(ArgumentError, match=r"1e\+160 must be|1e-320 must be"):
            estimator.fit(blobs)

    @pytest.mark.filterwarnings("error")
    def test_huge_rows_have_directions(self, blobs):
        plain = VonMisesFisherMixture(2, random_state=0).fit(blobs)
        huge = VonMisesFisherMixture(2, random_state=0).fit(blobs * 1e306)
        np.testing.assert_allclose(huge.means_, plain.means_, atol=1e-9)
        with pytest.raises(DataError, match="not 1: set normalize=True"):
            VonMisesFisherMixture(2, normalize=False).fit(np.full((3, 4), 1.5e308))


class TestRowsWithoutDirection:
    def test_they_have_no_weight_in_any_criterion(self, blobs):
        fitted = VonMisesFisherMixture(2, random_state=0).fit(blobs)
        rows = np.insert(blobs, [0, 5, 9], 0.0, axis=0)
        for ask in (fitted.score, fitted.bic, fitted.aic):
            with pytest.warns(MissingValuesWarning):
                assert ask(rows) == pytest.approx(ask(blobs))
        with pytest.warns(MissingValuesWarning):
            assert fitted.score_samples(rows, relative_to="uniform")[0] == 0.0

    def test_energy_and_score_of_online_k_means_agree(self, blobs):
        rows = np.insert(blobs, [0, 5], 0.0, axis=0)
        with pytest.warns(MissingValuesWarning):
            units = OnlineKMeans(2, random_state=0).fit(rows)
        with pytest.warns(MissingValuesWarning):
            assert -units.score(rows) == pytest.approx(units.energy_)

    @pytest.mark.parametrize("estimator", [VonMisesFisherMixture(2, random_state=0), OnlineKMeans(2, random_state=0)])
    def test_one_warning_at_the_line_of_the_caller(self, estimator, blobs):
        rows = np.insert(blobs, 0, 0.0, axis=0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit_predict(rows)
        assert [(w.category, w.filename) for w in caught] == [(MissingValuesWarning, __file__)]


def test_warnings_of_fits_point_to_the_caller(blobs):
    for estimator in (GaussianMixture(3), SoftKMeans(3), VonMisesFisherMixture(3), HardKMeans(3)):
        with pytest.warns(ConvergenceWarning) as caught:
            estimator.set_params(random_state=0, n_init=1, max_iter=1).fit(blobs)
        assert caught[0].filename == __file__


class TestCriteria:
    @pytest.mark.parametrize("weight", [None, 2.0])
    def test_relative_to_uniform(self, weight, blobs):
        fitted = VonMisesFisherMixture(2, random_state=0).fit(blobs)
        factor = 1.0 if weight is None else weight
        gap = 2 * factor * len(blobs) * bessel.log_sphere_area(2)
        for ask in (fitted.bic, fitted.aic):
            assert ask(blobs, weight) - ask(blobs, weight, relative_to="uniform") == pytest.approx(gap)

    def test_weights_of_zero_are_refused(self, blobs):
        fitted = GaussianMixture(2, random_state=0).fit(blobs)
        for ask in (fitted.score, fitted.bic, fitted.aic):
            with pytest.raises(DataError, match="no row has a weight above zero"):
                ask(blobs, sample_weight=np.zeros(len(blobs)))
        with pytest.raises(DataError, match="sample_weight must hold numbers"):
            fitted.bic(blobs, sample_weight=["a"] * len(blobs))

    @pytest.mark.parametrize(
        ("fitted", "changed"),
        [
            (GaussianMixture(2, random_state=0), {"variance": "tied"}),
            (VonMisesFisherMixture(2, random_state=0), {"kappa": 1.0, "weights": "equal"}),
        ],
    )
    def test_they_are_of_the_fit_and_not_of_later_settings(self, fitted, changed, blobs, tmp_path):
        before = fitted.fit(blobs).bic(blobs)
        fitted.set_params(**changed)
        assert fitted.bic(blobs) == before
        assert saved(fitted, tmp_path).bic(blobs) == before

    def test_unfitted(self):
        with pytest.raises(NotFittedError):
            _ = GaussianMixture().n_parameters_

    def test_selection_refuses_what_has_no_criterion(self, blobs):
        with pytest.raises(ArgumentError, match=r"HardKMeans\(\) has no bic"):
            select_components(HardKMeans(), blobs, [1, 2])
        with pytest.raises(ArgumentError, match=r"n_components=3 must be several numbers to try, such as range"):
            select_components(GaussianMixture(), blobs, 3)


class TestFiles:
    def test_missing_cells_are_not_read_as_labels(self, tmp_path):
        (tmp_path / "t.csv").write_text("a,b\nx,p\ny,\nx,q\n")
        with pytest.raises(MissingValuesError, match="row 1, column 'b' is missing"):
            fit_mixture_file(tmp_path / "t.csv", "machine-mixture")

    def test_some_column_must_stay(self, tmp_path):
        (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
        with pytest.raises(ArgumentError, match=r"drop leaves no column of .*t\.csv"):
            fit_mixture_file(tmp_path / "t.csv", "k-means", drop=["a"], weights="b")
        assert read_rows(tmp_path / "t.csv", names=["b", "a"])[0].columns.tolist() == ["b", "a"]

    def test_numpy_settings_are_kept(self, blobs, tmp_path):
        fitted = GaussianMixture(np.int64(3), tol=np.float64(1e-5), random_state=np.int64(4)).fit(blobs)
        assert saved(fitted, tmp_path).get_params() == fitted.get_params()

    def test_online_units_go_on_where_they_were(self, blobs, tmp_path):
        units = OnlineKMeans(2, normalize=False, random_state=0).partial_fit(blobs[:90])
        again = saved(units, tmp_path)
        np.testing.assert_array_equal(again.partial_fit(blobs[90:]).means_, units.partial_fit(blobs[90:]).means_)

    def test_labels_of_the_fit_stay_behind(self, blobs, tmp_path):
        for kind in sorted(set(MIXTURES) - {"machine-mixture"}):
            assert not hasattr(saved(MIXTURES[kind](random_state=0).fit(blobs), tmp_path), "labels_")

    def test_labels_keep_their_types(self, tmp_path):
        frame = pd.DataFrame({"colour": ["red", "blue", "red"], "size": [1, 2, 1], "old": [True, False, True]})
        fitted = MachineMixture(2, random_state=0).fit(frame)
        drawn, again = (m.sample(20, random_state=0)[0] for m in (fitted, saved(fitted, tmp_path)))
        assert drawn.tolist() == again.tolist()
        assert {tuple(map(type, row)) for row in again.tolist()} == {(str, int, bool)}

    @pytest.mark.parametrize("column", [pd.to_datetime(["2020-01-01", "2021-01-01"]), [b"a", b"b"]])
    def test_values_that_a_file_cannot_keep(self, column, tmp_path):
        fitted = MachineMixture(1).fit(pd.DataFrame({"when": column}))
        with pytest.raises(DataError, match=r"column 'when' holds .* which a file of a mixture cannot keep"):
            fitted.save(tmp_path / "m.gibbs")


class TestKMeans:
    def test_winners_far_from_the_origin(self):
        rows = 1e9 + np.array([[0.0, 0.0], [1.0, 0.0], [100.0, 0.0], [101.0, 0.0]])
        units = OnlineKMeans(2, normalize=False, random_state=0).fit(rows)
        np.testing.assert_allclose(np.sort(units.means_[:, 0]) - 1e9, [0.5, 100.5], atol=1e-6)

    def test_the_number_of_units_is_settled(self, blobs):
        units = OnlineKMeans(2, random_state=0).partial_fit(blobs).set_params(n_components=3)
        with pytest.raises(ArgumentError, match="n_components=3 but there are 2 units already"):
            units.partial_fit(blobs)

    def test_a_class_that_loses_all_its_rows_is_refilled(self):
        problem = KMeansProblem(collapse([[0.0], [1.0], [10.0], [11.0]]))
        result = em.iterate(problem, problem.from_means(np.array([[0.5], [10.5], [99.0]])), 50, 0.0)
        assert result.free_energy == 0.5
        assert (np.diff(result.free_energies) <= 0).all()

    def test_energies_never_rise_among_means_that_are_all_but_equally_near(self):
        """Products of such rows lose every digit of the distances within the clumps."""
        rng = np.random.default_rng(0)
        rows = 1e10 * (np.arange(300) % 2)[:, None] + rng.normal(size=(300, 3))
        problem = KMeansProblem(collapse(rows))
        for seed in range(5):
            partition = problem.from_means(rows[np.random.default_rng(seed).choice(300, 6, replace=False)])
            energies = [partition.energy]
            for _ in range(20):
                partition = problem.maximise(None, partition)
                energies.append(partition.energy)
            assert (np.diff(energies) <= 1e-9 * energies[0]).all()

    def test_the_story_of_an_annealed_fit_counts_all_stages(self, blobs):
        result = SoftKMeans(3, variance=0.1, anneal=True, n_init=1, random_state=0).fit(blobs).result_
        n_stages = len(np.unique(result.stages))
        assert result.reason == f"converged after {result.n_steps} steps in {n_stages} stages"


class TestCells:
    @pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=str)
    def test_missing_cells_name_row_and_column(self, missing):
        frame = pd.DataFrame({"colour": ["red", "blue", "red"], "size": ["s", "m", "s"]}, dtype=object)
        fitted = MachineMixture(2, random_state=0).fit(frame)
        frame.loc[1, "size"] = missing
        for ask in (fitted.predict, fitted.fit, fitted.score):
            with pytest.raises(MissingValuesError, match="row 1, column 'size' is missing"):
                ask(frame)

    @pytest.mark.parametrize("column", [[1, 2], [1.5, "red"], [("a",), "red"]], ids=str)
    def test_other_types_have_not_been_seen(self, column):
        frame = pd.DataFrame({"colour": ["red", "blue", "red"]})
        with pytest.raises(DataError, match=r"row 0, column 'colour' holds .* which the fit has not seen"):
            MachineMixture(1).fit(frame).predict(pd.DataFrame({"colour": column}, dtype=object))

    def test_words_where_numbers_were(self):
        fitted = MachineMixture(2, random_state=0).fit(np.array([[0, 1], [1, 0], [0, 1]]))
        with pytest.raises(DataError, match="row 0, column 0 holds 'a', which the fit has not seen"):
            fitted.predict(np.array([["a", "b"]]))

    def test_lists_are_refused(self):
        rows = np.empty((2, 1), dtype=object)
        rows[:, 0] = [["a"], "b"]
        with pytest.raises(DataError, match="column 0 "):
            MachineMixture(1).fit(rows)


class TestMachinesOfOthers:
    def test_scikit_learns_kernel_density(self, blobs):
        fitted = MachineMixture(2, machine=KernelDensity(bandwidth=1.0), n_init=1, max_iter=5, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # no maximum likelihood fit, and few steps
            fitted.fit(blobs)
        rows, _ = fitted.sample(50, random_state=1)
        assert rows.shape == (50, 2)
        np.testing.assert_array_equal(rows, fitted.sample(50, random_state=1)[0])
        with pytest.raises(ArgumentError, match="do not tell their number of parameters"):
            fitted.bic(blobs)

    def test_a_mixture_of_mixtures(self, blobs):
        fitted = MachineMixture(2, machine=GaussianMixture(1, variance_floor=0.01), n_init=1, random_state=0).fit(blobs)
        assert fitted.sample(9, random_state=0)[0].shape == (9, 2)
        assert fitted.n_parameters_ == 2 * 3 + 1

    @pytest.mark.parametrize(
        ("machine", "words"),
        [
            (None, "machine=None must be 'categorical', 'bernoulli' or an estimator"),
            (KernelDensity, r"machine is the class KernelDensity: give an object of it, KernelDensity\(\)"),
            (ScikitGaussianMixture(), "machine=GaussianMixture takes no sample_weight in fit"),
            (HardKMeans(), "machine=HardKMeans has no score_samples"),
        ],
    )
    def test_what_is_no_machine(self, machine, words, blobs):
        with pytest.raises(ArgumentError, match=words):
            MachineMixture(machine=machine).fit(blobs)

    def test_a_class_that_its_machine_cannot_fit_is_named(self):
        rng = np.random.default_rng(0)
        first = np.repeat([-1, 1], 30)
        rows = np.column_stack([first, np.roll(first, 1), np.roll(first, -1), rng.choice([-1, 1], 60)])
        machine = gb.BoltzmannMachine("empty", learner="mle")
        with pytest.raises(DataError, match=r"the machine of class \d cannot be fitted to the rows of this class: "):
            MachineMixture(2, machine=machine, assignment="hard", random_state=0).fit(rows)


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        *[(HardKMeans(k), f"n_components={k!r} must be a whole number") for k in (None, "3", True, 1.5)],
        (HardKMeans(max_iter=2.5), "max_iter=2.5 must be a whole number"),
        (HardKMeans(n_init=1.5), "n_init=1.5 must be a whole number"),
        *[(GaussianMixture(tol=tol), "tol=.* must be a finite number not below zero") for tol in (np.nan, -1, "a")],
        *[(SoftKMeans(variance=v), "variance=.* must be a number, at least 1e-140; Gauss") for v in (None, -1, np.inf)],
        *[(VonMisesFisherMixture(kappa=k), "kappa=.* must be a number not below zero") for k in (None, [1.0], 10**400)],
        (VonMisesFisherMixture(kappa_max=np.inf), "kappa_max=inf must be a positive number, at most 1e140"),
        (VonMisesFisherMixture(kappa_method=["newton"]), "is not known: use one of banerjee"),
        (OnlineKMeans(n_epochs=1.5), "n_epochs=1.5 must be a whole number"),
        (OnlineKMeans(rate="x"), "rate='x' must be above 0"),
        (SoftKMeans(anneal=True, cooling="x"), "cooling='x' must lie between 0 and 1"),
        *[(GaussianMixture(variance_floor=v), "variance_floor=.* must be a finite positive") for v in ("a", np.inf)],
        (MachineMixture(smoothing=np.inf), "smoothing=inf must be a finite number"),
        (VonMisesFisherMixture(normalize="no"), "normalize='no' must be True or False"),
    ],
    ids=str,
)
def test_settings(estimator, words, blobs):
    with pytest.raises(ArgumentError, match=words) as refused:
        estimator.fit(blobs)
    assert not (isinstance(estimator, SoftKMeans) and "free" in str(refused.value))


@pytest.mark.parametrize("n_samples", [1.5, None, 0, "3"])
def test_numbers_of_samples(n_samples, blobs):
    with pytest.raises(ArgumentError, match=f"n_samples={n_samples!r} must be"):
        GaussianMixture(1).fit(blobs).sample(n_samples)


@pytest.mark.parametrize("kind", MIXTURES)
def test_fit_predict(kind, blobs):
    rows = np.round(blobs)
    predicted = MIXTURES[kind](random_state=0).fit_predict(rows)
    np.testing.assert_array_equal(predicted, MIXTURES[kind](random_state=0).fit(rows).labels_)


class TestPlots:
    @pytest.fixture
    def narrow(self) -> VonMisesFisherMixture:
        angles = 1.234567 + 1e-6 * np.random.default_rng(0).normal(size=50)
        rows = np.column_stack([np.cos(angles), np.sin(angles)])
        return VonMisesFisherMixture(1, kappa_max=1e14).fit(rows)

    @pytest.mark.filterwarnings("error::RuntimeWarning")
    def test_narrow_peaks_are_drawn(self, narrow):
        ax = circle(narrow, narrow.means_)
        assert ax.get_title() == "1 class on the circle, 1 row"
        x, y = next(line for line in ax.lines if line.get_label() == "density").get_data()
        peak = np.flatnonzero(np.hypot(x, y) > 1.3)
        assert len(peak) >= 3
        np.testing.assert_allclose(np.arctan2(y[peak], x[peak]), 1.234567, atol=1e-5)

    def test_narrow_peaks_on_the_sphere(self):
        rows = np.array([0.3, 0.5, 0.7]) + 1e-5 * np.random.default_rng(0).normal(size=(50, 3))
        fitted = VonMisesFisherMixture(1, kappa_max=1e14).fit(rows)
        density = sphere(fitted, rows).collections[0].get_array()
        assert density.max() == pytest.approx(np.exp(fitted.score_samples(fitted.means_)[0]), rel=1e-6)

    @pytest.mark.filterwarnings("error::UserWarning")
    def test_frames_and_sparse_rows(self, blobs):
        frame = pd.DataFrame(blobs, columns=["a", "b"])
        ax = circle(VonMisesFisherMixture(2, random_state=0).fit(frame), frame)
        same = circle(VonMisesFisherMixture(2, random_state=0).fit(blobs), sparse.csr_array(blobs))
        for one, other in zip(ax.collections, same.collections, strict=True):
            np.testing.assert_allclose(one.get_offsets(), other.get_offsets())

    def test_rows_without_direction_are_not_drawn(self, blobs):
        fitted = VonMisesFisherMixture(2, random_state=0).fit(blobs)
        with pytest.warns(MissingValuesWarning):
            ax = circle(fitted, np.insert(blobs, 0, 0.0, axis=0))
        assert sum(len(part.get_offsets()) for part in ax.collections) == len(blobs)

    def test_other_estimators(self, blobs):
        with pytest.raises(ArgumentError, match="a circle shows a VonMisesFisherMixture, but mixture is a HardKMeans"):
            circle(HardKMeans().fit(blobs), blobs)
        with pytest.raises(NotFittedError):
            sphere(VonMisesFisherMixture(), blobs)

    def test_traces_of_estimators(self, blobs):
        fitted = GaussianMixture(2, random_state=0).fit(blobs)
        assert free_energy_trace(fitted).get_title() == fitted.result_.reason
        with pytest.raises(NotFittedError):
            free_energy_trace(GaussianMixture())
        with pytest.raises(ArgumentError, match="result=list has no trace"):
            free_energy_trace([1.0, 2.0])
