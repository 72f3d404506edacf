"""The examples: short, and the one that needs no library run on kept files."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("name", ["inspect_guard", "lm_eval_guard"])
def test_an_example_is_short(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 40


def test_runs_that_are_there_already(data):
    (log,) = (data / "lm_eval").glob("samples_sums_2*.jsonl")
    ran = subprocess.run(
        [sys.executable, EXAMPLES / "lm_eval_guard.py", log, log],
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = ran.stdout.splitlines()
    assert first.startswith("run 1 of sums: The best ")
    assert first.endswith("19 questions left.")
    assert "asked before, as question 1" in second
