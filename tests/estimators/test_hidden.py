"""Boltzmann machines with hidden units: every answer against enumeration, learning, starts, files, scikit-learn."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from gibbsian.data.hidden_columns import graph_with_hidden, hidden_names, with_hidden, without_hidden
from gibbsian.diagnostics.evidence import log_evidence_interval
from gibbsian.errors import (
    ArgumentError,
    ConstantColumnError,
    ConvergenceWarning,
    GraphError,
    MaximumDoesNotExistError,
    TooExpensiveError,
)
from gibbsian.expectations.mean_field import mean_field_evidence
from gibbsian.inference.posterior import log_evidence
from systems import BINARY, exact_law

XOR = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]] * 25)


@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@parametrize_with_checks(
    [
        gb.HiddenBoltzmannMachine(2, coding=gb.data.Threshold(0.0), l2=0.1, random_state=0),
        gb.HiddenBoltzmannMachine(1, "restricted", learner="em", coding=gb.data.Threshold(0.0), l2=0.1, max_iter=20),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- names and graphs -------------------------------------------------------------------------------------------------
class TestUnits:
    @pytest.mark.parametrize("n_hidden", [1, 2, 4])
    @pytest.mark.parametrize("n_visible", [1, 2, 5])
    def test_graphs_by_name_join_what_they_say(self, n_visible, n_hidden):
        names = [*(f"x{i}" for i in range(n_visible)), *(f"h{k}" for k in range(n_hidden))]
        pairs = set(itertools.combinations(range(len(names)), 2))
        across = {(i, j) for i, j in pairs if i < n_visible <= j}
        inside = {(i, j) for i, j in pairs if j < n_visible}
        for word, expected in (("complete", pairs), ("restricted", across), ("semi-restricted", across | inside)):
            assert set(map(tuple, graph_with_hidden(word, names, n_hidden).edges.tolist())) == expected

    def test_a_graph_written_in_names_numbers_or_nodes_is_one(self):
        names = ["a", "b", "h0", "h1"]
        by_name = graph_with_hidden([("h1", "a"), ("b", "h0"), ("h0", "h1")], names, 2)
        assert by_name == graph_with_hidden([(0, 3), (1, 2), (2, 3)], names, 2)
        assert by_name == graph_with_hidden(by_name, names, 2)

    def test_graphs_that_cannot_be(self):
        names = ["a", "b", "h0", "h1"]
        with pytest.raises(GraphError, match=r"3 nodes but the machine has 4 units, 2 columns and then 2 hidden"):
            graph_with_hidden(gb.graphs.complete(3), names, 2)
        with pytest.raises(GraphError, match="hidden unit 'h1' has no edge"):
            graph_with_hidden([("a", "h0")], names, 2)
        with pytest.raises(GraphError, match="also 'restricted' or 'semi-restricted'"):
            graph_with_hidden("bipartite", names, 2)
        with pytest.raises(GraphError, match="names node 'h7'"):
            graph_with_hidden([("a", "h7")], names, 2)

    def test_hidden_units_do_not_take_the_name_of_a_column(self):
        assert hidden_names(["h1", "h_0"], 2) == ("h__0", "h__1")
        assert hidden_names(["h2"], 2) == ("h0", "h1")

    def test_hidden_columns_come_and_go(self):
        data = gb.Dataset.read([[0, 1, None], [1, 1, 0], [0, 1, None]], sample_weight=[1, 2, 3])
        extended = with_hidden(data, 2)
        assert extended.missing[:, 3:].all()
        assert not (extended.missing[:, :3] ^ data.missing).any()
        again = without_hidden(extended, 2)
        np.testing.assert_array_equal(again.states, data.states)
        np.testing.assert_array_equal(again.weights, data.weights)
        assert again.names == data.names
        assert without_hidden(with_hidden(gb.Dataset.read([[0, 1], [1, 1]]), 1), 1).missing is None


# -- answers ----------------------------------------------------------------------------------------------------------
@pytest.fixture(params=["spin", "binary"])
def machine(request, rng):
    """A machine of three columns and two hidden units with strong random parameters, reported at T = 1.3."""
    rows = rng.integers(0, 2, (60, 3))
    rows = 2 * rows - 1 if request.param == "spin" else rows
    fitted = gb.HiddenBoltzmannMachine(2, l2=0.5, temperature=1.3, random_state=0).fit(rows)
    return moved(fitted, rng.normal(scale=1 / 1.3, size=fitted.model_.theta.size))


def moved(machine, theta):
    """The same machine with other parameters."""
    machine.model_ = machine.model_.replace(theta)
    return machine


def visible_law(machine):
    """The rows of the columns, as users write them, with their probabilities, and those of upper hidden units."""
    states, probabilities, _ = exact_law(machine.model_)
    n = len(machine.names_)
    columns, place = np.unique(states[:, :n], axis=0, return_inverse=True)
    law = np.bincount(place.ravel(), probabilities)
    upper = states[:, n:] == 1
    given = np.array([np.bincount(place.ravel(), probabilities * unit) for unit in upper.T]).T / law[:, None]
    return machine.coding_.decode(columns), law, given


class TestAnswers:
    def test_scores_sum_the_hidden_units_out(self, machine):
        columns, law, _ = visible_law(machine)
        np.testing.assert_allclose(machine.score_samples(columns), np.log(law), atol=1e-12)
        weights = np.arange(1.0, len(law) + 1)
        expected = np.average(np.log(law), weights=weights)
        assert machine.score(columns, sample_weight=weights) == pytest.approx(expected, abs=1e-12)

    def test_scores_sum_missing_cells_out_too(self, machine):
        columns, law, _ = visible_law(machine)
        row = columns[5].astype(float)
        row[1] = np.nan
        expected = law[(columns[:, [0, 2]] == row[[0, 2]]).all(axis=1)].sum()
        assert np.exp(machine.score_samples([row]))[0] == pytest.approx(expected, abs=1e-12)

    def test_transform_gives_the_hidden_units(self, machine):
        columns, _, given = visible_law(machine)
        np.testing.assert_allclose(machine.transform(columns), given, atol=1e-12)

    def test_missing_cells_are_filled_given_the_others(self, machine):
        columns, law, _ = visible_law(machine)
        row = columns[-1].astype(float)
        row[2] = np.nan
        alike = (columns[:, :2] == row[:2]).all(axis=1)
        upper = columns[:, 2] == 1
        filled = machine.predict_proba([row])
        assert filled.shape == (1, 3)
        assert filled[0, 2] == pytest.approx(law[alike & upper].sum() / law[alike].sum(), abs=1e-12)
        assert machine.impute([row]).shape == (1, 3)
        assert (machine.impute([row])[0, 2] == 1) == (filled[0, 2] > 0.5)

    def test_samples_follow_the_law_of_the_columns(self, machine):
        columns, law, given = visible_law(machine)
        drawn, hidden = machine.sample(20_000, random_state=3, return_hidden=True)
        assert machine.sample(5).shape == (5, 3)
        place = {tuple(state): k for k, state in enumerate(columns.tolist())}
        at = np.array([place[tuple(row)] for row in drawn.tolist()])
        counts = np.bincount(at, minlength=len(law))
        assert np.all(np.abs(counts / len(drawn) - law) < 5 * np.sqrt(law / len(drawn)))
        most = int(law.argmax())
        share = (hidden[at == most] == 1).mean(axis=0)
        assert np.all(np.abs(share - given[most]) < 5 * np.sqrt(0.25 / counts[most]))

    def test_free_energy_and_its_bound(self, machine):
        columns, law, _ = visible_law(machine)
        exact, bound = machine.free_energy(columns), machine.free_energy(columns, "mean-field")
        expected = -1.3 * (np.log(law) + machine.log_partition())
        np.testing.assert_allclose(exact, expected, atol=1e-11)
        assert np.all(bound >= exact - 1e-12)
        assert np.all(bound - exact < 1.0)
        assert (bound - exact).max() > 1e-6  # the hidden units are coupled, so the bound is not tight
        with pytest.raises(ArgumentError, match="use one of exact, mean-field"):
            machine.free_energy(columns, "magic")

    def test_mean_field_is_exact_without_edges_between_hidden_units(self, rng):
        rows = rng.integers(0, 2, (50, 3))
        restricted = gb.HiddenBoltzmannMachine(3, "restricted", l2=0.3, random_state=0).fit(rows)
        moved(restricted, rng.normal(size=restricted.model_.theta.size))
        np.testing.assert_allclose(restricted.free_energy(rows), restricted.free_energy(rows, "mean-field"), atol=1e-9)

    def test_pseudo_score_is_of_each_column_given_the_others(self, machine):
        columns, law, _ = visible_law(machine)
        place = {tuple(state): k for k, state in enumerate(columns.tolist())}
        (low, high), expected = machine.coding_.labels_of(0), 0.0
        for k, i in itertools.product(range(len(columns)), range(3)):
            other = columns[k].copy()
            other[i] = low + high - other[i]
            expected += np.log(law[k] / (law[k] + law[place[tuple(other.tolist())]]))
        assert machine.pseudo_score(columns) == pytest.approx(expected / len(columns), abs=1e-12)
        of_two = [
            law[(columns[:, [0, 2]] == pair).all(axis=1)].sum() for pair in itertools.product([high], [low, high])
        ]
        given_two = machine.pseudo_score([[1, np.nan, 1]])  # the sum over the present cells, x1 summed out
        first = law[(columns[:, [0, 2]] == [low, high]).all(axis=1)].sum()
        assert given_two == pytest.approx(2 * np.log(of_two[1]) - np.log(sum(of_two)) - np.log(of_two[1] + first))

    def test_intervals_hold_the_score(self, machine):
        columns, law, _ = visible_law(machine)
        found = machine.score_interval(columns, n_samples=200, betas=200)
        assert found.lower <= np.log(law).mean() <= found.upper
        assert found.upper - found.lower < 0.3

    def test_another_coding_is_the_same_distribution(self, machine):
        columns, law, _ = visible_law(machine)
        target = "binary" if machine.coding_.name == "spin" else "spin"
        other = machine.convert(target)
        written = other.coding_.decode(columns == 1)
        np.testing.assert_allclose(np.exp(other.score_samples(written)), law, atol=1e-12)
        assert other.hidden_names_ == machine.hidden_names_

    def test_tables_have_the_hidden_units(self, machine):
        assert list(machine.biases_.index) == ["x0", "x1", "x2", "h0", "h1"]
        assert machine.couplings_.loc["h1", "x0"] == machine.couplings_.loc["x0", "h1"] != 0
        assert set(machine.strongest_couplings()["second"]) >= {"h0", "h1"}
        assert machine.expect().value.size == machine.model_.theta.size


class TestOutOfReach:
    """Machines whose sums are too expensive answer between two sides."""

    @pytest.fixture
    def many(self, rng):
        machine = gb.HiddenBoltzmannMachine(60, l2=0.1, learner="pcd", max_iter=1, random_state=0)
        rows = rng.integers(0, 2, (20, 3))
        with pytest.warns(ConvergenceWarning):
            machine.fit(rows)
        return moved(machine, rng.normal(scale=0.05, size=machine.model_.theta.size)), rows[:2]

    @pytest.mark.long
    def test_scores_are_annealed_or_bracketed(self, many):
        machine, rows = many
        with pytest.warns(gb.errors.GibbsianWarning, match="score_interval has both sides"):
            assert machine.score(rows) < 0.0
        found = machine.score_interval(rows, n_samples=50, betas=100)
        assert found.lower < found.upper < 0.0
        assert machine.score_or_pseudo_score(rows[:1]).kind == "lower side of the log-likelihood"

    def test_hidden_units_are_sampled(self, many):
        machine, rows = many
        probabilities = machine.transform(rows)
        assert probabilities.shape == (2, 60)
        assert np.all((probabilities > 0) & (probabilities < 1))
        np.testing.assert_array_equal(machine.transform(rows), probabilities)
        np.testing.assert_array_equal(machine.transform(rows[1:]), probabilities[1:])

    def test_annealed_evidence_brackets_the_exact_one(self, rng):
        biases, couplings = rng.normal(size=18), rng.normal(scale=0.2, size=153)
        model = gb.PairwiseFamily.model(gb.graphs.complete(18), biases, couplings, BINARY)
        states = rng.integers(0, 2, (4, 3)).astype(object)
        data = gb.Dataset.read(np.hstack([states, np.full((4, 15), None)]), coding="binary")
        exact = log_evidence(model, data)
        found = log_evidence_interval(model, data, rng=0, max_seconds=1e-9)
        assert not found.is_exact
        assert np.all((found.lower < exact) & (exact < found.upper))
        assert np.all(found.upper - found.lower < 1.0)
        np.testing.assert_allclose(log_evidence_interval(model, data).lower, exact, atol=1e-10)
        assert np.all(mean_field_evidence(model, data, rng=0) <= exact)


# -- learning ---------------------------------------------------------------------------------------------------------
class TestLearning:
    def test_columns_alone_cannot_learn_the_exclusive_or(self):
        assert gb.BoltzmannMachine().fit(XOR).score(XOR) == pytest.approx(np.log(1 / 8), abs=1e-6)

    @pytest.mark.parametrize("coding", ["spin", "binary"])
    @pytest.mark.parametrize(
        ("n_hidden", "graph"),
        [(1, "complete"), (2, "semi-restricted"), (3, "restricted"), (1, [("x0", "x1"), ("x0", "h0"), ("x1", "h0"),
                                                                         ("x2", "h0"), ("x0", "x2"), ("x1", "x2")])],
        ids=["complete", "semi-restricted", "restricted", "pairs"],
    )  # fmt: skip
    def test_hidden_units_learn_the_exclusive_or(self, coding, n_hidden, graph):
        rows = 2 * XOR - 1 if coding == "spin" else XOR
        scores = []
        for l2 in (1e-3, 1e-4, 1e-5):  # the truth is at infinity, and the penalty says how far away
            machine = gb.HiddenBoltzmannMachine(n_hidden, graph, l2=l2, max_iter=2000, random_state=1).fit(rows)
            assert machine.result_.converged
            scores.append(machine.score(rows))
        assert scores == sorted(scores)
        assert scores[-1] == pytest.approx(np.log(1 / 4), abs=0.01)
        wrong = [[1, 1, 1], [-1, -1, 1]] if coding == "spin" else [[1, 1, 1], [0, 0, 1]]
        assert np.exp(machine.score_samples(wrong)).max() < 0.01

    @pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
    @pytest.mark.parametrize("learner", ["em", "pcd"])
    def test_other_learners_learn_it_too(self, learner):
        settings = {"l2": 1e-3, "max_iter": 1500, "tol": 1e-4, "random_state": 0}
        machine = gb.HiddenBoltzmannMachine(1, learner=learner, **settings).fit(2 * XOR - 1)
        assert machine.score(2 * XOR - 1) > np.log(1 / 4) - 0.1

    def test_the_moments_of_columns_are_matched(self, rng):
        rows = rng.integers(0, 2, (200, 4))
        machine = gb.HiddenBoltzmannMachine(1, random_state=0, tol=1e-5, max_iter=3000, l2=1e-6).fit(rows)
        report = machine.result_.training
        assert np.nanmax(np.abs(report.z_scores)) < 0.05
        assert np.isnan(report.z_scores).sum() == 1 + 4  # the bias and the couplings of the hidden unit

    @pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
    @pytest.mark.parametrize(
        ("clamped", "learner"),
        [
            ("auto", "mle"),
            ("exact", "mle"),
            ("pcd", "pcd"),
            ("smci-pcd", "pcd"),
            ("mean-field", "em"),
            ("exact", "pcd"),
            ("mean-field", "pcd"),
            ("exact", "em"),
            ("pcd", "em"),
            ("smci-pcd", "em"),
            ("pcd", "cd"),
            ("smci-pcd", "smci-pcd"),
        ],
        ids=lambda name: name,
    )
    @pytest.mark.parametrize("graph", ["complete", "semi-restricted"])
    def test_every_clamped_phase_learns_what_independent_columns_cannot(self, clamped, learner, graph):
        """Independent columns score -3 log 2, and no pairwise machine of the three columns does better."""
        clamp = {} if (clamped, learner) == ("exact", "mle") or clamped == "auto" else {"clamped": clamped}
        learner = gb.learning.as_learner(learner, **clamp, l2=1e-3)
        n_hidden = 1 if graph == "complete" else 2
        machine = gb.HiddenBoltzmannMachine(n_hidden, graph, learner=learner, max_iter=300, random_state=0).fit(XOR)
        assert machine.score(XOR) > -3 * np.log(2) + 0.3

    @pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
    def test_auto_is_exact_where_that_is_quick(self):
        machine = gb.HiddenBoltzmannMachine(1, l2=0.1, max_iter=3, random_state=0).fit(XOR)
        assert machine.result_.provenance["learner"] == "mle"
        wide = np.random.default_rng(0).integers(0, 2, (30, 40))
        machine = gb.HiddenBoltzmannMachine(1, l2=0.1, max_iter=2, random_state=0).fit(wide)
        assert machine.result_.provenance["learner"] == "pcd"

    def test_several_starts_keep_the_best(self):
        rows = np.array(list(itertools.product([-1, 1], repeat=4)))
        rows = np.repeat(rows[rows.prod(axis=1) > 0], 5, axis=0)
        settings = {"n_components": 2, "graph": "restricted", "l2": 1e-3, "max_iter": 300, "tol": 1e-4}

        def loss(machine):
            return machine.result_.trace.rows[-1][1]

        one = gb.HiddenBoltzmannMachine(**settings, random_state=5).fit(rows)
        best = gb.HiddenBoltzmannMachine(**settings, n_init=6, random_state=5).fit(rows)
        assert loss(best) <= loss(one)
        again = gb.HiddenBoltzmannMachine(**settings, n_init=6, random_state=5).fit(rows)
        np.testing.assert_array_equal(best.model_.theta, again.model_.theta)

    def test_missing_cells_are_hidden_units_of_their_row(self, rng):
        holed = XOR.astype(float)
        holed[np.arange(100), rng.integers(0, 3, 100)] = np.where(rng.random(100) < 0.4, np.nan, 1.0)
        holed = np.where(np.isnan(holed), np.nan, XOR)
        machine = gb.HiddenBoltzmannMachine(1, l2=1e-4, random_state=1).fit(holed)
        assert machine.result_.provenance["missing_cells"] == np.isnan(holed).sum()
        assert machine.score(XOR) > -1.6
        row = [[1, 0, np.nan]]
        assert machine.predict_proba(row)[0, 2] > 0.9
        assert machine.impute(row).tolist() == [[1, 0, 1]]

    def test_a_fit_goes_on_from_another_machine(self):
        first = gb.HiddenBoltzmannMachine(1, l2=1e-4, random_state=1).fit(XOR)
        again = gb.HiddenBoltzmannMachine(1, l2=1e-4, start=first, random_state=9).fit(XOR)
        assert again.result_.n_steps <= 2
        np.testing.assert_allclose(again.model_.theta, first.model_.theta, atol=1e-6)

    def test_held_out_rows_are_scored(self):
        held = gb.HiddenBoltzmannMachine(1, l2=1e-3, validation_fraction=0.2, random_state=0).fit(XOR).result_.held_out
        assert (held.kind, held.n_rows) == ("log-likelihood", 20)
        assert held.score > -1.6

    @pytest.mark.filterwarnings("ignore::gibbsian.errors.ConvergenceWarning")
    def test_persistent_chains_with_hidden_units_do_not_diverge(self, rng):
        factors = rng.integers(0, 2, (1000, 5)) - 0.5
        columns = factors @ rng.normal(scale=4.0, size=(5, 60))
        rows = (rng.random((1000, 60)) < 1 / (1 + np.exp(-columns))).astype(np.int8)
        independent = -60 * np.log(2)
        for max_iter, gain in ((30, 8.0), (100, 10.0)):
            machine = gb.HiddenBoltzmannMachine(
                10, "restricted", learner="pcd", l2=0.01, max_iter=max_iter, random_state=0
            )
            assert machine.fit(rows).score(rows) > independent + gain


class TestRefusals:
    def test_settings(self):
        for n_hidden, words in ((0, "at least 1"), (-1, "at least 1"), (1.5, "whole number")):
            with pytest.raises(ArgumentError, match=words):
                gb.HiddenBoltzmannMachine(n_hidden).fit(XOR)
        with pytest.raises(ArgumentError, match="n_init=0 must be at least 1"):
            gb.HiddenBoltzmannMachine(1, n_init=0).fit(XOR)
        with pytest.raises(ArgumentError, match="start='bethe' needs every unit to be visible"):
            gb.HiddenBoltzmannMachine(1, start="bethe").fit(XOR)

    def test_clamped_phases(self):
        with pytest.raises(ArgumentError, match=r"clamped='gibbs' is not known: use one of .*exact"):
            gb.HiddenBoltzmannMachine(1, learner=gb.learning.as_learner("em", clamped="gibbs")).fit(XOR)
        with pytest.raises(ArgumentError, match="clamped"):
            gb.learning.as_learner("mle", clamped="pcd")

    @pytest.mark.parametrize("learner", ["rm", "smci", "mean-field"])
    def test_learners_of_columns_alone(self, learner):
        with pytest.raises(
            ArgumentError,
            match=rf"learner='{learner}' does not learn a HiddenBoltzmannMachine: use one of auto, cd, em",
        ):
            gb.HiddenBoltzmannMachine(1, learner=learner, l2=0.1).fit(XOR)

    def test_data_that_determine_nothing(self):
        with pytest.raises(ConstantColumnError, match="'x1' has one value only"):
            gb.HiddenBoltzmannMachine(1, l2=0.0).fit([[0, 1], [1, 1], [0, 1]])
        with pytest.raises(MaximumDoesNotExistError, match="'x0'=1 never occurs together with 'x1'=1"):
            gb.HiddenBoltzmannMachine(1, l2=0.0).fit([[0, 0], [0, 1], [1, 0]])

    def test_other_columns(self):
        machine = gb.HiddenBoltzmannMachine(1, l2=0.1, random_state=0).fit(pd.DataFrame(XOR, columns=["a", "b", "c"]))
        with pytest.raises(ValueError, match="feature names"):
            machine.score(pd.DataFrame(XOR, columns=["a", "c", "b"]))

    def test_false_is_no_number_of_hidden_units(self, rng):
        with pytest.raises(ArgumentError, match="n_components=False must be a whole number"):
            gb.HiddenBoltzmannMachine(False).fit(rng.integers(0, 2, (8, 3)))

    def test_a_grid_of_another_size_is_told_of_columns_and_hidden_units(self, rng):
        with pytest.raises(GraphError, match="has 4 nodes but the machine has 6 units, 4 columns and then 2 hidden"):
            gb.HiddenBoltzmannMachine(2, "grid:2x2").fit(rng.integers(0, 2, (20, 4)))

    def test_too_many_hidden_units_are_refused_before_the_fit_is_planned(self, rng, monkeypatch):
        monkeypatch.setenv("GIBBSIAN_MEMORY_LIMIT", "0.05")
        machine = gb.HiddenBoltzmannMachine(500, l2=0.1)
        monkeypatch.setattr(type(machine), "_learner", lambda *_: pytest.fail("planned before memory was asked for"))
        with pytest.raises(TooExpensiveError, match=r"504 variables .*about \d+ variables"):
            machine.fit(rng.integers(0, 2, (60, 4)))


# -- neighbours -------------------------------------------------------------------------------------------------------
class TestFilesAndPipelines:
    def test_files(self, tmp_path):
        frame = pd.DataFrame(np.where(XOR, "yes", "no"), columns=["a", "b", "h0"])
        machine = gb.HiddenBoltzmannMachine(2, l2=1e-3, random_state=0).fit(frame)
        assert machine.hidden_names_ == ("h_0", "h_1")
        machine.save(tmp_path / "m.gibbs")
        again = gb.load(tmp_path / "m.gibbs")
        assert type(again) is gb.HiddenBoltzmannMachine
        assert (again.names_, again.hidden_names_, again.n_components) == (machine.names_, machine.hidden_names_, 2)
        np.testing.assert_array_equal(again.transform(frame), machine.transform(frame))
        assert again.score(frame) == machine.score(frame)

    def test_hidden_units_are_features(self, rng):
        labels = rng.integers(0, 2, 300)
        rows = labels[:, None] ^ (rng.random((300, 6)) < 0.15)  # two prototypes, seen with noise
        machine = gb.HiddenBoltzmannMachine(1, "restricted", l2=1e-3, random_state=0)
        pipeline = make_pipeline(machine, LogisticRegression())
        assert pipeline.fit(rows, labels).score(rows, labels) > 0.95
        assert pipeline[:-1].get_feature_names_out().tolist() == ["h0"]
        frame = machine.set_output(transform="pandas").fit_transform(rows)
        assert list(frame.columns) == ["h0"]

    def test_a_setting_changed_after_the_fit_does_not_change_the_fitted_units(self, rng, tmp_path):
        rows = rng.integers(0, 2, (80, 4))
        machine = gb.HiddenBoltzmannMachine(1, l2=0.1, random_state=0).fit(rows)
        before = machine.transform(rows)
        machine.set_params(n_components=3)
        converted = machine.convert("spin")
        assert (converted.names_, converted.hidden_names_) == (("x0", "x1", "x2", "x3"), ("h0",))
        np.testing.assert_allclose(converted.transform(2 * rows - 1), before, atol=1e-12)
        machine.save(tmp_path / "model.gibbs")
        np.testing.assert_allclose(gb.load(tmp_path / "model.gibbs").transform(rows), before, atol=1e-12)
