"""Play: two attacks climb three boards, frame by frame; what the page of that name shows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.analysts import MajorityAttack, ShiftedMajority
from ladderboard.arena._lineup import LINEUP
from ladderboard.arena._play_film import FRAMES, Film, stops_of
from ladderboard.arena._study import Study
from ladderboard.mechanisms import ShakyLadder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ladderboard.analysts import Analyst
    from ladderboard.mechanisms import Mechanism

__all__ = ["play_experiment"]

_EASY = 0.5
_ATTACKS: dict[str, Analyst] = {
    "majority": MajorityAttack(easy=_EASY),
    "shifted_majority": ShiftedMajority(easy=_EASY),
}
_N, _QUESTIONS = (1_000, 4_000, 10_000), (200, 1_000, 3_000)
_QUICK_N, _QUICK_QUESTIONS = (200,), (50,)
_NOISES = {"none": 0.0, "half": 0.5, "calibrated": 1.0, "double": 2.0}
_GAMES, _QUICK_GAMES = 20, 2
_DIGITS = 10**4


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
    study = Study(out, quick, repetitions, seed, workers, cluster, progress)
    games = study.repetitions or (_QUICK_GAMES if quick else _GAMES)
    sizes = (_QUICK_N, _QUICK_QUESTIONS) if quick else (_N, _QUESTIONS)
    scenes = [
        Scene(n, k, *board, attack)
        for n in sizes[0]
        for k in sizes[1]
        for board in boards(n, k)
        for attack in _ATTACKS
    ]
    films = [film for scene in scenes for film in scene.films(games, study.seed)]
    found = study.do(films, "play")
    reels = [Reel(scene, found[at * games : (at + 1) * games]) for at, scene in enumerate(scenes)]
    study.write_csv("frames.csv", [row for reel in reels for row in reel.rows()])
    study.write("play.json", _written(reels, sizes, games, study.seed))
    return study.written


def boards(n: int, k: int) -> list[tuple[str, str | None, Mechanism]]:
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
    return [*((name, None, LINEUP[name](n, k)) for name in ("exact", "ladder")), *shaky]


@dataclass(frozen=True)
class Scene:
    """One attack on one board at one size."""

    n: int
    k: int
    board: str
    noise: str | None
    mechanism: Mechanism
    attack: str

    def films(self, games: int, seed: int) -> list[Film]:
        """Return every game of it. All boards meet the same holdouts and the same luck."""
        names = (self.board, self.attack)
        analyst = _ATTACKS[self.attack]
        return [
            Film(names, self.mechanism, analyst, self.n, self.k, at, seed) for at in range(games)
        ]


class Reel:
    """The games of a scene, put together."""

    def __init__(self, scene: Scene, films: Sequence[dict[str, Any]]) -> None:
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
            for at, asked in enumerate(stops_of(scene.k))
        ]

    def written(self) -> dict[str, Any]:
        """Return what the page needs, in whole ten thousandths."""
        scene = self.scene
        whole = {
            name: np.rint(each * _DIGITS).astype(int).tolist() for name, each in self.mean.items()
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


def _written(reels: Sequence[Reel], sizes: Any, games: int, seed: int) -> str:
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
