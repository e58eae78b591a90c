"""Hyvarinen 2006: pseudolikelihood is consistent for fully visible machines, and in simulation as good as the best."""

from __future__ import annotations

from functools import partial

import numpy as np

from gibbsian.data import Dataset
from gibbsian.diagnostics import maximum_exists
from gibbsian.graphs import complete
from gibbsian.inference import exact
from gibbsian.learning import as_learner, run
from gibbsian.learning.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.models import Model, PairwiseFamily
from gibbsian_reproduction.drawing import Figure, curve, label_axes, legend, lines, method_style
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.systems import all_states, distribution_of
from gibbsian_reproduction.tables import Table, mean_table
from gibbsian_reproduction.verdicts import at_most

N_VARIABLES, SPREAD = 5, 0.5
GRAPH = complete(N_VARIABLES)
FAMILY = PairwiseFamily(GRAPH)
STATES = all_states(N_VARIABLES)
BIASES, COUPLINGS = slice(0, N_VARIABLES), slice(N_VARIABLES, None)
# How often a parameter stands in [M, b] (H06 section 6).
TWICE = np.r_[np.ones(N_VARIABLES), np.full(GRAPH.n_edges, 2.0)]


def random_model(rng: np.random.Generator) -> Model[PairwiseFamily]:
    """Return a machine of H06 section 6: five variables, all parameters normal with standard deviation 0.5."""
    return Model(FAMILY, rng.normal(0.0, SPREAD, FAMILY.n_parameters))


def estimate(method: str, data: Dataset, rng: np.random.Generator, tol: float = 1e-6) -> np.ndarray:
    """Return a learner's parameters from a random initial point; NaN where it does not converge."""
    learner = as_learner("smci" if method == "1-smci" else method)
    fit = run(learner, random_model(rng), data, rng, tol=tol)
    return fit.model.theta if fit.converged else np.full(fit.model.theta.size, np.nan)


def distance(theta: np.ndarray, other: np.ndarray) -> float:
    """Return the Euclidean distance of the matrices [M, b], in which each coupling stands twice (H06 section 6)."""
    return float(np.sqrt(TWICE @ (theta - other) ** 2))


# -- figure 1 ---------------------------------------------------------------------------------------------------------
SIZES = np.array([500, 1000, 2000, 4000, 8000, 16000])
# Our third line: the estimator of Y18, which the paper could not know.
METHODS = {"mple": "pseudolikelihood", "mle": "likelihood", "1-smci": "1-SMCI"}
SECTION_6 = "H06 section 6"


@EXPERIMENTS.register("h06-fig1")
def figure_1() -> Experiment:
    """Return H06 figure 1: estimation errors of pseudolikelihood and likelihood at six sample sizes."""
    return Experiment(
        "H06",
        "Fig. 1",
        "estimation errors of maximum pseudolikelihood and maximum likelihood, n = 5",
        _figure_1_trial,
        (_table_of_errors,),
        _draw_errors,
        (_falls, _vanishes, _not_larger, _identical, _parameters, _rate, _smci_as_good),
        scale="one random machine and data set at each T, and each estimate once from a random initial point",
    )


def _figure_1_trial(rng: np.random.Generator) -> Trial:
    errors = {method: np.full(len(SIZES), np.nan) for method in METHODS}
    for column, size in enumerate(SIZES):
        truth = random_model(rng)
        data = Dataset.of_states(exact(truth).sample(int(size), rng), "spin")
        if not maximum_exists(truth, data, "likelihood"):  # its estimates are at infinity, whichever method
            continue
        for method in METHODS:
            errors[method][column] = np.log10(distance(estimate(method, data, rng), truth.theta))
    return errors


def _excess(results: Results, method: str) -> np.ndarray:
    """Decades by which a method is worse than likelihood on the same data, trials x sizes."""
    return results[method] - results["mle"]


def _mean(results: Results, method: str) -> np.ndarray:
    """Mean log10 error, that of a method with trials left out as likelihood's plus the mean difference to it.

    The trials that are left out are the hard ones, so a plain mean would flatter.
    """
    return np.nanmean(results["mle"], axis=0) + np.nanmean(_excess(results, method), axis=0)


def _table_of_errors(results: Results) -> Table:
    columns: dict[str, np.ndarray] = {"T": SIZES}
    for method in METHODS:
        columns |= {method: _mean(results, method), f"{method} stderr": results.stderr(method)}
    columns["with a maximum"] = results.count("mle")
    columns["1-smci solved"] = results.count("1-smci")
    note = (
        "data sets without a finite maximum are left out; 1-smci is ours, and where its equations have no solution it "
        "is compared with likelihood on the other trials"
    )
    return Table("mean of log10 of the estimation error", columns, note)


