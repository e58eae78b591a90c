"""Run every benchmark of this folder and print what was measured: `make bench`, or `run.py NAME ...` for some.

The lines after the last benchmark are a column of docs/baseline.md: what was asked for, how much it was, at most what.

It ends with an error when a ratio is not what is asked of it (`timing.asked`).
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
from pathlib import Path

from timing import ASKED, MISSED


def main(names: list[str]) -> None:
    here = Path(__file__).parent
    found = sorted(path.stem.removeprefix("bench_") for path in here.glob("bench_*.py"))
    if unknown := set(names) - set(found):
        sys.exit(f"no benchmark called {', '.join(sorted(unknown))}: there are {', '.join(found)}")
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    for name in names or found:
        print()
        importlib.import_module(f"bench_{name}").main()
    print()
    for what, ratio, at_most in ASKED:
        print(f"| {what} | {ratio:.3g} | {at_most:g} |")
    if MISSED:
        sys.exit("\nmissed:\n" + "\n".join(f"  {line}" for line in MISSED))


if __name__ == "__main__":
    main(sys.argv[1:])
