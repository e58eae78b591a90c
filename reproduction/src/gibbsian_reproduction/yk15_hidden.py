"""Yuille and Kersten 2015, "Boltzmann Machine: Learning": hidden units let a machine learn the exclusive or."""

from __future__ import annotations

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import graph_with_hidden, with_hidden
from gibbsian.graphs import complete
from gibbsian.learning import EM, LEARNERS, break_symmetry, run
from gibbsian.models import Model, PairwiseFamily, Variables
from gibbsian_reproduction.drawing import Axes, curve, label_axes, legend, panels
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Trial, Verdict, claim
from gibbsian_reproduction.systems import all_states, first_values, largest_rise
from gibbsian_reproduction.tables import Table, with_stderr
from gibbsian_reproduction.verdicts import at_most, mean_with_error, never_rises

N_VISIBLE, N_ROWS, NOISE = 3, 500, 0.1
N_HIDDEN = (0, 1, 2)
N_STARTS, N_RESTRICTED, N_STEPS = 4, 2, 40  # starts; hidden units and steps shown of EM
ACCURATE = 0.01  # nats; a machine whose KL divergence is below has learned the distribution
STEP = 1e-5  # of finite differences, and of the learning rule


@EXPERIMENTS.register("yk15-hidden")
def hidden_units() -> Experiment:
    """Return learning with hidden units on noisy exclusive-or data (YK15)."""
    rule = at_most("slope gap", 1e-7, "largest difference to finite differences")
    constant = at_most("constant gap", 1e-12, "KL + mean log P - sum R log R at most")
    falls = never_rises("EM rise", "minus log-likelihood")
    likelihood = "minimising KL is maximum likelihood: they differ by a constant"
    return Experiment(
        "YK15",
        "Hidden units",
        "a Boltzmann machine learns noisy exclusive-or data by hidden units",
        _trial,
        (_table_of_divergences,),
        panels(_divergences, _em_steps),
        (
            _matched,
            Claim("the slope of KL is <S_i S_j> free less clamped, over T", "eqs. 8, 17", rule, trials=1),
            _printed,
            _equal,
            Claim(likelihood, "eqs. 18-20", constant, trials=1),
            _bound,
            Claim("EM never raises KL", "BM and EM: part 2", falls, trials=1),
            _not_global,
        ),
        size=(8.0, 3.6),
        trials_of=lambda asked: max(asked // 4, 1),
        scale=f"{N_ROWS} rows of two bits and their exclusive or, {NOISE:.0%} of it wrong; one trial for every 4 asked",
    )


def _trial(rng: np.random.Generator) -> Trial:
    rows = rng.integers(2, size=(N_ROWS, 2))
    wrong = rng.random(N_ROWS) < NOISE
    data = Dataset.read(np.column_stack([rows, rows[:, 0] ^ rows[:, 1] ^ wrong]), coding="binary")
    shares = _shares_of(data)
    entropy = -(shares @ np.log(np.maximum(shares, 1e-300)))
    divergence, unequal = np.zeros((len(N_HIDDEN), N_STARTS)), np.zeros(len(N_HIDDEN))
    for place, n_hidden in enumerate(N_HIDDEN):
        clamped = with_hidden(data, n_hidden) if n_hidden else data
        fits = [run(LEARNERS.create("mle"), _start(n_hidden, rng), clamped, rng) for _ in range(N_STARTS)]
        divergence[place] = [_divergence(fit.model, shares) for fit in fits]
        best = fits[int(divergence[place].argmin())].model
        unequal[place] = np.abs(_slope(best, shares)).max()
    return {
        "KL": np.sort(divergence, axis=1),
        "unequal": unequal,
        **_em_curves(data, entropy, rng),
        **_identities(shares, entropy, rng),
    }


def _shares_of(data: Dataset) -> np.ndarray:
    """Return R(S_o), the shares of the visible states in the rows (eq. 9)."""
    shares = np.zeros(2**N_VISIBLE)
    np.add.at(shares, data.states @ 2 ** np.arange(N_VISIBLE), data.weights / data.total_weight)
    return shares


def _start(n_hidden: int, rng: np.random.Generator) -> Model[PairwiseFamily]:
    n = N_VISIBLE + n_hidden
    model, hidden = Model.zeros(PairwiseFamily(complete(n), Variables.binary(n))), np.arange(n) >= N_VISIBLE
    return break_symmetry(model, hidden, rng, scale=1.0) if n_hidden else model


def _em_curves(data: Dataset, entropy: float, rng: np.random.Generator) -> Trial:
    """Run EM in a restricted machine, whose likelihood has several maxima, to the end from several starts."""
    clamped, runs = with_hidden(data, N_RESTRICTED), []
    graph = graph_with_hidden("restricted", clamped.names, N_RESTRICTED)
    family = PairwiseFamily(graph, Variables.binary(graph.n_nodes))
    for _ in range(N_STARTS):
        start = Model(family, rng.normal(size=family.n_parameters))
        runs.append(run(EM(), start, clamped, rng, max_iter=300, tol=1e-5).trace.column("value"))
    ends = np.array([values[-1] for values in runs])
    return {
        "EM": first_values(runs[int(ends.argmin())], N_STEPS) - entropy,
        "EM ends": np.sort(ends) - entropy,
        "EM rise": max(largest_rise(values) for values in runs),
    }


# -- by enumeration ---------------------------------------------------------------------------------------------------
def _table(model: Model[PairwiseFamily]) -> tuple[np.ndarray, np.ndarray]:
    """Return all states of visible and hidden units, and their log-probabilities, a row for each visible state."""
    hidden = all_states(model.n_variables - N_VISIBLE)
    states = np.array([[np.r_[v, h] for h in hidden] for v in all_states(N_VISIBLE)])
    log_weights = model.log_weights(states.reshape(-1, model.n_variables)).reshape(states.shape[:2])
    return states, log_weights - np.logaddexp.reduce(log_weights, axis=None)


def _divergence(model: Model[PairwiseFamily], shares: np.ndarray) -> float:
    """Return KL(R || P) (eq. 5, with P(S_o) in the denominator)."""
    visible = np.logaddexp.reduce(_table(model)[1], axis=1)
    seen = shares > 0
    return float(shares[seen] @ (np.log(shares[seen]) - visible[seen]))


def _slope(model: Model[PairwiseFamily], shares: np.ndarray) -> np.ndarray:
    """Return (<S_i S_j> free - clamped) / T, clamped to R(S_o) P(S_h | S_o), biases first."""
    states, logs = _table(model)
    free = np.exp(logs)
    clamped = shares[:, None] * np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    flat, mean_statistics = states.reshape(-1, model.n_variables), model.family.mean_statistics
    return mean_statistics(flat, free.ravel()) - mean_statistics(flat, clamped.ravel())


def _identities(shares: np.ndarray, entropy: float, rng: np.random.Generator) -> Trial:
    """Hold the lecture's equations against finite differences and sums, at random parameters and temperature."""
    temperature = rng.uniform(0.5, 2.0)
    model = _start(2, rng)
    model = model.replace(rng.normal(size=model.theta.size) / temperature)
    slope = _slope(model, shares)

    def moved(by: np.ndarray) -> float:
        return _divergence(model.replace(model.theta + by), shares)

    differences = [(moved(STEP * unit) - moved(-STEP * unit)) / (2 * STEP) for unit in np.eye(model.theta.size)]
    logs = _table(model)[1]
    log_visible = np.logaddexp.reduce(logs, axis=1)
    posterior = np.exp(logs - log_visible[:, None])
    doubt = rng.dirichlet(np.ones(logs.shape[1]), size=len(logs))
    return {
        "slope gap": np.abs(slope - differences).max(),
        "printed change": moved(STEP * slope) - moved(0.0 * slope),
        "rule change": moved(-STEP * slope) - moved(0.0 * slope),
        "constant gap": moved(0.0 * slope) - (-entropy - shares @ log_visible),
        "bound": shares @ (_free_energy(doubt, logs) + log_visible),
        "bound at posterior": shares @ (_free_energy(posterior, logs) + log_visible),
    }


def _free_energy(q: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Return F of each visible state: sum Q log Q / P(S_o, S_h)."""
    return (q * (np.log(np.maximum(q, 1e-300)) - logs)).sum(axis=1)


# -- tables, pictures and claims --------------------------------------------------------------------------------------
def _table_of_divergences(results: Results) -> Table:
    columns = {"hidden units": N_HIDDEN} | with_stderr("KL of the best start", results["KL"][:, :, 0])
    columns[f"starts below {ACCURATE}"] = (results["KL"] < ACCURATE).mean(axis=(0, 2))
    return Table("KL(R || P) after learning, nats", columns)


def _divergences(axes: Axes, results: Results) -> None:
    best = mean_with_error(np.maximum(results["KL"][:, :, 0], 1e-8))
    curve(axes, N_HIDDEN, *best, "best of the starts", method="mle")
    label_axes(axes, "hidden units", "KL(R || P), nats", log="")
    axes.set_xticks(N_HIDDEN)


def _em_steps(axes: Axes, results: Results) -> None:
    median = np.median(results["EM"], axis=0)
    curve(axes, np.arange(1, N_STEPS + 1), median, None, "EM, restricted, best of the starts", method="mple")
    label_axes(axes, "EM step", "median KL(R || P), nats", log="y")
    legend(axes)


@claim("hidden units let P(S_o) match R(S_o); without any it cannot", "Learning", trials=4)
def _matched(results: Results) -> Verdict:
    best = results["KL"][:, :, 0]
    learned = (best[:, 1:].min(axis=1) < ACCURATE).sum()
    counted = f"below {ACCURATE} with hidden units in {learned} of {len(best)} trials"
    holds = learned >= 0.95 * len(best) and (best[:, 0] > 10 * ACCURATE).all()
    return Verdict(holds, f"KL {best[:, 0].mean():.3f} without; {counted}")


@claim("the rule as eq. 8 is printed, with a minus sign, lowers KL", "eq. 8", trials=1, misprint=True)
def _printed(results: Results) -> Verdict:
    printed, rule = results["printed change"], results["rule change"]
    rises = f"KL rises in {(printed > 0).sum()} of {len(printed)} trials"
    return Verdict((printed < 0).all(), f"{rises}; with a plus it falls in {(rule < 0).sum()}")


@claim("it converges when <S_i S_j> clamped = <S_i S_j>", "Understanding the Learning Rule", trials=4)
def _equal(results: Results) -> Verdict:
    largest = results["unequal"].max(axis=1)
    numbers = f"{np.median(largest):.1e} in the median, {largest.max():.1e} at most"
    return Verdict(np.median(largest) < 1e-5, f"largest difference at the end {numbers}")


@claim("F(Q, w) is never below -sum log P, and equal at Q = P(S_h | S_o)", "BM and EM: part 1", trials=1)
def _bound(results: Results) -> Verdict:
    above, at = results["bound"], np.abs(results["bound at posterior"]).max()
    numbers = f"{above.min():.2g} above or more at a random Q, {at:.1e} at the posterior, in {len(above)} trials"
    return Verdict(above.min() >= 0 and at < 1e-12, numbers)


@claim("EM need not find the global optimum: some starts end higher", "BM and EM: part 2", trials=40)
def _not_global(results: Results) -> Verdict:
    ends = results["EM ends"]
    higher = ends > ends[:, :1] + ACCURATE
    counted = f"in {higher.any(axis=1).sum()} of {len(higher)} trials"
    share = f"{higher.mean():.0%} of the starts end over {ACCURATE} nats above the best of their trial"
    return Verdict(higher.any(), f"{share}, {counted}")
