"""``gibbsian demo``: the house votes of 1984 from a table to an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gibbsian.cli import options
from gibbsian.cli.guard import Command, tell
from gibbsian.cli.output import print_json, print_table
from gibbsian.startup import numpy as np

if TYPE_CHECKING:
    from gibbsian.data import Dataset
    from gibbsian.estimators import BoltzmannMachine

PARTY = "republican"  # the one column of the table that is not a vote
TRAINING_SHARE, HIDDEN_SHARE = 0.8, 0.2
TOLERANCE, MAX_STEPS = 1e-4, 1000
N_STRONGEST = 8


class Fit(NamedTuple):
    """One machine of the demo, what it took to learn it, and how it scores."""

    machine: BoltzmannMachine
    name: str
    n_rows: int
    held_out: float
    n_steps: int
    seconds: float
    reason: str


@click.command(cls=Command)
@click.option("--out-dir", type=options.PATH, default="demo-output", metavar="DIR", help="Where to write the pictures.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, help="Decides the split into training and held-out rows."
)
@options.json
def demo(out_dir: Path, seed: int, json: bool) -> None:
    """Fit the 1984 votes of the US House with both learners, and show what was learned."""
    from gibbsian.cli.compilation import announce_compilation
    from gibbsian.datasets import load_house_votes
    from gibbsian.rng import as_generator

    out_dir.mkdir(parents=True, exist_ok=True)
    announce_compilation()
    votes = load_house_votes()
    training, held_out = votes.split(TRAINING_SHARE, seed)
    say = _nothing if json else tell
    _introduce(say, votes, training, held_out)
    fits = _fit_all(training, held_out)
    if not json:
        _print_fits(fits)
    best = fits[0].machine
    sentences = [in_words(*row) for row in best.strongest_couplings(N_STRONGEST).itertuples(index=False)]
    say("the strongest couplings of the exact fit, in words (all other answers being equal)")
    for sentence in sentences:
        say(f"  {sentence}")
    guessed = _guess_hidden(best, training, held_out, as_generator(seed))
    say(
        f"\nof {guessed['n_cells']} answers hidden from held-out members the model guesses "
        f"{guessed['model']:.0%} right, the majority of each column {guessed['majority']:.0%}"
    )
    pictures = _draw(best, training, out_dir)
    say("\npictures of the exact fit")
    for picture in pictures:
        say(f"  {picture}")
    if json:
        print_json(_summary(fits, sentences, guessed, pictures))


def in_words(first: str, second: str, coupling: float) -> str:
    """Say a coupling between two 0/1 columns of the house votes as a sentence."""
    import math

    if first == PARTY:
        first, second = second, first
    ways = ("to be", "not to be") if second == PARTY else ("to vote for", "to vote against")
    odds = f"odds {'divided by' if coupling < 0 else 'times'} {math.exp(abs(coupling)):.1f}"
    return f"members who voted for {first!r} tended {ways[coupling < 0]} {second!r} ({coupling:+.1f}, {odds})"


def _nothing(*_: Any) -> None:
    """Print nothing, where JSON is wanted."""


def _introduce(say: Callable[..., None], votes: Dataset, training: Dataset, held_out: Dataset) -> None:
    say("votes of the US House of Representatives, 1984: 16 votes and the party")
    say(
        f"{votes.n_rows} members, {votes.n_missing} missing answers; {training.n_rows} members to learn from, "
        f"{held_out.n_rows} held out"
    )
    say(f"penalty l2 = 1/{training.n_rows}, a standard normal prior on each parameter: without one, answers that never")
    say("occur together (there are some in the complete rows) would send couplings to infinity")
    say("exact likelihood sums missing answers out; pseudolikelihood needs complete rows")


def _fit_all(training: Dataset, held_out: Dataset) -> list[Fit]:
    l2 = 1.0 / training.n_rows
    complete = training.complete_rows()
    plans: tuple[tuple[str, str, str, Dataset], ...] = (
        ("exact likelihood (mle)", "complete", "mle", training),
        ("pseudolikelihood (mple)", "complete", "mple", complete),
        ("independent columns", "empty", "mle", training),
    )
    for _, graph, learner, rows in plans:
        _compile(graph, learner, l2, rows, held_out)
    return [_fit(name, graph, learner, l2, rows, held_out) for name, graph, learner, rows in plans]


def _compile(graph: str, learner: str, l2: float, rows: Dataset, held_out: Dataset) -> None:
    """Take one step, so that the times in the table are those of learning and not of the compiler."""
    import warnings

    from gibbsian.errors import ConvergenceWarning
    from gibbsian.estimators import BoltzmannMachine

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        BoltzmannMachine(graph, learner=learner, l2=l2, max_iter=1).fit(rows).score(held_out)


def _fit(name: str, graph: str, learner: str, l2: float, rows: Dataset, held_out: Dataset) -> Fit:
    from gibbsian.cli.bars import is_watched
    from gibbsian.cli.progress import Bar
    from gibbsian.estimators import BoltzmannMachine

    started = time.perf_counter()
    machine = BoltzmannMachine(
        graph,
        learner=learner,
        l2=l2,
        tol=TOLERANCE,
        max_iter=MAX_STEPS,
        callbacks=[Bar(name)] if is_watched() else [],
        random_state=0,
    ).fit(rows)
    seconds, result = time.perf_counter() - started, machine.result_
    return Fit(machine, name, rows.n_rows, machine.score(held_out), result.n_steps, seconds, result.reason)


def _print_fits(fits: list[Fit]) -> None:
    columns = ("learner", "rows", "held-out log-likelihood", "steps", "seconds", "convergence")
    rows = [(*fit[1:5], f"{fit.seconds:.2f}", fit.reason) for fit in fits]
    print_table("log-likelihood per held-out row, in nats (higher is better)", columns, rows)


def _guess_hidden(
    machine: BoltzmannMachine, training: Dataset, held_out: Dataset, rng: np.random.Generator
) -> dict[str, float]:
    """Hide some present answers of held-out rows, guess them by the model and by each column's majority; count."""
    from gibbsian.data import Dataset

    answers, present = held_out.states[held_out.row_of].astype(float), ~held_out.holes[held_out.row_of]
    hidden = present & (rng.random(answers.shape) < HIDDEN_SHARE)
    shown = np.where(present & ~hidden, answers, np.nan)
    guesses = machine.impute(Dataset.read(shown, coding=held_out.coding, names=held_out.names))
    shares = np.average(training.states * ~training.holes, axis=0, weights=training.weights)
    shares /= np.average(~training.holes, axis=0, weights=training.weights)
    right = {"model": guesses == answers, "majority": (shares > 0.5) == answers}
    return {"n_cells": int(hidden.sum()), **{who: float(cells[hidden].mean()) for who, cells in right.items()}}


def _draw(machine: BoltzmannMachine, training: Dataset, out_dir: Path) -> list[Path]:
    from gibbsian import plots

    pictures = {
        "network.png": plots.network(machine),
        "couplings.png": plots.couplings(machine),
        "moments.png": plots.moment_scatter(machine, training),
    }
    for name, ax in pictures.items():
        plots.save_figure(ax, out_dir / name)
    return [out_dir / name for name in pictures]


def _summary(fits: list[Fit], sentences: list[str], guessed: dict[str, float], pictures: list[Path]) -> dict[str, Any]:
    columns = ("learner", "rows", "held_out_log_likelihood", "steps", "seconds", "convergence")
    return {
        "fits": [dict(zip(columns, fit[1:], strict=True)) for fit in fits],
        "strongest_couplings": sentences,
        "imputation": guessed,
        "pictures": pictures,
    }
