"""Hyvarinen 2006: pseudolikelihood is consistent for fully visible machines, and in simulation as good as the best."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsian.data import Dataset
from gibbsian.graphs import complete
from gibbsian.inference import exact
from gibbsian.learners import LEARNERS, run
from gibbsian.models import PairwiseModel
from gibbsian.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.papers.drawing import curve, legend, log_axes
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_VARIABLES, SPREAD = 5, 0.5
GRAPH = complete(N_VARIABLES)
SIZES = np.array([500, 1000, 2000, 4000, 8000, 16000])
# Our third line: the estimator of Y18, which the paper could not know.
METHODS = {"mple": "pseudolikelihood", "mle": "likelihood", "1-smci": "1-SMCI"}
OURS = ("1-smci",)


def random_model(rng: np.random.Generator) -> PairwiseModel:
    """Return a machine of H06 section 6: five variables, all parameters normal with standard deviation 0.5.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.h06 import random_model
    >>> random_model(np.random.default_rng(0)).theta.size
    15
    """
    return PairwiseModel.zeros(GRAPH).replace(rng.normal(0.0, SPREAD, N_VARIABLES + GRAPH.n_edges))


def all_states() -> np.ndarray:
    """Return the 32 states of five spins.

    Examples
    --------
    >>> from gibbsian.papers.h06 import all_states
    >>> all_states().shape
    (32, 5)
    """
    return 2 * (np.arange(2**N_VARIABLES)[:, None] >> np.arange(N_VARIABLES) & 1) - 1


def estimate(method: str, data: Dataset, rng: np.random.Generator, tol: float = 1e-6) -> np.ndarray:
    """Return a learner's parameters from a random initial point; NaN where it does not converge.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.data import Dataset
    >>> from gibbsian.papers.h06 import all_states, estimate
    >>> rows = Dataset.read(all_states(), coding="spin")
    >>> bool(abs(estimate("mple", rows, np.random.default_rng(0))).max() < 1e-5)    # every state once: nothing to say
    True
    """
    fit = run(LEARNERS.create(method), random_model(rng), data, rng, tol=tol)
    return fit.model.theta if fit.converged else np.full(fit.model.theta.size, np.nan)


def distance(theta: np.ndarray, other: np.ndarray) -> float:
    """Return the Euclidean distance of the matrices [M, b], in which each coupling stands twice (H06 section 6).

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.h06 import distance
    >>> distance(np.array([3.0] + 14 * [0.0]), np.zeros(15))
    3.0
    """
    squares = (theta - other) ** 2
    return float(np.sqrt(squares[:N_VARIABLES].sum() + 2.0 * squares[N_VARIABLES:].sum()))


# -- figure 1 ---------------------------------------------------------------------------------------------------------
@EXPERIMENTS.register("h06-fig1")
def figure_1() -> Experiment:
    """Return H06 figure 1: estimation errors of pseudolikelihood and likelihood at six sample sizes.

    Examples
    --------
    >>> from gibbsian.papers.h06 import figure_1
    >>> figure_1().item
    'Fig. 1'
    """
    return Experiment(
        paper="H06",
        item="Fig. 1",
        title="estimation errors of maximum pseudolikelihood and maximum likelihood, n = 5",
        trial=_figure_1_trial,
        tables=_figure_1_tables,
        draw=_draw_figure_1,
        claims=(
            Claim("the error of pseudolikelihood falls with every doubling of T", "H06 section 6", _falls, trials=50),
            Claim("the error of pseudolikelihood goes to zero as T grows", "H06 section 6", _vanishes, trials=4),
            Claim(
                "its errors are not really larger than those of likelihood (5% on average at most)",
                "H06 section 6",
                _not_larger,
                trials=50,
            ),
            Claim(
                "the errors of both are almost identical (typically within 10%)", "H06 section 6", _identical, trials=50
            ),
            Claim(
                "they depend more on the random parameters than on the method", "H06 section 6", _parameters, trials=50
            ),
            Claim("the error falls as 1 / sqrt(T)", "theory of consistent estimators", _rate, trials=50, ours=True),
            Claim("the error of 1-SMCI is within 5% of it, too", "this run", _smci_as_good, trials=50, ours=True),
        ),
        scale="one random machine and data set at each T, and each estimate once from a random initial point",
    )


def _figure_1_trial(rng: np.random.Generator) -> Trial:
    errors = np.full((len(METHODS), len(SIZES)), np.nan)
    for column, size in enumerate(SIZES):
        truth = random_model(rng)
        data = Dataset.read(exact(truth).sample(int(size), rng), coding="spin")
        errors[:, column] = [distance(estimate(method, data, rng), truth.theta) for method in METHODS]
    return {"error": errors, "log10 error": np.log10(errors)}


def _log_ratio(results: Results, method: str = "mple") -> np.ndarray:
    """Decades by which a method is worse than likelihood on the same data, trials x sizes."""
    logs = results["log10 error"]
    return logs[:, _row(method)] - logs[:, _row("mle")]


def _row(method: str) -> int:
    return list(METHODS).index(method)


def _figure_1_tables(results: Results) -> list[Table]:
    import pandas as pd

    mean, stderr = _means(results), results.stderr("log10 error")
    columns: dict[str, np.ndarray] = {"T": SIZES}
    for row, method in enumerate(METHODS):
        columns |= {method: mean[row], f"{method} stderr": stderr[row]}
    columns["1-smci solved"] = results.count("log10 error")[_row("1-smci")]
    note = "1-smci is ours; where its equations have no solution it is compared with likelihood on the other trials"
    return [Table("mean of log10 of the estimation error", pd.DataFrame(columns), note)]


def _means(results: Results) -> np.ndarray:
    """Mean log10 errors, those of methods with trials left out as likelihood's plus the mean difference to it.

    The trials that are left out are the hard ones, so a plain mean would flatter.
    """
    logs = results["log10 error"]
    likelihood = logs[:, _row("mle")]
    base = np.nanmean(likelihood, axis=0)
    return base + np.nanmean(logs - likelihood[:, None], axis=0)


def _draw_figure_1(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    mean, stderr = _means(results), results.stderr("log10 error")
    for row, (method, label) in enumerate(METHODS.items()):
        style = {"linestyle": "--"} if method == "mle" else {}  # as in the paper
        curve(axes, np.log10(SIZES), mean[row], stderr[row], label, ours=method in OURS, method=method, **style)
    log_axes(axes, "log10 of sample size", "log10 of estimation error", log_x=False, log_y=False)
    legend(axes)


def _falls(results: Results) -> Verdict:
    mean = results.mean("log10 error")[_row("mple")]
    return Verdict(bool((np.diff(mean) < 0).all()), "mean log10 error " + ", ".join(f"{value:.2f}" for value in mean))


def _vanishes(results: Results) -> Verdict:
    errors = results["error"][:, _row("mple")]
    smaller = errors[:, -1] < errors[:, 0]
    shrunk = np.nanmedian(errors[:, -1]) / np.nanmedian(errors[:, 0])
    told = f"smaller at T = {SIZES[-1]} than at {SIZES[0]} in {smaller.sum()} of {len(smaller)} trials"
    return Verdict(bool(smaller.mean() > 0.95), f"{told}, median down to {shrunk:.2f} of its size")


def _not_larger(results: Results) -> Verdict:
    excess = 10.0 ** np.nanmean(_log_ratio(results), axis=0) - 1.0
    return Verdict(bool((excess < 0.05).all()), f"{excess.min():+.1%} to {excess.max():+.1%} over the six sizes")


def _identical(results: Results) -> Verdict:
    typical = 10.0 ** np.nanmedian(np.abs(_log_ratio(results)), axis=0) - 1.0
    return Verdict(bool((typical < 0.1).all()), f"median difference {typical.min():.1%} to {typical.max():.1%}")


def _parameters(results: Results) -> Verdict:
    """Compare the spread of errors over machines and data sets with their change from method to method."""
    between_machines = np.nanstd(results["log10 error"][:, _row("mple")], axis=0)
    between_methods = np.nanstd(_log_ratio(results), axis=0)
    ratio = between_machines / between_methods
    told = f"standard deviation over machines {ratio.min():.1f} to {ratio.max():.1f} times that over methods"
    return Verdict(bool((ratio > 1.0).all()), told)


def _rate(results: Results) -> Verdict:
    logs, x = results["log10 error"][:, _row("mple")], np.log10(SIZES)
    slopes = np.polyfit(x, logs[np.isfinite(logs).all(axis=1)].T, 1)[0]
    mean, stderr = slopes.mean(), slopes.std(ddof=1) / np.sqrt(len(slopes))
    return Verdict(bool(abs(mean + 0.5) < 4.0 * stderr), f"slope {mean:.3f} with standard error {stderr:.3f}")


def _smci_as_good(results: Results) -> Verdict:
    excess = 10.0 ** np.nanmean(_log_ratio(results, "1-smci"), axis=0) - 1.0
    return Verdict(
        bool((np.abs(excess) < 0.05).all()), f"{excess.min():+.1%} to {excess.max():+.1%} over the six sizes"
    )


# -- propositions 1 and 2, theorem 1 ----------------------------------------------------------------------------------
@EXPERIMENTS.register("h06-theorem1")
def theorem_1() -> Experiment:
    """Return H06 propositions 1 and 2 and theorem 1, on the exact law instead of a sample that grows.

    Examples
    --------
    >>> from gibbsian.papers.h06 import theorem_1
    >>> theorem_1().draw is None
    True
    """
    return Experiment(
        paper="H06",
        item="Theorem 1",
        title="pseudolikelihood on the law itself, an infinite sample: zero gradient, concave, maximal at the truth",
        trial=_theorem_trial,
        tables=_theorem_tables,
        draw=None,
        claims=(
            Claim("the gradient is zero at the true parameters", "H06 proposition 1", _zero_gradient, trials=1),
            Claim("the pseudolikelihood is strictly concave", "H06 proposition 2", _concave, trials=1),
            Claim("the maximum is at the true parameters alone", "H06 theorem 1", _at_truth, trials=1),
            Claim(
                "data not from the model: pseudolikelihood and likelihood differ, as contrastive divergence does",
                "H06 section 5",
                _differ_elsewhere,
                trials=1,
            ),
        ),
        scale="one random machine, one random law that no machine has, and one random initial point",
    )


def _theorem_trial(rng: np.random.Generator) -> Trial:
    truth, elsewhere = random_model(rng), random_model(rng)
    states = all_states()
    weights = np.exp(truth.log_weights(states.astype(float)))
    law = Dataset.read(states, coding="spin", sample_weight=weights / weights.sum())
    foreign = Dataset.read(states, coding="spin", sample_weight=rng.dirichlet(np.ones(len(states))))
    found = {method: estimate(method, law, rng, tol=1e-9) for method in ("mple", "mle")}
    apart = distance(estimate("mple", foreign, rng), estimate("mle", foreign, rng))
    return {
        "largest gradient": np.abs(value_and_gradient(Pseudolikelihood(), truth, law)[1]).max(),
        "least curvature": np.linalg.eigvalsh(Pseudolikelihood().curvature(elsewhere, law)).min(),
        "mple to truth": distance(found["mple"], truth.theta),
        "mle to truth": distance(found["mle"], truth.theta),
        "mple to mle elsewhere": apart,
    }


def _theorem_tables(results: Results) -> list[Table]:
    import pandas as pd

    rows = [(name, values.mean(), values.min(), values.max()) for name, values in results.values.items()]
    return [Table("over the trials", pd.DataFrame(rows, columns=["quantity", "mean", "least", "largest"]))]


def _zero_gradient(results: Results) -> Verdict:
    largest = results["largest gradient"].max()
    return Verdict(bool(largest < 1e-12), f"largest entry {largest:.1e} in {results.n_trials} trials")


def _concave(results: Results) -> Verdict:
    least = results["least curvature"]
    told = f"{(least > 0).sum()} of {len(least)} Hessians definite, least eigenvalue {least.min():.2g}"
    return Verdict(bool((least > 0).all()), told)


def _at_truth(results: Results) -> Verdict:
    far = results["mple to truth"].max()
    return Verdict(bool(far < 1e-6), f"at most {far:.1e} away in {results.n_trials} trials")


def _differ_elsewhere(results: Results) -> Verdict:
    apart, same = results["mple to mle elsewhere"], results["mple to truth"].max()
    told = f"{np.median(apart):.2g} apart in the median, {apart.min():.1e} at least; {same:.0e} on the model's own law"
    return Verdict(bool(apart.min() > 100.0 * same), told)
