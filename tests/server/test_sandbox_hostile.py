"""Bodies that take time, memory or the parser itself: one sentence, and nobody else is disturbed.

What a body could do to a parser, a loss does here: it is asked about predictions over there.
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
    """Find the line to the server, as whoever took the parser over would."""
    for each in range(3, 32):
        try:
            found = socket.socket(fileno=os.dup(each))
            found.getpeername()
            return found
        except OSError:
            pass

@dataclass(frozen=True)
class Hostile(Loss):
    """Does what it is told."""
    name: ClassVar[str] = "hostile"
    deed: str = ""

    def read_predictions(self, predictions, shape):
        deed = self.deed
        if deed == "loop":
            while True:
                pass
        elif deed == "sleep":
            time.sleep(1000)
        elif deed.startswith("open "):
            open(deed[5:], "rb").close()
        elif deed == "hog":
            held = []
            while True:
                held.append(bytearray(2**24))
        elif deed == "crash":
            os.kill(os.getpid(), 11)
        elif deed == "raise":
            raise RuntimeError("labels: 1 0 1")
        elif deed == "hang up":
            found = line()
            found.shutdown(socket.SHUT_RDWR)
            time.sleep(1000)
        elif deed == "exit":
            raise SystemExit
        elif deed == "write":
            with open("{folder}/written", "wb") as file:
                file.write(b"x")
        elif deed == "open":
            [os.dup(0) for _ in range(100)]
        elif deed.startswith("say "):
            line().sendall(bytes.fromhex(deed[4:]))
            time.sleep(1000)
        return np.asarray(predictions)

    def per_example(self, labels, predictions):
        return labels != predictions
'''


@dataclass
class Body:
    content: bytes
    format: str | None = "csv"


BODY = Body(b"id,prediction\n" + b"".join(b"%d,1\n" % at for at in range(N)))
PLAIN = Spec(Roster.of(N, kind="number"), lb.loss("zero_one"), Limits())


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """Give a specification with a loss that does something."""
    (tmp_path / "hostile_loss.py").write_text(LOSS.replace("{folder}", str(tmp_path)))
    monkeypatch.syspath_prepend(tmp_path)
    import hostile_loss

    yield lambda deed: Spec(PLAIN.roster, hostile_loss.Hostile(deed=deed), Limits())
    del sys.modules["hostile_loss"]


async def refused(parsers, spec, body=BODY):
    """Return the code with which a body is refused, after which others are read as before."""
    with pytest.raises(InvalidPredictions) as error:
        await parsers.read(object(), spec, body)
    (problem,) = error.value.problems
    assert str(error.value) == problem.message
    read = await parsers.read("plain", PLAIN, BODY)
    assert read.values.tolist() == [1] * N
    return problem.code, problem.message


async def until(so):
    """Wait until something is so."""
    while not so():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)


def run(work, **how):
    async def inner():
        async with ParserPool(**{"count": 1, "seconds": 30, "memory": 2**28, **how}) as parsers:
            return await work(parsers)

    return asyncio.run(inner())


_LANDLOCK = sys.platform == "linux" and ctypes.CDLL(None).syscall(444, None, 0, 1) > 0
REPLY_HEADER = "The predictions could not be read within 30 seconds and 256 MiB of memory."


HEAD = b"i\x00\x00\x01" + N.to_bytes(8, "big") + bytes(16)


def frame(kind, said, size=None):
    return kind + (len(said) if size is None else size).to_bytes(8, "big") + said


DEEDS = ["hog", "crash", "exit"] + [
    f"say {each.hex()}"
    for each in (
        frame(b"A", b"", size=2**60),
        frame(b"A", HEAD + bytes(N - 1)),
        frame(b"A", HEAD + bytes(N)) * 2,
    )
]


def test_who_takes_too_much_dies_or_lies_is_told_one_sentence(hostile):
    async def work(parsers):
        for deed in DEEDS:
            assert await refused(parsers, hostile(deed)) == ("too_costly", REPLY_HEADER), deed

    run(work, count=2)


@pytest.mark.skipif(not _LANDLOCK, reason="this kernel cannot take rights away")
def test_a_parser_that_is_taken_over_can_open_nothing_of_the_servers(hostile, tmp_path_factory):
    """PermissionError ends it; a file beside its program may be opened, so it is the lock."""
    secret = tmp_path_factory.mktemp("server") / "boards.db"
    secret.write_bytes(b"labels")

    async def work(parsers):
        for path in (secret, "/etc/passwd", f"/proc/{os.getpid()}/environ"):
            with pytest.raises(WorkerError):
                await parsers.read(object(), hostile(f"open {path}"), BODY)
        assert (await parsers.read(object(), hostile(f"open {os.__file__}"), BODY)).values.size

    run(work)


def test_an_endless_body_is_ended_and_the_others_go_on(hostile, monkeypatch):
    monkeypatch.setattr("ladderboard.server._sandbox._process._SETTLING", 0)

    async def work(parsers):
        await until(lambda: len(parsers._parsers) == 3)
        pids = {each.pid for each in parsers._parsers}
        endless = [
            asyncio.create_task(parsers.read(deed, hostile(deed), BODY))
            for deed in ("loop", "sleep")
        ]
        count = 0
        while not all(each.done() for each in endless):
            await parsers.read("plain", PLAIN, BODY)
            count += 1
        assert count > 1
        for each in endless:
            with pytest.raises(InvalidPredictions, match=r"within 3 seconds and"):
                await each
        await until(lambda: len(parsers._parsers) == 3)
        assert len(pids & {each.pid for each in parsers._parsers}) == 1

    # A fast machine reads thousands of bodies meanwhile; the third must not make way for a new one.
    run(work, count=3, seconds=3, uses=10**9)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_parser_that_is_killed_from_outside_is_not_the_files_fault(kill_parsers, caplog, number):
    async def work(parsers):
        kill_parsers(1, number)
        read = await parsers.read("plain", PLAIN, BODY)
        assert read.values.tolist() == [1] * N
        kill_parsers(2, number)
        with pytest.raises(WorkerError, match=f"2 parsers were killed .*{number.name}"):
            await parsers.read("plain", PLAIN, BODY)
        await parsers.read("plain", PLAIN, BODY)

    run(work)
    assert caplog.text.count(number.name) == 3


def test_a_parser_that_crashes_or_hangs_up_is_the_files_fault(hostile, kill_parsers, monkeypatch):
    monkeypatch.setattr("ladderboard.server._sandbox._process._DYING", 0.2)

    async def work(parsers):
        for number in (signal.SIGSEGV, signal.SIGXCPU):
            kill_parsers(1, number)
            assert await refused(parsers, PLAIN) == ("too_costly", REPLY_HEADER)
        kill_parsers(0)
        assert await refused(parsers, hostile("hang up")) == ("too_costly", REPLY_HEADER)

    run(work, count=2)


def test_a_body_whose_parser_ends_with_the_server_is_not_blamed(hostile):
    async def work(parsers):
        task = asyncio.create_task(parsers.read("a", hostile("sleep"), BODY))
        await until(lambda: any(each.used for each in parsers._parsers))
        await parsers.close()
        with pytest.raises(WorkerError, match="closed"):
            await task

    run(work)


def test_a_broken_parser_is_told_and_its_words_are_not_repeated(hostile, caplog, tmp_path):
    async def work(parsers):
        for deed in ("raise", "write", "open"):  # no file can be written, and few be open
            with pytest.raises(WorkerError, match="broke down"):
                await parsers.read(deed, hostile(deed), BODY)

    run(work, count=2)
    assert caplog.text.count("RuntimeError") == 1
    refusals = caplog.text.count("OSError") + caplog.text.count("PermissionError")
    assert refusals == 2  # one of the two where the kernel locks parsers in
    assert "1 0 1" not in caplog.text
    written = tmp_path / "written"
    assert not written.exists() or not written.stat().st_size


def test_a_file_that_explodes_is_refused():
    n = 100_000
    file = io.BytesIO()
    word = pl.repeat("x" * 4000, n, eager=True)  # once in the file, 400 MB in a column
    pl.DataFrame({"id": np.arange(n), "prediction": word}).write_parquet(file)
    assert len(file.getvalue()) < 2**21
    spec = Spec(Roster.of(n, kind="text"), lb.loss("zero_one"), Limits())

    async def work(parsers):
        said = await refused(parsers, spec, Body(file.getvalue(), "parquet"))
        assert said == ("too_costly", REPLY_HEADER)

    run(work)


SERVER = """
import asyncio, sys
from ladderboard.server._sandbox._pool import ParserPool

async def main():
    async with ParserPool(2) as parsers:
        while len(parsers._parsers) < 2:
            await asyncio.sleep(0.01)
        print(*(each.pid for each in parsers._parsers), flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


def test_parsers_die_with_the_server():
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SERVER)], stdout=subprocess.PIPE
    ) as server:
        pids = list(map(int, server.stdout.readline().split()))
        assert len(pids) == 2
        for pid in pids:  # they would not hear that the line is gone
            os.kill(pid, signal.SIGSTOP)
        server.kill()
    for _ in range(1000):
        if not any(map(_lives, pids)):
            return
        time.sleep(0.01)
    raise AssertionError(pids)


def _lives(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_own_losses_by_name(tmp_path, monkeypatch):
    module = tmp_path / "own_loss_of_a_test.py"
    module.write_text("def far(labels, predictions):\n    return abs(labels - predictions) > 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    spec = Spec(PLAIN.roster, lb.loss("own_loss_of_a_test:far"), Limits())

    async def work(parsers):
        return (await parsers.read("own", spec, BODY)).values

    assert run(work).tolist() == [1] * N
