"""
Classes of directions
=====================

Directions have no mean in the plain sense. A mixture of von Mises-Fisher distributions (YK15) finds groups of unit
vectors, each with its own concentration.
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(4)
centres, widths = np.array([[1, 0, 0.2], [-0.4, 1, 0], [0, -0.5, 1.0]]), [0.15, 0.35, 0.6]
rows = np.vstack([centre + width * rng.normal(size=(200, 3)) for centre, width in zip(centres, widths, strict=True)])
rows /= np.linalg.norm(rows, axis=1, keepdims=True)
mixture = gb.VonMisesFisherMixture(3, n_init=3, random_state=0).fit(rows)

fig = plt.figure(figsize=(9, 5))
gb.plots.sphere(mixture, rows, ax=fig.add_subplot(projection="mollweide"))

# %%
# The free energy of EM never rises (YK15): each step fills in the classes, then fits their parameters.

fig, ax = plt.subplots(figsize=(6, 3.6))
gb.plots.free_energy_trace(mixture, ax=ax)
fig.tight_layout()
