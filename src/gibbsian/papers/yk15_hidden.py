"""Yuille and Kersten 2015, "Boltzmann Machine: Learning": hidden units let a machine learn the exclusive or."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsian.data import Dataset
from gibbsian.data.hidden_columns import graph_with_hidden, with_hidden
from gibbsian.domain import BINARY
from gibbsian.graphs import complete
from gibbsian.learners import EM, LEARNERS, run
from gibbsian.learners.hidden import break_symmetry
from gibbsian.models import Model, PairwiseModel
from gibbsian.papers.drawing import curve, legend, log_axes
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.papers.yk15 import largest_rise, never_rises

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_VISIBLE, N_ROWS, NOISE = 3, 500, 0.1
N_HIDDEN = (0, 1, 2)
N_STARTS, N_RESTRICTED, N_STEPS = 4, 2, 40  # starts; hidden units and steps shown of EM
VISIBLE_STATES = (np.arange(2**N_VISIBLE)[:, None] >> np.arange(N_VISIBLE) & 1).astype(float)
ACCURATE = 0.01  # nats; a machine whose KL divergence is below has learned the law
STEP = 1e-5  # of finite differences, and of the learning rule


@EXPERIMENTS.register("yk15-hidden")
def hidden_units() -> Experiment:
    """Return learning with hidden units on noisy exclusive-or data (YK15).

    Examples
    --------
    >>> from gibbsian.papers.yk15_hidden import hidden_units
    >>> hidden_units().item
    'Hidden units'
    """
    return Experiment(
        paper="YK15",
        item="Hidden units",
        title="a Boltzmann machine learns noisy exclusive-or data by hidden units",
        trial=_trial,
        tables=_tables,
        draw=_draw,
        claims=(
            Claim("hidden units let P(S_o) match R(S_o); without any it cannot", "Learning", _matched, trials=4),
            Claim("the slope of KL is <S_i S_j> free less clamped, over T", "eqs. 8, 17", _rule, trials=1),
            Claim(
                "the rule as eq. 8 is printed, with a minus sign, lowers KL", "eq. 8", _printed, trials=1, misprint=True
            ),
            Claim(
                "it converges when <S_i S_j> clamped = <S_i S_j>", "Understanding the Learning Rule", _equal, trials=4
            ),
            Claim("minimising KL is maximum likelihood: they differ by a constant", "eqs. 18-20", _constant, trials=1),
            Claim(
                "F(Q, w) is never below -sum log P, and equal at Q = P(S_h | S_o)",
                "BM and EM: part 1",
                _bound,
                trials=1,
            ),
            Claim("EM never raises KL", "BM and EM: part 2", _em_falls, trials=1),
            Claim(
                "EM need not find the global optimum: some starts end higher",
                "BM and EM: part 2",
                _not_global,
                trials=40,
            ),
        ),
        size=(8.0, 3.6),
        trials_of=lambda asked: max(asked // 4, 1),
        scale=f"{N_ROWS} rows of two bits and their exclusive or, {NOISE:.0%} of it wrong; one trial for every 4 asked",
    )


def _trial(rng: np.random.Generator) -> Trial:
    rows = rng.integers(2, size=(N_ROWS, 2))
    wrong = rng.random(N_ROWS) < NOISE
    data = Dataset.read(np.column_stack([rows, rows[:, 0] ^ rows[:, 1] ^ wrong]), coding="binary")
    law = _law(data)
    entropy = -(law @ np.log(np.maximum(law, 1e-300)))
    divergence = np.full((len(N_HIDDEN), N_STARTS), np.nan)
    unequal = np.full(len(N_HIDDEN), np.nan)
    for place, n_hidden in enumerate(N_HIDDEN):
        clamped = with_hidden(data, n_hidden) if n_hidden else data
        fits = [run(LEARNERS.create("mle"), _start(n_hidden, rng), clamped, rng) for _ in range(N_STARTS)]
        divergence[place] = [_divergence(fit.model, law) for fit in fits]
        best = fits[int(divergence[place].argmin())].model
        unequal[place] = np.abs(_slope(best, law)).max()
    return {
        "KL": np.sort(divergence, axis=1),
        "unequal": unequal,
        **_em_curves(data, entropy, rng),
        **_identities(law, entropy, rng),
    }


def _law(data: Dataset) -> np.ndarray:
    """Return R(S_o), the shares of the visible states in the rows (eq. 9)."""
    shares = np.zeros(2**N_VISIBLE)
    np.add.at(shares, data.states.astype(int) @ 2 ** np.arange(N_VISIBLE), data.weights / data.total_weight)
    return shares


def _start(n_hidden: int, rng: np.random.Generator, temperature: float = 1.0) -> Model:
    model = PairwiseModel.zeros(complete(N_VISIBLE + n_hidden), BINARY, temperature)
    hidden = np.arange(N_VISIBLE + n_hidden) >= N_VISIBLE
    return break_symmetry(model, hidden, rng, scale=1.0) if n_hidden else model


def _em_curves(data: Dataset, entropy: float, rng: np.random.Generator) -> Trial:
    """Run EM in a restricted machine, whose likelihood has several maxima, to the end from several starts."""
    clamped, runs = with_hidden(data, N_RESTRICTED), []
    graph = graph_with_hidden("restricted", clamped.names, N_RESTRICTED)
    for _ in range(N_STARTS):
        start = PairwiseModel.zeros(graph, BINARY)
        start = start.replace(rng.normal(size=start.theta.size))
        runs.append(run(EM(), start, clamped, rng, max_iter=300, tol=1e-5).trace.column("value"))
    ends = np.array([values[-1] for values in runs])
    best = np.asarray(runs[int(ends.argmin())][:N_STEPS])
    return {
        "EM": np.pad(best, (0, N_STEPS - len(best)), mode="edge") - entropy,
        "EM ends": np.sort(ends) - entropy,
        "EM rise": max(largest_rise(values) for values in runs),
    }


# -- by enumeration ---------------------------------------------------------------------------------------------------
def _table(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return all states of visible and hidden units, and their log-probabilities, a row for each visible state."""
    n_hidden = model.n_variables - N_VISIBLE
    hidden = (np.arange(2**n_hidden)[:, None] >> np.arange(n_hidden) & 1).astype(float)
    states = np.array([[np.r_[v, h] for h in hidden] for v in VISIBLE_STATES])
    log_weights = model.log_weights(states.reshape(-1, model.n_variables)).reshape(states.shape[:2])
    return states, log_weights - np.logaddexp.reduce(log_weights, axis=None)


