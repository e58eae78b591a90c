"""CD and PCD against enumeration: one update (H06 section 5), whole sweeps, and where the fits end."""

import warnings

import numpy as np
import pytest
from scipy.optimize import root

import gibbsian as gb
from gibbsian.errors import ArgumentError, ConvergenceWarning
from gibbsian.expectations import PersistentChains, RestartedChains, Sampled
from gibbsian.expectations.sources import spread_over_starts
from gibbsian.learning import LEARNERS, MomentMatching, as_learner, run
from gibbsian.learning.callbacks import EachStep
from gibbsian.learning.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.learning.optimizers import LBFGS, Adam, Ascent, Decay
from gibbsian.rng import Key
from gibbsian.sampling import kernel_for
from systems import SPINS, all_states, dataset_of, exact_law, random_model, random_model_of, sampled_data, take

SCANS = ["gibbs", "random-scan", "chromatic"]


def update_kernel(model, k):
    """Transition matrix of one Gibbs update of variable k over all states."""
    states = all_states(model.variables)
    place = {state.tobytes(): index for index, state in enumerate(states)}
    flipped = states.copy()
    flipped[:, k] = 1 - states[:, k]
    partner = np.array([place[state.tobytes()] for state in flipped])
    stay = 1.0 / (1.0 + np.exp(model.log_weights(flipped) - model.log_weights(states)))
    kernel = np.diag(stay)
    kernel[np.arange(len(states)), partner] = 1.0 - stay
    return kernel


def sweep_kernel(model, scan):
    """Transition matrix of one sweep. On a complete graph every variable has a colour of its own, in order."""
    n = model.n_variables
    updates = [update_kernel(model, k) for k in range(n)]
    if scan == "random-scan":
        return np.linalg.matrix_power(sum(updates) / n, n)
    return np.linalg.multi_dot(updates)


def law_of(data):
    """Probability of every state under the data."""
    states = all_states(data.variables)
    index = {state.tobytes(): k for k, state in enumerate(states)}
    law = np.zeros(len(states))
    law[[index[state.tobytes()] for state in data.states]] = data.weights / data.total_weight
    return law


def expected_statistics(model, law):
    return model.family.mean_statistics(all_states(model.variables), law)


@pytest.fixture
def case(scores, rng):
    """A model and data that it does not fit."""
    model = random_model(gb.graphs.complete(4), rng, scores, scale=1.2)
    return model, sampled_data(random_model(model.family.graph, rng, scores), 60, rng)


# -- H06 section 5 ----------------------------------------------------------------------------------------------------
def test_expected_single_update_is_the_pseudolikelihood_step(case):
    """The expectation over the random variable k and its Gibbs draw, by enumeration (H06 eq. 24-27).

    With tied couplings the gradient of the pseudolikelihood holds both terms of a pair, and the step is 1/n of it
    throughout.
    """
    model, data = case
    n, law = model.n_variables, law_of(data)
    after = np.mean([law @ update_kernel(model, k) for k in range(n)], axis=0)
    step = expected_statistics(model, law) - expected_statistics(model, after)
    _, gradient = value_and_gradient(Pseudolikelihood(), model, data)
    np.testing.assert_allclose(step, -gradient / n, atol=1e-14)


def test_single_update_has_the_factors_of_the_paper(rng):
    """H06's direction for a pair is symmetrised with a half: 2/n of it for couplings, 1/n for biases."""
    model = random_model(gb.graphs.complete(4), rng)
    data = sampled_data(random_model(model.family.graph, rng), 60, rng)
    n, law, x = model.n_variables, law_of(data), model.variables.scores_of(all_states(model.variables))
    surprise = x - np.tanh(model.parts.biases + model.family.layout.coupling_fields(model.theta)(x))
    i, j = model.family.graph.edges.T
    biases = law @ surprise
    couplings = law @ (0.5 * surprise[:, i] * x[:, j] + 0.5 * x[:, i] * surprise[:, j])
    after = np.mean([law @ update_kernel(model, k) for k in range(n)], axis=0)
    step = expected_statistics(model, law) - expected_statistics(model, after)
    np.testing.assert_allclose(step, np.concatenate([biases / n, 2 * couplings / n]), atol=1e-14)


