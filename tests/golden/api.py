"""The one door between the frozen answers and the library: a change of names is a change of this file alone.

The table and the test speak plain numbers: parameters by natural names (``x0*x1``, ``x0=2,x1=0``,
``layer0[1]*layer1[0]``), rows as codes (or numbers, or labels where an estimator reads them), None for a missing cell.
Parameters, gradients and expected statistics that leave this file are natural: they belong to temperature 1.
"""

from __future__ import annotations

import itertools
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import gibbsian as gb
from gibbsian.answers.decisions import bayes_decision, column_probabilities, joint_probabilities
from gibbsian.answers.modes import Search
from gibbsian.answers.queries import Queries
from gibbsian.data import Dataset
from gibbsian.domain import Categories, CategoryCoding, Continuum, RealCoding
from gibbsian.estimators import ESTIMATORS
from gibbsian.expectations import EXPECTATIONS, NEGATIVE_PHASES
from gibbsian.inference import ENGINES
from gibbsian.learning import LEARNERS, as_learner
from gibbsian.learning.objectives.base import OBJECTIVES, for_model, value_and_gradient
from gibbsian.learning.optimizers import OPTIMIZERS
from gibbsian.models import FAMILIES, POTENTIALS, Model, Potential, Quadrature, SpanBasis, Variables
from gibbsian.models.base import Layered, Mixture, keeps
from gibbsian.models.families import tables
from gibbsian.models.scopes import Scopes
from gibbsian.rng import Key
from gibbsian.sampling import TRANSITIONS, exchange, kernel_for, layer_path

LAYERS = {"0/1": gb.models.BinaryUnits, "-1/+1": gb.models.SpinUnits}
# families that the table has by another word; of Potts models it speaks besides
WORDS = {
    "products": "higher-order",
    "tables": "markov-random-field",
    "potentials": "potential-field",
    "quadrature": "continuous-field",
}


def registered() -> dict[str, set[str]]:
    """Return the names that the table must speak of, by kind."""
    registries: dict[str, Any] = {
        "learner": LEARNERS,
        "estimator": ESTIMATORS,
        "expectation": EXPECTATIONS,
        "negative phase": NEGATIVE_PHASES,
        "objective": OBJECTIVES,
        "optimizer": OPTIMIZERS,
        "engine": ENGINES,
        "sampler": TRANSITIONS,
    }
    found = {kind: set(registry.names()) for kind, registry in registries.items()}
    return {**found, "model": {WORDS.get(name, name) for name in FAMILIES}, "potential": set(POTENTIALS)}


# == models of given parameters =======================================================================================
def build(family: str, parts: dict[str, Any], values: Any, temperature: float = 1.0, **options: Any) -> Any:
    """Return a model: `values` says what the columns hold, `parts` are its parameters by name, or arrays."""
    if family in BUILDERS:
        return BUILDERS[family](parts, values, temperature, **options)
    blank = Model.zeros(_family(family, parts, values, **options))
    places = {name: place for place, name in enumerate(names_of(blank))}
    theta = np.zeros(len(places))
    for name, value in parts.items():
        theta[places[name]] = value
    return blank.replace(theta / temperature)


def _variables(values: Any, n: int) -> Variables:
    """Return variables: "0/1", "-1/+1", ("interval", low, high), ("normal", mean, sd), sizes or scores."""
    if isinstance(values, str):
        return {"0/1": Variables.binary, "-1/+1": Variables.spins}[values](n)
    if isinstance(values[0], str):
        return Quadrature.of(Continuum({"normal": "gaussian"}.get(values[0], values[0]), *values[1:]), n)
    return Variables.ordinal(values) if np.ndim(values[0]) else Variables.categories(values)


def _family(family: str, parts: dict[str, Any], values: Any, n: int, **options: Any) -> Any:
    """Return the family with the structure that the names of its parameters tell."""
    variables = _variables(values, n)
    if family in ("potential-field", "continuous-field"):
        given = [Potential(name, scopes=scopes, tied=tied) for name, scopes, tied in options["potentials"]]
        kind = gb.models.QuadratureFamily if family == "continuous-field" else gb.PotentialsFamily
        return kind.build(given, variables)
    if family == "ordinal":
        edges = [re.findall(r"\d+", name)[:2] for name in parts if name.startswith("product")]
        return gb.PotentialsFamily.ordinal(_graph(n, edges), variables)
    if family == "full-span":
        digits = np.array([[int(digit) for digit in re.findall(r"\d+", name)] for name in parts])
        basis = SpanBasis(variables)
        return gb.FullSpanFamily(basis, basis.numbers(digits), **options)
    scopes = Scopes.sorted((map(int, re.findall(r"x(\d+)", name)) for name in parts), n)
    if family == "higher-order":
        return gb.ProductsFamily(scopes, variables)
    if family == "markov-random-field":
        return gb.TablesFamily(scopes, variables)
    graph = _graph(n, [scope for scope in scopes if len(scope) == 2])
    if family == "pairwise":
        return gb.PairwiseFamily(graph, variables, any(len(scope) == 1 for scope in scopes), **options)
    return gb.TablesFamily.potts(graph, variables)


