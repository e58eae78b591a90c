"""Small fits whose answers are frozen in frozen.json, so that a change of the library cannot change them unseen.

Every entry makes its data with NumPy alone, fits with a fixed seed and returns a flat dictionary of numbers and arrays.
All names of the library stand in the first part of this file: after a change of names only that part is edited.

    python tests/golden/frozen_fits.py [name ...]            # run, print seconds
    python tests/golden/frozen_fits.py --write [name ...]    # store the answers
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

import gibbsian as gb

STORED = Path(__file__).with_name("frozen.json")
SEED = 7  # random_state of every fit
WHOLE = 60  # parameters up to this number are stored whole
# Deterministic fits are taken further than by default, so that the last bits of a sum matter less.
TIGHT = {"tol": 1e-8}

Answers = dict[str, Any]


# == names of the library =============================================================================================
KINDS = {
    "pairwise": "BoltzmannMachine",
    "higher-order": "HigherOrderBoltzmannMachine",
    "potts": "PottsMachine",
    "hidden": "HiddenBoltzmannMachine",
    "restricted": "RestrictedBoltzmannMachine",
    "belief-network": "DeepBeliefNetwork",
    "deep": "DeepBoltzmannMachine",
    "full-span": "FullSpan",
    "k-means": "HardKMeans",
    "online-k-means": "OnlineKMeans",
    "soft-k-means": "SoftKMeans",
    "gaussians": "GaussianMixture",
    "von-mises-fisher": "VonMisesFisherMixture",
    "machine-mixture": "MachineMixture",
}
# (kind, argument as written in this file) -> what the library calls it now
# what belongs to the learner of a machine of layers
MINIBATCH = ("n_iter", "free_phase", "n_steps", "n_chains", "learning_rate", "batch_size", "schedule", "momentum",
             "centred", "l1", "l2", "dtype")  # fmt: skip
ARGUMENTS: dict[tuple[str, str], str] = {
    **{(kind, "held_out"): "validation_fraction" for kind in KINDS},
    ("hidden", "n_hidden"): "n_components",
    ("full-span", "epsilon"): "tol",
}


def build(kind: str, **settings: Any) -> Any:
    """Return an estimator that is not fitted."""
    named = {ARGUMENTS.get((kind, name), name): value for name, value in settings.items()}
    if "values" in named:
        named["coding"] = gb.data.Values(named.pop("values"))
    if kind == "potts":
        named = {"learner": "mple", **named}
    if "clamped" in named:
        inner = {name: named.pop(name) for name in ("clamped", "l1", "l2") if name in named}
        named["learner"] = learner(named["learner"], **inner)
    if kind in ("restricted", "belief-network", "deep"):
        named = layered(kind, named)
    return getattr(gb, KINDS[kind])(**{"random_state": SEED, **named})


def layered(kind: str, named: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a machine of layers: those of learning by minibatches belong to its learner."""
    stages = {name: named.pop(name) for name in ("pretrain", "carried") if name in named}
    inner = {name: named.pop(name) for name in list(named) if name in MINIBATCH}
    if isinstance(inner.get("free_phase", "pcd"), str) and inner.get("free_phase") != "cd":
        inner = {"n_chains": 100, **inner}  # the default when the answers were frozen
    epochs = inner.pop("n_iter", 10)
    by_minibatches = gb.learners.Minibatch(max_iter=epochs, **inner)
    if kind != "restricted" and stages.get("pretrain") != 0:
        alone = gb.learners.Minibatch(max_iter=stages.get("pretrain", epochs), **inner)
        carried = {name: value for name, value in stages.items() if name == "carried"}
        by_minibatches = gb.learners.Stacking(alone=alone, together=by_minibatches, **carried)
    return {**named, "learner": by_minibatches}


def learner(name: str, **settings: Any) -> Any:
    """Return a learner with settings of its own; those of chains as they were when the answers were frozen."""
    if name in ("cd", "pcd", "smci-pcd"):
        decay = gb.optimizers.Decay(power=0.75, delay=100)
        settings = {"optimizer": gb.optimizers.Adam(learning_rate=0.05, decay=decay), "min_iter": 10**6, **settings}
    return gb.learners.as_learner(name, **settings)


def free_phase(name: str, **settings: Any) -> Any:
    """Return a free phase of a restricted machine with settings of its own."""
    return gb.expectations.FREE_PHASES.create(name, **settings)


def open_stream(path: Path) -> Any:
    """Return rows that stay on disk."""
    return gb.data.DataStream.open(path)


def train_tables(name: str, cliques: list[tuple[int, ...]], rows: np.ndarray, **limits: Any) -> Any:
    """Learn a Markov random field of tables, which has no estimator; return the result of the fit."""
    data = gb.Dataset.read(rows, coding="categorical")
    model = gb.MarkovRandomField.on_cliques(cliques, data.n_variables, data.domain)
    return gb.learners.run(learner(name, l2=0.01), model, data, np.random.default_rng(SEED), **limits)


def exact_log_partition(model: Any) -> float:
    """Return log Z of any small model."""
    return gb.inference.exact(model).log_partition()


def structure(rows: np.ndarray, method: str, **settings: Any) -> tuple[np.ndarray, Any]:
    """Return the edges that a method finds, and the machine that is fitted on them."""
    found = gb.structure.learn_structure(rows, method=method, **settings)
    return found.graph.edges, found.machine


def errors_of(machine: Any, rows: np.ndarray, kind: str) -> np.ndarray:
    """Return the standard errors of the parameters."""
    return gb.uncertainty.standard_errors(machine, rows, kind).theta_se


def bootstrap_errors(machine: Any, rows: np.ndarray, n_replicates: int) -> np.ndarray:
    """Return the standard errors by refits."""
    return gb.uncertainty.bootstrap(machine, rows, n_replicates, random_state=SEED).theta_se


def span_learner(algorithm: str = "greedy", **settings: Any) -> Any:
    """Return a learner of the full-span model."""
    named = {{"epsilon": "tol"}.get(name, name): value for name, value in settings.items()}
    return learner(f"span-{algorithm}", **named)


def span_run(what: Any, rows: np.ndarray, random_state: Any = SEED, n_hidden: int = 0, max_iter: int = 100_000) -> Any:
    """Run a learner of the full-span model of two-valued columns, with so many two-valued hidden variables."""
    data = gb.Dataset.read(rows)
    model = gb.FullSpanModel.build((2,) * (data.n_variables + n_hidden), n_hidden=n_hidden)
    return gb.learners.run(what, model, data, random_state, max_iter=max_iter)