@pytest.mark.parametrize("scan", ["gibbs", "chromatic"])
def test_sampled_single_update_is_the_pseudolikelihood_step(case, scan, rng):
    """The same with the sampler: in each chain one random variable is free, so that a sweep is one update."""
    model, data = case
    n, n_chains = model.n_variables, 20_000
    starts = data.states[rng.choice(data.n_states, n_chains, p=data.weights / data.total_weight)]
    held = np.ones((n_chains, n), bool)
    held[np.arange(n_chains), rng.integers(0, n, n_chains)] = False
    kernel = kernel_for(model.family, scan, held)
    chains, _ = kernel.step(model.theta, kernel.init(n_chains, Key.of(rng), starts))
    changes = model.family.statistics(starts) - model.family.statistics(chains.states)
    # the starts are drawn, so the expectation is that of the data drawn
    drawn = dataset_of(starts, model.variables)
    _, gradient = value_and_gradient(Pseudolikelihood(), model, drawn)
    z = (changes.mean(axis=0) + gradient / n) / (changes.std(axis=0) / np.sqrt(n_chains))
    assert np.abs(z).max() < 4.5


# -- expectations -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scan", SCANS)
def test_restarted_chains_are_one_sweep_from_the_data(case, scan, rng):
    model, data = case
    law = law_of(data)
    estimate = take(Sampled(RestartedChains(sampler=scan, n_chains=20_000)), model, starts=data)
    after = law @ sweep_kernel(model, scan)
    z = (estimate.value - expected_statistics(model, after)) / estimate.stderr
    assert np.abs(z).max() < 4.5
    # one sweep from the data is neither the data nor the model
    for other in (law, exact_law(model)[1]):
        assert np.abs((estimate.value - expected_statistics(model, other)) / estimate.stderr).max() > 6


@pytest.mark.parametrize("scan", SCANS)
def test_many_sweeps_forget_the_data(case, scan, rng):
    model, data = case
    exact = take("exact", model)
    for source in (
        RestartedChains(n_steps=60, sampler=scan, n_chains=10_000),
        PersistentChains(n_steps=60, sampler=scan, n_chains=10_000),
    ):
        estimate = take(Sampled(source), model, starts=data)
        assert np.abs((estimate.value - exact.value) / estimate.stderr).max() < 4.5


@pytest.mark.parametrize(
    "source",
    [RestartedChains(n_chains=60), RestartedChains(n_steps=50, n_chains=60), PersistentChains(n_chains=60, n_steps=50)],
    ids=["cd-1", "cd-50", "pcd"],
)
@pytest.mark.parametrize("fits", [True, False], ids=["fitting", "misfit"])
def test_standard_error_is_the_scatter_of_repeated_calls(case, source, fits, rng):
    """Never smaller; at the end of a fit at most by the square root of two larger."""
    model, data = case
    if fits:
        states, probabilities, _ = exact_law(model)
        data = dataset_of(states, model.variables, probabilities)
    bound = Sampled(source).bind(model, None, data)
    _, state = bound(model.theta, bound.init(model.theta, Key.of(rng)))
    means, errors = [], []
    for _ in range(200):
        estimate, state = bound(model.theta, state)
        means.append(estimate.value)
        errors.append(estimate.stderr)
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(means, axis=0)
    assert ratio.min() > 0.8
    assert ratio.max() < 1.6 or not fits


def test_starts_have_the_statistics_of_weighted_data(case, rng):
    model, data = case
    weighted = dataset_of(data.states, model.variables, rng.random(data.n_states))
    np.testing.assert_allclose(
        model.family.mean_statistics(*spread_over_starts(weighted, 37)),
        model.family.mean_statistics(weighted.states, weighted.weights),
        atol=1e-14,
    )


def test_one_chain_per_row_and_none_for_weightless_rows(rng):
    data = gb.Dataset.read([[0, 0], [0, 1], [0, 1], [1, 1]], sample_weight=[1.0, 1.0, 1.0, 0.0])
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2), data.variables))
    assert spread_over_starts(data.take([0, 1, 2]), 3)[0].tolist() == [[0, 0], [0, 1], [0, 1]]
    assert not (spread_over_starts(data, 4)[0] == [1, 1]).all(axis=1).any()
    for source in (PersistentChains(), PersistentChains(copies=2)):
        bound = Sampled(source).bind(model, None, data)
        assert not (bound.samples(bound.init(model.theta, Key.of(0))).states == [1, 1]).all(axis=1).any()


# -- learners ---------------------------------------------------------------------------------------------------------
def misfit(rng, n=4, strength=1.2):
    """A law that no pairwise model fits, as weights of all states, and a model to learn it with."""
    start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(n)))
    states = all_states(start.variables)
    law = np.exp(strength * rng.normal(size=len(states)))
    law = 0.98 * law / law.sum() + 0.02 / len(law)  # no state so rare that parameters run away
    return start, dataset_of(states, start.variables, law)


