"""Dumps downloaded by form: complete, encrypted, one at a time, without leftover files."""

import os
import re
import socket
import threading
import time

import pytest

from ladderboard import board
from ladderboard.board import Boards, DatabaseStore, restore_board
from ladderboard.board._backup import _dump as board_dump
from ladderboard.ledger import SecretKey, SqliteStorage, write_public_key
from ladderboard.server._pages._organise import _dump
from support.server.live_server import make_predictions

FOUR_WORDS = "four words nobody guesses"
DUMP_FIELDS = {"passphrase": FOUR_WORDS, "again": FOUR_WORDS}


@pytest.fixture
def board_with_history(live_server):
    """A board with a history."""
    for name in ("Alpha", "Beta"):
        token = live_server.join(name)[1]
        for wrong in (60, 50, 40):
            live_server.submit(token, make_predictions(wrong))
    return live_server


def leftover_dumps(live_server):
    """Return the files of dumps in the spool folder."""
    return list(live_server.app.state.context.spool.path.glob("dump-*"))


def make_other_boards(tmp_path):
    storage = SqliteStorage(tmp_path / "elsewhere.db", create=True)
    return Boards(storage, DatabaseStore(storage))


@pytest.mark.parametrize("key_kind", [pytest.param("passphrase", marks=pytest.mark.slow), "key"])
def test_a_downloaded_dump_can_be_restored_on_another_server(
    board_with_history, organiser_page, tmp_path, key_kind
):
    live_server, secret = board_with_history, SecretKey.make()
    typed = (
        DUMP_FIELDS if key_kind == "passphrase" else {"public_key": write_public_key(secret.public)}
    )
    response = organiser_page.send("dump", **typed)
    assert response.status_code == 200
    assert (
        response.headers["content-disposition"]
        == f'attachment; filename="{live_server.slug}-2027-01-15.dump"'
    )
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["cache-control"] == "private, no-store"
    assert int(response.headers["content-length"]) == len(response.content)
    assert leftover_dumps(live_server) == []
    (tmp_path / "file").write_bytes(response.content)
    boards = make_other_boards(tmp_path)
    key = {"passphrase": FOUR_WORDS} if key_kind == "passphrase" else {"secret_key": secret}
    assert restore_board(boards, tmp_path / "file", **key) == live_server.slug
    before, after = live_server.boards.open(live_server.slug), boards.open(live_server.slug)
    assert after.row().status == "restored"
    assert before.row().status == "open"  # it is a copy
    organiser = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    views = [board.as_seen_by(organiser) for board in (before, after)]
    for method in ("teams", "records", "leaderboard"):
        assert getattr(views[0], method)() == getattr(views[1], method)(), method
    entries = views[0].ledger(limit=1000)
    assert views[1].ledger(limit=1000)[: len(entries)] == entries
    assert after.book.check() == before.book.chain_state().asked == 6
    boards.close()


def test_passphrases_are_never_shown_or_logged(board_with_history, organiser_page):
    short, other = "seven77", "another that is long"
    pages = [
        organiser_page.send("dump", **DUMP_FIELDS),
        organiser_page.send("dump", passphrase=FOUR_WORDS, again=other),
        organiser_page.send("dump", passphrase=short, again=short),
    ]
    assert [page.status_code for page in pages] == [200, 422, 422]
    for passphrase in (FOUR_WORDS, other, short):
        for page in pages[1:]:
            assert passphrase not in page.text
        assert passphrase not in board_with_history.log.getvalue()
    lines = [
        line for line in board_with_history.log.getvalue().splitlines() if '"event": "dump"' in line
    ]
    assert len(lines) == 1
    assert f'"board": "{board_with_history.slug}"' in lines[0]


