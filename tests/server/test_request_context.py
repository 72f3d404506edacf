"""What handlers share: batches of calls, and parameters that are read without FastAPI."""

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import pytest
from fastapi import FastAPI, Header, Path, Query, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.testclient import TestClient

from ladderboard.errors import DiskFull
from ladderboard.server._context import ApiRoute, Batches, _read_once


def run_batches(run, calls):
    """Run calls, the first of which waits until the others have come; return what they return."""
    come = threading.Event()

    def run_when_all_came(key, arguments, let_next_start):
        assert come.wait(10)
        return run(key, arguments, let_next_start)

    async def main():
        with ThreadPoolExecutor(4) as threads:
            batches = Batches(threads, run_when_all_came)
            tasks = [asyncio.create_task(batches.call(*call)) for call in calls]
            await asyncio.sleep(0.01)
            if calls[-1] == ("a", "cancelled"):
                tasks[-1].cancel()
            come.set()
            return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(main())


def test_calls_that_wait_are_one_batch_for_each_key():
    batches = []

    def run(key, numbers, let_next_start):
        batches.append((key, numbers))
        return [number * 10 for number in numbers]

    calls = [("a", 1), ("a", 2), ("b", 3), ("a", 4)]
    assert run_batches(run, calls) == [10, 20, 30, 40]
    assert sorted(batches) == [("a", [1]), ("a", [2, 4]), ("b", [3])]


def test_the_next_batch_starts_before_the_first_has_ended_if_that_lets_it():
    batches, second_started = [], threading.Event()

    def run(key, numbers, let_next_start):
        batches.append(numbers)
        if len(batches) == 1:
            let_next_start()
            let_next_start()
            assert second_started.wait(10)
        else:
            second_started.set()
        return numbers

    assert run_batches(run, [("a", number) for number in range(5)]) == [0, 1, 2, 3, 4]
    assert batches == [[0], [1, 2, 3, 4]]


def test_a_batch_that_passes_another_may_end_before_it():
    second_done = threading.Event()

    def run(key, numbers, let_next_start):
        if numbers == [0]:
            let_next_start()
            assert second_done.wait(10)
        return numbers

    async def main():
        with ThreadPoolExecutor(4) as threads:
            batches = Batches(threads, run)
            first = asyncio.create_task(batches.call("a", 0))
            await asyncio.sleep(0.05)
            few = [asyncio.create_task(batches.call("a", number)) for number in (1, 2)]
            await asyncio.sleep(0.05)
            assert not any(call.done() for call in (first, *few))
            more = [asyncio.create_task(batches.call("a", number)) for number in (3, 4)]
            assert await asyncio.wait_for(asyncio.gather(*few, *more), 30) == [1, 2, 3, 4]
            assert not first.done()
            second_done.set()
            return await asyncio.wait_for(first, 30), await batches.call("a", 5)

    assert asyncio.run(main()) == (0, 5)


def test_many_calls_are_several_batches():
    sizes = []

    def run(key, numbers, let_next_start):
        sizes.append(len(numbers))
        return numbers

    assert run_batches(run, [("a", number) for number in range(150)]) == list(range(150))
    assert sizes == [1, 64, 64, 21]


def test_a_batch_waits_for_as_many_announced_calls_as_wait():
    batches = []

    def run(key, numbers, let_next_start):
        batches.append(numbers)
        return numbers

    async def announced_call(waits, number, steps):
        with waits.announce("a") as come:
            for step in steps:
                await step.wait()
            come()
            return await waits.call("a", number)

    async def main(seconds):
        with ThreadPoolExecutor(1) as threads:
            waits = Batches(threads, run, seconds)
            steps = [asyncio.Event() for _ in range(4)]
            calls = [
                asyncio.create_task(announced_call(waits, number, [step]))
                for number, step in enumerate(steps)
            ]
            for step in steps[:3]:
                await asyncio.sleep(0.05)
                step.set()
            done = await asyncio.wait_for(asyncio.gather(*calls[:3]), 30)
            calls[3].cancel()
            await asyncio.wait(calls)
            return done, await asyncio.wait_for(waits.call("a", 4), 30)

    assert asyncio.run(main(100.0)) == ([0, 1, 2], 4)
    assert batches == [[0, 1], [2], [4]]
    batches.clear()
    assert asyncio.run(main(0.001)) == ([0, 1, 2], 4)
    assert batches == [[0], [1], [2], [4]]


def test_an_error_belongs_to_its_call():
    full = OSError(28, "No space left on device")

    def run(key, arguments, let_next_start):
        return [full if argument == "full" else argument for argument in arguments]

    first, second, third, _ = run_batches(
        run, [("a", 1), ("a", "full"), ("a", 3), ("a", "cancelled")]
    )
    assert (first, third) == (1, 3)
    assert isinstance(second, DiskFull)


def test_a_failed_batch_fails_all_its_calls_and_no_other():
    def run(key, numbers, let_next_start):
        if len(numbers) > 1:
            raise ValueError("bug")
        return numbers

    first, *others = run_batches(run, [("a", 1), ("a", 2), ("a", 3)])
    assert first == 1
    assert [str(error) for error in others] == ["bug", "bug"]


def test_public_reads_that_wait_share_one_that_begins_after_them():
    readings = []

    def read():
        readings.append("begun")
        if len(readings) == 2:
            raise ValueError("bug")
        return len(readings)

    first, *others = run_batches(_read_once, [("a", read)] * 4)
    assert first == 1
    assert [str(error) for error in others] == ["bug"] * 3
    assert len(readings) == 2


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/boards/first?limit=5", {"X-Key": "k"}),
        ("/boards/first", {}),
        ("/boards/First?limit=5", {}),
        ("/boards/first?limit=0", {}),
        ("/boards/first?limit=x", {}),
        ("/boards/first?limit=", {}),
        ("/boards/first?limit=5", {"X-Key": ""}),
    ],
)
def test_parameters_are_read_as_fastapi_reads_them(path, headers):
    async def show(
        request: Request,
        board: Annotated[str, Path(pattern="^[a-z]+$")],
        limit: Annotated[int, Query(ge=1)] = 100,
        key: Annotated[str | None, Header(alias="X-Key", min_length=1)] = None,
    ) -> Response:
        return Response(json.dumps([request.url.path, board, limit, key]))

    def call(route_class):
        app = FastAPI()
        app.router.route_class = route_class
        app.get("/boards/{board}")(show)
        response = TestClient(app).get(path, headers=headers)
        return response.status_code, response.json()

    assert call(ApiRoute) == call(APIRoute)