def test_pcd_ends_at_the_maximum_of_the_likelihood_within_its_noise(case):
    model, data = case
    start = model.replace(np.zeros_like(model.theta))
    noises = []
    learner = as_learner("pcd", n_chains=1000, l2=0.01)
    result = run(
        learner,
        start,
        data,
        np.random.default_rng(5),
        max_iter=5000,
        callbacks=[EachStep(lambda _, info: noises.append(info.noise))],
    )
    assert result.converged
    assert "to within Monte Carlo noise" in result.reason
    # the exact gradient at the answer, in standard errors of the mean gradient (the noise is half of one)
    exact = take("exact", result.model)
    statistics = model.family.mean_statistics(data.states, data.weights)
    gradient = exact.value - statistics + 0.01 * result.model.theta
    assert np.abs(gradient).max() < 5 * (2 * noises[-1])
    assert np.abs(gradient).max() < 0.02


def test_cd_and_pcd_come_to_rest_each_at_its_own_point():
    """Where the model does not fit, CD-1 rests at the root of its own expected step, PCD at the maximum likelihood."""
    rng = np.random.default_rng(2)
    start, data = misfit(rng, strength=4.0)
    law = law_of(data)
    statistics = expected_statistics(start, law)
    best = run(as_learner("mle"), start, data, rng, tol=1e-8).model.theta

    def expected_step(theta):
        return statistics - expected_statistics(start, law @ sweep_kernel(start.replace(theta), "gibbs"))

    rest = root(expected_step, best).x
    assert np.linalg.norm(rest - best) > 0.05
    for theta, source in (
        (rest, RestartedChains(n_chains=20_000)),
        (best, PersistentChains(n_chains=20_000, n_steps=60)),
    ):
        model = start.replace(theta)
        estimate = take(Sampled(source), model, starts=data)
        assert np.abs((estimate.value - statistics) / estimate.stderr).max() < 4.5


def test_more_chains_make_a_finer_answer(rng):
    start, data = misfit(rng)
    best = run(as_learner("mle"), start, data, rng, tol=1e-8).model.theta
    distances = []
    for n_chains in (10, 1000):
        learner = as_learner("pcd", n_chains=n_chains)
        answers = [
            run(learner, start, data, np.random.default_rng(seed), max_iter=200).model.theta for seed in range(3)
        ]
        distances.append(np.mean([np.linalg.norm(theta - best) for theta in answers]))
    assert distances[1] < 0.4 * distances[0]


def test_mean_of_the_iterates_is_nearer_than_the_last(rng):
    start, data = misfit(rng)
    best = run(as_learner("mle"), start, data, rng, tol=1e-8).model.theta
    errors = {}
    for average in (True, False):
        learner = as_learner("pcd", optimizer=Ascent(0.2), average=average, min_iter=2000)
        answers = [
            run(learner, start, data, np.random.default_rng(seed), max_iter=600).model.theta for seed in range(3)
        ]
        errors[average] = np.mean([np.linalg.norm(theta - best) for theta in answers])
    assert errors[True] < 0.5 * errors[False]


def test_falling_rate_settles_without_averaging(rng):
    start, data = misfit(rng)
    best = run(as_learner("mle"), start, data, rng, tol=1e-8).model.theta
    distances = []
    for decay in (None, Decay(power=0.9, delay=100)):
        learner = as_learner("pcd", optimizer=Ascent(0.3, decay), average=False)
        result = run(learner, start, data, np.random.default_rng(2), max_iter=1000)
        distances.append(np.linalg.norm(result.model.theta - best))
    assert distances[1] < 0.5 * distances[0]


@pytest.mark.parametrize("name", ["cd", "pcd"])
def test_lasso_sets_the_same_couplings_to_zero_as_the_likelihood(name):
    rng = np.random.default_rng(11)
    truth = gb.PairwiseFamily.model(gb.graphs.complete(4), np.full(4, 0.3), [0.8, 0, 0, 0, 0, -0.8])
    data = sampled_data(truth, 2000, rng)
    start = truth.replace(np.zeros_like(truth.theta))
    exact = run(as_learner("mle", l1=0.1), start, data, rng, tol=1e-8).model
    found = run(as_learner(name, l1=0.1), start, data, rng, max_iter=3000).model
    assert np.array_equal(found.parts.couplings == 0, exact.parts.couplings == 0)
    assert (exact.parts.couplings == 0).sum() == 4
    np.testing.assert_allclose(found.theta, exact.theta, atol=0.1)


