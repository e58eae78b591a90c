"""Shell completion: the scripts, and what a shell is given."""

import os
import shutil
import subprocess

import pytest
from click.shell_completion import BashComplete

from cli_runner import answer, printed, refused
from gibbsian.cli.main import GROUPS, app


def completed(*words: str) -> list[str]:
    """Return what is offered for the last of the words."""
    complete = BashComplete(app, {}, "gibbsian", "_GIBBSIAN_COMPLETE")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell):
    script = printed("completion", shell)
    assert "_GIBBSIAN_COMPLETE" in script
    assert answer("completion", shell) == {"shell": shell, "script": script}
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script.encode(), check=True, env={"PATH": os.environ["PATH"]})


def test_an_unknown_shell_is_refused():
    assert "bash" in refused("completion", "csh", code=2)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("sc",), {"score"}),
        (("fit", "d.csv", "--model", "po"), {"potts"}),
        (("fit", "d.csv", "-m", "gaussian"), {"gaussian", "gaussian-mixture"}),
        (("fit", "d.csv", "--learner", "smci"), {"smci", "smci-pcd"}),
        (("fit", "d.csv", "--learner", "pcd", "--optimizer", "an"), {"anderson"}),
        (("fit", "d.csv", "--learner", "pcd", "--n-ch"), {"--n-chains"}),
        (("fit", "d.csv", "--model", "potts", "--temp"), {"--temperature"}),
        (("compare", "d.csv", "--learners", "mle,mp"), {"mle,mpf", "mle,mple"}),
        (("fit", "d.csv", "--model", "no-such", "--see"), {"--seed"}),
        (("completion", "z"), {"zsh"}),
    ],
)
def test_commands_flags_models_and_learners_are_completed(words, offered):
    assert set(completed(*words)) == offered


def test_files_are_completed():
    complete = BashComplete(app, {}, "gibbsian", "_GIBBSIAN_COMPLETE")
    assert [item.type for item in complete.get_completions(["show"], "m")] == ["file"]


def test_the_help_is_one_screen_and_names_every_command():
    lines = printed("--help").splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    for title, commands in GROUPS.items():
        assert f"{title}:" in lines
        assert all(any(line.startswith(f"  {command.name} ") for line in lines) for command in commands)


@pytest.mark.parametrize("name", [name for name in app.commands if name not in ("fit", "compare", "report")])
def test_the_help_of_every_other_command_is_one_screen(name):
    assert len(printed(name, "--help").splitlines()) <= 32
