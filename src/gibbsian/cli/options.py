"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gibbsian.data import Dataset
    from gibbsian.estimators import BoltzmannMachine

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by `gibbsian fit`.")]
Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="A .csv, .tsv, .txt, .parquet, .npy or .npz file of two-valued columns.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and warnings only.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Same seed, same result.")]
Weights = Annotated[str | None, typer.Option("--weights", metavar="COL", help="Column of row weights.")]
Convert = Annotated[
    bool, typer.Option("--convert", help="Rewrite the data in the model's coding: lower for lower, upper for upper.")
]


def load_machine(path: Path, seed: int | None = None) -> BoltzmannMachine:
    """Read a model file; from now on the first compilation is announced."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.estimators import load

    announce_compilation()
    return load(path).set_params(random_state=seed)


def read_for(
    machine: BoltzmannMachine, path: Path, weights: str | None = None, convert: bool = False
) -> tuple[BoltzmannMachine, Dataset]:
    """Read data in the machine's columns and coding; other columns, such as ids, are left aside.

    Returns the machine too, without its threshold: the data has passed it already.
    """
    from gibbsian.data import Dataset

    threshold = machine.binarize
    data = Dataset.read(
        path,
        columns=machine.names_,
        coding="auto" if convert and threshold is None else machine.coding_,
        binarize=threshold,
        weight_column=weights,
        declared_by="the model",
    )
    return machine.set_params(binarize=None), data.convert(machine.coding_) if convert else data


def parse_coding(text: str) -> Any:
    """Turn the value of ``--coding`` into what `Dataset.read` takes: a name, or a pair of labels.

    Examples
    --------
    >>> from gibbsian.cli.options import parse_coding
    >>> parse_coding("spin"), parse_coding("disagree,agree"), parse_coding("1,2")
    ('spin', ('disagree', 'agree'), (1, 2))
    """
    from gibbsian.domain import CODINGS
    from gibbsian.errors import CodingError

    if text == "auto" or text in CODINGS:
        return text
    labels = [label.strip() for label in text.split(",")]
    if len(labels) != 2 or "" in labels:
        raise CodingError(
            f"coding={text} is not known: use one of auto, {', '.join(CODINGS)}, "
            "or two labels LOW,HIGH with a comma between"
        )
    return tuple(int(label) if label.lstrip("+-").isdigit() else label for label in labels)
