"""A dump taken by form: it is whole, nobody else's, one at a time, and leaves nothing behind."""

import os
import re
import socket
import threading
import time

import pytest

from ladderboard.board import Boards, DatabaseStore, restore_board
from ladderboard.board import _backup as board_backup
from ladderboard.board._backup import _dump as board_dump
from ladderboard.ledger import SecretKey, SqliteStorage, write_public_key
from ladderboard.server._pages._organise import _dump
from support.server.live_server import make_predictions

WORDS = "four words nobody guesses"
TYPED = {"passphrase": WORDS, "again": WORDS}


@pytest.fixture
def board_with_history(live_server):
    """A board with a history."""
    for name in ("Alpha", "Beta"):
        token = live_server.join(name)[1]
        for wrong in (60, 50, 40):
            live_server.submit(token, make_predictions(wrong))
    return live_server


def left_in(live_server):
    """Return what dumps have left where they are made."""
    return list(live_server.app.state.context.spool.path.glob("dump-*"))


def elsewhere(tmp_path):
    storage = SqliteStorage(tmp_path / "elsewhere.db", create=True)
    return Boards(storage, DatabaseStore(storage))


@pytest.mark.parametrize("way", ["passphrase", "key"])
def test_it_can_be_restored_elsewhere(board_with_history, organiser_page, tmp_path, way):
    live_server, secret = board_with_history, SecretKey.make()
    typed = TYPED if way == "passphrase" else {"public_key": write_public_key(secret.public)}
    said = organiser_page.send("dump", **typed)
    assert said.status_code == 200
    assert (
        said.headers["content-disposition"]
        == f'attachment; filename="{live_server.slug}-2027-01-15.dump"'
    )
    assert said.headers["content-type"] == "application/octet-stream"
    assert said.headers["cache-control"] == "private, no-store"
    assert int(said.headers["content-length"]) == len(said.content)
    assert left_in(live_server) == []
    (tmp_path / "file").write_bytes(said.content)
    boards = elsewhere(tmp_path)
    opened = {"passphrase": WORDS} if way == "passphrase" else {"secret_key": secret}
    assert restore_board(boards, tmp_path / "file", **opened) == live_server.slug
    before, after = live_server.boards.open(live_server.slug), boards.open(live_server.slug)
    assert after.row().status == "restored"
    assert before.row().status == "open"  # it is a copy
    organiser = live_server.boards.caller_by_token(live_server.organiser, live_server.slug)
    seen = [each.as_seen_by(organiser) for each in (before, after)]
    for look in ("teams", "records", "leaderboard"):
        assert getattr(seen[0], look)() == getattr(seen[1], look)(), look
    entries = seen[0].ledger(limit=1000)
    assert seen[1].ledger(limit=1000)[: len(entries)] == entries
    assert after.book.check() == before.book.chain_state().asked == 6
    boards.close()


def test_nothing_is_told_of_its_passphrase(board_with_history, organiser_page):
    short, other = "seven77", "another that is long"
    pages = [
        organiser_page.send("dump", **TYPED),
        organiser_page.send("dump", passphrase=WORDS, again=other),
        organiser_page.send("dump", passphrase=short, again=short),
    ]
    assert [each.status_code for each in pages] == [200, 422, 422]
    for word in (WORDS, other, short):
        for page in pages[1:]:
            assert word not in page.text
        assert word not in board_with_history.log.getvalue()
    lines = [
        line for line in board_with_history.log.getvalue().splitlines() if '"event": "dump"' in line
    ]
    assert len(lines) == 1
    assert f'"board": "{board_with_history.slug}"' in lines[0]


