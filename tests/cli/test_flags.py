"""Flags are the declared settings of the model, of its learner and of the learner's optimiser."""

from __future__ import annotations

import re

import pytest

import gibbsian as gb
from cli_runner import printed, refused, run
from gibbsian.cli.fit import fit
from gibbsian.cli.flags import assembled, parts_of
from gibbsian.estimators.known import ESTIMATORS
from gibbsian.settings import settings_of

HAND_WRITTEN = {option.name for option in fit.params}


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_setting_of_every_model_is_a_flag(name):
    text = run("fit", "--model", name, "--help").stdout
    declared = settings_of(ESTIMATORS.factory(name))
    flags = [setting for setting in declared if declared[setting].flag and setting not in HAND_WRITTEN]
    assert flags
    assert [setting for setting in flags if f"--{setting.replace('_', '-')}" not in text] == []


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_flags_that_a_model_does_not_have_are_refused(name, tmp_path):
    command = ("fit", tmp_path / "absent.csv", "--out", tmp_path / "m.gibbs", "--model", name, "--magic", "1")
    sentence = refused(*command, code=2)
    assert f"--magic does not belong to --model {name}" in sentence
    assert "see gibbsian fit --help" in sentence


def test_a_mistyped_flag_is_put_right(tmp_path):
    command = ("fit", tmp_path / "absent.csv", "--out", tmp_path / "m.gibbs", "--lerner", "mle")
    assert "--lerner does not belong to --model pairwise: did you mean --learner?" in refused(*command, code=2)


def test_an_unknown_model_is_refused_with_the_choices(tmp_path):
    sentence = refused("fit", tmp_path / "x.csv", "--out", tmp_path / "m", "--model", "magic")
    assert sentence.startswith("error: --model magic is not known: use one of ")
    assert "higher-order, " in sentence


def test_the_help_of_fit_is_one_screen_with_all_models():
    lines = printed("fit", "--help").splitlines()
    assert len(lines) <= 42
    assert [line for line in lines if re.fullmatch("[A-Z][a-z]+:", line)] == ["Data:", "Learning:", "Output:", "Model:"]
    for name, about in ESTIMATORS.abouts().items():
        assert f"    {name:18}{about}" in lines
        assert len(about) > 10
    assert not any("--max-iter" in line for line in lines)


def test_the_help_of_a_model_has_ranges_choices_and_defaults():
    short = printed("fit", "--model", "pairwise", "--help")
    assert "Whether the model has biases [True]" in short
    assert len(short.splitlines()) <= 40
    assert "--drop" not in short
    text = " ".join(printed("fit", "--model", "pairwise", "--help-all").split())
    assert "--drop COL" in text
    assert "--bias / --no-bias Whether the model has biases." in text
    assert "--l2 NUMBER" in text
    assert "[at least 0; 0.0 if not given]" in text
    assert "One of cd, em, " in text


def test_the_help_names_a_learner_s_own_settings():
    assert "Settings of --learner pcd" in printed("fit", "--model", "pairwise", "--learner", "pcd", "--help")


@pytest.mark.parametrize("name", gb.BoltzmannMachine.learners)
def test_every_learner_can_be_named(name):
    assert run("fit", "--model", "pairwise", "--learner", name, "--help").exit_code == 0


def test_a_learner_stays_a_name_unless_its_own_flags_are_given():
    parts = list(parts_of(["data.csv", "--learner", "mple", "--l2", "0.1"]))
    assert assembled(parts, {"learner": "mple", "l2": 0.1}) == {"learner": "mple", "l2": 0.1}


def test_a_learner_is_built_with_its_own_and_shared_flags():
    arguments = ["data.csv", "--learner", "mple", "--optimizer", "adam", "--learning-rate", "0.5"]
    given = {"learner": "mple", "optimizer": "adam", "learning_rate": 0.5, "l2": 0.1, "max_iter": 7, "bias": False}
    settings = assembled(list(parts_of(arguments)), given)
    learner = settings.pop("learner")
    assert settings == {"max_iter": 7, "bias": False}
    assert learner == gb.learning.LEARNERS.factory("mple")(
        optimizer=gb.learning.optimizers.Adam(learning_rate=0.5), l2=0.1
    )


def test_compare_has_the_flags_of_the_model_without_the_learner(tmp_path):
    text = printed("compare", "--model", "potts", "--help")
    assert "--graph" in text
    assert "--learner " not in text
    assert "--learner does not belong" in refused("compare", tmp_path / "x.csv", "--learner", "mle", code=2)
