"""Every estimator: intervals of its parameters, or a refusal that names bootstrap, which works."""

import warnings

import numpy as np
import pytest

from estimator_samples import small, table
from gibbsian.errors import GibbsianError, GibbsianWarning
from gibbsian.estimators import ESTIMATORS
from gibbsian.uncertainty import bootstrap, standard_errors


def asked(machine, rows):
    """Return the errors of a machine, or what is recommended instead."""
    try:
        return standard_errors(machine, rows), ""
    except GibbsianError as error:
        return None, error.remedy


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_parameters_have_errors_or_a_refusal_whose_remedy_works(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GibbsianWarning)
        rows = table(name)
        machine = small(name).fit(rows)
        errors, refusal = asked(machine, rows)
        assert errors or "bootstrap" in refusal
        if errors:
            assert errors.theta_se.shape == machine.model_.theta.shape
            assert (errors.theta_se >= 0).all()
            assert len(errors.table) == len(errors.intervals().table) == errors.theta_se.size
        refits = bootstrap(machine, rows, 3, random_state=0)
    assert refits.thetas.shape == (3, machine.model_.theta.size)
    assert np.isfinite(refits.thetas).all()
