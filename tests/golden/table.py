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
    """Questions to a model of given parameters: exact, equal to 1e-9 relative or absolute.

    What iterates to a fixed point to a tolerance of its own (mean fields) is equal `within` ten times that.
    """

    name: str
    model: Model
    questions: tuple[Question, ...]
    rows: Any = None
    weights: Any = None
    issue: str = ""
    within: float = 1e-9


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
        machines = {f"machine{k}": wave(unit_names(widths[k : k + 2]), scale, 0.3 + k) for k in range(len(widths) - 1)}
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
        wave(
            ["phi(1,0,0,0,0)", "phi(0,1,0,0,1)", "phi(1,1,1,0,0)", "phi(0,0,1,1,1)", "phi(1,1,1,1,1)", "phi(0,0,0,1,0)"]
        ),
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
    "restricted 0/1": layers("stack", [("0/1", 5), ("0/1", 4)]),
    "restricted -1/+1": layers("stack", [("-1/+1", 5), ("-1/+1", 3)], 1.7),
    "restricted 0/1 and -1/+1": layers("stack", [("0/1", 4), ("-1/+1", 3)]),
    "restricted normal": layers("stack", [(("normal", (0.6, 0.8, 1.0)), 3), ("0/1", 4)]),
    "restricted of categories": layers("stack", [((2, 3, 2), 3), ("-1/+1", 3)], 1.2),
    "restricted with normal hidden": layers("stack", [("0/1", 4), (("normal", (0.6, 0.8)), 2)]),
    "restricted with hidden categories": layers("stack", [("0/1", 4), ((3, 2), 2)]),
    "deep 0/1": layers("stack", [("0/1", 5), ("0/1", 4), ("0/1", 3)]),
    "deep -1/+1": layers("stack", [("-1/+1", 4), ("-1/+1", 3), ("-1/+1", 2), ("-1/+1", 2)], 1.3),
    "deep of categories": layers("stack", [((2, 3), 2), ("0/1", 3), ("0/1", 2)]),
    "deep normal": layers("stack", [(("normal", (0.7, 0.9)), 2), ("0/1", 3), ("0/1", 2)]),
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
    "pairwise 0/1": ("enumeration", "elimination", "table-enumeration", "factor-elimination"),
    "pairwise -1/+1 grid": ("enumeration", "elimination", "factor-elimination"),
    "pairwise without biases": ("enumeration", "elimination", "planar"),
    "large grid": ("elimination",),
    "large grid without biases": ("planar", "elimination"),
    "higher order -1/+1": ("table-enumeration", "factor-elimination"),
    "potts": ("table-enumeration", "factor-elimination"),
    "tables": ("table-enumeration", "factor-elimination"),
    "ordinal": ("table-enumeration", "factor-elimination"),
    "potentials of scores": ("table-enumeration", "factor-elimination"),
    "interval": ("factor-elimination",),
    "full span 0/1": ("table-enumeration",),
    "restricted 0/1": ("layer-sums",),
    "restricted of categories": ("layer-sums",),
    "deep 0/1": ("layer-sums",),
}


def row_questions(name: str) -> tuple[Question, ...]:
    """Return what is asked about rows that lack cells."""
    found = [ask("score"), ask("log_prob")]
    if name not in CONTINUOUS:
        found.append(ask("cells"))
    if name in WITH_HIDDEN or name.startswith("restricted"):
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
    )
    _holed = rows_of(_name, 20, 0.3)
    GIVEN.append(Given(f"{_name}: missing cells", MODELS[_name], questions, _holed, weights(20)))
    questions = (ask("clamped", name="mean-field"), ask("evidence_bound"))
    GIVEN.append(Given(f"{_name}: clamped mean field", MODELS[_name], questions, _holed, weights(20), "", 1e-7))
GIVEN.append(
    Given("gaussian: losses", MODELS["gaussian"], (ask("objective", name="likelihood"),), rows_of("gaussian", 20))
)
for _name in sorted(CONTINUOUS):
    questions = tuple(ask("objective", name=loss) for loss in ("likelihood", "pseudolikelihood"))
    GIVEN.append(Given(f"{_name}: losses", MODELS[_name], questions, rows_of(_name, 20), weights(20)))

# -- expectations without chance --------------------------------------------------------------------------------------
for _name in ("pairwise 0/1", "pairwise -1/+1 grid", "pairwise chain 0/1"):
    questions = (ask("expect", name="exact"), ask("expect", name="mean-field"), ask("expect", name="bethe"))
    GIVEN.append(Given(f"{_name}: mean fields", MODELS[_name], questions, within=1e-8))
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
            issue="learning: SMCI over spins whatever the scores" if _name == "pairwise 0/1" else "",
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
for _name in ("deep 0/1", "deep of categories", "deep -1/+1", "deep normal"):
    _rows = rows_of(_name, 8)
    GIVEN.append(Given(f"{_name}: posterior by mean field", MODELS[_name], (ask("hidden"),), _rows, within=1e-7))
for _name in ("pairwise 0/1", "large grid"):
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


# == fits that end at one point =======================================================================================
class Fit(NamedTuple):
    """A fit without chance, taken to ``tol=1e-10``.

    Its objective holds to 1e-9, its parameters to `CLOSE` times the root of their number times tol over the smallest
    curvature of `loss` at the solution, which the file keeps; or to `within` where the learner solves no such thing.
    What is asked of it holds to the sum of these errors over the parameters: statistics are at most 1 in size.
    """

    name: str
    estimator: str
    settings: dict[str, Any]
    rows: Any
    weights: Any = None
    loss: str = ""
    within: float = 0.0
    questions: tuple[Question, ...] = ()
    issue: str = ""


TOL = 1e-10
TIGHT = {"tol": TOL, "max_iter": 100_000}
CLOSED = 1e-9  # of formulas without iteration


def zero_one(n_rows: int = 120, n: int = 5, seed: int = 1, holes: float = 0.0) -> list[list[Any]]:
    return drawn_codes(n_rows, (2,) * n, 100 + seed, holes)


