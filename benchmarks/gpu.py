"""On one card: Gibbs sweeps, pseudolikelihood and full-span steps, beside the matrix products and copies they need.

Run with ``make bench-gpu``, or ``PYTHONPATH=src python benchmarks/gpu.py --out table.md [names]``. Times are medians of
CUDA events after a warm-up; what goes up to the card and down from it counts where a figure says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import triton

import gibbsian as gb
import gpu_layers
import peer_works
from gibbsian.backends.device import Device, on_device
from gibbsian.backends.torch import gibbs, span, triton_gibbs, triton_span, vectors
from gibbsian.backends.torch import gibbs as torch_gibbs
from gibbsian.backends.torch.philox import chain_words
from gibbsian.learning import as_learner, run
from gibbsian.learning.em import mixture_steps
from gibbsian.learning.objectives.conditionals import BoundLoss
from gibbsian.models import KMeansFamily
from gibbsian.models.conditionals import WeightedRows
from gibbsian.models.scopes import Scopes
from gibbsian.rng import Key
from gibbsian.sampling.spins import SpinSystem, colour_plan

SHARED = Path(os.environ.get("GIBBSIAN_SHARED_DATA", Path(__file__).parents[2] / "shared" / "data"))


class Figure(NamedTuple):
    """One number, and what is asked of it: at most, or where `least` at least."""

    work: str
    value: float
    unit: str
    ask: float | None = None
    least: bool = False

    @property
    def met(self) -> str:
        if self.ask is None:
            return ""
        return "yes" if (self.value >= self.ask if self.least else self.value <= self.ask) else "NO"


WORKS: dict[str, Callable[[Device], Iterator[Figure]]] = {}


def work(function: Callable[[Device], Iterator[Figure]]) -> Callable[[Device], Iterator[Figure]]:
    WORKS[function.__name__] = function
    return function


def seconds(function: Callable[[], object], repeats: int = 10) -> float:
    """Median of the card's own time."""
    for _ in range(2):
        function()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return float(np.median(times))


def without_launches(function: Callable[[], object], n: int = 20) -> float:
    """Seconds of small kernels, recorded `n` times as one graph."""
    function()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(n):
            function()
    return seconds(graph.replay) / n


def wall(function: Callable[[], object], repeats: int = 3) -> float:
    """Best of some runs by the clock on the wall, from a warm start."""
    times = []
    for _ in range(repeats + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        function()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times[1:])


# -- Gibbs ------------------------------------------------------------------------------------------------------------
def lattice_rate(device: Device, side: int, n_chains: int, n_sweeps: int = 60) -> float:
    """Billions of updates a second."""
    rng = np.random.default_rng(0)
    graph = gb.graphs.grid(side, side)
    model = gb.PairwiseFamily.model(graph, None, rng.normal(0, 0.5, graph.n_edges))
    plan, form = colour_plan(graph, np.arange(side**2).tobytes(), 2048), SpinSystem(model.family, model.theta)
    biases, *rows = form.in_order(plan)
    system = torch_gibbs.colour_system(plan.blocks[plan.colours], *rows, biases, form.reach)
    spins = torch.randint(0, 2, (n_chains, side**2), dtype=torch.int8, device=device.place) * 2 - 1
    words = device.put(chain_words(Key.of(rng).chains(n_chains)), torch.int64)
    tables = [device.put(part, torch.int32) for part in (system.heads, system.weights, system.biases)]
    took = seconds(lambda: triton_gibbs.colour_sweeps(spins, words, system, tables, None, n_sweeps), 5)
    return n_chains * side**2 * n_sweeps / took / 1e9


@work
def lattice(device: Device) -> Iterator[Figure]:
    unit = "10^9 updates a second"
    yield Figure("Gibbs, 256 x 256 lattice, 64 chains", lattice_rate(device, 256, 64, 400), unit, 90, True)
    yield Figure("Gibbs, 256 x 256 lattice, 4,096 chains", lattice_rate(device, 256, 4096), unit, 140, True)
    yield Figure("Gibbs, 4,096 x 4,096 lattice, 16 chains", lattice_rate(device, 4096, 16, 20), unit)
    yield Figure("the same: memory that was predicted over that taken", predicted_over_taken(4096, 16), "ratio", 1.05)


