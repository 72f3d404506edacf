"""The board server: durable submissions per second, large standings, a page.

The reference for submissions is bench/_minimal_server.py: a bare handler under the same uvicorn. It
scores the same body with the same reader and loss, and commits one row by group commit on the same
disk. Both servers run all the time and get requests in turn from a fast client in its own process;
every submission is new. The reference for standings is the same server with a small board, and for
a board's page the same standings as JSON.

What profiles of a submission showed, as milliseconds of processor time on a busy machine (2.0 to
2.5 of the server, 0.8 of its parsers; 0.9 of the bare handler):

- Threads took turns: 23 to 49 switches for a submission, because each SQL statement gives up
  Python's lock. The same steps in one thread, in a loop, took 0.9; with cold caches 2.5. So
  submissions to a board that wait are checked, scored, recorded and answered together: 0.4 less.
- Half of a parser's time was the garbage collector's, which visited every loaded module for the
  lists of a body. Parsers and servers freeze what they have loaded: 0.25 and 0.1 less.
- FastAPI took 0.1 to read three parameters; host names, defaults and the order of routes 0.05.
- Larger thresholds of the collector gained 0.02, fewer threads nothing.
- Batches had 2.3 submissions, because each began as soon as one waited. They wait up to 3 ms for
  those that are being read, but for no more than wait already: 3.9. In a batch of six each takes a
  sixth less than in one of three. Rows of a batch are inserted together, what was authorized
  within a second is not checked again before it is scored, and keys and ladders are not read again
  if nobody wrote in between.
- A certificate took 83 values of kl; 16 with a better start and steps that need not be exact.
- Of the time with Python's lock (py-spy --gil), a sixth was the write that wakes a parser, a tenth
  the one that wakes the client, an eighth the certificate. The first needs no lock now.
- A team that submits one file after another is authorized once a second, and not again after it
  has waited for its own submission before: two thread switches and three statements less, 0.2.
- Parsers that poll for a moment before they sleep need no waking, but take time from the others.
- A batch held back the next one while it waited for the disk. Now the next one starts beside it,
  if as many submissions wait as the first one had. In six interleaved runs on a busy machine that
  gave 17% more a second (median; -8% to 31%) and a p99 a fifth less, at about the same processor
  time. If it starts however few wait, threads change half as often again and take a tenth more.
- A submission was looked up by its key twice, before scoring and in the transaction, which now
  knows what was committed in between: 3 to 4% of the server's time, 1 of 3 reads.
- Not done yet, by what it could gain with Python's lock: header and body of the answer written at
  once (3%), its JSON by pydantic's encoder (2%, other bytes), hashes of mechanisms kept (1%).
- What is left: 0.1 each for the certificate, the commit and the other SQL, 0.05 for the score, and
  the event loop's 0.5. Guessing the kinds of columns from the first thousands of lines takes half
  of reading a body, in the bare handler too.

Of a team's page with 1e4 teams, made anew, two thirds were the team's rank, which was counted twice
and read every better team's row for its kind. An index has all but the kind, so now all better ones
are counted there, and the few baselines among them found by name: 1.4 ms instead of 4.6.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from _busy_board import create_busy_board, page_bytes, time_page
from _large_board import create_large_board, time_pages
from _load import LoadGenerator, start_server
from _timing import report_ratio
from ladderboard.board import Caller, Role, open_boards, read_folder

N, TEAMS = 10_000, 16
COUNT, ROUNDS = 400, 9
ROOT = Path(__file__).parents[1]
RULES = "title: Bench\nloss: zero_one\nquestions: 1000000\nteams: 16\nladder: team\n"


def make_board(folder: Path, labels: np.ndarray, ids: list[str] | None = None) -> list[str]:
    """Create a board in a new database, and return its teams' tokens."""
    board_folder = folder / "bench"
    board_folder.mkdir()
    (board_folder / "board.yaml").write_text(RULES)
    ids = [str(index) for index in range(len(labels))] if ids is None else ids
    rows = "\n".join(f"{id_},{label}" for id_, label in zip(ids, labels, strict=True))
    (board_folder / "holdout.csv").write_text(f"id,label\n{rows}\n")
    boards = open_boards(folder / "boards.db", create=True)
    board = boards.create(read_folder(board_folder))
    organiser = Caller(Role.ORGANISER)
    tokens = [
        board.teams.register_or_create(organiser, f"team {index}").token for index in range(TEAMS)
    ]
    boards.close()
    return tokens


