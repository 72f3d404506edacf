"""Tests against heavy libraries run in environments of their own, which script/adapters makes."""

from __future__ import annotations

import os
import runpy
import tempfile
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from support.adapters import training_data

HERE = Path(__file__).parent
LOCKS = HERE.parents[1] / "requirements/adapters"
ADAPTER = os.environ.get("LADDERBOARD_ADAPTER", "")

collect_ignore = [path.stem for path in LOCKS.glob("*.txt") if path.stem != ADAPTER]


def pytest_configure(config) -> None:
    """Leave warnings of other people's code alone there; ours stay errors."""
    if ADAPTER:
        config.addinivalue_line("filterwarnings", "default")
        config.addinivalue_line("filterwarnings", "error:::ladderboard")


@pytest.fixture
def make_guard(tmp_path):
    """Give a function that makes a guard over a small sample, and returns its features, too."""
    return partial(training_data.make_guard, tmp_path)


@pytest.fixture
def example(tmp_path, monkeypatch, capsys):
    """Return a function that runs an example: its names, its folder, and what it printed."""
    monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda: nullcontext(str(tmp_path)))

    def run(name):
        module_globals = runpy.run_path(
            str(HERE.parents[1] / f"examples/{name}.py"), run_name="__main__"
        )
        return module_globals, tmp_path, capsys.readouterr().out

    return run
