"""How the program is started once more, and what it takes over."""

import subprocess
import sys

import pytest

from ladderboard.errors import InvalidSetting
from ladderboard.server import restart_command
from ladderboard.server._process._spawn import worker_spec_from_env

TAKES = """
import os, socket
from ladderboard.errors import InvalidSetting
from ladderboard.server._process._listener import listen_on_inherited_socket

def given(made, count="1", pid=None):
    os.dup2(made.fileno(), 3)
    os.environ.update(LISTEN_FDS=count, LISTEN_PID=str(pid or os.getpid()), LISTEN_FDNAMES="web")
    try:
        found = listen_on_inherited_socket()
    except InvalidSetting as error:
        return str(error)
    finally:
        assert not [each for each in os.environ if each.startswith("LISTEN_")]
    if found is None:
        return "nothing"
    found.close()
    return found.url

while os.dup(0) < 10:  # so that 3 is nobody else's
    pass
port, silent, path = socket.socket(), socket.socket(), socket.socket(socket.AF_UNIX)
port.bind(("127.0.0.1", 0))
port.listen()
path.bind("\\0ladderboard-%d" % os.getpid())
path.listen()
assert given(port) == "http://127.0.0.1:%d" % port.getsockname()[1]
assert given(port, pid=1) == "nothing"
assert "One socket" in given(port, "2")
assert "must listen on a port" in given(silent)
assert "must listen on a port" in given(path)
with open(os.devnull) as file:
    assert "must listen on a port" in given(file)
"""


def test_a_socket_is_taken_if_it_is_ours_and_listens():
    subprocess.run([sys.executable, "-c", TAKES], check=True, timeout=120)


@pytest.mark.parametrize(
    "told",
    [
        *("", "x", "[]", "{}"),
        '{"parent": 1, "socket": 998, "line": 999, "socket_inherited": false, "trials": ""}',
        '{"parent": 1, "socket": "3", "line": null, "socket_inherited": false, "trials": ""}',
    ],
)
def test_a_post_that_nobody_gave_is_refused(monkeypatch, told):
    monkeypatch.setenv("_LADDERBOARD_WORKER", told)
    with pytest.raises(InvalidSetting, match="_LADDERBOARD_WORKER"):
        worker_spec_from_env()
    assert worker_spec_from_env() is None


@pytest.mark.parametrize("there", [True, False])
def test_a_script_is_started_as_a_script(tmp_path, monkeypatch, there):
    script = tmp_path / "ladderboard"
    if there:
        script.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(script), "serve"])
    monkeypatch.setattr(sys, "orig_argv", ["/old/python", str(script), "serve"])
    # So a link that leads to another environment by then leads to its interpreter, too.
    before = [] if there else [sys.executable]
    assert restart_command() == [*before, str(script), "serve"]


def test_a_module_is_started_by_the_same_interpreter(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/place/ladderboard/__main__.py", "serve"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "ladderboard", "serve"])
    assert restart_command() == [sys.executable, "-m", "ladderboard", "serve"]
