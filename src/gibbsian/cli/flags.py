"""The flags of ``gibbsian fit``: what each means. Which model takes which stands in `gibbsian.cli.models`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from gibbsian.errors import ArgumentError

GRAPHS = ("complete", "empty", "chain", "grid:RxC")
# Those that tell hidden units from columns.
HIDDEN_GRAPHS = ("restricted", "semi-restricted")


def _option(kind: Any, help: str, *names: str, metavar: str | None = None, **rules: Any) -> Any:
    return Annotated[kind, typer.Option(*names, help=help, metavar=metavar, show_default=False, **rules)]


# A flag that is not given is None (a switch: False), and then the model's own default holds.
FLAGS: dict[str, Any] = {
    # -- what interacts
    "graph": _option(
        str | None,
        "Which columns interact, complete if not given; FILE is a CSV with two columns of names, one edge a line. "
        "With hidden units (h0, h1, ...) also restricted or semi-restricted.",
        metavar="|".join((*GRAPHS, "FILE")),
    ),
    "order": _option(int | None, "Every clique of up to this many columns interacts; 3 if not given."),
    "cliques": _option(
        Path | None, "The cliques that interact: a CSV of column names, one clique a line.", metavar="FILE"
    ),
    "hidden": _option(
        str | None, "Number of hidden units; of a deep machine those of each layer, from below.", metavar="N[,N,...]"
    ),
    "no_bias": _option(bool, "Leave the biases out.", "--no-bias"),
    "temperature": _option(float | None, "T in P(x) = exp(-E(x)/T) / Z; 1 if not given."),
    # -- how it is learned
    "learner": _option(str | None, "auto, or a learner by name (mle, mple, 1-smci, ...); a wrong name lists them all."),
    "clamped": _option(
        str | None,
        "How hidden units and missing cells are averaged over given a row; auto if not given.",
        metavar="auto|exact|chains|spatial|mean-field",
    ),
    "region": _option(
        str | None, "What `--learner smci` or `smci-pcd` sums over: 1, 2, ..., s2 or forest.", metavar="K|s2|forest"
    ),
    "optimizer": _option(str | None, "lbfgs, ascent, anderson, ...; by default the learner's own."),
    "rate": _option(float | None, "Step size of the optimizer, of minibatches, or of online k-means."),
    "algorithm": _option(str | None, "greedy, newton, or dense (all functions, held by --l2 alone)."),
    "epsilon": _option(float | None, "Stop when no move lowers the cost by as much."),
    "l1": _option(float | None, "Penalty l1 sum|coupling|."),
    "l2": _option(float | None, "Penalty (l2/2) sum parameter^2."),
    "l2_growth": _option(float | None, "Factor on l2 for each variable more in a function.", "--l2-growth"),
    "mdl_scale": _option(float | None, "Factor on the description lengths; 1 is that of TA22.", "--mdl-scale"),
    "start": _option(str | None, "Begin at a mean-field solution, e.g. sessak-monasson.", metavar="NAME"),
    "max_iter": _option(int | None, "Most steps."),
    "tol": _option(
        float | None, "Converged when no entry of the gradient is larger, or the free energy falls by no more."
    ),
    # -- how the table is read
    "coding": _option(
        str | None, "auto, spin, binary, yes/no, y/n, true/false, two labels LOW,HIGH, categorical, or values."
    ),
    "values": _option(
        str | None, "The numbers that all columns take, such as -1,0,1; the coding is then values.", metavar="A,B,..."
    ),
    "categories": _option(
        list[str] | None,
        "The values of a column in order, also those that do not occur; without COL= of all columns (repeatable).",
        metavar="[COL=]A,B,...",
    ),
    "one_hot": _option(str | None, "Put dummy columns such as hair_red together at this separator.", metavar="SEP"),
    "binarize": _option(float | None, "Numbers above T become 1, all others 0.", metavar="T"),
    "complete_rows": _option(bool, "Use only the rows without missing cells.", "--complete-rows"),
    "memory": _option(str | None, "Leave the rows on disk and learn by minibatches within SIZE.", metavar="SIZE"),
    "held_out": _option(float | None, "Keep this share of the rows out and score them.", metavar="SHARE"),
    # -- classes of a mixture
    "components": _option(int | None, "Number of classes; 2 if not given.", metavar="K"),
    "kappa": _option(str | None, "Concentration: free, tied, or a number.", metavar="free|tied|NUMBER"),
    "assignment": _option(str | None, "Share each row among the classes (soft) or give it to the best (hard)."),
    "variance": _option(str | None, "Of the classes: a number, or free or tied.", metavar="NUMBER|free|tied"),
    "anneal": _option(bool, "Lower the variance step by step, which avoids most poor solutions.", "--anneal"),
    "no_normalize": _option(bool, "Take rows as they are; by default they are scaled to norm 1.", "--no-normalize"),
    "n_init": _option(int | None, "Starts, of which the best is kept.", metavar="N"),
    "epochs": _option(int | None, "How often all rows are shown.", metavar="N"),
    "smoothing": _option(float | None, "Rows of each value added to every class."),
    # -- layers of units
    "visible": _option(
        str | None,
        "Kind of the visible units; by default two values as they are coded, or categories.",
        metavar="binary|spin|gaussian|categorical",
    ),
    "batch_size": _option(int | None, "Rows of a minibatch.", metavar="N"),
    "free_phase": _option(str | None, "How the model's moments are found.", metavar="pcd|cd|smci|tempering"),
    "chain_steps": _option(int | None, "Steps of the chains for each minibatch.", metavar="K"),
    "chains": _option(int | None, "How many chains the free phase runs.", metavar="N"),
    "momentum": _option(float | None, "Share of the last step that is made again."),
    "schedule": _option(str | None, "How the rate falls: linear (to zero at the end) or constant."),
    "plain": _option(bool, "Plain gradient instead of the centred one.", "--plain"),
    "pretrain": _option(int | None, "Epochs of each layer alone before all learn together; 10 if not given."),
    "fine_tune": _option(int | None, "Epochs of all layers together after each alone; 10 if not given."),
    # -- progress
    "checkpoint": _option(Path | None, "Keep the progress of the fit in this file.", metavar="FILE"),
    "checkpoint_every": _option(int | None, "Steps between two checkpoints; 50 if not given.", metavar="K"),
    "resume": _option(bool, "Continue from the checkpoint if there is one.", "--resume"),
    # -- any model
    "drop": _option(list[str] | None, "A column to leave out (repeatable).", metavar="COL"),
    "weights": _option(str | None, "Column of row weights.", metavar="COL"),
}


def as_flag(name: str) -> str:
    """Return the flag as it is typed.

    Examples
    --------
    >>> from gibbsian.cli.flags import as_flag
    >>> as_flag("max_iter")
    '--max-iter'
    """
    return f"--{name.replace('_', '-')}"


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were typed.

    Examples
    --------
    >>> from gibbsian.cli.flags import given
    >>> given({"l1": None, "l2": 0.0, "resume": False, "drop": []})
    {'l2': 0.0}
    """
    return {name: value for name, value in values.items() if value is not None and value is not False and value != []}


