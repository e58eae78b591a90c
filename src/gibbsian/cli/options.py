"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gibbsian.cli.flags import BriefOption, begun_with
from gibbsian.cli.output import STANDARD
from gibbsian.estimators.known import ESTIMATORS

OUT_FORMATS = (".csv", ".csv.gz", ".parquet")
PICTURES = (".png", ".svg", ".pdf")
PATH = click.Path(path_type=Path)

WHERE = "gibbsian.where"
_DEVICES = {
    "device": "Where kernels run: cpu, cuda, cuda:1, torch, auto.",
    "precision": "Numbers on a card, as in fit.",
}
data_file = click.argument("data", type=PATH, metavar="DATA")
json = click.option("--json", is_flag=True, help="Print JSON on stdout and nothing else there.", cls=BriefOption)
quiet = click.option("--quiet", "-q", is_flag=True, help="Print errors and warnings only.", cls=BriefOption)
seed = click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Same seed, same result.", cls=BriefOption)
weights = click.option("--weights", metavar="COL", help="Column of row weights.", cls=BriefOption)
drop = click.option("--drop", multiple=True, metavar="COL", help="A column to leave out (repeatable).")
complete_rows = click.option("--complete-rows", is_flag=True, help="Use only the rows without missing cells.")
coding = click.option(
    "--coding", metavar="NAME|LOW,HIGH", help="How values are written: spin, binary, yes/no, categorical, ..."
)
convert = click.option(
    "--convert", is_flag=True, help="Rewrite the data in the model's coding: lower for lower, upper for upper."
)
out_table = click.option(
    "--out",
    "-o",
    type=PATH,
    metavar="FILE",
    callback=lambda ctx, param, path: None if path == STANDARD else path,
    help="A .csv, .csv.gz or .parquet file; else CSV on stdout.",
)


def model_file(command: Any) -> Any:
    """Give a command the model file that it asks, and the flags that say where it computes."""

    def keep(ctx: click.Context, param: Any, given: str | None) -> None:
        ctx.meta.setdefault(WHERE, {}).update({} if given is None else {param.name: given})

    for name, text in reversed(_DEVICES.items()):
        command = click.option(f"--{name}", metavar="NAME", help=text, expose_value=False, callback=keep)(command)
    return click.argument("model", type=PATH, metavar="MODEL")(command)


cluster = click.option(
    "--cluster",
    metavar="local|ADDRESS",
    help="Let the workers of a Dask cluster read DATA, which may be a pattern (part-*.parquet), and learn there.",
)
fits_on_cluster = click.option(
    "--cluster", metavar="local|ADDRESS", help="Let the workers of a Dask cluster do the fits.", cls=BriefOption
)
picture = click.option("--picture", type=PATH, metavar="FILE", help=f"Draw it too: {', '.join(PICTURES)} by extension.")
samples = click.option("--samples", "-n", "n_samples", type=int, metavar="N", help="How many samples a method draws.")
kind_of_model = click.option(
    "--model",
    "-m",
    metavar="NAME",
    help="Which model; chosen by the columns if not given.",
    cls=BriefOption,
    shell_complete=lambda ctx, param, begun: begun_with(begun, ESTIMATORS.names()),
)
column = click.option(
    "--column",
    multiple=True,
    metavar="COL=CODING",
    help="One column: sex=F,M, 'mood=0<1<2', 'age=>40', id=drop.",
    cls=BriefOption,
)


def top(default: int) -> Any:
    """Return the option of how much to list."""
    return click.option(
        "--top", type=click.IntRange(min=0), default=default, help="How many of the strongest parameters to list."
    )


def reading(command: Any) -> Any:
    """Give a command the options that say how a table is read for a fit."""
    listed = (
        coding,
        click.option("--binarize", type=float, metavar="T", help="Numbers above T become 1, all others 0."),
        column,
        click.option(
            "--categories", metavar="A,B,...", help="Values of all columns in their order; some may not occur."
        ),
        click.option("--values", metavar="X,Y,...", help="Numbers that are the values of all columns."),
        click.option("--one-hot", metavar="SEP", help="Put dummy columns such as hair_red together at this separator."),
        complete_rows,
        drop,
        weights,
    )
    for option in reversed(listed):
        command = option(command)
    return command


def load_model(path: Path, seed: int | None = None) -> Any:
    """Read a model file of any kind; from now on kernels run on its device, and a first compilation is announced."""
    from gibbsian.backends.device import on_device
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.estimators import load
    from gibbsian.settings import check_value, settings_of

    announce_compilation()
    ctx = click.get_current_context()
    machine = load(path).set_params(random_state=seed, **ctx.meta.get(WHERE, {}))
    check_value("precision", machine.precision, settings_of(type(machine))["precision"])
    ctx.with_resource(on_device(machine.device, machine.precision))
    return machine
