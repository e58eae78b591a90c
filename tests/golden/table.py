"""The frozen questions: models of given parameters, fits and what is drawn. No name of the library stands here.

Names of models, learners and settings are words of this table; `api.py` says what the library calls them. A row whose
answer a later issue changes on purpose carries its number in `issue` ("31.20": issue 31, item 20).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Model(NamedTuple):
    """A distribution, stated by its parameters: ``P(x) = exp(sum of parts / temperature) / Z``."""

    family: str
    parts: dict[str, Any]
    values: Any = None
    temperature: float = 1.0
    options: dict[str, Any] = {}  # noqa: RUF012  # never written to

    def stated(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "parts": self.parts,
            "values": self.values,
            "temperature": self.temperature,
            **self.options,
        }


class Question(NamedTuple):
    """One question to a model of given parameters."""

    what: str
    how: dict[str, Any] = {}  # noqa: RUF012


class Given(NamedTuple):
    """Questions to a model of given parameters: exact, equal to 1e-9."""

    name: str
    model: Model
    questions: tuple[Question, ...]
    rows: Any = None
    weights: Any = None
    issue: str = ""


# == numbers that are the same for ever ===============================================================================
def uniforms(n: int, seed: int) -> list[float]:
    """Return numbers from 0 to 1 by splitmix64, written out: no library's generator."""
    found, state, mask = [], seed * 0x632BE59BD9B4E019 & (2**64 - 1), 2**64 - 1
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        found.append(((z ^ (z >> 31)) >> 11) / 2**53)
    return found


def wave(names: Iterable[str], scale: float = 0.7, phase: float = 0.3) -> dict[str, float]:
    """Return a parameter of three decimals for each name."""
    return {name: round(scale * math.sin(1.7 * k + phase), 3) for k, name in enumerate(names)}


def drawn_codes(n_rows: int, sizes: Sequence[int], seed: int, holes: float = 0.0) -> list[list[Any]]:
    """Return rows of codes whose columns go together: two groups, and noise; None where cells are missing."""
    n = len(sizes)
    u = uniforms(n_rows * (3 * n + 1), seed)
    rows = []
    for m in range(n_rows):
        mine = u[m * (3 * n + 1) : (m + 1) * (3 * n + 1)]
        level = mine[-1]
        row: list[Any] = [
            min(int(level * q), q - 1) if mine[i] < 0.55 else min(int(mine[n + i] * q), q - 1)
            for i, q in enumerate(sizes)
        ]
        gone = [i for i in range(n) if mine[2 * n + i] < holes]
        for i in gone[: n - 1]:  # no row is empty
            row[i] = None
        rows.append(row)
    return rows


def drawn_numbers(n_rows: int, n: int, seed: int, holes: float = 0.0, apart: float = 3.0) -> list[list[Any]]:
    """Return rows of numbers in three groups."""
    u = uniforms(n_rows * (4 * n + 1), seed)
    rows = []
    for m in range(n_rows):
        mine = u[m * (4 * n + 1) : (m + 1) * (4 * n + 1)]
        group = int(3 * mine[-1])
        row: list[Any] = []
        for i in range(n):
            normal = math.sqrt(-2 * math.log(1 - mine[i])) * math.cos(2 * math.pi * mine[n + i])
            row.append(round(apart * math.sin(2.1 * group + 1.3 * i) + normal, 4))
        gone = [i for i in range(n) if mine[2 * n + i] < holes]
        for i in gone[: n - 1]:
            row[i] = None
        rows.append(row)
    return rows


def weights(n_rows: int) -> list[float]:
    return [1.0 + int(3 * u) for u in uniforms(n_rows, 66)]


def labelled(rows: Sequence[Sequence[Any]], labels: Sequence[Any]) -> list[list[Any]]:
    """Return rows of codes in labels."""
    return [[None if code is None else labels[code] for code in row] for row in rows]


# == models of given parameters =======================================================================================
def singles(n: int) -> list[str]:
    return [f"x{i}" for i in range(n)]


def products(scopes: Iterable[Sequence[int]]) -> list[str]:
    return ["*".join(f"x{i}" for i in scope) for scope in scopes]


