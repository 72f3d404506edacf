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


class SharedPython:
    """Python and its packages, for users who may not enter the folders they are in.

    Root opens the folders and passes them on; a path through /proc/self/fd needs no permission for
    the folders above.
    """

    def __init__(self):
        home = Path(sys.base_prefix).resolve()
        program = Path(sys.executable).resolve().relative_to(home)
        packages = [path for path in sys.path if path.endswith("-packages")]
        ours = Path(lb.__file__).parents[1]
        self.handles = [
            os.open(path, os.O_PATH | os.O_DIRECTORY) for path in (home, ours, *packages)
        ]
        home_path, *package_paths = (f"/proc/self/fd/{handle}" for handle in self.handles)
        self.program = f"{home_path}/{program}"
        self.environment = {
            "PYTHONHOME": home_path,
            "LD_LIBRARY_PATH": f"{home_path}/lib",
            "PYTHONPATH": ":".join(package_paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOME": "/nonexistent",
        }

    def start(self, code, *words, user, group, **options):
        """Start a program as another user, without any of root's rights."""
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
            **options,
        )


@pytest.fixture(scope="module")
def shared_python():
    python = SharedPython()
    yield python
    for handle in python.handles:
        os.close(handle)


@pytest.fixture
def folder():
    """A folder of the owner that all users can enter: only the modes of its files protect."""
    with tempfile.TemporaryDirectory() as top:
        Path(top).chmod(0o755)
        path = Path(top) / "owner"
        path.mkdir()
        os.chown(path, OWNER, SHARED)
        path.chmod(0o755)
        yield path


CREATE = """
import sys, numpy as np, ladderboard as lb
labels = np.random.default_rng(0).integers(2, size={n})
lb.Holdout.create(sys.argv[1], labels, questions={k}, mechanism=lb.Ladder(step=0.01),
                  key_file=sys.argv[2])
"""


def run_agent(shared_python, url, secrets, user=AGENT, group=SHARED):
    """Run the agent and return its report."""
    process = shared_python.start(GUARD_AGENT.read_text(), user=user, group=group)
    out, err = process.communicate(json.dumps({"url": url, "seed": 1, "read": secrets}), timeout=60)
    assert process.returncode == 0, err
    return json.loads(out)


@pytest.mark.parametrize("transport", ["socket", pytest.param("port", marks=pytest.mark.slow)])
def test_an_agent_completes_a_run_and_can_read_neither_file_nor_key(
    shared_python, folder, transport
):
    file, key = folder / "guard.db", folder / "key"
    code = CREATE.format(n=N, k=QUESTIONS)
    creation = shared_python.start(code, file, key, user=OWNER, group=SHARED)
    assert creation.communicate(timeout=60) == ("", "")
    words = ["--port", "0"] if transport == "port" else ["--socket", folder / "s.sock"]
    words = ["guard", "serve", file, "--key-file", key, *words]
    server = shared_python.start(PROGRAM, *words, user=OWNER, group=SHARED)
    try:
        assert server.stdout.readline().startswith("Guarding"), server.stderr.read()
        url = server.stdout.readline().removeprefix("Listening at ").partition(";")[0]
        files = [f"{file}{suffix}" for suffix in ("", "-wal", "-shm", ".mark")]
        assert all(map(os.path.exists, files))
        process_files = [
            f"/proc/{server.pid}/{name}" for name in ("mem", "environ", "maps", "fd/0")
        ]
        secrets = [*files, str(key), *process_files]
        result = run_agent(shared_python, url, secrets)
        stranger = run_agent(shared_python, url, secrets, STRANGER, STRANGER)
    finally:
        server.send_signal(signal.SIGTERM)
        _, log = server.communicate(timeout=30)
    assert server.returncode == 0
    assert (result["uid"], result["groups"]) == (AGENT, [])
    # It completed a run, with the same answers as in process.
    rng = np.random.default_rng(0)
    local = lb.Holdout.create(
        Path(tempfile.mkdtemp(dir=folder)) / "own.db",
        rng.integers(2, size=N),
        questions=QUESTIONS,
        mechanism=lb.Ladder(step=0.01),
    )
    models = np.random.default_rng(1)
    answers = [local.ask(models.integers(2, size=N)) for _ in range(QUESTIONS)]
    assert result["replies"] == [
        [answer.released, answer.improved, answer.question, answer.remaining] for answer in answers
    ]
    assert result["remaining"] == 0
    # It could read nothing else, though it is in the group that the file belongs to.
    refused = dict.fromkeys(secrets, "PermissionError")
    assert result["read"] == result["written"] == stranger["read"] == refused
    if transport == "socket":  # whose mode is 660
        assert "cannot be reached: Permission denied" in stranger["refused"]
    else:
        # The same predictions get the same answers, and spend nothing.
        assert [reply[:3] for reply in stranger["replies"]] == [
            reply[:3] for reply in result["replies"]
        ]
        assert stranger["remaining"] == 0
    assert "Traceback" not in log


