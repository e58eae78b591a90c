"""H06 section 5 in full: its algebra step by step, and the objective of contrastive divergence beside its update."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, xlogy

from gibbsian.data import Dataset
from gibbsian.learning.objectives import Pseudolikelihood, value_and_gradient
from gibbsian.models import Model, PairwiseFamily
from gibbsian_reproduction.drawing import Figure, label_axes, legend, lines
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.h06 import (
    FAMILY,
    N_VARIABLES,
    STATES,
    TWICE,
    distance,
    estimate,
    expected_step,
    random_model,
)
from gibbsian_reproduction.systems import distribution_of
from gibbsian_reproduction.tables import Table, mean_table
from gibbsian_reproduction.verdicts import at_most, in_every_trial

SECTION_5 = "H06 section 5"
FIRST, SECOND = FAMILY.graph.edges.T
ROUNDING = 1e-13

# -- the algebra, step by step ----------------------------------------------------------------------------------------
N_ROWS = 200
# What each step says, in the order of the paper, with the place where it stands.
STEPS = {
    "mean of an update": ("after an update of x_i its mean is tanh(m_i x + b_i)", "H06 eq. 25"),
    "others stay": ("an update of x_k leaves x_i and x_i x_j as they are, for k not i or j", SECTION_5),
    "split": ("(n-2)/n of the updates leave a product alone, 1/n change x_i, and 1/n x_j", "H06 eq. 26, first form"),
    "collected": ("collected, the coupling step is 2/n times a bracket", "H06 eq. 26, second form"),
    "bracket": ("the bracket is the symmetrised gradient of the pseudolikelihood", "H06 eqs. 9 and 20"),
    "biases": ("the bias step is 1/n times the gradient of the pseudolikelihood", "H06 eqs. 13 and 27"),
    "library": ("the gradient is that of the library's pseudolikelihood", "H06 eq. 8"),
    "zero at mple": ("the expected step vanishes where the gradient does", SECTION_5),
    "ends": ("followed from a random point, it ends at the pseudolikelihood's maximum", SECTION_5),
}


@EXPERIMENTS.register("h06-section5")
def section_5() -> Experiment:
    """Return the equivalence of contrastive divergence and pseudolikelihood, each step of its proof by itself."""
    found = {"zero at mple": 1e-8, "ends": 1e-6}  # those that a solver has found, the others to rounding
    steps = [
        Claim(text, place, at_most(name, found.get(name, ROUNDING), "largest gap"), trials=1)
        for name, (text, place) in STEPS.items()
    ]
    return Experiment(
        "H06",
        "Section 5, step by step",
        "each step from the expected update of contrastive divergence to the gradient of the pseudolikelihood",
        _algebra_trial,
        (_table_of_steps,),
        None,
        (*steps, _printed_bias, _printed_field),
        scale=f"one random machine and {N_ROWS} rows of a random distribution that no machine has",
    )


def _updated(model: Model[PairwiseFamily], rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of x and of ``x_i x_j`` of each row after an update of x_k, from the energies of both values."""
    codes = [np.where(np.arange(N_VARIABLES) == k, code, rows) for code in (0, 1)]
    up = expit(model.log_weights(codes[1]) - model.log_weights(codes[0]))[:, None]
    both = [FAMILY.variables.scores_of(one) for one in codes]
    means = (1 - up) * both[0] + up * both[1]
    products = [np.einsum("mi,mj->mij", one, one) for one in both]
    return means, (1 - up)[:, :, None] * products[0] + up[:, :, None] * products[1]


