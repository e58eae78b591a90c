"""
How sure?
=========

Each coupling has a confidence interval: from the curvature of what was minimised and the spread of its gradient (a
sandwich), or by refitting resampled rows. Do intervals of 95% cover the truth?
"""

import matplotlib.pyplot as plt
import numpy as np

import gibbsian as gb

rng = np.random.default_rng(5)
truth = gb.PairwiseFamily.model(gb.graphs.complete(6), rng.normal(size=6) / 3, rng.normal(size=15) / 3)
engine = gb.inference.exact(truth)
rows = truth.variables.scores_of(engine.sample(500, rng))  # codes 0 and 1 stand for -1 and +1
machine = gb.BoltzmannMachine(learner="mple").fit(rows)
intervals = gb.uncertainty.confidence_intervals(machine, rows)
refits = gb.uncertainty.bootstrap(machine, rows, n_replicates=100, random_state=0)
again = refits.intervals()

# %%
# A forest plot: the strongest first, those whose interval holds zero hollow and grey.

ax = gb.plots.intervals(intervals)

# %%
# What the refits agree about: how many of them have the sign of the estimate.

ax = gb.plots.stability(refits)

# %%
# The couplings in the order of their size, with intervals by sandwich (left of each pair) and by the bootstrap.

part = slice(6, None)
order = np.argsort(truth.theta[part])
places = np.arange(len(order))
fig, ax = plt.subplots(figsize=(8, 4.2))
for shift, ends, label in ((-0.12, intervals, "sandwich"), (0.12, again, "bootstrap")):
    ax.vlines(places + shift, ends.low[part][order], ends.high[part][order], lw=3, alpha=0.6, label=label,
              color="C0" if shift < 0 else "C1")  # fmt: skip
ax.plot(places, truth.theta[part][order], "k_", ms=12, label="truth")
ax.axhline(0, color="0.8", zorder=0)
ax.set(xlabel="pair", ylabel="coupling")
ax.legend()
fig.tight_layout()

# %%
# Over many data sets the share of intervals that cover the truth should be near 95%.

covered = []
for _ in range(60):
    sample = truth.variables.scores_of(engine.sample(500, rng))
    ends = gb.uncertainty.confidence_intervals(gb.BoltzmannMachine(learner="mple").fit(sample), sample)
    covered.append((ends.low <= truth.theta) & (truth.theta <= ends.high))
print(f"{np.mean(covered):.1%} of 60 x {truth.theta.size} intervals cover the truth")
