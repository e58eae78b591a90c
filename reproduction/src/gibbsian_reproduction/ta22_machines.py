"""TA22's Boltzmann machines: BM-DI by BFGS as printed beside Newton's method, and BM-PCD on many sets of all data."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from gibbsian.models import SpanBasis, Variables
from gibbsian_reproduction.experiment import EXPERIMENTS, Experiment, Results, Trial, Verdict, claim
from gibbsian_reproduction.ta22_data import TA22_NAMES, make_ta22, network_probabilities
from gibbsian_reproduction.ta22_methods import direct_integration, full_span, integrate_counted, persistent_chains
from gibbsian_reproduction.tables import Table, with_stderr
from gibbsian_reproduction.verdicts import at_most

# -- BM-DI by BFGS ----------------------------------------------------------------------------------------------------
N_VARIABLES, N_PARENTS, N_ROWS = 10, 3, 10_000


@EXPERIMENTS.register("ta22-bm-di")
def direct_integration_by_bfgs() -> Experiment:
    """Return TA22 section 3.2: the machine without samples, by BFGS as printed and by Newton's method."""
    return Experiment(
        "TA22",
        "Section 3.2",
        "BM-DI by BFGS as printed, and by Newton's method on the dual",
        _integration_trial,
        (_table_of_optimisers,),
        None,
        (_same_optimum, _same_distribution, _faster_than_bfgs),
        scale=f"one random network of {N_VARIABLES} nodes, {N_ROWS:,} rows of it and one of every state",
        timed=True,
    )


class DirectIntegration:
    """``KL(p_d || p_theta)`` of the machine of eq. 1.1 in 0/1 values, and its gradient, eq. 1.2, by direct sums.

    Parameters
    ----------
    p_data : (2^n,)
        The distribution of the data.
    """

    def __init__(self, p_data: np.ndarray):
        n = int(math.log2(p_data.size))
        states = SpanBasis(Variables.binary(n)).digits(np.arange(p_data.size)).astype(float)
        first, second = np.triu_indices(n, 1)
        self.features = np.hstack([states[:, first] * states[:, second], states])
        self.p_data, self.means = p_data, p_data @ self.features
        self.entropy = float(p_data @ np.log(p_data))
        self.n_evaluations = 0

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the divergence and its gradient."""
        self.n_evaluations += 1
        p, log_partition = self.distribution(theta)
        return self.entropy + log_partition - float(theta @ self.means), p @ self.features - self.means

    def distribution(self, theta: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the probabilities of all states, and log Z."""
        logs = self.features @ theta
        log_partition = float(logsumexp(logs))
        return np.exp(logs - log_partition), log_partition


def _integration_trial(rng: np.random.Generator) -> Trial:
    p = network_probabilities(N_PARENTS, rng, N_VARIABLES)
    counts = 1 + rng.multinomial(N_ROWS, p / p.sum())  # every state is seen, so that there is a maximum
    cost = DirectIntegration(counts / counts.sum())
    started = time.process_time()
    found = minimize(cost, np.zeros(cost.means.size), jac=True, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000})
    seconds, n_evaluations = time.process_time() - started, cost.n_evaluations
    states = SpanBasis(Variables.binary(N_VARIABLES)).digits(np.arange(counts.size)).astype(np.int8)
    ours = integrate_counted(states, counts)
    best = float(cost.p_data @ np.log(cost.p_data / ours.probabilities))
    return {
        "excess": found.fun - best,
        "distribution": np.abs(cost.distribution(found.x)[0] - ours.probabilities).sum(),
        "evaluations": n_evaluations,
        "seconds": np.array([seconds, ours.seconds]),
    }


def _table_of_optimisers(results: Results) -> Table:
    columns = {"method": ["BFGS as printed", "Newton on the dual (ours)"]}
    columns |= {"gradients": [results.mean("evaluations"), np.nan]} | with_stderr("seconds", results["seconds"])
    return Table("the maximum of the likelihood of BM-DI, processor seconds", columns)


