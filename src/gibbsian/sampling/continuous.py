"""Gibbs sampling of continuous variables: inverse distribution functions of their conditionals.

The conditional log-density is taken along a straight line between the points of a grid, which makes its distribution
function and the inverse of that closed forms: a truncated exponential in each cell, exact where energies are linear.
What the line leaves out is made good by accepting the draw as Metropolis and Hastings do, so the chain keeps the
density itself whatever the grid.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gibbsian.arrays import Floats, Integers, Mask, States
from gibbsian.backends.numba.random import fill_uniforms
from gibbsian.models.families.quadrature import QuadratureFamily
from gibbsian.rng import Words
from gibbsian.sampling.base import SWEEPS
from gibbsian.sampling.gibbs import Gibbs, GibbsKernel, Visits

# Cells of the grid. A normal conditional of a tenth of the range is then accepted 99 times in a hundred.
N_CELLS = 96
# Slopes below have no curvature to speak of: the cell is uniform.
FLAT = 1e-9


@SWEEPS.register("quadrature")
def continuous_kernel(family: QuadratureFamily, scan: Gibbs, mask: Mask | None) -> GibbsKernel:
    """Return the Gibbs kernel of potentials of numbers."""
    return GibbsKernel(family, scan, mask, ContinuousSweep(family))


class ContinuousSweep:
    """Sweeps of real variables; a value counts as changed when its proposal is accepted."""

    def __init__(self, family: QuadratureFamily):
        self.family = family

    def __call__(self, theta: Floats, states: States, streams: Words, visits: Visits) -> int:
        """Sweep chains in place."""
        uniforms, chains, accepted = np.empty((len(states), 3)), np.arange(len(states)), 0
        for _ in range(visits.n_sweeps):
            for k in range(visits.n_picks or visits.sites.size):
                fill_uniforms(streams, uniforms)
                sites = np.full(len(states), visits.sites[k % visits.sites.size])
                if visits.n_picks:
                    sites = visits.sites[(uniforms[:, 2] * visits.sites.size).astype(np.intp)]
                free = True if visits.held is None else ~visits.held[chains, sites]
                for i in np.unique(sites):
                    rows = np.flatnonzero((sites == i) & free)
                    if rows.size:
                        accepted += self._draw(theta, states, rows, int(i), uniforms)
        return accepted

    def _draw(self, theta: Floats, states: States, rows: Integers, i: int, uniforms: Floats) -> int:
        """Draw one variable of some chains given the others, in place; return the number of accepted proposals."""
        support, around = self.family.variables.support, states[rows]
        low, high = (support.low, support.high) if support.bounded else support.nodes[[0, -1]]
        grid = np.linspace(low, high, N_CELLS + 1)
        log_density = partial(self.family.conditional, theta, around, i)
        logs = log_density(grid[None])
        cells = Cells(grid, logs - logs.max(axis=1, keepdims=True))
        drawn = cells.inverse(uniforms[rows, 0])
        pair = np.stack([drawn, around[:, i]], axis=1)
        target, proposal = log_density(pair), cells.log_density(pair)
        accepted = np.log(uniforms[rows, 1]) < (target - proposal) @ [1.0, -1.0]
        states[rows[accepted], i] = drawn[accepted]
        return int(accepted.sum())


class Cells:
    """Densities whose logarithms are straight lines in each cell of a grid, one for each row of logarithms."""

    def __init__(self, grid: Floats, logs: Floats):
        self.grid, self.logs = grid, logs
        slopes = np.abs(np.diff(logs))
        flat = slopes < FLAT
        means = np.where(flat, 1.0, -np.expm1(-slopes) / np.where(flat, 1.0, slopes))
        masses = np.exp(np.maximum(logs[:, 1:], logs[:, :-1])) * means
        self.cumulative = np.cumsum(masses, axis=1)

    def inverse(self, uniforms: Floats) -> Floats:
        """Return where the distribution functions reach these numbers."""
        wanted = uniforms * self.cumulative[:, -1]
        cell = np.minimum((self.cumulative < wanted[:, None]).sum(axis=1), N_CELLS - 1)
        row = np.arange(len(cell))
        before = np.where(cell > 0, self.cumulative[row, cell - 1], 0.0)
        share = np.clip((wanted - before) / (self.cumulative[row, cell] - before), 0.0, 1.0)
        slope = self.logs[row, cell + 1] - self.logs[row, cell]
        down = np.where(slope > 0, 1.0 - share, share)  # seen from the upper end of a cell, so that nothing overflows
        steep = np.minimum(-np.abs(slope), -FLAT)
        place = np.log1p(np.maximum(down * np.expm1(steep), np.nextafter(-1.0, 0.0))) / steep
        place = np.where(np.abs(slope) < FLAT, down, np.clip(place, 0.0, 1.0))
        place = np.where(slope > 0, 1.0 - place, place)
        return np.asarray(self.grid[cell] + place * (self.grid[cell + 1] - self.grid[cell]))

    def log_density(self, points: Floats) -> Floats:
        """Return the logarithms at points of each row, up to a constant of the row."""
        scaled = (points - self.grid[0]) / (self.grid[1] - self.grid[0])
        cell = np.clip(scaled.astype(np.intp), 0, N_CELLS - 1)
        left = np.take_along_axis(self.logs, cell, axis=1)
        return np.asarray(left + (scaled - cell) * (np.take_along_axis(self.logs, cell + 1, axis=1) - left))
