"""Keys: a mapping that somebody typed, read key by key; what is wrong is noted, not raised."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, TypeVar

from ladderboard import _settings
from ladderboard.errors import InvalidInput, InvalidRules, Problem
from ladderboard.files import Problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from ladderboard.board._rules_yaml import Lines

__all__ = ["Keys", "Noted"]

T = TypeVar("T")


def _sentence(message: str) -> str:
    """Begin with a capital, unless with a file, whose name is written as it is.

    >>> _sentence("phases[0].end is missing."), _sentence("holdout.csv: no row is public.")
    ('Phases[0].end is missing.', 'holdout.csv: no row is public.')
    """
    first = message.partition(" ")[0]
    if "." in first and "[" not in first:
        return message
    return f"{message[0].upper()}{message[1:]}"


class Noted:
    """Everything that is wrong with a board's rules, with the line of each."""

    def __init__(self, where: str = "", lines: Lines | None = None) -> None:
        self.where = where
        self.lines: Lines = lines or {}
        self.found: list[tuple[int, Problem]] = []

    def add(self, code: str, message: str, *, key: str | None = None, line: int = 0) -> None:
        """Note one problem."""
        at = ", ".join(each for each in (self.where, f"line {line}" if line else "") if each)
        said = f"{at}: {message}" if at else _sentence(message)
        ids = (str(line),) if line else ()
        self.found.append((line, Problem(code, key, 1, ids, said)))

    def problems(self) -> list[Problem]:
        """Return all problems in the order of their lines."""
        return [each for _, each in sorted(self.found, key=lambda pair: pair[0])]

    def refuse_if_any(self) -> None:
        """Raise the refusal that lists every problem, if there is one."""
        every = Problems(InvalidRules)
        every.found = self.problems()
        every.refuse_if_any()


class Keys:
    """A mapping, and where it stands in the whole.

    Parameters
    ----------
    given
        What was typed.
    noted
        Where problems go.
    path
        The keys that lead to it.
    """

    def __init__(self, given: Any, noted: Noted, path: tuple[str | int, ...] = ()) -> None:
        self.given: dict[str, Any] = given
        self.noted, self.path = noted, path
        self.wrong: set[str] = set()

    def name(self, key: str | None = None) -> str:
        """Return how a message calls a key, as in ``phases[0].end``."""
        path = self.path if key is None else (*self.path, key)
        parts = [f"[{each}]" if isinstance(each, int) else f".{each}" for each in path]
        return "".join(parts).removeprefix(".")

    def bad(self, key: str | None, message: str, code: str = "bad_value") -> None:
        """Note what is wrong with a key, or with the whole mapping."""
        path = self.path if key is None else (*self.path, key)
        line = next(
            (self.noted.lines[path[:cut]] for cut in range(len(path), 0, -1)
             if path[:cut] in self.noted.lines),
            0,
        )  # fmt: skip
        self.wrong.add(key or "")
        self.noted.add(code, message, key=self.name(key) or None, line=line)

    def only(self, known: tuple[str, ...]) -> None:
        """Note keys that are none of the known ones, with the nearest that is."""
        for key in self.given:
            if key in known:
                continue
            close = difflib.get_close_matches(str(key).lower(), known, n=1, cutoff=0.6)
            hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(known)}."
            owner = f"{self.name()} has no" if self.path else "there is no"
            self.bad(key, f"{owner} key {_settings.shown(key)}; {hint}", "unknown_key")

    def has(self, key: str) -> bool:
        """Return whether a key has a value."""
        return self.given.get(key) is not None

    def take(self, key: str, read: Callable[[str, Any], T], default: T) -> T:
        """Return a value as it was read, the default where there is none or it is wrong."""
        if not self.has(key):
            return default
        try:
            return read(self.name(key), self.given[key])
        except InvalidInput as error:
            self.bad(key, str(error))
        return default

    def need(self, key: str, read: Callable[[str, Any], T], default: T, hint: str) -> T:
        """As ``take``, for a key that must be there; ``hint`` says what to type."""
        if self.has(key):
            return self.take(key, read, default)
        self.bad(None if self.path else key, f"{self.name(key)} is missing; {hint}.", "missing_key")
        self.wrong.add(key)
        return default

    def part(self, key: str, known: tuple[str, ...]) -> Keys | None:
        """Return the mapping under a key; None where there is none."""
        if not self.has(key):
            return None
        return self._mapping(self.given[key], (*self.path, key), known)

    def parts(self, key: str, known: tuple[str, ...]) -> list[Keys]:
        """Return the mappings in the list under a key."""
        if not self.has(key):
            return []
        given = self.given[key]
        if not isinstance(given, list):
            self.bad(key, f"{self.name(key)} must be a list; got {_settings.shown(given)}.")
            return []
        found = [self._mapping(each, (*self.path, key, at), known) for at, each in enumerate(given)]
        if None in found:
            self.wrong.add(key)
        return [each for each in found if each is not None]

    def _mapping(
        self, given: Any, path: tuple[str | int, ...], known: tuple[str, ...]
    ) -> Keys | None:
        under = Keys(given, self.noted, path)
        if not isinstance(given, dict) or not all(isinstance(each, str) for each in given):
            under.bad(
                None, f"{under.name()} must hold {', '.join(known)}; got {_settings.shown(given)}."
            )
            self.wrong.add(str(path[len(self.path)]))
            return None
        under.only(known)
        return under
