"""Works beside their limit and beside what peers need for them, and how cost grows: `make bench-peers`.

Installs the peers into a scratch environment (``--environment``, by default `.peers`), runs every work on one thread
with ours, the limit and the peers in turns, and writes ``docs/performance.md`` with pictures of growth
(``--quick`` leaves the largest sizes out). Peers that do not install or do not run are named.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import venv
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import gibbsian as gb
import growth
import peer_works as works
from gibbsian.backends.parallel import limited_threads
from gibbsian.inference import exact

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
# What is installed for each peer; the first only serves the others.
PEERS = {
    "torch": "torch==2.13.0",
    "scikit-learn": "scikit-learn",
    "dwave-samplers": "dwave-samplers",
    "thrml": "thrml",
    "rbms": "rbms",
    "adabmDCA": "adabmDCA",
    "pgmpy": "pgmpy",
    "pyagrum": "pyagrum",
}
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "XLA_FLAGS"), "1"
) | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
MOST_SECONDS = 300


@dataclass
class Work:
    """One unit of work: what it is, ours, the limit of the machine, and under which name peers do it."""

    title: str
    ours: Callable[[], Any]
    limit: Callable[[], Any]
    what_limits: str
    name: str
    seconds: dict[str, float] = field(default_factory=dict)


# -- the works --------------------------------------------------------------------------------------------------------
def all_works() -> list[Work]:
    """Return the works with their limits."""
    binary = works.correlated(20_000, 100)
    rows, images = works.blurred_clusters(), works.correlated(10_000, 784)
    model = _model(works.lattice(works.GRID))
    return [
        _pseudolikelihood("pseudolikelihood, 100 columns, 20,000 rows to 1e-5, 0/1", binary),
        _pseudolikelihood("the same, -1/+1", 2 * binary - 1),
        _gibbs("Gibbs, 256x256 lattice, 1 chain", works.lattice(works.SIDE), 1, works.SWEEPS, "lattice"),
        _gibbs("Gibbs, 256x256 lattice, 64 chains", works.lattice(works.SIDE), works.CHAINS, works.SWEEPS, "lattices"),
        _gibbs(
            "Gibbs, dense, 100 x 1,000 chains",
            works.dense(works.DENSE),
            works.DENSE_CHAINS,
            works.DENSE_SWEEPS,
            "dense",
        ),
        _rbm("restricted machine 784 x 500, PCD-1, 10,000 rows in 100s, float32", images, "float32", "rbm"),
        _rbm("the same, float64", images, "float64", "rbm in float64"),
        Work(
            "marginals of a 12x12 lattice, exact",
            lambda: exact(model).moments,
            lambda: np.exp(np.zeros(works.GRID**2 * 2**works.GRID)),
            "an exponential a state of the front",
            "marginals",
        ),
        _k_means("k-means, 20 steps, 20,000 x 50, k = 10", rows),
    ]


def _pseudolikelihood(title: str, x: np.ndarray) -> Work:
    states, weights = x.astype(np.float64), np.zeros((x.shape[1], x.shape[1]))

    def products() -> None:
        for _ in range(8):
            fields = states @ weights
            np.exp(fields, out=fields)
            fields.T @ states

    return Work(
        title,
        lambda: gb.BoltzmannMachine(learner="mple", tol=1e-5).fit(x),
        products,
        "8 evaluations of two products and the exponentials",
        "pseudolikelihood",
    )


def _model(system: tuple[np.ndarray, np.ndarray, np.ndarray]) -> gb.Model:
    edges, couplings, biases = system
    graph = gb.graphs.from_edges(edges, len(biases))
    order = np.lexsort(edges.T[::-1])
    assert (graph.edges == edges[order]).all()
    return gb.PairwiseFamily.model(graph, biases, couplings[order])


def _gibbs(title: str, system: tuple[np.ndarray, np.ndarray, np.ndarray], chains: int, sweeps: int, name: str) -> Work:
    model = _model(system)
    kernel = gb.sampling.kernel_for(model.family, "chromatic" if chains == 1 else "gibbs")
    state, _ = kernel.step(model.theta, kernel.init(chains, gb.rng.Key.of(0)), 20)
    updates = chains * sweeps * model.n_variables
    numbers, rng = np.empty(updates, np.float32), np.random.Generator(np.random.SFC64(0))
    return Work(
        title,
        lambda: kernel.step(model.theta, state, sweeps),
        lambda: rng.random(dtype=np.float32, out=numbers),
        "a uniform random number of NumPy's fastest generator an update",
        name,
    )


def _rbm(title: str, x: np.ndarray, dtype: str, name: str) -> Work:
    images, weights = x.astype(dtype), np.zeros((784, 500), dtype)

    def products() -> None:
        for start in range(0, len(images), 100):
            batch = images[start : start + 100]
            hidden = batch @ weights
            (hidden @ weights.T) @ weights
            batch @ weights
            batch.T @ hidden
            batch.T @ hidden

    learner = gb.learning.Minibatch(max_iter=1, batch_size=100, dtype=dtype)
    return Work(
        title,
        lambda: gb.RestrictedBoltzmannMachine(500, learner=learner, random_state=0).fit(x),
        products,
        "its six products a minibatch",
        name,
    )


def _k_means(title: str, rows: np.ndarray) -> Work:
    means = rows[:10].T.copy()

    def products() -> None:
        for _ in range(20):
            (rows @ means).argmax(axis=1)

    fit = gb.HardKMeans(10, start=rows[:10], max_iter=20, tol=0.0)

    def steps() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", gb.errors.ConvergenceWarning)  # twenty steps are all that is wanted
            fit.fit(rows)

    return Work(title, steps, products, "20 products with the means", "k-means")


# -- measuring --------------------------------------------------------------------------------------------------------
def measure(work: Work, python: Path | None, troubles: dict[str, str]) -> None:
    """Run ours and the limit before and after every peer, and keep the best of each."""
    peers = [peer for peer, known in works.WORKS.items() if work.name in known and peer not in troubles]
    _in_process(work)
    for peer in peers:
        printed = subprocess.run(
            [str(python), str(HERE / "peer_works.py"), peer, work.name],
            capture_output=True,
            text=True,
            env=os.environ | ONE_THREAD,
            timeout=MOST_SECONDS,
        )
        if printed.returncode:
            troubles[f"{peer}, {work.name}"] = printed.stderr.strip().splitlines()[-1]
            continue
        work.seconds[peer] = json.loads(printed.stdout.strip().splitlines()[-1])["seconds"]
        _in_process(work)


def _in_process(work: Work) -> None:
    with threadpool_limits(1), limited_threads(1):
        for side, function in (("ours", work.ours), ("limit", work.limit)):
            work.seconds[side] = min(work.seconds.get(side, np.inf), works.best(function, 3))


def installed(environment: Path) -> tuple[Path, dict[str, str]]:
    """Return the Python of the peers' environment, and which peers did not install."""
    python, troubles = environment / "bin" / "python", {}
    if not python.exists():
        venv.create(environment, with_pip=True)
    for peer, requirement in PEERS.items():
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            troubles[peer] = done.stderr.strip().splitlines()[-1]
    return python, troubles


