"""Rows that are none are refused by every family, sampler and estimate, in the same words."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.diagnostics.partition import log_partition_interval
from gibbsian.errors import ArgumentError, CodingError, MissingValuesError
from gibbsian.models.conditionals import WeightedRows
from gibbsian.models.variables import Variables, checked_fixed
from gibbsian.rng import Key
from gibbsian.sampling import Annealing, kernel_for, variable_path
from systems import dataset_of, models_with_variables, name_of, random_model_of

N = 4
CALLS = {
    "energy": lambda model, x: model.energy(x),
    "log_weights": lambda model, x: model.log_weights(x),
    "statistics": lambda model, x: model.family.statistics(x),
    "mean_statistics": lambda model, x: model.family.mean_statistics(x),
    "conditionals": lambda model, x: model.family.conditionals(WeightedRows.of(x)),
    "init": lambda model, x: kernel_for(model.family).init(2, Key.of(0), x),
    "reverse": lambda model, x: Annealing(betas=2).reverse(model, x, 0),
    "interval": lambda model, x: log_partition_interval(model, x, Annealing(betas=2), rng=0, warn=False),
    "spatial": lambda model, x: gb.expectations.spatial_statistics(model, x),
    "expect_of": lambda model, x: gb.expectations.expect_of(model, lambda v: v, 0, x),
}
GOOD = np.zeros((2, N), np.int8)


def spoiled(value) -> np.ndarray:
    """Two rows with something else in one cell."""
    rows = GOOD.astype(np.asarray(value).dtype)
    rows[1, 2] = value
    return rows


@pytest.fixture(params=models_with_variables(N), ids=lambda part: f"{part[0]}-{name_of(part[1])}")
def model(request):
    kind, variables = request.param
    return random_model_of(kind, gb.graphs.grid(2, 2), np.random.default_rng(0), variables)


@pytest.fixture(params=CALLS.values(), ids=CALLS)
def call(request):
    return request.param


def test_numbers_that_are_no_codes_are_refused(model, call):
    for value in (7, 127, -1, -128, 0.5, 257, 1e9, np.inf):
        with pytest.raises(CodingError, match="holds"):
            call(model, spoiled(value))
    with pytest.raises(MissingValuesError, match="missing cells"):
        call(model, spoiled(np.nan))
    call(model, GOOD)


def test_rows_of_another_shape_are_refused(model, call):
    for width in (N - 1, N + 1):
        with pytest.raises(ArgumentError, match=f"give rows of {N} variables"):
            call(model, np.zeros((2, width), np.int8))
    if call is not CALLS["init"]:  # chains may all start at one row
        with pytest.raises(ArgumentError, match="shape"):
            call(model, GOOD[0])


def test_codes_beyond_the_tables_do_not_reach_the_kernels():
    family = gb.TablesFamily.potts(gb.graphs.complete(200), Variables.binary)
    with pytest.raises(CodingError, match="x holds 127 for variable 0: give its code, from 0 to 1, or a Dataset"):
        family.mean_statistics(np.full((2000, 200), 127, np.int8))


def test_every_column_has_its_own_range():
    variables = Variables.categories((2, 4, 3))
    assert variables.checked([[1, 3, 2]]).tolist() == [[1, 3, 2]]
    with pytest.raises(CodingError, match="holds 3 for variable 2: give its code, from 0 to 2"):
        variables.checked([[1, 3, 3]])


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.float32, bool, object])
def test_whole_numbers_of_any_type_are_taken(dtype):
    codes = Variables.spins(2).checked(np.array([[0, 1]], dtype))
    assert codes.dtype == np.int8
    assert codes.tolist() == [[0, 1]]


def test_int8_codes_are_not_copied():
    codes = np.ones((3, 2), np.int8)
    assert Variables.spins(2).checked(codes) is codes


@pytest.mark.parametrize("x", [[["a", "b"]], [[1j, 1]], [[object(), 1]]])
def test_what_is_no_number_is_refused(x):
    for variables in (Variables.spins(2), Variables.reals(2)):
        with pytest.raises(CodingError, match="x does not hold numbers"):
            variables.checked(x)


def test_ragged_rows_are_refused():
    with pytest.raises(ArgumentError, match="different lengths"):
        Variables.spins(2).checked([[1, 1], [1]])


def test_weights_must_be_one_for_each_row(model):
    for weights in (np.ones(1), np.ones(3), np.ones((2, 1))):
        with pytest.raises(ArgumentError, match="weights has shape"):
            model.family.mean_statistics(GOOD, weights)


def test_a_mean_needs_a_row(model):
    with pytest.raises(ArgumentError, match="no rows"):
        model.family.mean_statistics(GOOD[:0])
    assert model.energy(GOOD[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("nodes", "codes", "match"),
    [
        ([0], [9], "codes gives 9 to variable 0"),
        ([0], [0.5], "codes gives 0.5 to variable 0"),
        ([0], ["a"], "codes gives 'a' to variable 0"),
        ([0], [1, 1], "codes has shape"),
        ([N], [1], "nodes"),
        ([-1], [1], "nodes"),
        ([0, 0], [1, 1], "each once"),
        ([0.5], [1], "nodes"),
        (0, 1, "nodes"),
    ],
)
def test_given_codes_are_checked(model, nodes, codes, match):
    with pytest.raises(ArgumentError, match=match):
        model.given(nodes, codes)


def test_nothing_may_be_fixed():
    model = gb.PairwiseFamily.model(gb.graphs.complete(2), [0.1, 0.2], [0.3])
    assert checked_fixed([2, 2], [], [])[0] == ()
    rest, constant = model.given([], [])
    assert (rest.theta.tolist(), constant) == (model.theta.tolist(), 0.0)


def test_base_rates_of_data_with_other_values_are_refused():
    model = gb.Model.zeros(gb.PairwiseFamily(gb.graphs.complete(2)))
    with pytest.raises(CodingError, match="the data holds 2 for variable 1"):
        variable_path(model, dataset_of([[0, 2], [1, 0]], Variables.categories((2, 3))))