def _graph(n: int, edges: Any) -> Any:
    return gb.Graph(n, np.array(edges, dtype=np.int64).reshape(-1, 2))


def names_of(model: Any) -> list[str]:
    """Return the natural name of each parameter, in the layout of theta."""
    kind, family = type(model.family).registered_name, model.family
    if kind in ("pairwise", "products"):
        return ["*".join(f"x{i}" for i in product) for product in family.scopes]
    if kind == "tables":
        tables = zip(family.scopes, family.layout.shapes, strict=True)
        cells = ((scope, codes) for scope, shape in tables for codes in np.ndindex(*shape))
        return [",".join(f"x{i}={code}" for i, code in zip(*cell, strict=True)) for cell in cells]
    if kind in ("ordinal", "potentials", "quadrature"):
        labels = (family.at_nodes if kind == "quadrature" else family).labels
        scopes = (f"({','.join(map(str, label.scope))})" if label.scope else "" for label in labels)
        return [f"{label.potential}{scope}{label.number or '[0]'}" for label, scope in zip(labels, scopes, strict=True)]
    if kind == "full-span":
        return [f"phi({','.join(map(str, row))})" for row in family.basis.digits(family.functions).tolist()]
    if kind == "gaussian":
        pairs = [(i, i) for i in range(model.n_variables)] + [tuple(edge) for edge in family.graph.edges.tolist()]
        return [*(f"h{i}" for i in range(model.n_variables)), *(f"J{i},{j}" for i, j in pairs)]
    widths = [layer.width for layer in family.layers]
    units = [[f"layer{place}[{i}]" for i in range(width)] for place, width in enumerate(widths)]
    pairs = [f"{a}*{b}" for lower, upper in itertools.pairwise(units) for a in lower for b in upper]
    return [*itertools.chain(*units), *pairs]


def _layer(kind: Any, n_units: int) -> Any:
    """Return a layer of units: "0/1", "-1/+1", ("normal", deviations) or the sizes of categories."""
    if isinstance(kind, str):
        return LAYERS[kind](n_units)
    return (
        gb.models.GaussianUnits(n_units, tuple(kind[1]))
        if kind[0] == "normal"
        else gb.models.CategoricalUnits(list(kind))
    )


def _stack(parts: dict[str, float], values: Any, temperature: float, layers: Any) -> Any:
    family = gb.models.StackFamily(tuple(_layer(kind, n) for kind, n in layers))
    theta = np.array([parts[name] for name in names_of(Model.zeros(family))], dtype=float)
    return family.at(theta, 1.0 / temperature)


def _belief(parts: dict[str, Any], values: Any, temperature: float, layers: Any) -> Any:
    machines = [
        _stack(parts[f"machine{place}"], None, temperature, pair)
        for place, pair in enumerate(itertools.pairwise(layers))
    ]
    units = (machines[0].family.layers[0], *(machine.family.layers[1] for machine in machines))
    return Model(gb.models.BeliefNetworkFamily(units), np.concatenate([machine.theta for machine in machines]))


def _layered(model: Any) -> bool:
    return keeps(model.family, Layered)


def _gaussian(parts: dict[str, Any], values: Any, temperature: float) -> Any:
    mean, precision = np.asarray(parts["mean"], float), np.asarray(parts["precision"], float)
    n = len(mean)
    edges = [(i, j) for i, j in itertools.combinations(range(n), 2) if precision[i, j]]
    theta = [*precision @ mean, *np.diag(precision), *(precision[i, j] for i, j in edges)]
    return gb.Model(gb.GaussianFamily(_graph(n, edges), np.zeros(n), np.ones(n)), np.array(theta))


def _spherical(parts: dict[str, Any], values: Any, temperature: float) -> Any:
    means, weights, variances = (np.asarray(parts[name], float) for name in ("means", "weights", "variances"))
    family = gb.models.GaussianMixtureFamily(*means.shape)
    return gb.Model(family, family.join(weights, means, variances))


def _k_means(parts: dict[str, Any], values: Any, temperature: float) -> Any:
    means = np.asarray(parts["means"], float)
    family = gb.models.KMeansFamily(*means.shape)
    return gb.Model(family, family.equal(means))


