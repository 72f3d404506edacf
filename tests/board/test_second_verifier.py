"""The second verifier on the ledger of a board with every kind of event."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from ladderboard.board import write_board_bundle
from ladderboard.verify import verify_bundle
from support.verify.bundles import bundle_book

PROGRAM = Path(__file__).parents[2] / "examples" / "check_bundle.py"


def check(path):
    command = [sys.executable, PROGRAM, path]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return (result.stdout or result.stderr).splitlines()[0]


def test_a_board_that_was_amended_corrected_and_closed(
    boards, make_folder, join, submit, predict, organiser, tmp_path
):
    mechanism = "{name: shaky_ladder, step: 0.02, compare_noise: 0.01, release_noise: 0.005}"
    board = boards.create(make_folder(mechanism=mechanism, ladder="team"))
    callers = {name: join(boards, board, name)[0] for name in ("Ada", "Bob")}
    for errors, caller in enumerate([*callers.values()] * 3):
        submit(board, caller, predict(60 - 10 * errors))
    amend = board.amendments.amend
    amend(organiser, {"title": "Nächste", "questions": 150})
    amend(organiser, {"play": True, "window": {"questions": 3, "days": 1}})
    amend(organiser, {"terms": "Be fair.", "listing": "unlisted", "teams": 6})
    board.terms.accept(callers["Ada"], board.terms.summary(callers["Ada"])["version"])
    labels = np.arange(400) % 2
    labels[:15] ^= 1
    board.amendments.correct_labels(organiser, make_folder(labels=labels).table)
    amend(organiser, {"play": False, "window": None, "listing": "listed"})
    board.teams.disqualify(organiser, board.as_seen_by(callers["Bob"]).team()["id"])
    submit(board, callers["Ada"], predict(3))
    amend(organiser, {"terms": None})
    board.amendments.pause(organiser)
    board.closer.close(organiser)
    amend(organiser, {"visibility": "hidden"})

    kinds = {fields["kind"] for _, fields in board.book.entries()}
    assert kinds >= {"opened", "ladder", "question", "amended", "paused", "disqualified", "closed"}
    assert "accepted" in kinds
    ledger = tmp_path / "ledger.jsonl"
    forms = [entry.encoded for entry, _ in board.book.entries()]
    ledger.write_bytes(b"".join(form + b"\n" for form in forms))
    counted = f"{len(forms)} entries, 9 questions: "
    assert check(ledger) == f"{counted}the chain holds; nothing is opened yet"
    path = bundle_book(board.book, tmp_path / "bundle.ladderboard")
    assert check(path) == f"{counted}the chain and the tape hold"

    changes = {
        b'"questions":150': "its commitment is not that of what was decided",
        b'"listing":"unlisted"': "its commitment is not that of what was decided",
        b'"terms":null': "its commitment is not that of what was decided",
        b'"play":null': "its commitment is not that of what was decided",
        b'"labels":1': "its correction is miscounted",
    }
    write_board_bundle(board, tmp_path / "whole", labels=True, submissions=True)
    verify_bundle(tmp_path / "whole")
    for old, message in changes.items():
        position = next(
            i for i, form in enumerate(forms) if b'"kind":"amended"' in form and old in form
        )
        forged = [
            *forms[:position],
            forms[position].replace(old, b'"other":7'),
            *forms[position + 1 :],
        ]
        ledger.write_bytes(b"".join(form + b"\n" for form in forged))
        assert check(ledger) == f"entry {position}: {message}"
