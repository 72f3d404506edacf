"""Parser processes return the same predictions and refusals as parsing in this process."""

import asyncio
import io
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

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
IDS = [f"row-{index}" for index in range(N)]


@dataclass
class Body:
    content: bytes | BinaryIO
    format: str | None = None


def make_spec(loss="zero_one", ids=N, kind="number", **options):
    return Spec(Roster.of(ids, kind=kind), lb.loss(loss, **options), Limits())


def to_csv(values, ids=range(N)):
    lines = (f"{id_},{value}\n" for id_, value in zip(ids, values, strict=True))
    return f"id,prediction\n{''.join(lines)}".encode()


def to_parquet(**columns):
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file)
    return file.getvalue()


async def wait_until(condition):
    """Wait until a condition holds."""
    while not condition():  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0.001)


def assert_same(submission, expected):
    assert submission.digest == expected.digest
    assert submission.values.dtype == expected.values.dtype
    assert submission.values.shape == expected.values.shape
    assert (submission.values == expected.values).all()


THREE = {f"p_{index}": np.linspace(0, 1 / 3, N) for index in range(2)}
THREE["p_2"] = 1 - THREE["p_0"] - THREE["p_1"]
BODIES = {
    "numbers": (make_spec(), to_csv(NUMBERS)),
    "text ids": (make_spec(ids=IDS), to_csv(NUMBERS[::-1], IDS[::-1])),
    "text": (make_spec(kind="text"), to_csv(WORDS)),
    "text in several columns": (
        make_spec("top_k", k=2, kind="text"),
        to_parquet(id=range(N), first=WORDS, second=WORDS[::-1]),
    ),
    "real numbers": (make_spec("absolute", range=(0, 3)), to_csv(NUMBERS / 7)),
    "whole real numbers": (make_spec("absolute", range=(0, 3)), to_parquet(prediction=NUMBERS / 1)),
    "large whole numbers": (make_spec(), to_csv(NUMBERS * 10**15 - 5)),
    "probabilities": (make_spec("brier", classes=[0, 1, 2]), to_parquet(id=range(N), **THREE)),
    "one probability": (make_spec("log", classes=[0, 1]), to_csv(NUMBERS / 2)),
    "scores": (make_spec("score"), to_csv(NUMBERS / 2).replace(b"prediction", b"score")),
    "lines": (
        make_spec(),
        b"".join(b'{"id": %d, "prediction": 1}\n' % index for index in range(N)),
    ),
}


def run_with_parsers(work, **options):
    """Run work with a parser pool, and check that its processes and tasks are gone."""

    async def inner():
        parsers = ParserPool(**{"count": 1, **options})
        pids = set()
        try:
            return await work(parsers, pids)
        finally:
            pids |= {parser.pid for parser in parsers._parsers}
            await parsers.close()
            assert not any(map(psutil.pid_exists, pids))
            assert len(asyncio.all_tasks()) == 1

    return asyncio.run(inner())


def test_predictions_are_the_same_as_in_this_process(tmp_path):
    path = tmp_path / "body"

    async def work(parsers, _):
        for name, (board_spec, body) in BODIES.items():
            format_ = "jsonl" if name == "lines" else None
            predictions = read_predictions(
                body, board_spec.roster, board_spec.loss, format=format_, limits=board_spec.limits
            )
            submission = await parsers.read(board_spec, Body(body, format_))
            assert_same(submission, AlignedPredictions.from_values(predictions))
        board_spec, body = BODIES["probabilities"]
        path.write_bytes(body)
        with path.open("rb") as file:
            for _ in range(40):  # more than the limit of open files
                submission = await parsers.read(board_spec, Body(file))
        assert_same(submission, await parsers.read(board_spec, Body(body)))

    run_with_parsers(work)


def test_a_check_says_how_a_file_is_read():
    async def work(parsers, _):
        board_spec, body = BODIES["text ids"]
        plain = b"\n".join([b"score", *[b"1"] * N])
        assert await parsers.check(board_spec, Body(body)) == []
        (note,) = await parsers.check(board_spec, Body(plain))
        assert note == "The file has no ids, so its rows were matched by position."
        with pytest.raises(InvalidPredictions):
            await parsers.check(board_spec, Body(b"score\n1\n"))
        submission = await parsers.read(board_spec, Body(body))  # predictions again
        assert_same(submission, AlignedPredictions.from_values(NUMBERS))

    run_with_parsers(work)


def test_a_file_is_read_like_bytes_and_may_be_closed_at_once(tmp_path):
    board_spec, body = BODIES["text ids"]
    path = tmp_path / "body"
    path.write_bytes(body)

    async def work(parsers, _):
        with path.open("rb") as file:
            task = asyncio.create_task(parsers.read(board_spec, Body(file)))
            await wait_until(lambda: any(parser.used for parser in parsers._parsers))
            path.unlink()
        assert_same(await task, await parsers.read(board_spec, Body(body)))
        with pytest.raises(ValueError, match="closed file"):
            await parsers.read(board_spec, Body(file))
        assert_same(await task, await parsers.read(board_spec, Body(body)))

    run_with_parsers(work)


