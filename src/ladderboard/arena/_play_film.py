"""A film: one game of an attack, and what the board would show if it stopped at each frame."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ladderboard.analysts import Game
from ladderboard.arena._row import row_seed
from ladderboard.arena._task import Match
from ladderboard.tape import NumpyTape

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.mechanisms import Release

__all__ = ["FRAMES", "Film", "stops_of"]

FRAMES = 100
_LISTS = ("shown", "fits", "worth")


def stops_of(k: int) -> list[int]:
    """Return the questions at which frames are taken, evenly apart; the last is the last.

    >>> stops_of(200)[:3], stops_of(200)[-1], stops_of(3)
    ([2, 4, 6], 200, [1, 2, 3])
    """
    count = min(FRAMES, k)
    return [k * at // count for at in range(1, count + 1)]


class Watched(Game):
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

    def intend(self, model: Callable[[], Any]) -> None:
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
class Film(Match):
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
        count = len(stops_of(self.k))
        return isinstance(result, dict) and all(
            isinstance(found := result.get(name), list)
            and len(found) == count
            and all(type(each) is float and math.isfinite(each) for each in found)
            for name in _LISTS
        )

    def run(self, threads: int | None) -> dict[str, Any]:
        """Play, as ``Analyst.meet`` does with the seed that the arena gives this repetition."""
        own = row_seed(self.seed, self.names[1], self.n, self.k, self.repetition)
        hidden, drawn = np.random.SeedSequence(own).spawn(2)
        game = Watched(
            self.analyst.world(self.n, np.random.default_rng(hidden)),
            self.mechanism,
            questions=self.k,
            tape=NumpyTape(seed=own),
            rng=np.random.default_rng(drawn),
            stops=stops_of(self.k),
        )
        self.analyst.play(game)
        return game.frames()