@pytest.mark.parametrize("name", ["cd", "pcd"])
def test_weights_count_as_repetition(name, rng):
    rows = sampled_data(random_model(gb.graphs.complete(3), rng), 30, rng)
    x, counts = rows.states[rows.row_of], rng.integers(1, 4, size=30)
    weighted = dataset_of(x, rows.variables, counts)
    repeated = dataset_of(np.repeat(x, counts, axis=0), rows.variables)
    learner = as_learner(name, n_chains=200)
    start = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(3)))
    fits = [run(learner, start, data, np.random.default_rng(0), max_iter=30) for data in (weighted, repeated)]
    assert np.array_equal(fits[0].model.theta, fits[1].model.theta)


def test_fit_does_not_end_in_the_noise_before_its_time(case):
    model, data = case
    result = run(as_learner("cd", l2=0.01, min_iter=300), model, data, np.random.default_rng(0), max_iter=1000)
    assert len(result.trace) >= 300


def test_exact_moments_with_adam_end_at_the_maximum_of_the_likelihood(rng):
    start, data = misfit(rng)
    matched = run(MomentMatching("exact", optimizer="adam"), start, data, rng, tol=1e-6, max_iter=20_000)
    best = run(as_learner("mle"), start, data, rng, tol=1e-8)
    assert matched.converged
    np.testing.assert_allclose(matched.model.theta, best.model.theta, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: as_learner("cd", n_steps=0), "n_steps=0"),
        (lambda: as_learner("cd", n_chains=1), "n_chains=1"),
        (lambda: as_learner("pcd", n_chains=1), "n_chains=1"),
        (lambda: as_learner("pcd", n_steps=0), "n_steps=0"),
        (lambda: as_learner("pcd", min_iter=0), "min_iter=0"),
        (lambda: as_learner("pcd", optimizer="lbfgs"), "use 'ascent', 'adam' or 'anderson'"),
        (lambda: MomentMatching("exact", optimizer=LBFGS()), "LBFGS.memory=20. needs the value"),
    ],
)
def test_bad_settings_are_named(make, words):
    with pytest.raises(ArgumentError, match=words):
        make()


def test_optimisers_go_by_name():
    assert as_learner("pcd", optimizer="adam").optimizer == Adam()


def test_centred_steps_of_persistent_chains_come_near_the_likelihood_sooner():
    """In 0/1 coding every coupling drags two biases along; about the mean of the data it does not."""
    data = gb.datasets.load_house_votes().complete_rows()
    exact = gb.BoltzmannMachine(learner="mle", l2=0.003).fit(data).model_.theta
    errors = {}
    for centred in (True, False):
        learner = LEARNERS.create("pcd", l2=0.003, centred=centred)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine = gb.BoltzmannMachine(learner=learner, max_iter=600, random_state=0).fit(data)
        errors[centred] = np.abs(machine.model_.theta - exact).max()
    assert errors[True] < 0.2 < 1.5 < errors[False]


@pytest.mark.parametrize("name", ["pcd", "cd"])
def test_other_rows_leave_persistent_chains_where_they_stand(name):
    """A second chunk of rows: PCD's chains go on with their streams, CD's start at the new rows."""
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(4)))
    low, high = (gb.Dataset.read(np.full((8, 4), value), coding="spin") for value in (-1, 1))
    first, second = (as_learner(name, n_chains=8).bind(model, rows) for rows in (low, high))
    before, _ = first.step(first.init(Key.of(0))[0])
    after = second.carry(before)
    if name == "pcd":
        np.testing.assert_array_equal(after.samples.free.chains.states, before.samples.free.chains.states)
        np.testing.assert_array_equal(after.samples.free.chains.streams, before.samples.free.chains.streams)
    else:
        assert (second.gradient.free.source.starts.states == 1).all()


def test_persistent_chains_end_nearer_the_likelihood_than_cd_1_where_the_model_is_wrong():
    """Terms of three variables, learned by pairs: chains restarted at the data see too little of the model."""
    rng = np.random.default_rng(1)
    truth = random_model_of("products", gb.graphs.complete(5), rng, SPINS, scale=0.8)
    data = sampled_data(truth, 3000, rng)
    best = gb.BoltzmannMachine(learner="mle").fit(data).score(data)
    settings = {"n_chains": 2000, "min_iter": 300}
    for seed in range(2):
        lost = [
            best - gb.BoltzmannMachine(learner=learner(**settings), random_state=seed).fit(data).score(data)
            for learner in (gb.learning.CD, gb.learning.PCD)
        ]
        assert 0.0 <= lost[1] < 0.3 * lost[0]
