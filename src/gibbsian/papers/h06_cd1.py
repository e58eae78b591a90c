"""H06 section 5: the expected step of contrastive divergence with one Gibbs update is the pseudolikelihood gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gibbsian.data import Dataset
from gibbsian.graphs import complete
from gibbsian.models import PairwiseModel
from gibbsian.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.papers.drawing import curve, legend, log_axes, method_style
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.papers.h06 import N_VARIABLES, all_states, distance, estimate, random_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_ROWS = 500
N_STEPS = 2000
RATE, DELAY = 1.0, 200.0  # steps of size RATE / (1 + t / DELAY), which sum to infinity and whose squares do not
EDGES = complete(N_VARIABLES).edges
SEEN = np.unique(np.geomspace(1, N_STEPS, 30).astype(int))  # the steps at which the run is looked at
COUPLING_FACTOR, BIAS_FACTOR = 2.0 / N_VARIABLES, 1.0 / N_VARIABLES


@EXPERIMENTS.register("h06-cd1")
def contrastive_divergence() -> Experiment:
    """Return H06 section 5 as an experiment: eqs. 26 and 27, and where contrastive divergence ends.

    Examples
    --------
    >>> from gibbsian.papers.h06_cd1 import contrastive_divergence
    >>> contrastive_divergence().item
    'Section 5'
    """
    return Experiment(
        paper="H06",
        item="Section 5",
        title="contrastive divergence with single Gibbs updates against the pseudolikelihood",
        trial=_trial,
        tables=_tables,
        draw=_draw,
        claims=(
            Claim(
                "the expected coupling step is 2/n times the symmetrised gradient", "H06 eq. 26", _couplings, trials=1
            ),
            Claim(
                "the expected bias step equals the gradient, as eq. 27 is printed",
                "H06 eq. 27",
                _printed,
                trials=1,
                misprint=True,
            ),
            Claim(
                "the expected bias step is the gradient up to a constant (it is 1/n)",
                "H06 section 5",
                _biases,
                trials=1,
            ),
            Claim("the expected step is zero where the gradient is", "H06 section 5", _zero_together, trials=1),
            Claim(
                "contrastive divergence converges to the pseudolikelihood's maximum",
                "H06 section 5",
                _ends_there,
                trials=4,
            ),
            Claim(
                "and not to that of the likelihood, where the data are not the model's",
                "H06 section 5",
                _not_mle,
                trials=20,
            ),
        ),
        size=(8.0, 3.6),
        scale=f"{N_ROWS} rows of a random law that no machine has, {N_STEPS} steps",
    )


def expected_step(model: PairwiseModel, rows: np.ndarray) -> np.ndarray:
    """Return the mean of the CD-1 step (H06 eq. 24) over the variable updated and its new value, one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.graphs import complete
    >>> from gibbsian.models import PairwiseModel
    >>> from gibbsian.papers.h06_cd1 import expected_step
    >>> expected_step(PairwiseModel.zeros(complete(5)), np.ones((1, 5)))[:6]         # 1/n for biases, 2/n for couplings
    array([0.2, 0.2, 0.2, 0.2, 0.2, 0.4])
    """
    after = np.zeros(model.theta.size)
    for k in range(N_VARIABLES):
        outcomes = [rows.copy(), rows.copy()]
        for outcome, value in zip(outcomes, (-1.0, 1.0), strict=True):
            outcome[:, k] = value
        log_weights = np.stack([model.log_weights(outcome) for outcome in outcomes])
        shares = np.exp(log_weights - np.logaddexp(*log_weights))
        for outcome, share in zip(outcomes, shares, strict=True):
            after += share @ _statistics(outcome) / (N_VARIABLES * len(rows))
    return _statistics(rows).mean(axis=0) - after


def _statistics(rows: np.ndarray) -> np.ndarray:
    return np.hstack([rows, rows[:, EDGES[:, 0]] * rows[:, EDGES[:, 1]]])


def _trial(rng: np.random.Generator) -> Trial:
    states = all_states()
    rows = states[rng.choice(len(states), N_ROWS, p=rng.dirichlet(np.ones(len(states))))].astype(float)
    data, model = Dataset.read(rows, coding="spin"), random_model(rng)
    mple, mle = estimate("mple", data, rng, tol=1e-9), estimate("mle", data, rng, tol=1e-9)
    path = _run(rows, rng)
    return {
        "step": expected_step(model, rows),
        "gradient": -value_and_gradient(Pseudolikelihood(), model, data)[1] * _PRINTED,
        "step at mple": np.abs(expected_step(model.replace(mple), rows)).max(),
        "to mple": [distance(theta, mple) for theta in path],
        "to mle": [distance(theta, mle) for theta in path],
        "apart": distance(mple, mle),
        "way": (path[-1] - mple) @ (_TWICE * (mle - mple)) / distance(mple, mle) ** 2,
    }


# H06 symmetrises over m_ij and m_ji (eq. 20), so its coupling gradient is half of that for one coupling of both.
_PRINTED = np.r_[np.ones(N_VARIABLES), np.full(len(EDGES), 0.5)]


_TWICE = np.r_[np.ones(N_VARIABLES), np.full(len(EDGES), 2.0)]  # how often a parameter stands in [M, b]


def _run(rows: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Run contrastive divergence from zero; return the parameters at `SEEN`, averaged over the last half of the way."""
    matrix, biases = np.zeros((N_VARIABLES, N_VARIABLES)), np.zeros(N_VARIABLES)
    target, places = _statistics(rows).mean(axis=0), np.arange(len(rows))
    sums = np.zeros((N_STEPS + 1, target.size))
    for t in range(N_STEPS):
        k = rng.integers(N_VARIABLES, size=len(rows))
        fields = np.einsum("ij,ij->i", rows, matrix[k]) + biases[k]
        chains = rows.copy()
        chains[places, k] = np.where(rng.random(len(rows)) < 0.5 * (1.0 + np.tanh(fields)), 1.0, -1.0)
        step = RATE / (1.0 + t / DELAY) * (target - _statistics(chains).mean(axis=0))
        biases += step[:N_VARIABLES]
        matrix[EDGES[:, 0], EDGES[:, 1]] += step[N_VARIABLES:]
        matrix[EDGES[:, 1], EDGES[:, 0]] += step[N_VARIABLES:]
        sums[t + 1] = sums[t] + np.r_[biases, matrix[EDGES[:, 0], EDGES[:, 1]]]
    return [(sums[t] - sums[t // 2]) / (t - t // 2) for t in SEEN]


def _tables(results: Results) -> list[Table]:
    import pandas as pd

    columns = {"step": SEEN}
    for name in ("to mple", "to mle"):
        columns |= {name: results.mean(name), f"{name} stderr": results.stderr(name)}
    return [Table("distance of contrastive divergence to both maxima", pd.DataFrame(columns))]


def _draw(results: Results, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    biases, couplings = slice(0, N_VARIABLES), slice(N_VARIABLES, None)
    for part, label, factor, method in (
        (couplings, "couplings, slope 2/n", COUPLING_FACTOR, "cd"),
        (biases, "biases, slope 1/n", BIAS_FACTOR, "mple"),
    ):
        x, y = results["gradient"][:20, part].ravel(), results["step"][:20, part].ravel()
        left.plot(x, y, linestyle="", markersize=3, label=label, **method_style(method))
        left.axline((0.0, 0.0), slope=factor, color="0.6", linewidth=0.8, zorder=0)
    log_axes(left, "pseudolikelihood gradient", "expected CD-1 step", log_x=False, log_y=False)
    legend(left)
    curve(right, SEEN, results.mean("to mple"), results.stderr("to mple"), "to pseudolikelihood", method="mple")
    curve(right, SEEN, results.mean("to mle"), results.stderr("to mle"), "to likelihood", method="mle")
    log_axes(right, "step of contrastive divergence", "distance to the maximum")
    legend(right)


def _couplings(results: Results) -> Verdict:
    return _proportional(results, slice(N_VARIABLES, None), COUPLING_FACTOR)


def _biases(results: Results) -> Verdict:
    return _proportional(results, slice(0, N_VARIABLES), BIAS_FACTOR)


def _printed(results: Results) -> Verdict:
    step, gradient = results["step"][:, :N_VARIABLES], results["gradient"][:, :N_VARIABLES]
    ratio = (step * gradient).sum() / (gradient**2).sum()
    told = f"the step is {ratio:.3f} times the gradient: with n = {N_VARIABLES} the printed form lacks a factor 1/n"
    return Verdict(bool(np.abs(step - gradient).max() < 1e-12), told)


def _proportional(results: Results, part: slice, factor: float) -> Verdict:
    gap = np.abs(results["step"][:, part] - factor * results["gradient"][:, part]).max()
    return Verdict(bool(gap < 1e-12), f"largest difference {gap:.1e} in {results.n_trials} trials")


def _zero_together(results: Results) -> Verdict:
    largest = results["step at mple"].max()
    return Verdict(bool(largest < 1e-8), f"largest entry at the maximum {largest:.1e} in {results.n_trials} trials")


def _ends_there(results: Results) -> Verdict:
    """Hold the distance at the end against the noise of the average: it must have fallen as noise does."""
    to_mple = results["to mple"]
    start, end = np.median(to_mple[:, 0]), np.median(to_mple[:, -1])
    told = f"median distance {start:.2f} after a step, {end:.4f} after {N_STEPS}"
    return Verdict(bool(end < 0.05 * start), told)


def _not_mle(results: Results) -> Verdict:
    """Pool the trials, each by the square of the way that there is between both maxima."""
    way, weights = results["way"], results["apart"] ** 2 / (results["apart"] ** 2).sum()
    mean = weights @ way
    error = np.sqrt(weights**2 @ (way - mean) ** 2)
    told = f"it ends {mean:.2f} of the way from the one to the other, standard error {error:.2f}"
    return Verdict(bool(mean + 2.0 * error < 0.5), told)
