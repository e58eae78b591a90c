"""Mixtures: one EM step against its own product and exponentials, and whole fits beside scikit-learn.

Run with ``python benchmarks/bench_mixtures.py``. The ratio of a step counts one product of the rows with
the means and one exponential per row and class as one; a step needs a second product, for the sums of each class.
"""

from __future__ import annotations

import warnings
from time import process_time

import numpy as np
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture as ScikitGaussianMixture
from threadpoolctl import threadpool_limits

from gibbsian import Dataset, GaussianMixture, HardKMeans, VonMisesFisherMixture
from gibbsian.backends.threads import limited_threads
from gibbsian.learning.em import mixture_steps
from gibbsian.models.mixtures.von_mises_fisher import VonMisesFisherMixtureFamily, draw_directions, unit_rows
from timing import asked, interleaved

N_ROWS, N_COLUMNS, K, KAPPA, N_STEPS = 20_000, 50, 10, 100.0, 20
MOST_PRODUCTS = 3
MOST_OF_KMEANS, MOST_OF_EQUAL_STARTS = 1.05, 1.2  # scikit-learn's time


def unit_vectors() -> np.ndarray:
    rng = np.random.default_rng(0)
    means = unit_rows(rng.normal(size=(K, N_COLUMNS)))
    return np.concatenate([draw_directions(mean, KAPPA, N_ROWS // K, rng) for mean in means])


def one_step(rows: np.ndarray, threads: str) -> None:
    family = VonMisesFisherMixtureFamily(K, N_COLUMNS)
    steps = mixture_steps(family, Dataset.read(rows, coding="real"))
    theta, frame = steps.placed(np.random.default_rng(0))
    eta, offsets = family.natural(theta, False)
    scores = rows @ eta.T + offsets
    exponents = scores - scores.max(axis=1, keepdims=True)
    shares = np.exp(exponents)

    def product_and_exponentials() -> None:
        rows @ eta.T
        np.exp(exponents)

    def both_products_and_exponentials() -> None:
        product_and_exponentials()
        shares.T @ rows

    seconds = interleaved(
        {
            "product and exponentials in NumPy": product_and_exponentials,
            "both products and exponentials in NumPy": both_products_and_exponentials,
            "EM step (E and M)": lambda: steps.m_step(theta, steps.e_step(theta), frame),
        },
        repeats=40,
    )
    reference = seconds["product and exponentials in NumPy"]
    print(f"{f'von Mises-Fisher, {size()}, {threads}':58s}{'time':>12s}{'ratio':>9s}")
    for name, time in seconds.items():
        print(f"{name:58s}{1e3 * time:>9.2f} ms{time / reference:>9.2f}")
    if threads == "one thread":
        print(asked("EM step of von Mises-Fisher", seconds["EM step (E and M)"] / reference, MOST_PRODUCTS))


def whole_fits(rows: np.ndarray) -> None:
    """At most so many steps from one k-means++ start each; who converges earlier takes fewer, so read with care."""
    common = {"n_init": 1, "max_iter": N_STEPS, "random_state": 0}
    rows = rows + np.random.default_rng(1).normal(size=rows.shape) / 5  # blurred, so that few converge early
    fits = {
        "gibbsian VonMisesFisherMixture": lambda: VonMisesFisherMixture(K, tol=0.0, **common).fit(rows),
        "gibbsian GaussianMixture": lambda: GaussianMixture(K, tol=0.0, **common).fit(rows),
        "scikit-learn GaussianMixture(spherical)": lambda: ScikitGaussianMixture(
            K, covariance_type="spherical", init_params="k-means++", tol=0.0, **common
        ).fit(rows),
        "gibbsian HardKMeans": lambda: HardKMeans(K, tol=0.0, **common).fit(rows),
        "scikit-learn KMeans": lambda: KMeans(K, tol=0.0, algorithm="lloyd", **common).fit(rows),
    }
    seconds = interleaved(fits, repeats=3)
    reference = seconds["scikit-learn GaussianMixture(spherical)"]
    print(f"\n{f'fit of {N_STEPS} steps, {size()}':58s}{'time':>12s}{'ratio':>9s}")
    for name, time in seconds.items():
        print(f"{name:58s}{1e3 * time:>9.1f} ms{time / reference:>9.2f}")
    beside = seconds["gibbsian HardKMeans"] / seconds["scikit-learn KMeans"]
    print("k-means beside scikit-learn's:", asked("k-means beside scikit-learn's", beside, MOST_OF_KMEANS))


def equal_starts() -> None:
    """Twenty steps of k-means in single precision from the same means, the processor's time of one thread."""
    rows = np.random.default_rng(0).normal(size=(100_000, 32)).astype(np.float32)
    for k in (10, 30, 100):
        start, common = rows[:k].copy(), {"max_iter": N_STEPS, "tol": 0.0}
        fits = {
            "ours": lambda k=k, start=start, common=common: HardKMeans(k, start=start, **common).fit(rows),
            "theirs": lambda k=k, start=start, common=common: KMeans(
                k, init=start, n_init=1, algorithm="lloyd", **common
            ).fit(rows),
        }
        with limited_threads(1), threadpool_limits(1):
            seconds = interleaved(fits, repeats=3, clock=process_time)
        beside = f"k-means, 100,000 x 32 float32, equal start, k = {k}, beside scikit-learn's"
        print(asked(beside, seconds["ours"] / seconds["theirs"], MOST_OF_EQUAL_STARTS))


def size() -> str:
    return f"{N_ROWS:,} x {N_COLUMNS}, k = {K}"


def main() -> None:
    rows = unit_vectors()
    # the same for both sides, and quiet on a machine that others use too
    with limited_threads(1), threadpool_limits(1):
        one_step(rows, "one thread")
    print()
    one_step(rows, "all threads")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nobody is meant to converge here
        whole_fits(rows)
        equal_starts()


if __name__ == "__main__":
    main()
