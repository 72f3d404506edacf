"""Taking part at a terminal: a bar while sending, and a token that is not shown."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from ladderboard.client import read_config

PROGRAM = [sys.executable, "-m", "ladderboard"]


def run_at_terminal(arguments, *, typed=b"", wait_for=b"", **environment):
    """Run the program at a pseudo-terminal; return its exit code and output."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment}
    pipes = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True}
    with subprocess.Popen([*PROGRAM, *arguments], env=environment, **pipes) as process:
        os.close(slave)
        output = b""
        while True:
            try:
                piece = os.read(master, 2**16)
            except OSError:  # Linux: the other end was closed
                break
            if not piece:
                break
            output += piece
            if typed and wait_for in output:
                while termios.tcgetattr(master)[3] & termios.ECHO:
                    assert process.poll() is None  # the question is shown a moment before
                    time.sleep(0.01)
                os.write(master, typed)
                typed = b""
    os.close(master)
    return process.returncode, output


def run_piped(arguments, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        env=environment,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def arguments(live_server, predictions, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", live_server.join("Ada")[1])
    return ["submit", live_server.slug, "-f", str(predictions(60))]


def test_submit_shows_a_progress_bar_at_a_terminal(arguments):
    code, output = run_at_terminal(arguments)
    assert code == 0
    assert "Waiting for the answer" in output.decode()
    assert "━" in output.decode()
    *_, answer, receipt_line = output.decode().rstrip().splitlines()
    assert answer.endswith("A new best: zero-one loss 0.2. 24 submissions left.")
    file = re.fullmatch(r"The receipt is saved in (/.+\.jsonl)\.", receipt_line).group(1)
    assert '"receipt"' in Path(file).read_text()
    assert b"receipt" not in run_at_terminal([*arguments, "-q"])[1]


@pytest.mark.parametrize("columns", [70, 100])
def test_a_long_message_is_cut_so_that_a_row_fits_on_a_line(arguments, columns):
    message = "ä deeper tree, and then another " * 10
    assert run_piped([*arguments, "-m", message]).returncode == 0
    code, output = run_at_terminal(["submissions", arguments[1]], COLUMNS=str(columns))
    assert code == 0
    (row,) = [line for line in output.decode().splitlines() if "deeper" in line]
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d +0\.2 ", row)
    assert row.rstrip().endswith("…")
    assert len(row.rstrip()) <= columns
    assert output.decode().count("ä") == row.count("ä")
    assert message.strip() in run_piped(["submissions", arguments[1]]).stdout.decode()


@pytest.mark.parametrize("option", ["-q", "--json"])
def test_no_progress_bar_with_quiet_or_json(arguments, option):
    code, output = run_at_terminal([*arguments, option])
    assert code == 0
    assert "Waiting" not in output.decode()


def test_retries_are_shown_at_a_terminal(arguments):
    unreachable = ["leaderboard", "http://127.0.0.1:9/boards/digits"]
    code, output = run_at_terminal(unreachable)
    assert code == 4
    assert output.decode().count("trying again in") == 3
    assert "again is safe" not in output.decode()
    code, output = run_at_terminal([*unreachable, "-q"])
    assert (code, b"trying again" in output) == (4, False)
    result = run_piped(["submit", "http://127.0.0.1:9/boards/digits", arguments[3]])
    assert b"trying again" not in result.stderr
    assert b"Sending the same again is safe." in result.stderr


def test_no_progress_bar_in_a_pipe(arguments):
    result = run_piped(arguments)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == b"A new best: zero-one loss 0.2. 24 submissions left.\n"


def test_login_does_not_echo_the_token(live_server, page):
    token = live_server.join("Ada")[1]
    typed = f"{token}\n".encode()
    code, output = run_at_terminal(["login", page], typed=typed, wait_for=b"The token for")
    assert code == 0, output
    assert token.encode() not in output
    assert read_config().tokens == {live_server.url: {live_server.slug: token}}


def test_login_without_input_fails(live_server, page):
    code, output = run_at_terminal(["login", page], typed=b"\x04", wait_for=b"The token for")
    assert (code, b"Aborted" in output) == (130, False)