def bic_by_components(estimator: Any, rows: np.ndarray, numbers: list[int]) -> Any:
    """Fit a mixture with several numbers of classes."""
    fits = [clone(estimator).set_params(n_components=number).fit(rows) for number in numbers]
    return np.array([mixture.bic(rows) for mixture in fits])


# -- answers of a fitted estimator ------------------------------------------------------------------------------------
def theta_of(machine: Any) -> np.ndarray:
    """Return the parameters of a machine."""
    return machine.model_.theta


def story(machine: Any) -> Answers:
    """Return how the fit went."""
    result = machine.result_
    return {"n_steps": result.n_steps, "converged": bool(result.converged)}


def last_value(machine: Any) -> float:
    """Return the value of the objective at the end, NaN where the learner knows none."""
    return float(machine.result_.trace.column("value")[-1])


def held_out_score(machine: Any) -> float:
    """Return the score of the rows that a fit did not see."""
    return machine.result_.held_out.score


def interval(found: Any) -> np.ndarray:
    """Return both sides of an interval."""
    return np.array([found.lower, found.upper])


def parameters(theta: np.ndarray, name: str = "theta") -> Answers:
    """Return parameters whole, or some numbers that depend on every one of them where there are many."""
    theta = np.asarray(theta, dtype=float).ravel()
    if theta.size <= WHOLE:
        return {name: theta}
    mixed = np.cos(np.arange(theta.size)) @ theta
    return {
        f"{name}_size": theta.size,
        f"{name}_first": theta[:10],
        f"{name}_last": theta[-10:],
        f"{name}_sums": np.array([theta.sum(), np.abs(theta).sum(), theta @ theta, mixed]),
    }


def numbers(cells: Any) -> np.ndarray:
    """Return cells as numbers; a letter is its code."""
    cells = np.asarray(cells)
    if cells.dtype.kind not in "OUS":
        return cells.astype(float)
    flat = [ord(cell) if isinstance(cell, str) else float(cell) for cell in cells.ravel()]
    return np.array(flat).reshape(cells.shape)


def drawn(rows: Any) -> np.ndarray:
    """Return the means of drawn columns, or how often each value of labelled ones was drawn."""
    rows = np.asarray(rows)
    if rows.dtype.kind not in "OUS":
        return rows.astype(float).mean(axis=0)
    return np.concatenate([np.unique(column.astype(str), return_counts=True)[1] for column in rows.T])


def holes_answers(machine: Any, holes: Any) -> Answers:
    """Return what a machine says about missing cells."""
    if holes is None:
        return {}
    return {
        "holes_score_samples": machine.score_samples(holes),
        "predict_proba": machine.predict_proba(holes),
        "impute": numbers(machine.impute(holes)),
    }


def visible_answers(machine: Any, rows: Any, holes: Any = None) -> Answers:
    """Return the common answers of a machine whose columns are all its variables."""
    return {
        **parameters(theta_of(machine)),
        **story(machine),
        "value": last_value(machine),
        "score": machine.score(rows[:20]),
        "score_samples": machine.score_samples(rows[:5]),
        "pseudo_score": machine.pseudo_score(rows[:20]),
        "log_partition": machine.log_partition(),
        "expected": machine.expect().mean[:30],
        "drawn": drawn(machine.sample(200, random_state=11)),
        **holes_answers(machine, holes),
    }


def hidden_answers(machine: Any, rows: Any, holes: Any = None) -> Answers:
    """Return the common answers of a machine with hidden units on a graph."""
    return {
        **visible_answers(machine, rows, holes),
        "transform": machine.transform(rows[:3]),
        "free_energy": machine.free_energy(rows[:3]),
        "free_energy_mean_field": machine.free_energy(rows[:3], "mean-field"),
    }


def restricted_answers(machine: Any, rows: Any, holes: Any = None) -> Answers:
    """Return the common answers of a restricted machine."""
    found = {
        **parameters(theta_of(machine)),
        **story(machine),
        **{f"history_{name}": values[-1] for name, values in machine.history_.items()},
        "score": machine.score(rows[:20]),
        "score_samples": machine.score_samples(rows[:5]),
        "log_partition": machine.log_partition(),
        "free_energy": machine.free_energy(rows[:3]),
        "transform": machine.transform(rows[:3]),
        "reconstruct": machine.reconstruct(rows[:2]),
        "gibbs": drawn(machine.gibbs(rows[:100], n_steps=2, random_state=12)),
        "drawn": drawn(machine.sample(200, random_state=11)),
        "drawn_by_chains": drawn(machine.sample(200, method="gibbs", n_steps=20, random_state=11)),
        **holes_answers(machine, holes),
    }
    if holes is not None:
        found["holes_transform"] = machine.transform(holes)
    return found


def deep_answers(machine: Any, rows: Any, holes: Any = None) -> Answers:
    """Return the common answers of a machine of several hidden layers."""
    return {
        **parameters(theta_of(machine)),
        **story(machine),
        "score": machine.score(rows[:20]),
        "score_samples": machine.score_samples(rows[:5]),
        "log_partition": machine.log_partition(),
        "log_likelihood": machine.log_likelihood(rows[:10]).lower,
        **{f"transform_{number}": part for number, part in enumerate(machine.transform_layers(rows[:3]))},
        "drawn": drawn(machine.sample(200, random_state=11)),
        "drawn_by_chains": drawn(machine.sample(200, method="gibbs", n_steps=20, random_state=11)),
        **holes_answers(machine, holes),
    }


def span_answers(machine: Any, rows: Any, holes: Any = None) -> Answers:
    """Return the common answers of a full-span model."""
    order = np.argsort(machine.model_.indices)
    table = machine.basis_
    return {
        **parameters(machine.model_.theta[order]),
        **parameters(machine.model_.indices[order], "functions"),
        **{f"basis_{name}": table[name].to_numpy()[:8] for name in ("order", "dual", "data_dual", "gain", "penalty")},
        **story(machine),
        "cost": machine.cost_,
        "divergence": machine.divergence_,
        "score": machine.score(rows[:20]),
        "score_samples": machine.score_samples(rows[:5]),
        "pseudo_score": machine.pseudo_score(rows[:20]),
        "log_partition": machine.log_partition(),
        "entropy": float(machine.entropy()),
        "most_probable": machine.most_probable(n_states=3).probabilities,
        "drawn": drawn(machine.sample(200, random_state=11)),
        **holes_answers(machine, holes),
    }