CREATE_GATE = """
import sys, numpy as np, ladderboard as lb
labels = np.random.default_rng(0).integers(2, size={n})
gate = lb.Gate.create(sys.argv[1], labels, looks=3)
gate.promote(labels ^ (np.arange({n}) < 60))
"""

VALIDATE = """
import json, sys, urllib.request, numpy as np
labels = np.random.default_rng(0).integers(2, size={n})
rows = "".join("%d,%d\\n" % pair for pair in enumerate(labels ^ (np.arange({n}) < 5)))
csv = "id,prediction\\n" + rows
disposition = 'Content-Disposition: form-data; name="file"; filename="submission.csv"'
body = "--sep\\r\\n" + disposition + "\\r\\n\\r\\n" + csv + "\\r\\n--sep--\\r\\n"
request = urllib.request.Request(sys.argv[1] + "/validate", body.encode(),
                                 {{"Content-Type": "multipart/form-data; boundary=sep"}})
reply = json.load(urllib.request.urlopen(request))
with open(sys.argv[2] + "/submission.csv", "w") as submission:
    submission.write(csv)
try:
    reply["read"] = open(sys.argv[3]).read()
except OSError as error:
    reply["read"] = type(error).__name__
print(json.dumps(reply))
"""


def test_an_agent_is_graded_by_a_server_whose_file_it_cannot_read(shared_python, folder):
    """And a verifier under the agent's user writes reward.json with what the server says."""
    file, work = folder / "gate.db", folder.parent / "work"
    work.mkdir()
    os.chown(work, AGENT, AGENT)
    creation = shared_python.start(CREATE_GATE.format(n=N), file, user=OWNER, group=SHARED)
    assert creation.communicate(timeout=60) == ("", "")
    server = shared_python.start(
        PROGRAM, "grade", "serve", file, "--port", "0", user=OWNER, group=SHARED
    )
    try:
        assert server.stdout.readline().startswith("Serving"), server.stderr.read()
        url = server.stdout.readline().removeprefix("Listening at ").partition(";")[0]
        agent = shared_python.start(VALIDATE.format(n=N), url, work, file, user=AGENT, group=AGENT)
        out, err = agent.communicate(timeout=60)
        assert agent.returncode == 0, err
        words = ["grade", "reward", url, work / "submission.csv", "--logs", work]
        verifier = shared_python.start(PROGRAM, *words, user=AGENT, group=AGENT)
        _, err = verifier.communicate(timeout=60)
        assert verifier.returncode == 0, err
        rewards, details = (
            json.loads((work / name).read_text()) for name in ("reward.json", "reward-details.json")
        )
        words[2] = file
        direct = shared_python.start(PROGRAM, *words, user=AGENT, group=AGENT)
        _, refusal = direct.communicate(timeout=60)
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=30)
    reply = json.loads(out)
    assert reply["read"] == "PermissionError"
    assert (reply["valid"], reply["answer"]["outcome"]) == (True, "better")
    assert rewards == {"reward": 1, "better": 1, "not_worse": 1, "valid": 1}
    assert (direct.returncode, "cannot be opened" in refusal) == (4, True), refusal
    assert not (work / "reward.json").exists()  # the failed attempt was not graded
    assert details["answer"]["again"]


def test_the_attempts_succeed_with_permissive_modes(shared_python, folder):
    secret = folder / "secret"
    secret.write_text("a secret")
    os.chown(secret, OWNER, SHARED)
    secret.chmod(0o660)
    result = run_agent(shared_python, "unix:/nowhere", [str(secret)])
    assert result["read"] == result["written"] == {str(secret): "read 8 bytes"}
    agent_process = shared_python.start("input()", user=AGENT, group=SHARED)
    try:
        paths = [f"/proc/{agent_process.pid}/environ", f"/proc/{agent_process.pid}/maps"]
        assert set(run_agent(shared_python, "unix:/nowhere", paths)["read"].values()) == {
            "read 10 bytes"
        }
    finally:
        agent_process.communicate("\n", timeout=20)