def refuse_foreign(flags: Iterable[str], model: str, takes: Iterable[str]) -> None:
    """Refuse flags that the chosen model does not take.

    Examples
    --------
    >>> from gibbsian.cli.flags import refuse_foreign
    >>> refuse_foreign(["order"], "potts", ["graph", "l2"])
    Traceback (most recent call last):
        ...
    gibbsian.errors.ArgumentError: --order does not belong to --model potts, which takes --graph, --l2: leave it out
    """
    known = list(takes)
    foreign = [flag for flag in flags if flag not in known]
    if foreign:
        names, them = ", ".join(map(as_flag, foreign)), "them" if len(foreign) > 1 else "it"
        verb = "do" if len(foreign) > 1 else "does"
        raise ArgumentError(
            f"{names} {verb} not belong to --model {model}, which takes {', '.join(map(as_flag, known))}",
            f"leave {them} out",
        )


def with_flags(
    command: Callable[..., None], names: Iterable[str], owners: Mapping[str, str] | None = None
) -> Callable[..., None]:
    """Give a command the flags of those names; it gets them as keywords. `owners` says whose a flag is, for its help.

    Examples
    --------
    >>> from gibbsian.cli.flags import with_flags
    >>> def command(model: str = "pairwise", **flags): ...
    >>> list(__import__("inspect").signature(with_flags(command, ["order"])).parameters)
    ['model', 'order']
    """
    own = inspect.signature(command, eval_str=True)
    kept = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    extra = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if get_args(FLAGS[name])[0] is bool else None,
            annotation=_owned(FLAGS[name], (owners or {}).get(name, "")),
        )
        for name in names
    ]
    keywords = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in kept]
    command.__signature__ = own.replace(parameters=[*keywords, *extra])  # type: ignore[attr-defined]
    return command


def _owned(annotation: Any, owner: str) -> Any:
    """The same flag with the models that take it in its help."""
    if not owner:
        return annotation
    kind, option = get_args(annotation)
    told = copy(option)
    told.help = f"{option.help} [{owner}]"
    return Annotated[kind, told]
