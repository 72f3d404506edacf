"""``ladderboard verify``, and ``guard export --close``, of which it checks what it leaves."""

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
from support.server.live_server import make_predictions


@pytest.fixture
def closed(run, made):
    """Close a guard that was asked twice; return its head."""
    for name in ("half", "good"):
        run("ask", "guard.db", f"{name}.csv")
    return run("export", "guard.db", "--close", "--out", "a.bundle", "--yes", "--json").json


def test_a_guard_is_closed_opened_and_verified(run, made):
    run("ask", "guard.db", "half.csv")
    done = run("export", "guard.db", "--close", "--out", "a.bundle", "--yes")
    head = lb.Holdout.open("guard.db").head
    assert done.out == (
        "guard.db is closed for good.\n"
        "a.bundle holds 4 entries, the noise key, every risk and every draw; no labels.\n"
        "Everyone who has it can verify every release:\n"
        f"  ladderboard verify a.bundle --head {head}\n"
    )
    assert run("ask", "guard.db", "good.csv").code == 3
    assert lb.Holdout.open("guard.db").remaining == 0
    assert Path("a.bundle").stat().st_mode & 0o777 == 0o600


def test_it_says_what_holds_and_what_nobody_could_check(program, closed):
    assert (closed["before"], closed["bundle"]["labels"]) == (False, False)
    found = program("verify", "a.bundle", "--head", closed["bundle"]["head"]).out
    assert found.startswith("verified: 2 releases\nVerified:\n  - the chain: 5 entries, ")
    assert "entries 0 to 4: unchanged since the saved head or receipt" in found
    assert "  - 2 risks: the labels and submissions are not in the bundle\n" in found
    assert found.endswith(f"\nhead       {closed['bundle']['head']}\n")
    told = program("verify", "a.bundle", "--json").json
    assert (told["verified"], told["releases"], told["unchanged"]) == (True, 2, None)
    assert "rewritten" in told["unchecked"][0]


def test_a_closed_guard_is_opened_again_with_its_labels(run, program, closed):
    words = ("export", "guard.db", "--close", "--out", "b.bundle", "--labels")
    asked = run(*words)
    assert (asked.code, Path("b.bundle").exists()) == (2, False)
    assert "Opening the labels of guard.db cannot be undone" in asked.err
    done = run(*words, "--yes")
    assert "guard.db was closed before.\n" in done.out
    assert "the labels: as committed to" in program("verify", "b.bundle").out


def test_the_first_entry_that_differs_is_named(program, closed):
    content = Path("a.bundle").read_bytes()
    Path("a.bundle").write_bytes(content.replace(b'"improved":true', b'"improved":null', 1))
    done = program("verify", "a.bundle")
    assert (done.code, done.out) == (4, "")
    said = "ladderboard: Entry 2 of the ledger is not as it was written: "
    assert done.err == f"{said}its field improved is not true or false.\n"
    error = json.loads(program("verify", "a.bundle", "--json").out)["error"]
    assert (error["code"], error["entry"]) == ("broken_ledger", 2)


def test_the_public_side_of_a_guard_is_followed(run, program, made):
    run("ask", "guard.db", "half.csv")
    head = run("export", "guard.db", "--out", "ledger.jsonl", "--json").json["head"]
    run("ask", "guard.db", "good.csv")
    run("export", "guard.db", "--out", "later.jsonl")
    found = program("verify", "--ledger", "later.jsonl", "--head", head).out
    assert found.startswith("the chain holds: 4 entries, not closed yet\n")
    assert "whether the last entry was rewritten" in found
    done = program("verify", "ledger.jsonl", "--head", "ab" * 32)
    assert (done.code, done.out) == (4, "")
    assert "older than that head, or was rewritten" in done.err


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ([], 2, "Name one file to verify"),
        (["a.bundle", "--ledger", "a.bundle"], 2, "Name one file to verify"),
        (["a.bundle", "--head", "abc"], 2, "A head must be 64 hex digits"),
        (["a.bundle", "--receipt", "good.csv"], 4, "no complete receipt"),
        (["a.bundle", "--receipt", "nowhere"], 4, "cannot be read"),
        (["nowhere"], 4, "cannot be read"),
        (["."], 4, "cannot be read"),
        (["good.csv"], 4, "neither a bundle"),
        (["a.bundle", "--loss", "brier"], 2, "another loss than the one given"),
        (["a.bundle", "--loss", "no:such"], 2, "no:such"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_a_sentence(program, closed, words, code, sentence):
    done = program("verify", *words)
    assert (done.code, done.out) == (code, "")
    assert sentence in done.err
    assert len(done.err.splitlines()) == 1


def test_a_damaged_receipt_is_not_passed_over(program, page, taken_part):
    program("ledger", page, "--out", "ledger.jsonl")
    kept = taken_part.read_bytes()
    last = json.loads(kept.splitlines()[-1])
    words = ("verify", "--ledger", "ledger.jsonl", "--receipt", taken_part)
    taken_part.write_bytes(kept + b'\n{"state": "answered", "ti')  # as a crash leaves it
    assert program(*words).code == 0
    del last["answer"]["receipt"]["salt"]
    for more in (json.dumps(last).encode(), b"garbage"):
        taken_part.write_bytes(kept + b"\n" + more)
        done = program(*words)
        assert (done.code, done.out) == (4, "")
        assert f"line {len(kept.splitlines()) + 1} of {taken_part} is damaged" in done.err


def test_the_commitment_that_was_announced(program, closed, run):
    told = run("status", "guard.db", "--json").json["commitment"]
    assert program("verify", "a.bundle", "--commitment", told).code == 0
    mixed_up = program("verify", "a.bundle", "--head", told)
    assert (mixed_up.code, "--commitment" in mixed_up.err) == (2, True)
    other = program("verify", "a.bundle", "--commitment", "ab" * 32)
    assert (other.code, other.out) == (4, "")
    assert "Entry 0 of the ledger is not as it was written: it commits to other" in other.err


@pytest.mark.parametrize("number", [0, 1])
def test_the_entry_that_was_changed_is_named_though_the_next_one_tells_it(
    program, made, run, number
):
    for name in ("half", "good"):
        run("ask", "guard.db", f"{name}.csv")
    run("export", "guard.db", "--out", "ledger.jsonl")
    lines = Path("ledger.jsonl").read_bytes().splitlines(keepends=True)
    lines[number] = lines[number].replace(b'{"format":1,', b'{"format": 1,')
    Path("changed.jsonl").write_bytes(b"".join(lines))
    done = program("verify", "changed.jsonl", "--json")
    assert json.loads(done.out)["error"]["entry"] == number


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--out", "good.csv", "--close", "--yes"], "good.csv exists already"),
        (["--out", "no/where", "--close", "--yes"], "There is no directory no"),
        (["--out", "a.bundle", "--close"], "give --yes"),
        (["--out", "a.bundle", "--labels"], "need --close"),
        (["--out", "a.bundle", "--yes"], "need --close"),
        (["--out", "a.bundle", "--key-file", "key"], "The public ledger needs no key"),
    ],
)
def test_an_export_that_is_refused_closes_nothing(run, everything, words, sentence):
    before = everything()
    done = run("export", "guard.db", *words, piped=b"")
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err
    assert everything() == before
    assert not Path("a.bundle").exists()


