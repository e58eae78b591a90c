"""
A planar lattice against Onsager
================================

On planar graphs without fields log Z is a Pfaffian, whatever the size. Per spin it approaches Onsager's solution of the
infinite lattice as the lattice grows; the grey line is where the infinite one orders.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad

import gibbsian as gb


def onsager(k):
    """Return log Z per spin of the infinite square lattice with couplings k."""

    def inside(a):
        c = np.cosh(2 * k) ** 2
        part = 2 * np.sinh(2 * k) / c
        return np.log((1 + np.sqrt(1 - part**2 * np.sin(a) ** 2)) / 2)

    return np.log(2 * np.cosh(2 * k)) + quad(inside, 0, np.pi)[0] / (2 * np.pi)


couplings = np.linspace(0.1, 0.8, 15)
fig, ax = plt.subplots(figsize=(6, 4.2))
for size in (6, 12, 24):
    graph = gb.graphs.grid(size, size)
    engine = gb.inference.Planar(gb.PairwiseFamily(graph, bias=False))
    found = [engine.at(np.full(graph.n_edges, k)).log_partition for k in couplings]
    ax.plot(couplings, np.array(found) / size**2, "o", ms=4, label=f"{size} x {size}, exact")
ax.plot(couplings, [onsager(k) for k in couplings], "k-", lw=1, label="infinite (Onsager)")
ax.axvline(np.log(1 + np.sqrt(2)) / 2, color="0.8", zorder=0)
ax.set(xlabel="coupling", ylabel="log Z per spin")
ax.legend()
fig.tight_layout()
