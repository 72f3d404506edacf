"""``ladderboard verify``, and ``guard export --close``, whose bundles it verifies."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import ladderboard as lb
from ladderboard.board import Caller, Role, write_board_bundle
from ladderboard.client import Client
from ladderboard.files import read_holdout
from support.server.live_server import make_predictions
from support.verify.board_history import N, close_and_bundle, small_board, submit_predictions


@pytest.fixture
def closed_guard(run_guard, guard_folder):
    """Close a guard that was asked twice; return its head."""
    for name in ("half", "good"):
        run_guard("ask", "guard.db", f"{name}.csv")
    return run_guard("export", "guard.db", "--close", "--out", "a.bundle", "--yes", "--json").json


def test_a_guard_is_closed_opened_and_verified(run_guard, guard_folder):
    run_guard("ask", "guard.db", "half.csv")
    result = run_guard("export", "guard.db", "--close", "--out", "a.bundle", "--yes")
    head = lb.Holdout.open("guard.db").head
    assert result.out == (
        "guard.db is closed for good.\n"
        "a.bundle holds 4 entries, the noise key, and the exact result and noise of every\n"
        "  answer. Labels are not in it.\n"
        "Anyone with this file can check every answer:\n"
        f"  ladderboard verify a.bundle --head {head}\n"
    )
    assert run_guard("ask", "guard.db", "good.csv").code == 3
    assert lb.Holdout.open("guard.db").remaining == 0
    assert Path("a.bundle").stat().st_mode & 0o777 == 0o600


def test_a_closed_guard_says_how_many_questions_were_not_asked(run_guard, closed_guard):
    assert "2 of 5 questions used, closed with 3 not asked" in run_guard("status", "guard.db").out


def test_verify_lists_what_holds_and_what_could_not_be_checked(run_cli, closed_guard):
    assert (closed_guard["before"], closed_guard["bundle"]["labels"]) == (False, False)
    output = run_cli("verify", "a.bundle", "--head", closed_guard["bundle"]["head"]).out
    assert output.startswith(
        "verified: 2 releases\nVerified:\n  - The chain is complete: 5 entries, "
    )
    assert "Entries 0 to 4 are unchanged since the saved head or receipt" in output
    assert "  - 2 risks were not checked: " in output
    assert output.endswith(f"\nhead       {closed_guard['bundle']['head']}\n")
    report = run_cli("verify", "a.bundle", "--json").json
    assert (report["verified"], report["releases"], report["unchanged"]) == (True, 2, None)
    assert "rewrite" in report["unchecked"][0]


def test_a_closed_guard_is_opened_again_with_its_labels(run_guard, run_cli, closed_guard):
    arguments = ("export", "guard.db", "--close", "--out", "b.bundle", "--labels")
    refused = run_guard(*arguments)
    assert (refused.code, Path("b.bundle").exists()) == (2, False)
    assert "Opening the labels of guard.db cannot be undone" in refused.err
    result = run_guard(*arguments, "--yes")
    assert "guard.db was closed before.\n" in result.out
    assert "The labels match their commitment." in run_cli("verify", "b.bundle").out


def test_the_first_entry_that_differs_is_named(run_cli, closed_guard):
    content = Path("a.bundle").read_bytes()
    Path("a.bundle").write_bytes(content.replace(b'"improved":true', b'"improved":null', 1))
    result = run_cli("verify", "a.bundle")
    assert (result.code, result.out) == (4, "")
    message = "ladderboard: Entry 2 of the ledger was changed: "
    assert result.err == f"{message}its field improved is not true or false.\n"
    error = json.loads(run_cli("verify", "a.bundle", "--json").out)["error"]
    assert (error["code"], error["entry"]) == ("broken_ledger", 2)


def test_the_public_ledger_of_a_guard_is_verified(run_guard, run_cli, guard_folder):
    run_guard("ask", "guard.db", "half.csv")
    head = run_guard("export", "guard.db", "--out", "ledger.jsonl", "--json").json["head"]
    run_guard("ask", "guard.db", "good.csv")
    run_guard("export", "guard.db", "--out", "later.jsonl")
    output = run_cli("verify", "--ledger", "later.jsonl", "--head", head).out
    assert output.startswith("The ledger is intact: 4 entries, still open.\n")
    assert "The last entry may have been rewritten" in output
    result = run_cli("verify", "ledger.jsonl", "--head", "ab" * 32)
    assert (result.code, result.out) == (4, "")
    assert "older than that head, or was rewritten" in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "Name one file to verify"),
        (["a.bundle", "--ledger", "a.bundle"], 2, "Name one file to verify"),
        (["a.bundle", "--head", "abc"], 2, "A head must be 64 hex digits"),
        (["a.bundle", "--receipt", "good.csv"], 4, "no complete receipt"),
        (["a.bundle", "--receipt", "nowhere"], 4, "cannot be read"),
        (["nowhere"], 4, "cannot be read"),
        (["."], 4, "cannot be read"),
        (["good.csv"], 4, "neither a bundle"),
        (["guard.db"], 4, "ladderboard guard export guard.db --out LEDGER"),
        (["a.bundle", "--loss", "brier"], 2, "another loss than the one given"),
        (["a.bundle", "--loss", "no:such"], 2, "no:such"),
    ],
)
def test_an_unverifiable_file_is_refused_in_one_sentence(
    run_cli, closed_guard, arguments, code, sentence
):
    result = run_cli("verify", *arguments)
    assert (result.code, result.out) == (code, "")
    assert sentence in result.err
    assert len(result.err.splitlines()) == 1


def test_a_damaged_receipt_is_refused(run_cli, page, receipts_file):
    run_cli("ledger", page, "--out", "ledger.jsonl")
    intact = receipts_file.read_bytes()
    last = json.loads(intact.splitlines()[-1])
    arguments = ("verify", "--ledger", "ledger.jsonl", "--receipt", receipts_file)
    receipts_file.write_bytes(intact + b'\n{"state": "answered", "ti')  # as a crash leaves it
    assert run_cli(*arguments).code == 0
    del last["answer"]["receipt"]["salt"]
    for damage in (json.dumps(last).encode(), b"garbage"):
        receipts_file.write_bytes(intact + b"\n" + damage)
        result = run_cli(*arguments)
        assert (result.code, result.out) == (4, "")
        assert f"line {len(intact.splitlines()) + 1} of {receipts_file} is damaged" in result.err


def test_the_commitment_that_was_announced(run_cli, closed_guard, run_guard):
    commitment = run_guard("status", "guard.db", "--json").json["commitment"]
    assert run_cli("verify", "a.bundle", "--commitment", commitment).code == 0
    mixed_up = run_cli("verify", "a.bundle", "--head", commitment)
    assert (mixed_up.code, "--commitment" in mixed_up.err) == (2, True)
    mismatch = run_cli("verify", "a.bundle", "--commitment", "ab" * 32)
    assert (mismatch.code, mismatch.out) == (4, "")
    assert "Entry 0 of the ledger was changed: it commits to other" in mismatch.err


@pytest.mark.parametrize("number", [0, 1])
def test_the_changed_entry_is_named_not_the_next_one(run_cli, guard_folder, run_guard, number):
    for name in ("half", "good"):
        run_guard("ask", "guard.db", f"{name}.csv")
    run_guard("export", "guard.db", "--out", "ledger.jsonl")
    lines = Path("ledger.jsonl").read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b'{"format":1,', b'{"format": 1,')
    Path("changed.jsonl").write_bytes(b"".join(lines))
    result = run_cli("verify", "changed.jsonl", "--json")
    assert json.loads(result.out)["error"]["entry"] == number


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "good.csv", "--close", "--yes"], "good.csv exists already"),
        (["--out", "no/where", "--close", "--yes"], "There is no directory no"),
        (["--out", "a.bundle", "--close"], "give --yes"),
        (["--out", "a.bundle", "--labels"], "need --close"),
        (["--out", "a.bundle", "--yes"], "need --close"),
        (["--out", "a.bundle", "--key-file", "key"], "The public ledger needs no key"),
    ],
)
def test_an_export_that_is_refused_closes_nothing(run_guard, guard_contents, arguments, sentence):
    contents_before = guard_contents()
    result = run_guard("export", "guard.db", *arguments, piped=b"")
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert guard_contents() == contents_before
    assert not Path("a.bundle").exists()


@pytest.mark.parametrize(
    ("typed", "code", "sentence"),
    [
        ("guard.db\n", 0, ""),
        ("\n", 2, "No name was typed; nothing was changed."),
        ("\x04", 2, "No name was typed; nothing was changed."),  # Ctrl-D
        ("guard\n", 2, "The name does not match; nothing was changed."),
    ],
)
def test_export_and_close_ask_for_confirmation(guard_folder, typed, code, sentence):
    arguments = ["guard", "export", "guard.db", "--close", "--out", "a.bundle"]
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ladderboard", *arguments],
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.write(mine, typed.encode())
    _, stderr = process.communicate(timeout=60)
    os.close(mine)
    os.close(theirs)
    assert process.returncode == code
    assert "Closing guard.db cannot be undone: it answers no more questions" in stderr
    assert sentence in stderr
    assert "The labels stay hidden" in " ".join(stderr.split())
    assert Path("a.bundle").exists() == (code == 0)
    assert lb.Holdout.open("guard.db").meter.chain_state.closed == (code == 0)


@pytest.fixture
def receipts_file(run_cli, live_server, page, monkeypatch):
    """Submit twice to a board; return the path of the receipts."""
    _, token = live_server.join("Ada")
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", token)
    for errors in (60, 20):
        Path("mine.csv").write_bytes(make_predictions(errors))
        assert run_cli("submit", page, "-f", "mine.csv").code == 0
    with Client(live_server.url) as client:
        return client.receipts_file(live_server.slug)


def test_a_receipt_matches_its_entry_before_and_after_the_close(
    run_cli, live_server, page, receipts_file
):
    run_cli("ledger", page, "--out", "ledger.jsonl")
    receipt_option = ("--receipt", receipts_file)
    result = run_cli("verify", *receipt_option, "--ledger", "ledger.jsonl")
    assert result.err == ""
    assert result.out.count("The receipt matches entry ") == 2
    twice = run_cli("verify", *receipt_option, *receipt_option, "--ledger", "ledger.jsonl")
    assert twice.out == result.out
    board = live_server.boards.open(live_server.slug)
    board.closer.close(Caller(Role.ORGANISER))
    write_board_bundle(board, "b.bundle", labels=True, submissions=True)
    report = run_cli("verify", "b.bundle", *receipt_option, "--json").json
    assert [receipt["question"] for receipt in report["receipts"]] == [1, 2]
    assert report["unchanged"] == report["receipts"][1]["entry"]
    assert report["risks"] == report["releases"] == 2
    # A ledger from before the second answer holds no such entry.
    lines = Path("ledger.jsonl").read_bytes().splitlines(keepends=True)
    Path("older.jsonl").write_bytes(b"".join(lines[:-1]))
    result = run_cli("verify", *receipt_option, "--ledger", "older.jsonl")
    assert (result.code, result.out) == (4, "")
    assert "is not in this ledger" in result.err


def test_receipts_and_standings_are_in_the_metric_of_the_board(run_cli, tmp_path):
    table = {"id": list(range(N)), "label": [row % 2 for row in range(N)]}
    ladder = {"name": "ladder", "step": 0.02}
    rules = {"mechanism": ladder, "finals": None}
    with small_board(tmp_path, read_holdout(table), names=("Red", "Blue", "Tie"), **rules) as (
        board,
        teams,
    ):
        answers = [submit_predictions(board, teams[0], number).describe() for number in (30, 10)]
        for team in teams[1:]:
            submit_predictions(board, team, 40)
        close_and_bundle(board, tmp_path / "a.bundle")
    Path("receipts").write_text("".join(f"{json.dumps(answer)}\n" for answer in answers))
    output = " ".join(run_cli("verify", "a.bundle", "--receipt", "receipts").out.split())
    best = f"accuracy {answers[0]['released']:g}"
    assert f" UTC. New best: {best}." in output
    assert f" UTC. No measurable improvement. Best so far: {best}." in output
    assert "The standings: rank team accuracy =1 Blue 0.94 =1 Tie 0.94 3 Red 0.92 " in output


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"salt": "00" * 32}, "The receipt was changed: it has the hash of entry 4"),
        ({"submission": "00" * 32}, "or other predictions"),
        ({"entry": 99}, "The receipt was changed"),
        ({"hash": "00" * 32}, "Entry 4 has another hash than the receipt"),
        ({"hash": "00" * 32, "entry": None}, "is not in this ledger"),
        ({"book": "another"}, "belongs to another ledger"),
    ],
)
def test_a_forged_receipt_is_refused(run_cli, page, receipts_file, change, sentence):
    run_cli("ledger", page, "--out", "ledger.jsonl")
    last = json.loads(receipts_file.read_text().splitlines()[-1])
    Path("forged.json").write_text(json.dumps({**last["answer"]["receipt"], **change}))
    result = run_cli("verify", "--receipt", "forged.json", "--ledger", "ledger.jsonl")
    assert (result.code, result.out) == (4, "")
    assert sentence in result.err


@pytest.mark.parametrize(
    "change",
    [
        *({"released": 0.0}, {"released": None}, {"loss": 0.0}, {"score_loss": 0.0}),
        *({"improved": False}, {"question": 7}, {"entry": 3}, {"team": {"id": "x"}}),
    ],
)
def test_an_answer_missing_from_the_ledger_is_found(run_cli, page, receipts_file, change):
    run_cli("ledger", page, "--out", "ledger.jsonl")
    last = json.loads(receipts_file.read_text().splitlines()[-1])
    last["answer"].update(change)
    Path("other.json").write_text(json.dumps(last))
    result = run_cli("verify", "--receipt", "other.json", "--ledger", "ledger.jsonl")
    assert (result.code, result.out) == (4, "")
    assert "Entry 4 records another answer than the one saved with the receipt" in result.err