def cells_of(scopes: Iterable[Sequence[int]], sizes: Sequence[int]) -> list[str]:
    return [
        ",".join(f"x{i}={code}" for i, code in zip(scope, codes, strict=True))
        for scope in scopes
        for codes in itertools.product(*(range(sizes[i]) for i in scope))
    ]


def pairs(n: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(n), 2))


def grid(rows: int, columns: int) -> list[tuple[int, int]]:
    at = {(r, c): r * columns + c for r in range(rows) for c in range(columns)}
    right = [(at[r, c], at[r, c + 1]) for r in range(rows) for c in range(columns - 1)]
    return sorted(right + [(at[r, c], at[r + 1, c]) for r in range(rows - 1) for c in range(columns)])


def chain(n: int) -> list[tuple[int, int]]:
    return [(i, i + 1) for i in range(n - 1)]


def unit_names(widths: Sequence[int]) -> list[str]:
    units = [[f"layer{k}[{i}]" for i in range(width)] for k, width in enumerate(widths)]
    between = [f"{a}*{b}" for lower, upper in itertools.pairwise(units) for a in lower for b in upper]
    return [*itertools.chain(*units), *between]


def pairwise(n: int, edges: Any, values: str, temperature: float = 1.0, bias: bool = True, **options: Any) -> Model:
    names = [*(singles(n) if bias else ()), *products(edges)]
    return Model("pairwise", wave(names), values, temperature, {"n": n, **options})


def tables(family: str, sizes: Sequence[int], scopes: Any, temperature: float = 1.0) -> Model:
    return Model(family, wave(cells_of(scopes, sizes)), tuple(sizes), temperature, {"n": len(sizes)})


def layers(family: str, kinds: Sequence[tuple[Any, int]], temperature: float = 1.0, scale: float = 0.7) -> Model:
    widths = [n if isinstance(kind, str) or kind[0] == "normal" else sum(kind) for kind, n in kinds]
    options = {"layers": tuple(kinds)}
    if family == "belief-network":
        machines = {
            f"machine{k}": wave(unit_names(widths[k : k + 2]), scale, 0.3 + k) for k in range(len(widths) - 1)
        }
        return Model(family, machines, None, temperature, options)
    return Model(family, wave(unit_names(widths), scale), None, temperature, options)


def field(n: int, potentials: Any, values: Any, weights_: dict[str, float], temperature: float = 1.0) -> Model:
    family = "continuous-field" if isinstance(values[0], str) and not isinstance(values, str) else "potential-field"
    return Model(family, weights_, values, temperature, {"n": n, "potentials": potentials})


LEVELS = ((-1.0, 0.0, 1.0), (-0.5, 0.5), (-1.5, -0.5, 0.5, 1.5))
ORDINAL_NAMES = [
    *(f"levels({i})[{k}]" for i, scores in enumerate(LEVELS) for k in range(len(scores) - 1)),
    *(f"product({i},{j})[0]" for i, j in pairs(3)),
]
PRECISION = [[2.0, 0.6, 0.0, -0.3], [0.6, 1.5, 0.4, 0.0], [0.0, 0.4, 1.2, 0.5], [-0.3, 0.0, 0.5, 1.8]]
GAUSSIANS = {
    "weights": [0.5, 0.3, 0.2],
    "means": [[0.0, 1.0, -1.0], [2.0, -0.5, 0.3], [-1.5, 0.2, 2.2]],
    "variances": [0.7, 1.3, 0.4],
}
DIRECTIONS = {
    "weights": [0.6, 0.4],
    "means": [[1.0, 0.5, -0.2], [-0.3, 1.0, 0.8]],
    "concentrations": [4.0, 11.0],
}
COLUMNS = {
    "weights": [0.45, 0.55],
    "probabilities": [[0.2, 0.8, 0.5, 0.3, 0.2, 0.1, 0.2, 0.3, 0.4], [0.7, 0.3, 0.1, 0.6, 0.3, 0.4, 0.3, 0.2, 0.1]],
}

