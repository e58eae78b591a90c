"""A fit that is stopped after any of its steps and resumed in a new estimator is the same fit, to the bit.

Every pair of an estimator and a learner that the page of capabilities says to work is tried, with and without missing
cells: a new learner, or a new estimator, is tested by its registration. Beside the pairs stand the settings that give a
fit states of its own: several starts, stages, chains in missing cells, single precision.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gibbsian as gb
from capabilities import PAGE
from estimator_samples import small, table
from gibbsian.estimators import ESTIMATORS
from gibbsian.expectations.layer_chains import NEGATIVE_PHASES
from gibbsian.learning import EM, LEARNERS, Minibatch, as_learner
from gibbsian.learning.callbacks import Callback
from gibbsian.learning.run import Run
from gibbsian.settings import settings_of
from gibbsian.storage import Checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::gibbsian.errors.GibbsianWarning")

N_ROWS = 40
# Steps of a fit, of each layer of a deep one, of each start where there are several.
STEPS, STEPS_OF_PART = 4, 2
WITH_MISSING = "with missing cells: "


def tables_of(name: str, missing: bool = True) -> list[np.ndarray]:
    """Return rows for an estimator without missing cells, and with some."""
    return [table(name, n_rows=N_ROWS, holes=share) for share in ((0.0, 0.1) if missing else (0.0,))]


def working_pairs() -> dict[tuple[str, str], bool]:
    """Read which estimators take which learner, and whether with missing cells too, from the page of capabilities."""
    page = PAGE.read_text()
    reasons = dict(re.findall(r"^(\d+)\. (.*)$", page, re.MULTILINE))
    cells = {}
    for name, listed in re.findall(
        r"^\| (\S+) \| (.*) \|$", page.partition("## Learners by estimator")[2], re.MULTILINE
    ):
        for learner, _, number in re.findall(r"([a-z][a-z0-9-]*)( \((\d+)\))?", listed):
            reason = reasons.get(number, "")
            if name in ESTIMATORS and (not reason or reason.startswith(WITH_MISSING)):
                cells[name, learner] = not reason
    return cells


# -- what is tried ----------------------------------------------------------------------------------------------------
Make = Callable[..., Any]


def of_pair(name: str, learner: str) -> Make:
    """Return what makes a small estimator with a learner."""
    unpenalised = "l2" in settings_of(ESTIMATORS.factory(name)) and "l2" not in settings_of(LEARNERS.factory(learner))
    steps = STEPS_OF_PART if ESTIMATORS.trait(name, "layers") else STEPS
    return partial(small, name, learner=learner, max_iter=steps, **({"l2": 0.0} if unpenalised else {}))


def of_defaults(name: str) -> Make:
    """Return what makes a small estimator with its own learner."""
    return partial(small, name, max_iter=STEPS_OF_PART if ESTIMATORS.trait(name, "layers") else STEPS)


PAIRS = working_pairs()
FROM_STARTS = [name for name in ESTIMATORS if "n_init" in settings_of(ESTIMATORS.factory(name))]
TAKES_MISSING = {name: f"| {name} | yes |" in PAGE.read_text() for name in ESTIMATORS}
STARTS = {"n_init": 2, "max_iter": 3}

SETTINGS: dict[str, tuple[str, Make]] = {
    **{f"{name}-two-starts": (name, partial(small, name, **STARTS)) for name in FROM_STARTS},
    **{
        f"hidden-span-{learner}": (
            "full-span",
            partial(gb.FullSpan, n_components=2, learner=learner, l2=0.01, random_state=0, **STARTS),
        )
        for learner in ("span-greedy", "span-newton", "span-dense")
    },
    **{
        f"annealed-{learner}-{n_init}": (
            "soft-k-means",
            partial(
                gb.SoftKMeans, 2, anneal=True, cooling=0.04, learner=learner, n_init=n_init, max_iter=2, random_state=5
            ),
        )
        for learner in ("em", "online-em")
        for n_init in (1, 2)
    },
    **{
        f"{name}-{phase}-{dtype}": (
            name,
            partial(
                small, name, l2=0.0, learner=Minibatch(max_iter=3, negative_phase=phase, dtype=dtype, momentum=0.5)
            ),
        )
        for name in ("rbm", "dbm")
        for phase in NEGATIVE_PHASES
        for dtype in ("float64", "float32")
    },
    "rbm-held-out": ("rbm", partial(small, "rbm", max_iter=3, validation_fraction=0.2)),
    **{
        f"em-{clamped}": ("pairwise", partial(small, "pairwise", l2=0.0, learner=EM(clamped), max_iter=3))
        for clamped in ("exact", "pcd", "mean-field")
    },
    **{
        f"pcd-{clamped}": (
            "pairwise",
            partial(small, "pairwise", l2=0.0, learner=as_learner("pcd", clamped=clamped), max_iter=3),
        )
        for clamped in ("exact", "mean-field", "bethe", "pcd", "smci-pcd")
    },
    "mple-chains": (
        "pairwise",
        partial(small, "pairwise", l2=0.0, learner=as_learner("mple", completions="chains"), max_iter=3),
    ),
}


# -- the trial --------------------------------------------------------------------------------------------------------
class KeepEveryStep(Callback):
    """Writes a checkpoint after every step, each into a file of its own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.paths: list[Path] = []

    def on_start(self, run: Run) -> None:
        self.checkpoint = Checkpoint(self.folder / "last", every=1)
        self.checkpoint.on_start(run)

    def on_step(self, run: Run) -> None:
        self.checkpoint.on_step(run)
        self.paths.append((self.folder / "last").rename(self.folder / f"step{run.n_steps}"))


