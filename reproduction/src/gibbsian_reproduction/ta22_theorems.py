"""TA22 theorems 1 and 2 and corollary 1, checked over random systems."""

from __future__ import annotations

import numpy as np

from gibbsian.learning.span.moves import SpanState, apply_move, best_move, refreshed
from gibbsian.learning.span.problem import SpanProblem
from gibbsian.models import SpanBasis, Variables, from_log_weights
from gibbsian_reproduction.drawing import lines, panels
from gibbsian_reproduction.experiment import EXPERIMENTS, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.systems import dense_theta, stacked
from gibbsian_reproduction.tables import Table, mean_table
from gibbsian_reproduction.verdicts import at_most, in_every_trial

# -- theorem 1 --------------------------------------------------------------------------------------------------------
N_SYSTEMS, MOST_VALUES, MOST_VARIABLES = 5, 5, 4
CHECKS = {
    "basis": "functions of eq. 2.1, dependent ones among them",
    "products": "products of independent functions, dependent ones among them",
    "dependent": "products of dependent functions, dependent ones among them",
}


@EXPERIMENTS.register("ta22-theorem1")
def theorem_1() -> Experiment:
    """Return TA22 theorem 1: products of independent functions are independent, and so the basis spans everything."""
    return Experiment(
        "TA22",
        "Theorem 1",
        "products of independent functions of two variables are independent",
        _independence_trial,
        (_table_of_ranks,),
        None,
        (_products_independent, _basis_independent, _dependence_stays, _everything_represented),
        scale=f"{N_SYSTEMS} systems of 2 to {MOST_VARIABLES} variables with 2 to {MOST_VALUES} values each",
    )


def _independence_trial(rng: np.random.Generator) -> Trial:
    return stacked(_ranks_of(rng) for _ in range(N_SYSTEMS))


def _ranks_of(rng: np.random.Generator) -> Trial:
    """Return how many of some functions depend on the others, and how well a random distribution is represented."""
    n_variables = int(rng.integers(2, MOST_VARIABLES + 1))
    basis = SpanBasis(Variables.categories(rng.integers(2, MOST_VALUES + 1, n_variables)))
    every = np.arange(basis.size)
    f, g = (rng.normal(size=(int(rng.integers(2, q + 1)), q)) for q in basis.variables.sizes[:2])
    tied = np.vstack([f[:-1], rng.normal(size=len(f) - 1) @ f[:-1]])
    p = rng.dirichlet(np.ones(basis.size))
    model = from_log_weights(np.log(p), basis.variables)
    return {
        "basis": _n_dependent(basis.values(every, basis.digits(every)).T),
        "products": _n_dependent(np.kron(f, g)),
        "dependent": _n_dependent(np.kron(tied, g)),
        "expected": len(g),
        "sizes": basis.size,
        "represented": np.abs(model.family.probabilities(model.theta).values - p).max(),
    }


def _n_dependent(functions: np.ndarray) -> int:
    """Return by how much the rank of functions, one in each row, falls short of their number."""
    return len(functions) - int(np.linalg.matrix_rank(functions))


def _table_of_ranks(results: Results) -> Table:
    columns: dict[str, list[object]] = {"what is counted": list(CHECKS.values())}
    for name, part in (("least", np.min), ("most", np.max)):
        columns[name] = [int(part(results[key])) for key in CHECKS]
    sizes = results["sizes"]
    return Table(f"{sizes.size} systems of {sizes.min():.0f} to {sizes.max():.0f} states", columns)


@claim("products of linearly independent functions are linearly independent", "TA22 theorem 1", trials=1)
def _products_independent(results: Results) -> Verdict:
    return in_every_trial(results["products"] == 0, f"{results['products'].size} pairs of random sets of functions")


@claim("so are the |X| functions of the model, by its local ones", "TA22 section 2.1", trials=1)
def _basis_independent(results: Results) -> Verdict:
    sizes = results["sizes"]
    return in_every_trial(results["basis"] == 0, f"{sizes.min():.0f} to {sizes.max():.0f} functions")


@claim("where the functions of one variable depend on each other, so do the products", "ours", trials=1, ours=True)
def _dependence_stays(results: Results) -> Verdict:
    return in_every_trial(results["dependent"] == results["expected"], "one tie of f, as many among products as g has")


_everything_represented = claim("every positive distribution is represented", "TA22 section 2.1", trials=1)(
    at_most("represented", 1e-12, "largest error of a probability")
)

