"""The capacity of one SQLite process, and of two workers on one PostgreSQL.

The reference is one SQLite process with one new board. It is compared, in the same run, with a
thousand boards in the database, a long history, and two workers on a PostgreSQL server on the same
machine. Also measured: the disk space of a submission and the memory of a board.
docs/how-to/run-a-server.md uses these numbers.

What profiles showed (py-spy and cProfile, as processor time):

- SQLite: a third of the writing thread's time was the certificate; what follows from the changes
  alone is computed once. Checks before the body and before scoring are 5 statements without a
  transaction, which were 16. A third of the server's time is its event loop's: HTTP, routing, and
  replies of parsers. What waits goes through all steps together: see bench/server.py.
- PostgreSQL: a submission took 35 messages, then 13, then 7, and takes at most 4: what authorizes
  it, what is read before scoring, the lock with all that is read under it, and what is written
  with the commit. Submissions to one board that wait share them. Plans are made once for each
  connection, and the connection used last is used next: a server process that rests has cold
  caches, and twenty took turns. Processor time of a submission to one board and to 16 boards, on
  a busy machine, without the load generator: 3.4 and 3.5 ms before, 3.0 and 3.1 ms now, of which
  the database's 0.6 (0.8 before). Rows of a transaction are now inserted together, and keys
  looked up together: 2.5 ms to one board (2.9 in the same hour before), 2.9 (3.1) to 16, because
  fewer share a transaction. Chance decides which worker accepts a connection. If one accepts all,
  a submission takes 2.1 ms, since all that wait share a transaction and no other worker's lock. To
  be 1.3 times one SQLite process (1.22, and 0.7 in parsers, which have the other core), two
  workers on two cores would need 1.9 ms with the load generator's 0.3; parsers and database take
  1.2 of them. Several boards in one transaction would come next.
  On SQLite a batch of submissions starts beside one that waits for the disk (bench/server.py).
  With two workers on PostgreSQL that gained nothing to one board, p99 rose by half, and to 16
  boards it took a tenth more processor time, so there the next batch waits.
- Lists: one statement reads the version of every board, and summaries of boards that have not
  changed are reused. Public requests for the same list that wait share one reading, so 16 at once
  cost 0.2 ms of processor time each, as one board does; they cost 0.75 (100 boards as JSON) and
  0.47 (the first page), most of it for the two statements.
- Memory: a board that was asked takes 50 KB, which were 130: ids 0..n-1 are one array for all
  boards, and of 10,000 labels two copies of a byte each are left.
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

from _load import LoadGenerator, RunningServer, start_server
from _timing import report_ratio
from ladderboard.board import Caller, Role, open_boards, read_folder

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
from support.postgres import PostgresServer  # noqa: E402 - after its folder is added

if TYPE_CHECKING:
    from _load import Target

N, TEAMS, BOARDS, HISTORY = 10_000, 16, 1_000, 20_000
COUNT, ROUNDS = 400, 7
RULES = "title: Board\nslug: {}\nloss: zero_one\nquestions: 1000000\nteams: 16\nladder: team\n"
_MEGABYTES = 278  # of a server with a thousand boards, before lists were cached
_LISTS = {"100 boards as JSON": "at most 4", "the first page": "at most 3"}
SERVE = ("-m", "ladderboard", "serve", "--port", "0", "--database")


class ServerUnderTest(NamedTuple):
    """A server, and the paths and tokens to send requests with."""

    server: RunningServer
    targets: list[Target]


def make_boards(folder: Path, database: str, boards: int, teams: int) -> list[Target]:
    """Create boards with teams; return the path and token of each team."""
    labels = np.random.default_rng(1).integers(2, size=N)
    rows = "\n".join(f"{row},{label}" for row, label in enumerate(labels))
    folder.mkdir()
    (folder / "holdout.csv").write_text(f"id,label\n{rows}\n")
    opened = open_boards(database, create=True)
    organiser = Caller(Role.ORGANISER)
    targets: list[Target] = []
    for number in range(boards):
        (folder / "board.yaml").write_text(RULES.format(f"board-{number}"))
        board = opened.create(read_folder(folder))
        path = f"/api/v1/boards/board-{number}/submissions"
        registered = [
            board.teams.register_or_create(organiser, f"team {index}") for index in range(teams)
        ]
        targets += [(path, team_with_token.token) for team_with_token in registered]
    opened.close()
    return targets


def measure_rates(
    load: LoadGenerator, sides: dict[str, ServerUnderTest], rounds: int
) -> dict[str, float]:
    """Send requests to all sides in turn; return requests per second."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for index in range(rounds + 1):
        for name, side in sides.items():
            result = load.send_requests(side.server.port, side.targets, COUNT)
            if index:  # the first round is slower
                seconds[name].append(result["seconds"])
    return {name: COUNT / median(times) for name, times in seconds.items()}


def compare(title: str, rates: dict[str, float], bounds: dict[str, str] | None = None) -> None:
    """Print every side's rate against the first one's."""
    (name, first), *others = rates.items()
    for other, rate in others:
        report_ratio(
            f"{title}: {other} / {name}",
            rate / first,
            (bounds or {}).get(other, "(a reading)"),
            detail=f"{rate:,.0f} a second / {first:,.0f}",
        )


