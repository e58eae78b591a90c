"""Answer the questions of the table, and keep the answers: ``python tests/golden/freeze.py [--only NAME ...]``.

NAME is a row, or the beginning of several. Run it for rows whose answer is meant to change, and say in the commit why.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from golden import api, table

STORED = Path(__file__).with_name("frozen.json")


def plain(answer: Any) -> Any:
    """Return an answer in numbers (of twelve digits), words, lists and dictionaries alone."""
    if isinstance(answer, dict):
        return {str(key): plain(value) for key, value in answer.items()}
    if isinstance(answer, np.ndarray | np.generic):
        return plain(answer.tolist())
    if isinstance(answer, list | tuple):
        return [plain(each) for each in answer]
    if isinstance(answer, float):
        return float(f"{answer:.12g}") if math.isfinite(answer) else str(answer)
    return answer


def answers_of(row: Any) -> Any:
    """Return what a row answers now, in the form of the file; only what is drawn has another form in the test."""
    if isinstance(row, table.Given):
        model = api.build(**row.model.stated())
        return plain([api.answer(model, q.what, row.rows, row.weights, **q.how) for q in row.questions])
    if isinstance(row, table.Structure):
        return plain(api.structure(row.rows, row.method))
    fitted = api.Fitted(row.estimator, row.settings, row.rows, row.weights)
    found = {"value": fitted.value(), "parameters": fitted.parameters(), "converged": fitted.converged}
    return plain({**found, "answers": [fitted.ask(q.what, **q.how) for q in row.questions]})


def drawn(row: table.Drawn, seeds: range) -> np.ndarray:
    """Return the numbers of a row with chance in it, by seed."""
    model = None if row.model is None else row.model.stated()
    return np.array([api.draw(seed, row.what, model, row.rows, row.weights, row.how) for seed in seeds])


def frozen(row: Any) -> Any:
    """Return what the file keeps of a row."""
    if isinstance(row, table.Drawn):
        numbers = drawn(row, range(table.SEEDS))
        return {"mean": plain(numbers.mean(axis=0)), "sd": plain(numbers.std(axis=0, ddof=1))}
    answers = answers_of(row)
    if isinstance(row, table.Fit) and row.loss:
        fitted = api.Fitted(row.estimator, row.settings, row.rows, row.weights)
        answers["curvature"] = float(f"{fitted.smallest_curvature(row.loss):.3g}")
    return answers


def stored() -> dict[str, Any]:
    """Return the file."""
    return json.loads(STORED.read_text()) if STORED.exists() else {}


def main() -> None:
    """Freeze some rows, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="NAME", help="rows, or the beginnings of their names"
    )
    only = tuple(parser.parse_args().only)
    kept, began = stored(), time.perf_counter()
    try:
        for name, row in table.ROWS.items():
            if name.startswith(only):
                start = time.perf_counter()
                kept[name] = frozen(row)
                print(f"{time.perf_counter() - start:7.2f} s  {name}", flush=True)
    finally:  # what was answered is kept, also of a run that was stopped
        lines = [f"{json.dumps(name)}: {json.dumps(kept[name])}" for name in table.ROWS if name in kept]
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{time.perf_counter() - began:7.2f} s  together")


if __name__ == "__main__":
    main()
