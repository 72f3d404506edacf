"""A lively world to look at: boards in every state, with teams that have been at it for days.

The same every time: labels, skills, times and noise come from fixed seeds and a clock that is moved
by hand. Tests and ``script/screenshots`` look at the same one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ladderboard.board import Rules, Sent, read_folder, read_rules
from ladderboard.files import HoldoutTable, read_holdout, read_predictions
from ladderboard.holdout import Submission

__all__ = ["Member", "Scene", "make_world"]

ROOT = Path(__file__).parents[2]
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


class Member(NamedTuple):
    """A team, with its token."""

    id: str
    name: str
    token: str


@dataclass
class Folder:
    """A board's folder, in memory but for the files of baselines."""

    rules: Rules
    table: HoldoutTable
    baselines: dict[str, Path] = field(default_factory=dict)


class Scene:
    """One board, how its labels are, and who is on it."""

    def __init__(self, live_server, folder, seed: int) -> None:
        self.live_server, self.board = live_server, live_server.boards.create(folder)
        self.slug, self.ids = self.board.slug, folder.table.ids
        self.labels = np.asarray(folder.table.labels)
        self.classes = np.unique(self.labels)
        self.rng = np.random.default_rng(seed)
        self.teams: list[Member] = []
        self.caller = live_server.boards.by_token(live_server.organiser, self.slug)

    def add(self, *names: str) -> list[Member]:
        """Make teams."""
        made = [Member(*self.board.seats.add(self.caller, name)) for name in names]
        self.teams += made
        return made

    def predict(self, error: float) -> bytes:
        """Return predictions as a file, wrong on about so many."""
        wrong = self.rng.random(len(self.labels)) < error
        other = self.rng.choice(self.classes, size=len(self.labels))
        return file_of(self.ids, np.where(wrong, other, self.labels))

    def submit(self, team: Member, body: bytes, message: str = ""):
        """Send predictions right to the board, at the time that the clock shows."""
        scorer, rules = self.board.scorer_of(self.board.lately()), self.board.rules
        read = read_predictions(body, scorer.roster, scorer.loss, limits=rules.files.limits)
        sent = Sent(Submission.of(read), self.live_server.clock.now, message=message)
        return self.board.submit(self.live_server.boards.by_token(team.token, self.slug), sent)

    def play(self, rounds: int, days: float, best: float = 0.12) -> None:
        """Let all teams get better for some days, each at its own pace and up to its own skill."""
        clock, end = self.live_server.clock, self.live_server.clock.now
        skills = best + np.abs(self.rng.normal(0, 0.09, size=len(self.teams)))
        # A few share a model that everybody knows.
        known = self.predict(0.31)
        when = np.sort(self.rng.random(rounds * len(self.teams)) ** 0.8)
        order = np.concatenate([self.rng.permutation(len(self.teams)) for _ in range(rounds)])
        for at, who in zip(when, order, strict=True):
            clock.now = int(end - days * DAY * (1 - at))
            error = skills[who] + 0.3 * np.exp(-4 * at) + abs(self.rng.normal(0, 0.01))
            body = known if at < 0.3 and who % 4 == 0 else self.predict(min(error * 1.2, 0.95))
            words = ("", "", "more trees", "cropped to the leaf", "two models, averaged", "seed 7")
            self.submit(self.teams[who], body, words[int(self.rng.integers(len(words)))])
        clock.now = end


@dataclass
class World:
    """All scenes, by slug."""

    live_server: object
    scenes: dict[str, Scene] = field(default_factory=dict)

    def __getitem__(self, slug: str) -> Scene:
        return self.scenes[slug]


def file_of(ids, predictions) -> bytes:
    """Return a file of predictions."""
    rows = (f"{name},{value}" for name, value in zip(ids, predictions, strict=True))
    return ("id,prediction\n" + "\n".join(rows) + "\n").encode()


