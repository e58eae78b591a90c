"""What was fitted, and how the fit ended."""

from __future__ import annotations

from gibbsian.report.html import Markup, facts, join, listed, number, paragraph, tag
from gibbsian.report.subject import SECTIONS, Subject


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
    warned = [paragraph("Warnings that were given:"), listed(subject.warnings)] if subject.warnings else []
    return join([facts(pairs), *warned])


def _verdict(good: bool, word: str) -> Markup:
    return tag("strong", word if good else f"not {word}", class_="good" if good else "bad")
