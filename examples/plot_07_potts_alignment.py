"""
Contacts from an alignment
==========================

In a family of sequences two places that touch each other change together. A Potts machine with pseudolikelihood (direct
coupling analysis) tells direct from indirect partners. Here the alignment is simulated, so the contacts are known.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(2)
places, letters = 20, np.array(list("ACDE-"))
contacts = [(i, i + 1) for i in range(0, places - 1, 2)] + [(2, 15), (5, 18), (0, 9), (7, 12)]
variables = gb.Variables.categories((len(letters),) * places)
family = gb.TablesFamily.potts(gb.graphs.from_edges(contacts, places), variables)
theta = np.zeros(family.n_parameters)
theta[-len(contacts) * len(letters) ** 2 :] = np.tile(1.5 * np.eye(len(letters)).ravel(), len(contacts))
codes = gb.inference.exact(gb.Model(family, theta)).sample(1500, rng)
alignment = letters[codes]
print("\n".join("".join(sequence) for sequence in alignment[:4]))

# %%
# Norms of the coupling tables, less what each place has with everyone (the average product correction). Circles are
# the true contacts.

machine = gb.PottsMachine(learner="mple", l2=0.01, coding="categorical").fit(alignment)
scores = machine.coupling_norms(apc=True).to_numpy()
fig, ax = plt.subplots(figsize=(5.6, 5))
image = ax.imshow(scores, cmap="Greys", vmin=0)
first, second = np.array(contacts).T
ax.plot(second, first, "o", mfc="none", mec="C1", ms=11, label="contact")
ax.legend(loc="lower left")
fig.colorbar(image, label="corrected norm")
fig.tight_layout()

# %%
# The strongest pairs against the truth:

upper = np.triu_indices(places, 1)
best = np.argsort(-scores[upper])[: len(contacts)]
hits = sum((int(upper[0][k]), int(upper[1][k])) in {tuple(sorted(pair)) for pair in contacts} for k in best)
print(f"{hits} of the {len(contacts)} strongest pairs are contacts")
