"""Options that several commands share, and how their values are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by `gibbsian fit`.")]
Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A .csv, .tsv, .txt, .parquet, .npy or .npz file (FILE.npz:KEY names one array), a column a variable.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on stdout and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and warnings only.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Same seed, same result.")]
Weights = Annotated[str | None, typer.Option("--weights", metavar="COL", help="Column of row weights.")]
Convert = Annotated[
    bool, typer.Option("--convert", help="Rewrite the data in the model's coding: lower for lower, upper for upper.")
]


def load_machine(path: Path, seed: int | None = None) -> Any:
    """Read a model file of any kind; from now on the first compilation is announced."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.estimators import load

    announce_compilation()
    return load(path).set_params(random_state=seed)


def parse_coding(text: str) -> Any:
    """Turn the value of ``--coding`` into what `Dataset.read` takes: a name, or a pair of labels.

    Examples
    --------
    >>> from gibbsian.cli.options import parse_coding
    >>> parse_coding("spin"), parse_coding("categorical"), parse_coding("disagree,agree"), parse_coding("1,2")
    ('spin', 'categorical', ('disagree', 'agree'), (1, 2))
    """
    from gibbsian.domain import CODINGS, MANY_VALUED
    from gibbsian.errors import CodingError

    if text == "auto" or text in CODINGS or text in MANY_VALUED:
        return text
    labels = [label.strip() for label in text.split(",")]
    if len(labels) != 2 or "" in labels:
        raise CodingError(
            "is not known",
            f"use one of auto, {', '.join((*CODINGS, *MANY_VALUED))}, or two labels LOW,HIGH with a comma between",
            argument="coding",
            value=text,
        )
    return tuple(int(label) if label.lstrip("+-").isdigit() else label for label in labels)


def parse_hidden(text: str) -> list[int]:
    """Turn the value of ``--hidden`` into the numbers of hidden units, layer by layer.

    Examples
    --------
    >>> from gibbsian.cli.options import parse_hidden
    >>> parse_hidden("64"), parse_hidden("64,32")
    ([64], [64, 32])
    """
    from gibbsian.errors import ArgumentError

    words = [word.strip() for word in text.split(",")]
    if not all(word.isdigit() and int(word) > 0 for word in words):
        raise ArgumentError(f"--hidden {text} must be a whole number such as 64, or several with commas between")
    return [int(word) for word in words]


def parse_values(text: str) -> list[float]:
    """Turn the value of ``--values`` into numbers.

    Examples
    --------
    >>> from gibbsian.cli.options import parse_values
    >>> parse_values("-1,0,1")
    [-1.0, 0.0, 1.0]
    """
    from gibbsian.errors import ArgumentError

    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ArgumentError(f"--values {text} must be numbers with commas between, such as -1,0,1") from None


def parse_categories(texts: list[str]) -> Any:
    """Turn the values of ``--categories`` into what `Dataset.read` takes: labels of all columns, or by column.

    Examples
    --------
    >>> from gibbsian.cli.options import parse_categories
    >>> parse_categories(["low,mid,high"])
    ['low', 'mid', 'high']
    >>> parse_categories(["size=s,m,l", "hair=red,brown"])
    {'size': ['s', 'm', 'l'], 'hair': ['red', 'brown']}
    """
    from gibbsian.errors import ArgumentError

    listed = {}
    for text in texts:
        column, found, labels = text.rpartition("=")
        listed[column] = [label.strip() for label in labels.split(",")]
        if "" in listed[column] or (found and not column) or (not column and len(texts) > 1):
            raise ArgumentError(f"--categories {text} must be A,B,... once, or COL=A,B,... for each column")
    return listed.get("") or listed