def law_answers(law: Any, states: np.ndarray) -> Answers:
    """Return the answers of averages and hidden fits of the full-span model."""
    table = law.probabilities()
    return {
        "log_probabilities": law.log_probabilities(states[:6]),
        "table_first": table[:10],
        "table_sums": np.array([table.sum(), table @ table, table @ np.cos(np.arange(table.size))]),
    }


def cluster_answers(clusters: Any, rows: np.ndarray) -> Answers:
    """Return the answers of a clustering into means."""
    return {
        "means": clusters.means_,
        "labels": clusters.labels_[:30],
        "energy": clusters.energy_,
        "energies": clusters.free_energies_[-3:],
        "predict": clusters.predict(rows[:10]),
        "score": 20 * clusters.score(rows[:20]),
        "n_steps": clusters.n_iter_,
        "converged": bool(clusters.converged_),
    }


def mixture_answers(mixture: Any, rows: Any, *parts: str) -> Answers:
    """Return the answers of a mixture; `parts` are its parameters besides the weights."""
    points, classes = mixture.sample(200, random_state=11, return_hidden=True)
    return {
        "weights": mixture.weights_,
        **{part: getattr(mixture, part + "_") for part in parts},
        "labels": mixture.labels_[:30],
        "free_energies": mixture.free_energies_[-3:],
        "predict_proba": mixture.predict_proba(rows[:5]),
        "score": mixture.score(rows[:20]),
        "score_samples": mixture.score_samples(rows[:5]),
        "bic": mixture.bic(rows),
        "aic": mixture.aic(rows),
        "drawn": drawn(points),
        "drawn_classes": np.bincount(classes),
        "n_steps": mixture.n_iter_,
        "converged": bool(mixture.converged_),
    }


# == the registry =====================================================================================================
@dataclass(frozen=True)
class Fit:
    """A frozen fit, and how near its answers must stay."""

    run: Callable[[], Answers]
    rtol: float = 1e-9
    atol: float = 1e-10
    faster: bool = False


FITS: dict[str, Fit] = {}


def frozen(run: Callable[[], Answers] | None = None, **tolerances: float) -> Any:
    """Enter a function under its own name, where needed with tolerances of its own.

    A fit that is ``faster`` than the frozen one takes another way to the same point: it must come as near to it as its
    own tolerance asks, in no more steps, but for one that a stricter end may take.
    """
    if run is None:
        return lambda function: frozen(function, **tolerances)
    if tolerances.keys() - {"rtol", "atol", "faster"} or run.__name__ in FITS:
        raise ValueError(f"{run.__name__}: give it a name of its own, and rtol, atol or faster at most")
    FITS[run.__name__] = Fit(run, **tolerances)  # type: ignore[arg-type]
    return run


def answers_of(name: str) -> dict[str, np.ndarray]:
    """Run an entry; warnings (most fits are too short to converge) do not matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {key: np.asarray(value, dtype=float) for key, value in FITS[name].run().items()}


def prefixed(prefix: str, answers: Answers) -> Answers:
    """Return answers under longer names, for entries that fit more than one machine."""
    return {f"{prefix}_{key}": value for key, value in answers.items()}


# == data, made by NumPy alone ========================================================================================
def binary(n_rows: int = 120, n_columns: int = 5, seed: int = 1, noise: float = 0.3) -> np.ndarray:
    """Return 0/1 rows: two groups of columns that go together, and a last one near the xor of the first two."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, (n_rows, 2))
    rows = groups[:, np.arange(n_columns) % 2] ^ (rng.random((n_rows, n_columns)) < noise)
    rows[:, -1] = rows[:, 0] ^ rows[:, 1] ^ (rng.random(n_rows) < noise)
    return rows.astype(np.int64)


def spins(n_rows: int = 120, n_columns: int = 5, seed: int = 2, noise: float = 0.3) -> np.ndarray:
    return 2 * binary(n_rows, n_columns, seed, noise) - 1