def submissions(folder: Path, rounds: int) -> None:
    """Send submissions to both servers in turn."""
    labels = np.random.default_rng(1).integers(2, size=N)
    tokens = make_board(folder, labels)
    bare = Path(__file__).with_name("_minimal_server.py")
    serve = ("-m", "ladderboard", "serve", "--port", "0", "--database", folder / "boards.db")
    callers = LoadGenerator(N)
    path = "/api/v1/boards/bench/submissions"
    with (
        start_server(*serve) as ours,
        start_server(bare, folder / "bench" / "holdout.csv", folder / "bare.db") as theirs,
    ):
        sides = [(ours.port, [(path, token) for token in tokens])]
        sides += [(theirs.port, [("/submissions", None)])]
        for side in sides:
            callers.send_requests(*side, count=200)  # the first ones are slower
        runs = [
            [callers.send_requests(*side, count=COUNT) for side in sides] for _ in range(rounds)
        ]
    callers.close()
    ratio = median(second["seconds"] / first["seconds"] for first, second in runs)
    rates = [COUNT / median(run[server]["seconds"] for run in runs) for server in (0, 1)]
    late = [
        np.percentile([t for run in runs for t in run[server]["times"]], 99) for server in (0, 1)
    ]
    report_ratio(
        f"durable submissions, n={N:.0e}, 20 KB / bare handler",
        ratio,
        "at least 0.75",
        detail=f"{rates[0]:.0f} a second / {rates[1]:.0f}",
    )
    report_ratio(
        "their 99th percentile / the bare handler's",
        late[0] / late[1],
        "at most 1.2",
        detail=f"{late[0]:.0f} ms / {late[1]:.0f} ms",
    )


def leaderboard(folder: Path) -> None:
    """Time pages of the standings of a large board and of a small one."""
    create_large_board(folder / "few.db", "few", teams=10, submissions=1_000)
    create_large_board(folder / "many.db", "many", teams=10_000, submissions=1_000_000)
    serve = ("-m", "ladderboard", "serve", "--port", "0", "--database")
    with (
        start_server(*serve, folder / "few.db") as few,
        start_server(*serve, folder / "many.db") as large_board,
    ):
        for limit in (10, 100):
            small, *large = time_pages(few.port, large_board.port, limit)
            for name, seconds in zip(("first", "middle"), large, strict=True):
                report_ratio(
                    f"leaderboard, 1e4 teams, {name} {limit} / 10 teams",
                    seconds / small,
                    "at most 2" if limit == 10 else "(10 x rows)",
                    detail=f"{1e3 * seconds:.2f} ms / {1e3 * small:.2f} ms",
                )


def page(folder: Path, teams: int) -> None:
    """Measure the time and the size of the page of a board with many teams."""
    token = create_busy_board(folder / "busy.db", teams=teams, per_team=2)
    serve = ("-m", "ladderboard", "serve", "--port", "0", "--database", folder / "busy.db")
    with start_server(*serve) as server:
        port = server.port
        timings = {"public": time_page(port), "a team's, made anew": time_page(port, token)}
        sent, packed = page_bytes(port)
    for whose, (seconds, standings) in timings.items():
        report_ratio(
            f"board's page, {teams:.0e} teams, {whose} / JSON",
            seconds / standings,
            "at most 2",
            detail=f"{1e3 * seconds:.2f} ms / {1e3 * standings:.2f} ms",
        )
    report_ratio(
        "first page with all it asks for, packed / 60 KB",
        packed / 60_000,
        "below 1",
        detail=f"{packed / 1e3:.1f} KB; as sent {sent / 1e3:.1f} KB",
    )


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--only", choices=("submissions", "leaderboard", "page"))
    arguments.add_argument("--quick", action="store_true", help="fewer rounds and teams")
    options = arguments.parse_args()
    # In the repository: a temporary directory may be in memory rather than on a disk.
    with tempfile.TemporaryDirectory(dir=ROOT) as temporary:
        if options.only in {None, "submissions"}:
            submissions(
                Path(temporary), min(options.rounds, 5) if options.quick else options.rounds
            )
        if options.only == "leaderboard" or (options.only is None and not options.quick):
            leaderboard(Path(temporary))
        if options.only in {None, "page"}:
            page(Path(temporary), 1_000 if options.quick else 10_000)