def _algebra_trial(rng: np.random.Generator) -> Trial:
    chosen = rng.choice(len(STATES), N_ROWS, p=rng.dirichlet(np.ones(len(STATES))))
    codes, rows = STATES[chosen], FAMILY.variables.scores_of(STATES[chosen])
    data, model, n = Dataset.of_states(codes, "spin"), random_model(rng), N_VARIABLES
    matrix, biases = FAMILY.graph.matrix(model.parts.couplings), model.parts.biases
    guesses = np.tanh(rows @ matrix + biases)
    updates = [_updated(model, codes, k) for k in range(n)]
    products = np.einsum("mi,mj->mij", rows, rows)
    away = [np.delete(np.arange(n), k) for k in range(n)]
    pairs, cross = products.mean(axis=0), guesses.T @ rows / N_ROWS  # cross[i, j] = E tanh_i x_j
    delta = pairs - np.mean([after.mean(axis=0) for _, after in updates], axis=0)  # eq. 24
    first_form = pairs - (n - 2) / n * pairs - cross / n - cross.T / n
    second_form = 2 / n * (pairs - cross / 2 - cross.T / 2)
    gradient = (products - guesses[:, :, None] * rows[:, None, :]).mean(axis=0)  # eq. 9
    symmetrised = (gradient + gradient.T) / 2  # eq. 20
    bias_step = rows.mean(axis=0) - np.mean([means.mean(axis=0) for means, _ in updates], axis=0)
    bias_gradient = (rows - guesses).mean(axis=0)  # eq. 13
    misread = np.tanh((rows @ matrix)[:, None, :] + biases[:, None])  # m_j x + b_i, as eq. 26 is printed
    printed = 2 / n * (pairs - cross / 2 - np.einsum("mi,mij->ij", rows, misread) / (2 * N_ROWS))
    library = -value_and_gradient(Pseudolikelihood(), model, data)[1] / TWICE
    mple = estimate("mple", data, rng, tol=1e-10)
    followed = followed_update(random_model(rng).theta, np.bincount(chosen, minlength=len(STATES)) / N_ROWS)
    edges = FIRST, SECOND
    left = [(after - products)[:, away[k]][:, :, away[k]] for k, (_, after) in enumerate(updates)]
    gaps = {
        "mean of an update": [updates[k][0][:, k] - guesses[:, k] for k in range(n)],
        "others stay": [np.r_[left[k].ravel(), (updates[k][0] - rows)[:, away[k]].ravel()] for k in range(n)],
        "split": (delta - first_form)[edges],
        "collected": (first_form - second_form)[edges],
        "bracket": (second_form - 2 / n * symmetrised)[edges],
        "biases": bias_step - bias_gradient / n,
        "library": library - np.r_[bias_gradient, symmetrised[edges]],
        "zero at mple": expected_step(model.replace(mple), codes),
        "ends": distance(followed[-1], mple),
        "bias as printed": bias_step - bias_gradient,
        "field as printed": (delta - printed)[edges],
    }
    return {name: np.abs(gap).max() for name, gap in gaps.items()}


def _table_of_steps(results: Results) -> Table:
    rows = [{"step": text, "place": place, "largest gap": results[name].max()} for name, (text, place) in STEPS.items()]
    return Table("every step of the proof", rows, "over all trials and entries")


@claim("the bias step equals the gradient, as printed (it lacks 1/n)", "H06 eq. 27", trials=1, misprint=True)
def _printed_bias(results: Results) -> Verdict:
    gap = results["bias as printed"]
    return Verdict(gap.max() < ROUNDING, f"gaps of {gap.min():.2g} to {gap.max():.2g}")


@claim("tanh(m_j x + b_i) stands for the mean of x_j, as printed (it is b_j)", "H06 eq. 26", trials=1, misprint=True)
def _printed_field(results: Results) -> Verdict:
    gap = results["field as printed"]
    return Verdict(gap.max() < ROUNDING, f"gaps of {gap.min():.2g} to {gap.max():.2g}")


# -- the objective ----------------------------------------------------------------------------------------------------
N_STEPS, RATE = 5000, 1.0
SEEN = np.unique(np.geomspace(1, N_STEPS, 25).astype(int))
EARLY = SEEN[:6]  # steps of the way down, before the run comes near its end
# The state with variable k flipped, by its number among `STATES`.
FLIPPED = np.arange(len(STATES)) ^ (1 << np.arange(N_VARIABLES))[:, None]
STATISTICS = FAMILY.statistics(STATES)
CURVES = (Series("own", "the model's own distribution", method="mle"), Series("foreign", "another", method="mple"))


@EXPERIMENTS.register("h06-cd-objective")
def cd_objective() -> Experiment:
    """Return the difference of divergences of contrastive divergence along a run of its update (H06 section 5)."""
    return Experiment(
        "H06",
        "Section 5, the objective",
        "contrastive divergence as an objective, KL(p0 | p) - KL(p1 | p), along the run of its update",
        _objective_trial,
        (mean_table("the objective along the run", "step", SEEN, CURVES), _table_of_ends),
        _draw_objective,
        (_two_methods, _ends_at_mple, _own_truth, _never_negative, _points_down, _falls),
        scale=f"a random machine and a distribution that no machine has, all states listed; {N_STEPS} expected steps",
    )


def after_an_update(theta: np.ndarray, p0: np.ndarray) -> np.ndarray:
    """Return the distribution p1 after one Gibbs update of a random variable, from p0."""
    weights = STATISTICS @ theta
    return ((p0 + p0[FLIPPED]) * expit(weights - weights[FLIPPED])).mean(axis=0)


def divergence_gap(theta: np.ndarray, p0: np.ndarray) -> float:
    """Return ``KL(p0 | p) - KL(p1 | p)``, in which log Z cancels (Hinton 2002)."""
    after = after_an_update(theta, p0)
    return float((xlogy(p0, p0) - xlogy(after, after)).sum() + theta @ ((after - p0) @ STATISTICS))


