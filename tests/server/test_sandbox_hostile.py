"""Bodies that exhaust or take over a parser get one refusal, and other bodies are not disturbed.

A loss stands in for a hostile body: the parser process calls it with the predictions.
"""

import asyncio
import ctypes
import io
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

import numpy as np
import polars as pl
import psutil
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidPredictions, WorkerError
from ladderboard.files import Limits, Roster
from ladderboard.server._sandbox._pool import ParserPool, Spec

N = 10
LOSS = '''
import os, socket, struct, time
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from ladderboard.losses import Loss

def line():
    """Find the connection to the server, as an attacker inside the parser would."""
    for descriptor in range(3, 32):
        try:
            connection = socket.socket(fileno=os.dup(descriptor))
            connection.getpeername()
            return connection
        except OSError:
            pass

@dataclass(frozen=True)
class Hostile(Loss):
    """Performs one hostile action."""
    name: ClassVar[str] = "hostile"
    action: str = ""

    def read_predictions(self, predictions, shape):
        action = self.action
        if action == "loop":
            while True:
                pass
        elif action == "sleep":
            time.sleep(1000)
        elif action.startswith("open "):
            open(action[5:], "rb").close()
        elif action == "hog":
            blocks = []
            while True:
                blocks.append(bytearray(2**24))
        elif action == "crash":
            os.kill(os.getpid(), 11)
        elif action == "raise":
            raise RuntimeError("labels: 1 0 1")
        elif action == "hang up":
            line().shutdown(socket.SHUT_RDWR)
            time.sleep(1000)
        elif action == "exit":
            raise SystemExit
        elif action == "write":
            with open("{folder}/written", "wb") as file:
                file.write(b"x")
        elif action == "open":
            [os.dup(0) for _ in range(100)]
        elif action.startswith("say "):
            line().sendall(bytes.fromhex(action[4:]))
            time.sleep(1000)
        return np.asarray(predictions)

    def per_example(self, labels, predictions):
        return labels != predictions
'''


@dataclass
class CsvBody:
    content: bytes
    format: str | None = "csv"


BODY = CsvBody(b"id,prediction\n" + b"".join(b"%d,1\n" % index for index in range(N)))
PLAIN = Spec(Roster.of(N, kind="number"), lb.loss("zero_one"), Limits())


@pytest.fixture
def hostile_spec(tmp_path, monkeypatch):
    """Return a function that makes a specification with a hostile loss."""
    (tmp_path / "hostile_loss.py").write_text(LOSS.replace("{folder}", str(tmp_path)))
    monkeypatch.syspath_prepend(tmp_path)
    import hostile_loss

    yield lambda action: Spec(PLAIN.roster, hostile_loss.Hostile(action=action), Limits())
    del sys.modules["hostile_loss"]


async def read_refused(parsers, spec, body=BODY):
    """Return the code and message of a refused body, and check that others are still read."""
    with pytest.raises(InvalidPredictions) as error:
        await parsers.read(spec, body)
    (problem,) = error.value.problems
    assert str(error.value) == problem.message
    submission = await parsers.read(PLAIN, BODY)
    assert submission.values.tolist() == [1] * N
    return problem.code, problem.message


async def wait_until(condition):
    """Wait until a condition holds."""
    while not condition():  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0.001)


def run_with_parsers(work, **options):
    async def inner():
        async with ParserPool(**{"count": 1, "seconds": 30, "memory": 2**28, **options}) as parsers:
            return await work(parsers)

    return asyncio.run(inner())


_LANDLOCK = sys.platform == "linux" and ctypes.CDLL(None).syscall(444, None, 0, 1) > 0
TOO_COSTLY = "The predictions could not be read within 30 seconds and 256 MiB of memory."


HEAD = b"i\x00\x00\x01" + N.to_bytes(8, "big") + bytes(16)


def frame(kind, content, size=None):
    return kind + (len(content) if size is None else size).to_bytes(8, "big") + content


ACTIONS = ["hog", "crash", "exit"] + [
    f"say {reply.hex()}"
    for reply in (
        frame(b"A", b"", size=2**60),
        frame(b"A", HEAD + bytes(N - 1)),
        frame(b"A", HEAD + bytes(N)) * 2,
    )
]


def test_bodies_that_exhaust_crash_or_forge_replies_get_one_refusal(hostile_spec):
    async def work(parsers):
        for action in ACTIONS:
            assert await read_refused(parsers, hostile_spec(action)) == (
                "too_costly",
                TOO_COSTLY,
            ), action

    run_with_parsers(work, count=2)


@pytest.mark.skipif(not _LANDLOCK, reason="this kernel has no Landlock")
def test_a_hijacked_parser_cannot_open_files_of_the_server(hostile_spec, tmp_path_factory):
    """Landlock prevents it: a file beside the parser's own program can be opened."""
    secret = tmp_path_factory.mktemp("server") / "boards.db"
    secret.write_bytes(b"labels")

    async def work(parsers):
        for path in (secret, "/etc/passwd", f"/proc/{os.getpid()}/environ"):
            with pytest.raises(WorkerError):
                await parsers.read(hostile_spec(f"open {path}"), BODY)
        assert (await parsers.read(hostile_spec(f"open {os.__file__}"), BODY)).values.size

    run_with_parsers(work)


