"""What an experiment leaves behind: tables, pictures, and the paper's claims held against the numbers.

A `Report` is judged once; its record, plain JSON, is what the page, the documentation and other programs read.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import math
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas

import gibbsian
from gibbsian.display import plain
from gibbsian.errors import FileFormatError
from gibbsian.storage import write_atomically
from gibbsian_reproduction.experiment import EXPERIMENTS, Claim, Experiment, Results, Verdict
from gibbsian_reproduction.tables import Table

PAPERS = {
    "Y18": "Yasuda 2018: Learning Algorithm of Boltzmann Machine Based on Spatial Monte Carlo Integration Method",
    "YU20": "Yasuda & Uchizawa 2020: A Generalization of Spatial Monte Carlo Integration",
    "TA22": "Takabatake & Akaho 2022: Full-Span Log-Linear Model and Fast Learning Algorithm",
    "H06": "Hyvarinen 2006: Consistency of Pseudolikelihood Estimation of Fully Visible Boltzmann Machines",
    "YK15": "Yuille & Kersten 2015: Learning Probabilities, K-means, and Boltzmann",
}
LIBRARIES = ("numpy", "scipy", "numba", "scikit-learn", "matplotlib")
STDERR = " stderr"
DPI = 150


@dataclass(frozen=True)
class Report:
    """An experiment with its results, tables and verdicts.

    Parameters
    ----------
    name : str
        The experiment's registered name.
    experiment : Experiment
        What was run.
    results : Results
        What it found.
    asked : int
        How many trials were asked for.
    tables : tuple of Table
        Its tables.
    verdicts : tuple of Verdict
        What became of each of its claims.
    """

    name: str
    experiment: Experiment
    results: Results
    asked: int
    tables: tuple[Table, ...]
    verdicts: tuple[Verdict, ...]

    @classmethod
    def of(cls, name: str, results: Results, asked: int) -> Report:
        """Make the tables and judge the claims."""
        experiment = EXPERIMENTS.create(name)
        verdicts = tuple(claim.check(results) for claim in experiment.claims)
        return cls(name, experiment, results, asked, tuple(make(results) for make in experiment.tables), verdicts)

    @property
    def command(self) -> str:
        """The command that repeats it."""
        return f"gibbsian-reproduce {self.name} --trials {self.asked} --seed {self.results.seed} --out results/"

    @property
    def summary(self) -> str:
        """How many claims hold."""
        return count_of_claims([verdict.holds for verdict in self.verdicts])

    def sentences(self) -> list[str]:
        """Say each claim with its verdict in a line."""
        pairs = zip(self.experiment.claims, self.verdicts, strict=True)
        return [claim_sentence(claim, verdict, self.results.n_trials) for claim, verdict in pairs]

    def record(self) -> dict[str, Any]:
        """Return everything but the pictures as plain values: settings, tables, claims, versions, times."""
        pairs = zip(self.experiment.claims, self.verdicts, strict=True)
        return plain(
            {
                "experiment": self.name,
                **{part: getattr(self.experiment, part) for part in ("paper", "item", "title", "scale")},
                "command": self.command,
                "trials_asked": self.asked,
                "trials": self.results.n_trials,
                "seed": self.results.seed,
                "seconds": self.results.seconds,
                "warnings": list(self.results.warnings),
                "tables": [_table_record(table) for table in self.tables],
                "claims": [_claim_record(claim, verdict) for claim, verdict in pairs],
                "pictures": [f"{self.name}.png", f"{self.name}.svg"] if self.experiment.draw else [],
                "versions": versions(),
            }
        )

    def write(self, out: Path) -> list[Path]:
        """Write ``NAME.csv`` (one for each table), ``NAME.json``, ``NAME.png`` and ``NAME.svg``; return their paths."""
        out.mkdir(parents=True, exist_ok=True)
        files = {f"{stem}.csv": table.frame.to_csv(index=False).encode() for stem, table in self._stems().items()}
        files[f"{self.name}.json"] = json.dumps(self.record(), indent=1, allow_nan=False).encode() + b"\n"
        files |= {f"{self.name}.{kind}": content for kind, content in self._pictures().items()}
        for name, content in files.items():
            write_atomically(out / name, content)
        return [out / name for name in files]

    def _stems(self) -> dict[str, Table]:
        """Names of the CSV files: that of the experiment, with the table's where there are several."""
        if len(self.tables) == 1:
            return {self.name: self.tables[0]}
        return {
            f"{self.name}-{re.sub('[^a-z0-9]+', '-', table.name.lower()).strip('-')}": table for table in self.tables
        }

    def _pictures(self) -> dict[str, bytes]:
        """Draw; the bytes depend on the results and the version of Matplotlib alone."""
        if self.experiment.draw is None:
            return {}
        import matplotlib.style
        from matplotlib.figure import Figure

        pictures = {}
        with matplotlib.style.context(["default", {"font.size": 9.0, "svg.hashsalt": self.name}]):
            figure = Figure(figsize=self.experiment.size, layout="constrained")
            self.experiment.draw(self.results, figure)
            for kind, settings in (("png", {"dpi": DPI}), ("svg", {"metadata": {"Date": None}})):
                buffer = io.BytesIO()
                figure.savefig(buffer, format=kind, **settings)
                pictures[kind] = buffer.getvalue()
        return pictures