def spins(n_rows: int = 120, n: int = 5, seed: int = 2, holes: float = 0.0) -> list[list[Any]]:
    return labelled(drawn_codes(n_rows, (2,) * n, 100 + seed, holes), (-1, 1))


def letters(n_rows: int = 150, sizes: Sequence[int] = (2, 3, 4), seed: int = 3, holes: float = 0.0) -> list[list[Any]]:
    return labelled(drawn_codes(n_rows, sizes, 100 + seed, holes), "abcdefgh")


def words(n_rows: int = 150, n: int = 5, seed: int = 4, holes: float = 0.0) -> list[list[Any]]:
    return labelled(drawn_codes(n_rows, (2,) * n, 100 + seed, holes), ("no", "yes"))


SPARSE = [[abs(x) if abs(x) > 1 else 0.0 for x in row] for row in drawn_numbers(120, 3, 160)]
HOLES = [[None, 1, 0, 1, 1], [0, None, None, 1, 0], [1, 1, 0, 0, None]]
SPIN_HOLES = labelled(HOLES, (-1, 1))
LETTER_HOLES = [[None, "b", "d"], ["a", None, None], ["b", "c", None]]
ABOUT_ROWS = (ask("score_samples"), ask("pseudo_score"), ask("log partition"))


def about_holes(holes: Any) -> tuple[Question, ...]:
    return (
        *ABOUT_ROWS,
        ask("score_samples", rows=holes),
        ask("predict_proba", rows=holes),
        ask("impute", rows=holes),
        ask("saved and loaded"),
    )


