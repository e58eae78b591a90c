"""Structure of many-valued data whose answer is known: a Potts chain, and the contacts of a protein family.

The penalty is that of plmDCA (Ekeberg et al. 2013), 0.01 times the sum of squares, for both: it was not tuned here.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.errors import ConvergenceWarning
from gibbsian.models.families.tables import coupling_norms

L2 = 0.02  # the penalty is (l2 / 2) times the sum of squares


def edges_by_strength(machine):
    """Pairs of columns, the largest corrected norm first."""
    model = machine.model_
    return model.family.graph.edges[np.argsort(-coupling_norms(model, apc=True))]


def test_a_chain_is_recovered(shared_data):
    rows = np.load(shared_data("potts_chain/potts3.npz"))["x"]
    strongest = edges_by_strength(gb.PottsMachine(l2=L2, tol=1e-4).fit(rows))[:59]
    assert (np.diff(strongest, axis=1) == 1).all()


@pytest.mark.long
def test_contacts_of_the_kunitz_domain(shared_data):
    """Mean field reaches 0.98 on these data; a few steps order the couplings, though they do not settle them."""
    family = np.load(shared_data("msa_pf00014/pf00014.npz"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = gb.PottsMachine(l2=L2, max_iter=12).fit(family["x"], sample_weight=family["weights"])
    far_apart = [(i, j) for i, j in edges_by_strength(machine).tolist() if j - i > 4][: family["x"].shape[1]]
    contacts = [family["heavy_distance"][pair] < 8 for pair in far_apart]
    assert np.mean(contacts) > 0.9


def test_mean_field_reaches_its_published_precision(shared_data):
    """0.98 at the top 53 pairs, with the usual pseudocount of one half and all 21 letters in every column."""
    family = np.load(shared_data("msa_pf00014/pf00014.npz"))
    coding = gb.data.Labels(list(range(21)))
    data = gb.Dataset.read(family["x"], sample_weight=family["weights"], coding=coding)
    model = gb.PottsMachine(learner="mean-field", l2=1.0).fit(data).model_
    i, j = model.family.graph.edges.T
    distance = family["heavy_distance"][i, j]
    scores = np.where((j - i > 4) & np.isfinite(distance), coupling_norms(model, apc=True), -np.inf)
    assert np.mean(distance[np.argsort(-scores)[:53]] < 8.0) > 0.97
