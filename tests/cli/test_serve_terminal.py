"""The server at a terminal: a new token stays visible, and errors are readable."""

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


def read_until(master, text, output=b""):
    """Return a terminal's output once it contains a text."""
    deadline = time.monotonic() + 60
    while text not in output:
        assert time.monotonic() < deadline, output
        if select.select([master], [], [], 1)[0]:
            output += os.read(master, 2**16)
    return output


def test_requests_are_not_logged_over_the_token(tmp_path):
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "ladderboard", "serve", "--port", "0"]
    environment = {**os.environ, "LADDERBOARD_DATABASE": str(tmp_path / "boards.db")}
    pipes = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **pipes) as process:
        os.close(slave)
        try:
            output = read_until(master, b"lb_organiser_")
            url = re.search(rb"Ladderboard is at (http://[\d.:]+)", output)[1].decode()
            statuses = [httpx.get(url + path).status_code for path in ("/", "/healthz", "/nothing")]
            assert statuses == [200, 200, 404]
            httpx.post(f"{url}/api/v1/boards/digits/submissions")
            output = read_until(master, b"POST /api/v1/boards/digits/submissions: 404 in", output)
            os.killpg(process.pid, signal.SIGINT)
            output = read_until(master, b"Stopped.", output)
        finally:
            process.kill()
            os.close(master)
    assert TOKEN.search(output)
    assert b"{" not in output
    assert b"healthz" not in output
    assert len(output[TOKEN.search(output).end() :].splitlines()) < 12


def test_an_error_is_one_readable_line():
    class Terminal(list):
        write = list.append

        @staticmethod
        def isatty():
            return True

    terminal = Terminal()
    log = ServerLog(terminal, lambda: 0)
    log.write("start", address="http://127.0.0.1:8000")
    log.write("request", request="a", method="GET", route="/boards", status=503, ms=1.5)
    log.write("worker", state="ended", wait=1)
    log.write("request", request="b", method="GET", route="/boards", status=200, ms=1.5)
    log.write("request", request="c", method="POST", route="/login", status=303, ms=9.1)
    log.write("error", request="d", error="DiskFull", said="No space.", at=["a.py:1 f", "b.py:2 g"])
    log.write("error", error="ValueError", at=["a.py:1 f", "b.py:2 g"])
    assert "".join(terminal) == (
        "00:00:00 UTC  GET /boards: 503 in 2 ms, request a\n"
        "00:00:00 UTC  worker: state ended, wait 1\n"
        "00:00:00 UTC  POST /login: 303 in 9 ms\n"
        "00:00:00 UTC  error: No space. (request d)\n"
        "00:00:00 UTC  error: error ValueError, at a.py:1 f, b.py:2 g\n"
    )
