"""An agent under another user: it completes a run, and can read neither file nor key."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import ladderboard as lb
from support.server import GUARD_AGENT

OWNER, AGENT, STRANGER, SHARED = 54321, 54322, 54323, 54320
N, QUESTIONS = 200, 12
PROGRAM = "from ladderboard.cli import main; main()"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0,
    reason="only root, on Linux, can start programs as several users",
)


class Shelf:
    """Python, its packages and ours, for users who may not enter the folders they are in.

    The folders are opened by root and handed down; a path through /proc/self/fd needs no leave to
    enter what lies above.
    """

    def __init__(self):
        home = Path(sys.base_prefix).resolve()
        program = Path(sys.executable).resolve().relative_to(home)
        packages = [each for each in sys.path if each.endswith("-packages")]
        ours = Path(lb.__file__).parents[1]
        self.handles = [
            os.open(each, os.O_PATH | os.O_DIRECTORY) for each in (home, ours, *packages)
        ]
        first, *others = (f"/proc/self/fd/{each}" for each in self.handles)
        self.program = f"{first}/{program}"
        self.environment = {
            "PYTHONHOME": first,
            "LD_LIBRARY_PATH": f"{first}/lib",
            "PYTHONPATH": ":".join(others),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": "/nonexistent",
        }

    def start(self, code, *words, user, group, **how):
        """Start a program as another user, with no right of root's left."""
        return subprocess.Popen(
            [self.program, "-c", code, *map(str, words)],
            user=user,
            group=group,
            extra_groups=[],
            env=self.environment,
            pass_fds=self.handles,
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **how,
        )


@pytest.fixture(scope="module")
def shelf():
    made = Shelf()
    yield made
    for each in made.handles:
        os.close(each)


@pytest.fixture
def folder():
    """A folder of the owner's that everybody can enter: only the modes of its files protect."""
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        made = Path(top) / "owner"
        made.mkdir()
        os.chown(made, OWNER, SHARED)
        made.chmod(0o755)
        yield made


CREATE = """
import sys, numpy as np, ladderboard as lb
labels = np.random.default_rng(0).integers(2, size={n})
lb.Holdout.create(sys.argv[1], labels, questions={k}, mechanism=lb.Ladder(step=0.01),
                  key_file=sys.argv[2])
"""


def agent(shelf, url, secrets, user=AGENT, group=SHARED):
    """Run the agent, and return what it found."""
    process = shelf.start(GUARD_AGENT.read_text(), user=user, group=group)
    out, err = process.communicate(json.dumps({"url": url, "seed": 1, "read": secrets}), timeout=60)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.mark.parametrize("way", ["socket", pytest.param("port", marks=pytest.mark.slow)])
def test_an_agent_completes_a_run_and_can_read_neither_file_nor_key(shelf, folder, way):
    file, key = folder / "guard.db", folder / "key"
    code = CREATE.format(n=N, k=QUESTIONS)
    made = shelf.start(code, file, key, user=OWNER, group=SHARED)
    assert made.communicate(timeout=60) == ("", "")
    words = ["--port", "0"] if way == "port" else ["--socket", folder / "s.sock"]
    words = ["guard", "serve", file, "--key-file", key, *words]
    server = shelf.start(PROGRAM, *words, user=OWNER, group=SHARED)
    try:
        assert server.stdout.readline().startswith("Guarding"), server.stderr.read()
        url = server.stdout.readline().removeprefix("Listening at ").partition(";")[0]
        beside = [f"{file}{each}" for each in ("", "-wal", "-shm", ".mark")]
        assert all(map(os.path.exists, beside))
        process = [f"/proc/{server.pid}/{each}" for each in ("mem", "environ", "maps", "fd/0")]
        secrets = [*beside, str(key), *process]
        found = agent(shelf, url, secrets)
        stranger = agent(shelf, url, secrets, STRANGER, STRANGER)
    finally:
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=30)
    assert server.returncode == 0
    assert (found["uid"], found["groups"]) == (AGENT, [])
    # A whole run, and the very answers that the guard gives in process.
    rng = np.random.default_rng(0)
    local = lb.Holdout.create(
        Path(tempfile.mkdtemp(dir=folder)) / "own.db",
        rng.integers(2, size=N),
        questions=QUESTIONS,
        mechanism=lb.Ladder(step=0.01),
    )
    models = np.random.default_rng(1)
    told = [local.ask(models.integers(2, size=N)) for _ in range(QUESTIONS)]
    assert found["replies"] == [[e.released, e.improved, e.question, e.remaining] for e in told]
    assert found["remaining"] == 0
    # And nothing else, though it is in the very group that the file belongs to.
    refused = dict.fromkeys(secrets, "PermissionError")
    assert found["read"] == found["written"] == stranger["read"] == refused
    if way == "socket":  # whose mode is 660
        assert "cannot be reached: Permission denied" in stranger["refused"]
    else:
        # The same predictions get the same answers, and spend nothing.
        assert [each[:3] for each in stranger["replies"]] == [each[:3] for each in found["replies"]]
        assert stranger["remaining"] == 0
    assert "Traceback" not in log


def test_the_attempts_would_succeed_if_the_modes_let_them(shelf, folder):
    secret = folder / "secret"
    secret.write_text("a secret")
    os.chown(secret, OWNER, SHARED)
    secret.chmod(0o660)
    found = agent(shelf, "unix:/nowhere", [str(secret)])
    assert found["read"] == found["written"] == {str(secret): "read 8 bytes"}
    own = shelf.start("input()", user=AGENT, group=SHARED)
    try:
        paths = [f"/proc/{own.pid}/environ", f"/proc/{own.pid}/maps"]
        assert set(agent(shelf, "unix:/nowhere", paths)["read"].values()) == {"read 10 bytes"}
    finally:
        own.communicate("\n", timeout=20)