def assert_resumes_to_the_same_bits(make: Make, rows: np.ndarray, folder: Path) -> None:
    """Fit once, and again from the checkpoint of every step; the last one is that of a finished fit."""
    folder.mkdir()
    kept = KeepEveryStep(folder)
    whole = make(callbacks=[kept]).fit(rows)
    assert len(kept.paths) == len(whole.result_.trace) > 0
    for n_steps, path in enumerate(kept.paths, 1):
        again = make(checkpoint=Checkpoint(path, every=10**6, resume=True)).fit(rows)
        where = f"stopped after {n_steps} of {len(kept.paths)} steps"
        assert again.result_.provenance["resumed_at_step"] == n_steps
        assert_same_bits(again.model_.theta, whole.model_.theta, f"theta, {where}")
        assert again.result_.trace.columns == whole.result_.trace.columns
        figures, expected = (one.result_.trace.to_array()[:, :-1] for one in (again, whole))  # all but the seconds
        assert_same_bits(figures, expected, f"trace, {where}")
        ending = (again.result_.reason, again.result_.converged)
        assert ending == (whole.result_.reason, whole.result_.converged), where
        assert again.result_.history.keys() == whole.result_.history.keys()
        for name, values in whole.result_.history.items():
            assert_same_bits(again.result_.history[name], values, f"{name}, {where}")


def assert_same_bits(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    assert found.dtype == expected.dtype, what
    np.testing.assert_array_equal(found, expected, err_msg=what)


@pytest.mark.parametrize(("name", "learner"), list(PAIRS), ids=lambda part: part)
def test_every_learner_of_every_estimator(name, learner, tmp_path):
    for place, rows in enumerate(tables_of(name, missing=PAIRS[name, learner])):
        assert_resumes_to_the_same_bits(of_pair(name, learner), rows, tmp_path / str(place))


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_estimator_by_default(name, tmp_path):
    for place, rows in enumerate(tables_of(name, missing=TAKES_MISSING[name])):
        assert_resumes_to_the_same_bits(of_defaults(name), rows, tmp_path / str(place))


@pytest.mark.parametrize("setting", list(SETTINGS))
def test_settings_with_states_of_their_own(setting, tmp_path):
    name, make = SETTINGS[setting]
    for place, rows in enumerate(tables_of(name, missing=TAKES_MISSING[name])):
        assert_resumes_to_the_same_bits(make, rows, tmp_path / str(place))
