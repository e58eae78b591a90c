"""
What nobody measured
====================

Exclusive-or again, this time by a hidden unit: YK15 asks why one wants hidden units, and this is why. The machine has
only pairs, but a column that is always missing, and learns a distribution that no pairwise machine of the columns
has.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(0)
pairs = rng.integers(0, 2, (400, 2))
rows = np.column_stack([pairs, pairs.sum(axis=1) % 2])

plain = gb.BoltzmannMachine(l2=1e-4).fit(rows)
hidden = gb.HiddenBoltzmannMachine(1, l2=1e-4, random_state=0).fit(rows)
print(f"without {plain.score(rows):.3f}, with one hidden unit {hidden.score(rows):.3f}, at best {np.log(0.25):.3f}")

# %%
# The probabilities of the eight states.

states = np.array(list(np.ndindex(2, 2, 2)))
fig, ax = plt.subplots(figsize=(7, 3.8))
labels = ["".join(map(str, state)) for state in states]
true = (states.sum(axis=1) % 2 == 0) / 4
for shift, values, name in ((-0.27, true, "truth"), (0, np.exp(plain.score_samples(states)), "pairwise"),
                            (0.27, np.exp(hidden.score_samples(states)), "one hidden unit")):  # fmt: skip
    ax.bar(np.arange(8) + shift, values, 0.27, label=name)
ax.set(xticks=range(8), xticklabels=labels, xlabel="state", ylabel="probability")
ax.legend()
fig.tight_layout()

# %%
# What does the unit stand for? Its probability of being on, given each row:

print(dict(zip(labels, hidden.transform(states).ravel().round(2).tolist(), strict=True)))