def update_of(theta: np.ndarray, p0: np.ndarray) -> np.ndarray:
    """Return the expected update, the gradient less the part that comes from the change of p1 (H06 eq. 24)."""
    return (p0 - after_an_update(theta, p0)) @ STATISTICS


def followed_update(theta: np.ndarray, p0: np.ndarray) -> list[np.ndarray]:
    """Return the parameters along the way of the expected update."""
    path = [theta]
    for _ in range(N_STEPS):
        path.append(path[-1] + RATE * update_of(path[-1], p0))
    return path


def slope_of(theta: np.ndarray, p0: np.ndarray) -> np.ndarray:
    """Return the whole gradient of the objective by differences."""
    h = 1e-5
    steps = h * np.eye(theta.size)
    return np.array([divergence_gap(theta + d, p0) - divergence_gap(theta - d, p0) for d in steps]) / (2 * h)


def _objective_trial(rng: np.random.Generator) -> Trial:
    truth = random_model(rng)
    distributions = {"own": distribution_of(truth, STATES), "foreign": rng.dirichlet(np.ones(len(STATES)))}
    trial: Trial = {}
    for name, p0 in distributions.items():
        data = Dataset.of_states(STATES, "spin", sample_weight=p0)
        mple = estimate("mple", data, rng, tol=1e-10)
        path = followed_update(np.zeros(STATISTICS.shape[1]), p0)
        best = minimize(divergence_gap, path[0], (p0,), jac=slope_of, method="BFGS", options={"gtol": 1e-9}).x
        trial |= {
            name: [divergence_gap(path[t], p0) for t in SEEN],
            f"{name} run to mple": distance(path[-1], mple),
            f"{name} share of the way left": distance(path[-1], mple) / distance(path[0], mple),
            f"{name} best to mple": distance(best, mple),
            f"{name} cosine": [_cosine(update_of(path[t], p0), -slope_of(path[t], p0)) for t in EARLY],
        }
    return trial


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def _table_of_ends(results: Results) -> Table:
    names = [f"{p0} {what}" for p0 in ("own", "foreign") for what in ("run to mple", "best to mple")]
    rows = [{"distance": name, "median": np.median(results[name]), "largest": results[name].max()} for name in names]
    return Table("where the run of the update ends, and the least value of the objective", rows)


def _draw_objective(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    lines(SEEN, CURVES, "step of contrastive divergence", "objective")(axes, results)
    label_axes(axes, "step of contrastive divergence", "KL(p0 | p) - KL(p1 | p)", log="x")
    legend(axes)


@claim("two methods have the name: data not from the model, the objective's minimum is elsewhere", SECTION_5, trials=1)
def _two_methods(results: Results) -> Verdict:
    apart, same = results["foreign best to mple"], results["own best to mple"].max()
    numbers = f"median distance {np.median(apart):.2g}, {apart.min():.1e} at least; {same:.0e} on the model's own"
    return Verdict(apart.min() > 10.0 * same, numbers)


@claim("the update ends at the pseudolikelihood's maximum, whatever the data", SECTION_5, trials=1)
def _ends_at_mple(results: Results) -> Verdict:
    left = np.stack([results[f"{name} share of the way left"] for name in ("own", "foreign")], axis=1)
    return in_every_trial(left < 0.01, f"at most {left.max():.1e} of the way from zero is left")


@claim("data from the model: both end at the truth, where the objective is zero", SECTION_5, trials=1)
def _own_truth(results: Results) -> Verdict:
    far, left = results["own best to mple"].max(), np.abs(results["own"][:, -1]).max()
    return Verdict(far < 1e-3 and left < 1e-6, f"the minimum is at most {far:.1e} from it, the run ends at {left:.1e}")


@claim("the objective is never negative", "Hinton 2002", trials=1, ours=True)
def _never_negative(results: Results) -> Verdict:
    values = np.concatenate([results["own"], results["foreign"]], axis=1)
    return in_every_trial(values > -1e-13, f"least value {values.min():.1e}")


@claim(
    "the update points down the objective on the way, though it is not the whole gradient",
    "Hinton 2002",
    trials=1,
    ours=True,
)
def _points_down(results: Results) -> Verdict:
    cosines = np.concatenate([results["own cosine"], results["foreign cosine"]], axis=1)
    return in_every_trial(
        cosines > 0, f"cosine with the gradient at least {cosines.min():.2f}, mean {cosines.mean():.3f}"
    )


@claim("the objective falls along the run", "Hinton 2002", trials=1, ours=True)
def _falls(results: Results) -> Verdict:
    first, last = results["foreign"][:, 0], results["foreign"][:, -1]
    return in_every_trial(
        (last < first)[:, None], f"foreign data: median from {np.median(first):.3g} to {np.median(last):.3g}"
    )
