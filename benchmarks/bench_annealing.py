"""Annealed importance sampling: seconds for 100 walkers through 10,000 temperatures, beside plain NumPy, and the spread
of the log-weights (variance; the error of log Z is its root over that of the walkers) of each start and method."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import gibbsian as gb
from gibbsian.backends.parallel import limited_threads
from gibbsian.models.scopes import Scopes
from gibbsian.sampling import Annealing, variable_path
from timing import interleaved

WALKERS, BETAS, NUMPY_BETAS = 100, 10_000, 100
THREADS = (1, 2)


def main() -> None:
    rng = np.random.default_rng(0)
    rbm = gb.graphs.from_edges([(i, 8 + j) for i in range(8) for j in range(12)], 20)
    systems = {
        "4x5 grid": random_model(gb.graphs.grid(4, 5), 0.7, rng),
        "complete n = 20": random_model(gb.graphs.complete(20), 0.3, rng),
        "RBM 8 + 12": random_model(rbm, 0.5, rng),
        "16x16 grid": random_model(gb.graphs.grid(16, 16), 0.7, rng),
    }
    print(f"annealed importance sampling, {WALKERS} walkers, {BETAS} temperatures, seconds")
    print(f"  {'':28s}{'NumPy':>8s}" + "".join(f"{f'{t} thread' + 's' * (t > 1):>12s}" for t in THREADS))
    for name, model in systems.items():
        times(name, model)
    triples = gb.ProductsFamily(Scopes.of_order(8, 3))
    times("order 3, n = 8 (tables)", gb.Model(triples, rng.normal(0, 0.2, triples.n_parameters)))
    print("\nvariance of the log-weights, 1,000 temperatures (error of log Z in units of its standard error)")
    print(f"  {'':20s}{'uniform':>16s}{'biases':>16s}{'adapted':>16s}")
    for name, model in systems.items():
        spreads(name, model)


def random_model(graph: gb.Graph, scale: float, rng: np.random.Generator) -> gb.Model:
    return gb.PairwiseFamily.model(graph, rng.normal(0, 0.3, graph.n_nodes), rng.normal(0, scale, graph.n_edges))


def times(name: str, model: gb.Model) -> None:
    annealing, path = Annealing(WALKERS, BETAS), variable_path(model)

    def run(threads: int) -> None:
        with limited_threads(threads):
            annealing.forward(path, 0)

    runs: dict[str, Callable[[], object]] = {str(t): lambda t=t: run(t) for t in THREADS}
    if isinstance(model.family, gb.PairwiseFamily):
        runs["numpy"] = lambda: numpy_anneal(model, np.random.default_rng(0))
    seconds = interleaved(runs, repeats=2)
    plain = f"{seconds['numpy'] * BETAS / NUMPY_BETAS:8.1f}" if "numpy" in seconds else f"{'':8s}"
    print(f"  {name:28s}{plain}" + "".join(f"{seconds[str(t)]:12.2f}" for t in THREADS))


def numpy_anneal(model: gb.Model, rng: np.random.Generator) -> np.ndarray:
    """A hundredth of the run, all walkers at a time: a matrix-vector product for the fields of each variable."""
    x, (biases, couplings) = rng.choice([-1.0, 1.0], (model.n_variables, WALKERS)), model.parts
    matrix = model.family.graph.matrix(couplings)
    log_weights = np.full(WALKERS, model.n_variables * np.log(2.0))
    for k in range(1, NUMPY_BETAS + 1):
        log_weights += model.log_weights(x.T > 0) / NUMPY_BETAS
        logits = rng.logistic(size=x.shape)
        for i, row in enumerate(matrix):
            x[i] = np.where(2.0 * k / NUMPY_BETAS * (row @ x + biases[i]) > logits[i], 1.0, -1.0)
    return log_weights


def spreads(name: str, model: gb.Model) -> None:
    truth = gb.inference.exact(model).log_partition
    even, plain = Annealing(WALKERS, 1000), variable_path(model)
    methods = [(even, variable_path(model, "uniform")), (even, plain), (even.adapted(plain, 1), plain)]
    cells = []
    for annealing, path in methods:
        run = annealing.forward(path, 0)
        z = (run.log_partition - truth) / run.log_partition_stderr
        cells.append(f"{run.log_weights.var():10.4f} ({z:+.1f})")
    print(f"  {name:20s}" + "".join(cells))


if __name__ == "__main__":
    main()
