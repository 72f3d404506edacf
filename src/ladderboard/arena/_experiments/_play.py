"""Two attacks climb three boards, frame by frame; what the page of that name shows."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.analysts import Game, MajorityAttack, ShiftedMajority
from ladderboard.arena._runner import STANDARD_MECHANISMS, ExperimentRun, Match, repetition_seed
from ladderboard.mechanisms import ShakyLadder
from ladderboard.tape import NumpyTape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ladderboard.analysts import Analyst
    from ladderboard.mechanisms import Mechanism, Release

FRAMES = 100
_FRAME_FIELDS = ("shown", "fits", "worth")

_EASY = 0.5
_ATTACKS: dict[str, Analyst] = {
    "majority": MajorityAttack(easy=_EASY),
    "shifted_majority": ShiftedMajority(easy=_EASY),
}
_N, _QUESTIONS = (1_000, 4_000, 10_000), (200, 1_000, 3_000)
_QUICK_N, _QUICK_QUESTIONS = (200,), (50,)
_NOISES = {"none": 0.0, "half": 0.5, "calibrated": 1.0, "double": 2.0}
_GAMES, _QUICK_GAMES = 20, 2
_SCALE = 10**4


def frame_questions(k: int) -> list[int]:
    """Return the questions at which frames are taken, evenly apart; the last is the last.

    >>> frame_questions(200)[:3], frame_questions(200)[-1], frame_questions(3)
    ([2, 4, 6], 200, [1, 2, 3])
    """
    count = min(FRAMES, k)
    return [k * at // count for at in range(1, count + 1)]


class RecordingGame(Game):
    """A game that notes, at some questions, what the board would show if this were the last.

    The question that would be asked then is answered by a copy of the session, with the noise that
    this question has anyway. The game itself goes on as if nobody had looked.
    """

    def __init__(self, *given: Any, stops: list[int], **named: Any) -> None:
        super().__init__(*given, **named)
        self._stops = frozenset(stops)
        self._intended: Callable[[], Any] | None = None
        self._least = math.inf
        self._shown: list[float] = []
        self._fits: list[float] = []
        self._worth: list[float] = []

    def register_final_model(self, model: Callable[[], Any]) -> None:
        """Keep what would be asked."""
        self._intended = model

    def ask(self, model: Any, *, account: int = 0) -> Release:
        """Look first, where a frame is due."""
        if self.asked + 1 in self._stops and self._intended is not None:
            self._look(self._intended())
        return super().ask(model, account=account)

    def _look(self, model: Any) -> None:
        world, session = self._world, self._sessions.get(0)
        if session is None:
            copy = self.mechanism.start(n=self.n, tape=self._tape, ladder=0)
        else:
            copy = self.mechanism.resume(session.state, tape=self._tape)
        model = world.read(model)
        risk, true_risk = world.risk(model), world.true_risk(model)
        shown = copy.ask(risk=risk).value
        if shown is None:
            raise TypeError(f"{self.mechanism.name} shows nothing to watch.")
        self._shown.append(shown)
        self._fits.append(risk)
        self._worth.append(min(true_risk, *self._true_risks, math.inf))

    def frames(self) -> dict[str, Any]:
        """Return the frames: risks as shown, of the vote on the holdout, and in truth.

        What is true is the best true risk of all models asked until then, as in Definition 1.
        """
        return {"shown": self._shown, "fits": self._fits, "worth": self._worth}


@dataclass(frozen=True)
class RecordedMatch(Match):
    """One repetition of an attack against a mechanism, watched."""

    @property
    def weight(self) -> float:
        """As a match's, with what it takes to look."""
        return self.k * (self.n + 10_000)

    def describe(self) -> dict[str, Any]:
        """Who plays, on what, with which seed."""
        return {**super().describe(), "kind": "film"}

    def accepts(self, result: Any) -> bool:
        """Tell whether kept frames are all there."""
        count = len(frame_questions(self.k))
        return isinstance(result, dict) and all(
            isinstance(found := result.get(name), list)
            and len(found) == count
            and all(type(each) is float and math.isfinite(each) for each in found)
            for name in _FRAME_FIELDS
        )

    def run(self, threads: int | None) -> dict[str, Any]:
        """Play as ``Analyst.play_against`` does, with the arena's seed for this repetition."""
        own = repetition_seed(self.seed, self.names[1], self.n, self.k, self.repetition)
        hidden, drawn = np.random.SeedSequence(own).spawn(2)
        game = RecordingGame(
            self.analyst.world(self.n, np.random.default_rng(hidden)),
            self.mechanism,
            questions=self.k,
            tape=NumpyTape(seed=own),
            rng=np.random.default_rng(drawn),
            stops=frame_questions(self.k),
        )
        self.analyst.play(game)
        return game.frames()


