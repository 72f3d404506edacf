"""Forks while threads ask and close: what was told stands, once, and nobody waits for ever."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("_forks.py")


@pytest.mark.parametrize("seconds", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_threads_that_ask_one_that_closes_and_children(tmp_path, seconds):
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path, str(seconds)],
        capture_output=True,
        check=False,
        text=True,
        timeout=60 + 5 * seconds,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["children"] > 5
    assert found["failed"] == found["other"] == found["twice"] == 0
    assert found["acknowledged"] == found["kept"] == found["checked"]
