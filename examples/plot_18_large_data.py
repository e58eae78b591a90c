"""
More rows than memory
=====================

Rows stay on disk and are learned in minibatches. The result comes close to a fit of all rows at once, after a few
passes.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(0)
truth = gb.PairwiseFamily.model(gb.graphs.complete(12), rng.normal(size=12) / 4, rng.normal(size=66) / 4)
path = Path(tempfile.mkdtemp()) / "rows.npy"
np.save(path, 2 * gb.inference.exact(truth).sample(200_000, rng) - 1)  # codes 0 and 1 stand for -1 and +1
stream = gb.data.DataStream.open(path)
stream

# %%
# Errors of the couplings, against those of a fit of all rows in memory.

online = gb.BoltzmannMachine(max_iter=5000, random_state=0).fit(stream)  # minibatches
whole = gb.BoltzmannMachine(learner="mple").fit(path)
print(online.result_.reason)
fig, ax = plt.subplots(figsize=(5, 5))
ax.axline((0, 0), slope=1, color="0.8")
ax.plot(truth.parts.couplings, whole.model_.parts.couplings, "o", label="all rows at once", alpha=0.7)
ax.plot(truth.parts.couplings, online.model_.parts.couplings, "x", label="minibatches from disk")
ax.set(xlabel="true coupling", ylabel="learned coupling")
ax.legend()
fig.tight_layout()
