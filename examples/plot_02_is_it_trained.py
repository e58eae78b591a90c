"""
Is it trained?
==============

A fit ends with a sentence, a trace of its steps, and a comparison of the model's moments with those of the data. For
an exact fit without a penalty they agree to the last digit; a fit that was stopped early shows that it was.
"""

import matplotlib.pyplot as plt

import gibbsian as gb

votes = gb.datasets.load_house_votes().complete_rows()
good = gb.BoltzmannMachine(learner="mle", l2=0.001).fit(votes)
print(good.result_.reason)
print(good.result_.training.describe())

# %%
# On the left the couplings as the fit went on, on the right the moments of data and model. A penalty of 0.001 pulls
# them a little apart, on purpose.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2))
gb.plots.convergence(good, ax=left)
gb.plots.moment_scatter(good, votes, ax=right)
fig.tight_layout()
