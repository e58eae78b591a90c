"""All functions at once: the algorithm step by step, the estimator around it, and answers of such models."""

from __future__ import annotations

import os
import pickle
import signal
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import gibbsian as gb
from gibbsian.errors import ArgumentError, ConvergenceWarning, MissingValuesError, TooExpensiveError
from gibbsian.full_span import (
    Dense,
    FullSpanModel,
    Newton,
    SpanAnswers,
    SpanBasis,
    SpanProblem,
    bootstrap_average,
    counted,
    fit_dense,
    fit_full_span,
    predict_memory,
    run,
    train_span,
)
from gibbsian.storage import Checkpoint

STRENGTHS = {"l2": 0.003, "l2_growth": 3.0}


def noisy_parities(rng, n_rows=300, n_variables=6):
    rows = rng.integers(0, 2, (n_rows, n_variables))
    follows = rng.random(n_rows) < 0.8
    rows[follows, -1] = rows[follows, :3].sum(axis=1) % 2
    return rows


def with_holes(rows, rng, share=0.15):
    holes = rng.random(rows.shape) < share
    holes[holes.all(axis=1), 0] = False
    return np.where(holes, np.nan, rows.astype(float))


def dense_model(rng, cardinalities=(2, 3, 4, 2)):
    basis = SpanBasis(cardinalities)
    used = np.arange(1, basis.size)
    return FullSpanModel(basis, used, rng.normal(size=used.size) * 0.5 ** basis.orders(used))


# -- steps ------------------------------------------------------------------------------------------------------------
def test_every_step_lowers_the_cost_by_its_gain_to_the_minimum(rng):
    rows = noisy_parities(rng)
    problem = SpanProblem.build(rows, np.ones(len(rows)), (2,) * 6, **STRENGTHS)
    costs = [Dense().init(problem).progress.cost]
    state, trace, converged = run(Dense(), Dense().init(problem))
    for step in trace.steps:
        assert step.kind == "refit"
        assert step.gain == pytest.approx(costs[-1] - step.cost)
        assert step.cost < costs[-1]
        costs.append(step.cost)
    assert converged
    assert len(trace) > 2
    best = fit_dense(problem)
    assert trace.steps[-1].cost == pytest.approx(best.cost, abs=1e-12)
    np.testing.assert_allclose(state.progress.theta, best.theta[1:], atol=1e-8)
    np.testing.assert_allclose(
        state.progress.dual, FullSpanModel(problem.basis, state.progress.indices, state.progress.theta).dual()
    )


def test_description_lengths_play_no_part(rng):
    rows = noisy_parities(rng)
    fits = [
        fit_full_span(rows, np.ones(len(rows)), (2,) * 6, algorithm="dense", mdl_scale=scale, **STRENGTHS)
        for scale in (0.0, 1.0)
    ]
    assert fits[0].cost == fits[1].cost
    assert fits[0].divergence == fits[1].divergence
    assert np.array_equal(fits[0].model.theta, fits[1].model.theta)


def test_fewer_steps_leave_the_model_so_far(rng):
    rows = noisy_parities(rng)
    part = fit_full_span(rows, np.ones(len(rows)), (2,) * 6, algorithm="dense", max_steps=2, **STRENGTHS)
    whole = fit_full_span(rows, np.ones(len(rows)), (2,) * 6, algorithm="dense", **STRENGTHS)
    assert not part.converged
    assert len(part.trace) == 2
    assert part.trace == type(part.trace)(whole.trace.steps[:2])
    assert part.cost > whole.cost


def test_a_second_road_that_is_cut_short_does_not_lose_the_first(rng):
    truth = dense_model(rng, (2,) * 6)
    rows = truth.basis.digits(rng.choice(64, 2000, p=truth.probabilities()))
    problem = SpanProblem.build(rows, np.ones(len(rows)), (2,) * 6)
    _, trace, _ = run(Newton(), Newton().init(problem))
    restart = [step.kind for step in trace.steps].index("restart")
    cut = fit_full_span(rows, np.ones(len(rows)), (2,) * 6, algorithm="newton", max_steps=restart + 2)
    assert cut.trace.steps[-1].cost > trace.steps[restart - 1].cost
    assert cut.cost == pytest.approx(trace.steps[restart - 1].cost, abs=1e-12)
    p = problem.cost(cut.model.indices, cut.model.theta, cut.model.log_partition)
    assert cut.cost == pytest.approx(p, abs=1e-12)
    again = train_span(Newton(), Newton().init(problem), max_iter=restart + 2).best()
    assert np.array_equal(again[1], cut.model.theta)
    assert again[2] == cut.cost


