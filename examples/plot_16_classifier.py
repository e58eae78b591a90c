"""
A classifier that knows how sure it is
======================================

The discriminative restricted machine models the class given the features and nothing else. Its probabilities are
calibrated enough to decline: the digits it is least sure of are those it gets wrong.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import gibbsian as gb

X, y = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
classifier = gb.GibbsClassifier(n_hidden=20, l2=1e-3, tol=1e-3, random_state=0).fit(train, y_train)
print(f"{classifier.score(test, y_test):.1%} of unseen digits are right")

# %%
# Leaving the least sure digits to a human.

probabilities = classifier.predict_proba(test)
order = np.argsort(-probabilities.max(axis=1))
right = (classifier.predict(test) == y_test)[order]
kept = np.arange(1, len(right) + 1)
fig, ax = plt.subplots(figsize=(6, 3.8))
ax.plot(kept / len(right), 1 - np.cumsum(right) / kept)
ax.set(xlabel="share of digits answered", ylabel="share of them wrong")
fig.tight_layout()

# %%
# The least sure of all:

fig, axes = plt.subplots(1, 8, figsize=(9, 1.7))
for ax, k in zip(axes, order[::-1], strict=False):
    ax.imshow(test[k].reshape(8, 8), cmap="Greys")
    ax.set_title(f"{y_test[k]}? {probabilities[k].max():.0%}", fontsize=9)
    ax.axis("off")
