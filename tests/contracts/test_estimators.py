"""The contract of every registered estimator: what a user may do with one, he may do with all, or is told why not."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pytest
from sklearn.base import clone

import gibbsian as gb
from cli_runner import printed
from estimator_samples import small, table
from gibbsian.errors import GibbsianError
from gibbsian.estimators import ESTIMATORS
from gibbsian.settings import settings_of

NAMES = ESTIMATORS.names()
pytestmark = pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")


@pytest.fixture(scope="module")
def fitted():
    """Every estimator, fitted once."""
    return {name: small(name).fit(table(name)) for name in NAMES}


def refuses_with_a_reason(ask):
    """Whether a question is refused, by an error of ours that has a reason, and not answered."""
    try:
        ask()
    except GibbsianError as error:
        return bool(error.reason)
    return False


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_is_documented_with_its_default(name):
    kind = ESTIMATORS.factory(name)
    assert settings_of(kind)
    for setting in settings_of(kind):
        assert f"\n{setting} : " in kind.__doc__
        assert "default=" in kind.__doc__.split(f"\n{setting} : ")[1].split("\n")[0]
    assert set(kind().get_params(deep=False)) == set(settings_of(kind))


@pytest.mark.parametrize("name", NAMES)
def test_what_need_not_be_chosen_is_automatic(name):
    settings = ESTIMATORS.factory(name)().get_params(deep=False)
    assert settings.get("learner", "auto") == "auto"
    assert settings.get("l2", "auto") == "auto"


@pytest.mark.parametrize("name", NAMES)
def test_score_is_the_mean_of_the_scores_of_rows(name, fitted):
    machine, rows = fitted[name], table(name, seed=1)
    scores = machine.score_samples(rows)
    assert scores.shape == (len(rows),)
    assert np.isfinite(scores).all()
    assert machine.score(rows) == pytest.approx(scores.mean(), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_weights_count_rows(name):
    """A row of weight two is the row twice, and one of weight zero is not there."""
    rows = table(name, n_rows=40)
    weights = np.where(np.arange(len(rows)) % 4 == 0, 2.0, np.where(np.arange(len(rows)) % 4 == 1, 0.0, 1.0))
    machine = small(name).fit(rows, sample_weight=weights)
    assert machine.score(rows, sample_weight=weights) == pytest.approx(
        np.average(machine.score_samples(rows), weights=weights), rel=1e-9
    )
    if not ESTIMATORS.trait(name, "epochs"):  # the order of rows in an epoch is another one
        twice = small(name).fit(np.repeat(rows, weights.astype(int), axis=0))
        np.testing.assert_allclose(twice.score(rows), machine.score(rows), rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_missing_cells(name):
    """Rows with holes are learned from, scored and filled, or refused with a reason."""
    rows = table(name, holes=0.1)
    machine = small(name)
    if refuses_with_a_reason(lambda: machine.fit(rows)):
        assert ESTIMATORS.trait(name, "missing") is False
        return
    assert np.isfinite(machine.score_samples(rows)).all()
    filled = np.asarray(machine.impute(rows), dtype=float)
    assert not np.isnan(filled).any()
    present = ~np.isnan(rows)
    np.testing.assert_allclose(filled[present], rows[present])


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_rows_that_can_be_read_again(name, fitted):
    machine = fitted[name]
    drawn = machine.sample(7, random_state=1)
    assert np.asarray(drawn).shape == (7, 4)
    assert np.isfinite(machine.score_samples(drawn)).all()
    again = machine.sample(7, random_state=1)
    np.testing.assert_array_equal(np.asarray(drawn), np.asarray(again))


@pytest.mark.parametrize("library", [pandas, polars])
@pytest.mark.parametrize("name", NAMES)
def test_samples_of_a_fit_to_a_frame_are_a_frame(name, library):
    frame = library.DataFrame(table(name, n_rows=40), **{"columns" if library is pandas else "schema": list("abcd")})
    machine = small(name).fit(frame)
    drawn, hidden = machine.sample(5, random_state=1, return_hidden=True)
    assert type(drawn) is type(frame)
    assert list(drawn.columns) == list("abcd")
    assert list(drawn.dtypes) == list(frame.dtypes)
    assert len(drawn) == len(hidden) == 5
    assert np.isfinite(machine.score_samples(drawn)).all()
    assert type(machine.fit(frame.to_numpy()).sample(5)) is np.ndarray


@pytest.mark.parametrize("name", NAMES)
def test_predictions(name, fitted):
    machine, rows = fitted[name], table(name, seed=2, n_rows=10)
    probabilities = machine.predict_proba(rows)
    assert len(probabilities) == len(machine.predict(rows)) == 10
    assert ((probabilities >= 0) & (probabilities <= 1 + 1e-12)).all()


@pytest.mark.parametrize("name", NAMES)
def test_files_give_the_same_answers(name, fitted, tmp_path):
    machine, rows = fitted[name], table(name, seed=3)
    machine.save(tmp_path / "m.gibbs")
    again = gb.load(tmp_path / "m.gibbs")
    np.testing.assert_array_equal(again.interactions().strengths, machine.interactions().strengths)
    assert type(again) is type(machine)
    np.testing.assert_array_equal(again.score_samples(rows), machine.score_samples(rows))
    assert again.result_.reason == machine.result_.reason
    assert len(again.result_.trace) == len(machine.result_.trace)
    assert again.names_ == machine.names_
    assert {key for key in settings_of(type(machine)) if getattr(again, key) != getattr(machine, key)} <= {
        "random_state", "coding", "graph", "cliques", "learner", "machine", "n_components", "checkpoint", "callbacks",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_chunks(name):
    """partial_fit learns from chunks as they come, or says why it needs all rows at once."""
    machine = small(name)
    first, second = table(name, seed=4), table(name, seed=5)
    if not hasattr(machine, "partial_fit"):
        with pytest.raises(AttributeError) as caught:
            machine.partial_fit(first)
        assert caught.value.__cause__.reason
        return
    machine.partial_fit(first)
    before = machine.model_.theta.copy()
    machine.partial_fit(second)
    assert machine.result_.provenance["chunks"] == 2
    assert machine.result_.provenance["rows"] == len(first) + len(second)
    assert not np.array_equal(before, machine.model_.theta)
    assert np.isfinite(machine.score(first))


@pytest.mark.parametrize("name", NAMES)
def test_rows_held_out_are_scored(name):
    machine = small(name, validation_fraction=0.25).fit(table(name))
    assert machine.result_.held_out.n_rows == 20
    assert np.isfinite(machine.result_.held_out.score)


@pytest.mark.parametrize("name", NAMES)
def test_log_partition_is_a_number_or_an_interval(name, fitted):
    found = fitted[name].log_partition()
    assert np.isfinite(found if isinstance(found, float) else found.upper)


@pytest.mark.parametrize("name", NAMES)
def test_hidden_units_are_transformed(name, fitted):
    machine = fitted[name]
    if not hasattr(machine, "transform"):
        pytest.skip("no hidden units")
    shares = machine.transform(table(name, seed=6, n_rows=5))
    assert shares.shape == (5, len(machine.get_feature_names_out()))
    assert np.isfinite(shares).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_refused_fit_leaves_the_estimator_as_it_was(name, fitted):
    machine = clone(fitted[name]).fit(table(name))
    rows = table(name, seed=7)
    before = machine.score(rows)
    with pytest.raises((GibbsianError, ValueError)):
        machine.fit(np.full((5, 3), np.nan))
    assert machine.score(rows) == before


@pytest.mark.parametrize("name", NAMES)
def test_wrong_settings_are_refused_by_name(name):
    for setting, declared in settings_of(ESTIMATORS.factory(name)).items():
        if declared.kind == "any":
            continue
        with pytest.raises(GibbsianError) as caught:
            small(name, **{setting: "no such thing"}).fit(table(name))
        assert caught.value.argument == setting


@pytest.mark.parametrize("name", NAMES)
def test_the_network_has_every_column_and_finite_strengths(name, fitted):
    machine = fitted[name]
    found = machine.interactions()
    assert found.names[: found.sizes[0]] == machine.names_
    assert len(set(found.names)) == found.n_variables == len(found.layers)
    assert len(found.scopes) == len(found.strengths) > 0
    assert np.isfinite(found.strengths).all()
    assert found.signed or (found.strengths >= 0).all()
    for scope in found.scopes:
        assert list(scope) == sorted(set(scope))
        assert 1 < len(scope) <= scope[-1] + 1 <= found.n_variables


@pytest.mark.parametrize("name", NAMES)
def test_every_model_has_a_picture_on_the_command_line(name, fitted, tmp_path):
    model, place = tmp_path / "m.gibbs", NAMES.index(name)
    fitted[name].save(model)
    kind, start = ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF"))[place % 3]
    picture = tmp_path / f"p{kind}"
    printed("show", model, "--picture", picture, "--layout", ("force", "circle")[place % 2])
    assert picture.read_bytes().startswith(start)
    assert gb.plots.couplings(fitted[name]).images[0].get_array().count() > 0
    assert gb.plots.convergence(fitted[name]).get_xlabel() == "step"
