"""What one SQLite process holds, and what two workers on one PostgreSQL do.

The yardstick is one SQLite process with one board that nobody has asked. Beside it, in the same
run: the same with a thousand boards in the database, asked on one of them or on all in turn; with a
long history; and two workers on a PostgreSQL of their own, on the same machine. Then what a
submission weighs on the disk and a board in memory. docs/explanation/scale.md works with these.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from _calls import Callers, Running, running
from _yardstick import say
from ladderboard.board import Caller, Role, open_boards, read_folder

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
from support.postgres import PostgresServer  # noqa: E402 - after its folder is added

if TYPE_CHECKING:
    from _calls import Target

N, TEAMS, BOARDS, HISTORY = 10_000, 16, 1_000, 20_000
COUNT, ROUNDS = 400, 7
RULES = "title: Board\nslug: {}\nloss: zero_one\nquestions: 1000000\nteams: 16\nladder: team\n"
SERVE = ("-m", "ladderboard", "serve", "--port", "0", "--database")


class Side(NamedTuple):
    """A server, and whom to ask there."""

    server: Running
    targets: list[Target]


def make_boards(folder: Path, database: str, boards: int, teams: int) -> list[Target]:
    """Make so many boards with so many teams each; return where each team submits."""
    labels = np.random.default_rng(1).integers(2, size=N)
    rows = "\n".join(f"{at},{label}" for at, label in enumerate(labels))
    folder.mkdir()
    (folder / "holdout.csv").write_text(f"id,label\n{rows}\n")
    made = open_boards(database, create=True)
    organiser = Caller(Role.ORGANISER)
    targets: list[Target] = []
    for at in range(boards):
        (folder / "board.yaml").write_text(RULES.format(f"board-{at}"))
        board = made.create(read_folder(folder))
        path = f"/api/v1/boards/board-{at}/submissions"
        seats = [
            board.teams.register_or_create(organiser, f"team {index}") for index in range(teams)
        ]
        targets += [(path, seat.token) for seat in seats]
    made.close()
    return targets


def press(callers: Callers, sides: dict[str, Side], rounds: int) -> dict[str, float]:
    """Ask all sides in turn; return requests a second."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for at in range(rounds + 1):
        for name, side in sides.items():
            said = callers.press(side.server.port, side.targets, COUNT)
            if at:  # the first ones are slower
                taken[name].append(said["seconds"])
    return {name: COUNT / median(each) for name, each in taken.items()}


def compare(what: str, found: dict[str, float]) -> None:
    """Print every side's rate against the first one's."""
    (name, first), *others = found.items()
    for other, rate in others:
        say(
            f"{what}: {other} / {name}",
            rate / first,
            "(a reading)",
            detail=f"{rate:,.0f} a second / {first:,.0f}",
        )


def memory(process: int) -> int:
    """Return the megabytes of a process and all that it started, shared pages counted once."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    own = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return own // 1024 + sum(memory(int(child)) for child in children)


def reads(side: Side) -> Side:
    """Return the same boards' standings, to be read."""
    boards = list(dict.fromkeys(path.split("/")[4] for path, _ in side.targets))
    paths = [f"/api/v1/boards/{board}/leaderboard" for board in boards]
    return Side(side.server, [(each, None) for each in paths])


def weigh_boards(side: Side, callers: Callers, readers: Callers) -> None:
    """Weigh a server before and after its boards are all asked, and time the list of them."""
    count = len(side.targets)
    before = memory(side.server.process)
    callers.press(side.server.port, side.targets, count)
    after = memory(side.server.process)
    say(
        f"memory with {count} boards asked / at the start",
        after / before,
        "(a reading)",
        detail=f"{after} MB / {before} MB: {1000 * (after - before) / count:.0f} KB a board",
    )
    paths = ("/api/v1/boards/board-0", "/api/v1/boards", "/")
    one, *lists = (
        median(readers.press(side.server.port, [(path, None)], 64)["times"]) for path in paths
    )
    for name, taken in zip(("100 boards as JSON", "the first page"), lists, strict=True):
        detail = f"{taken:.0f} ms / {one:.1f} ms, 16 at once"
        say(f"list: {name} / one board", taken / one, "(a reading)", detail=detail)


def long_history(
    side: Side, twin: Side, folder: Path, callers: Callers, *, history: int, rounds: int
) -> None:
    """Ask one board for long; print whether it is slower than its twin then, and what it weighs."""

    def size() -> int:
        return sum(path.stat().st_size for path in folder.glob("one.db*") if path.is_file())

    before, begun = size(), perf_counter()
    for _ in range(history // 1000):
        callers.press(side.server.port, side.targets, 1000)
    held, weight = history / (perf_counter() - begun), (size() - before) / history
    found = press(callers, {"a new one": twin, f"after {history:,} submissions": side}, rounds)
    compare("submissions", found)
    print(f"{'':<52} {held:,.0f} a second all the while")
    body = len("prediction\n") + 2 * N
    detail = f"{weight / 1000:.1f} KB / {body / 1000:.1f} KB"
    say("disk: a submission / its file", weight / body, "(a reading)", detail=detail)


def main(boards: int, history: int, rounds: int) -> None:
    """Measure everything."""
    callers, readers = Callers(N), Callers(0)
    postgres = PostgresServer(max_connections="200")
    with ExitStack() as stack:
        # In the clone, which is on a disk where a temporary directory may be in memory.
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT)))
        stack.callback(postgres.stop)

        def side(name: str, database: str, boards: int, teams: int, *more: str) -> Side:
            targets = make_boards(place / name, database, boards, teams)
            begun = perf_counter()
            server = stack.enter_context(running(*SERVE, database, *more))
            print(f"{name}: {boards} boards, up after {perf_counter() - begun:.1f} s")
            return Side(server, targets)

        sqlite = side("one", str(place / "one.db"), 1, TEAMS)
        many = side("many", str(place / "many.db"), boards, 1)
        shared = side("shared", postgres.socket_url(), 16, TEAMS, "--workers", "2")
        weigh_boards(many, callers, readers)
        sides = {
            "SQLite": sqlite,
            f"SQLite, {boards} boards": many,
            "PostgreSQL, one board": Side(shared.server, shared.targets[:TEAMS]),
            "PostgreSQL, 16 boards": shared,
        }
        compare("submissions", press(callers, sides, rounds))
        read = {name: reads(each) for name, each in sides.items()}
        compare("standings", press(readers, read, rounds))
        twin = side("twin", str(place / "twin.db"), 1, TEAMS)
        long_history(sqlite, twin, place, callers, history=history, rounds=rounds)
    callers.close()
    readers.close()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--boards", type=int, default=BOARDS)
    arguments.add_argument("--history", type=int, default=HISTORY)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    given = arguments.parse_args()
    main(given.boards, given.history, given.rounds)
