"""The table of models: every row can be used, and a flag is taken by its owners and refused by all others."""

from __future__ import annotations

import inspect

import pytest

from cli_runner import printed, refused
from gibbsian.cli.flags import FLAGS, as_flag
from gibbsian.cli.models import ANY_MODEL, MODELS, name_of, owners_of_flags

SWITCHES = ("no_bias", "complete_rows", "anneal", "resume", "no_normalize", "plain")


def test_every_flag_has_an_owner_and_every_model_owns_known_flags():
    owned = {flag for kind in MODELS.values() for flag in kind.flags}
    assert owned | set(ANY_MODEL) == set(FLAGS)
    assert set(owners_of_flags()) == owned


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_an_estimator_that_is_known_again(name):
    kind = MODELS[name]
    assert name_of(kind.load()()) == name
    assert "show" not in kind.family.questions
    assert (kind.expected is not None) == ("expect" in kind.family.questions)
    assert all(len(kind.flags) == len(set(kind.flags)) for kind in MODELS.values())


@pytest.mark.parametrize("name", MODELS)
def test_flags_of_other_models_are_refused_before_the_data_is_read(name, tmp_path):
    foreign = [flag for flag in FLAGS if flag not in (*MODELS[name].flags, *ANY_MODEL)]
    assert foreign
    for flag in foreign:
        value = [] if flag in SWITCHES else ["1"]
        command = (
            "fit",
            tmp_path / "absent.csv",
            "--out",
            tmp_path / "m.gibbs",
            "--model",
            name,
            as_flag(flag),
            *value,
        )
        assert f"{as_flag(flag)} does not belong to --model {name}, which takes" in refused(*command)


def test_several_foreign_flags_are_named_together(tmp_path):
    command = (
        "fit",
        tmp_path / "x.csv",
        "--out",
        tmp_path / "m",
        "--model",
        "k-means",
        "--l2",
        "1",
        "--graph",
        "chain",
    )
    assert "--graph, --l2 do not belong to --model k-means" in refused(*command)


def test_an_unknown_model_is_refused_with_the_choices(tmp_path):
    sentence = refused("fit", tmp_path / "x.csv", "--out", tmp_path / "m", "--model", "magic")
    assert sentence.startswith("error: --model magic is not known: use one of pairwise, higher-order, potts, full-span")


def test_the_help_of_fit_names_models_and_owners():
    text = " ".join(printed("fit", "--help").split())
    for name in MODELS:
        assert f"{name}: " in text.replace("- ", "-")
    assert "Every clique of up to this many columns interacts; 3 if not given. [higher-order]" in text.replace(
        "- ", "-"
    )
    assert "A column to leave out (repeatable). --weights" in text


def test_settings_of_estimators_that_flags_stand_for_exist():
    """Flags with the name of a setting must not drift from it."""
    for kind in MODELS.values():
        known = inspect.signature(kind.load().__init__).parameters
        for flag in ("l1", "l2", "tol", "max_iter", "n_init", "epsilon", "algorithm", "kappa", "variance", "order"):
            if flag in kind.flags:
                assert flag in known, (kind.estimator, flag)