def memory(process: int) -> int:
    """Return the megabytes of a process and its children, shared pages counted once."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
    kilobytes = next(
        int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")
    )
    return kilobytes // 1024 + sum(memory(int(child)) for child in children)


def reading_target(side: ServerUnderTest) -> ServerUnderTest:
    """Return the same server with requests that read the standings."""
    boards = list(dict.fromkeys(path.split("/")[4] for path, _ in side.targets))
    paths = [f"/api/v1/boards/{board}/leaderboard" for board in boards]
    return ServerUnderTest(side.server, [(path, None) for path in paths])


def measure_boards(side: ServerUnderTest, callers: LoadGenerator, readers: LoadGenerator) -> None:
    """Measure a server's memory with all boards in use, and the time of the list of boards."""
    count = len(side.targets)
    before = memory(side.server.process)
    callers.send_requests(side.server.port, side.targets, count)
    after = memory(side.server.process)
    report_ratio(
        f"memory with {count} boards asked / {_MEGABYTES} MB",
        after / _MEGABYTES,
        "at most 1",
        detail=f"{after} MB; {before} MB at the start, {1000 * (after - before) / count:.0f} KB "
        "a board",
    )
    paths = ("/api/v1/boards/board-0", "/api/v1/boards", "/")
    rounds = [
        [
            median(readers.send_requests(side.server.port, [(path, None)], 64)["times"])
            for path in paths
        ]
        for _ in range(6)
    ][1:]  # the first round is slower
    for index, (name, bound) in enumerate(_LISTS.items(), 1):
        one_board, listed = (median(times[place] for times in rounds) for place in (0, index))
        report_ratio(
            f"list: {name} / one board",
            median(times[index] / times[0] for times in rounds),
            bound,
            detail=f"{listed:.1f} ms / {one_board:.1f} ms, 16 at once",
        )


def measure_long_history(
    side: ServerUnderTest,
    control: ServerUnderTest,
    folder: Path,
    callers: LoadGenerator,
    *,
    history: int,
    rounds: int,
) -> None:
    """Compare a board with a long history with a new one, and measure its size on the disk."""

    def size() -> int:
        return sum(path.stat().st_size for path in folder.glob("one.db*") if path.is_file())

    before, begun = size(), perf_counter()
    for _ in range(history // 1000):
        callers.send_requests(side.server.port, side.targets, 1000)
    rate, weight = history / (perf_counter() - begun), (size() - before) / history
    rates = measure_rates(
        callers, {"a new one": control, f"after {history:,} submissions": side}, rounds
    )
    compare("submissions", rates)
    print(f"{'':<52} {rate:,.0f} a second all the while")
    body = len("prediction\n") + 2 * N
    detail = f"{weight / 1000:.1f} KB / {body / 1000:.1f} KB"
    report_ratio("disk: a submission / its file", weight / body, "(a reading)", detail=detail)


def main(boards: int, history: int, rounds: int) -> None:
    """Measure everything."""
    callers, readers = LoadGenerator(N), LoadGenerator(0)
    postgres = PostgresServer(max_connections="200")
    with ExitStack() as stack:
        # In the repository: a temporary directory may be in memory rather than on a disk.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=ROOT)))
        stack.callback(postgres.stop)

        def start(
            name: str, database: str, boards: int, teams: int, *options: str
        ) -> ServerUnderTest:
            targets = make_boards(folder / name, database, boards, teams)
            begun = perf_counter()
            server = stack.enter_context(start_server(*SERVE, database, *options))
            print(f"{name}: {boards} boards, up after {perf_counter() - begun:.1f} s")
            return ServerUnderTest(server, targets)

        sqlite = start("one", str(folder / "one.db"), 1, TEAMS)
        many_boards = start("many", str(folder / "many.db"), boards, 1)
        shared = start("shared", postgres.socket_url(), 16, TEAMS, "--workers", "2")
        measure_boards(many_boards, callers, readers)
        sides = {
            "SQLite": sqlite,
            f"SQLite, {boards} boards": many_boards,
            "PostgreSQL, one board": ServerUnderTest(shared.server, shared.targets[:TEAMS]),
            "PostgreSQL, 16 boards": shared,
        }
        bounds = {"PostgreSQL, one board": "at least 1.0", "PostgreSQL, 16 boards": "at least 1.3"}
        compare("submissions", measure_rates(callers, sides, rounds), bounds)
        page_readers = {name: reading_target(side) for name, side in sides.items()}
        compare("standings", measure_rates(readers, page_readers, rounds))
        control = start("control", str(folder / "control.db"), 1, TEAMS)
        measure_long_history(sqlite, control, folder, callers, history=history, rounds=rounds)
    callers.close()
    readers.close()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--boards", type=int, default=BOARDS)
    arguments.add_argument("--history", type=int, default=HISTORY)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--quick", action="store_true", help="fewer rounds, a short history")
    options = arguments.parse_args()
    if options.quick:
        options.history, options.rounds = min(options.history, 2_000), min(options.rounds, 5)
    main(options.boards, options.history, options.rounds)
