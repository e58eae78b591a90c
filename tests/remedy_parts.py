"""Situations with a remedy: what users of models, samplers, engines and other parts by themselves run into."""

from __future__ import annotations

import dataclasses
import json
import sys
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import gibbsian as gb
from gibbsian import domain, models
from gibbsian.answers import answers_about
from gibbsian.cli.demo import _write_table
from gibbsian.data import Columns, DataStream, OneHot, Threshold
from gibbsian.expectations import EXPECTATIONS, regions
from gibbsian.expectations.imputation import column_frequencies
from gibbsian.expectations.layer_chains import as_negative_phase, spatial_moments
from gibbsian.expectations.sampled import ais, monte_carlo
from gibbsian.inference.completions import count_completions
from gibbsian.inference.layer_pseudolikelihood import log_pseudolikelihood
from gibbsian.inference.posterior import log_evidence
from gibbsian.learning.mean_field import warm_start
from gibbsian.learning.runaway import check_runaway
from gibbsian.models import BinaryUnits, CategoricalUnits, GaussianUnits, SpinUnits
from gibbsian.models.base import Model
from gibbsian.models.families.full_span import FullSpanFamily
from gibbsian.models.families.pairwise import PairwiseFamily
from gibbsian.models.families.potentials import Potential, PotentialsFamily
from gibbsian.models.families.products import ProductsFamily
from gibbsian.models.families.quadrature import QuadratureFamily
from gibbsian.models.families.span_basis import SpanBasis
from gibbsian.models.families.tables import TablesFamily
from gibbsian.models.layers.stack import top_of
from gibbsian.models.layers.units import as_units, value_tables
from gibbsian.models.mixtures.von_mises_fisher import concentration
from gibbsian.models.scopes import Scopes
from gibbsian.models.variables import Quadrature, Variables, as_reals
from gibbsian.rng import Key
from gibbsian.sampling.layers import visible_chains
from layered_systems import network, restricted, stack
from remedies import OUT, Later, Row
from remedy_rows import (
    BITS,
    CATEGORIES,
    HOLES,
    IMPLIED,
    NUMBERS,
    QUICK,
    TWINS,
    WIDE,
    deep,
    field,
    fit,
    fitted,
    folder,
    rbm,
    read,
    span,
    stream,
    structure,
    within,
)
from systems import ask as by

THREE = gb.graphs.complete(3)
SPINS = PairwiseFamily.model(THREE, np.zeros(3), [0.5, 0.0, 0.2])
LAYERS = restricted(BinaryUnits(3), BinaryUnits(2), w=np.full((3, 2), 0.3))
REAL_LAYERS = restricted(GaussianUnits(3), BinaryUnits(2))
POTTS = Model.zeros(TablesFamily.potts(THREE, Variables.categories((3, 3, 3))))
UNIT_INTERVAL = Quadrature.of(domain.Continuum("interval", 0.0, 1.0), 3)


GIVEN = gb.expectations.Sampled(gb.expectations.FixedSamples(np.array([[1, 0, 1], [0, 0, 1]], np.int8)))


def _first_call(expectation):
    bound = expectation.bind(SPINS)
    return bound(SPINS.theta, bound.init(SPINS.theta, gb.rng.Key.of(0)))


def chain(n):
    return gb.graphs.grid(1, n)


def spins(graph):
    return Model.zeros(PairwiseFamily(graph))


def swap(name, call, wrong, *right, says="", but=()):
    """A row about one argument: its wrong value, and those that the remedy leads to."""
    return Row(name, lambda x: call(x), {"x": wrong}, tuple({"x": value} for value in right), says, but=but)


@cache
def belief(sizes=(3, 2, 2)):
    return network([BinaryUnits(size) for size in sizes])


def _log_partition(model):
    return model.family.log_partition(model.parts)


def _real_deep():
    model = stack([GaussianUnits(2), BinaryUnits(2), BinaryUnits(2)])
    return model.family, model.parts


def _conditional():
    family = models.ConditionalFamily.of(1, BinaryUnits(2), BinaryUnits(2))
    return Model(family, np.zeros(family.n_parameters))


def folder_path():
    return Path(folder().name)


