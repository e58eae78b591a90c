"""The machines beside the pairwise one: scikit-learn's checks, every answer against enumeration, tables and files."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import gibbsian as gb
from gibbsian.errors import (
    ArgumentError,
    CodingError,
    ConstantColumnError,
    DataError,
    DegenerateDataWarning,
    FileFormatError,
    GraphError,
    MaximumDoesNotExistError,
)
from gibbsian.models.families.tables import coupling_norms
from gibbsian.models.scopes import Scopes
from gibbsian.storage import Checkpoint, StoredModel, write_model
from systems import exact_law


# As for the pairwise machine: continuous numbers are cut, and a penalty keeps tiny tables finite.
@pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")
@parametrize_with_checks(
    [
        gb.HigherOrderBoltzmannMachine(coding=gb.data.Threshold(0.0), l2=0.1),
        gb.PottsMachine(coding=gb.data.Threshold(0.0), l2=0.1, learner="auto"),
        gb.PottsMachine("chain", coding=gb.data.Threshold(0.0), l2=0.1, learner="mple"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def law(machine):
    """Every state of a machine as it is written, its probability, and log Z."""
    states, probabilities, log_partition = exact_law(machine.model_)
    return machine.coding_.decode(states), probabilities, log_partition


def potts_rows(rng, n_rows=300):
    """Rows of three columns of two, three and four values, the last two of them related."""
    hair = rng.choice(["blond", "brown", "red"], n_rows)
    eyes = np.where(
        rng.random(n_rows) < 0.5, np.searchsorted(["blond", "brown", "red"], hair), rng.integers(0, 4, n_rows)
    )
    return pd.DataFrame({"tall": rng.random(n_rows) < 0.5, "hair": hair, "eyes": eyes})


@pytest.fixture(params=["potts", "order3", "values"])
def fitted(request, rng):
    if request.param == "potts":
        return gb.PottsMachine(learner="mle", l2=0.01, random_state=0).fit(potts_rows(rng))
    if request.param == "order3":
        rows = np.where(rng.random((300, 4)) < 0.6, 1, -1)
        rows[:, 3] = np.where(rng.random(300) < 0.8, rows[:, :3].prod(axis=1), rows[:, 3])
        return gb.HigherOrderBoltzmannMachine(order=3, learner="mle", random_state=0).fit(rows)
    rows = rng.integers(-1, 2, (300, 3))
    return gb.HigherOrderBoltzmannMachine(
        order=2, coding=gb.data.Values((-1, 0, 1)), learner="mle", random_state=0
    ).fit(rows)


# scikit-learn warns of rows without names
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
class TestAnswers:
    def test_scores_are_log_probabilities(self, fitted):
        rows, probabilities, log_partition = law(fitted)
        np.testing.assert_allclose(fitted.score_samples(rows), np.log(probabilities), atol=1e-10)
        assert fitted.log_partition() == pytest.approx(log_partition, abs=1e-10)
        weights = np.arange(1.0, len(rows) + 1)
        expected = np.average(np.log(probabilities), weights=weights)
        assert fitted.score(rows, sample_weight=weights) == pytest.approx(expected, abs=1e-10)

    def test_scores_sum_missing_cells_out(self, fitted):
        rows, probabilities, _ = law(fitted)
        row = np.array(rows[-1], dtype=object)
        row[1] = None
        match = np.array(
            [all(a == b for k, (a, b) in enumerate(zip(row, other, strict=True)) if k != 1) for other in rows]
        )
        assert np.exp(fitted.score_samples([list(row)]))[0] == pytest.approx(probabilities[match].sum(), abs=1e-10)

    def test_expectations(self, fitted):
        rows, probabilities, _ = law(fitted)
        states = gb.Dataset.read(rows, coding=fitted.coding_)
        expected = fitted.model_.family.mean_statistics(states.states[states.row_of], probabilities)
        np.testing.assert_allclose(fitted.expect().value, expected, atol=1e-10)

    def test_exact_samples_follow_the_law(self, fitted):
        rows, probabilities, _ = law(fitted)
        drawn = fitted.sample(20_000, method="exact")
        place = {tuple(row): k for k, row in enumerate(rows.tolist())}
        counts = np.bincount([place[tuple(row)] for row in np.asarray(drawn).tolist()], minlength=len(rows))
        expected = 20_000 * probabilities
        often = expected > 5
        chi_square = ((counts - expected)[often] ** 2 / expected[often]).sum()
        assert chi_square < often.sum() + 6 * np.sqrt(2 * often.sum())

    def test_missing_cells_are_predicted(self, fitted):
        rows, probabilities, _ = law(fitted)
        row = np.array(rows[0], dtype=object)
        row[1] = None
        match = [k for k, other in enumerate(rows) if other[0] == row[0] and (other[2:] == row[2:]).all()]
        posterior = probabilities[match] / probabilities[match].sum()
        got = fitted.predict_proba([list(row)])[0]
        if fitted.model_.variables.two_valued:
            assert got[1] == pytest.approx(posterior[1], abs=1e-10)
        else:
            np.testing.assert_allclose(got[1][: len(posterior)], posterior, atol=1e-10)
            np.testing.assert_allclose(got.sum(axis=1), 1.0)
        assert fitted.impute([list(row)])[0][1] == rows[match[int(posterior.argmax())]][1]

    def test_fit_matches_the_moments_of_the_data(self, fitted):
        data = gb.Dataset.read(fitted.sample(500, random_state=1), coding=fitted.coding_)
        again = type(fitted)(
            **{**fitted.get_params(), "l2": 1e-9, "tol": 1e-8, "coding": fitted.coding_, **_undeclared(fitted)}
        )
        again.fit(data)
        np.testing.assert_allclose(
            again.expect().value, again.model_.family.mean_statistics(data.states, data.weights), atol=1e-6
        )

    def test_files_give_the_same_machine(self, fitted, tmp_path):
        fitted.save(tmp_path / "m.gibbs")
        loaded = gb.load(tmp_path / "m.gibbs")
        assert type(loaded) is type(fitted)
        rows, _, _ = law(fitted)
        assert np.array_equal(loaded.score_samples(rows), fitted.score_samples(rows))
        assert (loaded.coding_, loaded.names_) == (fitted.coding_, fitted.names_)
        assert loaded.result_.reason == fitted.result_.reason
        loaded.fit(fitted.sample(300, random_state=0))  # a loaded machine can learn again
        assert loaded.model_.theta.size == fitted.model_.theta.size

    def test_weights_count_as_repeated_rows(self, fitted):
        rows = np.asarray(fitted.sample(60, random_state=3))
        times = np.tile([1, 2, 3], 20)
        settings = {**fitted.get_params(), "l2": 0.1, "coding": fitted.coding_, **_undeclared(fitted)}
        weighted = type(fitted)(**settings).fit(rows, sample_weight=times)
        repeated = type(fitted)(**settings).fit(np.repeat(rows, times, axis=0))
        np.testing.assert_allclose(weighted.model_.theta, repeated.model_.theta, atol=1e-7)

    def test_starting_at_the_end_ends_at_once(self, fitted):
        data = gb.Dataset.read(fitted.sample(300, random_state=2), coding=fitted.coding_)
        settings = {**fitted.get_params(), "l2": 0.1, "tol": 1e-8, "coding": fitted.coding_, **_undeclared(fitted)}
        first = type(fitted)(**settings).fit(data)
        again = type(fitted)(**{**settings, "start": first, "tol": 1e-6}).fit(data)
        assert again.result_.n_steps <= 2
        with pytest.raises(ArgumentError, match="start='bethe' is for a BoltzmannMachine"):
            type(fitted)(**{**settings, "start": "bethe"}).fit(data)

    def test_fits_are_resumed(self, fitted, tmp_path):
        data = gb.Dataset.read(fitted.sample(200, random_state=2), coding=fitted.coding_)
        settings = {**fitted.get_params(), "l2": 0.1, "coding": fitted.coding_, **_undeclared(fitted)}
        path = tmp_path / "c"
        whole = type(fitted)(**settings).set_params(callbacks=[Checkpoint(path, every=2)]).fit(data)
        resumed = type(fitted)(**settings).set_params(callbacks=[Checkpoint(path, resume=True)]).fit(data)
        np.testing.assert_array_equal(resumed.model_.theta, whole.model_.theta)
        with pytest.raises(FileFormatError, match="another fit"):
            type(fitted)(**settings).set_params(callbacks=[Checkpoint(path, resume=True)], temperature=2.0).fit(data)


def _undeclared(machine):
    """A declared coding holds the labels already."""
    return {name: None for name in ("values", "categories") if name in machine.get_params()}


class TestHigherOrder:
    rows = np.array(list(itertools.product([0, 1], repeat=3)) * 3 + [[1, 1, 1], [0, 0, 1]])

    def test_weights_by_name(self):
        machine = gb.HigherOrderBoltzmannMachine(order=3).fit(pd.DataFrame(self.rows, columns=["a", "b", "c"]))
        table = machine.weights_
        assert table["clique"].tolist()[-1] == ("a", "b", "c")
        assert table["order"].tolist() == [1, 1, 1, 2, 2, 2, 3]
        np.testing.assert_array_equal(table["weight"], machine.model_.theta)
        strongest = machine.strongest_weights(2, order=2)
        assert len(strongest) == 2
        assert abs(strongest["weight"][0]) >= abs(strongest["weight"][1])

    def test_all_orders_give_the_frequencies(self):
        machine = gb.HigherOrderBoltzmannMachine(order=3, learner="mle", l2=0, tol=1e-9).fit(self.rows)
        states, probabilities, _ = law(machine)
        frequencies = [(self.rows == state).all(axis=1).mean() for state in states]
        np.testing.assert_allclose(probabilities, frequencies, atol=1e-7)

    def test_cliques_by_name_or_number(self):
        frame = pd.DataFrame(self.rows, columns=["a", "b", "c"])
        machine = gb.HigherOrderBoltzmannMachine(cliques=[("c", "a"), (0, 1, 2)], bias=False).fit(frame)
        assert machine.model_.family.scopes == ((0, 2), (0, 1, 2))
        with_biases = gb.HigherOrderBoltzmannMachine(cliques=[("c", "a")]).fit(frame)
        assert with_biases.model_.family.scopes == ((0,), (1,), (2,), (0, 2))
        for cliques, words in (
            ([("a", "z")], "'z'"),
            ([(0, 5)], "5, which the data does not have"),
            ([("a", 0)], "names a column twice"),
            (["ab"], "write each clique as a tuple"),
        ):
            with pytest.raises(ArgumentError, match=words):
                gb.HigherOrderBoltzmannMachine(cliques=cliques).fit(frame)

    def test_order_two_is_the_pairwise_machine(self, rng):
        rows = np.where(rng.random((200, 4)) < 0.5, 1, -1)
        one = gb.HigherOrderBoltzmannMachine(order=2, learner="mple", tol=1e-9).fit(rows)
        two = gb.BoltzmannMachine(learner="mple", tol=1e-9).fit(rows)
        np.testing.assert_allclose(one.model_.theta, two.model_.theta, atol=1e-7)

    def test_conversion_keeps_every_probability(self):
        machine = gb.HigherOrderBoltzmannMachine(order=3).fit(self.rows)
        other = machine.convert("spin")
        np.testing.assert_allclose(other.score_samples(2 * self.rows - 1), machine.score_samples(self.rows), atol=1e-10)

    def test_orders_beyond_the_columns_and_bad_ones(self):
        assert gb.HigherOrderBoltzmannMachine(order=9).fit(self.rows).model_.family.scopes.sizes.max() == 3
        with pytest.raises(ArgumentError, match="order=0"):
            gb.HigherOrderBoltzmannMachine(order=0).fit(self.rows)
        with pytest.raises(ArgumentError, match="no cliques"):
            gb.HigherOrderBoltzmannMachine(order=1, bias=False).fit(self.rows)

    def test_empty_triples_are_named(self):
        rows = self.rows[self.rows.sum(axis=1) < 3]
        with pytest.raises(MaximumDoesNotExistError, match="'x0'=1, 'x1'=1, 'x2'=1 never occur together"):
            gb.HigherOrderBoltzmannMachine(order=3, l2=0.0).fit(rows)
        assert gb.HigherOrderBoltzmannMachine(order=3, l2=0.1).fit(rows).result_.converged

    def test_categories_have_no_products(self):
        with pytest.raises(CodingError, match="values"):
            gb.HigherOrderBoltzmannMachine(coding="categorical", l2=0.1).fit([["a", "b"], ["b", "c"], ["c", "a"]])

    def test_values_outside_are_named(self):
        machine = gb.HigherOrderBoltzmannMachine(order=2, coding=gb.data.Values((-1, 0, 1)), l2=0.1).fit(
            [[0, 1], [-1, 1], [1, -1]]
        )
        with pytest.raises(CodingError, match=r"'x1' holds 2, which the model has not seen \(it knows -1, 0, 1\)"):
            machine.score([[0, 2]])

    @pytest.mark.parametrize("clique", [(0.5, 1), np.int64(0), (None, 1), (True, 1), "ab"])
    def test_cliques_that_are_not_columns_are_refused(self, clique):
        rows = np.random.default_rng(0).integers(0, 2, (40, 3))
        with pytest.raises(ArgumentError, match="clique"):
            gb.HigherOrderBoltzmannMachine(cliques=[clique], l2=0.1).fit(rows)

    def test_three_values_point_to_the_machines_that_take_them(self):
        with pytest.raises(DataError, match="HigherOrderBoltzmannMachine with coding='values'"):
            gb.HigherOrderBoltzmannMachine().fit([[-1, 0], [1, 1], [0, -1]])


class TestPotts:
    def test_parameters_are_in_the_zero_sum_gauge(self, rng):
        machine = gb.PottsMachine(l2=0.01).fit(potts_rows(rng))
        assert machine.biases_.index.get_level_values("value").tolist()[:2] == ["False", "True"]
        np.testing.assert_allclose(machine.biases_.groupby(level="column").sum(), 0, atol=1e-12)
        table = machine.couplings_.loc["hair", "eyes"]
        assert table.shape == (3, 4)
        np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=1), 0, atol=1e-12)
        np.testing.assert_array_equal(machine.couplings_.loc["eyes", "hair"].to_numpy(), table.to_numpy().T)
        norm = machine.coupling_norms_.loc["hair", "eyes"]
        assert norm == pytest.approx(np.linalg.norm(table.to_numpy()))
        assert machine.strongest_couplings(1).values.tolist() == [["hair", "eyes", norm]]
        corrected = machine.strongest_couplings(apc=True)["norm"].to_numpy()
        norms = coupling_norms(machine.model_, apc=True)
        np.testing.assert_allclose(np.sort(corrected), np.sort(norms))

    def test_two_values_give_the_pairwise_machine(self, rng):
        rows = np.where(rng.random((400, 4)) < [0.4, 0.5, 0.6, 0.5], 1, -1)
        rows[:, 1] = np.where(rng.random(400) < 0.3, rows[:, 0], rows[:, 1])
        potts = gb.PottsMachine(learner="mple", tol=1e-9).fit(rows)
        pairs = gb.BoltzmannMachine(learner="mple", tol=1e-9).fit(rows)
        for i, j in itertools.combinations(range(4), 2):
            coupling = potts.couplings_.loc[(f"x{i}", 1), (f"x{j}", 1)]
            assert coupling == pytest.approx(pairs.couplings_.iloc[i, j], abs=1e-6)
        assert potts.score(rows) == pytest.approx(pairs.score(rows), abs=1e-7)

    @pytest.mark.filterwarnings("ignore:X does not have valid feature names")
    def test_every_form_of_the_data_is_the_same_data(self, rng):
        frame = potts_rows(rng)
        machine = gb.PottsMachine(l2=0.01).fit(frame)
        dummies = pd.get_dummies(frame.astype(str), prefix_sep="=")
        of_dummies = gb.PottsMachine(l2=0.01, coding=gb.data.OneHot("=")).fit(dummies)
        codes = np.column_stack([frame["tall"], pd.factorize(frame["hair"], sort=True)[0], frame["eyes"]]).astype(int)
        of_codes = gb.PottsMachine(l2=0.01).fit(codes.astype(np.uint8))
        for other in (of_dummies, of_codes):
            np.testing.assert_allclose(other.model_.theta, machine.model_.theta, atol=1e-12)
        cube = np.eye(4)[codes]
        of_cube = gb.PottsMachine(l2=0.01).fit(cube)
        assert of_cube.model_.variables.sizes == (4, 4, 4)
        assert of_cube.score(cube) == pytest.approx(of_codes.score(codes), abs=0.05)
        assert of_dummies.names_ == ("tall", "hair", "eyes")
        assert of_dummies.score(dummies) == pytest.approx(machine.score(frame), abs=1e-12)
        assert of_dummies.score(of_dummies.sample(5, random_state=0)) < 0

    def test_one_hot_machines_survive_a_file(self, rng, tmp_path):
        frame = potts_rows(rng)[["hair", "eyes"]].astype(str)
        dummies = pd.get_dummies(frame)
        groups = {name: [c for c in dummies.columns if c.startswith(name)] for name in frame.columns}
        machine = gb.PottsMachine(l2=0.01, coding=gb.data.OneHot(groups)).fit(dummies)
        machine.save(tmp_path / "m.gibbs")
        assert gb.load(tmp_path / "m.gibbs").score(dummies) == machine.score(dummies)

    def test_values_not_seen(self, rng):
        frame = potts_rows(rng)
        machine = gb.PottsMachine(l2=0.01).fit(frame)
        with pytest.raises(
            CodingError, match=r"column 'hair' holds 'green', which the model has not seen .*'blond', 'brown', 'red'"
        ):
            machine.score(frame.assign(hair="green"))
        declared = gb.PottsMachine(l2=0.01, coding={"hair": ["blond", "brown", "red", "green"]}).fit(frame)
        assert np.isfinite(declared.score(frame.assign(hair="green")))
        kind = pd.CategoricalDtype(["red", "green", "brown", "blond"])
        by_dtype = gb.PottsMachine(l2=0.01).fit(frame.assign(hair=frame["hair"].astype(kind)))
        assert by_dtype.score(frame.assign(hair="green")) == pytest.approx(declared.score(frame.assign(hair="green")))

    def test_missing_cells(self, rng):
        frame = potts_rows(rng, 400).astype(object)
        frame.iloc[::7, 1] = None
        machine = gb.PottsMachine(l2=0.01).fit(frame)
        assert machine.result_.provenance["learner"] == "mle"
        assert machine.result_.provenance["missing_cells"] == frame["hair"].isna().sum()
        filled = machine.impute(frame)
        assert not filled["hair"].isna().any()
        present = frame["hair"].notna()
        assert (filled["hair"][present] == frame["hair"][present]).all()

    def test_refusals(self, rng):
        frame = potts_rows(rng)
        with pytest.raises(GraphError, match="'z'"):
            gb.PottsMachine(graph=[("hair", "z")]).fit(frame)
        with pytest.raises(ArgumentError, match="PottsMachine learns categories"):
            gb.PottsMachine(coding="auto").fit([[0, 1], [1, 0]])
        with pytest.raises(ConstantColumnError, match="'hair'"):
            gb.PottsMachine(l2=0.0, coding={"hair": ["red", "blond"]}).fit(frame.assign(hair="red"))
        with pytest.raises(MaximumDoesNotExistError, match=r"never occurs together.*l2"):
            gb.PottsMachine(l2=0.0).fit([["a", 1], ["b", 2], ["c", 1]])
        with pytest.raises(DataError, match="different values"):
            gb.PottsMachine(l2=0.1).fit(rng.random((200, 2)))
        with pytest.raises(ValueError, match="feature names should match"):
            gb.PottsMachine(l2=0.1).fit(frame).score(frame[["hair", "eyes"]])

    def test_rows_on_disk_are_read_as_categories(self, rng, tmp_path):
        rows = (rng.random((20, 2)) < 0.5).astype(np.int8)
        np.save(tmp_path / "rows.npy", rows)
        machine = gb.PottsMachine(l2=0.1).fit(gb.data.DataStream.open(tmp_path / "rows.npy"))
        memory = gb.PottsMachine(l2=0.1).fit(rows)
        assert machine.coding_ == memory.coding_
        np.testing.assert_array_equal(machine.model_.theta, memory.model_.theta)

    def test_the_pairwise_machine_points_here(self):
        for settings in ({}, {"coding": "categorical"}):
            with pytest.raises(DataError, match="PottsMachine"):
                gb.BoltzmannMachine(**settings).fit([[0, 1], [1, 2], [2, 0]])

    def test_grid_search(self, rng):
        frame = potts_rows(rng, 120)
        search = GridSearchCV(gb.PottsMachine(), {"l2": [0.01, 100.0]}, cv=3).fit(frame)
        assert search.best_params_["l2"] == 0.01

    def test_truth_values_beside_numbers_keep_their_names_in_the_couplings(self):
        frame = pd.DataFrame({"n": [0, 1, 2] * 20, "k": [True, False] * 30})
        machine = gb.PottsMachine(l2=0.1).fit(frame)
        assert machine.couplings_.columns.tolist() == [("n", 0), ("n", 1), ("n", 2), ("k", "False"), ("k", "True")]

    def test_columns_of_names_or_measurements_are_no_categories(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame({"height": rng.normal(size=60), "shoe": rng.integers(0, 3, 60)})
        with pytest.warns(DegenerateDataWarning, match="column 'height' has a value of its own in most rows"):
            gb.PottsMachine(l2=0.01).fit(frame)


def test_a_model_without_a_machine_is_read_by_storage(tmp_path):
    model = gb.Model.zeros(gb.TablesFamily(Scopes([(0,), (1, 2)], 3)))
    write_model(tmp_path / "m.gibbs", StoredModel(model, gb.domain.as_coding("spin"), ("a", "b", "c")))
    with pytest.raises(FileFormatError, match="a TablesFamily, which no estimator learned"):
        gb.load(tmp_path / "m.gibbs")
    assert gb.storage.read_model(tmp_path / "m.gibbs").model.family.scopes == model.family.scopes


@pytest.mark.filterwarnings("ignore::gibbsian.errors.IdentifierWarning")
@pytest.mark.parametrize("kept", [["id", "a", "b"], ["a", "b"], ["id", "a", "b", "other"]])
def test_a_file_is_read_once_whether_or_not_columns_were_dropped(kept, tmp_path, monkeypatch, rng):
    from gibbsian.data import files

    frame = pd.DataFrame(rng.integers(0, 2, (40, 3)), columns=["a", "b", "other"])
    frame.insert(0, "id", [f"m{k}" for k in range(40)])
    machine = gb.BoltzmannMachine(l2=0.1).fit(frame[["id", "a", "b"]])
    path, opened, read = tmp_path / "t.csv", [], files.read_file
    frame[kept].to_csv(path, index=False)
    monkeypatch.setattr(files, "read_file", lambda *of: opened.append(of) or read(*of))
    if "other" in kept:
        with pytest.raises(gb.errors.DataError):
            machine.score_samples(path)
    else:
        np.testing.assert_allclose(machine.score_samples(path), machine.score_samples(frame[["a", "b"]]))
    assert len(opened) == 1