def test_refusals_are_the_same_as_in_this_process():
    bad = {
        "rows": to_csv([*NUMBERS[:-1], "x\x1b[2J"]),
        "ids": to_csv(NUMBERS, [*range(1, N), "é\x07"]),
        "empty": b"",
        "packed": b"\x28\xb5\x2f\xfd1234",
        "no parquet": b"PAR1" + bytes(100) + b"PAR1",
    }
    board_spec = make_spec()
    many, long = make_spec("hamming", kind="number"), "\U0001f40d" * 200
    wide = ",".join(f"{long}{index}" for index in range(300))
    rows = "".join(f"{long}{index}{',x' * 300}\n" for index in range(20))

    async def work(parsers, pids):
        await parsers.start()
        pids |= {parser.pid for parser in parsers._parsers}
        cases = [(board_spec, bad_body) for bad_body in bad.values()]
        for case_spec, body in [*cases, (many, f"id,{wide}\n{rows}".encode())]:
            with pytest.raises(InvalidPredictions) as local:
                read_predictions(body, case_spec.roster, case_spec.loss)
            with pytest.raises(InvalidPredictions) as remote:
                await parsers.read(case_spec, Body(body))
            assert str(remote.value) == str(local.value)
            assert remote.value.problems == local.value.problems
        assert {parser.pid for parser in parsers._parsers} == pids  # no parser was replaced

    run_with_parsers(work)


def test_a_parser_serves_many_boards_in_turn():
    async def work(parsers, _):
        for turn in range(2):
            for n in (*range(2, 22), 2, 21):
                board_spec = make_spec(ids=n)
                body = to_csv([turn] * n, range(n))
                submission = await parsers.read(board_spec, Body(body))
                assert submission.values.tolist() == [turn] * n

    run_with_parsers(work)


def test_two_bodies_are_read_at_once_and_others_wait():
    board_spec, body = BODIES["numbers"]

    async def work(parsers, _):
        reads = [asyncio.create_task(parsers.read(board_spec, Body(body))) for _ in range(4)]
        await asyncio.sleep(0)
        assert len(parsers._waiting) == 4
        with pytest.raises(ParsersBusy) as busy:
            await parsers.read(board_spec, Body(body))
        assert (busy.value.status, busy.value.headers) == (503, {"Retry-After": "1"})
        reads[3].cancel()
        submissions = await asyncio.gather(*reads[:3])
        assert len({submission.digest for submission in submissions}) == 1
        assert len(parsers._parsers) + parsers._start_count == 2

    run_with_parsers(work, count=2, waiting=4)


def test_a_cancelled_read_does_not_harm_its_parser():
    board_spec, body = BODIES["numbers"]

    async def work(parsers, pids):
        await parsers.start()
        pids |= {parser.pid for parser in parsers._parsers}
        for turns in range(20):
            task = asyncio.create_task(parsers.read(board_spec, Body(body)))
            for _ in range(turns % 4):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert_same(
            await parsers.read(board_spec, Body(body)),
            await parsers.read(board_spec, Body(body)),
        )
        assert {parser.pid for parser in parsers._parsers} == pids

    run_with_parsers(work)


def test_a_parser_is_replaced_after_its_number_of_uses():
    board_spec, body = BODIES["numbers"]

    async def work(parsers, pids):
        while len(pids) < 3:
            await parsers.read(board_spec, Body(body))
            pids |= {parser.pid for parser in parsers._parsers}
            assert len(parsers._parsers) <= 2

    run_with_parsers(work, uses=3)


def test_an_idle_parser_that_died_is_replaced():
    board_spec, body = BODIES["numbers"]

    async def work(parsers, pids):
        await parsers.start()
        (parser,) = parsers._parsers
        pids.add(parser.pid)
        os.kill(parser.pid, signal.SIGKILL)
        await wait_until(lambda: parser not in parsers._parsers)
        await parsers.read(board_spec, Body(body))

    run_with_parsers(work)


def test_a_parser_has_no_secrets_and_tight_limits(monkeypatch):
    monkeypatch.setenv("LADDERBOARD_SECRET", "correct-horse")

    def check_process(pid):
        files = {
            name: Path(f"/proc/{pid}/{name}").read_bytes()
            for name in ("environ", "cmdline", "limits")
        }
        assert b"correct-horse" not in files["environ"] + files["cmdline"]
        assert b"LADDERBOARD" not in files["environ"]
        assert os.getpgid(pid) == os.getsid(pid) == pid
        assert psutil.Process(pid).num_fds() <= 12
        lines = files["limits"].decode().splitlines()
        limits = {line[:26].strip(): line[26:].split() for line in lines}
        assert limits["Max core file size"][:2] == limits["Max file size"][:2] == ["0", "0"]
        assert limits["Max open files"][:2] == ["32", "32"]
        assert 2**30 < int(limits["Max address space"][1]) < 8 * 2**30

    async def work(parsers, _):
        await parsers.start()
        check_process(next(iter(parsers._parsers)).pid)

    run_with_parsers(work)


def test_specs_that_cannot_be_sent_and_failed_starts_are_reported(monkeypatch):
    board_spec, body = BODIES["numbers"]
    with pytest.raises(InvalidSetting, match="must be declared"):
        make_spec(kind=None)

    async def send_local_loss(parsers, _):
        bad = Spec(
            board_spec.roster, lb.loss(lambda labels, predictions: labels != predictions), Limits()
        )
        with pytest.raises(InvalidSetting, match="imported by name"):
            await parsers.read(bad, Body(body))
        await parsers.read(board_spec, Body(body))

    run_with_parsers(send_local_loss)
    monkeypatch.setattr("sys.executable", "/nowhere/python")

    async def fail_to_start(parsers, _):
        with pytest.raises(WorkerError, match="No parser could be started"):
            await parsers.read(board_spec, Body(body))
        monkeypatch.setattr("sys.executable", "/bin/true")
        with pytest.raises(WorkerError, match="did not get ready"):
            await parsers.read(board_spec, Body(body))
        await parsers.close()
        with pytest.raises(WorkerError, match="closed"):
            await parsers.read(board_spec, Body(body))

    run_with_parsers(fail_to_start)
