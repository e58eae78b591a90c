"""Documents that say the same thing twice agree."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def layers() -> list[set[str]]:
    """Return the packages of each layer of the import contract, from the bottom."""
    contract = configparser.ConfigParser()
    contract.read(ROOT / ".importlinter")
    lines = contract["importlinter:contract:packages"]["layers"].split("\n")
    named = [set(line.replace("gibbsian.", "").replace(" ", "").split("|")) for line in lines if line]
    return named[::-1]


def test_the_architecture_lists_packages_in_the_order_of_the_import_contract():
    text = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \|", text.split("## Packages")[1].split("\n## ")[0], re.MULTILINE)
    listed = [name.removesuffix(".py").removesuffix("/") for row in rows for name in re.findall(r"`(.*?)`", row)]
    place = {name: k for k, layer in enumerate(layers()) for name in layer}
    assert sorted(listed) == sorted(place)
    assert [place[name] for name in listed] == sorted(place.values())


def test_the_comparison_denies_nothing_that_there_is():
    text = (ROOT / "docs/site/comparison.rst").read_text()
    only_there = [row.strip().split("\n     - ")[3] for row in re.split(r"\n   \* - ", text)[1:]]
    denied = [*only_there, text.rpartition("Not here:")[2]]
    assert "gpu = [" in (ROOT / "pyproject.toml").read_text()
    assert not [words for words in denied if re.search("accelerator|GPU", words)]


def test_the_architecture_names_files_and_contracts_that_there_are():
    text, source = (ROOT / "docs/architecture.md").read_text(), ROOT / "src/gibbsian"
    for name in re.findall(r"`([\w/]+\.py)\b", text):
        assert any((folder / name).exists() for folder in (source, ROOT / "tests", ROOT / "tests/golden")), name
    for file, names in re.findall(r"`(models/base\.py)`: (.*?)\|", text):
        known = (source / file).read_text()
        assert all(f"class {name}(" in known for name in re.findall(r"`(\w+)`", names))
