"""Workers that are replaced while clients ask: nobody is cut off, nothing is lost or done twice."""

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from support.server.live_server import make_folder

TEAMS = 5
EXPECTED = {"start", "request", "restart", "stop"}


@pytest.fixture(scope="session")
def shops(load):
    return load("_shop")


@pytest.fixture
def address(shops, request, tmp_path):
    with shops.siege.database_of("postgres", request, tmp_path) as found:
        yield found


@pytest.fixture
def shop(shops, address, tmp_path):
    """A server with two workers on PostgreSQL, and a board with many questions."""
    with shops.Shop(address, tmp_path, "--workers", "2") as made:
        names = [f"team {at}" for at in range(TEAMS)]
        made.make(make_folder(questions=60_000, teams=TEAMS, per_team=10_000), names)
        yield made


def press(shops, shop, rolls, **more):
    """Replace all workers so often while clients ask; see that nobody noticed."""
    shop.start()
    shop.ready()
    seen = shop.full()
    crowd = shops.Crowd(shop, TEAMS, **more)
    for _ in range(rolls):
        before, asked = shop.workers(), crowd.asked
        shops.until(lambda asked=asked: crowd.asked > asked + 20 or crowd.errors)
        shop.roll()
        shops.until(lambda before=before: not before & shop.workers())
        assert len(shop.workers()) == 2
        assert not seen & shop.workers()
        seen |= shop.workers()
    told = crowd.end()
    assert shop.stop() == 0
    assert told
    assert [each for each in shop.log() if each.get("status", 200) >= 400] == []
    assert [each for each in shop.log() if each["event"] not in EXPECTED] == []
    boards = shop.open()
    board = boards.open("first")
    asked, fresh = shops.siege.verify(board, told)
    assert len(told) == len(asked) == len(fresh)  # each one recorded, and once
    assert shops.siege.orphans(board) == 0
    boards.close()


def test_workers_are_replaced_and_nobody_notices(shops, shop):
    press(shops, shop, rolls=2)


@pytest.mark.slow
def test_workers_are_replaced_many_times_under_larger_files(shops, shop):
    press(shops, shop, rolls=10, larger=3_000_000)


@pytest.mark.slow
def test_a_new_version_is_loaded_and_a_broken_one_is_not(shops, address, tmp_path):
    code = tmp_path / "code"
    shutil.copytree(shops.SOURCE, code, ignore=shutil.ignore_patterns("__pycache__"))
    with (
        shops.Shop(address, tmp_path, "--workers", "2", code=code) as shop,
        contextlib.ExitStack() as ends,
    ):
        shop.start()
        shop.ready()
        line = ends.enter_context(contextlib.closing(shops.line_to(shop)))
        before = version_of(line)
        init = code / "ladderboard" / "_version.py"
        init.write_text('__version__ = "77.0"\n')
        shop.roll()
        assert version_of(line) == before  # the old one has its last word on a connection it kept
        shops.until(lambda: version_of(line) == "77.0")
        # One that does not start changes nothing.
        app = code / "ladderboard" / "server" / "_app.py"
        app.write_text("raise SystemExit(3)\n")
        shops.until(lambda: len(shop.workers()) == 2)
        there = shop.workers()
        shop.signal(signal.SIGHUP)
        shops.until(lambda: shop.events("restart")[-1]["state"] == "given up")
        assert shop.workers() == there
        assert version_of(line) == "77.0"
        assert shop.stop() == 0


def version_of(line):
    line.request("GET", "/openapi.json")
    return json.loads(line.getresponse().read())["info"]["version"]


def test_a_worker_that_is_killed_is_replaced(shops, shop):
    shop.start()
    shop.ready()
    first = shop.full()
    os.kill(min(first), signal.SIGKILL)
    shops.until(lambda: len(shop.workers()) == 2 and shop.workers() != first)
    (said,) = shop.events("worker")
    assert (said["state"], said["pid"], said["code"]) == ("ended", min(first), -signal.SIGKILL)
    assert shop.stop() == 0


@pytest.mark.slow
def test_a_parent_that_is_killed_leaves_nobody(shops, shop):
    shop.start()
    shop.ready()
    left = shop.full()
    shop.signal(signal.SIGKILL)
    shop.wait()
    shops.until(lambda: not any(Path(f"/proc/{each}").exists() for each in left))


@pytest.mark.slow
def test_workers_that_do_not_start_are_tried_more_and_more_rarely(shops, shop, postgres):
    shop.start()
    shop.ready()
    first = shop.full()
    name = shop.database.rpartition("/")[2]
    postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    os.kill(min(first), signal.SIGKILL)
    shops.until(lambda: len(shop.events("worker")) >= 4)
    first, *waits = [each["wait"] for each in shop.events("worker") if each["state"] == "failed"]
    assert waits[:2] == [2 * first, 4 * first]
    postgres.run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
    line = shops.line_to(shop)
    with contextlib.closing(line):
        line.request("GET", "/healthz")
        assert line.getresponse().status == 200  # the other one was there all the time
    there = shops.until(lambda: len(shop.workers()) == 2 and shop.workers())
    shop.roll()  # which begins when both answer
    shops.until(lambda: not there & shop.workers())
    assert shop.stop() == 0


def test_a_server_whose_workers_do_not_start_ends(shops, address, tmp_path):
    code = tmp_path / "code"
    shutil.copytree(shops.SOURCE, code, ignore=shutil.ignore_patterns("__pycache__"))
    app = code / "ladderboard" / "server" / "_app.py"
    broken = "import os\nassert '_LADDERBOARD_WORKER' not in os.environ\n"
    app.write_text(app.read_text() + broken)
    with shops.Shop(address, tmp_path, "--workers", "2", code=code) as shop:
        shop.start()
        shop.hear()
        assert shop.wait() == 2
