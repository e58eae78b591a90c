"""
Interactions of three
=====================

Three switches and a lamp that is on when an odd number of them is: no pair of columns says anything about another, yet
together they determine it. A machine of order 4 sees what a pairwise machine cannot.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(0)
switches = rng.integers(0, 2, (600, 3))
lamp = switches.sum(axis=1) % 2
lamp = np.where(rng.random(600) < 0.1, 1 - lamp, lamp)  # one in ten is a wrong reading
rows = np.column_stack([switches, lamp]) * 2 - 1
train, test = rows[:400], rows[400:]

# %%
# Rows that the fit did not see, scored by machines of rising order. Guessing gives ``4 log 1/2``.

orders = (1, 2, 3, 4)
machines = [gb.HigherOrderBoltzmannMachine(order=k, l2=0.001).fit(train) for k in orders]
scores = [machine.score(test) for machine in machines]
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
left.plot(orders, scores, "o-")
left.axhline(4 * np.log(0.5), color="0.7", ls="--", label="guessing")
left.set(xlabel="order", ylabel="log-likelihood per unseen row", xticks=orders)
left.legend()
weights = machines[-1].strongest_weights(8)
right.barh([" ".join(clique) for clique in weights["clique"]][::-1], weights["weight"][::-1])
right.set(title="strongest weights, order 4")
fig.tight_layout()