# -- theorem 2 and corollary 1 ----------------------------------------------------------------------------------------
SYSTEMS = {"4 binary variables": Variables.binary(4), "3 x 2 x 2 values": Variables.categories((3, 2, 2))}
STEPS = (1, 3, 10, 30, 100, 300, 1000, 3000)
# Only the clip of data that leave no finite parameter depends on the number of rows: it is to play no part.
N_ROWS = 1e12
SPREAD = 0.5
# Steps go on until none gains more, or for so long.
SETTLED, MAX_STEPS = 1e-15, 100_000
# of log Z, over the thousand moves after which it is summed anew
ROUNDING = 1e-11


@EXPERIMENTS.register("ta22-theorem2")
def theorem_2() -> Experiment:
    """Return TA22 theorem 2 and corollary 1: without penalties the steps lead to the axis minimum, the global one."""
    series = [Series("divergence", name, method=name, place=(k,)) for k, name in enumerate(SYSTEMS)]
    return Experiment(
        "TA22",
        "Theorem 2, corollary 1",
        "steps along the best axis on KL(q || p) without penalties",
        _axis_trial,
        (mean_table("KL(q || p) in nats by step t", "t", STEPS, series),),
        panels(lines(STEPS, series, "t", "KL(q || p), nats", log="xy", least=1e-16)),
        (_never_up, _axis_minimum, _to_the_target, _same_end),
        scale="two systems with a random positive distribution q and two random starts each",
    )


def _axis_trial(rng: np.random.Generator) -> Trial:
    return stacked(_descents_of(SpanBasis(variables), rng) for variables in SYSTEMS.values())


def _descents_of(basis: SpanBasis, rng: np.random.Generator) -> Trial:
    """Take algorithm 1's steps without penalties from two starts; say where they end."""
    log_weights = rng.normal(size=basis.size)
    q = np.exp(log_weights) / np.exp(log_weights).sum()
    problem = SpanProblem.build(basis, basis.digits(np.arange(basis.size)), N_ROWS * q, mdl_scale=0.0)
    model = from_log_weights(log_weights, basis.variables)
    best = dense_theta(basis, model.family.functions, model.theta)
    (divergences, rise, first), (_, _, second) = (_descent(problem, rng) for _ in range(2))
    ends = [dense_theta(basis, end.indices, end.theta) for end in (first, second)]
    return {
        "divergence": divergences[:-1],
        "end": divergences[-1],
        "rise": rise,
        "gain": best_move(problem, first).gain,
        "distance": np.abs(ends[0] - best).max(),
        "apart": np.abs(ends[0] - ends[1]).max(),
    }


def _descent(problem: SpanProblem, rng: np.random.Generator) -> tuple[np.ndarray, float, SpanState]:
    """Return KL(q || p) at the steps noted and at the end, its largest rise, and the end, from a random start."""
    size = problem.basis.size
    point = refreshed(problem, problem.new_table(), np.arange(1, size), rng.normal(0.0, SPREAD, size - 1))
    costs = [point.cost]
    while (move := best_move(problem, point)).gain > SETTLED and len(costs) <= MAX_STEPS:
        point = apply_move(problem, point, move)
        costs.append(point.cost)
    rise, end = float(np.diff(costs).max()), max(costs[-1], 0.0)
    costs += costs[-1:] * (STEPS[-1] + 1 - len(costs))
    return np.append(np.maximum(np.array(costs)[list(STEPS)], 0.0), end), rise, point


_never_up = claim("the cost never rises", "TA22 section 2.3", trials=1)(
    lambda results: in_every_trial(results["rise"] < ROUNDING, f"largest change of a step {results['rise'].max():.1e}")
)
_axis_minimum = claim("the steps end at an axis minimum", "TA22 theorem 2", trials=1)(
    at_most("gain", 1e-12, "any axis gains at most")
)
_to_the_target = claim("they tend to the target distribution, parameters and all", "TA22 corollary 1", trials=1)(
    lambda results: in_every_trial(
        (results["distance"] < 1e-5) & (results["end"] < 1e-12),
        f"KL(q || p) at the end at most {results['end'].max():.1e}, parameters {results['distance'].max():.1e} away",
    )
)
_same_end = claim("from wherever they start", "TA22 corollary 1", trials=1)(
    at_most("apart", 1e-5, "two ends differ by")
)
