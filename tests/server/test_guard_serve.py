"""``guard serve`` as people meet it: in a process of its own, ended by signals."""

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
def file(tmp_path):
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
def start(file):
    running = []

    def begin(*words):
        key = ("--key-file", file.parent / "key")
        process = subprocess.Popen(
            [sys.executable, "-m", "ladderboard", "guard", "serve", file, *key, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)
        if "--json" in words:
            return process, json.loads(process.stdout.readline())
        welcome = [process.stdout.readline() for _ in range(2)]
        assert welcome[0] == f"Guarding {file}: 5 of 5 questions left.\n", process.stderr.read()
        return process, welcome[1].removeprefix("Listening at ").partition(";")[0]

    yield begin
    for each in running:
        each.kill()
        each.communicate()


def rest(process):
    """Return what else it says until it ends."""
    said = process.stdout.read(), process.stderr.read()
    process.wait(timeout=20)
    return said


@pytest.mark.parametrize(
    "stop", [signal.SIGINT, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=pytest.mark.slow)]
)
def test_it_answers_until_it_is_stopped_and_leaves_nothing_behind(start, file, stop):
    path = file.parent / "s.sock"
    process, url = start("--socket", str(path), "--socket-mode", "600")
    assert url == f"unix:{path}"
    assert path.stat().st_mode & 0o777 == 0o600
    with lb.Holdout.connect(url) as remote:
        assert remote.ask(LABELS, ladder="a\u00e9").released == 0
        process.send_signal(stop)  # with a connection open
        out, err = rest(process)
    assert process.returncode == 0
    assert not path.exists()
    assert "question on ladder 'a\u00e9': answered" in err
    assert len(err.splitlines()) == 1
    assert "user of its own" in out


def test_a_token_is_asked_for_and_never_shown(start, file):
    path = file.parent / "token"
    process, url = start("--port", "0", "--token-file", str(path))
    token = path.read_text().strip()
    with lb.Holdout.connect(url, token=token) as remote:
        assert remote.ask(LABELS).released == 0
    with (
        lb.Holdout.connect(url, token=token[::-1]) as remote,
        pytest.raises(lb.LadderboardError),
    ):
        remote.ask(LABELS)
    process.terminate()
    out, err = rest(process)
    secret = (file.parent / "key").read_text().strip()
    assert token not in out + err
    assert secret not in out + err
    assert str(path) in out


def test_one_ladder_may_be_served_alone(start, file):
    _, url = start("--port", "0", "--ladder", "study")
    with lb.Holdout.connect(url) as remote:
        assert remote.ask(LABELS).ladder == "study"
        assert remote.summary().ladder == "study"
        with pytest.raises(TooManyLadders, match="Only the ladder 'study' is served here"):
            remote.ladder("other").ask(LABELS)
        with pytest.raises(TooManyLadders):
            remote.ladder("other").check_ladder()
        assert (remote.remaining, remote.ladders) == (4, 2)
        remote.check_ladder()


def test_a_question_under_way_is_answered_before_it_ends(start, file):
    process, said = start("--port", "0", "--json")
    assert (said["questions"], said["remaining"], said.keys()) == (5, 5, {*said, "url"})
    url = said["url"]
    body = b"id,prediction\n" + b"".join(b"%d,%d\n" % pair for pair in enumerate(LABELS))
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as line:
        head = f"POST /api/v1/guard/questions HTTP/1.1\r\nHost: {host}:{port}\r\n"
        head += f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
        line.settimeout(20)
        line.sendall(head.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 100")  # it waits for the body
        process.terminate()
        time.sleep(0.3)
        line.sendall(body)
        assert line.recv(100).startswith(b"HTTP/1.1 201")
    assert process.wait(timeout=20) == 0


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are set on Linux")
def test_the_log_says_nothing_of_connections(start, file):
    import resource

    process, url = start("--port", "0")
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (40, 40))  # less than it lets in
    host, port = url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as lines:
        for _ in range(60):
            lines.enter_context(socket.create_connection((host, int(port))))
        with (
            socket.create_connection((host, int(port)), timeout=3) as one,
            contextlib.suppress(OSError),
        ):
            one.sendall(b"x")
            one.recv(1)  # time for it to fail in
    with lb.Holdout.connect(url) as remote:
        assert remote.remaining == 5
    process.terminate()
    assert process.stderr.read() == ""


def refused(file, *words):
    done = CliRunner().invoke(app, [str(file), *words])
    assert done.exit_code != 0
    assert done.stdout == ""
    return done


def test_what_must_not_be_served_is_refused(file):
    assert "loopback" in str(
        refused(file, "--host", "::", "--key-file", f"{file.parent}/key").exception
    )
    assert "not both" in str(refused(file, "--port", "1", "--socket", "s").exception)
    assert "encrypted" in str(refused(file).exception)
    assert "mode has the form 660" in refused(file, "--socket", "s", "--socket-mode", "rw").stderr
    file.chmod(0o644)
    found = refused(file).exception
    assert isinstance(found, InvalidSetting)
    assert f"chmod 600 {file}" in str(found)


def test_without_the_extra_it_says_what_to_install(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "ladderboard.server", None)
    monkeypatch.delattr(lb, "server", raising=False)
    assert "ladderboard[guard]" in str(refused(file).exception)


def test_every_option_is_explained():
    done = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    for option in ("key-file", "host", "port", "socket", "socket-mode", "token-file", "limit"):
        assert f"--{option}" in done.stdout
