"""Standard errors of the data's moments, by hand."""

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.diagnostics.moments import moment_errors


@pytest.mark.parametrize(("coding", "low"), [("spin", -1), ("binary", 0)])
def test_errors_are_those_of_two_valued_statistics(coding, low):
    """A mean and a product of two values spread as a coin does: the root of ``(high - m)(m - low) / N``."""
    rows = np.array([[1, 1]] * 5 + [[1, low]] * 3 + [[low, low]] * 2)
    model = gb.PairwiseModel.zeros(gb.graphs.complete(2), gb.domain.as_coding(coding).domain)
    errors = moment_errors(model, gb.Dataset.read(rows, coding=coding))
    share = np.array([0.8, 0.5, (rows.prod(axis=1) == 1).mean()])
    np.testing.assert_allclose(errors, (1 - low) * np.sqrt(share * (1 - share) / 10), atol=1e-14)