@pytest.mark.parametrize(
    ("typed", "code", "sentence"),
    [
        ("guard.db\n", 0, ""),
        ("\n", 2, "No name was typed; nothing was changed."),
        ("\x04", 2, "No name was typed; nothing was changed."),  # Ctrl-D
        ("guard\n", 2, "That is another name; nothing was changed."),
    ],
)
def test_a_person_is_asked_first(made, typed, code, sentence):
    words = ["guard", "export", "guard.db", "--close", "--out", "a.bundle"]
    mine, theirs = pty.openpty()
    asked = subprocess.Popen(
        [sys.executable, "-m", "ladderboard", *words],
        stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.write(mine, typed.encode())
    _, said = asked.communicate(timeout=60)
    os.close(mine)
    os.close(theirs)
    assert asked.returncode == code
    assert "Closing guard.db cannot be undone: it answers no more questions." in said
    assert sentence in said
    assert "The labels stay hidden" in " ".join(said.split())
    assert Path("a.bundle").exists() == (code == 0)
    assert lb.Holdout.open("guard.db").meter.chain_state.closed == (code == 0)


@pytest.fixture
def taken_part(program, live_server, page, monkeypatch):
    """Submit twice to a board; return where the receipts are kept."""
    _, token = live_server.join("Ada")
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", token)
    for wrong in (60, 20):
        Path("mine.csv").write_bytes(make_predictions(wrong))
        assert program("submit", page, "-f", "mine.csv").code == 0
    with Client(live_server.url) as client:
        return client.receipts_file(live_server.slug)


def test_a_receipt_opens_its_entry_before_and_after_the_close(
    program, live_server, page, taken_part
):
    program("ledger", page, "--out", "ledger.jsonl")
    kept = ("--receipt", taken_part)
    done = program("verify", *kept, "--ledger", "ledger.jsonl")
    assert done.err == ""
    assert done.out.count("The receipt opens entry ") == 2
    again = program("verify", *kept, *kept, "--ledger", "ledger.jsonl")
    assert again.out == done.out
    board = live_server.boards.open(live_server.slug)
    board.closer.close(Caller(Role.ORGANISER))
    write_board_bundle(board, "b.bundle", labels=True, submissions=True)
    told = program("verify", "b.bundle", *kept, "--json").json
    assert [each["question"] for each in told["receipts"]] == [1, 2]
    assert told["unchanged"] == told["receipts"][1]["entry"]
    assert told["risks"] == told["releases"] == 2
    # A ledger from before the second answer holds no such entry.
    lines = Path("ledger.jsonl").read_bytes().splitlines(keepends=True)
    Path("older.jsonl").write_bytes(b"".join(lines[:-1]))
    done = program("verify", *kept, "--ledger", "older.jsonl")
    assert (done.code, done.out) == (4, "")
    assert "is not in this ledger" in done.err


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
def test_a_forged_receipt_opens_nothing(program, page, taken_part, change, sentence):
    program("ledger", page, "--out", "ledger.jsonl")
    last = json.loads(taken_part.read_text().splitlines()[-1])
    Path("forged.json").write_text(json.dumps({**last["answer"]["receipt"], **change}))
    done = program("verify", "--receipt", "forged.json", "--ledger", "ledger.jsonl")
    assert (done.code, done.out) == (4, "")
    assert sentence in done.err


@pytest.mark.parametrize(
    "change",
    [
        *({"released": 0.0}, {"released": None}, {"loss": 0.0}, {"score_loss": 0.0}),
        *({"improved": False}, {"question": 7}, {"entry": 3}, {"team": {"id": "x"}}),
    ],
)
def test_an_answer_that_the_ledger_does_not_know_is_found(program, page, taken_part, change):
    program("ledger", page, "--out", "ledger.jsonl")
    last = json.loads(taken_part.read_text().splitlines()[-1])
    last["answer"].update(change)
    Path("other.json").write_text(json.dumps(last))
    done = program("verify", "--receipt", "other.json", "--ledger", "ledger.jsonl")
    assert (done.code, done.out) == (4, "")
    assert "Entry 4 records another answer than the one saved with the receipt" in done.err