def _vmf(parts: dict[str, Any], values: Any, temperature: float) -> Any:
    means, weights, kappas = (np.asarray(parts[name], float) for name in ("means", "weights", "concentrations"))
    family = gb.models.VonMisesFisherMixtureFamily(*means.shape)
    return gb.Model(family, family.normalised(family.join(weights, means, kappas)))


def _columns(parts: dict[str, Any], values: Any, temperature: float) -> Any:
    weights, tables = np.asarray(parts["weights"], float), np.asarray(parts["probabilities"], float)
    family = gb.models.LatentClassFamily(len(weights), Variables.categories(values))
    return gb.Model(family, family.join(weights, tables))


BUILDERS = {
    "stack": _stack,
    "belief-network": _belief,
    "gaussian": _gaussian,
    "gaussian-mixture": _spherical,
    "k-means": _k_means,
    "vmf-mixture": _vmf,
    "categorical-mixture": _columns,
}


# == rows of codes ====================================================================================================
def read(model: Any, rows: Any, weights: Any = None) -> Dataset:
    """Return rows of codes, or of numbers, as the model reads them; None is a missing cell."""
    variables = _columns_of(model)
    cells = np.array([[np.nan if cell is None else cell for cell in row] for row in rows], dtype=float)
    missing = np.isnan(cells)
    states = np.where(missing, 0.5 if isinstance(variables, Quadrature) else 0.0, cells)
    if type(model.family).registered_name == "vmf-mixture":
        states = states / np.linalg.norm(states, axis=1, keepdims=True)
    states = states if variables.real else states.astype(np.int8)
    shown = missing if missing.any() else None
    return Dataset.of_states(states, _coding(variables), missing=shown, sample_weight=weights)


def _columns_of(model: Any) -> Variables:
    """Return the values of the columns of data."""
    if _layered(model):
        return model.family.layers[0].variables
    return model.variables.take(range(model.n_variables - model.n_hidden))


def _coding(variables: Variables) -> Any:
    if isinstance(variables, Quadrature):
        return RealCoding(variables.support)
    if variables.real:
        return "real"
    n, labels = len(variables), variables.scores or tuple(map(tuple, map(range, variables.sizes)))
    named = {Variables.binary(n): "binary", Variables.spins(n): "spin"}
    return named.get(variables) or CategoryCoding(labels, Categories(variables.sizes, variables.scores))


def _each(data: Dataset, by_state: Any) -> np.ndarray:
    """Spread what is known of distinct rows over the rows."""
    return np.asarray(by_state)[data.row_of]


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


# == questions to a model of given parameters: exact, no randomness ===================================================
def _ask(model: Any) -> Any:
    return gb.answers.answers_about(model)


def _named(model: Any, vector: np.ndarray) -> dict[str, float]:
    return dict(zip(names_of(model), np.asarray(vector, float).tolist(), strict=True))


def log_partition(model: Any, data: Any) -> float:
    return _ask(model).log_partition()


def log_weights(model: Any, data: Dataset) -> Any:
    """Of the present cells, before log Z is taken off."""
    return _each(data, _ask(model).log_evidence(data))


def log_prob(model: Any, data: Dataset) -> Any:
    """Of the present cells of each row."""
    answers = _ask(model)
    return _each(data, answers.log_evidence(data)) - answers.log_partition()


def score(model: Any, data: Dataset) -> float:
    """The weighted mean."""
    return float(np.average(log_prob(model, data), weights=_row_weights(data)))


def _row_weights(data: Dataset) -> np.ndarray:
    return data.shares if data.row_weights is None else data.row_weights


def pseudolikelihood(model: Any, data: Dataset) -> float:
    return _ask(model).log_pseudolikelihood(data)


def cells(model: Any, data: Dataset) -> Any:
    """Probabilities of the values of each cell given the present ones of its row."""
    return _each(data, _ask(model).cell_probabilities(data, _rng()))


def hidden(model: Any, data: Dataset) -> Any:
    """Probabilities of hidden units, or of classes, given each row."""
    return _each(data, _ask(model).hidden_probabilities(data, _rng()))


def classes(model: Any, data: Dataset) -> Any:
    return _each(data, _ask(model).classes(data))


def class_probabilities(model: Any, data: Dataset) -> Any:
    return _each(data, _ask(model).class_probabilities(data))


def moments(model: Any, data: Any) -> dict[str, float]:
    """Expected statistics, exactly."""
    return _named(model, _ask(model).expect(_rng(), "exact").value)


def engine(model: Any, data: Any, name: str) -> Any:
    """log Z and the expected statistics by one exact engine."""
    found = ENGINES.create(name, family=model.family).at(model.theta)
    return {"log Z": found.log_partition, **_named(model, found.moments)}


