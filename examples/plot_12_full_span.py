"""
No graph, no tuning
===================

The full-span model (TA22) has a parameter for every function of the columns, of any order, and keeps the few that pay
for their own description. On rows of a 5 x 4 lattice it finds the lattice.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

lattice = gb.graphs.grid(4, 5)
spins = gb.PairwiseFamily.model(lattice, np.zeros(20), np.full(lattice.n_edges, 0.5))
model = gb.FullSpan("span-newton").fit(gb.inference.exact(spins).sample(100_000, np.random.default_rng(0)))
basis = model.basis_
print(model.result_.reason)
basis.head()

# %%
# The functions that were kept, as lines between the nodes of the lattice. Thick lines are functions of two variables.

fig, ax = plt.subplots(figsize=(6, 5))
places = {name: divmod(k, 5) for k, name in enumerate(model.names_)}
for names in basis["variables"]:
    points = np.array([places[name] for name in names])
    pair = len(names) == 2
    ax.plot(points[:, 1], points[:, 0], "-" if pair else ":", color="C0" if pair else "C1", lw=3 if pair else 1.5)
ax.plot(*np.array([(c, r) for r, c in places.values()]).T, "o", color="k", ms=9)
ax.set(title=f"{len(basis)} functions of {2**20:,}", aspect="equal")
ax.axis("off")
fig.tight_layout()
