"""``guard serve`` in its own process, stopped by signals."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import ladderboard as lb
from ladderboard.cli._guard._serve import serve as command
from ladderboard.errors import InvalidSetting, TooManyLadders

LABELS = np.random.default_rng(0).integers(2, size=100)

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
app.command()(command)


@pytest.fixture
def guard_file(tmp_path):
    lb.Holdout.create(
        tmp_path / "g.db",
        LABELS,
        questions=5,
        ladders=2,
        mechanism=lb.Ladder(step=0.02),
        key_file=tmp_path / "key",
    )
    return tmp_path / "g.db"


@pytest.fixture
def start_guard(guard_file):
    running = []

    def start_server(*arguments, launcher=()):
        command = [sys.executable, "-m", "ladderboard", "guard", "serve", guard_file]
        key = ("--key-file", guard_file.parent / "key")
        process = subprocess.Popen(
            [*launcher, *command, *key, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        if "--json" in arguments:
            return process, json.loads(process.stdout.readline())
        welcome = [process.stdout.readline() for _ in range(2)]
        assert welcome[0] == f"Guarding {guard_file}: 5 of 5 questions left.\n", (
            process.stderr.read()
        )
        return process, welcome[1].removeprefix("Listening at ").partition(";")[0]

    yield start_server
    for server in running:
        server.kill()
        server.communicate()


def read_rest(process):
    """Return the rest of its output and error output after it has ended."""
    outputs = process.stdout.read(), process.stderr.read()
    process.wait(timeout=20)
    return outputs


@pytest.mark.parametrize(
    "stop", [signal.SIGINT, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)]
)
def test_the_server_answers_until_stopped_and_removes_its_socket(start_guard, guard_file, stop):
    path = guard_file.parent / "s.sock"
    process, url = start_guard("--socket", str(path), "--socket-mode", "600")
    assert url == f"unix:{path}"
    assert path.stat().st_mode & 0o777 == 0o600
    with lb.Holdout.connect(url) as remote:
        assert remote.ask(LABELS, ladder="a\u00e9").released == 0
        process.send_signal(stop)  # with a connection open
        out, err = read_rest(process)
    assert process.returncode == 0
    assert not path.exists()
    assert "question on ladder 'a\u00e9': answered" in err
    lines = [line for line in err.splitlines() if "SIGHUP, which a closed terminal" not in line]
    assert len(lines) == 1
    assert ("SIGHUP" in err) == (stop == signal.SIGHUP)
    assert "separate user" in out


def test_a_shutdown_says_what_it_waits_for_and_a_second_signal_ends_it(start_guard):
    process, url = start_guard("--port", "0")
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=60) as client:
        head = "POST /api/v1/guard/questions HTTP/1.1\r\nHost: {}\r\nContent-Length: 9\r\n\r\n1"
        client.sendall(head.format(url.removeprefix("http://")).encode())
        time.sleep(0.5)  # until the request is open
        process.send_signal(signal.SIGINT)
        sentence = "Waiting up to 30 s for 1 open request; Ctrl-C again stops at once."
        assert sentence in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == -signal.SIGINT


def test_a_guard_under_nohup_ignores_sighup(start_guard, guard_file):
    process, url = start_guard("--port", "0", launcher=["nohup"])
    process.send_signal(signal.SIGHUP)
    with lb.Holdout.connect(url) as remote:
        assert remote.ask(LABELS).released == 0
    process.terminate()
    assert process.wait(timeout=20) == 0


def test_a_token_is_required_and_never_shown(start_guard, guard_file):
    path = guard_file.parent / "token"
    process, url = start_guard("--port", "0", "--token-file", str(path))
    token = path.read_text().strip()
    with lb.Holdout.connect(url, token=token) as remote:
        assert remote.ask(LABELS).released == 0
    with (
        lb.Holdout.connect(url, token=token[::-1]) as remote,
        pytest.raises(lb.LadderboardError),
    ):
        remote.ask(LABELS)
    process.terminate()
    out, err = read_rest(process)
    secret = (guard_file.parent / "key").read_text().strip()
    assert token not in out + err
    assert secret not in out + err
    assert str(path) in out


def test_a_single_ladder_can_be_served(start_guard, guard_file):
    _, url = start_guard("--port", "0", "--ladder", "study")
    with lb.Holdout.connect(url) as remote:
        assert remote.ask(LABELS).ladder == "study"
        assert remote.summary().ladder == "study"
        with pytest.raises(TooManyLadders, match="Only the ladder 'study' is served here"):
            remote.ladder("other").ask(LABELS)
        with pytest.raises(TooManyLadders):
            remote.ladder("other").check_ladder()
        assert (remote.remaining, remote.ladders) == (4, 2)
        remote.check_ladder()


def test_a_started_question_is_answered_before_the_server_ends(start_guard, guard_file):
    process, started = start_guard("--port", "0", "--json")
    assert (started["questions"], started["remaining"], started.keys()) == (5, 5, {*started, "url"})
    url = started["url"]
    body = b"id,prediction\n" + b"".join(b"%d,%d\n" % pair for pair in enumerate(LABELS))
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        head = f"POST /api/v1/guard/questions HTTP/1.1\r\nHost: {host}:{port}\r\n"
        head += f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.settimeout(20)
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 100")  # it waits for the body
        process.terminate()
        time.sleep(0.3)
        connection.sendall(body)
        assert connection.recv(100).startswith(b"HTTP/1.1 201")
    assert process.wait(timeout=20) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux")
def test_failed_connections_are_not_logged(start_guard, guard_file):
    import resource

    process, url = start_guard("--port", "0")
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (40, 40))  # fewer than it accepts
    host, port = url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as exit_stack:
        for _ in range(60):
            exit_stack.enter_context(socket.create_connection((host, int(port))))
        with (
            socket.create_connection((host, int(port)), timeout=3) as connection,
            contextlib.suppress(OSError),
        ):
            connection.sendall(b"x")
            connection.recv(1)  # gives it time to fail
    with lb.Holdout.connect(url) as remote:
        assert remote.remaining == 5
    process.terminate()
    assert process.stderr.read() == ""


def run_refused(guard_file, *arguments):
    result = CliRunner().invoke(app, [str(guard_file), *arguments])
    assert result.exit_code != 0
    assert result.stdout == ""
    return result


def test_unsafe_settings_are_refused(guard_file):
    assert "loopback" in str(
        run_refused(guard_file, "--host", "::", "--key-file", f"{guard_file.parent}/key").exception
    )
    assert "not both" in str(run_refused(guard_file, "--port", "1", "--socket", "s").exception)
    assert "encrypted" in str(run_refused(guard_file).exception)
    assert (
        "mode is like 660" in run_refused(guard_file, "--socket", "s", "--socket-mode", "rw").stderr
    )
    guard_file.chmod(0o644)
    error = run_refused(guard_file).exception
    assert isinstance(error, InvalidSetting)
    assert f"chmod 600 {guard_file}" in str(error)


def test_without_the_extra_the_message_says_what_to_install(guard_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "ladderboard.server", None)
    monkeypatch.delattr(lb, "server", raising=False)
    assert "ladderboard[guard]" in str(run_refused(guard_file).exception)


def test_serving_needs_no_package_of_boards():
    """Only what the extra ``guard`` installs: packages of ``server`` cannot be imported."""
    code = """
import sys
for name in ("httptools", "uvloop", "fastapi", "pydantic_settings", "jinja2", "psycopg", "pyrage",
             "yaml", "itsdangerous", "authlib", "httpx", "markdown_it"):
    sys.modules[name] = None
from ladderboard.server import check_private_files, listen_on_loopback, serve_guard
from ladderboard.server._uploads._multipart import MultipartForm
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
