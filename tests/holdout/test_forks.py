"""Forks while threads ask and close: answers are recorded once, and nothing blocks."""

import json

import pytest

from support.processes import run_module


@pytest.mark.parametrize("seconds", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_concurrent_asking_closing_and_forking(tmp_path, seconds):
    done = run_module("support.holdout.fork_stress", tmp_path, seconds, timeout=60 + 5 * seconds)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["children"] > 5
    assert result["failed"] == result["different"] == result["duplicates"] == 0
    assert result["answers"] == result["recorded"] == result["checked"]
