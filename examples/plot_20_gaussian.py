"""
Networks of numbers
===================

For real columns the pairwise machine is a Gaussian Markov random field: a zero in the precision matrix is a pair that
does not interact. The graphical lasso finds such zeros.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(0)
n = 12
precision = np.eye(n) * 2.2
for i in range(n - 1):  # a ring of neighbours
    precision[i, i + 1] = precision[i + 1, i] = -0.9
precision[0, -1] = precision[-1, 0] = -0.9
rows = rng.multivariate_normal(np.zeros(n), np.linalg.inv(precision), size=200)
machine = gb.GaussianMachine(learner="graphical-lasso", l1=0.1).fit(rows)

fig, axes = plt.subplots(1, 3, figsize=(10, 3.4))
shown = {
    "correlations": np.corrcoef(rows.T),
    "partial correlations, learned": machine.partial_correlations_.to_numpy(),
    "partial correlations, true": -precision / 2.2,
}
for ax, (name, matrix) in zip(axes, shown.items(), strict=True):
    ax.imshow(matrix - np.diag(np.diag(matrix)), cmap="RdBu_r", vmin=-0.6, vmax=0.6)
    ax.set(title=name, xticks=[], yticks=[])
fig.tight_layout()
