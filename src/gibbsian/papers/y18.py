"""Yasuda 2018: learning on a 4x4 grid without biases, against the exact maximum likelihood.

Here is what its figures share: networks, data sets, and the methods by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gibbsian.data import Dataset
from gibbsian.graphs import complete, grid
from gibbsian.inference import exact
from gibbsian.learners import LEARNERS, Learner, MomentMatching, as_learner, run
from gibbsian.learners.spatial import SOLVER
from gibbsian.models import PairwiseModel
from gibbsian.optimizers import Ascent, GradientStep
from gibbsian.papers.drawing import curve
from gibbsian.papers.experiment import Results, Table
from gibbsian.papers.y18_forests import FixedForests

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GRID = grid(4, 4)
PAPERS = ("mple", "rm", "mpf", "1-smci")
OURS = ("s2-smci", "forest-smci")
LABELS = {
    "mle": "MLE",
    "mple": "MPLE",
    "rm": "RM",
    "mpf": "MPF",
    "1-smci": "1-SMCI",
    "s2-smci": "s2-SMCI",
    "forest-smci": "forest SMCI",
}
# The paper halves the gradient of the pseudolikelihood so that its size is that of the likelihood (eq. 13); ratio
# matching and probability flow follow their own gradients, the latter twice as long at w = 0.
GRADIENT_SCALE = {"mple": 0.5}
# One discordant row in 10,000 makes a coupling of 4.6; beyond, the solution is on its way to infinity.
LARGEST = 6.0


def draw_network(rng: np.random.Generator, matched: bool = True) -> PairwiseModel:
    """Draw the generating machine: the grid with couplings in [-0.3, 0.3], or all pairs of 16 with [-0.2, 0.2].

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.y18 import draw_network
    >>> draw_network(np.random.default_rng(0), matched=False).graph.n_edges
    120
    """
    graph, largest = (GRID, 0.3) if matched else (complete(GRID.n_nodes), 0.2)
    return PairwiseModel.build(graph, None, rng.uniform(-largest, largest, graph.n_edges))


def draw_data(network: PairwiseModel, n_rows: int, rng: np.random.Generator) -> Dataset:
    """Draw independent rows from a machine.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.y18 import draw_data, draw_network
    >>> rng = np.random.default_rng(0)
    >>> draw_data(draw_network(rng), 100, rng).n_rows
    100
    """
    return Dataset.read(exact(network).sample(n_rows, rng), coding="spin")


def solve(method: str, data: Dataset, guide: PairwiseModel | None = None) -> np.ndarray:
    """Return the couplings of the grid that a method learns, NaN where it finds no finite solution.

    Parameters
    ----------
    method : str
        ``"mle"``, ``"mple"``, ``"rm"``, ``"mpf"``, ``"1-smci"``, ``"s2-smci"``, ``"forest-smci"``.
    data : Dataset
        The data.
    guide : PairwiseModel, optional
        Whose couplings choose the forests.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.y18 import draw_data, draw_network, solve
    >>> rng = np.random.default_rng(0)
    >>> data = draw_data(draw_network(rng), 500, rng)
    >>> bool(abs(solve("1-smci", data) - solve("mle", data)).mean() < 0.02)
    True
    """
    start = PairwiseModel.zeros(GRID, bias=False)
    learner: Learner = as_learner(method) if method != "forest-smci" else MomentMatching(FixedForests(guide), SOLVER)
    fitted = run(learner, start, data, np.random.default_rng(0), tol=1e-8, max_iter=300)
    found = np.abs(fitted.model.theta).max() < LARGEST and (fitted.converged or fitted.trace.rows[-1][2] < 1e-6)
    return fitted.model.theta if found else np.full(start.theta.size, np.nan)


def path_of(method: str, data: Dataset, n_steps: int, rate: float = 0.2, random_state: int = 0) -> np.ndarray:
    """Return the couplings after each step of plain ascent from zero, as the paper learns (section 5).

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.y18 import draw_data, draw_network, path_of
    >>> rng = np.random.default_rng(0)
    >>> path_of("mpf", draw_data(draw_network(rng), 100, rng), n_steps=5).shape
    (6, 24)
    """
    step = Ascent(learning_rate=rate * GRADIENT_SCALE.get(method, 1.0))
    learner = _by_steps(method, data, step)
    state = learner.init(PairwiseModel.zeros(GRID, bias=False), data, np.random.default_rng(random_state))
    path = [state.progress.theta]
    for _ in range(n_steps):
        state, _ = learner.step(state)
        path.append(state.progress.theta)
    return np.array(path)


def _by_steps(method: str, data: Dataset, step: GradientStep) -> Learner:
    if method == "forest-smci":
        guide = PairwiseModel(GRID, solve("mple", data), bias=False)
        return MomentMatching(FixedForests(guide), step)
    settings = {"centred": False} if method.endswith("-smci") else {}
    return LEARNERS.create(method, optimizer=step, **settings)


def error_table(results: Results, methods: Sequence[str], points: Sequence[object], name: str, title: str) -> Table:
    """Tabulate the mean errors of methods along a curve, with standard errors and the number of trials behind each.

    Examples
    --------
    >>> import numpy as np
    >>> from gibbsian.papers.experiment import Results
    >>> from gibbsian.papers.y18 import error_table
    >>> results = Results({"mple": np.array([[0.2, 0.1], [0.2, 0.1]])}, seed=0)
    >>> error_table(results, ["mple"], [100, 200], "N", "errors").frame.columns.tolist()
    ['N', 'MPLE', 'MPLE stderr', 'trials']
    """
    import pandas as pd

    columns: dict[str, object] = {name: list(points)}
    for method in methods:
        label = LABELS[method]
        columns[label], columns[f"{label} stderr"] = results.mean(method), results.stderr(method)
    columns["trials"] = results.count(methods[0])
    return Table(title, pd.DataFrame(columns), "s2-SMCI and forest SMCI are ours" if set(methods) & set(OURS) else "")


def draw_errors(axes: Axes, results: Results, methods: Sequence[str], points: Sequence[float] | np.ndarray) -> None:
    """Draw the mean errors of methods along a curve.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from gibbsian.papers.experiment import Results
    >>> from gibbsian.papers.y18 import draw_errors
    >>> axes = Figure().subplots()
    >>> draw_errors(axes, Results({"mple": np.array([[0.2, 0.1], [0.2, 0.1]])}, seed=0), ["mple"], [100, 200])
    >>> axes.get_legend_handles_labels()[1]
    ['MPLE']
    """
    for method in methods:
        mean, stderr = results.mean(method), results.stderr(method)
        curve(axes, points, mean, stderr, LABELS[method], ours=method in OURS, method=method)
