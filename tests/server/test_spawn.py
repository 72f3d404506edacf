"""How the program restarts itself, and which socket it inherits."""

import subprocess
import sys

import pytest

from ladderboard.errors import InvalidSetting
from ladderboard.server import restart_command
from ladderboard.server._process._workers import worker_spec_from_env

INHERIT_SOCKETS = """
import os, socket
from ladderboard.errors import InvalidSetting
from ladderboard.server._process._listener import listen_on_inherited_socket

def inherit(inherited, count="1", pid=None):
    os.dup2(inherited.fileno(), 3)
    os.environ.update(LISTEN_FDS=count, LISTEN_PID=str(pid or os.getpid()), LISTEN_FDNAMES="web")
    try:
        listener = listen_on_inherited_socket()
    except InvalidSetting as error:
        return str(error)
    finally:
        assert not [name for name in os.environ if name.startswith("LISTEN_")]
    if listener is None:
        return "nothing"
    listener.close()
    return listener.url

while os.dup(0) < 10:  # so that 3 is free to be replaced
    pass
port, silent, path = socket.socket(), socket.socket(), socket.socket(socket.AF_UNIX)
port.bind(("127.0.0.1", 0))
port.listen()
path.bind("\\0ladderboard-%d" % os.getpid())
path.listen()
assert inherit(port) == "http://127.0.0.1:%d" % port.getsockname()[1]
assert inherit(port, pid=1) == "nothing"
assert "one socket" in inherit(port, "2")
assert "must listen on a port" in inherit(silent)
assert "must listen on a port" in inherit(path)
with open(os.devnull) as file:
    assert "must listen on a port" in inherit(file)
"""


def test_an_inherited_socket_must_be_ours_and_listen():
    subprocess.run([sys.executable, "-c", INHERIT_SOCKETS], check=True, timeout=120)


@pytest.mark.parametrize(
    "spec",
    [
        *("", "x", "[]", "{}"),
        '{"parent": 1, "socket": 998, "line": 999, "socket_inherited": false, "shared_folder": ""}',
        '{"parent":1, "socket": "3", "line": null, "socket_inherited": false, "shared_folder": ""}',
    ],
)
def test_an_invalid_worker_spec_is_refused(monkeypatch, spec):
    monkeypatch.setenv("_LADDERBOARD_WORKER", spec)
    with pytest.raises(InvalidSetting, match="_LADDERBOARD_WORKER"):
        worker_spec_from_env()
    assert worker_spec_from_env() is None


@pytest.mark.parametrize("exists", [True, False])
def test_a_script_is_started_as_a_script(tmp_path, monkeypatch, exists):
    script = tmp_path / "ladderboard"
    if exists:
        script.touch(0o755)
    monkeypatch.setattr(sys, "argv", [str(script), "serve"])
    monkeypatch.setattr(sys, "orig_argv", ["/old/python", str(script), "serve"])
    # A link that points to another environment by then starts that environment's interpreter.
    interpreter = [] if exists else [sys.executable]
    assert restart_command() == [*interpreter, str(script), "serve"]


def test_a_module_is_started_by_the_same_interpreter(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/place/ladderboard/__main__.py", "serve"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "ladderboard", "serve"])
    assert restart_command() == [sys.executable, "-m", "ladderboard", "serve"]
