"""Runs a tool of this folder: ``python -m tools NAME ...`` from the root of the repository."""

import runpy
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent

if __name__ == "__main__":
    names = sorted(path.stem for path in TOOLS.glob("[!_]*.py"))
    if len(sys.argv) < 2 or sys.argv[1] not in names:
        sys.exit(f"use: python -m tools {'|'.join(names)} ...")
    sys.path[:0] = [str(TOOLS), str(TOOLS.parent / "tests")]  # tools use each other, and helpers of the tests
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