def _draw_errors(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    for method, label in METHODS.items():
        style = {"linestyle": "--"} if method == "mle" else {}  # as in the paper
        mean, stderr = _mean(results, method), results.stderr(method)
        curve(axes, np.log10(SIZES), mean, stderr, label, ours=method == "1-smci", method=method, **style)
    label_axes(axes, "log10 of sample size", "log10 of estimation error", log="")
    legend(axes)


@claim("the error of pseudolikelihood falls with every doubling of T", SECTION_6, trials=50)
def _falls(results: Results) -> Verdict:
    mean = results.mean("mple")
    return Verdict((np.diff(mean) < 0).all(), "mean log10 error " + ", ".join(f"{value:.2f}" for value in mean))


@claim("the error of pseudolikelihood goes to zero as T grows", SECTION_6, trials=4)
def _vanishes(results: Results) -> Verdict:
    first, last = 10.0 ** results["mple"][np.isfinite(results["mple"][:, [0, -1]]).all(axis=1)][:, [0, -1]].T
    counted = f"smaller at T = {SIZES[-1]} than at {SIZES[0]} in {(last < first).sum()} of {len(last)} trials"
    shrunk = np.nanmedian(last) / np.nanmedian(first)
    return Verdict((last < first).mean() > 0.95, f"{counted}, median down to {shrunk:.2f} of its size")


@claim("its errors are not really larger than those of likelihood (5% on average at most)", SECTION_6, trials=50)
def _not_larger(results: Results) -> Verdict:
    excess = 10.0 ** np.nanmean(_excess(results, "mple"), axis=0) - 1.0
    return Verdict((excess < 0.05).all(), f"{excess.min():+.1%} to {excess.max():+.1%} over the six sizes")


@claim("the errors of both are almost identical (typically within 10%)", SECTION_6, trials=50)
def _identical(results: Results) -> Verdict:
    typical = 10.0 ** np.nanmedian(np.abs(_excess(results, "mple")), axis=0) - 1.0
    return Verdict((typical < 0.1).all(), f"median difference {typical.min():.1%} to {typical.max():.1%}")


@claim("they depend more on the random parameters than on the method", SECTION_6, trials=50)
def _parameters(results: Results) -> Verdict:
    """Compare the spread of errors over machines and data sets with their change from method to method."""
    ratio = np.nanstd(results["mple"], axis=0) / np.nanstd(_excess(results, "mple"), axis=0)
    times = f"{ratio.min():.1f} to {ratio.max():.1f} times"
    return Verdict((ratio > 1.0).all(), f"standard deviation over machines {times} that over methods")


@claim("the error falls as 1 / sqrt(T)", "theory of consistent estimators", trials=50, ours=True)
def _rate(results: Results) -> Verdict:
    logs = results["mple"]
    slopes = np.polyfit(np.log10(SIZES), logs[np.isfinite(logs).all(axis=1)].T, 1)[0]
    mean, stderr = slopes.mean(), slopes.std(ddof=1) / np.sqrt(len(slopes))
    return Verdict(abs(mean + 0.5) < 4.0 * stderr, f"slope {mean:.3f} with standard error {stderr:.3f}")


@claim("the error of 1-SMCI is within 5% of it, too", "this run", trials=50, ours=True)
def _smci_as_good(results: Results) -> Verdict:
    excess = 10.0 ** np.nanmean(_excess(results, "1-smci"), axis=0) - 1.0
    return Verdict((np.abs(excess) < 0.05).all(), f"{excess.min():+.1%} to {excess.max():+.1%} over the six sizes")


# -- propositions 1 and 2, theorem 1 ----------------------------------------------------------------------------------
@EXPERIMENTS.register("h06-theorem1")
def theorem_1() -> Experiment:
    """Return H06 propositions 1 and 2 and theorem 1, on the exact distribution instead of a sample that grows."""
    zero = at_most("largest gradient", 1e-12, "largest entry")
    at_truth = at_most("mple to truth", 1e-6, "largest distance")
    return Experiment(
        "H06",
        "Theorem 1",
        "pseudolikelihood on the distribution itself, an infinite sample: zero gradient, concave, maximal at the truth",
        _theorem_trial,
        (_table_of_extremes,),
        None,
        (
            Claim("the gradient is zero at the true parameters", "H06 proposition 1", zero, trials=1),
            _concave,
            Claim("the maximum is at the true parameters alone", "H06 theorem 1", at_truth, trials=1),
            _differ_elsewhere,
        ),
        scale="one random machine, one random distribution that no machine has, and one random initial point",
    )


def _theorem_trial(rng: np.random.Generator) -> Trial:
    truth, elsewhere = random_model(rng), random_model(rng)
    own = Dataset.of_states(STATES, "spin", sample_weight=distribution_of(truth, STATES))
    foreign = Dataset.of_states(STATES, "spin", sample_weight=rng.dirichlet(np.ones(len(STATES))))
    mple, mle = estimate("mple", own, rng, tol=1e-9), estimate("mle", own, rng, tol=1e-9)
    return {
        "largest gradient": np.abs(value_and_gradient(Pseudolikelihood(), truth, own)[1]).max(),
        "least curvature": np.linalg.eigvalsh(Pseudolikelihood().curvature(elsewhere, own)).min(),
        "mple to truth": distance(mple, truth.theta),
        "mle to truth": distance(mle, truth.theta),
        "mple to mle elsewhere": distance(estimate("mple", foreign, rng), estimate("mle", foreign, rng)),
    }


def _table_of_extremes(results: Results) -> Table:
    rows = [
        {"quantity": name, "mean": values.mean(), "least": values.min(), "largest": values.max()}
        for name, values in results.values.items()
    ]
    return Table("over the trials", rows)


@claim("the pseudolikelihood is strictly concave", "H06 proposition 2", trials=1)
def _concave(results: Results) -> Verdict:
    least = results["least curvature"]
    counted = f"{(least > 0).sum()} of {len(least)} Hessians definite"
    return Verdict((least > 0).all(), f"{counted}, least eigenvalue {least.min():.2g}")


@claim(
    "data not from the model: pseudolikelihood and likelihood differ, as contrastive divergence does",
    "H06 section 5",
    trials=1,
)
def _differ_elsewhere(results: Results) -> Verdict:
    apart, same = results["mple to mle elsewhere"], results["mple to truth"].max()
    far = f"{np.median(apart):.2g} apart in the median, {apart.min():.1e} at least"
    return Verdict(apart.min() > 100.0 * same, f"{far}; {same:.0e} on the model's own distribution")


# -- section 5: the expected step of contrastive divergence with one Gibbs update is the pseudolikelihood gradient ----
N_ROWS, N_STEPS = 500, 2000
RATE, DELAY = 1.0, 200.0  # steps of size RATE / (1 + t / DELAY), which sum to infinity and whose squares do not
SEEN = np.unique(np.geomspace(1, N_STEPS, 30).astype(int))  # the steps at which the run is looked at
COUPLING_FACTOR, BIAS_FACTOR = 2.0 / N_VARIABLES, 1.0 / N_VARIABLES
SECTION_5 = "H06 section 5"
DISTANCES = (Series("to mple", method="mple"), Series("to mle", method="mle"))


@EXPERIMENTS.register("h06-cd1")
def contrastive_divergence() -> Experiment:
    """Return H06 section 5 as an experiment: eqs. 26 and 27, and where contrastive divergence ends."""
    couplings, biases = partial(_proportional, COUPLINGS, COUPLING_FACTOR), partial(_proportional, BIASES, BIAS_FACTOR)
    symmetrised = "the expected coupling step is 2/n times the symmetrised gradient"
    zero = at_most("step at mple", 1e-8, "largest entry at the maximum")
    return Experiment(
        "H06",
        "Section 5",
        "contrastive divergence with single Gibbs updates against the pseudolikelihood",
        _divergence_trial,
        (mean_table("distance of contrastive divergence to both maxima", "step", SEEN, DISTANCES),),
        _draw_steps,
        (
            Claim(symmetrised, "H06 eq. 26", couplings, trials=1),
            _printed,
            Claim("the expected bias step is the gradient up to a constant (it is 1/n)", SECTION_5, biases, trials=1),
            Claim("the expected step is zero where the gradient is", SECTION_5, zero, trials=1),
            _ends_there,
            _not_mle,
        ),
        size=(8.0, 3.6),
        scale=f"{N_ROWS} rows of a random distribution that no machine has, {N_STEPS} steps",
    )


def expected_step(model: Model[PairwiseFamily], rows: np.ndarray) -> np.ndarray:
    """Return the mean of the CD-1 step (H06 eq. 24) over the variable updated and its new value, one by one."""
    after = np.zeros(model.theta.size)
    for k in range(N_VARIABLES):
        outcomes = [np.where(np.arange(N_VARIABLES) == k, code, rows) for code in (0, 1)]
        log_weights = np.stack([model.log_weights(outcome) for outcome in outcomes])
        shares = np.exp(log_weights - np.logaddexp(*log_weights))
        for outcome, share in zip(outcomes, shares, strict=True):
            after += share @ FAMILY.statistics(outcome) / (N_VARIABLES * len(rows))
    return FAMILY.statistics(rows).mean(axis=0) - after


def _divergence_trial(rng: np.random.Generator) -> Trial:
    rows = STATES[rng.choice(len(STATES), N_ROWS, p=rng.dirichlet(np.ones(len(STATES))))]
    data, model = Dataset.of_states(rows, "spin"), random_model(rng)
    mple, mle = estimate("mple", data, rng, tol=1e-9), estimate("mle", data, rng, tol=1e-9)
    path = _diverge(rows, rng)
    return {
        "step": expected_step(model, rows),
        # H06 symmetrises over m_ij and m_ji (eq. 20): its coupling gradient is half of that for one coupling of both
        "gradient": -value_and_gradient(Pseudolikelihood(), model, data)[1] / TWICE,
        "step at mple": np.abs(expected_step(model.replace(mple), rows)).max(),
        "to mple": [distance(theta, mple) for theta in path],
        "to mle": [distance(theta, mle) for theta in path],
        "apart": distance(mple, mle),
        "way": (path[-1] - mple) @ (TWICE * (mle - mple)) / distance(mple, mle) ** 2,
    }


def _diverge(rows: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Run contrastive divergence from zero; return the parameters at `SEEN`, averaged over the last half of the way."""
    matrix, biases = np.zeros((N_VARIABLES, N_VARIABLES)), np.zeros(N_VARIABLES)
    target, places, (i, j) = FAMILY.statistics(rows).mean(axis=0), np.arange(len(rows)), GRAPH.edges.T
    spins = FAMILY.variables.scores_of(rows)
    sums = np.zeros((N_STEPS + 1, target.size))
    for t in range(N_STEPS):
        k = rng.integers(N_VARIABLES, size=len(rows))
        fields = np.einsum("ij,ij->i", spins, matrix[k]) + biases[k]
        chains = rows.copy()
        chains[places, k] = rng.random(len(rows)) < 0.5 * (1.0 + np.tanh(fields))
        step = RATE / (1.0 + t / DELAY) * (target - FAMILY.statistics(chains).mean(axis=0))
        biases += step[BIASES]
        matrix[i, j] += step[COUPLINGS]
        matrix[j, i] += step[COUPLINGS]
        sums[t + 1] = sums[t] + np.r_[biases, matrix[i, j]]
    return [(sums[t] - sums[t // 2]) / (t - t // 2) for t in SEEN]


def _draw_steps(results: Results, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    for part, label, factor, method in (
        (COUPLINGS, "couplings, slope 2/n", COUPLING_FACTOR, "cd"),
        (BIASES, "biases, slope 1/n", BIAS_FACTOR, "mple"),
    ):
        x, y = results["gradient"][:20, part].ravel(), results["step"][:20, part].ravel()
        left.plot(x, y, linestyle="", markersize=3, label=label, **method_style(method))
        left.axline((0.0, 0.0), slope=factor, color="0.6", linewidth=0.8, zorder=0)
    label_axes(left, "pseudolikelihood gradient", "expected CD-1 step", log="")
    legend(left)
    lines(SEEN, DISTANCES, "step of contrastive divergence", "distance to the maximum")(right, results)


@claim("the expected bias step equals the gradient, as eq. 27 is printed", "H06 eq. 27", trials=1, misprint=True)
def _printed(results: Results) -> Verdict:
    step, gradient = results["step"][:, BIASES], results["gradient"][:, BIASES]
    ratio = (step * gradient).sum() / (gradient**2).sum()
    missing = f"with n = {N_VARIABLES} the printed form lacks a factor 1/n"
    return Verdict(np.abs(step - gradient).max() < 1e-12, f"the step is {ratio:.3f} times the gradient: {missing}")


def _proportional(part: slice, factor: float, results: Results) -> Verdict:
    gap = np.abs(results["step"][:, part] - factor * results["gradient"][:, part]).max()
    return Verdict(gap < 1e-12, f"largest difference {gap:.1e} in {results.n_trials} trials")


@claim("contrastive divergence converges to the pseudolikelihood's maximum", SECTION_5, trials=4)
def _ends_there(results: Results) -> Verdict:
    """Hold the distance at the end against the noise of the average: it must have fallen as noise does."""
    start, end = np.median(results["to mple"][:, [0, -1]], axis=0)
    return Verdict(end < 0.05 * start, f"median distance {start:.2f} after a step, {end:.4f} after {N_STEPS}")


@claim("and not to that of the likelihood, where the data are not the model's", SECTION_5, trials=20)
def _not_mle(results: Results) -> Verdict:
    """Pool the trials, each by the square of the way that there is between both maxima."""
    way, weights = results["way"], results["apart"] ** 2 / (results["apart"] ** 2).sum()
    mean = weights @ way
    error = np.sqrt(weights**2 @ (way - mean) ** 2)
    numbers = f"it ends {mean:.2f} of the way from the one to the other, standard error {error:.2f}"
    return Verdict(mean + 2.0 * error < 0.5, numbers)