FITS: list[Fit] = [
    # -- pairwise machines
    Fit(
        "mle of spins",
        "pairwise",
        {"learner": "mle", **TIGHT},
        spins(),
        None,
        "likelihood",
        0.0,
        about_holes(SPIN_HOLES),
    ),
    Fit(
        "mle of 0/1 with weights and l2",
        "pairwise",
        {"learner": "mle", "l2": 0.02, **TIGHT},
        zero_one(),
        weights(120),
        "likelihood",
        0.0,
        about_holes(HOLES),
    ),
    Fit(
        "mle with l1",
        "pairwise",
        {"learner": "mle", "l1": 0.05, **TIGHT},
        spins(n=6),
        None,
        "likelihood",
        0.0,
        ABOUT_ROWS,
    ),
    Fit(
        "mle with missing cells",
        "pairwise",
        {"learner": "mle", **TIGHT},
        spins(holes=0.1),
        None,
        "likelihood",
        0.0,
        (ask("score_samples"), ask("impute")),
    ),
    Fit(
        "mle at a temperature, without biases",
        "pairwise",
        {"learner": "mle", "graph": "grid:2x3", "temperature": 2.5, "bias": False, **TIGHT},
        spins(n=6),
        None,
        "likelihood",
        0.0,
        (ask("score_samples"), ask("query", text="P(x0=1, x1 | x5=-1)")),
    ),
    Fit(
        "mle of a large grid",
        "pairwise",
        {"learner": "mle", "graph": "grid:3x6", "l2": 0.01, **TIGHT},
        spins(200, 18),
        None,
        "likelihood",
        0.0,
        (ask("score_samples"), ask("log partition")),
    ),
    Fit(
        "mle from a mean-field start",
        "pairwise",
        {"learner": "mle", "start": "sessak-monasson", **TIGHT},
        spins(200),
        None,
        "likelihood",
        0.0,
        (ask("score_samples"),),
    ),
    Fit(
        "mle with a prior",
        "pairwise",
        {"learner": "mle", "log_prior": "interactions=student-t:3:0.5, biases=normal:2", **TIGHT},
        spins(),
        None,
        "",
        1e-7,
        (ask("score_samples"),),
    ),
    Fit(
        "mle of yes and no",
        "pairwise",
        {"learner": "mle", "l2": 0.01, **TIGHT},
        words(),
        None,
        "likelihood",
        0.0,
        (
            ask("query", text="P(x0=yes, x1 | x2=no)"),
            ask("query", text="H(x0, x1 | x2)"),
            ask("query", text="I(x0; x1, x2)"),
            ask("impute", rows=[["yes", None, "no", "no", None]]),
            ask("modes"),
            ask("unusual"),
            ask("divergence", other=("pairwise", {"learner": "mple", "l2": 0.1, **TIGHT})),
        ),
    ),
    Fit("mple of spins", "pairwise", {"learner": "mple", **TIGHT}, spins(), None, "pseudolikelihood", 0.0, ABOUT_ROWS),
    Fit(
        "mple with weights, l1 and a temperature",
        "pairwise",
        {"learner": "mple", "l1": 0.02, "temperature": 0.5, **TIGHT},
        zero_one(n=6),
        weights(120),
        "pseudolikelihood",
        0.0,
        ABOUT_ROWS,
    ),
    Fit(
        "mple with l2 at a temperature",
        "pairwise",
        {"learner": "mple", "l2": 0.02, "temperature": 2.0, **TIGHT},
        zero_one(),
        None,
        "pseudolikelihood",
        0.0,
        (ask("score_samples"),),
    ),
    Fit(
        "mple of a chain",
        "pairwise",
        {"learner": "mple", "graph": "chain", **TIGHT},
        zero_one(300, 12),
        None,
        "pseudolikelihood",
        0.0,
        ABOUT_ROWS,
    ),
    Fit(
        "mple beyond exact sums",
        "pairwise",
        {"learner": "mple", "l2": 0.1, **TIGHT},
        spins(200, 36),
        None,
        "pseudolikelihood",
        0.0,
        (ask("pseudo_score"), ask("predict_proba", rows=[[None, *row[1:]] for row in spins(4, 36)])),
    ),
    Fit(
        "mple with missing cells",
        "pairwise",
        {"learner": "mple", **TIGHT, "tol": 1e-8},
        zero_one(holes=0.08),
        None,
        "",
        1e-5,
        (),
        "learning: equations of completed rows are solved in another way",
    ),
    Fit(
        "mple of rows on disk",
        "pairwise",
        {"learner": ("mple", {}), "l2": 0.01, "on_disk": True, **TIGHT},
        zero_one(300),
        None,
        "",
        1e-7,
        (ask("score_samples"),),
    ),
    Fit("ratio matching", "pairwise", {"learner": "rm", **TIGHT}, spins(), None, "ratio-matching", 0.0, ABOUT_ROWS),
    Fit(
        "probability flow",
        "pairwise",
        {"learner": "mpf", "l2": 0.01, **TIGHT},
        zero_one(),
        None,
        "probability-flow",
        0.0,
        ABOUT_ROWS,
    ),
    Fit(
        "probability flow that skips the data",
        "pairwise",
        {"learner": ("mpf", {"skip_data": True}), "l2": 0.01, **TIGHT},
        zero_one(),
        None,
        "",
        1e-7,
    ),
    Fit(
        "em with missing cells",
        "pairwise",
        {"learner": "em", "l2": 0.01, **TIGHT},
        zero_one(holes=0.1),
        None,
        "likelihood",
        0.0,
        (ask("score_samples"),),
    ),
    Fit(
        "smci of forests",
        "pairwise",
        {"learner": ("smci", {"region": "forest"}), "graph": "grid:2x3", "l2": 0.01, **TIGHT},
        spins(n=6),
        None,
        "",
        1e-7,
    ),
    Fit("first-order smci", "pairwise", {"learner": "1-smci", "graph": "chain", **TIGHT}, spins(300), None, "", 1e-7),
    Fit(
        "semi-second-order smci",
        "pairwise",
        {"learner": "s2-smci", "graph": "grid:2x3", "l2": 0.01, **TIGHT},
        spins(300, 6),
        None,
        "",
        1e-7,
    ),
    Fit(
        "first-order smci of 0/1",
        "pairwise",
        {"learner": "1-smci", "graph": "chain", **TIGHT},
        zero_one(300),
        None,
        "",
        1e-7,
    ),
    *(
        Fit(
            f"{name} {word}",
            "pairwise",
            {"learner": name, "l2": 0.01, **TIGHT},
            rows,
            None,
            "",
            1e-6,
            (ask("score_samples"),),
        )
        for name in ("rise", "logrise", "rple")
        for word, rows in (("of spins", spins(300)), ("of 0/1", zero_one(300)))
    ),
    Fit(
        "logrise with the theoretical penalty",
        "pairwise",
        {"learner": ("logrise", {}), "l1": "theory", **TIGHT},
        spins(300),
        None,
        "",
        1e-6,
    ),
    *(
        Fit(f"{name} {word}", "pairwise", {"learner": name}, rows, None, "", CLOSED, (ask("score_samples"),))
        for name in ("mean-field", "tap", "bethe", "independent-pair", "sessak-monasson")
        for word, rows in (("of spins", spins(300)), ("of 0/1", zero_one(300)))
    ),
    # -- of higher order
    Fit(
        "mle of order 3",
        "higher-order",
        {"learner": "mle", "order": 3, "l2": 0.01, **TIGHT},
        spins(n=4),
        None,
        "likelihood",
        0.0,
        ABOUT_ROWS,
    ),
    Fit(
        "mple of order 3 with weights, l1 and l2",
        "higher-order",
        {"learner": "mple", "order": 3, "l1": 0.02, "l2": 0.01, **TIGHT},
        zero_one(n=4),
        weights(120),
        "pseudolikelihood",
        0.0,
        ABOUT_ROWS,
    ),
    Fit(
        "rm of cliques",
        "higher-order",
        {"learner": "rm", "cliques": [(0, 1, 4), (2, 3), (1, 2)], "l2": 0.05, **TIGHT},
        spins(),
        None,
        "ratio-matching",
        0.0,
        ABOUT_ROWS,
    ),
    Fit(
        "mle of order 3 with missing cells",
        "higher-order",
        {"learner": "mle", "order": 3, "l2": 0.02, **TIGHT},
        spins(n=4, holes=0.1),
        None,
        "likelihood",
        0.0,
        (ask("score_samples"),),
    ),
    Fit(
        "smci of order 3",
        "higher-order",
        {"learner": "smci", "order": 3, "l2": 0.05, **TIGHT},
        spins(n=4),
        None,
        "",
        1e-7,
    ),
    # -- of many values
    Fit(
        "potts mple",
        "potts",
        {"learner": "mple", "l2": 0.01, **TIGHT},
        letters(),
        None,
        "pseudolikelihood",
        0.0,
        (*about_holes(LETTER_HOLES), ask("coupling norms")),
    ),
    Fit(
        "potts mle with missing cells, weights and a temperature",
        "potts",
        {"learner": "mle", "l2": 0.02, "temperature": 1.4, **TIGHT},
        letters(holes=0.1),
        weights(150),
        "likelihood",
        0.0,
        (ask("score_samples"), ask("query", text="P(x1 | x0=a)")),
    ),
    *(
        Fit(
            f"potts {name}",
            "potts",
            {"learner": name, "graph": "chain", "l2": 0.05, **TIGHT},
            letters(200, (3, 3, 3)),
            None,
            loss,
            within,
            (ask("score_samples"),),
        )
        for name, loss, within in (
            ("rm", "ratio-matching", 0.0),
            ("mpf", "probability-flow", 0.0),
            ("1-smci", "", 1e-7),
        )
    ),
    Fit(
        "potts mean field",
        "potts",
        {"learner": "mean-field", "graph": "chain"},
        letters(200, (3, 3, 3)),
        None,
        "",
        CLOSED,
        (ask("score_samples"),),
    ),
    Fit(
        "tables mle",
        "mrf",
        {"learner": "mle", "cliques": [(0, 1, 2), (2, 3), (0,)], "l2": 0.01, **TIGHT},
        letters(sizes=(2, 3, 2, 2)),
        None,
        "likelihood",
        0.0,
        ABOUT_ROWS,
    ),
    Fit(
        "tables mple with weights",
        "mrf",
        {"learner": "mple", "cliques": [(0, 1, 2), (2, 3)], "l2": 0.01, **TIGHT},
        letters(sizes=(2, 3, 2, 2)),
        weights(150),
        "pseudolikelihood",
        0.0,
        ABOUT_ROWS,
    ),
    Fit(
        "tied potentials mle",
        "mrf",
        {
            "learner": "mle",
            "potentials": [("bias", None, False), "product"],
            "graph": "grid:2x3",
            "tied": True,
            "coding": "spin",
            "l2": 0.001,
            **TIGHT,
        },
        spins(n=6),
        None,
        "likelihood",
        0.0,
        ABOUT_ROWS,
    ),
    *(
        Fit(
            f"ordinal {name}",
            "ordinal",
            {"learner": name, "l2": 0.01, **TIGHT},
            labelled(drawn_codes(150, (3, 4, 3), 140, holes), (1, 2, 3, 4)),
            None,
            loss,
            0.0,
            (ask("score_samples"), ask("query", text="P(x0, x1 | x2=2)")),
        )
        for name, loss, holes in (("mle", "likelihood", 0.1), ("mple", "pseudolikelihood", 0.0))
    ),
    *(
        Fit(
            f"densities on an interval {name}",
            "mrf",
            {
                "learner": name,
                "potentials": ["bias", "product"],
                "graph": "chain",
                "tied": False,
                "coding": "real",
                "support": (0.0, 1.0),
                "l2": 0.01,
                **TIGHT,
            },
            [[round(1 / (1 + math.exp(-x)), 4) for x in row] for row in drawn_numbers(80, 3, 141, 0.0, 1.0)],
            None,
            loss,
            0.0,
            (ask("score_samples"),),
        )
        for name, loss in (("mle", "likelihood"), ("mple", "pseudolikelihood"))
    ),
    # -- of numbers
    Fit(
        "gaussian mle",
        "gaussian",
        {"learner": "mle", **TIGHT},
        drawn_numbers(80, 4, 150),
        weights(80),
        "",
        1e-7,
        (ask("score_samples"), ask("impute", rows=[[None, 0.5, -1.0, None]])),
    ),
    Fit(
        "gaussian mle on a chain with l2",
        "gaussian",
        {"learner": "mle", "graph": "chain", "l2": 0.02, **TIGHT},
        drawn_numbers(80, 4, 150),
        None,
        "",
        1e-7,
        (ask("score_samples"),),
    ),
    Fit(
        "gaussian mle with missing cells",
        "gaussian",
        {"learner": "mle", **TIGHT, "tol": 1e-9},
        drawn_numbers(80, 4, 151, 0.1),
        None,
        "",
        1e-6,
        (ask("score_samples"),),
    ),
    Fit(
        "graphical lasso",
        "gaussian",
        {"learner": "graphical-lasso", "l1": 0.1, **TIGHT},
        drawn_numbers(80, 4, 150),
        None,
        "",
        1e-7,
        (ask("score_samples"),),
    ),
    # -- with hidden units, from a given model
    *(
        Fit(
            f"hidden units {name} {word}",
            "hidden",
            {
                "learner": learner,
                "graph": "semi-restricted",
                "n_components": 2,
                "l2": 0.02,
                "start": pairwise(6, [e for e in pairs(6) if e != (4, 5)], values, n_hidden=2).stated(),
                **TIGHT,
            },
            rows,
            None,
            "likelihood",
            0.0,
            (ask("score_samples"), ask("transform")),
        )
        for name, learner in (("mle", "mle"), ("em", "em"))
        for word, values, rows in (("of 0/1", "0/1", zero_one(n=4)), ("of spins", "-1/+1", spins(n=4, holes=0.1)))
    ),
    Fit(
        "hidden units, em with a mean field",
        "hidden",
        {
            "learner": ("em", {"clamped": "mean-field"}),
            "graph": "semi-restricted",
            "n_components": 2,
            "l2": 0.05,
            "start": pairwise(6, [e for e in pairs(6) if e != (4, 5)], "-1/+1", n_hidden=2).stated(),
            **TIGHT,
        },
        spins(n=4),
        None,
        "",
        1e-5,
    ),
    Fit(
        "hidden units by pseudolikelihood",
        "hidden",
        {
            "learner": "mple",
            "graph": "restricted",
            "n_components": 2,
            "l2": 0.02,
            "start": pairwise(6, [(i, j) for i in range(4) for j in (4, 5)], "0/1", n_hidden=2).stated(),
            **TIGHT,
        },
        zero_one(n=4),
        None,
        "pseudolikelihood",
        0.0,
        (ask("score_samples"),),
    ),
    Fit(
        "restricted mle",
        "rbm",
        {
            "learner": "mle",
            "n_components": 3,
            "l2": 0.02,
            "start": layers("stack", [("0/1", 4), ("0/1", 3)]).stated(),
            **TIGHT,
        },
        zero_one(n=4),
        None,
        "likelihood",
        0.0,
        (ask("score_samples"), ask("transform")),
    ),
    Fit(
        "deep em",
        "dbm",
        {
            "learner": "em",
            "n_components": (3, 2),
            "l2": 0.05,
            "start": layers("stack", [("0/1", 4), ("0/1", 3), ("0/1", 2)]).stated(),
            **TIGHT,
        },
        zero_one(n=4),
        None,
        "likelihood",
        0.0,
        (ask("score_samples"),),
    ),
    # -- full span
    *(
        Fit(
            f"full span {name} {word}",
            "full-span",
            {"learner": name, **settings},
            rows,
            None,
            "",
            1e-6,
            (ask("score_samples"), ask("functions")),
        )
        for name, settings in (
            ("span-greedy", {"tol": 1e-4}),
            ("span-newton", {"tol": 1e-5}),
            ("span-dense", {"tol": 1e-9, "l2": 0.01, "l2_growth": 2.0}),
            ("span-l1", {"tol": 1e-6, "l1": 0.02}),
        )
        for word, rows in (("of 0/1", zero_one(400, 6)), ("of categories", letters(400)))
    ),
    Fit(
        "full span with missing cells and weights",
        "full-span",
        {"learner": "span-greedy", "mdl_scale": 0.1},
        letters(200, holes=0.1),
        weights(200),
        "",
        1e-6,
        (ask("score_samples"), ask("cost"), ask("impute", rows=LETTER_HOLES)),
    ),
    Fit(
        "full span with penalties",
        "full-span",
        {"learner": "span-greedy", "l1": 0.002, "l2": 0.001, "l2_growth": 2.0, "mdl_scale": 0.5},
        spins(400, 6),
        None,
        "",
        1e-6,
        (ask("score_samples"), ask("functions")),
    ),
    # -- mixtures, from given means
    Fit(
        "k-means",
        "k-means",
        {"n_components": 3, "start": [[0, 3, 1], [2.5, -1, -3], [-2.6, -2, 2]]},
        drawn_numbers(120, 3, 160),
        weights(120),
        "",
        CLOSED,
        (ask("labels"), ask("energy")),
    ),
    Fit(
        "k-means with missing cells",
        "k-means",
        {"n_components": 3, "start": [[0, 3, 1], [2.5, -1, -3], [-2.6, -2, 2]]},
        drawn_numbers(120, 3, 160, 0.1),
        None,
        "",
        CLOSED,
        (ask("labels"), ask("energy")),
    ),
    *(
        Fit(
            f"mixture {word}",
            name,
            {
                "n_components": 3,
                "n_init": 1,
                "start": [[0, 3, 1], [2.5, -1, -3], [-2.6, -2, 2]],
                "tol": 1e-14,
                "max_iter": 100_000,
                **settings,
            },
            rows,
            w,
            "",
            1e-7,
            (ask("score_samples"), ask("predict_proba"), ask("bic", rows=drawn_numbers(120, 3, 160))),
        )
        for word, name, settings, rows, w in (
            ("soft k-means", "soft-k-means", {"variance": 1.5}, drawn_numbers(120, 3, 160), None),
            ("of gaussians", "gaussian-mixture", {}, drawn_numbers(120, 3, 160), weights(120)),
            (
                "of gaussians of one variance",
                "gaussian-mixture",
                {"variance": "tied"},
                drawn_numbers(120, 3, 160),
                None,
            ),
            ("of gaussians with missing cells", "gaussian-mixture", {}, drawn_numbers(120, 3, 160, 0.1), None),
            ("of directions", "vmf-mixture", {}, drawn_numbers(120, 3, 160), None),
            (
                "of directions, equal concentrations given",
                "vmf-mixture",
                {"kappa": 5.0, "class_weights": "equal"},
                drawn_numbers(120, 3, 160),
                None,
            ),
            ("of directions of sparse rows", "vmf-mixture", {"sparse": True}, SPARSE, None),
            (
                "of directions, hard and tied",
                "vmf-mixture",
                {"kappa": "tied", "assignment": "hard"},
                drawn_numbers(120, 3, 160),
                None,
            ),
        )
    ),
    # -- classifiers
    *(
        Fit(
            f"classifier {word}",
            "classifier",
            {"labels": [row[-1] for row in letters(100, (2, 3, 3), 170)], **settings},
            rows,
            w,
            "",
            1e-7,
            (ask("label probabilities"),),
            issue,
        )
        for word, settings, rows, w, issue in (
            ("of numbers", {"machine": None, "l2": 0.05, "tol": TOL}, drawn_numbers(100, 2, 171), weights(100), ""),
            (
                "conditional",
                {"machine": ("potts", {"l2": 0.05, "tol": TOL}), "learning": "conditional"},
                [row[:-1] for row in letters(100, (2, 3, 3), 170)],
                None,
                "",
            ),
            (
                "conditional with weights",
                {"machine": ("potts", {"l2": 0.05, "tol": TOL}), "learning": "conditional"},
                [row[:-1] for row in letters(100, (2, 3, 3), 170)],
                weights(100),
                "31.18",
            ),
            (
                "pseudo",
                {"machine": ("potts", {"l2": 0.05, "tol": TOL}), "learning": "pseudo"},
                [row[:-1] for row in letters(100, (2, 3, 3), 170)],
                None,
                "",
            ),
            (
                "joint",
                {"machine": ("potts", {"l2": 0.05, "tol": TOL, "learner": "mle"}), "learning": "joint"},
                [row[:-1] for row in letters(100, (2, 3, 3), 170)],
                None,
                "",
            ),
        )
    ),
    # -- standard errors
    *(
        Fit(
            f"errors {kind} of {learner}{word}",
            "pairwise",
            {"learner": learner, "l2": l2, **TIGHT},
            spins(150, 4),
            weights(150),
            "",
            1e-6,
            (ask("standard errors", kind=kind),),
        )
        for learner, kind in (("mle", "fisher"), ("mle", "sandwich"), ("mple", "sandwich"), ("rise", "sandwich"))
        for word, l2 in (("", 0.0), (" with l2", 0.01))
    ),
]


