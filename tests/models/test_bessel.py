"""Bessel ratios and concentrations, against the defining series summed with forty digits."""

from __future__ import annotations

import decimal
from decimal import Decimal

import numpy as np
import pytest

from gibbsian.errors import ArgumentError
from gibbsian.models.mixtures.von_mises_fisher import (
    bessel,
    concentration,
    concentration_bracket,
    log_sphere_area,
)

DIMENSIONS = [1, 2, 3, 4, 5, 10, 50, 61, 62, 63, 100, 1000, 50_000]
KAPPAS = [1e-8, 1e-3, 0.3, 1.0, 1.9, 2.5, 7.7, 14.0, 33.0, 100.0, 317.0, 3000.0, 1e4]


def by_series(kappa: float, dimension: int) -> tuple[Decimal, Decimal]:
    """A_d(kappa) and log 0F1(; d/2; kappa^2/4); all terms are positive, so nothing cancels."""
    with decimal.localcontext(prec=40):
        quarter, half = Decimal(kappa) ** 2 / 4, Decimal(dimension) / 2

        def series(b):
            term = total = Decimal(1)
            k = 0
            while term > total * Decimal("1e-38"):
                k += 1
                term *= quarter / (k * (b + k - 1))
                total += term
            return total

        below, above = series(half), series(half + 1)
        return Decimal(kappa) / (2 * half) * above / below, below.ln()


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_ratios_and_partition_to_fifteen_digits(dimension):
    values = bessel(KAPPAS, dimension)
    for i, kappa in enumerate(KAPPAS):
        ratio, logarithm = by_series(kappa, dimension)
        assert abs(float((Decimal(values.ratio[i]) - ratio) / ratio)) < 2e-15
        assert abs(float((Decimal(values.log_partition[i]) - logarithm) / logarithm)) < 2e-15
        if dimension > 1:  # on two points one minus the ratio is of order exp(-2 kappa)
            rest = 1 - ratio
            assert abs(float((Decimal(values.complement[i]) - rest) / rest)) < 1e-12


# by_series(1e6, dimension), which takes seconds, to twenty digits
AT_A_MILLION = {
    2: ("0.9999994999998749998749", "999992.17330631281325270"),
    50: ("0.9999755002878752878339", "999732.02102665307769449"),
    1000: ("0.9995006245004917503600", "996049.10533079012016268"),
    50_000: ("0.9753129265075915507896", "899795.38557085366791257"),
}


@pytest.mark.parametrize("dimension", AT_A_MILLION)
def test_at_a_million(dimension):
    values = bessel(1e6, dimension)
    ratio, logarithm = map(Decimal, AT_A_MILLION[dimension])
    assert abs(float(Decimal(float(values.ratio)) / ratio - 1)) < 2e-15
    assert abs(float(Decimal(float(values.log_partition)) / logarithm - 1)) < 2e-15
    assert abs(float(Decimal(float(values.complement)) / (1 - ratio) - 1)) < 1e-12


def test_finite_everywhere():
    kappas = np.concatenate([[0.0], np.logspace(-300, 15, 64)])
    for dimension in (2, 3, 17, 59, 60, 61, 50_000, 10**7):
        values = bessel(kappas, dimension)
        assert all(np.isfinite(part).all() for part in values)
        assert (np.diff(values.ratio) >= -1e-15).all()
        assert (values.ratio[0], values.complement[0], values.log_partition[0]) == (0.0, 1.0, 0.0)


def test_shapes_and_bad_values():
    assert bessel(np.ones((2, 3)), 4).ratio.shape == (2, 3)
    for kappa in (-1.0, np.nan, np.inf):
        with pytest.raises(ArgumentError, match="kappa must be finite"):
            bessel(kappa, 3)
    for dimension in (0, 2.5):
        with pytest.raises(ArgumentError, match="dimension="):
            bessel(1.0, dimension)


def test_area():
    np.testing.assert_allclose([np.exp(log_sphere_area(d)) for d in (1, 2, 3)], [2.0, 2 * np.pi, 4 * np.pi])


class TestConcentration:
    KAPPAS = np.array([1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 1e3, 1e4, 1e5, 1e6])

    @pytest.mark.parametrize("dimension", [2, 3, 4, 10, 50, 1000, 50_000])
    def test_newton_inverts_the_ratio_to_machine_precision(self, dimension):
        values = bessel(self.KAPPAS, dimension)
        found = concentration(values.ratio, dimension)
        # R itself is rounded: an error of one unit in its last place is amplified by dlog(kappa)/dR
        slope = values.complement * (2.0 - values.complement) - (dimension - 1.0) * values.ratio / self.KAPPAS
        amplified = np.finfo(float).eps / (self.KAPPAS * slope)
        assert (np.abs(found / self.KAPPAS - 1) < 4 * np.maximum(amplified * values.ratio, 1e-15)).all()

    @pytest.mark.parametrize("dimension", [2, 3, 10, 1000])
    def test_bracket_holds_the_root(self, dimension):
        low, high = concentration_bracket(bessel(self.KAPPAS, dimension).ratio, dimension)
        assert (low <= self.KAPPAS * (1 + 1e-9)).all()
        assert (high >= self.KAPPAS * (1 - 1e-9)).all()

    def test_limits(self):
        assert concentration([0.0, 1.0], 3, largest=1e8).tolist() == [0.0, 1e8]
        assert concentration(0.3, 1) == pytest.approx(np.arctanh(0.3), rel=1e-14)
        with pytest.raises(ArgumentError, match="between 0 and 1"):
            concentration(1.5, 3)
