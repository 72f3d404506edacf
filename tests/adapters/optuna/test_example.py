"""The example runs as it is, and ends with its table."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples/optuna_search.py"


def test_the_example_ends_with_a_table():
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)], capture_output=True, text=True, check=False
    )
    assert ran.stderr == ""
    head, *rows = ran.stdout.splitlines()
    assert head.split()[0] == "trial"
    improved = [row for row in rows if "True" in row]
    assert improved[-1].endswith("the winner")
    assert ran.stdout.count("the winner") == 1
    assert 1 < len(rows) < 20
