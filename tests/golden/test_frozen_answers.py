"""The answers of many small fits, frozen before the library was refactored; `frozen_fits.py` says how to store them."""

import numpy as np
import pytest

from golden.frozen_fits import FITS, answers_of, stored_answers

STORED = stored_answers()
# What has another meaning since: curves then scored one unit of a row, now all of them.
CHANGED = ("history_log_pseudolikelihood", "history_held_out_log_pseudolikelihood")
# Restricted machines without data then began with the rates of chains from the visible biases, all in one mode.
REPLACED = {"restricted_held_out_and_annealed": ("log_partition",)}
# Sampled errors then lacked what so many draws cannot exclude: 1.5 times the range of a statistic over their number.
UNSEEN = {
    "pairwise_beyond_exact_sums": {"stderr": 3.0 / 210},
    "pairwise_expectations": {"monte-carlo_stderr": 1.5 / 100, "ais_stderr": 1.5 / 99.99904},
}


def test_registry_and_file_have_the_same_names():
    assert sorted(FITS) == sorted(STORED)


@pytest.mark.parametrize("name", FITS)
def test_answers_are_those_of_the_file(name):
    stored, fit = STORED[name], FITS[name]
    found = answers_of(name)
    assert sorted(found) == sorted(stored), f"{name} answers other questions than the file"
    failures = []
    for key, value in found.items():
        if key in (*CHANGED, *REPLACED.get(name, ())):
            continue
        expected = np.asarray(stored[key], dtype=float)
        if unseen := UNSEEN.get(name, {}).get(key):
            expected = np.hypot(expected, unseen)
        if value.shape != expected.shape:
            failures.append(f"{name}: {key} has shape {value.shape}, in the file {expected.shape}")
            continue
        if fit.faster and key.endswith("n_steps"):
            failures += [f"{name}: {key} is {value}, in the file {expected}"] if value > expected + 1 else []
            continue
        try:
            np.testing.assert_allclose(value, expected, rtol=fit.rtol, atol=fit.atol)
        except AssertionError as error:
            failures.append(f"{name}: {key} differs from the file{error}")
    assert not failures, "\n".join(failures)
