"""Fit a machine (pairwise, higher-order, potts) as the flags ask."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from gibbsian.cli.families import FitOrder
from gibbsian.cli.flags import GRAPHS, HIDDEN_GRAPHS
from gibbsian.cli.interrupts import Stoppable, stopping_on_interrupt
from gibbsian.cli.options import parse_categories, parse_coding, parse_hidden, parse_values
from gibbsian.cli.output import check_target
from gibbsian.cli.progress import fit_progress
from gibbsian.errors import ArgumentError, GraphError

# What the two columns of a file of edges are usually called.
EDGE_TITLES = {"source", "target", "from", "to", "first", "second", "node1", "node2", "a", "b", "i", "j", "u", "v"}
# Flags that are settings of the machine under the same name; those of a model without them were refused before.
SAME_SETTING = (
    "order",
    "temperature",
    "l1",
    "l2",
    "max_iter",
    "tol",
    "start",
    "n_init",
    "held_out",
    "learner",
    "clamped",
)
# Settings of a machine that a learner object brings itself, with what they are then.
BROUGHT_BY_LEARNERS = {"learner": "auto", "l1": 0.0, "l2": 0.0, "clamped": "auto"}


def fit_machine(order: FitOrder) -> Any:
    """Read the table, build the machine and fit it; Ctrl-C ends the fit after the step it is in."""
    flags = order.flags
    checkpoint = checkpoint_of(flags)
    table = read_data(order)
    machine = order.estimator(**machine_settings(order, table.names), checkpoint=checkpoint, random_state=order.seed)
    asked = machine.get_params(deep=False)
    plain = {name: value for name, value in BROUGHT_BY_LEARNERS.items() if name in asked}
    with (
        fit_progress("fitting", machine.max_iter, machine.tol, show=order.show_progress) as callback,
        stopping_on_interrupt() as stop,
    ):
        name = asked["learner"]
        if "memory" not in flags:
            name, learner = _make_learner(machine, table, flags)
            machine.set_params(**{**plain, "learner": Stoppable(learner, stop)})
        elif {"optimizer", "rate", "region"} & set(flags):
            raise ArgumentError(
                "--memory learns by minibatches, without --optimizer, --rate or --region", "leave it out"
            )
        machine.set_params(callback=callback).fit(table)
    machine.result_ = replace(machine.result_, provenance=_told(machine, name))
    # the file keeps what was asked for: later data pass the threshold or the separator too
    kept = {name: flags[name] for name in ("binarize", "one_hot") if name in flags}
    return machine.set_params(callback=None, **{key: asked[key] for key in plain}, **kept)


def machine_settings(order: FitOrder, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings of the machine that the flags ask for, besides how its table is read."""
    flags = order.flags
    settings = {name: flags[name] for name in SAME_SETTING if name in flags}
    if "no_bias" in flags:
        settings["bias"] = False
    if "hidden" in flags:
        settings["n_hidden"] = _one_layer(flags["hidden"])
    if _is_values(order):
        settings["coding"] = "values"
    return {**settings, **_structure(order, names)}


def _one_layer(text: str) -> int:
    """The number of hidden units of a machine that has no layers."""
    numbers = parse_hidden(text)
    if len(numbers) > 1:
        raise ArgumentError(f"--hidden {text} gives {len(numbers)} layers, but this model has one", "give one number")
    return numbers[0]


def _told(machine: Any, learner: Any) -> dict[str, Any]:
    """The provenance with the learner's name: the machine was given an object."""
    told = machine.result_.provenance
    return told if told["learner"] == "online" else {**told, "learner": learner}


# -- the table --------------------------------------------------------------------------------------------------------
def read_data(order: FitOrder) -> Any:
    """Read the table of a fit as a Dataset, or as a DataStream where ``--memory`` leaves it on disk."""
    from gibbsian.data import Dataset, DataStream

    flags = order.flags
    options = {"coding": _rule(order), "drop": flags.get("drop", ())}
    if "memory" in flags:
        if "weights" in flags or "complete_rows" in flags:
            raise ArgumentError("--memory learns from the disk, without --weights or --complete-rows", "leave them out")
        return DataStream.open(order.data, **options, memory=flags["memory"])
    table = Dataset.read(
        order.data,
        **options,
        weight_column=flags.get("weights"),
    )
    return table.complete_rows() if "complete_rows" in flags else table


