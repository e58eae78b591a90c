"""Install the wheel of a folder in an environment of its own and use it: ``python -m tools try_wheel dist``.

What the wheel needs is taken from the environment that runs this, so that nothing is downloaded.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

USE = """
import gibbsian as gb
assert {site!r} in gb.__file__, gb.__file__
votes = gb.datasets.load_house_votes()
print(gb.BoltzmannMachine(l2=0.01).fit(votes.complete_rows()).result_.reason)
"""


def missing_from(wheel: Path, source: Path) -> set[str]:
    """The files of the package that the wheel should hold and does not."""
    wanted = {
        path.relative_to(source).as_posix() for path in source.rglob("*") if path.suffix in (".py", ".pyi", ".csv")
    }
    return (wanted | {"gibbsian/py.typed"}) - set(zipfile.ZipFile(wheel).namelist())


def try_wheel(wheel: Path) -> str:
    """Install a wheel, without what it needs, and return what a fit with it says."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)
        python = Path(folder) / "bin" / "python"
        site = sysconfig.get_path("purelib", vars={"base": folder, "platbase": folder})
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", site, str(wheel)]
        subprocess.run(command, check=True)
        (Path(site) / "needed.pth").write_text(sysconfig.get_path("purelib"))
        done = subprocess.run([python, "-I", "-c", USE.format(site=site)], capture_output=True, text=True, cwd=folder)
        if done.returncode:
            raise SystemExit(done.stderr)
        return done.stdout.strip()


if __name__ == "__main__":
    (found,) = Path(sys.argv[1]).glob("*.whl")
    if lost := missing_from(found, Path(__file__).parents[1] / "src"):
        raise SystemExit(f"not in {found.name}: {', '.join(sorted(lost))}")
    print(f"{found.name}: {try_wheel(found)}")
