"""What peers do of the works of `peers.py`, in an environment that has them: ``python peer_works.py PEER WORK``.

Prints the best seconds of one unit of the work, as JSON; everything is told to use one thread. No name of gibbsian is
imported here, and the data are made from NumPy alone, so that both sides have the same.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIDE, CHAINS, SWEEPS = 256, 64, 10
DENSE, DENSE_CHAINS, DENSE_SWEEPS = 100, 1000, 20
GRID = 12
POTTS, VALUES, POTTS_CHAINS = 53, 21, 10_000


# -- data, the same on both sides -------------------------------------------------------------------------------------
def correlated(n_rows: int, n: int, n_factors: int = 10) -> np.ndarray:
    """Rows of 0 and 1 whose columns share some factors."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n_rows, n_factors)) @ rng.normal(0, 0.4, (n_factors, n))
    return (hidden + rng.logistic(size=hidden.shape) > 0).astype(np.int8)


def grid_edges(side: int) -> np.ndarray:
    """Pairs of neighbours of a square lattice."""
    nodes = np.arange(side * side).reshape(side, side)
    right = np.column_stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()])
    down = np.column_stack([nodes[:-1].ravel(), nodes[1:].ravel()])
    return np.concatenate([right, down])


def lattice(side: int, scale: float = 0.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges, couplings and biases in spins."""
    rng, edges = np.random.default_rng(1), grid_edges(side)
    return edges, rng.normal(0, scale, len(edges)), rng.normal(0, 0.1, side * side)


def dense(n: int, scale: float = 0.1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of a complete graph."""
    rng, edges = np.random.default_rng(1), np.column_stack(np.triu_indices(n, 1))
    return edges, rng.normal(0, scale, len(edges)), rng.normal(0, 0.1, n)


def blurred_clusters(n_rows: int = 20_000, n: int = 50, k: int = 10) -> np.ndarray:
    """Rows of real numbers around some means."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(k, n))[rng.integers(k, size=n_rows)] + rng.normal(size=(n_rows, n))


def best(function: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of the fastest run; the first may compile."""
    function()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


# -- scikit-learn -----------------------------------------------------------------------------------------------------
def scikit_pseudolikelihood() -> float:
    """One logistic regression a node, to the same gradient; the first nodes stand for all."""
    from sklearn.linear_model import LogisticRegression

    x, nodes = correlated(20_000, 100).astype(np.float64), 5
    model = LogisticRegression(C=np.inf, tol=1e-5, max_iter=1000, solver="newton-cholesky")

    def some() -> None:
        for i in range(nodes):
            model.fit(np.delete(x, i, axis=1), x[:, i])

    return best(some, 2) * x.shape[1] / nodes


def scikit_k_means() -> float:
    """Lloyd's steps from given means."""
    from sklearn.cluster import KMeans

    rows = blurred_clusters()
    return best(lambda: KMeans(10, init=rows[:10], n_init=1, max_iter=20, tol=0.0, algorithm="lloyd").fit(rows))


def scikit_rbm() -> float:
    """One epoch of persistent contrastive divergence over 10,000 rows in minibatches of 100."""
    from sklearn.neural_network import BernoulliRBM

    rows = correlated(10_000, 784).astype(np.float32)
    return best(lambda: BernoulliRBM(500, batch_size=100, n_iter=1, random_state=0).fit(rows), 2)


# -- D-Wave's samplers ------------------------------------------------------------------------------------------------
def _annealer_at_one(system: tuple[np.ndarray, np.ndarray, np.ndarray], reads: int, sweeps: int) -> float:
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    edges, couplings, biases = system
    pairs = {(int(i), int(j)): -float(w) for (i, j), w in zip(edges, couplings, strict=True)}
    problem = dimod.BinaryQuadraticModel.from_ising(dict(enumerate((-biases).tolist())), pairs)

    def run(n: int) -> None:
        SimulatedAnnealingSampler().sample(
            problem,
            num_reads=reads,
            num_sweeps=n,
            beta_schedule_type="custom",
            beta_schedule=[1.0] * n,
            proposal_acceptance_criteria="Gibbs",
            seed=0,
        )

    return best(lambda: run(2 * sweeps)) - best(lambda: run(sweeps))  # without the time to take the problem in


def dwave_lattice() -> float:
    """One chain on the lattice."""
    return _annealer_at_one(lattice(SIDE), 1, 10 * SWEEPS) / 10


def dwave_lattices() -> float:
    """Many chains on the lattice."""
    return _annealer_at_one(lattice(SIDE), CHAINS, SWEEPS)


def dwave_dense() -> float:
    """Many chains on a complete graph."""
    return _annealer_at_one(dense(DENSE), DENSE_CHAINS, DENSE_SWEEPS)


# -- thrml ------------------------------------------------------------------------------------------------------------
def _thrml(system: tuple[np.ndarray, np.ndarray, np.ndarray], colours: np.ndarray, chains: int, sweeps: int) -> float:
    import jax
    import jax.numpy as jnp
    from thrml import Block, SamplingSchedule, SpinNode, sample_states
    from thrml.models import IsingEBM, IsingSamplingProgram, hinton_init

    edges, couplings, biases = system
    nodes = [SpinNode() for _ in biases]
    pairs = [(nodes[i], nodes[j]) for i, j in edges]
    model = IsingEBM(nodes, pairs, jnp.array(biases), jnp.array(couplings), jnp.array(1.0))
    blocks = [Block([nodes[i] for i in np.flatnonzero(colours == c)]) for c in np.unique(colours)]
    program = IsingSamplingProgram(model, blocks, clamped_blocks=[])
    keys = jax.random.split(jax.random.key(0), chains)
    start = jax.vmap(lambda key: hinton_init(key, model, blocks, ()))(keys)

    def seconds(n: int) -> float:
        schedule = SamplingSchedule(n_warmup=n, n_samples=1, steps_per_sample=1)
        drawn = jax.jit(jax.vmap(lambda s, k: sample_states(k, program, schedule, s, [], [Block(nodes)])))
        return best(lambda: jax.block_until_ready(drawn(start, keys)))

    return seconds(2 * sweeps) - seconds(sweeps)


def _chessboard(side: int) -> np.ndarray:
    return (np.add.outer(np.arange(side), np.arange(side)) % 2).ravel()


def thrml_lattice() -> float:
    """One chain on the lattice, two colours."""
    return _thrml(lattice(SIDE), _chessboard(SIDE), 1, SWEEPS)


def thrml_lattices() -> float:
    """Many chains on the lattice."""
    return _thrml(lattice(SIDE), _chessboard(SIDE), CHAINS, SWEEPS)


def thrml_rate(chains: int, sweeps: int) -> float:
    """Billions of updates a second."""
    return chains * SIDE**2 * sweeps / _thrml(lattice(SIDE), _chessboard(SIDE), chains, sweeps) / 1e9


def thrml_dense() -> float:
    """Many chains on a complete graph: every node a block of its own."""
    return _thrml(dense(DENSE), np.arange(DENSE), DENSE_CHAINS, DENSE_SWEEPS)


# -- exact inference --------------------------------------------------------------------------------------------------
def _potentials(side: int) -> list[tuple[tuple[int, ...], np.ndarray]]:
    edges, couplings, biases = lattice(side)
    spins = np.array([-1.0, 1.0])
    pairs = [((int(i), int(j)), np.exp(w * np.outer(spins, spins))) for (i, j), w in zip(edges, couplings, strict=True)]
    return pairs + [((i,), np.exp(b * spins)) for i, b in enumerate(biases)]


def pgmpy_marginals() -> float:
    """Marginals of all nodes of a small lattice by belief propagation on a junction tree."""
    import logging

    logging.disable(logging.CRITICAL)
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import BeliefPropagation

    try:
        from pgmpy.models import DiscreteMarkovNetwork as Network
    except ImportError:
        from pgmpy.models import MarkovNetwork as Network

    network = Network()
    for scope, table in _potentials(GRID):
        names = [str(i) for i in scope]
        network.add_nodes_from(names)
        if len(names) == 2:
            network.add_edge(*names)
        network.add_factors(DiscreteFactor(names, [2] * len(names), table.ravel()))

    def all_nodes() -> None:
        tree = BeliefPropagation(network)
        tree.calibrate()
        for i in range(GRID * GRID):
            tree.query([str(i)], show_progress=False)

    return best(all_nodes, 1)


def pyagrum_marginals() -> float:
    """The same by Shafer and Shenoy's messages."""
    import pyagrum as gum

    network = gum.MarkovRandomField()
    for i in range(GRID * GRID):
        network.add(gum.RangeVariable(f"v{i}", "", 0, 1))
    for scope, table in _potentials(GRID):
        factor = network.addFactor([f"v{i}" for i in scope])
        factor.fillWith(table.ravel(order="F").tolist())

    def all_nodes() -> None:
        engine = gum.ShaferShenoyMRFInference(network)
        engine.setNumberOfThreads(1)
        engine.makeInference()
        for i in range(GRID * GRID):
            engine.posterior(i)

    return best(all_nodes)


# -- PyTorch's users --------------------------------------------------------------------------------------------------
def rbms_rbm(n_rows: int = 10_000, size: int = 100, place: str = "cpu") -> float:
    """One epoch of persistent contrastive divergence over 10,000 rows in minibatches of 100: 100 gradient updates."""
    import torch
    from rbms.bernoulli_bernoulli.classes import BBRBM

    torch.set_num_threads(1)
    rows = torch.tensor(correlated(n_rows, 784), dtype=torch.float32, device=place)
    machine = BBRBM.init_parameters(500, rows, torch.device(place), torch.float32)
    machine.init_grad()
    chains = machine.init_chains(num_samples=size)
    moves = torch.optim.SGD(machine.parameters(), lr=0.01, maximize=True)

    def epoch() -> None:
        nonlocal chains
        for start in range(0, len(rows), size):
            batch = {"visible": rows[start : start + size], "weights": torch.ones(size, device=place)}
            batch = machine.sample_hiddens(batch)
            chains = machine.sample_state(chains, n_steps=1)
            moves.zero_grad(set_to_none=False)
            machine.compute_gradient(data=batch, chains=chains, centered=True)
            moves.step()
        if place == "cuda":
            torch.cuda.synchronize()

    return best(epoch, 2)


def _adabm(tables: np.ndarray, biases: np.ndarray, n_chains: int, n_sweeps: int, place: str) -> float:
    import torch
    from adabmDCA.sampling import gibbs_sampling
    from adabmDCA.utils import init_chains

    torch.set_num_threads(1)
    device = torch.device(place)
    params = {
        "bias": torch.tensor(biases, dtype=torch.float32, device=device),
        "coupling_matrix": torch.tensor(tables, dtype=torch.float32, device=device),
    }
    chains = init_chains(n_chains, *biases.shape, device=device, dtype=torch.float32)

    def sweeps() -> None:
        gibbs_sampling(chains=chains, params=params, nsweeps=n_sweeps, beta=1.0)
        if place == "cuda":
            torch.cuda.synchronize()

    return best(sweeps, 1)


def adabm_dense() -> float:
    """Sweeps of many chains of a dense machine with two values."""
    edges, couplings, biases = dense(DENSE)
    spins = np.array([-1.0, 1.0])
    tables = np.zeros((DENSE, 2, DENSE, 2))
    for (i, j), w in zip(edges, couplings, strict=True):
        tables[i, :, j, :] = tables[j, :, i, :] = w * np.outer(spins, spins)
    return _adabm(tables, np.outer(biases, spins), DENSE_CHAINS, DENSE_SWEEPS, "cpu")


def potts_tables() -> tuple[np.ndarray, np.ndarray]:
    """Tables and biases of a dense machine as wide as a small protein."""
    rng, shape = np.random.default_rng(1), (POTTS, VALUES)
    tables = rng.normal(0, 0.05, (*shape, *shape))
    tables[np.arange(POTTS), :, np.arange(POTTS)] = 0.0
    return tables + tables.transpose(2, 3, 0, 1), rng.normal(0, 0.5, shape)


def adabm_rate(n_chains: int, n_sweeps: int) -> float:
    """Billions of updates a second on a card."""
    return n_chains * POTTS * n_sweeps / _adabm(*potts_tables(), n_chains, n_sweeps, "cuda") / 1e9


WORKS: dict[str, dict[str, Callable[[], float]]] = {
    "scikit-learn": {"pseudolikelihood": scikit_pseudolikelihood, "k-means": scikit_k_means, "rbm": scikit_rbm},
    "dwave-samplers": {"lattice": dwave_lattice, "lattices": dwave_lattices, "dense": dwave_dense},
    "thrml": {"lattice": thrml_lattice, "lattices": thrml_lattices, "dense": thrml_dense},
    "pgmpy": {"marginals": pgmpy_marginals},
    "pyagrum": {"marginals": pyagrum_marginals},
    "rbms": {"rbm": rbms_rbm},
    "adabmDCA": {"dense": adabm_dense},
    # the works of `gpu.py` where PyTorch and JAX have a card, in its units, which the names end in
    "card": {
        "thrml, 256 x 256 lattice, 64 chains, 10^9 updates a second": lambda: thrml_rate(64, 200),
        "thrml, 256 x 256 lattice, 4,096 chains, 10^9 updates a second": lambda: thrml_rate(4096, 10),
        "adabmDCA, Potts 53 x 21, 10,000 chains, 10^9 updates a second": lambda: adabm_rate(POTTS_CHAINS, 20),
        "rbms, 784 x 500 PCD-1 60,000 rows in 100s, s an epoch": lambda: rbms_rbm(60_000, 100, "cuda"),
        "rbms, 784 x 500 PCD-1 60,000 rows in 1,000s, s an epoch": lambda: rbms_rbm(60_000, 1000, "cuda"),
    },
}

if __name__ == "__main__":
    for name in sys.argv[2:] or WORKS[sys.argv[1]]:
        print(json.dumps({"seconds": WORKS[sys.argv[1]][name]()}), flush=True)
