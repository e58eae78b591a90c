"""What was fitted, how the fit ended, how it does on rows that it did not see, and how the report was made."""

from __future__ import annotations

import platform
from importlib.metadata import version

from gibbsian import __version__
from gibbsian.report.html import Markup, facts, join, listed, number, paragraph, tag
from gibbsian.report.subject import SECTIONS, Subject
from gibbsian.startup import clone

TRAINED_ON = 0.8
QUIETLY = {"callbacks": None, "checkpoint": None, "verbose": 0, "validation_fraction": 0.0}
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


@SECTIONS.register("fit", place=10, title="What was fitted, and whether to trust it")
def fit(subject: Subject) -> Markup:
    """Return the model, the data and the ending of the fit, with all that was warned of."""
    machine, result, story = subject.machine, subject.machine.result_, subject.machine.result_.provenance
    figures = machine.figures().items() if hasattr(machine, "figures") else ()
    size = ", ".join(
        f"{name} {value}" if isinstance(value, str) else f"{number(value)} {name}" for name, value in figures
    )
    penalties = [f"{name} {story[name]:g}" for name in ("l1", "l2") if story.get(name)]
    pairs = {
        "Model": f"{type(machine).__name__} ({size})" if size else type(machine).__name__,
        "Values": machine.coding_.describe() if hasattr(machine, "coding_") else "",
        "Rows": f"{story['rows']:,}, with {story['missing_cells']:,} missing cells" if "rows" in story else "",
        "Learner": ", ".join([story.get("learner", ""), *penalties]),
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
    found, how = subject.machine.result_.held_out, "The fit kept them out itself."
    if found is None:
        shown, unseen = subject.rows.split(TRAINED_ON, subject.seed)
        again = clone(subject.machine).set_params(**QUIETLY, random_state=subject.seed).fit(shown)
        found, own = again.score_or_pseudo_score(unseen), again.score_or_pseudo_score(shown)
        how = (
            f"The same machine was fitted again to {shown.n_rows:,} rows, a random {TRAINED_ON:.0%} of "
            f"{subject.which_rows}, and scored on the others ({again.result_.reason}). The rows it was fitted to score "
            f"{own.score:.4f}: the further above, the more was learned of these rows alone."
        )
    score = f"The {found.kind} of {found.n_rows:,} rows that the fit did not see is {found.score:.4f} nats a row."
    return join([paragraph(score), paragraph(how)])


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