class Structure(NamedTuple):
    """The edges that a method finds in rows: equal."""

    name: str
    method: str
    rows: Any
    issue: str = ""


STRUCTURES = [
    Structure(f"structure by {method}", method, labelled(drawn_codes(300, (2,) * 6, 180), (-1, 1)))
    for method in ("l1-ebic", "rise", "logrise", "rple", "decimation")
]


# == what is drawn ====================================================================================================
class Drawn(NamedTuple):
    """Numbers with chance in them: the file keeps mean and standard deviation over `SEEDS` seeds, the test draws anew.

    The law must stay; the stream of random numbers may change.
    """

    name: str
    what: str
    how: dict[str, Any]
    model: Model | None = None
    rows: Any = None
    weights: Any = None
    issue: str = ""


SEEDS = 40


def sampled(name: str, method: str, **how: Any) -> Drawn:
    return Drawn(f"{name}: sampled by {method}", "sample", {"method": method, "n": 2000, **how}, MODELS[name])


def expected(name: str, method: str, **how: Any) -> Drawn:
    return Drawn(f"{name}: expected by {method}", "expect", {"name": method, **how}, MODELS[name])


CHAINS = {"n_chains": 50, "n_steps": 30, "burn_in": 30, "warn": False}
PCD = {"n_chains": 100, "min_iter": 10**6, "optimizer": ("adam", {"learning_rate": 0.05})}
CD = {**PCD, "n_chains": None}
EPOCHS = {"max_iter": 8, "n_chains": 50, "learning_rate": 0.1}


