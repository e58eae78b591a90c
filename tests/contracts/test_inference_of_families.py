"""Every exact engine and every posterior over the discrete families, whose rows are codes, against all rows."""

import numpy as np
import pytest

import gibbsian as gb
from family_cases import NAMES, case_of
from gibbsian.inference import ENGINES, exact, plan_exact
from gibbsian.inference.posterior import Listed, OneByOne, posterior
from gibbsian.models.family import DiscreteFamily

CASES = {name: case_of(name) for name in NAMES if isinstance(case_of(name).family, DiscreteFamily)}
SERVED = [
    (engine, name)
    for name, case in CASES.items()
    for engine in ENGINES
    if ENGINES.factory(engine).price(case.family) is not None
]


def law(case, theta):
    """The probabilities of all rows, and log Z."""
    logs = case.family.log_weights(theta, case.rows)
    log_partition = float(np.logaddexp.reduce(logs))
    return np.exp(logs - log_partition), log_partition


@pytest.fixture(params=SERVED, ids=lambda served: ", ".join(served))
def asked(request, rng):
    """A case, and an engine's answers at other parameters than it was planned at."""
    name, case = request.param[0], CASES[request.param[1]]
    theta = rng.normal(size=case.family.n_parameters)
    return case, theta, ENGINES.factory(name)(case.family).at(theta)


def test_every_discrete_family_has_an_engine():
    assert {name for _, name in SERVED} == set(CASES)


def test_log_partition_and_moments(asked):
    case, theta, answers = asked
    probabilities, log_partition = law(case, theta)
    assert answers.log_partition == pytest.approx(log_partition, abs=1e-11)
    np.testing.assert_allclose(answers.moments, probabilities @ case.family.statistics(case.rows), atol=1e-11)


def test_marginals_the_mode_and_draws(asked, rng):
    case, theta, answers = asked
    probabilities, _ = law(case, theta)
    sizes = case.family.variables.sizes
    table = np.zeros((sizes[2], sizes[0]))
    np.add.at(table, (case.rows[:, 2], case.rows[:, 0]), probabilities)
    np.testing.assert_allclose(answers.marginal([2, 0]), table, atol=1e-11)
    row, log_probability = answers.mode
    assert log_probability == pytest.approx(np.log(probabilities.max()), abs=1e-10)
    assert probabilities[(case.rows == row).all(axis=1)] == pytest.approx(probabilities.max(), rel=1e-9)
    drawn = answers.sample(50, rng)
    assert drawn.dtype == np.int8
    assert (case.family.log_weights(theta, drawn) > -np.inf).all()


def test_means_are_those_of_scores(asked):
    case, theta, answers = asked
    if case.family.variables.scores is None:
        with pytest.raises(gb.errors.ArgumentError, match="not numbers"):
            answers.means  # noqa: B018
        return
    probabilities, _ = law(case, theta)
    numbers = case.family.variables.numbers(case.rows)
    np.testing.assert_allclose(answers.means, probabilities @ numbers, atol=1e-11)
    np.testing.assert_allclose(answers.second_moments, (numbers.T * probabilities) @ numbers, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_a_model_is_asked_by_its_family(name):
    case = CASES[name]
    answers = exact(gb.Model(case.family, case.theta))
    assert type(answers.engine) is type(plan_exact(case.family))
    assert answers.log_partition == pytest.approx(law(case, case.theta)[1], abs=1e-11)


@pytest.mark.parametrize("kind", [posterior, Listed, OneByOne], ids=["chosen", "listed", "one-by-one"])
@pytest.mark.parametrize("name", CASES)
def test_what_rows_do_not_show_is_summed_out(name, kind, rng):
    case = CASES[name]
    family, theta = case.family, rng.normal(size=case.family.n_parameters)
    x = case.rows[rng.integers(0, len(case.rows), 15)]
    missing = rng.random(x.shape) < 0.4
    missing[~missing.any(axis=1), 1] = True
    weights, rows = np.exp(family.log_weights(theta, case.rows)), kind(family, x, missing)
    same = [((case.rows == row) | hidden).all(axis=1) for row, hidden in zip(x, missing, strict=True)]
    share = rng.random(len(x))
    evidence, statistics = rows.expect(theta, share)
    np.testing.assert_allclose(evidence, [np.log(weights[each].sum()) for each in same], atol=1e-10)
    np.testing.assert_allclose(rows.log_evidence(theta), evidence, atol=1e-12)
    means = [family.mean_statistics(case.rows[each], weights[each]) for each in same]
    np.testing.assert_allclose(statistics, share @ means, atol=1e-10)