def expect(model: Any, data: Any, name: str, **settings: Any) -> dict[str, float]:
    """Expected statistics by a method without chance."""
    starts = data if EXPECTATIONS.trait(name, "needs_starts") else None
    bound = EXPECTATIONS.create(name, **settings).bind(model, None, starts)
    return _named(model, bound(model.theta, bound.init(model.theta, Key.of(_rng())))[0].value)


def spatial(model: Any, data: Dataset, region: Any) -> Any:
    """Spatial Monte Carlo integration over the rows, and its standard errors."""
    found = gb.expectations.spatial_statistics(model, data, region)
    return {"mean": _named(model, found.value), "stderr": _named(model, found.stderr)}


def clamped(model: Any, data: Dataset, name: str) -> dict[str, float]:
    """Expected statistics given what each row shows, on average over the rows."""
    bound = EXPECTATIONS.create(name).bind(model, _with_hidden(model, data))
    return _named(model, bound(model.theta, bound.init(model.theta, Key.of(_rng())))[0].value)


def _with_hidden(model: Any, data: Dataset) -> Dataset:
    """Return the rows with the hidden units after their columns, missing."""
    return _ask(model).completed(data) if model.n_hidden and not _layered(model) else data


def objective(model: Any, data: Dataset, name: str, **settings: Any) -> Any:
    """What a learner minimises, and its gradient by natural parameters."""
    bound = for_model(OBJECTIVES.create(name, **settings), model)
    if _layered(model):
        joint = model.family.joint(model.theta)
        units = names_of(model)[: joint.n_variables]
        value, gradient = value_and_gradient(bound, joint, _ask(joint).completed(data))
        own = ["*".join(units[int(i[1:])] for i in name.split("*")) for name in names_of(joint)]
        return {"value": value, **dict(zip(own, gradient, strict=True))}
    value, gradient = value_and_gradient(bound, model, _with_hidden(model, data))
    return {"value": value, **_named(model, gradient)}


def curvature(model: Any, data: Dataset, name: str) -> Any:
    """The trace and the norm of the matrix of second derivatives, by natural parameters."""
    matrix = OBJECTIVES.create(name).curvature(model, data)
    return {"trace": np.trace(matrix), "norm": np.linalg.norm(matrix)}


def mode(model: Any, data: Dataset, n: int = 1, joint: bool = False) -> Any:
    """The rows with missing cells at their most probable values, as codes, and log-weights."""
    found = _ask(model).most_probable(data, Search(_rng(), n_states=n), joint)
    order = slice(None) if n > 1 else data.row_of
    extra = {"hidden": np.asarray(found.hidden)[order]} if joint else {}
    return {"rows": np.asarray(found.rows)[order], "log weights": np.asarray(found.log_weights)[order], **extra}


def _queries(model: Any) -> Queries:
    return Queries(_ask(model).joint(), _rng(), "exact")


def marginal(model: Any, data: Any, nodes: tuple[int, ...], given: dict[int, int] | None = None) -> Any:
    """The joint probabilities of some variables (hidden ones stand after the columns), given codes of others."""
    return _queries(model).tables([list(nodes)], given or {})[0].value


def entropy(model: Any, data: Any, nodes: tuple[int, ...], given: dict[int, int] | None = None) -> float:
    return float(_queries(model).information([(1, list(nodes))], given or {}))


def mutual_information(model: Any, data: Any, one: tuple[int, ...], other: tuple[int, ...]) -> float:
    parts = [(1, list(one)), (1, list(other)), (-1, [*one, *other])]
    return float(_queries(model).information(parts, {}))


def divergence(model: Any, data: Any, other: Any) -> list[float]:
    """KL forward and backward, and Jensen-Shannon."""
    second = build(**other)
    codes = [np.arange(size) for size in second.variables.sizes]
    return [float(each) for each in _queries(model).divergence(_ask(second).joint(), codes)]


def decide(model: Any, data: Dataset, columns: tuple[int, ...], losses: Any) -> Any:
    """Decisions of least expected loss about columns that are hidden from the rows."""
    hidden_data = data.hide(list(columns))
    found = column_probabilities(_ask(model), hidden_data, np.array(columns), _rng())
    return [_each(hidden_data, bayes_decision(part, np.array(losses))) for part in found]


def joint_cells(model: Any, data: Dataset, columns: tuple[int, ...]) -> Any:
    """The probabilities of all combinations of values of some columns given the others."""
    shown = data.hide(list(columns))
    return _each(shown, joint_probabilities(_ask(model), shown, np.array(columns)))


def conditioned(model: Any, data: Any, given: dict[int, int]) -> Any:
    """The moments of the other variables, and the log-weight that is taken out."""
    rest, constant = model.given(list(given), list(given.values()))
    found = gb.inference.exact(rest)
    return {"constant": constant, "log Z": found.log_partition, "statistics": sorted(found.moments.tolist())}


