"""Answers about full-span models against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from gibbsian.answers.modes import Search
from gibbsian.answers.span import SpanAnswers
from gibbsian.errors import TooExpensiveError
from gibbsian.inference import span_posterior
from gibbsian.models.families.span_basis import SpanBasis
from span_fits import counted, dense_model, law, random_span, span_model, table_of

SYSTEMS = [(2,) * 5, (3, 2, 4), (2, 1, 3, 2)]


@pytest.fixture(params=SYSTEMS, ids=str)
def model(request, rng):
    return random_span(request.param, rng)


def random_holes(states, rng, share=0.4):
    return rng.random(states.shape) < share


def matching(states, row, hole):
    return (states[:, ~hole] == row[~hole]).all(axis=1)


def rows_of(model, codes, missing=None, counts=None):
    codes = np.asarray(codes)
    shown = model.variables.sizes[: codes.shape[1]]
    return counted(codes, np.ones(len(codes)) if counts is None else counts, shown, missing)


class TestRows:
    @pytest.mark.parametrize("max_listed", [span_posterior.MAX_LISTED, 1])
    def test_evidence_of_incomplete_rows(self, model, rng, monkeypatch, max_listed):
        monkeypatch.setattr(span_posterior, "MAX_LISTED", max_listed)
        states, p = law(model)
        holes = random_holes(states, rng)
        holes[0], holes[1] = True, False
        expected = [p[matching(states, row, hole)].sum() for row, hole in zip(states, holes, strict=True)]
        data = rows_of(model, states, holes)
        found = SpanAnswers(model).log_evidence(data)[data.row_of] - table_of(model).log_partition
        np.testing.assert_allclose(found, np.log(expected), rtol=0, atol=1e-12)

    def test_cells_given_the_present_ones(self, model, rng):
        states, p = law(model)
        holes = random_holes(states, rng)
        data = rows_of(model, states, holes)
        found = SpanAnswers(model).cell_probabilities(data)[data.row_of]
        for row, hole, cells in zip(states, holes, found, strict=True):
            match = matching(states, row, hole)
            for i, q in enumerate(model.variables.sizes):
                expected = np.bincount(states[match, i], p[match], minlength=q) / p[match].sum()
                np.testing.assert_allclose(cells[i, :q], expected, rtol=0, atol=1e-12)
                assert not cells[i, q:].any()

    def test_pseudolikelihood(self, model):
        states, p = law(model)
        expected = np.zeros(len(states))
        for i in range(states.shape[1]):
            hole = np.arange(states.shape[1]) == i
            expected += [np.log(p[k] / p[matching(states, row, hole)].sum()) for k, row in enumerate(states)]
        for k, row in enumerate(states):
            found = SpanAnswers(model).log_pseudolikelihood(rows_of(model, row[None, :]))
            assert found == pytest.approx(expected[k], abs=1e-12)
        weights = np.arange(1.0, 1.0 + len(states))
        found = SpanAnswers(model).log_pseudolikelihood(rows_of(model, states, counts=weights))
        assert found == pytest.approx(np.average(expected, weights=weights), abs=1e-12)

    def test_few_missing_cells_of_a_large_system_need_no_table(self, monkeypatch):
        monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.1")
        large = span_model((2,) * 40, [3, 1 << 39, 5 << 20], [0.5, -0.25, 1.0])
        row, hole = np.zeros((1, 40), np.int8), np.zeros((1, 40), bool)
        hole[0, [38, 39]] = True
        cells = SpanAnswers(large).cell_probabilities(rows_of(large, row, hole))
        assert cells[0, 39, 0] == pytest.approx(0.5)
        hole[0, 38] = False
        assert SpanAnswers(large).cell_probabilities(rows_of(large, row, hole))[0, 39, 0] == pytest.approx(
            1 / (1 + np.exp(-1))
        )
        with pytest.raises(TooExpensiveError, match="40 missing cells"):
            SpanAnswers(large).cell_probabilities(rows_of(large, row, np.ones((1, 40), bool)))

    def test_condition_is_the_conditional_distribution(self, model, rng):
        states, p = law(model)
        nodes = [model.n_variables - 1, 0]
        codes = [int(rng.integers(model.variables.sizes[i])) for i in nodes]
        rest, constant = model.given(nodes, codes)
        match = (states[:, nodes] == codes).all(axis=1)
        np.testing.assert_allclose(table_of(rest).values, p[match] / p[match].sum(), rtol=0, atol=1e-12)
        assert constant + table_of(rest).log_partition - table_of(model).log_partition == pytest.approx(
            np.log(p[match].sum()), abs=1e-12
        )


class TestDistribution:
    def test_most_probable_states_over_many_blocks(self, model, rng, monkeypatch):
        states, p = law(model)
        monkeypatch.setattr("gibbsian.answers.modes.CELLS_AT_ONCE", 4)
        monkeypatch.setattr("gibbsian.resources.LEAST_ROWS", 1)
        order = np.argsort(-p, kind="stable")[:5]
        nothing = rows_of(model, states[:1], np.ones((1, states.shape[1]), bool))
        found = SpanAnswers(model).most_probable(nothing, Search(rng, n_states=5))
        np.testing.assert_allclose(
            found.log_weights, np.log(p[order]) + table_of(model).log_partition, rtol=0, atol=1e-12
        )
        np.testing.assert_allclose(found.log_weights, model.log_weights(found.rows), rtol=0, atol=1e-12)
        assert len(SpanAnswers(model).most_probable(nothing, Search(rng, n_states=10**6)).rows) == len(p)

    def test_samples_follow_the_law(self, model, rng, monkeypatch):
        _, p = law(model)
        monkeypatch.setattr(
            "gibbsian.answers.span._blocks",
            lambda size: (slice(start, min(start + 5, size)) for start in range(0, size, 5)),
        )
        drawn, hidden = SpanAnswers(model).sample(20_000, rng)
        assert hidden.shape == (20_000, 0)
        counts = np.bincount(model.family.basis.numbers(drawn), minlength=len(p))
        often = 20_000 * p > 5
        chi_square = ((counts - 20_000 * p)[often] ** 2 / (20_000 * p[often])).sum()
        assert chi_square < often.sum() + 6 * np.sqrt(2 * often.sum())

    def test_a_large_table_is_not_kept(self, model, rng, monkeypatch):
        made, fill = [], SpanBasis.fill
        monkeypatch.setattr(SpanBasis, "fill", lambda *parts: made.append(parts) or fill(*parts))
        for _ in range(2):
            SpanAnswers(model).sample(5, rng)
        assert np.isfinite(SpanAnswers(model).log_partition())
        assert len(made) == 1
        monkeypatch.setattr("gibbsian.answers.span.MAX_KEPT_BYTES", 1)
        other = model.replace(model.theta)
        for _ in range(2):
            SpanAnswers(other).sample(5, rng)
        assert np.isfinite(SpanAnswers(other).log_partition())  # a number, which is kept
        assert len(made) == 3

    def test_chains_come_near_the_means(self, rng):
        model = random_span((3, 2, 2), rng)
        exact = SpanAnswers(model).expect(rng)
        assert exact.is_exact
        sampled = SpanAnswers(model).expect(rng, "monte-carlo", n_samples=20_000)
        assert np.abs(sampled.value - exact.value).max() < 0.05


class TestHidden:
    """A model with a hidden variable answers as the joint distribution, summed over it."""

    @pytest.fixture
    def joint(self, rng):
        return random_span((2, 3, 2, 3), rng, n_functions=15, n_hidden=1)

    def test_rows(self, joint, rng):
        states, p = law(joint)
        visible = np.unique(states[:, :3], axis=0)
        shares = p.reshape(len(visible), 3)
        data = rows_of(joint, visible)
        answers = SpanAnswers(joint)
        found = answers.log_evidence(data) - answers.log_partition()
        np.testing.assert_allclose(np.exp(found), shares.sum(axis=1), atol=1e-12)
        expected = shares / shares.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(answers.hidden_probabilities(data), expected, atol=1e-12)
        drawn, hidden = answers.sample(50, rng)
        assert drawn.shape == (50, 3)
        assert hidden.shape == (50, 1)

    def test_pseudolikelihood(self, joint):
        states, p = law(joint)
        visible, shares = np.unique(states[:, :3], axis=0), p.reshape(-1, 3).sum(axis=1)
        expected = 0.0
        for i in range(3):
            hole = np.arange(3) == i
            expected += np.log(shares[4] / shares[matching(visible, visible[4], hole)].sum())
        found = SpanAnswers(joint).log_pseudolikelihood(rows_of(joint, visible[4:5]))
        assert found == pytest.approx(expected, abs=1e-12)

    def test_logarithms_do_not_saturate(self):
        joint = span_model((2, 2), [2], [1000.0], n_hidden=1)
        answers, data = SpanAnswers(joint), rows_of(joint, [[0], [1]])
        found = answers.log_evidence(data) - answers.log_partition()
        np.testing.assert_allclose(found, [0.0, -2000.0], atol=1e-12)
        np.testing.assert_allclose(answers.hidden_probabilities(data)[1], [0.5, 0.5])


def questions(codes, missing):
    return (
        lambda model: SpanAnswers(model).log_evidence(rows_of(model, codes, missing)),
        lambda model: SpanAnswers(model).cell_probabilities(rows_of(model, codes, missing)),
        lambda model: SpanAnswers(model).log_pseudolikelihood(rows_of(model, codes)),
    )


def test_answers_from_a_table_are_those_of_the_functions(rng, monkeypatch):
    model = dense_model(rng)
    codes = model.family.basis.digits(rng.integers(0, model.family.basis.size, 30))
    asked = questions(codes, rng.random(codes.shape) < 0.4)
    by_table = [ask(model) for ask in asked]
    monkeypatch.setattr(SpanBasis, "table_pays", lambda self, n_rows, n_functions: False)
    for ask, answer in zip(asked, by_table, strict=True):
        np.testing.assert_allclose(answer, ask(model), atol=1e-12)


def test_many_functions_are_not_listed_for_every_row(rng, monkeypatch):
    model = dense_model(rng, (2,) * 12)
    codes = model.family.basis.digits(rng.integers(0, 4096, 3000))
    monkeypatch.setattr(SpanBasis, "values", None)
    for ask in questions(codes, rng.random(codes.shape) < 0.2):
        assert np.isfinite(ask(model)).all()