MODELS = {
    "pairwise 0/1": pairwise(5, pairs(5), "0/1"),
    "pairwise -1/+1 grid": pairwise(6, grid(2, 3), "-1/+1", 2.5),
    "pairwise without biases": pairwise(9, grid(3, 3), "-1/+1", bias=False),
    "pairwise chain 0/1": pairwise(7, chain(7), "0/1", 0.6),
    "pairwise with hidden 0/1": pairwise(6, [e for e in pairs(6) if e != (4, 5)], "0/1", n_hidden=2),
    "pairwise with hidden -1/+1": pairwise(5, pairs(5), "-1/+1", 1.4, n_hidden=2),
    "large grid": pairwise(24, grid(4, 6), "-1/+1"),
    "large grid without biases": pairwise(36, grid(6, 6), "-1/+1", bias=False),
    "higher order -1/+1": Model(
        "higher-order",
        wave(products([s for k in (1, 2, 3) for s in itertools.combinations(range(4), k)])),
        "-1/+1",
        1.0,
        {"n": 4},
    ),
    "higher order 0/1 cliques": Model(
        "higher-order", wave(products([(0,), (1,), (2,), (3,), (4,), (1, 2), (2, 3), (0, 1, 4)])), "0/1", 1.7, {"n": 5}
    ),
    "higher order of three values": Model(
        "higher-order",
        wave(products([*((i,) for i in range(4)), *pairs(4), (0, 1, 2)])),
        ((-1.0, 0.0, 1.0),) * 4,
        1.5,
        {"n": 4},
    ),
    "potts": tables("potts", (2, 3, 4), [(0,), (1,), (2,), *pairs(3)], 1.4),
    "potts chain": tables("potts", (3, 3, 3, 3), [*((i,) for i in range(4)), *chain(4)]),
    "tables": tables("markov-random-field", (2, 3, 2, 2), [(0,), (2, 3), (0, 1, 2)], 0.8),
    "tables of a ring": tables("markov-random-field", (2, 2, 3, 2, 2), [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]),
    "ordinal": Model("ordinal", wave(ORDINAL_NAMES), LEVELS, 1.3, {"n": 3}),
    "potentials of spins": field(
        6,
        (("bias", None, False), ("product", grid(2, 3), True), ("absolute-difference", [(0, 5), (1, 4)], True)),
        "-1/+1",
        {**wave([f"bias({i})[0]" for i in range(6)]), "product[0]": 0.4, "absolute-difference[0]": -0.3},
        1.2,
    ),
    "potentials of scores": field(
        3,
        (
            ("levels", [(0,)], False),
            ("square", [(1,), (2,)], True),
            ("indicator:1.5", [(2,)], False),
            ("squared-difference", [(0, 1), (1, 2)], True),
            ("equal", [(0, 2)], False),
            ("product", [(0, 1, 2)], False),
        ),
        ((0.0, 1.0, 2.5), (-1.0, 1.0), (0.0, 0.5, 1.5, 3.0)),
        {
            "levels(0)[0]": 0.4,
            "levels(0)[1]": -0.6,
            "square[0]": -0.2,
            "indicator:1.5(2)[0]": 0.5,
            "squared-difference[0]": -0.15,
            "equal(0,2)[0]": 0.7,
            "product(0,1,2)[0]": 0.3,
        },
    ),
    "potentials of categories": field(
        3,
        (("bias", None, False), ("equal", [(0, 1)], False), ("table", [(1, 2)], False)),
        (2, 3, 2),
        wave(
            [
                "bias(0)[0]",
                *(f"bias(1)[{k}]" for k in range(2)),
                "bias(2)[0]",
                "equal(0,1)[0]",
                *(f"table(1,2)[{k}]" for k in range(6)),
            ]
        ),
    ),
    "interval": field(
        3,
        (("bias", None, False), ("product", chain(3), False), ("squared-difference", [(0, 2)], False)),
        ("interval", 0.0, 1.0),
        {
            "bias(0)[0]": 0.8,
            "bias(1)[0]": -0.5,
            "bias(2)[0]": 0.3,
            "product(0,1)[0]": 1.2,
            "product(1,2)[0]": -0.9,
            "squared-difference(0,2)[0]": -1.5,
        },
        1.1,
    ),
    "normal base": field(
        2,
        (("bias", None, False), ("product", [(0, 1)], False), ("absolute-difference", [(0, 1)], False)),
        ("normal", 0.2, 0.8),
        {"bias(0)[0]": 0.4, "bias(1)[0]": -0.3, "product(0,1)[0]": 0.5, "absolute-difference(0,1)[0]": -0.4},
    ),
    "gaussian": Model("gaussian", {"mean": [0.5, -1.0, 2.0, 0.1], "precision": PRECISION}),
    "full span 0/1": Model(
        "full-span",
        wave(["phi(1,0,0,0,0)", "phi(0,1,0,0,1)", "phi(1,1,1,0,0)", "phi(0,0,1,1,1)", "phi(1,1,1,1,1)", "phi(0,0,0,1,0)"]),
        "0/1",
        1.0,
        {"n": 5},
    ),
    "full span of categories": Model(
        "full-span",
        wave(["phi(1,0,0)", "phi(0,2,0)", "phi(0,1,3)", "phi(1,2,1)", "phi(0,0,2)"]),
        (2, 3, 4),
        1.3,
        {"n": 3},
    ),
    "full span with a hidden variable": Model(
        "full-span",
        wave(["phi(0,1,0,0)", "phi(0,0,0,1)", "phi(1,0,0,1)", "phi(0,1,0,1)", "phi(0,0,1,1)", "phi(1,1,1,0)"]),
        "0/1",
        1.0,
        {"n": 4, "n_hidden": 1},
    ),
    "restricted 0/1": layers("restricted", [("0/1", 5), ("0/1", 4)]),
    "restricted -1/+1": layers("restricted", [("-1/+1", 5), ("-1/+1", 3)], 1.7),
    "restricted 0/1 and -1/+1": layers("restricted", [("0/1", 4), ("-1/+1", 3)]),
    "restricted normal": layers("restricted", [(("normal", (0.6, 0.8, 1.0)), 3), ("0/1", 4)]),
    "restricted of categories": layers("restricted", [((2, 3, 2), 3), ("-1/+1", 3)], 1.2),
    "restricted with normal hidden": layers("restricted", [("0/1", 4), (("normal", (0.6, 0.8)), 2)]),
    "restricted with hidden categories": layers("restricted", [("0/1", 4), ((3, 2), 2)]),
    "deep 0/1": layers("deep", [("0/1", 5), ("0/1", 4), ("0/1", 3)]),
    "deep -1/+1": layers("deep", [("-1/+1", 4), ("-1/+1", 3), ("-1/+1", 2), ("-1/+1", 2)], 1.3),
    "deep of categories": layers("deep", [((2, 3), 2), ("0/1", 3), ("0/1", 2)]),
    "deep normal": layers("deep", [(("normal", (0.7, 0.9)), 2), ("0/1", 3), ("0/1", 2)]),
    "belief network": layers("belief-network", [("0/1", 4), ("0/1", 3), ("0/1", 2)]),
    "belief network -1/+1": layers("belief-network", [("-1/+1", 4), ("-1/+1", 3), ("-1/+1", 3), ("-1/+1", 2)], 1.4),
    "gaussian mixture": Model("gaussian-mixture", GAUSSIANS),
    "k-means": Model("k-means", {"means": GAUSSIANS["means"]}),
    "directions": Model("vmf-mixture", DIRECTIONS),
    "mixture of columns": Model("categorical-mixture", COLUMNS, (2, 3, 4)),
}

