"""Pseudolikelihood value and gradient, dense n = 500, N = 20,000, beside its two BLAS products."""

from __future__ import annotations

import numpy as np

import gibbsian as gb
from gibbsian.objectives import Pseudolikelihood
from timing import interleaved

TARGET = 1.4


def main() -> None:
    n, n_rows = 500, 20_000
    rng = np.random.default_rng(0)
    x = np.where(rng.random((n_rows, n)) < 0.5, 1, -1).astype(np.int8)
    data = gb.Dataset.read(x)
    model = gb.PairwiseModel.zeros(gb.graphs.complete(n))
    theta = rng.normal(scale=0.05, size=model.theta.size)
    function = Pseudolikelihood().bind(model, data)
    floats, matrix = x.astype(np.float64), model.replace(theta).coupling_matrix

    def products() -> None:
        floats.T @ (floats @ matrix)

    best = interleaved({"objective": lambda: function(theta), "products": products})
    ratio = best["objective"] / best["products"]
    print(f"pseudolikelihood value + gradient, dense n = {n}, N = {n_rows:,}")
    print(f"  two BLAS products    {best['products'] * 1e3:8.1f} ms")
    print(f"  value and gradient   {best['objective'] * 1e3:8.1f} ms   ratio {ratio:.2f} (at most {TARGET})")


if __name__ == "__main__":
    main()