# -- memory -----------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_a_fit_takes_no_more_memory_than_was_predicted(missing, rng):
    rows = rng.integers(0, 2, (100, 18)).astype(float)
    if missing:
        rows[:40, 3] = np.nan
    machine = gb.FullSpan("dense", l2=1.0, l2_growth=5.0, max_iter=12)
    machine.fit(rows[:, :5])  # what is compiled and imported
    tracemalloc.start()
    machine.fit(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ("fill" in set(machine.trace_["kind"])) == missing
    assert peak <= predict_memory(SpanBasis((2,) * 18), algorithm="dense", missing=missing) + 2**20


def test_too_many_variables_are_refused_before_anything_is_allocated(monkeypatch, rng):
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1")
    rows = rng.integers(0, 2, (50, 24))
    monkeypatch.setattr("gibbsian.full_span.problem.aligned_zeros", None)
    with pytest.raises(
        TooExpensiveError, match=r"a dense full-span fit over 24 variables .* needs 1\.8 GiB .* algorithm='greedy'"
    ):
        gb.FullSpan("dense", l2=0.1).fit(rows)


# -- the estimator ----------------------------------------------------------------------------------------------------
def test_the_estimator_finds_the_same_minimum(rng):
    rows = noisy_parities(rng)
    machine = gb.FullSpan("dense", **STRENGTHS).fit(rows)
    fit = fit_dense(SpanProblem.build(rows, np.ones(len(rows)), (2,) * 6, **STRENGTHS))
    assert machine.result_.converged
    assert machine.cost_ == pytest.approx(fit.cost, abs=1e-12)
    assert machine.divergence_ == pytest.approx(fit.divergence, abs=1e-12)
    assert machine.result_.provenance["mdl_scale"] == 0.0
    np.testing.assert_allclose(machine._answers.probabilities(), fit.probabilities, atol=1e-9)
    table = machine.basis_
    assert len(table) == 63
    assert (table["penalty"] == 0).all()
    assert np.average(machine.score_samples(rows)) == pytest.approx(machine.score(rows))


def test_files_hold_the_same_model(tmp_path, rng):
    rows = noisy_parities(rng)
    machine = gb.FullSpan("dense", **STRENGTHS).fit(rows)
    machine.save(tmp_path / "m")
    again = gb.load(tmp_path / "m")
    assert again.algorithm == "dense"
    assert np.array_equal(again.score_samples(rows), machine.score_samples(rows))
    pd.testing.assert_frame_equal(again.basis_, machine.basis_)


def test_held_out_rows_prefer_it_where_much_is_weak():
    rng = np.random.default_rng(1)
    rows = SpanBasis((2,) * 7).digits(rng.choice(128, 600, p=dense_model(rng, (2,) * 7).probabilities()))
    scores = [
        gb.FullSpan(**settings, held_out=0.5, random_state=0).fit(rows).result_.held_out.score
        for settings in ({"algorithm": "dense", "l2": 0.01, "l2_growth": 2.0}, {"algorithm": "greedy"})
    ]
    assert scores[0] > scores[1]


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("n_steps", [2, 9])
def test_a_resumed_fit_ends_in_the_same_bits(missing, n_steps, tmp_path, rng):
    rows = with_holes(noisy_parities(rng), rng) if missing else noisy_parities(rng)
    settings = {"algorithm": "dense", "l2": 1e-4, "l2_growth": 2.0}
    plain = gb.FullSpan(**settings).fit(rows)
    n_steps = min(n_steps, plain.result_.n_steps - 1)
    path = tmp_path / "fit.checkpoint"

    def stop(number, step):
        if number == n_steps:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ steps, .*resume=True"):
        half = gb.FullSpan(**settings, checkpoint=path, callback=stop).fit(rows)
    assert np.isfinite(half.score(rows))
    whole = gb.FullSpan(**settings, checkpoint=Checkpoint(path, resume=True)).fit(rows)
    assert whole.result_.provenance["resumed_at_step"] == n_steps
    assert np.array_equal(whole.model_.theta, plain.model_.theta)
    assert whole.cost_ == plain.cost_
    columns = ["kind", "gain", "cost", "n_functions"]
    pd.testing.assert_frame_equal(whole.trace_[columns], plain.trace_[columns])


def test_ctrl_c_leaves_a_model_to_go_on_from(rng):
    rows = noisy_parities(rng)

    def press(number, step):
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.warns(ConvergenceWarning, match="interrupted after 2 steps"):
        half = gb.FullSpan("dense", **STRENGTHS, callback=press).fit(rows)
    plain = gb.FullSpan("dense", **STRENGTHS).fit(rows)
    whole = gb.FullSpan("dense", **STRENGTHS, start=half).fit(rows)
    assert half.cost_ > plain.cost_
    assert whole.result_.n_steps < plain.result_.n_steps
    assert whole.cost_ == pytest.approx(plain.cost_, abs=1e-10)


def test_a_sparse_model_is_a_start_and_a_dense_one_for_others(rng):
    rows = noisy_parities(rng)
    sparse = gb.FullSpan().fit(rows)
    dense = gb.FullSpan("dense", **STRENGTHS, start=sparse).fit(rows)
    assert dense.cost_ == pytest.approx(gb.FullSpan("dense", **STRENGTHS).fit(rows).cost_, abs=1e-10)
    assert gb.FullSpan(start=dense).fit(rows).result_.converged


@pytest.mark.parametrize("complete_rows", [True, False])
def test_missing_cells_are_summed_out(complete_rows, rng):
    """The end is a minimum of the cost on the observed cells: as good as what a general minimiser finds from there."""
    rows = with_holes(noisy_parities(rng, 200, 4), rng)
    if not complete_rows:
        rows[~np.isnan(rows).any(axis=1), 3] = np.nan
    machine = gb.FullSpan("dense", l2=0.01, l2_growth=2.0, epsilon=1e-8).fit(rows)
    fills = machine.trace_[machine.trace_["kind"] == "fill"]
    assert len(fills) > 2
    assert (np.diff(fills["cost"]) < 1e-12).all()
    data = gb.Dataset.read(rows)
    codes, missing, shares = data.domain.to_codes(data.states), data.missing, data.weights / data.weights.sum()
    basis = machine.model_.basis
    strengths = 0.01 * 2.0 ** (basis.orders(np.arange(1, 16)) - 1.0)

    def cost(theta):
        evidence = SpanAnswers(FullSpanModel(basis, np.arange(1, 16), theta)).log_evidence(codes, missing)
        return -shares @ evidence + 0.5 * strengths @ theta**2

    theta = np.zeros(15)
    theta[machine.model_.indices - 1] = machine.model_.theta
    assert minimize(cost, theta).fun == pytest.approx(cost(theta), abs=1e-6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "l2=0 must be above 0 with algorithm='dense', .* give l2"),
        ({"l2": 0.1, "l1": 0.1}, "l1=0.1 must be 0 with algorithm='dense'"),
        ({"l2": 0.1, "dtype": "float32"}, "dtype=float32 must be float64 with algorithm='dense'"),
        ({"l2": 0.1, "epsilon": 0.0}, "epsilon=0 is less than float64 tables resolve"),
    ],
)
def test_bad_settings_are_named(settings, message, rng):
    with pytest.raises(ArgumentError, match=message):
        gb.FullSpan("dense", **settings).fit(noisy_parities(rng))


