"""Backups during submissions: no request fails, and each backup is complete."""

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


def predictions_file(number, index):
    """Return a model's file; one of each client is too large for the database."""
    bits = np.random.default_rng([number, index]).integers(2, size=400)
    pad = " " * 3000 if index == 5 else ""
    return ("id,prediction\n" + "".join(f"{i},{v}{pad}\n" for i, v in enumerate(bits))).encode()


def work_until(stop, pause):
    """Return a client's work: submit and read the leaderboard, once more after the stop."""

    def work(client, number):
        for index in itertools.count():
            last_round = stop.is_set()
            slug = ("left", "right")[(index + number) % 2]
            reply = client.submit(slug, f"team {number % TEAMS}", predictions_file(number, index))
            assert reply.status == 201, reply
            reply, _ = client.call("GET", f"/api/v1/boards/{slug}/leaderboard")
            assert reply.status == 200
            if last_round:
                return
            time.sleep(pause)

    return work


def other_database(kind, request, folder):
    """Return the address of an empty database of the other kind."""
    if kind == "postgres":
        return str(folder / "other.db")
    server, name = request.getfixturevalue("postgres"), f"d_{secrets.token_hex(6)}"
    server.run(f"CREATE DATABASE {name}")
    return server.url().replace("/postgres", f"/{name}")


@pytest.mark.parametrize(
    ("callers", "pause", "backups"), [(3, 0.1, 1), pytest.param(8, 0, 3, marks=pytest.mark.slow)]
)
def test_backups_under_load_restore_into_the_other_database(
    database, request, tmp_path, callers, pause, backups
):
    key = make_secret_key(tmp_path / "restore.key")
    folder = tmp_path / "shelf"
    folder.mkdir()
    workers = 2 if database == "postgres" and not pause else 1
    with (
        empty_database(database, request, tmp_path) as address,
        StressServer(address, tmp_path, workers=workers) as server,
    ):
        names = [f"team {index}" for index in range(TEAMS)]
        for slug in ("left", "right"):
            server.create_board(
                make_folder(slug, questions=20_000, teams=TEAMS, ladder="board"), names
            )
        server.start()
        server.wait_until_ready()
        command = [sys.executable, "-m", "ladderboard", "backup", "create", folder]
        command += ["--database", address, "--to", write_public_key(key.public), "--json"]
        stop = threading.Event()
        clients, threads, errors = start_clients(server, callers, work_until(stop, pause))
        try:
            for _ in range(backups):
                result = subprocess.run(command, capture_output=True, text=True, check=False)
                assert result.returncode == 0, result.stderr
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        if errors:
            raise errors[0]
        assert not any(client.connections_lost for client in clients)
        assert [entry for entry in server.log() if entry.get("status", 0) >= 500] == []
        paths = list_backups(folder)
        assert len(paths) == backups

        # Each is a snapshot of another moment and can be restored.
        boards = server.open_boards()
        missing = []
        for path in paths:
            backup = find_backup(path)
            checks = check_backup(backup, secret_key=key)
            assert not any(check.wrong for check in checks)
            difference = compare_with_database(backup, boards.storage, checks)
            assert not difference.diverged_boards
            missing.append(sum(difference.questions.values()))
        assert missing == sorted(missing, reverse=True)
        assert missing[-1] >= callers  # all were made under load
        boards.close()
        assert server.stop() == 0

    restored = open_boards(other_database(database, request, tmp_path), create=True)
    last = find_backup(folder)
    restore_backup(restored, last, secret_key=key)
    board = restored.open("left")
    check_board(board, [])
    board.amendments.resume(ORGANISER, charge=1)
    board.closer.close(ORGANISER)
    write_board_bundle(board, tmp_path / "bundle", labels=True, submissions=True)
    verify_bundle(
        tmp_path / "bundle", heads=[saved.head for saved in last.boards if saved.board == "left"]
    )
    restored.close()