def recoded(model: Any, data: Any, values: str) -> dict[str, float]:
    """The same distribution over other numbers, and the constant of its log-weights."""
    other, constant = model.family.recode(model.theta, _variables(values, model.n_variables))
    return {"constant": constant, **natural(other)}


def gauge(model: Any, data: Any) -> dict[str, float]:
    """The natural parameters in the gauge in which they are reported; of tables, with one over every part of them."""
    if type(model.family).registered_name == "tables":
        parts = (itertools.combinations(scope, k + 1) for scope in model.family.scopes for k in range(len(scope)))
        whole, known = (
            gb.TablesFamily(Scopes.sorted(itertools.chain(*parts), model.n_variables), model.variables),
            natural(model),
        )
        model = Model(whole, np.array([known.get(name, 0.0) for name in names_of(Model.zeros(whole))]))
    return natural(model.canonical())


def strengths(model: Any, data: Any) -> Any:
    """How strongly variables interact."""
    found = model.interactions()
    return [[list(map(int, members)), float(s)] for members, s in zip(found.scopes, found.strengths, strict=True)]


def coupling_norms(model: Any, data: Any, apc: bool) -> Any:
    return tables.coupling_norms(model, apc)


def bound_on_modes(model: Any, data: Any) -> float:
    return float(gb.inference.largest_log_weight_bound(model))


def evidence_bound(model: Any, data: Dataset) -> Any:
    """A lower bound of the log-evidence by mean field."""
    return _each(data, _ask(model).log_evidence_bound(data, _rng()))


def visible_given(model: Any, data: Any, codes: Any, group: int = 0) -> Any:
    """Probabilities of the columns given codes of hidden units ("dreaming", YK15)."""
    answers = _ask(model)
    groups = answers.hidden_groups()
    n = model.n_variables - model.n_hidden
    return answers.visible_given_hidden(np.array(codes, np.int8), groups[group], n, lambda: _queries(model))[0]


def expectation_of(model: Any, data: Dataset, nodes: tuple[int, ...], region: Any) -> list[float]:
    """E of the product of some variables' values, by spatial Monte Carlo integration over the rows."""
    found = gb.expectations.expect_of(model, lambda *x: np.prod(x, axis=0), nodes, data, region)
    return [float(found.value), float(found.stderr)]


def natural(model: Any) -> dict[str, float]:
    """The natural parameters."""
    return _named(model, np.asarray(model.theta))


def exists(model: Any, data: Dataset) -> bool:
    """Whether the likelihood has a finite maximum."""
    return bool(gb.diagnostics.maximum_exists(model, data))


QUESTIONS = {
    question.__name__: question
    for question in (
        log_partition, log_weights, log_prob, score, pseudolikelihood, cells, hidden, classes, class_probabilities,
        moments, engine, expect, spatial, clamped, objective, curvature, mode, marginal, entropy, mutual_information,
        divergence, decide, joint_cells, conditioned, recoded, gauge, strengths, coupling_norms, bound_on_modes,
        evidence_bound, visible_given, expectation_of, exists,
    )
}  # fmt: skip


