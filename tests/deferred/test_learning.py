"""Defects of today that the learning issue repairs: strict expected failures, so that a repair is seen at once."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.learning import CD, run


def repaired_in_learning(item: int, **settings: object) -> pytest.MarkDecorator:
    return pytest.mark.xfail(strict=True, reason=f"issue 31 item {item}: repaired in the learning issue", **settings)


def rows_of_no_machine() -> np.ndarray:
    """Return spins whose third is nearly the product of the first two: the pairwise estimates differ."""
    rng = np.random.default_rng(0)
    a, b = np.where(rng.random((2, 3000)) < 0.7, 1, -1)
    c = np.where(rng.random(3000) < 0.9, a * b, -a * b)
    d = np.where(rng.random(3000) < 0.8, np.maximum(a, c), -b)
    return np.column_stack([a, b, c, d])


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@repaired_in_learning(14, raises=TypeError)
def test_contrastive_divergence_by_single_updates_is_pseudolikelihood():
    """H06 section 5: with one update of one random variable the expected step is that of pseudolikelihood."""
    data, start = gb.Dataset.read(rows_of_no_machine()), gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4)))
    mple, mle = (run(gb.learning.as_learner(name), start, data, 0).model.theta for name in ("mple", "mle"))
    assert np.abs(mple - mle).max() > 0.05
    found = [run(CD(updates=1), start, data, seed, max_iter=400).model.theta for seed in range(3)]
    assert np.abs(np.mean(found, axis=0) - mple).max() < 0.3 * np.abs(mple - mle).max()


@repaired_in_learning(17, raises=AssertionError)
def test_a_gaussian_machine_knows_after_a_load_how_much_it_has_learned(tmp_path):
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(60, 2)), 3.0 * rng.normal(size=(60, 2))
    machine = gb.GaussianMachine().fit(first, sample_weight=np.full(60, 5.0))
    machine.save(tmp_path / "m.gibbs")
    loaded = gb.load(tmp_path / "m.gibbs")
    every = np.cov(np.concatenate([np.repeat(first, 5, axis=0), second]).T, bias=True)
    np.testing.assert_allclose(machine.partial_fit(second).covariance_, every, rtol=1e-6)
    np.testing.assert_allclose(loaded.partial_fit(second).covariance_, every, rtol=1e-6)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@repaired_in_learning(19, raises=AssertionError)
def test_a_penalised_mixture_of_machines_converges():
    """The penalty belongs to what EM lowers; without it the free energy may rise."""
    rng = np.random.default_rng(0)
    group = rng.random(300) < 0.5
    rows = np.where(rng.random((300, 6)) < 0.8, group[:, None], rng.random((300, 6)) < 0.5).astype(int)
    mixture = gb.MachineMixture(2, machine=gb.BoltzmannMachine(l2=2.0), n_init=1, random_state=0).fit(rows)
    assert "the free energy rose" not in mixture.result_.reason
    assert mixture.result_.converged
