"""``gibbsian fit``: pairwise machines from a table to a model file."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gibbsian as gb
from cli_runner import answer, refused, run
from gibbsian.cli.table import read_edges

NAMES = ["a", "b", "c", "d"]


def test_fit_ends_with_the_reason_and_the_place_of_the_model(fit_arguments, folder):
    result = run(*fit_arguments)
    assert result.exit_code == 0
    *_, reason, trained, held_out, verdict, written = result.stdout.splitlines()
    assert reason.startswith("fit:         converged after ")
    assert held_out.startswith("held out:    log-likelihood of 200 held-out rows ")
    assert verdict == "verdict:     good"
    assert trained.startswith("trained:     the moments of the model agree with those of the data")
    assert written == f"model written to {folder / 'new.gibbs'}"
    assert "strongest couplings" in result.stdout


def test_fit_gives_the_library_s_own_answer(fit_arguments, folder, table):
    told = answer(*fit_arguments, "--learner", "mle", "--l2", "0.01")
    machine = gb.BoltzmannMachine(learner="mle", l2=0.01).fit(table[NAMES])
    np.testing.assert_array_equal(gb.load(folder / "new.gibbs").model_.theta, machine.model_.theta)
    assert told["reason"] == machine.result_.reason
    assert told["strongest_couplings"] == machine.strongest_couplings(10).to_dict("records")


def test_quiet_fit_prints_nothing(fit_arguments):
    result = run(*fit_arguments, "--quiet")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_fit_takes_weights_from_a_column(fit_arguments, folder, table):
    run("fit", folder / "data.csv", "--out", folder / "new.gibbs", "--drop", "id", "--weights", "w", "--learner", "mle")
    machine = gb.BoltzmannMachine(learner="mle").fit(table[NAMES], sample_weight=table["w"])
    np.testing.assert_array_equal(gb.load(folder / "new.gibbs").model_.theta, machine.model_.theta)


def test_fit_on_edges_from_a_file(fit_arguments, folder):
    (folder / "edges.csv").write_text("first,second\na,b\nc,b\n")
    assert answer(*fit_arguments, "--graph", folder / "edges.csv")["size"]["couplings"] == 2
    assert gb.load(folder / "new.gibbs").model_.family.graph.edges.tolist() == [[0, 1], [1, 2]]


def test_edges_without_a_header(folder):
    (folder / "edges.csv").write_text("a,b\nb,c\n")
    assert read_edges(str(folder / "edges.csv"), ("a", "b", "c")) == [("a", "b"), ("b", "c")]


def test_edges_by_title_and_by_position(fit_arguments, folder):
    (folder / "edges.csv").write_text("source,target\na,b\n2,3\n")
    assert run(*fit_arguments, "--graph", folder / "edges.csv").exit_code == 0
    assert read_edges(str(folder / "edges.csv"), tuple(NAMES)) == [("a", "b"), (2, 3)]


def test_plain_ascent_reaches_the_maximum_of_lbfgs(fit_arguments, folder):
    pseudo = [*fit_arguments, "--learner", "mple", "--complete-rows", "--l2", "0.05"]
    assert answer(*pseudo)["converged"]
    quick = gb.load(folder / "new.gibbs").model_.theta
    assert answer(*pseudo, "--optimizer", "ascent", "--learning-rate", "0.5", "--max-iter", "5000")["converged"]
    np.testing.assert_allclose(gb.load(folder / "new.gibbs").model_.theta, quick, atol=1e-4)


def test_a_resumed_fit_is_bit_identical(fit_arguments, folder):
    keeping = [*fit_arguments, "--learner", "mle", "--checkpoint", folder / "progress", "--every", "3"]
    assert run(*fit_arguments, "--learner", "mle").exit_code == 0
    whole = gb.load(folder / "new.gibbs").model_.theta.tobytes()
    assert not answer(*keeping, "--max-iter", "6")["converged"]
    told = answer(*keeping, "--resume")
    assert told["converged"]
    assert gb.load(folder / "new.gibbs").model_.theta.tobytes() == whole


def test_the_threshold_of_binarize_is_kept_for_later_data(tmp_path):
    numbers = pd.DataFrame(np.random.default_rng(1).normal(size=(60, 3)), columns=["a", "b", "c"])
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    run("fit", tmp_path / "numbers.csv", "--out", tmp_path / "m.gibbs", "--binarize", "0.25")
    told = answer("score", tmp_path / "m.gibbs", tmp_path / "numbers.csv")
    machine = gb.BoltzmannMachine().fit((numbers > 0.25).astype(int))
    assert told["mean_log_likelihood"] == pytest.approx(machine.score((numbers > 0.25).astype(int)), abs=1e-6)


def test_fit_from_the_disk(folder):
    rng = np.random.default_rng(0)
    first = rng.random(5000) < 0.5
    second = np.where(rng.random(5000) < 0.8, first, ~first)
    np.save(folder / "rows.npy", np.column_stack([first, second]).astype(np.uint8))
    told = answer("fit", folder / "rows.npy", "--out", folder / "d.gibbs", "--memory", "1MB", "--seed", "0")
    assert told["provenance"]["learner"] == "online"
    assert told["strongest_couplings"][0]["coupling"] == pytest.approx(2 * np.log(4), abs=0.3)
    assert "--memory learns from the disk" in refused(
        "fit", folder / "rows.npy", "--out", folder / "e.gibbs", "--memory", "1MB", "--complete-rows"
    )