def predicted_over_taken(side: int, n_chains: int) -> float:
    """What a step of the sampler asks for before it begins, over the most that it had."""
    graph = gb.graphs.grid(side, side)
    model = gb.PairwiseFamily.model(graph, None, np.full(graph.n_edges, 0.3))
    kernel, asked = gb.sampling.kernel_for(model.family, "chromatic"), gibbs.require_card_memory
    needed: list[float] = []
    gibbs.require_card_memory = lambda n_bytes, *words: needed.append(n_bytes)
    try:
        chains = kernel.init(n_chains, gb.rng.Key.of(0), np.ones((1, side**2), np.int8))
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        kernel.step(model.theta, chains, 2)
    finally:
        gibbs.require_card_memory = asked
    return needed[0] / (torch.cuda.max_memory_allocated() - before)


def dense_time(device: Device, n: int, n_chains: int, n_sweeps: int) -> float:
    """Seconds of one sweep."""
    rng = np.random.default_rng(0)
    graph = gb.graphs.complete(n)
    model = gb.PairwiseFamily.model(graph, rng.normal(0, 0.1, n), rng.normal(0, 0.5 / n**0.5, graph.n_edges))
    form = SpinSystem(model.family, model.theta)
    system = torch_gibbs.dense_system(form.doubled / 2.0, form.biases)
    width = len(system.biases)
    spins = torch.zeros((n_chains, width), dtype=torch.int8, device=device.place)
    spins[:, :n] = torch.randint(0, 2, (n_chains, n), dtype=torch.int8, device=device.place) * 2 - 1
    words = device.put(chain_words(Key.of(rng).chains(n_chains)), torch.int64)
    return seconds(lambda: triton_gibbs.dense_sweeps(spins, words, system, None, n, n_sweeps), 5) / n_sweeps


@work
def dense_gibbs(device: Device) -> Iterator[Figure]:
    took = dense_time(device, 100, 100_000, 64)
    yield Figure("Gibbs, dense n = 100, 100,000 chains", 1e7 / took / 1e9, "10^9 updates a second", 50, True)
    took = dense_time(device, 1000, 10_000, 16)
    x = torch.randint(0, 2, (10_000, 1000), device=device.place).float() * 2 - 1
    matrix = torch.randn(1000, 1000, device=device.place)
    product = seconds(lambda: x @ matrix)
    yield Figure("Gibbs, dense n = 1,000, 10,000 chains", 1e7 / took / 1e9, "10^9 updates a second")
    yield Figure("the same: time of a sweep over that of its matrix product", took / product, "ratio", 2.0)


