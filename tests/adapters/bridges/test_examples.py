"""The examples of bridges run, and end with a table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.adapters.evalai_server import CHALLENGE, PHASE, QUEUE, SPLIT, TOKEN

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(*args, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, args)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


def test_evalai(evalai, guard, predict, tmp_path):
    for team, wrong in [(5, 96), (6, 60), (5, 40)]:
        evalai.submit(team, predict(wrong))
    evalai.submit(6, b"id,prediction\n1,1\n")
    table = run(
        EXAMPLES / "evalai_worker.py", tmp_path / "guard.db", PHASE, SPLIT,
        AUTH_TOKEN=TOKEN, QUEUE_NAME=QUEUE, CHALLENGE_PK=str(CHALLENGE),
        API_SERVER=evalai.url,
    )  # fmt: skip
    assert table == [
        ["submission", "team", "status", "released", "improved"],
        ["100", "5", "finished", "0.24", "1"],
        ["101", "6", "finished", "0.16", "1"],
        ["102", "5", "finished", "0.1", "1"],
        ["103", "6", "failed"],
    ]
    assert (len(evalai.leaderboard), guard.remaining) == (3, 17)


def test_codabench():
    assert run(EXAMPLES / "codabench/try_it.py") == [
        ["team", "wrong", "released", "improved", "remaining"],
        ["alpha", "80", "0.2", "1", "19"],
        ["beta", "120", "0.3", "1", "18"],
        ["alpha", "40", "0.1", "1", "17"],
        ["beta", "160", "0.3", "0", "16"],
    ]