def learned(name: str, estimator: str, settings: dict[str, Any], rows: Any, w: Any = None, issue: str = "") -> Drawn:
    return Drawn(name, "fit", {"estimator": estimator, "settings": settings}, None, rows, w, issue)


DRAWN: list[Drawn] = [
    *(sampled("pairwise 0/1", method) for method in ("exact", "gibbs", "random-scan")),
    *(sampled("pairwise -1/+1 grid", method) for method in ("exact", "gibbs", "chromatic")),
    *(sampled("higher order of three values", method) for method in ("exact", "gibbs")),
    *(sampled("potts", method) for method in ("exact", "gibbs", "random-scan")),
    *(sampled("tables", method) for method in ("exact", "gibbs")),
    *(sampled("ordinal", method) for method in ("exact", "gibbs")),
    *(sampled("potentials of spins", method) for method in ("exact", "gibbs")),
    *(sampled("full span of categories", method) for method in ("exact",)),
    *(sampled("restricted 0/1", method) for method in ("exact", "gibbs")),
    *(sampled(name, "gibbs", n_steps=30) for name in ("restricted normal", "restricted of categories")),
    *(sampled("deep -1/+1", method) for method in ("exact", "gibbs")),
    *(
        sampled(name, "auto")
        for name in (
            "belief network -1/+1",
            "gaussian",
            "interval",
            "normal base",
            "gaussian mixture",
            "directions",
            "mixture of columns",
        )
    ),
    sampled("large grid without biases", "exact"),
    *(expected("pairwise 0/1", name, **CHAINS) for name in ("monte-carlo", "1-smci", "s2-smci")),
    *(expected("pairwise -1/+1 grid", name, **CHAINS) for name in ("2-smci", "forest-smci", "planar-smci")),
    expected("pairwise -1/+1 grid", "monte-carlo", **{**CHAINS, "sampler": "chromatic"}),
    expected("pairwise 0/1", "tempering", n_chains=16, n_steps=60, warn=False),
    expected("pairwise 0/1", "ais", n_walkers=100, betas=40, warn=False),
    expected("potts", "monte-carlo", **CHAINS),
    expected("potts", "ais", n_walkers=100, betas=40, warn=False),
    *(
        Drawn(
            f"{name}: log Z by {method}",
            "log Z",
            {"method": method, "n_samples": 50, "betas": 40},
            MODELS[name],
            issue="31.21",
        )
        for name, method in (
            ("pairwise 0/1", "ais"),
            ("pairwise 0/1", "auto"),
            ("potts", "auto"),
            ("restricted 0/1", "ais"),
            ("restricted -1/+1", "auto"),
            ("deep 0/1", "ais"),
        )
    ),
    *(
        Drawn(
            f"pairwise with hidden 0/1: clamped by {name}",
            "clamped",
            {"name": name, "copies": 4, "burn_in": 20},
            MODELS["pairwise with hidden 0/1"],
            rows_of("pairwise with hidden 0/1", 20, 0.3),
        )
        for name in ("chains", "spatial")
    ),
    *(
        Drawn(
            f"restricted 0/1: layers by {name}",
            "layer sampler",
            {"name": name, "n_chains": 200, "n_steps": 30},
            MODELS["restricted 0/1"],
        )
        for name in ("block-gibbs", "tempering")
    ),
    Drawn("pairwise 0/1: queries by samples", "query", {"n_samples": 400}, MODELS["pairwise 0/1"]),
    # -- fits with chains
    learned("cd", "pairwise", {"learner": ("cd", {"n_steps": 2, **CD}), "max_iter": 60}, spins()),
    learned(
        "cd with ascent",
        "pairwise",
        {"learner": ("cd", {"optimizer": ("ascent", {}), "min_iter": 10**6, "sampler": "random-scan"}), "max_iter": 60},
        zero_one(),
    ),
    learned("pcd", "pairwise", {"learner": ("pcd", PCD), "l2": 0.01, "max_iter": 80}, spins()),
    learned(
        "pcd with missing cells",
        "pairwise",
        {"learner": ("pcd", {**PCD, "clamped": "chains", "sampler": "chromatic"}), "graph": "chain", "max_iter": 60},
        zero_one(holes=0.1),
    ),
    learned(
        "pcd, not centred, not averaged",
        "pairwise",
        {"learner": ("pcd", {**PCD, "average": False, "centred": False}), "max_iter": 60},
        zero_one(),
    ),
    learned(
        "smci and pcd",
        "pairwise",
        {"learner": ("smci-pcd", {"copies": 1, "region": 2, "min_iter": 10**6}), "graph": "chain", "max_iter": 40},
        zero_one(),
    ),
    learned(
        "s2-smci and pcd",
        "pairwise",
        {"learner": ("s2-smci-pcd", {"copies": 1, "min_iter": 10**6}), "l1": 0.01, "graph": "grid:2x3", "max_iter": 40},
        spins(n=6),
    ),
    learned("monte carlo likelihood", "pairwise", {"learner": ("mcmle", {"n_chains": 100}), "max_iter": 20}, spins()),
    learned("online", "pairwise", {"learner": ("online", {"batch_size": 50}), "max_iter": 4}, zero_one(400)),
    learned("online by chunks", "pairwise", {"l2": 0.01, "chunks": 3, "learner": "mple"}, spins(300)),
    learned(
        "higher-order pcd",
        "higher-order",
        {"learner": ("pcd", PCD), "cliques": [(0, 1, 4), (2, 3), (1, 2)], "l2": 0.01, "max_iter": 60},
        zero_one(),
    ),
    learned("potts pcd", "potts", {"learner": ("pcd", PCD), "l2": 0.02, "max_iter": 40}, letters()),
    learned(
        "potts cd",
        "potts",
        {"learner": ("cd", CD), "l2": 0.05, "graph": "chain", "max_iter": 40},
        letters(150, (3, 3, 3)),
    ),
    learned(
        "tables pcd",
        "mrf",
        {"learner": ("pcd", PCD), "l2": 0.02, "cliques": [(0, 1, 2), (2, 3)], "max_iter": 40},
        letters(sizes=(2, 3, 2, 2)),
    ),
    learned(
        "ordinal pcd",
        "ordinal",
        {"learner": ("pcd", PCD), "l2": 0.02, "max_iter": 40},
        labelled(drawn_codes(150, (3, 4, 3), 140), (1, 2, 3, 4)),
    ),
    *(
        learned(
            f"hidden units by {word}",
            "hidden",
            {
                "learner": (name, inner),
                "graph": "semi-restricted",
                "n_components": 2,
                "l2": 0.02,
                "max_iter": 40,
                "start": pairwise(6, [e for e in pairs(6) if e != (4, 5)], "0/1", n_hidden=2).stated(),
            },
            zero_one(n=4, holes=0.1),
        )
        for word, name, inner in (
            ("pcd", "pcd", {**PCD, "clamped": "chains"}),
            ("smci and pcd", "smci-pcd", {"clamped": "spatial", "min_iter": 10**6}),
            ("cd", "cd", {**CD, "clamped": "chains"}),
        )
    ),
    learned(
        "hidden units by em from anywhere",
        "hidden",
        {"learner": "em", "n_components": 1, "graph": "restricted", "l2": 0.05, "n_init": 2},
        zero_one(n=4),
    ),
    *(
        learned(
            f"restricted {word}",
            "rbm",
            {"n_components": 3, "learner": ("minibatch", {**EPOCHS, **inner}), **outer},
            rows,
            w,
        )
        for word, inner, outer, rows, w in (
            ("pcd", {}, {}, zero_one(n=6), None),
            ("cd of spins", {"negative_phase": "cd", "n_steps": 2, "n_chains": None}, {}, spins(n=6), None),
            ("smci with missing cells", {"negative_phase": "smci"}, {}, zero_one(n=6, holes=0.1), None),
            (
                "smci of pairs with weights",
                {"negative_phase": ("smci", {"region": "pair", "n_chains": 20}), "n_chains": None},
                {"hidden": "binary"},
                spins(),
                weights(120),
            ),
            (
                "tempering",
                {
                    "negative_phase": ("tempering", {"n_chains": 20, "betas": 4}),
                    "n_chains": None,
                    "schedule": "constant",
                },
                {},
                zero_one(),
                None,
            ),
            ("normal", {"learning_rate": 0.02}, {"visible": "gaussian"}, drawn_numbers(120, 4, 190, 0.0, 1.0), None),
            (
                "normal by plain deviations",
                {"learning_rate": 0.02, "negative_phase": "cd", "n_chains": None},
                {"visible": "gaussian", "deviations": "plain", "hidden": "spin"},
                drawn_numbers(120, 4, 190, 0.0, 1.0),
                None,
            ),
            ("of categories with missing cells", {}, {"visible": "categorical"}, letters(holes=0.1), None),
            (
                "with penalties and momentum at a temperature",
                {"momentum": 0.5, "centred": False},
                {"l1": 0.001, "l2": 0.01, "temperature": 1.7},
                zero_one(n=6),
                weights(120),
            ),
            ("in single precision", {"dtype": "float32"}, {}, zero_one(n=6), None),
        )
    ),
    learned(
        "deep",
        "dbm",
        {
            "n_components": (4, 3),
            "learner": ("stacking", {"alone": {**EPOCHS, "max_iter": 4}, "together": {**EPOCHS, "max_iter": 4}}),
        },
        zero_one(n=6),
    ),
    learned(
        "deep of categories, tempered",
        "dbm",
        {
            "n_components": (3, 2),
            "visible": "categorical",
            "learner": (
                "stacking",
                {
                    "alone": {**EPOCHS, "max_iter": 2},
                    "together": {"max_iter": 2, "negative_phase": ("tempering", {"n_chains": 20, "betas": 4})},
                },
            ),
        },
        letters(sizes=(3, 2, 3)),
    ),
    learned(
        "deep of spins with missing cells",
        "dbm",
        {
            "n_components": (3, 2, 2),
            "temperature": 1.3,
            "learner": ("minibatch", {**EPOCHS, "max_iter": 3}),
            "l2": 0.01,
        },
        spins(holes=0.1),
    ),
    learned(
        "belief network, stacked",
        "dbn",
        {"n_components": (4, 3), "learner": ("stacking", {"alone": {**EPOCHS, "max_iter": 4}, "together": None})},
        zero_one(n=6),
    ),
    learned(
        "belief network, stacked by means",
        "dbn",
        {
            "n_components": (3, 2),
            "visible": "gaussian",
            "learner": (
                "stacking",
                {
                    "alone": {"max_iter": 4, "learning_rate": 0.02, "negative_phase": "cd"},
                    "together": None,
                    "carried": "means",
                },
            ),
        },
        drawn_numbers(120, 4, 190, 0.0, 1.0),
    ),
    learned(
        "restricted by chunks",
        "rbm",
        {"n_components": 3, "chunks": 3, "learner": ("minibatch", {"n_chains": 50})},
        zero_one(180),
    ),
    learned(
        "deep by chunks",
        "dbm",
        {"n_components": (3, 2), "chunks": 3, "learner": ("minibatch", {"n_chains": 50})},
        zero_one(180),
    ),
    learned(
        "restricted of probabilities, scored by rows kept out",
        "rbm",
        {"n_components": 3, "validation_fraction": 0.2, "learner": ("minibatch", EPOCHS)},
        [[round(u, 2) for u in uniforms(5, 400 + m)] for m in range(100)],
    ),
    learned("rows kept out", "pairwise", {"learner": "mle", "validation_fraction": 0.25}, spins(200)),
    # -- mixtures
    learned(
        "mixture by online em",
        "gaussian-mixture",
        {
            "n_components": 3,
            "n_init": 1,
            "learner": "online-em",
            "max_iter": 8,
            "start": [[0, 3, 1], [2.5, -1, -3], [-2.6, -2, 2]],
        },
        drawn_numbers(120, 3, 160),
    ),
    learned(
        "online k-means",
        "online-k-means",
        {"n_components": 3, "max_iter": 4, "normalize": False, "start": [[0, 3, 1], [2.5, -1, -3], [-2.6, -2, 2]]},
        drawn_numbers(120, 3, 160),
    ),
    learned(
        "online k-means of directions",
        "online-k-means",
        {"n_components": 3, "max_iter": 4, "start": [[0, 3, 1], [2.5, -1, -3], [-2.6, -2, 2]]},
        drawn_numbers(120, 3, 160),
    ),
    learned(
        "online k-means by chunks",
        "online-k-means",
        {"n_components": 3, "chunks": 3, "normalize": False, "start": [[0, 3, 1], [2.5, -1, -3], [-2.6, -2, 2]]},
        drawn_numbers(120, 3, 160),
    ),
    learned("k-means from anywhere", "k-means", {"n_components": 3, "n_init": 10}, drawn_numbers(120, 3, 160)),
    learned(
        "soft k-means, annealed",
        "soft-k-means",
        {"n_components": 3, "anneal": True, "cooling": 0.7, "n_init": 1},
        drawn_numbers(120, 3, 160),
        weights(120),
    ),
    learned("mixture of columns", "machine-mixture", {"n_components": 2, "n_init": 3}, letters(120), weights(120)),
    learned(
        "mixture of columns, hard",
        "machine-mixture",
        {"n_components": 2, "machine": "bernoulli", "assignment": "hard", "n_init": 8},
        zero_one(150),
    ),
    learned(
        "mixture of machines",
        "machine-mixture",
        {
            "n_components": 2,
            "machine": ("pairwise", {"graph": "chain", "learner": "mle"}),
            "n_init": 2,
            "max_iter": 40,
            "tol": 1e-4,
        },
        zero_one(120, 3),
    ),
    learned(
        "mixture of machines with l2",
        "machine-mixture",
        {
            "n_components": 2,
            "machine": ("pairwise", {"graph": "chain", "learner": "mle", "l2": 0.01}),
            "n_init": 1,
            "max_iter": 10,
        },
        zero_one(120, 3),
        None,
        "31.19",
    ),
    learned(
        "full span with a hidden variable",
        "full-span",
        {"learner": "span-greedy", "n_components": 2, "n_init": 3, "max_iter": 60},
        zero_one(200, 4),
    ),
    learned(
        "full span with a hidden variable, newton",
        "full-span",
        {"learner": "span-newton", "n_components": 2, "n_init": 3, "max_iter": 40},
        zero_one(200, 4),
    ),
    learned(
        "classifier with hidden units",
        "classifier",
        {"labels": [row[-1] for row in letters(100, (2, 3, 3), 170)], "n_hidden": 2, "l2": 0.01},
        drawn_numbers(100, 2, 171),
    ),
    Drawn(
        "bootstrap errors",
        "bootstrap",
        {"n_replicates": 20, "estimator": "pairwise", "settings": {"learner": "mple", "l2": 0.01}},
        None,
        spins(n=4),
        None,
    ),
]