def unmixed(rows, **how):
    """Learn where chains that never agree stand behind the moments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gibbsian.learning.trained._tempered", lambda model, rng: None)
        patch.setattr("gibbsian.learning.trained.MAX_R_HAT", 0.9)
        return gb.BoltzmannMachine(l2=0.01, random_state=0, **how).fit(rows)


def another_table():
    (folder_path() / "demo").mkdir(exist_ok=True)
    BITS.to_csv(folder_path() / "demo" / "votes.csv", index=False)
    return folder_path() / "demo"


def saved(machine, name="kept-part.gibbs"):
    machine.save(folder_path() / name)
    return folder_path() / name


def saved_model():
    path = folder_path() / "bare.gibbs"
    gb.storage.write_model(path, gb.storage.StoredModel(SPINS, domain.as_coding("spin"), ("a", "b", "c")))
    return path


def kernel_density():
    from sklearn.neighbors import KernelDensity

    return KernelDensity()


@cache
def of_own_learner():
    machine = gb.load(saved(gb.BoltzmannMachine(learner="mple", l2=0.1).fit(BITS)))
    machine.result_.provenance["learner"] = "Mine"
    return machine


MAJORITY = pd.DataFrame([[*bits, int(sum(bits) >= 2)] for bits in np.ndindex(2, 2, 2)] * 4, columns=list("abcd"))
MAJORITY_HOLE = MAJORITY.astype(float).mask(np.arange(128).reshape(32, 4) == 0)


@cache
def strong_rows():
    """Rows of couplings that are too strong for TAP."""
    rng = np.random.default_rng(1)
    couplings, biases = rng.normal(size=(4, 4)) * 2, rng.normal(size=4) * 2
    model = PairwiseFamily.model(gb.graphs.complete(4), biases, couplings[np.triu_indices(4, 1)])
    return gb.Dataset.of_states(gb.inference.exact(model).sample(400, rng), "spin")


def learned_and_judged(rows, **settings):
    return gb.BoltzmannMachine(**{"learner": "mple", "max_iter": 500, **settings}).fit(rows)


# -- models -----------------------------------------------------------------------------------------------------------
MODELS = [
    swap(
        "the joint form of a belief network",
        lambda model: model.family.joint(model.theta),
        Later(belief),
        Later(lambda: top_of(belief())),
        says="its `top` machine",
    ),
    swap(
        "a temperature of a belief network",
        lambda model: model.at(0.5),
        Later(belief),
        Later(lambda: top_of(belief())),
        Later(lambda: stack([BinaryUnits(2)] * 3)),
        says="its `top`, or a deep machine",
    ),
    swap(
        "weights of a wide belief network",
        lambda sizes: belief(sizes).log_evidence(np.zeros((1, sizes[0]))),
        (2, 40, 40, 2),
        (2, 3, 3, 2),
        says="which bounds it",
    ),
    swap(
        "a table of a long clique",
        lambda n: ProductsFamily(Scopes([range(n)], n)).factors(np.array([0.1])),
        30,
        5,
        says="Monte Carlo",
    ),
    swap("mean lengths beyond one", lambda length: concentration(length, 3), 2.0, 0.5, says="unit norm"),
    swap(
        "log Z of wide layers",
        lambda n: _log_partition(stack([BinaryUnits(n)] * 3)),
        40,
        3,
        says="log_partition_interval",
    ),
    swap(
        "too few biases of layers",
        lambda biases: stack([BinaryUnits(2)] * 3, biases=biases),
        [None],
        [None] * 3,
        says="give 3",
    ),
    swap(
        "biases of another shape",
        lambda biases: restricted(BinaryUnits(3), BinaryUnits(2), biases),
        [0.1],
        [0.1, 0.2, 0.3],
        says="(3,)",
    ),
    swap(
        "hidden Gaussian units",
        lambda hidden: stack([BinaryUnits(2), hidden, BinaryUnits(2)]),
        GaussianUnits(2),
        BinaryUnits(2),
        SpinUnits(2),
        CategoricalUnits((3, 3)),
        says="binary, spin or categorical",
    ),
    swap(
        "layers without a hidden one",
        lambda layers: stack(layers),
        [BinaryUnits(2)],
        [BinaryUnits(2)] * 2,
        says="at least one hidden",
    ),
    swap(
        "a list of real states",
        value_tables,
        Later(lambda: REAL_LAYERS.visible),
        Later(lambda: REAL_LAYERS.hidden),
        says="the other layer",
    ),
    swap(
        "an unknown layer",
        lambda kind: as_units(kind, 2, **({"sizes": (2, 2)} if kind == "categorical" else {})),
        "ternary",
    ),
    swap(
        "a temperature of a mixture",
        lambda how: fitted("mixture").sample(2, random_state=0, **how),
        {"temperature": 2.0},
        {},
        says="leave `temperature` out",
    ),
    swap(
        "cliques out of order",
        lambda cliques: Scopes(cliques, 3),
        [(0, 1), (0,)],
        [(0,), (0, 1)],
        says="smaller ones first",
    ),
    swap("states in one dimension", SPINS.log_weights, [1, 1, 0], [[1, 1, 0]], says="rows of 3 variables"),
    swap("real states with holes", lambda x: as_reals(x, "x"), [[0.5, np.nan]], [[0.5, 0.1]], says="fill them"),
    swap("real states of words", lambda x: as_reals(x, "x"), [["x"]], [[0.5]], says="`Dataset.read`"),
    swap(
        "the mean of no state",
        lambda x: SPINS.family.mean_statistics(x),
        np.ones((0, 3), int),
        np.ones((1, 3), int),
        says="at least one row",
    ),
    swap(
        "weights of other states",
        lambda weights: SPINS.family.mean_statistics(np.ones((2, 3), int), weights),
        [1.0],
        [1.0, 2.0],
        says="2 rows",
    ),
    swap("too few fixed values", lambda codes: SPINS.given([0, 1], codes), [1], [1, 0], says="each of 2 nodes"),
    swap("a fixed value that is none", lambda code: SPINS.given([0], [code]), 3, 1, says="0 to 1"),
]

# -- domains ----------------------------------------------------------------------------------------------------------
DOMAINS = [
    swap("an unknown support", lambda name: domain.Continuum(name), "circle"),
    swap(
        "codes of continuous values",
        UNIT_INTERVAL.codes_of,
        np.full((1, 3), 0.123),
        UNIT_INTERVAL.rows_of(np.ones((1, 3), int)),
        says="Threshold",
    ),
    swap("a variable without a value", domain.Categories, (2, 0), (2, 2), says="are possible"),
]

# -- expectations -----------------------------------------------------------------------------------------------------
EXPECTED = [
    swap(
        "settings of a negative phase",
        lambda given: as_negative_phase(*given[:1], **given[1]),
        (gb.expectations.SampledLayers(gb.expectations.RestartedBlockChains()), {"n_steps": 2}),
        (gb.expectations.SampledLayers(gb.expectations.RestartedBlockChains(n_steps=2)), {}),
        says="give them there",
    ),
    swap(
        "temperatures of replicas that fall",
        lambda betas: gb.expectations.TemperedBlockChains(betas=betas),
        [0.5, 0.2, 1.0],
        [0.2, 0.5, 1.0],
        5,
    ),
    swap(
        "a number of samples where they are given",
        lambda n: GIVEN if n is None else GIVEN.with_samples(n),
        3,
        None,
    ),
    swap("given samples without any", _first_call, gb.expectations.Sampled(gb.expectations.FixedSamples()), GIVEN),
    swap("contrastive divergence without rows", lambda name: _first_call(EXPECTATIONS.create(name)), "cd", "pcd"),
    swap(
        "contrastive divergence given present cells",
        lambda name: EXPECTATIONS.create(name).bind(SPINS, read(HOLES, coding="binary")),
        "cd",
        "pcd",
        "exact",
    ),
    swap(
        "an unknown region of layers",
        lambda region: spatial_moments(LAYERS.family, LAYERS.parts, np.zeros((2, 3)), np.zeros((2, 2)), region),
        "whole",
    ),
    swap(
        "a pair without hidden values",
        lambda hidden: spatial_moments(LAYERS.family, LAYERS.parts, np.zeros((2, 3)), hidden, "pair"),
        None,
        np.zeros((2, 2)),
        says="`hidden=`",
    ),
    swap(
        "an unknown region",
        regions.as_rule,
        "circle",
        0,
        "2",
        "s2",
        "forest",
        "planar",
        lambda graph, target: target,
        {0: (0, 1)},
        says="'s2', 'forest', 'planar'",
    ),
    swap("no region", regions.as_rules, [], ["s2"], says="at least one"),
    swap(
        "a region without its target",
        lambda region: regions.check_region(region, (0, 1), 3),
        (0, 2),
        (0, 1, 2),
        says="add the target",
    ),
    swap(
        "a region of names",
        lambda region: regions.check_region(region, (0, 1), 3),
        ("a", "b"),
        (0, 1),
        says="numbers of variables",
    ),
    swap(
        "regions of no target",
        lambda given: gb.expectations.plan_regions(spins(chain(3)), given),
        {(0, 2): (0, 1, 2), 0: (0, 1), 1: (1,), 2: (2,), (0, 1): (0, 1), (1, 2): (1, 2)},
        {0: (0, 1), 1: (1,), 2: (2,), (0, 1): (0, 1), (1, 2): (1, 2)},
        says="interact",
    ),
    swap(
        "two regions of a target",
        lambda given: gb.expectations.plan_regions(spins(chain(2)), given),
        {0: (0,), 1: (1,), (0, 1): (0, 1), (1, 0): (0, 1)},
        {0: (0,), 1: (1,), (0, 1): (0, 1)},
        says="once",
    ),
    swap(
        "a region that is too large to sum over",
        lambda region: gb.expectations.plan_regions(spins(gb.graphs.complete(40)), region),
        2,
        "s2",
        says="'s2'",
    ),
    swap("samples of one dimension", gb.expectations.Samples, [1, 1, 0], [[1, 1, 0]], says="one row"),
    Row(
        "groups and repeats",
        lambda **how: gb.expectations.Samples(np.ones((4, 3), int), **how),
        {"groups": [0, 0, 1, 1], "repeats": [1, 1, 1, 1]},
        ({"repeats": OUT},),
        "each draw",
    ),
    Row(
        "a row that stands for no draw",
        lambda states, repeats: gb.expectations.Samples(states, repeats=repeats),
        {"states": np.ones((2, 3), int), "repeats": [1, 0]},
        ({"states": np.ones((1, 3), int), "repeats": [1]},),
        "leave out",
    ),
    swap(
        "weights of other samples",
        lambda weights: gb.expectations.Samples(np.ones((2, 3), int), weights),
        [1.0],
        [1.0, 2.0],
        says="2 samples",
    ),
    swap(
        "samples with holes",
        gb.expectations.Samples.of,
        Later(lambda: gb.Dataset.read(HOLES)),
        Later(lambda: gb.Dataset.read(HOLES).complete_rows()),
        says="drop those rows",
    ),
    swap(
        "a plan of another model",
        lambda plan: gb.expectations.spatial_statistics(SPINS, np.ones((2, 3), int), plan=plan),
        Later(lambda: gb.expectations.plan_regions(spins(chain(3)))),
        Later(lambda: gb.expectations.plan_regions(SPINS)),
        says="plan_regions(model, region)",
    ),
    swap(
        "a function of too many variables' values",
        lambda n: gb.expectations.expect_of(spins(chain(30)), lambda *x: sum(x), range(n), np.ones((4, 30), int)),
        30,
        3,
        says="at most",
    ),
    swap(
        "a function of no number",
        lambda function: gb.expectations.expect_of(SPINS, function, [0], np.ones((4, 3), int)),
        lambda x: "x",
        lambda x: x,
        says="a number",
    ),
    swap(
        "a function that is none",
        lambda function: gb.expectations.expect_of(SPINS, function, [0], np.ones((4, 3), int)),
        "x",
        lambda x: x,
        says="a function",
    ),
    swap(
        "a function of no node",
        lambda nodes: gb.expectations.expect_of(SPINS, lambda *x: 1.0, nodes, np.ones((4, 3), int)),
        [],
        [0],
        says="at least one",
    ),
    swap(
        "a function of another number of nodes",
        lambda function: gb.expectations.expect_of(SPINS, function, [0, 1], np.ones((4, 3), int)),
        lambda x: x,
        lambda x, y: x * y,
        says="one value of each",
    ),
]

# -- exact inference --------------------------------------------------------------------------------------------------
ENGINES = [
    swap(
        "too few values to condition on",
        lambda values: gb.inference.conditional(SPINS, [0, 1], values),
        [1],
        [1, 0],
        says="each of 2 nodes",
    ),
    swap(
        "everything conditioned on",
        lambda nodes: gb.inference.conditional(SPINS, nodes, [1] * len(nodes)),
        [0, 1, 2],
        [0, 1],
        says="at least one free",
    ),
    swap(
        "a code beyond the last one",
        lambda values: gb.inference.conditional(POTTS, [0], values),
        [3],
        [2],
        says="0 to 2",
    ),
    swap(
        "elimination of everything",
        lambda graph: by(gb.inference.Elimination, spins(graph)).log_partition,
        Later(lambda: gb.graphs.complete(60)),
        Later(lambda: chain(60)),
        says="sampling",
    ),
    swap(
        "tables of everything",
        lambda graph: (
            by(
                gb.inference.FactorElimination, Model.zeros(TablesFamily.potts(graph, Variables.categories((3,) * 40)))
            ).log_partition
        ),
        Later(lambda: gb.graphs.complete(40)),
        Later(lambda: chain(40)),
        says="sampling",
    ),
    swap(
        "means of categories",
        lambda question: question(gb.inference.exact(POTTS)),
        lambda answers: answers.means,
        lambda answers: answers.marginal((0,)),
        says="marginal(nodes)",
    ),
    swap(
        "means of the values of layers",
        lambda question: question(gb.inference.exact(LAYERS)),
        lambda answers: answers.means,
        lambda answers: answers.moments,
        says="`moments`",
    ),
    swap(
        "a density narrower than its nodes",
        lambda n_nodes: gb.inference.exact(
            Model(
                QuadratureFamily.build(
                    ["squared-difference"],
                    Quadrature.of(domain.Continuum("interval", 0.0, 1.0, n_nodes), 2),
                    chain(2),
                ),
                np.array([-5000.0]),
            )
        ),
        24,
        127,
        says="more of them",
    ),
    swap(
        "missing Gaussian cells of layers",
        lambda rows: rbm(NUMBERS, visible="gaussian").score(rows),
        NUMBERS.mask(NUMBERS > 1.5),
        NUMBERS,
        says="fill",
    ),
    swap(
        "pseudolikelihood of real layers",
        lambda model: log_pseudolikelihood(model, np.zeros((1, 3), int)),
        REAL_LAYERS,
        LAYERS,
        says="discrete",
    ),
    swap("an unknown side of layers", lambda side: gb.inference.LayerSums(LAYERS.family, side=side), "left"),
    swap(
        "sums over real layers",
        lambda side: gb.inference.LayerSums(REAL_LAYERS.family, side=side),
        "visible",
        "hidden",
        says="the other",
    ),
    Row(
        "Pfaffians of a graph that is not planar",
        lambda engine, model: engine(model).log_partition,
        {
            "engine": lambda model: by(gb.inference.Planar, model),
            "model": spins(gb.graphs.complete(5)),
        },
        ({"engine": gb.inference.exact},),
        "gb.inference.exact(model)",
    ),
]

# -- samplers ---------------------------------------------------------------------------------------------------------
SAMPLERS = [
    swap(
        "one walker on the way back",
        lambda states: gb.sampling.Annealing(betas=20).reverse(SPINS, states, 0),
        [[1, 1, 1]],
        [[1, 1, 1], [1, 1, 0]],
        says="two or more",
    ),
    swap(
        "a mask of another shape",
        lambda mask: gb.sampling.Gibbs().bind(SPINS.family, np.array(mask)),
        [True],
        [True, False, False],
        np.zeros((2, 3), bool),
        says="(3,) or (n_chains, 3)",
    ),
    swap(
        "a mask of other chains",
        lambda mask: gb.sampling.Gibbs().bind(SPINS.family, mask).init(2, Key.of(0), np.ones((2, 3), int)),
        np.zeros((3, 3), bool),
        np.zeros((2, 3), bool),
        says="one for each chain",
    ),
    swap(
        "chains of another mask",
        lambda mask: (
            gb.sampling.Gibbs()
            .bind(SPINS.family, mask)
            .step(SPINS.theta, gb.sampling.Gibbs().bind(SPINS.family).init(2, Key.of(0)))
        ),
        np.zeros((3, 3), bool),
        np.zeros((2, 3), bool),
        says="bind another mask",
    ),
    swap(
        "single units of a layer",
        lambda transition: gb.sampling.kernel_for(LAYERS.family, transition),
        "random-scan",
        "gibbs",
        says="'gibbs'",
    ),
    swap(
        "single updates of layers",
        lambda how: gb.sampling.kernel_for(LAYERS.family).step(
            LAYERS.theta, gb.sampling.kernel_for(LAYERS.family).init(2, Key.of(0)), **how
        ),
        {"n_updates": 3},
        {"n_sweeps": 3},
        says="n_sweeps=",
    ),
    swap(
        "rows for other chains of layers",
        lambda rows: gb.sampling.draw_layers(LAYERS, 2, 0, n_chains=2, burn_in=1, states=rows),
        np.ones((3, 3), int),
        np.ones((2, 3), int),
        says="each of 2 chains",
    ),
    swap(
        "states of other chains",
        lambda states: gb.sampling.Gibbs().bind(SPINS.family).init(2, Key.of(0), states),
        np.ones((3, 3), int),
        np.ones((2, 3), int),
        np.ones((1, 3), int),
        says="2 chains, or one for all",
    ),
    swap(
        "rows of another layer",
        lambda rows: visible_chains(LAYERS, rows, Key.of(0)),
        np.ones((2, 2)),
        np.ones((2, 3)),
        says="(2, 3)",
    ),
    swap(
        "an unknown base",
        lambda base: gb.sampling.variable_path(SPINS, base),
        "zeros",
        Later(lambda: gb.Dataset.read(BITS).convert("spin")),
        np.log(np.full(6, 0.5)),
        says="'uniform', 'biases', a Dataset or log-probabilities",
    ),
    swap(
        "a base of other variables",
        lambda base: gb.sampling.variable_path(SPINS, base),
        np.log(np.full(8, 0.5)),
        np.log(np.full(6, 0.5)),
        says="6 log-probabilities",
    ),
    swap(
        "an unknown base of layers",
        lambda base: gb.sampling.layer_path(LAYERS, base, random_state=0),
        "zeros",
        Later(lambda: gb.Dataset.read(BITS)),
        np.zeros(5),
        says="'chains', 'biases', 'uniform', a Dataset or fields",
    ),
    swap(
        "an unknown layer that is summed",
        lambda summed: gb.sampling.layer_path(LAYERS, summed=summed, random_state=0),
        "both",
    ),
    swap(
        "a base of other layers",
        lambda base: gb.sampling.layer_path(LAYERS, base, random_state=0),
        np.zeros(6),
        np.zeros(5),
        says="the machine has 5",
    ),
    swap(
        "walkers of another width",
        lambda states: gb.sampling.Annealing(betas=20).reverse(LAYERS, states, 0),
        np.ones((3, 2), int),
        np.ones((3, 3), int),
        says="3 visible units",
    ),
    swap(
        "walkers at no value",
        lambda states: gb.sampling.Annealing(betas=20).reverse(LAYERS, states, 0),
        np.full((3, 3), 7),
        np.ones((3, 3), int),
        says="units take",
    ),
    swap(
        "an unknown start of the way back",
        lambda start: gb.diagnostics.log_partition_interval(
            LAYERS, samples=start, annealing=gb.sampling.Annealing(10, 20), rng=0
        ),
        "zeros",
        Later(lambda: gb.Dataset.read(BITS)),
        np.ones((10, 3), int),
        says="states or a Dataset",
    ),
]


# -- learners ---------------------------------------------------------------------------------------------------------
def learned(rows=BITS, learner="mple", model=None, how=None, max_iter=20, **settings):
    """Run a learner by itself, without the checks of an estimator."""
    data = rows if isinstance(rows, gb.Dataset) else gb.Dataset.read(rows)
    every_pair = gb.graphs.complete(data.n_variables)
    start = Model.zeros(PairwiseFamily(every_pair, data.variables)) if model is None else model
    made = gb.learning.LEARNERS.create(learner, **settings)
    return gb.learning.run(made, start, data, np.random.default_rng(0), max_iter=max_iter)


def potts_learned(rows, **settings):
    data = gb.Dataset.read(rows, coding="categorical")
    return learned(
        data, model=Model.zeros(TablesFamily.potts(gb.graphs.complete(data.n_variables), data.variables)), **settings
    )


def full_span(rows, drop=()):
    return Model.zeros(FullSpanFamily.uniform(Variables.binary(rows.shape[1] - len(drop))))


LEARNED = [
    swap(
        "a line search over minibatches",
        lambda optimizer: gb.learning.as_learner("mple", batch_size=10, optimizer=optimizer),
        "lbfgs",
        "ascent",
        "adam",
    ),
    swap(
        "chains for real numbers",
        lambda learner: gb.GaussianMachine(learner=learner, l2=0.0).fit(NUMBERS),
        Later(lambda: gb.learning.PCD()),
        "mle",
        "graphical-lasso",
    ),
    swap(
        "hidden units of another kind than the columns",
        lambda how: rbm(CATEGORIES, visible="categorical", max_iter=2, **how),
        {"learner": "mle"},
        {"learner": "minibatch"},
        says="`learner='minibatch'`",
    ),
    swap(
        "a prior of classes",
        lambda how: gb.learning.run(
            gb.learning.LEARNERS.create("em", **how),
            Model.zeros(models.GaussianMixtureFamily(2, 3)),
            gb.Dataset.read(NUMBERS, coding="real"),
            np.random.default_rng(0),
        ),
        {"log_prior": "cauchy:2.5"},
        {},
        says="leave it out",
    ),
    swap(
        "an unknown warm start",
        lambda name: warm_start(name, Model.zeros(PairwiseFamily(THREE, Variables.binary)), gb.Dataset.read(BITS)),
        "guess",
    ),
    Row(
        "mean field of one value",
        learned,
        {"rows": BITS.assign(c=1), "learner": "mean-field"},
        ({"rows": BITS},),
        "`l2=0.01`",
    ),
    Row(
        "mean field of what others determine",
        learned,
        {"rows": BITS.assign(c=BITS["a"]), "learner": "mean-field"},
        ({"rows": BITS},),
        "`l2=0.01`",
    ),
    Row(
        "pairs of which a combination never occurs",
        learned,
        {"rows": BITS.assign(c=BITS["a"]), "learner": "mean-field", "approximation": "independent-pair"},
        ({"rows": BITS},),
        "`l2=0.01`",
    ),
    Row(
        "couplings too strong for a closed form",
        learned,
        {"rows": Later(strong_rows), "learner": "mean-field", "approximation": "tap", "l2": 0.01},
        ({"l2": 1.0}, {"learner": "mple", "approximation": OUT}),
        "raise `l2=` or use 'mple'",
        but=("mple",),
    ),
    Row(
        "minibatches of what has no layers",
        potts_learned,
        {"rows": CATEGORIES, "learner": "minibatch", "batch_size": 10, "max_iter": 3},
    ),
    swap(
        "errors of logRISE with a penalty",
        lambda errors: errors(gb.BoltzmannMachine(learner="logrise", l2=0.1).fit(BITS), BITS),
        gb.uncertainty.standard_errors,
        lambda machine, rows: gb.uncertainty.bootstrap(machine, rows, 3, random_state=0),
        says="bootstrap",
    ),
    Row(
        "a model of another coding than the rows",
        lambda **how: learned(learner="online", max_iter=2, model=Model.zeros(PairwiseFamily(THREE, **how))),
        {"variables": Variables.spins},
        code={"data": gb.Dataset.read(BITS)},
        says="`variables=data.variables`",
    ),
    Row(
        "a value that never occurs",
        potts_learned,
        {
            "rows": Later(lambda: gb.Dataset.read(CATEGORIES, coding=gb.data.Labels(["low", "mid", "top", "no"]))),
            "learner": "mean-field",
        },
        says="`l2=1`",
    ),
    Row(
        "categories never together",
        potts_learned,
        {
            "rows": CATEGORIES.assign(
                a=CATEGORIES["a"].where(np.arange(60) < 30), b=CATEGORIES["b"].where(np.arange(60) >= 30)
            ),
            "learner": "mean-field",
            "l2": 1.0,
        },
        ({"rows": CATEGORIES[["a", "c"]]},),
        "`learner='mple'`",
    ),
    Row(
        "categories that determine each other",
        potts_learned,
        {"rows": CATEGORIES.assign(c=CATEGORIES["a"]), "learner": "mean-field"},
        says="`l2=1`",
    ),
    Row(
        "parameters that ran away, perhaps",
        fit,
        {"rows": MAJORITY_HOLE, "learner": "mple", "max_iter": 2000, "l2": 0.0},
        ({"drop": ["d"], "l2": OUT},),
        "`l2='auto'`",
    ),
    Row(
        "hidden values of a model without any",
        span,
        {"learner": Later(lambda: gb.learning.LEARNERS.create("span-hidden"))},
        ({"n_components": 2, "random_state": 0}, {"learner": "span-greedy"}),
        "`n_components` above 1",
    ),
    swap(
        "variables of one value",
        lambda rows: span(rows, coding="categorical"),
        pd.DataFrame({"a": ["x"] * 5, "b": ["y"] * 5}),
        CATEGORIES,
        says="nothing to learn",
    ),
    swap(
        "less than a row",
        lambda weights: gb.FullSpan().fit(BITS, sample_weight=weights),
        np.full(40, 0.01),
        np.ones(40),
        says="scale them",
    ),
    Row(
        "means of spins carried up",
        lambda carried: gb.DeepBeliefNetwork(
            (2, 2), hidden="spin", learner=gb.learning.LEARNERS.create("stacking", carried=carried), random_state=0
        ).fit(BITS.replace({0: -1})),
        {"carried": "means"},
    ),
    Row(
        "chunks of a belief network",
        lambda model: model((2, 2), random_state=0)._learns_by_chunks(),
        {"model": gb.DeepBeliefNetwork},
        ({"model": gb.DeepBoltzmannMachine},),
        "DeepBoltzmannMachine",
        but=("fit",),
    ),
    Row(
        "a belief network by minibatches",
        lambda **how: deep(model=gb.DeepBeliefNetwork, **how),
        {"learner": Later(lambda: gb.learning.LEARNERS.create("minibatch"))},
        (),
        "`learner='stacking'`",
    ),
    Row(
        "a column that no row shows",
        lambda rows, drop=(): learned(
            gb.Dataset.read(rows, coding="binary", drop=drop), "span-greedy", full_span(rows, drop)
        ),
        {"rows": HOLES.assign(c=np.nan)},
        ({"drop": ["c"]},),
        "drop it",
    ),
    swap(
        "numbers too large for a variance",
        lambda rows: gb.SoftKMeans(2, variance=1e-130, random_state=0).fit(rows),
        NUMBERS * 1e95,
        NUMBERS,
        says="scale the columns",
    ),
    Row(
        "a column that is never seen",
        learned,
        {"rows": Later(lambda: gb.Dataset.read(HOLES.assign(c=np.nan), coding="binary")), "learner": "mple"},
    ),
]


# -- questions of one kind --------------------------------------------------------------------------------------------
@cache
def asked(kind):
    makers = {
        "field": lambda: field(potentials="bias,product", graph="chain", support="gaussian"),
        "interval": lambda: field(
            (NUMBERS - NUMBERS.min()) / (NUMBERS.max() - NUMBERS.min()),
            potentials="bias,product",
            graph="chain",
            support=(0, 1),
        ),
        "real-dbm": lambda: deep(NUMBERS, visible="gaussian"),
        "real-rbm": lambda: rbm(NUMBERS, visible="gaussian"),
        "dbm": deep,
        "wide-dbn": lambda: deep(WIDE, model=gb.DeepBeliefNetwork),
        "wide-dbm": lambda: deep(WIDE),
        "tall-dbn": lambda: deep(model=gb.DeepBeliefNetwork, n_components=(30, 3)),
        "tall-dbm": lambda: deep(n_components=(30, 3)),
        "wide-rbm": lambda: rbm(WIDE, n_components=30),
        "potts-span": lambda: span(CATEGORIES),
        "span": span,
        "hidden": lambda: gb.HiddenBoltzmannMachine(n_components=1, **QUICK).fit(BITS),
        "tiny": lambda: gb.SoftKMeans(2, variance=1e-130, random_state=0).fit(
            np.repeat([[1e80] * 3, [-1e80] * 3], 10, axis=0)
        ),
        "categories": lambda: gb.MachineMixture(n_components=2, random_state=0).fit(CATEGORIES),
    }
    return makers[kind]() if kind in makers else fitted(kind)


def ask(kind, question, **how):
    return getattr(asked(kind), question)(**how)


WIDE_GAPS = WIDE.astype(float).mask(np.tile(np.arange(40) < 20, (60, 1)))


def listed(n, how="P({})"):
    return how.format(", ".join(f"x{j}=1" if how == "P({})" else f"x{j}" for j in range(n)))


ANSWERS = [
    Row(
        "the probability of many values of many columns",
        ask,
        {"kind": "dense", "question": "query", "query": listed(21), "n_samples": 50},
        ({"query": listed(3), "n_samples": OUT},),
        "ask about fewer columns",
    ),
    Row(
        "probabilities of continuous cells",
        ask,
        {"kind": "field", "question": "predict_proba", "X": NUMBERS},
        ({"question": "impute"}, {"question": "sample", "X": OUT}, {"question": "score"}),
        "`impute` for means, `sample` for draws, or `score`",
    ),
    Row(
        "a query to continuous values",
        ask,
        {"kind": "field", "question": "query", "query": "P(a)"},
        ({"question": "expect", "query": OUT}, {"question": "score_samples", "query": OUT, "X": NUMBERS}),
        "`expect` for moments, and `score_samples`",
    ),
    Row(
        "the peak of real rows under several layers",
        ask,
        {"kind": "real-dbm", "question": "most_probable"},
        ({"kind": "real-rbm"}, {"kind": "dbm"}),
        "a restricted machine, or discrete columns",
    ),
    Row(
        "queries to a tall belief network",
        ask,
        {"kind": "tall-dbn", "question": "query", "query": "P(a)"},
        ({"question": "sample", "query": OUT}, {"kind": "tall-dbm"}),
        "`sample`",
    ),
    Row(
        "a row too far from all classes",
        ask,
        {"kind": "tiny", "question": "score", "X": np.full((1, 3), 1e99)},
        ({"X": np.full((1, 3), 1e80)},),
        "scale the rows",
    ),
    Row(
        "probabilities of real cells of classes",
        ask,
        {"kind": "mixture", "question": "cell_probabilities", "X": NUMBERS},
        ({"question": "impute"},),
        "`impute`",
    ),
    Row(
        "chains of a query that do not mix",
        ask,
        {"kind": "pairwise", "question": "query", "query": "P(a)", "method": "gibbs", "n_samples": 20},
        ({"n_samples": 20_000}, {"method": "exact", "n_samples": OUT}),
        "draw more with `n_samples`",
    ),
    Row(
        "everything given at once",
        ask,
        {"kind": "pairwise", "question": "conditional", "given": {"a": 1, "b": 1, "c": 1}},
        ({"given": {"a": 1, "b": 1}},),
        "at least one free",
    ),
    Row("an unknown free energy", ask, {"kind": "hidden", "question": "free_energy", "X": BITS, "method": "guess"}),
    Row(
        "an exact likelihood of wide layers",
        ask,
        {"kind": "wide-rbm", "question": "log_likelihood", "X": WIDE, "exact": True, "n_samples": OUT},
        ({"exact": False, "n_samples": 10, "betas": 20},),
        "`exact=False`",
        but=("exact",),
    ),
    Row(
        "a divergence from what has no density",
        ask,
        {
            "kind": "pairwise",
            "question": "divergence",
            "other": Later(lambda: gb.GibbsClassifier(machine="pairwise", l2=0.1).fit(BITS[["b", "c"]], BITS["a"])),
        },
        ({"other": Later(fitted)},),
        "another model",
    ),
    Row(
        "spins of three values in a full span",
        ask,
        {"kind": "potts-span", "question": "to_higher_order"},
        ({"kind": "span"},),
        "fit without it",
    ),
    Row(
        "annealing of a Gaussian",
        ask,
        {"kind": "gaussian", "question": "log_partition", "method": "ais"},
        ({"method": OUT}, {"question": "score", "method": OUT, "X": NUMBERS}),
        "exact",
    ),
    Row(
        "a support of one number",
        field,
        {"support": "interval:x", "potentials": "bias,product", "graph": "chain"},
        ({"support": "gaussian"}, {"support": "gaussian:0:1"}),
        "'gaussian' or 'gaussian:0:1'",
    ),
    swap(
        "a machine of another library",
        lambda machine: gb.MachineMixture(2, machine=machine, random_state=0, n_init=1, tol=0.01).fit(BITS),
        Later(kernel_density),
        Later(lambda: gb.BoltzmannMachine(l2=0.1)),
        says="`BoltzmannMachine()`",
    ),
    Row(
        "rows of norm zero",
        lambda rows: gb.VonMisesFisherMixture(2, random_state=0).fit(rows),
        {"rows": np.vstack([NUMBERS, np.zeros((1, 3))])},
        ({"rows": NUMBERS},),
        "nothing about the classes",
    ),
    Row(
        "a classifier that did not converge",
        lambda **how: gb.GibbsClassifier(**{"n_hidden": 2, "random_state": 0, **how}).fit(
            NUMBERS, (NUMBERS["a"] > 0).astype(int)
        ),
        {"max_iter": 1},
        ({"max_iter": 1000, "l2": 0.1},),
        "max_iter",
    ),
    Row(
        "moments of a model that is not learned by them",
        lambda look: look(fitted("mixture")),
        {"look": lambda machine: machine.result_.training},
        ({"look": lambda machine: machine.score(NUMBERS)},),
        "compare `score`",
    ),
    Row(
        "too few rows to choose a penalty by",
        fit,
        {"rows": BITS.head(5), "l2": "cv"},
        ({"l2": 0.1}, {"l2": "auto"}),
        "a number, or 'auto'",
    ),
    Row(
        "tables of couplings of more than couplings",
        lambda what: getattr(gb.uncertainty.standard_errors(fitted("potts"), CATEGORIES), what),
        {"what": "couplings"},
        ({"what": "table"},),
        "`table`",
    ),
]

# -- tables and files -------------------------------------------------------------------------------------------------
DATA = [
    swap(
        "states without a row",
        lambda states: gb.Dataset.of_states(states, "binary"),
        np.zeros((0, 2), np.int8),
        np.zeros((1, 2), np.int8),
        says="at least one row",
    ),
    Row(
        "sparse categories",
        lambda rows: gb.PottsMachine(l2=0.1).fit(rows),
        {"rows": Later(lambda: sparse.csr_matrix(BITS.to_numpy()))},
        ({"rows": Later(lambda: sparse.csr_matrix(BITS.to_numpy()).toarray())},),
        "X.toarray()",
    ),
    Row(
        "words where numbers are wanted",
        lambda rows: gb.GaussianMachine().fit(rows),
        {"rows": Later(lambda: gb.Dataset.read(CATEGORIES, coding="categorical"))},
        ({"rows": NUMBERS},),
        "the table",
    ),
    swap("an unknown kind of visible unit", lambda visible: rbm(visible=visible), "ternary"),
    swap(
        "a one-hot array without values",
        lambda rows: gb.Dataset.read(rows, coding="categorical"),
        np.zeros((3, 2, 0)),
        np.eye(2)[[[0, 1], [1, 0]]],
        says="are possible",
    ),
    swap(
        "a coding of many values where two are needed", domain.as_coding, "categorical", "binary", says="`PottsMachine`"
    ),
    swap(
        "a file of a bare model",
        lambda load: load(saved_model()),
        gb.load,
        gb.storage.read_model,
        says="gibbsian.storage.read_model",
    ),
    swap(
        "a model that is not registered",
        lambda model: gb.storage.write_model(
            folder_path() / "n.gibbs", gb.storage.StoredModel(model, domain.as_coding("spin"), ("a", "b", "c"))
        ),
        Later(_conditional),
        Later(lambda: SPINS),
        says="register",
    ),
    swap("an unknown end of a likelihood", lambda end: rbm().log_likelihood(BITS).per_row(end), "middle"),
    swap(
        "draws of one chain without an axis",
        gb.diagnostics.r_hat,
        np.zeros(10),
        np.random.default_rng(0).normal(size=(2, 100)),
        says="(`n_chains`, n_draws)",
    ),
]

# -- where costs are foreseen -----------------------------------------------------------------------------------------
GRID = gb.graphs.grid(4, 4)
FERRO = PairwiseFamily.model(GRID, None, np.full(24, 0.3))
GLASS = PairwiseFamily.model(gb.graphs.grid(6, 6), None, np.where(np.arange(60) % 3, 200.0, -200.0))
CHAIN = spins(chain(200))
POTTS_CHAIN = Model.zeros(TablesFamily.potts(chain(20), Variables.categories((3,) * 20)))
COSTS = [
    Row(
        "second moments in no time",
        lambda question, max_seconds: getattr(by(gb.inference.Elimination, CHAIN, max_seconds), question),
        {"question": "second_moments", "max_seconds": 1e-4},
        ({"question": "moments"}, {"max_seconds": 10.0}),
        "ask for `moments`, over the edges, or raise `max_seconds`",
    ),
    Row(
        "a joint marginal in no time",
        lambda nodes, max_seconds: by(gb.inference.FactorElimination, POTTS_CHAIN, max_seconds).marginal(nodes),
        {"nodes": [0, 10, 19], "max_seconds": 1e-3},
        ({"nodes": [0]}, {"max_seconds": 10.0}),
        "ask for fewer, or raise `max_seconds`",
    ),
    Row(
        "a ground state in no time",
        lambda question, max_seconds: getattr(by(gb.inference.Planar, FERRO, max_seconds), question),
        {"question": "mode", "max_seconds": 1e-9},
        ({"question": "moments"}, {"max_seconds": 10.0}),
        "ask for less, or raise `max_seconds`",
    ),
    Row(
        "Pfaffians of a glass",
        lambda engine, model: engine(model),
        {"engine": lambda model: by(gb.inference.Planar, model).log_partition, "model": GLASS},
        (
            {"engine": lambda model: by(gb.inference.Elimination, model).log_partition},
            {"engine": lambda model: gb.sampling.draw(model, 10, np.random.default_rng(0))},
            {"model": PairwiseFamily.model(gb.graphs.grid(6, 6), None, np.where(np.arange(60) % 3, 1.0, -1.0))},
        ),
        "elimination, sampling or a higher temperature",
    ),
    Row(
        "the mode of continuous values",
        lambda how: how(asked("field")),
        {"how": lambda machine: gb.inference.exact(machine.model_).mode},
        ({"how": lambda machine: machine.most_probable()},),
        "most_probable",
    ),
    Row(
        "mean field of continuous values",
        ask,
        {"kind": "field", "question": "expect", "method": "mean-field"},
        ({"method": "exact"}, {"method": Later(lambda: monte_carlo(n_draws=200, n_chains=20))}),
        "'exact' or 'monte-carlo'",
    ),
    Row(
        "mean field that does not settle",
        lambda max_iter: fitted().expect(gb.expectations.MeanField(max_iter=max_iter, tol=1e-9)),
        {"max_iter": 1},
        ({"max_iter": 1000},),
        "raise `max_iter`",
    ),
    Row(
        "few walkers in few steps",
        lambda **how: asked("dense").expect(ais(**how)),
        {"n_walkers": 50, "betas": 2},
        ({"betas": 500},),
        "raise `betas=2`",
    ),
    Row(
        "missing Gaussian cells of a deep machine",
        lambda missing: gb.expectations.DeepMeanField()(*_real_deep(), np.zeros((1, 2)), missing),
        {"missing": np.ones((1, 2), bool)},
        ({"missing": None},),
        "fill them",
    ),
    Row(
        "missing Gaussian cells of two layers",
        lambda rows: log_evidence(REAL_LAYERS, gb.Dataset.read(rows, coding="real")),
        {"rows": NUMBERS.mask(NUMBERS > 1.5)},
        ({"rows": NUMBERS},),
        "fill them",
    ),
    Row(
        "many missing cells beside many hidden units",
        lambda rows: log_evidence(asked("wide-rbm").model_, gb.Dataset.read(rows, coding="binary")),
        {"rows": WIDE_GAPS},
        ({"rows": WIDE},),
        "leave the row out, or fill its cells",
    ),
    Row(
        "a score beside many hidden units",
        ask,
        {"kind": "wide-rbm", "question": "score", "X": WIDE_GAPS.head(2)},
        ({"question": "score_interval", "X": WIDE, "n_samples": 10, "betas": 20},),
        "score_interval",
    ),
    Row(
        "clamped layers in no time",
        lambda max_seconds: gb.expectations.Exact(max_seconds).bind(LAYERS, gb.Dataset.read(BITS)),
        {"max_seconds": 1e-12},
        ({"max_seconds": 10.0},),
        "raise it",
    ),
    Row(
        "information by differences in no time",
        lambda max_seconds: gb.uncertainty.standard_errors(holes_machine(), HOLES, max_seconds=max_seconds),
        {"max_seconds": 1e-3},
        ({"max_seconds": 60.0},),
        "raise `max_seconds`",
    ),
    *(
        swap(
            f"all fixed in a {name}",
            lambda nodes, make=make: make().given(nodes, [0] * len(nodes)),
            [0, 1, 2],
            [0],
            says="one free",
        )
        for name, make in (
            ("full span", lambda: FullSpanFamily.model({1: 0.1}, Variables.binary(3))),
            ("model of cliques", lambda: ProductsFamily.model({(0, 1): 0.1}, 3, Variables.binary)),
            ("field", lambda: asked("field").model_),
        )
    ),
    swap(
        "rows of one layer as a start",
        lambda samples: gb.diagnostics.log_partition_interval(
            stack([BinaryUnits(3)] * 3),
            samples=samples,
            annealing=gb.sampling.Annealing(10, 20),
            rng=0,
        ),
        Later(lambda: gb.Dataset.read(BITS)),
        "gibbs",
        says="start from chains",
    ),
]


# -- errors of estimates, pictures, classes ---------------------------------------------------------------------------
@cache
def holes_machine():
    return gb.BoltzmannMachine(learner="mple", l2=0.1).fit(HOLES)


@cache
def stacked(together):
    learner = gb.learning.Stacking(
        alone=gb.learning.Minibatch(max_iter=2), together=gb.learning.Minibatch(max_iter=2) if together else None
    )
    return gb.DeepBoltzmannMachine((2, 2), learner=learner, random_state=0).fit(BITS)


def errors_of_rbm(learner, how=gb.uncertainty.standard_errors):
    machine = rbm(learner=learner, max_iter=40, l2=0.0)
    return errors_in(60.0, how, machine, BITS)


def errors_in(max_seconds, how, machine, rows):
    if how is gb.uncertainty.bootstrap:
        return how(machine, rows, 3, random_state=0)
    return how(machine, rows, max_seconds=max_seconds)


def machines_in_a_mixture():
    return gb.MachineMixture(2, machine=gb.BoltzmannMachine(l2=0.1), random_state=0, n_init=1, tol=0.01).fit(BITS)


def collapsed(n_components):
    machine = gb.GaussianMixture(n_components, random_state=0).fit(NUMBERS)
    warning = "class 1 is a single point" if n_components > 1 else ""
    machine.result_ = dataclasses.replace(machine.result_, warning=warning)
    return machine


OTHERS = [
    Row(
        "errors of hidden units", errors_of_rbm, {"learner": "auto"}, ({"how": gb.uncertainty.bootstrap},), "bootstrap"
    ),
    Row(
        "errors of hidden units by chains",
        errors_of_rbm,
        {"learner": Later(lambda: gb.learning.LEARNERS.create("mcmle", l2=0.1))},
        ({"how": gb.uncertainty.bootstrap},),
        "bootstrap",
    ),
    Row(
        "errors by chains in too little time",
        lambda max_seconds=60.0, how=gb.uncertainty.standard_errors: errors_in(
            max_seconds, how, fit(learner="mcmle", l2=0.1, random_state=0), BITS
        ),
        {"max_seconds": 3e-7},
        ({"max_seconds": 60.0}, {"max_seconds": OUT, "how": gb.uncertainty.bootstrap}),
        "raise `max_seconds`",
    ),
    Row(
        "errors of classes in too little time",
        lambda max_seconds=60.0, how=gb.uncertainty.standard_errors: errors_in(
            max_seconds, how, gb.GaussianMixture(1, random_state=0).fit(NUMBERS), NUMBERS
        ),
        {"max_seconds": 1e-5},
        ({"max_seconds": 60.0}, {"max_seconds": OUT, "how": gb.uncertainty.bootstrap}),
        "raise `max_seconds`",
    ),
    Row(
        "errors of classes at the edge",
        lambda how=gb.uncertainty.standard_errors: errors_in(
            60.0, how, gb.MachineMixture(3, random_state=0, n_init=1).fit(IMPLIED), IMPLIED
        ),
        {},
        ({"how": gb.uncertainty.bootstrap},),
        "bootstrap",
    ),
    Row(
        "rounds of draws beyond memory",
        within,
        {
            "call": lambda **how: fit(
                learner=gb.learning.MonteCarloLikelihood(l2=0.1, precision=0.01, **how), max_iter=2, random_state=0
            ),
            "gibibytes": 1e-4,
            "max_draws": 2**20,
        },
        ({"max_draws": 200},),
        "lower `max_draws`",
    ),
    Row(
        "errors of hard classes",
        lambda how=gb.uncertainty.standard_errors: errors_in(
            60.0, how, gb.HardKMeans(2, random_state=0).fit(NUMBERS), NUMBERS
        ),
        {},
        ({"how": gb.uncertainty.bootstrap},),
        "bootstrap",
    ),
    Row(
        "errors of machines in a mixture",
        lambda how=gb.uncertainty.standard_errors: errors_in(60.0, how, machines_in_a_mixture(), BITS),
        {},
        ({"how": gb.uncertainty.bootstrap},),
        "bootstrap",
    ),
    Row(
        "errors of a degenerate mixture",
        lambda n_components: gb.uncertainty.standard_errors(collapsed(n_components), NUMBERS),
        {"n_components": 2},
        ({"n_components": 1},),
        "fit fewer classes",
    ),
    Row(
        "errors of hidden variables of a full span",
        lambda how: how(gb.FullSpan(n_components=2, random_state=0).fit(BITS)),
        {"how": lambda machine: gb.uncertainty.standard_errors(machine, BITS)},
        ({"how": lambda machine: machine.score(BITS)},),
        "compare scores",
    ),
    Row("moments of chains that do not mix", unmixed, {"rows": np.random.default_rng(0).integers(0, 2, (300, 40))}),
    Row(
        "a demo where another table is",
        _write_table,
        {"out_dir": Later(another_table)},
        ({"out_dir": Later(folder_path)},),
        "another `out_dir`",
    ),
    Row(
        "replicates that fail",
        lambda rows: gb.uncertainty.bootstrap(fit(rows, l2=0), rows, 10, random_state=0),
        {"rows": BITS.head(14)},
        ({"rows": BITS},),
        "drop or merge columns",
    ),
    Row(
        "no row in all weights",
        lambda weights: gb.uncertainty.bootstrap(fitted(), BITS, 3, sample_weight=weights, random_state=0),
        {"weights": np.full(40, 0.01)},
        ({"weights": np.ones(40)},),
        "scale them",
    ),
    Row(
        "moments of hidden units",
        lambda picture: picture(asked("rbm")),
        {"picture": lambda machine: gb.plots.moment_scatter(machine, BITS)},
        (
            {"picture": lambda machine: gb.plots.free_energies(machine, {"fit": BITS})},
            {"picture": lambda machine: gb.plots.convergence(machine)},
        ),
        "`free_energies` or `convergence`",
    ),
    Row(
        "filters of categories",
        lambda draw: draw(rbm(CATEGORIES, visible="categorical")),
        {"draw": gb.plots.filters},
        ({"draw": lambda machine: machine.components_},),
        "machine.components_",
    ),
    Row(
        "curves of layers that never learned together",
        lambda together, draw=gb.plots.training_curves: draw(stacked(together)),
        {"together": False},
        ({"together": True}, {"draw": gb.plots.convergence}),
        "draw `convergence`",
    ),
    Row(
        "free energies of nothing",
        lambda **how: gb.plots.free_energies(fitted("rbm"), **{"data": {}, **how}),
        {"sampled": False},
        ({"data": {"fit": BITS}},),
        "`sampled=True`",
    ),
    Row(
        "a class that cannot be fitted",
        lambda machine, **how: gb.MachineMixture(
            **{"n_components": 2, "machine": machine, "random_state": 0, "n_init": 1, **how}
        ).fit(BITS),
        {"machine": Later(lambda: gb.BoltzmannMachine(l2=0.0)), "assignment": "hard"},
        ({"machine": Later(lambda: gb.BoltzmannMachine(l2=0.1))},),
        "a penalty in the machine",
        but=("l2",),
    ),
    swap(
        "numbers too small to square",
        lambda rows: gb.GaussianMixture(2, random_state=0).fit(rows),
        NUMBERS * 1e-160,
        NUMBERS,
        says="scale the columns",
    ),
    swap(
        "functions of continuous values in a file",
        lambda potentials: saved(field(potentials=potentials, graph="chain", support="gaussian")),
        ["bias", models.Potential("closeness", lambda x, y: np.exp(-((x - y) ** 2)))],
        ["bias", "product"],
        says="named potentials",
    ),
    swap(
        "no row with a direction",
        lambda rows: gb.VonMisesFisherMixture(1, random_state=0).fit(rows),
        np.zeros((3, 3)),
        NUMBERS,
        says="nothing to learn from",
    ),
    swap(
        "shares as spins",
        lambda rows: gb.Dataset.read(rows, coding=gb.data.Shares()).convert("spin"),
        BITS * 0.5,
        BITS,
        says="0 and 1 only",
    ),
    swap(
        "a complex cell",
        gb.Dataset.read,
        pd.DataFrame({"a": [1, 1j], "b": [0, 1]}, dtype=object),
        BITS,
        says="real numbers or labels",
    ),
    Row(
        "rows in another coding than declared",
        lambda rows, coding: gb.Dataset.read(rows, coding=coding),
        {"rows": BITS, "coding": "spin"},
        says="`coding='binary'`",
    ),
]


# -- files that are damaged, packages that are not there --------------------------------------------------------------
PENTAGON = pd.DataFrame([state for state in np.ndindex((2,) * 5) if sum(state) in (2, 3)], columns=list("abcde"))


def written(name, content):
    (folder_path() / name).write_bytes(content)
    return folder_path() / name


def npz(name="flat.npz", **arrays):
    np.savez(folder_path() / name, **arrays)
    return folder_path() / name


def arrow(columns, change=lambda content: content):
    pq = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    pq.write_table(pyarrow.table(columns), folder_path() / "arrow.parquet", use_dictionary=False)
    return written("arrow.parquet", change((folder_path() / "arrow.parquet").read_bytes()))


def scrambled(content):
    return content[:20] + bytes(byte ^ 0x5A for byte in content[20:200]) + content[200:]


def with_header(change):
    """Return a model's file whose header was changed."""
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    path = saved(fitted(), "header.gibbs")
    with safe_open(str(path), framework="numpy") as file:
        metadata = file.metadata()
    tensors = load_file(path)
    header = json.loads(metadata["gibbsian"])
    save_file(tensors, path, {**metadata, "gibbsian": change(header)})
    return path