def _divergence(model: Model, law: np.ndarray) -> float:
    """Return KL(R || P) (eq. 5, with P(S_o) in the denominator)."""
    visible = np.logaddexp.reduce(_table(model)[1], axis=1)
    seen = law > 0
    return float(law[seen] @ (np.log(law[seen]) - visible[seen]))


def _slope(model: Model, law: np.ndarray) -> np.ndarray:
    """Return (<S_i S_j> free - clamped) / T, with the clamped law R(S_o) P(S_h | S_o), biases first."""
    states, logs = _table(model)
    free = np.exp(logs)
    clamped = law[:, None] * np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    flat = states.reshape(-1, model.n_variables)
    difference = model.mean_statistics(flat, free.ravel()) - model.mean_statistics(flat, clamped.ravel())
    return difference / model.temperature


def _identities(law: np.ndarray, entropy: float, rng: np.random.Generator) -> Trial:
    """Hold the lecture's equations against finite differences and sums, at random parameters and temperature."""
    model = _start(2, rng, temperature=rng.uniform(0.5, 2.0))
    model = model.replace(rng.normal(size=model.theta.size))
    slope = _slope(model, law)

    def moved(by: np.ndarray) -> float:
        return _divergence(model.replace(model.theta + by), law)

    differences = [(moved(STEP * unit) - moved(-STEP * unit)) / (2 * STEP) for unit in np.eye(model.theta.size)]
    logs = _table(model)[1]
    log_visible = np.logaddexp.reduce(logs, axis=1)
    posterior = np.exp(logs - log_visible[:, None])
    doubt = rng.dirichlet(np.ones(logs.shape[1]), size=len(logs))
    return {
        "slope gap": np.abs(slope - differences).max(),
        "printed change": moved(STEP * slope) - moved(0.0 * slope),
        "rule change": moved(-STEP * slope) - moved(0.0 * slope),
        "constant gap": moved(0.0 * slope) - (-entropy - law @ log_visible),
        "bound": law @ (_free_energy(doubt, logs) + log_visible),
        "bound at posterior": law @ (_free_energy(posterior, logs) + log_visible),
    }


