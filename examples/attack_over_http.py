"""The majority and the sybil attack on live boards, through their HTTP API and nothing else.

    python examples/attack_over_http.py OUT [GAMES]

Each game makes a board of coin flips, serves it, registers teams, and submits. How good the last
model looks is known here because the labels are. Writes OUT/over-http.csv, .png and .svg; the same
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
from ladderboard.server import Rate, ServerConfig, Settings, serve

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


class Line:
    """A connection to a server."""

    def __init__(self, url: str) -> None:
        self._line = http.client.HTTPConnection(url.removeprefix("http://"))

    def call(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> dict[str, Any]:
        """Return what was said; a board that takes no more raises ``BudgetSpent``."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._line.request(method, f"/api/v1/boards/coins{path}", body, named)
        reply = self._line.getresponse()
        said: dict[str, Any] = json.loads(reply.read())
        if reply.status == 409 and said["code"] == "budget_spent":
            raise BudgetSpent(said["detail"])
        if reply.status not in {200, 201}:
            raise SystemExit(f"{reply.status}: {said}")
        return said

    def close(self) -> None:
        """Hang up."""
        self._line.close()


class Remote:
    """A game as attacks know it; questions go over HTTP, accounts are teams that register."""

    def __init__(self, line: Line, world: Any, questions: int, rng: np.random.Generator) -> None:
        self._line, self._world = line, world
        about = line.call("GET", "")
        self.n, self.mechanism = about["n"], mechanism(about["mechanism"])
        self._shared = about["ladder"] == "board"
        self._each, self._teams = about["per_team"], about["teams"]
        self._used: Counter[int] = Counter()
        self.known, self.rng, self.questions, self.asked = world.known, rng, questions, 0
        self._tokens: dict[int, str] = {}
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
        # The same predictions again are answered as before: other rows make every one a new one.
        bits[self.n : self.n + 16] = [self.asked >> at & 1 for at in range(16)]
        account = self._account(account)
        body = b"prediction\n" + np.where(bits != 0, b"1\n", b"0\n").tobytes()
        said = self._line.call(
            "POST",
            "/submissions",
            body,
            Content_Type="text/csv",
            Authorization=f"Bearer {self._token(account)}",
        )
        self.asked += 1
        return Release(said["loss"], said["score_loss"], said["improved"], said["question"])

    def _account(self, account: int) -> int:
        """Return who asks: whoever was asked for, or has most questions left where that is equal.

        Where one ladder is everybody's accounts are worth nothing but their questions.
        """
        if self._shared or self._used[account] >= self._each:
            account = min(range(self._teams), key=self._used.__getitem__)
        self._used[account] += 1
        return account

    def _token(self, account: int) -> str:
        if account not in self._tokens:
            body = json.dumps({"name": f"account {account}"}).encode()
            said = self._line.call("POST", "/teams", body, Content_Type="application/json")
            self._tokens[account] = said["token"]
        return self._tokens[account]