# -- answers of models with many functions ----------------------------------------------------------------------------
def test_log_weights_from_a_table_are_those_of_the_functions(rng, monkeypatch):
    model = dense_model(rng)
    states = model.basis.digits(rng.integers(0, model.basis.size, 30))
    by_table = model.log_weights(states)
    monkeypatch.setattr(FullSpanModel, "table_pays", lambda self, n_rows: False)
    np.testing.assert_allclose(by_table, model.log_weights(states), atol=1e-12)


def test_answers_from_a_table_are_those_of_the_functions(rng, monkeypatch):
    model = dense_model(rng)
    codes = model.basis.digits(rng.integers(0, model.basis.size, 30))
    missing = rng.random(codes.shape) < 0.4
    questions = (
        lambda answers: answers.log_evidence(codes, missing),
        lambda answers: answers.cell_probabilities(codes, missing),
        lambda answers: answers.log_pseudolikelihood(codes),
    )
    by_table = [ask(SpanAnswers(model)) for ask in questions]
    monkeypatch.setattr(FullSpanModel, "table_pays", lambda self, n_rows: False)
    for ask, told in zip(questions, by_table, strict=True):
        np.testing.assert_allclose(told, ask(SpanAnswers(model)), atol=1e-12)


def test_many_functions_are_not_listed_for_every_row(rng, monkeypatch):
    model = dense_model(rng, (2,) * 12)
    codes = model.basis.digits(rng.integers(0, 4096, 3000))
    monkeypatch.setattr(SpanBasis, "values", None)
    answers = SpanAnswers(model)
    assert np.isfinite(answers.log_evidence(codes, rng.random(codes.shape) < 0.2)).all()
    assert np.isfinite(answers.cell_probabilities(codes, rng.random(codes.shape) < 0.2)).all()
    assert np.isfinite(answers.log_pseudolikelihood(codes)).all()


def test_few_rows_and_functions_and_little_memory_need_no_table(rng, monkeypatch):
    sparse = FullSpanModel.build((2,) * 12, [3, 5], [0.5, 0.1])
    assert not sparse.table_pays(100)
    assert sparse.table_pays(2048)
    monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "1e-5")
    assert not sparse.table_pays(2048)


def test_a_small_table_is_kept_and_not_pickled(rng, monkeypatch):
    model = dense_model(rng)
    assert model.log_weight_table() is model.log_weight_table()
    assert "_log_weight_table" not in vars(pickle.loads(pickle.dumps(model)))
    monkeypatch.setattr("gibbsian.models.full_span.MOST_KEPT_BYTES", 1)
    large = dense_model(rng)
    assert large.log_weight_table() is not large.log_weight_table()


# -- datasets ---------------------------------------------------------------------------------------------------------
def test_a_dataset_is_counted(rng):
    rows = noisy_parities(rng)
    data = gb.Dataset.read(rows)
    states, counts, cardinalities = counted(data)
    assert counts.sum() == 300
    assert cardinalities == (2,) * 6
    assert fit_full_span(*counted(data)).cost == pytest.approx(fit_full_span(rows, np.ones(300), (2,) * 6).cost)
    average = bootstrap_average(*counted(data), n_fits=2, random_state=0)
    assert np.isfinite(average.log_probabilities(states)).all()
    with pytest.raises(MissingValuesError, match="this fit needs complete rows"):
        counted(gb.Dataset.read(with_holes(rows, rng)))
