"""How a report was made, so that it can be made again."""

from __future__ import annotations

import platform
from importlib.metadata import version

from gibbsian import __version__
from gibbsian.report.html import Markup, facts, join, listed, paragraph
from gibbsian.report.subject import SECTIONS, Subject

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


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
    warned = (
        [paragraph("Warnings, those of this report included:"), listed(subject.warnings)] if subject.warnings else []
    )
    return join([facts(pairs), *warned])
