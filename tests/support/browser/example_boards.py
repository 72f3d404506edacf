"""Example boards in every state, with teams that have submitted for days.

Labels, skills, times and noise come from fixed seeds and a manual clock, so they are the same every
time. Tests and ``script/screenshots`` use the same boards.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ladderboard.board import (
    IncomingSubmission,
    Role,
    VerifiedIdentity,
    read_folder,
    read_rules,
)
from ladderboard.files import read_holdout, read_predictions
from ladderboard.holdout import AlignedPredictions
from support.board_stubs import FolderContent

ROOT = Path(__file__).parents[3]
DAY = 86_400
NOW = 1_800_000_000  # 2027-01-15, 08:00 UTC
ROWS = 1_400  # two of seven are private
MANY_ROWS = 3_500
CLASSES = ("ash", "beech", "birch", "elm", "maple", "oak")
NAMES = (
    "Treetop", "Autumn Lab", "Die Blattläuse", "Root & Branch", "sap", "Photosynthesis Anonymous",
    "The Understorey", "Chlorophyll", "Нейролес", "Φύλλα", "Leaf Me Alone", "Bark Twice",
    "Random Forest, Obviously", "Twig", "Mycelium", "O'Hara & Sons <leaves>", "Evergreen", "Moss",
    "A name that is as long as names may be, to see how it is wrapped",
    "Canopy", "Lichen", "Deciduous", "Windfall", "Gall", "Stamen", "Sorrel", "Thicket", "Copse",
    "Fern", "Bracken",
)  # fmt: skip
DESCRIPTION = r"""|
  Which tree did the leaf fall from? Each photograph shows **one leaf** on white paper.

  Learn from `train/`, predict the tree of every photograph in `test/`, and send a table with the
  columns `id` and `prediction`. There are six trees:

  - ash, beech and birch;
  - elm, maple and oak.

  The photographs were taken in [three forests](https://forests.example/leaves) over two autumns."""


class ExampleTeam(NamedTuple):
    """A team, with its token."""

    id: str
    name: str
    token: str


class ExampleBoard:
    """A board, its labels and its teams."""

    def __init__(self, live_server, folder, seed: int) -> None:
        self.live_server, self.board = live_server, live_server.boards.create(folder)
        self.slug, self.ids = self.board.slug, folder.table.ids
        self.labels = np.asarray(folder.table.labels)
        self.classes = np.unique(self.labels)
        self.rng = np.random.default_rng(seed)
        self.teams: list[ExampleTeam] = []
        self.session: bytes | None = None
        self.caller = live_server.boards.caller_by_token(live_server.organiser, self.slug)

    def add_teams(self, *names: str) -> None:
        """Create teams."""
        self.teams += [ExampleTeam(*self.board.teams.create(self.caller, name)) for name in names]

    def make_predictions(self, error: float) -> bytes:
        """Return a file of predictions, about this fraction of them wrong."""
        wrong = self.rng.random(len(self.labels)) < error
        other = self.rng.choice(self.classes, size=len(self.labels))
        return prediction_file(self.ids, np.where(wrong, other, self.labels))

    def submit(self, team: ExampleTeam, body: bytes, message: str = ""):
        """Submit predictions to the board directly, at the clock's time."""
        scorer, rules = self.board.scorer_of(self.board.row()), self.board.rules
        read = read_predictions(body, scorer.roster, scorer.loss, limits=rules.files.limits)
        sent = IncomingSubmission(
            AlignedPredictions.from_values(read), self.live_server.clock.now, message=message
        )
        return self.board.submit(
            self.live_server.boards.caller_by_token(team.token, self.slug), sent
        )

    def play(self, rounds: int, days: float, best: float = 0.12) -> None:
        """Let all teams submit and improve for some days, each at its pace and up to its skill."""
        clock, end = self.live_server.clock, self.live_server.clock.now
        skills = best + np.abs(self.rng.normal(0, 0.09, size=len(self.teams)))
        # A few teams share a public model.
        public_model = self.make_predictions(0.31)
        times = np.sort(self.rng.random(rounds * len(self.teams)) ** 0.8)
        order = np.concatenate([self.rng.permutation(len(self.teams)) for _ in range(rounds)])
        for time, team in zip(times, order, strict=True):
            clock.now = int(end - days * DAY * (1 - time))
            error = skills[team] + 0.3 * np.exp(-4 * time) + abs(self.rng.normal(0, 0.01))
            if time < 0.3 and team % 4 == 0:
                body = public_model
            else:
                body = self.make_predictions(min(error * 1.2, 0.95))
            notes = ("", "", "more trees", "cropped to the leaf", "two models, averaged", "seed 7")
            self.submit(self.teams[team], body, notes[int(self.rng.integers(len(notes)))])
        clock.now = end


@dataclass
class ExampleBoards:
    """All example boards of a server, by slug."""

    live_server: object
    boards: dict[str, ExampleBoard] = field(default_factory=dict)

    def __getitem__(self, slug: str) -> ExampleBoard:
        return self.boards[slug]


def prediction_file(ids, predictions) -> bytes:
    """Return a file of predictions."""
    rows = (f"{name},{value}" for name, value in zip(ids, predictions, strict=True))
    return ("id,prediction\n" + "\n".join(rows) + "\n").encode()


def _make_folder(slug: str, seed: int, rows: int = ROWS, **rules) -> FolderContent:
    settings = {
        "slug": slug,
        "loss": f"{{name: accuracy, classes: [{', '.join(CLASSES)}]}}",
        "display": "{name: accuracy, digits: 3}",
        "questions": 1_500,
        "teams": 40,
        "registration": "organiser",
        "ladder": "team",
        **rules,
    }
    text = "\n".join(f"{key}: {value}" for key, value in settings.items() if value is not None)
    labels = np.random.default_rng(seed).choice(CLASSES, size=rows)
    split = np.where(np.arange(rows) % 7 < 5, "public", "private")
    lines = [f"leaf-{row:04d},{labels[row]},{split[row]}" for row in range(rows)]
    table = read_holdout("\n".join(["id,label,split", *lines, ""]).encode())
    return FolderContent(read_rules(text), table)


def _make_large_board(live_server, path: Path, rounds: int) -> ExampleBoard:
    """Return a board with thirty teams, ten days of history, baselines and ties."""
    live_server.clock.now = NOW - 10 * DAY
    folder = _make_folder(
        "leaves", 1, MANY_ROWS,
        title="Leaves of six trees", description=DESCRIPTION, registration="open",
        window="{questions: 5, hours: 24}", end="2027-01-31 AoE", finals="{selections: 2}",
        baselines="[{name: Always oak, file: oak.csv}, "
        "{name: A botanist, value: 0.04, source: measured on other leaves}]",
    )  # fmt: skip
    folder.baselines["Always oak"] = oak = path / "oak.csv"
    oak.write_bytes(prediction_file(folder.table.ids, ["oak"] * MANY_ROWS))
    board = ExampleBoard(live_server, folder, 1)
    board.add_teams(*NAMES)
    live_server.clock.now = NOW
    board.play(rounds, days=9.5)
    board.add_teams("Latecomers")  # without a submission
    return board


def _make_digits_board(live_server) -> ExampleBoard:
    """Return the board of examples/digits with five teams."""
    live_server.clock.now = NOW - 6 * DAY
    board = ExampleBoard(live_server, read_folder(ROOT / "examples/digits"), 6)
    board.add_teams("Nearest neighbours", "Eight by eight", "Grey area", "Ink & Co", "Curious")
    live_server.clock.now = NOW
    board.play(9, days=5.5, best=0.02)
    return board


def make_small_board(live_server, slug: str, seed: int, teams: int, **rules) -> ExampleBoard:
    """Return a board with some teams and a short history."""
    live_server.clock.now = NOW - 20 * DAY
    board = ExampleBoard(
        live_server, _make_folder(slug, seed, questions=200, teams=8, **rules), seed
    )
    board.add_teams(*NAMES[:teams])
    live_server.clock.now = NOW - 10 * DAY
    board.play(3, days=8, best=0.2)
    return board


def _make_sign_in_board(live_server) -> ExampleBoard:
    """Return a board on which people sign in: twenty teams, requests, webhooks and tokens.

    Most of its budget is used, and its deadline is near.
    """
    live_server.clock.now = NOW - 12 * DAY
    rules = {"registration": "sign_in", "sign_in": "{approval: true}", "end": "2027-01-16 AoE"}
    rules |= {"title": "Clouds from below", "questions": 70, "teams": 21, "per_team": 5}
    board = ExampleBoard(live_server, _make_folder("clouds", 7, **rules), 7)
    board.add_teams(*NAMES[:20])
    live_server.clock.now = NOW - 2 * DAY
    board.play(3, days=9)
    live_server.clock.now = NOW
    people = board.board.identities
    for number, name in enumerate(("Ada", "Grace", "Emmy", "Sofia", "Maryam")):
        mail = f"{name.lower()}@example.edu"
        person = VerifiedIdentity("university", "https://login.example.edu", mail, name, mail)
        session = people.sign_in(person, seconds=DAY)
        if number < 3:
            caller = live_server.boards.caller_by_token_hash(session, board.slug)
            people.register(caller, f"Team of {name}")
    board.board.webhooks.add(
        board.caller, "https://hooks.example.invalid/services/T0/B0/0123456789abcdef", ("closed",)
    )
    board.board.teams.invite_team(board.caller)
    board.board.teams.issue_staff_token(board.caller, Role.EVALUATOR)
    return board


def _make_people_board(live_server) -> ExampleBoard:
    """Return a board with terms, and a team of two people; the session of its owner is kept."""
    terms = '"Use the data **for this board only**.\\n\\nDo not label the test set by hand."'
    rules = {"registration": "sign_in", "terms": terms, "title": "Meadow flowers"}
    board = ExampleBoard(live_server, _make_folder("meadow", 8, **rules), 8)
    people = board.board.identities

    def sign_in(name: str):
        mail = f"{name.lower()}@example.edu"
        person = VerifiedIdentity("university", "https://login.example.edu", mail, name, mail)
        return people.sign_in(person, seconds=DAY)

    def caller(session):
        return live_server.boards.caller_by_token_hash(session, board.slug)

    board.session = sign_in("Lise")
    people.register(caller(board.session), "Petals")
    invitation = board.board.members.invite_member(caller(board.session), uses=2)
    board.board.members.join(caller(sign_in("Otto")), invitation)
    return board


def make_example_boards(live_server, folder: Path, *, rounds: int = 4) -> ExampleBoards:
    """Create boards in every state on a server; its clock is set to their common present."""
    boards = ExampleBoards(live_server)

    def add(board: ExampleBoard) -> ExampleBoard:
        boards.boards[board.slug] = board
        return board

    add(_make_large_board(live_server, folder, rounds))
    hidden = add(
        make_small_board(live_server, "mushrooms", 2, 4, title="Edible or not", visibility="hidden")
    )
    frozen = add(make_small_board(live_server, "birdsong", 3, 5, title="Birds by their song"))
    frozen.board.amendments.amend(frozen.caller, {"visibility": "frozen"})
    live_server.clock.now += DAY
    for team in frozen.teams[:3]:
        frozen.submit(team, frozen.make_predictions(0.1), "after the freeze")
    closed = add(make_small_board(live_server, "beetles-2026", 4, 6, title="Beetles, 2026"))
    closed.board.closer.close(closed.caller)
    live_server.clock.now = NOW
    spring = {"start": "2027-03-01T08:00:00Z", "end": "2027-04-01 AoE", "registration": "invited"}
    spring |= {"title": "Seedlings in spring", "questions": 400, "teams": 20}
    add(ExampleBoard(live_server, _make_folder("seedlings", 5, **spring), 5))
    add(_make_digits_board(live_server))
    add(_make_sign_in_board(live_server))
    add(_make_people_board(live_server))
    assert hidden.board.row().visibility == "hidden"
    return boards
