"""The example runs as it is, and ends with its table."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples/sklearn_search.py"


@pytest.mark.slow
def test_the_example_ends_with_a_table():
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)], capture_output=True, text=True, check=False
    )
    assert ran.stderr == ""
    page = (EXAMPLE.parents[1] / "docs/how-to/search.md").read_text()
    assert f"$ python examples/sklearn_search.py\n{ran.stdout}```" in page
    head, *rows = ran.stdout.splitlines()
    assert head.split()[0] == "candidate"
    improved = [row for row in rows if "True" in row]
    assert improved[-1].endswith("the winner")
    assert ran.stdout.count("the winner") == 1
    assert 1 < len(rows) < 20