SIZES = {
    "pairwise 0/1": (2,) * 5,
    "pairwise -1/+1 grid": (2,) * 6,
    "pairwise without biases": (2,) * 9,
    "pairwise chain 0/1": (2,) * 7,
    "pairwise with hidden 0/1": (2,) * 4,
    "pairwise with hidden -1/+1": (2,) * 3,
    "large grid": (2,) * 24,
    "large grid without biases": (2,) * 36,
    "higher order -1/+1": (2,) * 4,
    "higher order 0/1 cliques": (2,) * 5,
    "higher order of three values": (3,) * 4,
    "potts": (2, 3, 4),
    "potts chain": (3,) * 4,
    "tables": (2, 3, 2, 2),
    "tables of a ring": (2, 2, 3, 2, 2),
    "ordinal": (3, 2, 4),
    "potentials of spins": (2,) * 6,
    "potentials of scores": (3, 2, 4),
    "potentials of categories": (2, 3, 2),
    "full span 0/1": (2,) * 5,
    "full span of categories": (2, 3, 4),
    "full span with a hidden variable": (2,) * 3,
    "restricted 0/1": (2,) * 5,
    "restricted -1/+1": (2,) * 5,
    "restricted 0/1 and -1/+1": (2,) * 4,
    "restricted of categories": (2, 3, 2),
    "restricted with normal hidden": (2,) * 4,
    "restricted with hidden categories": (2,) * 4,
    "deep 0/1": (2,) * 5,
    "deep -1/+1": (2,) * 4,
    "deep of categories": (2, 3),
    "belief network": (2,) * 4,
    "belief network -1/+1": (2,) * 4,
    "mixture of columns": (2, 3, 4),
}


