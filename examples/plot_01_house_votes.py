"""
A network of votes
==================

In 1984 the US House voted on sixteen key questions. Which votes go together once all the others are taken into account,
and which of them mark the party? The pairwise Boltzmann machine answers with one coupling for each pair of columns.
"""

import matplotlib.pyplot as plt

import gibbsian as gb

votes = gb.datasets.load_house_votes()
machine = gb.BoltzmannMachine(learner="mle", l2=0.003).fit(votes)
print(machine.result_.reason)
machine.strongest_couplings(5)

# %%
# The machine was learned from all 435 members: the 392 answers that are missing are summed out, none is guessed.
# The colour of a line tells votes that go together from votes that exclude each other, its width how strongly.

fig, ax = plt.subplots(figsize=(8, 6.5))
gb.plots.network(machine, ax=ax, n_strongest=25)
fig.tight_layout()

# %%
# Near what they interact with, or round: the circle has the same lines.

fig, ax = plt.subplots(figsize=(8, 6.5))
gb.plots.network(machine, ax=ax, n_strongest=25, layout="circle")
fig.tight_layout()

# %%
# The matrix has all pairs.

fig, ax = plt.subplots(figsize=(8, 7))
gb.plots.couplings(machine, ax=ax)
fig.tight_layout()