def _table_record(table: Table) -> dict[str, Any]:
    cells = table.frame.to_numpy(dtype=object).tolist()
    return {"name": table.name, "note": table.note, "columns": list(table.frame.columns), "rows": cells}


def _claim_record(claim: Claim, verdict: Verdict) -> dict[str, Any]:
    parts = {"text": claim.text, "source": claim.source, "ours": claim.ours}
    return parts | {"holds": verdict.holds, "numbers": verdict.numbers, "safe_from_trials": claim.trials}


def claim_sentence(claim: Claim, verdict: Verdict, n_trials: int) -> str:
    """Say a claim with its verdict; a failure that may be chance says so."""
    safe = verdict.holds is not False or n_trials >= claim.trials
    doubt = "" if safe else f"; with {n_trials} trials that may be chance, from {claim.trials} on hardly"
    return f"{claim.text}{' (ours)' * claim.ours}: {verdict}{doubt}"


def count_of_claims(holds: Sequence[bool | None]) -> str:
    """Say how many claims hold, of those that were judged."""
    judged = [one for one in holds if one is not None]
    n_held, n_all = sum(judged), len(judged)
    reported = f", {len(holds) - n_all} reported" * (len(holds) > n_all)
    if n_all == 1:
        return f"the claim {'holds' if n_held else 'does not hold'}{reported}"
    return f"{n_held} of {n_all} claims {'holds' if n_held == 1 else 'hold'}{reported}"


def shown_cells(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[list[str], list[list[str]]]:
    """Write a table's cells for the eye: a mean with its standard error in one cell, to the digits that matter."""
    names = [name for name in columns if not (name.endswith(STDERR) and name.removesuffix(STDERR) in columns)]
    place = {name: number for number, name in enumerate(columns)}
    pairs = [(place[name], place.get(name + STDERR)) for name in names]
    return names, [[_cell(row[at], row[error] if error is not None else None) for at, error in pairs] for row in rows]


def frame_cells(frame: pandas.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Write a data frame's cells for the eye (see `shown_cells`)."""
    return shown_cells([str(name) for name in frame.columns], plain(frame.to_numpy(dtype=object)))


def _cell(value: Any, error: Any) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if error:
        digits = 1 - math.floor(math.log10(error))
        if 0 <= digits <= 6:
            return f"{value:.{digits}f} ± {error:.{digits}f}"
        return f"{value:.4g} ± {error:.2g}"
    return f"{value:.0f}" if value == int(value) and abs(value) < 1e6 else f"{value:.4g}"


def versions() -> dict[str, str]:
    """Return the versions that numbers may depend on."""
    libraries = {library: importlib.metadata.version(library) for library in LIBRARIES}
    return {"gibbsian": gibbsian.__version__, "python": platform.python_version(), **libraries}


def read_records(folder: Path) -> list[dict[str, Any]]:
    """Read the records that `Report.write` left in a folder, in the order of the papers."""
    records = []
    for path in sorted(folder.glob("*.json")):
        try:
            record = json.loads(path.read_bytes())
        except ValueError as error:
            raise FileFormatError(f"{path} is not JSON", "delete it, and run gibbsian-reproduce again") from error
        if isinstance(record, dict) and "claims" in record and "experiment" in record:
            records.append(record)
    return in_order(records)


def in_order(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort records by paper, then by name."""
    places = {paper: place for place, paper in enumerate(PAPERS)}

    def place(record: dict[str, Any]) -> tuple[int, str, str]:
        return places.get(record["paper"], len(places)), record["paper"], record["experiment"]

    return sorted(records, key=place)
