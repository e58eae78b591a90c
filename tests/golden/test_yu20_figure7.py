"""YU20 Fig. 7: SMCI+PCD against the fixed versions, matched and mismatched, in the paper's own settings."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.learning import as_learner, run
from gibbsian.learning.optimizers import Ascent
from systems import dataset_of

GRID = gb.graphs.grid(4, 5)
STEPS = 600  # the paper's curves are level well before its 2,000


def one_data_set(matched: bool, seed: int) -> gb.Dataset:
    rng = np.random.default_rng(seed)
    graph = GRID if matched else gb.graphs.complete(20)
    theta = np.concatenate([rng.uniform(-0.2, 0.2, 20), rng.uniform(-0.3, 0.3, graph.n_edges)])
    model = gb.Model(gb.PairwiseFamily(graph), theta)
    return dataset_of(gb.inference.exact(model).sample(50, rng), model.variables)


def learners(copies):
    paper = {"optimizer": Ascent(learning_rate=0.02), "centred": False}
    persistent = {**paper, "average": False}
    return {
        "1 fixed": as_learner("smci"),
        "s2 fixed": as_learner("smci", region="s2"),
        **{f"1 e={e}": as_learner("smci-pcd", copies=e, **persistent) for e in copies},
        **{f"s2 e={e}": as_learner("smci-pcd", region="s2", copies=e, **persistent) for e in copies},
    }


@pytest.mark.long
@pytest.mark.parametrize("matched", [True, False], ids=["matched", "mismatched"])
def test_chains_beat_fixed_samples_and_copies_help(matched):
    errors: dict[str, list[float]] = {}
    for seed in range(3):
        data = one_data_set(matched, seed)
        start = gb.Model.zeros(gb.PairwiseFamily(GRID))
        best = run(as_learner("mle"), start, data, np.random.default_rng(0), tol=1e-6)
        if np.abs(best.model.theta).max() > 10:
            continue  # the maximum of the likelihood is at infinity
        for name, learner in learners((1, 10)).items():
            fitted = run(learner, start, data, np.random.default_rng(seed), max_iter=STEPS)
            error = np.abs(fitted.model.parts.couplings - best.model.parts.couplings).mean()
            errors.setdefault(name, []).append(float(error))
    mean = {name: float(np.mean(values)) for name, values in errors.items()}
    for kind in ("1", "s2"):
        assert mean[f"{kind} e=10"] < mean[f"{kind} e=1"] < mean[f"{kind} fixed"], mean
    assert mean["s2 fixed"] < mean["1 fixed"]
    assert mean["s2 e=10"] < mean["1 e=10"]
