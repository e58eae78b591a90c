"""
log Z between two sides
=======================

Annealed importance sampling reaches log Z from below. The way back, from samples of the model, reaches it from above; a
score past exact reach is reported between the two. Here the exact value is known and lies in between.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(0)
model = gb.PairwiseFamily.model(gb.graphs.complete(16), rng.normal(0, 0.2, 16), rng.normal(0, 0.35, 120))
exact = gb.inference.exact(model).log_partition
steps = [10, 30, 100, 300, 1000]
intervals = [
    gb.diagnostics.log_partition_interval(model, "gibbs", gb.sampling.Annealing(betas=n), rng=0, warn=False)
    for n in steps
]

fig, ax = plt.subplots(figsize=(6, 4))
ax.axhline(exact, color="k", lw=1, label="exact")
ax.fill_between(steps, [it.lower for it in intervals], [it.upper for it in intervals], alpha=0.25, label="interval")
ax.semilogx(steps, [it.forward.log_partition for it in intervals], "o-", label="to the model")
ax.semilogx(steps, [it.reverse.log_partition for it in intervals], "o-", label="and back")
ax.set(xlabel="temperatures", ylabel="log Z")
ax.legend()
fig.tight_layout()
