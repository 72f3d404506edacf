"""A task: a pure piece of work with a stable key."""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ladderboard.arena._build import build
from ladderboard.arena._identity import content, identity
from ladderboard.arena._row import Row, play

if TYPE_CHECKING:
    from ladderboard.analysts import Analyst
    from ladderboard.mechanisms import Mechanism

__all__ = ["Match", "Task", "key_of"]


class Task(Protocol):
    """A piece of work that depends on nothing but itself."""

    @property
    def weight(self) -> float:
        """How much work this is, compared with other tasks of the same kind."""

    def describe(self) -> dict[str, Any]:
        """Return all that decides the result, JSON-able."""

    def run(self, threads: int | None) -> dict[str, Any]:
        """Do the work, on so many threads, and return a JSON-able result."""

    def accepts(self, result: Any) -> bool:
        """Tell whether a result that was kept is one of this task, whole and undamaged."""


def key_of(task: Task) -> str:
    """Return the key under which a result is kept: other code has other keys."""
    try:
        written = json.dumps([build(), task.describe()], sort_keys=True, default=content)
    except (RecursionError, TypeError, ValueError):  # settings that hold themselves, or the like
        return uuid.uuid4().hex
    return hashlib.blake2b(written.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Match:
    """One repetition of an analyst against a mechanism."""

    names: tuple[str, str]
    mechanism: Mechanism
    analyst: Analyst
    n: int
    k: int
    repetition: int
    seed: int

    @property
    def weight(self) -> float:
        """Questions times the examples each is about, and what a question costs anyway."""
        return self.k * (self.n + 2_000)

    def describe(self) -> dict[str, Any]:
        """Who plays, on what, with which seed."""
        return {
            "kind": "match",
            "names": list(self.names),
            "mechanism": identity(self.mechanism),
            "analyst": identity(self.analyst),
            "n": self.n,
            "k": self.k,
            "repetition": self.repetition,
            "seed": self.seed,
        }

    def accepts(self, result: Any) -> bool:
        """Tell whether a kept row belongs to this game and holds numbers."""
        try:
            row = Row.read(result)
            mine = (*self.names, self.n, self.k, self.repetition)
            numbers = (row.leaderboard_error, row.bias, row.changes, row.asked, row.seconds)
            return (row.mechanism, row.analyst, row.n, row.k, row.repetition) == mine and not any(
                isinstance(each, bool) or math.isinf(each) for each in numbers
            )
        except (KeyError, TypeError, ValueError):
            return False

    def run(self, threads: int | None) -> dict[str, Any]:
        """Play."""
        return play(
            self.mechanism,
            self.analyst,
            names=self.names,
            n=self.n,
            k=self.k,
            repetition=self.repetition,
            seed=self.seed,
        ).write()