ROWS: dict[str, Any] = {row.name: row for row in (*GIVEN, *FITS, *STRUCTURES, *DRAWN)}
if len(ROWS) < len(GIVEN) + len(FITS) + len(STRUCTURES) + len(DRAWN):
    raise ValueError("two rows have one name")


# == what every row covers ============================================================================================
# Names that need no row: issue 32 drops them.
LEAVING: set[tuple[str, str]] = set()
# Names that stand in no row's settings, by the row that uses them all the same.
USED_BY = {
    ("optimizer", "lbfgs"): "mle of spins",
    ("optimizer", "anderson"): "first-order smci",
    ("learner", "mcl"): "classifier conditional",
    ("learner", "mcple"): "classifier pseudo",
    ("learner", "online-kmeans"): "online k-means",
    ("learner", "span-hidden"): "full span with a hidden variable",
    ("negative phase", "pcd"): "restricted pcd",
    ("model", "machine-mixture"): "mixture of machines",
}
KINDS_OF_QUESTIONS = {"engine": "engine", "expect": "expectation", "clamped": "clamped", "objective": "objective"}
KINDS_OF_SETTINGS = {
    "learner": "learner",
    "optimizer": "optimizer",
    "negative_phase": "negative phase",
    "sampler": "sampler",
    "clamped": "clamped",
}


