"""Runs of the real library, loaded by path: tests are no package."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def runs():
    """The runs that also wrote the logs in tests/adapters/data."""
    place = Path(__file__).with_name("_runs.py")
    spec = importlib.util.spec_from_file_location("_ladderboard_test_lm_eval_runs", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