def _free_energy(shares: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Return F of each visible state: sum Q log Q / P(S_o, S_h)."""
    return (shares * (np.log(np.maximum(shares, 1e-300)) - logs)).sum(axis=1)


# -- telling ----------------------------------------------------------------------------------------------------------
def _tables(results: Results) -> list[Table]:
    import pandas as pd

    rows = []
    for place, n_hidden in enumerate(N_HIDDEN):
        best = results["KL"][:, place, 0]
        learned = results["KL"][:, place] < ACCURATE
        rows.append((n_hidden, best.mean(), _stderr(best), learned.mean()))
    columns = ["hidden units", "KL of the best start", "KL of the best start stderr", f"starts below {ACCURATE}"]
    return [Table("KL(R || P) after learning, nats", pd.DataFrame(rows, columns=columns))]


def _stderr(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def _draw(results: Results, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    best = Results({"KL": np.maximum(results["KL"][:, :, 0], 1e-8)}, results.seed)
    curve(left, N_HIDDEN, best.mean("KL"), best.stderr("KL"), "best of the starts", method="mle")
    log_axes(left, "hidden units", "KL(R || P), nats", log_x=False, log_y=False)
    left.set_xticks(N_HIDDEN)
    curve(
        right,
        np.arange(1, N_STEPS + 1),
        np.median(results["EM"], axis=0),
        None,
        "EM, restricted, best of the starts",
        method="mple",
    )
    log_axes(right, "EM step", "median KL(R || P), nats", log_x=False)
    legend(right)


def _matched(results: Results) -> Verdict:
    best = results["KL"][:, :, 0]
    learned = (best[:, 1:].min(axis=1) < ACCURATE).sum()
    told = f"KL {best[:, 0].mean():.3f} without; below {ACCURATE} with hidden units in {learned} of {len(best)} trials"
    return Verdict(bool(learned >= 0.95 * len(best) and (best[:, 0] > 10 * ACCURATE).all()), told)


def _rule(results: Results) -> Verdict:
    gap = results["slope gap"].max()
    return Verdict(bool(gap < 1e-7), f"largest difference to finite differences {gap:.1e} in {results.n_trials} trials")


def _printed(results: Results) -> Verdict:
    printed, rule = results["printed change"], results["rule change"]
    told = f"KL rises in {(printed > 0).sum()} of {len(printed)} trials; with a plus it falls in {(rule < 0).sum()}"
    return Verdict(bool((printed < 0).all()), told)


def _equal(results: Results) -> Verdict:
    largest = results["unequal"].max(axis=1)
    told = f"largest difference at the end {np.median(largest):.1e} in the median, {largest.max():.1e} at most"
    return Verdict(bool(np.median(largest) < 1e-5), told)


def _constant(results: Results) -> Verdict:
    gap = np.abs(results["constant gap"]).max()
    return Verdict(bool(gap < 1e-12), f"KL + mean log P - sum R log R = {gap:.1e} at most in {results.n_trials} trials")


def _bound(results: Results) -> Verdict:
    above, at = results["bound"], np.abs(results["bound at posterior"]).max()
    told = f"{above.min():.2g} above or more at a random Q, {at:.1e} at the posterior, in {len(above)} trials"
    return Verdict(bool(above.min() >= 0 and at < 1e-12), told)


def _em_falls(results: Results) -> Verdict:
    return never_rises(results, "EM rise", "minus log-likelihood")


def _not_global(results: Results) -> Verdict:
    ends = results["EM ends"]
    higher = ends > ends[:, :1] + ACCURATE
    told = f"{higher.mean():.0%} of the starts end over {ACCURATE} nats above the best of their trial"
    return Verdict(bool(higher.any()), f"{told}, in {higher.any(axis=1).sum()} of {len(higher)} trials")
