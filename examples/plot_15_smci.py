"""
Summing a neighbourhood
=======================

Spatial Monte Carlo integration (Y18, YU20) sums the variables around a target exactly and samples only the rest. The
same draws then give far better moments, and larger regions better ones still.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(0)
graph = gb.graphs.grid(4, 5)
model = gb.PairwiseFamily.model(graph, np.zeros(20), rng.normal(0, 1, graph.n_edges))
engine = gb.inference.exact(model)
truth = engine.moments
regions = {"1-SMCI": 1, "s2-SMCI": "s2", "2-SMCI": 2, "forest": "forest"}
sizes = [10, 30, 100, 300]
errors = {name: [] for name in ("Monte Carlo", *regions)}
for n in sizes:
    draws = [engine.sample(n, rng) for _ in range(4)]
    pairs = slice(20, None)  # the products along the edges
    plain = [np.abs(model.family.statistics(x).mean(axis=0) - truth)[pairs].mean() for x in draws]
    errors["Monte Carlo"].append(np.mean(plain))
    for name, region in regions.items():
        means = [gb.expectations.spatial_statistics(model, x, region=region).value for x in draws]
        errors[name].append(np.mean([np.abs(mean - truth)[pairs].mean() for mean in means]))

fig, ax = plt.subplots(figsize=(6, 4.4))
for name, values in errors.items():
    ax.loglog(sizes, values, "o-", label=name)
ax.set(xlabel="draws", ylabel="mean error of $E[x_i x_j]$")
ax.legend()
fig.tight_layout()
