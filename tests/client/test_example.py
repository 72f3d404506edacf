"""The example takes part in the example board."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ladderboard.board import read_folder

ROOT = Path(__file__).parents[2]


def test_the_example_searches_submits_and_ends_with_a_table(empty_server):
    live_server = empty_server
    live_server.boards.create(read_folder(ROOT / "examples/digits"))
    token = live_server.join("Ada", "digits")[1]
    result = subprocess.run(
        [sys.executable, ROOT / "examples/submit.py", live_server.url],
        env={**os.environ, "LADDERBOARD_TOKEN": token},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    head, *rows = result.stdout.splitlines()
    assert head.split() == [
        "question",
        "own",
        "accuracy",
        "released",
        "images",
        "power",
        "improved",
    ]
    assert [int(row.split()[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) >= 4
    scores = [float(row.split()[1]) for row in rows]
    assert scores == sorted(scores)  # it asked on records only
    improved = [row for row in rows if row.split()[5].startswith("yes")]
    assert [row for row in rows if row.endswith("the winner")] == improved[-1:]