def test_what_it_cannot_be_encrypted_to_is_said(organiser_page, tmp_path):
    secret = tmp_path / "own.key"
    public = write_public_key(SecretKey.make().public)
    secret.write_text(public)
    organiser_page.send_refused("dump", 422, "either to a passphrase or to a public key")
    organiser_page.send_refused("dump", 422, "either", **TYPED, public_key=public)
    organiser_page.send_refused("dump", 422, "differ", passphrase=WORDS, again="")
    organiser_page.send_refused(
        "dump", 422, "at least 8 characters", **dict.fromkeys(TYPED, "short")
    )
    organiser_page.send_refused("dump", 422, "not a whole key", public_key=public[:-1])
    for path in (secret, "/etc/passwd", "no-such-file"):  # no file of the server's is looked at
        organiser_page.send_refused("dump", 422, "not a public key", public_key=str(path))
    told = "ladderboard-secret-" + "0" * 72
    page = organiser_page.send_refused("dump", 422, "This is a secret key", public_key=told)
    assert told not in page
    assert '<details id="copy" open>' in page


@pytest.mark.slow
def test_one_is_made_at_a_time(
    board_with_history, organiser_page, open_organiser_page, monkeypatch
):
    begun, go, write = threading.Event(), threading.Event(), board_backup.dump_board

    def slow(*what, **how):
        begun.set()
        assert go.wait(60)
        return write(*what, **how)

    monkeypatch.setattr(board_backup, "dump_board", slow)
    said = []
    first = threading.Thread(target=lambda: said.append(organiser_page.send("dump", **TYPED)))
    first.start()
    try:
        assert begun.wait(60)
        other = open_organiser_page(board_with_history.organiser)
        page = other.send("dump", **TYPED)
        assert (page.status_code, "Another dump is under way" in page.text) == (503, True)
        assert other.get().status_code == 200  # everything else goes on
    finally:
        go.set()
        first.join()
    assert said[0].status_code == 200
    assert organiser_page.send("dump", **TYPED).status_code == 200


@pytest.mark.slow
def test_a_failure_leaves_nothing(board_with_history, organiser_page, monkeypatch):
    def fail(*_, **__):
        raise OSError("secret path")

    with monkeypatch.context() as patch:
        patch.setattr(board_dump, "_write_dump", fail)
        said = organiser_page.send("dump", **TYPED)
        assert said.status_code in {500, 503}
        assert "secret path" not in said.text
    assert left_in(board_with_history) == []
    assert organiser_page.send("dump", **TYPED).status_code == 200


@pytest.mark.slow
def test_whoever_goes_away_leaves_nothing(board_with_history, organiser_page, monkeypatch):
    """The client asks, reads nothing, and hangs up in the middle of a file that fills its line."""
    write = board_backup.dump_board

    def large(boards, slug, to, **how):
        head = write(boards, slug, to, **how)
        os.truncate(to, 2**25)
        return head

    monkeypatch.setattr(board_backup, "dump_board", large)
    cookie = "; ".join(f"{name}={value}" for name, value in organiser_page.client.cookies.items())
    body = f"csrf={organiser_page.csrf()}&do=dump&passphrase=long+enough&again=long+enough".encode()
    head = (
        f"POST {organiser_page.path} HTTP/1.1\r\nHost: localhost\r\nCookie: {cookie}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", board_with_history.port)) as line:
        line.sendall(head.encode() + body)
        start = line.recv(4096)
        assert re.match(rb"HTTP/1.1 200 ", start)
        assert _dump._DUMP_LOCK.locked()
        assert left_in(board_with_history) == []  # it has no name even while it is sent
    until = time.monotonic() + 60
    while _dump._DUMP_LOCK.locked() and time.monotonic() < until:
        time.sleep(0.01)
    assert not _dump._DUMP_LOCK.locked()


def test_what_a_crash_has_left_is_swept(board_with_history, organiser_page, monkeypatch):
    place = board_with_history.app.state.context.spool.path
    old, new = place / "dump-old", place / "dump-new"
    for each in (old, new):
        each.mkdir()
        (each / ".ladderboard-x").write_bytes(b"x")
    later = time.time() + 3000
    monkeypatch.setattr(_dump, "_STALE_SECONDS", 1800.0)
    monkeypatch.setattr(_dump.time, "time", lambda: later)
    os.utime(new / ".ladderboard-x", (later, later))
    assert organiser_page.send("dump", **TYPED).status_code == 200
    assert left_in(board_with_history) == [new]
    (new / ".ladderboard-x").unlink()
    new.rmdir()
