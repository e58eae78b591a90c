"""Flags that are declared settings: of a model, of the learner that it names, of the learner's optimiser."""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gibbsian.cli.guard import Command, manners, speller
from gibbsian.errors import spelled
from gibbsian.estimators.known import ESTIMATORS

if TYPE_CHECKING:
    from gibbsian.registry import Registry
    from gibbsian.settings import Setting

DEFAULT_MODEL = "pairwise"
# Settings whose values are parts with settings of their own, the outer one first.
ROLES = ("learner", "optimizer")
# Settings of a run, which an estimator has beside a learner that has them too.
OF_THE_RUN = ("max_iter", "tol")
_PARTS = "gibbsian.parts"
_OPTIONS = "gibbsian.options"


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
        from gibbsian.learners.base import LEARNERS

        return LEARNERS
    from gibbsian.optimizers import OPTIMIZERS

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
            chosen = getattr(part.factory, "auto_learner", "") or chosen
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
        names_model = _typed(args, "--model", "-m") is not None
        if names_model or not set(args) & set(ctx.help_option_names):
            ctx.meta[_PARTS], ctx.meta[_OPTIONS] = [], []
            with manners():
                for part in parts_of(args, self.roles):
                    ctx.meta[_PARTS].append(part)
                    ctx.meta[_OPTIONS] += list(self._generated(part, self.get_params(ctx)))
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            named = " ".join(f"--{part.role} {part.name}" for part in parts_in(ctx))
            meant = f": did you mean {' or '.join(error.possibilities)}?" if error.possibilities else ""
            raise click.UsageError(f"{error.option_name} does not belong to {named}{meant}", ctx) from None

    def _generated(self, part: Owner, known: Sequence[click.Parameter]) -> Iterator[click.Option]:
        """Make the options of a part, but those that the command has already or leaves out."""
        taken = {*(option.name for option in known), *self.left_out}
        for name, setting in part.settings.items():
            if setting.flag and name not in taken:
                yield _option(name, setting, part)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options and those of the settings."""
        *own, help_option = super().get_params(ctx)
        return [*own, *ctx.meta.get(_OPTIONS, ()), help_option]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help of the model that is named, or the names of all models."""
        if _PARTS in ctx.meta:
            super().format_help(ctx, formatter)
            return
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        formatter.write(f"\nModels (gibbsian {self.name} --model NAME --help lists all flags of one):\n")
        for name, about in ESTIMATORS.abouts().items():
            formatter.write(f"  {name:18}{about}\n")
        brief = [option for option in self.params if getattr(option, "brief", False)]
        with formatter.section("Options"):
            formatter.write_dl([record for option in brief if (record := option.get_help_record(ctx))])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, the command's own first and then those of each part."""
        own = [option for option in self.params if isinstance(option, click.Option)]
        groups: dict[str, list[click.Option]] = {"Options": own}
        for option in ctx.meta[_OPTIONS]:
            groups.setdefault(f"Settings of --{option.part.role} {option.part.name}", []).append(option)
        for title, options in groups.items():
            with formatter.section(title):
                formatter.write_dl([record for option in options if (record := option.get_help_record(ctx))])


def parts_in(ctx: click.Context) -> list[Owner]:
    """Return the parts that the arguments of a command named."""
    return ctx.meta[_PARTS]


class BriefOption(click.Option):
    """An option that stands in the short help too."""

    brief = True


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


def _option(name: str, setting: Setting, part: Owner) -> SettingOption:
    """Return the option of a setting."""
    flag = name.replace("_", "-")
    common: dict[str, Any] = {"part": part, "default": None, "help": _help(name, setting, part)}
    if setting.kind == "flag":
        return SettingOption(param_decls=[f"--{flag}/--no-{flag}", name], is_flag=True, **common)
    return SettingOption(
        param_decls=[f"--{flag}", name], type=SettingType(name, setting), metavar=_metavar(name, setting), **common
    )


def _metavar(name: str, setting: Setting) -> str:
    kind = {"number": ["NUMBER"], "whole": ["N"], "choice": [], "any": ["NAME" if name in ROLES else "VALUE"]}
    return "|".join([*kind[setting.kind], *map(str, setting.words)])


def _help(name: str, setting: Setting, part: Owner) -> str:
    text = spelled(setting.help, speller())
    if name in ROLES:
        text += f" One of {', '.join(registry_of(name).names())}."
    bounded = not (math.isinf(setting.low) and math.isinf(setting.high))
    default = part.default(name)
    facts = [setting.range] if bounded else []
    facts += [f"{default} if not given"] if isinstance(default, str | int | float) else []
    return f"{text} [{'; '.join(facts)}]" if facts else text