def _folder(slug: str, seed: int, rows: int = ROWS, **more) -> Folder:
    lines = {
        "slug": slug,
        "loss": f"{{name: accuracy, classes: [{', '.join(CLASSES)}]}}",
        "display": "{name: accuracy, digits: 3}",
        "questions": 1_500,
        "teams": 40,
        "registration": "organiser",
        "ladder": "team",
        **more,
    }
    text = "\n".join(f"{key}: {value}" for key, value in lines.items() if value is not None)
    labels = np.random.default_rng(seed).choice(CLASSES, size=rows)
    split = np.where(np.arange(rows) % 7 < 5, "public", "private")
    listed = [f"leaf-{at:04d},{labels[at]},{split[at]}" for at in range(rows)]
    table = read_holdout("\n".join(["id,label,split", *listed, ""]).encode())
    return Folder(read_rules(text), table)


def _lively(live_server, place: Path, rounds: int) -> Scene:
    """Return the board that most is shown of: thirty teams, ten days, baselines, ties."""
    live_server.clock.now = NOW - 10 * DAY
    folder = _folder(
        "leaves", 1, MANY_ROWS,
        title="Leaves of six trees", description=DESCRIPTION, registration="open",
        window="{questions: 5, hours: 24}", end="2027-01-31 AoE", finals="{selections: 2}",
        baselines="[{name: Always oak, file: oak.csv}, "
        "{name: A botanist, value: 0.04, source: measured on other leaves}]",
    )  # fmt: skip
    folder.baselines["Always oak"] = oak = place / "oak.csv"
    oak.write_bytes(file_of(folder.table.ids, ["oak"] * MANY_ROWS))
    made = Scene(live_server, folder, 1)
    made.add(*NAMES)
    live_server.clock.now = NOW
    made.play(rounds, days=9.5)
    made.add("Latecomers")  # who have asked nothing yet
    return made


def _example(live_server) -> Scene:
    """Return the example board, with all its five teams at it."""
    live_server.clock.now = NOW - 6 * DAY
    made = Scene(live_server, read_folder(ROOT / "examples/digits"), 6)
    made.add("Nearest neighbours", "Eight by eight", "Grey area", "Ink & Co", "Curious")
    live_server.clock.now = NOW
    made.play(9, days=5.5, best=0.02)
    return made


def _small(live_server, slug: str, seed: int, teams: int, **more) -> Scene:
    live_server.clock.now = NOW - 20 * DAY
    made = Scene(live_server, _folder(slug, seed, questions=200, teams=8, **more), seed)
    made.add(*NAMES[:teams])
    live_server.clock.now = NOW - 10 * DAY
    made.play(3, days=8, best=0.2)
    return made


def make_world(live_server, folder: Path, *, rounds: int = 4) -> World:
    """Make boards in every state on a server; its clock stands at the end of it all."""
    world = World(live_server)

    def add(scene: Scene) -> Scene:
        world.scenes[scene.slug] = scene
        return scene

    add(_lively(live_server, folder, rounds))
    hidden = add(_small(live_server, "mushrooms", 2, 4, title="Edible or not", visibility="hidden"))
    frozen = add(_small(live_server, "birdsong", 3, 5, title="Birds by their song"))
    frozen.board.amending.amend(frozen.caller, {"visibility": "frozen"})
    live_server.clock.now += DAY
    for team in frozen.teams[:3]:
        frozen.submit(team, frozen.predict(0.1), "after the freeze")
    closed = add(_small(live_server, "beetles-2026", 4, 6, title="Beetles, 2026"))
    closed.board.finishing.close(closed.caller)
    live_server.clock.now = NOW
    spring = {"start": "2027-03-01T08:00:00Z", "end": "2027-04-01 AoE", "registration": "invited"}
    spring |= {"title": "Seedlings in spring", "questions": 400, "teams": 20}
    add(Scene(live_server, _folder("seedlings", 5, **spring), 5))
    add(_example(live_server))
    assert hidden.board.lately().visibility == "hidden"
    return world
