"""
Holes in a table
================

Half of the cells of a table are lost at random. Dropping rows with holes would leave next to nothing; a machine that
sums the holes out still finds the couplings, because a missing cell is a hidden unit of its row.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(0)
truth = gb.PairwiseFamily.model(gb.graphs.complete(6), rng.normal(size=6) / 3, rng.normal(size=15) / 2)
rows = truth.variables.scores_of(gb.inference.exact(truth).sample(3000, rng))  # codes 0 and 1 stand for -1 and +1
holes = np.where(rng.random(rows.shape) < 0.5, np.nan, rows)
print(
    f"{np.isnan(holes).mean():.0%} of the cells are missing, {(~np.isnan(holes).any(axis=1)).sum()} rows are complete"
)

# %%
# The same learner on the whole table, on the table with holes, and on what is left of complete rows.

complete = holes[~np.isnan(holes).any(axis=1)]
fits = {
    "all cells": gb.BoltzmannMachine(learner="mle").fit(rows),
    "half of the cells": gb.BoltzmannMachine(learner="mle").fit(holes),
    f"the {len(complete)} complete rows": gb.BoltzmannMachine(learner="mle", l2=0.02).fit(complete),
}
fig, ax = plt.subplots(figsize=(5.5, 5))
ax.axline((0, 0), slope=1, color="0.8")
for (name, machine), marker in zip(fits.items(), "o^x", strict=True):
    ax.plot(truth.parts.couplings, machine.model_.parts.couplings, marker, label=name, alpha=0.8)
ax.set(xlabel="true coupling", ylabel="learned coupling")
ax.legend()
fig.tight_layout()

# %%
# What were the lost cells? The most probable value of each, given the cells of its row that are left:

filled = fits["half of the cells"].impute(holes)
lost = np.isnan(holes)
print(f"{(filled[lost] == rows[lost]).mean():.1%} right, a coin would have 50%")