@contextmanager
def board(rules: str, labels: Any, seed: int) -> Iterator[str]:
    """Serve a board in a thread, and return where; time stands still, so that games repeat."""
    salts = np.random.default_rng([seed, 1])
    world = LedgerEnvironment(clock=lambda: START, salt=lambda: salts.bytes(32))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "coins"
        folder.mkdir()
        (folder / "board.yaml").write_text(rules)
        rows = [f"{at},{label},public" for at, label in enumerate(labels)]
        rows += [f"{N + at},0,private" for at in range(PRIVATE)]
        (folder / "holdout.csv").write_text("\n".join(["id,label,split", *rows, ""]))
        boards = open_boards(Path(place) / "boards.db", create=True, world=world)
        boards.create(read_folder(folder))
        urls: list[str] = []
        servers: list[Any] = []
        with (Path(place) / "log").open("w") as log:
            config = ServerConfig(
                database=str(Path(place) / "boards.db"),
                port=0,
                parsers=1,
                settings=Settings(log=log, registrations=Rate(ACCOUNTS, 1.0)),
            )
            thread = threading.Thread(
                target=serve,
                args=(config,),
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
    """Attack a board of its own, and return how it went."""
    attack = ATTACKS[name]
    if name == "sybil" and "ladder: board" in rules:
        attack = SybilAttack(accounts=1)  # one ladder is all that there is to climb
    # One team may ask everything, or each of many its part, and a little more than it needs.
    teams, each = (1, QUESTIONS) if name == "majority" else (ACCOUNTS, QUESTIONS // ACCOUNTS + 3)
    head = f"loss: zero_one\nregistration: open\nteams: {teams}\nper_team: {each}\n"
    hidden, own = np.random.SeedSequence(seed).spawn(2)
    world = attack.world(N, np.random.default_rng(hidden))
    labels = world.losses(np.zeros(N, dtype=np.uint8)).astype(int)
    with board(f"{head}questions: {teams * each}\n{rules}\n", labels, seed) as url:
        line = Line(url)
        game = Remote(line, world, QUESTIONS, np.random.default_rng(own))
        with suppress(BudgetSpent):
            attack.play(game)  # type: ignore[arg-type]  # it is all that an attack sees of a game
        leader = line.call("GET", "/leaderboard?limit=1")["rows"][0]["loss"]
        line.close()
    true = world.true_risk(game.last)
    return Outcome(true - world.risk(game.last), true - leader, game.asked)


def main(out: Path, games: int) -> None:
    """Play all games, and write down and draw how they went."""
    found = {
        (attack, name): [play(attack, BOARDS[name], seed) for seed in range(games)]
        for attack, name in itertools.product(ATTACKS, BOARDS)
    }
    out.mkdir(parents=True, exist_ok=True)
    with (out / "over-http.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["attack", "board", "seed", "bias", "shown", "asked"])
        for (attack, name), outcomes in found.items():
            for seed, (bias, shown, asked) in enumerate(outcomes):
                table.writerow([attack, name, seed, f"{bias:.4f}", f"{shown:.4f}", asked])
    draw(found, out)


def draw(found: dict[tuple[str, str], list[Outcome]], out: Path) -> None:
    """Draw bars of the bias, with a dot for each game, and a line for what the board shows."""
    import matplotlib as mpl  # noqa: PLC0415 - to play needs none
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "ladderboard", "font.size": 9}):
        figure = Figure(figsize=(7, 3.2), layout="constrained")
        axes = figure.subplots()
        colours = ("#b2182b", "#ef8a62", "#67a9cf", "#2166ac")
        for at, (name, colour) in enumerate(zip(BOARDS, colours, strict=True)):
            for group, attack in enumerate(ATTACKS):
                outcomes = found[attack, name]
                place = group + (at - 1.5) * 0.2
                label = name if group == 0 else None
                axes.bar(
                    place, np.mean([e.bias for e in outcomes]), 0.18, color=colour, label=label
                )
                dots = [each.bias for each in outcomes]
                axes.plot([place] * len(dots), dots, ".", color="black", markersize=3)
                shown = float(np.mean([each.shown for each in outcomes]))
                axes.hlines(shown, place - 0.09, place + 0.09, color="black", linewidth=1)
        axes.axhline(0, color="black", linewidth=0.5)
        axes.set_xticks(range(len(ATTACKS)), [f"{each} attack" for each in ATTACKS])
        axes.set_ylabel("accuracy that is not there")
        axes.set_title(f"n = {N}, {QUESTIONS} questions over HTTP, {ACCOUNTS} accounts", fontsize=9)
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(0.16, 1))
        for kind in ("png", "svg"):
            about = {"Date": None} if kind == "svg" else {"Software": None}
            figure.savefig(out / f"over-http.{kind}", dpi=150, metadata=about)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5)
