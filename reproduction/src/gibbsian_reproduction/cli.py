"""``gibbsian-reproduce``: the papers' figures and tables, and their claims held against the numbers."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gibbsian.cli.bars import Bars, is_watched
from gibbsian.cli.guard import INTERRUPTED, Command, say, tell
from gibbsian.cli.output import print_json, print_table
from gibbsian.errors import ArgumentError, StorageError

if TYPE_CHECKING:
    from gibbsian_reproduction.report import Report

NAME = "gibbsian-reproduce"
ALL = "all"
PAGE = "index.html"
COUNT = click.IntRange(min=1)
MOST_WARNINGS = 3  # of one experiment that are printed; the others are in its JSON file


@click.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--list", "show_list", is_flag=True, help="Name the experiments, and run none.")
@click.option("--trials", type=COUNT, default=200, help="Independent trials; heavy experiments make fewer.")
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Same seed, same result, on any number of workers.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="results",
    metavar="DIR",
    help="Where tables, pictures and finished trials go.",
)
@click.option("--workers", type=COUNT, help="Processes; as many as there are cores.")
@click.option("--cluster", metavar="local|ADDRESS", help="Run the trials on the workers of a Dask cluster.")
@click.option("--json", is_flag=True, help="Print JSON on stdout and nothing else there.")
@click.option("--quiet", "-q", is_flag=True, help="Print errors and warnings only.")
def reproduce(
    names: tuple[str, ...],
    show_list: bool,
    trials: int,
    seed: int,
    out: Path,
    workers: int | None,
    cluster: str | None,
    json: bool,
    quiet: bool,
) -> None:
    """Run figures and tables of the papers and check the papers' claims; an interrupted run goes on when repeated."""
    if show_list:
        _print_list(json)
        return
    chosen = _chosen(names)
    if out.exists() and not out.is_dir():
        raise StorageError(f"--out {out} is a file", "give the name of a directory")
    reports = []
    for report, files in _run(chosen, trials, seed, out, workers, cluster, show=not quiet):
        reports.append(report)
        for sentence in report.results.warnings[:MOST_WARNINGS]:
            say(f"warning: {report.name}: {sentence}")
        if not quiet and not json:
            _print(report, files)
    page = _write_page(reports, out) if ALL in names else None
    if json:
        print_json(_summary(reports, page))
    elif not quiet:
        _print_end(reports, page)


def run() -> NoReturn:
    """Run the command and end the process with its exit code; mistakes in flags are told in one line too."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # finished trials are kept, as at Ctrl-C
    try:
        code = reproduce.main(prog_name=NAME, standalone_mode=False) or 0
    except click.ClickException as error:
        say(f"error: {error.format_message().rstrip('.')} (see {NAME} --help)")
        code = error.exit_code
    for late in (signal.SIGINT, signal.SIGTERM):  # all is done and said
        signal.signal(late, signal.SIG_IGN)
    sys.exit(code)


# -- which experiments ------------------------------------------------------------------------------------------------
def _print_list(json: bool) -> None:
    from gibbsian_reproduction.experiment import EXPERIMENTS
    from gibbsian_reproduction.report import in_order

    made, parts = {name: EXPERIMENTS.create(name) for name in EXPERIMENTS}, ("paper", "item", "title", "scale")
    listed = in_order(
        [{"experiment": name, **{part: getattr(one, part) for part in parts}} for name, one in made.items()]
    )
    if json:
        print_json({"experiments": listed})
        return
    columns = ("name", "paper", "item", "shows", "a trial")
    print_table(f"{NAME} NAME", columns, [tuple(entry.values()) for entry in listed])


def _chosen(names: Sequence[str]) -> list[str]:
    """Return the experiments that are meant, each once, or say which the user may have meant."""
    import difflib

    from gibbsian_reproduction.experiment import EXPERIMENTS

    if not names:
        raise ArgumentError("name at least one experiment, or all", "gibbsian-reproduce --list shows them")
    known = EXPERIMENTS.names()
    for name in names:
        if name not in (*known, ALL):
            near = difflib.get_close_matches(name, known, n=3) or [other for other in known if other.startswith(name)]
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            raise ArgumentError(f"no experiment is called {name}", f"{hint}gibbsian-reproduce --list shows them all")
    return known if ALL in names else list(dict.fromkeys(names))


# -- running ----------------------------------------------------------------------------------------------------------
def _run(
    names: list[str], trials: int, seed: int, out: Path, workers: int | None, cluster: str | None, show: bool
) -> Iterator[tuple[Report, list[Path]]]:
    """Run, and write down each experiment as it ends; Ctrl-C says what is kept and how to go on."""
    from gibbsian.cluster.connection import connected
    from gibbsian_reproduction.report import Report
    from gibbsian_reproduction.runner import count_trials, run_many

    n_done: dict[str, tuple[int, int]] = {}
    bars = Bars()

    def progress(name: str, done: int, total: int) -> None:
        n_done[name] = done, total
        if show and is_watched():
            bars("trials", *map(sum, zip(*n_done.values(), strict=True)))

    try:
        with nullcontext() if cluster is None else connected(cluster) as client:
            for name, results in run_many(names, trials, seed, out, workers, progress, client):
                report = Report.of(name, results, trials)
                yield report, report.write(out)
    except KeyboardInterrupt:
        kept, wanted = count_trials(names, trials, seed, out)
        bars.stop()
        say(f"interrupted: {kept} of {wanted} trials are kept in {out}, and the same command goes on from there")
        raise click.exceptions.Exit(INTERRUPTED) from None
    finally:
        bars.stop()


def _write_page(reports: list[Report], out: Path) -> Path:
    from gibbsian.storage import write_atomically
    from gibbsian_reproduction.page import page

    target = out / PAGE
    write_atomically(target, page([report.record() for report in reports], out).encode())
    return target


# -- telling ----------------------------------------------------------------------------------------------------------
def _print(report: Report, files: list[Path]) -> None:
    from gibbsian_reproduction.report import frame_cells

    experiment, results = report.experiment, report.results
    tell(f"{report.name}: {experiment.paper} {experiment.item}, {experiment.title}")
    scale = f"; a trial: {experiment.scale}" if experiment.scale else ""
    tell(f"{results.n_trials} trials, seed {results.seed}, {results.seconds:.1f} s of one core{scale}\n")
    for table in report.tables:
        columns, rows = frame_cells(table.frame)
        print_table(table.name + (f" ({table.note})" if table.note else ""), columns, rows)
    for sentence in report.sentences():
        tell(sentence)
    tell(f"{report.summary}; written: {', '.join(map(str, files))}\n")


def _print_end(reports: list[Report], page: Path | None) -> None:
    from gibbsian_reproduction.report import count_of_claims

    if len(reports) > 1:
        holds = [verdict.holds for report in reports for verdict in report.verdicts]
        tell(f"{len(reports)} experiments: {count_of_claims(holds)}")
    if page is not None:
        tell(f"all on one page: {page}")


def _summary(reports: list[Report], page: Path | None) -> dict[str, Any]:
    verdicts = [verdict.holds for report in reports for verdict in report.verdicts]
    holds = [verdict for verdict in verdicts if verdict is not None]
    return {
        "experiments": [report.record() for report in reports],
        "claims": len(holds),
        "claims_that_hold": sum(holds),
        "page": page,
    }
