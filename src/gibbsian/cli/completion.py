"""``gibbsian completion``: the script by which a shell completes commands, flags, names and files."""

from __future__ import annotations

import click

from gibbsian.cli import options
from gibbsian.cli.guard import Command
from gibbsian.cli.output import print_json

SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@options.json
@click.pass_context
def completion(ctx: click.Context, shell: str, json: bool) -> None:
    """Print the script that lets SHELL complete commands, flags, models, learners and files.

    For bash: add  eval "$(gibbsian completion bash)"  to ~/.bashrc.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None  # a choice of the three
    script = found(ctx.find_root().command, {}, "gibbsian", "_GIBBSIAN_COMPLETE").source()
    if json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script, nl=False)
