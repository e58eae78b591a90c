"""
Which columns interact?
=======================

Most pairs of a table do not interact directly. An L1 path with the extended information criterion (the method of
IsingFit) keeps the pairs that earn their place; here on rows of a known graph.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(3)
graph = gb.graphs.random(16, 0.15, random_state=3)
truth = gb.PairwiseFamily.model(graph, np.zeros(16), rng.choice([-0.5, 0.5], graph.n_edges))
engine = gb.inference.exact(truth)
true_edges = {tuple(edge) for edge in graph.edges.tolist()}
print(f"{graph.n_edges} of {16 * 15 // 2} pairs interact")

# %%
# Found and wrong edges as rows are added, by two methods.

sizes = [100, 300, 1000]
counts = {method: [] for method in ("l1-ebic", "logrise")}
for n in sizes:
    rows = truth.variables.scores_of(engine.sample(n, rng))
    for method in counts:
        found = gb.structure.learn_structure(rows, method=method, l2=0.001).graph
        edges = {tuple(edge) for edge in found.edges.tolist()}
        counts[method].append((len(edges & true_edges), len(edges - true_edges)))

fig, ax = plt.subplots(figsize=(6, 4.2))
ax.axhline(graph.n_edges, color="0.8")
for (method, pairs), colour in zip(counts.items(), ("C0", "C1"), strict=True):
    ax.semilogx(sizes, [right for right, _ in pairs], "o-", color=colour, label=f"{method}: right")
    ax.semilogx(sizes, [wrong for _, wrong in pairs], "x--", color=colour, label=f"{method}: wrong")
ax.set(xlabel="rows", ylabel="edges")
ax.legend()
fig.tight_layout()
