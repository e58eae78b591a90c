"""Every exact engine and every posterior over the discrete families against all rows: of codes, or of nodes."""

import numpy as np
import pytest

import gibbsian as gb
from family_cases import NAMES, case_of
from gibbsian.inference import ENGINES, cut_sets, exact, plan_exact
from gibbsian.inference import posterior as module
from gibbsian.inference.posterior import EnumeratedRows, InParts, OneByOne, posterior
from gibbsian.inference.span_posterior import SpanRows
from gibbsian.models.base import DiscreteFamily

CASES = {name: case_of(name) for name in NAMES if isinstance(case_of(name).family, DiscreteFamily)}
SERVED = [
    (engine, name)
    for name, case in CASES.items()
    for engine in ENGINES
    if ENGINES.factory(engine).price(case.family) is not None
]


def law(case, theta):
    """The probabilities of all rows, and log Z; of real variables those of nodes, and an integral."""
    logs = case.family.log_weights(theta, case.rows) + case.family.variables.log_widths(case.codes)
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
    np.add.at(table, (case.codes[:, 2], case.codes[:, 0]), probabilities)
    np.testing.assert_allclose(answers.marginal([2, 0]), table, atol=1e-11)
    if case.family.variables.real:
        with pytest.raises(gb.errors.ArgumentError, match="none is a mode"):
            answers.mode  # noqa: B018
    else:
        row, log_probability = answers.mode
        assert log_probability == pytest.approx(np.log(probabilities.max()), abs=1e-10)
        assert probabilities[(case.rows == row).all(axis=1)] == pytest.approx(probabilities.max(), rel=1e-9)
    drawn = answers.sample(50, rng)
    assert drawn.dtype == (np.float64 if case.family.variables.real else np.int8)
    assert all((case.rows == row).all(axis=1).any() for row in drawn)
    assert (case.family.log_weights(theta, drawn) > -np.inf).all()


def test_means_are_those_of_scores(asked):
    case, theta, answers = asked
    if case.family.variables.scores is None:
        with pytest.raises(gb.errors.ArgumentError, match="not numbers"):
            answers.means  # noqa: B018
        return
    probabilities, _ = law(case, theta)
    numbers = case.family.variables.scores_of(case.codes)
    np.testing.assert_allclose(answers.means, probabilities @ numbers, atol=1e-11)
    np.testing.assert_allclose(answers.second_moments, (numbers.T * probabilities) @ numbers, atol=1e-11)


@pytest.mark.parametrize("name", CASES)
def test_a_model_is_asked_by_its_family(name):
    case = CASES[name]
    theta = case.theta * (0.2 if case.family.variables.real else 1.0)  # so wide that few nodes resolve it
    answers = exact(gb.Model(case.family, theta))
    assert type(answers.engine) is type(plan_exact(case.family))
    assert answers.log_partition == pytest.approx(law(case, theta)[1], abs=1e-11)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.family.variables.real])
def test_densities_that_few_nodes_do_not_resolve_are_refused(name):
    with pytest.raises(gb.errors.ArgumentError, match=r"too few for a density this narrow"):
        exact(gb.Model(CASES[name].family, 20.0 * CASES[name].theta))


@pytest.mark.parametrize("kind", [posterior, EnumeratedRows, OneByOne], ids=["chosen", "listed", "one-by-one"])
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if not case.family.variables.real])
def test_cells_have_their_probabilities(name, kind, rng, monkeypatch):
    """One column for each two-valued variable, its upper code; else one for each code: in rows summed in any way."""
    monkeypatch.setattr(module, "MAX_LISTED", 8)  # so that some rows are listed and others are not
    monkeypatch.setattr(cut_sets, "LARGEST_CUT", 0)
    case = CASES[name]
    family, theta, sizes = case.family, rng.normal(size=case.family.n_parameters), case.family.variables.sizes
    x = case.codes[rng.integers(0, len(case.codes), 15)]
    missing = rng.random(x.shape) < 0.4
    missing[~missing.any(axis=1), 1] = True
    missing[0] = True
    bound, weights = kind(family, x, missing), np.exp(family.log_weights(theta, case.codes))
    assert kind is not posterior or isinstance(bound, SpanRows if name.startswith("full-span") else InParts)
    columns = [case.codes == 1] if set(sizes) == {2} else [case.codes[:, [i]] == range(q) for i, q in enumerate(sizes)]
    for found, row, hidden in zip(bound.cell_probabilities(theta), x, missing, strict=True):
        shares = weights * ((case.codes == row) | hidden).all(axis=1)
        np.testing.assert_allclose(found, shares @ np.hstack(columns) / shares.sum(), atol=1e-10)


@pytest.mark.parametrize("kind", [posterior, EnumeratedRows, OneByOne], ids=["chosen", "listed", "one-by-one"])
@pytest.mark.parametrize("name", CASES)
def test_what_rows_do_not_show_is_summed_out(name, kind, rng):
    case = CASES[name]
    family, theta = case.family, rng.normal(size=case.family.n_parameters)
    picked = rng.integers(0, len(case.rows), 15)
    x = case.rows[picked]
    if family.variables.real:  # anywhere in the support: only what is summed out is at nodes
        x = 0.7 * x + 0.3 * case.rows[rng.integers(0, len(case.rows), 15)]
    missing = rng.random(x.shape) < 0.4
    missing[~missing.any(axis=1), 1] = True
    rows, filled = kind(family, x, missing), []
    for row, codes, hidden in zip(x, case.codes[picked], missing, strict=True):
        same = ((case.codes == codes) | hidden).all(axis=1)
        widths = family.variables.take(np.flatnonzero(hidden)).log_widths(case.codes[same][:, hidden])
        completions = np.where(hidden, case.rows[same], row)
        filled.append((completions, np.exp(family.log_weights(theta, completions) + widths)))
    share = rng.random(len(x))
    evidence, statistics = rows.expect(theta, share)
    np.testing.assert_allclose(evidence, [np.log(weights.sum()) for _, weights in filled], atol=1e-10)
    np.testing.assert_allclose(rows.log_evidence(theta), evidence, atol=1e-12)
    means = [family.mean_statistics(completions, weights) for completions, weights in filled]
    np.testing.assert_allclose(statistics, share @ means, atol=1e-10)
