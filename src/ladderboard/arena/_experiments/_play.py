"""The play experiment: two attacks on three boards, frame by frame, for the Play page."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.analysts import Game, MajorityAttack, ShiftedMajority
from ladderboard.arena._runner import STANDARD_MECHANISMS, ExperimentRun, Match, repetition_seed
from ladderboard.mechanisms import GrowingLadder
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
    """Return the questions at which frames are recorded, evenly spaced up to the last.

    >>> frame_questions(200)[:3], frame_questions(200)[-1], frame_questions(3)
    ([2, 4, 6], 200, [1, 2, 3])
    """
    count = min(FRAMES, k)
    return [k * frame // count for frame in range(1, count + 1)]


class RecordingGame(Game):
    """A game that records, at some questions, what the board would show if this were the last.

    A copy of the session answers the analyst's final model, with the same noise as the question
    itself. The game is not affected.
    """

    def __init__(self, *args: Any, record_at: list[int], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._record_at = frozenset(record_at)
        self._final_model: Callable[[], Any] | None = None
        self._shown: list[float] = []
        self._fits: list[float] = []
        self._worth: list[float] = []

    def register_final_model(self, model: Callable[[], Any]) -> None:
        """Keep the model that would be asked last."""
        self._final_model = model

    def ask(self, model: Any, *, account: int = 0) -> Release:
        """Record a frame first, if one is due."""
        if self.asked + 1 in self._record_at and self._final_model is not None:
            self._record_frame(self._final_model())
        return super().ask(model, account=account)

    def _record_frame(self, model: Any) -> None:
        world, session = self._world, self._sessions.get(0)
        if session is None:
            copy = self.mechanism.start(n=self.n, tape=self._tape, ladder=0)
        else:
            copy = self.mechanism.resume(session.state, tape=self._tape)
        model = world.read(model)
        risk, true_risk = world.risk(model), world.true_risk(model)
        shown = copy.ask(risk=risk).value
        if shown is None:
            raise TypeError(f"{self.mechanism.name} releases no value to record.")
        self._shown.append(shown)
        self._fits.append(risk)
        self._worth.append(min(true_risk, *self._true_risks, math.inf))

    def frames(self) -> dict[str, Any]:
        """Return the frames: the risk shown, the vote's risk on the holdout, and the true risk.

        The true risk is the best of all models asked until then, as in Definition 1. An attack may
        stop early, when no question is worth asking: later frames are like the last one.
        """
        count = len(self._record_at)
        recorded = {"shown": self._shown, "fits": self._fits, "worth": self._worth}
        return {
            name: values + values[-1:] * (count - len(values)) for name, values in recorded.items()
        }


@dataclass(frozen=True)
class RecordedMatch(Match):
    """One repetition of an attack against a mechanism, recorded frame by frame."""

    @property
    def weight(self) -> float:
        """Like that of a match, plus the cost of recording."""
        return self.k * (self.n + 10_000)

    def describe(self) -> dict[str, Any]:
        """Return participants, size and seed."""
        return {**super().describe(), "kind": "recorded match"}

    def accepts(self, result: Any) -> bool:
        """Return whether a stored result has all frames."""
        count = len(frame_questions(self.k))
        return isinstance(result, dict) and all(
            isinstance(risks := result.get(name), list)
            and len(risks) == count
            and all(type(risk) is float and math.isfinite(risk) for risk in risks)
            for name in _FRAME_FIELDS
        )

    def run(self, threads: int | None) -> dict[str, Any]:
        """Play as ``Analyst.play_against`` does, with the arena's seed for this repetition."""
        game_seed = repetition_seed(self.seed, self.names[1], self.n, self.k, self.repetition)
        world_seed, analyst_seed = np.random.SeedSequence(game_seed).spawn(2)
        game = RecordingGame(
            self.analyst.world(self.n, np.random.default_rng(world_seed)),
            self.mechanism,
            questions=self.k,
            tape=NumpyTape(seed=game_seed),
            rng=np.random.default_rng(analyst_seed),
            record_at=frame_questions(self.k),
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
    """Record two attacks on three boards and return the files written.

    Half of the labels are easy and known, the other half are coin flips, so that no model has a
    true accuracy above 0.75. The majority attack and the shifted one plan for all questions. At
    each of up to 100 frames a copy of the board is asked about the attack's vote as if that were
    its last question; the game itself is not affected. The boards are exact scores, the
    Ladder with step 1/sqrt(n), and the calibrated growing ladder, its noise times 0, 1/2, 1, 2.

    ``play.json`` has the means over the games, as the Play page reads them: accuracies, in units
    of 0.0001. ``frames.csv`` has them in full precision, with standard deviations.
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
    matches = [match for scene in scenes for match in scene.matches(games, study.seed)]
    results = study.run_tasks(matches, "play")
    summaries = [
        SceneSummary(scene, results[index * games : (index + 1) * games])
        for index, scene in enumerate(scenes)
    ]
    study.write_csv("frames.csv", [row for summary in summaries for row in summary.rows()])
    study.write("play.json", _play_json(summaries, sizes, games, study.seed))
    return study.written


def make_boards(n: int, k: int) -> list[tuple[str, str | None, Mechanism]]:
    """Return the boards at a size: name, share of the calibrated noise, mechanism."""
    ours = GrowingLadder.calibrated(n=n, questions=k)
    growing = [
        (
            "growing_ladder",
            name,
            replace(
                ours,
                compare_noise=factor * ours.compare_noise,
                release_noise=factor * ours.release_noise,
            ),
        )
        for name, factor in _NOISES.items()
    ]
    return [
        *((name, None, STANDARD_MECHANISMS[name](n, k)) for name in ("exact", "ladder")),
        *growing,
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

    def matches(self, games: int, seed: int) -> list[RecordedMatch]:
        """Return its games. All boards face the same holdouts and random choices."""
        names = (self.board, self.attack)
        analyst = _ATTACKS[self.attack]
        return [
            RecordedMatch(names, self.mechanism, analyst, self.n, self.k, game, seed)
            for game in range(games)
        ]


class SceneSummary:
    """The means over the games of a scene."""

    def __init__(self, scene: AttackScene, results: Sequence[dict[str, Any]]) -> None:
        self.scene = scene
        # Accuracies, as the page shows them.
        self._accuracies = {
            name: 1 - np.array([result[name] for result in results])
            for name in ("shown", "fits", "worth")
        }
        self.mean = {name: values.mean(axis=0) for name, values in self._accuracies.items()}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each frame."""
        scene, shown = self.scene, self._accuracies["shown"]
        spread = shown.std(axis=0, ddof=1) if len(shown) > 1 else np.zeros(shown.shape[1])
        return [
            {
                "n": scene.n,
                "questions": scene.k,
                "board": scene.board,
                "noise": scene.noise or "",
                "attack": scene.attack,
                "games": len(shown),
                "asked": questions,
                "shown": float(self.mean["shown"][frame]),
                "shown_std": float(spread[frame]),
                "fits": float(self.mean["fits"][frame]),
                "worth": float(self.mean["worth"][frame]),
            }
            for frame, questions in enumerate(frame_questions(scene.k))
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the data of the page, in units of 0.0001."""
        scene = self.scene
        scaled = {
            name: np.rint(values * _SCALE).astype(int).tolist()
            for name, values in self.mean.items()
        }
        return {
            "n": scene.n,
            "questions": scene.k,
            "board": scene.board,
            "noise": scene.noise,
            "mechanism": scene.mechanism.describe(),
            "attack": scene.attack,
            "worth": scaled["worth"][-1],
            "fits": scaled["fits"][-1],
            "shown": scaled["shown"],
        }


def _play_json(summaries: Sequence[SceneSummary], sizes: Any, games: int, seed: int) -> str:
    """Return everything as JSON, one line for each scene."""
    head = {
        "made_by": "ladderboard experiment play",
        "seed": seed,
        "games": games,
        "frames": FRAMES,
        "n": list(sizes[0]),
        "questions": list(sizes[1]),
        "noise": list(_NOISES),
    }
    lines = ",\n".join(
        json.dumps(summary.to_json(), separators=(",", ":")) for summary in summaries
    )
    return f'{json.dumps(head)[:-1]}, "scenes": [\n{lines}\n]}}\n'
