"""From exceptions and warnings to one sentence on stderr and an exit code."""

from __future__ import annotations

import ast
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from gibbsian.errors import GibbsianError, GibbsianWarning, StorageError

FAILED, BUG, INTERRUPTED = 1, 70, 130
# Calls and arguments of Python, and the options that do the same.
_CALLS = {
    "complete_rows": "complete_rows",
    "convert": "convert",
    "Labels": "categories",
    "OneHot": "one_hot",
    "Threshold": "binarize",
    "Values": "values",
}
_SAME = {"expectation": "method", "learner": "learners", "transition": "method", "weight_column": "weights"}
_MODELS = {
    "BoltzmannMachine": "pairwise",
    "HigherOrderBoltzmannMachine": "higher-order",
    "OrdinalMachine": "ordinal",
    "PottsMachine": "potts",
}


class Command(click.Command):
    """A command whose mistakes end in one sentence and a non-zero exit, never in a traceback."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        try:
            with manners():
                return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # to name the command in the sentence
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with manners():
            super().invoke(ctx)
            sys.stdout.flush()  # a reader that has gone is noticed here and not while Python shuts down


@contextmanager
def manners() -> Iterator[None]:
    """Say errors and warnings in a line each, in the flags of the command that runs."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", GibbsianWarning)
            warnings.showwarning = _show_warning
            yield
    except (click.ClickException, click.exceptions.Exit):
        raise
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("GIBBSIAN_TRACEBACK"):
            raise
        raise click.exceptions.Exit(_explain(error)) from None


# -- spelling ---------------------------------------------------------------------------------------------------------
def speller() -> Callable[[str], str]:
    """Return what spells code in the flags of the command that runs, and of `fit`, which made the model."""
    from gibbsian.cli.fit import fit

    context = click.get_current_context(silent=True)
    known = [*fit.params, *([] if context is None else context.command.get_params(context))]
    return partial(in_flags, options={option.name: option for option in known if isinstance(option, click.Option)})


def in_flags(code: str, options: Mapping[str | None, click.Option]) -> str:
    """Spell a piece of Python as the command line does; what has no option stays as it is."""
    try:
        call: Any = ast.parse(f"_({code})", mode="eval").body
        words = [_flag_of(argument, options) for argument in call.args]
        words += [_setting(part.arg, part.value, options) for part in call.keywords]
    except (SyntaxError, KeyError, AttributeError):  # no code, or no option
        return code
    return " ".join(words)


def _flag_of(node: Any, options: Mapping[str | None, click.Option]) -> str:
    """Spell a name, or a call that an option stands for."""
    if not isinstance(node, ast.Call):
        name = ast.unparse(node)
        return f"--model {_MODELS[name]}" if name in _MODELS else _longest(_named(name, options))
    option = options[_CALLS[_called(node)]]
    return " ".join([_longest(option), *([] if option.is_flag else map(_literal, node.args))])


def _called(call: ast.Call) -> str:
    """Return the last name of what is called."""
    return ast.unparse(call.func).rpartition(".")[-1]


def _named(name: str | None, options: Mapping[str | None, click.Option]) -> click.Option:
    return options[name if name in options or name is None else _SAME[name]]


def _setting(name: str | None, value: object, options: Mapping[str | None, click.Option]) -> str:
    """Spell ``name=value``."""
    if isinstance(value, ast.Call):
        if _called(value) in _CALLS:
            return _flag_of(value, options)
        words = [_setting(name, argument, options) for argument in value.args]
        return " ".join([*words, *(_setting(part.arg, part.value, options) for part in value.keywords)])
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        own = [shlex.quote(f"{_literal(key)}={_own_coding(coding)}") for key, coding in pairs]
        return " ".join(f"{_longest(options['column'])} {column}" for column in own)
    option = _named(name, options)
    if isinstance(value, ast.Constant) and isinstance(value.value, bool):
        return _longest(option) if value.value else option.secondary_opts[0]
    return f"{_longest(option)} {_literal(value)}".rstrip()


def _own_coding(node: object) -> str:
    """Spell the coding of one column."""
    return f">{_literal(node.args[0])}" if isinstance(node, ast.Call) else _literal(node)


def _longest(option: click.Option) -> str:
    return max(option.opts, key=len)


def _literal(node: Any) -> str:
    if isinstance(node, ast.Constant):
        return "..." if node.value is ... else str(node.value)
    if isinstance(node, ast.List | ast.Tuple):
        return ",".join(map(_literal, node.elts))
    return ast.unparse(node)


# -- saying -----------------------------------------------------------------------------------------------------------
def printable(text: str) -> str:
    """Write characters that would steer a terminal as their escapes; new lines and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


def tell(text: str = "") -> None:
    """Print on stdout, where names of columns and files are text and never steer the terminal."""
    print(printable(text))


def say(sentence: str) -> None:
    """Print one line on stderr."""
    print(printable(" ".join(sentence.split())), file=sys.stderr, flush=True)


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """Print our warnings as a line; others the way Python does."""
    if isinstance(message, GibbsianWarning):
        say(f"warning: {message.sentence(speller())}")
    else:
        print(printable(warnings.formatwarning(message, category, *where[:2])), file=sys.stderr, end="")


def _explain(error: BaseException) -> int:
    """Say what went wrong in one line and return the exit code for it."""
    if isinstance(error, KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if isinstance(error, GibbsianError):
        say(f"error: {error.sentence(speller())}")
        return FAILED
    if isinstance(error, OSError) and not isinstance(error, StorageError):
        say(f"error: {f'{error.filename}: {error.strerror}' if error.filename else error}")
        return FAILED
    if isinstance(error, MemoryError):
        say("error: not enough memory: use fewer variables or rows, or a sparser graph")
        return FAILED
    say(f"error: {type(error).__name__}: {error}; this is a bug; run with GIBBSIAN_TRACEBACK=1 to see where")
    return BUG
