"""The log records other libraries' output and jumps of the clock."""

import io
import json
import logging
import subprocess
import sys
import threading
import time
import warnings

import pytest

from ladderboard.server._log import ServerLog, log_everything, machine_time
from support.credentials import random_secret

SECRET = random_secret()


def read_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_warnings_and_exceptions_are_logged_without_their_text(monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    to, hooks_before = io.StringIO(), (sys.excepthook, threading.excepthook, warnings.showwarning)

    def fail():
        raise ValueError(SECRET)

    with log_everything(ServerLog(to, machine_time)):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn(SECRET, UserWarning, stacklevel=1)
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        try:
            fail()
        except ValueError as error:
            sys.excepthook(ValueError, error, error.__traceback__)
            logging.getLogger("asyncio").exception("never retrieved: %s", SECRET)
        logging.getLogger("ladderboard.parse").error("a parser broke down\nfor a reason")
        logging.getLogger("other").info("not worth a line")
        logging.getLogger("psycopg.pool").warning("error connecting: %s", SECRET)
    assert hooks_before == (sys.excepthook, threading.excepthook, warnings.showwarning)
    assert logging.getLogger().handlers == []
    entries = read_lines(to.getvalue())
    assert [entry["event"] for entry in entries] == ["warning", "error", "error", "log", "log"]
    assert entries[0]["kind"] == "UserWarning"
    assert entries[3]["error"] == "ValueError"
    assert entries[4]["said"] == "a parser broke down for a reason"
    assert SECRET not in to.getvalue()


@pytest.mark.parametrize("database", ["sqlite"])
@pytest.mark.parametrize("moved", [3600.0, -3600.0])
def test_a_clock_that_jumps_is_logged_once(make_server, monkeypatch, moved):
    live_server = make_server(clock=False)
    clock, ahead = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: clock() + ahead[0])
    ahead[0] = moved
    while "clock" not in live_server.log.getvalue():
        time.sleep(0.05)
    (line,) = [
        entry for entry in read_lines(live_server.log.getvalue()) if entry["event"] == "clock"
    ]
    assert line["moved"] == pytest.approx(moved, abs=1.0)
    metrics = live_server.call("GET", "/metrics", live_server.organiser).text
    assert "\nladderboard_clock_jumps_total 1\n" in metrics


def test_a_server_that_cannot_start_logs_the_reason(tmp_path):
    (tmp_path / "taken").write_text("")
    config = tmp_path / "ladderboard.toml"
    config.write_text(f"[serve]\nspool = '{tmp_path / 'taken' / 'spool'}'\n")
    command = [sys.executable, "-m", "ladderboard", "serve", "--config", config, "--port", "0"]
    result = subprocess.run(
        [*command, "--database", tmp_path / "boards.db"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    entries = read_lines(result.stderr)
    assert result.returncode == 2
    assert [entry["event"] for entry in entries] == ["start", "error", "error"]
    assert "The folder" in entries[1]["said"]
    assert entries[2]["said"] == "The server could not start; its log says why."
