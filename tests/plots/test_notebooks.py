"""Every picture is seen where its user looks for it: under the cell of a notebook, or among pyplot's figures."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from gibbsian import plots

SETUP = """
import numpy as np
import gibbsian as gb

rows = np.random.default_rng(0).integers(0, 2, (60, 4))
points = rows[:, :3] + np.random.default_rng(1).normal(size=(60, 3)) / 3
machine = gb.BoltzmannMachine(l2=0.1, random_state=0).fit(rows)
rbm = gb.RestrictedBoltzmannMachine(2, max_iter=3, validation_fraction=0.2, random_state=0).fit(rows)
directions = {n: gb.VonMisesFisherMixture(2, random_state=0).fit(points[:, :n]) for n in (2, 3)}
"""

# One call of every function that draws; also a call with `save_figure`, after which the picture is shown all the same.
CALLS = {
    "circle": "gb.plots.circle(directions[2], points[:, :2])",
    "convergence": "gb.plots.convergence(machine)",
    "couplings": "gb.plots.couplings(machine)",
    "filters": "gb.plots.filters(rbm)",
    "free_energies": "gb.plots.free_energies(rbm, {'rows': rows})",
    "free_energy_trace": "gb.plots.free_energy_trace(gb.HardKMeans(2, random_state=0).fit(points))",
    "intervals": "gb.plots.intervals(gb.uncertainty.confidence_intervals(machine, rows))",
    "moment_scatter": "gb.plots.moment_scatter(machine, rows)",
    "network": "gb.plots.network(machine)",
    "reconstructions": "gb.plots.reconstructions(rbm, rows)",
    "samples": "gb.plots.samples(rbm)",
    "sphere": "gb.plots.sphere(directions[3], points)",
    "stability": "gb.plots.stability(gb.uncertainty.bootstrap(machine, rows, n_replicates=5, random_state=0))",
    "training_curves": "gb.plots.training_curves(rbm)",
    "save_figure": "gb.plots.save_figure(gb.plots.couplings(machine), 'couplings.png')",
}


def run(code: str, folder) -> None:
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, cwd=folder, timeout=300)


def test_every_function_has_a_call():
    assert set(CALLS) == set(plots.__all__)


def test_an_executed_notebook_shows_every_picture(tmp_path):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    cells = [nbformat.v4.new_code_cell(code) for code in (SETUP, *CALLS.values())]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = {
        name: [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
        for name, cell in zip(CALLS, cells[1:], strict=True)
    }
    assert {name: len(images) for name, images in shown.items()} == dict.fromkeys(CALLS, 1)
    assert all(len(images[0]) > 4000 for images in shown.values())


def test_pyplot_has_every_picture_of_a_program_that_uses_it(tmp_path):
    run(
        f"""
import io
import matplotlib
matplotlib.use("agg")
from matplotlib import pyplot
{SETUP}
for number, call in enumerate({list(CALLS.values())!r}, 1):
    exec(call)
    assert len(pyplot.get_fignums()) == 1, call
    picture = io.BytesIO()
    pyplot.savefig(picture)
    assert picture.tell() > 3000, call
    pyplot.close()
_, ax = pyplot.subplots()
assert gb.plots.couplings(machine, ax=ax) is ax
assert len(pyplot.get_fignums()) == 1
""",
        tmp_path,
    )


def test_other_programs_register_no_figure(tmp_path):
    run(
        f"""
import sys
{SETUP}
for call in {list(CALLS.values())!r}:
    exec(call)
machine.report("page.html")
machine.save("model.gibbs")
from gibbsian.cli.main import app
app(["show", "model.gibbs", "--picture", "network.png"], standalone_mode=False)
assert "matplotlib.pyplot" not in sys.modules
""",
        tmp_path,
    )