def versions(python: Path) -> dict[str, str]:
    """Return the versions of the peers."""
    code = "import importlib.metadata as m, json, sys; print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"
    found = {}
    for peer in PEERS:
        printed = subprocess.run([str(python), "-c", code, peer], capture_output=True, text=True)
        if printed.returncode == 0:
            found |= json.loads(printed.stdout)
    return found


# -- the page ---------------------------------------------------------------------------------------------------------
def page(found: list[Work], known: dict[str, str], troubles: dict[str, str], curves: list[growth.Curve]) -> str:
    """Return docs/performance.md."""
    used = {"Python": platform.python_version(), **{p: importlib.metadata.version(p) for p in ("numba", "numpy")}}
    lines = [
        "# Performance",
        "",
        "Written by `make bench-peers`; do not edit. One thread, best of several runs, ours and the limit before and",
        f"after each peer. {platform.machine()}, {os.cpu_count()} cores; "
        + ", ".join(f"{name} {version}" for name, version in (used | known).items())
        + ".",
        "",
        "| work | ours | times its limit | the limit | peers, times ours |",
        "| --- | --- | --- | --- | --- |",
    ]
    for work in found:
        seconds = work.seconds
        peers = ", ".join(
            f"{peer} {s / seconds['ours']:.2g}" for peer, s in seconds.items() if peer not in ("ours", "limit")
        )
        ratio = seconds["ours"] / seconds["limit"]
        lines.append(f"| {work.title} | {1e3 * seconds['ours']:.3g} ms | {ratio:.2g} | {work.what_limits} | {peers} |")
    if troubles:
        lines += ["", "Not measured:", "", *(f"- {peer}: {reason}" for peer, reason in troubles.items())]
    lines += [
        "",
        "On a card, as [gpu.md](gpu.md) has it with words; on a cluster: [cluster.md](cluster.md).",
        "",
        *_on_a_card(),
    ]
    lines += ["", "## How cost grows", "", "One thread; dashed lines have the slope that the work itself has.", ""]
    for curve in curves:
        lines += [f"![{curve.title}](pictures/{curve.file})", "", f"{curve.title}: {curve.words()}.", ""]
    return "\n".join(lines)


def _on_a_card() -> list[str]:
    """The table that `gpu.py` printed, under card, driver and commit."""
    written = (DOCS / "gpu.md").read_text().splitlines()
    first = next(number for number, line in enumerate(written) if line.startswith("NVIDIA"))
    return [*written[first : first + 2], *takewhile(lambda line: line.startswith("|"), written[first + 2 :])]


def main(environment: Path, quick: bool, peers: bool) -> None:
    python, troubles = installed(environment) if peers else (None, dict.fromkeys(PEERS, "left out"))
    found = all_works()
    for work in found:
        measure(work, python, troubles)
        print(work.title, {name: f"{1e3 * s:.1f} ms" for name, s in work.seconds.items()}, flush=True)
    curves = growth.all_curves(quick)
    for curve in curves:
        curve.draw(DOCS / "pictures" / curve.file)
    text = page(found, {} if python is None else versions(python), troubles, curves)
    (DOCS / "performance.md").write_text(text)
    print(text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, default=HERE.parent / ".peers")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args()
    sys.exit(main(given.environment, given.quick, not given.no_peers))
