"""Parsers: the same predictions and refusals as in this process, from disposable ones."""

import asyncio
import io
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import psutil
import pytest

import ladderboard as lb
from ladderboard.errors import InvalidPredictions, InvalidSetting, WorkerError
from ladderboard.files import Limits, Roster, read_predictions
from ladderboard.holdout import AlignedPredictions
from ladderboard.server._sandbox._pool import ParserPool, ParsersBusy, Spec

N = 300
NUMBERS = np.random.default_rng(0).integers(3, size=N)
WORDS = np.array(["cat", "dög", "鳥"])[NUMBERS].tolist()
IDS = [f"row-{at}" for at in range(N)]


@dataclass
class Body:
    content: bytes | Path
    format: str | None = None


def spec(loss="zero_one", ids=N, kind="number", limits=None, **how):
    return Spec(Roster.of(ids, kind=kind), lb.loss(loss, **how), limits or Limits())


def csv(values, ids=range(N)):
    lines = (f"{at},{each}\n" for at, each in zip(ids, values, strict=True))
    return f"id,prediction\n{''.join(lines)}".encode()


def parquet(**columns):
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file)
    return file.getvalue()


async def until(so):
    """Wait until something is so."""
    while not so():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.001)


def alike(done, wanted):
    assert done.digest == wanted.digest
    assert done.values.dtype == wanted.values.dtype
    assert done.values.shape == wanted.values.shape
    assert (done.values == wanted.values).all()


THREE = {f"p_{at}": np.linspace(0, 1 / 3, N) for at in range(2)}
THREE["p_2"] = 1 - THREE["p_0"] - THREE["p_1"]
BODIES = {
    "numbers": (spec(), csv(NUMBERS)),
    "text ids": (spec(ids=IDS), csv(NUMBERS[::-1], IDS[::-1])),
    "text": (spec(kind="text"), csv(WORDS)),
    "text in several columns": (
        spec("top_k", k=2, kind="text"),
        parquet(id=range(N), first=WORDS, second=WORDS[::-1]),
    ),
    "real numbers": (spec("absolute", range=(0, 3)), csv(NUMBERS / 7)),
    "whole real numbers": (spec("absolute", range=(0, 3)), parquet(prediction=NUMBERS / 1)),
    "large whole numbers": (spec(), csv(NUMBERS * 10**15 - 5)),
    "probabilities": (spec("brier", classes=[0, 1, 2]), parquet(id=range(N), **THREE)),
    "one probability": (spec("log", classes=[0, 1]), csv(NUMBERS / 2)),
    "scores": (spec("score"), csv(NUMBERS / 2).replace(b"prediction", b"score")),
    "lines": (spec(), b"".join(b'{"id": %d, "prediction": 1}\n' % at for at in range(N))),
}


def run(work, **how):
    """Do something with parsers, and see that nothing is left of them."""

    async def inner():
        parsers = ParserPool(**{"count": 1, **how})
        seen = set()
        try:
            return await work(parsers, seen)
        finally:
            seen |= {each.pid for each in parsers._parsers}
            await parsers.close()
            assert not any(map(psutil.pid_exists, seen))
            assert len(asyncio.all_tasks()) == 1

    return asyncio.run(inner())


def test_predictions_are_those_of_this_process(tmp_path):
    path = tmp_path / "body"

    async def work(parsers, _):
        for name, (what, body) in BODIES.items():
            told = "jsonl" if name == "lines" else None
            read = read_predictions(body, what.roster, what.loss, format=told, limits=what.limits)
            for training in (None, 0.25):
                done = await parsers.read(name, what, Body(body, told), training=training)
                alike(done, AlignedPredictions.of(read, training=training))
        what, body = BODIES["probabilities"]
        path.write_bytes(body)
        for _ in range(40):  # more than there may be open files
            done = await parsers.read("probabilities", what, Body(path))
        alike(done, await parsers.read("probabilities", what, Body(body)))

    run(work)


def test_a_file_is_read_as_bytes_are_and_may_go_at_once(tmp_path):
    what, body = BODIES["text ids"]
    path = tmp_path / "body"
    path.write_bytes(body)

    async def work(parsers, _):
        first = asyncio.create_task(parsers.read("a", what, Body(path)))
        await until(lambda: any(each.used for each in parsers._parsers))
        path.unlink()
        alike(await first, await parsers.read("a", what, Body(body)))
        with pytest.raises(FileNotFoundError):
            await parsers.read("a", what, Body(path))
        alike(await first, await parsers.read("a", what, Body(body)))

    run(work)