def test_an_endless_body_is_stopped_and_others_are_read(hostile_spec, monkeypatch):
    monkeypatch.setattr("ladderboard.server._sandbox._process._SPEC_SECONDS", 0)

    async def work(parsers):
        await wait_until(lambda: len(parsers._parsers) == 3)
        pids = {parser.pid for parser in parsers._parsers}
        endless = [
            asyncio.create_task(parsers.read(hostile_spec(action), BODY))
            for action in ("loop", "sleep")
        ]
        count = 0
        while not all(task.done() for task in endless):
            await parsers.read(PLAIN, BODY)
            count += 1
        assert count > 1
        for task in endless:
            with pytest.raises(InvalidPredictions, match=r"within 3 seconds and"):
                await task
        await wait_until(lambda: len(parsers._parsers) == 3)
        assert len(pids & {parser.pid for parser in parsers._parsers}) == 1

    # A fast machine reads thousands of bodies meanwhile; the third parser must not be replaced.
    run_with_parsers(work, count=3, seconds=3, uses=10**9)


def test_a_parser_that_crashes_or_disconnects_is_blamed_on_the_file(
    hostile_spec, kill_parsers, monkeypatch
):
    monkeypatch.setattr("ladderboard.server._sandbox._process._EXIT_SECONDS", 0.2)

    async def work(parsers):
        for number in (signal.SIGSEGV, signal.SIGXCPU):
            kill_parsers(1, number)
            assert await read_refused(parsers, PLAIN) == ("too_costly", TOO_COSTLY)
        kill_parsers(0)
        assert await read_refused(parsers, hostile_spec("hang up")) == ("too_costly", TOO_COSTLY)

    run_with_parsers(work, count=2)


def test_closing_the_pool_is_not_blamed_on_the_file(hostile_spec):
    async def work(parsers):
        task = asyncio.create_task(parsers.read(hostile_spec("sleep"), BODY))
        await wait_until(lambda: any(parser.used for parser in parsers._parsers))
        await parsers.close()
        with pytest.raises(WorkerError, match="closed"):
            await task

    run_with_parsers(work)


def test_an_error_in_a_parser_is_reported_without_its_text(hostile_spec, caplog, tmp_path):
    async def work(parsers):
        for action in ("raise", "write", "open"):  # it can write no file and open only a few
            with pytest.raises(WorkerError, match="broke down"):
                await parsers.read(hostile_spec(action), BODY)

    run_with_parsers(work, count=2)
    assert caplog.text.count("RuntimeError") == 1
    refusals = caplog.text.count("OSError") + caplog.text.count("PermissionError")
    assert refusals == 2  # PermissionError with Landlock, OSError without
    assert "1 0 1" not in caplog.text
    written = tmp_path / "written"
    assert not written.exists() or not written.stat().st_size


def test_a_file_that_unpacks_to_too_much_is_refused():
    n = 100_000
    file = io.BytesIO()
    word = pl.repeat("x" * 4000, n, eager=True)  # once in the file, 400 MB in a column
    pl.DataFrame({"id": np.arange(n), "prediction": word}).write_parquet(file)
    assert len(file.getvalue()) < 2**21
    spec = Spec(Roster.of(n, kind="text"), lb.loss("zero_one"), Limits())

    async def work(parsers):
        refusal = await read_refused(parsers, spec, CsvBody(file.getvalue(), "parquet"))
        assert refusal == ("too_costly", TOO_COSTLY)

    run_with_parsers(work)


SERVER = """
import asyncio, sys
from ladderboard.server._sandbox._pool import ParserPool

async def main():
    async with ParserPool(2) as parsers:
        while len(parsers._parsers) < 2:
            await asyncio.sleep(0.01)
        print(*(parser.pid for parser in parsers._parsers), flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


def test_parsers_die_with_the_server():
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVER)], stdout=subprocess.PIPE
    ) as server:
        pids = list(map(int, server.stdout.readline().split()))
        assert len(pids) == 2
        for pid in pids:  # stopped, they do not notice the closed connection
            os.kill(pid, signal.SIGSTOP)
        server.kill()
    for _ in range(1000):
        if not any(map(_is_alive, pids)):
            return
        time.sleep(0.01)
    raise AssertionError(pids)


def _is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_custom_loss_is_imported_by_name(tmp_path, monkeypatch):
    module = tmp_path / "own_loss_of_a_test.py"
    module.write_text("def far(labels, predictions):\n    return abs(labels - predictions) > 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    spec = Spec(PLAIN.roster, lb.loss("own_loss_of_a_test:far"), Limits())

    async def work(parsers):
        return (await parsers.read(spec, BODY)).values

    assert run_with_parsers(work).tolist() == [1] * N