def rows_of(name: str, n_rows: int, holes: float = 0.0) -> list[list[Any]]:
    """Return rows for a model."""
    seed = 1 + list(MODELS).index(name)
    if name in SIZES:
        return drawn_codes(n_rows, SIZES[name], seed, holes)
    n = {"interval": 3, "normal base": 2, "gaussian": 4, "restricted normal": 3, "deep normal": 2}.get(name, 3)
    rows = drawn_numbers(n_rows, n, seed, holes, 1.0)
    if name == "interval":
        return [[None if x is None else round(1 / (1 + math.exp(-x)), 4) for x in row] for row in rows]
    return rows


def ask(what: str, **how: Any) -> Question:
    return Question(what, how)


# -- who answers which questions --------------------------------------------------------------------------------------
WITH_HIDDEN = {name for name, model in MODELS.items() if model.options.get("n_hidden")}
LAYERED = {name for name, model in MODELS.items() if "layers" in model.options}
MIXTURES = {"gaussian mixture", "k-means", "directions", "mixture of columns"}
CONTINUOUS = {"interval", "normal base"}
NORMAL_LAYERS = {"restricted normal", "deep normal", "restricted with normal hidden"}
# missing cells of normal units and of directions are refused
WITHOUT_HOLES = {"restricted normal", "deep normal", "directions"}
LARGE = {"large grid", "large grid without biases"}
BELIEF = {"belief network", "belief network -1/+1"}
DISCRETE = [name for name in SIZES if name not in LARGE]
ON_GRAPHS = [name for name in DISCRETE if name not in {*LAYERED, *MIXTURES}]
COMPLETE_GRAPHS = [name for name in ON_GRAPHS if name not in WITH_HIDDEN]

ENGINES = {
    "pairwise 0/1": ("enumeration", "elimination", "factor-enumeration", "factor-elimination"),
    "pairwise -1/+1 grid": ("enumeration", "elimination", "factor-elimination"),
    "pairwise without biases": ("enumeration", "elimination", "planar"),
    "large grid": ("elimination",),
    "large grid without biases": ("planar", "elimination"),
    "higher order -1/+1": ("walsh-tables", "factor-enumeration", "factor-elimination"),
    "potts": ("factor-enumeration", "factor-elimination"),
    "tables": ("factor-enumeration", "factor-elimination"),
    "ordinal": ("factor-enumeration", "factor-elimination"),
    "potentials of scores": ("factor-enumeration", "factor-elimination"),
    "interval": ("factor-elimination",),
    "full span 0/1": ("walsh-tables",),
    "restricted 0/1": ("layer-sums",),
    "restricted of categories": ("layer-sums",),
    "deep 0/1": ("layer-sums",),
}


def row_questions(name: str) -> tuple[Question, ...]:
    """Return what is asked about rows that lack cells."""
    found = [ask("score"), ask("log_prob")]
    if name not in CONTINUOUS:
        found.append(ask("cells"))
    if name in WITH_HIDDEN or (name in LAYERED and name not in BELIEF):
        found.append(ask("hidden"))
    if name in MIXTURES:
        found = [ask("log_prob"), ask("class_probabilities"), ask("classes")]
        found += [ask("cells")] if name == "mixture of columns" else []
    if name in BELIEF:
        found = [ask("log_prob")]
    return tuple(found)


