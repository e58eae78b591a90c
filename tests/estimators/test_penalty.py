"""The default penalty: which part of its rule acts, and that it helps rows that were not fitted; held-out scores."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.learning import HeldOut


def related(n_rows, n_columns, seed=0, noise=0.25):
    """Columns of 0/1 that follow a common one."""
    rng = np.random.default_rng(seed)
    return ((rng.random((n_rows, 1)) < 0.5) ^ (rng.random((n_rows, n_columns)) < noise)).astype(int)


def rule(machine, rows, **fit):
    return machine.fit(rows, **fit).result_.provenance.get("l2_rule", "")


# -- which part of the rule acts --------------------------------------------------------------------------------------
def test_with_plenty_of_rows_there_is_no_penalty():
    rows = related(400, 5)
    assert rule(gb.BoltzmannMachine(), rows) == "none, with 27 rows for each parameter"
    plain = gb.BoltzmannMachine(l2=0).fit(rows)
    np.testing.assert_array_equal(gb.BoltzmannMachine().fit(rows).model_.theta, plain.model_.theta)


def test_weights_count_as_rows():
    distinct, counts = np.unique(related(400, 5), axis=0, return_counts=True)
    assert rule(gb.BoltzmannMachine(), distinct, sample_weight=counts) == "none, with 27 rows for each parameter"


def test_normalised_weights_do_not_make_one_row_of_many():
    rows = related(400, 5)
    shares = np.full(400, 1 / 400)
    assert rule(gb.BoltzmannMachine(), rows, sample_weight=shares) == "none, with 27 rows for each parameter"


def test_with_few_rows_held_out_rows_choose_whatever_their_order(rng):
    rows = related(100, 6)
    first, again = gb.BoltzmannMachine().fit(rows), gb.BoltzmannMachine().fit(rng.permutation(rows))
    assert "the best of 5 by log-likelihood in 3 folds" in first.result_.provenance["l2_rule"]
    np.testing.assert_array_equal(first.model_.theta, again.model_.theta)
    assert first.result_.held_out.n_rows == 100


def test_where_fits_are_slow_it_is_one_over_the_number_of_rows():
    machine = gb.BoltzmannMachine(learner="pcd", max_iter=2, random_state=0)
    with pytest.warns(gb.errors.ConvergenceWarning):
        assert rule(machine, related(100, 6)).startswith("1 / rows, a standard normal prior")
    assert machine.result_.provenance["l2"] == 0.01
    assert machine.result_.held_out is None


@pytest.mark.parametrize(
    "settings", [{"l2": 0}, {"l1": 0.01}, {"log_prior": "normal:2"}, {"learner": gb.learning.as_learner("mle")}]
)
def test_what_is_said_is_heeded(settings):
    assert rule(gb.BoltzmannMachine(**settings), related(100, 6)) == ""


def test_tables_are_counted_by_what_a_gauge_leaves_free():
    rows = np.random.default_rng(0).integers(0, 3, (700, 4))  # 8 + 24 free of 12 + 54 parameters
    assert rule(gb.PottsMachine(), rows) == "none, with 22 rows for each parameter"


def test_the_default_predicts_new_votes_better_than_no_penalty():
    votes = gb.datasets.load_house_votes()
    training, unseen = votes.split(0.8, 0)
    default = gb.BoltzmannMachine().fit(training)
    assert default.score(unseen) > gb.BoltzmannMachine(l2=0).fit(training).score(unseen) + 0.2
    assert abs(default.strongest_couplings(1)["coupling"].iloc[0]) < 4


# -- scores -----------------------------------------------------------------------------------------------------------
def test_independent_columns_have_the_margins_of_the_fitted_rows():
    rows = related(200, 4).astype(float)
    rows[::7, 2] = np.nan
    machine = gb.BoltzmannMachine(l2=0.01, validation_fraction=0.25, random_state=0).fit(rows)
    shown, unseen = machine.read(rows).split(0.75, np.random.default_rng(0))
    (seen, holes), (states, missing) = shown.rows(), unseen.rows()
    upper = [(seen[~holes[:, j], j].sum() + 1) / ((~holes[:, j]).sum() + 2) for j in range(4)]
    cells = np.where(missing, 0.0, np.log(np.where(states == 1, upper, 1 - np.array(upper))))
    found = machine.result_.held_out
    assert found.independent == pytest.approx(cells.sum(axis=1).mean())
    assert found.fitted == pytest.approx(machine.score(shown))
    difference = machine.score_samples(unseen) - cells.sum(axis=1)
    assert found.stderr == pytest.approx(difference.std(ddof=1) / np.sqrt(len(difference)))


def test_numbers_are_compared_with_independent_normal_columns(rng):
    common = rng.normal(size=(300, 1))
    rows = 5 * (common + rng.normal(size=(300, 3))) + 10
    found = gb.GaussianMachine(validation_fraction="auto").fit(rows).result_.held_out
    assert found.fitted > found.score > found.independent
    alone = gb.GaussianMachine(validation_fraction="auto").fit(rng.normal(size=(300, 3))).result_.held_out
    assert abs(alone.score - alone.independent) < 0.05


@pytest.mark.parametrize(
    ("rows", "why"), [(related(12, 3), "12 rows are too few"), (related(30, 3), "")], ids=["few", "enough"]
)
def test_what_is_not_measured_says_why(rows, why):
    result = gb.BoltzmannMachine(l2=0.05, validation_fraction="auto").fit(rows).result_
    assert result.provenance.get("held_out", "") == (f"not measured: {why}" if why else "")
    assert (result.held_out is None) == bool(why)


def test_rows_held_out_tell_that_a_penalty_was_missing():
    """Their own scores are too noisy to tell; their difference to those of a fit under a penalty is not."""
    result = gb.BoltzmannMachine(l2=0, validation_fraction=0.4, random_state=0).fit(related(120, 12)).result_
    found = result.held_out
    assert found._replace(with_penalty=None).problem() == ""
    assert found.with_penalty > found.score + 2 * found.with_penalty_stderr
    assert result.verdict.problems == (found.problem(),)
    assert found.problem().startswith("overfitted")


def test_few_rows_of_which_a_part_has_no_maximum_are_in_doubt():
    """Their moments are those of the data to the last digit, and they are as overfitted as any."""
    result = gb.BoltzmannMachine(l2=0, validation_fraction="auto").fit(related(60, 10)).result_
    assert result.training.is_trained
    assert result.verdict.status == "unknown"
    (problem,) = result.verdict.problems
    assert problem.startswith("perhaps overfitted: without a third of the rows ")


def test_slow_fits_are_not_repeated(monkeypatch):
    monkeypatch.setattr("gibbsian.estimators.held_out.PATIENT_SECONDS", 0.0)
    story = gb.BoltzmannMachine(l2=0.05, validation_fraction="auto").fit(related(100, 3)).result_.provenance
    assert story["held_out"].startswith("not measured: it would take about ")


# -- verdicts ---------------------------------------------------------------------------------------------------------
KIND = "log-likelihood"


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ((-5.0, KIND, 100, -4.0, -7.0, 0.1), ""),
        ((-7.5, KIND, 100, -4.0, -7.0, 0.1), "worse than independent columns"),
        ((-7.1, KIND, 100, -6.9, -7.0, 0.1), ""),
        ((-6.5, KIND, 100, -4.0, -7.0, 0.1), "overfitted: fitted rows score -4"),
        ((-6.5, KIND, 100, -4.0, -7.0, 0.4), ""),
        ((-5.0, KIND, 100, -4.0, -7.0, 0.1, -4.7, 0.1), "overfitted: held-out rows score -5 nats, and -4.7"),
        ((-5.0, KIND, 100, -4.0, -7.0, 0.1, -4.7, 0.2), ""),
        ((-5.0, KIND, 100, -4.9, -7.0, 0.1, -4.99, 0.001), ""),
        ((-5.0, KIND, 100), ""),
    ],
)
def test_problems_of_held_out_rows(scores, problem):
    found = HeldOut(*scores).problem()
    assert problem in found
    assert bool(found) == bool(problem)


def test_scores_survive_a_file(tmp_path):
    machine = gb.BoltzmannMachine().fit(gb.datasets.load_house_votes())
    machine.save(tmp_path / "m.gibbs")
    assert gb.load(tmp_path / "m.gibbs").result_.held_out[:6] == machine.result_.held_out[:6]
    assert gb.load(tmp_path / "m.gibbs").result_.verdict == machine.result_.verdict
