"""The majority and the sybil attack on live boards, through their HTTP API and nothing else.

    python examples/attack_over_http.py OUT [GAMES]

Each game makes a board of coin flips, serves it, registers teams, and submits. The labels are known
here, and so is how good the last model looks. Writes OUT/over-http.csv, .png and .svg; the same
seeds give the same bytes. It needs the extras server and arena.
"""

from __future__ import annotations

import csv
import http.client
import itertools
import json
import sys
import tempfile
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ladderboard.analysts import MajorityAttack, SybilAttack
from ladderboard.board import open_boards, read_folder
from ladderboard.errors import BudgetSpent
from ladderboard.ledger import LedgerEnvironment
from ladderboard.mechanisms import Release, mechanism
from ladderboard.server import Rate, Settings, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

N, PRIVATE, QUESTIONS, ACCOUNTS = 400, 100, 200, 20
START = 1_800_000_000
BOARDS = {
    "exact scores": "mechanism: exact\nladder: team",
    "Ladder": f"mechanism: {{name: ladder, step: {N**-0.5}}}\nladder: team",
    "default, a ladder for each team": "ladder: team",
    "default, one ladder for all": "ladder: board",
}
ATTACKS = {"majority": MajorityAttack(), "sybil": SybilAttack(accounts=ACCOUNTS)}


class Outcome(NamedTuple):
    """How a game ended.

    ``bias`` is how much more accurate the last model looks on the holdout than it is; ``shown`` how
    much more accurate the board says that its leader is than the last model is.
    """

    bias: float
    shown: float
    asked: int


