"""The settings that the papers print are those that are run."""

import numpy as np

from gibbsian_reproduction import h06, ta22_methods, yu20_figure_7


def test_h06_section_6():
    """Five variables, parameters of standard deviation 0.5, six sample sizes from 500 to 16000."""
    assert (h06.N_VARIABLES, h06.SPREAD) == (5, 0.5)
    assert h06.SIZES.tolist() == [500 * 2**k for k in range(6)]
    drawn = [h06.random_model(np.random.default_rng(seed)).theta for seed in range(200)]
    assert np.std(drawn) == 0.5 * np.std([np.random.default_rng(seed).normal(size=15) for seed in range(200)])


def test_ta22_sections_3_1_and_3_3():
    """FL ends at 1e-4; BM-PCD has the rate 0.01, 100 chains and 10,000 steps."""
    assert ta22_methods.TOLERANCE == 1e-4
    assert (ta22_methods.PCD_RATE, ta22_methods.PCD_CHAINS, ta22_methods.PCD_STEPS) == (0.01, 100, 10_000)


def test_yu20_section_5_2():
    """50 rows on the 4 x 5 grid, 2000 steps at the rate 0.02, and 1, 5 or 10 chains for each row."""
    assert (yu20_figure_7.N_ROWS, yu20_figure_7.N_STEPS, yu20_figure_7.RATE) == (50, 2000, 0.02)
    assert yu20_figure_7.COPIES == (1, 5, 10)
    assert yu20_figure_7.STEPS[[0, -1]].tolist() == [0, 2000]