def test_invalid_passphrases_and_keys_are_refused(organiser_page, tmp_path):
    secret = tmp_path / "own.key"
    public = write_public_key(SecretKey.make().public)
    secret.write_text(public)
    organiser_page.send_refused("dump", 422, "either to a passphrase or to a public key")
    organiser_page.send_refused("dump", 422, "either", **DUMP_FIELDS, public_key=public)
    organiser_page.send_refused("dump", 422, "differ", passphrase=FOUR_WORDS, again="")
    organiser_page.send_refused(
        "dump", 422, "at least 8 characters", **dict.fromkeys(DUMP_FIELDS, "short")
    )
    organiser_page.send_refused("dump", 422, "not a complete key", public_key=public[:-1])
    for path in (secret, "/etc/passwd", "no-such-file"):  # files of the server are not read
        organiser_page.send_refused("dump", 422, "not a public key", public_key=str(path))
    secret_key = "AGE-SECRET-KEY-1" + "Q" * 58
    page = organiser_page.send_refused("dump", 422, "This is a secret key", public_key=secret_key)
    assert secret_key not in page
    assert 'id="in-passphrase"' in page


@pytest.mark.slow
def test_one_dump_is_made_at_a_time(
    board_with_history, organiser_page, open_organiser_page, monkeypatch
):
    started, released, dump_board = threading.Event(), threading.Event(), board.dump_board

    def slow(*arguments, **options):
        started.set()
        assert released.wait(60)
        return dump_board(*arguments, **options)

    monkeypatch.setattr(board, "dump_board", slow)
    responses = []
    first = threading.Thread(
        target=lambda: responses.append(organiser_page.send("dump", **DUMP_FIELDS))
    )
    first.start()
    try:
        assert started.wait(60)
        other = open_organiser_page(board_with_history.organiser)
        page = other.send("dump", **DUMP_FIELDS)
        assert (page.status_code, "Another dump is under way" in page.text) == (503, True)
        assert other.get().status_code == 200  # other requests are served
    finally:
        released.set()
        first.join()
    assert responses[0].status_code == 200
    assert organiser_page.send("dump", **DUMP_FIELDS).status_code == 200


@pytest.mark.slow
def test_a_failed_dump_leaves_no_file(board_with_history, organiser_page, monkeypatch):
    def fail(*_, **__):
        raise OSError("secret path")

    with monkeypatch.context() as patch:
        patch.setattr(board_dump, "_write_dump", fail)
        response = organiser_page.send("dump", **DUMP_FIELDS)
        assert response.status_code in {500, 503}
        assert "secret path" not in response.text
    assert leftover_dumps(board_with_history) == []
    assert organiser_page.send("dump", **DUMP_FIELDS).status_code == 200


@pytest.mark.slow
def test_a_disconnected_download_leaves_no_file(board_with_history, organiser_page, monkeypatch):
    """The client disconnects in the middle of a file that is larger than the socket's buffer."""
    dump_board = board.dump_board

    def large(boards, slug, to, **options):
        head = dump_board(boards, slug, to, **options)
        os.truncate(to, 2**25)
        return head

    monkeypatch.setattr(board, "dump_board", large)
    cookie = "; ".join(f"{name}={value}" for name, value in organiser_page.client.cookies.items())
    body = f"csrf={organiser_page.csrf()}&do=dump&passphrase=long+enough&again=long+enough".encode()
    head = (
        f"POST {organiser_page.path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", board_with_history.port)) as connection:
        connection.sendall(head.encode() + body)
        start = connection.recv(4096)
        assert re.match(rb"HTTP/1.1 200 ", start)
        assert _dump._DUMP_LOCK.locked()
        assert leftover_dumps(board_with_history) == []  # the file is unlinked while it is sent
    until = time.monotonic() + 60
    while _dump._DUMP_LOCK.locked() and time.monotonic() < until:
        time.sleep(0.01)
    assert not _dump._DUMP_LOCK.locked()


def test_stale_dumps_of_a_crash_are_removed(board_with_history, organiser_page, monkeypatch):
    spool = board_with_history.app.state.context.spool.path
    old, new = spool / "dump-old", spool / "dump-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / ".ladderboard-x").write_bytes(b"x")
    later = time.time() + 3000
    monkeypatch.setattr(_dump, "_STALE_SECONDS", 1800.0)
    monkeypatch.setattr(_dump.time, "time", lambda: later)
    os.utime(new / ".ladderboard-x", (later, later))
    assert organiser_page.send("dump", **DUMP_FIELDS).status_code == 200
    assert leftover_dumps(board_with_history) == [new]
    (new / ".ladderboard-x").unlink()
    new.rmdir()
