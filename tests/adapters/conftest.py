"""Tests against heavy libraries run in environments of their own, which script/adapters makes."""

from __future__ import annotations

import importlib.util
import os
import runpy
import tempfile
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LOCKS = HERE.parents[1] / "requirements/adapters"
ADAPTER = os.environ.get("LADDERBOARD_ADAPTER", "")

collect_ignore = [each.stem for each in LOCKS.glob("*.txt") if each.stem != ADAPTER]


def pytest_configure(config) -> None:
    """Leave warnings of other people's code alone there; ours stay errors."""
    if ADAPTER:
        config.addinivalue_line("filterwarnings", "default")
        config.addinivalue_line("filterwarnings", "error:::ladderboard")


def _data():
    """Tests are no package: the helper is loaded by its path."""
    spec = importlib.util.spec_from_file_location("_ladderboard_test_data", HERE / "_data.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def sample():
    """Return the function that makes samples for tiny trainings."""
    return _data().sample


@pytest.fixture
def guarded(tmp_path):
    """Return the function that makes a guard over such a sample."""
    return partial(_data().guarded, tmp_path)


@pytest.fixture
def example(tmp_path, monkeypatch, capsys):
    """Return a function that runs an example: its names, its folder, and what it printed."""
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda: nullcontext(str(tmp_path)))

    def run(name):
        made = runpy.run_path(str(HERE.parents[1] / f"examples/{name}.py"), run_name="__main__")
        return made, tmp_path, capsys.readouterr().out

    return run
