"""
Asking a model
==============

A fitted machine is a distribution, and answers questions about it: probabilities given evidence, information, the most
probable row. Where sums are in reach the answers are exact, else they carry a standard error.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

votes = gb.datasets.load_house_votes()
machine = gb.BoltzmannMachine(learner="mle", l2=0.003).fit(votes)
machine.query("P(republican | crime=1, immigration=0)")

# %%
# How much does each vote say about the party, by itself?

issues = [name for name in machine.names_ if name != "republican"]
bits = np.array([float(machine.mutual_information("republican", name)) for name in issues]) / np.log(2)
order = np.argsort(bits)
fig, ax = plt.subplots(figsize=(7, 4.6))
ax.barh(np.array(issues)[order], bits[order])
ax.set(xlabel="information about the party, in bits")
fig.tight_layout()

# %%
# The most probable member of each party:

for party in (0, 1):
    mode = machine.most_probable(evidence={"republican": party}).rows
    print(party, dict(zip(machine.names_, np.asarray(mode)[0].tolist(), strict=True)))