def answer(model: Any, question: str, rows: Any, weights: Any, **how: Any) -> Any:
    """Return what a model of given parameters answers."""
    data = None if rows is None else read(model, rows, weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return QUESTIONS[question](model, data, **how)


# == fits =============================================================================================================
# Learners of the table that are another one with a setting.
LEARNERS_WITH: dict[str, tuple[str, dict[str, Any]]] = {
    "1-smci": ("smci", {"region": 1}),
    "s2-smci": ("smci", {"region": "s2"}),
    "s2-smci-pcd": ("smci-pcd", {"region": "s2"}),
    **{
        name: ("mean-field", {"approximation": name})
        for name in ("tap", "bethe", "independent-pair", "sessak-monasson")
    },
}


def estimator_of(name: str, settings: dict[str, Any], seed: int = 0) -> Any:
    """Return an estimator that is not fitted; its learner and parts of this are names, or pairs with settings."""
    kind = gb.GibbsClassifier if name == "classifier" else ESTIMATORS.factory(name)
    given = dict(settings)
    word = given.get("learner")
    if isinstance(word, str) and word in LEARNERS_WITH:
        given["learner"] = LEARNERS_WITH[word]
    elif isinstance(word, tuple) and word[0] in LEARNERS_WITH:
        learner, more = LEARNERS_WITH[word[0]]
        given["learner"] = (learner, {**more, **word[1]})
    if isinstance(given.get("learner"), tuple):
        word, inner = given["learner"]
        inner = {name: _part(name, value) for name, value in inner.items()}
        inner |= {key: given.pop(key) for key in ("l1", "l2", "log_prior") if key in given}
        inner = _natural(inner, given.get("temperature", 1.0))
        inner |= {"max_iter": given.pop("max_iter")} if word == "minibatch" and "max_iter" in given else {}
        given["learner"] = gb.learning.Stacking(**inner) if word == "stacking" else as_learner(word, **inner)
    elif "l2" in kind().get_params() and name not in UNPENALISED:
        given = {"l2": 0.0, **given}
    if isinstance(given.get("start"), dict):
        given["start"] = build(**given["start"])
    if isinstance(given.get("machine"), tuple):
        given["machine"] = estimator_of(*given["machine"])
    if "potentials" in given:
        given["potentials"] = [
            Potential(each[0], scopes=each[1], tied=each[2]) if isinstance(each, tuple) else each
            for each in given["potentials"]
        ]
    return kind(**{"random_state": seed, **given})


UNPENALISED: set[str] = {
    "gaussian-mixture",
    "soft-k-means",
    "k-means",
    "online-k-means",
    "vmf-mixture",
    "machine-mixture",
    "classifier",
}


def _natural(settings: dict[str, Any], temperature: float) -> dict[str, Any]:
    """Return the settings of a learner of parameters over T, given those of one of parameters times T."""
    powers = {"l1": 1, "l2": 2, "learning_rate": -2}
    numbers = {name: value for name, value in settings.items() if name in powers and isinstance(value, float)}
    return settings | {name: value * temperature ** powers[name] for name, value in numbers.items()}


def _part(setting: str, value: Any) -> Any:
    """Return a part of a learner: an optimiser, a free or clamped phase, the stages of a stack."""
    if setting in ("alone", "together") and value is not None:
        inner = {key: _part(key, part) for key, part in value.items()}
        return gb.learning.Minibatch(**inner)
    if not isinstance(value, tuple):
        return value
    name, settings = value
    if setting == "optimizer":
        return OPTIMIZERS.create(name, **settings)
    return {"negative_phase": NEGATIVE_PHASES, "clamped": EXPECTATIONS}[setting].create(name, **settings)


def table_of(rows: Any) -> np.ndarray:
    """Return rows as an array: labels as they are, numbers with NaN for missing cells."""
    flat = [cell for row in rows for cell in row]
    if any(isinstance(cell, str) for cell in flat):
        return np.array(rows, dtype=object)
    if any(cell is None for cell in flat):
        return np.array([[np.nan if cell is None else cell for cell in row] for row in rows])
    return np.array(rows)


class Fitted:
    """A fitted estimator with the rows it has seen."""

    def __init__(self, estimator: str, settings: dict[str, Any], rows: Any, weights: Any, seed: int = 0):
        self.name = estimator
        self.rows, self.weights = table_of(rows), None if weights is None else np.array(weights)
        settings = dict(settings)
        targets, on_disk = settings.pop("labels", None), settings.pop("on_disk", False)
        chunks, shown = settings.pop("chunks", 0), self.rows
        if settings.pop("sparse", False):
            shown = sparse.csr_array(shown)
        self.estimator = estimator_of(estimator, settings, seed)
        self.settings = settings
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            warnings.simplefilter("ignore")
            if targets is not None:
                self.estimator.fit(self.rows, np.array(targets), sample_weight=self.weights)
            elif on_disk:
                np.save(Path(folder) / "rows.npy", self.rows.astype(np.int8))
                self.estimator.fit(gb.data.DataStream.open(Path(folder) / "rows.npy"))
            elif chunks:
                for chunk in np.array_split(self.rows, chunks):
                    self.estimator.partial_fit(chunk)
            else:
                self.estimator.fit(shown, sample_weight=self.weights)

    @property
    def model(self) -> Any:
        return self.estimator.model_

    @property
    def converged(self) -> bool:
        return bool(self.estimator.result_.converged)

    def value(self) -> float | None:
        """The objective at the end, None where the learner knows none."""
        value = float(self.estimator.result_.trace.kept("value")[-1])
        return value if np.isfinite(value) else None

    def parameters(self) -> dict[str, Any]:
        """Natural parameters in their own gauge, or the arrays that a mixture or a Gaussian shows."""
        model = self.model
        if self.name == "classifier":
            return {"theta": np.asarray(model.theta)}
        kind = type(model.family).registered_name
        if kind == "gaussian":
            family, theta = model.family, model.theta
            return {"mean": family.moments(theta)[0], "precision": np.linalg.inv(family.moments(theta)[1])}
        if kind == "machine-mixture":
            parts = [_named(one, one.theta) for one in model.family.models_at(model.theta)]
            return {"weights": model.parts.weights, **{f"machine {a}": list(p.values()) for a, p in enumerate(parts)}}
        if keeps(model.family, Mixture):
            parts = model.parts._asdict()
            return {"means": parts["means"]} if kind == "k-means" else parts
        if kind == "belief-network":
            return {"theta": model.theta}
        return natural(model if _layered(model) else model.canonical())

    def smallest_curvature(self, loss: str) -> float:
        """Return the least second derivative of the penalised loss where parameters are free, by natural parameters.

        Directions that change nothing (of the gauge) are left out, and so are parameters that L1 holds at zero.
        """
        model, estimator = self.model, self.estimator
        data = _with_hidden(model, estimator.read(self.rows) if self.weights is None else self._read())
        bound = for_model(OBJECTIVES.create(loss), model)
        learner = estimator.learner
        l1, l2 = (getattr(learner, name, getattr(estimator, name, 0.0)) for name in ("l1", "l2"))
        free = np.ones(model.theta.size, bool) if not l1 else (model.theta != 0) | ~model.penalised
        if _layered(model):
            model = model.family.joint(model.theta)
            data = _ask(model).completed(estimator.read(self.rows))
            free = np.ones(model.theta.size, bool)

        def slope(theta: np.ndarray) -> np.ndarray:
            return value_and_gradient(bound, model.replace(theta), data)[1] + estimator.temperature**2 * l2 * theta

        step = 1e-5
        shifts = step * np.eye(free.size)[free]
        rows = [(slope(model.theta + shift) - slope(model.theta - shift))[free] / (2 * step) for shift in shifts]
        eigenvalues = np.linalg.eigvalsh((np.array(rows) + np.array(rows).T) / 2)
        return float(eigenvalues[eigenvalues > 1e-6].min())

    def _read(self) -> Dataset:
        return self.estimator._read(self.rows, sample_weight=self.weights)

    def ask(self, what: str, **how: Any) -> Any:
        """Return what the fitted estimator answers, in labels."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return FITTED_QUESTIONS[what](self, **how)


def _asked_rows(fitted: Fitted, rows: Any) -> Any:
    return fitted.rows[:8] if rows is None else table_of(rows)


def _method(name: str) -> Any:
    """Return the question that a method of the estimator answers about rows, by default the first eight of the fit."""

    def question(fitted: Fitted, rows: Any = None, **how: Any) -> Any:
        return np.asarray(getattr(fitted.estimator, name)(_asked_rows(fitted, rows), **how))

    return question


def _query(fitted: Fitted, text: str) -> Any:
    return fitted.estimator.query(text).iloc[:, 0].to_list()


def _standard_errors(fitted: Fitted, kind: str) -> Any:
    found = gb.uncertainty.standard_errors(fitted.estimator, fitted.rows, kind, sample_weight=fitted.weights)
    return dict(zip(names_of(found.model), found.theta_se / fitted.estimator.temperature, strict=True))


def _modes(fitted: Fitted, rows: Any = None, **how: Any) -> Any:
    found = fitted.estimator.most_probable(None if rows is None else table_of(rows), **how)
    return {"rows": np.asarray(found.rows), "log weights": found.log_weights}


def _unusual(fitted: Fitted) -> Any:
    return np.asarray(fitted.estimator.unusual(fitted.rows).iloc[:4, :2], dtype=object)


def _again(fitted: Fitted, rows: Any = None) -> Any:
    """Score rows by the model that a file gives back."""
    with tempfile.TemporaryDirectory() as folder:
        fitted.estimator.save(Path(folder) / "model.gibbs")
        return gb.load(Path(folder) / "model.gibbs").score_samples(_asked_rows(fitted, rows))


def _kl(fitted: Fitted, other: tuple[str, dict[str, Any]]) -> Any:
    second = Fitted(*other, fitted.rows.tolist(), None)
    return [float(each) for each in fitted.estimator.divergence(second.estimator)]


def _predict_labels(fitted: Fitted, rows: Any = None) -> Any:
    return fitted.estimator.predict_proba(_asked_rows(fitted, rows))


FITTED_QUESTIONS = {
    **{
        name: _method(name)
        for name in ("score_samples", "pseudo_score", "impute", "predict_proba", "predict", "transform", "bic", "aic")
    },
    "query": _query,
    "standard errors": _standard_errors,
    "modes": _modes,
    "unusual": _unusual,
    "saved and loaded": _again,
    "divergence": _kl,
    "log partition": lambda fitted: float(fitted.estimator.log_partition()),
    "energy": lambda fitted: float(fitted.estimator.energy_),
    "labels": lambda fitted: fitted.estimator.labels_,
    "functions": lambda fitted: np.sort(fitted.model.family.functions),
    "cost": lambda fitted: float(fitted.estimator.cost_),
    "label probabilities": _predict_labels,
    "coupling norms": lambda fitted: np.asarray(fitted.estimator.coupling_norms(apc=True)),
}  # fmt: skip


def structure(rows: Any, method: str, **settings: Any) -> list[list[int]]:
    """Return the edges that a method finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gb.structure.learn_structure(table_of(rows), method=method, **settings).graph.edges.tolist()


# == what is drawn ====================================================================================================
def draw(seed: int, what: str, model: Any, rows: Any, weights: Any, how: dict[str, Any]) -> list[float]:
    """Return some numbers with chance in them."""
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if what == "fit":
            return _drawn_fit(Fitted(how["estimator"], how["settings"], rows, weights, seed))
        if what == "bootstrap":
            machine = Fitted(how["estimator"], how["settings"], rows, weights, 0).estimator
            found = gb.uncertainty.bootstrap(machine, table_of(rows), how["n_replicates"], random_state=seed)
            return found.theta_se[:6].tolist()
        return DRAWS[what](build(**model), rng, rows, **how)


def _drawn_fit(fitted: Fitted) -> list[float]:
    """The score of the rows, and some parameters that do not depend on the order of hidden units or classes."""
    estimator = fitted.estimator
    if fitted.name == "classifier":
        return estimator.predict_proba(fitted.rows)[:4, 0].tolist()
    scores = np.asarray(estimator.score_samples(fitted.rows[:40]))
    parameters = fitted.parameters()
    firsts: list[float] = []
    if fitted.name in ("pairwise", "higher-order", "potts", "mrf", "ordinal"):
        firsts = [float(parameters[name]) for name in sorted(parameters)][:6]
    if "weights" in parameters:
        firsts = sorted(np.asarray(parameters["weights"], float).tolist())
    unseen = estimator.result_.held_out
    kept_out = [] if unseen is None else [float(unseen.score)]
    return [float(scores.mean()), *scores[:3].tolist(), *firsts, *kept_out]


def _summary(states: np.ndarray, discrete: bool) -> list[float]:
    """Means of the first columns, and of products of neighbours (and squares of numbers)."""
    numbers = np.asarray(states, float)[:, :4]
    products = numbers[:, 1:] * numbers[:, :-1]
    squares = [] if discrete else np.square(numbers).mean(axis=0).tolist()
    return [*numbers.mean(axis=0).tolist(), *products.mean(axis=0).tolist(), *squares]


def _sampled(model: Any, rng: Any, rows: Any, method: str, n: int, **how: Any) -> list[float]:
    rows, variables = _ask(model).sample(n, rng, method, **how)[0], _columns_of(model)
    spins = not variables.real and variables == Variables.spins(len(variables))
    return _summary(variables.scores_of(rows) if spins else rows, not variables.real)


def _expected(model: Any, rng: Any, rows: Any, name: str, **how: Any) -> list[float]:
    bound = EXPECTATIONS.create(name, **how).bind(model, None, None if rows is None else read(model, rows))
    found = _named(model, bound(model.theta, bound.init(model.theta, Key.of(rng)))[0].value)
    return [found[each] for each in sorted(found)][:8]


def _log_z(model: Any, rng: Any, rows: Any, method: str, n_samples: int, betas: int) -> list[float]:
    found = _ask(model).log_partition_interval(rng, n_samples, betas, warn=False, method=method)
    return [float(found.lower + found.upper) / 2]


def _clamped(model: Any, rng: Any, rows: Any, name: str, **how: Any) -> list[float]:
    bound = EXPECTATIONS.create(name, **how).bind(model, _with_hidden(model, read(model, rows)))
    found = _named(model, bound(model.theta, bound.init(model.theta, Key.of(rng)))[0].value)
    return [found[each] for each in sorted(found)][-8:]


def _layer_sampler(model: Any, rng: Any, rows: Any, name: str, n_chains: int, n_steps: int) -> list[float]:
    key, n_visible = Key.of(rng), len(model.family.layers[0].variables)
    path = layer_path(model, "uniform")
    if name == "block-gibbs":
        chains, _ = kernel_for(model.family).step(model.theta, path.start(n_chains, key), n_steps)
    else:
        start = [path.start(n_chains, key.fold(place)) for place in range(10)]
        *_, chains = exchange(path, path.kernel(), start, np.linspace(0.0, 1.0, 10), n_steps, key)[0]
    return _summary(model.family.encode(chains.states)[0][:, :n_visible], True)


def _query_drawn(model: Any, rng: Any, rows: Any, n_samples: int) -> list[float]:
    asked = Queries(_ask(model).joint(), rng, "gibbs", n_samples)
    return [*asked.tables([[0, 1]], {2: 1})[0].value.ravel().tolist(), float(asked.information([(1, [0, 1])], {}))]


DRAWS = {
    "sample": _sampled,
    "expect": _expected,
    "log Z": _log_z,
    "clamped": _clamped,
    "layer sampler": _layer_sampler,
    "query": _query_drawn,
}
