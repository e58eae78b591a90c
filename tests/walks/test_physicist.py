"""Spins of an 8 x 8 lattice: couplings back by four learners, log Z by two methods, another temperature, chains."""

import json

import numpy as np
import pandas as pd

import gibbsian as gb
from walk_steps import typed

COUPLING = 0.35


def test_a_lattice_of_spins_from_samples_to_log_z(tmp_path, rng):
    lattice = gb.graphs.grid(8, 8)
    truth = gb.PairwiseFamily.model(lattice, np.zeros(64), np.full(lattice.n_edges, COUPLING))
    rows = 2 * gb.inference.exact(truth).sample(1000, rng) - 1
    names = [f"s{i}{j}" for i in range(8) for j in range(8)]
    pd.DataFrame(rows.astype(int), columns=names).to_csv(tmp_path / "spins.csv", index=False)

    grid = ("--model", "pairwise", "--graph", "grid:8x8", "--seed", 1)
    for learner in ("mple", "mle", "pcd", "smci"):
        out = tmp_path / f"{learner}.gibbs"
        said = typed("fit", tmp_path / "spins.csv", *grid, "--learner", learner, "--out", out)
        assert "fit:         converged" in said
        assert "the moments of the model agree with those of the data" in said
        off = gb.load(out).model_.parts.couplings - COUPLING
        assert np.sqrt(np.mean(off**2)) < 0.06
    model = tmp_path / "mle.gibbs"

    found = {
        method: json.loads(typed("show", model, "--method", method, "--seed", 1, "--json"))["log_partition"]
        for method in ("exact", "ais")
    }
    assert found["exact"]["exact"]
    assert found["ais"]["lower"] - 0.02 < found["exact"]["lower"] < found["ais"]["upper"] + 0.02

    drawn = {}
    for temperature in (0.5, 1, 4):
        out = tmp_path / f"at-{temperature}.csv"
        typed("sample", model, "-n", 300, "--temperature", temperature, "--seed", 1, "--out", out)
        drawn[temperature] = pd.read_csv(out).to_numpy().reshape(-1, 8, 8)
    order = [float((spins[:, 1:] * spins[:, :-1]).mean()) for spins in drawn.values()]
    assert order == sorted(order, reverse=True)

    def means(method: str) -> pd.DataFrame:
        return pd.DataFrame(json.loads(typed("expect", model, "--method", method, "--seed", 1, "--json"))["means"])

    exact, spatial = means("exact"), means("s2-smci")
    assert (np.abs(exact["mean"] - spatial["mean"]) < 5 * spatial["standard_error"] + 1e-3).all()
    found_model = gb.load(model).model_
    report = gb.diagnostics.chain_report(found_model, gb.sampling.draw(found_model, 4000, 0, n_chains=8, burn_in=200))
    assert report.is_good()
