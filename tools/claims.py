"""Hold what ``gibbsian-reproduce all`` found against reproduction/docs/reproduce.md: ``make claims``.

A claim that is on record as holding must hold, with as many trials as the page was made of; exits non-zero else.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from gibbsian_reproduction.report import read_records

PAGE = Path(__file__).parents[1] / "reproduction" / "docs" / "reproduce.md"
CLAIM = re.compile(r"- (?P<text>.*?)(?: \(ours\))? \[(?P<source>[^\]]*)\]: \*\*(?P<verdict>holds|does not hold)\*\*")


def on_record(page: str) -> set[tuple[str, str]]:
    """Return the claims of a page that hold, each with its experiment."""
    found, name = set(), ""
    for line in page.splitlines():
        if line.startswith("### "):
            name = line.removeprefix("### ")
        elif (claim := CLAIM.match(line)) and claim["verdict"] == "holds":
            found.add((name, claim["text"]))
    return found


def broken(recorded: set[tuple[str, str]], records: list[dict]) -> list[str]:
    """Return the claims on record that do not hold any more, or were not checked."""
    now = {
        (record["experiment"], claim["text"]): (claim["holds"], claim["numbers"])
        for record in records
        for claim in record["claims"]
    }
    verdicts = {key: now.get(key, (False, "not checked")) for key in recorded}
    return [f"{name}: {text} ({numbers})" for (name, text), (holds, numbers) in sorted(verdicts.items()) if not holds]


if __name__ == "__main__":
    recorded = on_record(PAGE.read_text())
    failures = broken(recorded, read_records(Path(sys.argv[1])))
    print(*failures, f"{len(recorded) - len(failures)} of {len(recorded)} claims on record hold", sep="\n")
    sys.exit(bool(failures))
