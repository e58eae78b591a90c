"""Commands ``query`` and ``divergence``: probabilities, entropies and how far two models are from each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gibbsian.cli import options
from gibbsian.cli.options import PATH, load_model
from gibbsian.cli.output import print_json, print_table, write_table
from gibbsian.cli.questions import question

_method = click.option(
    "--method", default="auto", help="auto, exact, or a sampler (gibbs, ...); a wrong name lists them all."
)


@question(of_rows=False)
@click.argument("queries", nargs=-1, required=True, metavar="QUERY...")
@_method
@options.samples
def query(
    machine: Any, queries: tuple[str, ...], method: str, n_samples: int | None, out: Path | None, json: bool
) -> None:
    """Answer queries: 'P(a=1, b | c=0)', 'H(a, b | c)', 'I(a; b | c)', with standard errors (0: exact).

    Columns without a value are listed over their values. Hidden units are called h0, h1, ..., a mixture's class class.
    """
    frames = [machine.query(text, method, n_samples) for text in queries]
    tables = {
        text: frame.reset_index() if frame.index.names[0] is not None else frame
        for text, frame in zip(queries, frames, strict=True)
    }
    _give(tables, "query", out, json)


@question(of_rows=False)
@click.argument("other", type=PATH, metavar="OTHER")
@_method
@options.samples
def divergence(machine: Any, other: Path, method: str, n_samples: int | None, out: Path | None, json: bool) -> None:
    """Print how far two models of the same columns are from each other, in nats, with standard errors (0: exact)."""
    import pandas

    found = machine.divergence(load_model(other), method=method, n_samples=n_samples)
    frame = pandas.DataFrame(
        {
            "divergence": ["KL(model || other)", "KL(other || model)", "Jensen-Shannon"],
            "nats": [float(number) for number in found],
            "standard_error": [number.stderr for number in found],
        }
    )
    _give({"divergence": frame}, "of", out, json)


def _give(tables: dict[str, Any], title: str, out: Path | None, json: bool) -> None:
    """Print tables, or write them as one."""
    if out is not None:
        import pandas

        whole = pandas.concat([table.assign(**{title: text}) for text, table in tables.items()], ignore_index=True)
        write_table(out, list(whole.columns), whole.to_numpy())
    if json:
        print_json(
            {"out": out} if out is not None else {text: table.to_dict("records") for text, table in tables.items()}
        )
    elif out is not None:
        print(f"{sum(map(len, tables.values()))} rows: written to {out}")
    else:
        for text, table in tables.items():
            print_table(text, list(table.columns), table.itertuples(index=False, name=None))