def whole_questions(name: str) -> tuple[Question, ...]:
    """Return what is asked about the distribution, and about complete rows."""
    found = [ask("log_weights"), ask("log_partition")]
    if name not in {*BELIEF, *MIXTURES, "deep normal", "restricted normal", "restricted with normal hidden"}:
        found.append(ask("moments"))
    if name not in {*BELIEF, *MIXTURES, *LAYERED, *LARGE} or name.startswith("restricted 0"):
        found.append(ask("pseudolikelihood"))
    if name in COMPLETE_GRAPHS and not name.startswith("full span"):
        found.append(ask("gauge"))
    if name in ON_GRAPHS or name == "gaussian":
        found.append(ask("strengths"))
    found += [ask("engine", name=engine) for engine in ENGINES.get(name, ())]
    return tuple(found)


def query_questions(name: str) -> tuple[Question, ...]:
    n = len(SIZES[name])
    found = [
        ask("marginal", nodes=(0, 1)),
        ask("marginal", nodes=(1,), given={0: 1}),
        ask("entropy", nodes=tuple(range(n))),
        ask("entropy", nodes=(0,), given={1: 0}),
        ask("mutual_information", one=(0,), other=tuple(range(1, n))),
        ask("mode"),
        ask("mode", n=3),
    ]
    return tuple(found)


GIVEN: list[Given] = []
for _name, _model in MODELS.items():
    _complete = rows_of(_name, 12)
    GIVEN.append(Given(f"{_name}: distribution", _model, whole_questions(_name), _complete))
    if _name not in LARGE:
        holes = 0.0 if _name in WITHOUT_HOLES else 0.25
        GIVEN.append(Given(f"{_name}: rows", _model, row_questions(_name), rows_of(_name, 14, holes), weights(14)))
    if _name in DISCRETE and _name not in {*BELIEF, *NORMAL_LAYERS}:
        _few = [[None, *row[1:]] for row in rows_of(_name, 3, 0.5)]
        GIVEN.append(Given(f"{_name}: queries", _model, query_questions(_name), _few))

# -- what learners minimise -------------------------------------------------------------------------------------------
LOSSES = ("likelihood", "pseudolikelihood", "ratio-matching", "probability-flow")
for _name in COMPLETE_GRAPHS:
    GIVEN.append(
        Given(
            f"{_name}: losses",
            MODELS[_name],
            (
                *(ask("objective", name=loss) for loss in LOSSES),
                ask("objective", name="probability-flow", skip_data=True),
                ask("objective", name="conditional-pseudolikelihood", targets=(0, 1)),
                ask("objective", name="conditional-likelihood", targets=(0, 1)),
            ),
            rows_of(_name, 20),
            weights(20),
        )
    )
for _name in ("pairwise -1/+1 grid", "higher order 0/1 cliques", "potts", "tables", "ordinal", "full span 0/1"):
    questions = tuple(ask("curvature", name=loss) for loss in LOSSES[:3])
    GIVEN.append(Given(f"{_name}: curvatures", MODELS[_name], questions, rows_of(_name, 20), weights(20)))
for _name in ("pairwise 0/1", "higher order -1/+1", "potts", "tables", "ordinal", "full span of categories"):
    questions = (ask("objective", name="likelihood"), ask("clamped", name="exact"))
    GIVEN.append(Given(f"{_name}: missing cells", MODELS[_name], questions, rows_of(_name, 20, 0.3), weights(20)))
for _name in ("pairwise with hidden 0/1", "pairwise with hidden -1/+1", "restricted 0/1", "restricted -1/+1"):
    losses = ("likelihood",) if _name in LAYERED else ("likelihood", "pseudolikelihood")
    questions = tuple(ask("objective", name=loss) for loss in losses)
    GIVEN.append(Given(f"{_name}: losses", MODELS[_name], questions, rows_of(_name, 20), weights(20)))
for _name in ("pairwise with hidden 0/1", "pairwise with hidden -1/+1"):
    questions = (
        ask("objective", name="likelihood"),
        ask("clamped", name="exact"),
        ask("clamped", name="mean-field"),
        ask("evidence_bound"),
    )
    GIVEN.append(Given(f"{_name}: missing cells", MODELS[_name], questions, rows_of(_name, 20, 0.3), weights(20)))
GIVEN.append(
    Given("gaussian: losses", MODELS["gaussian"], (ask("objective", name="likelihood"),), rows_of("gaussian", 20))
)
for _name in CONTINUOUS:
    questions = tuple(ask("objective", name=loss) for loss in ("likelihood", "pseudolikelihood"))
    GIVEN.append(Given(f"{_name}: losses", MODELS[_name], questions, rows_of(_name, 20), weights(20)))

