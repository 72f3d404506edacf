"""Runs of the real library, loaded by path: tests are no package."""

import importlib.util
import sys
import warnings
from pathlib import Path

import pytest


@pytest.hookimpl(trylast=True)
def pytest_configure(config) -> None:
    """A run of Inspect leaves streams open, which is found out whenever garbage is collected."""
    for each in ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning"):
        config.addinivalue_line("filterwarnings", f"ignore::{each}")
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:inspect_ai")


def pytest_unconfigure(config) -> None:
    """Nor is that an error at the very end."""
    warnings.simplefilter("ignore")


@pytest.fixture(scope="session")
def runs():
    """The runs that also wrote the logs in tests/adapters/data."""
    place = Path(__file__).with_name("_runs.py")
    spec = importlib.util.spec_from_file_location("_ladderboard_test_inspect_runs", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Inspect looks a scorer's module up
    spec.loader.exec_module(module)
    return module
