"""
Learners side by side
=====================

The exact likelihood is the yardstick where it can be computed. How near do cheaper learners come, as rows are added?
Data of a 4 x 4 lattice, as in Fig. 2a of Y18.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(1)
graph = gb.graphs.grid(4, 4)
truth = gb.PairwiseFamily.model(graph, rng.normal(0, 0.3, 16), rng.normal(0, 0.3, graph.n_edges))
engine = gb.inference.exact(truth)
sizes = [100, 300, 1000, 3000, 10000]
learners = {"mple": "pseudolikelihood", "rm": "ratio matching", "mpf": "probability flow", "smci": "1-SMCI"}
distance = {name: [] for name in learners}
for n in sizes:
    rows = truth.variables.scores_of(engine.sample(n, rng))  # codes 0 and 1 stand for -1 and +1
    best = gb.BoltzmannMachine("grid:4x4", learner="mle").fit(rows).model_.theta
    for name in learners:
        theta = gb.BoltzmannMachine("grid:4x4", learner=name).fit(rows).model_.theta
        distance[name].append(np.abs(theta - best).mean())

fig, ax = plt.subplots(figsize=(6, 4.2))
for name, words in learners.items():
    ax.loglog(sizes, distance[name], "o-", label=words)
ax.set(xlabel="rows", ylabel="mean distance to the maximum likelihood")
ax.legend()
fig.tight_layout()

# %%
# Spatial Monte Carlo integration, with the data as its samples, stays closest to the maximum of the likelihood.
# On real rows `gibbsian.comparison.compare` asks which learner predicts unseen rows best:

votes = gb.datasets.load_house_votes().complete_rows()
for found in gb.comparison.compare(votes, ["mle", "mple", "rm", "mpf"], gb.BoltzmannMachine(l2=0.01), random_state=0):
    print(f"{found.learner:5s} {found.held_out.score:8.3f} nats a row")
