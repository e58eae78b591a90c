"""Flags that are declared settings: of a model, of the learner that it names, of the learner's optimiser."""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gibbsian.cli.guard import Command, manners, speller
from gibbsian.errors import GibbsianError, spelled
from gibbsian.estimators.known import ESTIMATORS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gibbsian.registry import Registry
    from gibbsian.settings import Setting

DEFAULT_MODEL = "pairwise"
# Settings whose values are parts with settings of their own, the outer one first.
ROLES = ("learner", "optimizer")
# Settings of a run, which an estimator has beside a learner that has them too.
OF_THE_RUN = ("max_iter", "tol")
# What the help of a fit is grouped by; the first group also takes what none of them names.
GROUPS = {
    "Data": (
        "drop",
        "weights",
        "coding",
        "binarize",
        "categories",
        "values",
        "one_hot",
        "complete_rows",
        "memory",
        "cluster",
    ),
    "Learning": ("learners", "validation_fraction", "seed", "checkpoint", "every", "resume"),
    "Output": ("out", "json", "quiet"),
    "Model": ("model",),
}
HELP_ALL = "--help-all"
_PARTS = "gibbsian.parts"
_OPTIONS = "gibbsian.options"
_SENTENCE_END = re.compile(r"\. (?=[A-Z'])|(?<!\.); ")


# -- who declares settings --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Owner:
    """A model, or a learner or optimiser inside it.

    Parameters
    ----------
    role, name : str
        The flag that names it, and its name there.
    factory : type
        Its class.
    own : object, optional
        What it is where no flag names it.
    """

    role: str
    name: str
    factory: Any
    own: Any = None

    @property
    def settings(self) -> dict[str, Setting]:
        """What it declares."""
        from gibbsian.settings import settings_of

        return settings_of(self.factory)

    def default(self, setting: str) -> Any:
        """Return the value of a setting where nothing is said."""
        if self.own is not None:
            return getattr(self.own, setting)
        return next(field.default for field in dataclasses.fields(self.factory) if field.name == setting)

    def made(self, settings: dict[str, Any]) -> Any:
        """Return the part with these settings."""
        return self.factory(**settings) if self.own is None else dataclasses.replace(self.own, **settings)


def registry_of(role: str) -> Registry:
    """Return where the parts of a role are registered."""
    if role == "learner":
        from gibbsian.learning.base import LEARNERS

        return LEARNERS
    from gibbsian.learning.optimizers import OPTIMIZERS

    return OPTIMIZERS


def parts_of(args: Sequence[str], roles: Sequence[str] = ROLES) -> Iterator[Owner]:
    """Find the model that the arguments name, and the learner and optimiser inside it."""
    name = _typed(args, "--model", "-m") or DEFAULT_MODEL
    part = Owner("model", name, ESTIMATORS.factory(name))
    yield part
    for role in roles:
        if role not in part.settings:
            return
        chosen = _typed(args, f"--{role}") or part.default(role)
        if isinstance(chosen, str) and chosen == "auto":
            chosen = part.factory.auto_learner or chosen
        elif isinstance(chosen, str) and role == "learner":
            part.factory.check_learner(chosen)
        if dataclasses.is_dataclass(chosen):
            part = Owner(role, type(chosen).__name__, type(chosen), chosen)
        elif isinstance(chosen, str) and chosen != "auto":
            part = Owner(role, chosen, registry_of(role).factory(chosen))
        else:
            return
        yield part


def _typed(args: Sequence[str], *flags: str) -> str | None:
    """Return the value of a flag among arguments whose other flags are not known yet."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(*flags, dest="value")
    try:
        return parser.parse_known_args(list(args))[0].value
    except argparse.ArgumentError:  # its value is missing, which is said later
        return None


def assembled(parts: Sequence[Owner], given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of the model; parts inside it are names, or built where flags of their own were given."""
    inner: dict[str, Any] = {}
    for place in range(len(parts) - 1, 0, -1):
        part, above = parts[place], parts[:place]
        own = {name: value for name, value in {**given, **inner}.items() if name in part.settings}
        alone = [name for name in own if not any(name in outer.settings for outer in above)]
        inner = {part.role: part.made(own)} if alone or inner else {}
    known = parts[0].settings
    brought = parts[1].settings if inner else {}
    return {
        name: value
        for name, value in {**given, **inner}.items()
        if name in known and (name not in brought or name in OF_THE_RUN)
    }


