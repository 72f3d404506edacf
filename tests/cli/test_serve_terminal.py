"""The server at a terminal: a new token stays in sight, and what goes wrong is readable."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import httpx

from ladderboard.server._log import ServerLog

TOKEN = re.compile(rb"lb_organiser_[\w-]{43}")


def shown_until(master, words, shown=b""):
    """Return what a terminal has shown when some words are there."""
    ends = time.monotonic() + 60
    while words not in shown:
        assert time.monotonic() < ends, shown
        if select.select([master], [], [], 1)[0]:
            shown += os.read(master, 2**16)
    return shown


def test_requests_are_not_logged_over_the_token(tmp_path):
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "ladderboard", "serve", "--port", "0"]
    environment = {**os.environ, "LADDERBOARD_DATABASE": str(tmp_path / "boards.db")}
    ends = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **ends) as process:
        os.close(slave)
        try:
            shown = shown_until(master, b"Another one:")
            url = re.search(rb"Ladderboard is at (http://[\d.:]+)", shown)[1].decode()
            asked = [httpx.get(url + each).status_code for each in ("/", "/healthz", "/nothing")]
            assert asked == [200, 200, 404]
            os.killpg(process.pid, signal.SIGINT)
            shown = shown_until(master, b"Stopped.", shown)
        finally:
            process.kill()
            os.close(master)
    assert TOKEN.search(shown)
    assert b"{" not in shown
    assert b"healthz" not in shown
    assert len(shown[TOKEN.search(shown).end() :].splitlines()) < 12


def test_what_goes_wrong_is_a_readable_line():
    class Terminal(list):
        write = list.append

        @staticmethod
        def isatty():
            return True

    shown = Terminal()
    log = ServerLog(shown, lambda: 0)
    log.write("start", address="http://127.0.0.1:8000")
    log.write("request", request="a", method="GET", route="/boards", status=503, ms=1.5)
    log.write("worker", state="ended", wait=1)
    assert "".join(shown) == (
        "00:00:00 UTC request: request a, method GET, route /boards, status 503, ms 1.5\n"
        "00:00:00 UTC worker: state ended, wait 1\n"
    )
