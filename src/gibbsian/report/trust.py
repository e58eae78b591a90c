"""What was fitted, how the fit ended, how it does on rows that it did not see, and how the report was made."""

from __future__ import annotations

import platform
from importlib.metadata import version

from gibbsian import __version__
from gibbsian.errors import spelled
from gibbsian.report.html import Markup, facts, join, listed, number, paragraph, sentence, table, tag
from gibbsian.report.subject import SECTIONS, Subject

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


VERDICTS = {
    "good": "Verdict: good",
    "unknown": "Verdict: unknown, because not enough could be checked",
    "bad": "Verdict: bad, so this page makes no claims about the data",
}


def verdict(subject: Subject) -> Markup:
    """Return the verdict on the fit, with what speaks against it or what was checked."""
    status, problems = subject.verdict
    result, checked = subject.result, []
    if status == "good":
        checked = [result.reason]
        checked += [] if result.moments is None else [result.training.describe()]
        checked += [] if result.held_out is None else [result.held_out.describe()]
    body = listed([sentence(spelled(line)) for line in problems or checked])
    return tag(
        "section",
        tag("h2", VERDICTS[status], id="verdict-title"),
        body,
        id="verdict",
        class_=f"verdict {status}",
        aria_labelledby="verdict-title",
    )


@SECTIONS.register("fit", place=10, title="What was fitted, and whether to trust it")
def fit(subject: Subject) -> Markup:
    """Return the model, the data and the ending of the fit, with all that was warned of."""
    machine, result, story = subject.machine, subject.machine.result_, subject.machine.result_.provenance
    figures = machine.figures().items() if hasattr(machine, "figures") else ()
    size = ", ".join(
        f"{name} {value}" if isinstance(value, str) else f"{number(value)} {name}" for name, value in figures
    )
    penalties = [f"{name} {story[name]:.3g}" for name in ("l1", "l2") if story.get(name)]
    pairs = {
        "Model": f"{type(machine).__name__} ({size})" if size else type(machine).__name__,
        "Values": machine.coding_.describe() if hasattr(machine, "coding_") else "",
        "Rows": f"{story['rows']:,}, with {story['missing_cells']:,} missing cells" if "rows" in story else "",
        "Learner": story.get("learner", ""),
        "Penalty": ", ".join(penalties) + (f" ({story['l2_rule']})" if "l2_rule" in story else ""),
        "Ending": join([_verdict(result.converged, "converged"), f": {result.reason}"]),
    }
    if result.moments is not None:
        trained = result.training
        pairs["Moments"] = join([_verdict(trained.is_trained, "trained"), f": {trained.describe()}"])
    return join([facts(pairs), *_warned(subject, "Warnings that were given:")])


@SECTIONS.register("held-out", place=30, title="Rows that the fit did not see", rows=True)
def held_out(subject: Subject) -> Markup | None:
    """Return the score of rows kept out: of the fit itself, or of the same fit to a part of the rows."""
    if subject.data is None:
        return None
    found, story = subject.result.held_out, subject.result.provenance
    if found is None:
        return paragraph(sentence(f"rows that the fit did not see were {story['held_out']}"))
    scores = {"rows that the fit did not see": found.score, "rows that were fitted": found.fitted}
    scores |= {"independent columns, on the rows not seen": found.independent}
    rows = [(name, score) for name, score in scores.items() if score is not None]
    kept_out = story.get("rows", 0) + found.n_rows == subject.data.n_rows
    how = (
        f"{found.n_rows:,} rows were kept out of the fit."
        if kept_out
        else f"Each of {found.n_rows:,} rows was scored by a fit to two thirds of the others ({subject.which_rows})."
    )
    words = "The further the fitted rows are above the others, the more was learned of these rows alone."
    return join([paragraph(f"{how} {words}"), table(f"Mean {found.kind} of a row, in nats", ["of", "score"], rows)])


@SECTIONS.register("origin", place=900, title="How it was made")
def origin(subject: Subject) -> Markup:
    """Return settings, versions, seed, and what was warned of while the report was made."""
    story = subject.machine.result_.provenance
    versions = [f"{package} {version(package)}" for package in PACKAGES]
    pairs = {
        **subject.origin,
        "Settings": repr(subject.asked),
        "Fitted": f"{story['created']} by gibbsian {story['gibbsian']}" if "created" in story else "",
        "Seed of the report": str(subject.seed),
        "Versions": ", ".join([f"gibbsian {__version__}", f"Python {platform.python_version()}", *versions]),
    }
    return join([facts(pairs), *_warned(subject, "Warnings, those of this report included:")])


def _verdict(good: bool, word: str) -> Markup:
    return tag("strong", word if good else f"not {word}", class_="good" if good else "bad")


def _warned(subject: Subject, head: str) -> list[Markup]:
    return [paragraph(head), listed(subject.warnings)] if subject.warnings else []
