"""The score of rows that a fit did not see."""

from __future__ import annotations

from gibbsian.report.html import Markup, join, paragraph
from gibbsian.report.subject import SECTIONS, Subject
from gibbsian.scikit import clone

TRAINED_ON = 0.8
QUIETLY = {"callbacks": None, "checkpoint": None, "verbose": 0, "validation_fraction": 0.0}


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
