"""The example that needs no library, run on recorded files."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_runs_that_are_there_already(data):
    (log,) = (data / "lm_eval").glob("samples_sums_2*.jsonl")
    ran = subprocess.run(
        [sys.executable, EXAMPLES / "lm_eval_guard.py", log, log],
        capture_output=True,
        text=True,
        check=True,
    )
    head, row = ran.stdout.splitlines()  # the second is as good in practice, and not asked about
    assert head.split() == ["run", "practice", "error", "released", "improved"]
    assert row.split()[0] == "1"
    assert row.split("   ")[-1] in {"yes, the winner", "no"}  # a few documents, and a secret key