def play_experiment(
    out: Path | str,
    *,
    quick: bool = False,
    repetitions: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool = False,
) -> list[Path]:
    """Watch two attacks on three boards and return the files written.

    Half of the labels are easy and known, the other half are coin flips, so that no model is truly
    worth more than an accuracy of 0.75. The majority attack and the shifted one plan for all
    questions. At each of up to 100 frames a copy of the board is asked about the attack's vote as
    if that were its last question; the game goes on without it. The boards are exact scores, the
    Ladder with step 1/sqrt(n), and the calibrated Shaky Ladder with its noise times 0, 1/2, 1, 2.

    ``play.json`` has the means over the games, as the page Play reads them: accuracies, in ten
    thousandths. ``frames.csv`` has them in full, with standard deviations.
    """
    study = ExperimentRun(out, quick, repetitions, seed, workers, cluster, progress)
    games = study.repetitions or (_QUICK_GAMES if quick else _GAMES)
    sizes = (_QUICK_N, _QUICK_QUESTIONS) if quick else (_N, _QUESTIONS)
    scenes = [
        AttackScene(n, k, *board, attack)
        for n in sizes[0]
        for k in sizes[1]
        for board in make_boards(n, k)
        for attack in _ATTACKS
    ]
    films = [film for scene in scenes for film in scene.films(games, study.seed)]
    found = study.run_tasks(films, "play")
    reels = [
        SceneSummary(scene, found[at * games : (at + 1) * games]) for at, scene in enumerate(scenes)
    ]
    study.write_csv("frames.csv", [row for reel in reels for row in reel.rows()])
    study.write("play.json", _play_json(reels, sizes, games, study.seed))
    return study.written


def make_boards(n: int, k: int) -> list[tuple[str, str | None, Mechanism]]:
    """Return the boards at a size: the name, how much of the calibrated noise, what answers."""
    ours = ShakyLadder.calibrated(n=n, questions=k)
    shaky = [
        (
            "shaky_ladder",
            name,
            ShakyLadder(
                ours.step,
                round(times * ours.compare_noise, 12),
                round(times * ours.release_noise, 12),
                grid=ours.grid,
                standing_noise=0,
            ),
        )
        for name, times in _NOISES.items()
    ]
    return [
        *((name, None, STANDARD_MECHANISMS[name](n, k)) for name in ("exact", "ladder")),
        *shaky,
    ]


@dataclass(frozen=True)
class AttackScene:
    """One attack on one board at one size."""

    n: int
    k: int
    board: str
    noise: str | None
    mechanism: Mechanism
    attack: str

    def films(self, games: int, seed: int) -> list[RecordedMatch]:
        """Return every game of it. All boards meet the same holdouts and the same luck."""
        names = (self.board, self.attack)
        analyst = _ATTACKS[self.attack]
        return [
            RecordedMatch(names, self.mechanism, analyst, self.n, self.k, at, seed)
            for at in range(games)
        ]


class SceneSummary:
    """The games of a scene, put together."""

    def __init__(self, scene: AttackScene, films: Sequence[dict[str, Any]]) -> None:
        self.scene = scene
        # Accuracies: a page shows what people know.
        self._all = {
            name: 1 - np.array([film[name] for film in films])
            for name in ("shown", "fits", "worth")
        }
        self.mean = {name: each.mean(axis=0) for name, each in self._all.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row a frame."""
        scene, shown = self.scene, self._all["shown"]
        spread = shown.std(axis=0, ddof=1) if len(shown) > 1 else np.zeros(shown.shape[1])
        return [
            {
                "n": scene.n,
                "questions": scene.k,
                "board": scene.board,
                "noise": scene.noise or "",
                "attack": scene.attack,
                "games": len(shown),
                "asked": asked,
                "shown": float(self.mean["shown"][at]),
                "shown_std": float(spread[at]),
                "fits": float(self.mean["fits"][at]),
                "worth": float(self.mean["worth"][at]),
            }
            for at, asked in enumerate(frame_questions(scene.k))
        ]

    def written(self) -> dict[str, Any]:
        """Return what the page needs, in whole ten thousandths."""
        scene = self.scene
        whole = {
            name: np.rint(each * _SCALE).astype(int).tolist() for name, each in self.mean.items()
        }
        return {
            "n": scene.n,
            "questions": scene.k,
            "board": scene.board,
            "noise": scene.noise,
            "mechanism": scene.mechanism.describe(),
            "attack": scene.attack,
            "worth": whole["worth"][-1],
            "fits": whole["fits"][-1],
            "shown": whole["shown"],
        }


def _play_json(reels: Sequence[SceneSummary], sizes: Any, games: int, seed: int) -> str:
    """Return everything as JSON, a line a scene."""
    head = {
        "made_by": "ladderboard experiment play",
        "seed": seed,
        "games": games,
        "frames": FRAMES,
        "n": list(sizes[0]),
        "questions": list(sizes[1]),
        "noise": list(_NOISES),
    }
    lines = ",\n".join(json.dumps(reel.written(), separators=(",", ":")) for reel in reels)
    return f'{json.dumps(head)[:-1]}, "scenes": [\n{lines}\n]}}\n'
