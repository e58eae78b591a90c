"""Answers of the full-span model against enumeration, and missing cells against the definition of their cost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from gibbsian.full_span import (
    FillAndFit,
    Greedy,
    IncompleteRows,
    Newton,
    SpanAnswers,
    SpanBasis,
    SpanProblem,
    TimedTrace,
    fit_full_span,
    run,
    train_span,
)
from gibbsian.full_span.information import divergence, log_table, log_table_of_probabilities
from gibbsian.full_span.missing import empty_problem
from scipy.special import logsumexp

from full_span_reference import all_functions
from gibbsian.errors import ArgumentError, DataError, TooExpensiveError
from gibbsian.models import FullSpanModel, span_completions

SYSTEMS = [(2,) * 5, (3, 2, 4), (2, 1, 3, 2)]


def random_span(cardinalities, rng, n_functions=8, scale=0.7):
    basis = SpanBasis(cardinalities)
    indices = rng.permutation(np.arange(1, basis.size))[:n_functions]
    return FullSpanModel(basis, indices, scale * rng.normal(size=indices.size))


def law(model):
    """Every state and its probability, from the definition."""
    states = np.array(list(itertools.product(*map(range, model.cardinalities))))
    logs = model.theta @ all_functions(model.cardinalities)[model.indices]
    return states, np.exp(logs - logsumexp(logs))


@pytest.fixture(params=SYSTEMS, ids=str)
def model(request, rng):
    return random_span(request.param, rng)


def random_holes(states, rng, share=0.4):
    return rng.random(states.shape) < share


def matching(states, row, hole):
    return (states[:, ~hole] == row[~hole]).all(axis=1)


class TestRows:
    @pytest.mark.parametrize("most_listed", [span_completions.MOST_LISTED, 1])
    def test_evidence_of_incomplete_rows(self, model, rng, monkeypatch, most_listed):
        monkeypatch.setattr(span_completions, "MOST_LISTED", most_listed)
        states, p = law(model)
        holes = random_holes(states, rng)
        holes[0], holes[1] = True, False
        expected = [p[matching(states, row, hole)].sum() for row, hole in zip(states, holes, strict=True)]
        found = SpanAnswers(model).log_evidence(states, holes)
        np.testing.assert_allclose(found, np.log(expected), rtol=0, atol=1e-12)

    def test_cells_given_the_present_ones(self, model, rng):
        states, p = law(model)
        holes = random_holes(states, rng)
        found = SpanAnswers(model).cell_probabilities(states, holes)
        for row, hole, cells in zip(states, holes, found, strict=True):
            match = matching(states, row, hole)
            for i, q in enumerate(model.cardinalities):
                expected = np.bincount(states[match, i], p[match], minlength=q) / p[match].sum()
                np.testing.assert_allclose(cells[i, :q], expected, rtol=0, atol=1e-12)
                assert not cells[i, q:].any()

    def test_pseudolikelihood(self, model):
        states, p = law(model)
        expected = np.zeros(len(states))
        for i in range(states.shape[1]):
            hole = np.arange(states.shape[1]) == i
            expected += [np.log(p[k] / p[matching(states, row, hole)].sum()) for k, row in enumerate(states)]
        np.testing.assert_allclose(SpanAnswers(model).log_pseudolikelihood(states), expected, rtol=0, atol=1e-12)

    def test_few_missing_cells_of_a_large_system_need_no_table(self, monkeypatch):
        monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.1")
        large = FullSpanModel.build((2,) * 40, [3, 1 << 39, 5 << 20], [0.5, -0.25, 1.0])
        row, hole = np.zeros((1, 40), np.int8), np.zeros((1, 40), bool)
        hole[0, [38, 39]] = True
        cells = SpanAnswers(large).cell_probabilities(row, hole)
        assert cells[0, 39, 0] == pytest.approx(0.5)
        hole[0, 38] = False
        assert SpanAnswers(large).cell_probabilities(row, hole)[0, 39, 0] == pytest.approx(1 / (1 + np.exp(-1)))
        with pytest.raises(TooExpensiveError, match="40 missing cells"):
            SpanAnswers(large).cell_probabilities(row, np.ones((1, 40), bool))

    def test_condition_is_the_conditional_distribution(self, model, rng):
        states, p = law(model)
        nodes = [model.n_variables - 1, 0]
        codes = [int(rng.integers(model.cardinalities[i])) for i in nodes]
        rest, constant = model.condition(nodes, codes)
        match = (states[:, nodes] == codes).all(axis=1)
        np.testing.assert_allclose(rest.probabilities(), p[match] / p[match].sum(), rtol=0, atol=1e-12)
        assert constant + rest.log_partition - model.log_partition == pytest.approx(np.log(p[match].sum()), abs=1e-12)


class TestDistribution:
    def test_marginals_in_any_order(self, model):
        _, p = law(model)
        joint = p.reshape(model.cardinalities)
        for nodes in ([0], [2], [2, 0], [1, 2], [0, 1, 2]):
            others = tuple(i for i in range(joint.ndim) if i not in nodes)
            expected = joint.sum(axis=others).transpose(np.argsort(np.argsort(nodes)))
            np.testing.assert_allclose(SpanAnswers(model).marginal(nodes), expected, rtol=0, atol=1e-13)
        with pytest.raises(ArgumentError, match="twice"):
            SpanAnswers(model).marginal([0, 0])

    def test_many_one_valued_variables_do_not_exceed_the_axes_of_an_array(self):
        wide = FullSpanModel.build((1,) * 70 + (2, 2), [3], [0.5])
        assert SpanAnswers(wide).marginal([3, 71]).shape == (1, 2)

    def test_entropy_and_mutual_information(self, model):
        _, p = law(model)
        answers, joint = SpanAnswers(model), p.reshape(model.cardinalities)
        assert answers.entropy() == pytest.approx(-(p * np.log(p)).sum(), abs=1e-12)
        pair = joint.sum(axis=(1, *range(3, joint.ndim)))
        product = np.outer(pair.sum(axis=1), pair.sum(axis=0))
        expected = (pair * np.log(pair / product)).sum()
        assert answers.mutual_information([0], [2]) == pytest.approx(expected, abs=1e-12)
        assert answers.mutual_information([2], [0]) == pytest.approx(expected, abs=1e-12)

    def test_most_probable_states_over_many_blocks(self, model, monkeypatch):
        states, p = law(model)
        monkeypatch.setattr("gibbsian.full_span.answers.STATES_AT_ONCE", 4)
        monkeypatch.setattr("gibbsian.blocks.LEAST_ROWS", 1)
        order = np.argsort(-p, kind="stable")[:5]
        codes, probabilities = SpanAnswers(model).most_probable(5)
        np.testing.assert_allclose(probabilities, p[order], rtol=0, atol=1e-13)
        assert np.array_equal(codes, states[order])
        assert len(SpanAnswers(model).most_probable(10**6)[0]) == len(p)

    def test_samples_follow_the_law(self, model, rng, monkeypatch):
        _, p = law(model)
        monkeypatch.setattr(
            "gibbsian.full_span.answers._blocks",
            lambda size: (slice(start, min(start + 5, size)) for start in range(0, size, 5)),
        )
        drawn = SpanAnswers(model).sample(20_000, rng)
        counts = np.bincount(model.basis.indices(drawn), minlength=len(p))
        often = 20_000 * p > 5
        chi_square = ((counts - 20_000 * p)[often] ** 2 / (20_000 * p[often])).sum()
        assert chi_square < often.sum() + 6 * np.sqrt(2 * often.sum())

    def test_divergence_of_tables(self, model, rng):
        _, p = law(model)
        q = rng.dirichlet(np.ones(len(p)))
        found = divergence(log_table(model), log_table_of_probabilities(model.basis, q.reshape(model.cardinalities)))
        assert found.forward == pytest.approx((p * np.log(p / q)).sum(), abs=1e-12)
        assert found.backward == pytest.approx((q * np.log(q / p)).sum(), abs=1e-12)
        q[0] = 0.0
        assert divergence(log_table(model), log_table_of_probabilities(model.basis, q / q.sum())).forward == np.inf

    def test_a_large_table_is_not_kept(self, model, monkeypatch):
        answers = SpanAnswers(model)
        assert answers.probabilities() is answers.probabilities()
        monkeypatch.setattr("gibbsian.full_span.answers.MOST_KEPT_BYTES", 1)
        answers = SpanAnswers(model)
        assert answers.probabilities() is not answers.probabilities()


# -- missing cells ----------------------------------------------------------------------------------------------------
def incomplete(rng, cardinalities=(2,) * 6, n_rows=400, share=0.25):
    true = random_span(cardinalities, rng, n_functions=10, scale=0.9)
    codes = SpanAnswers(true).sample(n_rows, rng)
    holes = rng.random(codes.shape) < share
    holes[holes.all(axis=1)] = False
    distinct, counts = np.unique(np.where(holes, -1, codes), axis=0, return_counts=True)
    return IncompleteRows(SpanBasis(cardinalities), np.maximum(distinct, 0), distinct < 0, counts.astype(float))


def observed_cost(rows, problem, indices, theta):
    """The cost on the observed cells from its definition: minus the mean log-probability, penalties."""
    states, p = law(FullSpanModel(rows.basis, indices, theta))
    shares = rows.counts / rows.counts.sum()
    seen = [p[matching(states, row, hole)].sum() for row, hole in zip(rows.codes, rows.missing, strict=True)]
    return float(-shares @ np.log(seen) + problem.penalties(indices).sum())


class TestMissing:
    @pytest.mark.parametrize("learner", [Greedy(), Newton()], ids=["greedy", "newton"])
    @pytest.mark.parametrize("cardinalities", [(2,) * 6, (3, 2, 4)], ids=str)
    def test_the_cost_on_observed_cells_never_rises(self, learner, cardinalities, rng):
        rows = incomplete(rng, cardinalities)
        fit = FillAndFit(learner, rows)
        state = fit.init(empty_problem(rows))
        after_fills, last, kind = [], np.inf, ""
        while kind != "stop":
            before = state.progress
            exact_before = observed_cost(rows, state.problem, before.indices, before.theta)
            state, step = fit.step(state)
            kind, progress = step.kind, state.progress
            exact = observed_cost(rows, state.problem, progress.indices, progress.theta)
            if progress.n_fills == 0:
                continue
            assert step.cost >= exact - 1e-10  # a bound
            assert step.cost <= last + 1e-10
            if kind == "fill":
                assert step.cost <= exact_before + 1e-10  # which a fill makes tight
                after_fills.append(exact)
            last = step.cost
        assert len(after_fills) > 1
        assert (np.diff(after_fills) <= 1e-10).all()
        assert exact == pytest.approx(last, abs=1e-5)

    def test_without_complete_rows_columns_are_filled_alone(self, rng):
        rows = incomplete(rng, share=0.4)
        rows = IncompleteRows(rows.basis, rows.codes, rows.missing, np.where(rows.missing.any(axis=1), rows.counts, 0))
        fit = FillAndFit(Greedy(), rows)
        state, trace, converged = run(fit, fit.init(empty_problem(rows)))
        assert converged
        assert state.progress.n_fills > 2
        costs = [step.cost for step in trace.steps]
        assert (np.diff(costs) <= 1e-10).all()

    def test_complete_rows_are_fitted_as_without_missing_cells(self, rng):
        rows = incomplete(rng, share=0.0)
        fit = FillAndFit(Greedy(), rows)
        state, _, converged = run(fit, fit.init(empty_problem(rows)))
        plain = fit_full_span(rows.codes, rows.counts, rows.basis.cardinalities)
        assert converged
        assert np.array_equal(np.sort(state.progress.indices), plain.model.indices)
        shares = rows.counts / rows.counts.sum()
        assert state.progress.cost == pytest.approx(plain.cost - shares @ np.log(shares), abs=1e-12)

    def test_missing_cells_cost_less_than_dropping_their_rows(self, rng):
        true = random_span((2,) * 5, np.random.default_rng(3), n_functions=6, scale=0.9)
        codes = SpanAnswers(true).sample(3000, rng)
        holes = rng.random(codes.shape) < 0.3
        rows = IncompleteRows(true.basis, codes, holes, np.ones(len(codes)))
        fit = FillAndFit(Greedy(), rows)
        state, _, _ = run(fit, fit.init(empty_problem(rows)))
        filled = FullSpanModel(true.basis, state.progress.indices, state.progress.theta)
        whole = ~holes.any(axis=1)
        dropped = fit_full_span(codes[whole], np.ones(whole.sum()), true.cardinalities).model
        assert (
            divergence(log_table(true), log_table(filled)).forward
            < divergence(log_table(true), log_table(dropped)).forward
        )

    def test_a_column_without_observed_cells_is_named(self):
        rows = IncompleteRows(SpanBasis((2, 2)), np.zeros((1, 2), int), np.array([[False, True]]), np.array([9.0]))
        with pytest.raises(DataError, match="column 1 has no observed cell"):
            FillAndFit(Greedy(), rows).init(empty_problem(rows))


# -- the loop ---------------------------------------------------------------------------------------------------------
class TestLoop:
    def problem(self, rng):
        true = random_span((2,) * 7, rng, n_functions=20, scale=0.5)
        codes = SpanAnswers(true).sample(500, rng)
        return SpanProblem.build(codes, np.ones(500), true.cardinalities)

    def test_an_interruption_inside_a_step_leaves_the_last_whole_step(self, rng):
        problem = self.problem(rng)

        class Interrupted(Greedy):
            def step(self, state):
                after = super().step(state)
                if state.progress.indices.size == 4:
                    raise KeyboardInterrupt
                return after

        ended = train_span(Interrupted(), Interrupted().init(problem))
        assert ended.interrupted
        assert not ended.between_steps
        four = train_span(Greedy(), Greedy().init(problem), max_iter=len(ended.trace))
        assert np.array_equal(ended.best()[1], four.best()[1])

    def test_a_fit_stopped_on_the_second_road_gives_the_better_end(self, rng):
        problem = self.problem(rng)
        whole = train_span(Newton(), Newton().init(problem))
        kinds = [step.kind for step in whole.trace.steps]
        soon = kinds.index("restart") + 2
        ended = train_span(Newton(), Newton().init(problem), max_iter=soon)
        indices, theta, cost = ended.best()
        model = FullSpanModel(problem.basis, indices, theta)
        best = min(step.cost for step in whole.trace.steps[:soon])
        assert cost == best
        assert problem.cost(indices, theta, model.log_partition) == pytest.approx(best, abs=1e-10)

    def test_times_are_kept(self, rng):
        problem = self.problem(rng)
        told = []
        ended = train_span(Greedy(), Greedy().init(problem), callback=lambda number, step: told.append((number, step)))
        assert [number for number, _ in told] == list(range(1, len(ended.trace) + 1))
        assert all(step.seconds > 0 for _, step in told)
        assert TimedTrace.from_array(ended.trace.to_array()) == ended.trace
        assert f"basis {told[-1][1].n_functions}" in told[-1][1].describe()
