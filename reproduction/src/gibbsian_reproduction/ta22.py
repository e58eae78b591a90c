"""Takabatake and Akaho 2022: the full-span log-linear model beside pairwise Boltzmann machines on six data sets."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from gibbsian.models import SpanBasis, Variables
from gibbsian_reproduction.drawing import ABOVE, Axes, Figure, label_axes, legend, lines, method_style, panels
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Series, Trial, Verdict, claim
from gibbsian_reproduction.ta22_data import TA22_NAMES, TrueSample, make_ta22, network_probabilities
from gibbsian_reproduction.ta22_methods import METHODS, OURS, Fitted, fit_counted, integrate_counted
from gibbsian_reproduction.tables import Table, with_stderr
from gibbsian_reproduction.verdicts import in_every_trial

LABELS = {model: f"{model} (ours)" if model in OURS else model for model in METHODS}
FL, BM_DI, BM_PCD, NEWTON = range(4)
ISING = [TA22_NAMES.index(name) for name in ("Ising5x4S", "Ising5x4L")]
NETWORKS = [i for i in range(len(TA22_NAMES)) if i not in ISING]
LARGE_NETWORKS = [i for i in NETWORKS if TA22_NAMES[i].endswith("L")]
SOURCE = "TA22 section 3.6"


# -- Table 1 and the figures drawn from it --------------------------------------------------------------------------
@EXPERIMENTS.register("ta22-table1")
def table_1() -> Experiment:
    """Return TA22 Table 1: divergences, functions and times of FL, BM-DI and BM-PCD on six data sets."""
    claims = (_no_overfitting, _fewer_functions, _grows_with_data)
    return _of_table_1("Table 1", "FL, BM-DI and BM-PCD on six data sets", panels(_accuracy_by_time), claims)


@EXPERIMENTS.register("ta22-fig3")
def figure_3() -> Experiment:
    """Return TA22 figure 3: the divergence from the true distribution."""
    claims = (
        _ising_alike,
        _full_span_wins,
        _pcd_error_remains,
        _improves_with_data,
        _machines_cannot_fit,
        _newton_not_worse,
    )
    draw = panels(partial(_bars, "true divergence", "KL(p* || p), nats"))
    return _of_table_1("Fig. 3", "accuracy of the models on six data sets", draw, claims)


@EXPERIMENTS.register("ta22-fig4")
def figure_4() -> Experiment:
    """Return TA22 figure 4: the processor time of learning."""
    claims = (_pcd_fastest, _full_span_before_integration, _pcd_constant, _slowest_is_the_largest, _within_a_minute)
    draw = panels(partial(_bars, "seconds", "processor seconds"))
    return _of_table_1("Fig. 4", "time to learn six data sets", draw, claims)


def _of_table_1(
    item: str, title: str, draw: Callable[[Results, Figure], None], claims: tuple[Claim, ...]
) -> Experiment:
    return Experiment(
        "TA22",
        item,
        title,
        _trial,
        (_table,),
        draw,
        claims,
        size=(6.4, 3.6),
        trials_of=lambda asked: math.ceil(asked / 50),
        scale="one set of random networks and rows for every 50 trials asked",
        timed=True,
        shares="" if item == "Table 1" else "ta22-table1",
    )


def _trial(rng: np.random.Generator) -> Trial:
    """Draw new networks and rows, and learn all six data sets with every method."""
    seed = int(rng.integers(2**31))
    shape = (len(TA22_NAMES), len(METHODS))
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


def _table(results: Results) -> Table:
    columns = {"data": np.repeat(TA22_NAMES, len(METHODS)), "model": list(LABELS.values()) * len(TA22_NAMES)}
    for name, values in results.values.items():
        flat = values.reshape(len(values), -1)
        columns |= with_stderr(name, flat)
        columns |= {f"{name} least": flat.min(axis=0), f"{name} most": flat.max(axis=0)}
    note = "nats; processor seconds; mean, standard error, least and most over random networks and rows"
    return Table("table 1", columns, note)


def _bars(name: str, y_label: str, axes: Axes, results: Results) -> None:
    """Draw one quantity as bars by data set and model, on a logarithmic scale."""
    places, width = np.arange(len(TA22_NAMES)), 0.8 / len(METHODS)
    for j, (model, label) in enumerate(LABELS.items()):
        shift = (j - 0.5 * (len(METHODS) - 1)) * width
        error = np.nan_to_num(results.stderr(name)[:, j])
        look = {"color": method_style(model)["color"]}
        if model in OURS:
            look = {"color": "white", "edgecolor": look["color"], "hatch": "///"}
        axes.bar(places + shift, results.mean(name)[:, j], width, yerr=error, label=label, capsize=1.5, **look)
    label_axes(axes, "", y_label, log="y")
    axes.set_xticks(places, TA22_NAMES, fontsize=8)
    legend(axes, **ABOVE)


def _accuracy_by_time(axes: Axes, results: Results) -> None:
    for j, (model, label) in enumerate(LABELS.items()):
        x, y = results.mean("seconds")[:, j], results.mean("true divergence")[:, j]
        axes.scatter(x, y, label=label, s=22, **method_style(model))
    label_axes(axes, "processor seconds", "KL(p* || p), nats")
    legend(axes, **ABOVE)


def _range(values: np.ndarray, digits: int = 3) -> str:
    return f"{values.min():.{digits}g} to {values.max():.{digits}g}"


@claim("FL and the machines are alike on the Ising data, which all can represent", SOURCE, trials=2)
def _ising_alike(results: Results) -> Verdict:
    apart = np.abs(results["true divergence"][:, ISING, FL] - results["true divergence"][:, ISING, BM_DI])
    return in_every_trial(apart < 0.15, f"{_range(apart)} nats apart, counted as alike below 0.15")


@claim("KL(p_d || p) far above KL(p* || p) on the Ising data: no overfitting", SOURCE, trials=1)
def _no_overfitting(results: Results) -> Verdict:
    ratio = (results["data divergence"] / results["true divergence"])[:, ISING, FL]
    return in_every_trial(ratio > 10, f"KL(p_d || p) is {_range(ratio)} times KL(p* || p)")


@claim("FL uses fewer functions than the machines on the Ising data", SOURCE, trials=1)
def _fewer_functions(results: Results) -> Verdict:
    used = results["functions"][:, ISING, FL]
    return in_every_trial(used < results["functions"][:, ISING, BM_DI], f"FL uses {_range(used)}, the machines 210")


@claim("error remains in BM-PCD even with many rows", SOURCE, trials=1)
def _pcd_error_remains(results: Results) -> Verdict:
    ratio = (results["true divergence"][:, :, BM_PCD] / results["true divergence"][:, :, BM_DI])[:, ISING[1]]
    return in_every_trial(ratio > 3, f"on Ising5x4L {_range(ratio)} times BM-DI's")


@claim("FL outperforms both machines on the Bayesian networks", SOURCE, trials=1)
def _full_span_wins(results: Results) -> Verdict:
    true = results["true divergence"][:, NETWORKS]
    ratio = true[:, :, FL] / np.minimum(true[:, :, BM_DI], true[:, :, BM_PCD])
    return in_every_trial(ratio < 1, f"FL's divergence is {_range(ratio)} times the better machine's")


@claim("FL chooses more functions as the rows increase", SOURCE, trials=1)
def _grows_with_data(results: Results) -> Verdict:
    used = results["functions"][:, NETWORKS, FL]
    few, many = used[:, ::2], used[:, 1::2]
    return in_every_trial(many > few, f"{_range(few)} with 1,000 rows, {_range(many)} with 100,000")


@claim("FL becomes remarkably more accurate with more rows", SOURCE, trials=1)
def _improves_with_data(results: Results) -> Verdict:
    true = results["true divergence"][:, NETWORKS, FL]
    ratio = true[:, 1::2] / true[:, ::2]
    return in_every_trial(ratio < 0.5, f"divergence with 100,000 rows is {_range(ratio)} times that with 1,000")


@claim("the machines cannot fit the networks even with many rows", SOURCE, trials=1)
def _machines_cannot_fit(results: Results) -> Verdict:
    true = results["true divergence"][:, LARGE_NETWORKS]
    ratio = true[:, :, BM_DI] / true[:, :, FL]
    return in_every_trial(ratio > 5, f"with 100,000 rows BM-DI's divergence is {_range(ratio)} times FL's")


@claim("FL with re-fits is nearer the truth than FL on every data set", SOURCE, trials=4, ours=True)
def _newton_not_worse(results: Results) -> Verdict:
    true = results.mean("true divergence")
    better = int((true[:, NEWTON] <= true[:, FL]).sum())
    ratio = true[:, NEWTON] / true[:, FL]
    return Verdict(better == len(true), f"{better} of {len(true)} data sets in the mean; ratio {_range(ratio)}")


@claim("BM-PCD is the fastest", SOURCE, trials=4)
def _pcd_fastest(results: Results) -> Verdict:
    mean = results.mean("seconds")[:, :NEWTON]
    first = int((mean.argmin(axis=1) == BM_PCD).sum())
    times = ", ".join(f"{model} {_range(mean[:, j], 2)} s" for j, model in enumerate(list(METHODS)[:NEWTON]))
    return Verdict(first == len(mean), f"first on {first} of {len(mean)} data sets, by our programs; {times}")


@claim("FL is faster than BM-DI on five of six data sets", SOURCE, trials=4)
def _full_span_before_integration(results: Results) -> Verdict:
    mean = results.mean("seconds")
    won = int((mean[:, FL] < mean[:, BM_DI]).sum())
    return Verdict(won >= 5, f"on {won} of {len(mean)}; our BM-DI takes Newton steps on the dual table, theirs BFGS")


@claim("the learning time of BM-PCD is constant", SOURCE, trials=4)
def _pcd_constant(results: Results) -> Verdict:
    mean = results.mean("seconds")[:, BM_PCD]
    return Verdict(mean.max() < 1.5 * mean.min(), f"{_range(mean, 3)} s")


@claim("FL takes longest on BN20-54L, where it uses most functions", SOURCE, trials=4)
def _slowest_is_the_largest(results: Results) -> Verdict:
    mean, used = results.mean("seconds")[:, FL], results.mean("functions")[:, FL]
    longest, most = TA22_NAMES[int(mean.argmax())], TA22_NAMES[int(used.argmax())]
    return Verdict(longest == most == "BN20-54L", f"longest on {longest}, most functions on {most} ({used.max():.0f})")


@claim("FL learns 20 binary variables within a minute", "TA22 section 5", trials=1)
def _within_a_minute(results: Results) -> Verdict:
    seconds = results["seconds"][:, :, FL]
    return in_every_trial(seconds < 60, f"{_range(seconds, 2)} s")


# -- Theorem 3, on networks small enough for many repeats -------------------------------------------------------------
N_VARIABLES, N_PARENTS = 10, 3
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
# The theorem is about the limit of many steps; what steps worth less than this would add is far below the errors shown.
TOLERANCE = 1e-7
COMPARED: dict[str, Callable[[np.ndarray, np.ndarray], Fitted]] = {
    "FL": partial(fit_counted, algorithm="greedy", tol=TOLERANCE),
    "FL newton": partial(fit_counted, algorithm="newton", tol=TOLERANCE),
    "BM-DI": integrate_counted,
}


@EXPERIMENTS.register("ta22-theorem3")
def theorem_3() -> Experiment:
    """Return TA22 theorem 3 measured: the full-span model tends to the true distribution as rows are added."""
    series = [Series("divergence", model, model in OURS, model, (slice(None), j)) for j, model in enumerate(COMPARED)]
    return Experiment(
        "TA22",
        "Theorem 3",
        "the full-span model tends to the truth as the number of rows grows",
        _theorem_trial,
        (_table_of_sizes,),
        panels(lines(SIZES, series, "N", "KL(p* || p), nats")),
        (_converges, _levels_off),
        trials_of=lambda asked: math.ceil(asked / 4),
        scale="one random network for every 4 trials asked",
    )


def _theorem_trial(rng: np.random.Generator) -> Trial:
    """Draw one network and ever more rows of it, each more than all before."""
    probabilities = network_probabilities(N_PARENTS, rng, N_VARIABLES)
    digits = SpanBasis(Variables.binary(N_VARIABLES)).digits(np.arange(probabilities.size)).astype(np.int8)
    truth = TrueSample("network", digits[:0], probabilities)
    counts, before = np.zeros(probabilities.size, np.int64), 0
    found = []
    for n_rows in SIZES:
        counts += rng.multinomial(n_rows - before, probabilities)
        before = n_rows
        seen = counts > 0
        found.append([fit(digits[seen], counts[seen]) for fit in COMPARED.values()])
    return {
        "divergence": np.array([[truth.divergence(fitted.probabilities) for fitted in row] for row in found]),
        "functions": np.array([[fitted.n_functions for fitted in row] for row in found]),
    }


def _table_of_sizes(results: Results) -> Table:
    columns: dict[str, object] = {"N": SIZES}
    for j, model in enumerate(COMPARED):
        columns |= with_stderr(LABELS[model], results["divergence"][:, :, j])
        columns[f"{LABELS[model]} functions"] = results.mean("functions")[:, j]
    note = f"KL(p* || p) in nats; networks of {N_VARIABLES} nodes with {N_PARENTS} parents each"
    return Table("divergence by number of rows", columns, note)


@claim("FL's divergence from the true distribution tends to zero as N grows", "TA22 theorem 3", trials=4)
def _converges(results: Results) -> Verdict:
    values, mean = results["divergence"][:, :, 0], results.mean("divergence")[:, 0]
    falls = (np.diff(values, axis=1) < 0).all(axis=1) & (values[:, -1] < 0.01 * values[:, 0])
    return Verdict(
        (np.diff(mean) < 0).all() and mean[-1] < 0.01 * mean[0],
        f"from {mean[0]:.3g} at N = {SIZES[0]:,} to {mean[-1]:.2g} at N = {SIZES[-1]:,}; "
        f"falling at every N and to under a hundredth in {int(falls.sum())} of {len(falls)} trials",
    )


@claim("a pairwise machine's does not, however many the rows", "TA22 section 4", trials=4)
def _levels_off(results: Results) -> Verdict:
    before, last = results["divergence"][:, -2:, 2].T
    stays = last > 0.8 * before
    numbers = f"{before.mean():.3g} and {last.mean():.3g} at the two largest N"
    return Verdict(last.mean() > 0.8 * before.mean(), f"{numbers}; {int(stays.sum())} of {len(stays)} trials")
