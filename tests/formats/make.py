"""Make the small files of the present formats, to be kept: later versions must read them.

Run once for each released format: python tests/formats/make.py FOLDER

Databases have folders of their own: tests/ledger/formats, tests/holdout/formats and
tests/board/formats.
"""

import itertools
import json
import os
import sys
import tempfile
from pathlib import Path

import ladderboard as lb
from ladderboard.arena._runner._sweep import ResultsFile
from ladderboard.client import Config
from ladderboard.client._receipts import ReceiptWriter
from ladderboard.ledger import LedgerEnvironment, Receipt

MECHANISM = lb.ShakyLadder(step=0.05, compare_noise=0.01, release_noise=0.01, grid=0.01)
KEY = bytes(range(32))
RISKS = (0.3, 0.2, 0.1)
LABELS = [0, 1] * 10
ANSWER = {
    "id": "0" * 32,
    "released": 0.25,
    "receipt": Receipt("b" * 32, 3, b"h" * 32, b"m" * 32, bytes(32)).describe(),
}


class Named:
    """A task of an arena, by what it says of itself."""

    def describe(self):
        return {"name": "example", "version": "0"}


def guesses(wrong):
    """Return predictions of which so many are wrong."""
    return [label ^ (at < wrong) for at, label in enumerate(LABELS)]


def session(folder):
    """Write a session that was saved, and what it says next."""
    going = MECHANISM.start(n=1000, tape=lb.Tape(key=KEY))
    for risk in (0.5, 0.4):
        going.ask(risk=risk)
    state = going.state
    following = [going.ask(risk=risk).value for risk in RISKS]
    (folder / "session-1.json").write_text(json.dumps({"state": state, "next": following}) + "\n")


def receipts(folder):
    """Write receipts as the client keeps them: one that was answered, one that waits."""
    file = folder / "receipts-1.jsonl"
    first = ReceiptWriter(file, "a" * 64, "first", None)
    first.write("pending")
    first.write("answered", answer=ANSWER)
    ReceiptWriter(file, "c" * 64, "second", "0" * 16).write("pending")


def config(folder):
    """Write what ``ladderboard login`` keeps."""
    os.environ["XDG_CONFIG_HOME"] = str(folder)
    made = Config().with_token("http://127.0.0.1:8000", "digits", "lb_team_not-a-token")
    made.write().rename(folder / "config-1.toml")
    (folder / "ladderboard").rmdir()


def guard(folder):
    """Write a guard whose secret side is encrypted, and its key file."""
    ticks, salts = itertools.count(1_700_000_000), itertools.count()
    environment = LedgerEnvironment(
        clock=lambda: next(ticks), salt=lambda: next(salts).to_bytes(32, "big")
    )
    made = lb.Holdout.create(
        folder / "guard-1.db",
        LABELS,
        questions=10,
        mechanism=MECHANISM,
        key_file=folder / "guard-1.key",
        environment=environment,
    )
    made.ask(guesses(8))
    made.close()


def results(folder):
    """Write a result of an arena, as experiments keep them."""
    with ResultsFile(folder / "results-1.jsonl") as store:
        store.add(Named(), {"error": 0.1})


def board_bundle(folder):
    """Write the bundle of a closed board of three teams and a baseline, with everything in it."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from support.verify import board_history

    with (
        tempfile.TemporaryDirectory() as made,
        board_history.small_board(Path(made)) as (board, teams),
    ):
        for number in range(6):
            board_history.submit_predictions(board, teams[number % 2], 10 + number)
        board_history.close_and_bundle(board, folder / "board-bundle-2.ladderboard")


if __name__ == "__main__":
    for make in (session, receipts, config, guard, results, board_bundle):
        make(Path(sys.argv[1]).absolute())