def _rule(order: FitOrder) -> Any:
    """The coding of the table, with the rule that flags give for its labels."""
    from gibbsian.data import Labels, OneHot, Threshold, Values

    flags, coding = order.flags, _coding(order)
    if "binarize" in flags:
        return Threshold(flags["binarize"], "binary" if coding == "auto" else coding)
    categories = parse_categories(flags["categories"]) if "categories" in flags else None
    if "one_hot" in flags:
        return OneHot(flags["one_hot"], categories)
    if "values" in flags:
        return Values(parse_values(flags["values"]))
    return coding if categories is None else Labels(categories)


def _coding(order: FitOrder) -> Any:
    """What the table is read as; a machine whose own default is no "auto" reads its default."""
    own = order.estimator().coding
    if "coding" not in order.flags:
        return "auto" if "values" in order.flags else own
    coding = parse_coding(order.flags["coding"])
    if own == "auto" or coding in ("categorical", "values"):
        return coding
    if coding == "auto":
        return own
    raise ArgumentError(
        "is of two-valued columns",
        f"use {own} or values, or leave it out",
        argument="coding",
        value=order.flags["coding"],
    )


def _is_values(order: FitOrder) -> bool:
    """Whether a machine of categories is to take numbers; one of numbers recognises them."""
    wanted = order.flags.get("coding") == "values" or "values" in order.flags
    return wanted and order.estimator().coding == "categorical"


# -- what interacts ---------------------------------------------------------------------------------------------------
def _structure(order: FitOrder, names: tuple[str, ...]) -> dict[str, Any]:
    """The settings that say what interacts: a graph, or cliques of a file or of a graph."""
    flags = order.flags
    if len({"cliques", "graph"} & set(flags)) == 2:
        raise ArgumentError("--cliques and --graph both say what interacts", "give one of them")
    if "cliques" in flags:
        if "order" in flags:
            raise ArgumentError(
                "--cliques lists what interacts, so there is nothing for --order to say", "leave it out"
            )
        return {"cliques": read_cliques(flags["cliques"], names)}
    if "graph" not in flags:
        return {}
    graph = read_graph(flags["graph"], names)
    if "graph" in order.estimator().get_params(deep=False):
        return {"graph": graph}
    return {"cliques": _cliques_of(graph, names, flags.get("order", order.estimator().order))}


def _cliques_of(graph: Any, names: tuple[str, ...], order: int) -> list[tuple[int, ...]]:
    """All cliques of a graph of up to `order` variables."""
    import itertools

    import networkx

    from gibbsian.graphs import as_graph

    network = networkx.Graph(as_graph(graph, names).edges.tolist())
    found = networkx.enumerate_all_cliques(network)  # in order of size
    return [tuple(sorted(clique)) for clique in itertools.takewhile(lambda clique: len(clique) <= order, found)]


def read_graph(text: str, names: tuple[str, ...]) -> Any:
    """Turn the value of ``--graph`` into what the estimator takes: a word, or the edges of a file.

    Examples
    --------
    >>> from gibbsian.cli.fit_machine import read_graph
    >>> read_graph("grid:2x3", ("a", "b", "c", "d", "e", "f"))
    'grid:2x3'
    """
    if text in GRAPHS or text in HIDDEN_GRAPHS or text.startswith("grid:"):
        return text
    if not Path(text).is_file():
        raise GraphError(f"--graph {text} is neither one of {', '.join(GRAPHS)} nor a file of edges")
    return _read_edges(Path(text), names)


