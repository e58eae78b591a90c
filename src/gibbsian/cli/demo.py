"""``gibbsian demo``: the house votes of 1984 from a table to an answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gibbsian.cli import options
from gibbsian.cli.guard import Command, tell
from gibbsian.cli.output import print_json, print_table
from gibbsian.cli.verdict import leave_endings_to_verdict
from gibbsian.errors import StorageError
from gibbsian.startup import numpy as np

if TYPE_CHECKING:
    from gibbsian.data import Dataset
    from gibbsian.estimators import BoltzmannMachine

PARTY = "republican"  # the one column of the table that is not a vote
TRAINING_SHARE, HIDDEN_SHARE = 0.8, 0.2
N_STRONGEST = 8


class Fit(NamedTuple):
    """One machine of the demo, and what it was fitted to."""

    machine: BoltzmannMachine
    name: str
    n_rows: int

    def record(self) -> dict[str, Any]:
        """Return its scores in nats a row, and how it ended."""
        result = self.machine.result_
        scores = result.held_out
        assert scores is not None  # the table is small
        return {
            "learner": self.name,
            "rows": self.n_rows,
            "held_out": scores.score,
            "fitted": scores.fitted,
            "independent_columns": scores.independent,
            "convergence": result.reason,
            "verdict": result.verdict.status,
        }


@click.command(cls=Command)
@click.option(
    "--out-dir", type=options.PATH, default="demo-output", metavar="DIR", help="Where to write the table and pictures."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, help="Decides which answers are hidden and guessed.")
@options.json
def demo(out_dir: Path, seed: int, json: bool) -> None:
    """Fit the 1984 votes of the US House with both learners, show what was learned, and write the table, votes.csv."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.datasets import load_house_votes
    from gibbsian.rng import as_generator

    leave_endings_to_verdict()
    out_dir.mkdir(parents=True, exist_ok=True)
    table = _write_table(out_dir)
    announce_compilation()
    leave_endings_to_verdict()  # which stands in the table
    votes = load_house_votes()
    say = _nothing if json else tell
    say("votes of the US House of Representatives, 1984: 16 votes and the party")
    say(f"{votes.n_rows} members, {votes.n_missing} missing answers, in {table}")
    say("exact likelihood sums missing answers out; pseudolikelihood needs complete rows")
    fits = [
        _fit("exact likelihood (mle)", "auto", votes),
        _fit("pseudolikelihood (mple)", "mple", votes.complete_rows()),
    ]
    best = fits[0].machine
    story = best.result_.provenance
    say(f"penalty l2 = {story['l2']:.3g}: {story['l2_rule']}\n")
    if not json:
        records = [fit.record() for fit in fits]
        columns = [name.replace("_", " ") for name in records[0]]
        print_table(
            "log-likelihood of a row, in nats (higher is better)",
            columns,
            [list(record.values()) for record in records],
        )
    sentences = [in_words(*row) for row in best.strongest_couplings(N_STRONGEST).itertuples(index=False)]
    say("the strongest couplings of the exact fit, in words (all other answers being equal)")
    for sentence in sentences:
        say(f"  {sentence}")
    guessed = _guess_hidden(votes, story["l2"], as_generator(seed))
    say(
        f"\nof {guessed['n_cells']} answers hidden from held-out members the model guesses "
        f"{guessed['model']:.0%} right, the majority of each column {guessed['majority']:.0%}"
    )
    pictures = _draw(best, votes, out_dir)
    say("\npictures of the exact fit")
    for picture in pictures:
        say(f"  {picture}")
    if json:
        records = [fit.record() for fit in fits]
        print_json(
            {
                "table": table,
                "fits": records,
                "strongest_couplings": sentences,
                "imputation": guessed,
                "pictures": pictures,
            }
        )


def _write_table(out_dir: Path) -> Path:
    """Write the embedded table as a file for other commands, but over no other table."""
    from gibbsian.datasets import house_votes_path
    from gibbsian.storage import write_atomically

    path, content = out_dir / "votes.csv", house_votes_path().read_bytes()
    if path.exists() and path.read_bytes() != content:
        raise StorageError(f"{path} exists and holds other rows", "give another `out_dir`")
    write_atomically(path, content)
    return path


def in_words(first: str, second: str, coupling: float) -> str:
    """Say a coupling between two 0/1 columns of the house votes as a sentence."""
    import math

    if first == PARTY:
        first, second = second, first
    ways = ("to be", "not to be") if second == PARTY else ("to vote for", "to vote against")
    odds = f"odds {'divided by' if coupling < 0 else 'times'} {math.exp(abs(coupling)):.1f}"
    return f"members who voted for {first!r} tended {ways[coupling < 0]} {second!r} ({coupling:+.1f}, {odds})"


def _nothing(*_: object) -> None:
    """Print nothing, where JSON is wanted."""


def _fit(name: str, learner: str, rows: Dataset) -> Fit:
    from gibbsian.cli.bars import is_watched
    from gibbsian.cli.progress import Bar
    from gibbsian.estimators import BoltzmannMachine

    bars = [Bar(name)] if is_watched() else []
    machine = BoltzmannMachine(learner=learner, validation_fraction="auto", callbacks=bars, random_state=0)
    return Fit(machine.fit(rows), name, rows.n_rows)


def _guess_hidden(votes: Dataset, l2: float, rng: np.random.Generator) -> dict[str, float]:
    """Hide some answers of rows kept out of a fit, guess them by the model and by each column's majority; count."""
    from gibbsian.data import Dataset
    from gibbsian.estimators import BoltzmannMachine

    training, held_out = votes.split(TRAINING_SHARE, rng)
    machine = BoltzmannMachine(l2=l2 * votes.n_rows / training.n_rows).fit(training)
    answers, present = held_out.states[held_out.row_of].astype(float), ~held_out.holes[held_out.row_of]
    hidden = present & (rng.random(answers.shape) < HIDDEN_SHARE)
    shown = np.where(present & ~hidden, answers, np.nan)
    guesses = machine.impute(Dataset.read(shown, coding=held_out.coding, names=held_out.names))
    shares = np.average(training.states * ~training.holes, axis=0, weights=training.weights)
    shares /= np.average(~training.holes, axis=0, weights=training.weights)
    right = {"model": guesses == answers, "majority": (shares > 0.5) == answers}
    return {"n_cells": int(hidden.sum()), **{who: float(cells[hidden].mean()) for who, cells in right.items()}}


def _draw(machine: BoltzmannMachine, votes: Dataset, out_dir: Path) -> list[Path]:
    from gibbsian import plots

    pictures = {
        "network.png": plots.network(machine),
        "couplings.png": plots.couplings(machine),
        "moments.png": plots.moment_scatter(machine, votes),
    }
    for name, ax in pictures.items():
        plots.save_figure(ax, out_dir / name)
    return [out_dir / name for name in pictures]
