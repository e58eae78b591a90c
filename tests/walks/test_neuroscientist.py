"""Spikes of forty cells in five thousand bins: rare, and many pairs never fire together."""

import json

import numpy as np
import pandas as pd
import pytest

from walk_steps import is_picture, typed

N_CELLS, N_BINS = 40, 5000


def spikes(rng: np.random.Generator) -> np.ndarray:
    """Four groups of cells with a drive each; the last two exclude each other."""
    rates = np.geomspace(0.005, 0.05, N_CELLS)
    drive = rng.normal(size=(N_BINS, 4))[:, np.arange(N_CELLS) % 4]
    odds = np.log(rates / (1 - rates)) + 0.7 * drive - 0.2
    found = (rng.random((N_BINS, N_CELLS)) < 1 / (1 + np.exp(-odds))).astype(np.int8)
    found[found[:, -1] == 1, -2] = 0
    return found


def test_rare_spikes_are_fitted_by_the_defaults_and_simulated(tmp_path, rng):
    bins = spikes(rng)
    together = bins.T.astype(int) @ bins
    assert (together == 0).sum() > 200  # the walk is about these
    np.save(tmp_path / "spikes.npy", bins)
    model = tmp_path / "spikes.gibbs"

    said = typed("fit", tmp_path / "spikes.npy", "--seed", 1, "--out", model)
    assert "l2 0.0002 (1 / rows" in said
    assert "the moments of the model agree with those of the data" in said
    assert "converged" in typed("show", model, "--picture", tmp_path / "cells.png")
    assert is_picture(tmp_path / "cells.png")

    typed("sample", model, "-n", 4000, "--seed", 1, "--out", tmp_path / "simulated.csv")
    rates = pd.read_csv(tmp_path / "simulated.csv").to_numpy().mean(axis=0)
    errors = np.sqrt(bins.mean(axis=0) * (1 / 4000 + 1 / N_BINS))
    assert np.abs(rates - bins.mean(axis=0)).max() < 4.5 * errors.max()

    asked = "P(x39=1 | x38=1)", "P(x39=1)"
    given, plain = (json.loads(typed("query", model, query, "--seed", 1, "--json"))[query] for query in asked)
    assert given["values"][0][0] < plain["values"][0][0] / 3
    assert plain["values"][0][0] == pytest.approx(bins[:, 39].mean(), abs=0.01)