_same_optimum = claim("BFGS as printed and Newton's method on the dual find one minimum", "TA22 section 3.2", trials=1)(
    at_most("excess", 1e-9, "divergences differ by at most")
)
_same_distribution = claim("and one distribution", "TA22 section 3.2", trials=1)(
    at_most("distribution", 1e-4, "in total variation at most")
)


@claim("Newton's method on the dual is faster", "ours", trials=50, ours=True)
def _faster_than_bfgs(results: Results) -> Verdict:
    ratio = np.median(results["seconds"][:, 0] / results["seconds"][:, 1])
    return Verdict(ratio > 1, f"{ratio:.1f} times in the median")


# -- BM-PCD on many data sets -----------------------------------------------------------------------------------------
NAMES = TA22_NAMES
SHARE = 0.15


@EXPERIMENTS.register("ta22-pcd")
def persistent_on_many() -> Experiment:
    """Return TA22 section 3.6 on BM-PCD: its accuracy beside FL's and BM-DI's on many draws of all data sets."""
    return Experiment(
        "TA22",
        "Section 3.6",
        "BM-PCD beside FL and BM-DI on many draws of the six data sets",
        _persistent_trial,
        (_table_of_divergences,),
        None,
        (_below_full_span, _below_integration, _noticeable_when_close),
        trials_of=lambda asked: math.ceil(SHARE * asked),
        scale="three draws of Ising data and two networks, 1,000 and 100,000 rows each, for every 20 trials asked",
    )


def _persistent_trial(rng: np.random.Generator) -> Trial:
    seed = int(rng.integers(2**31))
    methods = {"PCD": persistent_chains, "DI": direct_integration, "FL": full_span("greedy")}
    found = {name: np.empty(len(NAMES)) for name in methods}
    for place, data in enumerate(NAMES):
        sample = make_ta22(data, seed)
        for name, method in methods.items():
            found[name][place] = sample.divergence(method(sample, seed).probabilities)
    return found


def _table_of_divergences(results: Results) -> Table:
    columns: dict[str, object] = {"data": NAMES}
    for name, label in {"FL": "FL", "DI": "BM-DI", "PCD": "BM-PCD"}.items():
        columns |= with_stderr(label, results[name])
    columns |= with_stderr("BM-PCD over BM-DI", results["PCD"] / results["DI"])
    return Table("KL(p* || p) in nats", columns)


def _less_accurate(than: str) -> Callable[[Results], Verdict]:
    """Judge by the means over the draws of each data set, as TA22 judges one draw of each; say how often it held."""

    def judge(results: Results) -> Verdict:
        worse = results["PCD"] > results[than]
        by_name = ", ".join(f"{name} {int(own.sum())}" for name, own in zip(NAMES, worse.T, strict=True))
        holds = (results.mean("PCD") > results.mean(than)).all()
        return Verdict(holds, f"by the means; on {int(worse.sum())} of {worse.size} single sets: {by_name}")

    return judge


_below_full_span = claim("BM-PCD is less accurate than FL", "TA22 section 3.6", trials=1)(_less_accurate("FL"))
_below_integration = claim("BM-PCD is less accurate than BM-DI", "TA22 section 3.6", trials=30)(_less_accurate("DI"))


@claim("more so, in proportion, where the machine comes close to the truth", "TA22 section 3.6", trials=30)
def _noticeable_when_close(results: Results) -> Verdict:
    ratio, close = (results["PCD"] / results["DI"]).ravel(), results["DI"].ravel()
    order = np.argsort(close)
    near, far = ratio[order[: order.size // 2]].mean(), ratio[order[order.size // 2 :]].mean()
    return Verdict(near > far, f"BM-PCD over BM-DI {near:.3g} in the half that is closer, {far:.3g} in the other")
