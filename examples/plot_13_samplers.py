"""
Do the chains mix?
==================

Gibbs sampling is quick where couplings are weak and stuck where they are strong. R-hat compares chains with each other,
and the effective sample size says what a thousand draws are worth.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

graph = gb.graphs.grid(8, 8)
strengths = [0.1, 0.25, 0.4, 0.5, 0.6]
reports = []
for strength in strengths:
    model = gb.PairwiseFamily.model(graph, np.zeros(64), np.full(graph.n_edges, strength))
    draws = gb.sampling.draw(model, 4000, 0, n_chains=8, burn_in=200)
    reports.append(gb.diagnostics.chain_report(model, draws))
    print(f"coupling {strength}: {reports[-1].describe()}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
left.plot(strengths, [report.r_hat for report in reports], "o-")
left.axhline(1.01, color="0.7", ls="--")
left.set(xlabel="coupling", ylabel="worst R-hat")
right.semilogy(strengths, [report.effective_sample_size for report in reports], "o-")
right.set(xlabel="coupling", ylabel="effective draws of 4,000")
fig.tight_layout()

# %%
# On this lattice exact draws are in reach, whatever the couplings: the engine goes through the variables one by one.

rows = gb.inference.exact(model).sample(4, np.random.default_rng(0))
fig, axes = plt.subplots(1, 4, figsize=(9, 2.4))
for ax, row in zip(axes, rows, strict=True):
    ax.imshow(row.reshape(8, 8), cmap="Greys", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