def categories(n_rows: int = 150, sizes: tuple[int, ...] = (2, 3, 4), seed: int = 3) -> np.ndarray:
    """Return rows of letters; columns go together, and every value occurs."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 12, n_rows)
    codes = [np.where(rng.random(n_rows) < 0.7, classes % q, rng.integers(0, q, n_rows)) for q in sizes]
    return np.array(list("abcdefgh"), dtype=object)[np.column_stack(codes)]


def points(n_rows: int = 120, n_columns: int = 3, seed: int = 4) -> np.ndarray:
    """Return real numbers in three groups."""
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.normal(size=(3, n_columns))
    return centres[rng.integers(0, 3, n_rows)] + rng.normal(size=(n_rows, n_columns))


def pierced(rows: np.ndarray, share: float = 0.1, seed: int = 5) -> np.ndarray:
    """Return rows with holes: NaN among numbers, None among letters; no row is empty."""
    rng = np.random.default_rng(seed)
    missing = rng.random(rows.shape) < share
    missing[:, 0] &= ~missing.all(axis=1)
    holes = rows.astype(object if rows.dtype == object else float)
    holes[missing] = None if rows.dtype == object else np.nan
    return holes


def few_holes(rows: np.ndarray) -> np.ndarray:
    """Return four rows with one, one, two and two cells missing."""
    holes = rows[:4].astype(object if rows.dtype == object else float)
    for row, columns in enumerate(([0], [1], [0, 2], [1, rows.shape[1] - 1])):
        holes[row, columns] = None if rows.dtype == object else np.nan
    return holes


def weights(n_rows: int, seed: int = 6) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 4, n_rows).astype(float)


# == pairwise machines ================================================================================================
@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_mle_spin() -> Answers:
    rows = spins()
    return visible_answers(build("pairwise", learner="mle", **TIGHT).fit(rows), rows, few_holes(rows))


@frozen(rtol=5e-5, atol=5e-5, faster=True)  # a gradient below 1e-6 leaves flat directions that far apart
def pairwise_mle_binary_by_default() -> Answers:
    rows = binary()
    return visible_answers(build("pairwise").fit(rows), rows, few_holes(rows))


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_mle_weights_l2() -> Answers:
    rows = binary(n_columns=6)
    machine = build("pairwise", learner="mle", l2=0.02, **TIGHT).fit(rows, sample_weight=weights(len(rows)))
    return {
        **visible_answers(machine, rows, few_holes(rows)),
        "weighted": machine.score(rows, None, weights(len(rows))),
    }


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_mle_l1() -> Answers:
    rows = spins(n_columns=6)
    machine = build("pairwise", learner="mle", l1=0.05, **TIGHT).fit(rows)
    return {**visible_answers(machine, rows), "zeros": np.count_nonzero(theta_of(machine) == 0)}


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_mle_missing_cells() -> Answers:
    rows = spins()
    return visible_answers(build("pairwise", learner="mle", **TIGHT).fit(pierced(rows)), rows, few_holes(rows))


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_mle_temperature_without_biases() -> Answers:
    rows = spins(n_columns=6)
    machine = build("pairwise", graph="grid:2x3", learner="mle", temperature=2.5, bias=False, **TIGHT)
    return visible_answers(machine.fit(rows), rows, few_holes(rows))


@frozen
def pairwise_mle_newton() -> Answers:
    rows = binary()
    return visible_answers(build("pairwise", learner=learner("mle", optimizer="newton"), **TIGHT).fit(rows), rows)


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_mle_of_a_large_grid() -> Answers:
    rows = spins(n_rows=200, n_columns=24)
    machine = build("pairwise", graph="grid:4x6", learner="mle", l2=0.01, **TIGHT).fit(rows)
    return visible_answers(machine, rows, few_holes(rows))


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_mple_spin() -> Answers:
    rows = spins()
    return visible_answers(build("pairwise", learner="mple", **TIGHT).fit(rows), rows)


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_mple_weights_l1_temperature() -> Answers:
    rows = binary(n_columns=6)
    machine = build("pairwise", learner="mple", l1=0.02, temperature=0.5, **TIGHT)
    return visible_answers(machine.fit(rows, sample_weight=weights(len(rows))), rows)


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_mple_of_a_chain() -> Answers:
    rows = binary(n_rows=400, n_columns=12)
    return visible_answers(build("pairwise", graph="chain", learner="mple", **TIGHT).fit(rows), rows)


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_ratio_matching() -> Answers:
    rows = spins()
    return visible_answers(build("pairwise", learner="rm", **TIGHT).fit(rows), rows)


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_probability_flow() -> Answers:
    rows = binary()
    machine = build("pairwise", learner="mpf", l2=0.01, **TIGHT).fit(rows)
    skipping = build("pairwise", learner=learner("mpf", skip_data=True, l2=0.01), **TIGHT).fit(rows)
    return {**visible_answers(machine, rows), **parameters(theta_of(skipping), "theta_skipping_data")}


@frozen
def pairwise_contrastive_divergence() -> Answers:
    rows = spins()
    machine = build("pairwise", learner=learner("cd", n_steps=2), max_iter=60).fit(rows)
    return visible_answers(machine, rows)


@frozen
def pairwise_pcd_spin() -> Answers:
    rows = spins()
    machine = build("pairwise", learner=learner("pcd", n_chains=100, l2=0.01), max_iter=120).fit(rows)
    return visible_answers(machine, rows)


@frozen
def pairwise_pcd_binary_missing_cells() -> Answers:
    rows = binary()
    chosen = learner("pcd", n_chains=100, clamped="chains", sampler="chromatic")
    return visible_answers(build("pairwise", graph="chain", learner=chosen, max_iter=60).fit(pierced(rows)), rows)


@frozen
def pairwise_pcd_random_scan() -> Answers:
    rows = binary()
    chosen = learner("pcd", n_chains=50, sampler="random-scan", average=False, centred=False, optimizer="ascent")
    return visible_answers(build("pairwise", learner=chosen, max_iter=40).fit(rows), rows)


@frozen
def pairwise_smci_of_forests() -> Answers:
    rows = spins(n_columns=6)
    chosen = learner("smci", region="forest", l2=0.01)
    return visible_answers(build("pairwise", graph="grid:2x3", learner=chosen, **TIGHT).fit(rows), rows)


@frozen
def pairwise_first_order_smci() -> Answers:
    rows = binary(n_rows=300)
    return visible_answers(build("pairwise", graph="chain", learner="smci", **TIGHT).fit(rows), rows)


@frozen
def pairwise_semi_second_order_smci() -> Answers:
    rows = spins(n_rows=300, n_columns=6)
    chosen = learner("smci", region="s2", l2=0.01)
    return visible_answers(build("pairwise", graph="grid:2x3", learner=chosen, **TIGHT).fit(rows), rows)


@frozen
def pairwise_smci_pcd() -> Answers:
    rows = binary()
    chosen = learner("smci-pcd", copies=1, region=2)
    return visible_answers(build("pairwise", graph="chain", learner=chosen, max_iter=50).fit(rows), rows)


@frozen
def pairwise_semi_second_order_smci_pcd() -> Answers:
    rows = spins(n_columns=6)
    chosen = learner("smci-pcd", region="s2", copies=1, l1=0.01)
    return visible_answers(build("pairwise", graph="grid:2x3", learner=chosen, max_iter=50).fit(rows), rows)


@frozen
def pairwise_nodewise() -> Answers:
    """Interaction screening, its logarithm with the theoretical penalty, and one regression for each column."""
    rows = spins(n_rows=300)
    found: Answers = {}
    for name, settings in (("rise", {"l2": 0.01}), ("logrise", {"l1": "theory"}), ("rple", {"l1": 0.02})):
        machine = build("pairwise", learner=learner(name, **settings), **TIGHT).fit(rows)
        found |= prefixed(name, {**parameters(theta_of(machine)), **story(machine), "value": last_value(machine)})
    return {**found, **parameters(theta_of(build("pairwise", learner="rise").fit(binary())), "rise_binary")}


@frozen
def pairwise_closed_forms() -> Answers:
    """Learners that solve equations in one step, in both codings."""
    found: Answers = {}
    for name in ("naive", "tap", "bethe", "independent-pair", "sessak-monasson"):
        for coding, rows in (("spin", spins(n_rows=300)), ("binary", binary(n_rows=300))):
            machine = build("pairwise", learner=learner("mean-field", approximation=name)).fit(rows)
            found |= prefixed(f"{name}_{coding}", {**parameters(theta_of(machine)), "score": machine.score(rows[:20])})
    return found


# iterative: EM extrapolates its last steps by least squares, which enlarges rounding (1e-6 with other BLAS kernels)
@frozen(rtol=1e-6, atol=1e-7)
def pairwise_em_missing_cells() -> Answers:
    rows = binary()
    return visible_answers(build("pairwise", learner="em", l2=0.01, **TIGHT).fit(pierced(rows)), rows, few_holes(rows))


@frozen
def pairwise_online() -> Answers:
    rows = binary(n_rows=400)
    return visible_answers(build("pairwise", learner=learner("online", batch_size=50), max_iter=40).fit(rows), rows)


@frozen
def pairwise_partial_fit() -> Answers:
    rows = spins(n_rows=300)
    machine = build("pairwise", l2=0.01)
    for chunk in np.array_split(rows, 3):
        machine.partial_fit(chunk)
    return visible_answers(machine, rows)


@frozen
def pairwise_stream() -> Answers:
    rows = binary(n_rows=500)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, rows.astype(np.int8))
        machine = build("pairwise", learner="mple", l2=0.01, max_iter=40).fit(open_stream(path))
    return visible_answers(machine, rows)


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_start_and_held_out() -> Answers:
    rows = spins(n_rows=200)
    machine = build("pairwise", learner="mle", start="sessak-monasson", held_out=0.25).fit(rows)
    return {**visible_answers(machine, rows), "held_out": held_out_score(machine)}


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_beyond_exact_sums() -> Answers:
    """A machine too large for log Z: pseudolikelihood, chains, annealing, sampled expectations."""
    rows = spins(n_rows=200, n_columns=36)
    machine = build("pairwise", l2=0.1).fit(rows)
    return {
        **parameters(theta_of(machine)),
        **story(machine),
        "pseudo_score": machine.pseudo_score(rows[:20]),
        "log_partition": interval(machine.log_partition("ais", n_samples=20, betas=50)),
        "score": interval(machine.score_interval(rows[:20], n_samples=20, betas=50, method="ais")),
        "drawn": drawn(machine.sample(100, random_state=11)),
        "expected": machine.expect("monte-carlo", n_samples=200).mean[:36],
        "stderr": machine.expect("monte-carlo", n_samples=200).stderr[:36],
        "predict_proba": machine.predict_proba(few_holes(rows))[:, [0, 1, 2, -1]],
    }


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_expectations() -> Answers:
    """Every registered expectation of one machine, with its standard error."""
    rows = binary(n_columns=6)
    machine = build("pairwise", graph="grid:2x3", learner="mle", l2=0.02).fit(rows)
    found: Answers = {}
    for name in ("exact", "mean-field", "bethe", "monte-carlo", "1-smci", "s2-smci", "2-smci", "forest-smci", "ais"):
        estimate = machine.expect(name, **({} if name in ("exact", "mean-field", "bethe") else {"n_samples": 100}))
        found |= prefixed(name, {"mean": estimate.mean, "stderr": estimate.stderr})
    return found


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_converted_and_sampled() -> Answers:
    """The same machine in the other coding, and drawn from by every sampler."""
    rows = binary()
    machine = build("pairwise", graph="chain", learner="mple").fit(rows).convert("spin")
    samplers = ("exact", "gibbs", "random-scan", "chromatic")
    found = {f"drawn_{name}": drawn(machine.sample(200, method=name, random_state=11)) for name in samplers}
    return {**parameters(theta_of(machine)), "log_partition": machine.log_partition(), **found}


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def pairwise_uncertainty() -> Answers:
    rows = spins(n_columns=4)
    exact, pseudo = (build("pairwise", learner=name, l2=0.01, **TIGHT).fit(rows) for name in ("mle", "mple"))
    nodewise = build("pairwise", learner="rise", l2=0.01, **TIGHT).fit(rows)
    return {
        "fisher": errors_of(exact, rows, "fisher"),
        "sandwich": errors_of(exact, rows, "sandwich"),
        "pseudo_sandwich": errors_of(pseudo, rows, "sandwich"),
        "nodewise_sandwich": errors_of(nodewise, rows, "sandwich"),
        "bootstrap": bootstrap_errors(pseudo, rows, 10),
    }


@frozen(rtol=5e-5, atol=5e-5, faster=True)  # a gradient below 1e-6 leaves flat directions that far apart
def pairwise_structure() -> Answers:
    """Edges that every method finds, and the parameters of the refitted machine."""
    rows = spins(n_rows=300, n_columns=6, noise=0.15)
    found: Answers = {}
    for method in ("l1-ebic", "rise", "logrise", "rple", "decimation"):
        edges, machine = structure(rows, method, l2=0.01)
        found |= prefixed(method, {"edges": edges.ravel(), **parameters(theta_of(machine))})
    return found


# == machines of higher order and of many values ======================================================================
@frozen(rtol=1e-6, atol=1e-6, faster=True)
def higher_order_mle_spin() -> Answers:
    rows = spins(n_columns=4)
    return visible_answers(build("higher-order", order=3, l2=0.01, **TIGHT).fit(rows), rows, few_holes(rows))


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def higher_order_mple_weights_l1() -> Answers:
    rows = binary(n_columns=4)
    machine = build("higher-order", order=3, learner="mple", l1=0.02, l2=0.01, **TIGHT)
    return visible_answers(machine.fit(rows, sample_weight=weights(len(rows))), rows)


@frozen
def higher_order_mple_of_three_values() -> Answers:
    rows = binary(n_columns=4) - binary(n_columns=4, seed=8)
    machine = build("higher-order", order=2, learner="mple", values=(-1, 0, 1), l2=0.01, temperature=1.5, **TIGHT)
    return visible_answers(machine.fit(rows), rows)


@frozen
def higher_order_pcd_of_cliques() -> Answers:
    rows = binary()
    chosen = learner("pcd", n_chains=100, l2=0.01)
    machine = build("higher-order", cliques=[(0, 1, 4), (2, 3), (1, 2)], learner=chosen, max_iter=60)
    return visible_answers(machine.fit(rows), rows)


@frozen(rtol=5e-5, atol=5e-5, faster=True)  # a gradient below 1e-6 leaves flat directions that far apart
def higher_order_mle_missing_cells() -> Answers:
    rows = spins(n_columns=4)
    machine = build("higher-order", order=3, learner="mle", l2=0.02, **TIGHT).fit(pierced(rows))
    return visible_answers(machine, rows, few_holes(rows))


@frozen(rtol=5e-5, atol=5e-5, faster=True)  # a gradient below 1e-6 leaves flat directions that far apart
def higher_order_other_learners() -> Answers:
    rows = spins(n_columns=4)
    found: Answers = {}
    for name in ("rm", "mpf", "cd", "smci", "online"):
        chosen = {"learner": learner("cd", l2=0.05)} if name == "cd" else {"learner": name, "l2": 0.05}
        machine = build("higher-order", order=3, max_iter=30, **chosen).fit(rows)
        found |= prefixed(name, {**parameters(theta_of(machine)), **story(machine)})
    return found


@frozen
def potts_mple() -> Answers:
    rows = categories()
    machine = build("potts", l2=0.01, **TIGHT).fit(rows)
    norms = machine.coupling_norms(apc=True).to_numpy()
    return {**visible_answers(machine, rows, few_holes(rows)), "norms": norms}


@frozen
def potts_mle_missing_cells_weights() -> Answers:
    rows = categories()
    machine = build("potts", learner="mle", l2=0.02, temperature=1.4, **TIGHT)
    return visible_answers(machine.fit(pierced(rows), sample_weight=weights(len(rows))), rows, few_holes(rows))


@frozen
def potts_pcd() -> Answers:
    rows = categories()
    machine = build("potts", learner=learner("pcd", n_chains=100, l2=0.02), max_iter=50).fit(rows)
    return visible_answers(machine, rows)


@frozen
def potts_other_learners() -> Answers:
    rows = categories(n_rows=200, sizes=(3, 3, 3))
    found: Answers = {}
    for name in ("rm", "mpf", "cd", "smci", "online", "mean-field"):
        penalty = {} if name == "mean-field" else {"l2": 0.05}
        chosen = {"learner": learner("cd", l2=0.05)} if name == "cd" else {"learner": name, **penalty}
        machine = build("potts", graph="chain", max_iter=30, **chosen).fit(rows)
        found |= prefixed(name, {**parameters(theta_of(machine)), "score": machine.score(rows[:20])})
    return found


@frozen
def tables_by_several_learners() -> Answers:
    """A Markov random field of tables, straight through the learners."""
    rows = categories(sizes=(2, 3, 2, 2))
    cliques, found = [(0, 1, 2), (2, 3), (0,)], {}
    for name, limits in (("mle", TIGHT), ("mple", TIGHT), ("pcd", {"max_iter": 30})):
        result = train_tables(name, cliques, rows, **limits)
        answers = {"n_steps": result.n_steps, "log_partition": exact_log_partition(result.model)}
        found |= prefixed(name, {**parameters(result.model.theta), **answers})
    return found


# == hidden units on a graph ==========================================================================================
@frozen(rtol=5e-5, atol=5e-5, faster=True)  # a gradient below 1e-6 leaves flat directions that far apart
def hidden_mle_binary() -> Answers:
    rows = binary(n_columns=4)
    machine = build("hidden", n_hidden=2, learner="mle", l2=0.01).fit(rows)
    return hidden_answers(machine, rows, few_holes(rows))


# iterative, as pairwise_em_missing_cells
@frozen(rtol=1e-5, atol=1e-6)
def hidden_em_restricted_missing_cells() -> Answers:
    rows = spins(n_columns=4)
    machine = build("hidden", n_hidden=2, graph="restricted", learner="em", l2=0.02, max_iter=40).fit(pierced(rows))
    return hidden_answers(machine, rows, few_holes(rows))


@frozen
def hidden_em_without_extrapolation() -> Answers:
    rows = spins(n_columns=4)
    machine = build("hidden", n_hidden=2, learner=learner("em", accelerated=False, l2=0.02), max_iter=15).fit(rows)
    return hidden_answers(machine, rows)


# iterative, as pairwise_em_missing_cells
@frozen(rtol=1e-5, atol=1e-6)
def hidden_em_mean_field() -> Answers:
    rows = spins(n_columns=4)
    machine = build("hidden", n_hidden=2, graph="semi-restricted", learner="em", clamped="mean-field", l2=0.02)
    return hidden_answers(machine.set_params(max_iter=40).fit(rows), rows)


@frozen
def hidden_pcd_chains_starts() -> Answers:
    rows = binary(n_columns=4)
    chosen = {"learner": "pcd", "clamped": "chains", "n_init": 2, "max_iter": 40}
    machine = build("hidden", n_hidden=2, graph="semi-restricted", l2=0.02, **chosen).fit(pierced(rows))
    return hidden_answers(machine, rows)


# stochastic: kernels compiled for another processor gave 1.5e-8; Adam enlarges what rounding leaves of a zero gradient
@frozen(rtol=1e-6, atol=1e-7)
def hidden_smci_pcd_spatial() -> Answers:
    rows = spins(n_columns=4)
    machine = build("hidden", n_hidden=1, learner="smci-pcd", clamped="spatial", l2=0.02, max_iter=30)
    return hidden_answers(machine.fit(rows, sample_weight=weights(len(rows))), rows)


@frozen
def hidden_cd() -> Answers:
    rows = binary(n_columns=4)
    machine = build(
        "hidden", n_hidden=1, graph="restricted", learner=learner("cd", l2=0.02), temperature=1.5, max_iter=40
    )
    return hidden_answers(machine.fit(rows), rows)


# == restricted and deep machines =====================================================================================
@frozen
def restricted_binary_pcd() -> Answers:
    rows = binary(n_columns=6)
    machine = build("restricted", n_components=4, n_iter=8).fit(rows)
    found = {"pseudo_score": machine.pseudo_score(rows[:20]), "chains": machine.h_samples_.mean(axis=0)}
    return {**restricted_answers(machine, rows, few_holes(rows)), **found}


@frozen
def restricted_spin_cd() -> Answers:
    rows = spins(n_columns=6)
    machine = build("restricted", n_components=3, n_iter=8, free_phase="cd", n_steps=2, learning_rate=0.2).fit(rows)
    return restricted_answers(machine, rows, few_holes(rows))


@frozen
def restricted_binary_smci_missing_cells() -> Answers:
    rows = binary(n_columns=6)
    machine = build("restricted", n_components=3, n_iter=6, free_phase="smci", n_chains=30).fit(pierced(rows))
    return restricted_answers(machine, rows, few_holes(rows))


@frozen
def restricted_spin_smci_of_pairs_weights() -> Answers:
    rows = spins(n_columns=5)
    phase = free_phase("smci", region="pair", n_chains=20)
    machine = build("restricted", n_components=3, n_iter=6, free_phase=phase, hidden="binary")
    return restricted_answers(machine.fit(rows, sample_weight=weights(len(rows))), rows)


@frozen
def restricted_binary_tempering() -> Answers:
    rows = binary(n_columns=5)
    phase = free_phase("tempering", n_chains=20, betas=4)
    machine = build("restricted", n_components=3, n_iter=5, free_phase=phase, schedule="constant").fit(rows)
    return restricted_answers(machine, rows)


@frozen
def restricted_gaussian() -> Answers:
    rows = points(n_columns=4)
    machine = build("restricted", n_components=3, n_iter=8, visible="gaussian", learning_rate=0.02).fit(rows)
    return restricted_answers(machine, rows)


@frozen
def restricted_gaussian_plain_deviations() -> Answers:
    rows = points(n_columns=4)
    settings = {"visible": "gaussian", "deviations": "plain", "hidden": "spin", "free_phase": "cd"}
    machine = build("restricted", n_components=3, n_iter=6, learning_rate=0.02, temperature=1.2, **settings).fit(rows)
    return restricted_answers(machine, rows)


@frozen
def restricted_categorical_missing_cells() -> Answers:
    rows = categories(sizes=(2, 3, 4))
    machine = build("restricted", n_components=3, n_iter=6, visible="categorical").fit(pierced(rows))
    return restricted_answers(machine, rows, few_holes(rows))


@frozen
def restricted_penalties_momentum_temperature() -> Answers:
    rows = binary(n_columns=6)
    settings = {"l1": 0.001, "l2": 0.01, "momentum": 0.5, "temperature": 1.7, "centred": False}
    machine = build("restricted", n_components=4, n_iter=6, **settings).fit(rows, sample_weight=weights(len(rows)))
    return restricted_answers(machine, rows)


@frozen
def restricted_partial_fit() -> Answers:
    rows = binary(n_rows=180)
    machine = build("restricted", n_components=3)
    for chunk in np.array_split(rows, 3):
        machine.partial_fit(chunk)
    return restricted_answers(machine, rows)


@frozen
def restricted_held_out_and_annealed() -> Answers:
    rows = np.random.default_rng(9).random((100, 5)).round(2)  # probabilities of binary units
    machine = build("restricted", n_components=3, n_iter=5, held_out=0.2, batch_size=20).fit(rows)
    return {
        **parameters(theta_of(machine)),
        "held_out": held_out_score(machine),
        **{f"history_{name}": values for name, values in machine.history_.items()},
        "log_partition": interval(machine.log_partition("ais", n_samples=20, betas=30)),
        "score": interval(machine.score_interval(binary()[:20], n_samples=20, betas=30, method="ais")),
    }


# single precision: sums in another order differ in the seventh digit, and 6 epochs add these up
@frozen(rtol=1e-5, atol=1e-6)
def restricted_single_precision() -> Answers:
    rows = binary(n_columns=6)
    machine = build("restricted", n_components=4, n_iter=6, dtype="float32").fit(rows)
    return {
        **parameters(theta_of(machine)),
        "score": machine.score(rows[:20]),
        "log_partition": machine.log_partition(),
        "transform": machine.transform(rows[:3]),
    }


@frozen
def belief_network_binary() -> Answers:
    rows = binary(n_columns=6)
    machine = build("belief-network", n_components=(4, 3), n_iter=4).fit(rows)
    return deep_answers(machine, rows)


@frozen
def belief_network_gaussian_of_means() -> Answers:
    rows = points(n_columns=4)
    settings = {"visible": "gaussian", "carried": "means", "learning_rate": 0.02}
    machine = build("belief-network", n_components=(3, 2), n_iter=4, free_phase="cd", **settings).fit(rows)
    return deep_answers(machine, rows)


@frozen
def deep_binary() -> Answers:
    rows = binary(n_columns=6)
    machine = build("deep", n_components=(4, 3), n_iter=4, pretrain=3).fit(rows)
    return deep_answers(machine, rows, few_holes(rows))


@frozen
def deep_spin_missing_cells_partial_fit() -> Answers:
    rows = spins(n_columns=5)
    machine = build("deep", n_components=(3, 2, 2), n_iter=3, pretrain=0, temperature=1.3, l2=0.01)
    machine.fit(pierced(rows), sample_weight=weights(len(rows)))
    return deep_answers(machine.partial_fit(rows[:60]), rows, few_holes(rows))


@frozen
def deep_categorical_tempering() -> Answers:
    rows = categories(sizes=(3, 2, 3))
    settings = {"visible": "categorical", "free_phase": "tempering", "n_chains": 20}
    machine = build("deep", n_components=(3, 2), n_iter=2, pretrain=2, **settings).fit(rows)
    return deep_answers(machine, rows, few_holes(rows))


# == full-span models =================================================================================================
@frozen
def span_greedy() -> Answers:
    rows = binary(n_rows=2000, n_columns=7)
    return span_answers(build("full-span").fit(rows), rows, few_holes(rows))


@frozen
def span_greedy_categories_weights() -> Answers:
    rows = categories(n_rows=500)
    machine = build("full-span", mdl_scale=0.1).fit(rows, sample_weight=weights(len(rows)))
    more = {
        "marginal": machine.marginal(["x0", "x1"]).probability.to_numpy(),
        "conditional": machine.conditional({"x0": "b"}, "x2").probability.to_numpy(),
        "information": float(machine.mutual_information("x0", "x2")),
    }
    return {**span_answers(machine, rows, few_holes(rows)), **more}


@frozen
def span_greedy_penalties() -> Answers:
    rows = spins(n_rows=1000, n_columns=6)
    return span_answers(build("full-span", l1=0.002, l2=0.001, l2_growth=2.0, mdl_scale=0.5).fit(rows), rows)


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def span_newton() -> Answers:
    rows = binary(n_rows=300, n_columns=6)
    machine = build("full-span", learner="span-newton", epsilon=1e-5).fit(rows)
    pairwise = build("pairwise", learner="mle", **TIGHT).fit(rows)
    other = {
        "to_pairwise": float(machine.divergence(pairwise).forward),
        "as_higher_order": theta_of(machine.to_higher_order()),
    }
    return {**span_answers(machine, rows, few_holes(rows)), **other}


@frozen
def span_dense() -> Answers:
    rows = binary(n_columns=6)
    return span_answers(
        build("full-span", learner="span-dense", l2=0.01, l2_growth=2.0).fit(rows), rows, few_holes(rows)
    )


@frozen
def span_missing_cells() -> Answers:
    rows = spins(n_rows=200)
    found = span_answers(build("full-span").fit(pierced(rows)), rows, few_holes(rows))
    newton = build("full-span", learner="span-newton").fit(pierced(rows))
    return {**found, **parameters(theta_of(newton), "theta_newton"), "cost_newton": newton.cost_}


def hidden_span_answers(algorithm: str, max_iter: int = 100, **settings: Any) -> Answers:
    rows, rng = binary(n_rows=300), np.random.default_rng(SEED)
    states = gb.Dataset.read(rows).states
    hidden = learner("span-hidden", learner=span_learner(algorithm, **settings))
    fits = [span_run(hidden, rows, rng, n_hidden=1, max_iter=max_iter) for _ in range(2)]
    fit = min(fits, key=lambda fit: fit.trace.rows[-1][1])
    shares = gb.answers.answers_about(fit.model).hidden_probabilities(gb.Dataset.read(states[:4]))
    answers = {"costs": fit.trace.column("value")[-3:], "shares": shares}
    return {**parameters(fit.model.theta), **answers, **law_answers(fit.model.without_hidden(), states)}


@frozen
def span_hidden_variable() -> Answers:
    return {**prefixed("newton", hidden_span_answers("newton")), **prefixed("greedy", hidden_span_answers("greedy"))}


# iterative: rounds of fits that stop at a tolerance; kernels compiled for another processor gave 3e-7
@frozen(rtol=2e-6, atol=1e-8)
def span_hidden_variable_dense() -> Answers:
    return hidden_span_answers("dense", l2=0.01, max_iter=20)


# == mixtures =========================================================================================================
@frozen
def k_means() -> Answers:
    rows = points()
    return cluster_answers(build("k-means", n_components=3).fit(rows, sample_weight=weights(len(rows))), rows)


@frozen
def online_k_means() -> Answers:
    rows = points()
    return cluster_answers(build("online-k-means", n_components=3, max_iter=4).fit(rows), rows)


@frozen
def online_k_means_partial_fit() -> Answers:
    rows = points()
    units = build("online-k-means", n_components=3, normalize=False)
    for chunk in np.array_split(rows, 3):
        units.partial_fit(chunk)
    return cluster_answers(units, rows)


@frozen
def soft_k_means() -> Answers:
    rows = points()
    return mixture_answers(build("soft-k-means", n_components=3, variance=1.5).fit(rows), rows, "means")


@frozen
def soft_k_means_annealed() -> Answers:
    rows = points()
    mixture = build("soft-k-means", n_components=3, anneal=True, cooling=0.7, n_init=2)
    return mixture_answers(mixture.fit(rows, sample_weight=weights(len(rows))), rows, "means")


@frozen
def gaussian_mixtures() -> Answers:
    rows, found = points(), {}
    for variance in ("free", "tied"):
        mixture = build("gaussians", n_components=3, variance=variance).fit(rows, sample_weight=weights(len(rows)))
        found |= prefixed(variance, mixture_answers(mixture, rows, "means", "variances"))
    return {**found, "bic": bic_by_components(build("gaussians", n_init=2), rows, [1, 2, 3])}


@frozen
def von_mises_fisher_mixture() -> Answers:
    rows = points()
    mixture = build("von-mises-fisher", n_components=3).fit(rows)
    uniform = {"relative_to_uniform": mixture.score_samples(rows[:5], relative_to="uniform")}
    return {**mixture_answers(mixture, rows, "means", "concentrations"), **uniform}


@frozen
def von_mises_fisher_hard_tied_sparse() -> Answers:
    rows = sparse.csr_matrix(np.abs(points(n_columns=5)))
    mixture = build("von-mises-fisher", n_components=2, kappa="tied", assignment="hard").fit(rows)
    fixed = build("von-mises-fisher", n_components=2, kappa=5.0, class_weights="equal").fit(rows)
    return {**mixture_answers(mixture, rows, "means", "concentrations"), "fixed_means": fixed.means_}


@frozen
def mixture_of_independent_columns() -> Answers:
    rows = categories()
    mixture = build("machine-mixture", n_components=2, n_init=2).fit(rows, sample_weight=weights(len(rows)))
    hard = build("machine-mixture", n_components=2, machine="bernoulli", assignment="hard").fit(binary())
    found = mixture_answers(mixture, rows)
    found["probabilities"] = mixture.probabilities_
    return {**found, **prefixed("hard", mixture_answers(hard, binary()))}


@frozen(rtol=1e-6, atol=1e-6, faster=True)
def mixture_of_pairwise_machines() -> Answers:
    rows = binary(n_rows=200, n_columns=4)
    machine = build("pairwise", graph="chain", learner="mle", l2=0.01, tol=1e-9)
    mixture = build("machine-mixture", n_components=2, machine=machine, n_init=1, max_iter=15).fit(rows)
    thetas = np.concatenate([theta_of(part) for part in mixture.machines_])
    return {**mixture_answers(mixture, rows), **parameters(thetas)}


# == the file =========================================================================================================
def stored_answers() -> dict[str, dict[str, Any]]:
    """Return what the file holds."""
    return json.loads(STORED.read_text()) if STORED.exists() else {}


def write(answers: dict[str, dict[str, np.ndarray]]) -> None:
    """Write the file: a line for every answer, floats to their last bit."""
    blocks = []
    for name in FITS:
        lines = [
            f"  {json.dumps(key)}: {json.dumps(np.asarray(value).tolist())}" for key, value in answers[name].items()
        ]
        blocks.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    STORED.write_text("{\n" + ",\n".join(blocks) + "\n}\n")


def main(arguments: list[str]) -> None:
    """Run some entries, or all, and store the answers where asked to."""
    chosen = [name for name in arguments if name != "--write"] or list(FITS)
    answers: dict[str, Any] = {name: known for name, known in stored_answers().items() if name in FITS}
    began = time.perf_counter()
    for name in chosen:
        start = time.perf_counter()
        answers[name] = answers_of(name)
        print(f"{time.perf_counter() - start:7.2f} s  {name}", flush=True)
    print(f"{time.perf_counter() - began:7.2f} s  together, {len(chosen)} entries")
    if "--write" in arguments:
        write(answers)


if __name__ == "__main__":
    main(sys.argv[1:])
