"""`MarkovRandomFieldMachine`: any potentials, tied or not, discrete or continuous, from Python and the command line."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from cli_runner import answer, printed, refused
from gibbsian.domain import Continuum
from gibbsian.errors import ArgumentError, CodingError, ConvergenceWarning, MaximumDoesNotExistError
from gibbsian.models import Potential, Quadrature, QuadratureFamily

TRUTH = np.array([0.3, -0.5, 0.8])
SETTINGS = {"potentials": "bias,square,product", "graph": "grid:2x2", "tied": True, "n_nodes": 12}


def continuous_rows(n_rows, rng, support=("interval", -1.0, 1.0)):
    variables = Quadrature.of(Continuum(*support, 20), 4)
    family = QuadratureFamily.build(["bias", "square", "product"], variables, gb.graphs.grid(2, 2))
    return gb.answers.answers_about(gb.Model(family, TRUTH)).sample(n_rows, rng)[0]


@pytest.mark.parametrize("learner", ["mle", "mple", "smci", gb.learning.SMCI(region="s2")], ids=str)
def test_continuous_parameters_are_recovered(rng, learner):
    n_rows = 6000 if learner in ("mle", "mple") else 1500
    rows = continuous_rows(n_rows, rng)
    machine = gb.MarkovRandomFieldMachine(**SETTINGS, support=(-1, 1), learner=learner).fit(rows)
    data = machine.read(rows)
    spread = (
        gb.uncertainty.standard_errors(machine, rows).theta_se
        if learner == "mle"
        else np.array([2.0, 4.5, 4.0]) / np.sqrt(n_rows)
    )
    assert machine.result_.converged
    assert (np.abs(machine.model_.theta - TRUTH) < 4.5 * spread).all()
    assert machine.coding_.domain == data.coding.domain


def test_a_gaussian_field_is_the_normal_distribution(rng):
    """Statistics x_i, x_i^2 and x_i x_j on the whole line: the maximum of the likelihood is the sample covariance."""
    covariance = np.array([[1.0, 0.5], [0.5, 0.8]])
    rows = rng.multivariate_normal([0.3, -0.2], covariance, 500)
    machine = gb.MarkovRandomFieldMachine(
        "bias,square,product", support="gaussian:0:1", n_nodes=60, learner="mle", tol=1e-9
    ).fit(rows)
    sample = np.cov(rows.T, bias=True)
    precision = np.linalg.inv(sample)
    theta = machine.parameters_
    assert theta["product(x0,x1)"] == pytest.approx(-precision[0, 1], abs=1e-4)
    assert 1.0 - 2 * theta["square(x0)"] == pytest.approx(precision[0, 0], abs=1e-4)
    expected = -np.log(2 * np.pi) - np.log(np.linalg.det(sample)) / 2 - 1.0
    assert machine.score(rows) == pytest.approx(expected, abs=1e-6)


def test_missing_cells_of_continuous_columns_are_integrated_out(rng):
    rows = continuous_rows(120, rng)
    holed = rows.copy()
    holed[:20, 0] = np.nan
    machine = gb.MarkovRandomFieldMachine(**SETTINGS, support=(-1, 1), learner="mle").fit(holed)
    points, weights = np.polynomial.legendre.leggauss(40)
    filled = np.repeat(holed[:1], 40, axis=0)
    filled[:, 0] = points
    expected = np.log(weights @ np.exp(machine.score_samples(filled)))
    assert machine.score_samples(holed[:1])[0] == pytest.approx(expected, abs=1e-9)
    by_chains = gb.MarkovRandomFieldMachine(**SETTINGS, support=(-1, 1), learner="pcd", max_iter=12, random_state=0)
    with pytest.warns(ConvergenceWarning):
        by_chains.fit(holed)
    theta = machine.model_.theta
    assert np.linalg.norm(by_chains.model_.theta - theta) < 0.9 * np.linalg.norm(theta)


def test_files_keep_names_functions_and_supports(rng, tmp_path):
    rows = np.where(rng.random((200, 4)) < 0.5, 0, 2)
    rows[:, 1] = np.where(rng.random(200) < 0.6, rows[:, 0], 1)
    own = Potential("near", lambda x, y: (np.abs(x - y) < 2, x > y), tied=True)
    machines = [
        gb.MarkovRandomFieldMachine(["bias", "equal", own], graph="chain", coding="values", l2=0.01).fit(rows),
        gb.MarkovRandomFieldMachine("table", graph="chain", l2=0.01).fit(rows),
        gb.MarkovRandomFieldMachine(**SETTINGS, support=(-1, 1)).fit(continuous_rows(50, rng)),
    ]
    for machine, table in zip(machines, [rows, rows, continuous_rows(20, rng)], strict=True):
        machine.save(tmp_path / "m.gibbs")
        loaded = gb.load(tmp_path / "m.gibbs")
        np.testing.assert_allclose(loaded.score_samples(table), machine.score_samples(table), atol=1e-12)
        assert loaded.parameters_.to_dict() == machine.parameters_.to_dict()
        np.testing.assert_array_equal(loaded.sample(5, random_state=1), machine.sample(5, random_state=1))


def test_functions_of_continuous_variables_are_not_written(rng, tmp_path):
    own = Potential("third", lambda x: x**3)
    machine = gb.MarkovRandomFieldMachine([own], support=(-1, 1), tied=True).fit(continuous_rows(50, rng))
    with pytest.raises(ArgumentError, match="'third' of continuous variables cannot be written"):
        machine.save(tmp_path / "m.gibbs")


def test_cliques_and_names(rng):
    import pandas

    frame = pandas.DataFrame(np.where(rng.random((300, 3)) < 0.5, -1, 1), columns=["a", "b", "c"])
    machine = gb.MarkovRandomFieldMachine("bias,product", cliques=[("a", "b"), ("a", "b", "c")]).fit(frame)
    assert list(machine.parameters_.index) == ["bias(a)", "bias(b)", "bias(c)", "product(a,b)", "product(a,b,c)"]
    same = gb.HigherOrderBoltzmannMachine(cliques=[("a", "b"), ("a", "b", "c")]).fit(frame)
    np.testing.assert_allclose(machine.model_.theta, same.model_.theta, atol=1e-5)


def test_intervals_cover_a_tied_coupling(rng):
    rows = np.where(rng.random((500, 5)) < 0.5, -1, 1)
    machine = gb.MarkovRandomFieldMachine("product", graph="chain", tied=True, learner="mle").fit(rows)
    errors = gb.uncertainty.standard_errors(machine, rows)
    assert errors.theta_se[0] == pytest.approx(1 / np.sqrt(500 * 4), rel=0.1)  # four independent products a row


def test_what_cannot_be_determined_is_refused():
    with pytest.raises(MaximumDoesNotExistError, match=r"equal\(x0,x1\) has its largest value in every row"):
        gb.MarkovRandomFieldMachine("equal", tied=True, l2=0.0).fit([[0, 0], [1, 1], [0, 0]])
    with pytest.raises(CodingError, match="the support is from 0 to 1"):
        gb.MarkovRandomFieldMachine("bias", support=(0, 1)).fit([[0.5], [1.5]])
    for support in ("line", (1, 2, 3), 5):
        with pytest.raises(ArgumentError, match="is no support"):
            gb.MarkovRandomFieldMachine("bias", support=support).fit([[0.5], [0.7]])
    with pytest.raises(ArgumentError, match="compares values"):
        gb.MarkovRandomFieldMachine("bias", support=(0, 1), learner="rm").fit([[0.5], [0.7]])


# -- command line -----------------------------------------------------------------------------------------------------
def test_a_lattice_from_the_command_line(rng, tmp_path):
    rows, path, model = rng.integers(0, 3, (150, 6)), tmp_path / "x.csv", tmp_path / "m.gibbs"
    np.savetxt(path, rows, fmt="%d", delimiter=",", header="a,b,c,d,e,f", comments="")
    flags = ["--model", "mrf", "--graph", "grid:2x3", "--potentials", "bias,equal", "--tied"]
    found = answer("fit", path, *flags, "--out", model)
    assert found["size"]["parameters"] == 3
    assert "equal" in printed("show", model)
    machine = gb.load(model)
    equal = np.mean([(rows[:, i] == rows[:, j]).sum() for i, j in machine.model_.family.graph.edges]) / 150
    assert machine.expect().value[2] / 7 == pytest.approx(equal, abs=1e-5)
    assert answer("score", model, path)["rows"] == 150


def test_a_density_from_the_command_line(rng, tmp_path):
    path, model = tmp_path / "x.csv", tmp_path / "m.gibbs"
    np.savetxt(path, continuous_rows(200, rng), delimiter=",", header="a,b,c,d", comments="")
    flags = ["--model", "mrf", "--potentials", "bias,product", "--tied", "--graph", "grid:2x2"]
    answer("fit", path, *flags, "--support=-1,1", "--learner", "mple", "--out", model)
    answer("score", model, path)
    assert len(printed("sample", model, "-n", 3, "--seed", 0).splitlines()) >= 3
    assert "is no support" in refused("fit", path, *flags, "--support", "square", "--out", model)


# -- what is asked of densities ---------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def leaning():
    rng = np.random.default_rng(3)
    rows = rng.uniform(-1, 1, (400, 3))
    rows[:, 1] = np.clip(0.7 * rows[:, 0] + 0.5 * rng.normal(size=400), -1, 1)
    return gb.MarkovRandomFieldMachine("bias,square,product", support=(-1, 1)).fit(rows)


def test_missing_numbers_are_filled_by_their_conditional_means(leaning):
    filled = leaning.impute([[0.3, np.nan, -0.5]])[0]
    points = np.linspace(-1, 1, 4001)
    rows = np.column_stack([np.full_like(points, 0.3), points, np.full_like(points, -0.5)])
    density = np.exp(leaning.model_.log_weights(rows))
    assert filled[[0, 2]].tolist() == [0.3, -0.5]
    assert filled[1] == pytest.approx(np.trapezoid(points * density, points) / np.trapezoid(density, points), abs=1e-6)


@pytest.mark.parametrize("theta", [[0.3, -2.0, 1.5], [1.0, -0.2, -1.0]], ids=["inside", "at the border"])
def test_the_largest_density_is_climbed_to(theta):
    box = Quadrature.of(Continuum("interval", -1.0, 1.0), 2)
    field = gb.Model(QuadratureFamily.build(["bias", "square", "product"], box, gb.graphs.complete(2)), theta)
    points = np.linspace(-1, 1, 401)
    every = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    machine = gb.MarkovRandomFieldMachine("bias,square,product", support=(-1, 1), tied=True)
    machine.fit(np.random.default_rng(0).uniform(-1, 1, (50, 2)))
    machine.model_ = field
    found = machine.most_probable()
    assert found.log_weights[0] >= field.log_weights(every).max() - 1e-9
    given = machine.most_probable(evidence={"x0": 0.5})
    assert given.rows[0, 0] == 0.5
    line = np.column_stack([np.full_like(points, 0.5), points])
    assert given.log_weights[0] == pytest.approx(field.log_weights(line).max(), abs=1e-4)


def test_tables_of_densities_are_refused_in_words(leaning):
    for ask in (lambda: leaning.query("P(x0)"), lambda: leaning.marginal("x0"), lambda: leaning.entropy("x0")):
        with pytest.raises(ArgumentError, match="densities"):
            ask()
    with pytest.raises(ArgumentError, match="impute"):
        leaning.predict([[0.1, 0.2, 0.3]], columns="x0")
