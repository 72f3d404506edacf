"""The documentation, built as a site once for all tests of a module."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

# Tests are no package: helpers are found beside this file, and where browsers are.
HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "browser")]

SCRIPTS = HERE.parents[1] / "script"


def load_script(name):
    """Return a script's module; scripts are no package either."""
    spec = importlib.util.spec_from_file_location(f"_ladderboard{name}", SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def builder():
    """Give the module that builds the site."""
    return load_script("_site")


@pytest.fixture(scope="session")
def reference():
    """Give the module that writes what is generated of the reference."""
    return load_script("_reference")


@pytest.fixture(scope="session")
def site(builder, tmp_path_factory):
    """Build the site, strictly."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    builder.build(folder)
    return folder