def _named_in(settings: Any) -> set[tuple[str, str]]:
    """Return what settings name, at any depth."""
    found = set()
    for key, value in settings.items():
        inner = value if isinstance(value, dict) else value[1] if isinstance(value, tuple) and len(value) == 2 else {}
        word = value[0] if isinstance(value, tuple) else value
        if key in KINDS_OF_SETTINGS and isinstance(word, str):
            found.add((KINDS_OF_SETTINGS[key], word))
        if isinstance(inner, dict):
            found |= _named_in(inner)
    return found


def covered() -> set[tuple[str, str]]:
    """Return the names that rows of this table use."""
    found: set[tuple[str, str]] = set(USED_BY)
    for given in GIVEN:
        found.add(("model", given.model.family))
        found |= {("potential", each[0].partition(":")[0]) for each in given.model.options.get("potentials", ())}
        for question in given.questions:
            if question.what in KINDS_OF_QUESTIONS:
                found.add((KINDS_OF_QUESTIONS[question.what], question.how["name"]))
    for fit in FITS:
        found |= {("estimator", fit.estimator)} | _named_in(fit.settings)
    for drawn in DRAWN:
        if drawn.what == "fit":
            found |= {("estimator", drawn.how["estimator"])} | _named_in(drawn.how["settings"])
        kind = {"expect": "expectation", "clamped": "clamped", "layer sampler": "layer sampler"}.get(drawn.what)
        found |= {(kind, drawn.how["name"])} if kind else set()
        found |= {("sampler", drawn.how["method"])} if drawn.what == "sample" else set()
    return found