# -- pseudolikelihood -------------------------------------------------------------------------------------------------
def evaluation(device: Device, n: int, n_rows: int) -> tuple[float, float, float]:
    """Seconds of an evaluation on the card, of one with theta going up and the gradient down, and of its products."""
    rng = np.random.default_rng(0)
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(n)))
    bound: Any = model.family.conditionals(WeightedRows.of(rng.integers(0, 2, (n_rows, n), np.int8)))
    function = BoundLoss(bound, gb.learning.objectives.Pseudolikelihood.loss)
    theta = rng.normal(0, 0.3 / n**0.5, model.theta.size)
    rows = min(n_rows, bound._rows)
    x = bound._as_numbers(bound._states[:rows])[:, :n].contiguous()
    matrix, fields = torch.randn(n, n, device=device.place), torch.empty_like(x)

    def plain() -> None:
        for _ in range(0, n_rows, rows):
            torch.mm(x, matrix, out=fields)
            torch.mm(x.T, fields)

    repeats, there = 3 if n > 1000 else 20, device.put(theta, torch.float64)
    return (
        without_launches(lambda: function(there), 1 if n > 1000 else 20),
        wall(lambda: function(theta), repeats),
        seconds(plain, repeats) * n_rows / rows / -(-n_rows // rows),
    )


@work
def pseudolikelihood(device: Device) -> Iterator[Figure]:
    inside, whole, plain = evaluation(device, 500, 20_000)
    yield Figure(
        "pseudolikelihood n = 500, N = 20,000: an evaluation over its two products", inside / plain, "ratio", 1.4
    )
    yield Figure("the same, on the card", 1e3 * inside, "ms")
    yield Figure("the same, theta up and gradient down", 1e3 * whole, "ms")
    rng = np.random.default_rng(0)
    graph = gb.graphs.complete(500)
    truth = gb.PairwiseFamily.model(graph, rng.normal(0, 0.2, 500), rng.normal(0, 0.5 / 500**0.5, graph.n_edges))
    rows = 2 * gb.sampling.draw(truth, 20_000, 0, n_chains=20_000, burn_in=100).reshape(-1, 500) - 1
    data = gb.Dataset.read(rows)
    start = gb.Model.zeros(gb.PairwiseFamily(graph))
    result = run(as_learner("mple"), start, data, tol=1e-5)
    yield Figure(
        f"the same: a fit to 1e-5, {result.n_steps} steps",
        wall(lambda: run(as_learner("mple"), start, data, tol=1e-5), 10),
        "s",
        0.1,
    )
    machine = gb.BoltzmannMachine(learner="mple", tol=1e-5, device="cuda")
    yield Figure("the same: BoltzmannMachine.fit of the array", wall(lambda: machine.fit(rows), 2), "s")
    inside, whole, plain = evaluation(device, 5000, 200_000)
    yield Figure(
        "pseudolikelihood n = 5,000, N = 200,000: an evaluation over its two products", inside / plain, "ratio", 1.2
    )
    yield Figure("the same, theta up and gradient down", whole, "s")


@work
def potts(device: Device) -> Iterator[Figure]:
    path = SHARED / "msa_pf00014" / "pf00014.npz"
    if not path.exists():
        return
    stored = np.load(path)
    rows = next(part for part in stored.values() if part.ndim == 2)
    machine = gb.PottsMachine(learner="mple", l2=0.01, tol=1e-4, device="cuda")
    took = wall(lambda: machine.fit(rows), 1)
    yield Figure(
        f"Potts pseudolikelihood, PF00014 {rows.shape}: fit to 1e-4, {machine.result_.n_steps} steps", took, "s", 5.0
    )


def tables_rate(model: gb.Model, n_chains: int, n_sweeps: int) -> float:
    """Billions of updates a second of a sampler that is called once, with codes going up and down."""
    kernel = gb.sampling.kernel_for(model.family)
    chains = kernel.init(n_chains, gb.rng.Key.of(0))
    took = wall(lambda: kernel.step(model.theta, chains, n_sweeps))
    return n_chains * model.n_variables * n_sweeps / took / 1e9


@work
def gibbs_of_tables(device: Device) -> Iterator[Figure]:
    rng, unit = np.random.default_rng(0), "10^9 updates a second"
    tables, biases = peer_works.potts_tables()
    graph = gb.graphs.complete(peer_works.POTTS)
    couplings = [tables[i, :, j].ravel() for i, j in graph.edges]
    family = gb.TablesFamily.potts(graph, gb.Variables.categories((peer_works.VALUES,) * peer_works.POTTS))
    model = gb.Model(family, np.concatenate([biases.ravel(), *couplings]))
    for n_chains in (1000, peer_works.POTTS_CHAINS):
        rate = tables_rate(model, n_chains, 200)
        yield Figure(f"Gibbs, Potts 53 x 21 values, {n_chains:,} chains", rate, unit)
    family = gb.TablesFamily.potts(gb.graphs.grid(256, 256), gb.Variables.categories((4,) * 256**2))
    lattice = gb.Model(family, rng.normal(0, 0.5, family.n_parameters))
    yield Figure("Gibbs, Potts 256 x 256 lattice of 4 values, 64 chains", tables_rate(lattice, 64, 40), unit)
    triples = gb.ProductsFamily(Scopes.of_order(40, 3))
    third = gb.Model(triples, rng.normal(0, 0.05, triples.n_parameters))
    yield Figure("Gibbs, all triples of 40 spins, 10,000 chains", tables_rate(third, 10_000, 100), unit)


@work
def k_means(device: Device) -> Iterator[Figure]:
    rows = peer_works.blurred_clusters(1_000_000, 50, 100)
    steps = mixture_steps(KMeansFamily(100, 50), gb.Dataset.read(rows, coding="real"), hard=True)
    theta = steps.from_means(rows[:100])
    before = steps.e_step(theta)
    took = wall(lambda: steps.m_step(theta, steps.e_step(theta, before)))
    yield Figure("k-means, 1,000,000 x 50, k = 100: both halves of a step", 1e3 * took, "ms")


@work
def memory_of_steps(device: Device) -> Iterator[Figure]:
    """What L-BFGS asks for before its first step, over the most that a fit of all pairs then had."""
    rng, n = np.random.default_rng(0), 3000
    rows = rng.integers(0, 2, (2000, n), np.int8) * 2 - 1
    data, start, asked = (
        gb.Dataset.read(rows),
        gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(n))),
        vectors.require_card_memory,
    )
    needed: list[float] = []

    def note(n_bytes: float, *words: str) -> None:
        torch.cuda.reset_peak_memory_stats()
        needed[:] = [n_bytes + torch.cuda.memory_allocated()]

    vectors.require_card_memory = note
    try:
        run(as_learner("mple", l2=0.01), start, data, tol=1e-14, max_iter=25)
    finally:
        vectors.require_card_memory = asked
    taken = torch.cuda.max_memory_allocated()
    yield Figure(
        f"pseudolikelihood n = {n:,}: memory that steps take over what was predicted", taken / needed[0], "ratio", 1.05
    )