# -- expectations without chance --------------------------------------------------------------------------------------
for _name in ("pairwise 0/1", "pairwise -1/+1 grid", "pairwise chain 0/1"):
    questions = (ask("expect", name="exact"), ask("expect", name="mean-field"), ask("expect", name="bethe"))
    GIVEN.append(Given(f"{_name}: mean fields", MODELS[_name], questions))
REGIONS: dict[str, tuple[Any, ...]] = {
    "pairwise -1/+1 grid": (0, 1, 2, "s2", "forest", "planar", [1, "s2"]),
    "pairwise 0/1": (0, 1, "s2"),
    "higher order -1/+1": (1, "s2"),
    "potts": (0, 1, "s2"),
    "tables of a ring": (1, 2, "forest"),
    "ordinal": (1,),
    "potentials of spins": (1, 2),
    "interval": (1,),
}
for _name, _regions in REGIONS.items():
    questions = tuple(ask("spatial", region=region) for region in _regions)
    GIVEN.append(
        Given(
            f"{_name}: spatial integration",
            MODELS[_name],
            (*questions, *([] if _name in CONTINUOUS else [ask("expectation_of", nodes=(0, 1), region=1)])),
            rows_of(_name, 12),
            issue="design: SMCI over spins whatever the scores" if _name in ("pairwise 0/1", "ordinal") else "",
        )
    )

# -- the rest ---------------------------------------------------------------------------------------------------------
for _name in ("pairwise 0/1", "higher order of three values", "potts", "tables", "ordinal", "full span of categories"):
    questions = (ask("conditioned", given={1: 1}), ask("joint_cells", columns=(0, 1)))
    losses = [[0.0, 1.0], [3.0, 0.0]]
    if SIZES[_name][0] == 2:
        questions = (*questions, ask("decide", columns=(0,), losses=losses))
    GIVEN.append(Given(f"{_name}: given some columns", MODELS[_name], questions, rows_of(_name, 8, 0.2)))
for _name, _other in (("pairwise 0/1", "-1/+1"), ("pairwise -1/+1 grid", "0/1"), ("higher order 0/1 cliques", "-1/+1")):
    GIVEN.append(Given(f"{_name}: recoded", MODELS[_name], (ask("recoded", values=_other),)))
GIVEN.append(
    Given("potts: norms", MODELS["potts"], (ask("coupling_norms", apc=False), ask("coupling_norms", apc=True)))
)
for _name in ("pairwise 0/1", "restricted 0/1", "large grid"):
    if _name != "restricted 0/1":
        GIVEN.append(Given(f"{_name}: bound on modes", MODELS[_name], (ask("bound_on_modes"),)))
for _name, _codes in (("pairwise with hidden 0/1", [[0, 1], [1, 1]]), ("restricted 0/1", [[0, 1, 1, 0]])):
    GIVEN.append(Given(f"{_name}: dreaming", MODELS[_name], (ask("visible_given", codes=_codes),)))
_cold = MODELS["pairwise 0/1"]._replace(temperature=0.5)
_other_potts = MODELS["potts"]._replace(parts=wave(MODELS["potts"].parts, 0.4, 1.1))
for _name, _second in (("pairwise 0/1", _cold), ("potts", _other_potts)):
    GIVEN.append(Given(f"{_name}: divergence", MODELS[_name], (ask("divergence", other=_second.stated()),)))
_separable = [[0, 0, 1, 0, 1], [1, 1, 0, 1, 1], [0, 0, 0, 0, 0], [1, 1, 1, 0, 0]]
for _word, _rows in (("finite", rows_of("pairwise 0/1", 60)), ("infinite", _separable)):
    GIVEN.append(Given(f"pairwise 0/1: {_word} maximum", MODELS["pairwise 0/1"], (ask("exists"),), _rows))
GIVEN.append(
    Given(
        "pairwise with hidden 0/1: joint modes",
        MODELS["pairwise with hidden 0/1"],
        (ask("mode", joint=True),),
        rows_of("pairwise with hidden 0/1", 6, 0.4),
    )
)
