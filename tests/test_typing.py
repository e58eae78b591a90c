"""What type checkers see: lazily loaded names with their real types, declared settings as arguments."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import gibbsian

ROOT = Path(gibbsian.__file__).parents[2]

# Each line with what mypy must say of it: an error, a revealed type, or nothing.
LINES = (
    ("import gibbsian", ""),
    ("from gibbsian import BoltzmannMachine, plots", ""),
    ("from gibbsian.learning import PCD, MomentMatching, run", ""),
    ('machine = BoltzmannMachine("grid:2x2", l2=0.1, random_state=0)', ""),
    ("reveal_type(machine.fit([[0, 1]]))", '"gibbsian.estimators.boltzmann_machine.BoltzmannMachine"'),
    ("reveal_type(machine.result_)", '"gibbsian.learning.result.FitResult"'),
    ("reveal_type(plots.couplings(machine))", '"matplotlib.axes._axes.Axes"'),
    ("reveal_type(gibbsian.VonMisesFisherMixture(3).weights_)", '"numpy.ndarray['),
    ('MomentMatching("exact", "anderson")', ""),
    ("gibbsian.BoltzmannMachine(l3=1)", 'Unexpected keyword argument "l3"'),
    ('gibbsian.BoltzmannMachine(tol="small")', '"str"; expected "float"'),
    ('gibbsian.BoltzmannMachine("complete", True)', "Too many positional arguments"),
    ("gibbsian.BoltzmanMachine()", 'no attribute "BoltzmanMachine"'),
    ("gibbsian.BoltzmannMachine().couplings", 'no attribute "couplings"'),
    ("gibbsian.GibbsClassifier(n_hiden=3)", 'Unexpected keyword argument "n_hiden"'),
    ("PCD(n_chain=3)", 'Unexpected keyword argument "n_chain"'),
    ("run(1)", "Missing positional arguments"),
)


def test_mypy_sees_lazy_names_and_declared_settings(tmp_path: Path) -> None:
    source = tmp_path / "use.py"
    source.write_text("\n".join(line for line, _ in LINES) + "\n")
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--hide-error-context", str(source)]
    said: dict[int, str] = {}
    for line in subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.splitlines():
        found = re.search(r"use\.py:(\d+): (error|note: Revealed)(.*)", line)
        if found:
            said[int(found[1])] = said.get(int(found[1]), "") + found[3]
    wanted = {number: words for number, (_, words) in enumerate(LINES, start=1) if words}
    assert said.keys() == wanted.keys()
    assert all(words in said[number] for number, words in wanted.items()), said


def test_lazy_names_are_what_the_stubs_say_whatever_was_imported_before() -> None:
    for stub in Path(gibbsian.__file__).parent.rglob("__init__.pyi"):
        package = importlib.import_module(".".join(stub.parent.relative_to(ROOT / "src").parts))
        if package is not gibbsian:
            for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
                importlib.import_module(module.name)
        assert package.__all__
        assert [name for name in package.__all__ if getattr(package, name) is not package.__getattr__(name)] == []