class BoardConnection:
    """A connection to a server."""

    def __init__(self, url: str) -> None:
        self._http = http.client.HTTPConnection(url.removeprefix("http://"))

    def call(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> dict[str, Any]:
        """Return the answer; raise ``BudgetSpent`` if the board takes no more submissions."""
        header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
        self._http.request(method, f"/api/v1/boards/coins{path}", body, header_fields)
        reply = self._http.getresponse()
        document: dict[str, Any] = json.loads(reply.read())
        if reply.status == 409 and document["code"] == "budget_spent":
            raise BudgetSpent(document["detail"])
        if reply.status not in {200, 201}:
            raise SystemExit(f"{reply.status}: {document}")
        return document

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


class RemoteGame:
    """A game for attacks; questions go over HTTP, and accounts are registered teams."""

    def __init__(
        self, connection: BoardConnection, world: Any, questions: int, rng: np.random.Generator
    ) -> None:
        self._connection, self._world = connection, world
        about = connection.call("GET", "")
        self.n, self.mechanism = about["n"], mechanism(about["mechanism"])
        self._shared = about["ladder"] == "board"
        self._per_team, self._teams = about["per_team"], about["teams"]
        self._used: Counter[int] = Counter()
        self.known, self.rng, self.questions, self.asked = world.known, rng, questions, 0
        self._tokens: dict[int, str] = {}
        self._values: dict[int, float] = {}
        self._changes: Counter[int] = Counter()
        self.last: Any = None

    def register_final_model(self, model: Any) -> None:
        """Ignored: this game is not recorded frame by frame."""

    @property
    def remaining(self) -> int:
        """How many questions are left."""
        return self.questions - self.asked

    def ask(self, model: Any, *, account: int = 0) -> Release:
        """Submit a model in the name of an account."""
        if not self.remaining:
            raise BudgetSpent("All questions have been asked.")
        self.last = self._world.read(model)
        octets = self.last.astype("<u8").view(np.uint8)
        bits = np.zeros(self.n + PRIVATE, dtype=np.uint8)
        bits[: self.n] = np.unpackbits(octets, count=self.n, bitorder="little")
        # Equal predictions would get the earlier answer; the private rows make each one different.
        bits[self.n : self.n + 16] = [self.asked >> bit & 1 for bit in range(16)]
        account = self._account(account)
        body = b"prediction\n" + np.where(bits != 0, b"1\n", b"0\n").tobytes()
        reply = self._connection.call(
            "POST",
            "/submissions",
            body,
            Content_Type="text/csv",
            Authorization=f"Bearer {self._token(account)}",
        )
        self.asked += 1
        ladder = self._ladder(account)
        self._values[ladder] = reply["loss"]
        self._changes[ladder] += reply["improved"]
        return Release(reply["loss"], reply["score_loss"], reply["improved"], reply["question"])

    def value_of(self, account: int) -> float | None:
        """Return the released value on an account's ladder; None before its first question."""
        return self._values.get(self._ladder(account))

    def changes_of(self, account: int) -> int:
        """Return how often an account's ladder changed."""
        return self._changes[self._ladder(account)]

    def changes_of_others(self, account: int) -> int:
        """Return how often the other ladders changed that count on this account's."""
        counted = self.mechanism.shared_ladders
        own_ladder = self._ladder(account)
        others = sorted(
            changes for ladder, changes in self._changes.items() if ladder != own_ladder
        )
        return sum(others[-counted:]) if counted else 0

    def _ladder(self, account: int) -> int:
        return 0 if self._shared else account

    def _account(self, account: int) -> int:
        """Return the account that asks: the given one, or the one with the most questions left.

        With one ladder for all, accounts are interchangeable: only their questions count.
        """
        if self._shared or self._used[account] >= self._per_team:
            account = min(range(self._teams), key=self._used.__getitem__)
        self._used[account] += 1
        return account

    def _token(self, account: int) -> str:
        if account not in self._tokens:
            body = json.dumps({"name": f"account {account}"}).encode()
            team = self._connection.call("POST", "/teams", body, Content_Type="application/json")
            self._tokens[account] = team["token"]
        return self._tokens[account]


@contextmanager
def board(rules: str, labels: Any, seed: int) -> Iterator[str]:
    """Serve a board in a thread and yield its address; a fixed clock makes games repeatable."""
    salts = np.random.default_rng([seed, 1])
    environment = LedgerEnvironment(clock=lambda: START, salt=lambda: salts.bytes(32))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "coins"
        folder.mkdir()
        (folder / "board.yaml").write_text(rules)
        rows = [f"{index},{label},public" for index, label in enumerate(labels)]
        rows += [f"{N + index},0,private" for index in range(PRIVATE)]
        (folder / "holdout.csv").write_text("\n".join(["id,label,split", *rows, ""]))
        boards = open_boards(Path(temporary) / "boards.db", create=True, environment=environment)
        boards.create(read_folder(folder))
        urls: list[str] = []
        servers: list[Any] = []
        with (Path(temporary) / "log").open("w") as log:
            settings = Settings(
                database=str(Path(temporary) / "boards.db"),
                port=0,
                parsers=1,
                log=log,
                registrations=Rate(ACCOUNTS, 1.0),
            )
            thread = threading.Thread(
                target=serve,
                args=(settings,),
                kwargs={
                    "boards": boards,
                    "announce": lambda url, _: urls.append(url),
                    "before_run": servers.append,
                },
            )
            thread.start()
            while not servers or not servers[0].started:
                thread.join(0.01)
            try:
                yield urls[0]
            finally:
                servers[0].should_exit = True
                thread.join()


def play(name: str, rules: str, seed: int) -> Outcome:
    """Attack a new board, and return the outcome."""
    attack = ATTACKS[name]
    if name == "sybil" and "ladder: board" in rules:
        attack = SybilAttack(accounts=1)  # there is only one ladder
    # One team may ask everything, or each of many a part and a few more.
    teams, per_team = (
        (1, QUESTIONS) if name == "majority" else (ACCOUNTS, QUESTIONS // ACCOUNTS + 3)
    )
    head = f"loss: zero_one\nregistration: open\nteams: {teams}\nper_team: {per_team}\n"
    world_seed, attack_seed = np.random.SeedSequence(seed).spawn(2)
    world = attack.world(N, np.random.default_rng(world_seed))
    labels = world.losses(np.zeros(N, dtype=np.uint8)).astype(int)
    with board(f"{head}questions: {teams * per_team}\n{rules}\n", labels, seed) as url:
        connection = BoardConnection(url)
        game = RemoteGame(connection, world, QUESTIONS, np.random.default_rng(attack_seed))
        with suppress(BudgetSpent):
            attack.play(game)  # type: ignore[arg-type]  # has all that an attack uses of a game
        leader = connection.call("GET", "/leaderboard?limit=1")["rows"][0]["loss"]
        connection.close()
    true_risk = world.true_risk(game.last)
    return Outcome(true_risk - world.risk(game.last), true_risk - leader, game.asked)


def main(out: Path, games: int) -> None:
    """Play all games, and write and draw the outcomes."""
    outcomes_by_game = {
        (attack, name): [play(attack, BOARDS[name], seed) for seed in range(games)]
        for attack, name in itertools.product(ATTACKS, BOARDS)
    }
    out.mkdir(parents=True, exist_ok=True)
    with (out / "over-http.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["attack", "board", "seed", "bias", "shown", "asked"])
        for (attack, name), outcomes in outcomes_by_game.items():
            for seed, (bias, shown, asked) in enumerate(outcomes):
                table.writerow([attack, name, seed, f"{bias:.4f}", f"{shown:.4f}", asked])
    draw(outcomes_by_game, out)


def draw(outcomes_by_game: dict[tuple[str, str], list[Outcome]], out: Path) -> None:
    """Draw bars of the bias, with a dot for each game, and a line for what the board shows."""
    import matplotlib as mpl  # noqa: PLC0415 - to play needs none
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "ladderboard", "font.size": 9}):
        figure = Figure(figsize=(7, 3.2), layout="constrained")
        axes = figure.subplots()
        colours = ("#b2182b", "#ef8a62", "#67a9cf", "#2166ac")
        for index, (name, colour) in enumerate(zip(BOARDS, colours, strict=True)):
            for group, attack in enumerate(ATTACKS):
                outcomes = outcomes_by_game[attack, name]
                x = group + (index - 1.5) * 0.2
                label = name if group == 0 else None
                axes.bar(x, np.mean([e.bias for e in outcomes]), 0.18, color=colour, label=label)
                dots = [outcome.bias for outcome in outcomes]
                axes.plot([x] * len(dots), dots, ".", color="black", markersize=3)
                shown = float(np.mean([outcome.shown for outcome in outcomes]))
                axes.hlines(shown, x - 0.09, x + 0.09, color="black", linewidth=1)
        axes.axhline(0, color="black", linewidth=0.5)
        axes.set_xticks(range(len(ATTACKS)), [f"{attack} attack" for attack in ATTACKS])
        axes.set_ylabel("accuracy that is not there")
        axes.set_title(f"n = {N}, {QUESTIONS} questions over HTTP, {ACCOUNTS} accounts", fontsize=9)
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.16, 1))
        for kind in ("png", "svg"):
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(out / f"over-http.{kind}", dpi=150, metadata=metadata)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