def _read_edges(path: Path, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Read pairs of names, or of positions counted from 0; a first line of usual titles is a header."""
    edges = []
    for number, cells in _lines(path, "edges"):
        if number == 1 and not set(cells) & set(names) and {c.lower() for c in cells} <= EDGE_TITLES:
            continue
        if len(cells) != 2:
            raise GraphError(f"line {number} of {path} holds {len(cells)} names instead of the two of an edge")
        first, second = _members(cells, names)
        if first == second:
            raise GraphError(f"line {number} of {path} joins {first!r} to itself", "leave it out")
        edges.append((first, second))
    if not edges:
        raise GraphError(f"{path} holds no edges", "for none at all use --graph empty")
    return edges


def read_cliques(path: Path, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Read the cliques of a file: names of columns, or positions counted from 0, one clique a line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gibbsian.cli.fit_machine import read_cliques
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cliques.csv"
    >>> _ = path.write_text("a,b,c\\nb,d\\n")
    >>> read_cliques(path, ("a", "b", "c", "d"))
    [('a', 'b', 'c'), ('b', 'd')]
    """
    if not path.is_file():
        raise GraphError(f"--cliques {path} is not a file")
    cliques = [_members([cell for cell in cells if cell], names) for _, cells in _lines(path, "cliques")]
    if not cliques:
        raise GraphError(f"{path} holds no cliques", "give one a line, as names of columns")
    return cliques


def _members(cells: list[str], names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(int(cell) if cell.isdigit() and cell not in names else cell for cell in cells)


def _lines(path: Path, what: str) -> list[tuple[int, list[str]]]:
    """The lines of a CSV file that are not empty, with their numbers."""
    import csv

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            stripped = [[cell.strip() for cell in row] for row in csv.reader(file)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise GraphError(f"{path} cannot be read as a CSV file of {what}", f"{error}") from None
    return [(number, cells) for number, cells in enumerate(stripped, start=1) if any(cells)]


# -- how it is learned ------------------------------------------------------------------------------------------------
def _check_overwritable(path: Path) -> None:
    """Refuse to write progress over a file that holds something else."""
    from gibbsian.errors import FileFormatError
    from gibbsian.storage import kind_of

    if not path.exists():
        return
    try:
        kind = kind_of(path)
    except FileFormatError:
        kind = "something else"
    if kind != "checkpoint":
        raise ArgumentError(f"--checkpoint {path} exists and is no checkpoint", "give another name")


def checkpoint_of(flags: dict[str, Any]) -> Any:
    """Return the checkpoint that the flags ask for, or None."""
    from gibbsian.storage import Checkpoint

    path, every = flags.get("checkpoint"), flags.get("checkpoint_every", 50)
    if path is None:
        for flag in ("resume", "checkpoint_every"):
            if flag in flags:
                raise ArgumentError(f"--{flag.replace('_', '-')} needs --checkpoint FILE, the file of the progress")
        return None
    if every < 1:
        raise ArgumentError(f"--checkpoint-every {every} must be at least 1")
    check_target(path, flag="--checkpoint")
    _check_overwritable(path)
    return Checkpoint(path, every, "resume" in flags)


def _make_learner(machine: Any, data: Any, flags: dict[str, Any]) -> tuple[str, Any]:
    """Settle the learner's name and build it, with another optimiser or region than its own where one was asked for."""
    import inspect

    from gibbsian.learners import LEARNERS

    name = machine.learner
    if name == "auto":
        name = machine._settle_learner(data)
    takes = inspect.signature(LEARNERS.factory(name)).parameters
    settings: dict[str, Any] = machine._learner_settings(name)
    if "region" in flags:
        if "region" not in takes:
            raise ArgumentError(f"--learner {name} takes no --region", "leave it out, or use --learner smci")
        region = flags["region"]
        settings["region"] = int(region) if region.isdigit() else region
    if "optimizer" in flags or "rate" in flags:
        if "optimizer" not in takes:
            raise ArgumentError(f"--learner {name} takes no --optimizer or --rate", "leave them out")
        settings["optimizer"] = _make_optimizer(name, flags)
    return name, LEARNERS.create(name, **settings)


def _make_optimizer(learner: str, flags: dict[str, Any]) -> Any:
    from gibbsian.learners import LEARNERS
    from gibbsian.learners.pace import DEFAULT_OPTIMIZER
    from gibbsian.optimizers import OPTIMIZERS

    name = flags.get("optimizer")
    chosen = OPTIMIZERS.create(name) if name is not None else LEARNERS.create(learner).optimizer or DEFAULT_OPTIMIZER
    if "rate" not in flags:
        return chosen
    if not hasattr(chosen, "rate"):
        raise ArgumentError(f"--rate belongs to --optimizer ascent or adam, not to {name or 'the default optimizer'}")
    return replace(chosen, rate=flags["rate"])