# -- full span --------------------------------------------------------------------------------------------------------
def span_figures(device: Device, bits: int) -> Iterator[Figure]:
    dual, data = span.Table(2**bits, np.float32), span.Table(2**bits, np.float32)
    data.values.uniform_(-0.1, 0.1)
    dual.values.uniform_(-0.1, 0.1)
    half = 2 ** (bits // 2)
    low, high = (torch.rand(size, device=device.place) * 1e-3 for size in (half, 2**bits // half))
    z = int(0b1010011 + 2 ** (bits - 2))
    timed = without_launches if bits < 30 else seconds
    step = timed(lambda: triton_span.update(dual.values, data.values, low, high, z, 0.999, 0.001).max())
    yield Figure(f"full-span greedy step, 2^{bits} states", 1e3 * step, "ms", 40.0 if bits == 32 else None)
    if bits < 33:
        copy = timed(lambda: dual.values.copy_(data.values))
        yield Figure("the same over a copy of the table", step / copy, "ratio", 2.5)
    if bits == 30:
        took = seconds(lambda: span.walsh_hadamard(dual.values), 3)
        yield Figure("Walsh-Hadamard transform, 2^30", 1e3 * took, "ms")


@work
def full_span(device: Device) -> Iterator[Figure]:
    for bits in (20, 30, 32, 33):
        yield from span_figures(device, bits)
        torch.cuda.empty_cache()


@work
def machines_of_layers(device: Device) -> Iterator[Figure]:
    for name, measured, ask, unit in gpu_layers.works():
        yield Figure(name, measured(), unit, ask)


@work
def peers(device: Device) -> Iterator[Figure]:
    """In processes of their own, because JAX takes the memory of a card; what is not installed is named."""
    torch.cuda.empty_cache()
    for name in peer_works.WORKS["card"]:
        command = [sys.executable, peer_works.__file__, "card", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        peer, _, unit = name.rpartition(", ")
        if done.returncode:
            print(f"{peer}: {(done.stderr.strip() or 'ended').splitlines()[-1]}", flush=True)
        yield Figure(peer, np.nan if done.returncode else json.loads(done.stdout)["seconds"], unit)


def table(figures: list[Figure]) -> str:
    lines = ["| work | figure | unit | ask | met |", "| --- | --- | --- | --- | --- |"]
    for f in figures:
        ask = "" if f.ask is None else f"{'at least' if f.least else 'at most'} {f.ask:g}"
        value = "not run" if np.isnan(f.value) else f"{f.value:.4g}"
        lines.append(f"| {f.work} | {value} | {f.unit} | {ask} | {f.met} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(WORKS)}; all by default")
    parser.add_argument("--out", help="write the table there, in Markdown")
    parser.add_argument("--commit", help="which one is measured, where that is no repository")
    chosen = parser.parse_args()
    found = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True
    )
    commit = (
        chosen.commit or subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    )
    place = f"{found.stdout.strip()}; torch {torch.__version__}; triton {triton.__version__}; commit {commit.strip()}"
    print(place, flush=True)
    figures: list[Figure] = []
    with on_device("cuda") as device:
        assert device is not None
        for name in chosen.names or WORKS:
            try:
                for figure in WORKS[name](device):
                    figures.append(figure)
                    print(f"{figure.work}: {figure.value:.4g} {figure.unit} {figure.met}", flush=True)
            except Exception as error:  # one work that breaks must not cost the others their figures
                print(f"{name} broke: {type(error).__name__}: {error}", flush=True)
    text = f"{place}\n\n{table(figures)}\n"
    if chosen.out:
        Path(chosen.out).write_text(text)


if __name__ == "__main__":
    main()
