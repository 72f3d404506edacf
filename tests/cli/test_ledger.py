"""``ladderboard ledger``: the very bytes, checked on the way."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ladderboard.client import Client, _requests
from ladderboard.ledger import iter_checked_entries
from support.server.live_server import make_predictions


@pytest.fixture
def asked(live_server, monkeypatch):
    """A board that some questions were put to; return its entries."""
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setattr(_requests, "_LEDGER_PAGE_SIZE", 3)  # several pages
    _, token = live_server.join("Ada")
    for wrong in (60, 50, 40, 30):
        live_server.submit(token, make_predictions(wrong))
    with live_server.boards.open(live_server.slug).reading() as view:
        return list(view.entries())


def test_every_entry_is_a_line_of_its_bytes(program, live_server, asked, tmp_path):
    done = program("ledger", live_server.slug)
    assert done.code == 0
    assert done.out.encode() == b"".join(each + b"\n" for each in asked)
    *_, (last, _) = iter_checked_entries(asked)
    assert done.err == f"{len(asked)} entries. The head is\n{last.hash.hex()}\n"
    assert program("ledger", live_server.slug, "-q").err == ""
    file = tmp_path / "ledger.jsonl"
    said = program(
        "ledger", f"{live_server.url}/boards/{live_server.slug}", "--out", file, "--json"
    ).json
    told = {
        "board": live_server.slug,
        "out": str(file),
        "entries": len(asked),
        "head": last.hash.hex(),
    }
    assert said == told
    assert file.read_bytes() == done.out.encode()
    with Client(live_server.url) as client:
        assert client.board(live_server.slug).head.hash == said["head"]


def test_in_words_with_a_file(program, live_server, asked, tmp_path):
    file = tmp_path / "ledger.jsonl"
    done = program("ledger", live_server.slug, "--out", file)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{len(asked)} entries are in {file}. Its head is\n")
    again = program("ledger", live_server.slug, "--out", file)
    assert (again.code, again.out) == (2, "")
    assert "exists already" in again.err
    assert file.read_bytes().count(b"\n") == len(asked)
    nowhere = program("ledger", live_server.slug, "--out", tmp_path / "no" / "file")
    assert nowhere.code == 4
    refused = program("ledger", live_server.slug, "--json")
    assert refused.code == 2
    assert "--out FILE" in refused.json["error"]["message"]


def spoil(monkeypatch, change):
    """Let the server tell another ledger than it should."""
    ledger = Client.ledger
    monkeypatch.setattr(Client, "ledger", lambda *given: iter(change(list(ledger(*given)))))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda forms: [*forms[:4], forms[4].replace(b'"time":1', b'"time":2'), *forms[5:]], "5"),
        (lambda forms: [*forms[:3], *forms[4:]], "Entry 3"),
        (lambda forms: forms[:-1], "The board reports"),
        (lambda forms: [*forms[:-1], forms[-1].replace(b'"ladder":1', b'"ladder":0')], "head"),
        (lambda forms: [], "The board reports"),
    ],
    ids=["changed", "dropped", "short", "last", "empty"],
)
def test_one_that_is_not_in_order_leaves_no_file(
    program, live_server, asked, tmp_path, monkeypatch, change, said
):
    spoil(monkeypatch, change)
    file = tmp_path / "ledger.jsonl"
    done = program("ledger", live_server.slug, "--out", file)
    assert (done.code, done.out) == (4, "")
    assert said in done.err
    assert not file.exists()
    assert program("ledger", live_server.slug).code == 4


def test_a_board_that_is_hidden_shows_its_first_entry(program, live_server, asked):
    live_server.amend(visibility="hidden")
    done = program("ledger", live_server.slug)
    assert done.code == 0
    assert done.out.encode() == asked[0] + b"\n"


def test_entries_that_come_meanwhile_come_along(program, live_server, asked, monkeypatch):
    ledger, token = Client.ledger, live_server.join("Bob")[1]

    def grown(own, board):
        live_server.submit(token, make_predictions(20))
        return ledger(own, board)

    monkeypatch.setattr(Client, "ledger", grown)
    done = program("ledger", live_server.slug)
    assert done.code == 0
    assert done.out.count("\n") == len(asked) + 2  # a ladder and a question


def test_whoever_reads_may_go(live_server, asked):
    command = [sys.executable, "-m", "ladderboard", "ledger", live_server.slug]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
