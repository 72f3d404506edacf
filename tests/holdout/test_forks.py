"""Forks while threads ask and close: what was told stands, once, and nobody waits for ever."""

import json

import pytest

from support.processes import run_module


@pytest.mark.parametrize("seconds", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_threads_that_ask_one_that_closes_and_children(tmp_path, seconds):
    done = run_module("support.holdout.fork_stress", tmp_path, seconds, timeout=60 + 5 * seconds)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["children"] > 5
    assert found["failed"] == found["different"] == found["duplicates"] == 0
    assert found["answers"] == found["recorded"] == found["checked"]
