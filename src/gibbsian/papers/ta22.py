"""Takabatake and Akaho 2022: the full-span log-linear model beside pairwise Boltzmann machines on six data sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.datasets.ta22 import TA22_NAMES, TrueSample, make_ta22, network_probabilities
from gibbsian.models import SpanBasis
from gibbsian.papers.drawing import curve, legend, log_axes, method_style
from gibbsian.papers.experiment import EXPERIMENTS, Claim, Experiment, Results, Table, Trial, Verdict
from gibbsian.papers.ta22_methods import METHODS, OURS, Fitted, fit_counted, integrate_counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MODELS = tuple(METHODS)
FL, BM_DI, BM_PCD, NEWTON = range(4)
ISING = [TA22_NAMES.index(name) for name in ("Ising5x4S", "Ising5x4L")]
NETWORKS = [i for i in range(len(TA22_NAMES)) if i not in ISING]
SMALL = [i for i, name in enumerate(TA22_NAMES) if name.endswith("S")]
LARGE = [i for i, name in enumerate(TA22_NAMES) if name.endswith("L")]
SOURCE = "TA22 section 3.6"

# Theorem 3 on networks small enough for many repeats.
THEOREM_VARIABLES, THEOREM_PARENTS = 10, 3
THEOREM_ROWS = (100, 1_000, 10_000, 100_000, 1_000_000)
# The theorem is about the limit of many steps; what steps worth less than this would add is far below the errors shown.
THEOREM_TOLERANCE = 1e-7
THEOREM_MODELS: dict[str, Callable[[np.ndarray, np.ndarray], Fitted]] = {
    "FL": partial(fit_counted, algorithm="greedy", tol=THEOREM_TOLERANCE),
    "FL newton": partial(fit_counted, algorithm="newton", tol=THEOREM_TOLERANCE),
    "BM-DI": integrate_counted,
}


def _networks(asked: int) -> int:
    return math.ceil(asked / 50)


# -- Table 1 and the figures drawn from it --------------------------------------------------------------------------
def _table_1_trial(rng: np.random.Generator) -> Trial:
    """Draw new networks and rows, and learn all six data sets with every method."""
    seed = int(rng.integers(2**31))
    shape = (len(TA22_NAMES), len(MODELS))
    found = {name: np.empty(shape) for name in ("data divergence", "true divergence", "functions", "seconds")}
    for i, name in enumerate(TA22_NAMES):
        sample = make_ta22(name, seed)
        for j, method in enumerate(METHODS.values()):
            fitted = method(sample, seed)
            found["data divergence"][i, j] = sample.empirical_divergence(fitted.probabilities)
            found["true divergence"][i, j] = sample.divergence(fitted.probabilities)
            found["functions"][i, j] = fitted.n_functions
            found["seconds"][i, j] = fitted.seconds
    return found


def _table_1(results: Results) -> list[Table]:
    import pandas as pd

    rows = []
    for i, data in enumerate(TA22_NAMES):
        for j, model in enumerate(MODELS):
            row: dict[str, object] = {"data": data, "model": f"{model} (ours)" if model in OURS else model}
            for name in results.values:
                values = results[name][:, i, j]
                row[name] = values.mean()
                row[f"{name} stderr"] = results.stderr(name)[i, j]
                row[f"{name} least"], row[f"{name} most"] = values.min(), values.max()
            rows.append(row)
    note = "nats; processor seconds; mean, standard error, least and most over random networks and rows"
    return [Table("table 1", pd.DataFrame(rows), note)]


def _bars(name: str, label: str) -> Callable[[Results, Figure], None]:
    """Return what draws one quantity as bars by data set and model, on a logarithmic scale."""

    def draw(results: Results, figure: Figure) -> None:
        axes = figure.subplots()
        places, width = np.arange(len(TA22_NAMES)), 0.8 / len(MODELS)
        for j, model in enumerate(MODELS):
            shift = (j - 0.5 * (len(MODELS) - 1)) * width
            error = np.nan_to_num(results.stderr(name)[:, j])
            look = (
                {"color": "white", "edgecolor": "#009e73", "hatch": "///"}
                if model in OURS
                else {"color": method_style(model)["color"]}
            )
            told = f"{model} (ours)" if model in OURS else model
            axes.bar(places + shift, results.mean(name)[:, j], width, yerr=error, label=told, capsize=1.5, **look)
        log_axes(axes, "", label, log_x=False)
        axes.set_xticks(places, TA22_NAMES, rotation=20, fontsize=8)
        legend(axes)

    return draw


def _draw_table_1(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    for j, model in enumerate(MODELS):
        x, y = results.mean("seconds")[:, j], results.mean("true divergence")[:, j]
        style = method_style(model)
        axes.scatter(x, y, label=f"{model} (ours)" if model in OURS else model, s=22, **style)
    log_axes(axes, "processor seconds", "KL(p* || p), nats")
    legend(axes)


def _everywhere(holds: np.ndarray, numbers: str) -> Verdict:
    """A claim about every trial and data set: `holds` has one row for each trial."""
    kept = int(holds.reshape(len(holds), -1).all(axis=1).sum())
    return Verdict(kept == len(holds), f"{kept} of {len(holds)} sets of networks; {numbers}")


def _range(values: np.ndarray, digits: int = 3) -> str:
    return f"{values.min():.{digits}g} to {values.max():.{digits}g}"


def _ising_alike(results: Results) -> Verdict:
    apart = np.abs(results["true divergence"][:, ISING, FL] - results["true divergence"][:, ISING, BM_DI])
    return _everywhere(apart < 0.15, f"{_range(apart)} nats apart, counted as alike below 0.15")


def _no_overfitting(results: Results) -> Verdict:
    ratio = (results["data divergence"] / results["true divergence"])[:, ISING, FL]
    return _everywhere(ratio > 10, f"KL(p_d || p) is {_range(ratio)} times KL(p* || p)")


def _fewer_functions(results: Results) -> Verdict:
    used = results["functions"][:, ISING, FL]
    return _everywhere(used < results["functions"][:, ISING, BM_DI], f"FL uses {_range(used)}, the machines 210")


def _pcd_less_accurate(results: Results) -> Verdict:
    true = results["true divergence"]
    worse = (true[:, :, BM_PCD] > true[:, :, FL]) & (true[:, :, BM_PCD] > true[:, :, BM_DI])
    return _everywhere(worse, f"on {int(worse.sum())} of {worse.size} data sets")


def _pcd_error_remains(results: Results) -> Verdict:
    ratio = (results["true divergence"][:, :, BM_PCD] / results["true divergence"][:, :, BM_DI])[:, ISING[1]]
    return _everywhere(ratio > 3, f"on Ising5x4L {_range(ratio)} times BM-DI's")


def _full_span_wins(results: Results) -> Verdict:
    true = results["true divergence"][:, NETWORKS]
    ratio = true[:, :, FL] / np.minimum(true[:, :, BM_DI], true[:, :, BM_PCD])
    return _everywhere(ratio < 1, f"FL's divergence is {_range(ratio)} times the better machine's")


def _grows_with_data(results: Results) -> Verdict:
    used = results["functions"][:, NETWORKS, FL]
    return _everywhere(
        used[:, 1::2] > used[:, ::2], f"{_range(used[:, ::2])} with 1,000 rows, {_range(used[:, 1::2])} with 100,000"
    )


def _improves_with_data(results: Results) -> Verdict:
    true = results["true divergence"][:, NETWORKS, FL]
    ratio = true[:, 1::2] / true[:, ::2]
    return _everywhere(ratio < 0.5, f"divergence with 100,000 rows is {_range(ratio)} times that with 1,000")


def _machines_cannot_fit(results: Results) -> Verdict:
    true = results["true divergence"][:, [i for i in NETWORKS if i in LARGE]]
    ratio = true[:, :, BM_DI] / true[:, :, FL]
    return _everywhere(ratio > 5, f"with 100,000 rows BM-DI's divergence is {_range(ratio)} times FL's")


def _newton_not_worse(results: Results) -> Verdict:
    true = results.mean("true divergence")
    better = int((true[:, NEWTON] <= true[:, FL]).sum())
    ratio = true[:, NEWTON] / true[:, FL]
    return Verdict(better == len(true), f"{better} of {len(true)} data sets in the mean; ratio {_range(ratio)}")


def _pcd_fastest(results: Results) -> Verdict:
    mean = results.mean("seconds")[:, :NEWTON]
    first = int((mean.argmin(axis=1) == BM_PCD).sum())
    times = ", ".join(f"{model} {_range(mean[:, j], 2)} s" for j, model in enumerate(MODELS[:NEWTON]))
    return Verdict(first == len(mean), f"first on {first} of {len(mean)} data sets; {times}")


def _full_span_before_integration(results: Results) -> Verdict:
    mean = results.mean("seconds")
    won = int((mean[:, FL] < mean[:, BM_DI]).sum())
    return Verdict(won >= 5, f"on {won} of {len(mean)}; our BM-DI takes Newton steps on the dual table, theirs BFGS")


def _pcd_constant(results: Results) -> Verdict:
    mean = results.mean("seconds")[:, BM_PCD]
    return Verdict(bool(mean.max() < 1.5 * mean.min()), f"{_range(mean, 3)} s")


def _slowest_is_the_largest(results: Results) -> Verdict:
    mean, used = results.mean("seconds")[:, FL], results.mean("functions")[:, FL]
    longest, most = TA22_NAMES[int(mean.argmax())], TA22_NAMES[int(used.argmax())]
    return Verdict(longest == most == "BN20-54L", f"longest on {longest}, most functions on {most} ({used.max():.0f})")


def _within_a_minute(results: Results) -> Verdict:
    seconds = results["seconds"][:, :, FL]
    return _everywhere(seconds < 60, f"{_range(seconds, 2)} s")


ACCURACY = (
    Claim("FL and the machines are alike on the Ising data, which all can represent", SOURCE, _ising_alike, 2),
    Claim("FL outperforms both machines on the Bayesian networks", SOURCE, _full_span_wins, 1),
    Claim("BM-PCD is less accurate than FL and than BM-DI", SOURCE, _pcd_less_accurate, 4),
    Claim("error remains in BM-PCD even with many rows", SOURCE, _pcd_error_remains, 1),
    Claim("FL becomes remarkably more accurate with more rows", SOURCE, _improves_with_data, 1),
    Claim("the machines cannot fit the networks even with many rows", SOURCE, _machines_cannot_fit, 1),
    Claim("FL with re-fits is nearer the truth than FL on every data set", SOURCE, _newton_not_worse, 4, ours=True),
)
SELECTION = (
    Claim("KL(p_d || p) far above KL(p* || p) on the Ising data: no overfitting", SOURCE, _no_overfitting, 1),
    Claim("FL uses fewer functions than the machines on the Ising data", SOURCE, _fewer_functions, 1),
    Claim("FL chooses more functions as the rows increase", SOURCE, _grows_with_data, 1),
)
TIMES = (
    Claim("BM-PCD is the fastest", SOURCE, _pcd_fastest, 4),
    Claim("FL is faster than BM-DI on five of six data sets", SOURCE, _full_span_before_integration, 4),
    Claim("the learning time of BM-PCD is constant", SOURCE, _pcd_constant, 4),
    Claim("FL takes longest on BN20-54L, where it uses most functions", SOURCE, _slowest_is_the_largest, 4),
    Claim("FL learns 20 binary variables within a minute", "TA22 section 5", _within_a_minute, 1),
)


def _of_table_1(
    item: str, title: str, draw: Callable[[Results, Figure], None], claims: tuple[Claim, ...]
) -> Experiment:
    return Experiment(
        "TA22",
        item,
        title,
        _table_1_trial,
        _table_1,
        draw,
        claims,
        size=(6.4, 3.6),
        trials_of=_networks,
        scale="one set of random networks and rows for every 50 trials asked",
        timed=True,
        shares="" if item == "Table 1" else "ta22-table1",
    )


@EXPERIMENTS.register("ta22-table1")
def table_1() -> Experiment:
    """Return TA22 Table 1: divergences, functions and times of FL, BM-DI and BM-PCD on six data sets.

    Examples
    --------
    >>> from gibbsian.papers.ta22 import table_1
    >>> table_1().trials_of(200)
    4
    """
    return _of_table_1("Table 1", "FL, BM-DI and BM-PCD on six data sets", _draw_table_1, SELECTION + ACCURACY + TIMES)


@EXPERIMENTS.register("ta22-fig3")
def figure_3() -> Experiment:
    """Return TA22 figure 3: the divergence from the true distribution.

    Examples
    --------
    >>> from gibbsian.papers.ta22 import figure_3
    >>> figure_3().shares
    'ta22-table1'
    """
    draw = _bars("true divergence", "KL(p* || p), nats")
    return _of_table_1("Fig. 3", "accuracy of the models on six data sets", draw, ACCURACY)


@EXPERIMENTS.register("ta22-fig4")
def figure_4() -> Experiment:
    """Return TA22 figure 4: the processor time of learning.

    Examples
    --------
    >>> from gibbsian.papers.ta22 import figure_4
    >>> figure_4().timed
    True
    """
    return _of_table_1("Fig. 4", "time to learn six data sets", _bars("seconds", "processor seconds"), TIMES)


# -- Theorem 3 --------------------------------------------------------------------------------------------------------
def _theorem_3_trial(rng: np.random.Generator) -> Trial:
    """Draw one network and ever more rows of it, each more than all before."""
    probabilities = network_probabilities(THEOREM_PARENTS, rng, THEOREM_VARIABLES)
    digits = SpanBasis((2,) * THEOREM_VARIABLES).digits(np.arange(probabilities.size)).astype(np.int8)
    truth = TrueSample("network", digits[:0], probabilities)
    counts, before = np.zeros(probabilities.size, np.int64), 0
    found = []
    for n_rows in THEOREM_ROWS:
        counts += rng.multinomial(n_rows - before, probabilities)
        before = n_rows
        seen = counts > 0
        found.append([fit(digits[seen], counts[seen]) for fit in THEOREM_MODELS.values()])
    return {
        "divergence": np.array([[truth.divergence(fitted.probabilities) for fitted in row] for row in found]),
        "functions": np.array([[fitted.n_functions for fitted in row] for row in found]),
    }


def _theorem_3_tables(results: Results) -> list[Table]:
    import pandas as pd

    columns: dict[str, object] = {"N": THEOREM_ROWS}
    for j, model in enumerate(THEOREM_MODELS):
        told = f"{model} (ours)" if model in OURS else model
        columns[told] = results.mean("divergence")[:, j]
        columns[f"{told} stderr"] = results.stderr("divergence")[:, j]
        columns[f"{told} functions"] = results.mean("functions")[:, j]
    note = f"KL(p* || p) in nats; networks of {THEOREM_VARIABLES} nodes with {THEOREM_PARENTS} parents each"
    return [Table("divergence by number of rows", pd.DataFrame(columns), note)]


def _draw_theorem_3(results: Results, figure: Figure) -> None:
    axes = figure.subplots()
    mean, stderr = results.mean("divergence"), results.stderr("divergence")
    for j, model in enumerate(THEOREM_MODELS):
        curve(axes, THEOREM_ROWS, mean[:, j], stderr[:, j], model, ours=model in OURS)
    log_axes(axes, "N", "KL(p* || p), nats")
    legend(axes)


def _converges(results: Results) -> Verdict:
    values = results["divergence"][:, :, 0]
    falls = (np.diff(values, axis=1) < 0).all(axis=1) & (values[:, -1] < 0.01 * values[:, 0])
    mean = results.mean("divergence")[:, 0]
    return Verdict(
        bool((np.diff(mean) < 0).all() and mean[-1] < 0.01 * mean[0]),
        f"from {mean[0]:.3g} at N = {THEOREM_ROWS[0]:,} to {mean[-1]:.2g} at N = {THEOREM_ROWS[-1]:,}; "
        f"falling at every N and to under a hundredth in {int(falls.sum())} of {len(falls)} trials",
    )


def _levels_off(results: Results) -> Verdict:
    last = results["divergence"][:, -2:, 2]
    stays = last[:, 1] > 0.8 * last[:, 0]
    mean = results.mean("divergence")[-2:, 2]
    return Verdict(
        bool(mean[1] > 0.8 * mean[0]),
        f"{mean[0]:.3g} and {mean[1]:.3g} at the two largest N; {int(stays.sum())} of {len(stays)} trials",
    )


@EXPERIMENTS.register("ta22-theorem3")
def theorem_3() -> Experiment:
    """Return TA22 theorem 3 measured: the full-span model tends to the true distribution as rows are added.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.ta22 import theorem_3
    >>> theorem_3().trial(np.random.default_rng(0))["divergence"].shape
    (5, 3)
    """
    return Experiment(
        "TA22",
        "Theorem 3",
        "the full-span model tends to the truth as the number of rows grows",
        _theorem_3_trial,
        _theorem_3_tables,
        _draw_theorem_3,
        (
            Claim(
                "FL's divergence from the true distribution tends to zero as N grows", "TA22 theorem 3", _converges, 4
            ),
            Claim("a pairwise machine's does not, however many the rows", "TA22 section 4", _levels_off, 4),
        ),
        trials_of=lambda asked: math.ceil(asked / 4),
        scale="one random network for every 4 trials asked",
    )
