"""Taking part at a terminal: a bar while sending, a token that is not shown, completion."""

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


def at_terminal(words, *, typed=b"", wait_for=b"", **environment):
    """Run the program at a pseudo-terminal; return its exit code and all that was shown."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment}
    ends = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True}
    with subprocess.Popen([*PROGRAM, *words], env=environment, **ends) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 2**16)
            except OSError:  # how Linux says that the other end has gone
                break
            if not piece:
                break
            shown += piece
            if typed and wait_for in shown:
                while termios.tcgetattr(master)[3] & termios.ECHO:
                    assert process.poll() is None  # the question is shown a moment before
                    time.sleep(0.01)
                os.write(master, typed)
                typed = b""
    os.close(master)
    return process.returncode, shown


def piped(words, **environment):
    environment = {**os.environ, **environment}
    return subprocess.run(
        [*PROGRAM, *map(str, words)], env=environment, capture_output=True, check=False, timeout=120
    )


@pytest.fixture
def words(live_server, predictions, monkeypatch):
    monkeypatch.setenv("LADDERBOARD_URL", live_server.url)
    monkeypatch.setenv("LADDERBOARD_TOKEN", live_server.join("Ada")[1])
    return ["submit", live_server.slug, "-f", str(predictions(60))]


def test_a_bar_at_a_terminal(words):
    code, shown = at_terminal(words)
    assert code == 0
    assert "Waiting for the answer" in shown.decode()
    assert "━" in shown.decode()
    *_, said, kept = shown.decode().rstrip().splitlines()
    assert said.endswith("A new best: zero_one 0.2000; 24 questions left.")
    file = re.fullmatch(r"The receipt is saved in (/.+\.jsonl)\.", kept).group(1)
    assert '"receipt"' in Path(file).read_text()
    assert b"receipt" not in at_terminal([*words, "-q"])[1]


@pytest.mark.parametrize("columns", [70, 100])
def test_a_long_message_is_cut_and_a_row_stays_a_line(words, columns):
    message = "ä deeper tree, and then another " * 10
    assert piped([*words, "-m", message]).returncode == 0
    code, shown = at_terminal(["submissions", words[1]], COLUMNS=str(columns))
    assert code == 0
    (row,) = [line for line in shown.decode().splitlines() if "deeper" in line]
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d +0\.2000", row)
    assert row.rstrip().endswith("…")
    assert len(row.rstrip()) <= columns
    assert shown.decode().count("ä") == row.count("ä")
    assert message.strip() in piped(["submissions", words[1]]).stdout.decode()


@pytest.mark.parametrize("more", ["-q", "--json"])
def test_none_where_it_is_not_wanted(words, more):
    code, shown = at_terminal([*words, more])
    assert code == 0
    assert "Waiting" not in shown.decode()


def test_trying_again_is_said_at_a_terminal(words):
    away = ["leaderboard", "http://127.0.0.1:9/boards/digits"]
    code, shown = at_terminal(away)
    assert code == 4
    assert shown.decode().count("trying again in") == 3
    assert "again is safe" not in shown.decode()
    code, shown = at_terminal([*away, "-q"])
    assert (code, b"trying again" in shown) == (4, False)
    done = piped(["submit", "http://127.0.0.1:9/boards/digits", words[3]])
    assert b"trying again" not in done.stderr
    assert b"Sending the same again is safe." in done.stderr


def test_none_in_a_pipe(words):
    done = piped(words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"A new best: zero_one 0.2000; 24 questions left.\n"


def test_a_token_is_typed_without_being_shown(live_server, page):
    token = live_server.join("Ada")[1]
    typed = f"{token}\n".encode()
    code, shown = at_terminal(["login", page], typed=typed, wait_for=b"The token for")
    assert code == 0, shown
    assert token.encode() not in shown
    assert read_config().tokens == {live_server.url: {live_server.slug: token}}


def test_no_token_after_all(live_server, page):
    code, shown = at_terminal(["login", page], typed=b"\x04", wait_for=b"The token for")
    assert (code, b"Aborted" in shown) == (130, False)


def test_a_shell_completes_verbs_and_boards_that_are_kept(live_server, page, program):
    program("login", page, piped=live_server.join("Ada")[1].encode())
    read_config().with_token("https://b.example.org", "letters", "y").write()

    def complete(line):
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        done = piped([], _LADDERBOARD_COMPLETE="complete_bash", **asked)
        assert done.returncode == 0
        return done.stdout.decode().split()

    assert complete("ladderboard sub") == ["submit", "submissions"]
    assert complete("ladderboard submit ") == [
        live_server.slug,
        "https://b.example.org/boards/letters",
    ]
    assert complete("ladderboard leaderboard https") == ["https://b.example.org/boards/letters"]
    # Whatever shell runs the tests, if any does.
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    assert "complete" in piped(["--show-completion", "bash"], **named).stdout.decode()


def test_completing_loads_no_http(live_server):
    code = (
        "import sys\n"
        "from ladderboard.cli._client._options import _complete_board_names\n"
        "_complete_board_names('')\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"httpx", "numpy"} & set(done.stdout.split())
