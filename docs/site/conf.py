"""How Sphinx builds the site: ``make docs``."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import FunctionType
from typing import Any

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.ext import autosummary

import gibbsian

HERE = Path(__file__).parent

project = "gibbsian"
author = copyright = "the gibbsian developers"
version = release = gibbsian.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
default_role = "py:obj"
myst_heading_anchors = 3
suppress_warnings = ["config.cache", "myst.header"]

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say them in words
toc_object_entries_show_parents = "hide"
autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "Fig.")  # no ends of sentences
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "parallel": True,  # as many at once as -j says
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "abort_on_example_error": True,
    "default_thumb_file": None,
    "capture_repr": ("_repr_html_", "__repr__"),
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "gibbsian"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": [], "install": [], "tour": [], "comparison": [], "api/generated/*": []}
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "footer_start": ["copyright"],
    "footer_end": [],
}


# -- the pages of the public names, one for each module, made from the modules themselves ---------------------------
def _table(module: str, names: list[str]) -> str:
    rows = "".join(f"   {name}\n" for name in names)
    return f".. currentmodule:: {module}\n\n.. autosummary::\n   :toctree: generated\n\n{rows}\n" if names else ""


def _public(module: Any) -> list[str]:
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    return sorted(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def _documented(module: Any, seen: set[int]) -> list[str]:
    """The classes and functions of a module that no page has yet."""
    things = {name: getattr(module, name) for name in _public(module)}
    shown = [name for name, it in things.items() if isinstance(it, type | FunctionType) and id(it) not in seen]
    seen.update(id(things[name]) for name in shown)
    return shown


def write_reference() -> None:
    """Write ``api/``: the names of the package, and one page for each of its public modules."""
    folder, seen = HERE / "api", set()
    folder.mkdir(exist_ok=True)
    listed = {"gibbsian": _documented(gibbsian, seen)}
    front = _table("gibbsian", listed["gibbsian"])
    modules = [name for name in gibbsian.__all__ if inspect.ismodule(getattr(gibbsian, name))]
    for name in modules:
        module = importlib.import_module(f"gibbsian.{name}")
        title = f"gibbsian.{name}"
        listed[title] = _documented(module, seen)
        page = f"{title}\n{'=' * len(title)}\n\n{inspect.getdoc(module)}\n\n{_table(title, listed[title])}"
        _write(folder / f"{name}.rst", page)
    pages = "".join(f"   {name}\n" for name in modules)
    text = (
        "API reference\n=============\n\nWhat stands in the package itself: estimators, and families of models.\n\n"
        f"{front}Modules:\n\n.. toctree::\n   :maxdepth: 1\n\n{pages}"
    )
    _write(folder / "index.rst", text)
    _keep(folder / "generated", {f"{title}.{name}" for title, names in listed.items() for name in names})


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:  # an unchanged page is not built anew
        path.write_text(text)


def _keep(folder: Path, stems: set[str]) -> None:
    """Remove pages of what is no more."""
    for page in folder.glob("*.rst"):
        if page.stem not in stems:
            page.unlink()


write_reference()
_keep(HERE / "gallery", {"index", *(path.stem for path in (HERE / "../../examples").glob("*.py"))})


def _is_foreign(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn and the standard library give to our classes."""
    module = getattr(inspect.unwrap(thing) if callable(thing) else thing, "__module__", None) or "gibbsian"
    return True if not module.startswith("gibbsian") or name.endswith("_request") else None


def _as_mathml(translator: Any, node: Any) -> None:
    """Write an equation in MathML, which browsers draw themselves: pages need no network for it."""
    block = node.tagname == "math_block"
    drawn = "".join(tex2mathml(node.astext(), as_block=block))
    translator.body.append(f'<div class="equation">{drawn}</div>' if block else drawn)
    raise SkipNode


def setup(app: Any) -> None:
    """Tell Sphinx which members are ours, and how equations are written."""
    app.connect("autodoc-skip-member", _is_foreign)
    app.add_html_math_renderer("mathml", (_as_mathml, None), (_as_mathml, None))
