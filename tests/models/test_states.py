"""States that are none are refused by every model, sampler and estimate, in the same words."""

from __future__ import annotations

import numpy as np
import pytest

import gibbsian as gb
from gibbsian.diagnostics.partition import log_partition_interval
from gibbsian.domain import BINARY, SPIN, Categories
from gibbsian.errors import ArgumentError, CodingError, MissingValuesError
from gibbsian.models.states import checked_fixed, checked_states
from gibbsian.samplers import IndependentVariables
from gibbsian.samplers.annealing import Annealing
from systems import models_with_domains, random_model_of

N = 4
CALLS = {
    "energy": lambda model, x: model.energy(x),
    "log_weights": lambda model, x: model.log_weights(x),
    "mean_statistics": lambda model, x: model.mean_statistics(x),
    "init": lambda model, x: gb.samplers.Gibbs().init(model, 2, np.random.default_rng(0), states=x),
    "reverse": lambda model, x: Annealing(betas=2).reverse(model, x, rng=0),
    "interval": lambda model, x: log_partition_interval(model, x, Annealing(betas=2), rng=0, warn=False),
    "spatial": lambda model, x: gb.expectations.spatial_statistics(model, x),
    "expect_of": lambda model, x: gb.expectations.expect_of(model, lambda v: v, 0, x),
}


def good(model) -> np.ndarray:
    """Two states."""
    return model.domain.from_codes(np.zeros((2, model.n_variables), np.int8))


def spoiled(model, value) -> np.ndarray:
    """Two states with something else in one cell."""
    states = good(model).astype(np.asarray(value).dtype)
    states[1, 2] = value
    return states


@pytest.fixture(params=models_with_domains(N), ids=lambda part: f"{part[0]}-{part[1].name}")
def model(request):
    name, domain = request.param
    return random_model_of(name, gb.graphs.grid(2, 2), np.random.default_rng(0), domain)


@pytest.fixture(params=CALLS.values(), ids=CALLS)
def call(request):
    return request.param


def test_numbers_that_are_no_values_are_refused(model, call):
    for value in (7, 127, -2, -128, 0.5, 257, 1e9, np.inf):
        with pytest.raises(CodingError, match="holds"):
            call(model, spoiled(model, value))
    with pytest.raises(MissingValuesError, match="missing cells"):
        call(model, spoiled(model, np.nan))
    call(model, good(model))


def test_rows_of_another_shape_are_refused(model, call):
    for width in (N - 1, N + 1):
        with pytest.raises(ArgumentError, match=f"{width} variables but the model has {N}"):
            call(model, np.full((2, width), model.domain.from_codes(1), np.int8))
    if call is not CALLS["init"]:  # chains may all start at one row
        with pytest.raises(ArgumentError, match="shape"):
            call(model, good(model)[0])


def test_zero_is_no_spin(call):
    for kind in ("pairwise", "higher-order", "potts", "markov-random-field"):
        model = random_model_of(kind, gb.graphs.grid(2, 2), np.random.default_rng(0), SPIN)
        if call is CALLS["mean_statistics"] and kind == "pairwise":
            continue  # a missing cell, which adds nothing
        with pytest.raises(CodingError, match="the values of the spin domain are -1 and 1"):
            call(model, spoiled(model, 0))


def test_codes_beyond_the_tables_do_not_reach_the_kernels():
    model = gb.PottsModel.zeros(gb.graphs.complete(200), Categories((2,) * 200))
    with pytest.raises(CodingError, match="x holds 127 for variable 0: give its code, from 0 to 1, or a Dataset"):
        model.mean_statistics(np.full((2000, 200), 127, np.int8))


def test_every_column_has_its_own_range():
    model = gb.PottsModel.zeros(gb.graphs.complete(3), Categories((2, 4, 3)))
    assert checked_states(model, [[1, 3, 2]]).tolist() == [[1, 3, 2]]
    with pytest.raises(CodingError, match="holds 3 for variable 2: give its code, from 0 to 2"):
        checked_states(model, [[1, 3, 3]])


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.float32, bool, object])
def test_whole_numbers_of_any_type_are_taken(dtype):
    model = gb.PairwiseModel.zeros(gb.graphs.complete(2), BINARY)
    states = checked_states(model, np.array([[0, 1]], dtype))
    assert states.dtype == np.int8
    assert states.tolist() == [[0, 1]]


def test_int8_states_are_not_copied():
    states = np.ones((3, 2), np.int8)
    assert checked_states(gb.PairwiseModel.zeros(gb.graphs.complete(2)), states) is states


@pytest.mark.parametrize("x", [[["a", "b"]], [[1j, 1]], [[object(), 1]]])
def test_what_is_no_number_is_refused(x):
    with pytest.raises(CodingError, match="x does not hold numbers"):
        checked_states(gb.PairwiseModel.zeros(gb.graphs.complete(2)), x)


def test_ragged_rows_are_refused():
    with pytest.raises(ArgumentError, match="different lengths"):
        checked_states(gb.PairwiseModel.zeros(gb.graphs.complete(2)), [[1, 1], [1]])


def test_weights_must_be_one_for_each_state(model):
    for weights in (np.ones(1), np.ones(3), np.ones((2, 1))):
        with pytest.raises(ArgumentError, match="weights has shape"):
            model.mean_statistics(good(model), weights)


def test_a_mean_needs_a_state(model):
    with pytest.raises(ArgumentError, match="no rows"):
        model.mean_statistics(good(model)[:0])
    assert model.energy(good(model)[:0]).shape == (0,)


def test_codes_that_are_none_are_refused_where_rows_are_bound(model):
    codes = np.zeros((2, N), np.int8)
    for value in (7, -1):
        codes[1, 2] = value
        with pytest.raises(CodingError, match="holds"):
            model.conditionals(codes)
    with pytest.raises(ArgumentError, match=f"{N - 1} variables but the model has {N}"):
        model.conditionals(codes[:, 1:])


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
    model = gb.PairwiseModel.build(gb.graphs.complete(2), [0.1, 0.2], [0.3])
    assert checked_fixed([2, 2], [], [])[0] == ()
    rest, constant = model.given([], []).at(model.theta)
    assert (rest.theta.tolist(), constant) == (model.theta.tolist(), 0.0)


def test_base_rates_of_foreign_data_are_refused():
    model = gb.PairwiseModel.zeros(gb.graphs.complete(2))
    with pytest.raises(CodingError, match="the data holds 0"):
        IndependentVariables.of_data(model, gb.Dataset.read([[0, 1], [1, 0]]))
