"""The versions of Numba that we say we support, and what we reach into beyond its public names."""

import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from llvmlite import ir
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from packaging.requirements import Requirement

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def supported():
    wanted = map(Requirement, tomllib.loads(PROJECT.read_text())["project"]["dependencies"])
    return next(one.specifier for one in wanted if one.name == "numba")


def test_the_installed_numba_is_supported():
    assert version("numba") in supported()


def test_support_ends_before_versions_that_nobody_has_tried():
    assert {one.operator for one in supported()} == {">=", "<"}


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (CPUDispatcher, "_compilation_chain_init_hook"),
        (CPUDispatcher, "_numba_type_"),
        (FunctionCache, "_load_overload"),
        (FunctionCache, "_guard_against_spurious_io_errors"),
        (FunctionCache, "load_overload"),
        (rtsys, "initialize"),
        (cgutils, "for_range_slice"),
        (cgutils, "get_or_insert_function"),
        (ir.IRBuilder, "fma"),
    ],
)
def test_what_we_reach_into_is_there(owner, name):
    assert hasattr(owner, name)


def test_a_kernel_is_loaded_by_its_signature_and_target():
    assert list(inspect.signature(FunctionCache.load_overload).parameters) == ["self", "sig", "target_context"]
