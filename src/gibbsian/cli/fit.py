"""``gibbsian fit``: from a data file to a model file."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gibbsian.cli.guard import guarded, in_flags
from gibbsian.cli.options import Data, Json, Quiet, Seed, Weights, parse_coding
from gibbsian.cli.output import check_distinct, check_target, coupling_records, print_couplings, print_json
from gibbsian.errors import ArgumentError, ConvergenceWarning, GraphError

if TYPE_CHECKING:
    from gibbsian.data import Dataset
    from gibbsian.estimators import BoltzmannMachine

GRAPHS = ("complete", "empty", "chain", "grid:RxC")
N_STRONGEST = 10
# What the two columns of a file of edges are usually called.
EDGE_TITLES = {"source", "target", "from", "to", "first", "second", "node1", "node2", "a", "b", "i", "j", "u", "v"}


@guarded
def fit(
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="MODEL", help="Where to write the model.")],
    graph: Annotated[
        str,
        typer.Option(
            metavar="|".join((*GRAPHS, "FILE")),
            help="Which columns interact; FILE is a CSV with two columns of names, one edge a line.",
        ),
    ] = "complete",
    learner: Annotated[
        str, typer.Option(help="auto, or a learner by name (mle, mple, ...); a wrong name lists them all.")
    ] = "auto",
    optimizer: Annotated[str | None, typer.Option(help="lbfgs, ascent, ...; by default the learner's own.")] = None,
    rate: Annotated[float | None, typer.Option(help="Step size of `--optimizer ascent` or `adam`.")] = None,
    l1: Annotated[float, typer.Option(help="Penalty l1 sum|coupling|.")] = 0.0,
    l2: Annotated[float, typer.Option(help="Penalty (l2/2) sum parameter^2.")] = 0.0,
    coding: Annotated[
        str, typer.Option(help="auto, spin, binary, yes/no, y/n, true/false, or two labels LOW,HIGH.")
    ] = "auto",
    no_bias: Annotated[bool, typer.Option("--no-bias", help="Leave the biases out.")] = False,
    temperature: Annotated[float, typer.Option(help="T in P(x) = exp(-E(x)/T) / Z.")] = 1.0,
    max_iter: Annotated[int, typer.Option(help="Most steps of the learner.")] = 1000,
    tol: Annotated[float, typer.Option(help="Converged when no entry of the gradient is larger.")] = 1e-6,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="A column to leave out (may be repeated).")
    ] = None,
    weights: Weights = None,
    binarize: Annotated[float | None, typer.Option(metavar="T", help="Numbers above T become 1, all others 0.")] = None,
    complete_rows: Annotated[
        bool, typer.Option("--complete-rows", help="Use only the rows without missing cells.")
    ] = False,
    start: Annotated[
        str | None, typer.Option(metavar="NAME", help="Begin at a mean-field solution, e.g. sessak-monasson.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Leave the rows on disk and learn by minibatches within SIZE, e.g. 1GB."),
    ] = None,
    held_out: Annotated[
        float, typer.Option(metavar="SHARE", help="Keep this share of the rows out and score them.")
    ] = 0.0,
    checkpoint: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the progress of the fit in this file.")
    ] = None,
    checkpoint_every: Annotated[int, typer.Option(metavar="K", help="Steps between two checkpoints.")] = 50,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the checkpoint if there is one.")] = False,
    seed: Seed = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn a pairwise Boltzmann machine from a table of two-valued columns."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.cli.progress import fit_progress
    from gibbsian.data import Dataset, DataStream
    from gibbsian.estimators import BoltzmannMachine

    table: Any
    check_target(out)
    edges = Path(graph) if Path(graph).is_file() else None
    check_distinct(data=data, graph=edges, out=out, checkpoint=checkpoint)
    options = {"coding": parse_coding(coding), "binarize": binarize, "drop": drop or ()}
    if memory is None:
        table = Dataset.read(data, **options, weight_column=weights)
        table = table.complete_rows() if complete_rows else table
    else:
        if weights is not None or complete_rows:
            raise ArgumentError("--memory learns from the disk, without --weights or --complete-rows: leave them out")
        table = DataStream.open(data, **options, memory=memory)
    if not quiet:
        announce_compilation()
        if not json:  # the last line says it
            warnings.simplefilter("ignore", ConvergenceWarning)
    machine = BoltzmannMachine(
        read_graph(graph, table.names),
        learner,
        l1=l1,
        l2=l2,
        bias=not no_bias,
        temperature=temperature,
        max_iter=max_iter,
        tol=tol,
        start=start,
        held_out=held_out,
        checkpoint=_checkpoint(checkpoint, checkpoint_every, resume),
        random_state=seed,
    )
    if optimizer is not None or rate is not None:
        machine.set_params(learner=_make_learner(machine, table, optimizer, rate), l1=0.0, l2=0.0)
    with fit_progress("fitting", max_iter, tol, show=not quiet) as callback:
        machine.set_params(callback=callback).fit(table)
    machine.set_params(binarize=binarize)  # the threshold goes into the file: later data must pass it too
    machine.save(out)
    if json:
        print_json(_summary(machine, out))
    elif not quiet:
        _print_summary(machine, out)


def read_graph(text: str, names: tuple[str, ...]) -> Any:
    """Turn the value of ``--graph`` into what the estimator takes: a word, or the edges of a file.

    Examples
    --------
    >>> from gibbsian.cli.fit import read_graph
    >>> read_graph("grid:2x3", ("a", "b", "c", "d", "e", "f"))
    'grid:2x3'
    """
    if text in GRAPHS or text.startswith("grid:"):
        return text
    if not Path(text).is_file():
        raise GraphError(f"--graph {text} is neither one of {', '.join(GRAPHS)} nor a file of edges")
    return _read_edges(Path(text), names)


def _read_edges(path: Path, names: tuple[str, ...]) -> list[tuple[Any, Any]]:
    """Read pairs of names, or of positions counted from 0; a first line of usual titles is a header."""
    import csv

    edges: list[tuple[Any, Any]] = []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(csv.reader(file), start=1):
                cells = [cell.strip() for cell in row]
                titles = number == 1 and not set(cells) & set(names) and {c.lower() for c in cells} <= EDGE_TITLES
                if not any(cells) or titles:
                    continue
                if len(cells) != 2:
                    raise GraphError(f"line {number} of {path} holds {len(cells)} names instead of the two of an edge")
                first, second = (int(c) if c.isdigit() and c not in names else c for c in cells)
                if first == second:
                    raise GraphError(f"line {number} of {path} joins {first!r} to itself: leave it out")
                edges.append((first, second))
    except (UnicodeDecodeError, csv.Error) as error:
        raise GraphError(f"{path} cannot be read as a CSV file of edges: {error}") from None
    if not edges:
        raise GraphError(f"{path} holds no edges: for none at all use --graph empty")
    return edges


def _checkpoint(path: Path | None, every: int, resume: bool) -> Any:
    from gibbsian.storage import Checkpoint

    if path is None:
        if resume:
            raise ArgumentError("--resume needs --checkpoint FILE, the file to continue from")
        return None
    if every < 1:
        raise ArgumentError(f"--checkpoint-every {every} must be at least 1")
    check_target(path, flag="--checkpoint")
    return Checkpoint(path, every, resume)


def _make_learner(machine: BoltzmannMachine, data: Dataset, optimizer: str | None, rate: float | None) -> Any:
    """Build the learner of that name with another optimiser than its own."""
    import inspect

    from gibbsian.estimators.fitting import choose_learner
    from gibbsian.graphs import as_graph
    from gibbsian.learners import LEARNERS
    from gibbsian.models import PairwiseModel
    from gibbsian.optimizers import OPTIMIZERS

    model = PairwiseModel.zeros(as_graph(machine.graph, data.names), data.domain)
    name = str(choose_learner(machine.learner, model, data))
    if "optimizer" not in inspect.signature(LEARNERS.factory(name)).parameters:
        raise ArgumentError(f"--learner {name} takes no --optimizer or --rate: leave them out")
    chosen = LEARNERS.create(name).optimizer if optimizer is None else OPTIMIZERS.create(optimizer)
    if rate is not None:
        if not hasattr(chosen, "rate"):
            raise ArgumentError(
                f"--rate belongs to --optimizer ascent or adam, not to {optimizer or 'the default optimizer'}"
            )
        chosen = replace(chosen, rate=rate)
    return LEARNERS.create(name, optimizer=chosen, l1=machine.l1, l2=machine.l2)


def _summary(machine: BoltzmannMachine, out: Path) -> dict[str, Any]:
    result, model = machine.result_, machine.model_
    last = dict(zip(result.trace.columns, result.trace.rows[-1], strict=True))
    return {
        "model": out,
        "converged": result.converged,
        "reason": result.reason,
        "value": last["value"],
        "gradient": last["gradient_norm"],
        "coding": machine.coding_.name,
        "variables": model.n_variables,
        "edges": model.graph.n_edges,
        "trained": result.training.is_trained,
        "largest_z": result.training.largest_z,
        "held_out": None if result.held_out is None else result.held_out._asdict(),
        "provenance": result.provenance,
        "strongest_couplings": coupling_records(machine, N_STRONGEST),
    }


def _print_summary(machine: BoltzmannMachine, out: Path) -> None:
    result, model = machine.result_, machine.model_
    told = result.provenance
    missing = f" ({told['missing_cells']} missing cells)" if told["missing_cells"] else ""
    print_couplings(machine, N_STRONGEST)
    print(
        f"{model.n_variables} variables, {model.graph.n_edges} couplings, {told['rows']} rows{missing}, "
        f"coding {machine.coding_.describe()}, {result.seconds:.2f} s"
    )
    print(in_flags(result.reason))
    print(result.training.describe())
    if result.held_out is not None:
        print(
            f"{result.held_out.kind} of {result.held_out.n_rows} held-out rows: {result.held_out.score:.4f} nats a row"
        )
    print(f"model written to {out}")
