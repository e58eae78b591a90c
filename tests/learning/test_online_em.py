"""Online EM: closed forms at the rate 1/n, the fixed point of EM after many passes, chunks, checkpoints, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp

import gibbsian as gb
from cli_runner import run as command
from gibbsian.errors import ArgumentError
from gibbsian.learning import LEARNERS, OnlineEM

EVERY_ROW_ALIKE = {"learning_rate": 1.0, "power": 1.0, "delay": 1.0, "average": False}


@pytest.fixture(scope="module")
def far_apart() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [40, 60, 100])
    return rng.normal(size=(200, 2)) * (1.0 + labels[:, None]) + 300.0 * np.eye(3)[labels, :2], labels


@pytest.fixture(scope="module")
def overlapping() -> np.ndarray:
    rng = np.random.default_rng(4)
    return (
        rng.normal(size=(300, 2)) * rng.choice([0.5, 1.5], (300, 1)) + 3 * rng.normal(size=(3, 2))[np.arange(300) % 3]
    )


def means_of(rows, labels):
    return np.array([rows[labels == a].mean(axis=0) for a in range(3)])


@pytest.mark.parametrize("batch_size", [1, 7, 200])
def test_one_pass_at_the_rate_one_over_n_is_the_closed_form(far_apart, batch_size):
    """Classes that no row can doubt: every row counts once, in its class, whatever the minibatches."""
    rows, labels = far_apart
    learner = OnlineEM(batch_size=batch_size, **EVERY_ROW_ALIKE)
    mixture = gb.GaussianMixture(3, learner=learner, start=means_of(rows, labels), max_iter=1, random_state=0)
    with pytest.warns(gb.errors.ConvergenceWarning):
        mixture.fit(rows)
    if 200 % batch_size:  # minibatches of unequal size weigh their rows a little unequally
        np.testing.assert_allclose(mixture.means_, means_of(rows, labels), atol=0.2)
        return
    np.testing.assert_allclose(mixture.weights_, [0.2, 0.3, 0.5], rtol=1e-10)
    np.testing.assert_allclose(mixture.means_, means_of(rows, labels), rtol=1e-9, atol=1e-9)
    variances = [np.square(rows[labels == a] - rows[labels == a].mean(axis=0)).mean() for a in range(3)]
    np.testing.assert_allclose(mixture.variances_, variances, rtol=1e-6)


def mean_log_likelihood(rows, means, variances, weights):
    """By the definition of the density."""
    squares = np.square(rows[:, None] - means).sum(axis=2)
    return logsumexp(np.log(weights) - squares / (2 * variances) - np.log(2 * np.pi * variances), axis=1).mean()


def slopes(rows, mixture, step=1e-5):
    """The derivatives of the mean log-likelihood by the means and log-variances, by differences."""
    means, logs, weights = mixture.means_, np.log(mixture.variances_), mixture.weights_

    def at(theta):
        moved = theta[: means.size].reshape(means.shape)
        return mean_log_likelihood(rows, moved, np.exp(theta[means.size :]), weights)

    theta = np.concatenate([means.ravel(), logs])
    return np.array([(at(theta + step * e) - at(theta - step * e)) / (2 * step) for e in np.eye(theta.size)])


def test_a_constant_rate_moves_the_statistics_by_its_share():
    """Of two rows the second moves the mean of the first by the rate, whichever comes first."""
    learner = OnlineEM(batch_size=1, learning_rate=0.25, power=0.0, wait=0, average=False)
    mixture = gb.GaussianMixture(1, learner=learner, random_state=0, max_iter=1)
    with pytest.warns(gb.errors.ConvergenceWarning):
        mean = mixture.fit([[0.0], [1.0]]).means_.item()
    assert abs(mean - 0.5) == pytest.approx(0.25, abs=1e-12)


def test_many_passes_end_at_a_zero_of_the_likelihoods_gradient(overlapping):
    settings = {"learner": OnlineEM(batch_size=10), "start": overlapping[:3], "random_state": 0}
    mixture = gb.GaussianMixture(3, max_iter=150, tol=1e-12, **settings)
    begun = gb.GaussianMixture(3, max_iter=1, **settings)
    for one in (mixture, begun):
        with pytest.warns(gb.errors.ConvergenceWarning):
            one.fit(overlapping)
    assert np.abs(slopes(overlapping, mixture)).max() < 3e-3 < 0.1 * np.abs(slopes(overlapping, begun)).max()
    batch = gb.GaussianMixture(3, start=mixture.means_, tol=1e-10).fit(overlapping)
    assert mixture.score(overlapping) == pytest.approx(batch.score(overlapping), abs=2e-3)


@pytest.mark.parametrize(
    "mixture",
    [gb.SoftKMeans(3, variance=1.0), gb.VonMisesFisherMixture(2, kappa="tied"), gb.MachineMixture(2)],
    ids=lambda mixture: type(mixture).__name__,
)
def test_every_mixture_ends_near_its_em(mixture, overlapping):
    rows = (overlapping > 0).astype(int) if isinstance(mixture, gb.MachineMixture) else overlapping
    mixture.set_params(random_state=0, n_init=2)
    batch, online = mixture.fit(rows).score(rows), mixture.set_params(learner="online-em").fit(rows).score(rows)
    assert online == pytest.approx(batch, abs=5e-3)


def test_sparse_directions_and_missing_cells(overlapping):
    directions = np.maximum(np.column_stack([overlapping, overlapping[:, :1] ** 2]), 0.3)
    thin = gb.VonMisesFisherMixture(2, learner="online-em", random_state=0).fit(sparse.csr_array(directions))
    batch = gb.VonMisesFisherMixture(2, random_state=0).fit(directions)
    assert thin.score(directions) == pytest.approx(batch.score(directions), abs=0.02)
    holed = overlapping.copy()
    holed[::7, 0] = np.nan
    online = gb.GaussianMixture(3, learner="online-em", random_state=0, n_init=3, tol=1e-6).fit(holed)
    assert online.score(holed) == pytest.approx(gb.GaussianMixture(3, random_state=0).fit(holed).score(holed), abs=0.02)


def test_chunks_go_on_after_a_fit_and_after_a_load(far_apart, tmp_path):
    """At the rate 1/n chunks are one long pass."""
    rows, labels = far_apart
    order = np.random.default_rng(1).permutation(200)
    mixture = gb.GaussianMixture(3, learner=OnlineEM(batch_size=1, **EVERY_ROW_ALIKE), start=means_of(rows, labels))
    for part in np.array_split(order, 4):
        mixture.partial_fit(rows[part])
    np.testing.assert_allclose(mixture.means_, means_of(rows, labels), atol=1e-8)
    np.testing.assert_allclose(mixture.weights_, [0.2, 0.3, 0.5], rtol=1e-9)
    mixture.save(tmp_path / "m.gibbs")
    loaded = gb.load(tmp_path / "m.gibbs").set_params(learner=mixture.learner).partial_fit(rows)
    np.testing.assert_allclose(loaded.means_, means_of(rows, labels), atol=1e-6)
    fitted = gb.GaussianMixture(3, learner="online-em", random_state=0).fit(rows)
    before = fitted._state.progress.steps
    fitted.partial_fit(rows[:40])
    assert fitted._state.progress.steps == before + 2


def test_what_learns_no_classes_is_refused(overlapping):
    for name in LEARNERS.names():
        if name in ("em", "online-em"):
            continue
        with pytest.raises(ArgumentError):
            gb.GaussianMixture(2, learner=LEARNERS.create(name)).fit(overlapping)
    with pytest.raises(ArgumentError, match="learns classes"):
        gb.BoltzmannMachine(learner=gb.learning.OnlineEM(), l2=0.0).fit([[0, 1], [1, 0]])
    with pytest.raises(ArgumentError, match="needs all rows at once"):
        gb.MachineMixture(2, machine=gb.BoltzmannMachine(l2=0.1), learner="online-em").fit(
            (overlapping > 0).astype(int)
        )


def test_online_em_and_starts_from_the_command_line(overlapping, tmp_path):
    table, means, model = tmp_path / "rows.csv", tmp_path / "means.csv", tmp_path / "m.gibbs"
    np.savetxt(table, overlapping, delimiter=",", header="a,b", comments="")
    np.savetxt(means, overlapping[:3], delimiter=",", header="a,b", comments="")
    flags = ["--learner", "online-em", "--batch-size", 5, "--power", 0.8, "--max-iter", 5, "--start", means]
    result = command("fit", table, "--model", "gaussian-mixture", "--n-components", 3, *flags, "--out", model)
    assert result.exit_code == 0, result.stderr
    learner = OnlineEM(batch_size=5, power=0.8)
    same = gb.GaussianMixture(3, learner=learner, start=overlapping[:3], max_iter=5, random_state=0)
    with pytest.warns(gb.errors.ConvergenceWarning):
        same.fit(overlapping)
    assert gb.load(model).means_.shape == same.means_.shape
    for flags in (["--start", "partition"], ["--start", "0,0,5,5,9,9"]):
        result = command("fit", table, "--model", "k-means", "--n-components", 3, *flags, "--out", model)
        assert result.exit_code == 0, result.stderr
    flags = ["--no-normalize", "--schedule", "constant", "--learning-rate", 0.1, "--start", means]
    result = command("fit", table, "--model", "online-k-means", "--n-components", 3, *flags, "--out", model)
    assert result.exit_code == 0, result.stderr