# -- options ----------------------------------------------------------------------------------------------------------
class ModelCommand(Command):
    """A command whose options are its own and those of the model that they name."""

    roles: Sequence[str] = ROLES
    left_out: Sequence[str] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find out which settings there are, then read the arguments."""
        asked = _typed(args, "--model", "-m") or _typed(args, "--learner")
        if asked or not set(args) & set(ctx.help_option_names):
            ctx.meta[_PARTS], ctx.meta[_OPTIONS] = [], []
            # a shell that completes asks without mistakes being the answer
            with suppress(GibbsianError) if ctx.resilient_parsing else manners():
                for part in parts_of(args, self.roles):
                    ctx.meta[_PARTS].append(part)
                    ctx.meta[_OPTIONS] += list(self._generated(part, self.get_params(ctx), HELP_ALL in args))
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            named = " ".join(f"--{part.role} {part.name}" for part in parts_in(ctx))
            meant = f": did you mean {' or '.join(error.possibilities)}?" if error.possibilities else ""
            raise click.UsageError(f"{error.option_name} does not belong to {named}{meant}", ctx) from None

    def _generated(self, part: Owner, known: Sequence[click.Parameter], whole: bool) -> Iterator[click.Option]:
        """Make the options of a part, but those that the command has already or leaves out."""
        taken = {*(option.name for option in known), *self.left_out}
        for name, setting in part.settings.items():
            if setting.flag and name not in taken:
                yield _option(name, setting, part, whole)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options and those of the settings."""
        *own, help_option = super().get_params(ctx)
        return [*own, *ctx.meta.get(_OPTIONS, ()), _help_all, help_option]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what there is to choose: models, then the settings of the one that is named, or all of it."""
        named, whole = _PARTS in ctx.meta, ctx.meta.get(HELP_ALL, False)
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        if whole or not named:
            self._write_own(ctx, formatter, whole)
        if named:
            self._write_settings(ctx, formatter)
        else:
            for name, about in ESTIMATORS.abouts().items():
                formatter.write(f"    {name:18}{about}\n")
        shown = f"gibbsian {self.name}" + ("" if named else " --model NAME [--learner NAME]")
        if not whole:
            formatter.write(f"\n{shown} {'--help-all: all flags' if named else '--help: their settings'}\n")

    def _write_own(self, ctx: click.Context, formatter: click.HelpFormatter, whole: bool) -> None:
        """Write the command's own options by what they are about, the usual ones or all."""
        group_of = {name: title for title, names in GROUPS.items() for name in names}
        groups: dict[str, list[click.Option]] = {title: [] for title in GROUPS}
        for option in self.params:
            if isinstance(option, click.Option) and (whole or isinstance(option, BriefOption)):
                groups[group_of.get(option.name or "", next(iter(GROUPS)))].append(option)
        _write_groups(ctx, formatter, groups)

    def _write_settings(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the settings of the model, of its learner and of the learner's optimiser."""
        groups: dict[str, list[click.Option]] = {}
        for option in ctx.meta[_OPTIONS]:
            groups.setdefault(f"Settings of --{option.part.role} {option.part.name}", []).append(option)
        _write_groups(ctx, formatter, groups)


def _write_groups(ctx: click.Context, formatter: click.HelpFormatter, groups: dict[str, list[click.Option]]) -> None:
    for title, options in groups.items():
        if options:
            with formatter.section(title):
                formatter.write_dl([record for option in options if (record := option.get_help_record(ctx))])


def _print_all(ctx: click.Context, param: click.Parameter, given: bool) -> None:
    """Print the whole help and leave."""
    if given and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


_help_all = click.Option(
    [HELP_ALL], is_flag=True, is_eager=True, expose_value=False, callback=_print_all, help="Show all flags and exit."
)


def parts_in(ctx: click.Context) -> list[Owner]:
    """Return the parts that the arguments of a command named."""
    return ctx.meta[_PARTS]


class BriefOption(click.Option):
    """An option that stands in the short help too."""


class SettingOption(click.Option):
    """An option that is a declared setting of a part."""

    def __init__(self, part: Owner, **attributes: Any):
        super().__init__(**attributes)
        self.part = part


class SettingType(click.ParamType):
    """The values of a setting, read from text and checked as the declaration says."""

    name = "value"

    def __init__(self, setting_name: str, setting: Setting):
        self.setting_name = setting_name
        self.setting = setting

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the words, or the names of parts, that begin so; where there are none a file may be meant."""
        names = registry_of(self.setting_name).names() if self.setting_name in ROLES else []
        words = begun_with(incomplete, [*map(str, self.setting.words), *names])
        return words or super().shell_complete(ctx, param, incomplete)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value that a text stands for, or refuse it."""
        from gibbsian.settings import check_value

        read = _value(value, self.setting)
        check_value(self.setting_name, read, self.setting)
        return read


def _value(text: str, setting: Setting) -> Any:
    """Return the declared word or the number that a text stands for; a free setting may have several numbers."""
    for word in setting.words:
        if str(word) == text:
            return word
    parts = [_number(part) for part in text.split(",")]
    if len(parts) > 1 and setting.kind == "any" and all(isinstance(part, int | float) for part in parts):
        return tuple(parts)
    return _number(text)


def _number(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def begun_with(text: str, names: Iterable[str]) -> list[CompletionItem]:
    """Return the names that begin so, of several with commas between by the last."""
    from click.shell_completion import CompletionItem

    before, comma, begun = text.rpartition(",")
    return [CompletionItem(f"{before}{comma}{name}") for name in names if name.startswith(begun)]


def _option(name: str, setting: Setting, part: Owner, whole: bool) -> SettingOption:
    """Return the option of a setting, with the whole of its help or the first sentence."""
    flag = name.replace("_", "-")
    common: dict[str, Any] = {"part": part, "default": None, "help": _help(name, setting, part, whole)}
    if setting.kind == "flag":
        return SettingOption(param_decls=[f"--{flag}/--no-{flag}", name], is_flag=True, **common)
    return SettingOption(
        param_decls=[f"--{flag}", name], type=SettingType(name, setting), metavar=_metavar(name, setting), **common
    )


def _metavar(name: str, setting: Setting) -> str:
    kind = {"number": ["NUMBER"], "whole": ["N"], "choice": [], "any": ["NAME" if name in ROLES else "VALUE"]}
    return "|".join([*kind[setting.kind], *map(str, setting.words)])


def _help(name: str, setting: Setting, part: Owner, whole: bool) -> str:
    text = spelled(setting.help, speller())
    default = part.default(name)
    facts = [f"{default} if not given"] if isinstance(default, str | int | float) else []
    if not whole:
        text = _SENTENCE_END.split(text)[0].rstrip(".")
        return f"{text} [{default}]" if facts else text
    if name in ROLES:
        text += f" One of {', '.join(registry_of(name).names())}."
    if not (math.isinf(setting.low) and math.isinf(setting.high)):
        facts.insert(0, setting.range)
    return f"{text} [{'; '.join(facts)}]" if facts else text
