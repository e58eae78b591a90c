"""The course of a fit and free energies."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from gibbsian import GaussianMixture, SoftKMeans
from gibbsian.errors import ArgumentError
from gibbsian.plots import convergence, filters, free_energies, free_energy_trace, reconstructions, training_curves
from layered_systems import bits, small_machine
from layered_systems import rbm as RBM


def test_convergence_shows_every_step(machine):
    ax = convergence(machine)
    assert convergence(machine.result_).get_title() == ax.get_title()
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), machine.result_.trace.column("gradient_norm"))
    assert ax.get_title() == machine.result_.reason
    assert ax.get_yscale() == "log"


def test_free_energies_are_histograms_of_their_rows(rbm, rows):
    ax = free_energies(rbm, {"fit": rows, "held out": rows[:10]}, sampled=False)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["fit: 60 rows", "held out: 10 rows"]
    low, high = ax.dataLim.intervalx
    energies = rbm.free_energy(rows)
    assert low == pytest.approx(energies.min())
    assert high == pytest.approx(energies.max())
    with pytest.raises(ArgumentError, match="data holds no rows"):
        free_energies(rbm, {}, sampled=False)


def test_curves_are_the_history(rbm):
    lines = training_curves(rbm).get_lines()
    np.testing.assert_array_equal(lines[0].get_ydata(), rbm.history_["log_likelihood"])
    np.testing.assert_array_equal(lines[1].get_ydata(), rbm.history_["held_out_log_likelihood"])
    assert len(lines[0].get_xdata()) == 6


def test_numbers_have_curves_of_their_reconstruction():
    rows = np.random.default_rng(0).normal(size=(40, 4))
    machine = RBM(2, visible="gaussian", max_iter=3, curves=True, random_state=0).fit(rows)
    assert training_curves(machine).get_ylabel() == "reconstruction error"
    assert filters(machine).get_title() == "filters of 2 hidden units"


def test_trace_has_one_line_per_stage(space):
    soft = SoftKMeans(3, variance=0.01, anneal=True, n_init=1, random_state=0).fit(space[1])
    lines = free_energy_trace(soft).lines
    assert len(lines) == len(np.unique(soft.stages_))
    assert sum(len(line.get_xdata()) for line in lines) == soft.n_iter_


def test_traces_of_estimators(blobs):
    fitted = GaussianMixture(2, random_state=0).fit(blobs)
    assert free_energy_trace(fitted).get_title() == fitted.result_.reason
    with pytest.raises(NotFittedError):
        free_energy_trace(GaussianMixture())
    with pytest.raises(ArgumentError, match="a list has no free_energies_: draw this picture of a mixture"):
        free_energy_trace([1.0, 2.0])


def test_what_a_deep_machine_cannot_show_is_said():
    dbm = small_machine("dbm").fit(bits())
    with pytest.raises(ArgumentError, match="a DeepBoltzmannMachine has no reconstruct"):
        reconstructions(dbm, bits())
    with pytest.raises(ArgumentError, match="a DeepBoltzmannMachine has no free_energy"):
        free_energies(dbm, {"fit": bits()})


def test_layers_that_never_learned_together_have_no_curve():
    with pytest.raises(ArgumentError, match="never learned together"):
        training_curves(small_machine("dbn").fit(bits()))
