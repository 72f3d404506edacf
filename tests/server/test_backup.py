"""Backups while submissions pour in: no request fails, and what was saved is whole."""

import itertools
import secrets
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from ladderboard.board import Caller, Role, open_boards, write_board_bundle
from ladderboard.board._backup._backup import (
    check_backup,
    compare_with_database,
    find_backup,
    list_backups,
    restore_backup,
)
from ladderboard.ledger import make_secret_key, write_public_key
from ladderboard.verify import verify_bundle
from support.server.live_server import make_folder
from support.server.stress_server import StressServer, check_board, empty_database, start_clients

TEAMS = 3
ORGANISER = Caller(Role.ORGANISER)


def predictions(number, at):
    """Return a model's file; one of each client is too large for the database."""
    bits = np.random.default_rng([number, at]).integers(2, size=400)
    pad = " " * 3000 if at == 5 else ""
    return ("id,prediction\n" + "".join(f"{i},{v}{pad}\n" for i, v in enumerate(bits))).encode()


def work_until(enough, pause):
    """Return what a client does: submit and look at the standings, once more after the end."""

    def work(client, number):
        for at in itertools.count():
            over = enough.is_set()
            slug = ("left", "right")[(at + number) % 2]
            reply = client.submit(slug, f"team {number % TEAMS}", predictions(number, at))
            assert reply.status == 201, reply
            reply, _ = client.call("GET", f"/api/v1/boards/{slug}/leaderboard")
            assert reply.status == 200
            if over:
                return
            time.sleep(pause)

    return work


def other_database(kind, request, folder):
    """Give the address of an empty database of the other kind."""
    if kind == "postgres":
        return str(folder / "other.db")
    server, name = request.getfixturevalue("postgres"), f"d_{secrets.token_hex(6)}"
    server.run(f"CREATE DATABASE {name}")
    return server.url().replace("/postgres", f"/{name}")


@pytest.mark.parametrize(
    ("callers", "pause", "backups"), [(3, 0.1, 1), pytest.param(8, 0, 3, marks=pytest.mark.slow)]
)
def test_backups_under_load_the_drill_and_the_other_database(
    database, request, tmp_path, callers, pause, backups
):
    key = make_secret_key(tmp_path / "restore.key")
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    workers = 2 if database == "postgres" and not pause else 1
    with (
        empty_database(database, request, tmp_path) as address,
        StressServer(address, tmp_path, workers=workers) as server,
    ):
        names = [f"team {at}" for at in range(TEAMS)]
        for slug in ("left", "right"):
            server.create_board(
                make_folder(slug, questions=20_000, teams=TEAMS, ladder="board"), names
            )
        server.start()
        server.wait_until_ready()
        words = [sys.executable, "-m", "ladderboard", "backup", "create", shelf]
        words += ["--database", address, "--to", write_public_key(key.public), "--json"]
        enough = threading.Event()
        clients, threads, errors = start_clients(server, callers, work_until(enough, pause))
        try:
            for _ in range(backups):
                done = subprocess.run(words, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stderr
        finally:
            enough.set()
            for each in threads:
                each.join()
        if errors:
            raise errors[0]
        assert not any(client.connections_lost for client in clients)
        assert [each for each in server.log() if each.get("status", 0) >= 500] == []
        paths = list_backups(shelf)
        assert len(paths) == backups

        # Each is of a moment of its own, and can be restored.
        boards = server.open_boards()
        missing = []
        for path in paths:
            backup = find_backup(path)
            found = check_backup(backup, secret_key=key)
            assert not any(each.wrong for each in found)
            lacks = compare_with_database(backup, boards.storage, found)
            assert not lacks.strange
            missing.append(sum(lacks.questions.values()))
        assert missing == sorted(missing, reverse=True)
        assert missing[-1] >= callers  # all were made under load
        boards.close()
        assert server.stop() == 0

    there = open_boards(other_database(database, request, tmp_path), create=True)
    last = find_backup(shelf)
    restore_backup(there, last, secret_key=key)
    board = there.open("left")
    check_board(board, [])
    board.amendments.resume(ORGANISER, charge=1)
    board.closer.close(ORGANISER)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    verify_bundle(
        tmp_path / "bundle", heads=[each.head for each in last.boards if each.board == "left"]
    )
    there.close()