def without(package, call):
    """Make a call as if a package was not installed."""
    with pytest.MonkeyPatch.context() as patch:
        if package:
            patch.setitem(sys.modules, package, None)
        return call()


@cache
def sheet():
    BITS.to_excel(folder_path() / "bits.xlsx", index=False)
    return folder_path() / "bits.xlsx"


def fast(rate, method="fit", **how):
    learner = gb.learning.Minibatch(learning_rate=rate, max_iter=5)
    return getattr(gb.RestrictedBoltzmannMachine(2, visible="gaussian", random_state=0, learner=learner), method)(
        NUMBERS
    )


def to_and_fro(rate):
    rows = np.repeat(np.random.default_rng(0).integers(0, 2, (200, 2)), 4, axis=1)
    learner = gb.learning.Minibatch(learning_rate=rate)
    return gb.RestrictedBoltzmannMachine(2, random_state=0, learner=learner).fit(rows)


def rewritten(**changes):
    """Return a model's file with other parts, sealed again."""
    from safetensors import safe_open
    from safetensors.numpy import load_file

    path = saved(fitted(), "rewritten.gibbs")
    with safe_open(str(path), framework="numpy") as file:
        header = json.loads(file.metadata()["gibbsian"])
    kept = {name: part for name, part in header.items() if name not in ("kind", "format_version")}
    gb.storage.write_tensors(path, header["kind"], {**kept, **changes}, load_file(path))
    return path


