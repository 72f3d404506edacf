"""The dense attack of the benchmark, as the reference for distributions."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def dense():
    path = Path(__file__).parents[2] / "bench/_dense_attack.py"
    spec = importlib.util.spec_from_file_location("_dense_attack", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dense_majority_attack
