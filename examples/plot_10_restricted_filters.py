"""
Strokes of digits
=================

A restricted Boltzmann machine on 8 x 8 digits: each hidden unit learns a stroke or a place where ink is, without being
told what a digit is.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import gibbsian as gb

digits = (load_digits().data > 7).astype(int)
machine = gb.RestrictedBoltzmannMachine(32, max_iter=20, random_state=0).fit(digits[:1500])

# %%
# The weights of each unit as an image (red excites, blue inhibits), and rows that the machine itself draws.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.6))
gb.plots.filters(machine, shape=(8, 8), n=32, ax=left)
gb.plots.samples(machine, shape=(8, 8), n=36, ax=right, random_state=0)
fig.tight_layout()

# %%
# Digits through the machine and back: above as given, below as reconstructed.

fig, ax = plt.subplots(figsize=(9, 2.4))
gb.plots.reconstructions(machine, digits[1500:], shape=(8, 8), n=12, ax=ax)
fig.tight_layout()