FILES = [
    Row(
        "a file with a part that is wrong",
        lambda **changes: gb.load(rewritten(**changes)),
        {"settings": 3},
        ({"settings": OUT},),
        "save it again",
    ),
    swap(
        "an npz file without a table",
        gb.Dataset.read,
        Later(lambda: npz(y=np.zeros(3))),
        Later(lambda: npz(x=BITS.to_numpy())),
        says="under the key 'x'",
    ),
    swap(
        "an empty CSV file",
        gb.Dataset.read,
        Later(lambda: written("q.csv", b"\x00\x01")),
        Later(lambda: written("q.csv", b"a,b\n0,1\n1,0\n")),
        says="CSV",
    ),
    swap(
        "lists in a column",
        gb.Dataset.read,
        Later(lambda: arrow({"a": [[1], [0]], "b": [0, 1]})),
        Later(lambda: arrow({"b": [0, 1]})),
        says="out of the file",
    ),
    swap(
        "a damaged Parquet file",
        lambda change: fit(
            DataStream.open(arrow({"a": np.arange(500) % 2, "b": np.arange(500) // 2 % 2}, change), memory="50MB"),
            **QUICK,
        ),
        scrambled,
        lambda content: content,
        says="page header",
    ),
    swap(
        "a package that is not installed",
        lambda package: without(package, partial(gb.Dataset.read, sheet())),
        "openpyxl",
        "",
        says="pip install 'gibbsian[files]'",
    ),
    *(
        swap(f"a header with {what}", lambda change: gb.load(with_header(change)), change, json.dumps, says=says)
        for what, change, says in (
            ("a wrong version", lambda header: json.dumps({**header, "format_version": "x"}), "save the model again"),
            (
                "another version",
                lambda header: json.dumps({**header, "format_version": 999}),
                "the gibbsian that wrote it",
            ),
            ("no JSON", lambda header: "{", "save the model again"),
        )
    ),
    swap("an unknown kind of unit in data", gb.data.Units, "ternary"),
    Row(
        "parameters that run away",
        fit,
        {"rows": PENTAGON, "learner": "mle", "max_iter": 2000, "l2": 0.0},
        ({"drop": ["e"]},),
        "`l2='auto'`",
    ),
    swap("a rate that is too high", fast, 1e90, 0.01, says="lower `learning_rate=1e+90`"),
    swap("a rate that goes to and fro", to_and_fro, 100.0, 0.1, says="lower `learning_rate=100`"),
    Row(
        "a rate that is too high for chunks",
        fast,
        {"rate": 1e90, "method": "partial_fit"},
        ({"rate": 0.01},),
        "lower `learning_rate=1e+90`",
    ),
    Row(
        "a stream for a learner in memory",
        fit,
        {"rows": Later(stream), "learner": "pcd", **QUICK},
        ({"rows": Later(lambda: stream().collect())},),
        "`stream.collect()`",
    ),
    Row(
        "pictures of what a machine lacks",
        gb.plots.filters,
        {"machine": Later(fitted)},
        ({"machine": Later(lambda: fitted("rbm")), "shape": (1, 3)},),
        "draw this picture of a RestrictedBoltzmannMachine",
    ),
    Row(
        "columns that say the same",
        fit,
        {"rows": BITS.assign(c=BITS["a"]), "l2": 0.01},
        ({"drop": ["c"]},),
        "do not distinguish",
    ),
    swap(
        "errors on rows that say nothing of a column",
        lambda rows: gb.uncertainty.standard_errors(gb.BoltzmannMachine(learner="mple", l2=0).fit(BITS), rows),
        BITS.head(1),
        BITS,
        says="fit with a penalty",
    ),
    swap(
        "errors of a learner that a file does not hold",
        lambda learner: gb.uncertainty.standard_errors(of_own_learner().set_params(learner=learner), BITS),
        "mine",
        Later(lambda: gb.learning.LEARNERS.create("mple", l2=0.1)),
        says="set machine.learner",
    ),
]


PAIRS = pd.DataFrame({"sex": list("FM") * 20, "ill": ["no", "yes", "yes", "no"] * 10})
LEVELS = pd.DataFrame(np.arange(60).reshape(20, 3) % 4, columns=list("abc"))


def judged(l2=None):
    if l2 is not None:
        return fit(HOLES, l2=l2)
    wild = PairwiseFamily.model(THREE, np.zeros(3), [20.0, 0.0, 0.0])
    return check_runaway(wild, read(HOLES), gb.learning.LEARNERS.create("mple"), certain=False)


def columns(name, rows, *then, says, **how):
    """A row about the reading of a table."""
    coding = {"coding": how.pop("coding")} if "coding" in how else {}
    return Row(name, read, {"rows": rows, **coding}, then, says, **how)


TABLES = [
    columns(
        "codings of columns of real numbers",
        NUMBERS,
        {"coding": Columns({"a": "drop"}, "real")},
        coding=Columns({"a": [0, 1]}, "real"),
        says="'drop'",
    ),
    columns("two fractions", BITS.assign(d=np.arange(40) % 2 + 0.5), code={"t": 0.7}, says="Threshold"),
    columns("a constant word", BITS.assign(d="x"), code={"low": "x", "high": "y"}, says="both values"),
    columns("words cut at a number", BITS.assign(d=list("pq") * 20), coding=Threshold(0), says="drop=['d']"),
    columns(
        "no dummies",
        BITS.assign(b=1 - BITS["a"]),
        {"coding": OneHot({"a": ["a", "b"]})},
        coding=OneHot([]),
        says="or {'colour'",
    ),
    columns("objects", BITS.assign(d=object()), {"drop": ["d"]}, says="drop it"),
    Row(
        "words without order as levels",
        fit,
        {"rows": BITS.assign(d=CATEGORIES["a"]), "model": gb.OrdinalMachine, "l2": 0.01},
        says="from the lowest on",
    ),
    Row(
        "labels as levels",
        fit,
        {"rows": LEVELS, "model": gb.OrdinalMachine, "coding": "categorical", "l2": 0.01},
        says="'ordinal'",
    ),
    Row(
        "units with words of their own",
        rbm,
        {"rows": PAIRS, "visible": "spin"},
        ({"coding": {"sex": ["F", "M"], "ill": ["no", "yes"]}},),
        "`coding` by column",
    ),
    Row(
        "numbers beside words",
        lambda rows, **how: gb.fit(rows, l2=0.01, **how),
        {"rows": CATEGORIES[:50].assign(d=NUMBERS["a"])},
        code={"t": 0},
        says="cut the numbers",
    ),
    swap(
        "objects for a classifier",
        lambda rows: gb.GibbsClassifier().fit(rows, BITS["a"]),
        BITS.assign(d=object()).to_numpy(),
        BITS.to_numpy(),
        says="give numbers",
    ),
    swap("no rows to ask about", lambda rows: fitted().unusual(rows), BITS.head(0), BITS, says="1 row"),
    swap(
        "moments of rows with holes",
        lambda rows: gb.plots.moment_scatter(asked("field"), rows),
        NUMBERS.mask(NUMBERS > 1),
        NUMBERS,
        says="complete rows",
    ),
]
CALLS = [
    Row(
        "a network and many missing cells",
        lambda kind, rows: ask(kind, "score_samples", X=rows),
        {"kind": "wide-dbn", "rows": WIDE_GAPS},
        ({"rows": WIDE}, {"kind": "wide-dbm"}),
        "in which they are hidden units",
    ),
    Row(
        "too small a log Z",
        lambda question="score_samples", **how: ask("pairwise", question, X=BITS, **how),
        {"log_partition": -50.0},
        tuple({"log_partition": OUT, "question": question} for question in ("score_interval", "pseudo_score")),
        "needs no log Z",
    ),
    Row("a number for a method", lambda **how: fitted().expect(**how), {"method": 3}, ({"method": OUT},), "leave it"),
    Row("parameters that ran away", judged, {}, says="by `l2='auto'`"),
    Row("a search on twins", structure, {"rows": TWINS, "method": "decimation"}, says="such as"),
    swap(
        "a search whose refit does not end",
        lambda learner: structure(BITS, learner=learner),
        gb.learning.LEARNERS.create("mple", optimizer=gb.learning.optimizers.Ascent(1e-9)),
        "mple",
        says="choose another `learner`",
    ),
    swap(
        "a number for a potential",
        lambda potentials: field(potentials=potentials, graph="chain", support="gaussian"),
        [3],
        ["product", "bias"],
        says="['product', 'bias']",
    ),
    swap(
        "a prior without its gradient",
        lambda prior: fit(log_prior=prior),
        lambda theta: 0.0,
        lambda theta: (0.0, 0 * theta),
        says="it ended in",
    ),
    swap(
        "a name that no file has",
        lambda path: fitted().save(path),
        "a\0b.gibbs",
        Later(lambda: folder_path() / "b.gibbs"),
        says="another name",
    ),
]

# -- families ---------------------------------------------------------------------------------------------------------
THREE_VALUED = Variables.categories((3, 3, 3))
CLOSENESS = Potential("closeness", lambda x, y: np.exp(-((x - y) ** 2)))
BINARY_THREE = Variables.binary(3)


def functions_of(name, variables=BINARY_THREE, kind=PotentialsFamily, **how):
    return kind.build([name], variables, THREE, **how)


def mixture_answer(ask):
    machine = machines_in_a_mixture()
    return ask(machine.model_, gb.Dataset.read(BITS, coding="binary"))


FAMILIES = [
    swap(
        "moments of the values of a belief network",
        lambda model: gb.inference.exact(model).moments,
        Later(belief),
        Later(lambda: top_of(belief())),
        says="its `top`",
    ),
    Row(
        "a belief network as one model of all units",
        lambda **how: deep(model=gb.DeepBeliefNetwork, **how),
        {"learner": Later(lambda: gb.learning.LEARNERS.create("em"))},
        (),
        "`learner='stacking'`",
    ),
    Row(
        "a sum over real columns",
        lambda **how: rbm(NUMBERS, visible="gaussian", **how),
        {"learner": "em"},
        (),
        "`learner='minibatch'`",
    ),
    swap(
        "the constant function of a family",
        lambda functions: FullSpanFamily(SpanBasis(Variables.binary(3)), functions),
        [0, 2],
        [1, 2],
        says="constant",
    ),
    swap(
        "the table of a function of many variables",
        lambda n: FullSpanFamily(SpanBasis(Variables.binary(n)), [2**n - 1]).factors(np.zeros(1)),
        30,
        5,
        says="can be listed",
    ),
    swap("a span of too many variables", lambda n: SpanBasis(Variables.binary(n)), 63, 20, says="fewer"),
    swap(
        "a function of no known name",
        lambda name: functions_of(name, tied=False),
        "nonsense",
        CLOSENESS,
        says="a function",
        but=("indicator",),  # which is written with its value
    ),
    swap(
        "products of values without order",
        lambda name: functions_of(name, THREE_VALUED, tied=False),
        "product",
        "bias",
        "equal",
        "indicator:2",
        "table",
        says="bias, equal, indicator or table",
        but=("coding",),
    ),
    swap(
        "tables of continuous variables",
        lambda name: functions_of(name, UNIT_INTERVAL, QuadratureFamily),
        "table",
        "product",
        says="other potentials",
    ),
    swap("an indicator of a word", functions_of, "indicator:x", "indicator:2", says="indicator:2"),
    swap(
        "a number for a function",
        lambda potentials: PotentialsFamily.build(potentials, BINARY_THREE, THREE),
        [3],
        ["product", "bias"],
        says="['product', 'bias']",
    ),
    Row(
        "tables of several sizes",
        lambda **how: functions_of("table", Variables.categories((2, 3, 4)), **how),
        {"tied": True},
        (),
        "`tied=False`",
    ),
    Row(
        "a function of pairs where there are none",
        lambda name, **how: PotentialsFamily.build([name], BINARY_THREE, **how),
        {"name": "product"},
        ({"graph": THREE}, {"cliques": [(0, 1)]}, {"name": "bias"}),
        "a graph, cliques or other potentials",
    ),
    swap(
        "functions of real numbers",
        lambda kind: functions_of("bias", UNIT_INTERVAL, kind),
        PotentialsFamily,
        QuadratureFamily,
        says="QuadratureFamily",
    ),
    swap(
        "a function without a name in a file",
        lambda potential: functions_of(potential, UNIT_INTERVAL, QuadratureFamily).to_parts(),
        CLOSENESS,
        "product",
        says="named potentials",
        but=("indicator", "table", "levels"),
    ),
    swap(
        "the network of a conditional model",
        lambda model: model.interactions(),
        Later(_conditional),
        Later(lambda: LAYERS),
        says="a joint distribution",
    ),
    swap(
        "scores of categories",
        lambda variables: variables.levels,
        THREE_VALUED,
        Variables.ordinal([(0, 1, 2)] * 3),
        says="give scores",
    ),
    swap("codes of other variables", Variables.binary(2).checked, [[1, 0, 1]], [[1, 0]], says="2 variables"),
    swap("a code of no value", Variables.binary(2).checked, [[1, 2]], [[1, 0]], says="from 0 to 1"),
    swap(
        "missing cells of a mixture of models",
        mixture_answer,
        lambda model, data: model.family.log_joint(model.theta, data.states, np.zeros(data.states.shape, bool)),
        lambda model, data: answers_about(model).log_joint(data),
        says="answers_about",
    ),
    swap(
        "a mixture at another temperature",
        lambda model: model.at(0.5),
        Later(lambda: machines_in_a_mixture().model_),
        Later(lambda: machines_in_a_mixture().model_.family.models[0]),
        says="its components",
    ),
    swap(
        "tables of real variables",
        lambda build: build(UNIT_INTERVAL),
        lambda variables: TablesFamily(Scopes.of_graph(THREE), variables),
        lambda variables: QuadratureFamily.build(["product"], variables, THREE),
        says="a QuadratureFamily",
    ),
    swap("a number beyond a support", UNIT_INTERVAL.checked, [[0.1, 2.0, 0.3]], [[0.1, 0.2, 0.3]], says="from 0 to 1"),
    swap(
        "completions of real numbers",
        lambda variables: count_completions(variables, np.ones((1, 3), bool), 1),
        Variables.reals(3),
        BINARY_THREE,
        says="Threshold",
    ),
    Row(
        "frequencies of real numbers",
        lambda coding: column_frequencies(gb.Dataset.read(NUMBERS, coding=coding)),
        {"coding": "real"},
        code={"t": 0},
        says="Threshold",
    ),
    Row(
        "a Gaussian that is no distribution",
        lambda learner: gb.GaussianMachine(graph=[(0, 1), (1, 2), (2, 3), (0, 3)], learner=learner, max_iter=2).fit(
            np.random.default_rng(0).normal(size=(6, 5)) @ np.random.default_rng(1).normal(size=(5, 5))
        ),
        {
            "learner": gb.learning.Descend(
                gb.learning.objectives.Likelihood(), optimizer=gb.learning.optimizers.Ascent(5.0)
            )
        },
        says="`l2=0.1`",
    ),
    Row("a machine of real numbers", fit, {"rows": NUMBERS, "coding": "real"}, code={"t": 0}, says="Threshold"),
]

PARTS = [
    *TABLES,
    *CALLS,
    *MODELS,
    *DOMAINS,
    *EXPECTED,
    *ENGINES,
    *SAMPLERS,
    *LEARNED,
    *ANSWERS,
    *DATA,
    *COSTS,
    *OTHERS,
    *FILES,
    *FAMILIES,
]