def test_refusals_are_those_of_this_process():
    bad = {
        "rows": csv([*NUMBERS[:-1], "x\x1b[2J"]),
        "ids": csv(NUMBERS, [*range(1, N), "é\x07"]),
        "empty": b"",
        "packed": b"\x28\xb5\x2f\xfd1234",
        "no parquet": b"PAR1" + bytes(100) + b"PAR1",
    }
    what = spec()
    many, long = spec("hamming", kind="number"), "\U0001f40d" * 200
    wide = ",".join(f"{long}{at}" for at in range(300))
    rows = "".join(f"{long}{at}{',x' * 300}\n" for at in range(20))

    async def work(parsers, seen):
        await parsers.start()
        seen |= {each.pid for each in parsers._parsers}
        told = [(what, each) for each in bad.values()]
        for each, body in [*told, (many, f"id,{wide}\n{rows}".encode())]:
            with pytest.raises(InvalidPredictions) as here:
                read_predictions(body, each.roster, each.loss)
            with pytest.raises(InvalidPredictions) as there:
                await parsers.read(each, each, Body(body))
            assert str(there.value) == str(here.value)
            assert there.value.problems == here.value.problems
        assert {each.pid for each in parsers._parsers} == seen  # none was lost for it

    run(work)


def test_many_boards_take_turns_in_a_parser():
    async def work(parsers, _):
        for turn in range(2):
            for n in (*range(2, 22), 2, 21):
                what = spec(ids=n)
                body = csv([turn] * n, range(n))
                done = await parsers.read(f"board {n}", what, Body(body))
                assert done.values.tolist() == [turn] * n

    run(work)


def test_two_bodies_are_read_at_once_and_others_wait_their_turn():
    what, body = BODIES["numbers"]

    async def work(parsers, _):
        reads = [asyncio.create_task(parsers.read("a", what, Body(body))) for _ in range(4)]
        await asyncio.sleep(0)
        assert len(parsers._waiting) == 4
        with pytest.raises(ParsersBusy) as busy:
            await parsers.read("a", what, Body(body))
        assert (busy.value.status, busy.value.headers) == (503, {"Retry-After": "1"})
        reads[3].cancel()
        done = await asyncio.gather(*reads[:3])
        assert len({each.digest for each in done}) == 1
        assert len(parsers._parsers) + parsers._start_count == 2

    run(work, count=2, waiting=4)


def test_whoever_asks_may_go_away():
    what, body = BODIES["numbers"]

    async def work(parsers, seen):
        await parsers.start()
        seen |= {each.pid for each in parsers._parsers}
        for turns in range(20):
            task = asyncio.create_task(parsers.read("a", what, Body(body)))
            for _ in range(turns % 4):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        alike(await parsers.read("a", what, Body(body)), await parsers.read("b", what, Body(body)))
        assert {each.pid for each in parsers._parsers} == seen

    run(work)


def test_a_parser_makes_way_for_another_after_its_time():
    what, body = BODIES["numbers"]

    async def work(parsers, seen):
        while len(seen) < 3:
            await parsers.read("a", what, Body(body))
            seen |= {each.pid for each in parsers._parsers}
            assert len(parsers._parsers) <= 2

    run(work, uses=3)


def test_a_parser_that_died_in_its_sleep_is_nobodys_fault():
    what, body = BODIES["numbers"]

    async def work(parsers, seen):
        await parsers.start()
        (parser,) = parsers._parsers
        seen.add(parser.pid)
        os.kill(parser.pid, signal.SIGKILL)
        await until(lambda: parser not in parsers._parsers)
        await parsers.read("a", what, Body(body))

    run(work)


def test_nothing_about_the_server_is_in_a_parser(monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SECRET", "correct-horse")

    def look(pid):
        told = {
            name: Path(f"/proc/{pid}/{name}").read_bytes()
            for name in ("environ", "cmdline", "limits")
        }
        assert b"correct-horse" not in told["environ"] + told["cmdline"]
        assert b"LADDERBOARD" not in told["environ"]
        assert os.getpgid(pid) == os.getsid(pid) == pid
        assert psutil.Process(pid).num_fds() <= 12
        lines = told["limits"].decode().splitlines()
        limits = {line[:26].strip(): line[26:].split() for line in lines}
        assert limits["Max core file size"][:2] == limits["Max file size"][:2] == ["0", "0"]
        assert limits["Max open files"][:2] == ["32", "32"]
        assert 2**30 < int(limits["Max address space"][1]) < 8 * 2**30

    async def work(parsers, _):
        await parsers.start()
        look(next(iter(parsers._parsers)).pid)

    run(work)


def test_what_cannot_be_sent_or_started_is_told(monkeypatch):
    what, body = BODIES["numbers"]
    with pytest.raises(InvalidSetting, match="must be declared"):
        spec(kind=None)

    async def own(parsers, _):
        bad = Spec(what.roster, lb.loss(lambda labels, told: labels != told), Limits())
        with pytest.raises(InvalidSetting, match="imported by name"):
            await parsers.read("own", bad, Body(body))
        await parsers.read("a", what, Body(body))

    run(own)
    monkeypatch.setattr("sys.executable", "/nowhere/python")

    async def none(parsers, _):
        with pytest.raises(WorkerError, match="No parser could be started"):
            await parsers.read("a", what, Body(body))
        monkeypatch.setattr("sys.executable", "/bin/true")
        with pytest.raises(WorkerError, match="did not get ready"):
            await parsers.read("a", what, Body(body))
        await parsers.close()
        with pytest.raises(WorkerError, match="closed"):
            await parsers.read("a", what, Body(body))

    run(none)
