"""``ladderboard ledger``: the original bytes, verified while they are downloaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ladderboard.client import Client, _requests
from ladderboard.ledger import iter_checked_entries
from support.server.live_server import make_predictions


@pytest.fixture
def entries(live_server, monkeypatch):
    """Create a board with some submissions; return its ledger entries."""
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setattr(_requests, "_LEDGER_PAGE_SIZE", 3)  # several pages
    _, token = live_server.join("Ada")
    for errors in (60, 50, 40, 30):
        live_server.submit(token, make_predictions(errors))
    with live_server.boards.open(live_server.slug).reading() as view:
        return list(view.entries())


def test_the_ledger_is_printed_byte_for_byte(run_cli, live_server, entries, tmp_path):
    result = run_cli("ledger", live_server.slug)
    assert result.code == 0
    assert result.out.encode() == b"".join(entry + b"\n" for entry in entries)
    *_, (last, _) = iter_checked_entries(entries)
    assert result.err == f"{len(entries)} entries. The head is\n{last.hash.hex()}\n"
    assert run_cli("ledger", live_server.slug, "-q").err == ""
    file = tmp_path / "ledger.jsonl"
    report = run_cli(
        "ledger", f"{live_server.url}/boards/{live_server.slug}", "--out", file, "--json"
    ).json
    digests = {
        "board": live_server.slug,
        "out": str(file),
        "entries": len(entries),
        "head": last.hash.hex(),
    }
    assert report == digests
    assert file.read_bytes() == result.out.encode()
    with Client(live_server.url) as client:
        assert client.board(live_server.slug).head.hash == report["head"]


def test_the_ledger_is_written_to_a_file(run_cli, live_server, entries, tmp_path):
    file = tmp_path / "ledger.jsonl"
    result = run_cli("ledger", live_server.slug, "--out", file)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"{len(entries)} entries are in {file}. Its head is\n")
    second = run_cli("ledger", live_server.slug, "--out", file)
    assert (second.code, second.out) == (2, "")
    assert "exists already" in second.err
    assert file.read_bytes().count(b"\n") == len(entries)
    nowhere = run_cli("ledger", live_server.slug, "--out", tmp_path / "no" / "file")
    assert nowhere.code == 4
    refused = run_cli("ledger", live_server.slug, "--json")
    assert refused.code == 2
    assert "--out FILE" in refused.json["error"]["message"]


def change_ledger(monkeypatch, change):
    """Make the server return a changed ledger."""
    ledger = Client.ledger
    monkeypatch.setattr(Client, "ledger", lambda *given: iter(change(list(ledger(*given)))))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda forms: [*forms[:4], forms[4].replace(b'"time":1', b'"time":2'), *forms[5:]], "5"),
        (lambda forms: [*forms[:3], *forms[4:]], "Entry 3"),
        (lambda forms: forms[:-1], "The board reports"),
        (lambda forms: [*forms[:-1], forms[-1].replace(b'"ladder":1', b'"ladder":0')], "head"),
        (lambda forms: [], "The board reports"),
    ],
    ids=["changed", "dropped", "short", "last", "empty"],
)
def test_an_invalid_ledger_leaves_no_file(
    run_cli, live_server, entries, tmp_path, monkeypatch, change, message
):
    change_ledger(monkeypatch, change)
    file = tmp_path / "ledger.jsonl"
    result = run_cli("ledger", live_server.slug, "--out", file)
    assert (result.code, result.out) == (4, "")
    assert message in result.err
    assert not file.exists()
    assert run_cli("ledger", live_server.slug).code == 4


def test_a_hidden_board_shows_its_first_entry(run_cli, live_server, entries):
    live_server.amend(visibility="hidden")
    result = run_cli("ledger", live_server.slug)
    assert result.code == 0
    assert result.out.encode() == entries[0] + b"\n"


def test_entries_added_during_the_download_are_included(run_cli, live_server, entries, monkeypatch):
    ledger, token = Client.ledger, live_server.join("Bob")[1]

    def grown(client, board):
        live_server.submit(token, make_predictions(20))
        return ledger(client, board)

    monkeypatch.setattr(Client, "ledger", grown)
    result = run_cli("ledger", live_server.slug)
    assert result.code == 0
    assert result.out.count("\n") == len(entries) + 2  # a ladder and a question


def test_a_closed_pipe_ends_the_ledger_quietly(live_server, entries):
    command = [sys.executable, "-m", "ladderboard", "ledger", live_server.slug]
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(writing)
    assert (result.returncode, result.stderr) == (0, b"")
